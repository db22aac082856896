// The members of a product and of a mixture in C, each once, with what the library has them as: the
// reader of the ABI and its fuzzer go through these lists. Internal to them.
#pragma once

#include "warpwright/c.h"
#include "warpwright/plan/moe/moe_plan.h"

namespace warpwright::c {

/// A matrix of a caller's struct, by the name that refusals give it.
template <class Given, class Read>
struct MatrixMember {
  const char* name;
  ww_matrix Given::*given;
  MatrixView Read::*read;
  bool is_needed = false;
};

/// A number of a caller's struct from 0 to `most`.
template <class Given>
struct WordMember {
  const char* name;
  std::int32_t Given::*given;
  std::int64_t most;
};

inline constexpr MatrixMember<ww_gemm, GemmOperands> gemm_matrices[] = {
    {"A", &ww_gemm::a, &GemmOperands::a, true},
    {"B", &ww_gemm::b, &GemmOperands::b, true},
    {"C", &ww_gemm::c, &GemmOperands::c},
    {"D", &ww_gemm::d, &GemmOperands::d, true},
    {"scale_a", &ww_gemm::scale_a, &GemmOperands::scale_a},
    {"scale_b", &ww_gemm::scale_b, &GemmOperands::scale_b},
    {"scale_d", &ww_gemm::scale_d, &GemmOperands::scale_d},
    {"the bias", &ww_gemm::bias, &GemmOperands::bias},
    {"d_scales", &ww_gemm::d_scales, &GemmOperands::d_scales},
};
inline constexpr WordMember<ww_gemm> gemm_words[] = {
    {"scaling", &ww_gemm::scaling, WW_SCALING_LAST},
    {"accumulation", &ww_gemm::accumulation, WW_ACCUMULATION_PROMOTED},
    {"activation", &ww_gemm::activation, WW_ACTIVATION_LAST},
    {"bias_along", &ww_gemm::bias_along, WW_BIAS_COLUMNS},
    {"gated", &ww_gemm::gated, WW_GATED_LAST},
    {"grouped", &ww_gemm::grouped, 1},
    {"offset_type", &ww_gemm::offset_type, WW_INT64},
    {"expected_lengths", &ww_gemm::expected_lengths, WW_LENGTHS_EQUAL},
    {"quantise_d", &ww_gemm::quantise_d, WW_QUANTISE_LAST},
    {"no_factors", &ww_gemm::no_factors, 1},
    {"ww_gemm.reserved", &ww_gemm::reserved, 0},
};

inline constexpr MatrixMember<ww_moe, MixtureOperands> moe_matrices[] = {
    {"x", &ww_moe::x, &MixtureOperands::x, true},
    {"topk_ids", &ww_moe::topk_ids, &MixtureOperands::topk_ids, true},
    {"topk_weights", &ww_moe::topk_weights, &MixtureOperands::topk_weights, true},
    {"w13", &ww_moe::w13, &MixtureOperands::w13, true},
    {"w2", &ww_moe::w2, &MixtureOperands::w2, true},
    {"d", &ww_moe::d, &MixtureOperands::d, true},
    {"scale_w13", &ww_moe::scale_w13, &MixtureOperands::scale_w13},
    {"scale_w2", &ww_moe::scale_w2, &MixtureOperands::scale_w2},
    {"factor_w13", &ww_moe::factor_w13, &MixtureOperands::factor_w13},
    {"factor_w2", &ww_moe::factor_w2, &MixtureOperands::factor_w2},
    {"factor_x", &ww_moe::factor_x, &MixtureOperands::factor_x},
    {"factor_inner", &ww_moe::factor_inner, &MixtureOperands::factor_inner},
    {"bias13", &ww_moe::bias13, &MixtureOperands::bias13},
    {"bias2", &ww_moe::bias2, &MixtureOperands::bias2},
    {"scale_x", &ww_moe::scale_x, &MixtureOperands::scale_x},
    {"shared_output", &ww_moe::shared_output, &MixtureOperands::shared_output},
};
inline constexpr WordMember<ww_moe> moe_words[] = {
    {"id_type", &ww_moe::id_type, WW_INT64},
    {"scaling", &ww_moe::scaling, WW_SCALING_LAST},
    {"activation", &ww_moe::activation, WW_ACTIVATION_LAST},
    {"gate_up", &ww_moe::gate_up, WW_GATED_LAST},
    {"expected_lengths", &ww_moe::expected_lengths, WW_LENGTHS_EQUAL},
    {"tokens_as", &ww_moe::tokens_as, WW_TOKENS_LAST},
    {"ww_moe.reserved", &ww_moe::reserved, 0},
    {"combine", &ww_moe::combine, WW_COMBINE_NONE},
    {"apply_router_weight_on_input", &ww_moe::apply_router_weight_on_input, 1},
    {"ww_moe.reserved2", &ww_moe::reserved2, 0},
};

/// What the plan of a mixture may be left (0), or is told (WW_YES, WW_NO).
struct MoeChoiceMember {
  const char* name;
  std::int32_t ww_moe_choices::*given;
  std::optional<bool> MixtureChoices::*read;
};
inline constexpr MoeChoiceMember moe_choices[] = {
    {"by_index", &ww_moe_choices::by_index, &MixtureChoices::by_index},
    {"quantises_in_epilogue", &ww_moe_choices::quantises_in_epilogue,
     &MixtureChoices::quantises_in_epilogue},
    {"gates_in_epilogue", &ww_moe_choices::gates_in_epilogue, &MixtureChoices::gates_in_epilogue},
    {"early_weights", &ww_moe_choices::early_weights, &MixtureChoices::early_weights},
    {"sort_with_gather", &ww_moe_choices::sort_with_gather, &MixtureChoices::sort_with_gather},
    {"one_launch", &ww_moe_choices::one_launch, &MixtureChoices::one_launch},
};

}  // namespace warpwright::c
