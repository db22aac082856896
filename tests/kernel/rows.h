// The products on which every kernel of a list is tried, on the model and on the GPU.
#pragma once

#include <vector>

#include "tests/kernel/problem.h"

namespace warpwright::tests {

struct Row {
  Instance instance;
  Ask ask;
  model::Mode mode = model::Mode::latest;  ///< on the model
};
using Rows = std::vector<Row>;
using Instances = std::vector<Instance>;

/// Tiles with tails, in the smallest cluster.
inline Ask tiles_of(const Instance& i, int tiles_down, unsigned seed, int blocks) {
  Ask ask = extents(i, tiles_down, seed);
  ask.cluster = smallest_cluster(i);
  ask.k = step_k(i) * blocks;
  return ask;
}

/// Every kernel on two tiles and a tail each way, with more k_tiles than its ring has stages.
inline Rows plain_rows(const Instances& all) {
  Rows rows;
  for (const Instance& i : all) {
    Ask ask = tiles_of(i, 2, 1, i.config.stages / 2 + 1);
    ask.k += 128 / numeric::bits(i.a);
    rows.push_back({i, ask});
  }
  return rows;
}

/// Every kernel in clusters of two, on a batch, with the scales it takes; and with scales for all
/// of the batch.
inline Rows cluster_rows(const Instances& all) {
  Rows rows;
  unsigned seed = 10;
  for (const Instance& i : all) {
    for (const atom::ClusterShape cluster : {atom::ClusterShape{2, 1}, atom::ClusterShape{1, 2}}) {
      if (!kernel::supports(i.config, cluster)) continue;
      Ask ask = tiles_of(i, 1, ++seed, 3);
      if (takes(i, cluster)) ask.cluster = cluster;
      ask.batch = 2;
      if (eight_bit(i)) {
        ask.scaling = seed % 2 == 0 ? Scaling::tensor : Scaling::row_column;
      }
      rows.push_back({i, ask});
    }
    if (is_blockwise(i.config)) {
      // By this seed A's scales lie as copies want them, one matrix for all of the batch.
      Ask ask = tiles_of(i, 1, 4, 3);
      ask.batch = 3;
      rows.push_back({i, ask});
    }
  }
  return rows;
}

/// Every kernel on batches whose matrices are one, by a batch stride of 0.
inline Rows shared_rows(const Instances& all) {
  Rows rows;
  unsigned seed = 300;
  for (const Instance& i : all) {
    // Two tiles of every matrix: a batch that is walked in the wrong steps shows in the second one.
    Ask ask = tiles_of(i, 1, ++seed, 2);
    ask.batch = 3;
    ask.shares_a = seed % 3 != 1;
    ask.shares_b = seed % 3 != 2;
    if (!i.config.gated && numeric::bits(i.facts->result) > 8) {
      ask.beta = 0.5F;
      ask.shares_c = true;
      ask.packed_c = seed % 2 == 0;
      ask.padding = seed % 4 < 2 ? 0 : 3;
    }
    ask.bias = seed % 2 == 0 ? Bias::rows : Bias::columns;
    if (eight_bit(i)) {
      ask.scaling = seed % 4 < 2 ? Scaling::tensor : Scaling::row_column;
    }
    rows.push_back({i, ask});
  }
  return rows;
}

/// Every kernel where nothing is multiplied, by K or by alpha: D is C's share, or zeros.
inline Rows empty_rows(const Instances& all) {
  Rows rows;
  unsigned seed = 500;
  for (const Instance& i : all) {
    if (shares_tiles(i)) continue;
    for (const bool by_alpha : {false, true}) {
      Ask ask = tiles_of(i, 1, ++seed, by_alpha ? 1 : 0);
      ask.alpha = by_alpha ? 0.0F : 1.0F;
      if (!i.config.gated && numeric::bits(i.facts->result) > 8)
        ask.beta = seed % 4 < 2 ? -0.5F : 0;
      rows.push_back({i, ask});
    }
  }
  return rows;
}

/// Every kernel with C, bias and activation, as far as it takes them, on odd extents.
inline Rows epilogue_rows(const Instances& all) {
  Rows rows;
  unsigned seed = 100;
  for (const Instance& i : all) {
    Ask ask = tiles_of(i, 2, ++seed, 2);
    ask.m += 3;
    const bool narrow = numeric::bits(i.facts->result) == 8;
    if (!i.config.gated) {
      ask.n += 1;
      ask.beta = narrow ? 0.0F : -0.5F;
      ask.activation =
          all_activations[1 + seed % std::ranges::count_if(all_activations, stands_alone) - 1];
    }
    ask_gate(i.config, 3 - seed % 4, ask);
    ask.bias = seed % 2 == 0 ? Bias::rows : Bias::columns;
    ask.bias_type = seed % 3 == 0 || i.facts->result != DType::bf16 ? DType::f32 : DType::bf16;
    ask.padding = narrow ? 0 : 3;
    rows.push_back({i, ask});
  }
  return rows;
}

}  // namespace warpwright::tests
