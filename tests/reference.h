// What the tests of products share: tensors with their surroundings. What results must be says
// warpwright/reference/; here are the names by which tests ask it.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "tests/index.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/product/plan.h"
#include "warpwright/reference/product.h"

namespace warpwright::tests {

/// For 64 bits as many others, each of which depends on all.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

using reference::activated;
using reference::element;
using reference::Product;
using reference::Sum;
using Bounded = reference::Bounded<double>;

/// What tests allow activations to be as steep as, at least.
inline constexpr double slope = 1.2;

/// A batch of matrices with its memory. All bytes but the elements are 0xff, which is a NaN or a
/// large negative number of every type; so are the elements until they are set.
class Tensor {
 public:
  Tensor() = default;
  /// The first element lies `shift` of them behind a multiple of 256 bytes.
  Tensor(DType type, std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
         std::int64_t column_stride = 1, std::int64_t batch = 1, std::int64_t batch_stride = 0,
         std::int64_t shift = 0)
      : view_{nullptr, type, rows, columns, row_stride, column_stride, batch, batch_stride},
        begin_(guard + shift * numeric::bits(type) / 8) {
    const std::int64_t elements = (std::max<std::int64_t>(rows, 1) - 1) * row_stride +
                                  (std::max<std::int64_t>(columns, 1) - 1) * column_stride +
                                  (batch - 1) * batch_stride + 1;
    memory_.resize(index((begin_ + numeric::packed_bytes(type, elements) + guard) / guard + 1));
    std::memset(memory_.data(), 0xff, index(bytes()));
  }

  /// The tensor in this object's memory, or in a copy of that memory at `base`, which is a
  /// multiple of 256.
  [[nodiscard]] MatrixView view(void* base = nullptr) const {
    MatrixView v = view_;
    if (!memory_.empty()) {
      v.data = (base == nullptr ? memory() : static_cast<std::byte*>(base)) + begin_;
    }
    return v;
  }
  [[nodiscard]] std::byte* memory() const { return const_cast<std::byte*>(memory_.data()->byte); }
  [[nodiscard]] std::int64_t bytes() const {
    return static_cast<std::int64_t>(memory_.size()) * guard;
  }

  [[nodiscard]] std::byte* address(std::int64_t b, std::int64_t i, std::int64_t j) const {
    return memory() + begin_ + place(b, i, j) * numeric::bits(view_.dtype) / 8;
  }
  void set(std::int64_t b, std::int64_t i, std::int64_t j, double x) { put(b, i, j, code_of(x)); }
  [[nodiscard]] double get(std::int64_t b, std::int64_t i, std::int64_t j) const {
    return element(view(), b, i, j);
  }
  template <class Draw>
  void fill(const Draw& draw) {
    for_each(0, view_.rows,
             [&](std::int64_t b, std::int64_t i, std::int64_t j) { set(b, i, j, draw()); });
  }
  /// Each element one of `values`.
  void fill(std::mt19937& random, const std::vector<double>& values) {
    std::vector<std::uint64_t> codes;
    for (const double value : values) codes.push_back(code_of(value));
    // Millions are drawn: two of one step of a generator that is faster than the one it begins by.
    std::uint64_t state = random();
    std::uint64_t drawn = 0;
    bool has_another = false;
    for_each(0, view_.rows, [&](std::int64_t b, std::int64_t i, std::int64_t j) {
      if (!has_another) drawn = tests::mixed(state += 0x9e3779b97f4a7c15U);
      has_another = !has_another;
      const std::uint64_t which = (drawn & 0xffffffffU) * codes.size() >> 32;
      drawn >>= 32;
      put(b, i, j, codes[which]);
    });
  }
  /// Values between two, a thousand at most.
  void fill(std::mt19937& random, double low, double high) {
    std::uniform_real_distribution<double> draw(low, high);
    std::vector<double> values(index(std::min<std::int64_t>(1024, bytes())));
    for (double& value : values) value = draw(random);
    fill(random, values);
  }
  /// Sixteenths from -1 to 1.
  void fill_sixteenths(unsigned seed) {
    std::mt19937 random(seed);
    fill([&] { return static_cast<int>(random() % 33) / 16.0 - 1.0; });
  }
  /// The elements of a tensor of the same extents.
  void copy(const Tensor& from) {
    for_each(0, view_.rows, [&](std::int64_t b, std::int64_t i, std::int64_t j) {
      set(b, i, j, from.get(b, i, j));
    });
  }
  /// Makes all matrices of a batch of `count` the first one, as torch.expand does.
  void share(int count) {
    view_.batch = count;
    view_.batch_stride = 0;
  }
  /// Bytes beside the elements, or those of rows [first, end), that are no longer 0xff.
  [[nodiscard]] std::int64_t disturbed() const { return disturbed({{0, view_.rows}}); }
  [[nodiscard]] std::int64_t disturbed(
      const std::vector<std::pair<std::int64_t, std::int64_t>>& rows) const {
    std::vector<std::byte> rest(memory(), memory() + bytes());
    for (const auto& [first, end] : rows) {
      for_each(first, end, [&](std::int64_t b, std::int64_t i, std::int64_t j) {
        std::fill_n(rest.begin() + (address(b, i, j) - memory()), width(), std::byte{0xff});
      });
    }
    return bytes() - std::count(rest.begin(), rest.end(), std::byte{0xff});
  }

 private:
  static constexpr int guard = 256;  // bytes before and behind the elements, at least
  struct alignas(guard) Line {
    std::byte byte[guard];
  };

  template <class Visit>
  void for_each(std::int64_t first, std::int64_t end, const Visit& visit) const {
    for (std::int64_t b = 0; b < view_.batch; ++b) {
      for (std::int64_t i = first; i < end; ++i) {
        for (std::int64_t j = 0; j < view_.columns; ++j) visit(b, i, j);
      }
    }
  }
  [[nodiscard]] std::int64_t place(std::int64_t b, std::int64_t i, std::int64_t j) const {
    return b * view_.batch_stride + i * view_.row_stride + j * view_.column_stride;
  }
  [[nodiscard]] std::int64_t width() const { return std::max(1, numeric::bits(view_.dtype) / 8); }
  [[nodiscard]] std::uint64_t code_of(double x) const {
    // The low bits of a tf32's word, which nobody reads, are those of an f32.
    if (view_.dtype == DType::f32 || view_.dtype == DType::tf32) {
      return std::bit_cast<std::uint32_t>(static_cast<float>(x));
    }
    return numeric::from_double(view_.dtype, x);
  }
  void put(std::int64_t b, std::int64_t i, std::int64_t j, std::uint64_t code) {
    std::byte* const at = address(b, i, j);
    switch (numeric::bits(view_.dtype)) {  // by constants, which are single stores
      case 4:
      case 6: {  // densely
        const int bits = numeric::bits(view_.dtype);
        const auto shift = static_cast<int>(place(b, i, j) * bits % 8);
        std::uint16_t word = 0;
        std::memcpy(&word, at, 2);
        const unsigned mask = ((1U << bits) - 1) << shift;
        word = static_cast<std::uint16_t>((word & ~mask) | code << shift);
        std::memcpy(at, &word, 2);
        return;
      }
      case 8:
        std::memcpy(at, &code, 1);
        return;
      case 16:
        std::memcpy(at, &code, 2);
        return;
      case 32:
        std::memcpy(at, &code, 4);
        return;
      default:
        std::memcpy(at, &code, index(width()));
    }
  }

  MatrixView view_;
  std::int64_t begin_ = 0;
  std::vector<Line> memory_;
};

}  // namespace warpwright::tests
