#include "warpwright/device/pack.h"

#include <algorithm>
#include <climits>

#include "warpwright/device/cuda_parts.h"
#include "warpwright/facts/packed_places.h"
#include "warpwright/weights/stored_scale.h"

namespace warpwright::device {
namespace {

using layout::offset_of;
using packed::kTileK;
using packed::kTileRows;
using weights::ScaleKind;
using weights::StoredScale;

// While it works, the header's place holds the sum of the tiles and the first fault.
struct Notes {
  unsigned long long sum;
  unsigned long long fault;  // of the weight with the least number: 8 * number + what it is
};
static_assert(sizeof(Notes) <= packed::kHeaderBytes);
constexpr unsigned long long kNoFault = ULLONG_MAX;
constexpr unsigned kFaultOfCode = 7;  // else a ScaleKind

struct Packing {
  packed::Extents extents;
  PackedFormat format;
  DType scale;
  const std::uint8_t* codes;
  const std::byte* scales;
  const std::uint8_t* zeros;
  std::byte* tiles;
  Notes* notes;

  // Groups along K.
  __device__ std::int64_t groups() const { return extents.k / format.group; }

  // Called: conversions of any type to any other are long, and time is memory's.
  __device__ __noinline__ StoredScale scale_at(std::int64_t row, std::int64_t group) const {
    const std::int64_t at = row * groups() + group;
    const std::uint64_t code = numeric::bits(scale) == 16
                                   ? reinterpret_cast<const std::uint16_t*>(scales)[at]
                                   : reinterpret_cast<const std::uint32_t*>(scales)[at];
    return weights::stored_scale(scale, code, format);
  }

  __device__ void note(std::int64_t row, std::int64_t k, unsigned what) const {
    const auto number = static_cast<unsigned long long>(row * extents.k + k);
    atomicMin(&notes->fault, 8 * number + what);
  }

  // Four codes of a word along K, the bits of each in a byte of its own. They have one group. `row`
  // counts those of all experts.
  __device__ __noinline__ std::uint32_t quad(std::int64_t row, std::int64_t k) const {
    if (scale_at(row, k / format.group).kind != ScaleKind::good) return 0;
    std::uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) {
      const std::int64_t at = row * extents.k + k + packed::quad_step(format, i);
      const int four = codes[at / 2] >> at % 2 * 4 & 15;
      const int code = (four ^ 8) - 8;
      if (code < packed::least_code(format.encoding)) {
        note(row, k + packed::quad_step(format, i), kFaultOfCode);
      }
      bits |= packed::code_bits(code, format.encoding) << 8 * i;
    }
    return bits;
  }

  __device__ void store_scale(std::byte* tile, int row, int slice, std::uint64_t code) const {
    std::byte* const to =
        tile + packed::scales_begin() +
        offset_of<packed::kScales>(row, slice) * (numeric::bits(format.scale) / 8);
    if (numeric::bits(format.scale) == 16) {
      *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(code);
    } else {
      *reinterpret_cast<std::uint32_t*>(to) = static_cast<std::uint32_t>(code);
    }
  }
};

// A CTA a tile.
__global__ void pack_tiles(Packing p) {
  const std::int64_t k_tiles = packed::k_tiles(p.extents);
  const std::int64_t row_tiles = packed::row_tiles(p.extents);
  const std::int64_t expert = blockIdx.x / k_tiles / row_tiles;
  const std::int64_t n0 = blockIdx.x / k_tiles % row_tiles * kTileRows;
  const std::int64_t k0 = blockIdx.x % k_tiles * kTileK;
  std::byte* const tile =
      p.tiles + static_cast<std::int64_t>(blockIdx.x) * packed::tile_bytes(p.format);
  const std::int64_t first = expert * p.extents.n;
  const auto is_there = [&](int row, int k) {
    return n0 + row < p.extents.n && k0 + k < p.extents.k;
  };
  for (int word = static_cast<int>(threadIdx.x); word < packed::kTileCodeBytes / 4;
       word += static_cast<int>(blockDim.x)) {
    const auto [row, k] = packed::word_place(p.format, word);
    const std::uint32_t quad = is_there(row, k) ? p.quad(first + n0 + row, k0 + k) : 0;
    const std::uint32_t below = is_there(row + 8, k) ? p.quad(first + n0 + row + 8, k0 + k) : 0;
    reinterpret_cast<std::uint32_t*>(tile)[word] = packed::word_of(p.format, quad | below << 4);
  }
  for (int i = static_cast<int>(threadIdx.x); i < kTileRows * packed::slices(p.format);
       i += static_cast<int>(blockDim.x)) {
    const int row = i % kTileRows;
    const int slice = i / kTileRows;
    const int k = slice * p.format.group;
    StoredScale stored{ScaleKind::zero, numeric::from_double(p.format.scale, packed::kScaleFactor)};
    if (n0 + row < p.extents.n) {
      const auto scale_of = [&](std::int64_t group) { return p.scale_at(first + n0 + row, group); };
      stored = weights::packed_scale(scale_of, (k0 + k) / p.format.group, p.groups());
    }
    if (stored.kind > ScaleKind::zero) {
      p.note(first + n0 + row, k0 + k, static_cast<unsigned>(stored.kind));
    }
    p.store_scale(tile, row, slice, stored.code);
  }
  if (p.format.zero_points == ZeroPoints::none) return;
  // A byte holds a row's and that of the eighth row below.
  for (int byte = static_cast<int>(threadIdx.x); byte < packed::kZeroPointBytes;
       byte += static_cast<int>(blockDim.x)) {
    const int slice = byte % 4;
    const int upper = byte / 4 % 8 + byte / 32 * 16;
    std::uint32_t bits = 0;
    for (int row = upper; row <= upper + 8 && slice < packed::slices(p.format); row += 8) {
      const int k = slice * p.format.group;
      std::uint32_t zero = 8;
      if (is_there(row, k)) {
        const std::int64_t group = (k0 + k) / p.format.group;
        if (p.scale_at(first + n0 + row, group).kind == ScaleKind::good) {
          zero = p.zeros[(first + n0 + row) * p.groups() + group];
        }
      }
      bits |= zero << (row - upper) / 2;
    }
    tile[packed::zero_points_begin(p.format) + byte] = static_cast<std::byte>(bits);
  }
}

__global__ void add_up(const std::uint64_t* words, std::uint64_t count, Notes* notes) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::uint64_t{gridDim.x} * blockDim.x) {
    sum += weights::mixed(words[i], i);
  }
  atomicAdd(&notes->sum, static_cast<unsigned long long>(sum));
}

std::optional<Refusal> fault_of(const PlainInt4& w, const PackedFormat& format, void* packed) {
  const packed::Extents& e = w.extents;
  if (const char* fault = packed::format_fault(format)) {
    return refuse(RefusalCode::unsupported, "These cannot be packed: ", fault, ".");
  }
  if (format.code != DType::s4) {
    return refuse(RefusalCode::unsupported,
                  "These cannot be packed: ", as_rule("a GPU packs int4 weights alone"), ".");
  }
  if (e.experts < 1 || e.n < 1 || e.k < 1 || e.k % format.group != 0 ||
      packed::tiles(e) > INT_MAX) {
    return refuse(RefusalCode::bad_shape, "Weights of ", e.experts, " x ", e.n, " x ", e.k,
                  " are not packed in groups of ", format.group, ".");
  }
  const bool has_zeros = format.zero_points == ZeroPoints::groups;
  if (w.codes == nullptr || w.scales == nullptr || packed == nullptr ||
      (w.zeros != nullptr) != has_zeros || reinterpret_cast<std::uintptr_t>(packed) % 128 != 0) {
    return refuse(
        RefusalCode::bad_pointer,
        "Codes, scales, zero points where the format has them, and the packed tensor have "
        "addresses, the last one a multiple of 128.");
  }
  if (w.scale != DType::bf16 && w.scale != DType::f16 && w.scale != DType::f32) {
    return refuse(RefusalCode::bad_type, "Scales of ", numeric::word(w.scale), " are not packed; ",
                  as_rule("those of bf16, fp16 and f32 are"), ".");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> pack_on_cuda(const PlainInt4& w, const PackedFormat& format, void* packed,
                                    void* stream) {
  if (auto fault = fault_of(w, format, packed)) return fault;
  auto* const bytes = static_cast<std::byte*>(packed);
  auto* const on = static_cast<cudaStream_t>(stream);
  auto* const notes = reinterpret_cast<Notes*>(bytes);
  const Packing packing{w.extents,
                        format,
                        w.scale,
                        static_cast<const std::uint8_t*>(w.codes),
                        static_cast<const std::byte*>(w.scales),
                        static_cast<const std::uint8_t*>(w.zeros),
                        bytes + packed::kHeaderBytes,
                        notes};
  Notes found{0, kNoFault};
  const auto failed = [](cudaError_t error) {
    return cuda_refusal(error, "the weights cannot be packed on the device");
  };
  if (auto f = failed(cudaMemcpyAsync(notes, &found, sizeof found, cudaMemcpyHostToDevice, on))) {
    return f;
  }
  pack_tiles<<<static_cast<unsigned>(packed::tiles(w.extents)), 256, 0, on>>>(packing);
  if (auto f = failed(cudaGetLastError())) return f;
  const auto words = static_cast<std::uint64_t>(packed::data_bytes(format, w.extents) / 8);
  add_up<<<static_cast<unsigned>(std::min<std::uint64_t>((words + 255) / 256, 1024)), 256, 0, on>>>(
      reinterpret_cast<const std::uint64_t*>(packing.tiles), words, notes);
  if (auto f = failed(cudaGetLastError())) return f;
  if (auto f = failed(cudaMemcpyAsync(&found, notes, sizeof found, cudaMemcpyDeviceToHost, on))) {
    return f;
  }
  if (auto f = failed(cudaStreamSynchronize(on))) return f;
  if (found.fault != kNoFault) {
    const auto number = static_cast<std::int64_t>(found.fault / 8);
    const std::int64_t row = number / w.extents.k;
    const std::int64_t k = number % w.extents.k;
    const std::int64_t expert = row / w.extents.n;
    const std::int64_t n = row % w.extents.n;
    if (found.fault % 8 == kFaultOfCode) return weights::code_refusal(expert, n, k);
    return weights::scale_refusal(static_cast<ScaleKind>(found.fault % 8), format, expert, n,
                                  k / format.group);
  }
  const weights::HeaderBytes header =
      weights::header_bytes({format, w.extents, w.origin, found.sum});
  if (auto f = failed(
          cudaMemcpyAsync(bytes, header.data(), header.size(), cudaMemcpyHostToDevice, on))) {
    return f;
  }
  return failed(cudaStreamSynchronize(on));
}

}  // namespace warpwright::device
