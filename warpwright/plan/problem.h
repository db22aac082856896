// What a caller wants: D[m, n] = alpha * A[m, k] * B[n, k]^T + beta * C[m, n], and its tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "warpwright/numeric/types.h"

namespace warpwright {

/// A matrix, or a batch of them: element (b, i, j) lies at
/// data + (b * batch_stride + i * row_stride + j * column_stride) elements. Strides in elements.
struct MatrixView {
  void* data = nullptr;
  DType dtype = DType::bf16;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
  std::int64_t batch = 1;
  std::int64_t batch_stride = 0;
};

/// A packed row-major matrix.
inline MatrixView matrix(void* data, DType dtype, std::int64_t rows, std::int64_t columns) {
  return {data, dtype, rows, columns, columns};
}

/// The tensors and scalars of one product. A is m x k and B is n x k, both K-major (column_stride
/// 1). C may be left out (data null) when beta is 0, and may be the very same view as D.
struct GemmOperands {
  MatrixView a;
  MatrixView b;
  MatrixView c;
  MatrixView d;
  float alpha = 1.0F;
  float beta = 0.0F;
};

/// Why something was not done, in one sentence that names the tensor, the rule and the nearest
/// legal value.
struct Refusal {
  std::string reason;
};

/// A value or a refusal.
template <class T>
class Result {
 public:
  Result(T value) : content_(std::move(value)) {}            // NOLINT: meant to be implicit
  Result(Refusal refusal) : content_(std::move(refusal)) {}  // NOLINT: meant to be implicit

  [[nodiscard]] bool ok() const { return std::holds_alternative<T>(content_); }
  explicit operator bool() const { return ok(); }
  /// The value; only when `ok()`.
  [[nodiscard]] const T& value() const { return std::get<T>(content_); }
  const T& operator*() const { return value(); }
  const T* operator->() const { return &value(); }
  /// The sentence; only when not `ok()`.
  [[nodiscard]] const std::string& reason() const { return std::get<Refusal>(content_).reason; }

 private:
  std::variant<T, Refusal> content_;
};

}  // namespace warpwright
