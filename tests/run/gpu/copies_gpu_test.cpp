// Operands that a launch copies first, on a GPU.
#include "tests/gpu.h"
#include "tests/run/copies.h"

namespace warpwright::copies {
namespace {

class CopiesOnGpu : public testing::TestWithParam<Kind> {};

TEST_P(CopiesOnGpu, GiveTheBitsOfAlignedOperands) {
  WW_NEEDS_HOPPER();
  expect_same_bits(GetParam(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, CopiesOnGpu, testing::ValuesIn(kinds),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace warpwright::copies
