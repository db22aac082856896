// What the roofs are held against: operations, bytes moved once, rates.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/must.h"
#include "tests/problem_changes.h"
#include "warpwright/plan/product/known_devices.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright {
namespace {

TEST(Roof, OperationsOfABatch) {
  GemmProblem p = packed_problem(100, 30, 70, DType::bf16, DType::bf16);
  EXPECT_EQ(operations(p), 2.0 * 100 * 30 * 70);
  set_batch(p, 5);
  EXPECT_EQ(operations(p), 5 * 2.0 * 100 * 30 * 70);
}

TEST(Roof, BytesMovedOnce) {
  GemmProblem p = packed_problem(100, 32, 256, DType::bf16, DType::f32);
  const double a = 100 * 256 * 2;
  const double b = 32 * 256 * 2;
  const double d = 100 * 32 * 4;
  EXPECT_EQ(moved_bytes(p), a + b + d);
  read_c(p);
  p.c.dtype = DType::f32;
  EXPECT_EQ(moved_bytes(p), a + b + 2 * d);
  p.alpha = 0;  // alpha 0
  EXPECT_EQ(moved_bytes(p), 2 * d);
}

TEST(Roof, WhatABatchSharesMovesOnce) {
  GemmProblem p = packed_problem(100, 32, 256, DType::f16, DType::f16);
  set_batch(p, 3);
  p.a.batch_stride = 100 * 256;
  p.d.batch_stride = 100 * 32;
  // B's stride is 0.
  EXPECT_EQ(moved_bytes(p), 3 * 100 * 256 * 2 + 32 * 256 * 2 + 3 * 100 * 32 * 2);
}

TEST(Roof, GatedProductsStoreHalf) {
  GemmProblem p = packed_problem(64, 512, 128, DType::bf16, DType::bf16);
  p.epilogue = {Activation::silu, true, Bias::none};
  EXPECT_EQ(moved_bytes(p), (64 * 128 + 512 * 128 + 64 * 256) * 2);
  EXPECT_EQ(operations(p), 2.0 * 64 * 512 * 128);
}

TEST(Roof, ScalesAndBias) {
  GemmProblem p = packed_problem(100, 300, 200, DType::e4m3, DType::bf16);
  const double plain = 100 * 200 + 300 * 200 + 100 * 300 * 2;
  EXPECT_EQ(moved_bytes(p), plain);
  p.scaling = Scaling::row_column;
  EXPECT_EQ(moved_bytes(p), plain + (100 + 300) * 4);
  p.scaling = Scaling::blockwise;  // 100 x 2 of A, 3 x 2 of B
  EXPECT_EQ(moved_bytes(p), plain + (100 * 2 + 3 * 2) * 4);
  p.scaling = Scaling::none;
  p.epilogue.bias = Bias::columns;
  p.bias.dtype = DType::bf16;
  EXPECT_EQ(moved_bytes(p), plain + 300 * 2);
}

TEST(Roof, EightBitOperandsGoTwiceAsFast) {
  const DeviceFacts h200 = *known_facts("h200");
  EXPECT_GT(h200.flops_16bit, 0);
  EXPECT_EQ(tensor_rate(h200, DType::bf16), h200.flops_16bit);
  EXPECT_EQ(tensor_rate(h200, DType::f16), h200.flops_16bit);
  EXPECT_EQ(tensor_rate(h200, DType::e5m2), 2 * h200.flops_16bit);
  EXPECT_EQ(tensor_rate(model_facts(), DType::e4m3), 0);
  const auto wide = plan(packed_problem(4096, 4096, 4096, DType::bf16, DType::bf16), h200);
  const auto narrow = plan(packed_problem(4096, 4096, 4096, DType::e4m3, DType::bf16), h200);
  ASSERT_TRUE(wide) << wide.reason();
  ASSERT_TRUE(narrow) << narrow.reason();
  EXPECT_DOUBLE_EQ(wide->compute_seconds(), 2 * narrow->compute_seconds());
  EXPECT_LT(narrow->memory_seconds(), wide->memory_seconds());
  const std::string rate = std::to_string(std::lround(2 * h200.flops_16bit / 1e12));
  expect_contains(narrow->explain(), rate + " TFLOP/s");
}

TEST(KnownDevices, AreOneTable) {
  std::string names;
  for (const std::string_view name : known_devices()) {
    const std::optional<DeviceFacts> facts = known_facts(name);
    ASSERT_TRUE(facts) << name;
    EXPECT_EQ(facts->name, name);
    EXPECT_GE(facts->sms, 40);
    EXPECT_GT(facts->shared_bytes_per_cta, 0);
    EXPECT_GT(facts->flops_16bit, 0);
    EXPECT_GT(facts->memory_bytes_per_second, 0);
    names += std::string(name) + " ";
  }
  EXPECT_EQ(names, "v100 t4 a100 rtx3090 l40s h100 h20 h200 b200 b300 rtx5090 ");
  EXPECT_FALSE(known_facts("a10"));
  const DeviceFacts h100 = *known_facts("h100");
  EXPECT_EQ(h100.architecture, 90);
  EXPECT_EQ(h100.sms, 132);
  EXPECT_EQ(h100.l2_bytes, 50 << 20);
  EXPECT_EQ(h100.memory_bytes, 80'000'000'000);
  EXPECT_DOUBLE_EQ(h100.memory_bytes_per_second, 3.02e12);  // as a kernel gets it
  EXPECT_DOUBLE_EQ(h100.flops_16bit, known_facts("h200")->flops_16bit);
}

// A cluster asks L2 once for all of its CTAs: where rows begin within lines, large ones are
// looked at too; elsewhere, and of groups, when the caller asks for them.
TEST(LargeClusters, WhereRowsBeginWithinLines) {
  const auto h200 = must(known_facts("h200"));
  const auto largest = [&](const GemmProblem& p, const PlanChoices& choices = {}) {
    const auto plans = candidates(p, *h200, choices);
    if (!plans) {
      ADD_FAILURE() << plans.reason();
      return 0;
    }
    int most = 0;
    for (const Plan& one : *plans) most = std::max(most, atom::cluster_size(one.cluster));
    return most;
  };
  const DType bf16 = DType::bf16;
  EXPECT_EQ(largest(packed_problem(1490, 1120, 3944, bf16, bf16)), 8);
  EXPECT_EQ(largest(packed_problem(1490, 1120, 3952, bf16, bf16)), 8);
  EXPECT_EQ(largest(packed_problem(1490, 1120, 3968, bf16, bf16)), 2);
  EXPECT_EQ(largest(packed_problem(1490, 1120, 3968, bf16, bf16), {.most_cluster_ctas = 16}), 16);
  EXPECT_EQ(largest(packed_problem(1490, 1120, 3944, bf16, bf16), {.most_cluster_ctas = 1}), 1);
  EXPECT_EQ(largest(packed_problem(1490, 1120, 3984, DType::e4m3, bf16)), 8);
  EXPECT_EQ(largest(packed_grouped_problem(1490, 1120, 3984, 8, DType::e4m3, bf16)), 2);
  // Measured with the others (docs/log/performance.md): 23.4 us in clusters of 8, 33.4 in pairs.
  const auto chosen = must(plan(packed_problem(1490, 1120, 3944, bf16, bf16), *h200));
  EXPECT_GT(atom::cluster_size(chosen->cluster), 2) << chosen->name();
}

TEST(SharedK, AsksForASizeThatThereIs) {
  const GemmProblem p = packed_problem(16, 128, 2048, DType::bf16, DType::bf16);
  const auto said = [&p](int ctas, int sms, int architecture = 90) {
    const auto made = plan(p, model_facts(sms, architecture), {.cluster_k = ctas});
    return made ? "cluster of " + std::to_string(made->cluster_ctas()) : made.reason();
  };
  EXPECT_EQ(said(16, 16), "cluster of 16");
  EXPECT_EQ(said(7, 16), "cluster_k is 7; the nearest legal value is 6");
  EXPECT_EQ(said(0, 16), "cluster_k is 0; the nearest legal value is 1");
  EXPECT_EQ(said(99, 16), "cluster_k is 99; the nearest legal value is 16");
  EXPECT_EQ(said(16, 8),
            "cluster_k is 16, and device model has 8 SMs; the nearest legal value is 8");
  expect_contains(said(2, 8, 100),
                  "has CTAs of a cluster that share a tile along K, which those "
                  "for sm_90 have: leave it out");
}

TEST(Roof, ExplainListsTheBarriersOfParts) {
  const GemmProblem p = packed_problem(64, 4096, 7168, DType::bf16, DType::bf16);
  const auto row_of = [&](int ctas) -> std::optional<pipeline::BarrierRow> {
    const auto made = must(plan(p, *known_facts("h200"), {.cluster_k = ctas}));
    for (const pipeline::BarrierRow& row : made->barriers()) {
      if (std::string(row.name) != "parts") continue;
      expect_contains(made->explain(), "\nparts ");
      // All of a CTA's barriers get what its peers have of its part of the tile.
      const int part = made->tile().m * made->tile().n * 4 / ctas;
      EXPECT_GE(row.copies * row.transaction_bytes, (ctas - 1) * part);
      EXPECT_LE(row.copies * row.transaction_bytes, 2 * (ctas - 1) * part);
      return row;
    }
    return std::nullopt;
  };
  for (const int ctas : {2, 4}) {
    const auto row = must(row_of(ctas), std::to_string(ctas));
    EXPECT_EQ(row->arrivals, 1);
    EXPECT_EQ(row->copies % 4, 0);  // a warp each
    EXPECT_EQ(row->first_wait_parity, 0);
  }
  EXPECT_FALSE(row_of(1));
}

TEST(Roof, ExplainSaysWhereTheSumsAre) {
  const DeviceFacts h200 = *known_facts("h200");
  GemmProblem p = packed_problem(512, 512, 512, DType::e4m3, DType::bf16);
  const auto said = [&] {
    const auto made = plan(p, h200);
    return made ? made->explain() : made.reason();
  };
  expect_contains(said(), "13 bits below the leading one");
  p.accumulation = Accumulation::promoted;
  expect_contains(said(), "float32 registers every 128 of K");
  p.scaling = Scaling::blockwise;
  expect_contains(said(), "times the block's scales");
}

}  // namespace
}  // namespace warpwright
