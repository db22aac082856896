// Tensors for tests of kernels: elements of any type and strides, and what lies around them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/index.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/problem.h"

namespace warpwright {

/// A tensor in memory that is otherwise all 0xff: NaN in every floating-point type. So are its
/// elements until they are set.
class Tensor {
 public:
  static constexpr std::int64_t guard = 256;  ///< bytes before and behind

  /// It begins `shift` elements behind a multiple of 64 bytes.
  Tensor(DType type, std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
         std::int64_t column_stride = 1, std::int64_t batch = 1, std::int64_t batch_stride = 0,
         std::int64_t shift = 0)
      : view_{nullptr, type, rows, columns, row_stride, column_stride, batch, batch_stride} {
    std::int64_t last = shift;
    if (rows > 0 && columns > 0) {
      last +=
          (rows - 1) * row_stride + (columns - 1) * column_stride + (batch - 1) * batch_stride + 1;
    }
    bytes_.assign(index(2 * guard + 64 + last * width()), 0xff);
    const auto at = reinterpret_cast<std::uintptr_t>(bytes_.data()) + guard;
    view_.data = bytes_.data() + guard + (64 - at % 64) % 64 + shift * width();
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  [[nodiscard]] const MatrixView& view() const { return view_; }
  [[nodiscard]] std::int64_t width() const { return numeric::bits(view_.dtype) / 8; }
  [[nodiscard]] unsigned char* at(std::int64_t b, std::int64_t i, std::int64_t j) const {
    return static_cast<unsigned char*>(view_.data) +
           (b * view_.batch_stride + i * view_.row_stride + j * view_.column_stride) * width();
  }
  void set(std::int64_t b, std::int64_t i, std::int64_t j, double x) {
    const std::uint64_t code = numeric::from_double(view_.dtype, x);
    std::memcpy(at(b, i, j), &code, index(width()));
  }
  [[nodiscard]] double get(std::int64_t b, std::int64_t i, std::int64_t j) const {
    std::uint64_t code = 0;
    std::memcpy(&code, at(b, i, j), index(width()));
    return numeric::to_double(view_.dtype, code);
  }
  template <class Draw>
  void fill(const Draw& draw) {
    for (std::int64_t b = 0; b < view_.batch; ++b) {
      for (std::int64_t i = 0; i < view_.rows; ++i) {
        for (std::int64_t j = 0; j < view_.columns; ++j) set(b, i, j, draw());
      }
    }
  }
  /// All of it, with what lies around the tensor.
  [[nodiscard]] std::vector<unsigned char>& memory() { return bytes_; }
  /// Bytes outside rows [first, end) of every matrix that are not as they were made.
  [[nodiscard]] int disturbed(const std::vector<std::pair<int, int>>& rows) const {
    std::vector<unsigned char> copy = bytes_;
    for (std::int64_t b = 0; b < view_.batch; ++b) {
      for (const auto& [first, end] : rows) {
        for (int i = first; i < end; ++i) {
          std::fill_n(copy.begin() + (at(b, i, 0) - bytes_.data()), view_.columns * width(),
                      static_cast<unsigned char>(0xff));
        }
      }
    }
    return static_cast<int>(
        std::count_if(copy.begin(), copy.end(), [](unsigned char b) { return b != 0xff; }));
  }
  /// The same outside all rows.
  [[nodiscard]] int disturbed() const { return disturbed({{0, static_cast<int>(view_.rows)}}); }

 private:
  MatrixView view_;
  std::vector<unsigned char> bytes_;
};

}  // namespace warpwright
