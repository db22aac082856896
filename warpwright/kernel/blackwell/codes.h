// The epilogue warps of a Blackwell kernel whose D is quantised: from tensor memory to codes and
// the scales that a few columns of a row share, which lie as a next product reads them, in tiles of
// 128 rows x 4 (facts/block_scales.h). The recipes are facts/micro_scale.h's, with the same bits:
// scales that are powers of two are rounded up, those of nvf4 are of two levels. Where the tile's
// rows are columns of D: token_codes.h.
//
// A thread has a row of the tile, so the columns that share a scale are its own and no lanes meet.
// What it writes of a row begins at 16 bytes, and four scales are a word. Rows of the last tile
// behind D get the scales of padding, so that all of a tile of scales is written.
#pragma once

#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/micro_scale.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/tcgen05_memory.h"
#include "warpwright/kernel/alpha.h"
#include "warpwright/kernel/blackwell/cta.h"
#include "warpwright/kernel/epilogue_values.h"
#include "warpwright/kernel/float_at.h"

namespace warpwright::kernel::blackwell {

/// Element `i` of a bias of `size`; past its end the last one, and 0 where there is none.
WW_DEVICE
float bias_at(const Vector& v, int batch, int i, int size) {
  if (v.data == nullptr) return 0;
  return float_at(v.data, v.dtype, batch * v.batch_stride + (i < size ? i : size - 1) * v.stride);
}

/// How a launch makes codes: of e2m1 ones it says whether scales are of 16 or of 32.
template <class Tag>
class CodeRecipe {
  static constexpr BlackwellConfig config = Tag::config;
  static constexpr bool either = makes_either_scale(config);
  using Block = micro::Block<config.result, config.d_scale>;

 public:
  static constexpr int least = micro_block(config.d_scale);  ///< values that share a scale

  WW_DEVICE explicit CodeRecipe(const BlackwellParamsOf<Tag>& p)
      : tensor_(float_or_one(p.output.result_scale)) {
    if constexpr (either) of_32_ = p.codes_of_32;
  }

  /// Do two neighbours of `least` share a scale?
  [[nodiscard]] WW_DEVICE bool in_pairs() const { return either && of_32_; }
  /// Values that share one.
  [[nodiscard]] WW_DEVICE int block() const { return in_pairs() ? 2 * least : least; }
  /// The scale in the padding of its tiles.
  [[nodiscard]] WW_DEVICE std::uint32_t padding() const {
    return micro::neutral_scale(in_pairs() ? DType::ue8m0 : config.d_scale);
  }

  /// A scale, and what its block's values become codes by.
  struct Scale {
    std::uint32_t code;
    float factor;
    bool clears;  ///< all codes are 0
  };
  /// For a block whose magnitudes have that largest.
  [[nodiscard]] WW_DEVICE Scale scale_of(std::uint32_t largest) const {
    if (in_pairs()) {
      const std::uint32_t code = micro::power_scale(Recipe::up, config.result, largest);
      return {code, micro::value(DType::ue8m0, code), micro::clears(DType::ue8m0, code)};
    }
    const Block by = Block::of(largest, tensor_);
    return {by.scale, by.factor, by.clears()};
  }
  /// What is rounded to the code of x. Where either will do that is x over the factor: of powers of
  /// two the same as x times its inverse.
  WW_DEVICE static float scaled_by(float factor, float x) { return Block::scaled_by(factor, x); }

 private:
  float tensor_;  // the scale of all of D
  bool of_32_ = false;
};

/// One thread's row of tile after tile.
template <class Tag>
class CodeRow {
  static constexpr BlackwellConfig config = Tag::config;
  static constexpr DType element = config.result;
  static constexpr int bits = numeric::bits(element);
  static constexpr int block = CodeRecipe<Tag>::least;

 public:
  static constexpr int columns = 32;  ///< that are taken at once

  WW_DEVICE CodeRow(const BlackwellParamsOf<Tag>& p, int warp)
      : p_(p.output), recipe_(p), warp_(warp) {}

  /// Before a tile: finds what all columns share.
  WW_DEVICE void begin(const tile::Work& work) {
    row_ = work.row + 32 * warp_ + isa::lane_index();
    batch_ = work.tile.batch;
    bias_ = bias_at(p_.row_bias, batch_, row_, p_.d_rows);
  }

  /// All of the tile, whose sums `source(value, column)` fetches.
  template <class Source>
  WW_DEVICE void take(const tile::Work& work, const Source& source) {
    const int together = atom::kScaleAtomDepth * recipe_.block();
    WW_NO_UNROLL for (int first = 0; first < config.tile_n; first += together) {
      if (outside(work.row, work.column + first)) break;
      WW_NO_UNROLL for (int i = first; i < first + together; i += columns) {
        float value[columns] = {};
        source(value, i);
        put(work.column + i, value);
      }
      put_scales(work.column + first);
    }
  }

 private:
  /// Is all of what begins at `column` of the tile, whose rows begin at `row`, outside D?
  [[nodiscard]] WW_DEVICE bool outside(int row, int column) const {
    return row >= p_.d_rows || column >= p_.d_columns;
  }

  /// Sums of `columns` columns from `column` on become codes, which are stored, and scales.
  WW_DEVICE void put(int column, float (&value)[columns]) {
    WW_UNROLL for (int i = 0; i < columns; ++i) {
      const float bias = bias_at(p_.column_bias, batch_, column + i, p_.d_columns);
      value[i] = p_.alpha * value[i] + (bias + bias_);
    }
    activate(p_.activation, value);
    std::uint32_t largest[columns / block];
    WW_UNROLL for (int i = 0; i < columns / block; ++i) {
      largest[i] = largest_of(column, i * block, value);
    }
    if (recipe_.in_pairs()) {
      WW_UNROLL for (int i = 0; i + 1 < columns / block; i += 2) {
        largest[i] = largest[i + 1] = micro::larger(largest[i], largest[i + 1]);
      }
    }
    std::uint32_t words[columns * bits / 32];
    WW_UNROLL for (int i = 0; i < columns / block; ++i) {
      const std::uint32_t scale = quantise(largest[i], i * block, value, words);
      if (i % 2 == 0 || !recipe_.in_pairs()) scales_ = scales_ >> 8 | scale << 24;
    }
    if (row_ < p_.d_rows) store(column, words);
  }

  /// Stores the scales of the four blocks that `put` was given last, whose columns begin at
  /// `column`.
  WW_DEVICE void put_scales(int column) const {
    const std::uint32_t padding = recipe_.padding() * 0x01010101U;
    auto* const to = static_cast<std::uint8_t*>(p_.d_scales.data) +
                     batch_ * p_.d_scales.batch_stride +
                     block_scales::place(row_, column / recipe_.block(), p_.d_scales.row_stride);
    isa::global_view<std::uint32_t>(to).store(0, row_ < p_.d_rows ? scales_ : padding);
  }

  /// The largest magnitude of `block` values from value `first` on; columns behind D have none.
  WW_DEVICE std::uint32_t largest_of(int column, int first, const float (&value)[columns]) const {
    std::uint32_t largest = 0;
    WW_UNROLL for (int i = first; i < first + block; ++i) {
      const std::uint32_t size = micro::magnitude(value[i], element);
      largest = micro::larger(largest, column + i < p_.d_columns ? size : 0);
    }
    return largest;
  }

  /// Codes of the values from `first` on, by the scale of their block, which it gives back.
  WW_DEVICE std::uint32_t quantise(std::uint32_t largest, int first, const float (&value)[columns],
                                   std::uint32_t (&words)[columns * bits / 32]) const {
    const auto by = recipe_.scale_of(largest);
    constexpr int each = 32 / bits;  // codes of a word
    WW_UNROLL for (int i = first; i < first + block; i += each) {
      float scaled[each];
      WW_UNROLL for (int j = 0; j < each; ++j) {
        scaled[j] = CodeRecipe<Tag>::scaled_by(by.factor, value[i + j]);
      }
      words[i / each] = by.clears ? 0 : isa::pack_codes<element>(scaled);
    }
    return by.code;
  }

  /// 16 bytes at once where they are aligned and inside D, else byte by byte.
  WW_DEVICE void store(int column, const std::uint32_t (&words)[columns * bits / 32]) const {
    const std::int64_t first = batch_ * p_.d_batch + row_ * p_.d_pitch + column;
    auto* const to = static_cast<std::uint8_t*>(p_.d_data) + first * bits / 8;
    if (p_.d_aligned && column + columns <= p_.d_columns) {
      WW_UNROLL for (int i = 0; i < columns * bits / 32; i += 4) {
        isa::global_words<4>(to).store(i / 4, {words[i], words[i + 1], words[i + 2], words[i + 3]});
      }
      return;
    }
    WW_UNROLL for (int i = 0; i < columns * bits / 8; ++i) {
      if (column + i * 8 / bits < p_.d_columns) {
        isa::GlobalView<std::uint8_t>{to}.store(
            i, static_cast<std::uint8_t>(words[i / 4] >> 8 * (i % 4)));
      }
    }
  }

  const OutputParams& p_;
  CodeRecipe<Tag> recipe_;
  int warp_;
  int row_ = 0;
  int batch_ = 0;
  float bias_ = 0;
  std::uint32_t scales_ = 0;  // of the latest four blocks
};

/// Four warps: each takes its 32 lanes of tile after tile to D's codes and scales, as `Codes` does:
/// CodeRow, or TokenCodes.
template <class Codes, class Tag>
WW_DEVICE void store_codes(const BlackwellCta<Tag>& cta, const isa::Prerequisites& ready) {
  constexpr BlackwellConfig cfg = Tag::config;
  constexpr BlackwellSmemMap smem = smem_map(cfg);
  static_assert(smem.epilogue == smem.sfa, "it has no buffers");
  const auto& p = cta.p;
  isa::set_role("epilogue");
  const int warp = isa::warp_index() - first_epilogue_warp;
  const isa::TmemAddress tmem = cta.published_tmem() + atom::tmem_address(32 * warp, 0);
  Codes codes(p, warp);
  auto tiles = cta.template tiles<pipeline::Reader::warp>(ready);
  tile::Work work;
  pipeline::PipelineState accumulator;
  while (tiles.next(work)) {
    const TileMark<Tag::config.grouped, Tag::config.swap_ab> tile_mark(work.tile);
    codes.begin(work);
    if (p.operands.k > 0) cta.accumulators.wait(accumulator);
    const isa::TmemAddress from = tmem + cta.accumulator_column(accumulator);
    codes.take(work, [&](float(&value)[Codes::columns], int column) {
      if (p.operands.k == 0) return;
      isa::Fragment<float, Codes::columns> loaded;
      isa::tcgen05_load<isa::TmemShape::lanes32>(loaded, from + column);
      isa::tcgen05_wait_load(loaded);
      WW_UNROLL for (int j = 0; j < Codes::columns; ++j) value[j] = loaded[j];
    });
    if (p.operands.k > 0) {
      cta.accumulators.release(accumulator);
      accumulator.advance(cfg.accumulators);
    }
    if (isa::thread_index() == 32 * first_epilogue_warp) isa::count_tile();
  }
}

}  // namespace warpwright::kernel::blackwell
