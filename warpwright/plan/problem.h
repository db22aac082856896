// What a caller wants: D[m, n] = alpha * A[m, k] * B[n, k]^T + beta * C[m, n], and its tensors; in
// a grouped product the rows of A and D fall into groups, each with a B of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "warpwright/facts/packed_weights.h"
#include "warpwright/numeric/types.h"

namespace warpwright {

/// A matrix, or a batch of them: element (b, i, j) lies at
/// data + (b * batch_stride + i * row_stride + j * column_stride) elements. Strides in elements. Of
/// e2m1 two lie in a byte, the first in its low half, and rows begin at whole bytes.
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

/// How the operands of a product are scaled. Scales are float32 (but of `micro`) in the operands'
/// memory.
enum class Scaling : std::uint8_t {
  none,
  tensor,      ///< one factor for A (1 x 1) and one for B (1 x 1)
  row_column,  ///< a factor for each row of A (M x 1) and for each row of B (N x 1)
  /// A factor for every 1 x 128 of A (M x ceil(K/128)) and every 128 x 128 of B
  /// (ceil(N/128) x ceil(K/128)), as DeepSeek-style checkpoints have them; any strides, no padding
  /// (of A, row_stride 1 and a column_stride of M rounded up to 4 is the fastest)
  block,
  /// Grouped products alone: one factor for A, or one for each group (G x 1), and one for each
  /// group of B (G x 1)
  group,
  /// A scale for every few elements of a row, along K, which the tensor core multiplies: mxf8, a
  /// ue8m0 each 32 of e4m3, or nvf4, a ue4m3 each 16 of e2m1. They lie as cuBLASLt and PyTorch have
  /// them, in tiles of 128 rows x 4 (facts/block_scales.h): as a packed matrix of whole tiles,
  /// M (or N) rounded up to 128 rows by the blocks of K rounded up to 4. Behind K they are anything
  /// but NaN.
  micro,
};

/// Where sums of products of 8-bit operands are kept.
enum class Accumulation : std::uint8_t {
  /// In the tensor core's accumulator, which on Hopper keeps 13 bits below its leading one.
  fast,
  promoted,  ///< added to float32 registers every 128 of K; block scaling always does
};

/// How the sums of int4 weights meet the scales of their groups.
enum class GroupSums : std::uint8_t {
  exact,    ///< each group's products are summed, scaled, and added to float32 registers
  chained,  ///< in the tensor core's accumulator, which is rescaled from group to group
  folded,   ///< scales are multiplied to the weights, and rounded to e4m3
  table,    ///< the same by a table of a group's row, of codes without -8
};

/// The word for it.
constexpr const char* name(GroupSums sums) {
  constexpr const char* names[] = {"exact", "chained", "folded", "table"};
  return names[static_cast<std::size_t>(sums)];
}
/// Whether weights are rounded with their scales.
constexpr bool folds(GroupSums sums) {
  return sums == GroupSums::folded || sums == GroupSums::table;
}

/// B as int4 weights in their packed form (facts/packed_weights.h, docs/w4a8.md).
struct PackedWeights {
  PackedFormat format = {};
  GroupSums sums = GroupSums::exact;

  friend constexpr bool operator==(const PackedWeights&, const PackedWeights&) = default;
};

/// What is applied to alpha * A * B^T + beta * C + bias.
enum class Activation : std::uint8_t {
  none,
  relu,
  gelu,        ///< in its tanh form, as cuBLASLt's
  silu,        ///< x / (1 + exp(-x))
  quick_gelu,  ///< x / (1 + exp(-1.702 x)), as CLIP has it
};

/// All of them, in their order, and the word for each.
inline constexpr Activation all_activations[] = {
    Activation::none, Activation::relu, Activation::gelu, Activation::silu, Activation::quick_gelu};
constexpr const char* name(Activation activation) {
  constexpr const char* names[] = {"none", "relu", "gelu", "silu", "quick_gelu"};
  return names[static_cast<std::size_t>(activation)];
}

/// What a bias vector runs along.
enum class Bias : std::uint8_t {
  none,
  rows,     ///< one value for each row of D
  columns,  ///< one value for each column of D, as a linear layer has it
};

/// What happens to a product on its way to D.
struct Epilogue {
  Activation activation = Activation::none;
  /// D has half the columns of the product: D[m, j] = activation(P[m, j]) * P[m, j + N/2], where P
  /// has N columns (a gated MLP with its two weight matrices one below the other). activation is
  /// silu; no C.
  bool gated = false;
  Bias bias = Bias::none;

  friend constexpr bool operator==(const Epilogue&, const Epilogue&) = default;
};

/// The integers of the offsets of groups.
enum class OffsetType : std::uint8_t { int32, int64 };

/// The groups of a product's rows: rows [offsets[g], offsets[g + 1]) of A and D are group g's.
struct Groups {
  /// G + 1 of them, in the operands' memory: where the groups begin, and where the last one ends.
  /// Read by the kernel alone. Rows of D in no group are left as they are. Offsets below 0 or above
  /// M count as 0 and M; a group that ends before it begins is empty.
  const void* offsets = nullptr;
  OffsetType type = OffsetType::int32;
  /// A hint for the choice of a kernel: rows in a group that has any. 0: M / G. Nothing depends on
  /// it but speed.
  double expected_tokens = 0;
};

/// The tensors and scalars of one product, of a batch of them, or of a product in groups:
///   D = activation(alpha * scaled(A * B^T) + beta * C + bias) * scale_d
/// A is m x k and B is n x k. 16-bit operands may be K-major (column_stride 1) or MN-major
/// (row_stride 1); 8-bit ones are K-major. C may be left out: nothing is added then. With beta 0 it
/// is not read. It may be the very same view as D. All views of a batch have its length, or batch 1
/// to serve all of it; a batch_stride of 0 says the same of an input. D's matrices lie apart. With
/// `groups` A, C and D are one matrix with the rows of all groups, and B is a batch of G matrices,
/// one a group, as are scale_b and a bias along the columns (or one that serves all); all operands
/// are K-major. With `packed` B's data are the tiles of a packed tensor, behind its header; its
/// type is s4, its extents and its batch those of the weights, and it has no strides. A is e4m3;
/// scale_b may be left out, and is with block scaling.
struct GemmOperands {
  MatrixView a = {};
  MatrixView b = {};
  MatrixView c = {};
  MatrixView d = {};
  float alpha = 1.0F;
  float beta = 1.0F;  ///< of C; 0 or 1 where there is none
  Scaling scaling = Scaling::none;
  Accumulation accumulation = Accumulation::fast;
  MatrixView scale_a = {};  ///< f32, of the shape that `scaling` says
  MatrixView scale_b = {};
  MatrixView scale_d =
      {};  ///< f32, 1 x 1; may be left out (1). For an e4m3 or e5m2 D, which saturates.
  Epilogue epilogue = {};
  MatrixView bias = {};  ///< M x 1 or N x 1 of f32 or D's 16-bit type (bf16 or f16); packed
  std::optional<Groups> groups = {};
  std::optional<PackedWeights> packed = {};
};

/// Is there a C?
inline bool has_c(const GemmOperands& o) {
  return o.c.data != nullptr || o.c.rows != 0 || o.c.columns != 0;
}
/// What C is multiplied by; 0 where there is none.
inline float beta_of(const GemmOperands& o) {
  return has_c(o) ? o.beta : 0.0F;
}

/// B as it lies in memory: a row of bytes where it is packed.
MatrixView stored_b(const GemmOperands& operands);

/// What kind of thing a refusal is about, for programs; docs/api.md says more of each. New ones may
/// be added at the end.
enum class RefusalCode : std::uint8_t {
  bad_value,       ///< a scalar, a hint or a word: NaN, out of range, given where nothing reads it
  bad_shape,       ///< extents, or the length of a batch
  bad_type,        ///< an element type
  bad_stride,      ///< a stride or the memory order it makes
  bad_pointer,     ///< null, or not aligned
  overlap,         ///< the result overlaps an input, or itself
  unsupported,     ///< well formed, but not what the kernels of this device compute
  bad_choice,      ///< what the caller fixed is not legal, alone or on this device
  no_kernel,       ///< legal, but no kernel of this build does it
  no_device,       ///< a device that is not there, or that this build has no kernels for
  wrong_device,    ///< the plan was made for another device
  plan_mismatch,   ///< the operands are not those of the plan
  bad_workspace,   ///< null, too small, or not aligned
  out_of_memory,   ///< of the device
  device_error,    ///< the CUDA runtime, the driver or a running kernel failed
  model_findings,  ///< the machine model found faults in the kernel
  file_error,      ///< a file could not be read or written
};

/// The code's own name: "bad_stride".
constexpr const char* name(RefusalCode code) {
  constexpr const char* names[] = {
      "bad_value",      "bad_shape",     "bad_type",      "bad_stride",    "bad_pointer",
      "overlap",        "unsupported",   "bad_choice",    "no_kernel",     "no_device",
      "wrong_device",   "plan_mismatch", "bad_workspace", "out_of_memory", "device_error",
      "model_findings", "file_error"};
  return names[static_cast<std::size_t>(code)];
}

/// Why something was not done: a code, and one sentence that names the tensor, the rule and the
/// nearest legal value.
struct [[nodiscard]] Refusal {
  RefusalCode code;
  std::string reason;
};

/// A refusal whose sentence is made of these parts: texts and whole numbers.
template <class... Parts>
Refusal refuse(RefusalCode code, const Parts&... parts) {
  Refusal made{code, {}};
  const auto add = [&made](const auto& part) {
    if constexpr (std::is_integral_v<std::decay_t<decltype(part)>>) {
      made.reason += std::to_string(part);
    } else {
      made.reason += part;
    }
  };
  (add(parts), ...);
  return made;
}

/// A value or a refusal.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::move(value)) {}            // NOLINT: meant to be implicit
  Result(Refusal refusal) : content_(std::move(refusal)) {}  // NOLINT: meant to be implicit

  [[nodiscard]] bool ok() const { return std::holds_alternative<T>(content_); }
  explicit operator bool() const { return ok(); }
  /// The value; only when `ok()`.
  [[nodiscard]] const T& value() const& { return std::get<T>(content_); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return std::get<T>(content_); }
  /// Of a result that nobody holds the value itself: `for (auto& x : *candidates(...))` is no walk
  /// over what has ended.
  [[nodiscard]] T value() && { return std::get<T>(std::move(content_)); }
  T operator*() && { return std::get<T>(std::move(content_)); }
  const T* operator->() const { return &value(); }
  /// The sentence; only when not `ok()`.
  [[nodiscard]] const std::string& reason() const { return refusal().reason; }
  /// Its kind; only when not `ok()`.
  [[nodiscard]] RefusalCode code() const { return refusal().code; }
  /// Both; only when not `ok()`.
  [[nodiscard]] const Refusal& refusal() const { return std::get<Refusal>(content_); }

 private:
  std::variant<T, Refusal> content_;
};

}  // namespace warpwright
