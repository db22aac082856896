// What a compiled kernel says of itself, whatever its family: values, for plans, launches and
// readers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpwright/atom/cluster.h"
#include "warpwright/numeric/types.h"

namespace warpwright {

namespace kernel {

/// Who loads and who multiplies.
enum class Schedule : std::uint8_t {
  /// A producer warp loads; each consumer warpgroup multiplies its share of the rows of every tile.
  cooperative,
  /// A producer warp loads; the consumers take whole tiles in turn: while one stores its tile, the
  /// other multiplies the next.
  pingpong,
  /// Nobody is special: all warps copy and multiply (kernels of mma.sync).
  multistage,
};

/// Whether the product is grouped (tile/groups.h), and how a CTA finds its tiles then.
enum class Grouping : std::uint8_t {
  none,
  linear_scan,    ///< one group after the other
  binary_search,  ///< binary search over the tiles of all groups, added up in shared memory
  warp_scan,      ///< 32 groups at a step, by a warp together
};

/// Where a cluster's tiles come from.
enum class TileSource : std::uint8_t {
  one_tile,            ///< a cluster for every cluster tile, gone when it is done
  static_persistent,   ///< resident clusters, cluster c of C takes the tiles c, c + C, ...
  clc,                 ///< a cluster for every tile; the running ones cancel those that wait
  dynamic_persistent,  ///< resident clusters draw the next tile from a counter in the workspace
};

}  // namespace kernel

/// Extents of a tile.
struct TileShape {
  int m = 0;
  int n = 0;
  int k = 0;
};

/// A part that warps of a CTA play.
struct KernelRole {
  std::string name;  ///< as reports name it
  int first_warp = 0;
  int last_warp = 0;
  int registers = 0;  ///< a thread has while it plays
  std::string does;
};

/// A part of a CTA's shared memory, bytes from `begin` to before `end`.
struct SharedRegion {
  const char* what = "";
  int begin = 0;
  int end = 0;
};

/// The facts of one kernel.
struct KernelFacts {
  std::string name;         ///< in its table
  const char* family = "";  ///< "hopper_gemm"
  bool built = true;        ///< in this build
  int architecture = 0;     ///< that it is compiled for, compute capability x 10
  /// For the devices that it runs on.
  std::vector<int> architectures;
  std::vector<DType> a, b;     ///< types of the caller's A and B that it multiplies, either by any
  DType result = DType::bf16;  ///< of C and D
  /// For the scales of elements that the tensor core multiplies, and for those of a D that is
  /// quantised by few columns (micro_format.h), of which a launch takes one.
  std::vector<DType> micro_scales;
  std::vector<DType> d_scales;
  [[nodiscard]] bool multiplies_scales(DType type) const {
    return std::find(micro_scales.begin(), micro_scales.end(), type) != micro_scales.end();
  }
  [[nodiscard]] bool makes_scales(DType type) const {
    return std::find(d_scales.begin(), d_scales.end(), type) != d_scales.end();
  }
  /// What it has beside the plain product, in a few words each: "gated", "block scales".
  std::vector<std::string> features;
  std::vector<atom::ClusterShape> clusters = {{1, 1}};  ///< that it may run in
  TileShape tile;       ///< of a CTA: its own rows and columns (see `swap_ab`), K of a stage
  int result_rows = 0;  ///< of D in a CTA's tile
  int result_columns = 0;
  bool swap_ab = false;                              ///< its rows are the columns of D
  bool grouped = false;                              ///< only for products in groups
  kernel::Grouping search = kernel::Grouping::none;  ///< of its tiles in groups
  bool gathers = false;                              ///< reads tokens by index
  bool may_gather = false;                           ///< the same where a launch asks for it
  bool asks_early = false;  ///< for weights before its wait (LaunchMemory::weights_early)
  std::optional<kernel::Schedule> schedule;  ///< none: there is nothing to choose
  bool shares_cluster_k = false;             ///< CTAs of a cluster share a tile along K
  bool pair = false;                         ///< MMAs of two SMs
  int accumulators = 0;                      ///< in tensor memory
  int stages = 0;
  int threads = 0;
  int registers = 0;  ///< of a thread at launch
  int shared_bytes = 0;
  int ctas_per_sm = 1;  ///< that fit at once
  kernel::TileSource tiles = kernel::TileSource::static_persistent;
  std::vector<KernelRole> roles;
  std::vector<SharedRegion> regions;

  [[nodiscard]] int most_cluster_ctas() const {
    int most = 1;
    for (const atom::ClusterShape& c : clusters) most = std::max(most, atom::cluster_size(c));
    return most;
  }
  /// The part that a warp plays; "idle" for one that has none.
  [[nodiscard]] const char* role_of_warp(int warp) const {
    for (const KernelRole& r : roles) {
      if (warp >= r.first_warp && warp <= r.last_warp) return r.name.c_str();
    }
    return "idle";
  }
};
}  // namespace warpwright
