#include "warpwright/device/model_parts.h"

#include <stdexcept>
#include <string>

#include "warpwright/model/tensor_map.h"

namespace warpwright::device {

isa::TensorMap encode_for_model(const MapRequest& r) {
  const int element = numeric::bits(r.dtype) / 8;
  model::TensorMapFields f;
  f.base = reinterpret_cast<std::uintptr_t>(r.base);
  f.rank = 3;
  f.extents = {static_cast<std::uint64_t>(r.inner), static_cast<std::uint64_t>(r.outer),
               static_cast<std::uint64_t>(r.batch)};
  f.strides = {static_cast<std::uint64_t>(r.outer_stride * element),
               static_cast<std::uint64_t>(r.batch_stride * element)};
  f.box = {static_cast<std::uint16_t>(r.box_inner), static_cast<std::uint16_t>(r.box_outer), 1};
  f.element_bytes = static_cast<std::uint8_t>(element);
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

model::LaunchShape launch_shape(const kernel::GemmConfig& config, atom::ClusterShape cluster,
                                int ctas) {
  return {.ctas = ctas,
          .cluster_size = atom::cluster_size(cluster),
          .threads = kernel::threads(config),
          .shared_bytes = kernel::smem_map(config).bytes,
          .registers_per_thread = kernel::launch_registers(config)};
}

model::Report run_on_model(const model::LaunchShape& shape, const DeviceFacts& device,
                           const ModelOptions& options, const Allocations& allocations,
                           const std::function<void()>& body) {
  model::Options how;
  how.mode = options.mode;
  how.seed = options.seed;
  how.only = options.only;
  how.hash_order = options.hash_order;
  how.record_decisions = options.record_decisions;
  how.check_order = options.check_order;
  how.fence_after_reads = options.fence_after_reads;
  how.count_sites = options.count_sites;
  how.mutation = options.mutation;
  how.sms = device.sms;
  how.occupied_sm = options.occupied_sm;
  how.on_tile = options.on_tile;
  how.trace = options.trace;
  return model::run(shape, how, allocations.all(), body);
}

}  // namespace warpwright::device
