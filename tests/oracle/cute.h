// CuTe's headers for g++, and its layouts as our texts. They are an oracle: nothing else includes
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// On the host a shared-memory address is a number that a test chose, disguised as a pointer.
inline std::size_t __cvta_generic_to_shared(const void* pointer) {  // NOLINT: CuTe asks for it
  return reinterpret_cast<std::uintptr_t>(pointer);
}
#define CUTE_CVTA_GENERIC_TO_SHARED_ACTIVATED 1

#include <cute/tensor.hpp>  // before the others, which rely on it

#include <cute/atom/copy_traits_sm90_tma.hpp>
#include <cute/atom/mma_traits_sm100.hpp>

#include "warpwright/numeric/types.h"

namespace warpwright::oracle {

/// A CuTe shape or stride as text: numbers, and tuples in parentheses.
template <class T>
std::string tuple_text(const T& value) {
  if constexpr (cute::is_tuple<T>::value) {
    std::string text;
    cute::for_each(value,
                   [&](const auto& part) { text += (text.empty() ? "" : ",") + tuple_text(part); });
    return "(" + text + ")";
  } else {
    return std::to_string(static_cast<long long>(value));
  }
}

/// A CuTe layout as layout::to_text writes ours.
template <class Shape, class Stride>
std::string layout_text(const cute::Layout<Shape, Stride>& layout) {
  return tuple_text(layout.shape()) + ":" + tuple_text(layout.stride());
}

/// CuTe's element type for one of ours.
template <DType T>
struct CuteTypeOf;
template <>
struct CuteTypeOf<DType::f32> {
  using type = float;
};
template <>
struct CuteTypeOf<DType::tf32> {
  using type = cutlass::tfloat32_t;
};
template <>
struct CuteTypeOf<DType::f16> {
  using type = cutlass::half_t;
};
template <>
struct CuteTypeOf<DType::bf16> {
  using type = cutlass::bfloat16_t;
};
template <>
struct CuteTypeOf<DType::e4m3> {
  using type = cutlass::float_e4m3_t;
};
template <>
struct CuteTypeOf<DType::e5m2> {
  using type = cutlass::float_e5m2_t;
};
template <DType T>
using CuteType = typename CuteTypeOf<T>::type;

}  // namespace warpwright::oracle
