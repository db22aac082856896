// Packed weights for a reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/files/packed_file.h"

namespace warpwright::cli {

/// How far packed weights are off the floats that they were made of.
struct PackedError {
  double rms = 0;      ///< over that of the floats
  double largest = 0;  ///< of one weight, which is
  std::int64_t expert = 0, row = 0, k = 0;
  double got = 0, want = 0;
};
/// A line of it.
std::string error_text(const PackedError& error, const std::string& against);

/// "int4 ex (-8..7), groups of 128, bf16 scales, 1 x 256 x 512, from gptq".
std::string packed_line(const weights::Header& header);

/// Which tile of a packed tensor is shown, and how much of it.
struct TileView {
  std::int64_t expert = 0;
  std::int64_t row_tile = 0;
  std::int64_t k_tile = 0;
  int threads = 2;  ///< whose words are shown, from thread 0 on
};

/// A packed tensor of `bytes` for programs: where it lies, its form and its extents.
nlohmann::ordered_json packed_json(const std::string& name, const weights::Header& header,
                                   std::size_t bytes);

/// The same with the place of a tile, its codes and its scales, by rows of weights.
nlohmann::ordered_json packed_json(const PackedTensor& packed, const TileView& view);

/// What a packed tensor is made of, and one of its tiles, byte by byte.
std::string packed_text(const PackedTensor& packed, const TileView& view);

}  // namespace warpwright::cli
