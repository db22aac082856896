// Products by mma.sync, one instruction each, on integers so small that every sum is exact: the
// same kernel runs on the model and on a device.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "warpwright/atom/mma.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/mma.h"
#include "warpwright/isa/thread.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::tests {

using atom::Major;
using atom::Mma;
using atom::MmaKind;

constexpr Mma warp(int m, int k, DType a, DType b, DType sums) {
  return {MmaKind::warp, m, 8, k, a, b, sums};
}
constexpr Mma volta(DType sums, Major a, Major b) {
  return {MmaKind::quad_pair, 8, 8, 4, DType::f16, DType::f16, sums, a, b};
}

constexpr Mma scaled(MmaKind kind, int k, DType type, int block, DType scale) {
  return {kind, 16, 8, k, type, type, DType::f32, Major::k, Major::k, block, scale};
}
/// For any two elements, each in a byte.
constexpr Mma mixed(DType a, DType b) {
  Mma mma = scaled(MmaKind::mxf8f6f4, 32, a, 32, DType::ue8m0);
  mma.b = b;
  return mma;
}

/// Every shape and type of mma.sync that isa/mma.h has.
inline constexpr Mma kProducts[] = {
    volta(DType::f32, Major::k, Major::k),
    volta(DType::f32, Major::mn, Major::mn),
    volta(DType::f32, Major::mn, Major::k),
    volta(DType::f32, Major::k, Major::mn),
    volta(DType::f16, Major::k, Major::k),
    volta(DType::f16, Major::mn, Major::mn),
    volta(DType::f16, Major::mn, Major::k),
    volta(DType::f16, Major::k, Major::mn),
    warp(16, 8, DType::f16, DType::f16, DType::f32),
    warp(16, 8, DType::f16, DType::f16, DType::f16),
    warp(16, 16, DType::f16, DType::f16, DType::f32),
    warp(16, 16, DType::f16, DType::f16, DType::f16),
    warp(16, 8, DType::bf16, DType::bf16, DType::f32),
    warp(16, 16, DType::bf16, DType::bf16, DType::f32),
    warp(16, 4, DType::tf32, DType::tf32, DType::f32),
    warp(16, 8, DType::tf32, DType::tf32, DType::f32),
    warp(8, 16, DType::s8, DType::s8, DType::s32),
    warp(16, 16, DType::s8, DType::u8, DType::s32),
    warp(16, 32, DType::s8, DType::s8, DType::s32),
    warp(16, 32, DType::u8, DType::s8, DType::s32),
    warp(16, 64, DType::s4, DType::s4, DType::s32),
    warp(16, 16, DType::e4m3, DType::e5m2, DType::f32),
    warp(16, 32, DType::e4m3, DType::e4m3, DType::f32),
    warp(16, 32, DType::e5m2, DType::e5m2, DType::f32),
    warp(16, 32, DType::e4m3, DType::e4m3, DType::f16),
    scaled(MmaKind::mxf8f6f4, 32, DType::e4m3, 32, DType::ue8m0),
    scaled(MmaKind::mxf8f6f4, 32, DType::e5m2, 32, DType::ue8m0),
    mixed(DType::e2m3, DType::e2m3),
    mixed(DType::e3m2, DType::e3m2),
    mixed(DType::e4m3, DType::e2m1),
    mixed(DType::e2m1, DType::e5m2),
    mixed(DType::e3m2, DType::e2m1),
    mixed(DType::e2m1, DType::e2m1),
    scaled(MmaKind::mxf4, 64, DType::e2m1, 32, DType::ue8m0),
    scaled(MmaKind::mxf4nvf4, 64, DType::e2m1, 32, DType::ue8m0),
    scaled(MmaKind::mxf4nvf4, 64, DType::e2m1, 16, DType::ue4m3),
};
inline constexpr int kProductCount = sizeof kProducts / sizeof kProducts[0];

inline constexpr int kRegisters = 8;  ///< that a lane has of each matrix, at most

/// Word i of a lane is at 32 i + lane: A, B, the sums that go in and out, and one word of scales of
/// A and of B.
struct Words {
  std::uint32_t* a;
  std::uint32_t* b;
  std::uint32_t* sums;
  std::uint32_t* scales_a = nullptr;
  std::uint32_t* scales_b = nullptr;
};
/// Choices of lanes and bytes from which the scales of an instruction may come: all lanes, the
/// first and the last bytes. For one without scales there is one.
constexpr atom::MmaScaleSource scale_source(const Mma& mma, int choice) {
  const int last = mma.scale_block == 0 ? 0 : 4 - atom::mma_scales(mma);
  return {choice % 2 * last, choice / 2 % 2, (choice + 1) / 2 % 2 * last, choice};
}
constexpr int scale_sources(const Mma& mma) {
  return mma.scale_block == 0 ? 1 : 4;
}

/// One warp executes the instruction once.
template <Mma M, int Choice = 0>
WW_DEVICE void multiply_once(const Words& memory) {
  const int lane = isa::thread_index() % 32;
  const auto word = [lane](std::uint32_t* at, int i) {
    return isa::GlobalView<std::uint32_t>{at + 32 * i + lane};
  };
  std::uint32_t a[atom::mma_registers_a(M)];
  std::uint32_t b[atom::mma_registers_b(M)];
  std::uint32_t bits[atom::mma_registers_c(M)];
  isa::MmaSum<M> sums[atom::mma_registers_c(M)];
  WW_UNROLL
  for (int i = 0; i < atom::mma_registers_a(M); ++i) a[i] = word(memory.a, i).load();
  WW_UNROLL
  for (int i = 0; i < atom::mma_registers_b(M); ++i) b[i] = word(memory.b, i).load();
  WW_UNROLL
  for (int i = 0; i < atom::mma_registers_c(M); ++i) {
    bits[i] = word(memory.sums, i).load();
    sums[i] = *reinterpret_cast<const isa::MmaSum<M>*>(&bits[i]);
  }
  if constexpr (M.scale_block > 0) {
    isa::mma_sync<M>(sums, a, b,
                     isa::MmaScales<scale_source(M, Choice)>{word(memory.scales_a, 0).load(),
                                                             word(memory.scales_b, 0).load()});
  } else {
    isa::mma_sync<M>(sums, a, b);
  }
  WW_UNROLL
  for (int i = 0; i < atom::mma_registers_c(M); ++i) {
    bits[i] = *reinterpret_cast<const std::uint32_t*>(&sums[i]);
    word(memory.sums, i).store(0, bits[i]);
  }
}

/// Random operands of an instruction in the registers of a warp, and what its sums must be.
struct Product {
  std::vector<std::uint32_t> a, b, sums, expected;
  std::vector<std::uint32_t> scales_a, scales_b;  // one word a lane
  atom::MmaScaleSource from;

  Product(const Mma& mma, unsigned seed, int choice = 0)
      : a(32 * kRegisters), b(32 * kRegisters), sums(32 * kRegisters), expected(32 * kRegisters) {
    std::mt19937 random(seed);
    from = scale_source(mma, choice);
    if (mma.scale_block > 0) draw_scales(mma, random);
    const int threads = atom::mma_threads(mma);
    for (int q = 0; q < 32 / threads; ++q) {
      const auto numbers = [&](int count, DType type) {
        std::vector<int> all(static_cast<std::size_t>(count));
        for (int& one : all) {
          one = static_cast<int>(random() % 5) - (type == DType::u8 ? 0 : 2);
        }
        return all;
      };
      const std::vector<int> av = numbers(mma.m * mma.k, mma.a);
      const std::vector<int> bv = numbers(mma.n * mma.k, mma.b);
      const std::vector<int> cv = numbers(mma.m * mma.n, mma.sums);
      std::vector<int> dv = cv;
      for (int j = 0; j < mma.n; ++j) {
        for (int i = 0; i < mma.m; ++i) {
          for (int k = 0; k < mma.k; ++k) {
            dv.at(i + mma.m * j) +=
                av.at(i + mma.m * k) * bv.at(j + mma.n * k) * scale(mma, i, j, k);
          }
        }
      }
      put(mma, q, atom::mma_layout_a(mma), atom::register_bits(mma, mma.a), mma.a, av, a,
          atom::register_shift(mma, mma.a));
      put(mma, q, atom::mma_layout_b(mma), atom::register_bits(mma, mma.b), mma.b, bv, b,
          atom::register_shift(mma, mma.b));
      put(mma, q, atom::mma_layout_c(mma), numeric::bits(mma.sums), mma.sums, cv, sums);
      put(mma, q, atom::mma_layout_c(mma), numeric::bits(mma.sums), mma.sums, dv, expected);
    }
  }

 private:
  // Words in which every byte is a scale of 1, 2 or 4, in the lanes that are read, and NaN
  // elsewhere.
  void draw_scales(const Mma& mma, std::mt19937& random) {
    const auto word = [&](bool read) {
      std::uint32_t bytes = ~0U;
      for (int i = 0; read && i < 4; ++i) {
        const auto one =
            static_cast<std::uint32_t>(numeric::from_double(mma.scale, 1 << random() % 3));
        bytes = bytes << 8 | one;
      }
      return bytes;
    };
    for (int lane = 0; lane < 32; ++lane) {
      scales_a.push_back(word(lane / 2 % 2 == from.lanes_a));
      scales_b.push_back(word(lane % 4 == from.lanes_b));
    }
  }
  // For element (i, k) of A times element (j, k) of B: PTX's rules for the lanes, not atom's
  // layouts.
  [[nodiscard]] int scale(const Mma& mma, int i, int j, int k) const {
    if (mma.scale_block == 0) return 1;
    const auto byte = [&](std::uint32_t word, int first) {
      const int at = first + k / mma.scale_block;
      return static_cast<int>(numeric::to_double(mma.scale, word >> 8 * at & 0xff));
    };
    return byte(scales_a.at(4 * (i % 8) + 2 * from.lanes_a + i / 8), from.byte_a) *
           byte(scales_b.at(4 * j + from.lanes_b), from.byte_b);
  }
  static std::uint32_t code(DType type, int bits, int value) {
    if (!numeric::is_float(type))
      return static_cast<std::uint32_t>(value) & (bits == 32 ? ~0U : (1U << bits) - 1);
    const DType as = type == DType::tf32 ? DType::f32 : type;
    return static_cast<std::uint32_t>(numeric::from_double(as, value));
  }
  static void put(const Mma& mma, int q, const layout::Layout& tv, int bits, DType type,
                  const std::vector<int>& values, std::vector<std::uint32_t>& words,
                  int begin = 0) {
    const layout::Layout lanes = atom::mma_thr_id(mma);
    const int each = 32 / bits;
    for (int t = 0; t < layout::size(tv, 0); ++t) {
      const int lane = static_cast<int>(lanes(t)) + 4 * q;
      for (int v = 0; v < layout::size(tv, 1); ++v) {
        words.at(32 * (v / each) + lane) |=
            code(type, bits, values.at(static_cast<std::size_t>(tv(t, v))))
            << (v % each * bits + begin);
      }
    }
  }
};

}  // namespace warpwright::tests
