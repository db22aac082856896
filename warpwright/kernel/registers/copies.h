// One thread's part of bringing an operand into the stages of a register kernel: by cp.async, or by
// plain loads whose values wait in registers.
#pragma once

#include <type_traits>

#include "warpwright/isa/copy_async.h"
#include "warpwright/isa/memory.h"
#include "warpwright/kernel/registers/params.h"
#include "warpwright/kernel/registers/places.h"

namespace warpwright::kernel {

/// Where a CTA begins to read: its first row, and a byte of K.
struct OperandPlace {
  int batch = 0;
  int row = 0;
  int k = 0;
};

/// The 16 bytes of a thread that come next: `bytes` of them are there, the others are 0.
struct NextBytes {
  const std::uint8_t* from;
  int bytes;
};

/// A thread's walk over an operand: `Rows` rows of `RowBytes` bytes a stage, 16 bytes at a time, in
/// turns of as many rows as `Threads` threads copy at once. Little is kept in registers, of which
/// the sums leave few.
template <int Rows, int RowBytes, int Threads>
class OperandWalk {
  static constexpr layout::Layout kPlaces = copied_places(Rows, RowBytes, Threads);
  static constexpr layout::Layout kRows = layout::component(layout::mode(kPlaces, 0), 0);
  static constexpr layout::Layout kBytes = layout::component(layout::mode(kPlaces, 0), 1);
  static constexpr layout::Layout kTurns = layout::component(layout::mode(kPlaces, 1), 0);

 public:
  static constexpr int turns = static_cast<int>(layout::size(kTurns));
  /// Bytes of a stage from turn to turn.
  static constexpr int turn_bytes = static_cast<int>(kTurns(1)) * RowBytes;

  /// Where a thread's bytes of the first turn begin: the row, and the byte of the row.
  WW_DEVICE static int row_of(int thread) { return layout::offset_of<kRows>(thread); }
  WW_DEVICE static int byte_of(int thread) { return layout::offset_of<kBytes>(thread); }

  /// Keeps a reference to `of`.
  WW_DEVICE OperandWalk(const RegisterOperand& of, const OperandPlace& from, int thread) : of_(of) {
    const int row = from.row + row_of(thread);
    from_ = of.base + from.batch * of.batch + row * of.pitch + from.k + byte_of(thread);
    WW_UNROLL
    for (int turn = 0; turn < turns; ++turn) {
      if (row + layout::offset_of<kTurns>(turn) < of.rows) there_ |= 1U << turn;
    }
  }

  /// The bytes of turn `turn` of a block, one after the other. `left` bytes are left of its rows.
  WW_DEVICE NextBytes next(int left, int turn) {
    const int inside = left < 0 ? 0 : left < 16 ? left : 16;
    const int bytes = (there_ >> turn & 1) != 0 ? inside : 0;
    const std::uint8_t* const from = bytes == 0 ? of_.base : from_;
    from_ += of_.step;
    return {from, bytes};
  }
  /// Goes on to the next block.
  WW_DEVICE void advance() {
    from_ += of_.next;
    there_ = isa::forgotten(there_);
  }
  /// RegisterOperand::piece.
  WW_DEVICE int piece() const { return of_.piece; }

 private:
  const RegisterOperand& of_;
  const std::uint8_t* from_ = nullptr;
  std::uint32_t there_ = 0;  ///< a bit for each turn whose row there is
};

/// The elements in the four bytes from `first` on of a thread's 16, one by one.
template <class Element>
WW_DEVICE std::uint32_t word_of(const NextBytes& next, int first) {
  constexpr int size = sizeof(Element);
  const isa::GlobalView<const Element> elements{
      static_cast<const Element*>(static_cast<const void*>(next.from))};
  std::uint32_t word = 0;
  WW_UNROLL
  for (int i = 0; i < 4; i += size) {
    const std::uint32_t element =
        first + i < next.bytes ? elements.load((first + i) / size) : Element{};
    word |= element << (i * 8);
  }
  return word;
}

/// By cp.async, in one piece, or, of rows that begin `Anywhere`, in the pieces that their alignment
/// leaves.
template <class Walk, class Element, bool Anywhere>
class AsyncCopies : public Walk {
 public:
  using Walk::Walk;

  /// Starts the copy of turn `turn` of a block to `to`, where the thread's bytes of the stage
  /// begin.
  WW_DEVICE void copy(isa::SharedAddress to, int left, int turn) {
    const NextBytes next = this->next(left, turn);
    to += static_cast<std::uint32_t>(turn * Walk::turn_bytes);
    if (!Anywhere || this->piece() == 16) {
      isa::copy_async<16>(to, next.from, next.bytes);
    } else if (this->piece() == 8) {
      copy_pieces<8>(to, next);
    } else if (sizeof(Element) == 4 || this->piece() == 4) {
      copy_pieces<4>(to, next);
    } else {
      // cp.async copies 4 bytes at least: smaller elements go through registers.
      WW_NO_UNROLL for (int first = 0; first < 16; first += 4) {
        isa::SharedView<std::uint32_t>{to}.store(first / 4, word_of<Element>(next, first));
      }
    }
  }

 private:
  template <int Piece>
  WW_DEVICE static void copy_pieces(isa::SharedAddress to, const NextBytes& next) {
    WW_UNROLL
    for (int i = 0; i < 16; i += Piece) {
      const int here = next.bytes <= i ? 0 : next.bytes - i < Piece ? next.bytes - i : Piece;
      isa::copy_async<Piece>(to + static_cast<std::uint32_t>(i), next.from + (here == 0 ? 0 : i),
                             here);
    }
  }
};

/// By plain loads, which are a block ahead of the stores: meanwhile the values wait here.
template <class Walk, class Element, bool Anywhere>
class HeldCopies : public Walk {
 public:
  using Walk::Walk;

  /// Loads what turn `turn` of a block brings; `copy` stores it.
  WW_DEVICE void load(int left, int turn) {
    const NextBytes next = this->next(left, turn);
    if (next.bytes == 16 && (!Anywhere || this->piece() == 16)) {
      load_pieces<4>(next, held_[turn]);
    } else if (Anywhere && next.bytes == 16 && this->piece() == 8) {
      load_pieces<2>(next, held_[turn]);
    } else if (Anywhere && next.bytes == 16 && this->piece() == 4) {
      load_pieces<1>(next, held_[turn]);
    } else {
      WW_UNROLL
      for (int i = 0; i < 4; ++i) held_[turn].word[i] = word_of<Element>(next, 4 * i);
    }
  }

  /// Stores what waits of turn `turn` to `to`, where the thread's bytes of the stage begin, and
  /// loads that of the block after it, of whose rows `left` bytes are left.
  WW_DEVICE void copy(isa::SharedAddress to, int left, int turn) {
    isa::SharedView<isa::Words<4>>{to + static_cast<std::uint32_t>(turn * Walk::turn_bytes)}.store(
        0, held_[turn]);
    load(left, turn);
  }

 private:
  template <int N>
  WW_DEVICE static void load_pieces(const NextBytes& next, isa::Words<4>& to) {
    const isa::GlobalView<const isa::Words<N>> from{
        static_cast<const isa::Words<N>*>(static_cast<const void*>(next.from))};
    WW_UNROLL
    for (int i = 0; i < 4; i += N) {
      const isa::Words<N> piece = from.load(i / N);
      WW_UNROLL
      for (int j = 0; j < N; ++j) to.word[i + j] = piece.word[j];
    }
  }

  isa::Words<4> held_[Walk::turns] = {};
};

}  // namespace warpwright::kernel
