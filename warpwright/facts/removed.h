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
  std::string_view nearest;  ///< what serves; of kernels one of the tables
};

inline constexpr std::string_view one_map_serves =
    "products in groups have one tensor map of all tokens";

inline constexpr auto removed_kernels = std::to_array<Removed>({
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
