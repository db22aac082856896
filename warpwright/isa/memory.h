// Views of shared and global memory: the only way that kernels read and write bytes. On the GPU a
// plain load or store; on the model an access that is checked and that knows its source line.
#pragma once

#include <type_traits>

#include "warpwright/isa/config.h"

namespace warpwright::isa {

/// N 32-bit words that move together (N = 1, 2 or 4: 4, 8 or 16 bytes, aligned to their size).
template <int N>
struct alignas(4 * N) Words {
  std::uint32_t word[N];
};

#if WW_GPU
extern __shared__ __align__(1024) unsigned char ww_dynamic_shared[];
#endif

/// Start of the CTA's dynamic shared memory, a multiple of 1024 bytes.
WW_DEVICE
SharedAddress shared_base() {
#if WW_GPU
  return static_cast<SharedAddress>(__cvta_generic_to_shared(ww_dynamic_shared));
#else
  return model::shared_base();
#endif
}

/// Elements of type T in the CTA's shared memory, seen by the generic proxy. T has 1, 2, 4, 8 or 16
/// bytes; element i lies sizeof(T) * i bytes after `address`, which must be aligned to T.
template <class T>
struct SharedView {
  static_assert(std::is_trivially_copyable_v<T> &&
                (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 ||
                 sizeof(T) == 16));
  SharedAddress address = 0;

  /// ld.shared (PTX ISA 9.7.9.8). Reading bytes that an asynchronous copy is still to write is a
  /// finding on the model and garbage on the GPU.
  WW_DEVICE T load(int i = 0, [[maybe_unused]] Site site = Site::here()) const {
    T value;
    const SharedAddress at = address + static_cast<SharedAddress>(i) * sizeof(T);
#if WW_GPU
    if constexpr (sizeof(T) == 1) {
      std::uint32_t bits = 0;
      asm volatile("ld.shared.u8 %0, [%1];" : "=r"(bits) : "r"(at) : "memory");
      value = static_cast<T>(bits);
    } else if constexpr (sizeof(T) == 2) {
      std::uint16_t bits = 0;
      asm volatile("ld.shared.u16 %0, [%1];" : "=h"(bits) : "r"(at) : "memory");
      value = *reinterpret_cast<const T*>(&bits);
    } else {
      constexpr int n = sizeof(T) / 4;
      Words<n> w;
      if constexpr (n == 1) {
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(w.word[0]) : "r"(at) : "memory");
      } else if constexpr (n == 2) {
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
                     : "=r"(w.word[0]), "=r"(w.word[1])
                     : "r"(at)
                     : "memory");
      } else {
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w.word[0]), "=r"(w.word[1]), "=r"(w.word[2]), "=r"(w.word[3])
                     : "r"(at)
                     : "memory");
      }
      value = *reinterpret_cast<const T*>(&w);
    }
#else
    model::shared_load(at, &value, sizeof(T), site);
#endif
    return value;
  }

  /// st.shared (PTX ISA 9.7.9.11). Before TMA or the tensor core reads the bytes, the writer
  /// needs `fence_proxy_async_shared`.
  WW_DEVICE void store(int i, T value, [[maybe_unused]] Site site = Site::here()) const {
    const SharedAddress at = address + static_cast<SharedAddress>(i) * sizeof(T);
#if WW_GPU
    if constexpr (sizeof(T) == 1) {
      asm volatile("st.shared.u8 [%0], %1;" ::"r"(at), "r"(static_cast<std::uint32_t>(value))
                   : "memory");
    } else if constexpr (sizeof(T) == 2) {
      asm volatile("st.shared.u16 [%0], %1;" ::"r"(at),
                   "h"(*reinterpret_cast<const std::uint16_t*>(&value))
                   : "memory");
    } else {
      constexpr int n = sizeof(T) / 4;
      const auto& w = *reinterpret_cast<const Words<n>*>(&value);
      if constexpr (n == 1) {
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(w.word[0]) : "memory");
      } else if constexpr (n == 2) {
        asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(at), "r"(w.word[0]), "r"(w.word[1])
                     : "memory");
      } else {
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(w.word[0]),
                     "r"(w.word[1]), "r"(w.word[2]), "r"(w.word[3])
                     : "memory");
      }
    }
#else
    model::shared_store(at, &value, sizeof(T), site);
#endif
  }
};

/// Says that `bytes` bytes of this CTA's shared memory from `address` on may be read though nothing
/// has written them, because nothing depends on what is read: as rows of a tile that are multiplied
/// and never stored. No instruction. On the model they hold NaNs then, in place of a finding for
/// whoever reads them.
WW_DEVICE void leave_unwritten([[maybe_unused]] SharedAddress address, [[maybe_unused]] int bytes,
                               [[maybe_unused]] Site site = Site::here()) {
#if !WW_GPU
  model::leave_unwritten(address, bytes, site);
#endif
}

/// Elements of type T (16 bytes) in the shared memory of a CTA of the cluster, at an address that
/// `map_rank` gave. That CTA must have started and not have exited.
template <class T>
struct ClusterView {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) == 16);
  SharedAddress address = 0;

  /// ld.shared::cluster (PTX ISA 9.7.9.8).
  WW_DEVICE T load([[maybe_unused]] Site site = Site::here()) const {
    T value;
#if WW_GPU
    Words<4> w;
    asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w.word[0]), "=r"(w.word[1]), "=r"(w.word[2]), "=r"(w.word[3])
                 : "r"(address)
                 : "memory");
    value = *reinterpret_cast<const T*>(&w);
#else
    model::cluster_load(address, &value, sizeof(T), site);
#endif
    return value;
  }

  /// st.shared::cluster (PTX ISA 9.7.9.11). That CTA sees it behind an arrival or a cluster barrier
  /// that releases it, and must not exit before.
  WW_DEVICE void store(T value, [[maybe_unused]] Site site = Site::here()) const {
#if WW_GPU
    const auto& w = *reinterpret_cast<const Words<4>*>(&value);
    asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(w.word[0]),
                 "r"(w.word[1]), "r"(w.word[2]), "r"(w.word[3])
                 : "memory");
#else
    model::cluster_store(address, &value, sizeof(T), site);
#endif
  }
};

/// Starts the store of 16 bytes to `to` (16-byte aligned, from `map_rank`) in a CTA of the cluster
/// that has started and exits later; then completes 16 bytes on `barrier` of the same CTA. No fence
/// or release is needed: whoever waits for the phase has the bytes (st.async, PTX ISA 9.7.9.12).
/// Illegal in a grid without a cluster dimension, if of one CTA (seen on sm_90).
WW_DEVICE
void store_async(SharedAddress to, const Words<4>& value, SharedAddress barrier,
                 [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(to),
      "r"(value.word[0]), "r"(value.word[1]), "r"(value.word[2]), "r"(value.word[3]), "r"(barrier)
      : "memory");
#else
  model::store_async(to, &value, barrier, site);
#endif
}

/// Adds to a 32-bit word, of T = std::uint32_t or float, in the shared memory of a CTA of the
/// cluster, at an address that `map_rank` gave (red.relaxed, PTX ISA 9.7.13.7). Additions to one
/// word need no order among each other; who sets it first, or reads the sum, needs one to all of
/// them. That CTA must have started, and must not exit before.
template <class T>
WW_DEVICE void cluster_add(SharedAddress to, T value, [[maybe_unused]] Site site = Site::here()) {
  static_assert(std::is_same_v<T, std::uint32_t> || std::is_same_v<T, float>);
#if WW_GPU
  if constexpr (std::is_same_v<T, float>) {
    asm volatile("red.relaxed.cluster.shared::cluster.add.f32 [%0], %1;" ::"r"(to), "f"(value)
                 : "memory");
  } else {
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" ::"r"(to), "r"(value)
                 : "memory");
  }
#else
  model::cluster_add(to, value, site);
#endif
}

/// Elements of type T in global memory. The pointer must be aligned to T.
template <class T>
struct GlobalView {
  static_assert(std::is_trivially_copyable_v<T>);
  T* data = nullptr;

  /// A plain load of element i (ld.global).
  WW_DEVICE T load(std::int64_t i = 0, [[maybe_unused]] Site site = Site::here()) const {
#if WW_GPU
    return data[i];
#else
    std::remove_const_t<T> value;
    model::global_load(data + i, &value, sizeof(T), site);
    return value;
#endif
  }

  /// A plain store to element i (st.global).
  WW_DEVICE void store(std::int64_t i, T value, [[maybe_unused]] Site site = Site::here()) const {
#if WW_GPU
    if constexpr (std::is_same_v<T, Words<4>>) {
      // Spelled out: of an assignment the compiler may make four stores of a word.
      asm volatile(
          "st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(data + i)),
          "r"(value.word[0]), "r"(value.word[1]), "r"(value.word[2]), "r"(value.word[3])
          : "memory");
    } else {
      data[i] = value;
    }
#else
    model::global_store(data + i, &value, sizeof(T), site);
#endif
  }
};

/// Where `condition` holds, loads the 2 or 4 bytes of T at `from` (aligned to T) in global memory
/// into `bits`, with zeros above them; `bits` stay where it does not (a predicated ld.global, PTX
/// ISA 9.7.9.8). One register, which nothing waits for before its next use: a load in a branch is
/// copied behind it, and waited for there.
template <class T>
WW_DEVICE void load_if(bool condition, const T* from, std::uint32_t& bits,
                       [[maybe_unused]] Site site = Site::here()) {
  static_assert(std::is_unsigned_v<T> && (sizeof(T) == 2 || sizeof(T) == 4));
#if WW_GPU
  if constexpr (sizeof(T) == 2) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n@p ld.global.u16 %0, [%1];\n}"
                 : "+r"(bits)
                 : "l"(__cvta_generic_to_global(from)), "r"(std::uint32_t{condition})
                 : "memory");
  } else {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n@p ld.global.u32 %0, [%1];\n}"
                 : "+r"(bits)
                 : "l"(__cvta_generic_to_global(from)), "r"(std::uint32_t{condition})
                 : "memory");
  }
#else
  if (condition) bits = GlobalView<const T>{from}.load(0, site);
#endif
}

/// The N-word pieces of global memory that begin at `data`, aligned to 4 N bytes.
template <int N, class T>
WW_DEVICE GlobalView<Words<N>> global_words(T* data) {
  return {reinterpret_cast<Words<N>*>(data)};
}

/// The elements of type E in global memory that begin at `data`, aligned to E.
template <class E, class T>
WW_DEVICE GlobalView<E> global_view(T* data) {
  return {reinterpret_cast<E*>(data)};
}

/// Bytes by which an address lies behind a multiple of N. No instruction of its own.
template <int N>
WW_DEVICE int bytes_past(const void* address) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(address) % N);
}

/// Keeps the compiler from moving accesses of memory over this point: loads started far ahead take
/// registers that are needed elsewhere. No instruction.
WW_DEVICE
void keep_order() {
#if WW_GPU
  asm volatile("" ::: "memory");
#endif
}

/// The value, of which the compiler knows nothing from here on: what follows from it is computed
/// again where it is needed, and takes no register meanwhile. No instruction.
template <class T>
WW_DEVICE T forgotten(T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
#if WW_GPU
  if constexpr (sizeof(T) == 4) {
    asm volatile("// hides" : "+r"(value));
  } else {
    asm volatile("// hides" : "+l"(value));
  }
#endif
  return value;
}

/// Sets a 32-bit flag in global memory after this thread's earlier writes, and those of threads it
/// has met at a barrier, for whoever waits for it anywhere on the GPU (st.release.gpu, PTX ISA
/// 9.7.9.11).
WW_DEVICE
void flag_set(std::uint32_t* flag, std::uint32_t value, [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
#else
  model::flag_set(flag, value, site);
#endif
}

/// Waits until the flag has the value in the bits of `mask`, and sees what was written before it
/// was set or counted (ld.acquire.gpu); returns all of it. The thread that sets it must be running
/// or able to start: its CTA must not come later in the grid, or the whole grid be resident.
WW_DEVICE
std::uint32_t flag_wait(std::uint32_t* flag, std::uint32_t value, std::uint32_t mask = 0xffffffffU,
                        [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  std::uint32_t seen = 0;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  } while ((seen & mask) != value);
  return seen;
#else
  return model::flag_wait(flag, value, mask, site);
#endif
}

/// Adds `by` to a word in global memory (4-byte aligned) and returns what it was before. Releases
/// this thread's earlier writes, and those of threads it has met at a barrier, and acquires what
/// all who counted there before released, anywhere on the GPU (atom.acq_rel.gpu, PTX ISA 9.7.13.5).
/// Who gets the last number may so read what the others wrote; nobody waits.
WW_DEVICE
std::uint32_t flag_count(std::uint32_t* flag, std::uint32_t by = 1,
                         [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  std::uint32_t before = 0;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(flag), "r"(by)
               : "memory");
  return before;
#else
  return model::flag_count(flag, by, site);
#endif
}

/// Adds `by` to a word in global memory (4-byte aligned). Releases as flag_count does, and acquires
/// nothing, so that it throws away no line of L1 (red.release.gpu, PTX ISA 9.7.13.7).
WW_DEVICE
void flag_add(std::uint32_t* flag, std::uint32_t by = 1,
              [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(flag), "r"(by) : "memory");
#else
  model::flag_add(flag, by, site);
#endif
}

/// Sets a flag back to 0 for the next launch, which the end of this one orders; releases nothing. A
/// strong store (st.relaxed.gpu): it needs no order behind the waits that others have done.
WW_DEVICE
void flag_clear(std::uint32_t* flag, [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(0) : "memory");
#else
  model::flag_clear(flag, site);
#endif
}

}  // namespace warpwright::isa
