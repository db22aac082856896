// The kernels of quantising on the model: clean, with the bits of the host.
#include "tests/campaign.h"
#include "tests/model/on_model.h"
#include "tests/run/quantise_bits.h"
#include "warpwright/device/quantise_by.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::tests {
namespace {

// The bytes that a matrix reaches over, as kernels may touch them.
model::Allocation memory_of(const MatrixView& v, const char* name, bool writable) {
  const std::int64_t matrix = reach({{v.rows, v.row_stride}, {v.columns, v.column_stride}});
  const bool some = v.rows > 0 && v.columns > 0 && v.batch > 0;
  const std::int64_t elements = some ? (v.batch - 1) * v.batch_stride + matrix : 0;
  return {v.data, (elements * numeric::bits(v.dtype) + 7) / 8, name, writable};
}

void quantise_on_model(Quantised& problem, const model::Options& how) {
  const Quantisation q = problem.here();
  std::vector<model::Allocation> memory = {memory_of(q.x, "x", false),
                                           memory_of(q.codes, "the codes", true),
                                           memory_of(q.scales, "the scales", true)};
  if (problem.has_tensor) memory.push_back(memory_of(q.tensor_scale, "the tensor's scale", true));
  if (q.groups.count > 0) {
    memory.push_back({problem.offsets.data(), 4 * (q.groups.count + 1), "offsets", false});
  }
  OnModel on(memory, how);
  device::quantise_by(q, on);
}

model::Options drawn(std::uint32_t seed) {
  return seed % 2 == 0 ? model::Options{} : model::random_schedule(seed);
}

TEST(QuantiseKernels, HaveTheBitsOfTheHost) {
  std::uint32_t seed = 1;
  for (const ScaleSize size : {ScaleSize::floats, ScaleSize::micro}) {
    expect_bits_of_the_host(size, 20261123, campaign() ? 200 : 24, campaign() ? 40 : 5,
                            [&](Quantised& p) { quantise_on_model(p, drawn(seed++)); });
  }
}

TEST(QuantiseKernels, PutScalesInOrderAsTheHostDoes) {
  std::uint32_t seed = 1;
  expect_order_of_the_host(
      20261124, campaign() ? 60 : 8, campaign() ? 400 : 60, [&](Reordered& p, ScaleOrder to) {
        const ScaleReordering r = p.at(to, p.plain.data(), p.tiles.data(), p.offset_data());
        const bool to_tiles = to == ScaleOrder::tiles;
        OnModel on({memory_of(r.rows, "rows", !to_tiles),
                    memory_of(r.tiles, "tiles", to_tiles),
                    {const_cast<void*>(p.offset_data()), p.offset_bytes(), "offsets", false}},
                   drawn(seed++));
        device::reorder_by(r, on);
      });
}

}  // namespace
}  // namespace warpwright::tests
