// Marks for timelines: a kernel names its phases, and the model's and the GPU's traces show them
// (docs/trace.md). They cost nothing on the GPU unless it is built with WARPWRIGHT_TRACE.
#pragma once

#include "warpwright/isa/config.h"

#if !defined(WARPWRIGHT_TRACE)
#define WARPWRIGHT_TRACE 0
#endif

namespace warpwright::isa {

/// What the GPU writes for one event. The label is the address of a string literal in device
/// memory.
struct TraceRecord {
  enum Kind : std::int32_t { begin, end, instant, begin_wait };
  std::int64_t clock;  ///< clock64 of the SM
  const char* label;   ///< of a begin_wait: the barrier's name, and `a` its index
  std::int32_t kind;
  std::int32_t a, b, c;
};

/// Events that the ring of a warp holds; a power of two, so that its index costs one instruction.
inline constexpr std::uint32_t trace_ring_records = 4096;

/// Head of the ring of one warp of one CTA: how many events were written in all (those beyond the
/// ring's size overwrote the oldest), and readings of both clocks to convert by.
struct alignas(64) TraceRing {
  std::uint32_t written;
  std::int32_t sm;
  const char* role;
  std::int64_t first_clock, first_nanoseconds;
  std::int64_t last_clock, last_nanoseconds;
};

/// Where the GPU writes: a ring for each of the `warps` warps of each CTA, trace_ring_records
/// records each.
struct TraceBuffer {
  TraceRing* rings = nullptr;
  TraceRecord* records = nullptr;
  std::int32_t warps = 0;
};

#if WW_GPU
/// Buffer of this translation unit's kernels; without rings nothing is written. Set by the
/// launcher.
[[maybe_unused]] static __constant__ TraceBuffer trace_buffer;
#endif

#if WW_GPU && WARPWRIGHT_TRACE

/// Number of this warp's ring.
WW_DEVICE std::uint32_t trace_ring_index() {
  return blockIdx.x * static_cast<std::uint32_t>(trace_buffer.warps) + threadIdx.x / 32;
}

/// Does this thread record? Lane 0 of every warp does, while there is a buffer.
WW_DEVICE bool trace_records() {
  return threadIdx.x % 32 == 0 && trace_buffer.rings != nullptr;
}

/// Appends an event to the ring of this warp. Only a warp writes its ring, hence no atomics.
WW_DEVICE void trace_write(std::int32_t kind, const char* label, int a, int b, int c) {
  if (!trace_records()) return;
  const std::int64_t clock = clock64();
  const std::uint32_t index = trace_ring_index();
  TraceRing& ring = trace_buffer.rings[index];
  const std::uint32_t at = ring.written;
  if (at % 64 == 0) {
    std::int64_t nanoseconds = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    if (at == 0) {
      std::int32_t sm = 0;
      asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
      ring.sm = sm;
      ring.first_clock = clock;
      ring.first_nanoseconds = nanoseconds;
    }
    ring.last_clock = clock;
    ring.last_nanoseconds = nanoseconds;
  }
  ring.written = at + 1;
  trace_buffer.records[index * trace_ring_records + at % trace_ring_records] = {clock, label, kind,
                                                                                a,     b,     c};
}
#endif

/// Opens a slice in the timeline of this warp (its lane 0 is watched), nested in those that are
/// open. `label` is a string literal in which every % stands for the next of the numbers.
/// Operations that the thread starts meanwhile carry the open labels' names.
WW_DEVICE void mark_begin([[maybe_unused]] const char* label, [[maybe_unused]] int a = 0,
                          [[maybe_unused]] int b = 0, [[maybe_unused]] int c = 0) {
#if !WW_GPU
  model::mark_begin(label, a, b, c);
#elif WARPWRIGHT_TRACE
  trace_write(TraceRecord::begin, label, a, b, c);
#endif
}

/// Closes the innermost open slice of this warp.
WW_DEVICE void mark_end() {
#if !WW_GPU
  model::mark_end();
#elif WARPWRIGHT_TRACE
  trace_write(TraceRecord::end, nullptr, 0, 0, 0);
#endif
}

/// A slice as long as a scope: isa::Mark mark("k_tile %", k_tile);
class Mark {
 public:
  /// Opens the slice.
  WW_DEVICE explicit Mark(const char* label, int a = 0, int b = 0, int c = 0) {
    mark_begin(label, a, b, c);
  }
  /// Closes it.
  WW_DEVICE ~Mark() { mark_end(); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
};

/// Opens the slice of a wait on the barrier `name[index]`. The instructions of isa/ call it, on the
/// GPU only: the model knows itself who waits for what.
WW_DEVICE void trace_wait_begin([[maybe_unused]] const char* name, [[maybe_unused]] int index) {
#if WW_GPU && WARPWRIGHT_TRACE
  trace_write(TraceRecord::begin_wait, name, index, 0, 0);
#endif
}

/// Opens the slice of another wait, only on the GPU.
WW_DEVICE void trace_wait_begin([[maybe_unused]] const char* label) {
#if WW_GPU && WARPWRIGHT_TRACE
  trace_write(TraceRecord::begin, label, 0, 0, 0);
#endif
}

/// Closes the slice of a wait, only on the GPU.
WW_DEVICE void trace_wait_end() {
#if WW_GPU && WARPWRIGHT_TRACE
  trace_write(TraceRecord::end, nullptr, 0, 0, 0);
#endif
}

}  // namespace warpwright::isa
