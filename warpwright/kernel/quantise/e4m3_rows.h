// Rows as codes of e4m3 with scales of float32: one of each 128 neighbours, of each row, or of all.
#pragma once

#include "warpwright/kernel/quantise/pieces.h"

namespace warpwright::kernel {

template <bool whole>
WW_DEVICE void store_row_codes(const QuantisedRows& r, int row, int k, std::uint64_t codes) {
  store_codes<8>(r.codes + row * r.codes_pitch + k, codes, r.k - k, whole);
}

/// Scaling::blockwise. As many lanes as hold a block of a row find its scale.
template <DType type, bool whole>
struct QuantiseBlocks : QuantiseShape {
  using Params = QuantisedRows;

  WW_DEVICE static void run(const Params& r) {
    isa::set_role("quantises blocks");
    for_each_piece<at_once>(
        r, r.rows,
        [&](int row, int k, float(&value)[each]) { load_values<type, whole>(r, row, k, value); },
        [&](int row, int k, const float(&value)[each]) {
          const float largest = largest_of_block<each>(larger_finite(0, value), r.block);
          const float scale = e4m3_scale(largest);
          if (k >= r.k) return;
          store_row_codes<whole>(r, row, k, codes_of(E4m3Divisor(scale), value));
          if ((k & (r.block - 1)) != 0) return;
          isa::GlobalView<float>{r.scales}.store(
              row * r.scale_pitch + block_number(k, r.block) * r.scale_step, scale);
        });
  }
};

/// Scaling::row_column. A CTA takes a row. What its registers hold of it is not read again.
template <DType type, bool whole>
struct QuantiseRows : QuantiseShape {
  using Params = QuantisedRows;
  static constexpr int shared_bytes = kLargestBytes;

  static constexpr int ctas(const QuantisedRows& r) { return r.rows; }

  WW_DEVICE static void run(const Params& r) {
    isa::set_role("quantises a row");
    constexpr int kept = 4;
    const int row = isa::cta_index();
    const int first = each * isa::thread_index();
    float value[kept][each];
    float largest = 0;
    WW_UNROLL
    for (int i = 0; i < kept; ++i) {
      if (first + i * piece < r.k) load_values<type, whole>(r, row, first + i * piece, value[i]);
    }
    WW_UNROLL
    for (int i = 0; i < kept; ++i) {
      if (first + i * piece < r.k) largest = larger_finite(largest, value[i]);
    }
    for (int k = first + kept * piece; k < r.k; k += piece) {
      float more[each];
      load_values<type, whole>(r, row, k, more);
      largest = larger_finite(largest, more);
    }
    const E4m3Divisor by(e4m3_scale(largest_of_cta(largest)));
    if (isa::thread_index() == 0) {
      isa::GlobalView<float>{r.scales}.store(row * r.scale_pitch, by.scale);
    }
    WW_UNROLL
    for (int i = 0; i < kept; ++i) {
      if (first + i * piece < r.k) {
        store_row_codes<whole>(r, row, first + i * piece, codes_of(by, value[i]));
      }
    }
    for (int k = first + kept * piece; k < r.k; k += piece) {
      float more[each];
      load_values<type, whole>(r, row, k, more);
      store_row_codes<whole>(r, row, k, codes_of(by, more));
    }
  }
};

/// Scaling::tensor, with the scale that is there.
template <DType type, bool whole>
struct QuantiseTensor : QuantiseShape {
  using Params = QuantisedRows;

  WW_DEVICE static void run(const Params& r) {
    isa::set_role("quantises by one scale");
    const E4m3Divisor by(isa::GlobalView<const float>{r.scales}.load());
    for_each_piece<at_once>(
        r, r.rows,
        [&](int row, int k, float(&value)[each]) { load_values<type, whole>(r, row, k, value); },
        [&](int row, int k, const float(&value)[each]) {
          if (k >= r.k) return;
          float quotient[each];
          divide(by, value, quotient);  // by a scale that may be another tensor's
          store_row_codes<whole>(r, row, k, codes_of<DType::e4m3>(quotient));
        });
  }
};

/// The largest magnitude of a tensor becomes its scale: of e4m3, or of nvf4 by a recipe.
struct MakeScaleParams {
  float* place = nullptr;
  bool nested = false;
  Recipe recipe = Recipe::nested;
};
struct MakeScale {
  using Params = MakeScaleParams;
  static constexpr int threads = 1;
  static constexpr int shared_bytes = 0;
  static constexpr int ctas_an_sm = 1;

  WW_DEVICE static void run(const Params& p) {
    const isa::GlobalView<float> place{p.place};
    const float largest = place.load();
    place.store(0, p.nested ? micro::tensor_scale(p.recipe, largest) : e4m3_scale(largest));
  }
};

}  // namespace warpwright::kernel
