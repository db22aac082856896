// From a grouped plan and addresses to the parameters of the kernel: the same for both devices, but
// for how a tensor map is encoded. Internal to device/.
#pragma once

#include "warpwright/device/params.h"
#include "warpwright/kernel/hopper/group_maps.h"
#include "warpwright/plan/grouped.h"

namespace warpwright::device {

/// The scales, as the kernel's rows and columns have them.
inline void set_grouped_scales(kernel::ScaleParams& p, const kernel::GemmConfig& c,
                               const GroupedOperands& o) {
  switch (o.scaling) {
    case GroupedScaling::none:
      break;
    case GroupedScaling::tensor:
      p.tensor_a = static_cast<const float*>(o.scale_x.data);
      p.tensor_b = static_cast<const float*>(o.scale_w.data);
      break;
    case GroupedScaling::group:
      p.tensor_a = static_cast<const float*>(o.scale_x.data);
      p.tensor_b = static_cast<const float*>(o.scale_w.data);
      p.tensor_a_stride = o.scale_x.rows > 1 ? static_cast<int>(o.scale_x.row_stride) : 0;
      p.tensor_b_stride = o.scale_w.rows > 1 ? static_cast<int>(o.scale_w.row_stride) : 0;
      break;
    case GroupedScaling::row_column:
      (c.swapped ? p.columns : p.rows) = vector_of(o.scale_x);
      (c.swapped ? p.rows : p.columns) = vector_of(o.scale_w);
      break;
    case GroupedScaling::block:
      p.tokens = scale_matrix(o.scale_x);
      p.weights = scale_matrix(o.scale_w);
      break;
  }
}

/// Where the maps of the groups lie in a workspace: behind the status of the offsets, aligned.
inline isa::TensorMap* group_maps_in(void* workspace) {
  const auto at = reinterpret_cast<std::uintptr_t>(workspace) + 16;
  return reinterpret_cast<isa::TensorMap*>((at + 127) / 128 * 128);
}

/// Fills everything but the maps, and asks `encode(MapRequest) -> isa::TensorMap` for those of X
/// and W. `status`, where it is given, is where the kernel says whether the offsets are in order;
/// `maps` are those of the groups, if the kernel has them.
template <class Encode>
kernel::HopperGemmParams make_grouped_params(const GroupedPlan& plan, const GroupedOperands& o,
                                             void* status, const isa::TensorMap* maps,
                                             const Encode& encode) {
  const kernel::GemmConfig& c = plan.config;
  const GroupedProblem& problem = plan.problem;
  kernel::HopperGemmParams p;
  p.output.d_rows = static_cast<int>(problem.total);
  p.output.d_columns = static_cast<int>(problem.n);
  p.operands.k = o.alpha == 0.0F ? 0 : static_cast<int>(problem.k);
  p.walk.k_blocks = (p.operands.k + kernel::tile_k(c) - 1) / kernel::tile_k(c);
  p.output.has_sums = p.operands.k > 0;
  p.output.alpha = o.alpha;
  p.walk.cluster = plan.cluster;
  p.operands.column_mask = atom::column_set(plan.cluster, 0);
  p.operands.row_mask = atom::row_set(plan.cluster, 0);
  p.walk.cluster_m = tile::Divisor(plan.cluster.m);
  // X is one matrix for all groups.
  (c.swapped ? p.operands.a_batch : p.operands.b_batch) = matrices(o.w) > 1 ? 1 : 0;
  (c.swapped ? p.operands.b_batch : p.operands.a_batch) = 0;
  p.operands.a_slice_rows = c.tile_m / plan.cluster.n;
  p.operands.b_slice_rows = c.tile_n / plan.cluster.m;
  p.walk.groups = plan.tiles(o.offsets);
  p.walk.offsets_status = static_cast<std::uint32_t*>(status);
  p.operands.group_maps = maps;
  p.output.group_maps = maps + (maps != nullptr);
  p.output.d_aligned = plan.by_vectors;
  p.output.d_data = o.y.data;
  p.output.d_pitch = o.y.row_stride;
  if (p.operands.k > 0) set_grouped_scales(p.scales, c, o);  // else there is nothing to scale
  p.output.is_plain = p.output.has_sums && o.scaling != GroupedScaling::row_column;
  if (p.operands.k > 0 && o.scaling == GroupedScaling::block)
    set_scale_map(p.scales, c, o.scale_x, encode);
  if (p.operands.k > 0) {
    const auto operand = [&](const char* name, const MatrixView& v, int rows) {
      return encode(map_request(name, v, false, kernel::tile_k(c), rows, atom::SmemSwizzle::b128));
    };
    p.operands.a = c.swapped ? operand("W", o.w, p.operands.a_slice_rows)
                             : operand("X", o.x, p.operands.a_slice_rows);
    p.operands.b = c.swapped ? operand("X", o.x, p.operands.b_slice_rows)
                             : operand("W", o.w, p.operands.b_slice_rows);
  }
  return p;
}

/// Parameters of the kernel that makes the maps of the groups for a kernel with these parameters.
template <class Encode>
kernel::GroupMapsParams make_group_maps_params(const GroupedPlan& plan, const GroupedOperands& o,
                                               const kernel::HopperGemmParams& params,
                                               isa::TensorMap* maps, const Encode& encode) {
  const kernel::GemmConfig& c = plan.config;
  const auto tokens = [](const isa::TensorMap& map, const MatrixView& v) {
    return kernel::TokenTensor{map, static_cast<const unsigned char*>(v.data),
                               v.row_stride * numeric::bits(v.dtype) / 8};
  };
  kernel::GroupMapsParams p;
  if (params.operands.k > 0) p.x = tokens(c.swapped ? params.operands.b : params.operands.a, o.x);
  p.y = tokens(encode(map_request("Y", o.y, false, kernel::chunk_inner(c), kernel::chunk_outer(c),
                                  kernel::chunk_swizzle(c))),
               o.y);
  p.offsets = params.walk.groups.offsets;
  p.maps = maps;
  return p;
}

}  // namespace warpwright::device
