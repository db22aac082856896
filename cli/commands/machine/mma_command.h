// `warpwright mma`: an MMA instruction, its layouts, and which register of which lane holds what.
#pragma once

#include <CLI/CLI.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "warpwright/atom/tiled_mma.h"

namespace warpwright::cli {

struct MmaOptions {
  std::vector<std::string> words;  ///< the words of its kind, if it has any, and its shape
  std::string a_dtype, b_dtype, sums;
  std::string majors;                  ///< of m8n8k4: "tn", "nt", "nn" or "tt"
  std::string scales;                  ///< of blocks: "ue8m0" or "ue4m3", or nothing
  int block = 0;                       ///< elements that share one, or 0
  std::string target;                  ///< "sm_80", or nothing
  std::string as;                      ///< a known device, whose target it is
  std::string tiled;                   ///< "2x2", or a layout of M, N and K
  std::string permutation;             ///< a tiler of M, N and K
  std::vector<std::string> partition;  ///< an operand's letter, and a tensor
  std::string eval;                    ///< an expression with the MMA's functions
  std::string descriptor;              ///< the letter of an operand in shared memory
  std::string swizzle = "128B";        ///< of its tile
  int depth = 0;                       ///< and its K, or 0
  int slice = -1;                      ///< a thread, of tcgen05 a CTA, or -1
  bool table = false;
  bool json = false;
};

/// Adds what chooses the MMA: all but --table and --json.
void add_mma_choices(CLI::App& app, MmaOptions& options);

/// The MMA, with its copies. Throws layout::Error with one sentence that says what would be legal.
atom::TiledMma tiled_mma_of(const MmaOptions& options);

void add_mma_command(CLI::App& app, MmaOptions& options);

/// Prints the MMA, or the TiledMMA of it, as CuTe does (see docs/mma.md). Returns 0, or 2 with one
/// sentence on `err` that says what would be legal.
int mma_command(const MmaOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
