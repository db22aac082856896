// The main loop of kernels with A from registers (wgmma's RS form): a warpgroup decodes the packed
// weights of its rows to e4m3 in registers, and multiplies them by the tokens in shared memory.
//
// The loop owns the ring, its waits, the groups of wgmmas and the release of stages. What codes
// become and where their scales come in is a decoder's (kernel/hopper/decode/). Of a row with codes
// q[g] and scales s[g] in the groups g of K, and tokens x (`acc` is what the tensor core sums):
//
//   exact     for g: total += s[g] * (q[g] x)                  products are exact; in registers
//             ... += s[g] * t[k_tile] * (q[g] x)               t: block scales of the tokens
//             q[g] - z[g] for q[g]                             z: zero points
//   chained   for g: acc = acc * s[g - 1] / s[g] + q[g] x      total = acc * s[last]
//   folded    for g: acc = acc * u / v + e4m3(q[g] s[g] / v) x total = acc * v; then u = v
//             v = max(u, 2^-13 times the powers of two of the k_tile's scales)
//   table     folded, where e4m3(...) is looked up for each magnitude of q
//
// Every group of wgmmas is waited for before the next codes are converted, so what overlaps is one
// warpgroup's decoding with another's products. Where stages have several k_tiles (run_by_two) two
// groups are in flight, in two accumulators, but none over the back edge of the loop: there ptxas
// would serialise all wgmmas (C7514).
//
// A decoder is a view of the weights and of the sums. It has
//   steps                       k32 steps that are one group of wgmmas
//   accumulates                 whether they add to the group before, or overwrite its sums
//   KTile                       what a thread has read of a k_tile
//   begin(k, tile, stage, ...)  reads it, from a packed tile of a stage
//   produce(k, first, ..., a)   a group's A, from step `first` of the k_tile on
//   promote(k, pass, acc)       takes the group's products with the tokens of a pass
// No wgmma is in flight when `run` calls these, so they may touch the accumulators. KTile is no
// part of the decoder: arrays beside pointers would not become registers.
#pragma once

#include "warpwright/isa/trace.h"
#include "warpwright/isa/warp.h"
#include "warpwright/isa/wgmma.h"
#include "warpwright/kernel/hopper/decode/exact.h"
#include "warpwright/kernel/hopper/decode/table.h"
#include "warpwright/kernel/hopper/decode/zero_points.h"
#include "warpwright/kernel/hopper/mainloop.h"

namespace warpwright::kernel {

template <class Tag, class Loads>
class RsMainloop {
 public:
  static constexpr GemmConfig config = Tag::config;
  static constexpr int atoms = row_atoms(config);
  static constexpr int values = config.tile_n / 2;  // a thread's sums of one atom
  static constexpr int passes = kernel::passes(config);
  using Accumulator = isa::Fragment<float, values / passes>;

  WW_DEVICE RsMainloop(const Cta<Tag>& cta, int warpgroup, const Loads& /*loads*/)
      : ring_(cta.ring), weights_(cta.p.operands.packed, isa::thread_index() % 128) {
    constexpr SmemMap smem = smem_map(Tag::config);
    WW_UNROLL for (int i = 0; i < atoms; ++i) unit_[i] = {1, 1};
    token_scales_ = cta.base + smem.scales;
    a_ = cta.base + smem.a + Weights::tile_of(warpgroup, 0);
    b_ = isa::uniform(
        atom::low_word(atom::encode(atom::descriptor(tile_b(Tag::config), cta.base + smem.b))));
  }

  /// Where the next tile's first k_tile lies in the ring.
  pipeline::PipelineState state;

  /// The k_tiles of `work` into `total`, through one accumulator or, where as many groups are in
  /// flight, two. `leave` is called when the last group has been issued.
  template <class Accumulators, class Leave>
  WW_DEVICE void sum(const tile::Work& work, Accumulators& accumulators,
                     float (&total)[atoms][values], const Leave& leave) {
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int v = 0; v < values; ++v) total[i][v] = 0;
    }
    weights_.by_group([&](auto steps) {
      const Exact<Weights, decltype(steps)::value> decoder(weights_, token_scales_, total);
      if constexpr (in_flight(config) > 1) {
        run_by_two(work, accumulators, decoder, leave);
      } else {
        run(work, accumulators, decoder, leave);
      }
    });
  }

  /// The same in the tensor core's accumulators.
  template <class Leave>
  WW_DEVICE void sum(const tile::Work& work, Accumulator (&accumulator)[atoms],
                     const Leave& leave) {
    weights_.by_group([&](auto steps) {
      const InTensorCore<decltype(steps)::value> decoder(weights_, unit_);
      run(work, accumulator, decoder, leave);
    });
    WW_UNROLL for (int i = 0; i < atoms; ++i) scale_rows(accumulator[i], unit_[i]);
  }

 private:
  using Weights =
      std::conditional_t<has_zero_points(config), ZeroPointWeights<Tag>, Int4Weights<Tag>>;
  using Factor = std::conditional_t<group_sums(config) == GroupSums::table, CodeTable, F16Factor>;
  template <int steps>
  using InTensorCore = std::conditional_t<group_sums(config) == GroupSums::chained,
                                          Chained<Weights, steps>, Folded<Weights, steps, Factor>>;

  /// All k_tiles of `work`, one group of wgmmas in flight.
  template <class Decoder, class Leave>
  WW_DEVICE void run(const tile::Work& work, Accumulator (&accumulator)[atoms],
                     const Decoder& decoder, const Leave& leave) {
    constexpr int steps = Decoder::steps;
    const int blocks = work.end - work.first;
    bool landed = false;
    for (int block = 0; block < blocks; ++block) {
      const isa::Mark mark("k block %", block);
      ring_.wait(state, landed);
      const isa::SharedAddress tile = weights(state.stage);
      const std::uint32_t b = tokens(state.stage);
      typename Decoder::KTile k_tile;
      decoder.begin(k_tile, tile, state.stage, block == 0, accumulator);
      WW_UNROLL for (int first = 0; first < packed_steps; first += steps) {
        const bool is_first = block == 0 && first == 0;
        StepA a[atoms * steps];
        decoder.produce(k_tile, first, is_first, accumulator, a);
        WW_UNROLL for (int pass = 0; pass < passes; ++pass) {
          multiply(accumulator, a, b, first, pass, Decoder::accumulates && !is_first);
          if (first + steps < packed_steps || pass + 1 < passes) {
            isa::wgmma_wait<0>(accumulator, a);
          } else {
            const pipeline::PipelineState current = state;
            state.advance(Tag::config.stages);
            landed = block + 1 < blocks && ring_.try_wait(state);
            if (block + 1 == blocks) leave();
            isa::wgmma_wait<0>(accumulator, a);
            release(current);
          }
          decoder.promote(k_tile, pass, accumulator);
        }
      }
    }
  }

  /// The same of stages of several k_tiles: while a group is multiplied, the next one's codes are
  /// converted, and the sums of the one before are added.
  template <class Decoder, class Leave>
  WW_DEVICE void run_by_two(const tile::Work& work, Accumulator (&accumulator)[2][atoms],
                            const Decoder& decoder, const Leave& leave) {
    constexpr int steps = Decoder::steps;
    constexpr int groups = k_spans(config) * packed_steps / steps;
    constexpr int last = (groups - 1) % 2;
    const int blocks = work.end - work.first;
    bool landed = false;
    for (int block = 0; block < blocks; ++block) {
      const isa::Mark mark("k block %", block);
      const std::uint32_t b = tokens(state.stage);
      ring_.wait(state, landed);
      const isa::SharedAddress stage = weights(state.stage);
      typename Decoder::KTile k_tile;
      StepA a[2][atoms * steps];
      WW_UNROLL for (int g = 0; g < groups; ++g) {
        const int step = g * steps % packed_steps;
        if (step == 0) {
          const int tile = g * steps / packed_steps;
          decoder.begin(k_tile,
                        stage + static_cast<isa::SharedAddress>(tile * weights_.tile_bytes()),
                        state.stage, block == 0 && g == 0, accumulator[g % 2]);
        }
        decoder.convert(k_tile, step, a[g % 2]);
        multiply(accumulator[g % 2], a[g % 2], b, g * steps, 0, false);
        decoder.read_scales(k_tile, step, g % 2);
        if (g == 0) continue;
        isa::wgmma_wait<1>(accumulator[1 - g % 2], a[1 - g % 2]);
        decoder.promote(k_tile, 0, accumulator[1 - g % 2], 1 - g % 2);
      }
      const pipeline::PipelineState current = state;
      state.advance(Tag::config.stages);
      landed = block + 1 < blocks && ring_.try_wait(state);
      if (block + 1 == blocks) leave();
      isa::wgmma_wait<0>(accumulator[last], a[last]);
      release(current);
      decoder.promote(k_tile, 0, accumulator[last], last);
    }
  }

  /// Gives a stage back that all lanes have read: one of them arrives for the others.
  WW_DEVICE void release(const pipeline::PipelineState& stage) const {
    isa::sync_warp();
    ring_.release(stage);
  }

  /// The wgmmas of a group, from step `first` of the stage on, with the tokens of a pass.
  template <int count>
  WW_DEVICE static void multiply(Accumulator (&accumulator)[atoms], StepA (&a)[count],
                                 std::uint32_t b, int first, int pass, bool accumulate) {
    constexpr GemmConfig cfg = Tag::config;
    constexpr atom::OperandTile tile_of_b = tile_b(cfg);
    constexpr std::uint32_t b_high = atom::high_word(encode(atom::descriptor(tile_of_b, 0)));
    constexpr int steps = count / atoms;
    constexpr int columns = cfg.tile_n / passes;
    const int from = atom::tile_offset<tile_of_b>(pass * columns, 0);
    isa::wgmma_fence(accumulator, a);
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int s = 0; s < steps; ++s) {
        isa::wgmma_registers<DType::e4m3, columns>(
            accumulator[i], a[i * steps + s],
            atom::join_words(atom::advance(b, from + atom::step_offset<tile_of_b>(first + s)),
                             b_high),
            accumulate || s > 0);
      }
    }
    isa::wgmma_commit();
  }

  /// Where a stage has this warpgroup's first packed tile, and its tokens, as a descriptor's low
  /// word.
  [[nodiscard]] WW_DEVICE isa::SharedAddress weights(int stage) const {
    return a_ + stage * stage_a_bytes(Tag::config);
  }
  [[nodiscard]] WW_DEVICE std::uint32_t tokens(int stage) const {
    return isa::uniform(atom::advance(b_, stage * atom::tile_bytes(tile_b(Tag::config))));
  }

  const MainloopPipeline<Tag>& ring_;
  Weights weights_;
  isa::SharedAddress token_scales_ = 0;  // of stage 0
  isa::SharedAddress a_ = 0;             // this warpgroup's first packed tile in stage 0
  std::uint32_t b_ = 0;                  // low word of the descriptor of B in stage 0
  isa::Pair unit_[atoms];  // what sums in the tensor core count in, of the thread's two rows
};

/// The main loop of a configuration.
template <class Tag, class Loads>
using MainloopOf =
    std::conditional_t<packed_a(Tag::config), RsMainloop<Tag, Loads>, Mainloop<Tag, Loads>>;

}  // namespace warpwright::kernel
