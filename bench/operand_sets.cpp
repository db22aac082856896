#include "bench/operand_sets.h"

#include <algorithm>
#include <array>

#include "bench/device_math.h"
#include "bench/replay.h"

namespace warpwright::bench {
namespace {

constexpr std::int64_t kMaxSets = 2048;

// What may lie in memory: which tensor, and whether random values are those of scales.
struct Slot {
  MatrixView GemmOperands::*view;
  bool scale;
  bool is_d;
};

constexpr std::array kSlots = {
    Slot{&GemmOperands::a, false, false},      Slot{&GemmOperands::b, false, false},
    Slot{&GemmOperands::c, false, false},      Slot{&GemmOperands::d, false, true},
    Slot{&GemmOperands::scale_a, true, false}, Slot{&GemmOperands::scale_b, true, false},
    Slot{&GemmOperands::scale_d, true, false}, Slot{&GemmOperands::bias, false, false}};

std::int64_t padded(std::int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// Bytes of a tensor that the product has; 0 for one that it has not.
std::int64_t slot_bytes(const GemmOperands& o, const Slot& slot) {
  if (slot.view == &GemmOperands::c && o.beta == 0.0F) return 0;
  return span_bytes(o.*slot.view);
}

void fill(const MatrixView& view, const Slot& slot, std::uint64_t seed, std::uint64_t stream,
          cudaStream_t on) {
  if (slot.is_d) return;
  if (slot.scale) {
    require(fill_scales(static_cast<float*>(view.data), span_elements(view), seed, stream, on));
  } else {
    require(fill_normal(view.data, view.dtype, span_elements(view), seed, stream, on));
  }
}

MatrixView strided(DType t, std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
                   std::int64_t column_stride, std::int64_t batch, std::int64_t batch_stride) {
  MatrixView v = matrix(nullptr, t, rows, columns);
  v.row_stride = row_stride;
  v.column_stride = column_stride;
  v.batch = batch_stride == 0 ? 1 : batch;
  v.batch_stride = v.batch == 1 ? 0 : batch_stride;
  return v;
}

}  // namespace

GemmOperands operands_for(const GemmProblem& p) {
  GemmOperands o;
  o.a = strided(p.a, p.m, p.k, p.a_row_stride, p.a_column_stride, p.batch, p.a_batch_stride);
  o.b = strided(p.b, p.n, p.k, p.b_row_stride, p.b_column_stride, p.batch, p.b_batch_stride);
  const std::int64_t columns = result_columns(p);
  o.d = strided(p.d, p.m, columns, p.d_row_stride, p.d_column_stride, p.batch, p.d_batch_stride);
  if (p.reads_c) {
    o.c = strided(p.c, p.m, columns, p.c_row_stride, p.c_column_stride, p.batch, p.c_batch_stride);
    o.beta = 0.5F;
  }
  o.scaling = p.scaling;
  o.accumulation = p.accumulation;
  const auto blocks = [](std::int64_t extent) { return (extent + 127) / 128; };
  if (p.scaling == Scaling::tensor) {
    o.scale_a = o.scale_b = matrix(nullptr, DType::f32, 1, 1);
  } else if (p.scaling == Scaling::row_column) {
    o.scale_a = matrix(nullptr, DType::f32, p.m, 1);
    o.scale_b = matrix(nullptr, DType::f32, p.n, 1);
  } else if (p.scaling == Scaling::block) {
    o.scale_a = matrix(nullptr, DType::f32, p.m, blocks(p.k));
    o.scale_b = matrix(nullptr, DType::f32, blocks(p.n), blocks(p.k));
  }
  if (p.scales_d) o.scale_d = matrix(nullptr, DType::f32, 1, 1);
  o.epilogue = p.epilogue;
  if (p.epilogue.bias != Bias::none) {
    o.bias = matrix(nullptr, p.bias, p.epilogue.bias == Bias::rows ? p.m : p.n, 1);
  }
  return o;
}

OperandSets::OperandSets(const GemmOperands& host, std::int64_t l2_bytes, std::uint64_t seed,
                         cudaStream_t stream) {
  std::int64_t step = 0;
  for (const Slot& slot : kSlots) {
    bytes_ += slot_bytes(host, slot);
    step += padded(slot_bytes(host, slot));
  }
  const std::int64_t wanted = 2 * l2_bytes / std::max<std::int64_t>(bytes_, 1) + 2;
  std::size_t free = 0;
  std::size_t total = 0;
  require(cudaMemGetInfo(&free, &total), "asking for free memory");
  const std::int64_t room =
      static_cast<std::int64_t>(static_cast<double>(free) * 0.9) / std::max<std::int64_t>(step, 1);
  const std::int64_t count = std::min({wanted, room, kMaxSets});
  if (count < 2) {
    throw Failure{"two sets of operands of " + std::to_string(step) +
                  " bytes do not fit into the GPU's free memory, " + std::to_string(free) +
                  " bytes: choose smaller M, N or K"};
  }
  cold_ = (count - 1) * bytes_ > 2 * l2_bytes;
  const auto memory = filled_memory(count * step);
  if (!memory) throw Failure{memory.reason()};
  memory_ = *memory;
  auto* at = static_cast<std::byte*>(memory_->data());
  for (std::int64_t i = 0; i < count; ++i) {
    GemmOperands set = host;
    for (std::size_t s = 0; s < kSlots.size(); ++s) {
      const Slot& slot = kSlots[s];
      const std::int64_t bytes = slot_bytes(host, slot);
      if (bytes == 0) continue;
      MatrixView& view = set.*slot.view;
      const void* from = i == 0 ? view.data : (sets_.front().*slot.view).data;
      view.data = at;
      at += padded(bytes);
      if (slot.is_d) continue;
      if (from == nullptr) {
        fill(view, slot, seed, s, stream);
      } else {
        require(cudaMemcpyAsync(view.data, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault,
                                stream),
                "copying to the GPU");
      }
    }
    sets_.push_back(set);
  }
  require(cudaStreamSynchronize(stream), "making operands");
}

}  // namespace warpwright::bench
