// The scales of a Blackwell kernel whose tensor core multiplies some: from global memory into the
// stages, beside A and B and on the same full barrier; from there to tensor memory, by the thread
// that issues the MMAs, which follow the copies without a wait. The one commit behind the MMAs of a
// stage releases it, scales and all.
//
//   in a stage       SFA: the atoms of 128 rows of A x 4 scales of K, one behind the other along K;
//                    with a gate then those of the 128 rows that the gates are for.
//                    SFB: the same of 128 columns of D, then of the next 128
//   tensor memory    SFA, 4 columns an atom; SFB, four scales of K of all columns of D, then the
//                    next four
//
// Plain tokens have scales of 1 there: an atom of them is written once, and copied before a CTA's
// first MMAs.
//
// A CTA needs the scales of its own rows of A and of all columns of D, a pair's too. Those that
// share A's rows, or D's columns, get their scales from the first of them by multicast.
#pragma once

#include <type_traits>

#include "warpwright/atom/umma_scaled.h"
#include "warpwright/isa/tcgen05_scaled.h"
#include "warpwright/isa/tma.h"
#include "warpwright/kernel/blackwell/cta.h"

namespace warpwright::kernel::blackwell {

/// Bytes that the copies of a stage of this launch signal beyond what the configuration says.
template <class Tag>
WW_DEVICE int more_bytes([[maybe_unused]] const BlackwellCta<Tag>& cta) {
  if constexpr (is_scaled(Tag::config)) {
    return cta.p.more_bytes;
  } else {
    return 0;
  }
}

/// Calls use(c), where c::value is the type of the scales that this launch multiplies.
template <class Tag, class Use>
WW_DEVICE void by_scale([[maybe_unused]] const BlackwellCta<Tag>& cta, const Use& use) {
  if constexpr (takes_either_scale(Tag::config)) {
    if (cta.p.scales_of_32) return use(std::integral_constant<DType, DType::ue8m0>{});
  }
  use(std::integral_constant<DType, Tag::config.scale>{});
}

/// One row of atoms of a stage.
template <DType scale, class Tag>
WW_DEVICE void load_atoms(std::uint16_t ctas, isa::SharedAddress to, const isa::TensorMap& map,
                          isa::SharedAddress full, int k_tile, int row, int batch,
                          isa::Site site = isa::Site::sync()) {
  constexpr BlackwellConfig cfg = with_scale(Tag::config, scale);
  constexpr int box = scale_box_words(cfg);
  constexpr int words = scale_row_bytes(cfg) / 4;
  WW_UNROLL for (int first = 0; first < words; first += box) {
    isa::tensor_load_to<ctas_of_mma(cfg)>(ctas, to + 4 * first, map, full,
                                          isa::Coords{k_tile * words + first, row, batch}, site);
  }
}

/// The row of atoms in which the scales of a tile's columns begin: every group of tokens begins
/// with an atom of its own, and tiles of tokens are as wide as one.
template <class Tag>
WW_DEVICE int first_atom(const tile::Work& work) {
  if constexpr (Tag::config.grouped) {
    return work.tiles_before + work.tile.n;
  } else {
    return work.column / atom::kScaleAtomRows;
  }
}

/// One thread: the scales of a k_tile of a tile, on the barrier of its operands.
template <DType scale, class Tag>
WW_DEVICE void load_scales(const BlackwellCta<Tag>& cta, const tile::Work& work, int k_tile,
                           const pipeline::PipelineState& state) {
  constexpr BlackwellConfig cfg = Tag::config;
  constexpr BlackwellSmemMap smem = smem_map(cfg);
  const auto& p = cta.p;
  const atom::ClusterCoord at = cta.at;
  const isa::SharedAddress full = cta.mainloop.full(state);
  if constexpr (!has_ones(cfg, true)) {
    const auto ctas = static_cast<std::uint16_t>(p.walk.cluster.n > 1 ? p.operands.a_ctas(at) : 0);
    const isa::SharedAddress to = cta.base + smem.sfa + state.stage * halves(cfg) * sfa_bytes(cfg);
    if (at.y == 0) {
      WW_UNROLL for (int half = 0; half < halves(cfg); ++half) {
        load_atoms<scale, Tag>(ctas, to + half * sfa_bytes(cfg), p.sfa, full, k_tile,
                               p.operands.gate.row(work.row, half) / atom::kScaleAtomRows,
                               work.tile.batch * p.sfa_batch);
      }
    }
  }
  if constexpr (!has_ones(cfg, false)) {
    // Both CTAs of every pair of the row.
    const auto ctas = static_cast<std::uint16_t>(
        p.walk.cluster.m > 1 ? p.commit_row_mask << (at.y * p.walk.cluster.m) : 0);
    const isa::SharedAddress to = cta.base + smem.sfb + state.stage * sfb_bytes(cfg);
    const int first = first_atom<Tag>(work);
    if (at.x == 0) {
      WW_UNROLL for (int i = 0; i < scale_rows_of_b(cfg); ++i) {
        load_atoms<scale, Tag>(ctas, to + i * scale_row_bytes(cfg), p.sfb, full, k_tile, first + i,
                               work.tile.batch * p.sfb_batch);
      }
    }
  }
}

/// Where in shared memory they lie.
constexpr int ones_at(const BlackwellConfig& c) {
  return has_ones(c, true) ? smem_map(c).sfa : smem_map(c).sfb;
}
/// One warp, before the CTA, and a pair, meets: scales of 1 for plain tokens.
template <class Tag>
WW_DEVICE void write_ones(const BlackwellCta<Tag>& cta) {
  constexpr std::uint32_t ones = 0x7f7f7f7f;
  const isa::SharedAddress to = cta.base + ones_at(Tag::config) + 16 * isa::lane_index();
  static_assert(scale_row_bytes(Tag::config) == 32 * 16);
  isa::SharedView<isa::Words<4>>{to}.store(0, {ones, ones, ones, ones});
  isa::fence_proxy_async_shared();
}

/// Where the MMAs of a stage find their scales in tensor memory.
struct ScalesAt {
  isa::TmemAddress a = 0;
  isa::TmemAddress b = 0;
};

/// The scales in tensor memory, for the thread that issues the MMAs; nothing where there are none.
template <class Tag>
class TmemScales {
  static constexpr BlackwellConfig config = Tag::config;

 public:
  WW_DEVICE explicit TmemScales(isa::TmemAddress tmem)
      : begin_(tmem + first_scale_column(config)) {}

  /// Copies those of a stage, for a tile whose columns begin at `column` of D: the `part`-th of
  /// stages whose MMAs find their scales from one address on.
  template <DType scale>
  WW_DEVICE ScalesAt copy([[maybe_unused]] const BlackwellCta<Tag>& cta,
                          [[maybe_unused]] const pipeline::PipelineState& state,
                          [[maybe_unused]] int column, [[maybe_unused]] int part = 0) {
    ScalesAt to;
    if constexpr (is_scaled(config)) {
      constexpr BlackwellConfig cfg = Tag::config;
      constexpr BlackwellSmemMap smem = smem_map(cfg);
      constexpr int step = atom::scale_word_step(mma_atom(cfg), true);
      constexpr int atoms = scale_atoms(with_scale(cfg, scale));
      to.a = begin_ + buffer_ * scale_columns(cfg);
      to.b = to.a + halves(cfg) * sfa_columns(cfg);
      if (cfg.plain_tokens && !has_ones_) copy_ones(cta.base + ones_at(cfg));
      const isa::SharedAddress a = cta.base + smem.sfa + state.stage * halves(cfg) * sfa_bytes(cfg);
      const isa::SharedAddress b = cta.base + smem.sfb + state.stage * sfb_bytes(cfg);
      constexpr int rows_of_a = has_ones(cfg, true) ? 0 : halves(cfg);
      constexpr int rows_of_b = has_ones(cfg, false) ? 0 : scale_rows_of_b(cfg);
      WW_UNROLL for (int row = 0; row < rows_of_a; ++row) {
        WW_UNROLL for (int i = 0; i < atoms; ++i) {
          copy_atom(to.a + row * sfa_columns(cfg) + (part * atoms + i) * atom::kScaleAtomColumns,
                    a + row * sfa_bytes(cfg) + i * atom::kScaleAtomBytes);
        }
      }
      WW_UNROLL for (int row = 0; row < rows_of_b; ++row) {
        WW_UNROLL for (int i = 0; i < atoms; ++i) {
          copy_atom(to.b + (part * atoms + i) * step + row * atom::kScaleAtomColumns,
                    b + row * scale_row_bytes(cfg) + i * atom::kScaleAtomBytes);
        }
      }
      if (part + 1 == stages_together(cfg)) {
        buffer_ = buffer_ + 1 == scale_buffers(cfg) ? 0 : buffer_ + 1;
      }
      // 32 rows of an atom are a column. A tile of tokens begins with one.
      if constexpr (!cfg.swap_ab) to.b += column % atom::kScaleAtomRows / 32;
    }
    return to;
  }

 private:
  WW_DEVICE static void copy_atom(isa::TmemAddress to, isa::SharedAddress from,
                                  isa::Site site = isa::Site::sync()) {
    isa::tcgen05_copy<isa::TmemCopy::b32x128_warpx4, ctas_of_mma(Tag::config)>(
        to, atom::encode_umma(atom::scale_descriptor(from)), site);
  }

  /// The scales of plain tokens, which stay: where every buffer has those of A, or of B.
  WW_DEVICE void copy_ones(isa::SharedAddress from) {
    constexpr int first = has_ones(config, true) ? 0 : halves(config) * sfa_columns(config);
    WW_UNROLL for (int i = 0; i < scale_buffers(config); ++i) {
      copy_atom(begin_ + i * scale_columns(config) + first, from);
    }
    has_ones_ = true;
  }

  isa::TmemAddress begin_;
  int buffer_ = 0;
  bool has_ones_ = false;
};

/// The MMA of k_block `k_block` of a stage, or of stages that MMAs are issued on together, and of
/// one of A's halves.
template <DType scale, class Tag>
WW_DEVICE void multiply_scaled(isa::TmemAddress d, std::uint64_t a, std::uint64_t b,
                               std::uint32_t instruction, const ScalesAt& scales, int half,
                               int k_block, bool accumulate, isa::Site site = isa::Site::here()) {
  constexpr BlackwellConfig cfg = Tag::config;
  const atom::ScaleStep step = atom::scale_step(mma_atom(with_scale(cfg, scale)), k_block);
  isa::tcgen05_mma_scaled<cfg.kind, micro_block(scale), ctas_of_mma(cfg)>(
      d, a, b, atom::with_scale_ids(instruction, step.id, step.id),
      scales.a + half * sfa_columns(cfg) + step.column_a, scales.b + step.column_b, accumulate,
      site);
}

}  // namespace warpwright::kernel::blackwell
