#include "warpwright/plan/search/first_tiles.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "warpwright/tile/numbers.h"
#include "warpwright/tile/raster.h"

namespace warpwright {
namespace {

// Of blocks of `tiles` tiles, the height of the one that reads least.
int block_height(int tiles, int most, double own, double other) {
  int best = 1;
  double least = 0;
  for (int high = 1; high <= std::min(tiles, most); ++high) {
    const int wide = (tiles + high - 1) / high;
    const double reads = high * own + wide * other;
    if (high > 1 && reads >= least) continue;
    best = high;
    least = reads;
  }
  return best;
}

}  // namespace

std::vector<std::uint8_t> first_tiles(const tile::Raster& raster, std::span<const int> groups,
                                      double own, double other) {
  const int clusters = static_cast<int>(groups.size());
  const int count = static_cast<int>(std::set<int>(groups.begin(), groups.end()).size());
  if (count < 2 || clusters > tile::FirstNumbers::most) return {};
  const int across = raster.along_m ? raster.tiles_m : raster.tiles_n;
  const int high =
      block_height((clusters + count - 1) / count, std::min(raster.band, across), own, other);
  // Numbers in strips `high` tiles high, there and back, so that neighbours in this line are
  // neighbours in the output; those behind the last tile come last.
  const auto place = [&](int number) {
    std::array<int, 6> key = {1, 0, 0, 0, 0, number};
    if (number >= tile::tile_count(raster)) return key;
    const tile::TilePosition at = tile::position(raster, number);
    const int a = raster.along_m ? at.m : at.n;
    const int b = raster.along_m ? at.n : at.m;
    const int strip = a % raster.band / high;
    key = {0, at.batch, a / raster.band, strip, strip % 2 == 0 ? b : -b, a};
    return key;
  };
  std::vector<int> numbers(groups.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  std::vector<int> order = numbers;
  std::sort(numbers.begin(), numbers.end(), [&](int x, int y) { return place(x) < place(y); });
  const auto group = [&](int cluster) { return groups[static_cast<std::size_t>(cluster)]; };
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return group(x) < group(y); });
  std::vector<std::uint8_t> first(groups.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    first[static_cast<std::size_t>(order[i])] = static_cast<std::uint8_t>(numbers[i]);
  }
  return first;
}

}  // namespace warpwright
