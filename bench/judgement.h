// Whether a measured product is right up to rounding. Internal to bench/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/device_math.h"
#include "bench/operand_sets.h"
#include "bench/replay.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright::bench {

/// Says whether results are right: by cuBLASLt's where it has the whole product, else by that of a
/// plain kernel in float64.
class Judge {
 public:
  /// For the product of these sets and their parts, which stay. `library` starts cuBLASLt's
  /// product, or is empty. No launch must write to the last set before the last check.
  Judge(const std::vector<GemmOperands>& sets, const std::vector<Parts>& parts,
        const Launch& library, cudaStream_t stream);

  /// What it compares with.
  [[nodiscard]] std::string name() const;
  /// The relative error of the result of `launch`, which is `who`'s; the worst part's. Throws where
  /// it is not right: where cuBLASLt's differs, with the word of the plain kernel on both.
  double check(const Launch& launch, const std::string& who) const;

 private:
  void run(const Launch& launch, std::size_t set) const;
  [[nodiscard]] std::shared_ptr<device::CudaBuffer> plain_product() const;
  [[nodiscard]] Result<double> compare_parts(std::size_t set, const device::CudaBuffer* product,
                                             const std::string& who) const;
  [[nodiscard]] std::string who_is_right() const;

  const std::vector<GemmOperands>& sets_;
  const std::vector<Parts>& parts_;
  cudaStream_t stream_;
  std::shared_ptr<device::CudaBuffer> product_;  // of the plain kernel; null where cuBLASLt judges
};

}  // namespace warpwright::bench
