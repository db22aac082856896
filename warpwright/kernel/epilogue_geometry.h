// How a tile's sums become parts of D: which of its rows and columns have places of their own, and
// the subtiles that pass through the epilogue's buffers. The same for kernels of all families.
#pragma once

#include <concepts>
#include <cstdint>

#include "warpwright/atom/swizzle.h"
#include "warpwright/facts/declaration.h"
#include "warpwright/numeric/types.h"

namespace warpwright::kernel {

/// How D leaves the epilogue's buffers, where base and pitch are multiples of 16 bytes.
enum class Store : std::uint8_t {
  lanes,   ///< 16 bytes a lane
  tensor,  ///< tensor stores
};

/// When the scales and biases of a subtile are asked for.
enum class VectorLoads : std::uint8_t {
  by_turns,  ///< when they are needed, 32 of them after another
  ahead,     ///< while the subtile before is written
  early,     ///< so, and those of a tile's first subtile before its main loop
};

/// What the epilogue must know of a kernel. Its rows and columns are those of the accumulators.
struct EpilogueShape {
  DType result = DType::bf16;  ///< of C and D
  int tile_m = 0;              ///< of a CTA
  int tile_n = 0;
  int column_parts = 1;   ///< of a tile, which different warps store
  int warps = 0;          ///< that store
  int row_atoms = 0;      ///< groups of `warp_rows` rows that each of them stores
  int row_atom_step = 0;  ///< rows from one of its groups to the next
  bool swap_ab = false;   ///< rows are columns of D
  bool gated = false;     ///< a tile holds the same part of both halves of the caller's N
  Store store = Store::tensor;
  int buffers = 2;              ///< a warp; C comes by copies where there are two
  int most_columns = 128;       ///< of the accumulator in a buffer, where rows are columns of D
  bool shares_columns = false;  ///< a CTA may have to store some columns of its tile by itself
  bool c_by_elements = false;   ///< C never comes by copies: too few of a tile's columns are needed
  bool grouped = false;         ///< tiles end with their group
  bool quantises = false;       ///< D are codes, with a scale for each 128 columns of a row
  bool by_index = false;        ///< the scales of tokens are found by ScaleParams::index
  bool by_index_or_not = false;  ///< that where a launch has one
  bool by_columns = false;       ///< subtiles are written column by column: SubtileOrder
  VectorLoads vectors = VectorLoads::by_turns;
  bool loops = false;  ///< subtiles are written in a loop: many of them are long code
  bool tma = true;     ///< the target has one, and stmatrix (sm_90 and later)
};

/// A configuration that has an epilogue: it says what is asked above. A member that a family of
/// kernels does not have keeps its default.
template <class Config>
concept EpilogueConfig = std::convertible_to<const Config&, EpilogueShape>;

/// What of a tile's sums is complete here and to be stored: some of its columns, or nothing.
struct CompleteSums {
  bool here = false;
  int first_column = 0;  ///< a multiple of 8, like the end
  int end_column = 0;

  constexpr explicit operator bool() const { return here; }
};

constexpr int result_bytes(const EpilogueShape& c) {
  return numeric::bits(c.result) / 8;
}

/// Is there a C at all? Gates and codes have none.
constexpr bool takes_c(const EpilogueShape& c) {
  return !c.gated && result_bytes(c) > 1;
}

/// May C come by copies, a subtile ahead? Those of groups would not end with the group.
constexpr bool copies_c(const EpilogueShape& c) {
  return takes_c(c) && c.tma && c.buffers > 1 && !c.grouped && !c.c_by_elements;
}

/// Rows of an accumulator that one warp holds.
inline constexpr int warp_rows = 16;

constexpr bool gated_rows(const EpilogueShape& c) {
  return c.gated && c.swap_ab;
}
constexpr bool gated_columns(const EpilogueShape& c) {
  return c.gated && !c.swap_ab;
}
/// Gated rows whose halves alternate by `warp_rows`, so that one warp that reaches 32 rows has
/// both.
constexpr bool gated_atoms(const EpilogueShape& c) {
  return gated_rows(c) && c.row_atom_step == warp_rows && c.row_atoms == 2;
}
/// Rows and columns of a tile that have different places in D.
constexpr int result_rows(const EpilogueShape& c) {
  return gated_rows(c) ? c.tile_m / 2 : c.tile_m;
}
constexpr int result_columns(const EpilogueShape& c) {
  return gated_columns(c) ? c.tile_n / 2 : c.tile_n;
}

// --- the buffers: D's elements as they lie in memory, `inner` of a row side by side --------------
/// Bytes of D in one buffer, at most.
inline constexpr int most_subtile_bytes = 2048;
/// Columns that one warp stores.
constexpr int warp_columns(const EpilogueShape& c) {
  return result_columns(c) / c.column_parts;
}
/// Columns of the accumulator that one buffer takes.
constexpr int subtile_columns(const EpilogueShape& c) {
  const int all = warp_columns(c);
  if (!c.swap_ab) {
    int columns = (c.quantises ? 64 : 128) / result_bytes(c);  // which the others wait for
    while (all % columns != 0) columns /= 2;
    return columns;
  }
  int columns = most_subtile_bytes / (warp_rows * result_bytes(c));
  if (columns > c.most_columns) columns = c.most_columns;
  if (columns > all) columns = all;
  while (all % columns != 0) columns -= 8;
  return columns;
}
/// Extents of a buffer in D: neighbours in memory, and rows of them.
constexpr int subtile_inner(const EpilogueShape& c) {
  return c.swap_ab ? warp_rows : subtile_columns(c);
}
constexpr int subtile_outer(const EpilogueShape& c) {
  return c.swap_ab ? subtile_columns(c) : warp_rows;
}
constexpr int subtile_row_bytes(const EpilogueShape& c) {
  return subtile_inner(c) * result_bytes(c);
}
constexpr int subtile_bytes(const EpilogueShape& c) {
  return subtile_row_bytes(c) * subtile_outer(c);
}
/// Places of a subtile's vectors: a scale and a bias, four bytes each, for each half of the
/// product.
constexpr int vector_places(const EpilogueShape& c) {
  return (c.gated ? 2 : 1) * (subtile_columns(c) + warp_rows);
}
/// Bytes of one buffer, which also has room for those; a multiple of what swizzles repeat after.
constexpr int epilogue_buffer_bytes(const EpilogueShape& c) {
  const int vectors = 8 * vector_places(c);
  const int bytes = vectors > subtile_bytes(c) ? vectors : subtile_bytes(c);
  return (bytes + 1023) / 1024 * 1024;
}
/// The swizzle whose span is a row of the buffer.
constexpr atom::SmemSwizzle subtile_swizzle(const EpilogueShape& c) {
  switch (subtile_row_bytes(c)) {
    case 128:
      return atom::SmemSwizzle::b128;
    case 64:
      return atom::SmemSwizzle::b64;
    case 32:
      return atom::SmemSwizzle::b32;
    default:
      return atom::SmemSwizzle::none;
  }
}
/// Do warps wait for each other, because a block of columns that share a scale is spread over them?
constexpr bool quantises_together(const EpilogueShape& c) {
  return c.quantises && c.swap_ab;
}
/// Bytes of all buffers, and of the maxima that warps give each other, for two tiles in turn.
constexpr int epilogue_bytes(const EpilogueShape& c) {
  const int maxima = quantises_together(c) ? 2 * 4 * c.warps * c.tile_n : 0;
  return c.warps * c.buffers * epilogue_buffer_bytes(c) + maxima;
}

/// The barriers of the epilogue's loads of C, as a row of the table that `explain` prints.
constexpr pipeline::BarrierRow c_full_row(const EpilogueShape& c) {
  return {"c_full",
          c.warps * c.buffers,
          1,
          subtile_bytes(c),
          "its leader (with beta)",
          "each warp of the epilogue",
          0};
}
/// Bytes of them.
constexpr int c_barrier_bytes(const EpilogueShape& c) {
  return c.warps * c.buffers * 8;
}

/// The same of one that quantises.
constexpr const char* quantise_fault(const EpilogueShape& c) {
  if (!c.quantises) return nullptr;
  if (c.result != DType::e4m3) return "what is quantised becomes e4m3";
  if (c.store != Store::lanes) return "codes are stored by lanes";
  if (!c.swap_ab) {
    return result_columns(c) % 128 == 0 ? nullptr : "128 columns that share a scale are a tile's";
  }
  if (result_rows(c) != 128 || c.warps != 8 || (c.tile_n > 32 && subtile_columns(c) != 32)) {
    return "128 columns that share a scale are those of a swapped tile, which 8 warps hold";
  }
  return nullptr;
}

/// Why there is no such epilogue, as a sentence; null when there is.
constexpr const char* epilogue_fault(const EpilogueShape& c) {
  const DType d = c.result;
  if (d != DType::bf16 && d != DType::f16 && d != DType::f32 && d != DType::e4m3 &&
      d != DType::e5m2) {
    return "results are bf16, f16, f32, e4m3 or e5m2";
  }
  if (c.buffers < (c.store == Store::lanes ? 1 : 2) || c.warps * c.buffers > 32) {
    return "a warp has two epilogue buffers or more (one where lanes store), the CTA 32 at most";
  }
  if (c.grouped && c.store == Store::tensor) {
    return "a tensor store would go past the end of a group";
  }
  if (!c.tma && (c.store != Store::lanes || c.swap_ab)) {
    return "without TMA and stmatrix rows are stored as they are, by lanes";
  }
  if (c.shares_columns && (c.store != Store::lanes || c.gated || c.quantises)) {
    return "columns of a tile that one CTA stores by itself are stored by lanes, neither gated nor "
           "quantised";
  }
  if (c.column_parts > 1 && (c.gated || c.quantises || c.shares_columns)) {
    return "warps that store parts of a tile's columns have all sums of theirs, neither gated nor "
           "quantised";
  }
  if (gated_rows(c) && c.row_atoms % 2 != 0) return "gated rows need an even number of atoms";
  if (gated_columns(c) && c.tile_n % 32 != 0) return "gated columns need a tile_n of 32s";
  if (subtile_row_bytes(c) < 16 || subtile_columns(c) % 8 != 0) {
    return "rows of an epilogue buffer have 16 bytes or more";
  }
  return quantise_fault(c);
}

}  // namespace warpwright::kernel
