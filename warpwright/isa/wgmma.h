// wgmma: a warpgroup multiplies 64 x k by k x N tiles on the tensor core, asynchronously
// (PTX ISA 9.7.15). Operands come from shared memory through descriptors (atom/descriptor.h), A
// also from registers; the accumulator stays in the registers of the 128 threads (atom/wgmma.h).
#pragma once

#include <utility>

#include "warpwright/atom/descriptor.h"
#include "warpwright/atom/wgmma.h"
#include "warpwright/isa/config.h"
#include "warpwright/isa/fragment.h"
#include "warpwright/isa/trace.h"
#if WW_GPU
#include "warpwright/isa/wgmma_operands.h"
#endif

namespace warpwright::isa {

/// Orders this warpgroup's register and shared-memory accesses before the wgmmas that follow: once
/// before the first, and whenever accumulator or A registers were touched in between.
/// `accumulators` is the fragment about to be used, or an array of them. All 128 threads execute it
/// (wgmma.fence.sync.aligned).
template <class Accumulators>
WW_DEVICE void wgmma_fence(Accumulators& accumulators, [[maybe_unused]] Site site = Site::sync()) {
  pin_registers(accumulators);
#if WW_GPU
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
  model::wgmma_fence(site);
#endif
}

/// The same, for wgmmas that take A from the registers of `a`, a fragment or an array of them.
template <class Accumulators, class RegistersA,
          class = decltype(pin_registers(std::declval<RegistersA&>()))>
WW_DEVICE void wgmma_fence(Accumulators& accumulators, RegistersA& a, Site site = Site::sync()) {
  pin_registers(a);
  wgmma_fence(accumulators, site);
}

/// Closes the current group of wgmmas (wgmma.commit_group).
WW_DEVICE
void wgmma_commit([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  model::wgmma_commit(site);
#endif
}

/// Waits until at most `Pending` of the newest groups are in flight: the older ones have read their
/// shared memory. Does not give an accumulator back to the thread; the other form does.
template <int Pending>
WW_DEVICE void wgmma_wait([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  trace_wait_begin("wait wgmma");
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
  trace_wait_end();
#else
  model::wgmma_wait(Pending, false, site);
#endif
}

/// The same, and the thread may use `accumulators` (a fragment or an array of them) afterwards,
/// whose groups are among the older ones.
template <int Pending, class Accumulators>
WW_DEVICE void wgmma_wait(Accumulators& accumulators, [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  wgmma_wait<Pending>();
#else
  model::wgmma_wait(Pending, true, site);
#endif
  pin_registers(accumulators);
}

/// The same, and the thread may write the registers of `a`, which those groups took A from.
template <int Pending, class Accumulators, class RegistersA,
          class = decltype(pin_registers(std::declval<RegistersA&>()))>
WW_DEVICE void wgmma_wait(Accumulators& accumulators, RegistersA& a, Site site = Site::sync()) {
  wgmma_wait<Pending>(accumulators, site);
  pin_registers(a);
}

#if WW_GPU
namespace detail {

// The part of the mnemonic after the shape's N.
template <DType A, DType B>
struct WgmmaText;
template <>
struct WgmmaText<DType::bf16, DType::bf16> {
  static constexpr char types[] = "k16.f32.bf16.bf16";
};
template <>
struct WgmmaText<DType::f16, DType::f16> {
  static constexpr char types[] = "k16.f32.f16.f16";
};
template <>
struct WgmmaText<DType::e4m3, DType::e4m3> {
  static constexpr char types[] = "k32.f32.e4m3.e4m3";
};
template <>
struct WgmmaText<DType::e5m2, DType::e5m2> {
  static constexpr char types[] = "k32.f32.e5m2.e5m2";
};
template <>
struct WgmmaText<DType::e4m3, DType::e5m2> {
  static constexpr char types[] = "k32.f32.e4m3.e5m2";
};
template <>
struct WgmmaText<DType::e5m2, DType::e4m3> {
  static constexpr char types[] = "k32.f32.e5m2.e4m3";
};

// The immediates after the predicate: which operands are MN-major.
template <bool Sixteen, atom::Major A, atom::Major B>
struct WgmmaTail {
  static constexpr char shared[] = {
      ',', ' ', A == atom::Major::mn ? '1' : '0', ',', ' ', B == atom::Major::mn ? '1' : '0', '\0'};
  static constexpr char registers[] = {',', ' ', B == atom::Major::mn ? '1' : '0', '\0'};
};
template <atom::Major A, atom::Major B>
struct WgmmaTail<false, A, B> {
  static constexpr char shared[] = "";
  static constexpr char registers[] = "";
};

}  // namespace detail
#endif

/// D[64 x N] = A[64 x k] * B[N x k]^T (+ D when `accumulate`), A of type TA and B of TB in shared
/// memory: both the same, or e4m3 and e5m2 mixed. All 128 threads pass the same descriptors. N is a
/// multiple of 8 from 8 to 256, k is 32 bytes; only 16-bit operands may be MN-major. Needs
/// `wgmma_fence` before, `wgmma_commit` after. The fragment may have more registers than the
/// N / 2 of its beginning, which are the instruction's.
template <DType TA, DType TB, int N, atom::Major A = atom::Major::k, atom::Major B = atom::Major::k,
          int Values = N / 2>
WW_DEVICE void wgmma(Fragment<float, Values>& fragment, std::uint64_t descriptor_a,
                     std::uint64_t descriptor_b, bool accumulate,
                     [[maybe_unused]] Site site = Site::here()) {
  static_assert(Values >= N / 2, "the sums of N columns");
  static_assert(atom::wgmma_fault(atom::wgmma_atom(TA, TB, DType::f32, N), A, B) == nullptr);
#if WW_GPU
  float* d = fragment.registers();
  using Text = detail::WgmmaText<TA, TB>;
  using Tail = detail::WgmmaTail<numeric::bits(TA) == 16, A, B>;
#define WW_CASE(n, count, p0, p1, p2, p3, p4, p5, p6, p7)                                   \
  if constexpr (N == n) {                                                                   \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " p2                                 \
                 ", 0;\n\twgmma.mma_async.sync.aligned.m64n" #n p3 " {" WW_TEXT_##count     \
                 "}, " p0 ", " p1 ", p, 1, 1" p4 ";\n\t}"                                   \
                 : WW_INOUT_##count                                                         \
                 : "l"(descriptor_a), "l"(descriptor_b), "r"(static_cast<int>(accumulate)), \
                   "C"(Text::types), "C"(Tail::shared));                                    \
  }
  WW_WGMMA_SHAPES(WW_CASE)
#undef WW_CASE
#else
  model::wgmma({.type = TA,
                .type_b = TB,
                .n = N,
                .descriptor_a = descriptor_a,
                .descriptor_b = descriptor_b,
                .major_a = A,
                .major_b = B,
                .accumulate = accumulate,
                .fragment = fragment.registers(),
                .state = &fragment.state()},
               site);
#endif
}

/// The same with both operands of type T.
template <DType T, int N, atom::Major A = atom::Major::k, atom::Major B = atom::Major::k>
WW_DEVICE void wgmma(Fragment<float, N / 2>& fragment, std::uint64_t descriptor_a,
                     std::uint64_t descriptor_b, bool accumulate,
                     [[maybe_unused]] Site site = Site::here()) {
  wgmma<T, T, N, A, B>(fragment, descriptor_a, descriptor_b, accumulate, site);
}

/// The same with A of TA and B of TB, A from registers: four 32-bit registers a thread, laid out as
/// atom::a_row and a_k say. They must be written before the fence, and not again before a wait
/// names them that covers the instruction.
template <DType TA, DType TB, int N, atom::Major B = atom::Major::k, int Values = N / 2>
WW_DEVICE void wgmma_registers(Fragment<float, Values>& fragment, Fragment<std::uint32_t, 4>& a,
                               std::uint64_t descriptor_b, bool accumulate,
                               [[maybe_unused]] Site site = Site::here()) {
  static_assert(Values >= N / 2, "the sums of N columns");
  static_assert(atom::wgmma_fault(atom::wgmma_atom(TA, TB, DType::f32, N), atom::Major::k, B,
                                  true) == nullptr);
#if WW_GPU
  float* d = fragment.registers();
  const std::uint32_t* r = a.registers();
  using Tail = detail::WgmmaTail<numeric::bits(TA) == 16, atom::Major::k, B>;
#define WW_CASE(n, count, p0, p1, p2, p3, p4, p5, p6, p7)                                    \
  if constexpr (N == n) {                                                                    \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " p5                                  \
                 ", 0;\n\twgmma.mma_async.sync.aligned.m64n" #n p6 " {" WW_TEXT_##count      \
                 "}, {" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", p, 1, 1" p7 ";\n\t}"          \
                 : WW_INOUT_##count                                                          \
                 : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(descriptor_b),            \
                   "r"(static_cast<int>(accumulate)), "C"(detail::WgmmaText<TA, TB>::types), \
                   "C"(Tail::registers));                                                    \
  }
  WW_WGMMA_SHAPES(WW_CASE)
#undef WW_CASE
#else
  model::wgmma({.type = TA,
                .type_b = TB,
                .n = N,
                .descriptor_b = descriptor_b,
                .registers_a = a.registers(),
                .state_a = &a.state(),
                .major_b = B,
                .accumulate = accumulate,
                .fragment = fragment.registers(),
                .state = &fragment.state()},
               site);
#endif
}

/// The same with both operands of type T.
template <DType T, int N, atom::Major B = atom::Major::k>
WW_DEVICE void wgmma_registers(Fragment<float, N / 2>& fragment, Fragment<std::uint32_t, 4>& a,
                               std::uint64_t descriptor_b, bool accumulate,
                               [[maybe_unused]] Site site = Site::here()) {
  wgmma_registers<T, T, N, B>(fragment, a, descriptor_b, accumulate, site);
}

}  // namespace warpwright::isa
