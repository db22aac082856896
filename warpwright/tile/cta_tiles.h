// Which part of its cluster's tiles is a CTA's own, in elements.
#pragma once

#include "warpwright/atom/cluster.h"
#include "warpwright/isa/config.h"
#include "warpwright/tile/raster.h"

namespace warpwright::tile {

/// The tiles of one CTA, of `rows` x `columns` each, out of the cluster tiles that `Scheduler`
/// gives. The tokens of a grouped product are its columns when `swap_ab`, else its rows.
template <class Scheduler, int rows, int columns, bool swap_ab>
class CtaTiles {
 public:
  /// For the CTA at `at`. Keeps a reference to `cluster`.
  WW_DEVICE CtaTiles(const Scheduler& scheduler, const atom::ClusterShape& cluster,
                     atom::ClusterCoord at)
      : scheduler_(scheduler), cluster_(cluster), at_(at) {}

  /// The CTA's next tile; false when there is none.
  WW_DEVICE bool next(Work& work) {
    if (!scheduler_.next(work)) return false;
    work.tile.m = work.tile.m * cluster_.m + at_.x;
    work.tile.n = work.tile.n * cluster_.n + at_.y;
    work.row = work.tile.m * rows + (swap_ab ? 0 : work.first_token);
    work.column = work.tile.n * columns + (swap_ab ? work.first_token : 0);
    return true;
  }

  WW_DEVICE const Scheduler& scheduler() const { return scheduler_; }
  WW_DEVICE Scheduler& scheduler() { return scheduler_; }
  WW_DEVICE void forget() { scheduler_.forget(); }

 private:
  Scheduler scheduler_;
  const atom::ClusterShape& cluster_;
  atom::ClusterCoord at_;
};

template <int rows, int columns, bool swap_ab, class Scheduler>
WW_DEVICE CtaTiles<Scheduler, rows, columns, swap_ab> cta_tiles(const Scheduler& scheduler,
                                                                const atom::ClusterShape& cluster,
                                                                atom::ClusterCoord at) {
  return {scheduler, cluster, at};
}

}  // namespace warpwright::tile
