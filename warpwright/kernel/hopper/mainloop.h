// The main loop of the Hopper kernels: one warpgroup multiplies its rows of a tile, k_tile after
// k_tile, out of the ring of stages.
#pragma once

#include <type_traits>

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/call.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/trace.h"
#include "warpwright/isa/warp.h"
#include "warpwright/isa/wgmma.h"
#include "warpwright/kernel/hopper/cta.h"

namespace warpwright::kernel {

/// May a consumer have no rows in the last tile of a group, while others have some?
constexpr bool may_pass_by(const GemmConfig& c) {
  return is_grouped(c) && !is_swapped(c) && !takes_turns(c) && !shares_columns(c) &&
         c.consumer_warpgroups > 1;
}

/// Calls `loop` with the width of the tile of `work`: N is in the instruction, so that each width
/// has a main loop of its own, around which there is one branch.
template <class Tag, int number = 0, class Loop>
WW_DEVICE void at_width(const tile::Work& work, const Loop& loop) {
  constexpr GemmConfig cfg = Tag::config;
  constexpr tile::TileWidths widths = tile_widths(cfg);
  if constexpr (number + 1 >= tile::count(widths)) {
    loop(std::integral_constant<int, warpgroup_columns(cfg) / passes(cfg)>{});
  } else if (work.width == number) {
    loop(std::integral_constant<int, widths.of[number]>{});
  } else {
    at_width<Tag, number + 1>(work, loop);
  }
}

template <class Tag>
class Mainloop {
 public:
  static constexpr int atoms = row_atoms(Tag::config);
  static constexpr int values = warpgroup_columns(Tag::config) / 2;  // a thread's of one atom
  static constexpr int passes = kernel::passes(Tag::config);
  static constexpr int parts = scale_parts(Tag::config);                   // of a k_tile
  static constexpr int columns = warpgroup_columns(Tag::config) / passes;  // multiplied at once
  using Accumulator = isa::Fragment<float, columns / 2>;

  /// `warpgroup` counts the consumers.
  WW_DEVICE Mainloop(const Cta<Tag>& cta, int warpgroup)
      : ring_(cta.ring), params_(cta.p.scales), warpgroup_(warpgroup) {
    constexpr GemmConfig cfg = Tag::config;
    constexpr SmemMap smem = smem_map(cfg);
    scales_ = cta.base + smem.scales;
    const int row = atom_row(cfg, warpgroup, 0);
    a_ = isa::uniform(atom::low_word(atom::encode(atom::descriptor(
        tile_a(cfg), cta.base + smem.a + atom::tile_offset<tile_a(cfg)>(row, 0)))));
    const int column = first_column(cfg, warpgroup);
    b_ = isa::uniform(atom::low_word(atom::encode(atom::descriptor(
        tile_b(cfg), cta.base + smem.b + atom::tile_offset<tile_b(cfg)>(column, 0)))));
  }

  /// Where the next tile's first k_tile lies in the ring.
  pipeline::PipelineState state;

  /// Does a group end before this warpgroup's rows of its last tile?
  WW_DEVICE bool has_no_token(const tile::Work& work) const {
    constexpr GemmConfig cfg = Tag::config;
    return work.row + atom_row(cfg, warpgroup_, 0) >= work.end_token;
  }

  /// Gives the stages of `work` back as they land: the tensor core is the other warpgroups'. Sums
  /// stay what they are, and no row is there that they would be stored to.
  WW_DEVICE void pass_by(const tile::Work& work) {
    constexpr GemmConfig cfg = Tag::config;
    WW_NO_UNROLL for (int k_tile = work.first; k_tile < work.end; ++k_tile) {
      ring_.wait(state);
      // No wgmma does it: all who wait have seen the stage before one gives it back for them.
      if constexpr (MainloopPipeline<Tag>::shape.wgmma_only) {
        isa::named_barrier_sync(2 + warpgroup_, 128);
      } else {
        isa::sync_warp();
      }
      ring_.release(state);
      state.advance(cfg.stages);
    }
  }

  /// The k_tiles of `work` into the tensor core's accumulators, of a tile of several widths into
  /// their beginning. `leave` is called when the last group of wgmmas has been issued.
  template <class Leave>
  WW_DEVICE void sum(const tile::Work& work, Accumulator (&accumulator)[atoms],
                     const Leave& leave) {
    at_width<Tag>(work, [&](auto n) { sum_columns<n>(work, accumulator, leave); });
  }

  /// The same with the accumulator of every k_tile added to `total`, times the k_tile's scales
  /// where there are some; in passes, those of some of the columns after the others'. While one
  /// warpgroup adds, the other multiplies.
  template <class Leave>
  WW_DEVICE void sum(const tile::Work& work, Accumulator (&accumulator)[atoms],
                     float (&total)[atoms][values], const Leave& leave) {
    at_width<Tag>(work, [&](auto n) { add_columns<n>(work, accumulator, total, leave); });
  }

 private:
  /// Before a tile: what a wider one has left need not be kept for its columns, or ptxas runs out
  /// of registers.
  WW_DEVICE static void forget(Accumulator (&accumulator)[atoms]) {
    if constexpr (has_widths(Tag::config)) isa::forget_registers<0>(accumulator);
  }

  /// One group of wgmmas a k_tile, one in flight while the next is issued. A stage is released when
  /// the group after it has been issued and it is read.
  template <int n, class Leave>
  WW_DEVICE void sum_columns(const tile::Work& work, Accumulator (&accumulator)[atoms],
                             const Leave& leave) {
    constexpr GemmConfig cfg = Tag::config;
    const int k_tiles = work.end - work.first;
    forget(accumulator);
    isa::mark_begin("k_tile %", 0);
    const Operands first = operands(state.stage);
    ring_.wait(state);
    // Tokens by index came as generic writes, which wgmma sees behind a fence of who waited.
    if constexpr (gathers(Tag::config)) isa::fence_proxy_async_shared();
    multiply<n>(accumulator, first, false);
    isa::mark_end();
    pipeline::PipelineState previous = state;
    state.advance(cfg.stages);
    WW_NO_UNROLL for (int k_tile = 1; k_tile < k_tiles; ++k_tile) {
      const isa::Mark mark("k_tile %", k_tile);
      const Operands at = operands(state.stage);
      ring_.wait(state);
      if constexpr (gathers(Tag::config)) isa::fence_proxy_async_shared();
      multiply<n>(accumulator, at, true);
      isa::wgmma_wait<1>();  // the k_tile before has been read
      ring_.release(previous);
      previous = state;
      state.advance(cfg.stages);
    }
    leave();
    isa::wgmma_wait<0>(accumulator);
    ring_.release(previous);
  }

  template <int n, class Leave>
  WW_DEVICE void add_columns(const tile::Work& work, Accumulator (&accumulator)[atoms],
                             float (&total)[atoms][values], const Leave& leave) {
    constexpr GemmConfig cfg = Tag::config;
    const int k_tiles = work.end - work.first;
    forget(accumulator);
    // Copies begin at multiples of four tokens, groups anywhere.
    if constexpr (copies_scales(cfg)) first_scale_ = params_.copies_tokens ? work.row % 4 : 0;
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int v = 0; v < values; ++v) total[i][v] = 0;
    }
    bool landed = false;
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      const isa::Mark mark("k_tile %", k_tile);
      const Operands at = operands(state.stage);
      ring_.wait(state, landed);
      if constexpr (gathers(Tag::config)) isa::fence_proxy_async_shared();
      Scales<n> scales{};
      if constexpr (is_blockwise(cfg)) scales = read_scales<n>(state.stage);
      WW_UNROLL for (int pass = 0; pass + 1 < passes; ++pass) {
        multiply<n>(accumulator, at, false, pass);
        isa::wgmma_wait<0>(accumulator);
        add(scales, accumulator, total, pass);
      }
      WW_UNROLL for (int part = 0; part + 1 < parts; ++part) {
        multiply<n>(accumulator, at, false, 0, part);
        const Scales<n> next = read_scales<n>(state.stage, part + 1);
        isa::wgmma_wait<0>(accumulator);
        add(scales, accumulator, total, 0);
        scales = next;
      }
      multiply<n>(accumulator, at, false, passes - 1, parts - 1);
      const pipeline::PipelineState current = state;
      state.advance(cfg.stages);
      landed = k_tile + 1 < k_tiles && ring_.try_wait(state);
      if (k_tile + 1 == k_tiles) leave();
      isa::wgmma_wait<0>(accumulator);
      if constexpr (is_blockwise(cfg)) {
        release_scales(current);
      } else {
        ring_.release(current);
      }
      add(scales, accumulator, total, passes - 1);
    }
  }

  /// Low words of the descriptors of a stage's operands.
  struct Operands {
    std::uint32_t a;
    std::uint32_t b;
  };
  /// Asked before the wait for the stage: to know them as uniform takes time.
  WW_DEVICE Operands operands(int stage) const {
    constexpr GemmConfig cfg = Tag::config;
    return {isa::uniform(atom::advance(a_, stage * atom::tile_bytes(tile_a(cfg)))),
            isa::uniform(atom::advance(b_, stage * atom::tile_bytes(tile_b(cfg))))};
  }

  /// For a descriptor into any stage of the tile.
  template <atom::OperandTile tile>
  static constexpr std::uint32_t high_word = atom::high_word(encode(atom::descriptor(tile, 0)));

  /// One k_tile: the wgmmas on the operands of the current stage, as one group; unless
  /// `accumulate`, the first overwrites the accumulator. For several passes one, and of several
  /// parts one.
  template <int n>
  WW_DEVICE static void multiply(Accumulator (&accumulator)[atoms], const Operands& at,
                                 bool accumulate, int pass = 0, int part = 0,
                                 isa::Site site = isa::Site::here()) {
    const isa::Call call(site);
    constexpr GemmConfig cfg = Tag::config;
    constexpr atom::OperandTile tile_of_a = tile_a(cfg);
    constexpr atom::OperandTile tile_of_b = tile_b(cfg);
    constexpr Operand of_a = operand_a(cfg);
    constexpr Operand of_b = operand_b(cfg);
    constexpr std::uint32_t a_high = high_word<tile_of_a>;
    constexpr std::uint32_t b_high = high_word<tile_of_b>;
    constexpr int k_blocks = atom::k_block_count(tile_of_a) / parts;
    isa::wgmma_fence(accumulator);
    WW_UNROLL for (int k_block = part * k_blocks; k_block < (part + 1) * k_blocks; ++k_block) {
      WW_UNROLL for (int i = 0; i < atoms; ++i) {
        isa::wgmma<of_a.type, of_b.type, n, of_a.major, of_b.major>(
            accumulator[i],
            atom::join_words(
                atom::advance(at.a, atom::tile_offset<tile_of_a>(atom_row(cfg, 0, i), 0) +
                                        atom::k_block_offset<tile_of_a>(k_block)),
                a_high),
            atom::join_words(atom::advance(at.b, atom::tile_offset<tile_of_b>(pass * columns, 0) +
                                                     atom::k_block_offset<tile_of_b>(k_block)),
                             b_high),
            accumulate || k_block > part * k_blocks);
      }
    }
    isa::wgmma_commit();
  }

  /// Scales of a k_tile, or of a part of it, for this thread: of its tokens, and of the tile's
  /// weights.
  template <int n>
  struct Scales {
    static constexpr GemmConfig cfg = Tag::config;
    // Two tokens of every row of an atom; swapped, those of two columns side by side.
    float token[is_swapped(cfg) ? n / 8 : atoms][2];
    float weight[is_swapped(cfg) ? atoms : (weight_scales(cfg) > 0 ? weight_scales(cfg) : 1)];
  };

  /// Reads the scales of a stage: before its wgmmas are issued, to be there when they are done.
  template <int n>
  WW_DEVICE Scales<n> read_scales(int stage, int part = 0) const {
    constexpr GemmConfig cfg = Tag::config;
    constexpr int weights = copied_scales(cfg);  // where theirs begin
    const isa::SharedAddress scales =
        scales_ + stage * scale_bytes(cfg) + part * part_scales(cfg) * 4;
    const isa::SharedView<float> at{scales};
    const int thread = isa::thread_index() % 128;
    Scales<n> s;
    if constexpr (is_swapped(cfg)) {
      constexpr int each = weights_per_scale(cfg);
      WW_UNROLL for (int i = 0; i < atoms; ++i) {
        // A warp has 16 rows of an atom.
        const int row = atom_row(cfg, warpgroup_, i) + (each < 64 ? thread / each * each / 2 : 0);
        s.weight[i] = at.load(weights + row / each);
      }
      WW_UNROLL for (int j = 0; j < n / 8; ++j) {
        const isa::Words<2> pair =
            isa::SharedView<isa::Words<2>>{scales}.load(atom::c_col(thread, 4 * j) / 2);
        s.token[j][0] = isa::float_of(pair.word[0]);
        s.token[j][1] = isa::float_of(pair.word[1]);
      }
    } else {
      WW_UNROLL for (int i = 0; i < atoms; ++i) {
        const int row = atom_row(cfg, warpgroup_, i) + atom::c_row(thread, 0) + first_scale_;
        s.token[i][0] = at.load(row);
        s.token[i][1] = at.load(row + 8);
      }
      WW_UNROLL for (int u = 0; u < weight_scales(cfg); ++u) s.weight[u] = at.load(weights + u);
    }
    return s;
  }

  /// Adds the accumulator of a pass to `total`, times a scale of its token and one of its weights
  /// where there are some.
  template <int n>
  WW_DEVICE static void add(const Scales<n>& s, Accumulator (&accumulator)[atoms],
                            float (&total)[atoms][values], int pass) {
    constexpr GemmConfig cfg = Tag::config;
    const int first = pass * (columns / 2);
    if constexpr (!is_blockwise(cfg)) {
      WW_UNROLL for (int i = 0; i < atoms; ++i) {
        WW_UNROLL for (int v = 0; v < n / 2; ++v) total[i][first + v] += accumulator[i][v];
      }
    } else if constexpr (is_swapped(cfg)) {
      static_assert(passes == 1);
      WW_UNROLL for (int j = 0; j < n / 8; ++j) {
        WW_UNROLL for (int i = 0; i < atoms; ++i) {
          WW_UNROLL for (int v = 4 * j; v < 4 * j + 4; ++v) {
            total[i][v] += accumulator[i][v] * (s.token[j][v % 2] * s.weight[i]);
          }
        }
      }
    } else {
      constexpr int each = weights_per_scale(cfg) / 2;
      WW_UNROLL for (int i = 0; i < atoms; ++i) {
        WW_UNROLL for (int u = 0; u < weight_scales(cfg) / passes; ++u) {
          const float weight = s.weight[pass * (weight_scales(cfg) / passes) + u];
          const float low = s.token[i][0] * weight;
          const float high = s.token[i][1] * weight;
          WW_UNROLL for (int v = each * u; v < each * (u + 1); ++v) {
            total[i][first + v] += accumulator[i][v] * (v % 4 < 2 ? low : high);
          }
        }
      }
    }
  }

  /// Releases a stage whose scales all lanes have read: one of them arrives for the others.
  WW_DEVICE void release_scales(const pipeline::PipelineState& at) const {
    isa::sync_warp();
    ring_.release(at);
  }

  const MainloopPipeline<Tag>& ring_;
  const ScaleParams& params_;
  isa::SharedAddress scales_ = 0;
  int first_scale_ = 0;
  int warpgroup_;
  std::uint32_t a_ = 0;  // low words of the descriptors of stage 0
  std::uint32_t b_ = 0;
};

}  // namespace warpwright::kernel
