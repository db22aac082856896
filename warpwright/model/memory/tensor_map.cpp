#include "warpwright/model/memory/tensor_map.h"

#include <cstring>

namespace warpwright::model {
namespace {

constexpr std::uint64_t magic = 0x50414d4c45444f4d;  // "MODELMAP"

struct Packed {
  std::uint64_t magic;
  TensorMapFields fields;
};
static_assert(sizeof(Packed) <= sizeof(TensorMap));

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

}  // namespace

std::optional<std::string> invalid(const TensorMapFields& f) {
  if (f.rank < 1 || f.rank > TensorMapFields::max_rank) {
    return "a tensor map has rank 1 to 5, not " + number(f.rank);
  }
  if (f.base % 16 != 0) return "the base address of a tensor map must be a multiple of 16 bytes";
  for (int d = 0; d < f.rank; ++d) {
    if (f.extents[d] < 1 || f.extents[d] > (std::uint64_t{1} << 32)) {
      return "extent " + number(d) + " of a tensor map must be 1 to 2^32, not " +
             number(f.extents[d]);
    }
    if (f.box[d] < 1 || f.box[d] > 256) {
      return "box extent " + number(d) + " must be 1 to 256, not " + number(f.box[d]);
    }
    if (d > 0 && (f.strides[d - 1] % 16 != 0 || f.strides[d - 1] >= (std::uint64_t{1} << 40))) {
      return "stride " + number(d) +
             " of a tensor map must be a multiple of 16 bytes below 2^40, not " +
             number(f.strides[d - 1]);
    }
  }
  const int inner = f.box[0] * f.element_bytes;
  if (inner % 16 != 0) {
    return "the inner box extent must be a multiple of 16 bytes, not " + number(inner);
  }
  if (f.swizzle != atom::SmemSwizzle::none && inner > atom::span_bytes(f.swizzle)) {
    return "the inner box extent of " + number(inner) + " bytes exceeds the swizzle span of " +
           number(atom::span_bytes(f.swizzle));
  }
  return std::nullopt;
}

TensorMap encode(const TensorMapFields& fields) {
  TensorMap map;
  const Packed packed{magic, fields};
  std::memcpy(map.opaque, &packed, sizeof packed);
  return map;
}

std::optional<TensorMapFields> decode(const TensorMap& map) {
  Packed packed{};
  std::memcpy(static_cast<void*>(&packed), map.opaque, sizeof packed);
  if (packed.magic != magic) return std::nullopt;
  return packed.fields;
}

}  // namespace warpwright::model
