// What a register kernel says of itself.
#pragma once

#include "warpwright/facts/format.h"
#include "warpwright/facts/kernel.h"
#include "warpwright/kernel/registers/config.h"

namespace warpwright::kernel {

/// What brings A and B into the stages.
constexpr const char* feed_name(const RegisterConfig& c) {
  constexpr const char* names[] = {"cp.async", "plain loads", "TMA copies"};
  return names[static_cast<int>(c.feed)];
}

/// The parts of a kernel with a producer, of its warps and its shared memory.
inline void add_parts(KernelFacts& f, const RegisterConfig& c) {
  const RegisterSmemMap map = smem_map(c);
  f.regions = {{"stages of A and B", 0, map.epilogue},
               {"epilogue buffers", map.epilogue, map.tiles},
               {"ring of tiles", map.tiles, map.barriers},
               {"barriers", map.barriers, map.bytes}};
  const int few = producer_registers(c);
  f.roles = {{"producer", 0, 0, few,
              is_block_scaled(c) ? "one lane issues the TMA loads of A and B, and of scales"
                                 : "one lane issues the TMA loads of A and B"}};
  f.roles.push_back({"idle", 1, asks_for_tiles(c) ? asking_warp - 1 : 3, few, "nothing"});
  if (asks_for_tiles(c)) {
    f.roles.push_back(
        {"scheduler", asking_warp, asking_warp, few, "one lane asks CLC for the next tile"});
  }
  for (int group = 0; group < consumer_warps(c) / tile_warps(c); ++group) {
    const int first = first_consumer_warp(c) + group * tile_warps(c);
    f.roles.push_back({group == 0 ? "consumer 0" : "consumer 1", first, first + tile_warps(c) - 1,
                       consumer_registers(c),
                       format("ldmatrix and mma.sync, each warp %d x %d of a tile, then the "
                              "epilogue",
                              c.tile_m / c.warps_m, c.tile_n / c.warps_n)});
  }
}

/// What the kernel has beside the plain product.
inline std::vector<std::string> features(const RegisterConfig& c) {
  constexpr const char* schedules[] = {"cooperative", "pingpong", "multistage"};
  std::vector<std::string> words = {schedules[static_cast<int>(c.schedule)]};
  if (is_block_scaled(c)) words.push_back(micro_words(format_a(c), format_b(c)));
  if (c.splits_k) words.emplace_back("stream-K");
  if (is_grouped(c)) words.emplace_back("grouped, linear_scan");
  if (c.any_alignment) words.emplace_back("any alignment");
  if (asks_for_tiles(c)) words.emplace_back("CLC");
  return words;
}

/// The facts of the kernel `name` of this configuration.
inline KernelFacts facts(const char* name, const RegisterConfig& c) {
  KernelFacts f;
  f.name = name;
  f.family = "registers_gemm";
  f.architecture = first_target(c);
  for (const int target : register_targets) {
    if (config_fault(c, target) == nullptr) f.architectures.push_back(target);
  }
  f.a = {c.mma.a};
  f.b = {c.mma.b};
  f.result = c.result;
  if (is_block_scaled(c)) f.micro_scales = {c.mma.scale};
  f.grouped = is_grouped(c);
  f.search = is_grouped(c) ? Grouping::linear_scan : Grouping::none;
  f.features = features(c);
  f.schedule = c.schedule;
  f.tile = {c.tile_m, c.tile_n, c.tile_k};
  f.result_rows = c.tile_m;
  f.result_columns = c.tile_n;
  f.stages = c.stages;
  f.threads = threads(c);
  f.registers = launch_registers(c);
  f.ctas_per_sm = c.ctas_per_sm;
  f.tiles = c.tiles;
  f.shared_bytes = smem_map(c).bytes;
  if (has_producer(c)) {
    add_parts(f, c);
    return f;
  }
  f.regions = {{"stages of A and B, then epilogue buffers", 0, f.shared_bytes}};
  f.roles = {
      {"multiply", 0, c.warps_m * c.warps_n - 1, f.registers,
       format("%s%s and mma.sync, each warp %d x %d of the tile, then the epilogue", feed_name(c),
              is_quad_pair(c) ? "" : ", ldmatrix", c.tile_m / c.warps_m, c.tile_n / c.warps_n)}};
  return f;
}

}  // namespace warpwright::kernel
