// What one SM does with a kernel's tiles, in counts that know no machine, and the clocks that a
// machine takes for them. Kept as data in kernel_work.tar.xz, which `script/counts.py` makes by the
// model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "warpwright/facts/costs.h"

namespace warpwright {

/// What one SM takes, in clocks: a run of t tiles (a CTA) of k k_tiles takes
/// first + t * (between + k * k_tile).
struct TilePhases {
  double first = 0;    ///< until the first multiplication, and from the last one to the end
  double k_tile = 0;   ///< in the steady state
  double between = 0;  ///< a tile beside its k_tiles: its epilogue, as far as nothing hides it
};

/// A kernel's work in counts, each along a way through a run on which all waits for what was
/// before. No part of a way can be left out, so a machine takes what the longest of them takes on
/// it. Which ways there are was found on machines of which one part each is slow.
struct KernelWork {
  int tiles = 1;       ///< of the shortest run
  double shallow = 8;  ///< k_tiles of its tiles
  double deep = 32;    ///< and of longer ones
  /// For a k_tile among many; for one more tile of few and of many k_tiles; for the shortest run.
  std::vector<CostCounts> k_tile;
  std::vector<CostCounts> shallow_tile;
  std::vector<CostCounts> deep_tile;
  std::vector<CostCounts> run;
  /// What all threads and units of a CTA do, for a k_tile and for a tile beside its k_tiles.
  CostCounts all_of_k_tile;
  CostCounts all_of_tile;
  friend bool operator==(const KernelWork&, const KernelWork&) = default;
};

/// Clocks of tiles of so many k_tiles.
TilePhases phases_of(const KernelWork& work, const Costs& costs, double k_tiles);

/// A kernel's lines of a file of kernel_work.tar.xz: its name, then each part behind a blank, with
/// a tab and the counts.
std::string work_text(std::string_view kernel, const KernelWork& work);
/// The inverse, of the lines of one kernel. Throws std::invalid_argument.
KernelWork parse_work(std::string_view lines);

/// The work of a kernel of the tables, or null where none is kept. Read when it is first asked for.
const KernelWork* kept_work(std::string_view kernel);

}  // namespace warpwright
