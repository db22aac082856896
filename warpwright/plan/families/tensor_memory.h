// What a kernel of sm_100 keeps where in tensor memory: values, for `explain` and for pictures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/atom/umma_atom.h"

namespace warpwright {

/// Columns that hold one thing, in all lanes.
struct TmemPart {
  enum class Kind : std::uint8_t { accumulator, scales_a, scales_b };
  Kind kind = Kind::accumulator;
  int index = 0;  ///< of several accumulators, or of several buffers of scales
  int first = 0;  ///< column
  int columns = 0;
  std::string what;  ///< in words
};

/// The scales that a k_block takes: K from `first_k` on, the ids of its instruction, the columns
/// from the first of A's and of B's scales.
struct TmemStep {
  int first_k = 0, k = 0;
  int id = 0;
  int column_a = 0, column_b = 0;
};

struct TmemMap {
  atom::UmmaAtom mma;
  int allocated = 0;  ///< columns
  /// Columns that accumulator 1 has in common with accumulator 0; the epilogue empties them first.
  int shared_columns = 0;
  bool has_ones_a = false, has_ones_b = false;  ///< those scales are all 1 and copied once
  std::vector<TmemPart> parts;
  std::vector<TmemStep> steps;  ///< of the stages that MMAs are issued on together; none: no scales
  int stages_together = 1;
};

/// For a kernel by its name; nothing where it is none of sm_100.
std::optional<TmemMap> tensor_memory_of(std::string_view kernel);

}  // namespace warpwright
