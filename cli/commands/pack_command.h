#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "cli/files/packed_file.h"

namespace warpwright::cli {

/// What `pack` takes, as it was typed; empty texts were not given.
struct PackCommandOptions {
  std::string in;
  std::string out;
  std::string from;
  std::string to;      ///< what floats become: int4, or a format with scales of blocks
  std::string recipe;  ///< of the latter
  std::string as;      ///< "fp8": another form of the same weights
  std::string tokens;  ///< what packed mxf4 and nvf4 weights are multiplied by, on Hopper
  std::string encoding;
  std::string scales;
  std::optional<int> group;
  bool zero_points = false;
  std::optional<int> jobs;
  bool json = false;
};

/// `warpwright pack IN OUT`: reads weights, quantises them where they are floats, and writes one
/// packed tensor (nvf4 with its factors NAME_alpha beside it), or, of formats with scales of blocks
/// that are for no tokens, codes NAME, scales in tiles NAME_scale and factors NAME_alpha; or fp8.
/// Returns 0, or 2 with one sentence on `err`.
int pack_command(const PackCommandOptions& options, std::ostream& out, std::ostream& err);

/// The packed tensor that `pack` would write (of `options` all but `out`), or one that is packed
/// already; `of_floats`: of weights of a format in a checkpoint, else of int4. Throws InputError.
PackedTensor load_packed(const PackCommandOptions& options, bool of_floats);

/// `warpwright explain packed FILE`: what a packed tensor holds, and a tile of it byte by byte.
struct ExplainPackedOptions {
  std::string file;
  std::vector<std::int64_t> tile = {0, 0, 0};  ///< expert, row tile, K tile
  int threads = 2;
  std::string against;  ///< the weights in floats that it was made of
  bool json = false;
};
int explain_packed_command(const ExplainPackedOptions& options, std::ostream& out,
                           std::ostream& err);

}  // namespace warpwright::cli
