#include "bench/operand_sets.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "bench/device_math.h"
#include "warpwright/device/pack.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::bench {
namespace {

constexpr std::int64_t kMaxSets = 2048;
constexpr std::uint64_t kStreams = 16;  // of random tensors, more than a product has

// A tensor that may lie in memory.
struct Slot {
  std::string_view name;
  MatrixView* view;

  [[nodiscard]] bool is_of_scales() const {
    return name.starts_with("scale_") || name.starts_with("factor_");
  }
  [[nodiscard]] bool is_written() const { return name == "d" || name == "d_scales"; }
};

std::vector<Slot> slots_of(GemmOperands& o) {
  std::vector<Slot> slots;
  for_each_tensor_of(
      [&](const char* name, MatrixView& view) {
        slots.push_back({name, &view});
      },
      o);
  return slots;
}

std::int64_t padded(std::int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// Bytes of a tensor that the product has; 0 for one that it has not.
std::int64_t slot_bytes(const GemmOperands& o, const Slot& slot) {
  if (slot.name == "c" && beta_of(o) == 0.0F) return 0;
  return span_bytes(slot.name == "b" ? stored_b(o) : *slot.view);
}

// What lies before the tensor in a slot's memory: the header of packed weights.
std::int64_t slot_begin(const GemmOperands& o, const Slot& slot) {
  return o.packed && slot.name == "b" ? packed::kHeaderBytes : 0;
}

std::int64_t slot_step(const GemmOperands& o, const Slot& slot) {
  const std::int64_t bytes = slot_bytes(o, slot);
  return bytes == 0 ? 0 : padded(slot_begin(o, slot) + bytes);
}

void fill(const Slot& slot, std::uint64_t seed, std::uint64_t stream, cudaStream_t on) {
  const MatrixView& view = *slot.view;
  if (slot.is_of_scales()) {
    fill_scales(view.data, view.dtype, span_elements(view), seed, stream, on);
  } else {
    fill_normal(view.data, view.dtype, span_elements(view), seed, stream, on);
  }
}

// Rows of a matrix; for a tensor that is not there, nothing.
MatrixView rows_of(MatrixView v, std::int64_t first, std::int64_t count) {
  if (v.data == nullptr) return v;
  v.data = static_cast<std::byte*>(v.data) + first * v.row_stride * numeric::bits(v.dtype) / 8;
  v.rows = count;
  return v;
}

// A matrix of a batch, or the one that serves all.
MatrixView matrix_of(MatrixView v, std::int64_t which) {
  if (v.batch == 1) return v;
  v.data = static_cast<std::byte*>(v.data) + which * v.batch_stride * numeric::bits(v.dtype) / 8;
  v.batch = 1;
  v.batch_stride = 0;
  return v;
}

// A group as a product of its own on the same memory.
GemmOperands group_of(const GemmOperands& set, std::int64_t group, std::int64_t first,
                      std::int64_t length) {
  GemmOperands o = set;
  o.groups.reset();
  o.a = rows_of(set.a, first, length);
  o.b = matrix_of(set.b, group);
  o.c = rows_of(set.c, first, length);
  o.d = rows_of(set.d, first, length);
  o.bias = matrix_of(set.bias, group);
  if (set.scaling == Scaling::group) {
    o.scaling = Scaling::tensor;
    if (set.scale_a.rows > 1) o.scale_a = rows_of(set.scale_a, group, 1);
    o.scale_b = rows_of(set.scale_b, group, 1);
  } else {
    const bool of_rows = scale_reach(set.scaling, true, set.a.dtype).rows > 0;
    if (of_rows) o.scale_a = rows_of(set.scale_a, first, length);
    o.scale_b = matrix_of(set.scale_b, group);
  }
  return o;
}

}  // namespace

std::shared_ptr<device::CudaBuffer> fill_packed(const PackedFormat& f, const MatrixView& w,
                                                std::uint64_t seed, std::uint64_t stream,
                                                cudaStream_t on) {
  const packed::Extents extents{w.batch, w.rows, w.columns};
  const std::int64_t count = extents.experts * extents.n * extents.k;
  if (packed::has_float_codes(f)) {
    auto values = filled_memory(count * 4);
    fill_e2m1(f, extents, w.data, static_cast<float*>(values->data()), seed, stream, on);
    return values;
  }
  if (f.zero_points != ZeroPoints::none || extents.k % f.group != 0) {
    throw Failure{
        "random int4 weights are made without zero points, and with a K that is a multiple of the "
        "group"};
  }
  const auto codes = filled_memory(count / 2);
  const auto scales = filled_memory(count / f.group * numeric::bits(f.scale) / 8);
  auto values = filled_memory(count * 4);
  auto* const at = static_cast<std::uint8_t*>(codes->data());
  fill_codes(at, count, packed::least_code(f.encoding), seed, stream, on);
  // What comes of two products of a layer stays in the range of f16.
  const float times = f.tokens == DType::f16 ? 0x1p-4F : 1.0F;
  fill_scales(scales->data(), f.scale, count / f.group, seed, stream + kStreams, on, times);
  int4_values(at, scales->data(), f.scale, f.group, count, static_cast<float*>(values->data()), on);
  auto source = weights::plain_source(extents, f.group, f.scale, "random",
                                      reinterpret_cast<const std::byte*>(at),
                                      static_cast<const std::byte*>(scales->data()), nullptr);
  const auto there = device::look_on_cuda(std::move(source), {f.encoding, f.scale, f.tokens}, on);
  if (!there) throw Failure{there.reason()};
  require(device::pack_on_cuda(*there, static_cast<std::byte*>(w.data) - packed::kHeaderBytes, on));
  return values;
}

GemmOperands operands_for(const GemmProblem& problem) {
  const GemmProblem p = normalised(problem);
  const auto without = [](const MatrixShape& shape) {
    MatrixView v(nullptr, shape);
    if (v.batch_stride == 0) v.batch = 1;  // one that serves all
    return v;
  };
  GemmOperands o = with_matrices(p, without);
  o.beta = p.reads_c() ? 0.5F : 0.0F;
  if (p.scaling == Scaling::none) return o;
  const auto scales = [&](bool of_a) {
    MatrixShape s = scale_shape(p, of_a);
    s.batch = p.groups ? s.batch : 1;
    return without(s);
  };
  o.scale_a = scales(true);
  // The scales of packed weights' groups are enough.
  if (!p.packed) o.scale_b = scales(false);
  if (p.groups && p.scaling == Scaling::blockwise) {  // tokens side by side, as TMA reads them
    o.scale_a.row_stride = 1;
    o.scale_a.column_stride = (p.m() + 3) / 4 * 4;
  }
  return o;
}

Parts parts_of(const GemmOperands& set, const std::vector<std::int64_t>& lengths) {
  if (!set.groups) return {set};
  Parts parts;
  std::int64_t first = 0;
  for (std::size_t g = 0; g < lengths.size(); ++g) {
    if (lengths[g] > 0) {
      parts.push_back(group_of(set, static_cast<std::int64_t>(g), first, lengths[g]));
    }
    first += lengths[g];
  }
  return parts;
}

SetCount count_sets(std::int64_t touched, std::int64_t step, std::int64_t l2_bytes) {
  const std::int64_t bytes = std::max<std::int64_t>(touched, 1);
  std::size_t free = 0;
  std::size_t total = 0;
  require(cudaMemGetInfo(&free, &total), "asking for free memory");
  const std::int64_t room =
      static_cast<std::int64_t>(static_cast<double>(free) * 0.9) / std::max<std::int64_t>(step, 1);
  const std::int64_t count = std::min({2 * l2_bytes / bytes + 2, room, kMaxSets});
  if (count < 2) {
    throw Failure{"two sets of operands of " + std::to_string(step) +
                  " bytes do not fit into the GPU's free memory, " + std::to_string(free) +
                  " bytes: choose smaller extents"};
  }
  return {count, (count - 1) * touched > 2 * l2_bytes};
}

OperandSets::OperandSets(const GemmOperands& host, std::int64_t l2_bytes, std::uint64_t seed,
                         cudaStream_t stream) {
  std::int64_t bytes = 0;  // of a set
  std::int64_t step = 0;
  GemmOperands like = host;
  for (const Slot& slot : slots_of(like)) {
    bytes += slot_bytes(host, slot);
    step += slot_step(host, slot);
  }
  const auto [count, cold] = count_sets(bytes, step, l2_bytes);
  cold_ = cold;
  memory_ = filled_memory(count * step);
  auto* at = static_cast<std::byte*>(memory_->data());
  for (std::int64_t i = 0; i < count; ++i) {
    GemmOperands set = host;
    const std::vector<Slot> slots = slots_of(set);
    const std::vector<Slot> first = i == 0 ? slots : slots_of(sets_.front());
    for (std::size_t s = 0; s < slots.size(); ++s) {
      const Slot& slot = slots[s];
      const std::int64_t size = slot_bytes(host, slot);
      if (size == 0) continue;
      const void* from = first[s].view->data;
      slot.view->data = at + slot_begin(host, slot);
      at += slot_step(host, slot);
      if (slot.is_written()) continue;
      if (i == 0 && slot_begin(host, slot) > 0) {
        if (from != nullptr) {
          throw Failure{
              "packed weights of one's own are not measured: `warpwright bench w4a8` "
              "measures random ones"};
        }
        values_ = fill_packed(set.packed->format, set.b, seed, s, stream);
      } else if (from == nullptr) {
        fill(slot, seed, s, stream);
      } else {
        require(cudaMemcpyAsync(slot.view->data, from, static_cast<std::size_t>(size),
                                cudaMemcpyDefault, stream),
                "copying to the GPU");
      }
    }
    sets_.push_back(set);
  }
  require(cudaStreamSynchronize(stream), "making operands");
}

GemmOperands OperandSets::plain(std::size_t set) const {
  GemmOperands o = sets_[set];
  if (!o.packed) return o;
  o.packed.reset();
  o.b.dtype = DType::f32;
  o.b.data = values_->data();
  return o;
}

}  // namespace warpwright::bench
