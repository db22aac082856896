// What the version before this one had. For one version whoever still asks for it is told what
// serves instead; docs/log/diet.md says why it left.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace warpwright::facts {

/// An argument of the command line, of Python or of C ("--" and "-" apart, one name), or a kernel.
struct Removed {
  std::string_view name;
  std::string_view why;
  std::string_view nearest;  ///< what serves; for kernels, one of the tables
};

inline constexpr auto removed_arguments = std::to_array<Removed>({
    {"sums_in_product", "a launch of its own adds up the slots of a token", "to leave it out"},
    {"gpcs", "plans begin each cluster with the tile of its index", "to leave it out"},
    {"first_tiles", "plans begin each cluster with the tile of its index", "to leave it out"},
});

inline constexpr std::string_view a_lesson_has_it =
    "loads without a producer are `warpwright lesson 15` now";

inline constexpr std::string_view slots_are_added_apart =
    "a launch of its own adds up the slots of a token";

inline constexpr std::string_view one_map_serves =
    "products in groups have one tensor map of all tokens";

inline constexpr std::string_view the_other_tile_draws = "static persistent tiles were as fast";
inline constexpr std::string_view one_tile_of_these_sums = "one tile has these sums, as a study";
inline constexpr std::string_view such_sums_are_exact =
    "sums of int4 by e4m3 are exact, but for groups with a D of bf16";

inline constexpr auto removed_kernels = std::to_array<Removed>({
    {"grouped_bf16_bf16_128x16_b_sw_sum", slots_are_added_apart, "grouped_bf16_bf16_128x16_b_sw"},
    {"grouped_bf16_bf16_128x32_b_sw_sum", slots_are_added_apart, "grouped_bf16_bf16_128x32_b_sw"},
    {"grouped_bf16_bf16_128x64_b_sw_sum", slots_are_added_apart, "grouped_bf16_bf16_128x64_b_sw"},
    {"grouped_e4m3_bf16_128x16_b_sw_sum", slots_are_added_apart, "grouped_e4m3_bf16_128x16_b_sw"},
    {"grouped_e4m3_bf16_128x32_b_sw_sum", slots_are_added_apart, "grouped_e4m3_bf16_128x32_b_sw"},
    {"grouped_e4m3_bf16_128x64_b_sw_sum", slots_are_added_apart, "grouped_e4m3_bf16_128x64_b_sw"},
    {"grouped_e4m3_bf16_128x16_b_bs_sw_sum", slots_are_added_apart,
     "grouped_e4m3_bf16_128x16_b_bs_sw"},
    {"grouped_e4m3_bf16_128x32_b_bs_sw_sum", slots_are_added_apart,
     "grouped_e4m3_bf16_128x32_b_bs_sw"},
    {"grouped_e4m3_bf16_128x64_b_bs_sw_sum", slots_are_added_apart,
     "grouped_e4m3_bf16_128x64_b_bs_sw"},
    {"grouped_s4xe4m3_bf16_128x16_b_pr_sw_k2_sum", slots_are_added_apart,
     "grouped_s4xe4m3_bf16_128x16_b_pr_sw2_k2"},
    {"grouped_s4xe4m3_bf16_128x32_b_pr_sw_sum", slots_are_added_apart,
     "grouped_s4xe4m3_bf16_128x32_b_pr_sw2"},
    {"grouped_e2m1xe4m3_bf16_128x16_b_pr_sw_k2_sum", slots_are_added_apart,
     "grouped_e2m1xe4m3_bf16_128x16_b_pr_sw2_k2"},
    {"grouped_e2m1xbf16_bf16_128x16_b_sw_fold_sum", slots_are_added_apart,
     "grouped_e2m1xbf16_bf16_128x16_b_sw2_fold"},
    {"grouped_s4xbf16_bf16_128x16_b_pr_sw_sum", slots_are_added_apart,
     "grouped_s4xbf16_bf16_128x16_b_pr_sw2"},
    {"hopper_bf16_bf16_128x128_ms", a_lesson_has_it, "hopper_bf16_bf16_128x128_pp"},
    {"hopper_bf16_bf16_128x176_pp_sw_dyn", the_other_tile_draws, "hopper_bf16_bf16_128x128_pp_dyn"},
    {"hopper_s4xe4m3_bf16_128x256_sw", such_sums_are_exact, "hopper_s4xe4m3_bf16_128x128_pr_sw"},
    {"hopper_s4xe4m3_bf16_128x64_sw_ck", such_sums_are_exact,
     "hopper_s4xe4m3_bf16_128x64_pr_sw_ck_k2"},
    {"hopper_s4xe4m3_bf16_128x64_sw_ck_fold", such_sums_are_exact,
     "hopper_s4xe4m3_bf16_128x64_pr_sw_ck_k2"},
    {"hopper_s4xe4m3_bf16_128x64_sw_ck_lut", such_sums_are_exact,
     "hopper_s4xe4m3_bf16_128x64_pr_sw_ck_k2"},
    {"grouped_s4xe4m3_bf16_192x176_b_sw", one_tile_of_these_sums,
     "grouped_s4xe4m3_bf16_128x64_b_sw2"},
    {"hopper_s4xe4m3_f16_128x256_sw", such_sums_are_exact, "hopper_s4xe4m3_f16_128x64_pr_sw_ck"},
    {"hopper_s4xe4m3_bf16_128x128_sw", such_sums_are_exact, "hopper_s4xe4m3_bf16_128x128_pr_sw"},
    {"hopper_s4xe4m3_bf16_192x176_sw", such_sums_are_exact, "hopper_s4xe4m3_bf16_128x128_pr_sw"},
    {"hopper_s4xe4m3_bf16_192x160_sw", such_sums_are_exact, "hopper_s4xe4m3_bf16_128x128_pr_sw"},
    {"hopper_s4xe4m3_bf16_128x256_sw_fold", such_sums_are_exact,
     "hopper_s4xe4m3_bf16_128x128_pr_sw"},
    {"grouped_s4xe4m3_bf16_128x256_b_sw_lut", one_tile_of_these_sums,
     "grouped_s4xe4m3_bf16_128x64_b_sw2_lut"},
    {"grouped_s4xe4m3_bf16_128x16_b_sw2", one_tile_of_these_sums,
     "grouped_s4xe4m3_bf16_128x64_b_sw2"},
    {"grouped_s4xe4m3_bf16_128x192_b_sw", one_tile_of_these_sums,
     "grouped_s4xe4m3_bf16_128x64_b_sw2"},
    {"grouped_s4xe4m3_bf16_128x240_b_sw", one_tile_of_these_sums,
     "grouped_s4xe4m3_bf16_128x64_b_sw2"},
    {"grouped_s4xe4m3_bf16_192x160_b_sw", one_tile_of_these_sums,
     "grouped_s4xe4m3_bf16_128x64_b_sw2"},
    {"grouped_s4xe4m3_bf16_128x128_b_sw", one_tile_of_these_sums,
     "grouped_s4xe4m3_bf16_128x64_b_sw2"},
    {"grouped_s4xe4m3_f16_128x192_b_sw", such_sums_are_exact, "grouped_s4xe4m3_f16_128x64_b_pr_sw"},
    {"grouped_s4xe4m3_bf16_128x16_b_sw2_fold", one_tile_of_these_sums,
     "grouped_s4xe4m3_bf16_128x64_b_sw2_fold"},
    {"grouped_s4xe4m3_bf16_128x256_b_sw_fold", one_tile_of_these_sums,
     "grouped_s4xe4m3_bf16_128x64_b_sw2_fold"},
    {"grouped_s4xe4m3_bf16_128x16_b_sw2_lut", one_tile_of_these_sums,
     "grouped_s4xe4m3_bf16_128x64_b_sw2_lut"},
    {"grouped_e4m3_bf16_128x16_b_sw_gm", one_map_serves, "grouped_e4m3_bf16_128x16_b_sw"},
    {"grouped_e4m3_bf16_128x64_b_sw_gm", one_map_serves, "grouped_e4m3_bf16_128x64_b_sw"},
    {"grouped_e4m3_bf16_128x128_v_pp_gm", one_map_serves, "grouped_e4m3_bf16_128x128_v_pp"},
    {"grouped_e4m3_bf16_128x256_v_gm", one_map_serves, "grouped_e4m3_bf16_128x256_v"},
    {"grouped_e4m3_bf16_128x128_v_bs_gm", one_map_serves, "grouped_e4m3_bf16_128x128_v_bs"},
});

/// The one of that name, or null.
template <std::size_t count>
constexpr const Removed* find_removed(const std::array<Removed, count>& all,
                                      std::string_view name) {
  const auto* const found = std::ranges::find(all, name, &Removed::name);
  return found == all.end() ? nullptr : found;
}

}  // namespace warpwright::facts
