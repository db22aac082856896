// What a Hopper kernel says of itself.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "warpwright/facts/kernel.h"
#include "warpwright/kernel/hopper/limits.h"
#include "warpwright/kernel/widths_words.h"

namespace warpwright::kernel {

/// How it scales and adds up, in words; none where there is but one way.
inline std::string sums_words(const GemmConfig& c) {
  if (packed_a(c)) {
    const std::string words =
        has_float_codes(c)
            ? std::string(sums_in_registers(c) ? "promoted" : "fast") + " sums of folded e2m1"
            : std::string(name(group_sums(c))) + " sums";
    return is_blockwise(c) ? words + ", block scales of A" : words;
  }
  if (is_blockwise(c)) return "block scales";
  return sums_of(c) == Sums::promoted ? "promoted" : "";
}

/// What the kernel has beside the plain product.
inline std::vector<std::string> features(const GemmConfig& c) {
  std::vector<std::string> words;
  const auto add = [&words](bool is_so, const std::string& word) {
    if (is_so && !word.empty()) words.push_back(word);
  };
  constexpr const char* searches[] = {"", "linear_scan", "binary_search", "warp_scan"};
  constexpr const char* schedules[] = {"cooperative", "pingpong"};
  const bool a_is_mn = (is_swapped(c) ? operand_b(c) : operand_a(c)).major == atom::Major::mn;
  const bool b_is_mn = (is_swapped(c) ? operand_a(c) : operand_b(c)).major == atom::Major::mn;
  add(is_grouped(c), std::string("grouped, ") + searches[static_cast<int>(grouping(c))]);
  add(true, schedules[static_cast<int>(schedule_of(c))]);
  add(true, sums_words(c));
  const std::string block = std::to_string(scale_block(c));
  add(scale_parts(c) > 1, "a scale each " + block + " x " + block);
  add(c.side_by_side, "consumers side by side");
  add(is_swapped(c), "swap_ab");
  add(has_widths(c), "groups cut evenly, in widths " + widths_words(tile_widths(c)));
  add(splits_k(c), "stream-K");
  add(slices_k(c), "split-K in slices");
  add(shares_cluster_k(c), "split-K in a cluster");
  add(has_zero_points(c), "zero points");
  add(c.gated, "gated");
  add(c.quantises, "quantises D");
  add(gathers(c), "tokens by index");
  add(is_dynamic_persistent(c), "dynamic");
  // In BLAS's letters, as --layout has them.
  add(a_is_mn || b_is_mn, std::string("layout ") + (a_is_mn ? "T" : "N") + (b_is_mn ? "N" : "T"));
  return words;
}

/// The roles of the warpgroup that loads.
inline void add_producer_roles(KernelFacts& f, const GemmConfig& c) {
  const int producer = producer_registers(c);
  const bool scales = is_blockwise(c);
  f.roles.push_back({role_of_warp(c, 0), 0, 0, producer,
                     gathers(c) ? "one lane issues the TMA loads of the weights"
                                : "one lane issues the TMA loads of A and B"});
  if (scales) {
    f.roles.push_back(
        {role_of_warp(c, 1), 1, 1, producer, "fetches block scales that are not copied"});
  }
  const int first_idle = scales ? 2 : 1;
  const int last_idle = gathers(c)                 ? first_row_warp - 1
                        : is_dynamic_persistent(c) ? drawing_warp - 1
                                                   : 3;
  if (first_idle <= last_idle) {
    f.roles.push_back({"idle", first_idle, last_idle, producer,
                       moves_registers(c) ? "gave their registers away" : "nothing"});
  }
  if (gathers(c)) {
    f.roles.push_back({role_of_warp(c, first_row_warp), first_row_warp,
                       first_row_warp + row_warps - 1, producer,
                       "copy the rows of the tile's tokens, 16 bytes a lane"});
  }
  if (is_dynamic_persistent(c)) {
    f.roles.push_back({role_of_warp(c, drawing_warp), drawing_warp, drawing_warp, producer,
                       "one lane draws the next tile for the cluster"});
  }
}

/// The facts of the kernel `name` of this configuration.
inline KernelFacts facts(const char* name, const GemmConfig& c) {
  KernelFacts f;
  f.name = name;
  f.family = "hopper_gemm";
  f.architecture = 90;
  f.architectures = {90};
  f.a = {is_swapped(c) ? operand_b(c).type : stored_a(c)};
  f.b = {is_swapped(c) ? stored_a(c) : operand_b(c).type};
  f.result = c.result;
  f.features = features(c);
  f.clusters.clear();
  for (const atom::ClusterShape& cluster : supported_clusters) {
    if (supports(c, cluster)) f.clusters.push_back(cluster);
  }
  f.tile = {c.tile_m, c.tile_n, tile_k(c)};
  f.result_rows = is_swapped(c) ? result_columns(c) : result_rows(c);
  f.result_columns = is_swapped(c) ? result_rows(c) : result_columns(c);
  f.swap_ab = is_swapped(c);
  f.grouped = is_grouped(c);
  f.search = grouping(c);
  f.gathers = gathers(c);
  f.asks_early = asks_early(c);
  f.schedule = schedule_of(c);
  f.shares_cluster_k = shares_cluster_k(c);
  f.stages = c.stages;
  f.threads = threads(c);
  f.registers = launch_registers(c);
  f.ctas_per_sm = c.ctas_per_sm;
  f.tiles =
      is_dynamic_persistent(c) ? TileSource::dynamic_persistent : TileSource::static_persistent;
  const SmemMap map = smem_map(c);
  f.shared_bytes = map.bytes;
  f.regions = {{"A stages", map.a, map.b},
               {"B stages", map.b, map.epilogue},
               {"epilogue buffers", map.epilogue, map.scales},
               {"block scales", map.scales, map.groups},
               {"table of groups", map.groups, map.tiles},
               {"ring of tiles", map.tiles, map.barriers},
               {"barriers", map.barriers, map.parts},
               {"parts of sums", map.parts, map.bytes}};
  add_producer_roles(f, c);
  for (int w = 0; w < c.consumer_warpgroups; ++w) {
    const int warp = loading_warps + 4 * w;
    f.roles.push_back(
        {role_of_warp(c, warp), warp, warp + 3, consumer_registers(c),
         "wgmma on " + std::to_string(warpgroup_rows(c)) + " rows from row " +
             std::to_string(atom_row(c, w, 0)) +
             (c.side_by_side ? " and columns from " + std::to_string(first_column(c, w)) : "") +
             ", then the epilogue"});
  }
  return f;
}

}  // namespace warpwright::kernel
