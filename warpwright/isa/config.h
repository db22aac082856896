// Which body the instructions of this room have: PTX under nvcc, the machine model otherwise. The
// rooms above include what they need from isa/ and never ask.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define WW_GPU 1
#define WW_DEVICE __device__ __forceinline__
// A function that is called: its code is long, and time is memory's.
#define WW_DEVICE_CALLED __device__ __noinline__
// For a lambda, however long it is: no wgmma may be in flight over a call.
#define WW_INLINE __attribute__((always_inline))
#define WW_UNROLL _Pragma("unroll")
#define WW_NO_UNROLL _Pragma("unroll 1")
// By the value of a constexpr variable.
#define WW_UNROLL_BY(times) WW_PRAGMA(unroll(times))
#define WW_PRAGMA(words) _Pragma(#words)
#else
#define WW_GPU 0
#define WW_DEVICE inline
#define WW_DEVICE_CALLED inline
#define WW_INLINE
#define WW_UNROLL
#define WW_NO_UNROLL
#define WW_UNROLL_BY(times)
#include "warpwright/model/intrinsics.h"
#endif

// Whether the target has clusters and grids that overlap (sm_90 and later). On others a CTA is a
// cluster by itself, and a grid starts when the one before has ended.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define WW_CLUSTERS 0
#else
#define WW_CLUSTERS 1
#endif

// Whether the target converts two floats to 16 bits at once (sm_80 and later).
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define WW_CONVERTS_PAIRS 0
#else
#define WW_CONVERTS_PAIRS 1
#endif

// Whether the target converts two floats to codes of 8 bits at once (sm_89 and later).
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
#define WW_CONVERTS_BYTES 0
#else
#define WW_CONVERTS_BYTES 1
#endif

// Threads that an SM of the target holds (CUDA C++ Programming Guide, technical specifications).
#if !defined(__CUDA_ARCH__)
#define WW_THREADS_AN_SM 2048
#elif __CUDA_ARCH__ < 800
#define WW_THREADS_AN_SM 1024
#elif __CUDA_ARCH__ == 800 || (__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200)
#define WW_THREADS_AN_SM 2048
#else
#define WW_THREADS_AN_SM 1536
#endif

// Bounded waits: a debug build of the GPU side (see mbarrier.h).
#if !defined(WARPWRIGHT_DEBUG_WAITS)
#define WARPWRIGHT_DEBUG_WAITS 0
#endif

namespace warpwright::isa {

#if WW_GPU
/// A place in the kernel's source. Only the bounded waits of a debug build keep the line.
struct Site {
#if WARPWRIGHT_DEBUG_WAITS
  int line = 0;
  static constexpr Site here(int line = __builtin_LINE()) {
    return {line};
  }
  static constexpr Site sync(int line = __builtin_LINE()) {
    return {line};
  }
#else
  static constexpr Site here() {
    return {};
  }
  static constexpr Site sync() {
    return {};
  }
#endif
};
#else
using Site = model::Site;
#endif

/// An address in the shared window of a cluster: CTA rank << 24 | offset.
using SharedAddress = std::uint32_t;

/// How far a synchronising operation is seen. Across CTAs of a cluster it must be `cluster`.
#if WW_GPU
enum class Scope : std::uint8_t { cta, cluster };
#else
using Scope = model::Scope;
#endif

}  // namespace warpwright::isa
