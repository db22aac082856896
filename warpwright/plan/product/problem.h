// What a caller wants: D[m, n] = alpha * A[m, k] * B[n, k]^T + beta * C[m, n], and its tensors; in
// a grouped product the rows of A and D fall into groups, each with a B of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "warpwright/facts/packed_weights.h"
#include "warpwright/numeric/types.h"
#include "warpwright/plan/product/modes.h"
#include "warpwright/plan/product/refusal.h"

namespace warpwright {

/// A matrix, or a batch of them, without an address: element (b, i, j) lies
/// b * batch_stride + i * row_stride + j * column_stride elements behind the first. Strides in
/// elements. Elements of 4 and 6 bits lie densely, element i behind the first at bit 4 i or 6 i,
/// from the low bits of a byte up: two of e2m1 in a byte, four of e2m3 or e3m2 in three. Rows and
/// matrices begin at whole bytes: their strides are multiples of 2 or of 4 elements.
struct MatrixShape {
  DType dtype = DType::bf16;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
  std::int64_t batch = 1;
  std::int64_t batch_stride = 0;

  friend constexpr bool operator==(const MatrixShape&, const MatrixShape&) = default;
};

/// A matrix in memory.
struct MatrixView : MatrixShape {
  void* data = nullptr;

  friend constexpr bool operator==(const MatrixView&, const MatrixView&) = default;

  constexpr MatrixView() = default;
  constexpr MatrixView(void* data_, const MatrixShape& shape) : MatrixShape(shape), data(data_) {}
  constexpr MatrixView(void* data_, DType dtype_, std::int64_t rows_, std::int64_t columns_,
                       std::int64_t row_stride_, std::int64_t column_stride_ = 1,
                       std::int64_t batch_ = 1, std::int64_t batch_stride_ = 0)
      : MatrixShape{dtype_, rows_, columns_, row_stride_, column_stride_, batch_, batch_stride_},
        data(data_) {}
};

/// A matrix that a plan is made for: of its address, what divides it.
struct PlannedMatrix : MatrixShape {
  /// Bytes, as far as known (at most 16 is of interest); for operands that copies pad, which ask
  /// for twice as much, in units of 2 bytes.
  int alignment = 16;

  friend constexpr bool operator==(const PlannedMatrix&, const PlannedMatrix&) = default;
};

/// A packed row-major matrix.
inline MatrixView matrix(void* data, DType dtype, std::int64_t rows, std::int64_t columns) {
  return {data, dtype, rows, columns, columns};
}
/// Without memory.
inline PlannedMatrix packed_matrix(DType dtype, std::int64_t rows, std::int64_t columns) {
  return {{dtype, rows, columns, columns}};
}

/// Gives it the strides of rows next to each other, matrix behind matrix.
constexpr void lie_side_by_side(MatrixShape& m) {
  m.row_stride = m.columns;
  m.column_stride = 1;
  m.batch_stride = m.batch > 1 ? m.rows * m.columns : 0;
}

/// B as weights of 4 bits in their packed form (facts/packed_weights.h, docs/w4a8.md).
struct PackedWeights {
  PackedFormat format = {};
  GroupSums sums = GroupSums::open;

  friend constexpr bool operator==(const PackedWeights&, const PackedWeights&) = default;
};

/// What happens to a product on its way to D.
struct Epilogue {
  Activation activation = Activation::none;
  /// D has half the columns of the product: D[m, j] = activation(P[m, j]) * P[m, j + N/2], where P
  /// has N columns (a gated MLP with its two weight matrices one below the other). activation is
  /// silu, gelu, or swiglu_oai, which also limits both and adds 1 to the second (`gate` has other
  /// numbers); no C.
  bool gated = false;
  Bias bias = Bias::none;
  /// For a gated product: gate and up alternate, D[m, j] = activation(P[m, 2j]) * P[m, 2j + 1]. So
  /// do rows of B, and with them its scales and a bias along the columns.
  bool interleaved = false;
  /// Codes and scales in place of values: D is e4m3 then, its scales are Product::d_scales.
  QuantiseD quantise = QuantiseD::none;
  /// For a gated product; left out: those of the activation.
  std::optional<GateNumbers> gate = {};

  friend constexpr bool operator==(const Epilogue&, const Epilogue&) = default;
};

/// The integers of the offsets of groups.
enum class OffsetType : std::uint8_t { int32, int64 };

/// How the lengths of a product's groups are spread, as far as its plan may expect.
enum class LengthSpread : std::uint8_t {
  routed,  ///< as a router spreads rows that fall into groups one by one
  equal,   ///< all groups that have any rows have as many
};

/// The groups of a product's rows: rows [offsets[g], offsets[g + 1]) of A and D are group g's.
struct Groups {
  /// G + 1 of them, in the operands' memory: where the groups begin, and where the last one ends.
  /// Read only by the kernel. Rows of D in no group are left as they are. Offsets below 0 or above
  /// M count as 0 and M; a group that ends before it begins is empty.
  const void* offsets = nullptr;
  OffsetType type = OffsetType::int32;
  /// A hint for the choice of a kernel: rows in a group that has any. 0: M / G. Nothing depends on
  /// it but speed.
  double expected_tokens = 0;
  /// Another hint, for the lengths' spread; nothing depends on it but speed either.
  LengthSpread expected_lengths = LengthSpread::routed;
  /// For routed lengths: the group of rank r (from 1) is liked as r^-expected_zipf, 0 to 8. 0: all
  /// groups alike.
  float expected_zipf = 0;
  /// Tokens by index: row r of the product reads row rows[r] / rows_divisor of A and of scale_a. M
  /// of them, in the operands' memory. A then has as many rows as there are tokens, D as many as
  /// the groups. An index that names no row of A reads zeros. Null: row r of A.
  const std::int32_t* rows = nullptr;
  /// 0: none are read by index. Else 1 or more: 1 for numbers of tokens, top_k for slots of a
  /// router that gives each token top_k of them.
  int rows_divisor = 0;

  friend constexpr bool operator==(const Groups&, const Groups&) = default;
};

/// Sets how `groups` are expected to be long from words, "routed", "equal" or "zipf:S" with S from
/// 0 to 8; or says why not, of the argument or option `name`.
[[nodiscard]] std::optional<Refusal> expect_lengths(Groups& groups, std::string_view name,
                                                    std::string_view words);

/// One product, a batch of them, or a product in groups:
///   D = activation(alpha * scaled(A * B^T) + beta * C + bias) * scale_d
/// A is m x k and B is n x k. 16-bit operands may be K-major (column_stride 1) or MN-major
/// (row_stride 1); 8-bit ones are K-major. C may be left out: nothing is added then. With beta 0 it
/// is not read. It may be the very same view as D. All matrices of a batch have its length, or
/// batch 1 to serve all of it; a batch_stride of 0 says the same of an input. D's matrices lie
/// apart. With `groups` A, C and D are one matrix with the rows of all groups, and B is a batch of
/// G matrices, one a group, as are scale_b and a bias along the columns (or one that serves all);
/// all operands are K-major; with an index of rows A is a matrix of tokens instead. With `packed`
/// B's data are the tiles of a packed tensor, behind its header; its type is s4, its extents and
/// its batch those of the weights, and it has no strides. A is e4m3; scale_b may be left out, and
/// is with block scaling.
///
/// Matrix is MatrixView (GemmOperands) or PlannedMatrix (GemmProblem).
template <class Matrix>
struct Product {
  Matrix a = {};
  Matrix b = {};
  Matrix c = {};
  Matrix d = {};
  float alpha = 1.0F;
  float beta = 1.0F;  ///< of C; 0 or 1 where there is none
  Scaling scaling = Scaling::none;
  Accumulation accumulation = Accumulation::fast;
  /// Its shape is what `scaling` says, its type f32; but for block_scaled ue8m0 or ue4m3, which
  /// with the type of A is A's format.
  Matrix scale_a = {};
  Matrix scale_b = {};
  /// f32 factors of block_scaled tensors in groups: A's 1 x 1, B's 1 x 1 or G x 1. Left out: 1.
  Matrix factor_a = {};
  Matrix factor_b = {};
  /// f32, 1 x 1; may be left out (1). For an e4m3 or e5m2 D, which saturates; for a D as nvf4 codes
  /// what they and their scales are multiplied by.
  Matrix scale_d = {};
  /// f32, M x ceil(D's columns / 128), any strides from 1 (of mxf8 and nvf4 codes as their scales
  /// lie, in tiles): the scales of a D that is quantised, which are written beside it.
  Matrix d_scales = {};
  Epilogue epilogue = {};
  Matrix bias = {};  ///< M x 1 or N x 1 of f32 or D's 16-bit type (bf16 or f16); packed
  std::optional<Groups> groups = {};
  std::optional<PackedWeights> packed = {};

  [[nodiscard]] constexpr std::int64_t m() const { return d.rows; }
  [[nodiscard]] constexpr std::int64_t n() const { return b.rows; }
  [[nodiscard]] constexpr std::int64_t k() const { return a.columns; }
  /// Products, one behind the other; for groups one.
  [[nodiscard]] constexpr std::int64_t batch() const { return d.batch; }
  /// Groups that the rows fall into; 0: this is no product in groups.
  [[nodiscard]] constexpr std::int64_t group_count() const { return groups ? b.batch : 0; }
  [[nodiscard]] constexpr bool is_grouped() const { return groups.has_value(); }
  /// Are the rows of A read by index?
  [[nodiscard]] constexpr bool is_by_index() const { return groups && groups->rows_divisor != 0; }
  [[nodiscard]] constexpr bool is_gated() const { return epilogue.gated; }
  [[nodiscard]] constexpr bool is_quantised() const { return epilogue.quantise != QuantiseD::none; }
  /// Is scale_d, where there is one, multiplied to D's values? Else codes and scales are by it.
  [[nodiscard]] constexpr bool scales_values() const {
    return epilogue.quantise != QuantiseD::nvf4_1x16;
  }
  [[nodiscard]] constexpr bool has_bias() const { return epilogue.bias != Bias::none; }
  /// Are A and B read?
  [[nodiscard]] constexpr bool reads_ab() const { return alpha != 0.0F && a.columns != 0; }
  /// What the sums are multiplied by. As BLAS has it, no sum is 0 times alpha: where A and B are
  /// not read the factor is 0, also of an alpha that is no finite number.
  [[nodiscard]] constexpr float sum_factor() const { return reads_ab() ? alpha : 0.0F; }
  /// Is there a C?
  [[nodiscard]] constexpr bool has_c() const {
    return is_given(c) || c.rows != 0 || c.columns != 0;
  }
  /// Is it read?
  [[nodiscard]] constexpr bool reads_c() const { return beta != 0.0F && has_c(); }
  /// Is anything multiplied?
  [[nodiscard]] constexpr bool multiplies() const { return reads_ab() && m() > 0 && n() > 0; }

  friend constexpr bool operator==(const Product&, const Product&) = default;
};

/// Is there such a matrix? One that is left out has no address, and where addresses are not known
/// no extents.
constexpr bool is_given(const MatrixView& v) {
  return v.data != nullptr;
}
constexpr bool is_given(const PlannedMatrix& v) {
  return v.rows != 0 || v.columns != 0;
}

/// The tensors and scalars of a product.
using GemmOperands = Product<MatrixView>;

/// What a plan is made for: the same without addresses. For alpha and beta it matters whether they
/// are 0, and not what the numbers of a gate are; for scales and the bias their types, and of
/// scale_d whether there is one. `normalised` (rules.h) makes all that does not matter the same.
using GemmProblem = Product<PlannedMatrix>;

/// Calls visit(name, field...) for every field, in their order, of one product or of several side
/// by side: what products are hashed, written down and made of each other by. With those below the
/// one list of them (lint).
template <class Visit, class... Products>
constexpr void for_each_field_of(const Visit& visit, Products&... p) {
  visit("a", p.a...);
  visit("b", p.b...);
  visit("c", p.c...);
  visit("d", p.d...);
  visit("alpha", p.alpha...);
  visit("beta", p.beta...);
  visit("scaling", p.scaling...);
  visit("accumulation", p.accumulation...);
  visit("scale_a", p.scale_a...);
  visit("scale_b", p.scale_b...);
  visit("factor_a", p.factor_a...);
  visit("factor_b", p.factor_b...);
  visit("scale_d", p.scale_d...);
  visit("d_scales", p.d_scales...);
  visit("activation", p.epilogue.activation...);
  visit("gated", p.epilogue.gated...);
  visit("bias_along", p.epilogue.bias...);
  visit("interleaved", p.epilogue.interleaved...);
  visit("quantise", p.epilogue.quantise...);
  visit("gate", p.epilogue.gate...);
  visit("bias", p.bias...);
  visit("groups", p.groups...);
  visit("packed", p.packed...);
}
template <class Matrix, class Visit>
constexpr void for_each_field(const Product<Matrix>& p, const Visit& visit) {
  for_each_field_of(visit, p);
}
/// The same for their tensors.
template <class Visit, class... Products>
constexpr void for_each_tensor_of(const Visit& visit, Products&... p) {
  for_each_field_of(
      [&](const char* name, auto&... fields) {
        if constexpr ((std::is_convertible_v<decltype(fields), const MatrixShape&> && ...)) {
          visit(name, fields...);
        }
      },
      p...);
}
/// The same for those beside A, B, C and D, whose names have one letter.
template <class Visit, class... Products>
constexpr void for_each_side_of(const Visit& visit, Products&... p) {
  for_each_tensor_of(
      [&](const char* name, auto&... tensors) {
        if (name[1] != '\0') visit(name, tensors...);
      },
      p...);
}
template <class Visit>
constexpr void for_each_field(const PlannedMatrix& v, const Visit& visit) {
  visit("type", v.dtype);
  visit("rows", v.rows);
  visit("columns", v.columns);
  visit("row_stride", v.row_stride);
  visit("column_stride", v.column_stride);
  visit("batch", v.batch);
  visit("batch_stride", v.batch_stride);
  visit("alignment", v.alignment);
}
template <class Visit>
constexpr void for_each_field(const Groups& g, const Visit& visit) {
  visit("offsets", g.type);
  visit("expected_tokens", g.expected_tokens);
  visit("expected_lengths", g.expected_lengths);
  visit("expected_zipf", g.expected_zipf);
  visit("rows_divisor", g.rows_divisor);
}
template <class Visit>
constexpr void for_each_field(const GateNumbers& g, const Visit& visit) {
  visit("alpha", g.alpha);
  visit("beta", g.beta);
  visit("limit", g.limit);
}
template <class Visit>
constexpr void for_each_field(const PackedWeights& w, const Visit& visit) {
  const auto& [encoding, group, scale, zero_points, code, tokens, exponents] = w.format;
  visit("encoding", encoding);
  visit("group", group);
  visit("scale", scale);
  visit("zero_points", zero_points);
  visit("code", code);
  visit("tokens", tokens);
  visit("exponents", exponents);
  visit("sums", w.sums);
}

/// The product with make(v) in place of each of its matrices v.
template <class Matrix, class Make>
constexpr auto with_matrices(const Product<Matrix>& p, const Make& make) {
  Product<decltype(make(p.a))> made;
  for_each_field_of(
      [&](const char*, auto& to, const auto& from) {
        if constexpr (std::is_same_v<decltype(from), const Matrix&>) {
          to = make(from);
        } else {
          to = from;
        }
      },
      made, p);
  return made;
}

/// The activation of an epilogue, with its gate's numbers.
constexpr ActivationForm form_of(const Epilogue& e) {
  return form_of(e.activation, e.gate);
}

/// Columns of D: n, or half of it when the epilogue is gated.
template <class Matrix>
constexpr std::int64_t result_columns(const Product<Matrix>& p) {
  return p.is_gated() ? p.n() / 2 : p.n();
}

/// What C is multiplied by; 0 where there is none.
inline float beta_of(const GemmOperands& o) {
  return o.has_c() ? o.beta : 0.0F;
}

/// A product without its addresses, as it is: for plans before there is memory. Where an address is
/// null, it counts as one that everything divides.
GemmProblem problem_of(const GemmOperands& operands);

/// Weights as they lie in memory: a row of bytes where they are packed; and B.
MatrixView stored_weights(const MatrixView& weights, const std::optional<PackedWeights>& form);
MatrixView stored_b(const GemmOperands& operands);

}  // namespace warpwright
