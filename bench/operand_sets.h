// Copies of a product's operands in device memory, enough of them to defeat the L2 cache. Internal
// to bench/.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "warpwright/device/cuda.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright::bench {

/// Random packed weights of the extents of `w`, whose data are the memory of their tiles, a
/// header's bytes behind where it begins: packs them there, and gives the values they stand for.
/// Queued.
std::shared_ptr<device::CudaBuffer> fill_packed(const PackedFormat& format, const MatrixView& w,
                                                std::uint64_t seed, std::uint64_t stream,
                                                cudaStream_t on);

/// Operands of a problem without memory: every pointer is null, that of the groups' offsets too.
/// Scales are packed, but for those of groups' 1 x 128: they lie as quantisers write them, rows
/// next to each other in a multiple of 4.
GemmOperands operands_for(const GemmProblem& problem);

/// A set of operands as products without groups: itself, or a product for each group that has rows.
using Parts = std::vector<GemmOperands>;
Parts parts_of(const GemmOperands& set, const std::vector<std::int64_t>& lengths);

/// How many sets of operands keep each other out of a cache: one comes round again after all
/// others, of which twice the cache is read. `touched` bytes of a set are read, and it takes `step`
/// bytes of memory. Throws Failure where there is none for two.
struct SetCount {
  std::int64_t sets = 0;
  bool cold = true;  ///< are there enough of them?
};
SetCount count_sets(std::int64_t touched, std::int64_t step, std::int64_t l2_bytes);

/// Sets of operands, one after the other in one piece of device memory: each a copy of `host`'s
/// tensors, or random ones where these have no memory. A set comes round again after all others,
/// and all others are more than twice the cache. All share the offsets of their groups.
class OperandSets {
 public:
  /// Throws Failure where there is no memory for two sets.
  OperandSets(const GemmOperands& host, std::int64_t l2_bytes, std::uint64_t seed,
              cudaStream_t stream);

  [[nodiscard]] const std::vector<GemmOperands>& all() const { return sets_; }
  /// Are there enough of them to keep operands out of the cache?
  [[nodiscard]] bool cold() const { return cold_; }
  /// A set as plain kernels read it: of packed weights of the first one B has their values.
  [[nodiscard]] GemmOperands plain(std::size_t set) const;

 private:
  std::shared_ptr<device::CudaBuffer> memory_;
  std::shared_ptr<device::CudaBuffer> values_;  // of packed weights
  std::vector<GemmOperands> sets_;
  bool cold_ = true;
};

}  // namespace warpwright::bench
