// The Blackwell kernel on the model: every configuration, cluster, type and edge against float64.
#include <gtest/gtest.h>

#include <cstdio>
#include <tuple>
#include <vector>

#include "tests/campaign.h"
#include "tests/kernel/gemm_case.h"

namespace warpwright {
namespace {

using kernel::TileSource;

constexpr atom::ClusterShape one_sm_clusters[] = {{1, 1}, {2, 1}, {2, 2}, {4, 2}, {4, 4}};
constexpr atom::ClusterShape pair_clusters[] = {{2, 1}, {2, 2}, {4, 2}, {4, 4}};
constexpr TileSource sources[] = {TileSource::one_tile, TileSource::static_persistent,
                                  TileSource::launch_control};

Case blackwell(bool pair, TileSource source, atom::ClusterShape cluster) {
  Case c;
  c.architecture = 100;
  c.cluster = cluster;
  c.tile_n = pair ? 256 : 128;
  c.choices.pair = pair;
  c.choices.tiles = source;
  return c;
}

// Every form of the kernel with every cluster it is launched with.
std::vector<Case> all_forms() {
  std::vector<Case> forms;
  for (const TileSource source : sources) {
    for (const auto cluster : one_sm_clusters) forms.push_back(blackwell(false, source, cluster));
    for (const auto cluster : pair_clusters) forms.push_back(blackwell(true, source, cluster));
  }
  return forms;
}

TEST(BlackwellOnTheModel, EveryFormInEveryMode) {
  for (Case c : sampled(all_forms(), 3)) {
    c.m = 300;
    c.n = 270;
    c.k = 200;
    c.d_pad = 2;
    const auto first = expect_right(c, mode(model::Mode::eager));
    // However things fall, the bytes are the same.
    if (campaign()) {
      EXPECT_EQ(expect_right(c, mode(model::Mode::latest)), first);
    }
    EXPECT_EQ(expect_right(c, mode(model::Mode::random, 11)), first);
  }
}

TEST(BlackwellOnTheModel, EveryTypeInEveryForm) {
  constexpr DType operands[] = {DType::bf16, DType::f16, DType::e4m3, DType::e5m2};
  for (const bool pair : {false, true}) {
    for (const DType operand : operands) {
      for (const DType result : {DType::bf16, DType::f16, DType::f32}) {
        Case c = blackwell(pair, TileSource::launch_control, {2, 1});
        c.m = 130;
        c.n = 136;
        c.k = 144;
        c.operand = operand;
        c.result = result;
        c.beta = 0.5F;
        expect_right(c, mode(model::Mode::random, 7));
      }
    }
    Case mixed = blackwell(pair, TileSource::static_persistent, {2, 2});
    mixed.m = 130;
    mixed.n = 140;
    mixed.k = 272;
    mixed.operand = DType::e4m3;
    mixed.operand_b = DType::e5m2;
    expect_right(mixed, mode(model::Mode::latest));
  }
}

// What comes with the epilogue that both families share, and batches: ragged and where the copy
// engine reaches D and C.
TEST(BlackwellOnTheModel, ScalesBiasesActivationsAndBatches) {
  constexpr Activation activations[] = {Activation::none, Activation::relu, Activation::gelu,
                                        Activation::silu};
  constexpr Scaling scalings[] = {Scaling::none, Scaling::tensor, Scaling::row_column};
  constexpr Bias biases[] = {Bias::none, Bias::rows, Bias::columns};
  constexpr DType results[] = {DType::bf16, DType::f16, DType::f32};
  for (int i = 0; i < 24; ++i) {
    Case c = blackwell(i % 2 == 1, sources[i % 3], {2, 1});
    c.scaling = scalings[i % 3];
    c.bias = biases[(i / 3 + i) % 3];
    c.activation = activations[i % 4];
    c.operand = c.scaling != Scaling::none || i % 4 == 0 ? DType::e4m3 : DType::bf16;
    c.result = results[(i / 2) % 3];
    c.alpha = 0.25F;
    c.beta = i % 5 == 0 ? 0.5F : 0.0F;
    c.batch = 1 + i % 3;
    c.m = 140 + i;
    c.n = i % 2 == 0 ? 264 : 133;
    c.k = i == 9 ? 0 : 80 + 8 * i;
    expect_right(c, mode(i % 2 == 0 ? model::Mode::random : model::Mode::latest,
                         static_cast<std::uint64_t>(i)));
  }
}

// A batch stride of 0: one matrix of A, B and C for all of D, by tiles that go round more than
// once.
TEST(BlackwellOnTheModel, BatchesThatShareTheirMatrices) {
  for (int i = 0; i < 6; ++i) {
    Case c = blackwell(i % 2 == 1, sources[i % 3], {2, 1});
    c.shared = true;
    c.batch = 3;
    c.m = 140;
    c.n = i < 3 ? 264 : 133;
    c.k = 96;
    c.beta = 0.5F;
    c.bias = Bias::columns;
    c.operand = i % 2 == 0 ? DType::e4m3 : DType::bf16;
    if (i % 2 == 0) c.scaling = Scaling::row_column;
    expect_right(c, mode(model::Mode::latest));
  }
}

TEST(BlackwellOnTheModel, Degenerate) {
  for (const TileSource source : sources) {
    for (const bool pair : {false, true}) {
      Case c = blackwell(pair, source, {2, 1});
      for (const auto& [m, n, k] : {std::tuple{1, 1, 1}, {1, 300, 8}, {300, 1, 8}, {5, 7, 0}}) {
        for (const float beta : {0.0F, 2.0F}) {
          c.m = m;
          c.n = n;
          c.k = k;
          c.beta = beta;
          expect_right(c, mode(model::Mode::random, 3));
        }
      }
      // alpha 0 reads neither A nor B; beta 0 does not read what D holds (NaN).
      c.m = 140;
      c.n = 40;
      c.k = 64;
      c.alpha = 0;
      c.beta = 0;
      expect_right(c, mode(model::Mode::latest));
      c.beta = 1.0F;
      expect_right(c, mode(model::Mode::latest));
    }
  }
}

// Persistent clusters that take many tiles each, on as few SMs as hold one cluster; the ring of
// stages goes round in every tile.
TEST(BlackwellOnTheModel, ManyTilesACluster) {
  for (const TileSource source : {TileSource::static_persistent, TileSource::launch_control}) {
    for (const bool pair : {false, true}) {
      Case c = blackwell(pair, source, {2, 1});
      c.sms = 2;
      c.m = 500;
      c.n = 600;
      c.k = 200;
      c.d_pad = 4;
      const auto first = expect_right(c, mode(model::Mode::latest));
      EXPECT_EQ(expect_right(c, mode(model::Mode::random, 5)), first);
    }
  }
}

// Another grid holds an SM: launch control's clusters do without it, and every tile is computed
// once.
TEST(BlackwellOnTheModel, AnOccupiedSm) {
  for (const TileSource source : sources) {
    Case c = blackwell(false, source, {2, 1});
    c.sms = 8;
    c.m = 600;
    c.n = 600;
    c.k = 64;
    device::ModelOptions how = mode(model::Mode::timed);
    how.occupied_sm = 2;
    expect_right(c, how);
  }
}

}  // namespace
}  // namespace warpwright
