// What a Hopper kernel says of itself.
#pragma once

#include "warpwright/facts/kernel.h"
#include "warpwright/kernel/hopper/config.h"

namespace warpwright::kernel {

/// The facts of the kernel `name` of this configuration.
inline KernelFacts facts(const char* name, const GemmConfig& c) {
  KernelFacts f;
  f.name = name;
  f.family = "hopper_gemm";
  f.architecture = 90;
  f.tile = {c.tile_m, c.tile_n, tile_k(c)};
  f.result_rows = c.swapped ? result_columns(c) : result_rows(c);
  f.result_columns = c.swapped ? result_rows(c) : result_columns(c);
  f.swapped = c.swapped;
  f.grouped = is_grouped(c);
  f.stages = c.stages;
  f.threads = threads(c);
  f.registers = launch_registers(c);
  f.ctas_per_sm = c.ctas_per_sm;
  f.tiles = c.tiles;
  const SmemMap map = smem_map(c);
  f.shared_bytes = map.bytes;
  f.regions = {{"A stages", map.a, map.b},
               {"B stages", map.b, map.epilogue},
               {"epilogue buffers", map.epilogue, map.scales},
               {"block scales", map.scales, map.groups},
               {"table of groups", map.groups, map.tiles},
               {"ring of tiles", map.tiles, map.barriers},
               {"barriers", map.barriers, map.bytes}};
  const int producer = producer_registers(c);
  if (has_producer(c)) {
    const bool scales = c.sums == Sums::block_scaled;
    f.roles.push_back(
        {role_of_warp(c, 0), 0, 0, producer, "one lane issues the TMA loads of A and B"});
    if (scales) {
      f.roles.push_back(
          {role_of_warp(c, 1), 1, 1, producer, "fetches block scales that are not copied"});
    }
    f.roles.push_back({"idle", scales ? 2 : 1, draws_tiles(c) ? drawing_warp - 1 : 3, producer,
                       moves_registers(c) ? "gave their registers away" : "nothing"});
    if (draws_tiles(c)) {
      f.roles.push_back({role_of_warp(c, drawing_warp), drawing_warp, drawing_warp, producer,
                         "one lane draws the next tile for the cluster"});
    }
  }
  for (int w = 0; w < c.consumer_warpgroups; ++w) {
    const int warp = first_consumer_warp(c) + 4 * w;
    f.roles.push_back(
        {role_of_warp(c, warp), warp, warp + 3, consumer_registers(c),
         "wgmma on " + std::to_string(warpgroup_rows(c)) + " rows from row " +
             std::to_string(atom_row(c, w, 0)) + ", then the epilogue" +
             (!has_producer(c) && w == 0 ? "; a lane of warp 0 issues the loads" : "")});
  }
  return f;
}

}  // namespace warpwright::kernel
