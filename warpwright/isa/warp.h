// Instructions of one warp: election, shuffles, matrix loads and stores, the register budget.
#pragma once

#include <span>

#include "warpwright/isa/config.h"

namespace warpwright::isa {

/// True in exactly one lane of the warp, the lowest (elect.sync, PTX ISA 9.7.13.15; which lane was
/// probed on an H200). All 32 lanes must execute it together.
WW_DEVICE
bool elect_one([[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  std::uint32_t elected = 0;
  asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;\n\t}"
               : "=r"(elected)::"memory");
  return elected != 0;
#else
  return model::elect_one(site);
#endif
}

/// Waits for all lanes of the warp; their earlier generic accesses are ordered before the later
/// ones of the others (bar.warp.sync).
WW_DEVICE
void sync_warp([[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  __syncwarp();
#else
  model::sync_warp(site);
#endif
}

/// The value of lane `source` (shfl.sync.idx). All 32 lanes must execute it together.
WW_DEVICE
std::uint32_t shuffle(std::uint32_t value, int source, [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  return __shfl_sync(0xffffffffu, value, source);
#else
  return model::shuffle(value, source, site);
#endif
}

/// A value that all lanes hold, in a form the compiler knows to be uniform in the warp: it may stay
/// in a uniform register, where addresses and descriptors of asynchronous instructions must be. All
/// 32 lanes must execute it together. (shfl.sync.idx; on the model the value itself.)
WW_DEVICE
std::uint32_t uniform(std::uint32_t value, [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  return __shfl_sync(0xffffffffu, value, 0);
#else
  model::executed_by_all("uniform", site);
  return value;
#endif
}

/// Bit l: what lane l says (vote.sync.ballot, PTX ISA 9.7.13.9). All 32 lanes must execute it
/// together.
WW_DEVICE
std::uint32_t ballot(bool says, [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  return __ballot_sync(0xffffffffu, says);
#else
  return model::ballot(says, site);
#endif
}

/// The lowest lane in a ballot that is not 0 (brev, clz).
WW_DEVICE
int lowest_lane(std::uint32_t lanes) {
#if WW_GPU
  return __ffs(static_cast<int>(lanes)) - 1;
#else
  return __builtin_ctz(lanes);
#endif
}

/// Bit l: whether lane l has the same value as this one (match.any.sync, PTX ISA 9.7.13.14). All 32
/// lanes must execute it together.
WW_DEVICE
std::uint32_t match_any(std::uint32_t value, [[maybe_unused]] Site site = Site::here()) {
#if WW_GPU
  return __match_any_sync(0xffffffffu, value);
#else
  return model::match_any(value, site);
#endif
}

/// Lanes of a ballot or of a match (popc).
WW_DEVICE
int count_lanes(std::uint32_t lanes) {
#if WW_GPU
  return __popc(lanes);
#else
  return __builtin_popcount(lanes);
#endif
}

/// The sum of the values of the lanes up to this one (five of shfl.sync.idx). All 32 lanes must
/// execute it together.
WW_DEVICE
int sum_up_to_lane(int value, int lane, [[maybe_unused]] Site site = Site::here()) {
  WW_UNROLL
  for (int far = 1; far < 32; far *= 2) {
    const std::uint32_t other =
        isa::shuffle(static_cast<std::uint32_t>(value), lane < far ? lane : lane - far, site);
    if (lane >= far) value += static_cast<int>(other);
  }
  return value;
}

/// Loads N (1, 2 or 4) 8x8 matrices of 16-bit elements (ldmatrix, PTX ISA 9.7.14.5.15). Lanes
/// 8j..8j+7 give the addresses of the 16-byte rows of matrix j; thread l gets elements 2(l%4) and
/// +1 of row l/4 of each (of column l/4 with `Transpose`).
template <int N, bool Transpose = false>
WW_DEVICE void load_matrix(SharedAddress row, std::uint32_t (&to)[N],
                           [[maybe_unused]] Site site = Site::here()) {
  static_assert(N == 1 || N == 2 || N == 4, "ldmatrix moves 1, 2 or 4 matrices");
#if WW_GPU
#define WW_LDMATRIX(trans)                                                                   \
  if constexpr (N == 1) {                                                                    \
    asm volatile("ldmatrix.sync.aligned.m8n8.x1" trans ".shared.b16 {%0}, [%1];"             \
                 : "=r"(to[0])                                                               \
                 : "r"(row)                                                                  \
                 : "memory");                                                                \
  } else if constexpr (N == 2) {                                                             \
    asm volatile("ldmatrix.sync.aligned.m8n8.x2" trans ".shared.b16 {%0, %1}, [%2];"         \
                 : "=r"(to[0]), "=r"(to[1])                                                  \
                 : "r"(row)                                                                  \
                 : "memory");                                                                \
  } else {                                                                                   \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])                        \
                 : "r"(row)                                                                  \
                 : "memory");                                                                \
  }
  if constexpr (Transpose) {
    WW_LDMATRIX(".trans")
  } else {
    WW_LDMATRIX("")
  }
#undef WW_LDMATRIX
#else
  model::load_matrix(row, to, Transpose, site);
#endif
}

/// Loads N (1, 2 or 4) matrices of 8 x 16 elements of `Bits`, 4 or 6, each of which arrives in the
/// low bits of a byte, the others 0 (ldmatrix.m8n16, PTX ISA 9.7.14.5.15; sm_100a and sm_120a).
/// Lanes 8j..8j+7 give the addresses of the rows of matrix j, 16 bytes each, as a padding tensor
/// map leaves them: the elements in the first 8 or 12 bytes. Thread l gets elements 4(l%4) to +3 of
/// row l/4 of each: what `load_matrix` gives of a byte an element.
template <int N, int Bits>
WW_DEVICE void load_matrix_padded(SharedAddress row, std::uint32_t (&to)[N],
                                  [[maybe_unused]] Site site = Site::here()) {
  static_assert(N == 1 || N == 2 || N == 4, "ldmatrix moves 1, 2 or 4 matrices");
  static_assert(Bits == 4 || Bits == 6, "elements that are padded have 4 or 6 bits");
#if WW_GPU
#define WW_LDMATRIX(from)                                                                       \
  if constexpr (N == 1) {                                                                       \
    asm volatile("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16." from " {%0}, [%1];"             \
                 : "=r"(to[0])                                                                  \
                 : "r"(row)                                                                     \
                 : "memory");                                                                   \
  } else if constexpr (N == 2) {                                                                \
    asm volatile("ldmatrix.sync.aligned.m8n16.x2.shared.b8x16." from " {%0, %1}, [%2];"         \
                 : "=r"(to[0]), "=r"(to[1])                                                     \
                 : "r"(row)                                                                     \
                 : "memory");                                                                   \
  } else {                                                                                      \
    asm volatile("ldmatrix.sync.aligned.m8n16.x4.shared.b8x16." from " {%0, %1, %2, %3}, [%4];" \
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])                           \
                 : "r"(row)                                                                     \
                 : "memory");                                                                   \
  }
  if constexpr (Bits == 4) {
    WW_LDMATRIX("b4x16_p64")
  } else {
    WW_LDMATRIX("b6x16_p32")
  }
#undef WW_LDMATRIX
#else
  model::load_matrix_padded(row, to, Bits, site);
#endif
}

/// Stores N (1, 2 or 4) 8x8 matrices of 16-bit elements, the inverse of `load_matrix` (stmatrix,
/// PTX ISA 9.7.14.5.16). Generic proxy: a tensor store of the bytes needs
/// `fence_proxy_async_shared`.
template <int N, bool Transpose = false>
WW_DEVICE void store_matrix(SharedAddress row, const std::uint32_t (&from)[N],
                            [[maybe_unused]] Site site = Site::here()) {
  static_assert(N == 1 || N == 2 || N == 4, "stmatrix moves 1, 2 or 4 matrices");
#if WW_GPU
#define WW_STMATRIX(trans)                                                                       \
  if constexpr (N == 1) {                                                                        \
    asm volatile("stmatrix.sync.aligned.m8n8.x1" trans ".shared.b16 [%0], {%1};" ::"r"(row),     \
                 "r"(from[0])                                                                    \
                 : "memory");                                                                    \
  } else if constexpr (N == 2) {                                                                 \
    asm volatile("stmatrix.sync.aligned.m8n8.x2" trans ".shared.b16 [%0], {%1, %2};" ::"r"(row), \
                 "r"(from[0]), "r"(from[1])                                                      \
                 : "memory");                                                                    \
  } else {                                                                                       \
    asm volatile("stmatrix.sync.aligned.m8n8.x4" trans                                           \
                 ".shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),                               \
                 "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])                          \
                 : "memory");                                                                    \
  }
  if constexpr (Transpose) {
    WW_STMATRIX(".trans")
  } else {
    WW_STMATRIX("")
  }
#undef WW_STMATRIX
#else
  model::store_matrix(row, from, Transpose, site);
#endif
}

/// Gives registers of this warpgroup back to the CTA: N a thread from now on, a multiple of 8 from
/// 24 to 256, at most what it has. All warps of the warpgroup execute it (setmaxnreg, PTX ISA
/// 9.7.19.5). Ignored, with a ptxas remark, unless the kernel bounds its registers.
template <int N>
WW_DEVICE void decrease_registers([[maybe_unused]] Site site = Site::here()) {
  static_assert(N >= 24 && N <= 256 && N % 8 == 0, "setmaxnreg takes multiples of 8, 24 to 256");
#if WW_GPU
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
#else
  model::set_max_registers(N, false, site);
#endif
}

/// Takes registers from the CTA's pool, up to N a thread; blocks until enough were given back.
template <int N>
WW_DEVICE void increase_registers([[maybe_unused]] Site site = Site::here()) {
  static_assert(N >= 24 && N <= 256 && N % 8 == 0, "setmaxnreg takes multiples of 8, 24 to 256");
#if WW_GPU
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
#else
  model::set_max_registers(N, true, site);
#endif
}

}  // namespace warpwright::isa
