// The main loop of kernels with A from registers (wgmma's RS form): a warpgroup decodes the packed
// weights of its rows in registers (int4 to e4m3, e2m1 to e5m2, or both to the 16 bits of the
// tokens), and multiplies them by the tokens in shared memory.
//
// The loop owns the ring, its waits, the groups of wgmmas and the release of stages. What codes
// become and where their scales come in is a decoder's (kernel/hopper/decode/). For rows with codes
// q[g] and scales s[g] in the groups g of K, and tokens x (`acc` is what the tensor core sums):
//
//   exact     for g: total += s[g] * (q[g] x)                  products are exact; in registers
//             ... += s[g] * t[k_tile] * (q[g] x)               t: k_tile scales of the tokens
//             q[g] - z[g] for q[g]                             z: zero points
//   chained   for g: acc = acc * s[g - 1] / s[g] + q[g] x      total = acc * s[last]
//   folded    for g: acc = acc * u / v + e4m3(q[g] s[g] / v) x total = acc * v; then u = v
//             v = max(u, 2^-13 times the powers of two of the k_tile's scales)
//   table     folded, where e4m3(...) is looked up for each magnitude of q
//   straight  acc += (q[g] s[g] / v) x                         total = acc * v: folded e2m1
//             weights, exactly in e5m2, bf16 or f16, and int4 ones rounded to bf16; v: the row's
//             unit, the same from its first k_tile on
//
// Every group of wgmmas is waited for before the next codes are converted, so what overlaps is one
// warpgroup's decoding with another's products. Where stages have several k_tiles (run_by_two) two
// groups are in flight, in two accumulators, but none over the back edge of the loop: there ptxas
// would serialise all wgmmas (C7514). With straight sums nothing but wgmmas touches the
// accumulator: there two groups are in flight all along (run_straight).
//
// A decoder is a view of the weights and of the sums. It has
//   k_blocks                    k_blocks of 32 that are one group of wgmmas
//   accumulates                 whether they add to the group before, or overwrite its sums
//   KTile                       what a thread has read of a k_tile
//   begin(k, tile, stage, ...)  reads it, from a packed tile of a stage
//   produce(k, first, ..., a)   a group's A, from k_block `first` of the k_tile on
//   promote(k, pass, acc)       takes the group's products with the tokens of a pass
//   holds_stage                 whether that reads the stage, which is released behind it then
// No wgmma is in flight when `run` calls these, so they may touch the accumulators. KTile is no
// part of the decoder: arrays beside pointers would not become registers.
#pragma once

#include "warpwright/isa/call.h"
#include "warpwright/isa/trace.h"
#include "warpwright/isa/warp.h"
#include "warpwright/isa/wgmma.h"
#include "warpwright/kernel/hopper/decode/exact.h"
#include "warpwright/kernel/hopper/decode/int4_wide.h"
#include "warpwright/kernel/hopper/decode/straight.h"
#include "warpwright/kernel/hopper/decode/table.h"
#include "warpwright/kernel/hopper/decode/zero_points.h"
#include "warpwright/kernel/hopper/mainloop.h"

namespace warpwright::kernel {

template <class Tag>
class RsMainloop {
 public:
  static constexpr GemmConfig config = Tag::config;
  static constexpr int atoms = row_atoms(config);
  static constexpr int values = config.tile_n / 2;  // a thread's sums of one atom
  static constexpr int passes = kernel::passes(config);
  static constexpr int columns = config.tile_n / passes;  // multiplied at once
  using Accumulator = isa::Fragment<float, columns / 2>;

  WW_DEVICE RsMainloop(const Cta<Tag>& cta, int warpgroup)
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
    weights_.by_group([&](auto k_blocks) {
      const Exact<Weights, decltype(k_blocks)::value> decoder(weights_, token_scales_, total,
                                                              unit_);
      if constexpr (in_flight(config) > 1) {
        run_by_two(work, accumulators, decoder, leave);
      } else {
        run(work, accumulators, decoder, leave);
      }
    });
    if constexpr (Weights::has_units) {
      WW_UNROLL for (int i = 0; i < atoms; ++i) {
        WW_UNROLL for (int v = 0; v < values; ++v) {
          total[i][v] *= v % 4 < 2 ? unit_[i].low : unit_[i].high;
        }
      }
    }
  }

  /// The same in the tensor core's accumulators.
  template <class Leave>
  WW_DEVICE void sum(const tile::Work& work, Accumulator (&accumulator)[atoms],
                     const Leave& leave) {
    weights_.by_group([&](auto k_blocks) WW_INLINE {
      if constexpr (sums_straight(config.operands.as<PackedOperands>())) {
        const Straight<Weights, decltype(k_blocks)::value> decoder(weights_, unit_);
        at_width<Tag>(
            work, [&](auto n) WW_INLINE { run_straight<n>(work, accumulator, decoder, leave); });
      } else {
        const InTensorCore<decltype(k_blocks)::value> decoder(weights_, unit_);
        run(work, accumulator, decoder, leave);
      }
    });
    WW_UNROLL for (int i = 0; i < atoms; ++i) scale_rows(accumulator[i], unit_[i]);
  }

 private:
  /// The k_blocks of 32 bytes of a k_tile.
  static constexpr int k_tile_blocks = packed::kTileK * operand_bits(config) / 256;
  using Weights = std::conditional_t<
      has_float_codes(config), E2m1Weights<Tag>,
      std::conditional_t<
          operand_bits(config) == 16, WideInt4Weights<Tag>,
          std::conditional_t<has_zero_points(config), ZeroPointWeights<Tag>, Int4Weights<Tag>>>>;
  using Factor = std::conditional_t<group_sums(config) == GroupSums::table, CodeTable, F16Factor>;
  template <int k_blocks>
  using InTensorCore =
      std::conditional_t<group_sums(config) == GroupSums::chained, Chained<Weights, k_blocks>,
                         Folded<Weights, k_blocks, Factor>>;

  /// All k_tiles of `work`, one group of wgmmas in flight.
  template <class Decoder, class Leave>
  WW_DEVICE void run(const tile::Work& work, Accumulator (&accumulator)[atoms],
                     const Decoder& decoder, const Leave& leave) {
    constexpr int k_blocks = Decoder::k_blocks;
    const int k_tiles = work.end - work.first;
    bool landed = false;
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      const isa::Mark mark("k_tile %", k_tile);
      ring_.wait(state, landed);
      if constexpr (gathers(Tag::config)) isa::fence_proxy_async_shared();
      const isa::SharedAddress tile = weights(state.stage);
      const std::uint32_t b = tokens(state.stage);
      typename Decoder::KTile held;
      {
        const isa::Mark copying("copy codes");
        decoder.begin(held, tile, state.stage, k_tile == 0, accumulator);
      }
      WW_UNROLL for (int first = 0; first < k_tile_blocks; first += k_blocks) {
        const bool is_first = k_tile == 0 && first == 0;
        KBlockA a[atoms * k_blocks];
        {
          const isa::Mark converting("convert k_block %", first);
          decoder.produce(held, first, is_first, accumulator, a);
        }
        WW_UNROLL for (int pass = 0; pass < passes; ++pass) {
          multiply<columns>(accumulator, a, b, first, pass, Decoder::accumulates && !is_first);
          const pipeline::PipelineState current = state;
          const bool is_last = first + k_blocks >= k_tile_blocks && pass + 1 >= passes;
          if (!is_last) {
            isa::wgmma_wait<0>(accumulator, a);
          } else {
            state.advance(Tag::config.stages);
            landed = k_tile + 1 < k_tiles && ring_.try_wait(state);
            if (k_tile + 1 == k_tiles) leave();
            isa::wgmma_wait<0>(accumulator, a);
            if constexpr (!Decoder::holds_stage) release(current);
          }
          {
            const isa::Mark scaling("scale k_block %", first);
            decoder.promote(held, pass, accumulator);
          }
          if constexpr (Decoder::holds_stage) {
            if (is_last) release(current);
          }
        }
      }
    }
  }

  /// The same of stages of several k_tiles: while a group is multiplied, the next one's codes are
  /// converted, and the sums of the one before are added.
  template <class Decoder, class Leave>
  WW_DEVICE void run_by_two(const tile::Work& work, Accumulator (&accumulator)[2][atoms],
                            const Decoder& decoder, const Leave& leave) {
    constexpr int k_blocks = Decoder::k_blocks;
    constexpr int groups = k_atoms(config) * packed_k_blocks / k_blocks;
    constexpr int last = (groups - 1) % 2;
    const int k_tiles = work.end - work.first;
    bool landed = false;
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      const isa::Mark mark("k_tile %", k_tile);
      const std::uint32_t b = tokens(state.stage);
      ring_.wait(state, landed);
      if constexpr (gathers(Tag::config)) isa::fence_proxy_async_shared();
      const isa::SharedAddress stage = weights(state.stage);
      typename Decoder::KTile held;
      KBlockA a[2][atoms * k_blocks];
      WW_UNROLL for (int g = 0; g < groups; ++g) {
        const int k_block = g * k_blocks % packed_k_blocks;
        if (k_block == 0) {
          const int tile = g * k_blocks / packed_k_blocks;
          const isa::Mark copying("copy codes");
          decoder.begin(held, stage + static_cast<isa::SharedAddress>(tile * weights_.tile_bytes()),
                        state.stage, k_tile == 0 && g == 0, accumulator[g % 2]);
        }
        {
          const isa::Mark converting("convert k_block %", g * k_blocks);
          decoder.convert(held, k_block, a[g % 2]);
        }
        multiply<columns>(accumulator[g % 2], a[g % 2], b, g * k_blocks, 0, false);
        decoder.read_scales(held, k_block, g % 2);
        if (g == 0) continue;
        isa::wgmma_wait<1>(accumulator[1 - g % 2], a[1 - g % 2]);
        const isa::Mark scaling("scale k_block %", (g - 1) * k_blocks);
        decoder.promote(held, 0, accumulator[1 - g % 2], 1 - g % 2);
      }
      const pipeline::PipelineState current = state;
      state.advance(Tag::config.stages);
      landed = k_tile + 1 < k_tiles && ring_.try_wait(state);
      if (k_tile + 1 == k_tiles) leave();
      isa::wgmma_wait<0>(accumulator[last], a[last]);
      release(current);
      const isa::Mark scaling("scale k_block %", (groups - 1) * k_blocks);
      decoder.promote(held, 0, accumulator[last], last);
    }
  }

  /// The same where a k_tile is two groups of wgmmas of one accumulator, of which two are in
  /// flight: a group's codes are converted while the one before is multiplied, the next k_tile's
  /// are read while both are, and a stage is released when the next one's first group is on its
  /// way.
  template <int n, class Decoder, class Leave>
  WW_DEVICE void run_straight(const tile::Work& work, Accumulator (&accumulator)[atoms],
                              const Decoder& decoder, const Leave& leave) {
    constexpr int k_blocks = Decoder::k_blocks;
    // Where registers are left, and a CTA by itself on its SM.
    constexpr bool reads_ahead = operand_bits(config) == 8 && config.ctas_per_sm == 1;
    const int k_tiles = work.end - work.first;
    KBlockA a[2][atoms * k_blocks];
    typename Decoder::KTile held;
    pipeline::PipelineState previous = state;
    const auto read = [&](bool is_first) WW_INLINE {
      ring_.wait(state);
      if constexpr (gathers(Tag::config)) isa::fence_proxy_async_shared();
      const isa::Mark copying("copy codes");
      decoder.begin(held, weights(state.stage), is_first);
    };
    const auto step = [&](int k_tile, auto is_first) WW_INLINE {
      constexpr bool first = decltype(is_first)::value > 0;
      const isa::Mark mark("k_tile %", k_tile);
      if constexpr (!first && !reads_ahead) read(false);
      const std::uint32_t b = tokens(state.stage);
      {
        const isa::Mark converting("convert k_block %", 0);
        decoder.produce(held, 0, a[0]);
      }
      multiply<n>(accumulator, a[0], b, 0, 0, !first);
      if constexpr (!first) {
        isa::wgmma_wait<1>(a[1]);  // the k_tile before has been read
        release(previous);
      }
      {
        const isa::Mark converting("convert k_block %", k_blocks);
        decoder.produce(held, k_blocks, a[1]);
      }
      multiply<n>(accumulator, a[1], b, k_blocks, 0, true);
      previous = state;
      state.advance(Tag::config.stages);
      if (reads_ahead && k_tile + 1 < k_tiles) read(false);
      isa::wgmma_wait<1>(a[0]);
    };
    read(true);
    step(0, KBlocks<1>{});
    WW_NO_UNROLL for (int k_tile = 1; k_tile < k_tiles; ++k_tile) step(k_tile, KBlocks<0>{});
    leave();
    isa::wgmma_wait<0>(accumulator, a[1]);
    release(previous);
  }

  /// Gives a stage back that all lanes have read: one of them arrives for the others.
  WW_DEVICE void release(const pipeline::PipelineState& stage) const {
    isa::sync_warp();
    ring_.release(stage);
  }

  /// The wgmmas of a group, from k_block `first` of the stage on, with the tokens of a pass.
  template <int n, int count>
  WW_DEVICE static void multiply(Accumulator (&accumulator)[atoms], KBlockA (&a)[count],
                                 std::uint32_t b, int first, int pass, bool accumulate,
                                 isa::Site site = isa::Site::here()) {
    const isa::Call call(site);
    const isa::Mark mark("k_block %", first);
    constexpr GemmConfig cfg = Tag::config;
    constexpr atom::OperandTile tile_of_b = tile_b(cfg);
    constexpr std::uint32_t b_high = atom::high_word(encode(atom::descriptor(tile_of_b, 0)));
    constexpr int k_blocks = count / atoms;
    const int from = atom::tile_offset<tile_of_b>(pass * columns, 0);
    isa::wgmma_fence(accumulator, a);
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int s = 0; s < k_blocks; ++s) {
        isa::wgmma_registers<operand_a(cfg).type, operand_b(cfg).type, n>(
            accumulator[i], a[i * k_blocks + s],
            atom::join_words(atom::advance(b, from + atom::k_block_offset<tile_of_b>(first + s)),
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
template <class Tag>
using MainloopOf = std::conditional_t<packed_a(Tag::config), RsMainloop<Tag>, Mainloop<Tag>>;

}  // namespace warpwright::kernel
