// The problems of the other tests: what is copied to a GPU is all that a launch touches.
#include "tests/kernel/problem.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace warpwright::tests {
namespace {

// In copies of a problem's memory nothing of its operands lies anywhere else.
void expect_all_copied(const Instance& instance, Ask ask) {
  ask.bias = Bias::columns;
  if (!instance.config.gated && !instance.config.quantises) ask.beta = 0.5F;
  const Problem problem(instance, ask);
  SCOPED_TRACE(problem.text());
  std::vector<std::vector<std::byte>> memory;
  std::vector<void*> copies;
  for (int i = 0; i < Problem::pieces; ++i) {
    const auto bytes = static_cast<std::size_t>(problem.piece(i).bytes);
    memory.emplace_back(bytes);
    copies.push_back(bytes > 0 ? memory.back().data() : nullptr);
  }
  const auto is_copied = [&](const void* data) {
    const auto* const at = static_cast<const std::byte*>(data);
    for (const std::vector<std::byte>& each : memory) {
      if (!each.empty() && at >= each.data() && at < each.data() + each.size()) return true;
    }
    return false;
  };
  const GemmOperands own = problem.operands();
  const GemmOperands there = problem.operands(copies);
  for_each_field_of(
      [&](const char* name, const auto& here, const auto& copied) {
        if constexpr (std::is_same_v<decltype(here), const MatrixView&>) {
          if (here.data == nullptr) return;
          EXPECT_TRUE(is_copied(copied.data)) << name;
        }
      },
      own, there);
  if (!there.groups) return;
  EXPECT_TRUE(is_copied(there.groups->offsets));
  if (there.is_by_index()) {
    EXPECT_TRUE(is_copied(there.groups->rows));
  }
}

TEST(Problems, CopiesHoldAllThatALaunchTouches) {
  for (const Instance& i : instances()) {
    expect_all_copied(i, {.m = 20, .n = 256, .k = 128, .seed = 5});
  }
  for (const Instance& i : grouped_instances()) {
    expect_all_copied(i, grouped_ask(i, {0, 3, 3, 20}, 256, 128));
  }
}

}  // namespace
}  // namespace warpwright::tests
