// A mixture of experts as the arguments describe it: its tensors, its plan, a run of it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/commands/gemm/run.h"
#include "cli/compute/block_scaled.h"
#include "cli/compute/check.h"
#include "cli/compute/expert_shapes.h"
#include "cli/compute/routing.h"
#include "cli/files/tensor_file.h"
#include "warpwright/model/machine.h"
#include "warpwright/run_moe.h"
#include "warpwright/simulation/moe.h"

namespace warpwright::cli {

/// What says how a mixture is run, as it was typed; empty texts were not given.
struct MoeChoiceOptions {
  bool batch_invariant = false;
  std::string by_index, quantise_in_epilogue, gate_in_epilogue, early_weights;  ///< yes or no
  std::string sort_with_gather;                                                 ///< or auto
  std::string one_launch;                                                       ///< or auto
  std::optional<int> sort_parts;
  std::string first_kernel, second_kernel;
  std::string expected_lengths;
};

/// The arguments as they were typed; empty texts were not given.
struct MoeOptions : RunOptions {
  std::string model;  ///< of expert_shapes.h; what is given beside it wins
  std::optional<std::int64_t> tokens, experts, top_k, hidden, inner, first_expert, experts_total;
  std::string routing;          ///< see parse_router
  std::optional<int> left_out;  ///< each so many-th id is -1
  std::string dtype, weights, d_dtype, scaling, block, activation, gate_up, ids;
  bool or_fp8 = false;  ///< packed weights, or fp8 of the same values
  bool bias = false;
  std::string gated, combine, x_dtype, shared_output, routed_scaling_factor;
  bool weights_on_input = false;
  GateOptions gate;
  MoeChoiceOptions choices;
  bool check = false;
  bool plan = false;             ///< print it, and run nothing
  std::optional<int> schedules;  ///< run under so many, on the model
  bool json = false;
};

/// The choices that these words are. Throws InputError.
MixtureChoices mixture_choices(const MoeChoiceOptions& options);

/// Types and scales of a mixture: bf16 or e4m3 weights, or those of 4 bits in their packed form, or
/// a format of mxf8 to nvf4, or those of tokens and weights ("mxf8,mxf4").
struct MoeTypes {
  DType x = DType::bf16;
  DType weights = DType::bf16;
  Scaling scaling = Scaling::none;
  DType tokens = DType::f32;                 ///< of block_scaled weights, what tokens become
  DType scale = DType::f32;                  ///< and the scales of both
  std::optional<PackedWeights> packed = {};  ///< of both weights
  std::int64_t block = scale_block;          ///< of blockwise
};

/// What these words are: --weights int4, mxf4 or nvf4, or none, for tokens of --dtype. Where no
/// --scaling is given it is blockwise of e4m3 weights, row_column of tokens of e4m3 that packed
/// weights are multiplied by, and none of bf16. Throws InputError.
MoeTypes moe_types(const std::string& dtype, const std::string& weights,
                   const std::string& scaling);

/// Experts of a layer and who has them; without a top_k there is no router.
struct MoeExtents {
  std::int64_t tokens = 0, hidden = 0, inner = 0, experts = 0, top_k = 0;
  bool is_gated = true;
};

/// The operands of such a mixture without memory, as they lie packed: x, ids, weights, scales.
MixtureOperands packed_mixture(const MoeExtents& extents, const MoeTypes& types);

/// How a router draws its ids: by the word of --routing, else as the model has it. Throws
/// InputError.
Routing moe_routing(const MixtureOperands& mixture, const std::string& typed,
                    const ExpertModel& model);

/// A mixture with all choices made and its plan. It has tensors once `load` ran.
class MoeJob {
 public:
  /// Throws InputError.
  MoeJob(const MoeOptions& options, const DeviceFacts& facts);
  MoeJob(const MoeJob&) = delete;
  MoeJob& operator=(const MoeJob&) = delete;

  /// Draws ids by the router and all other tensors; d is poisoned: NaN where nobody stores. Throws
  /// InputError where memory is short.
  void load(std::uint64_t seed);

  /// Tokens of each expert that is here, by the ids; once loaded.
  [[nodiscard]] std::vector<std::int64_t> lengths() const;
  /// Rows of all of them.
  [[nodiscard]] std::int64_t rows_here() const;
  /// Seconds that one run on the model takes, and a check, roughly; once loaded.
  [[nodiscard]] double model_seconds() const;
  [[nodiscard]] double check_seconds() const;

  MixtureOperands operands;  ///< in host memory, once loaded
  MixturePlan plan;

 private:
  void choose_weights(const MixtureOperands& fp8, const DeviceFacts& facts,
                      const MixtureChoices& choices);
  void load_packed(const HostTensor& wide, MatrixView& w, MatrixView& scales);
  void draw_ids(std::uint64_t seed);
  MatrixView kept(HostTensor tensor, const MatrixView& shape);
  [[nodiscard]] std::vector<std::int64_t> gate_order() const;
  void load_micro(HostTensor wide, bool gated, MatrixView& w, MatrixView& scales,
                  MatrixView& factors);
  void load_factor(MatrixView& factor, float largest);

  Routing routing_;
  std::optional<PackedFormat> fp8_of_;  // of which both weights are made as fp8, when loaded
  std::vector<std::int32_t> ids_;
  std::int64_t left_out_ = 0;
  std::deque<HostTensor> tensors_;
  std::deque<MicroCodes> codes_;
};

/// Runs a loaded mixture on the model, with all checks. Throws InputError where it refuses.
model::Report run_with_checks(const MoeJob& job, const device::ModelOptions& how,
                              std::ostream& err);

/// Carries it out through the memory of CUDA device `index`. Throws InputError or RunError.
void run_on_gpu(const MoeJob& job, int index);

/// Compares d of operands in host memory with float64, as the result of `check_gemm` has it.
/// `gates_behind`: see reference::mixture_row.
CheckResult check_moe(const MixtureOperands& operands, bool gates_behind = true);

}  // namespace warpwright::cli
