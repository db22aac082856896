// The main loop of kernels with packed int4 weights: a warpgroup converts the codes of 64 rows to
// e4m3 in registers, multiplies them by the tokens in shared memory, and brings the scales of the
// groups in after the products, which are exact.
//
// Every group's wgmmas are waited for before the next codes are written: while one warpgroup
// converts or adds, others multiply. (With a second accumulator in flight over the back edge of the
// loop ptxas serialises all wgmmas, C7514.)
#pragma once

#include "warpwright/isa/trace.h"
#include "warpwright/isa/warp.h"
#include "warpwright/isa/wgmma.h"
#include "warpwright/kernel/hopper/mainloop.h"
#include "warpwright/kernel/hopper/packed.h"

namespace warpwright::kernel {

template <class Tag, class Loads>
class PackedMainloop {
 public:
  static constexpr GemmConfig config = Tag::config;
  static constexpr int values = config.tile_n / 2;  // a thread's sums
  using Accumulator = isa::Fragment<float, values>;

  WW_DEVICE PackedMainloop(const Cta<Tag>& cta, int warpgroup, const Loads& /*loads*/)
      : ring_(cta.ring), packed_(cta.p.operands.packed), thread_(isa::thread_index() % 128) {
    constexpr SmemMap smem = smem_map(Tag::config);
    scales_ = cta.base + smem.scales;
    a_ = cta.base + smem.a + warpgroup * most_packed_tile;
    b_ = isa::uniform(
        atom::low_word(atom::encode(atom::descriptor(tile_b(Tag::config), cta.base + smem.b))));
  }

  /// Where the next tile's first K block lies in the ring.
  pipeline::PipelineState state;

  /// The K blocks of `work` into `total`, each group's products times its scales. `leave` is called
  /// when the last group has been issued.
  template <class Leave>
  WW_DEVICE void sum(const tile::Work& work, Accumulator (&accumulator)[1],
                     float (&total)[1][values], const Leave& leave) {
    WW_UNROLL for (int v = 0; v < values; ++v) total[0][v] = 0;
    by_group([&](auto steps) {
      run<decltype(steps)::value>(work, accumulator, leave, [&](const Scales& s) {
        add_scaled(s, accumulator[0], total[0]);
      });
    });
  }

  /// The same in the tensor core's accumulator: before a group's products are added, the sums are
  /// divided by its scales, in which they then count, and multiplied by those of the group before.
  template <class Leave>
  WW_DEVICE void sum(const tile::Work& work, Accumulator (&accumulator)[1], const Leave& leave) {
    by_group([&](auto steps) {
      run<decltype(steps)::value>(work, accumulator, leave, [](const Scales&) {});
    });
    scale(accumulator[0], last_);
  }

 private:
  static constexpr bool chained = config.sums == Sums::tensor_core;
  static constexpr bool token_blocks = config.sums == Sums::block_scaled;

  template <int N>
  struct Steps {
    static constexpr int value = N;
  };
  /// Calls `body` with the k32 steps of a group, which only the launch knows; with one step for all
  /// but the largest groups where sums are many, whose code would be long.
  template <class Body>
  WW_DEVICE void by_group(const Body& body) const {
    if (packed_.group == 128) return body(Steps<4>{});
    if constexpr (!each_step) {
      if (packed_.group == 64) return body(Steps<2>{});
    }
    body(Steps<1>{});
  }
  static constexpr bool each_step = values > 64;

  /// What a group's sums are multiplied by.
  struct Scales {
    isa::Pair row;                                  // of the thread's two rows
    float token[token_blocks ? values / 4 : 1][2];  // of the columns of its sums, a pair of each
  };

  /// All K blocks of `work`; of each group of `steps` k32 steps `done` gets the scales once its
  /// products are there.
  template <int steps, class Leave, class Done>
  WW_DEVICE void run(const tile::Work& work, Accumulator (&accumulator)[1], const Leave& leave,
                     const Done& done) {
    const int blocks = work.end - work.first;
    bool landed = false;
    for (int block = 0; block < blocks; ++block) {
      const isa::Mark mark("k block %", block);
      ring_.wait(state, landed);
      const isa::SharedAddress tile = a_ + state.stage * stage_a_bytes(Tag::config);
      const std::uint32_t b =
          isa::uniform(atom::advance(b_, state.stage * atom::tile_bytes(tile_b(Tag::config))));
      const LaneCodes codes = load_codes(tile, thread_);
      Scales scales{};
      if constexpr (token_blocks) read_token_scales(state.stage, scales);
      WW_UNROLL for (int first = 0; first < packed_steps; first += steps) {
        const bool shared = each_step && steps == 1 && packed_.group == 64;  // by two steps
        const int group = shared ? first / 2 : first / steps;
        scales.row = load_scales(tile + packed::scales_begin() +
                                     static_cast<isa::SharedAddress>(group * packed_.slice_bytes),
                                 thread_, packed_.scale);
        const bool begins = block == 0 && first == 0;
        if constexpr (chained) rescale(accumulator[0], scales.row, begins);
        isa::Fragment<std::uint32_t, 4> a[steps];
        WW_UNROLL for (int s = 0; s < steps; ++s) {
          convert_codes(codes.word[first + s], packed_.carries, a[s]);
        }
        multiply(accumulator, a, b, first, chained && !begins);
        if (first + steps < packed_steps) {
          isa::wgmma_wait<0>(accumulator, a);
        } else {
          const pipeline::PipelineState current = state;
          state.advance(Tag::config.stages);
          landed = block + 1 < blocks && ring_.try_wait(state);
          if (block + 1 == blocks) leave();
          isa::wgmma_wait<0>(accumulator, a);
          // All lanes have read the stage: one of them arrives for the others.
          isa::sync_warp();
          ring_.release(current);
        }
        done(scales);
      }
    }
  }

  /// The wgmmas of a group's steps, from step `first` of the K block on.
  template <int steps>
  WW_DEVICE static void multiply(Accumulator (&accumulator)[1],
                                 isa::Fragment<std::uint32_t, 4> (&a)[steps], std::uint32_t b,
                                 int first, bool accumulate) {
    constexpr GemmConfig cfg = Tag::config;
    constexpr atom::OperandTile tile_of_b = tile_b(cfg);
    constexpr std::uint32_t b_high = atom::high_word(encode(atom::descriptor(tile_of_b, 0)));
    isa::wgmma_fence(accumulator, a);
    WW_UNROLL for (int s = 0; s < steps; ++s) {
      isa::wgmma_registers<DType::e4m3, cfg.tile_n>(
          accumulator[0], a[s],
          atom::join_words(atom::advance(b, atom::step_offset<tile_of_b>(first + s)), b_high),
          accumulate || s > 0);
    }
    isa::wgmma_commit();
  }

  WW_DEVICE void read_token_scales(int stage, Scales& s) const {
    const isa::SharedView<isa::Words<2>> at{scales_ + stage * scale_bytes(Tag::config)};
    WW_UNROLL for (int j = 0; j < values / 4; ++j) {
      const isa::Words<2> pair = at.load(atom::c_col(thread_, 4 * j) / 2);
      s.token[j][0] = isa::float_of(pair.word[0]);
      s.token[j][1] = isa::float_of(pair.word[1]);
    }
  }

  WW_DEVICE static void add_scaled(const Scales& s, Accumulator& accumulator,
                                   float (&total)[values]) {
    WW_UNROLL for (int v = 0; v < values; ++v) {
      const float row = v % 4 < 2 ? s.row.low : s.row.high;
      total[v] +=
          accumulator[v] * (token_blocks ? row * s.token[token_blocks ? v / 4 : 0][v % 2] : row);
    }
  }

  /// Chained sums: from the scales of the group before to those of the next one, which are not 0 (a
  /// group of zeros is packed with scales of 1).
  WW_DEVICE void rescale(Accumulator& accumulator, isa::Pair next, bool begins) {
    if (!begins) scale(accumulator, {last_.low / next.low, last_.high / next.high});
    last_ = next;
  }

  WW_DEVICE static void scale(Accumulator& accumulator, isa::Pair by) {
    WW_UNROLL for (int v = 0; v < values; ++v) accumulator[v] *= v % 4 < 2 ? by.low : by.high;
  }

  const MainloopPipeline<Tag>& ring_;
  const PackedParams& packed_;
  int thread_;  // of the warpgroup
  isa::SharedAddress scales_ = 0;
  isa::SharedAddress a_ = 0;  // this warpgroup's tile in stage 0
  std::uint32_t b_ = 0;       // low word of the descriptor of B in stage 0
  isa::Pair last_ = {1, 1};   // chained: the scales that the sums still lack
};

/// The main loop of a configuration.
template <class Tag, class Loads>
using MainloopOf =
    std::conditional_t<packed_a(Tag::config), PackedMainloop<Tag, Loads>, Mainloop<Tag, Loads>>;

}  // namespace warpwright::kernel
