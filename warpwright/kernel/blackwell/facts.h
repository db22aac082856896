// What a Blackwell kernel says of itself.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "warpwright/facts/kernel.h"
#include "warpwright/kernel/blackwell/config.h"
#include "warpwright/kernel/widths_words.h"

namespace warpwright::kernel {

/// The operands that an MMA of the kind multiplies, of those that products have.
inline std::vector<DType> types_of(atom::UmmaKind kind) {
  if (kind == atom::UmmaKind::f16) return {DType::bf16, DType::f16};
  if (kind == atom::UmmaKind::tf32) return {DType::tf32};
  if (kind == atom::UmmaKind::f8f6f4) return {DType::e4m3, DType::e5m2};
  std::vector<DType> types;
  for (const MicroFormat& f : micro_formats) {
    if (f.scale == DType::ue8m0 && atom::multiplies(kind, f.element)) types.push_back(f.element);
  }
  return types;
}

/// The scales that it multiplies, and those of the codes that it makes.
inline std::vector<DType> scales_of(const BlackwellConfig& c) {
  if (takes_either_scale(c)) return {DType::ue4m3, DType::ue8m0};
  return is_scaled(c) ? std::vector{c.scale} : std::vector<DType>();
}
inline std::vector<DType> d_scales_of(const BlackwellConfig& c) {
  if (makes_either_scale(c)) return {DType::ue4m3, DType::ue8m0};
  return quantises(c) ? std::vector{c.d_scale} : std::vector<DType>();
}

/// What the configuration is beside its tile and types, in words.
inline std::vector<std::string> features(const BlackwellConfig& c) {
  std::vector<std::string> all;
  if (is_scaled(c)) {
    all.push_back((takes_either_scale(c) ? "ue4m3 or ue8m0" : std::string(numeric::name(c.scale))) +
                  " scales");
  }
  if (c.plain_tokens) all.emplace_back("plain tokens");
  if (c.long_k) all.emplace_back("MMAs of K 96");
  for (const DType scale : d_scales_of(c)) {
    all.push_back(std::string("quantised ") + micro_format(c.result, scale)->word);
  }
  if (c.pair) all.emplace_back("pairs of SMs");
  if (c.tiles == TileSource::one_tile) all.emplace_back("one tile a cluster");
  if (c.tiles == TileSource::clc) all.emplace_back("CLC");
  if (c.accumulators > 1) all.push_back(std::to_string(c.accumulators) + " accumulators");
  if (c.grouped) all.emplace_back("grouped, warp_scan");
  if (c.swap_ab) all.emplace_back("swap_ab");
  if (has_widths(c)) {
    all.push_back((cuts_evenly(c) ? "cut evenly, in widths " : "in widths ") +
                  widths_words(c.widths));
  }
  if (c.gated) all.emplace_back("gated");
  if (takes_index(c)) all.emplace_back("tokens by index or in order");
  if (c.blockwise) all.emplace_back("block scales");
  if (c.splits_k) all.emplace_back("stream-K");
  if (takes_any_major(c)) all.emplace_back("any layout");
  return all;
}

/// Who does what in it.
inline std::vector<KernelRole> roles_of(const BlackwellConfig& c) {
  const bool controlled = c.tiles == TileSource::clc;
  const int registers = launch_registers(c);
  std::vector<KernelRole> roles = {
      {"load", load_warp, load_warp, registers,
       is_scaled(c) ? "one lane issues the TMA loads of A and B, and of their scales"
                    : "one lane issues the TMA loads of A and B"},
      {"mma", mma_warp, mma_warp, registers,
       c.pair ? "one lane of the even CTA issues the MMAs of both; owns the tensor memory"
              : "one lane issues the MMAs; owns the tensor memory"}};
  if (controlled) {
    roles.push_back({"scheduler", scheduler_warp, scheduler_warp, registers,
                     "one lane asks CLC for the next tile"});
  }
  roles.push_back({"idle", controlled ? 3 : 2, 3, registers, "nothing"});
  roles.push_back({"epilogue", first_epilogue_warp, first_epilogue_warp + epilogue_warps - 1,
                   registers,
                   quantises(c)  ? "tensor memory -> registers -> codes and scales of D, a "
                                   "row a thread"
                   : c.blockwise ? "adds up k_tiles out of tensor memory, times their scales; "
                                   "registers -> shared memory -> D, 32 rows a warp"
                                 : "tensor memory -> registers -> shared memory -> D, 32 rows a "
                                   "warp"});
  return roles;
}

/// The facts of the kernel `name` of this configuration.
inline KernelFacts facts(const char* name, const BlackwellConfig& c) {
  const BlackwellSmemMap map = smem_map(c);
  KernelFacts f;
  f.name = name;
  f.family = "blackwell_gemm";
  f.architecture = 100;
  f.architectures = {100, 103};
  if (c.long_k) f.architectures = {103};
  f.a = f.b = types_of(c.kind);
  if (c.plain_tokens) f.a = {plain_tokens.element};
  f.result = c.result;
  f.micro_scales = scales_of(c);
  f.d_scales = d_scales_of(c);
  f.features = features(c);
  f.clusters.clear();
  for (const atom::ClusterShape& cluster : blackwell_clusters) {
    if (supports(c, cluster)) f.clusters.push_back(cluster);
  }
  f.pair = c.pair;
  f.accumulators = c.accumulators;
  f.tile = {c.tile_m, c.tile_n, tile_k(c)};
  f.result_rows = c.swap_ab ? result_columns(c) : result_rows(c);
  f.result_columns = c.swap_ab ? result_rows(c) : result_columns(c);
  f.swap_ab = c.swap_ab;
  f.grouped = c.grouped;
  f.search = c.grouped ? Grouping::warp_scan : Grouping::none;
  f.may_gather = takes_index(c);
  f.stages = c.stages;
  f.threads = threads(c);
  f.registers = launch_registers(c);
  f.tiles = c.tiles;
  f.shared_bytes = map.bytes;
  f.regions = {{"A stages", map.a, map.b},
               {"B stages", map.b, map.epilogue},
               {"epilogue buffers", map.epilogue, map.sfa},
               {"scales of A", map.sfa, map.sfb},
               {"scales of B", map.sfb, map.tiles},
               {"ring of tiles", map.tiles, map.barriers},
               {"barriers", map.barriers, map.tmem},
               {"TMEM address", map.tmem, map.bytes}};
  std::erase_if(f.regions, [](const SharedRegion& r) { return r.begin == r.end; });
  f.roles = roles_of(c);
  return f;
}

}  // namespace warpwright::kernel
