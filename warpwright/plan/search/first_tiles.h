// With which tiles the clusters of a persistent grid begin, so that SMs which stand together read
// the same rows and columns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "warpwright/facts/raster.h"

namespace warpwright {

/// For each cluster the number of its first tile: a permutation of their indices. `groups` says in
/// which group of SMs each cluster lands. Clusters of one group get a block of what the grid holds
/// at first, near square in what it reads: `own` for a cluster tile across the raster's bands,
/// `other` for one along them. As cluster c of C goes on with every C-th tile, the blocks move
/// along together. Empty where there is one group alone, or a grid too large for
/// tile::FirstNumbers.
std::vector<std::uint8_t> first_tiles(const tile::Raster& raster, std::span<const int> groups,
                                      double own, double other);

}  // namespace warpwright
