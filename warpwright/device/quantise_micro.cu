// Scaling::block_scaled of device/quantise.h on a CUDA device: codes of 8, 6 or 4 bits, and a scale
// for the 32 or 16 neighbours that four or two lanes hold.
#include "warpwright/device/quantise_parts.cuh"
#include "warpwright/device/scale_rows.cuh"

namespace warpwright::device {
namespace {

struct MicroRows {
  Rows x;  // without scales
  std::uint8_t* scales;
  const float* tensor;  // null: 1
  std::int64_t pitch;   // of scales in rows
  std::int64_t scale_rows;
  int columns;  // scales of a row, those in the padding too
  int used;     // rows that have scales; those behind x's are padding
  ScaleOrder order;
  Recipe recipe;
  ScaleGroups groups;
  bool whole;  // rows of x and of the codes begin where vectors may
};

template <DType element>
__device__ std::uint64_t micro_codes(const float (&v)[kEach]) {
  if constexpr (element == DType::e4m3) return codes_of<__NV_E4M3>(v);
  if constexpr (element == DType::e5m2) return codes_of<__NV_E5M2>(v);
  std::uint64_t codes = 0;
  for (int i = 0; i < kEach; ++i) {
    codes |= std::uint64_t{micro::code(element, v[i])} << i * numeric::bits(element);
  }
  return codes;
}

template <int lanes>
__device__ std::uint32_t largest_of_block(std::uint32_t largest) {
  for (int d = lanes / 2; d > 0; d /= 2) {
    largest = micro::larger(largest, __shfl_xor_sync(0xffffffffU, largest, d));
  }
  return largest;
}

// The errors of a block of 16 with that scale, whose halves two lanes have.
__device__ float errors_of(const float (&v)[kEach], float divisor, float (&quotients)[kEach]) {
  float errors = 0;
  for (int i = 0; i < kEach; ++i) {
    quotients[i] = v[i] / divisor;
    errors = micro::add_error(errors, quotients[i],
                              [](float x, float y, float z) { return __fmaf_rn(x, y, z); });
  }
  return errors + __shfl_xor_sync(0xffffffffU, errors, 1);
}

// What is rounded to codes, and the scale of the block.
template <DType element, DType scale>
__device__ std::uint32_t scaled(const MicroRows& r, const float (&v)[kEach], float tensor,
                                float (&quotients)[kEach]) {
  std::uint32_t mine = 0;
  for (const float x : v) mine = micro::larger(mine, micro::magnitude(x, element));
  const std::uint32_t largest = largest_of_block<micro_block(scale) / kEach>(mine);
  if constexpr (scale == DType::ue8m0) {
    const std::uint32_t code = micro::power_scale(r.recipe, element, largest);
    const float factor = micro::power_inverse(code);
    for (int i = 0; i < kEach; ++i) quotients[i] = unless_infinite(v[i] * factor, v[i]);
    return code;
  } else {
    if (r.recipe == Recipe::nested) {
      const std::uint32_t code = micro::nested_scale(largest, tensor);
      divide(Divisor(micro::nested_divisor(code, tensor)), v, quotients);
      return code;
    }
    // One body for both scales of nested_4_or_6: two would be twice the code.
    std::uint32_t code = 0;
    float least = 0;
#pragma unroll 1
    for (int pass = 0; pass < 2; ++pass) {
      const std::uint32_t its = micro::nested_scale(largest, tensor, pass == 0 ? 6.0F : 4.0F);
      float others[kEach];
      const float errors = errors_of(v, micro::nested_divisor(its, tensor), others);
      if (pass == 1 && !micro::takes_four(code, least, its, errors)) break;
      for (int i = 0; i < kEach; ++i) quotients[i] = others[i];
      code = its;
      least = errors;
    }
    return code;
  }
}

// The scales of four blocks next to each other are a word of a tile, which the first of their
// lanes writes. Called by all lanes of a warp.
template <int block>
__device__ void store_scale(const MicroRows& r, int row, std::int64_t place, int k,
                            std::uint32_t code) {
  constexpr int lanes = block / kEach;
  const int number = k / block;
  if (r.order == ScaleOrder::rows) {
    if (k % block == 0 && number < r.columns) {
      r.scales[row * r.pitch + number] = static_cast<std::uint8_t>(code);
    }
    return;
  }
  std::uint32_t word = code << 8 * (number % 4);
  for (int d = lanes; d < 4 * lanes; d *= 2) word |= __shfl_xor_sync(0xffffffffU, word, d);
  if (k % (4 * block) != 0 || number >= r.columns || place < 0 || place >= r.scale_rows) return;
  *reinterpret_cast<std::uint32_t*>(r.scales + block_scales::place(place, number, r.columns)) =
      word;
}

// Whether rows are whole is asked here: a kernel for each answer would take twice as long to
// compile.
template <class T, DType element, DType scale>
__global__ void __launch_bounds__(kThreads, 3) quantise_micro(const MicroRows r) {
  constexpr int bits = numeric::bits(element);
  // Of nvf4 there is more to do a row: with as many of them the code would be too long.
  constexpr int at_once = scale == DType::ue4m3 ? kAtOnce / 2 : kAtOnce;
  const float tensor = r.tensor == nullptr ? 1.0F : *r.tensor;
  for_each_piece<at_once>(
      r.x, r.used,
      [&](int row, int k, float(&v)[kEach]) {
        r.whole ? load<T, true>(r.x, row, k, v) : load<T, false>(r.x, row, k, v);
      },
      [&](int row, int k, const float(&v)[kEach]) {
        float quotients[kEach];
        const std::uint32_t code = scaled<element, scale>(r, v, tensor, quotients);
        const std::int64_t place = scale_row(r.groups, row, r.x.rows);
        store_scale<micro_block(scale)>(r, row, place, k, code);
        if (row >= r.x.rows || k >= r.x.k) return;
        const std::uint64_t codes =
            micro::clears(scale, code) ? 0 : micro_codes<element>(quotients);
        std::uint8_t* const to = r.x.codes + row * r.x.codes_pitch + k / kEach * bits;
        r.whole ? store_codes<true, bits>(to, codes, r.x.k - k)
                : store_codes<false, bits>(to, codes, r.x.k - k);
      });
}

__global__ void make_tensor_scale(float* scale, Recipe recipe) {
  *scale = micro::tensor_scale(recipe, *scale);
}

template <class T>
cudaError_t start(const Quantisation& q, const MicroRows& r, cudaStream_t stream) {
  if (q.tensor_scale.data != nullptr && !q.given) {
    auto* const place = static_cast<float*>(q.tensor_scale.data);
    if (const cudaError_t e = cudaMemsetAsync(place, 0, sizeof(float), stream)) return e;
    auto* const find = r.whole ? find_largest<T, true> : find_largest<T, false>;
    find<<<grid_for(r.x), kThreads, 0, stream>>>(r.x, place);
    make_tensor_scale<<<1, 1, 0, stream>>>(place, r.recipe);
  }
  if (r.groups.count > 0) {  // between the groups there is padding
    const auto bytes = static_cast<std::size_t>(r.scale_rows * r.columns);
    const int neutral = static_cast<int>(micro::neutral_scale(q.scales.dtype));
    if (const cudaError_t e = cudaMemsetAsync(r.scales, neutral, bytes, stream)) return e;
  }
  const auto by = [&](auto* kernel) {
    kernel<<<grid_for(r.x), kThreads, 0, stream>>>(r);
    return cudaGetLastError();
  };
  switch (q.codes.dtype) {
    case DType::e4m3:
      return by(quantise_micro<T, DType::e4m3, DType::ue8m0>);
    case DType::e5m2:
      return by(quantise_micro<T, DType::e5m2, DType::ue8m0>);
    case DType::e2m3:
      return by(quantise_micro<T, DType::e2m3, DType::ue8m0>);
    case DType::e3m2:
      return by(quantise_micro<T, DType::e3m2, DType::ue8m0>);
    default:
      return q.scales.dtype == DType::ue8m0 ? by(quantise_micro<T, DType::e2m1, DType::ue8m0>)
                                            : by(quantise_micro<T, DType::e2m1, DType::ue4m3>);
  }
}

// Do rows of x and of the codes begin where vectors may?
bool is_whole(const Quantisation& q) {
  const auto begins = [](const void* data, std::int64_t pitch, std::int64_t rows, unsigned bytes) {
    return reinterpret_cast<std::uintptr_t>(data) % bytes == 0 && (rows <= 1 || pitch % bytes == 0);
  };
  const int bits = numeric::bits(q.codes.dtype);
  const int element = numeric::bits(q.x.dtype) / 8;
  const unsigned at_once = bits == 8 ? 8 : bits == 6 ? 2 : 4;  // bytes that are stored
  return begins(q.x.data, q.x.row_stride * element, q.x.rows,
                static_cast<unsigned>(kEach * element)) &&
         begins(q.codes.data, q.codes.row_stride * bits / 8, q.x.rows, at_once);
}

}  // namespace

std::optional<Refusal> quantise_micro_on_cuda(const Quantisation& q, void* stream) {
  auto* const in = static_cast<cudaStream_t>(stream);
  const int rows = static_cast<int>(q.x.rows);
  const bool padded = q.order == ScaleOrder::tiles && q.groups.count == 0;
  const MicroRows r{{q.x.data, static_cast<std::uint8_t*>(q.codes.data), nullptr, q.x.row_stride,
                     q.codes.row_stride * numeric::bits(q.codes.dtype) / 8, 0, 0, rows,
                     static_cast<int>(q.x.columns)},
                    static_cast<std::uint8_t*>(q.scales.data),
                    static_cast<const float*>(q.tensor_scale.data),
                    q.scales.row_stride,
                    q.scales.rows,
                    static_cast<int>(q.scales.columns),
                    padded ? static_cast<int>(q.scales.rows) : rows,
                    q.order,
                    q.its_recipe(),
                    q.groups,
                    is_whole(q)};
  return started(q.x.dtype, [&](auto x) { return start<decltype(x)>(q, r, in); });
}

}  // namespace warpwright::device
