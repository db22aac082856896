// Which output tile next under launch control: the own cluster's, then those of the clusters that
// it canceled before they were launched.
#pragma once

#include "warpwright/isa/launch_control.h"
#include "warpwright/isa/thread.h"
#include "warpwright/pipeline/launch_control.h"
#include "warpwright/pipeline/pipeline_state.h"
#include "warpwright/tile/raster.h"

namespace warpwright::tile {

/// The tiles as one role sees them. The grid has a cluster for every tile; `Pipeline` is a
/// pipeline::LaunchControl, of which this role reads every answer; `Who` it is, a thread or all
/// lanes of a warp.
template <class Pipeline, pipeline::Reader Who>
class LaunchControlled {
 public:
  /// Tiles of `k_blocks` K blocks. `cluster_size` divides the index of a CTA by the CTAs of a
  /// cluster. Keeps the references.
  WW_DEVICE LaunchControlled(const PreparedRaster& raster, int k_blocks,
                             const Divisor& cluster_size, const Pipeline& pipeline)
      : raster_(raster), blocks_(k_blocks), cluster_size_(cluster_size), pipeline_(pipeline) {}

  /// The cluster's next tile; false when there is none.
  WW_DEVICE bool next(Work& work) {
    if (own_) {
      own_ = false;
      work = {position(raster_, isa::cluster_index()), 0, blocks_};
      return true;
    }
    const isa::LaunchAnswer answer = pipeline_.template read<Who>(state_);
    state_.advance(Pipeline::shape.answers);
    if (!isa::cluster_canceled(answer)) return false;
    const int index = cluster_size_.quotient(isa::canceled_first_cta(answer));
    work = {position(raster_, index), 0, blocks_};
    return true;
  }

 private:
  const PreparedRaster& raster_;
  int blocks_;
  const Divisor& cluster_size_;
  const Pipeline& pipeline_;
  pipeline::PipelineState state_;
  bool own_ = true;
};

}  // namespace warpwright::tile
