// The main loop of the register kernels: a ring of stages, and fragments that are loaded one
// k_block of K ahead into the other of two sets of registers. One barrier a k_tile of K. Who fills
// the stages (copies.h) and which MMA takes the fragments (fragments.h), the configuration says.
#pragma once

#include <type_traits>

#include "warpwright/isa/trace.h"
#include "warpwright/kernel/registers/config.h"
#include "warpwright/kernel/registers/copies.h"
#include "warpwright/kernel/registers/fragments.h"
#include "warpwright/kernel/registers/params.h"
#include "warpwright/pipeline/copy_async_pipeline.h"
#include "warpwright/pipeline/stored_pipeline.h"

namespace warpwright::kernel {

/// The loop of the configuration `Tag::config`.
template <class Tag>
class RegisterMainloop {
  static constexpr RegisterConfig config = Tag::config;
  static constexpr bool kHolds = config.feed == Feed::registers;
  static constexpr int kRowBytes = row_bytes(config);
  static constexpr int kBlocks = k_blocks(config);
  static constexpr int kThreads = threads(config);
  static constexpr std::uint32_t kTileA = static_cast<std::uint32_t>(config.tile_m * kRowBytes);
  static constexpr int kElementBits = numeric::bits(config.mma.a);
  using Pipeline = std::conditional_t<kHolds, pipeline::StoredPipeline,
                                      pipeline::CopyAsyncPipeline<config.stages>>;
  using Element =
      std::conditional_t<kElementBits == 8, std::uint8_t,
                         std::conditional_t<kElementBits == 16, std::uint16_t, std::uint32_t>>;
  template <int Rows, class Walk = OperandWalk<Rows, kRowBytes, kThreads>>
  using Copies = std::conditional_t<kHolds, HeldCopies<Walk, Element, config.any_alignment>,
                                    AsyncCopies<Walk, Element, config.any_alignment>>;
  using CopiesA = Copies<config.tile_m>;
  using CopiesB = Copies<config.tile_n>;
  static constexpr int kTurns = CopiesA::turns + CopiesB::turns;
  using Fragments = RegisterFragments<Tag>;
  static_assert(kBlocks % 2 == 0, "the two sets of fragments take turns");

 public:
  using Sum = isa::MmaSum<config.mma>;
  using Sums = typename Fragments::Sums;

  /// Keeps references to the operands, of one length of K, which are read from these places on.
  /// The ring begins at `ring`, a multiple of 1024 bytes; the thread is 0 to threads(config) - 1.
  WW_DEVICE RegisterMainloop(isa::SharedAddress ring, const RegisterOperand& a,
                             const OperandPlace& from_a, const RegisterOperand& b,
                             const OperandPlace& from_b, int thread)
      : ring_(ring), a_(a, from_a, thread), b_(b, from_b, thread), fragments_(thread) {
    const int first = CopiesA::byte_of(thread);
    left_ = a.k_bytes - from_a.k - first;
    copies_to_ = atom::apply_swizzle(
        swizzle(config), static_cast<std::uint32_t>(CopiesA::row_of(thread) * kRowBytes + first));
  }

  /// sums += A * B^T over `k_tiles` k_tiles, all threads of the CTA together. The stages are
  /// free afterwards.
  WW_DEVICE void run(int k_tiles, Sums& sums) {
    if constexpr (kHolds) {
      const int shared = k_tiles * kRowBytes;  // what follows in the rows is others' to load
      left_ = left_ < shared ? left_ : shared;
      WW_UNROLL
      for (int turn = 0; turn < CopiesA::turns; ++turn) a_.load(left_, turn);
      WW_UNROLL
      for (int turn = 0; turn < CopiesB::turns; ++turn) b_.load(left_, turn);
      next_block();
    }
    WW_NO_UNROLL for (int k_tile = 0; k_tile < Pipeline::filled_ahead; ++k_tile) {
      if (k_tile < k_tiles) {
        WW_UNROLL
        for (int turn = 0; turn < kTurns; ++turn) copy(k_tile, turn);
      }
      commit();
    }
    Pipeline::advance(kThreads);
    int reading = 0;
    int filling = Pipeline::filled_ahead;
    if (k_tiles > 0) load(0, 0);
    WW_NO_UNROLL for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      const isa::Mark mark("k_tile %", k_tile);
      WW_UNROLL
      for (int k_block = 0; k_block < kBlocks; ++k_block) {
        const bool last = k_block == kBlocks - 1;
        if (last) {
          Pipeline::advance(kThreads);
          reading = Pipeline::next(reading);
        }
        // The k_block after this one, while this one multiplies.
        if (!last || k_tile + 1 < k_tiles) load(reading, (k_block + 1) % kBlocks);
        if (!last) {
          if (k_tile + Pipeline::filled_ahead < k_tiles) {
            WW_UNROLL
            for (int turn = kTurns * k_block / (kBlocks - 1);
                 turn < kTurns * (k_block + 1) / (kBlocks - 1); ++turn) {
              copy(filling, turn);
            }
          }
          if (k_block == kBlocks - 2) {
            commit();
            filling = Pipeline::next(filling);
          }
        }
        fragments_.multiply(sums, k_block);
      }
    }
    Fragments::finish(sums);
  }

 private:
  WW_DEVICE isa::SharedAddress stage(int i) const {
    return ring_ + static_cast<std::uint32_t>(i * stage_bytes(config));
  }

  WW_DEVICE void load(int from, int k_block, isa::Site site = isa::Site::here()) {
    fragments_.load(stage(from), k_block, site);
  }
  WW_DEVICE void copy(int to, int turn) {
    const isa::SharedAddress at = stage(to) + copies_to_;
    if (turn < CopiesA::turns) {
      a_.copy(at, left_, turn);
    } else {
      b_.copy(at + kTileA, left_, turn - CopiesA::turns);
    }
  }
  // Behind the copies of a k_tile.
  WW_DEVICE void commit([[maybe_unused]] isa::Site site = isa::Site::sync()) {
    Pipeline::commit(site);
    next_block();
  }
  WW_DEVICE void next_block() {
    a_.advance();
    b_.advance();
    left_ -= kRowBytes;
  }

  isa::SharedAddress ring_;
  CopiesA a_;
  CopiesB b_;
  Fragments fragments_;
  int left_ = 0;                 // bytes of rows, for this thread, from the next to be read on
  std::uint32_t copies_to_ = 0;  // its place in a stage
};

}  // namespace warpwright::kernel
