// The epilogue of the Hopper and Blackwell kernels: D = alpha * accumulator + beta * C, through
// shared memory.
//
// Every consumer warp handles its 16 rows alone, in chunks of one 128-byte span of columns, with
// two buffers: registers -> stmatrix (or st.shared for f32) into the swizzled buffer -> one tensor
// store. C comes the other way: a tensor load into the same buffer, one chunk ahead. No warp waits
// for another. Where base or pitch of D or C is no multiple of 16 bytes the copy engine cannot be
// used; D is then stored from the buffer element by element inside the bounds, C read from global
// memory likewise.
#pragma once

#include "warpwright/atom/swizzle.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/trace.h"
#include "warpwright/isa/warp.h"
#include "warpwright/isa/wgmma.h"
#include "warpwright/kernel/gemm_config.h"
#include "warpwright/kernel/hopper_gemm_params.h"

namespace warpwright::kernel {

template <class Tag>
class HopperEpilogue {
 public:
  static constexpr auto config = Tag::config;
  static constexpr int columns = epilogue_columns(config);
  static constexpr int row_chunks = config.tile_n / columns;  // side by side
  static constexpr int chunks = row_atoms(config) * row_chunks;
  static constexpr int chunk_values = columns / 2;  // a thread's values of one chunk
  using Element = isa::StorageOf<config.result>;

  /// `buffers` and `barriers` are those of all consumer warps; warp `warp` of them takes its own.
  WW_DEVICE HopperEpilogue(isa::SharedAddress buffers, isa::SharedAddress barriers, int warp)
      : buffers_(buffers + warp * epilogue_buffers * epilogue_buffer_bytes),
        barriers_(barriers + warp * epilogue_buffers * 8) {}

  /// Initialises the barriers of the loads of C of all consumer warps. One whole warp of the CTA
  /// calls it, before the CTA barrier.
  WW_DEVICE static void initialise(isa::SharedAddress barriers) {
    constexpr int count = consumer_warps(Tag::config) * epilogue_buffers;
    static_assert(count <= 32);
    const int i = isa::lane_index();
    if (i < count) {
      isa::mbarrier_init(barriers + i * 8, 1, {"c_full", i}, "the leader of its warp");
    }
  }

  /// Before the main loop of a tile: starts the load of its first chunk of C. `row` and `column`
  /// are where the warp's 16 rows of the tile begin.
  WW_DEVICE void begin(const HopperGemmParams& p, int row, int column) {
    if (p.reads_c && p.c_by_tma && leader()) load_c(p, row, column, 0);
  }

  /// Writes the warp's 16 rows of every 64 from `row`, columns from `column`; parts outside D are
  /// dropped. `accumulator` is an array of fragments, one for each 64 rows.
  template <class Accumulators>
  WW_DEVICE void write(const HopperGemmParams& p, int row, int column, Accumulators& accumulator) {
    write_from(p, row, column, [&](int chunk, float(&value)[chunk_values]) {
      WW_UNROLL for (int i = 0; i < chunk_values; ++i) {
        value[i] = accumulator[chunk / row_chunks][chunk % row_chunks * chunk_values + i];
      }
    });
  }

  /// The same with `source(chunk, value)` to fetch a thread's accumulator values of a chunk.
  template <class Source>
  WW_DEVICE void write_from(const HopperGemmParams& p, int row, int column, const Source& source) {
    WW_UNROLL for (int chunk = 0; chunk < chunks; ++chunk) {
      const isa::Mark mark("epilogue chunk %", chunk);
      const Corner at = corner(row, column, chunk);
      if (outside(p, at)) continue;
      const int slot = next_;
      const isa::SharedAddress buffer = buffers_ + slot * epilogue_buffer_bytes;
      next_ ^= 1;
      if (p.reads_c && p.c_by_tma) {
        if (leader()) load_c(p, row, column, following(p, row, column, chunk));
        isa::mbarrier_wait<isa::Scope::cta>(barriers_ + slot * 8, parity_ >> slot & 1,
                                            {"c_full", slot});
        parity_ ^= 1 << slot;
      } else {
        // The buffer's store before last has been read; everybody may write it again.
        if (leader()) isa::bulk_wait_read<1>();
        isa::sync_warp();
      }
      float value[chunk_values];
      if (p.k > 0) source(chunk, value);
      // Without a K block nothing has written the accumulator.
      WW_UNROLL for (int i = 0; i < chunk_values; ++i) {
        value[i] = p.k > 0 ? p.alpha * value[i] : 0.0F;
      }
      if (p.reads_c) {
        if (!p.c_by_tma) fetch_elements(p, at, buffer);
        add_c(p, buffer, value);
      }
      fill(buffer, value);
      if (p.d_by_tma) {
        isa::fence_proxy_async_shared();
        isa::sync_warp();
        if (leader()) {
          isa::tensor_store(p.d, buffer, isa::Coords{at.column, at.row});
          isa::bulk_commit();
        }
      } else {
        isa::sync_warp();
        store_elements(p, at, buffer);
        // A load of C may follow into this buffer: order our accesses before it.
        isa::fence_proxy_async_shared();
        isa::sync_warp();
      }
    }
  }

  /// At the kernel's end: shared memory must outlive the stores that read it.
  WW_DEVICE void drain() const {
    if (leader()) isa::bulk_wait_read<0>();
  }

 private:
  /// Where a chunk begins in D.
  struct Corner {
    int row;
    int column;
  };

  WW_DEVICE static Corner corner(int row, int column, int chunk) {
    return {row + row_atom_step(config) * (chunk / row_chunks),
            column + chunk % row_chunks * columns};
  }

  /// The next chunk of the tile that is inside D; `chunks` or one outside when there is none.
  WW_DEVICE static int following(const HopperGemmParams& p, int row, int column, int chunk) {
    const int beside = chunk + 1;
    if (beside % row_chunks != 0 && outside(p, corner(row, column, beside))) {
      return (chunk / row_chunks + 1) * row_chunks;
    }
    return beside;
  }

  WW_DEVICE static bool outside(const HopperGemmParams& p, const Corner& at) {
    return at.column >= p.n || at.row >= p.m;
  }

  WW_DEVICE static int lane() { return isa::lane_index(); }
  WW_DEVICE static bool leader() { return lane() == 0; }

  /// Byte address of the 16-byte piece `piece` of row `row` in a buffer. Buffers start where the
  /// swizzle repeats, so the XOR needs the row alone.
  WW_DEVICE static isa::SharedAddress piece(isa::SharedAddress buffer, int row, int piece) {
    return buffer + row * 128 + ((piece ^ (row & 7)) << 4);
  }

  /// The element at (row, column) of a buffer.
  WW_DEVICE static isa::SharedView<Element> element(isa::SharedAddress buffer, int row,
                                                    int column) {
    const int byte = column * static_cast<int>(sizeof(Element));
    return {piece(buffer, row, byte / 16) + byte % 16};
  }

  /// Starts the load of a chunk of C into the buffer that is used next.
  WW_DEVICE void load_c(const HopperGemmParams& p, int row, int column, int chunk) const {
    const Corner at = corner(row, column, chunk);
    if (chunk >= chunks || outside(p, at)) return;
    isa::bulk_wait_read<0>();  // the store that used the buffer last
    const isa::SharedAddress barrier = barriers_ + next_ * 8;
    isa::mbarrier_arrive_expect(barrier, epilogue_buffer_bytes);
    isa::tensor_load(buffers_ + next_ * epilogue_buffer_bytes, p.c, barrier,
                     isa::Coords{at.column, at.row});
  }

  /// C into the buffer element by element, zeros outside.
  WW_DEVICE void fetch_elements(const HopperGemmParams& p, const Corner& at,
                                isa::SharedAddress buffer) const {
    const isa::GlobalView<const Element> from{static_cast<const Element*>(p.c_data)};
    WW_NO_UNROLL for (int i = lane(); i < epilogue_rows * columns; i += 32) {
      const int r = i / columns;
      const int c = i % columns;
      const bool inside = at.row + r < p.m && at.column + c < p.n;
      element(buffer, r, c)
          .store(0, inside ? from.load((at.row + r) * p.c_pitch + at.column + c) : Element{});
    }
    isa::sync_warp();
  }

  /// value += beta * C, which lies in the buffer. Neighbours in a row are read as one word.
  WW_DEVICE void add_c(const HopperGemmParams& p, isa::SharedAddress buffer,
                       float (&value)[chunk_values]) const {
    constexpr int words = sizeof(Element) / 2;
    WW_UNROLL for (int i = 0; i < chunk_values; i += 2) {
      const isa::SharedAddress from =
          element(buffer, atom::c_row(lane(), i), atom::c_col(lane(), i)).address;
      const auto pair = isa::SharedView<isa::Words<words>>{from}.load();
      const isa::Pair c = isa::unpack<config.result>(pair.word);
      value[i] += p.beta * c.low;
      value[i + 1] += p.beta * c.high;
    }
    // The buffer is written next; stmatrix writes what other lanes have read, st.shared does not.
    if constexpr (sizeof(Element) == 2) isa::sync_warp();
  }

  /// Registers into the swizzled buffer.
  WW_DEVICE void fill(isa::SharedAddress buffer, const float (&value)[chunk_values]) const {
    if constexpr (sizeof(Element) == 2) {
      // Four 8x8 matrices at a time: the warp's 16 rows, 16 columns.
      const int row = lane() % 16;
      WW_UNROLL for (int i = 0; i < chunk_values; i += 8) {
        const std::uint32_t matrices[4] = {isa::pack<config.result>(value[i], value[i + 1]),
                                           isa::pack<config.result>(value[i + 2], value[i + 3]),
                                           isa::pack<config.result>(value[i + 4], value[i + 5]),
                                           isa::pack<config.result>(value[i + 6], value[i + 7])};
        isa::store_matrix<4>(piece(buffer, row, i / 4 + lane() / 16), matrices);
      }
    } else {
      WW_UNROLL for (int i = 0; i < chunk_values; i += 2) {
        const isa::SharedAddress to =
            element(buffer, atom::c_row(lane(), i), atom::c_col(lane(), i)).address;
        isa::SharedView<isa::Words<2>>{to}.store(
            0, {isa::float_bits(value[i]), isa::float_bits(value[i + 1])});
      }
    }
  }

  /// The buffer to global memory, element by element inside D; neighbours in a row go together.
  WW_DEVICE void store_elements(const HopperGemmParams& p, const Corner& at,
                                isa::SharedAddress buffer) const {
    const isa::GlobalView<Element> to{static_cast<Element*>(p.d_data)};
    WW_NO_UNROLL for (int i = lane(); i < epilogue_rows * columns; i += 32) {
      const int r = i / columns;
      const int c = i % columns;
      if (at.row + r < p.m && at.column + c < p.n) {
        to.store((at.row + r) * p.d_pitch + at.column + c, element(buffer, r, c).load());
      }
    }
  }

  isa::SharedAddress buffers_;
  isa::SharedAddress barriers_;
  int next_ = 0;    // the buffer that is used next: they alternate over chunks inside D alone
  int parity_ = 0;  // bit i: parity of the next load of C into buffer i
};

}  // namespace warpwright::kernel
