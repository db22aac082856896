// cuBLASLt as the baseline: loaded when asked for, so that programs start where it is absent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warpwright/plan/product/plan.h"

namespace warpwright::bench {

/// One product in cuBLASLt's terms with the algorithms that its heuristic offers for it.
class CublasLt {
 public:
  /// Prepares the product of these sets of operands (alike but for their addresses, on the current
  /// device) with at most `offers` algorithms, and takes its workspace. Scales are laid out as
  /// cuBLASLt wants them, once for each set. Refuses where cuBLASLt is absent, cannot express the
  /// product or has no algorithm for it.
  static Result<std::shared_ptr<CublasLt>> make(const std::vector<GemmOperands>& sets, int offers);

  virtual ~CublasLt() = default;
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  /// How many algorithms the heuristic offered; 0 is its first pick.
  [[nodiscard]] virtual int algorithms() const = 0;
  /// Starts the product on `stream` by one of the algorithms, on one of the sets of `make`.
  virtual std::optional<Refusal> launch(int algorithm, const GemmOperands& operands,
                                        void* stream) = 0;

 protected:
  CublasLt() = default;
};

/// The library's version, "13.1.0"; empty where it is not on this machine.
std::string cublaslt_version();

}  // namespace warpwright::bench
