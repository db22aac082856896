// The formats of operands with a scale for every few elements along K, which the tensor core
// multiplies: what the elements are, and what the scales. The one list of them; words, rules,
// kernels' names and the command line follow from it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "warpwright/numeric/types.h"

namespace warpwright {

/// A format: the type of the elements and that of their scales, which says how many elements share
/// one.
struct MicroFormat {
  DType element = DType::e4m3;
  DType scale = DType::ue8m0;
  const char* word = "";        ///< on the command line and in messages
  const char* identifier = "";  ///< in names of kernels

  friend constexpr bool operator==(const MicroFormat& x, const MicroFormat& y) {
    return x.element == y.element && x.scale == y.scale;
  }
};

/// All of them, in the order in which people are told them; the first of an element is what it is
/// where nothing is said of scales, but of e2m1 (micro_scale).
inline constexpr MicroFormat micro_formats[] = {
    {DType::e4m3, DType::ue8m0, "mxf8", "mxf8"},
    {DType::e5m2, DType::ue8m0, "mxf8-e5m2", "mxf8e5m2"},
    {DType::e2m3, DType::ue8m0, "mxf6", "mxf6"},
    {DType::e3m2, DType::ue8m0, "mxf6-e3m2", "mxf6e3m2"},
    {DType::e2m1, DType::ue8m0, "mxf4", "mxf4"},
    {DType::e2m1, DType::ue4m3, "nvf4", "nvf4"},
};

/// Tokens beside weights of a format: elements without scales in the tensor core, and a float32 for
/// each row, which the epilogue multiplies.
inline constexpr MicroFormat plain_tokens = {DType::e4m3, DType::f32, "e4m3", "e4m3"};

/// Are these plain tokens? Only by types: CUDA has no comparison of the words.
constexpr bool is_plain_tokens(DType element, DType scale) {
  return element == DType::e4m3 && scale == DType::f32;
}

/// The format of such elements and scales; null where there is none.
constexpr const MicroFormat* micro_format(DType element, DType scale) {
  if (is_plain_tokens(element, scale)) return &plain_tokens;
  for (const MicroFormat& f : micro_formats) {
    if (f.element == element && f.scale == scale) return &f;
  }
  return nullptr;
}
constexpr const MicroFormat* micro_format(std::string_view word) {
  for (const MicroFormat& f : micro_formats) {
    if (word == f.word) return &f;
  }
  return nullptr;
}

/// The format of such elements and scales, which is one.
constexpr MicroFormat known_micro_format(DType element, DType scale) {
  const MicroFormat* const f = micro_format(element, scale);
  return f == nullptr ? MicroFormat{} : *f;
}

/// The words of A's and B's format, one where they are the same: "mxf8", "mxf8,mxf4".
inline std::string micro_words(const MicroFormat& a, const MicroFormat& b) {
  return a == b ? a.word : std::string(a.word) + "," + b.word;
}
/// The formats of such words; nothing where one is none.
constexpr std::optional<std::pair<MicroFormat, MicroFormat>> micro_formats_of(
    std::string_view text) {
  const std::size_t comma = text.find(',');
  const bool is_one = comma == std::string_view::npos;
  const MicroFormat* const a = !is_one && text.substr(0, comma) == plain_tokens.word
                                   ? &plain_tokens
                                   : micro_format(text.substr(0, comma));
  const MicroFormat* const b = is_one ? a : micro_format(text.substr(comma + 1));
  if (a == nullptr || b == nullptr) return std::nullopt;
  return std::pair(*a, *b);
}

/// Are there formats of such elements, or with such scales?
constexpr bool is_micro_element(DType element) {
  return micro_format(element, DType::ue8m0) != nullptr;
}
constexpr bool is_micro_scale(DType scale) {
  return scale == DType::ue8m0 || scale == DType::ue4m3;
}

/// Elements of K that share a scale of that type; 0, all of them, of a type that is none.
constexpr int micro_block(DType scale) {
  return scale == DType::ue8m0 ? 32 : scale == DType::ue4m3 ? 16 : 0;
}

/// The scales of elements of that type where nothing is said of them: nvf4's of e2m1, else ue8m0.
constexpr DType micro_scale(DType element) {
  return element == DType::e2m1 ? DType::ue4m3 : DType::ue8m0;
}

/// Are elements of such operands multiplied out of bytes of their own, as all are that the tensor
/// core multiplies by those of another width, and those of 6 bits? Two of 4 bits are packed.
constexpr bool multiplies_bytes(DType a, DType b) {
  return numeric::bits(a) != 4 || numeric::bits(b) != 4;
}

/// Does such an operand beside `other` come into shared memory with padding: 16 elements of 4 or
/// 6 bits in 16 bytes?
constexpr bool is_padded_in_shared(DType element, DType other) {
  return numeric::bits(element) < 8 && multiplies_bytes(element, other);
}
/// What a copy of such an operand asks of global memory: its rows begin at multiples of so many
/// bytes, and K is a multiple of so many elements.
inline constexpr int padded_copy_bytes = 32;
inline constexpr int padded_copy_elements = 128;

}  // namespace warpwright
