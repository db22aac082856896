// mma.sync: a warp, or each quad pair of one, multiplies what its registers hold (PTX ISA
// 9.7.14.5), GeForce Blackwell with scales of blocks along K, which lie in registers too. Who holds
// what: atom/mma.h. Synchronous: the sums are there when the instruction is.
#pragma once

#include <cstddef>
#include <type_traits>

#include "warpwright/atom/mma.h"
#include "warpwright/isa/config.h"

namespace warpwright::isa {

/// A register of sums: a float, an integer, or two f16 in 32 bits.
template <atom::Mma M>
using MmaSum =
    std::conditional_t<M.sums == DType::f32, float,
                       std::conditional_t<M.sums == DType::s32, std::int32_t, std::uint32_t>>;

#if WW_GPU
namespace detail {

/// "m16n8k16.row.col.f32.bf16.bf16.f32", as a text that an asm statement takes.
struct MmaText {
  char text[96] = {};
  int length = 0;
  constexpr void add(const char* part) {
    while (*part != '\0') text[length++] = *part++;
  }
  constexpr void add(int number) {
    if (number >= 10) add(number / 10);
    text[length++] = static_cast<char>('0' + number % 10);
  }
  constexpr void add(DType type) {
    text[length++] = '.';
    for (const char c : numeric::name(type)) text[length++] = c;
  }
  constexpr explicit MmaText(const atom::Mma& mma) {
    add("m");
    add(mma.m);
    add("n");
    add(mma.n);
    add("k");
    add(mma.k);
    add(mma.a_major == atom::Major::k ? ".row" : ".col");
    add(mma.b_major == atom::Major::k ? ".col" : ".row");
    if (mma.scale_block > 0) {
      add(mma.kind == atom::MmaKind::mxf8f6f4 ? ".kind::mxf8f6f4"
          : mma.kind == atom::MmaKind::mxf4   ? ".kind::mxf4"
                                              : ".kind::mxf4nvf4");
      add(".block_scale.scale_vec::");
      add(atom::mma_scales(mma));
      add("X");
    }
    add(mma.sums);
    add(mma.a);
    add(mma.b);
    add(mma.sums);
    if (mma.scale_block > 0) add(mma.scale);
  }
};

template <atom::Mma M, std::size_t... I>
struct MmaWords {
  static constexpr char text[] = {MmaText(M).text[I]..., '\0'};
};
template <atom::Mma M, std::size_t... I>
constexpr MmaWords<M, I...> mma_words(std::index_sequence<I...> /*letters*/) {
  return {};
}
template <atom::Mma M>
using MmaName = decltype(mma_words<M>(std::make_index_sequence<MmaText(M).length>()));

}  // namespace detail
#endif

/// sums += A * B^T by the instruction M, whose registers a thread passes. All 32 lanes execute it
/// together. For m8n8k4 each quad pair multiplies its own.
template <atom::Mma M>  // NOLINTNEXTLINE(readability-function-size): a statement a shape
WW_DEVICE void mma_sync(MmaSum<M> (&sums)[atom::mma_registers_c(M)],
                        const std::uint32_t (&a)[atom::mma_registers_a(M)],
                        const std::uint32_t (&b)[atom::mma_registers_b(M)],
                        [[maybe_unused]] Site site = Site::here()) {
  static_assert(atom::mma_fault(M) == nullptr &&
                (M.kind == atom::MmaKind::warp || M.kind == atom::MmaKind::quad_pair));
#if WW_GPU
  constexpr int c_count = atom::mma_registers_c(M);
  constexpr int a_count = atom::mma_registers_a(M);
  constexpr int b_count = atom::mma_registers_b(M);
  using Name = detail::MmaName<M>;
// One statement for each count of registers, with the constraint of the sums.
#define WW_MMA_4_4_2(f)                                                                      \
  asm volatile(                                                                              \
      "mma.sync.aligned.%10 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+" f(sums[0]), "+" f(sums[1]), "+" f(sums[2]), "+" f(sums[3])                       \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "C"(Name::text))
#define WW_MMA_4_2_2(f)                                                                      \
  asm volatile("mma.sync.aligned.%8 {%0, %1, %2, %3}, {%4, %5}, {%6, %7}, {%0, %1, %2, %3};" \
               : "+" f(sums[0]), "+" f(sums[1]), "+" f(sums[2]), "+" f(sums[3])              \
               : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]), "C"(Name::text))
#define WW_MMA_4_2_1(f)                                                                  \
  asm volatile("mma.sync.aligned.%7 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" \
               : "+" f(sums[0]), "+" f(sums[1]), "+" f(sums[2]), "+" f(sums[3])          \
               : "r"(a[0]), "r"(a[1]), "r"(b[0]), "C"(Name::text))
  if constexpr (c_count == 4 && a_count == 4) {
    if constexpr (M.sums == DType::f32) {
      WW_MMA_4_4_2("f");
    } else {
      WW_MMA_4_4_2("r");
    }
  } else if constexpr (c_count == 4 && b_count == 2) {
    if constexpr (M.sums == DType::f32) {
      WW_MMA_4_2_2("f");
    } else {
      WW_MMA_4_2_2("r");
    }
  } else if constexpr (c_count == 4) {
    if constexpr (M.sums == DType::f32) {
      WW_MMA_4_2_1("f");
    } else {
      WW_MMA_4_2_1("r");
    }
  } else if constexpr (c_count == 8) {
    asm volatile(
        "mma.sync.aligned.%12 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%10, %11}, "
        "{%0, %1, %2, %3, %4, %5, %6, %7};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]),
          "+f"(sums[6]), "+f"(sums[7])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]), "C"(Name::text));
  } else if constexpr (a_count == 4) {
    asm volatile("mma.sync.aligned.%8 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
                 : "+r"(sums[0]), "+r"(sums[1])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),
                   "C"(Name::text));
  } else if constexpr (a_count == 2) {
    asm volatile("mma.sync.aligned.%5 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
                 : "+r"(sums[0]), "+r"(sums[1])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "C"(Name::text));
  } else {
    asm volatile("mma.sync.aligned.%4 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+r"(sums[0]), "+r"(sums[1])
                 : "r"(a[0]), "r"(b[0]), "C"(Name::text));
  }
#undef WW_MMA_4_4_2
#undef WW_MMA_4_2_2
#undef WW_MMA_4_2_1
#else
  model::mma_sync({.mma = &M, .sums = sums, .a = a, .b = b}, site);
#endif
}

/// A lane's words of scales, four along K each, of which an MMA takes those that `From` names.
template <atom::MmaScaleSource From>
struct MmaScales {
  std::uint32_t a;
  std::uint32_t b;
};

/// The same of block-scaled operands: the products of each block of K times its two scales.
template <atom::Mma M, atom::MmaScaleSource From>
WW_DEVICE void mma_sync(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                        const MmaScales<From>& scales, [[maybe_unused]] Site site = Site::here()) {
  static_assert(atom::mma_fault(M) == nullptr && M.scale_block > 0 &&
                atom::mma_scales_fault(M, From) == nullptr);
#if WW_GPU
  using Name = detail::MmaName<M>;
  asm volatile(
      "mma.sync.aligned.%16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, "
      "{%10}, {%11, %12}, {%13}, {%14, %15};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(scales.a),
        "n"(From.byte_a), "n"(From.lanes_a), "r"(scales.b), "n"(From.byte_b), "n"(From.lanes_b),
        "C"(Name::text));
#else
  static constexpr atom::MmaScaleSource from = From;
  model::mma_sync({.mma = &M,
                   .sums = sums,
                   .a = a,
                   .b = b,
                   .from = &from,
                   .scales_a = scales.a,
                   .scales_b = scales.b},
                  site);
#endif
}

}  // namespace warpwright::isa
