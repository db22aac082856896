// batch_invariant on a GPU: all batch sizes from 1 to 512, all rows, bit for bit.
#include "tests/gpu.h"
#include "tests/run/batch_invariance.h"

namespace warpwright::batch_invariance {
namespace {

class BatchInvarianceGpu : public testing::TestWithParam<Kind> {};

TEST_P(BatchInvarianceGpu, RowsHaveTheirBitsInAnyBatch) {
  WW_NEEDS_HOPPER();
  Kind kind = GetParam();
  kind.depth = 6144;
  expect_invariant(kind, 0, 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, BatchInvarianceGpu, testing::ValuesIn(kinds),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace warpwright::batch_invariance
