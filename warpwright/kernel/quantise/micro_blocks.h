// Rows as codes of 8, 6 or 4 bits with scales of one byte (Scaling::block_scaled): one for the 32
// or 16 neighbours that four or two lanes hold, in tiles or in rows.
#pragma once

#include "warpwright/facts/micro_scale.h"
#include "warpwright/kernel/quantise/pieces.h"
#include "warpwright/kernel/quantise/scale_rows.h"

namespace warpwright::kernel {

struct QuantiseMicroParams {
  QuantisedRows x;  ///< its scales are not used
  unsigned char* scales = nullptr;
  const float* tensor = nullptr;  ///< the scale of the tensor; null: 1
  std::int64_t pitch = 0;         ///< of scales in rows
  std::int64_t scale_rows = 0;
  int columns = 0;  ///< scales of a row, those in the padding too
  int used = 0;     ///< rows that have scales; those behind x's are padding
  bool in_rows = false;
  Recipe recipe = Recipe::up;
  tile::GroupOffsets groups;
  bool whole = false;  ///< rows of x and of the codes begin where vectors may
};

/// Whether rows are whole is asked in the kernel: one for each answer would take twice as long to
/// compile.
template <DType type, DType element, DType scale>
struct QuantiseMicro : QuantiseShape {
  using Params = QuantiseMicroParams;
  static constexpr int ctas_an_sm = 3;
  // With ue4m3 there is more to do a row: with as many of them the code would be too long.
  static constexpr int at_once = QuantiseShape::at_once / (scale == DType::ue4m3 ? 2 : 1);
  using Block = MicroBlock<element, scale>;
  static constexpr int block = Block::size;
  static constexpr int bits = numeric::bits(element);

  static constexpr int ctas(const Params& p) { return QuantiseShape::ctas(p.x); }

  WW_DEVICE static void run(const Params& p) {
    isa::set_role("quantises blocks");
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    const float tensor = p.tensor == nullptr ? 1.0F : isa::GlobalView<const float>{p.tensor}.load();
    for_each_piece<at_once>(
        p.x, p.used,
        [&](int row, int k, float(&value)[each]) {
          p.whole ? load_values<type, true>(p.x, row, k, value)
                  : load_values<type, false>(p.x, row, k, value);
        },
        [&](int row, int k, const float(&value)[each]) {
          float quotient[each];
          const std::uint32_t code = scaled(p, value, tensor, quotient);
          store_scale(p, row, scale_row(p.groups, ready, row), k, code);
          if (row >= p.x.rows || k >= p.x.k) return;
          const std::uint64_t codes = micro::clears(scale, code) ? 0 : codes_of<element>(quotient);
          unsigned char* const to = p.x.codes + row * p.x.codes_pitch + k / each * bits;
          store_codes<bits>(to, codes, p.x.k - k, p.whole);
        });
  }

 private:
  /// The errors of a block of 16 with that divisor, whose halves two lanes have.
  WW_DEVICE static float errors_of(const float (&value)[each], float divisor,
                                   float (&quotient)[each]) {
    float errors = 0;
    WW_UNROLL
    for (int i = 0; i < each; ++i) {
      quotient[i] = value[i] / divisor;
      errors = micro::add_error(errors, quotient[i], [](float x, float y, float z) {
        return isa::multiply_add(x, y, z);
      });
    }
    return errors + isa::float_of(isa::shuffle(isa::float_bits(errors), isa::lane_index() ^ 1));
  }

  /// What is rounded to codes, and the scale of the block.
  WW_DEVICE static std::uint32_t scaled(const Params& p, const float (&value)[each], float tensor,
                                        float (&quotient)[each]) {
    const std::uint32_t largest = Block::largest(value);
    if constexpr (scale == DType::ue8m0) {
      const std::uint32_t code = micro::power_scale(p.recipe, element, largest);
      const float factor = micro::power_inverse(code);
      WW_UNROLL
      for (int i = 0; i < each; ++i) quotient[i] = unless_infinite(value[i] * factor, value[i]);
      return code;
    } else {
      if (p.recipe == Recipe::nested) {
        const std::uint32_t code = micro::nested_scale(largest, tensor);
        divide(E4m3Divisor(micro::nested_divisor(code, tensor)), value, quotient);
        return code;
      }
      // One body for both scales of nested_4_or_6: two would be twice the code.
      std::uint32_t code = 0;
      float least = 0;
      WW_NO_UNROLL
      for (int pass = 0; pass < 2; ++pass) {
        const std::uint32_t its = micro::nested_scale(largest, tensor, pass == 0 ? 6.0F : 4.0F);
        float others[each];
        const float errors = errors_of(value, micro::nested_divisor(its, tensor), others);
        if (pass == 1 && !micro::takes_four(code, least, its, errors)) break;
        WW_UNROLL
        for (int i = 0; i < each; ++i) quotient[i] = others[i];
        code = its;
        least = errors;
      }
      return code;
    }
  }

  /// The scales of four blocks next to each other are a word of a tile, which the first of their
  /// lanes stores. All lanes of a warp.
  WW_DEVICE static void store_scale(const Params& p, int row, std::int64_t place, int k,
                                    std::uint32_t code) {
    const int number = k / block;
    if (p.in_rows) {
      if (k % block == 0 && number < p.columns) {
        isa::GlobalView<unsigned char>{p.scales}.store(row * p.pitch + number,
                                                       static_cast<unsigned char>(code));
      }
      return;
    }
    const std::uint32_t word = Block::word_of_scales(code, number);
    if (k % (4 * block) != 0 || number >= p.columns || place < 0 || place >= p.scale_rows) return;
    isa::global_view<std::uint32_t>(p.scales + block_scales::place(place, number, p.columns))
        .store(0, word);
  }
};

}  // namespace warpwright::kernel
