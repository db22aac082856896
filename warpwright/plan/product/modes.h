// The modes of a product, each with its words and numbers: how its operands are scaled, and what is
// applied to its sums. The one list of them. The command line, C, Python, the rules, the kernels'
// parameters and the reference follow from it; C's header and Python's stubs, which name them in
// languages of their own, are held to it by c.cpp and tests/c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "warpwright/facts/micro_format.h"
#include "warpwright/numeric/types.h"

namespace warpwright {

/// How the operands of a product are scaled. Scales are float32 (but of `block_scaled`) in the
/// operands' memory.
enum class Scaling : std::uint8_t {
  none,
  tensor,      ///< one factor for A (1 x 1) and one for B (1 x 1)
  row_column,  ///< a factor for each row of A (M x 1) and for each row of B (N x 1)
  /// A factor for every 1 x 128 of A (M x ceil(K/128)) and every 128 x 128 of B
  /// (ceil(N/128) x ceil(K/128)), as DeepSeek-style checkpoints have them; any strides, no padding
  /// (of A, row_stride 1 and a column_stride of M rounded up to 4 is the fastest). Or of 64, or of
  /// 32, in place of 128: the shape of B's says it (scale_block_of)
  blockwise,
  /// Only grouped products: one factor for A, or one for each group (G x 1), and one for each
  /// group of B (G x 1)
  group,
  /// A scale for every few elements of a row, along K, which the tensor core multiplies: a ue8m0
  /// each 32 of e4m3, e5m2, e2m3, e3m2 or e2m1 (mxf8, mxf6, mxf4), or a ue4m3 each 16 of e2m1
  /// (nvf4). A and B have a format each (facts/micro_format.h): any two with ue8m0, or both nvf4.
  /// They lie as cuBLASLt and PyTorch have them, in tiles of 128 rows x 4 (facts/block_scales.h):
  /// as a packed matrix of whole tiles, M (or N) rounded up to 128 rows by the blocks of K rounded
  /// up to 4. Those of A in a product in groups begin at a multiple of 128 rows for each group
  /// (block_scales::grouped_rows). Those of a gated product's B are those of gates, then those of
  /// what these are for, each rounded up to 128 rows. Behind K they are anything but NaN.
  /// An A of e4m3 may have a float32 for each row (M x 1) instead, beside a B with ue8m0; not in
  /// groups.
  block_scaled,
};

/// All of them, in the order in which people are told them.
inline constexpr Scaling all_scalings[] = {Scaling::none,      Scaling::tensor,
                                           Scaling::group,     Scaling::row_column,
                                           Scaling::blockwise, Scaling::block_scaled};

/// K that one block scale covers, rows of B that it covers, and K between two promotions.
inline constexpr std::int64_t scale_block = 128;
/// And the least block that there is: each has half of the one before.
inline constexpr std::int64_t least_scale_block = 32;

/// Rows of an operand, and elements along its K, that one scale serves; 0 for all of them.
struct ScaleReach {
  std::int64_t rows = 0;
  std::int64_t depth = 0;

  /// Scales that serve `extent` rows, or elements along K.
  static constexpr std::int64_t count(std::int64_t extent, std::int64_t each) {
    return each == 0 ? 1 : (extent + each - 1) / each;
  }
};

/// The block of so many scales (rows and columns) for B of so many rows and K: the largest that
/// they are the scales of, or nearest to. Where that is open, all mean the same.
constexpr std::int64_t nearest_scale_block(std::int64_t rows, std::int64_t depth,
                                           std::int64_t scale_rows, std::int64_t scale_columns) {
  std::int64_t best = scale_block;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t block = scale_block; block >= least_scale_block && least > 0; block /= 2) {
    const std::int64_t more_rows = ScaleReach::count(rows, block) - scale_rows;
    const std::int64_t more_columns = ScaleReach::count(depth, block) - scale_columns;
    const std::int64_t off = (more_rows < 0 ? -more_rows : more_rows) +
                             (more_columns < 0 ? -more_columns : more_columns);
    if (off >= least) continue;
    least = off;
    best = block;
  }
  return best;
}

template <class Matrix>
constexpr std::int64_t nearest_scale_block(const Matrix& b, const Matrix& scales) {
  return nearest_scale_block(b.rows, b.columns, scales.rows, scales.columns);
}

/// For the scales of A, or of B; for `group` those of one group. `scale` is the type of scales that
/// the tensor core multiplies (problem.h knows it), for others anything; `block` is of blockwise.
constexpr ScaleReach scale_reach(Scaling scaling, bool of_a, DType scale,
                                 std::int64_t block = scale_block) {
  switch (scaling) {
    case Scaling::row_column:
      return {1, 0};
    case Scaling::blockwise:
      return {of_a ? 1 : block, block};
    case Scaling::block_scaled:
      return {1, micro_block(scale)};
    case Scaling::none:
    case Scaling::tensor:
    case Scaling::group:
      break;
  }
  return {};
}

/// Is there one scale?
constexpr bool serves_all(const ScaleReach& reach) {
  return reach.rows == 0 && reach.depth == 0;
}

/// Does the tensor core multiply elements by the scales, rather than a kernel its sums?
constexpr bool scales_elements(Scaling scaling) {
  return scaling == Scaling::block_scaled;
}

/// The word of messages and of the command line, and the name in C++ and Python.
struct ScalingWords {
  const char* word;
  const char* identifier;
};

constexpr ScalingWords words_of(Scaling scaling) {
  constexpr ScalingWords words[] = {
      {"none", "none"},           {"tensor", "tensor"}, {"row-column", "row_column"},
      {"blockwise", "blockwise"}, {"group", "group"},   {"block_scaled", "block_scaled"}};
  return words[static_cast<std::size_t>(scaling)];
}
constexpr const char* name(Scaling scaling) {
  return words_of(scaling).word;
}

/// Where sums of products of 8-bit operands are kept.
enum class Accumulation : std::uint8_t {
  /// In the tensor core's accumulator, which on Hopper keeps 13 bits below its leading one.
  fast,
  promoted,  ///< added to float32 registers every 128 of K; block scaling always does
};

/// What is applied to alpha * A * B^T + beta * C + bias.
enum class Activation : std::uint8_t {
  none,
  relu,
  gelu,
  silu,
  quick_gelu,
  swiglu_oai,
  relu2,
  gelu_erf,
};

/// All of them, in the order in which people are told them: what is only a gate's comes last.
inline constexpr Activation all_activations[] = {
    Activation::none,       Activation::relu,  Activation::gelu,       Activation::silu,
    Activation::quick_gelu, Activation::relu2, Activation::swiglu_oai, Activation::gelu_erf};

/// Which products an activation is for.
enum class Gating : std::uint8_t {
  plain,   ///< those without a gate
  either,  ///< all of them
  gated,   ///< gated ones: it is a function of the gate and of what the gate is for
  /// The gate of a mixture whose rows a launch of their own gates: a branch that no product has.
  behind,
};

/// An activation as the kernels and the reference compute it. In a gated product it is that of the
/// gate, and D has activation(min(gate, limit)) * (clamp(up, -limit, limit) + offset).
struct ActivationForm {
  const char* word = "";
  const char* note = "";   ///< beside the word in help; "" for none
  bool cuts = false;       ///< max(x, 0), but NaN stays
  bool is_smooth = false;  ///< x / (1 + exp(-z)) with z = x * (slope + cubic * x^2)
  double slope = 0;
  double cubic = 0;
  Gating gating = Gating::plain;
  double limit = 0;  ///< 0 or infinity: none
  double offset = 0;
  bool squares = false;  ///< what is cut: max(x, 0)^2
  bool by_erf = false;   ///< x times the share of a normal distribution below x
};

constexpr ActivationForm form_of(Activation activation) {
  constexpr ActivationForm forms[] = {
      {"none"},
      {"relu", "", true},
      // 2 sqrt(2 / pi) (x + 0.044715 x^3), as cuBLASLt has it
      {"gelu", "tanh form", false, true, 1.5957691216057308, 1.5957691216057308 * 0.044715,
       Gating::either},
      {"silu", "", false, true, 1, 0, Gating::either},
      {"quick_gelu", "", false, true, 1.702},  // as CLIP has it
      // as gpt-oss has it
      {"swiglu_oai", "only gated", false, true, 1.702, 0, Gating::gated, 7, 1},
      {"relu2", "max(x, 0)^2", true, false, 0, 0, Gating::plain, 0, 0, true},  // as Nemotron has it
      {"gelu_erf", "by the error function", false, false, 1, 0, Gating::behind, 0, 0, false, true},
  };
  return forms[static_cast<std::size_t>(activation)];
}

constexpr const char* name(Activation activation) {
  return form_of(activation).word;
}

/// The numbers of a gate, which models differ in:
///   g / (1 + exp(-alpha g)) * (u + beta), with g = min(gate, limit), u = clamp(up, -limit, limit).
/// They are a launch's, like alpha and beta of a product: a plan serves any.
struct GateNumbers {
  float alpha = 1;
  float beta = 0;
  float limit = std::numeric_limits<float>::infinity();  ///< that is none

  friend constexpr bool operator==(const GateNumbers&, const GateNumbers&) = default;
};

/// Those that an activation has by itself.
constexpr GateNumbers gate_of(Activation activation) {
  const ActivationForm form = form_of(activation);
  GateNumbers numbers{static_cast<float>(form.slope), static_cast<float>(form.offset)};
  if (form.limit > 0) numbers.limit = static_cast<float>(form.limit);
  return numbers;
}

/// The activation with these numbers, where there are any.
constexpr ActivationForm form_of(Activation activation, const std::optional<GateNumbers>& gate) {
  ActivationForm form = form_of(activation);
  if (gate) {
    form.slope = static_cast<double>(gate->alpha);
    form.offset = static_cast<double>(gate->beta);
    form.limit = static_cast<double>(gate->limit);
  }
  return form;
}

/// Has only a launch between a mixture's products this gate?
constexpr bool gates_behind(Activation activation) {
  return form_of(activation).gating == Gating::behind;
}
/// Is it one of products; one of a gated product's; one of a product without a gate?
constexpr bool is_of_products(Activation activation) {
  return !gates_behind(activation);
}
constexpr bool gates_products(Activation activation) {
  const Gating gating = form_of(activation).gating;
  return gating == Gating::either || gating == Gating::gated;
}
constexpr bool stands_alone(Activation activation) {
  const Gating gating = form_of(activation).gating;
  return gating == Gating::plain || gating == Gating::either;
}
/// Is it one of a mixture's gate?
constexpr bool gates(Activation activation) {
  return gates_products(activation) || gates_behind(activation);
}

/// What a bias vector runs along.
enum class Bias : std::uint8_t {
  none,
  rows,     ///< one value for each row of D
  columns,  ///< one value for each column of D, as a linear layer has it
};

/// How D is made of its values, beside being rounded to its type.
enum class QuantiseD : std::uint8_t {
  none,
  /// D is e4m3 codes with a float32 scale for every 1 x 128 (M x ceil(columns / 128), the last
  /// block of a row may be short), found as device/quantise.h finds them: what a next product of
  /// Scaling::blockwise reads as its A.
  block_1x128,
  /// What a next product of Scaling::block_scaled reads as its A: mxf8, e4m3 codes with a ue8m0 for
  /// every 1 x 32, rounded up; nvf4, e2m1 codes with a ue4m3 for every 1 x 16, times scale_d, the
  /// scale of all of D (1 where it is left out); or mxf4, e2m1 codes with a ue8m0 as mxf8's
  /// (facts/micro_scale.h has the recipes). The scales lie as those of an operand, in tiles of 128
  /// rows x 4.
  mxf8_1x32,
  nvf4_1x16,
  mxf4_1x32,
};

/// All of them, in their order.
inline constexpr QuantiseD all_quantisations[] = {QuantiseD::none, QuantiseD::block_1x128,
                                                  QuantiseD::mxf8_1x32, QuantiseD::nvf4_1x16,
                                                  QuantiseD::mxf4_1x32};

/// What a D that is quantised consists of: codes, and scales each of so many columns.
struct QuantisedForm {
  const char* word = "";
  DType codes = DType::e4m3;
  DType scale = DType::f32;
  std::int64_t columns = scale_block;
};
constexpr QuantisedForm form_of(QuantiseD quantise) {
  constexpr QuantisedForm forms[] = {
      {"none"},
      {"1x128"},
      {"mxf8-1x32", DType::e4m3, DType::ue8m0, micro_block(DType::ue8m0)},
      {"nvf4-1x16", DType::e2m1, DType::ue4m3, micro_block(DType::ue4m3)},
      {"mxf4-1x32", DType::e2m1, DType::ue8m0, micro_block(DType::ue8m0)}};
  return forms[static_cast<std::size_t>(quantise)];
}

constexpr const char* name(QuantiseD quantise) {
  return form_of(quantise).word;
}

/// Are they codes of a block-scaled format, whose scales lie in tiles?
constexpr bool is_micro(QuantiseD quantise) {
  return is_micro_scale(form_of(quantise).scale);
}

/// The words of those of `all` that `keep`, modes or types, with `between` between two and
/// `before_last` before the last: "none, relu or gelu".
template <class Modes, class Keep>
std::string listed(const Modes& all, const Keep& keep, const char* between = ", ",
                   const char* before_last = " or ") {
  std::string text, last;
  for (const auto mode : all) {
    if (!keep(mode)) continue;
    if (!last.empty()) text += (text.empty() ? "" : between) + last;
    if constexpr (std::is_same_v<decltype(mode), const DType>) {
      last = numeric::word(mode);
    } else {
      last = name(mode);
    }
  }
  return text.empty() ? last : text + before_last + last;
}

/// Keeps all.
template <class Mode>
constexpr bool any(Mode /*mode*/) {
  return true;
}

}  // namespace warpwright
