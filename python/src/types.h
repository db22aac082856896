// The types of elements that tensors of other libraries have: the one list of them.
#pragma once

#include <cstdint>
#include <optional>

#include "python/src/dlpack.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright::python {

/// A type as DLPack says it, and by the name that it has in numpy, ml_dtypes, PyTorch and JAX.
/// Lanes are elements that one of the tensor's own has: shapes and strides count those.
struct ElementType {
  const char* name;
  dlpack::Type dlpack;
  std::optional<DType> type;
  std::optional<OffsetType> offset = {};  ///< of integers that offsets may be
  bool of_arrays = false;                 ///< may an Array have it?
};

// Codes of DLPack 1.1: 4 bfloat, 10 e4m3fn, 12 e5m2, 14 e8m0fnu, 15 e2m3fn, 16 e3m2fn, 17 e2m1fn.
// Elements of 4 and 6 bits are packed there, but for a flag.
inline constexpr ElementType element_types[] = {
    {"float32", {dlpack::code_float, 32, 1}, DType::f32, {}, true},
    {"float16", {dlpack::code_float, 16, 1}, DType::f16, {}, true},
    {"bfloat16", {4, 16, 1}, DType::bf16, {}, true},
    {"float8_e4m3fn", {10, 8, 1}, DType::e4m3, {}, true},
    {"float8_e5m2", {12, 8, 1}, DType::e5m2, {}, true},
    {"uint8", {dlpack::code_uint, 8, 1}, DType::u8, {}, true},
    {"int8", {dlpack::code_int, 8, 1}, DType::s8},
    {"float8_e8m0fnu", {14, 8, 1}, DType::ue8m0, {}, true},
    {"float4_e2m1fn_x2", {17, 4, 2}, DType::e2m1},
    {"float4_e2m1fn", {17, 4, 1}, DType::e2m1},
    {"float6_e2m3fn", {15, 6, 1}, DType::e2m3},
    {"float6_e3m2fn", {16, 6, 1}, DType::e3m2},
    {"float64", {dlpack::code_float, 64, 1}, DType::f64},
    {"int32", {dlpack::code_int, 32, 1}, {}, OffsetType::int32},
    {"int64", {dlpack::code_int, 64, 1}, {}, OffsetType::int64},
};

/// The one of these for which `is`, or null.
template <class Is>
constexpr const ElementType* find_type(const Is& is) {
  for (const ElementType& each : element_types) {
    if (is(each)) return &each;
  }
  return nullptr;
}

}  // namespace warpwright::python
