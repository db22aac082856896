// The epilogue of the Hopper kernels: D = alpha * accumulator + beta * C, through shared memory.
//
// A consumer warpgroup handles its 64 rows in chunks of one 128-byte span of columns, with two
// buffers: registers -> stmatrix (or st.shared for f32) into the swizzled buffer -> one tensor
// store. C comes the other way: a tensor load into the same buffer, one chunk ahead. Where base or
// pitch of D or C is no multiple of 16 bytes the copy engine cannot be used; D is then stored from
// the buffer element by element inside the bounds, C read from global memory likewise.
#pragma once

#include "warpwright/atom/swizzle.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/warp.h"
#include "warpwright/isa/wgmma.h"
#include "warpwright/kernel/gemm_config.h"
#include "warpwright/kernel/hopper_gemm_params.h"

namespace warpwright::kernel {

template <class Tag>
class HopperEpilogue {
 public:
  static constexpr GemmConfig config = Tag::config;
  static constexpr int columns = epilogue_columns(config);
  static constexpr int chunks = config.tile_n / columns;
  static constexpr int chunk_values = columns / 2;  // a thread's values of one chunk
  using Element = isa::StorageOf<config.result>;

  /// `buffers` and `barriers` are those of all warpgroups; this one takes its own.
  WW_DEVICE
  HopperEpilogue(isa::SharedAddress buffers, isa::SharedAddress barriers, int warpgroup)
      : buffers_(buffers + warpgroup * epilogue_buffers * epilogue_buffer_bytes),
        barriers_(barriers + warpgroup * epilogue_buffers * 8),
        named_(1 + warpgroup) {}

  /// Initialises the barriers of the loads of C; one thread of the CTA, before the CTA barrier.
  WW_DEVICE
  void initialise() const {
    for (int i = 0; i < epilogue_buffers; ++i) {
      isa::mbarrier_init(barriers_ + i * 8, 1, {"c_full", i}, "the warpgroup's leader");
    }
  }

  /// Before the main loop of a tile: starts the load of its first chunk of C.
  WW_DEVICE
  void begin(const HopperGemmParams& p, int row, int column) {
    if (p.reads_c && p.c_by_tma && leader()) load_c(p, row, column, 0);
  }

  /// Writes the warpgroup's 64 rows from `row`, columns from `column`; parts outside D are dropped.
  template <class Accumulator>
  WW_DEVICE
  void write(const HopperGemmParams& p, int row, int column, Accumulator& accumulator) {
    WW_UNROLL for (int chunk = 0; chunk < chunks; ++chunk) {
      const int at = column + chunk * columns;
      if (at >= p.n || row >= p.m) continue;
      const isa::SharedAddress buffer = buffers_ + (chunk % 2) * epilogue_buffer_bytes;
      if (p.reads_c && p.c_by_tma) {
        if (leader()) load_c(p, row, column, chunk + 1);
        isa::mbarrier_wait<isa::Scope::cta>(barriers_ + (chunk % 2) * 8, parity_ >> (chunk % 2) & 1,
                                            {"c_full", chunk % 2});
        parity_ ^= 1 << (chunk % 2);
      } else {
        // The buffer's store before last has been read; everybody may write it again.
        if (leader()) isa::bulk_wait_read<1>();
        isa::named_barrier_sync(named_, 128);
      }
      float value[chunk_values];
      WW_UNROLL for (int i = 0; i < chunk_values; ++i) {
        // Without a K block nothing has written the accumulator.
        value[i] = p.k > 0 ? p.alpha * accumulator[chunk * chunk_values + i] : 0.0F;
      }
      if (p.reads_c) add_c(p, row, at, buffer, value);
      fill(buffer, value);
      if (p.d_by_tma) {
        isa::fence_proxy_async_shared();
        isa::named_barrier_sync(named_, 128);
        if (leader()) {
          isa::tensor_store(p.d, buffer, isa::Coords{at, row});
          isa::bulk_commit();
        }
      } else {
        // A load of C may follow into this buffer: order our accesses before it.
        isa::fence_proxy_async_shared();
        isa::named_barrier_sync(named_, 128);
        store_elements(p, row, at, buffer);
        if (p.reads_c && p.c_by_tma) {
          isa::fence_proxy_async_shared();
          isa::named_barrier_sync(named_, 128);
        }
      }
    }
  }

  /// At the kernel's end: shared memory must outlive the stores that read it.
  WW_DEVICE
  void drain() const {
    if (leader()) isa::bulk_wait_read<0>();
  }

 private:
  WW_DEVICE
  static int thread() { return isa::thread_index() % 128; }
  WW_DEVICE
  static bool leader() { return thread() == 0; }

  /// Byte address of the 16-byte piece `piece` of row `row` in a buffer. Buffers start where the
  /// swizzle repeats, so the XOR needs the row alone.
  WW_DEVICE
  static isa::SharedAddress piece(isa::SharedAddress buffer, int row, int piece) {
    return buffer + row * 128 + ((piece ^ (row & 7)) << 4);
  }

  WW_DEVICE
  void load_c(const HopperGemmParams& p, int row, int column, int chunk) const {
    const int at = column + chunk * columns;
    if (chunk >= chunks || at >= p.n || row >= p.m) return;
    isa::bulk_wait_read<0>();  // the store that used the buffer last
    const isa::SharedAddress barrier = barriers_ + (chunk % 2) * 8;
    isa::mbarrier_arrive_expect(barrier, epilogue_buffer_bytes);
    isa::tensor_load(buffers_ + (chunk % 2) * epilogue_buffer_bytes, p.c, barrier,
                     isa::Coords{at, row});
  }

  /// value += beta * C, from the buffer or, where C cannot be copied, from global memory.
  WW_DEVICE
  void add_c(const HopperGemmParams& p, int row, int column, isa::SharedAddress buffer,
             float (&value)[chunk_values]) const {
    WW_UNROLL for (int i = 0; i < chunk_values; i += 2) {
      const int r = atom::c_row(thread(), i);
      const int c = atom::c_col(thread(), i);
      if (p.c_by_tma) {
        const int byte = c * static_cast<int>(sizeof(Element));
        const isa::SharedAddress from = piece(buffer, r, byte / 16) + byte % 16;
        for (int e = 0; e < 2; ++e) {
          value[i + e] +=
              p.beta * isa::to_float<config.result>(isa::SharedView<Element>{from}.load(e));
        }
      } else {
        const isa::GlobalView<const Element> from{static_cast<const Element*>(p.c_data)};
        for (int e = 0; e < 2; ++e) {
          if (row + r < p.m && column + c + e < p.n) {
            value[i + e] += p.beta * isa::to_float<config.result>(
                                         from.load((row + r) * p.c_pitch + column + c + e));
          }
        }
      }
    }
    // stmatrix writes pieces whose C another lane of the warp has read.
    isa::sync_warp();
  }

  /// Registers into the swizzled buffer.
  WW_DEVICE
  void fill(isa::SharedAddress buffer, const float (&value)[chunk_values]) const {
    if constexpr (sizeof(Element) == 2) {
      // Four 8x8 matrices at a time: the warp's 16 rows, 16 columns.
      const int lane = thread() % 32;
      const int row = thread() / 32 * 16 + lane % 16;
      WW_UNROLL for (int i = 0; i < chunk_values; i += 8) {
        const std::uint32_t matrices[4] = {isa::pack<config.result>(value[i], value[i + 1]),
                                           isa::pack<config.result>(value[i + 2], value[i + 3]),
                                           isa::pack<config.result>(value[i + 4], value[i + 5]),
                                           isa::pack<config.result>(value[i + 6], value[i + 7])};
        isa::store_matrix<4>(piece(buffer, row, i / 4 + lane / 16), matrices);
      }
    } else {
      WW_UNROLL for (int i = 0; i < chunk_values; i += 2) {
        const int byte = 4 * atom::c_col(thread(), i);
        const isa::SharedAddress to =
            piece(buffer, atom::c_row(thread(), i), byte / 16) + byte % 16;
        isa::SharedView<isa::Words<2>>{to}.store(
            0, {isa::float_bits(value[i]), isa::float_bits(value[i + 1])});
      }
    }
  }

  /// The buffer to global memory, element by element inside D; neighbours in a row go together.
  WW_DEVICE
  void store_elements(const HopperGemmParams& p, int row, int column,
                      isa::SharedAddress buffer) const {
    const isa::GlobalView<Element> to{static_cast<Element*>(p.d_data)};
    for (int i = thread(); i < 64 * columns; i += 128) {
      const int r = i / columns;
      const int c = i % columns;
      const int byte = c * static_cast<int>(sizeof(Element));
      if (row + r < p.m && column + c < p.n) {
        to.store((row + r) * p.d_pitch + column + c,
                 isa::SharedView<Element>{piece(buffer, r, byte / 16) + byte % 16}.load());
      }
    }
  }

  isa::SharedAddress buffers_;
  isa::SharedAddress barriers_;
  int named_;
  int parity_ = 0;  // bit i: parity of the next load of C into buffer i
};

}  // namespace warpwright::kernel
