// What a register kernel says of itself.
#pragma once

#include "warpwright/facts/format.h"
#include "warpwright/facts/kernel.h"
#include "warpwright/kernel/registers/config.h"

namespace warpwright::kernel {

/// What brings A and B into the stages.
constexpr const char* feed_name(const RegisterConfig& c) {
  return c.feed == Feed::copy_async ? "cp.async" : "plain loads";
}

/// The facts of the kernel `name` of this configuration.
inline KernelFacts facts(const char* name, const RegisterConfig& c) {
  KernelFacts f;
  f.name = name;
  f.family = "registers_gemm";
  f.architecture = first_target(c);
  f.tile = {c.tile_m, c.tile_n, c.tile_k};
  f.result_rows = c.tile_m;
  f.result_columns = c.tile_n;
  f.stages = c.stages;
  f.threads = threads(c);
  f.registers = launch_registers(c);
  f.ctas_per_sm = c.ctas_per_sm;
  f.shared_bytes = smem_map(c).bytes;
  f.regions = {{"stages of A and B, then epilogue buffers", 0, f.shared_bytes}};
  f.roles = {
      {"multiply", 0, c.warps_m * c.warps_n - 1, f.registers,
       format("%s%s and mma.sync, each warp %d x %d of the tile, then the epilogue", feed_name(c),
              is_quad_pair(c) ? "" : ", ldmatrix", c.tile_m / c.warps_m, c.tile_n / c.warps_n)}};
  return f;
}

}  // namespace warpwright::kernel
