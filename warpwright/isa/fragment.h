// Registers that asynchronous instructions write or read: accumulators of wgmma and its A from
// registers, results of tcgen05.ld.
#pragma once

#include <type_traits>

#include "warpwright/isa/config.h"
#if !WW_GPU
#include <algorithm>
#include <limits>
#endif

namespace warpwright::isa {

/// The N values that one thread holds of an accumulator, or of 8-bit or 16-bit elements of A, four
/// or two a word. It cannot be copied: while a wgmma or a tcgen05.ld is in flight the hardware owns
/// the registers, and touching one before the wait that covers it is undefined (on the model: a
/// finding, and of an accumulator NaN).
template <class T, int N>
class Fragment {
 public:
  Fragment(const Fragment&) = delete;
  Fragment& operator=(const Fragment&) = delete;

#if WW_GPU
  Fragment() = default;
  /// Value `i`, in the order of the instruction's register list.
  WW_DEVICE T& operator[](int i) {
    return value_[i];
  }
  /// All values, for the instructions of this room.
  WW_DEVICE T* registers() {
    return value_;
  }

 private:
  T value_[N];
#else
  /// Registers hold whatever they held: NaN shows where a kernel takes them for zeros.
  Fragment() {
    std::fill_n(value_, N, nothing);
  }
  ~Fragment() {
    model::end_fragment(state_);
  }
  T& operator[](int i) {
    model::touch_fragment(state_, Site{});
    return value_[i];
  }
  T* registers() {
    return value_;
  }
  model::FragmentState& state() {
    return state_;
  }
  /// For `forget_registers`.
  void forget(int from) {
    model::touch_fragment(state_, Site{});
    std::fill(value_ + from, value_ + N, nothing);
  }

 private:
  static constexpr T nothing = std::numeric_limits<T>::has_quiet_NaN
                                   ? std::numeric_limits<T>::quiet_NaN()
                                   : static_cast<T>(-1);
  T value_[N];
  model::FragmentState state_{.touched_epoch = 1};
#endif
};

/// Keeps the compiler from moving accesses of the fragment's registers over this point.
template <class T, int N>
WW_DEVICE void pin_registers([[maybe_unused]] Fragment<T, N>& fragment) {
#if WW_GPU
  T* r = fragment.registers();
  WW_UNROLL for (int i = 0; i < N; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      asm volatile("" : "+f"(r[i])::"memory");
    } else {
      asm volatile("" : "+r"(r[i])::"memory");
    }
  }
#else
  model::pin_fragment(fragment.state());
#endif
}

/// Gives up what the registers from number `From` on hold, so that the compiler need not keep it.
/// Nothing that is in flight may use them; on the model they are NaN (or -1) from then on.
template <int From, class T, int N>
WW_DEVICE void forget_registers(Fragment<T, N>& fragment) {
#if WW_GPU
  T* r = fragment.registers();
  WW_UNROLL for (int i = From; i < N; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      asm volatile("" : "=f"(r[i])::"memory");
    } else {
      asm volatile("" : "=r"(r[i])::"memory");
    }
  }
#else
  if constexpr (From < N) fragment.forget(From);
#endif
}
/// The same of every fragment of an array.
template <int From, class T, int N, int M>
WW_DEVICE void forget_registers(Fragment<T, N> (&fragments)[M]) {
  WW_UNROLL for (int i = 0; i < M; ++i) forget_registers<From>(fragments[i]);
}

/// The same for an array of fragments.
template <class T, int N, int M>
WW_DEVICE void pin_registers(Fragment<T, N> (&fragments)[M]) {
  WW_UNROLL for (int i = 0; i < M; ++i) pin_registers(fragments[i]);
}

}  // namespace warpwright::isa
