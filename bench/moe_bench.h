// The time of a mixture of experts on a GPU, whole and step by step: cold operands, graphs replayed
// in turns, as gemm_bench.h has it. Rows of some tokens are compared with float64 before anything
// is timed.
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "bench/gemm_bench.h"
#include "warpwright/plan/moe/moe_plan.h"

namespace warpwright::bench {

/// What a mixture must do, whose experts have these `lengths`: two products for every row, and the
/// bytes of x, d and of the weights and scales of experts that have rows, each moved once.
inline Roof moe_roof(const MixtureProblem& p, const DeviceFacts& device,
                     const std::vector<std::int64_t>& lengths) {
  const auto bytes = [](const PlannedMatrix& m) {
    return static_cast<double>(m.rows) * static_cast<double>(m.columns) * numeric::bits(m.dtype) /
           8;
  };
  const auto rows = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  Roof roof;
  roof.operations = 2.0 * static_cast<double>(rows) * 3 * static_cast<double>(p.inner()) *
                    static_cast<double>(p.hidden());
  const auto weights = [&](const PlannedMatrix& m, const std::optional<PackedWeights>& form) {
    if (!form) return bytes(m);
    return static_cast<double>(packed::data_bytes(form->format, {1, m.rows, m.columns}));
  };
  const double expert = weights(p.w13, p.packed13) + weights(p.w2, p.packed2) + bytes(p.scale_w13) +
                        bytes(p.scale_w2);
  roof.bytes = bytes(p.x) + bytes(p.d) + static_cast<double>(busy_groups(lengths)) * expert;
  if (device.flops_16bit <= 0 || device.memory_bytes_per_second <= 0) return roof;
  roof.compute_us = roof.operations / tensor_rate(device, p.token_type()) * 1e6;
  roof.memory_us = roof.bytes / device.memory_bytes_per_second * 1e6;
  return roof;
}

/// One step by itself, its weights cold and what lies between the steps as the cache has it.
struct MoeStepTime {
  PlannedStep of;
  Timing timing;
};

struct MoeTimes {
  Timing ours;
  std::optional<Timing> beside;    ///< of the plan beside it
  std::vector<MoeStepTime> steps;  ///< where they were asked for
  int checked_tokens = 0;          ///< whose rows were compared with float64
  double worst_share = 0;          ///< the largest error of these, over what is allowed
  bool cold = true;
  int rounds = 0;
  int launches = 0;  ///< of the whole mixture in one round
  int buffer_sets = 0;
};

struct MoeTimeOptions {
  TimeOptions how;                ///< with the lengths that the ids give the experts that are here
  std::vector<std::int32_t> ids;  ///< experts of all tokens, tokens x top_k
  bool steps = false;
  std::optional<MixturePlan> beside;  ///< of the same mixture, launched in turns with the other
};

/// Times launches of `plan`, whose ids are int32, on the current CUDA device, on random operands.
/// Refuses where a row is not right.
Result<MoeTimes> time_moe(const MixturePlan& plan, const MoeTimeOptions& options);

}  // namespace warpwright::bench
