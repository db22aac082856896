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
  static constexpr int atoms = row_atoms(config);
  static constexpr int values = config.tile_n / 2;  // a thread's sums of one atom
  static constexpr int passes = config.passes;
  using Accumulator = isa::Fragment<float, values / passes>;

  WW_DEVICE PackedMainloop(const Cta<Tag>& cta, int warpgroup, const Loads& /*loads*/)
      : ring_(cta.ring), packed_(cta.p.operands.packed), thread_(isa::thread_index() % 128) {
    constexpr SmemMap smem = smem_map(Tag::config);
    scales_ = cta.base + smem.scales;
    a_ = cta.base + smem.a + tile_of(warpgroup, 0);
    b_ = isa::uniform(
        atom::low_word(atom::encode(atom::descriptor(tile_b(Tag::config), cta.base + smem.b))));
    WW_UNROLL for (int i = 0; i < atoms; ++i) last_[i] = {1, 1};
  }

  /// Where the next tile's first K block lies in the ring.
  pipeline::PipelineState state;

  /// The K blocks of `work` into `total`, each group's products times its scales. `leave` is called
  /// when the last group has been issued.
  template <class Leave>
  WW_DEVICE void sum(const tile::Work& work, Accumulator (&accumulator)[atoms],
                     float (&total)[atoms][values], const Leave& leave) {
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int v = 0; v < values; ++v) total[i][v] = 0;
    }
    by_group([&](auto steps) {
      run<decltype(steps)::value>(work, accumulator, leave, [&](const Scales& s, int pass) {
        add(s, pass, accumulator, total);
      });
    });
  }

  /// The same with two sets of accumulators.
  template <class Leave>
  WW_DEVICE void sum(const tile::Work& work, Accumulator (&accumulator)[2][atoms],
                     float (&total)[atoms][values], const Leave& leave) {
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int v = 0; v < values; ++v) total[i][v] = 0;
    }
    by_group(
        [&](auto steps) { run_by_two<decltype(steps)::value>(work, accumulator, total, leave); });
  }

  /// The same in the tensor core's accumulator. Chained: before a group's products are added, the
  /// sums are divided by its scales, in which they then count, and multiplied by those of the group
  /// before. Folded: the codes have been multiplied by their scales, and the sums count in the
  /// power of two of the largest scale so far.
  template <class Leave>
  WW_DEVICE void sum(const tile::Work& work, Accumulator (&accumulator)[atoms],
                     const Leave& leave) {
    const auto nothing = [](const Scales&, int) {};
    if constexpr (tables) {
      by_group([&](auto steps) {
        run<packed_steps, decltype(steps)::value>(work, accumulator, leave, nothing);
      });
    } else if constexpr (folds) {
      run<packed_steps, 1>(work, accumulator, leave, nothing);
    } else {
      by_group([&](auto steps) { run<decltype(steps)::value>(work, accumulator, leave, nothing); });
    }
    WW_UNROLL for (int i = 0; i < atoms; ++i) scale(accumulator[i], last_[i]);
  }

 private:
  static constexpr bool folds = config.folds;
  static constexpr bool tables = config.tables;
  static constexpr bool zero_points = config.zero_points;
  static constexpr bool chained = config.sums == Sums::tensor_core && !folds;
  static constexpr bool token_blocks = config.sums == Sums::block_scaled;

  /// Where the packed tile of an atom's rows begins in a stage.
  WW_DEVICE static int tile_of(int warpgroup, int i) {
    constexpr GemmConfig cfg = Tag::config;
    return atom_row(cfg, warpgroup, i) / packed::kTileRows * cfg.k_spans * most_packed_tile(cfg);
  }

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
  static constexpr bool each_step = atoms * values > 64;

  /// What a group's sums are multiplied by.
  struct Scales {
    isa::Pair row[atoms];                           // of the thread's two rows
    float token[token_blocks ? values / 4 : 1][2];  // of the columns of its sums, a pair of each
  };

  /// All K blocks of `work`; of each group of `steps` k32 steps `done` gets the scales once its
  /// products with the tokens of a pass are there. (Folded: of all groups of a K block, which have
  /// `group_steps`, or more.)
  template <int steps, int group_steps = steps, class Leave, class Done>
  WW_DEVICE void run(const tile::Work& work, Accumulator (&accumulator)[atoms], const Leave& leave,
                     const Done& done) {
    const int blocks = work.end - work.first;
    bool landed = false;
    for (int block = 0; block < blocks; ++block) {
      const isa::Mark mark("k block %", block);
      ring_.wait(state, landed);
      const isa::SharedAddress tile = a_ + state.stage * stage_a_bytes(Tag::config);
      const std::uint32_t b =
          isa::uniform(atom::advance(b_, state.stage * atom::tile_bytes(tile_b(Tag::config))));
      Codes codes[atoms];
      WW_UNROLL for (int i = 0; i < atoms; ++i) codes[i] = read_codes(tile + tile_of(0, i));
      Scales scales{};
      if constexpr (token_blocks) read_token_scales(state.stage, scales);
      Factors<group_steps> factors[folds ? atoms : 1];
      if constexpr (folds) {
        WW_UNROLL for (int i = 0; i < atoms; ++i) {
          factors[i] =
              find_factors<group_steps>(tile + tile_of(0, i), accumulator[i], last_[i], block == 0);
        }
      }
      WW_UNROLL for (int first = 0; first < packed_steps; first += steps) {
        const bool begins = block == 0 && first == 0;
        isa::Fragment<std::uint32_t, 4> a[atoms * steps];
        WW_UNROLL for (int i = 0; i < atoms; ++i) {
          if constexpr (!folds) {
            scales.row[i] = group_scales(tile + tile_of(0, i), group_of<steps>(first));
          }
          if constexpr (chained) rescale(accumulator[i], last_[i], scales.row[i], begins);
          if constexpr (folds) {
            WW_UNROLL for (int s = 0; s < steps; ++s) {
              convert_folded(codes[i], first + s, factors[i].row[(first + s) / group_steps],
                             a[i * steps + s]);
            }
          }
        }
        if constexpr (!folds) convert<steps>(codes, first, a);
        WW_UNROLL for (int pass = 0; pass < passes; ++pass) {
          multiply(accumulator, a, b, first, pass, (chained || folds) && !begins);
          if (first + steps < packed_steps || pass + 1 < passes) {
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
          done(scales, pass);
        }
      }
    }
  }

  /// The same of stages of several K blocks, with two groups in flight: while one is multiplied,
  /// the codes of the next are converted, and the sums of the one before are added. Over the back
  /// edge of the loop there is none.
  template <int steps, class Leave>
  WW_DEVICE void run_by_two(const tile::Work& work, Accumulator (&accumulator)[2][atoms],
                            float (&total)[atoms][values], const Leave& leave) {
    constexpr int groups = config.k_spans * packed_steps / steps;
    constexpr int last = (groups - 1) % 2;
    const int blocks = work.end - work.first;
    bool landed = false;
    for (int block = 0; block < blocks; ++block) {
      const isa::Mark mark("k block %", block);
      const std::uint32_t b =
          isa::uniform(atom::advance(b_, state.stage * atom::tile_bytes(tile_b(Tag::config))));
      ring_.wait(state, landed);
      const pipeline::PipelineState current = state;
      const isa::SharedAddress stage = a_ + state.stage * stage_a_bytes(Tag::config);
      Codes codes[atoms];
      Scales scales[2];
      isa::Fragment<std::uint32_t, 4> a[2][atoms * steps];
      WW_UNROLL for (int g = 0; g < groups; ++g) {
        const int step = g * steps % packed_steps;
        const isa::SharedAddress tile =
            stage + static_cast<isa::SharedAddress>(g * steps / packed_steps * packed_.tile_bytes);
        if (step == 0) {
          WW_UNROLL for (int i = 0; i < atoms; ++i) codes[i] = read_codes(tile + tile_of(0, i));
        }
        convert<steps>(codes, step, a[g % 2]);
        multiply(accumulator[g % 2], a[g % 2], b, g * steps, 0, false);
        WW_UNROLL for (int i = 0; i < atoms; ++i) {
          scales[g % 2].row[i] = group_scales(tile + tile_of(0, i), group_of<steps>(step));
        }
        if (g == 0) continue;
        isa::wgmma_wait<1>(accumulator[1 - g % 2], a[1 - g % 2]);
        add(scales[1 - g % 2], 0, accumulator[1 - g % 2], total);
      }
      state.advance(Tag::config.stages);
      landed = block + 1 < blocks && ring_.try_wait(state);
      if (block + 1 == blocks) leave();
      isa::wgmma_wait<0>(accumulator[last], a[last]);
      // All lanes have read the stage: one of them arrives for the others.
      isa::sync_warp();
      ring_.release(current);
      add(scales[last], 0, accumulator[last], total);
    }
  }

  WW_DEVICE static void add(const Scales& s, int pass, Accumulator (&accumulator)[atoms],
                            float (&total)[atoms][values]) {
    WW_UNROLL for (int i = 0; i < atoms; ++i) add_scaled(s, i, pass, accumulator[i], total[i]);
  }

  /// The group in a tile of a step.
  template <int steps>
  [[nodiscard]] WW_DEVICE int group_of(int step) const {
    if constexpr (folds && !tables) return step * 32 / packed_.group;
    const bool shared = each_step && steps == 1 && packed_.group == 64;  // by two steps
    return shared ? step / 2 : step / steps;
  }

  [[nodiscard]] WW_DEVICE isa::Pair group_scales(isa::SharedAddress tile, int group) const {
    return load_scales(tile + packed::scales_begin() +
                           static_cast<isa::SharedAddress>(group * packed_.slice_bytes),
                       thread_, packed_.scale);
  }

  /// A thread's codes in a tile, and the zero points of its two rows: a byte for each group.
  struct Codes {
    LaneCodes of;
    std::uint32_t zeros;
  };
  [[nodiscard]] WW_DEVICE Codes read_codes(isa::SharedAddress tile) const {
    Codes codes{load_codes(tile, thread_), 0};
    if constexpr (zero_points) {
      const auto at = tile + static_cast<isa::SharedAddress>(packed_.zero_points);
      codes.zeros = isa::SharedView<std::uint32_t>{at}.load(thread_ / 4);
    }
    return codes;
  }

  /// Converts a group's codes, from step `first` of the K block on. Without carries, those of sm,
  /// it takes less than half of the instructions, and instructions are what most tiles wait for.
  template <int steps>
  WW_DEVICE void convert(const Codes (&codes)[atoms], int first,
                         isa::Fragment<std::uint32_t, 4> (&to)[atoms * steps]) const {
    const auto each = [&](const auto& how) {
      WW_UNROLL for (int i = 0; i < atoms; ++i) {
        WW_UNROLL for (int s = 0; s < steps; ++s) how(codes[i], first + s, to[i * steps + s]);
      }
    };
    if constexpr (zero_points) {
      each([&](const Codes& c, int step, auto& registers) {
        convert_differences(c.of.word[step], c.zeros >> 8 * group_of<steps>(step), registers);
      });
    } else if (packed_.carries == 0) {
      each([](const Codes& c, int step, auto& registers) {
        convert_codes(c.of.word[step], 0, registers);
      });
    } else {
      each([](const Codes& c, int step, auto& registers) {
        convert_codes(c.of.word[step], packed::signs, registers);
      });
    }
  }

  /// The wgmmas of a group's steps, from step `first` of the K block on, and the tokens of a pass.
  template <int count>
  WW_DEVICE static void multiply(Accumulator (&accumulator)[atoms],
                                 isa::Fragment<std::uint32_t, 4> (&a)[count], std::uint32_t b,
                                 int first, int pass, bool accumulate) {
    constexpr GemmConfig cfg = Tag::config;
    constexpr atom::OperandTile tile_of_b = tile_b(cfg);
    constexpr std::uint32_t b_high = atom::high_word(encode(atom::descriptor(tile_of_b, 0)));
    constexpr int steps = count / atoms;
    constexpr int tokens = cfg.tile_n / passes;
    const int from = atom::tile_offset<tile_of_b>(pass * tokens, 0);
    isa::wgmma_fence(accumulator, a);
    WW_UNROLL for (int i = 0; i < atoms; ++i) {
      WW_UNROLL for (int s = 0; s < steps; ++s) {
        isa::wgmma_registers<DType::e4m3, tokens>(
            accumulator[i], a[i * steps + s],
            atom::join_words(atom::advance(b, from + atom::step_offset<tile_of_b>(first + s)),
                             b_high),
            accumulate || s > 0);
      }
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

  WW_DEVICE static void add_scaled(const Scales& s, int i, int pass, Accumulator& accumulator,
                                   float (&total)[values]) {
    WW_UNROLL for (int from = 0; from < values / passes; ++from) {
      const int v = pass * (values / passes) + from;
      const float row = v % 4 < 2 ? s.row[i].low : s.row[i].high;
      total[v] +=
          accumulator[from] * (token_blocks ? row * s.token[token_blocks ? v / 4 : 0][v % 2] : row);
    }
  }

  /// Chained sums: from the scales of the group before to those of the next one, which are not 0 (a
  /// group of zeros is packed with those before it).
  WW_DEVICE static void rescale(Accumulator& accumulator, isa::Pair& last, isa::Pair next,
                                bool begins) {
    if (!begins) scale(accumulator, {last.low / next.low, last.high / next.high});
    last = next;
  }

  WW_DEVICE static void scale(Accumulator& accumulator, isa::Pair by) {
    WW_UNROLL for (int v = 0; v < values / passes; ++v) accumulator[v] *=
        v % 4 < 2 ? by.low : by.high;
  }

  /// Folded: what a group's codes are multiplied by, in f16, or the table of their products; of the
  /// thread's two rows.
  using Factor = std::conditional_t<tables, CodeTable, std::uint32_t>;
  template <int group_steps>
  struct Factors {
    Factor row[packed_steps / group_steps][2];
  };

  WW_DEVICE static Factor factor_of(float scale) {
    if constexpr (tables) {
      return table_of(scale);
    } else {
      return isa::pack<DType::f16>(scale, scale);
    }
  }

  WW_DEVICE void convert_folded(const Codes& codes, int step, const Factor (&factors)[2],
                                isa::Fragment<std::uint32_t, 4>& to) const {
    if constexpr (tables) {
      look_up_codes(codes.of.word[step], factors, to);
    } else {
      convert_codes(codes.of.word[step], packed_.carries, to);
      WW_UNROLL for (int r = 0; r < 4; ++r) to[r] = fold(to[r], factors[r % 2]);
    }
  }

  /// The factors of a K block. Sums count in `last`, which is the power of two of the largest scale
  /// so far, times 2^-13: then codes times scales lie below 256. Where it grows, sums follow.
  template <int group_steps>
  WW_DEVICE Factors<group_steps> find_factors(isa::SharedAddress tile, Accumulator& accumulator,
                                              isa::Pair& last, bool begins) const {
    constexpr int count = packed_steps / group_steps;
    isa::Pair scales[count];
    const isa::Pair before = last;
    if (begins) last = {least_unit, least_unit};
    WW_UNROLL for (int g = 0; g < count; ++g) {
      scales[g] = group_scales(tile, group_of<group_steps>(g * group_steps));
      last.low = larger_unit(last.low, scales[g].low);
      last.high = larger_unit(last.high, scales[g].high);
    }
    const isa::Pair inverse = {inverse_of(last.low), inverse_of(last.high)};
    Factors<group_steps> factors;
    WW_UNROLL for (int g = 0; g < count; ++g) {
      factors.row[g][0] = factor_of(scales[g].low * inverse.low);
      factors.row[g][1] = factor_of(scales[g].high * inverse.high);
    }
    const bool grew = !begins && (last.low != before.low || last.high != before.high);
    if (isa::ballot(grew) != 0) {
      scale(accumulator, {before.low * inverse.low, before.high * inverse.high});
    }
    return factors;
  }

  /// Powers of two: 2^-13 of that of a scale, or `unit` where that is larger; and 1 / unit.
  WW_DEVICE static float larger_unit(float unit, float scale) {
    const float of_scale = isa::float_of(isa::float_bits(scale) & 0x7f800000U) * 0x1p-13F;
    return of_scale > unit ? of_scale : unit;
  }
  WW_DEVICE static float inverse_of(float unit) {
    return isa::float_of(0x7f000000U - isa::float_bits(unit));
  }
  static constexpr float least_unit = 0x1p-120F;

  const MainloopPipeline<Tag>& ring_;
  const PackedParams& packed_;
  int thread_;  // of the warpgroup
  isa::SharedAddress scales_ = 0;
  isa::SharedAddress a_ = 0;  // this warpgroup's first tile in stage 0
  std::uint32_t b_ = 0;       // low word of the descriptor of B in stage 0
  isa::Pair last_[atoms];     // what sums in the tensor core still lack
};

/// The main loop of a configuration.
template <class Tag, class Loads>
using MainloopOf =
    std::conditional_t<packed_a(Tag::config), PackedMainloop<Tag, Loads>, Mainloop<Tag, Loads>>;

}  // namespace warpwright::kernel
