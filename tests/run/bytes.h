// Memory of the device that a test runs on: the model's, which is the host's, or a GPU's.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "warpwright/run.h"

namespace warpwright::tests {

/// Bytes in the memory of a device (an index, or run_on_model).
class Bytes {
 public:
  Bytes(std::vector<std::byte> host, int device) : host_(std::move(host)) {
    if (device == run_on_model) return;
    buffer_ = *device::CudaBuffer::make(static_cast<std::int64_t>(host_.size()));
    EXPECT_FALSE(buffer_->from_host(host_.data(), static_cast<std::int64_t>(host_.size())));
  }
  template <class T>
  Bytes(const std::vector<T>& host, int device)
      : Bytes(std::vector<std::byte>(std::as_bytes(std::span(host)).begin(),
                                     std::as_bytes(std::span(host)).end()),
              device) {}
  void* data() { return buffer_ ? buffer_->data() : host_.data(); }
  const std::vector<std::byte>& fetch() {
    if (buffer_) {
      EXPECT_FALSE(device::synchronise_cuda());
      EXPECT_FALSE(buffer_->to_host(host_.data(), static_cast<std::int64_t>(host_.size())));
    }
    return host_;
  }

 private:
  std::vector<std::byte> host_;
  std::shared_ptr<device::CudaBuffer> buffer_;
};

}  // namespace warpwright::tests
