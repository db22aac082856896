// A layer of experts as it is run: every token goes to the experts that a router named, each of
// them two products with a gate between, and a weighted sum over its experts comes back.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "warpwright/plan/product/problem.h"

namespace warpwright {

/// What becomes of the rows that experts make of a token's slots.
enum class Combine : std::uint8_t {
  sum,       ///< d is T x H: they are added up, each times its router weight
  weighted,  ///< d is (T top_k) x H: the row of each slot times its weight, in the order of tokens
  none,      ///< the same without weights
};
inline constexpr Combine all_combines[] = {Combine::sum, Combine::weighted, Combine::none};

constexpr const char* name(Combine combine) {
  constexpr const char* words[] = {"sum", "weighted", "none"};
  return words[static_cast<std::size_t>(combine)];
}

/// A mixture of experts over T tokens of H elements, with E experts here of `experts_total`:
///   d[t] = sum over j of topk_weights[t, j] * down(e, act(gate(e, x[t])) * up(e, x[t])),
/// e = topk_ids[t, j] - first_expert. A slot (token * top_k + j) whose id is -1, or of an expert of
/// another rank, is left out; one with any other id out of range is too, and sets the status word.
/// A token without a slot has a row of zeros. Sums over j are made in float32 in the order of
/// experts, then slots, of rows that were rounded to x's type (bf16 where x is e4m3).
///
/// Without topk_ids and topk_weights there is no router: d = down(act(gate(x)) * up(x)) by the only
/// expert, the MLP of a dense model. What is said of routers is left out then.
///
/// Without a gate w13 is E x I x H, and act(up(e, x[t])) goes to w2. With `combine` other than sum
/// the rows of slots are the result; that of a slot which is left out is zeros.
///
/// Weights are of x's type; or e4m3 with `scaling` row_column (a scale for each row of weights; x
/// is quantised with one for each token) or blockwise (128 x 128 of weights, 1 x 128 of x, or 64 or
/// 32 for 128, as the scales' shapes say); or s4
/// or e2m1 in their packed form, as B of a product is (`packed13` and `packed2` say which). Those
/// that are packed for e4m3 have row_column (where scale_w13 and scale_w2 may be left out) or
/// blockwise (where they are); those for tokens of x's type none, or row_column, only of weights.
/// Or they are of a format whose scales the tensor core multiplies (mxf8 to nvf4), with
/// block_scaled: scale_w13 and scale_w2 lie in tiles then, those of w13 as a gated product's are
/// (Scaling::block_scaled), and x becomes codes with such scales on its way.
///
/// Matrix is MatrixView (MixtureOperands) or PlannedMatrix (MixtureProblem).
template <class Matrix>
struct Mixture {
  /// T x H of bf16 or f16; or of e4m3, beside weights for tokens of e4m3. Rows may lie apart.
  Matrix x = {};
  /// T x top_k, of `id_type` (its dtype is s32); rows may lie apart. Left out: no router.
  Matrix topk_ids = {};
  /// T x top_k of f32, bf16 or f16; rows may lie apart. May be left out where nothing is multiplied
  /// by them (`combine` none).
  Matrix topk_weights = {};
  Matrix w13 = {};  ///< E matrices of 2I x H, gate above up; without a gate of I x H
  Matrix w2 = {};   ///< E matrices of H x I
  /// T x H of x's type (bf16 where x is e4m3) or f32, with `combine` (T top_k) x H; may be x.
  Matrix d = {};
  /// For an x of e4m3, f32: T x 1 with row_column (1 x 1: one for all tokens), T x ceil(H / 128)
  /// with blockwise; any strides.
  Matrix scale_x = {};
  /// T x H of f32, bf16 or f16, or left out: what a shared expert made of the tokens, added to the
  /// sum as it is. Rows may lie apart.
  Matrix shared_output = {};
  Matrix scale_w13 = {};  ///< f32, as `scaling` says
  Matrix scale_w2 = {};
  /// For block_scaled weights, f32, E x 1 or 1 x 1: what a whole expert is multiplied by beside its
  /// scales, as nvf4 checkpoints have it (a factor, no divisor). Left out: 1.
  Matrix factor_w13 = {};
  Matrix factor_w2 = {};
  /// The scales of the tensors that nvf4 tokens, and the rows between the products, become: f32,
  /// 1 x 1. Left out: 1.
  Matrix factor_x = {};
  Matrix factor_inner = {};
  Matrix bias13 = {};  ///< E vectors of 2I, or left out
  Matrix bias2 = {};   ///< E vectors of H, or left out
  /// The form of packed weights: then w13's data are the tiles of a packed tensor.
  std::optional<PackedWeights> packed13 = {};
  std::optional<PackedWeights> packed2 = {};  ///< of w2, which has it where w13 has
  OffsetType id_type = OffsetType::int32;
  /// For block_scaled weights the elements that tokens become: e4m3 (mxf8) or e2m1 (mxf4, nvf4).
  /// f32: e2m1 beside e2m1, else e4m3.
  DType tokens_as = DType::f32;
  Scaling scaling = Scaling::none;
  bool is_gated = true;                      ///< else there is no gate: w13 has only the ups
  Activation activation = Activation::silu;  ///< of the gate, or of the ups where there is none
  std::optional<GateNumbers> gate = {};      ///< left out: those of the activation
  /// Rows of gate and up alternate in w13 (and in bias13), else all of gate lie before all of up.
  bool interleaved = false;
  Combine combine = Combine::sum;
  /// The router weights are multiplied to x before the first product, in float32 and rounded to x's
  /// type, and not to what comes of it. For a top_k of 1.
  bool apply_router_weight_on_input = false;
  /// Multiplied to each router weight, in float32, before the sum. A launch's number: a plan serves
  /// any.
  float routed_scaling_factor = 1;
  std::int64_t first_expert = 0;
  std::int64_t experts_total = 0;  ///< 0: those that are here
  /// Hints for the choice of kernels: how lengths are spread (see Groups).
  LengthSpread expected_lengths = LengthSpread::routed;
  float expected_zipf = 0;

  [[nodiscard]] constexpr std::int64_t tokens() const { return x.rows; }
  [[nodiscard]] constexpr std::int64_t hidden() const { return x.columns; }
  [[nodiscard]] constexpr std::int64_t inner() const { return w2.columns; }
  [[nodiscard]] constexpr std::int64_t experts() const { return w13.batch; }
  [[nodiscard]] constexpr std::int64_t total() const {
    return experts_total > 0 ? experts_total : experts();
  }
  /// Has it a router?
  [[nodiscard]] constexpr bool is_routed() const {
    return topk_ids.rows != 0 || topk_ids.columns != 0;
  }
  [[nodiscard]] constexpr std::int64_t top_k() const { return is_routed() ? topk_ids.columns : 1; }
  [[nodiscard]] constexpr std::int64_t slots() const { return tokens() * top_k(); }
  /// Rows of d.
  [[nodiscard]] constexpr std::int64_t results() const {
    return combine == Combine::sum ? tokens() : slots();
  }
  /// Matrices of I x H that one of w13 has.
  [[nodiscard]] constexpr int parts13() const { return is_gated ? 2 : 1; }
  /// Does x come as codes with scales?
  [[nodiscard]] constexpr bool has_codes() const { return x.dtype == DType::e4m3; }
  /// The type of rows that are no codes.
  [[nodiscard]] constexpr DType row_type() const { return has_codes() ? DType::bf16 : x.dtype; }
  /// Is anything other than x multiplied by w13?
  [[nodiscard]] constexpr bool makes_tokens() const {
    return (quantises() && !has_codes()) || apply_router_weight_on_input;
  }
  /// Are results multiplied by the router weights; and are these read at all?
  [[nodiscard]] constexpr bool weighs_results() const {
    return is_routed() && combine != Combine::none && !apply_router_weight_on_input;
  }
  [[nodiscard]] constexpr bool reads_weights() const {
    return weighs_results() || apply_router_weight_on_input;
  }
  [[nodiscard]] constexpr bool is_packed() const { return packed13.has_value(); }
  /// Does the tensor core multiply scales?
  [[nodiscard]] constexpr bool is_micro() const { return scales_elements(scaling); }
  /// Are tokens and the rows between the products quantised?
  [[nodiscard]] constexpr bool quantises() const {
    if (is_micro()) return true;
    return is_packed() ? packed13->format.tokens == DType::e4m3 : w13.dtype == DType::e4m3;
  }
  /// Rows of weights, and elements of rows, that a scale of blockwise serves. Where weights are no
  /// larger than a block, the others say which.
  [[nodiscard]] constexpr std::int64_t scale_block() const {
    if (scaling != Scaling::blockwise || is_packed()) return warpwright::scale_block;
    return std::min(nearest_scale_block(w13, scale_w13), nearest_scale_block(w2, scale_w2));
  }
  /// Are blocks smaller than those that gated products and products that quantise have?
  [[nodiscard]] constexpr bool has_small_blocks() const {
    return scale_block() != warpwright::scale_block;
  }
  /// What the products multiply weights by.
  [[nodiscard]] constexpr DType token_type() const {
    if (is_packed()) return packed13->format.tokens;
    if (is_micro() && tokens_as != DType::f32) return tokens_as;
    if (is_micro()) return w13.dtype == DType::e2m1 ? DType::e2m1 : DType::e4m3;
    return quantises() ? DType::e4m3 : x.dtype;
  }
  /// The type of the scales that the tensor core multiplies, of weights and tokens alike; f32: it
  /// multiplies none.
  [[nodiscard]] constexpr DType micro_scale() const {
    if (!is_micro()) return DType::f32;
    if (is_micro_scale(scale_w13.dtype)) return scale_w13.dtype;
    return token_type() == w13.dtype ? warpwright::micro_scale(w13.dtype) : DType::ue8m0;
  }

  friend constexpr bool operator==(const Mixture&, const Mixture&) = default;
};

using MixtureOperands = Mixture<MatrixView>;
using MixtureProblem = Mixture<PlannedMatrix>;

/// Calls visit(name, field...) for every field, in their order, of one mixture or of several side
/// by side (see for_each_field_of of products): the one list of them (lint).
template <class Visit, class... Mixtures>
constexpr void for_each_field_of_mixtures(const Visit& visit, Mixtures&... m) {
  visit("x", m.x...);
  visit("topk_ids", m.topk_ids...);
  visit("topk_weights", m.topk_weights...);
  visit("w13", m.w13...);
  visit("w2", m.w2...);
  visit("d", m.d...);
  visit("scale_x", m.scale_x...);
  visit("shared_output", m.shared_output...);
  visit("scale_w13", m.scale_w13...);
  visit("scale_w2", m.scale_w2...);
  visit("factor_w13", m.factor_w13...);
  visit("factor_w2", m.factor_w2...);
  visit("factor_x", m.factor_x...);
  visit("factor_inner", m.factor_inner...);
  visit("bias13", m.bias13...);
  visit("bias2", m.bias2...);
  visit("packed13", m.packed13...);
  visit("packed2", m.packed2...);
  visit("id_type", m.id_type...);
  visit("tokens_as", m.tokens_as...);
  visit("scaling", m.scaling...);
  visit("is_gated", m.is_gated...);
  visit("activation", m.activation...);
  visit("gate", m.gate...);
  visit("interleaved", m.interleaved...);
  visit("combine", m.combine...);
  visit("apply_router_weight_on_input", m.apply_router_weight_on_input...);
  visit("routed_scaling_factor", m.routed_scaling_factor...);
  visit("first_expert", m.first_expert...);
  visit("experts_total", m.experts_total...);
  visit("expected_lengths", m.expected_lengths...);
  visit("expected_zipf", m.expected_zipf...);
}
template <class Matrix, class Visit>
constexpr void for_each_field(const Mixture<Matrix>& m, const Visit& visit) {
  for_each_field_of_mixtures(visit, m);
}

/// The mixture with make(v) in place of each of its matrices v.
template <class Matrix, class Make>
constexpr auto with_matrices(const Mixture<Matrix>& m, const Make& make) {
  Mixture<decltype(make(m.x))> made;
  for_each_field_of_mixtures(
      [&](const char*, auto& to, const auto& from) {
        if constexpr (std::is_same_v<decltype(from), const Matrix&>) {
          to = make(from);
        } else {
          to = from;
        }
      },
      made, m);
  return made;
}

/// What the steps of a mixture read and write: its own tensors, then what lies between steps in the
/// workspace, in this order.
enum class MixturePart : std::uint8_t {
  x,
  topk_ids,
  topk_weights,   ///< where results are multiplied by them
  input_weights,  ///< the same where tokens are
  factor_x,
  factor_inner,
  scale_x,
  shared_output,
  d,
  flags,         ///< what a layer in one launch counts in: all 0 between launches
  status,        ///< a word: bit 0 says that an id was out of range
  offsets,       ///< E + 1 of int32: where the rows of an expert begin
  slots,         ///< int32: row -> slot
  rows,          ///< int32: slot -> row, -1 where it is left out
  tokens,        ///< x as the first product reads it: slots x H, by number tokens x H
  token_scales,  ///< of quantised ones
  gate_up,       ///< slots x 2I: what the first product makes where a launch of its own gates
  inner,         ///< slots x I: what the gate makes
  codes,         ///< the same quantised, where tokens are
  code_scales,
  results,   ///< slots x H: what the second product writes
  partials,  ///< the same of each part of K, f32, in one launch
};
inline constexpr int mixture_parts = static_cast<int>(MixturePart::partials) + 1;
/// From here on they lie in the workspace, those that a plan has in this order.
inline constexpr int first_own_part = static_cast<int>(MixturePart::flags);

/// Something of each part.
template <class T>
struct OfParts {
  std::array<T, mixture_parts> all = {};

  constexpr T& operator[](MixturePart part) { return all[static_cast<std::size_t>(part)]; }
  constexpr const T& operator[](MixturePart part) const {
    return all[static_cast<std::size_t>(part)];
  }
};
template <class Matrix>
using MixtureParts = OfParts<Matrix>;

/// How the steps of a mixture share out what is to be done (plan/moe/steps.h).
struct MixtureWay {
  bool by_index = false;      ///< the first product reads tokens by the numbers of slots
  bool fused = false;         ///< it quantises its rows itself
  bool gates_behind = false;  ///< it leaves gates and ups as they are, for a launch behind it
  bool early = false;         ///< products ask for weights before the grid before has ended
  bool sorts_rows = false;    ///< one launch sorts and gathers
  int sort_parts = 0;         ///< that three launches sort; 0: as many as are needed
  /// One kernel does all of it, this one of kernel::hopper::layer_rows; -1: steps do.
  int layer = -1;
  int k_parts = 1;  ///< along K, that its tiles of the second product are cut into

  [[nodiscard]] constexpr bool one_launch() const { return layer >= 0; }

  friend bool operator==(const MixtureWay&, const MixtureWay&) = default;
};

/// The parts as they lie, operands included. Addresses in the workspace are multiples of 256.
/// Tokens that no step writes are x itself, with its scales; results that no step adds up are d.
MixtureParts<PlannedMatrix> planned_parts(const MixtureProblem& problem, MixtureWay way);
/// The mixture's own tensors among them.
template <class Matrix>
void set_operands(const Mixture<Matrix>& m, MixtureParts<Matrix>& parts);

/// The product of tokens and w13, gated; and that of its rows and w2.
template <class Matrix>
Product<Matrix> first_product(const Mixture<Matrix>& m, const MixtureParts<Matrix>& parts,
                              MixtureWay way);
template <class Matrix>
Product<Matrix> second_product(const Mixture<Matrix>& m, const MixtureParts<Matrix>& parts,
                               MixtureWay way);

/// Why a mixture is none, or nothing: extents, types or strides that do not agree.
[[nodiscard]] std::optional<Refusal> mixture_fault(const MixtureProblem& problem);

/// One of the tensors of a mixture as it lies in memory: packed weights as a row of bytes.
[[nodiscard]] MatrixView stored(const MixtureOperands& operands, const MatrixView& tensor);

/// Do all tensors of a mixture have memory? Else it is one only to plan for.
[[nodiscard]] bool has_memory(const MixtureOperands& operands);

/// The problem that `operands` pose; refuses what no plan could serve. Without `known` addresses
/// are not read.
Result<MixtureProblem> describe(const MixtureOperands& operands, bool known = true);

}  // namespace warpwright
