// The main loop by mma.sync: a ring of stages filled by cp.async, and fragments that ldmatrix loads
// one step of K ahead into the other of two sets of registers. One barrier a block of K.
#pragma once

#include "warpwright/isa/copy_async.h"
#include "warpwright/isa/mma.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/registers/config.h"
#include "warpwright/pipeline/copy_async_pipeline.h"

namespace warpwright::kernel {

/// An operand as a CTA sees it: from the first row of its tile on, K-major. Rows and pitch are
/// multiples of 16 bytes in memory.
struct RegisterOperand {
  const std::uint8_t* base = nullptr;
  std::int64_t pitch = 0;  ///< bytes from row to row
  int rows = 0;            ///< that there are; the others read as 0
  int k_bytes = 0;         ///< of a row; what follows reads as 0
};

/// One thread's part of the copies of an operand: `Rows` rows of `RowBytes` bytes a stage, 16 bytes
/// at a time, in turns of as many rows as `Threads` threads copy at once.
template <int Rows, int RowBytes, int Threads, atom::SmemSwizzle Swizzle>
class StageCopies {
  static constexpr int chunks = RowBytes / 16;
  static constexpr int rows_a_turn = Threads / chunks;

 public:
  static constexpr int turns = Rows / rows_a_turn;

  WW_DEVICE StageCopies(const RegisterOperand& from, int thread)
      : from_(from), row_(thread / chunks), at_(thread % chunks * 16) {
    to_ = atom::apply_swizzle(Swizzle, static_cast<std::uint32_t>(row_ * RowBytes + at_));
  }

  /// Starts the copy of turn `turn` of the block whose K begins at byte `k`.
  WW_DEVICE void copy(isa::SharedAddress tile, std::int64_t k, int turn) const {
    const int row = row_ + turn * rows_a_turn;
    const std::int64_t left = from_.k_bytes - k - at_;
    const int bytes = row >= from_.rows || left <= 0 ? 0 : left < 16 ? static_cast<int>(left) : 16;
    const std::int64_t offset = bytes == 0 ? 0 : row * from_.pitch + k + at_;
    isa::copy_async<16>(tile + to_ + static_cast<std::uint32_t>(turn * rows_a_turn * RowBytes),
                        from_.base + offset, bytes);
  }

 private:
  RegisterOperand from_;
  int row_;
  int at_;
  std::uint32_t to_;
};

/// The loop of the configuration `Tag::config`.
template <class Tag>
class RegisterMainloop {
  static constexpr RegisterConfig config = Tag::config;
  static constexpr atom::Mma mma = config.mma;
  static constexpr int kRowBytes = row_bytes(config);
  static constexpr int kSteps = k_steps(config);
  static constexpr int kMTiles = m_tiles(config);
  static constexpr int kNTiles = n_tiles(config);
  static constexpr int kThreads = threads(config);
  static constexpr std::uint32_t kTileA = static_cast<std::uint32_t>(config.tile_m * kRowBytes);
  using Pipeline = pipeline::CopyAsyncPipeline<config.stages>;
  using CopiesA = StageCopies<config.tile_m, kRowBytes, kThreads, swizzle(config)>;
  using CopiesB = StageCopies<config.tile_n, kRowBytes, kThreads, swizzle(config)>;
  static_assert(kSteps % 2 == 0, "the two sets of fragments take turns");

 public:
  using Sum = isa::MmaSum<mma>;
  /// Of a warp: its MMAs along M and N, and the registers of each.
  using Sums = Sum[kMTiles][kNTiles][atom::mma_registers_c(mma)];

  /// The ring begins at `ring`, a multiple of 1024 bytes; the thread is 0 to threads(config) - 1.
  WW_DEVICE RegisterMainloop(isa::SharedAddress ring, const RegisterOperand& a,
                             const RegisterOperand& b, int thread)
      : ring_(ring), a_(a, thread), b_(b, thread) {
    const int lane = thread % 32;
    const int warp = thread / 32;
    // Lanes of one ldmatrix: A's 16 rows, both halves of 32 bytes; B's 8 rows, both halves, and the
    // next 8. The registers are then those of the MMA.
    const int row_a = warp / config.warps_n * (config.tile_m / config.warps_m) + lane % 16;
    const int row_b =
        warp % config.warps_n * (config.tile_n / config.warps_n) + lane % 8 + lane / 16 * 8;
    place_a_ = place(row_a);
    place_b_ = place(row_b) + kTileA;
    half_a_ = half(row_a, lane / 16);
    half_b_ = half(row_b, lane / 8 % 2);
  }

  /// sums += A * B^T over `blocks` blocks of K, all threads of the CTA together. The stages are
  /// free afterwards.
  WW_DEVICE void run(int blocks, Sums& sums) {
    WW_UNROLL
    for (int block = 0; block < Pipeline::filled_ahead; ++block) {
      if (block < blocks) {
        WW_UNROLL
        for (int turn = 0; turn < CopiesA::turns + CopiesB::turns; ++turn) {
          copy(block, block, turn);
        }
      }
      Pipeline::commit();
    }
    Pipeline::advance(kThreads);
    int reading = 0;
    int filling = Pipeline::filled_ahead;
    if (blocks > 0) load(0, 0, 0);
    WW_NO_UNROLL for (int block = 0; block < blocks; ++block) {
      WW_UNROLL
      for (int step = 0; step < kSteps; ++step) {
        const bool last = step == kSteps - 1;
        if (last) {
          Pipeline::advance(kThreads);
          reading = Pipeline::next(reading);
        }
        // The step after this one, while this one multiplies.
        if (!last || block + 1 < blocks) load(reading, (step + 1) % kSteps, (step + 1) % 2);
        if (!last) {
          if (block + Pipeline::filled_ahead < blocks) {
            WW_UNROLL
            for (int turn = step; turn < CopiesA::turns + CopiesB::turns; turn += kSteps - 1) {
              copy(filling, block + Pipeline::filled_ahead, turn);
            }
          }
          if (step == kSteps - 2) {
            Pipeline::commit();
            filling = Pipeline::next(filling);
          }
        }
        multiply(sums, step % 2);
      }
    }
  }

 private:
  WW_DEVICE static std::uint32_t place(int row) {
    return static_cast<std::uint32_t>(row * kRowBytes);
  }
  // Which 16 bytes of a row's first 32 are meant, as the swizzle turns them: later steps differ
  // from it in the bits above.
  WW_DEVICE static std::uint32_t half(int row, int chunk) {
    const std::uint32_t at = place(row);
    return atom::apply_swizzle(swizzle(config), at + static_cast<std::uint32_t>(chunk * 16)) - at;
  }
  WW_DEVICE isa::SharedAddress stage(int i) const {
    return ring_ + static_cast<std::uint32_t>(i * stage_bytes(config));
  }

  WW_DEVICE void copy(int to, int block, int turn) const {
    const std::int64_t k = static_cast<std::int64_t>(block) * kRowBytes;
    if (turn < CopiesA::turns) {
      a_.copy(stage(to), k, turn);
    } else {
      b_.copy(stage(to) + kTileA, k, turn - CopiesA::turns);
    }
  }

  // Fragments of step `step` of a stage into set `set`.
  WW_DEVICE void load(int from, int step, int set) {
    const std::uint32_t k = static_cast<std::uint32_t>(step * 32);
    WW_UNROLL
    for (int m = 0; m < kMTiles; ++m) {
      isa::load_matrix<4>(stage(from) + place_a_ + place(16 * m) + (half_a_ ^ k),
                          fragments_a_[set][m]);
    }
    WW_UNROLL
    for (int n = 0; n < kNTiles; n += 2) {
      std::uint32_t pair[4];
      isa::load_matrix<4>(stage(from) + place_b_ + place(8 * n) + (half_b_ ^ k), pair);
      fragments_b_[set][n][0] = pair[0];
      fragments_b_[set][n][1] = pair[1];
      fragments_b_[set][n + 1][0] = pair[2];
      fragments_b_[set][n + 1][1] = pair[3];
    }
  }

  WW_DEVICE void multiply(Sums& sums, int set) {
    WW_UNROLL
    for (int m = 0; m < kMTiles; ++m) {
      WW_UNROLL
      for (int n = 0; n < kNTiles; ++n) {
        isa::mma_sync<mma>(sums[m][n], fragments_a_[set][m], fragments_b_[set][n]);
      }
    }
  }

  isa::SharedAddress ring_;
  CopiesA a_;
  CopiesB b_;
  std::uint32_t place_a_ = 0;
  std::uint32_t place_b_ = 0;
  std::uint32_t half_a_ = 0;
  std::uint32_t half_b_ = 0;
  std::uint32_t fragments_a_[2][kMTiles][4];
  std::uint32_t fragments_b_[2][kNTiles][2];
};

}  // namespace warpwright::kernel
