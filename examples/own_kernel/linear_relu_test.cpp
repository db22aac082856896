// The kernel on the machine model: right and clean under every schedule, and what is said of two
// classic mistakes.
#include <gtest/gtest.h>

#include <string>

#include <warpwright/model/testing.h>

#include "layer.h"

namespace {

using own::Layer;
using warpwright::model::Check;
namespace testing = warpwright::model::testing;

// Shapes until every synchronising statement has run: what never runs no schedule finds wrong.
TEST(LinearRelu, RightAndClean) {
  testing::Family family({"LinearRelu", "none"});  // the instance of Slip::none
  family.add("one k_tile", Layer(64, 64, 64).run());
  family.add("the ring goes round", Layer(64, 64, 256).run());
  family.add("tiles that reach past the tensors", Layer(100, 72, 136).run());
  EXPECT_CLEAN_FAMILY(family);
}

// The store to shared memory is generic, the tensor store is not: without the fence TMA
// may read old bytes. On a GPU this goes well nearly always.
TEST(LinearRelu, ForgottenFence) {
  const testing::Outcome outcome = Layer(64, 64, 64).run<own::Slip::no_fence>();
  EXPECT_ONLY_FINDINGS(outcome, Check::missing_proxy_fence);
  EXPECT_EQ(outcome.count(Check::missing_proxy_fence), static_cast<int>(outcome.runs.size()));
  EXPECT_NE(outcome.text().find("call fence_proxy_async_shared()"), std::string::npos);
}

// The stage is handed back while the tensor core still reads it; the next load overwrites it.
TEST(LinearRelu, StageReleasedBeforeItIsRead) {
  EXPECT_ONLY_FINDINGS(Layer(64, 64, 256).run<own::Slip::early_release>(), Check::in_flight_access);
  // With fewer k_tiles than stages nothing is overwritten, and nothing is wrong.
  EXPECT_CLEAN(Layer(64, 64, 192).run<own::Slip::early_release>());
}

// Dependent launches start while the grid before them runs. On a GPU this goes well where that one
// is done early enough; by itself the kernel has nobody to wait for.
TEST(LinearRelu, StartsBeforeItsInputIsThere) {
  EXPECT_CLEAN(Layer(100, 72, 136).run(3));
  const testing::Outcome outcome = Layer(64, 64, 128).run<own::Slip::no_prerequisites>(2);
  EXPECT_FINDING(outcome, Check::before_prerequisites);
  EXPECT_EQ(outcome.count(Check::before_prerequisites), static_cast<int>(outcome.runs.size()));
  EXPECT_CLEAN(Layer(64, 64, 128).run<own::Slip::no_prerequisites>());
}

}  // namespace
