// The memory that launches share: what is refused, and what is known of its flags.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>

#include "tests/kernel/variants.h"
#include "warpwright/model.h"

namespace warpwright {
namespace {

alignas(256) std::array<std::byte, 1024> room{};

// A plan that works in `bytes`, of which the first `flags` are flags.
Plan working_in(std::int64_t bytes, std::int64_t flags = 0) {
  Plan plan;
  plan.ctas = 1;
  plan.workspace_bytes = bytes;
  plan.flag_bytes = flags;
  return plan;
}

TEST(WorkspaceTest, TooSmallMissingOrMisaligned) {
  EXPECT_FALSE(Workspace().fault(Plan{}));
  const Plan plan = working_in(768);
  EXPECT_FALSE(Workspace(room.data(), 768).fault(plan));
  const auto says = [&](const Workspace& workspace, const std::string& part) {
    const auto refused = workspace.fault(plan);
    ASSERT_TRUE(refused) << part;
    EXPECT_EQ(refused->code, RefusalCode::bad_workspace);
    EXPECT_NE(refused->reason.find(part), std::string::npos) << refused->reason;
  };
  says(Workspace(), "no workspace; the plan needs 768 bytes");
  says(Workspace(room.data(), 767), "has 767 bytes; the plan needs 768 bytes");
  says(Workspace(room.data() + 16, 768), "16 bytes behind a multiple of 256");
}

TEST(WorkspaceTest, KnowsItsFlags) {
  using Flags = Workspace::Flags;
  const Plan few = working_in(1024, 128);
  const Plan more = working_in(1024, 256);
  Workspace workspace(room.data(), 1024);
  EXPECT_EQ(workspace.note_launch(few, false), Flags::clear_first);
  EXPECT_EQ(workspace.note_launch(few, false), Flags::are_clear);
  EXPECT_EQ(workspace.note_launch(more, false), Flags::clear_first);
  EXPECT_EQ(workspace.note_launch(few, false), Flags::are_clear);
  // It wrote over the other flags of `more`.
  EXPECT_EQ(workspace.note_launch(more, false), Flags::clear_first);
  workspace.forget();
  EXPECT_EQ(workspace.note_launch(more, false), Flags::clear_first);
}

TEST(WorkspaceTest, CapturedLaunchesRelyOnFlagsThatWereClear) {
  using Flags = Workspace::Flags;
  const Plan few = working_in(1024, 128);
  const Plan more = working_in(1024, 256);
  Workspace workspace(room.data(), 1024);
  workspace.note_cleared(more);
  EXPECT_EQ(workspace.note_launch(more, true), Flags::are_clear);
  EXPECT_FALSE(workspace.fault(more));
  const auto refused = workspace.fault(few);
  ASSERT_TRUE(refused);
  EXPECT_NE(refused->reason.find("relies on the first 256 bytes"), std::string::npos)
      << refused->reason;
  // One that clears its own flags relies on nothing, but may write at any time.
  Workspace other(room.data(), 1024);
  EXPECT_EQ(other.note_launch(few, true), Flags::clear_first);
  EXPECT_FALSE(other.fault(more));
  EXPECT_EQ(other.note_launch(more, false), Flags::clear_first);
  EXPECT_EQ(other.note_launch(more, false), Flags::clear_first);
}

// On the model: memory of any content, twice, and a launch that lacks it.
TEST(WorkspaceTest, ServesLaunches) {
  const auto instance = tests::one_with("K split", [](const kernel::GemmConfig& c) {
    return c.sharing == kernel::Sharing::workspace;
  });
  if (!instance) return;
  tests::Ask ask = tests::extents(instance->config, 1, 3);
  ask.k = 3 * kernel::tile_k(instance->config);
  const tests::Variant variant(*instance, ask);
  const auto made = plan(variant.operands(), model_facts(variant.sms()), variant.choices());
  ASSERT_TRUE(made) << made.reason();
  ASSERT_GT(made->flag_bytes, 0);
  const auto refused = launch(*made, variant.operands(), nullptr);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, RefusalCode::bad_workspace);
  auto workspace = Workspace::make(*made);
  ASSERT_TRUE(workspace) << workspace.reason();
  for (int i = 0; i < 2; ++i) {
    const auto fault = launch(*made, variant.operands(), *workspace, nullptr);
    ASSERT_FALSE(fault) << fault->reason;
    EXPECT_EQ(variant.fault(), "");
  }
  EXPECT_FALSE(prepare(*made, *workspace, nullptr));
  const auto unasked =
      launch(*made, variant.operands(), *workspace, nullptr, {.check_offsets = true});
  ASSERT_TRUE(unasked);
  EXPECT_NE(unasked->reason.find("has no groups"), std::string::npos) << unasked->reason;
}

}  // namespace
}  // namespace warpwright
