// The least that a way to run a product takes, from first principles: what it asks of each unit, by
// the needs of its kernel's tiles and the description of the machine. The same for all families.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "warpwright/plan/cost/group_lengths.h"
#include "warpwright/plan/cost/prediction_machine.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright {

/// How CTAs share a tile along K; those of a cluster do beside it (Plan::cluster_k).
enum class AlongK : std::uint8_t {
  whole,   ///< they do not
  pieces,  ///< through the workspace, tiles that do not come out evenly (tile/split.h)
  slices,  ///< all tiles alike, and each stores a slice
};

/// What a family says of a kernel's tile and k_tile on a machine: all that a floor is made of.
/// Clocks are of an SM.
struct TileNeeds {
  double clock_hz = 0;
  // The tile of a CTA.
  double tile_m = 0;
  double tile_n = 0;        ///< on average, where tiles differ
  int token_rows = 0;       ///< of the widest, along the tokens
  bool is_swapped = false;  ///< tokens are along N
  int ctas_per_sm = 1;
  double sharing = 0;  ///< CTAs of an SM at a time; 0: those of the grid, evenly
  AlongK along_k = AlongK::whole;
  double rounds = 0;          ///< of the busiest CTA, where K is cut; 0: as they come out evenly
  double parts = 0;           ///< of a tile that is cut, in these
  bool starts_again = false;  ///< a CTA begins when another ends, at each tile
  double search_loads = 0;    ///< one behind the other, until a CTA knows its tile among groups
  // A k_tile.
  int k = 0;
  double row_bytes = 0;  ///< as it is multiplied
  double a_share = 1;    ///< of A's bytes, that are loaded
  double b_share = 1;    ///< of B's: a pair's CTAs load half each
  double scale_bytes = 0;
  double tensor = 0;   ///< clocks of the tensor cores
  double convert = 0;  ///< of warps: codes to elements, sums to sums
  double shared = 0;   ///< of shared memory: operands in, and out
  double port_bytes_per_clock = 0;
  double row_clocks = 0;       ///< of TMA, for a row of a box
  double row_copy_clocks = 0;  ///< of a warp, for a row by index
  /// The port counts rows and columns inside the product by their mean, which corrections were
  /// learnt beside, not by the fullest tile's.
  bool by_means = false;
  // The ring, and a tile's end.
  int stages = 1;
  double load_clocks = 0;   ///< latency
  double store_bytes = 0;   ///< of a tile
  double store_clocks = 0;  ///< of warps, until they have handed a tile over
  double hidden = 0;        ///< part of a store that goes on beside the next tile's k_tiles
  double sums_bytes = 0;    ///< of a tile's sums, which CTAs exchange
  double sums_share = 1;    ///< of the port, for these
};

/// Seconds that each unit needs by itself, all tiles of the busiest SM together.
struct Floor {
  double start = 0;     ///< the launch, and until the first operands are there
  double search = 0;    ///< of it: a CTA looks for its tile among groups
  double tensor = 0;    ///< the tensor cores of one SM
  double convert = 0;   ///< its warps: codes to elements, and scales to sums
  double shared = 0;    ///< its shared memory: operands in, and out to the tensor cores
  double port = 0;      ///< its port to L2
  double rows = 0;      ///< warps that start a copy for each token by index
  double requests = 0;  ///< L2: lines that all SMs ask for
  double asked = 0;     ///< the same, where L2 sends nothing once for several SMs; not in `seconds`
  double memory = 0;    ///< HBM: each byte once
  /// L2, for operands that are still on their way from HBM; not in `seconds`, as how many CTAs get
  /// them together is only known of neighbours.
  double cold = 0;
  double ring = 0;      ///< latency: a CTA has no more bytes in flight than its ring of stages
  double stores = 0;    ///< epilogues that nothing hides
  double exchange = 0;  ///< of sums that CTAs share
  double seconds = 0;   ///< all together

  /// What it was made from.
  struct Walk {
    double rounds = 0;    ///< tiles of the busiest CTA
    double tiles = 0;     ///< for clusters
    double k_tiles = 0;   ///< of a tile
    double sharing = 1;   ///< CTAs that share an SM
    double sharers = 1;   ///< CTAs that share a tile in slices
    double inside_m = 1;  ///< of all tiles' rows and columns
    double inside_n = 1;
    double bytes = 0;  ///< of a k_tile that lie inside
    double again = 0;  ///< token tiles of a group that has rows, beside its first
  } walk;

  /// What the correction of a floor (cost/correction.h) goes by.
  static constexpr std::size_t kFeatures = 58;
  std::array<double, kFeatures> features{};
};

/// Their names, in their order.
extern const std::array<const char*, Floor::kFeatures> floor_features;

/// What the floors of all ways to a product have in common.
struct FloorBasis {
  FloorBasis(const GemmProblem& problem, const DeviceFacts& device);

  PredictionMachine machine;
  GroupLengths lengths;   ///< as they are expected
  double moved = 0;       ///< bytes of memory, each once
  double weights = 0;     ///< a group's
  double lines_of_a = 1;  ///< see lines_asked; packed weights count by their share of bytes
  double lines_of_b = 1;
};

/// The floor of a plan whose kernel has these needs, without features.
Floor made_floor(const Plan& plan, const TileNeeds& needs, const FloorBasis& basis);

/// Has `needs`, whose k is there, be of a kernel that cuts tiles along K on the plan's grid.
void cut_tiles(TileNeeds& needs, const Plan& plan, const FloorBasis& basis);

/// Seconds by which ways are ordered of which no times are known: of those as fast the one that
/// leaves other units idle.
double uncorrected_seconds(const Floor& floor);

/// The floor of a Hopper plan by its own kernel, groups and device, with features; nothing for
/// plans of other families, of which no times are known.
std::optional<Floor> floor_of(const Plan& plan);

}  // namespace warpwright
