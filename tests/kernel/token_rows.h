// Rows of tokens for the kernels that move them, as they may lie; and what such a kernel waits for.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string_view>
#include <vector>

#include "tests/kernel/slots.h"
#include "tests/model/mutants.h"
#include "tests/must.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::tests {

inline std::uint16_t code16(DType type, float x) {
  return static_cast<std::uint16_t>(numeric::from_double(type, static_cast<double>(x)));
}
inline float float16(DType type, std::uint16_t code) {
  return static_cast<float>(numeric::to_double(type, code));
}

// A matrix of bytes with a pitch, behind some bytes.
struct Bytes {
  std::vector<unsigned char> all;
  int shift;
  int pitch;
  Bytes(int rows, int row_bytes, int extra, int before)
      : all(index(rows * (row_bytes + extra) + before + 16), 0xcd),
        shift(before),
        pitch(row_bytes + extra) {}
  unsigned char* data() {
    const auto at = reinterpret_cast<std::uintptr_t>(all.data());
    return all.data() + (16 - at % 16) % 16 + shift;
  }
  unsigned char* row(int r) { return data() + r * pitch; }
  // What may be touched: the rows, no more.
  model::Allocation memory(const char* name, int rows, int row_bytes, bool writable) {
    return {data(), rows == 0 ? 0 : std::int64_t{rows - 1} * pitch + row_bytes, name, writable};
  }
};

struct Shape {
  int tokens;
  int k;
  DType type = DType::bf16;
  int x_shift = 0;  // bytes beyond a multiple of 16
  int x_extra = 0;
  int to_shift = 0;
  int to_extra = 0;
};

// Values of many sizes, with zeros; some blocks have what is no number.
inline Bytes tokens_of(const Shape& s, std::uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal;
  Bytes x(s.tokens, 2 * s.k, s.x_extra, s.x_shift);
  for (int t = 0; t < s.tokens; ++t) {
    const float size = std::ldexp(1.0F, static_cast<int>(random() % 20) - 10);
    for (int i = 0; i < s.k; ++i) {
      float v = normal(random) * size;
      if (random() % 16 == 0) v = 0;
      if (t % 5 == 4 && random() % 64 == 0) v = random() % 2 == 0 ? NAN : -INFINITY;
      if (t % 7 == 6 && i < 128) v = 0;
      const std::uint16_t code = code16(s.type, v);
      std::memcpy(x.row(t) + 2 * i, &code, 2);
    }
  }
  return x;
}

// What these kernels synchronise is the wait for the grid before: without it they are told.
template <class Run>
void expect_waits(const Run& run) {
  for (const model::Options& how : model::schedules()) {
    SCOPED_TRACE(model::text(how));
    must_be_clean(run(how));
  }
  model::Options counting;
  counting.count_sites = true;
  int killed = 0;
  for (const model::Mutation& m : model::mutations(run(counting).sites)) {
    SCOPED_TRACE(model::text(m) + ", " + std::string(m.how()));
    model::Options how;
    how.mutation = m;
    const bool told = !run(how).clean();
    killed += told ? 1 : 0;
    // (Waiting twice is waiting.)
    EXPECT_TRUE(told || m.how().find("twice") != std::string_view::npos);
  }
  EXPECT_GT(killed, 0);
}

}  // namespace warpwright::tests
