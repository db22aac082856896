// What the tests of the C ABI share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "warpwright/c.h"

namespace c_tests {

struct FreeRefusal {
  void operator()(ww_refusal* r) const { ww_refusal_free(r); }
};
using Refusal = std::unique_ptr<ww_refusal, FreeRefusal>;

#define EXPECT_DONE(call)             \
  do {                                \
    const Refusal told(call);         \
    EXPECT_FALSE(told) << text(told); \
  } while (false)

inline std::string text(const Refusal& refused) {
  return ww_refusal_text(refused.get());
}

inline std::uint16_t bf16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

inline float bf16_value(std::uint16_t code) {
  const std::uint32_t bits = static_cast<std::uint32_t>(code) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

struct Device {
  ww_device* device = nullptr;
  explicit Device(const char* name) { EXPECT_DONE(ww_device_open(name, &device)); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() { ww_device_free(device); }
};

}  // namespace c_tests
