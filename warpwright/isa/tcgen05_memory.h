// Tensor memory to registers and back: tcgen05.ld, tcgen05.st and their waits (PTX ISA 9.7.16.8).
// Warp w of a CTA reaches lanes 32 (w % 4) to 32 (w % 4) + 31 and no others.
#pragma once

#include "warpwright/isa/config.h"
#include "warpwright/isa/fragment.h"
#include "warpwright/isa/tcgen05.h"
#include "warpwright/isa/trace.h"
#if WW_GPU
#include "warpwright/isa/tcgen05_operands.h"
#endif

namespace warpwright::isa {

/// How a load or store spreads tensor memory over a warp, by the lanes it covers.
#if WW_GPU
enum class TmemShape : std::uint8_t {
  lanes32 = 32,  ///< .32x32b: thread t, register r: lane t, column r
  lanes16 = 16,  ///< .16x256b: lane t/4 + 8 (r/2 % 2), column 8 (r/4) + 2 (t%4) + r%2
};
#else
using TmemShape = model::TmemShape;
#endif

namespace detail {

// Whether the shape has a form of `registers` registers: .x1 to .x128, at most 128 registers.
constexpr bool tmem_form(TmemShape shape, int registers) {
  const int least = shape == TmemShape::lanes32 ? 1 : 4;
  return registers >= least && registers <= 128 && (registers & (registers - 1)) == 0;
}

}  // namespace detail

/// Starts to load N 32-bit columns' worth of tensor memory into `fragment`: .32x32b.xN, or
/// .16x256b.x(N/4) for TmemShape::lanes16 (N is then at least 4). N is a power of two up to 128.
/// The base lane in `address` is the warp's first, 32 (warp % 4) (with lanes16 also 16 more). All
/// 32 lanes execute it with one address. The registers belong to the load until
/// `tcgen05_wait_load`.
template <TmemShape Shape = TmemShape::lanes32, int N>
WW_DEVICE void tcgen05_load(Fragment<float, N>& fragment, TmemAddress address,
                            [[maybe_unused]] Site site = Site::here()) {
  static_assert(detail::tmem_form(Shape, N), "tcgen05.ld has no form of so many registers");
#if WW_GPU
  float* d = fragment.registers();
#define WW_CASE(lanes, name, repeat, registers, next)                                      \
  if constexpr (static_cast<int>(Shape) == lanes && N == registers) {                      \
    asm volatile("tcgen05.ld.sync.aligned." name ".x" #repeat ".b32 {" WW_TEXT_##registers \
                 "}, [" next "];"                                                          \
                 : WW_OUT_##registers                                                      \
                 : "r"(address)                                                            \
                 : "memory");                                                              \
  }
  WW_TMEM_SHAPES(WW_CASE)
#undef WW_CASE
#else
  model::tcgen05_load({.shape = Shape,
                       .address = address,
                       .registers = fragment.registers(),
                       .count = N,
                       .state = &fragment.state()},
                      site);
#endif
}

/// Starts to store `fragment` to tensor memory: the inverse of `tcgen05_load`. The registers may
/// change at once; the stored columns belong to the store until `tcgen05_wait_store`.
template <TmemShape Shape = TmemShape::lanes32, int N>
WW_DEVICE void tcgen05_store(TmemAddress address, Fragment<float, N>& fragment,
                             [[maybe_unused]] Site site = Site::here()) {
  static_assert(detail::tmem_form(Shape, N), "tcgen05.st has no form of so many registers");
#if WW_GPU
  const float* d = fragment.registers();
#define WW_CASE(lanes, name, repeat, registers, next)                       \
  if constexpr (static_cast<int>(Shape) == lanes && N == registers) {       \
    asm volatile("tcgen05.st.sync.aligned." name ".x" #repeat ".b32 [" next \
                 "], {" WW_TEXT_##registers "};" ::WW_IN_##registers,       \
                 "r"(address)                                               \
                 : "memory");                                               \
  }
  WW_TMEM_SHAPES(WW_CASE)
#undef WW_CASE
#else
  model::tcgen05_store({.shape = Shape,
                        .address = address,
                        .registers = fragment.registers(),
                        .count = N,
                        .state = &fragment.state()},
                       site);
#endif
}

/// Waits until all `tcgen05_load`s of this warp are complete: their tensor memory may be written
/// again. All 32 lanes execute it (tcgen05.wait::ld). Does not give a fragment back to the thread;
/// the other form does.
WW_DEVICE
void tcgen05_wait_load([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  trace_wait_begin("wait tmem load");
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  trace_wait_end();
#else
  model::tcgen05_wait(true, false, site);
#endif
}

/// The same, and the thread may use `fragments` (a fragment or an array of them) afterwards.
template <class Fragments>
WW_DEVICE void tcgen05_wait_load(Fragments& fragments, [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  tcgen05_wait_load();
#else
  model::tcgen05_wait(true, true, site);
#endif
  pin_registers(fragments);
}

/// Waits until all `tcgen05_store`s of this warp are complete (tcgen05.wait::st). All 32 lanes
/// execute it. Another thread or an MMA that uses the columns needs this first.
WW_DEVICE
void tcgen05_wait_store([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  trace_wait_begin("wait tmem store");
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
  trace_wait_end();
#else
  model::tcgen05_wait(false, false, site);
#endif
}

}  // namespace warpwright::isa
