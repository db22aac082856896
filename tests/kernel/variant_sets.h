// The products on which every kernel is tried, on the model and on the GPU.
#pragma once

#include <vector>

#include "tests/kernel/variants.h"

namespace warpwright::tests {

struct VariantCase {
  Instance instance;
  Ask ask;
};

/// Every kernel on two tiles and a tail each way, with more K blocks than its ring has stages.
inline std::vector<VariantCase> plain_cases() {
  std::vector<VariantCase> cases;
  for (const Instance& i : instances()) {
    Ask ask = extents(i.config, 2, 1);
    const int blocks = i.config.stages / 2 + 1;
    ask.k = kernel::tile_k(i.config) * blocks + 128 / kernel::operand_bits(i.config);
    cases.push_back({i, ask});
  }
  return cases;
}

/// Every kernel in clusters of two, on a batch, with the scales it takes; and with scales for all
/// of the batch.
inline std::vector<VariantCase> cluster_cases() {
  std::vector<VariantCase> cases;
  unsigned seed = 10;
  for (const Instance& i : instances()) {
    for (const atom::ClusterShape cluster : {atom::ClusterShape{2, 1}, atom::ClusterShape{1, 2}}) {
      if (!kernel::supports(i.config, cluster)) continue;
      Ask ask = extents(i.config, 1, ++seed);
      if (takes(i.config, cluster)) ask.cluster = cluster;
      ask.batch = 2;
      ask.k = kernel::tile_k(i.config) * 3;
      if (eight_bit(i.config)) {
        ask.scaling = seed % 2 == 0 ? Scaling::tensor : Scaling::row_column;
      }
      cases.push_back({i, ask});
    }
    if (is_block_scaled(i.config)) {
      // By this seed A's scales lie as copies want them, one matrix for all of the batch.
      Ask ask = extents(i.config, 1, 4);
      ask.batch = 3;
      ask.k = kernel::tile_k(i.config) * 3;
      cases.push_back({i, ask});
    }
  }
  return cases;
}

/// Every kernel on batches whose matrices are one, by a batch stride of 0.
inline std::vector<VariantCase> shared_cases() {
  std::vector<VariantCase> cases;
  unsigned seed = 300;
  for (const Instance& i : instances()) {
    // Two tiles of every matrix: a batch that is walked in the wrong steps shows in the second one.
    Ask ask = extents(i.config, 1, ++seed);
    ask.batch = 3;
    ask.k = kernel::tile_k(i.config) * 2;
    ask.shares_a = seed % 3 != 1;
    ask.shares_b = seed % 3 != 2;
    if (!i.config.gated) {
      ask.beta = 0.5F;
      ask.shares_c = true;
      ask.packed_c = seed % 2 == 0;
      ask.padding = seed % 4 < 2 ? 0 : 3;
    }
    ask.bias = seed % 2 == 0 ? Bias::rows : Bias::columns;
    if (eight_bit(i.config)) {
      ask.scaling = seed % 4 < 2 ? Scaling::tensor : Scaling::row_column;
    }
    cases.push_back({i, ask});
  }
  return cases;
}

/// Every kernel where nothing is multiplied, by K or by alpha: D is C's share, or zeros.
inline std::vector<VariantCase> empty_cases() {
  std::vector<VariantCase> cases;
  unsigned seed = 500;
  for (const Instance& i : instances()) {
    if (!takes_whole_tiles(i.config)) continue;  // these take something to share
    for (const bool by_alpha : {false, true}) {
      Ask ask = extents(i.config, 1, ++seed);
      ask.k = by_alpha ? kernel::tile_k(i.config) : 0;
      ask.alpha = by_alpha ? 0.0F : 1.0F;
      if (!i.config.gated && numeric::bits(i.config.result) > 8)
        ask.beta = seed % 4 < 2 ? -0.5F : 0;
      cases.push_back({i, ask});
    }
  }
  return cases;
}

/// Every kernel with C, bias and activation, as far as it takes them, on odd extents.
inline std::vector<VariantCase> epilogue_cases() {
  std::vector<VariantCase> cases;
  unsigned seed = 100;
  for (const Instance& i : instances()) {
    Ask ask = extents(i.config, 2, ++seed);
    ask.m += 3;
    const bool narrow = numeric::bits(i.config.result) == 8;
    if (!i.config.gated) {
      ask.n += 1;
      ask.beta = narrow ? 0.0F : -0.5F;
      ask.activation = all_activations[1 + seed % (std::size(all_activations) - 1)];
    }
    ask.k = kernel::tile_k(i.config) * 2;
    ask.bias = seed % 2 == 0 ? Bias::rows : Bias::columns;
    ask.bias_type = seed % 3 == 0 || i.config.result != DType::bf16 ? DType::f32 : DType::bf16;
    ask.padding = narrow ? 0 : 3;
    cases.push_back({i, ask});
  }
  return cases;
}

}  // namespace warpwright::tests
