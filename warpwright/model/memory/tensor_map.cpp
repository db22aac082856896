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

std::string kind(const TensorMapFields& f) {
  if (!f.padded) return "tensor map";
  return "tensor map of padded " + number(f.element_bits) + "-bit elements";
}

// What holds for elements of less than a byte: of 4 bits packed (16U4_ALIGN8B), of 4 and 6 padded.
std::optional<std::string> invalid_elements(const TensorMapFields& f) {
  if (!f.padded) {
    if (f.element_bits == 4 && f.extents[0] % 2 != 0) {
      return "the rows of a tensor map of 4-bit elements must be whole bytes: an even number of "
             "elements, not " +
             number(f.extents[0]);
    }
    if (f.element_bits == 4 || (f.element_bits > 0 && f.element_bits % 8 == 0)) return std::nullopt;
    return "elements of " + number(f.element_bits) +
           " bits have no tensor map that packs them: those of 4 bits and of whole bytes do";
  }
  if (f.element_bits != 4 && f.element_bits != 6) {
    return "a tensor map pads elements of 4 or 6 bits, not of " + number(f.element_bits);
  }
  if (f.extents[0] % kPaddedBox != 0) {
    return "the rows of a " + kind(f) + " must be a multiple of 128 elements long, not " +
           number(f.extents[0]);
  }
  if (f.box[0] != kPaddedBox) {
    return "the inner box extent of a " + kind(f) + " must be exactly 128 elements, not " +
           number(f.box[0]);
  }
  if (f.swizzle != atom::SmemSwizzle::none && f.swizzle != atom::SmemSwizzle::b128) {
    return "the swizzle of a " + kind(f) + " must be none or 128B, not " +
           std::string(atom::name(f.swizzle));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> invalid(const TensorMapFields& f) {
  if (f.rank < 1 || f.rank > TensorMapFields::max_rank) {
    return "a tensor map has rank 1 to 5, not " + number(f.rank);
  }
  if (auto fault = invalid_elements(f)) return fault;
  const unsigned alignment = f.padded ? kPaddedAlignment : 16;
  const std::string of_bytes = " must be a multiple of " + number(alignment) + " bytes";
  if (f.base % alignment != 0) return "the base address of a " + kind(f) + of_bytes;
  for (int d = 0; d < f.rank; ++d) {
    if (f.extents[d] < 1 || f.extents[d] > (std::uint64_t{1} << 32)) {
      return "extent " + number(d) + " of a tensor map must be 1 to 2^32, not " +
             number(f.extents[d]);
    }
    if (f.box[d] < 1 || f.box[d] > 256) {
      return "box extent " + number(d) + " must be 1 to 256, not " + number(f.box[d]);
    }
    if (d > 0 &&
        (f.strides[d - 1] % alignment != 0 || f.strides[d - 1] >= (std::uint64_t{1} << 40))) {
      return "stride " + number(d) + " of a " + kind(f) + of_bytes + " below 2^40, not " +
             number(f.strides[d - 1]);
    }
  }
  const int inner = row_bytes(f);
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
