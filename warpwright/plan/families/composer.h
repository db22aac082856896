// How a prediction is put together (prediction.cpp). Internal to plan/cost/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "warpwright/plan/families/prediction.h"

namespace warpwright {

// A part of A or B that tiles share: rows or columns of one tile along all of K.
struct Panel {
  double bytes = 0;
  double last = -1;  // bytes that had passed through L2 when it was read last
};

// The tile of a cluster and what it reads.
struct ClusterTile {
  std::int64_t rows, columns;      // numbers of its panels
  double row_bytes, column_bytes;  // of these
  double inside;                   // its share that lies in D
};

// Tiles that run together, and what they ask for.
struct Wave {
  bool shared = false;  // along K: a tile's CTAs are not in one place
  double tiles = 0;
  double read = 0;    // bytes that memory sends
  double stored = 0;  // and takes
  double lines = 0;   // of L2
};

class Composer {
 public:
  Composer(const Plan& plan, const TilePhases& phases, const PredictionMachine& machine,
           const std::vector<std::int64_t>& lengths)
      : plan_(plan),
        p_(plan.problem),
        f_(plan.facts()),
        phases_(phases),
        m_(machine),
        lengths_(lengths) {}

  Prediction made();

 private:
  void list_tiles();
  [[nodiscard]] double k_tile_clocks() const;
  [[nodiscard]] double port_clocks() const;
  [[nodiscard]] double asked(std::size_t begin, std::size_t end) const;
  // For a tile's sums, all of them.
  [[nodiscard]] double cluster_exchange() const;
  [[nodiscard]] double sums_bytes() const { return 4.0 * f_.tile.m * f_.tile.n; }
  /// For tiles shared along K: how many are not, the k_tiles of the others in tiles, and the
  /// exchange of their sums.
  struct SharedPart {
    double whole = 0;
    double rounds = 0;
    double exchange_clocks = 0;
  };
  [[nodiscard]] double resident() const;
  [[nodiscard]] double sharing() const;
  [[nodiscard]] SharedPart shared_part(double count, double resident) const;
  void list_waves();
  Prediction at_clock(double hz, double& busy) const;
  // Bytes that memory sends for the tiles [begin, end).
  double missed(std::size_t begin, std::size_t end, std::vector<Panel>& panels,
                double& passed) const;

  const Plan& plan_;
  const GemmProblem& p_;
  const KernelFacts& f_;
  const TilePhases& phases_;
  const PredictionMachine& m_;
  const std::vector<std::int64_t>& lengths_;

  std::vector<ClusterTile> tiles_;
  std::vector<Wave> waves_;
  SharedPart split_;
  double at_once_ = 1;  // tiles
  std::int64_t panels_ = 0;
  double sharers_ = 1;   // CTAs that share a tile in slices
  double inside_m_ = 1;  // of all tiles' rows and columns, what lies in the matrix
  double inside_n_ = 1;
  double k_tiles_ = 0;    // of a CTA's tile, or its part of one
  double row_lines_ = 0;  // of L2 that a cluster tile asks for
  double column_lines_ = 0;
  double clocks_ = 0;       // of a k_tile
  double store_bytes_ = 0;  // of one CTA's tile
};

}  // namespace warpwright
