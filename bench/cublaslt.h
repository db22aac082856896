// cuBLASLt as the baseline: loaded when asked for, so that programs start where it is absent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "warpwright/plan/plan.h"

namespace warpwright::bench {

/// One product in cuBLASLt's terms with the algorithms that its heuristic offers for it.
class CublasLt {
 public:
  /// Prepares the product of `operands` (packed, on the current device) with at most `offers`
  /// algorithms and takes its workspace. Refuses where cuBLASLt is absent or has no algorithm.
  static Result<std::shared_ptr<CublasLt>> make(const GemmOperands& operands, int offers);

  virtual ~CublasLt() = default;
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  /// How many algorithms the heuristic offered; 0 is its first pick.
  [[nodiscard]] virtual int algorithms() const = 0;
  /// cuBLASLt's version: "13.0.0".
  [[nodiscard]] virtual std::string version() const = 0;
  /// Starts the product on `stream` by one of the algorithms, on operands like those of `make`.
  virtual std::optional<Refusal> launch(int algorithm, const GemmOperands& operands,
                                        void* stream) = 0;

 protected:
  CublasLt() = default;
};

}  // namespace warpwright::bench
