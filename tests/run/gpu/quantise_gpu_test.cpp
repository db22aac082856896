// Quantising activations on a GPU: the very bits of the host.
#include "tests/run/quantised.h"
#include "warpwright/run.h"

namespace warpwright {
namespace {

using tests::Quantised;

TEST(QuantiseOnGpu, HasTheBitsOfTheHost) {
  if (device::cuda_devices().empty()) GTEST_SKIP() << "did not run: no CUDA device here";
  const auto copy = [](const void* from, std::size_t bytes) {
    auto buffer = *device::CudaBuffer::make(static_cast<std::int64_t>(bytes));
    EXPECT_FALSE(buffer->from_host(from, static_cast<std::int64_t>(bytes)));
    return buffer;
  };
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

}  // namespace
}  // namespace warpwright
