// The header of a packed tensor, and what is wrong with one. docs/packing.md has
// its bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright::weights {

/// The `factor` of a header whose experts' tensors have a factor each: those lie beside the bytes.
inline constexpr float kFactorEach = std::numeric_limits<float>::quiet_NaN();

/// What a packed tensor says of itself.
struct Header {
  PackedFormat format = {};
  packed::Extents extents = {};
  std::string source;     ///< what it was made of: "gptq"; printable ASCII, at most 27 characters
  std::uint64_t sum = 0;  ///< of the tiles: `sum_of`
  /// For nvf4 what all weights are multiplied by, or kFactorEach; 0 where it is not known, as of
  /// bytes of earlier versions, and of all other weights.
  float factor = 0;

  /// Have the weights a factor that these bytes do not say? Without it they are no weights.
  [[nodiscard]] bool lacks_factor() const { return packed::has_factor(format) && !(factor > 0); }
};

using HeaderBytes = std::array<std::byte, packed::kHeaderBytes>;

/// The bytes of a header.
HeaderBytes header_bytes(const Header& header);

/// The header that these bytes begin with; what follows is not looked at. Refuses what is no header
/// of this version, is damaged, or claims what cannot be; `name` stands for the tensor there.
Result<Header> parse_header(std::span<const std::byte> bytes,
                            const std::string& name = "The packed tensor");

/// The header of a whole packed tensor, whose size and sum are checked too.
Result<Header> parse_packed(std::span<const std::byte> bytes,
                            const std::string& name = "The packed tensor");

/// Why the packed tensor does not hold weights of these extents; nothing when it does.
std::optional<Refusal> mismatch(const Header& header, const packed::Extents& wanted,
                                const std::string& name = "The packed tensor");

/// The sum that tells damage: every word of 8 bytes mixed with its number, all added up, so that
/// any order of adding gives the same. The bytes are a multiple of 8.
std::uint64_t sum_of(std::span<const std::byte> bytes, int threads = 0);

}  // namespace warpwright::weights
