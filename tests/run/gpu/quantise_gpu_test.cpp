// Quantising on a GPU: the very bits of the host.
#include "tests/gpu.h"
#include "tests/must.h"
#include "tests/run/quantise_bits.h"
#include "warpwright/run.h"

namespace warpwright::tests {
namespace {

auto copy(const void* from, std::int64_t bytes) {
  auto buffer = *device::CudaBuffer::make(std::max<std::int64_t>(bytes, 1));
  EXPECT_FALSE(buffer->from_host(from, bytes));
  return buffer;
}
auto copy(const std::vector<std::byte>& from) {
  return copy(from.data(), static_cast<std::int64_t>(from.size()));
}
void back(std::vector<std::byte>& to, device::CudaBuffer& from) {
  ASSERT_FALSE(from.to_host(to.data(), static_cast<std::int64_t>(to.size())));
}

void quantise_on_gpu(Quantised& p) {
  const auto x = copy(p.x);
  const auto codes = copy(p.codes);
  const auto scales = copy(p.scales);
  const auto tensor = copy(&p.tensor, 4);
  const auto offsets = copy(p.offsets.data(), 4 * static_cast<std::int64_t>(p.offsets.size()));
  must_do(quantise(p.at(x->data(), codes->data(), scales->data(), tensor->data(), offsets->data()),
                   0, nullptr));
  ASSERT_FALSE(device::synchronise_cuda());
  back(p.codes, *codes);
  back(p.scales, *scales);
  ASSERT_FALSE(tensor->to_host(&p.tensor, 4));
}

TEST(QuantiseOnGpu, HasTheBitsOfTheHost) {
  WW_NEEDS_GPU();
  expect_bits_of_the_host(ScaleSize::floats, 20261123, 400, 40, quantise_on_gpu);
  expect_bits_of_the_host(ScaleSize::micro, 20261124, 600, 40, quantise_on_gpu);
}

TEST(QuantiseOnGpu, PutsScalesInOrderAsTheHostDoes) {
  WW_NEEDS_GPU();
  expect_order_of_the_host(20261124, 100, 500, [](Reordered& p, ScaleOrder to) {
    const auto rows = copy(p.plain);
    const auto tiles = copy(p.tiles);
    const auto offsets = copy(p.offset_data(), p.offset_bytes());
    must_do(reorder_scales(p.at(to, rows->data(), tiles->data(), offsets->data()), 0, nullptr));
    ASSERT_FALSE(device::synchronise_cuda());
    back(p.plain, *rows);
    back(p.tiles, *tiles);
  });
}

}  // namespace
}  // namespace warpwright::tests
