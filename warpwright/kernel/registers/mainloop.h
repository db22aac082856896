// The main loop by mma.sync: a ring of stages filled by cp.async, and fragments that ldmatrix loads
// one step of K ahead into the other of two sets of registers. One barrier a block of K.
#pragma once

#include <type_traits>

#include "warpwright/isa/copy_async.h"
#include "warpwright/isa/memory.h"
#include "warpwright/kernel/registers/config.h"
#include "warpwright/kernel/registers/fragments.h"
#include "warpwright/kernel/registers/params.h"
#include "warpwright/pipeline/copy_async_pipeline.h"

namespace warpwright::kernel {

/// Where a CTA begins to read: its first row, and a byte of K.
struct OperandPlace {
  int batch = 0;
  int row = 0;
  int k = 0;
};

/// One thread's part of the copies of an operand: `Rows` rows of `RowBytes` bytes a stage, 16 bytes
/// at a time, in turns of as many rows as `Threads` threads copy at once. Those bytes come in one
/// piece, or, of rows that begin `Anywhere`, in the pieces that their alignment leaves. Little is
/// kept in registers, of which the sums leave few.
template <int Rows, int RowBytes, int Threads, class Element, bool Anywhere>
class StageCopies {
  static constexpr int chunks = RowBytes / 16;
  static constexpr int rows_a_turn = Threads / chunks;

 public:
  static constexpr int turns = Rows / rows_a_turn;

  /// Keeps a reference to `of`.
  WW_DEVICE StageCopies(const RegisterOperand& of, const OperandPlace& from, int thread) : of_(of) {
    const int row = from.row + thread / chunks;
    from_ = of.base + from.batch * of.batch + row * of.pitch + from.k + thread % chunks * 16;
    WW_UNROLL
    for (int turn = 0; turn < turns; ++turn) {
      if (row + turn * rows_a_turn < of.rows) there_ |= 1U << turn;
    }
  }

  /// Starts the copy of turn `turn` of a block, one after the other, to `to`, where the thread's
  /// bytes of the stage begin. `left` bytes are left of its rows.
  WW_DEVICE void copy(isa::SharedAddress to, int left, int turn) {
    const int inside = left < 0 ? 0 : left < 16 ? left : 16;
    const int bytes = (there_ >> turn & 1) != 0 ? inside : 0;
    const std::uint8_t* const from = bytes == 0 ? of_.base : from_;
    from_ += of_.step;
    to += static_cast<std::uint32_t>(turn * rows_a_turn * RowBytes);
    if (!Anywhere || of_.piece == 16) {
      isa::copy_async<16>(to, from, bytes);
    } else if (of_.piece == 8) {
      copy_pieces<8>(to, from, bytes);
    } else if (of_.piece == 4) {
      copy_pieces<4>(to, from, bytes);
    } else {
      copy_elements(to, from, bytes);
    }
  }

  /// Goes on to the next block.
  WW_DEVICE void advance() {
    from_ += of_.next;
    there_ = isa::forgotten(there_);
  }

 private:
  template <int Piece>
  WW_DEVICE static void copy_pieces(isa::SharedAddress to, const std::uint8_t* from, int bytes) {
    WW_UNROLL
    for (int i = 0; i < 16; i += Piece) {
      const int here = bytes <= i ? 0 : bytes - i < Piece ? bytes - i : Piece;
      isa::copy_async<Piece>(to + static_cast<std::uint32_t>(i), from + (here == 0 ? 0 : i), here);
    }
  }

  /// cp.async copies 4 bytes at least: smaller elements go through registers.
  WW_DEVICE static void copy_elements(isa::SharedAddress to, const std::uint8_t* from, int bytes) {
    constexpr int size = sizeof(Element);
    const isa::GlobalView<const Element> elements{
        static_cast<const Element*>(static_cast<const void*>(from))};
    WW_NO_UNROLL for (int first = 0; first < 16; first += 4) {
      std::uint32_t word = 0;
      WW_UNROLL
      for (int i = 0; i < 4; i += size) {
        const std::uint32_t element =
            first + i < bytes ? elements.load((first + i) / size) : Element{};
        word |= element << (i * 8);
      }
      isa::SharedView<std::uint32_t>{to}.store(first / 4, word);
    }
  }

  const RegisterOperand& of_;
  const std::uint8_t* from_ = nullptr;
  std::uint32_t there_ = 0;  ///< a bit for each turn whose row there is
};

/// The loop of the configuration `Tag::config`.
template <class Tag>
class RegisterMainloop {
  static constexpr RegisterConfig config = Tag::config;
  static constexpr atom::Mma mma = config.mma;
  static constexpr int kRowBytes = row_bytes(config);
  static constexpr int kSteps = k_steps(config);
  static constexpr int kThreads = threads(config);
  static constexpr std::uint32_t kTileA = static_cast<std::uint32_t>(config.tile_m * kRowBytes);
  using Pipeline = pipeline::CopyAsyncPipeline<config.stages>;
  using Element = std::conditional_t<numeric::bits(mma.a) == 8, std::uint8_t, std::uint16_t>;
  template <int Rows>
  using Copies = StageCopies<Rows, kRowBytes, kThreads, Element, config.any_alignment>;
  using CopiesA = Copies<config.tile_m>;
  using CopiesB = Copies<config.tile_n>;
  static constexpr int kTurns = CopiesA::turns + CopiesB::turns;
  static_assert(kSteps % 2 == 0, "the two sets of fragments take turns");

 public:
  using Sum = isa::MmaSum<mma>;
  using Sums = typename RegisterFragments<Tag>::Sums;

  /// Keeps references to the operands, of one length of K, which are read from these places on.
  /// The ring begins at `ring`, a multiple of 1024 bytes; the thread is 0 to threads(config) - 1.
  WW_DEVICE RegisterMainloop(isa::SharedAddress ring, const RegisterOperand& a,
                             const OperandPlace& from_a, const RegisterOperand& b,
                             const OperandPlace& from_b, int thread)
      : ring_(ring), a_(a, from_a, thread), b_(b, from_b, thread), fragments_(thread) {
    const int first = thread % (kRowBytes / 16) * 16;  // the thread's bytes of a row
    left_ = a.k_bytes - from_a.k - first;
    copies_to_ = atom::apply_swizzle(
        swizzle(config), static_cast<std::uint32_t>(thread / (kRowBytes / 16) * kRowBytes + first));
  }

  /// sums += A * B^T over `blocks` blocks of K, all threads of the CTA together. The stages are
  /// free afterwards.
  WW_DEVICE void run(int blocks, Sums& sums) {
    WW_NO_UNROLL for (int block = 0; block < Pipeline::filled_ahead; ++block) {
      if (block < blocks) {
        WW_UNROLL
        for (int turn = 0; turn < kTurns; ++turn) copy(block, turn);
      }
      commit();
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
            for (int turn = kTurns * step / (kSteps - 1); turn < kTurns * (step + 1) / (kSteps - 1);
                 ++turn) {
              copy(filling, turn);
            }
          }
          if (step == kSteps - 2) {
            commit();
            filling = Pipeline::next(filling);
          }
        }
        fragments_.multiply(sums, step % 2);
      }
    }
  }

 private:
  WW_DEVICE isa::SharedAddress stage(int i) const {
    return ring_ + static_cast<std::uint32_t>(i * stage_bytes(config));
  }

  WW_DEVICE void copy(int to, int turn) {
    const isa::SharedAddress at = stage(to) + copies_to_;
    if (turn < CopiesA::turns) {
      a_.copy(at, left_, turn);
    } else {
      b_.copy(at + kTileA, left_, turn - CopiesA::turns);
    }
  }
  // Behind the copies of a block.
  WW_DEVICE void commit([[maybe_unused]] isa::Site site = isa::Site::here()) {
    Pipeline::commit(site);
    a_.advance();
    b_.advance();
    left_ -= kRowBytes;
  }

  WW_DEVICE void load(int from, int step, int set) { fragments_.load(stage(from), step, set); }

  isa::SharedAddress ring_;
  CopiesA a_;
  CopiesB b_;
  int left_ = 0;                 // bytes of rows, for this thread, from the next block to copy on
  std::uint32_t copies_to_ = 0;  // its place in a stage
  RegisterFragments<Tag> fragments_;
};

}  // namespace warpwright::kernel
