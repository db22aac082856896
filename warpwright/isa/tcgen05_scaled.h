// tcgen05 with scales, and copies into tensor memory: products whose elements are scaled by blocks
// of K (PTX ISA 9.7.16.10), and tcgen05.cp, which brings the scales from shared memory (9.7.16.9).
//
// Order: an MMA follows the copies that its thread issued before it, and a copy the MMAs before it,
// so scales may lie once in tensor memory. What another thread issued must be committed and waited
// for. One `tcgen05_commit` covers copies and MMAs alike.
#pragma once

#include "warpwright/atom/umma_scaled.h"
#include "warpwright/isa/tcgen05.h"

namespace warpwright::isa {

using TmemCopy = atom::TmemCopy;
using TmemWiden = atom::TmemWiden;

#if WW_GPU
namespace detail {

template <int Block>
struct BlockText;
template <>
struct BlockText<16> {
  static constexpr char text[] = "16";
};
template <>
struct BlockText<32> {
  static constexpr char text[] = "32";
};

}  // namespace detail
#endif

/// D = (A * scales) * (B * scales)^T (+ D when `accumulate`), asynchronously, as `tcgen05_mma`: a
/// scale each `Block` elements of K, 32 or (mxf4nvf4) 16. The scales of A's rows lie in tensor
/// memory at `scales_a`, those of B's at `scales_b` (atom/umma_scaled.h; in a pair at the same
/// addresses in both CTAs: each has those of its own rows of A and of all rows of B), the bytes
/// that are taken are the ids of `instruction` (`atom::with_scale_ids`).
template <atom::UmmaKind Kind, int Block, int Ctas>
WW_DEVICE void tcgen05_mma_scaled(TmemAddress d, std::uint64_t descriptor_a,
                                  std::uint64_t descriptor_b, std::uint32_t instruction,
                                  TmemAddress scales_a, TmemAddress scales_b, bool accumulate,
                                  [[maybe_unused]] Site site = Site::here()) {
  static_assert(Ctas == 1 || Ctas == 2, "tcgen05 works for one CTA or for a pair");
  static_assert(atom::is_block_scaled(Kind), "tcgen05_mma has the kinds without scales");
  static_assert(Block == 32 || (Block == 16 && Kind == atom::UmmaKind::mxf4nvf4),
                "a scale serves 32 elements, for kind mxf4nvf4 also 16");
#if WW_GPU
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %6, 0;\n\t"
      "tcgen05.mma.cta_group::%7.kind::%8.block_scale.block%9 [%0], %1, %2, %3, [%4], [%5], "
      "p;\n\t}" ::"r"(d),
      "l"(descriptor_a), "l"(descriptor_b), "r"(instruction), "r"(scales_a), "r"(scales_b),
      "r"(static_cast<int>(accumulate)), "C"(detail::GroupText<Ctas>::text),
      "C"(detail::KindText<Kind>::text), "C"(detail::BlockText<Block>::text)
      : "memory");
#else
  model::tcgen05_mma({.kind = Kind,
                      .ctas = Ctas,
                      .d = d,
                      .descriptor_a = descriptor_a,
                      .descriptor_b = descriptor_b,
                      .instruction = instruction,
                      .accumulate = accumulate,
                      .scale_block = Block,
                      .scales_a = scales_a,
                      .scales_b = scales_b},
                     site);
#endif
}

/// `tcgen05_mma` with A in tensor memory at `a`: row r of A (of each CTA of a pair its own rows) in
/// the lane of row r of D, K along the columns, 32 bytes of it. Elements of less than 8 bits of
/// kind f8f6f4 have a byte each, in its low bits. A is K-major; N is a multiple of 16 (of a pair
/// 32), with 64 rows of 8. What threads store there needs `tcgen05_wait_store` and the fences.
template <atom::UmmaKind Kind, int Ctas>
WW_DEVICE void tcgen05_mma_tmem(TmemAddress d, TmemAddress a, std::uint64_t descriptor_b,
                                std::uint32_t instruction, bool accumulate,
                                [[maybe_unused]] Site site = Site::here()) {
  static_assert(Ctas == 1 || Ctas == 2, "tcgen05 works for one CTA or for a pair");
  static_assert(!atom::is_block_scaled(Kind), "tcgen05_mma_scaled_tmem has the kinds with scales");
#if WW_GPU
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
      "tcgen05.mma.cta_group::%5.kind::%6 [%0], [%1], %2, %3, p;\n\t}" ::"r"(d),
      "r"(a), "l"(descriptor_b), "r"(instruction), "r"(static_cast<int>(accumulate)),
      "C"(detail::GroupText<Ctas>::text), "C"(detail::KindText<Kind>::text)
      : "memory");
#else
  model::tcgen05_mma({.kind = Kind,
                      .ctas = Ctas,
                      .d = d,
                      .descriptor_b = descriptor_b,
                      .instruction = instruction,
                      .accumulate = accumulate,
                      .a_in_tmem = true,
                      .a = a},
                     site);
#endif
}

/// `tcgen05_mma_scaled` with A in tensor memory, as `tcgen05_mma_tmem` has it: of kinds mxf4 and
/// mxf4nvf4 eight elements a column, of mxf8f6f4 four.
template <atom::UmmaKind Kind, int Block, int Ctas>
WW_DEVICE void tcgen05_mma_scaled_tmem(TmemAddress d, TmemAddress a, std::uint64_t descriptor_b,
                                       std::uint32_t instruction, TmemAddress scales_a,
                                       TmemAddress scales_b, bool accumulate,
                                       [[maybe_unused]] Site site = Site::here()) {
  static_assert(Ctas == 1 || Ctas == 2, "tcgen05 works for one CTA or for a pair");
  static_assert(atom::is_block_scaled(Kind), "tcgen05_mma_tmem has the kinds without scales");
  static_assert(Block == 32 || (Block == 16 && Kind == atom::UmmaKind::mxf4nvf4),
                "a scale serves 32 elements, for kind mxf4nvf4 also 16");
#if WW_GPU
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %6, 0;\n\t"
      "tcgen05.mma.cta_group::%7.kind::%8.block_scale.block%9 [%0], [%1], %2, %3, [%4], [%5], "
      "p;\n\t}" ::"r"(d),
      "r"(a), "l"(descriptor_b), "r"(instruction), "r"(scales_a), "r"(scales_b),
      "r"(static_cast<int>(accumulate)), "C"(detail::GroupText<Ctas>::text),
      "C"(detail::KindText<Kind>::text), "C"(detail::BlockText<Block>::text)
      : "memory");
#else
  model::tcgen05_mma({.kind = Kind,
                      .ctas = Ctas,
                      .d = d,
                      .descriptor_b = descriptor_b,
                      .instruction = instruction,
                      .accumulate = accumulate,
                      .a_in_tmem = true,
                      .a = a,
                      .scale_block = Block,
                      .scales_a = scales_a,
                      .scales_b = scales_b},
                     site);
#endif
}

#if WW_GPU
namespace detail {

// "32x128b.warpx4" and so on, with what widens elements behind it.
template <TmemCopy Shape>
struct CopyText;
template <>
struct CopyText<TmemCopy::b32x128_warpx4> {
  static constexpr char text[] = "32x128b.warpx4";
};
template <>
struct CopyText<TmemCopy::b128x256> {
  static constexpr char text[] = "128x256b";
};
template <>
struct CopyText<TmemCopy::b128x128> {
  static constexpr char text[] = "128x128b";
};
template <>
struct CopyText<TmemCopy::b4x256> {
  static constexpr char text[] = "4x256b";
};
template <>
struct CopyText<TmemCopy::b64x128_warpx2_02_13> {
  static constexpr char text[] = "64x128b.warpx2::02_13";
};
template <>
struct CopyText<TmemCopy::b64x128_warpx2_01_23> {
  static constexpr char text[] = "64x128b.warpx2::01_23";
};
template <TmemWiden Widen>
struct WidenText;
template <>
struct WidenText<TmemWiden::none> {
  static constexpr char text[] = "";
};
template <>
struct WidenText<TmemWiden::from_b4x16_p64> {
  static constexpr char text[] = ".b8x16.b4x16_p64";
};
template <>
struct WidenText<TmemWiden::from_b6x16_p32> {
  static constexpr char text[] = ".b8x16.b6x16_p32";
};

}  // namespace detail
#endif

/// Copies a matrix of shared memory, which `descriptor` describes as it would an operand's, to
/// tensor memory at `to`, asynchronously: `Shape` says how many rows of how many bits, and to which
/// lanes. `Widen` makes a byte of every element of 4 or 6 bits. With Ctas = 2 the one instruction,
/// which a thread of the pair's even CTA executes, copies in both CTAs, each from its own shared
/// memory. Shared memory written by threads needs their `fence_proxy_async_shared`; it may be
/// written again behind a `tcgen05_commit` (tcgen05.cp, PTX ISA 9.7.16.9).
template <TmemCopy Shape, int Ctas, TmemWiden Widen = TmemWiden::none>
WW_DEVICE void tcgen05_copy(TmemAddress to, std::uint64_t descriptor,
                            [[maybe_unused]] Site site = Site::sync()) {
  static_assert(Ctas == 1 || Ctas == 2, "tcgen05 works for one CTA or for a pair");
#if WW_GPU
  asm volatile("tcgen05.cp.cta_group::%2.%3%4 [%0], %1;" ::"r"(to), "l"(descriptor),
               "C"(detail::GroupText<Ctas>::text), "C"(detail::CopyText<Shape>::text),
               "C"(detail::WidenText<Widen>::text)
               : "memory");
#else
  model::tcgen05_copy(
      {.shape = Shape, .widen = Widen, .ctas = Ctas, .to = to, .descriptor = descriptor}, site);
#endif
}

}  // namespace warpwright::isa
