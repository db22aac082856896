// A kernel around the main loop of the register family: one tile a CTA, sums stored one by one. The
// same source runs on the model and on a device.
#pragma once

#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/kernel/registers/mainloop.h"

namespace warpwright::tests {

struct LoopParams {
  const std::uint8_t* a = nullptr;  ///< M x K, K-major
  const std::uint8_t* b = nullptr;  ///< N x K
  void* d = nullptr;                ///< M x N sums of 32 bits, rows one after the other
  std::int64_t pitch_a = 0;         ///< bytes
  std::int64_t pitch_b = 0;
  int m = 0, n = 0, k = 0;
};

template <class Tag>
WW_DEVICE void multiply_tile(const LoopParams& p) {
  constexpr kernel::RegisterConfig c = Tag::config;
  using Loop = kernel::RegisterMainloop<Tag>;
  const int columns = (p.n + c.tile_n - 1) / c.tile_n;
  const int row0 = isa::cta_index() / columns * c.tile_m;
  const int column0 = isa::cta_index() % columns * c.tile_n;
  const int k_bytes = p.k * numeric::bits(c.mma.a) / 8;
  const int thread = isa::thread_index();
  const kernel::RegisterOperand a = kernel::with_steps({p.a, p.pitch_a, p.m, k_bytes}, c, c.tile_m);
  const kernel::RegisterOperand b = kernel::with_steps({p.b, p.pitch_b, p.n, k_bytes}, c, c.tile_n);
  Loop loop(isa::shared_base(), a, {0, row0, 0}, b, {0, column0, 0}, thread);
  typename Loop::Sums sums = {};
  loop.run((p.k + c.tile_k - 1) / c.tile_k, sums);
  // The ring's memory serves others now, as an epilogue's buffers would be.
  WW_NO_UNROLL for (int i = thread; i < kernel::shared_bytes(c) / 16; i += kernel::threads(c)) {
    isa::SharedView<isa::Words<4>>{isa::shared_base()}.store(i, {{0, 0, 0, 0}});
  }
  const int warp = thread / 32;
  const int first_row = row0 + warp / c.warps_n * (c.tile_m / c.warps_m);
  const int first_column = column0 + warp % c.warps_n * (c.tile_n / c.warps_n);
  WW_UNROLL
  for (int m = 0; m < kernel::m_tiles(c); ++m) {
    WW_UNROLL
    for (int n = 0; n < kernel::n_tiles(c); ++n) {
      WW_UNROLL
      for (int v = 0; v < 4; ++v) {
        const int at = layout::offset_of<atom::mma_layout_c(c.mma)>(thread % 32, v);
        const int row = first_row + 16 * m + at % 16;
        const int column = first_column + 8 * n + at / 16;
        if (row < p.m && column < p.n) {
          isa::GlobalView<typename Loop::Sum>{static_cast<typename Loop::Sum*>(p.d)}.store(
              static_cast<std::int64_t>(row) * p.n + column, sums[m][n][v]);
        }
      }
    }
  }
}

/// What is tested: 64 x 64 tiles of four warps, two K steps a stage or four.
template <DType T>
constexpr atom::Mma mma_of() {
  return {atom::MmaKind::warp,
          16,
          8,
          256 / numeric::bits(T),
          T,
          T,
          numeric::is_float(T) ? DType::f32 : DType::s32};
}
template <DType T, int RowBytes, int Stages>
struct LoopTag {
  static constexpr kernel::RegisterConfig config{
      mma_of<T>(), 64, 64, RowBytes * 8 / numeric::bits(T), 2, 2, Stages};
  static_assert(kernel::config_fault(config, numeric::bits(T) == 8 ? 89 : 80) == nullptr);
};

}  // namespace warpwright::tests
