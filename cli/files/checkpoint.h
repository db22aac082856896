// Weights in .safetensors files of checkpoints: which tensors they are, in which layout.
#pragma once

#include <string>
#include <vector>

#include "cli/files/safetensors.h"
#include "warpwright/plan/product/problem.h"
#include "warpwright/weights/source.h"

namespace warpwright::cli {

/// The layout of weights in floats that lie K x N, as fused experts of some modules do.
inline constexpr std::string_view kKByN = "bf16-kn";

/// Weights that `find_weights` found.
struct FoundWeights {
  std::string name;  ///< as they were asked for, or the only ones of the file
  /// One of weights::layouts(); empty for weights in floats.
  std::string layout;
  std::vector<std::string> stems;  ///< the tensors' names up to what the layout puts behind them;
                                   ///< several are experts, in their order
  bool is_micro = false;           ///< with scales of blocks (the layout has a format)
  bool k_by_n = false;             ///< floats that lie K x N, and are transposed when loaded
};

/// The weights called `name`: a tensor's name or its stem ("model.layers.0.mlp.down_proj"); a `*`
/// or `{}` in it stands for the numbers of experts, all from 0 on. Without a name: the only ones of
/// the file. `from` is a layout, "bf16" for any floats (kKByN where they lie
/// K x N), or empty where the names and types are to
/// tell. Throws InputError.
FoundWeights find_weights(const SafetensorsFile& file, const std::string& name,
                          const std::string& from);

/// The scales that checkpoints would have beside the codes of that name; null where there are none.
const TensorFacts* scales_beside(const SafetensorsFile& file, const std::string& codes);

/// Their tensors in memory, and views of those: of floats `floats`, else `tensors`.
struct LoadedWeights {
  std::vector<HostTensor> memory;
  std::vector<MatrixView> floats;
  std::vector<weights::CheckpointTensors> tensors;
};

/// Reads them. Throws InputError.
LoadedWeights load_weights(const SafetensorsFile& file, const FoundWeights& found);

/// What a user should know of weights that were read as they are found, in a sentence; or empty:
/// rows of gates and ups that alternate, zero points that look like another version's, experts in
/// floats that may lie K x N.
std::string note_of(const SafetensorsFile& file, const FoundWeights& found,
                    const LoadedWeights& loaded);

}  // namespace warpwright::cli
