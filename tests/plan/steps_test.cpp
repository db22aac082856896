// The table of a mixture's steps.
#include "warpwright/plan/moe/steps.h"

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <utility>

#include "tests/must.h"
#include "warpwright/plan/product/known_devices.h"

namespace warpwright {
namespace {

MixtureProblem layer(std::int64_t tokens, DType weights, Scaling scaling) {
  MixtureProblem m;
  m.x = m.d = packed_matrix(DType::bf16, tokens, 512);
  m.topk_ids = packed_matrix(DType::s32, tokens, 2);
  m.topk_weights = packed_matrix(DType::f32, tokens, 2);
  const auto of_experts = [](DType type, std::int64_t rows, std::int64_t columns) {
    PlannedMatrix w = packed_matrix(type, rows, columns);
    w.batch = 8;
    lie_side_by_side(w);
    return w;
  };
  m.w13 = of_experts(weights, 512, 512);
  m.w2 = of_experts(weights, 512, 256);
  m.scaling = scaling;
  if (scaling == Scaling::row_column) {
    m.scale_w13 = m.scale_w2 = of_experts(DType::f32, 512, 1);
  } else if (scaling == Scaling::blockwise) {
    m.scale_w13 = of_experts(DType::f32, 4, 4);
    m.scale_w2 = of_experts(DType::f32, 4, 2);
  }
  return m;
}

// What engines ask of a layer; a layer that cannot have it stays as it is.
void without_a_gate(MixtureProblem& m) {
  m.is_gated = false;
  m.w13.rows /= 2;
  lie_side_by_side(m.w13);
  if (m.scale_w13.rows == 0) return;
  m.scale_w13.rows /= 2;
  lie_side_by_side(m.scale_w13);
}
void with_codes(MixtureProblem& m) {
  if (m.scaling == Scaling::none) return;
  m.x.dtype = DType::e4m3;
  m.scale_x = packed_matrix(DType::f32, m.tokens(), m.scaling == Scaling::blockwise ? 4 : 1);
}
void with_weights_on_the_input(MixtureProblem& m) {
  m.topk_ids.columns = m.topk_weights.columns = 1;
  m.apply_router_weight_on_input = true;
}
void with_slots(MixtureProblem& m) {
  m.combine = Combine::weighted;
  m.d.rows = m.slots();
}
void with_a_shared_output(MixtureProblem& m) {
  m.shared_output = m.d;
}

// In every way of a layer: a kernel's parts are operands, or an earlier row has written them; a
// part in the workspace is written; parts lie apart; there is one row of a step.
TEST(MixtureSteps, WhatARowReadsAnEarlierOneWrites) {
  int plans = 0;
  constexpr void (*forms[])(MixtureProblem&) = {
      [](MixtureProblem&) {},    without_a_gate, with_codes,
      with_weights_on_the_input, with_slots,     with_a_shared_output};
  for (const auto& [weights, scaling] : {std::pair{DType::bf16, Scaling::none},
                                         {DType::e4m3, Scaling::row_column},
                                         {DType::e4m3, Scaling::blockwise}}) {
    for (const std::int64_t tokens : {1, 9, 600}) {
      for (int ways = 0; ways < 32 * static_cast<int>(std::size(forms)); ++ways) {
        MixtureProblem asked = layer(tokens, weights, scaling);
        forms[ways / 32](asked);
        const MixtureChoices choices{.quantises_in_epilogue = (ways & 1) != 0,
                                     .gates_in_epilogue = (ways & 8) == 0,
                                     .by_index = (ways & 2) != 0,
                                     .sort_with_gather = (ways & 4) != 0,
                                     .one_launch = (ways & 16) != 0};
        const auto plan = plan_moe(asked, *known_facts("h200"), choices);
        if (!plan) continue;
        SCOPED_TRACE(plan->explain());
        ++plans;
        PartSet written;
        std::set<MixtureStep> steps;
        for (const StepRow& row : rows_of(*plan)) {
          EXPECT_TRUE(steps.insert(row.step).second);
          for (int i = first_own_part; i < mixture_parts; ++i) {
            const auto part = static_cast<MixturePart>(i);
            EXPECT_TRUE(row.product != nullptr || !row.reads.has(part) || written.has(part));
            EXPECT_TRUE(!row.writes.has(part) || plan->layout[part].bytes > 0 ||
                        plan->parts[part].rows == 0);
          }
          written = written | row.writes;
        }
        std::int64_t end = 0;
        for (int i = 0; i < mixture_parts; ++i) {
          const MixtureBytes& bytes = plan->layout[static_cast<MixturePart>(i)];
          EXPECT_EQ(bytes.bytes > 0, written.has(static_cast<MixturePart>(i)) &&
                                         i >= first_own_part &&
                                         plan->parts[static_cast<MixturePart>(i)].rows > 0);
          if (bytes.bytes == 0) continue;
          EXPECT_GE(bytes.at, end);
          EXPECT_EQ(bytes.at % 256, 0);
          end = bytes.at + bytes.bytes;
        }
        EXPECT_LE(end, plan->workspace_bytes());
      }
    }
  }
  EXPECT_GT(plans, 120);
}

// Where an H200 takes less time for a layer in one launch (docs/log/moe.md). What is asked for by
// name is not overruled.
TEST(MixtureSteps, AreOneLaunchWhereThatPays) {
  const auto launches = [](std::int64_t tokens, std::int64_t inner, const MixtureChoices& choices,
                           const char* device = "h200") {
    MixtureProblem m = layer(tokens, DType::bf16, Scaling::none);
    m.w13.rows = 2 * inner;
    m.w2.columns = m.w2.row_stride = inner;
    lie_side_by_side(m.w13);
    lie_side_by_side(m.w2);
    const auto plan = must(plan_moe(m, *known_facts(device), choices));
    return plan ? plan->launches() : 0;
  };
  EXPECT_EQ(launches(4, 2048, {}), 1);
  EXPECT_EQ(launches(128, 2048, {}), 1);
  EXPECT_GT(launches(129, 2048, {}), 1);  // more than 256 slots
  EXPECT_EQ(launches(4, 768, {}), 1);     // few slots of small experts: by warps
  EXPECT_GT(launches(16, 768, {}), 1);    // more of them
  EXPECT_EQ(launches(4, 768, {.one_launch = true}), 1);
  EXPECT_GT(launches(4, 2048, {.one_launch = false}), 1);
  EXPECT_GT(launches(4, 2048, {.batch_invariant = true}), 1);
  EXPECT_GT(launches(4, 2048, {.by_index = false}), 1);
  EXPECT_GT(launches(4, 2048, {}, "b200"), 1);
}

TEST(MixtureSteps, APlanWithoutTokensNeedsNoWorkspace) {
  const auto plan = must(plan_moe(layer(0, DType::bf16, Scaling::none), *known_facts("h200")));
  EXPECT_TRUE(plan->steps().empty());
  EXPECT_EQ(plan->launches(), 0);
  EXPECT_EQ(plan->workspace_bytes(), 0);
}

}  // namespace
}  // namespace warpwright
