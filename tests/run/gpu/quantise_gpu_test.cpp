// Quantising activations on a GPU: the very bits of the host.
#include "tests/gpu.h"
#include "tests/run/micro_quantised.h"
#include "tests/run/quantised.h"
#include "warpwright/run.h"

namespace warpwright {
namespace {

using tests::MicroQuantised;
using tests::Quantised;

auto copy(const void* from, std::size_t bytes) {
  auto buffer =
      *device::CudaBuffer::make(static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1)));
  EXPECT_FALSE(buffer->from_host(from, static_cast<std::int64_t>(bytes)));
  return buffer;
}

TEST(QuantiseOnGpu, HasTheBitsOfTheHost) {
  WW_NEEDS_GPU();
  constexpr std::uint32_t first = 20261123;
  for (std::uint32_t seed = first; seed < first + 400; ++seed) {
    Quantised problem(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text());
    const auto x = copy(problem.x.data(), problem.x.size());
    const auto codes = copy(problem.codes.data(), problem.codes.size());
    const auto scales = copy(problem.scales.data(), 4 * problem.scales.size());
    const auto refused = quantise(
        problem.at(static_cast<std::byte*>(x->data()), static_cast<std::byte*>(codes->data()),
                   static_cast<float*>(scales->data())),
        0, nullptr);
    ASSERT_FALSE(refused) << refused->reason;
    ASSERT_FALSE(device::synchronise_cuda());
    std::vector<std::byte> got(problem.codes.size());
    std::vector<float> got_scales(problem.scales.size());
    ASSERT_FALSE(codes->to_host(got.data(), codes->bytes()));
    ASSERT_FALSE(scales->to_host(got_scales.data(), scales->bytes()));
    const auto here =
        quantise(problem.at(problem.x.data(), problem.codes.data(), problem.scales.data()),
                 run_on_model, nullptr);
    ASSERT_FALSE(here) << here->reason;
    ASSERT_EQ(got, problem.codes);
    ASSERT_EQ(std::memcmp(got_scales.data(), problem.scales.data(), 4 * got_scales.size()), 0);
  }
}

TEST(QuantiseOnGpu, HasTheBitsOfTheHostWithScalesOfBlocks) {
  WW_NEEDS_GPU();
  constexpr std::uint32_t first = 20261124;
  for (std::uint32_t seed = first; seed < first + 600; ++seed) {
    MicroQuantised problem(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text());
    const auto x = copy(problem.x.data(), problem.x.size());
    const auto codes = copy(problem.codes.data(), problem.codes.size());
    const auto scales = copy(problem.scales.data(), problem.scales.size());
    const auto tensor = copy(&problem.tensor, 4);
    const auto offsets = copy(problem.offsets.data(), 4 * problem.offsets.size());
    const auto refused = quantise(
        problem.at(static_cast<std::byte*>(x->data()), static_cast<std::byte*>(codes->data()),
                   static_cast<std::byte*>(scales->data()), static_cast<float*>(tensor->data()),
                   offsets->data()),
        0, nullptr);
    ASSERT_FALSE(refused) << refused->reason;
    ASSERT_FALSE(device::synchronise_cuda());
    std::vector<std::byte> got(problem.codes.size()), got_scales(problem.scales.size());
    float got_tensor = 0;
    ASSERT_FALSE(codes->to_host(got.data(), codes->bytes()));
    ASSERT_FALSE(scales->to_host(got_scales.data(), scales->bytes()));
    ASSERT_FALSE(tensor->to_host(&got_tensor, 4));
    const auto here = quantise(problem.here(), run_on_model, nullptr);
    ASSERT_FALSE(here) << here->reason;
    ASSERT_EQ(got, problem.codes);
    ASSERT_EQ(got_scales, problem.scales);
    ASSERT_EQ(std::memcmp(&got_tensor, &problem.tensor, 4), 0);
  }
}

TEST(QuantiseOnGpu, PutsScalesInOrderAsTheHostDoes) {
  WW_NEEDS_GPU();
  std::mt19937 random(20261124);
  for (int trial = 0; trial < 100; ++trial) {
    const auto m = static_cast<std::int64_t>(random() % 500);
    const auto blocks = static_cast<std::int64_t>(random() % 300);
    SCOPED_TRACE("seed 20261124, trial " + std::to_string(trial) + ": " + std::to_string(m) +
                 " x " + std::to_string(blocks));
    ScaleReordering r;
    std::vector<std::int32_t> offsets;
    if (random() % 2 == 0) {
      r.groups.count = 1 + static_cast<std::int64_t>(random() % 70);
      for (std::int64_t g = 0; g <= r.groups.count; ++g) {
        offsets.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(m + 1)));
      }
      std::sort(offsets.begin(), offsets.end());
    }
    const std::int64_t batch = r.groups.count == 0 && random() % 2 == 0 ? 3 : 1;
    std::vector<std::byte> plain(static_cast<std::size_t>(batch * m * blocks + 1));
    for (std::byte& b : plain) b = static_cast<std::byte>(random());
    std::vector<std::byte> back(plain.size());
    r.tiles = scale_tiles_of(DType::ue8m0, m, blocks, r.groups, batch);
    std::vector<std::byte> tiles(
        static_cast<std::size_t>(batch * r.tiles.rows * r.tiles.columns + 32));
    const auto on_gpu = [&](std::vector<std::byte>& v) { return copy(v.data(), v.size()); };
    const auto gpu_plain = on_gpu(plain);
    const auto gpu_tiles = on_gpu(tiles);
    const auto gpu_offsets = copy(offsets.data(), 4 * offsets.size());
    const auto both = [&](ScaleOrder to, std::vector<std::byte>& rows, void* gpu_rows) {
      r.to = to;
      r.rows = matrix(rows.data(), DType::ue8m0, m, blocks);
      r.rows.batch = batch;
      r.rows.batch_stride = m * blocks;
      r.tiles.data = tiles.data();
      r.groups.offsets = offsets.data();
      EXPECT_FALSE(reorder_scales_on_host(r));
      r.rows.data = gpu_rows;
      r.tiles.data = gpu_tiles->data();
      r.groups.offsets = gpu_offsets->data();
      EXPECT_FALSE(device::reorder_scales_on_cuda(r, nullptr));
      EXPECT_FALSE(device::synchronise_cuda());
    };
    both(ScaleOrder::tiles, plain, gpu_plain->data());
    std::vector<std::byte> got(tiles.size());
    ASSERT_FALSE(gpu_tiles->to_host(got.data(), gpu_tiles->bytes()));
    ASSERT_EQ(got, tiles);
    const auto gpu_back = on_gpu(back);
    both(ScaleOrder::rows, back, gpu_back->data());
    std::vector<std::byte> got_back(back.size());
    ASSERT_FALSE(gpu_back->to_host(got_back.data(), gpu_back->bytes()));
    ASSERT_EQ(got_back, back);
  }
}

}  // namespace
}  // namespace warpwright
