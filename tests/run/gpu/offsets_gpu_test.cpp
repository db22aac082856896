// Offsets of groups through `run` and `launch`, on a GPU.
#include "tests/gpu.h"
#include "tests/run/offsets.h"

namespace warpwright::offsets {
namespace {

class OffsetsOnGpu : public testing::TestWithParam<Offsets> {
 protected:
  void SetUp() override { WW_NEEDS_HOPPER(); }
};

TEST_P(OffsetsOnGpu, AreCheckedWhereThatIsAskedFor) {
  for (const std::string& kernel : kernels) expect_checked(kernel, GetParam(), 0);
}

TEST_P(OffsetsOnGpu, RowsInNoGroupAreCleared) {
  for (const std::string& kernel : kernels) expect_cleared(kernel, GetParam(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, OffsetsOnGpu, testing::ValuesIn(all_offsets),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace warpwright::offsets
