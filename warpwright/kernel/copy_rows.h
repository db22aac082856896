// The kernel that copies A or B, or both, to lines that the copy engine can read, before the kernel
// that multiplies: where lines begin at no multiples of 16 bytes.
#pragma once

#include <cstdint>

#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"

namespace warpwright::kernel {

/// Matrices of lines of neighbouring bytes, and where they go. Lines of the copy lie one behind the
/// other, also from matrix to matrix.
struct CopiedRows {
  const unsigned char* from = nullptr;
  unsigned char* to = nullptr;  ///< a multiple of 128 bytes
  std::int64_t line_bytes = 0;
  std::int64_t lines = 0;     ///< of a matrix
  std::int64_t matrices = 0;  ///< 0: there is nothing to copy
  std::int64_t from_pitch = 0;
  std::int64_t from_matrix = 0;  ///< bytes from matrix to matrix
  std::int64_t to_pitch = 0;     ///< a multiple of 128 bytes, at least line_bytes
};

struct CopyRowsParams {
  CopiedRows copied[2];
};

struct CopyRowsKernel {
  using Params = CopyRowsParams;
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr int shared_bytes = 0;
  /// What a warp copies at a time: so many words a lane are on their way at once.
  static constexpr int words = 8;
  static constexpr int piece_bytes = 4 * 32 * words;

  /// Pieces of all lines.
  static constexpr std::int64_t pieces(const CopiedRows& c) {
    return c.matrices * c.lines * ((c.line_bytes + piece_bytes - 1) / piece_bytes);
  }

  /// The whole kernel, for one thread of `threads`.
  WW_DEVICE static void run(const Params& p) {
    isa::set_role("copies rows");
    // The kernel that multiplies may set up meanwhile; it waits for the end of this one.
    isa::launch_dependents();
    isa::wait_for_prerequisites();
    for (const CopiedRows& c : p.copied) {
      const std::int64_t all = pieces(c);
      for (std::int64_t i = std::int64_t{isa::cta_index()} * warps + isa::warp_index(); i < all;
           i += std::int64_t{isa::cta_count()} * warps) {
        copy(c, i);
      }
    }
  }

 private:
  /// One warp: a piece of a line. The last one ends with the word that holds the line's last byte,
  /// behind which the copy has room.
  WW_DEVICE static void copy(const CopiedRows& c, std::int64_t index) {
    const std::int64_t a_line = (c.line_bytes + piece_bytes - 1) / piece_bytes;
    const std::int64_t line = index / a_line;
    const std::int64_t at = index % a_line * piece_bytes;
    const std::int64_t matrix = line / c.lines;
    const unsigned char* const from =
        c.from + matrix * c.from_matrix + line % c.lines * c.from_pitch + at;
    const unsigned char* const end =
        c.from + (c.matrices - 1) * c.from_matrix + (c.lines - 1) * c.from_pitch + c.line_bytes;
    const std::int64_t left = (c.line_bytes - at + 3) / 4;  // words
    const isa::GlobalView<isa::Words<1>> to = isa::global_words<1>(c.to + line * c.to_pitch + at);
    const int lane = isa::lane_index();
    isa::Words<1> moved[words];
    WW_UNROLL
    for (int i = 0; i < words; ++i) {
      const int word = 32 * i + lane;
      if (word < left) moved[i] = word_at(from + 4 * word, c.from, end);
    }
    WW_UNROLL
    for (int i = 0; i < words; ++i) {
      const int word = 32 * i + lane;
      if (word < left) to.store(word, moved[i]);
    }
  }

  /// Four bytes from anywhere: of the two words that hold them, or one by one where these reach
  /// beyond what may be read, which is [begin, end). What lies behind the end comes as 0.
  WW_DEVICE static isa::Words<1> word_at(const unsigned char* from, const unsigned char* begin,
                                         const unsigned char* end) {
    const int past = isa::bytes_past<4>(from);
    const unsigned char* const first = from - past;
    if (first >= begin && first + (past == 0 ? 4 : 8) <= end) {
      const auto source = isa::global_words<1>(const_cast<unsigned char*>(first));
      const std::uint32_t low = source.load(0).word[0];
      if (past == 0) return {{low}};
      const std::uint32_t high = source.load(1).word[0];
      return {{low >> (8 * past) | high << (32 - 8 * past)}};
    }
    std::uint32_t word = 0;
    for (int i = 0; i < 4; ++i) {
      if (from + i >= end) break;
      const std::uint32_t byte = isa::GlobalView<const unsigned char>{from}.load(i);
      word |= byte << (8 * i);
    }
    return {{word}};
  }
};

}  // namespace warpwright::kernel
