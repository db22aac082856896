// A workspace knows which of its flags are clear, so that no launch adds up another one's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/must.h"
#include "warpwright/model.h"
#include "warpwright/numeric/scalar.h"

namespace warpwright {
namespace {

using Flags = Workspace::Flags;

// A plan that keeps flags and more in its workspace.
Plan plan_with(std::int64_t flag_bytes, std::int64_t workspace_bytes) {
  Plan plan;
  plan.device = model_facts();
  plan.ctas = 1;
  plan.flag_bytes = flag_bytes;
  plan.workspace_bytes = workspace_bytes;
  return plan;
}

struct alignas(256) Room {
  std::byte bytes[4096];
};

TEST(Workspace, ClearsOnceForAPlan) {
  Room room;
  Workspace w(room.bytes, sizeof room);
  const Plan plan = plan_with(512, 4096);
  EXPECT_EQ(w.note_launch(plan, false), Flags::clear_first);
  EXPECT_EQ(w.note_launch(plan, false), Flags::are_clear);
}

TEST(Workspace, ClearsWhatAnotherPlanWroteTo) {
  Room room;
  Workspace w(room.bytes, sizeof room);
  const Plan few = plan_with(256, 4096);
  const Plan many = plan_with(1024, 4096);
  EXPECT_EQ(w.note_launch(many, false), Flags::clear_first);
  EXPECT_EQ(w.note_launch(few, false), Flags::are_clear);  // the first of many's
  EXPECT_EQ(w.note_launch(many, false), Flags::clear_first);
  w.forget();
  EXPECT_EQ(w.note_launch(few, false), Flags::clear_first);
}

TEST(Workspace, ACapturedLaunchReliesOnPreparedFlags) {
  Room room;
  Workspace w(room.bytes, sizeof room);
  const Plan plan = plan_with(512, 4096);
  w.note_cleared(plan.flag_bytes);
  EXPECT_EQ(w.note_launch(plan, true), Flags::are_clear);
  EXPECT_EQ(w.note_launch(plan, false), Flags::are_clear);
  EXPECT_FALSE(w.fault(plan));
  // One that would write to the flags a replay relies on.
  const auto refused = must(w.fault(plan_with(256, 4096)));
  EXPECT_EQ(refused->code, RefusalCode::bad_workspace);
  expect_contains(refused->reason, "512 bytes");
  // A plan with more flags may share it, but finds what replays left in them.
  const Plan more = plan_with(1024, 4096);
  EXPECT_FALSE(w.fault(more));
  EXPECT_EQ(w.note_launch(more, false), Flags::clear_first);
  EXPECT_EQ(w.note_launch(more, false), Flags::clear_first);
}

// As a plan whose tiles are dynamic persistent does: behind the counter it touches nothing.
TEST(Workspace, APlanOfFlagsAloneLeavesTheOthersClear) {
  Room room;
  Workspace w(room.bytes, sizeof room);
  const Plan many = plan_with(1024, 4096);
  const Plan counter = plan_with(128, 128);
  EXPECT_EQ(w.note_launch(many, false), Flags::clear_first);
  EXPECT_EQ(w.note_launch(counter, false), Flags::are_clear);
  EXPECT_EQ(w.note_launch(many, false), Flags::are_clear);
  w.forget();
  w.note_cleared(many.flag_bytes);
  EXPECT_EQ(w.note_launch(many, true), Flags::are_clear);
  EXPECT_FALSE(w.fault(counter));  // replays of the other find their flags as they were
  EXPECT_EQ(w.note_launch(counter, true), Flags::are_clear);
  EXPECT_EQ(w.note_launch(many, false), Flags::are_clear);
}

TEST(Workspace, ACapturedLaunchThatClearsNeverMakesFlagsKnown) {
  Room room;
  Workspace w(room.bytes, sizeof room);
  const Plan plan = plan_with(512, 4096);
  EXPECT_EQ(w.note_launch(plan, true), Flags::clear_first);
  EXPECT_EQ(w.note_launch(plan, false), Flags::clear_first);  // the graph has not run
  EXPECT_EQ(w.note_launch(plan, false), Flags::are_clear);
}

// As a mixture of experts does by steps, which keep no flags.
TEST(Workspace, ALaunchThatWritesToAllMakesNoFlagsKnown) {
  Room room;
  Workspace w(room.bytes, sizeof room);
  const Plan plan = plan_with(512, 4096);
  w.note_cleared(plan.flag_bytes);
  EXPECT_EQ(w.note_launch(0, false), Flags::are_clear);
  EXPECT_EQ(w.note_launch(plan, false), Flags::clear_first);
  EXPECT_EQ(w.note_launch(plan, false), Flags::are_clear);
  EXPECT_EQ(w.note_launch(0, true), Flags::are_clear);
  EXPECT_EQ(w.note_launch(plan, false), Flags::clear_first);
  EXPECT_EQ(w.note_launch(plan, false), Flags::clear_first);  // the graph may have run between
}

TEST(Workspace, RefusesWhatIsNoRoom) {
  Room room;
  const Plan plan = plan_with(512, 4096);
  const auto says = [&](const Workspace& w, const char* words) {
    const auto refused = must(w.fault(plan));
    EXPECT_EQ(refused->code, RefusalCode::bad_workspace);
    expect_contains(refused->reason, words);
  };
  says(Workspace(), "there is no workspace; the plan needs 4096 bytes");
  says(Workspace(room.bytes, 4095), "has 4095 bytes; the plan needs 4096 bytes");
  says(Workspace(room.bytes + 16, 4080 + 32), "16 bytes behind a multiple of 256");
  EXPECT_FALSE(Workspace().fault(plan_with(0, 0)));
  EXPECT_FALSE(Workspace(room.bytes, sizeof room).fault(plan));  // just enough
}

// A product of ones that is split along K: every element of D is K.
struct Product {
  explicit Product(std::int64_t size_k, std::int64_t size_m = 64)
      : m(size_m),
        k(size_k),
        a(static_cast<std::size_t>(m * k), numeric::bf16_t(1)),
        b(static_cast<std::size_t>(n * k), numeric::bf16_t(1)),
        d(static_cast<std::size_t>(m * n)) {
    operands.a = matrix(a.data(), DType::bf16, m, k);
    operands.b = matrix(b.data(), DType::bf16, n, k);
    operands.d = matrix(d.data(), DType::bf16, m, n);
  }
  bool is_right() const {
    for (const numeric::bf16_t& value : d) {
      if (float(value) != static_cast<float>(k)) return false;
    }
    return true;
  }

  static constexpr std::int64_t n = 128;
  std::int64_t m;
  std::int64_t k;
  std::vector<numeric::bf16_t> a, b, d;
  GemmOperands operands;
};

TEST(Workspace, PlansMayShareOneInAnyOrder) {
  Product long_k(1024);
  Product short_k(512);
  const PlanChoices split{.kernel = "hopper_bf16_bf16_128x64_sw_sk"};
  PlanChoices two = split;
  two.ctas = 2;
  const auto many = plan(long_k.operands, model_facts(), split);
  const auto few = plan(short_k.operands, model_facts(), two);
  ASSERT_TRUE(many.ok()) << many.reason();
  ASSERT_TRUE(few.ok()) << few.reason();
  ASSERT_GT(many->flag_bytes, 0);
  const std::int64_t bytes = std::max(many->workspace_bytes, few->workspace_bytes);
  // With any content.
  std::vector<std::byte> memory(static_cast<std::size_t>(bytes) + 256, std::byte{0x5a});
  void* start = memory.data();
  std::size_t space = memory.size();
  ASSERT_NE(std::align(256, static_cast<std::size_t>(bytes), start, space), nullptr);
  Workspace workspace(start, bytes);
  for (int i = 0; i < 2; ++i) {
    for (const auto& [product, made] : {std::pair{&long_k, &many}, {&short_k, &few}}) {
      std::memset(product->d.data(), 0xff, product->d.size() * 2);
      must_do(launch(**made, product->operands, workspace, nullptr));
      EXPECT_TRUE(product->is_right());
    }
  }
}

// Tiles that are drawn, with a counter of any content before the first launch, beside a plan with
// other flags; and static persistent tiles of them without one.
TEST(Workspace, TilesAreDrawnFromItWhereThereIsOne) {
  Product tall(128, 1152);  // nine tiles on two SMs
  Product long_k(1024);
  const auto drawn = plan(tall.operands, model_facts(2),
                          {.kernel = "hopper_bf16_bf16_128x128_pp_dyn",
                           .tiles = kernel::TileSource::dynamic_persistent});
  const auto split =
      plan(long_k.operands, model_facts(), {.kernel = "hopper_bf16_bf16_128x64_sw_sk"});
  ASSERT_TRUE(drawn.ok()) << drawn.reason();
  ASSERT_TRUE(split.ok()) << split.reason();
  EXPECT_EQ(drawn->flag_bytes, drawn->workspace_bytes);
  Workspace none;
  EXPECT_FALSE(prepare(*drawn, none, nullptr));
  EXPECT_FALSE(launch(*drawn, tall.operands, nullptr));
  EXPECT_TRUE(tall.is_right());
  std::vector<std::byte> memory(static_cast<std::size_t>(split->workspace_bytes) + 256,
                                std::byte{0x5a});
  void* start = memory.data();
  std::size_t space = memory.size();
  ASSERT_NE(std::align(256, static_cast<std::size_t>(split->workspace_bytes), start, space),
            nullptr);
  Workspace workspace(start, split->workspace_bytes);
  for (int i = 0; i < 3; ++i) {
    for (const auto& [product, made] : {std::pair{&tall, &drawn}, {&long_k, &split}}) {
      std::memset(product->d.data(), 0xff, product->d.size() * 2);
      must_do(launch(**made, product->operands, workspace, nullptr));
      EXPECT_TRUE(product->is_right());
      const auto* flags = static_cast<const std::byte*>(start);
      EXPECT_TRUE(std::all_of(flags, flags + (*made)->flag_bytes,
                              [](std::byte b) { return b == std::byte{}; }));
    }
  }
  // Too small a one is an error, not none.
  Workspace small(start, 64);
  const auto refused = must(launch(*drawn, tall.operands, small, nullptr));
  expect_contains(refused->reason, "has 64 bytes; the plan needs 128 bytes");
}

TEST(Workspace, IsMadeForAPlan) {
  Product product(1024);
  const auto made =
      must(plan(product.operands, model_facts(), {.kernel = "hopper_bf16_bf16_128x64_sw_sk"}));
  auto workspace = must(Workspace::make(*made));
  EXPECT_EQ((*workspace).bytes(), made->workspace_bytes);
  EXPECT_FALSE(prepare(*made, *workspace, nullptr));
  EXPECT_FALSE(launch(*made, product.operands, *workspace, nullptr));
  EXPECT_TRUE(product.is_right());
  const auto refused = must(launch(*made, product.operands, nullptr));
  EXPECT_EQ(refused->code, RefusalCode::bad_workspace);
  const auto unasked =
      must(launch(*made, product.operands, *workspace, nullptr, {.check_offsets = true}));
  expect_contains(unasked->reason, "has no groups");
}

}  // namespace
}  // namespace warpwright
