// Stands in for the oracle tests where CuTe's headers are not to be had.
#include <gtest/gtest.h>

namespace {

TEST(CuteOracle, NeedsTheHeaders) {
  GTEST_SKIP()
      << "did not run: no CuTe headers here. Give -DWARPWRIGHT_CUTE_DIR=<folder that holds "
         "cute/ and cutlass/>, or install the Python package nvidia-cutlass.";
}

}  // namespace
