// The kernel that copies A or B, or both, to lines that TMA can read, before the kernel
// that multiplies: where lines begin at no multiples of 16 bytes.
#pragma once

#include <cstdint>

#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/kernel/quotient.h"

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
  using Chunk = isa::Words<4>;
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr int shared_bytes = 0;
  static constexpr int ctas_an_sm = 4;
  static constexpr int chunk_bytes = sizeof(Chunk);
  /// Chunks of a lane that are on their way at once.
  static constexpr int at_once = 4;

  /// Chunks of all lines. The last one of a line may end behind it, where the copy has room.
  static constexpr std::int64_t chunks(const CopiedRows& c) {
    return c.matrices * c.lines * ((c.line_bytes + chunk_bytes - 1) / chunk_bytes);
  }

  /// The whole kernel, for one thread of `threads`.
  WW_DEVICE static void run(const Params& p) {
    isa::set_role("copies rows");
    // The kernel that multiplies may set up meanwhile; it waits for the end of this one.
    isa::launch_dependents();
    isa::wait_for_prerequisites();
    const int everyone = isa::cta_count() * threads;
    const int me = isa::cta_index() * threads + isa::thread_index();
    for (const CopiedRows& c : p.copied) {
      const std::int64_t all = chunks(c);
      // What a warp has on its way lies next to each other, unless few chunks are to go round.
      const bool many = all >= std::int64_t{at_once} * everyone;
      const int first = many ? me / 32 * 32 * at_once + isa::lane_index() : me;
      const int step = many ? 32 : everyone;
      for (std::int64_t i = first; i < all; i += std::int64_t{at_once} * everyone)
        copy(c, i, step, all);
    }
  }

 private:
  /// One thread: chunks from `first` on, `step` apart.
  WW_DEVICE static void copy(const CopiedRows& c, std::int64_t first, int step, std::int64_t all) {
    const unsigned char* const end =
        c.from + (c.matrices - 1) * c.from_matrix + (c.lines - 1) * c.from_pitch + c.line_bytes;
    const std::int64_t of_a_line = (c.line_bytes + chunk_bytes - 1) / chunk_bytes;
    Chunk moved[at_once];
    std::int64_t to[at_once];
    WW_UNROLL
    for (int i = 0; i < at_once; ++i) {
      const std::int64_t chunk = first + std::int64_t{step} * i;
      if (chunk >= all) continue;
      const std::int64_t line = quotient(chunk, of_a_line);
      const std::int64_t matrix = quotient(line, c.lines);
      const std::int64_t at = (chunk - line * of_a_line) * chunk_bytes;
      to[i] = line * c.to_pitch + at;
      moved[i] =
          chunk_at(c.from + matrix * c.from_matrix + (line - matrix * c.lines) * c.from_pitch + at,
                   c.from, end);
    }
    WW_UNROLL
    for (int i = 0; i < at_once; ++i) {
      if (first + std::int64_t{step} * i < all)
        isa::global_words<4>(c.to + to[i]).store(0, moved[i]);
    }
  }

  /// 16 bytes from anywhere: of the two aligned pieces that hold them, or one by one where these
  /// reach beyond what may be read, which is [begin, end). What lies behind the end comes as 0.
  WW_DEVICE static Chunk chunk_at(const unsigned char* from, const unsigned char* begin,
                                  const unsigned char* end) {
    const int past = isa::bytes_past<chunk_bytes>(from);
    const unsigned char* const first = from - past;
    if (first < begin || first + (past == 0 ? 1 : 2) * chunk_bytes > end) {
      return by_bytes(from, end);
    }
    const auto source = isa::global_words<4>(const_cast<unsigned char*>(first));
    const Chunk low = source.load(0);
    if (past == 0) return low;
    const Chunk high = source.load(1);
    // By two words, by one word, and by bytes: the places are other ones in every lane.
    std::uint32_t words[8];
    WW_UNROLL
    for (int i = 0; i < 4; ++i) {
      words[i] = low.word[i];
      words[4 + i] = high.word[i];
    }
    WW_UNROLL
    for (int i = 0; i < 6; ++i) words[i] = (past & 8) != 0 ? words[i + 2] : words[i];
    WW_UNROLL
    for (int i = 0; i < 5; ++i) words[i] = (past & 4) != 0 ? words[i + 1] : words[i];
    Chunk chunk;
    WW_UNROLL
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t both = std::uint64_t{words[i + 1]} << 32 | words[i];
      chunk.word[i] = static_cast<std::uint32_t>(both >> (8 * (past % 4)));
    }
    return chunk;
  }

  WW_DEVICE static Chunk by_bytes(const unsigned char* from, const unsigned char* end) {
    const isa::GlobalView<const unsigned char> source{from};
    Chunk chunk;
    WW_UNROLL
    for (int i = 0; i < 4; ++i) {
      chunk.word[i] = 0;
      for (int j = 0; j < 4 && from + 4 * i + j < end; ++j) {
        chunk.word[i] |= std::uint32_t{source.load(4 * i + j)} << (8 * j);
      }
    }
    return chunk;
  }
};

}  // namespace warpwright::kernel
