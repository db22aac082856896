#include "warpwright/simulation/model_parts.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "warpwright/facts/machines.h"
#include "warpwright/model/memory/tensor_map.h"

namespace warpwright::device {

isa::TensorMap encode_for_model(const MapRequest& r) {
  model::TensorMapFields f;
  f.base = reinterpret_cast<std::uintptr_t>(r.base);
  f.rank = static_cast<std::uint8_t>(r.rank());
  for (int d = 0; d < r.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    f.extents[at] = static_cast<std::uint64_t>(r.extent(d));
    f.box[at] = static_cast<std::uint16_t>(r.box(d));
    if (d > 0)
      f.strides[at - 1] = static_cast<std::uint64_t>(r.stride(d) * numeric::bits(r.dtype) / 8);
  }
  f.element_bits = static_cast<std::uint8_t>(numeric::bits(r.dtype));
  f.padded = r.padded;
  f.swizzle = r.swizzle;
  if (r.dtype == DType::f32) f.element_kind = 0;
  if (r.dtype == DType::f16) f.element_kind = 1;
  if (r.dtype == DType::bf16) f.element_kind = 2;
  if (const auto fault = model::invalid(f)) {
    throw std::logic_error(std::string("the tensor map of ") + r.tensor + ": " + *fault);
  }
  return model::encode(f);
}

void Allocations::add(const MatrixView& v, const char* name, bool writable) {
  if (v.data == nullptr || v.rows == 0 || v.columns == 0 || v.batch == 0) return;
  const std::int64_t elements = (v.rows - 1) * v.row_stride + (v.columns - 1) * v.column_stride +
                                (v.batch - 1) * v.batch_stride + 1;
  all_.push_back({v.data, elements * numeric::bits(v.dtype) / 8, name, writable});
}

void Allocations::add(const void* data, std::int64_t bytes, const char* name, bool writable) {
  if (bytes > 0) all_.push_back({const_cast<void*>(data), bytes, name, writable});
}

Allocations allocations_of(const Plan& plan, const GemmOperands& operands, const Grid& grid,
                           std::byte* workspace) {
  Allocations all;
  if (grid.multiplies || grid.clears) all.add(operands.d, "D", true);
  if ((grid.multiplies || grid.copies) && operands.reads_ab()) {
    all.add(operands.a, "A");
    all.add(stored_b(operands), "B");
  }
  if (grid.multiplies) {
    if (beta_of(operands) != 0.0F) all.add(operands.c, "C");
    for_each_side_of(
        [&](const char* name, const MatrixView& side) {
          all.add(side, name, &side == &operands.d_scales);
        },
        operands);
  }
  if (operands.groups) {
    const std::int64_t width = operands.groups->type == OffsetType::int64 ? 8 : 4;
    all.add(operands.groups->offsets, (plan.problem.group_count() + 1) * width, "offsets", false);
    if (operands.is_by_index()) {
      all.add(operands.groups->rows, operands.m() * 4, "rows", false);
    }
  }
  for (const WorkspacePart& part : grid.workspace) {
    if (part.end > part.begin) {
      all.add(workspace + part.begin, part.end - part.begin, part.name, part.writable);
    }
  }
  return all;
}

model::GridLaunch grid_launch(const Grid& grid, const Allocations& allocations,
                              std::function<void()> body) {
  model::GridLaunch launch;
  launch.shape = {.ctas = grid.ctas,
                  .cluster_size = grid.cluster_size,
                  .in_clusters = grid.in_clusters,
                  .threads = grid.threads,
                  .shared_bytes = grid.shared_bytes,
                  .registers_per_thread = grid.registers};
  launch.allocations = allocations.all();
  launch.body = std::move(body);
  launch.dependent = true;
  launch.name = grid.kernel;
  return launch;
}

model::Report run_on_model(const std::vector<model::GridLaunch>& grids, const DeviceFacts& device,
                           const ModelOptions& options) {
  model::Options how;
  how.mode = options.mode;
  how.seed = options.seed;
  how.only = options.only;
  how.hash_order = options.hash_order;
  how.record_decisions = options.record_decisions;
  how.exploration = options.exploration;
  how.check_order = options.check_order;
  how.fence_after_reads = options.fence_after_reads;
  how.count_sites = options.count_sites;
  how.stop_at_finding = options.stop_at_finding;
  how.mutation = options.mutation;
  how.sms = options.sms > 0 ? options.sms : device.sms;
  how.occupied_sm = options.occupied_sm;
  how.on_tile = options.on_tile;
  how.trace = options.trace;
  how.work = options.work;
  how.barrier_events = options.barrier_events;
  how.machine = options.machine != nullptr ? options.machine : &numbers_of(device);
  how.cold_share = options.cold_share;
  return model::run(grids, how);
}

}  // namespace warpwright::device
