// The epilogue of all kernels, through shared memory:
//   D = activation(alpha * scales * sums + bias + beta * C)
//
// Every consumer warp handles its 16 rows alone, in chunks that fill a buffer: registers ->
// stmatrix (or st.shared) into the swizzled buffer -> global memory. The buffer holds D's elements
// as they lie in memory; where the kernel is swapped the chunk is transposed on the way into it.
// No warp waits for another. From the buffer to D there are three ways:
//   vectors      16 bytes a lane, whole 128-byte lines; the buffer is free at once
//   copy engine  one tensor store (a configuration that says so); the buffer is busy until it
//                has been read, behind the loads of the next tile
//   elements     where base or pitch of D are no multiple of 16 bytes
// C comes by a tensor load into the same buffer, one chunk ahead, or element by element.
#pragma once

#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/tensor_map.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/trace.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/chunk_buffer.h"
#include "warpwright/kernel/epilogue_geometry.h"
#include "warpwright/kernel/epilogue_values.h"
#include "warpwright/kernel/params.h"
#include "warpwright/tile/raster.h"

namespace warpwright::kernel {

/// The epilogue for `Tag::config`, an EpilogueConfig.
template <class Tag>
class Epilogue {
 public:
  static constexpr EpilogueShape config = Tag::config;
  static constexpr int columns = chunk_columns(config);
  static constexpr int row_chunks = result_columns(config) / columns;  // side by side
  static constexpr int result_atoms = gated_rows(config) ? config.row_atoms / 2 : config.row_atoms;
  static constexpr int chunks = result_atoms * row_chunks;
  using Buffer = ChunkBuffer<Tag>;
  static constexpr int values = Buffer::values;
  static constexpr int c_words = Buffer::c_words;
  static constexpr int inner = chunk_inner(config);
  static constexpr int outer = chunk_outer(config);
  using Element = typename Buffer::Element;

  /// `buffers` and `barriers` are those of all consumer warps; warp `warp` of them takes its own.
  WW_DEVICE Epilogue(const OutputParams& p, const ScaleParams& scales, isa::SharedAddress buffers,
                     isa::SharedAddress barriers, int warp)
      : p_(p),
        scales_(scales),
        buffers_(buffers + warp * config.buffers * epilogue_buffer_bytes),
        barriers_(barriers + warp * config.buffers * 8) {
    alpha_ = p.alpha * scalar(scales.tensor_a) * scalar(scales.tensor_b);
    result_scale_ = scalar(p.result_scale);
  }

  /// Initialises the barriers of the loads of C of all consumer warps. One thread of the CTA calls
  /// it, before the CTA barrier; only launches that load C need it.
  WW_DEVICE static void initialise(isa::SharedAddress barriers) {
    constexpr int count = config.warps * config.buffers;
    WW_NO_UNROLL for (int i = 0; i < count; ++i) {
      isa::mbarrier_init(barriers + i * 8, 1, {"c_full", i}, "the leader of its warp");
    }
  }

  /// Before the main loop of a tile, of which the warp's rows begin at `row`: starts the load of
  /// its first chunk of C.
  WW_DEVICE void begin(const tile::Work& work, int row) {
    const int batch = work.tile.batch;
    if constexpr (config.store == Store::tensor_per_group) {
      if (batch != at_.batch || first_token_ < 0) {
        if (leader()) isa::fence_proxy_tensormap_acquire(p_.group_maps[2 * batch]);
      }
      first_token_ = work.first_token;
    }
    at_ = {work.row + row, work.column, batch};
    if constexpr (config.grouped) {
      end_row_ = work.end_token;
      if (scales_.tensor_a_stride + scales_.tensor_b_stride != 0) {
        alpha_ = p_.alpha * scalar(scales_.tensor_a, batch * scales_.tensor_a_stride) *
                 scalar(scales_.tensor_b, batch * scales_.tensor_b_stride);
      }
    }
    if (p_.reads_c && c_by_tma() && leader()) [[unlikely]]
      load_c(0);
  }

  /// Writes the warp's rows of the tile that `begin` named, 16 of each atom, as far as they are
  /// `complete`; parts outside D are dropped. `sums` is an array of fragments, one an atom.
  template <class Sums>
  WW_DEVICE void write(Sums& sums, [[maybe_unused]] const CompleteSums& complete) {
    if constexpr (config.shares_columns) {
      first_column_ = at_.column + complete.first_column;
      end_column_ = at_.column + complete.end_column;
    }
    write_from([&](int chunk, int half, float(&value)[values]) {
      constexpr EpilogueShape cfg = Tag::config;
      const int atom = chunk / row_chunks + (gated_rows(cfg) ? half * (cfg.row_atoms / 2) : 0);
      const int first =
          chunk % row_chunks * values + (gated_columns(cfg) ? half * cfg.tile_n / 4 : 0);
      WW_UNROLL for (int i = 0; i < values; ++i) value[i] = sums[atom][first + i];
    });
  }

  /// The same with `source(chunk, half, value)` to fetch a lane's sums of a chunk in one half of
  /// the product. It is not asked when there is no K block.
  template <class Source>
  WW_DEVICE void write_from(const Source& source) {
    // Two copies of the loop, so that the plain one is short: a kernel with one tile waits for
    // every instruction of it to be fetched.
    if (!config.gated && p_.is_plain) {
      write_chunks<true>(source);
    } else {
      write_chunks<false>(source);
    }
  }

  /// At the kernel's end: shared memory must outlive the stores that read it.
  WW_DEVICE void drain() const {
    if constexpr (config.store != Store::lanes) {
      if (leader()) isa::bulk_wait_read<0>();
    }
  }

 private:
  template <bool Plain, class Source>
  WW_DEVICE void write_chunks(const Source& source) {
    WW_UNROLL for (int chunk = 0; chunk < chunks; ++chunk) {
      const isa::Mark mark("epilogue chunk %", chunk);
      if (outside(corner(chunk))) continue;
      const isa::SharedAddress buffer = buffers_ + next_ * epilogue_buffer_bytes;
      wait_for_buffer();
      float value[values];
      if constexpr (Plain) {
        turn();
        source(chunk, 0, value);
        WW_UNROLL for (int i = 0; i < values; ++i) value[i] *= alpha_;
      } else {
        std::uint32_t c[c_words];
        fetch_c(chunk, buffer, c);
        take_scaled(source, chunk, 0, buffer, value);
        if (p_.reads_c) add_c(c, value);
        activate(p_.activation, value);
      }
      if constexpr (config.gated) {
        float up[values];
        take_scaled(source, chunk, 1, buffer, up);
        WW_UNROLL for (int i = 0; i < values; ++i) value[i] *= up[i];
      }
      if constexpr (sizeof(Element) == 1) {
        WW_UNROLL for (int i = 0; i < values; ++i) value[i] *= result_scale_;
      }
      Buffer::fill(buffer, value);
      put(corner(chunk), buffer);
    }
  }

  WW_DEVICE static float scalar(const float* from, int i = 0) {
    return from == nullptr ? 1.0F : isa::GlobalView<const float>{from}.load(i);
  }

  /// A lane's sums of a chunk in one half of the product, with scales and biases of rows and
  /// columns. Without a K block there are no sums.
  template <class Source>
  WW_DEVICE void take_scaled(const Source& source, int chunk, int half, isa::SharedAddress buffer,
                             float (&value)[values]) const {
    const ChunkVectors<Tag> vectors(p_, scales_, alpha_, place(chunk), half, columns, buffer);
    if (p_.has_sums) {
      source(chunk, half, value);
    } else {
      WW_UNROLL for (int i = 0; i < values; ++i) value[i] = 0;
    }
    WW_UNROLL for (int i = 0; i < values; i += 4) vectors.apply(i, value);
    isa::sync_warp();  // the buffer is written next
  }

  /// A chunk of C as its elements lie in memory, or zeros; then the buffer is free, and the next
  /// one's turn. Starts the load of the chunk after it.
  WW_DEVICE void fetch_c(int chunk, isa::SharedAddress buffer, std::uint32_t (&c)[c_words]) {
    const int slot = next_;
    turn();
    if (!p_.reads_c) return;
    if (c_by_tma()) {
      if (leader()) load_c(following(chunk));
      isa::mbarrier_wait<isa::Scope::cta>(barriers_ + slot * 8, parity_ >> slot & 1,
                                          {"c_full", slot});
      parity_ ^= 1 << slot;
    } else {
      fetch_elements(corner(chunk), buffer);
    }
    Buffer::read_c(buffer, c);
    isa::sync_warp();
  }

  /// The next buffer's turn.
  WW_DEVICE void turn() { next_ = next_ + 1 == config.buffers ? 0 : next_ + 1; }

  /// The buffer that is used next may be written.
  WW_DEVICE void wait_for_buffer() const {
    if constexpr (config.store != Store::lanes) {
      // Its latest store has been read; a load of C has waited for it.
      if (!c_by_tma()) {
        if (leader()) isa::bulk_wait_read<config.buffers - 1>();
        isa::sync_warp();
      }
    }
  }

  /// Where a chunk begins in D.
  struct Corner {
    int row;
    int column;
  };

  /// Where its rows begin in the product.
  WW_DEVICE Place place(int chunk) const {
    return {at_.row + config.row_atom_step * (chunk / row_chunks),
            at_.column + chunk % row_chunks * columns, at_.batch};
  }

  WW_DEVICE Corner corner(int chunk) const {
    const Place at = place(chunk);
    return config.swapped ? Corner{at.column, at.row} : Corner{at.row, at.column};
  }

  /// The next chunk of the tile that is inside D; `chunks` or one outside when there is none.
  WW_DEVICE int following(int chunk) const {
    const int beside = chunk + 1;
    if (beside % row_chunks != 0 && outside(corner(beside))) {
      return (chunk / row_chunks + 1) * row_chunks;
    }
    return beside;
  }

  /// Rows of D that the tile at hand may write end before it.
  WW_DEVICE int end_row() const { return config.grouped ? end_row_ : p_.d_rows; }

  WW_DEVICE bool outside(const Corner& at) const {
    return at.column >= p_.d_columns || at.row >= end_row();
  }

  /// Loads of C would not end with the group.
  WW_DEVICE bool c_by_tma() const { return !config.grouped && p_.c_by_tma; }

  WW_DEVICE static int lane() { return isa::lane_index(); }
  WW_DEVICE static bool leader() { return lane() == 0; }

  /// Starts the load of a chunk of C into the buffer that is used next.
  WW_DEVICE void load_c(int chunk) const {
    if (chunk >= chunks || outside(corner(chunk))) return;
    const Corner at = corner(chunk);
    if constexpr (config.store != Store::lanes)
      isa::bulk_wait_read<0>();  // the store that used the buffer last
    const isa::SharedAddress barrier = barriers_ + next_ * 8;
    isa::mbarrier_arrive_expect(barrier, chunk_bytes(config));
    isa::tensor_load(buffers_ + next_ * epilogue_buffer_bytes, p_.c, barrier,
                     isa::Coords{at.column, at.row, at_.batch * p_.c_map_batch});
  }

  /// C into the buffer element by element, zeros outside: what lies behind a group is not read, it
  /// may be D.
  WW_DEVICE void fetch_elements(const Corner& at, isa::SharedAddress buffer) const {
    const isa::GlobalView<const Element> from{static_cast<const Element*>(p_.c_data) +
                                              at_.batch * p_.c_batch};
    WW_NO_UNROLL for (int i = lane(); i < outer * inner; i += 32) {
      const int r = i / inner;
      const int c = i % inner;
      const bool inside = at.row + r < end_row() && at.column + c < p_.d_columns;
      Buffer::element(buffer, r, c)
          .store(0, inside ? from.load((at.row + r) * p_.c_pitch + at.column + c) : Element{});
    }
    isa::sync_warp();
  }

  /// value += beta * C.
  WW_DEVICE void add_c(const std::uint32_t (&c)[c_words], float (&value)[values]) const {
    constexpr int words = sizeof(Element) / 2;  // of a pair
    if constexpr (words > 0) {
      WW_UNROLL for (int i = 0; i < values; i += 2) {
        const isa::Pair pair = isa::unpack<config.result>(c + i / 2 * words);
        value[i] += p_.beta * pair.low;
        value[i + 1] += p_.beta * pair.high;
      }
    }
  }

  /// The buffer to D.
  WW_DEVICE void put(const Corner& at, isa::SharedAddress buffer) const {
    if constexpr (config.store != Store::lanes) {
      if (p_.d_aligned) {
        isa::fence_proxy_async_shared();
        isa::sync_warp();
        if (leader()) {
          if constexpr (config.store == Store::tensor_per_group) {
            isa::tensor_store(p_.group_maps[2 * at_.batch], buffer,
                              isa::Coords{at.column, at.row - first_token_, 0});
          } else {
            isa::tensor_store(p_.d, buffer, isa::Coords{at.column, at.row, at_.batch});
          }
          isa::bulk_commit();
        }
        return;
      }
    }
    isa::sync_warp();
    if (p_.d_aligned) {
      store_vectors(at, buffer);
    } else {
      store_elements(at, buffer);
    }
    if (c_by_tma()) {
      // A load of C may follow into this buffer: order our accesses before it.
      isa::fence_proxy_async_shared();
      isa::sync_warp();
    }
  }

  /// Is an element of the buffer among the columns that are complete?
  WW_DEVICE bool wanted(const Corner& at, int row, int column) const {
    if constexpr (!config.shares_columns) return true;
    const int c = config.swapped ? at.row + row : at.column + column;
    return c >= first_column_ && c < end_column_;
  }

  /// The buffer to global memory, 16 bytes a lane. Buffers alternate, and the next chunk's lanes
  /// meet before the one after it writes to this one again.
  WW_DEVICE void store_vectors(const Corner& at, isa::SharedAddress buffer) const {
    constexpr int pieces = chunk_row_bytes(config) / 16;
    constexpr int each = 16 / static_cast<int>(sizeof(Element));
    Element* const d = static_cast<Element*>(p_.d_data) + at_.batch * p_.d_batch;
    WW_UNROLL for (int first = 0; first < outer * pieces; first += 32) {
      const int i = first + lane();
      const int r = i / pieces;
      const int c = i % pieces * each;
      if (outer * pieces % 32 != 0 && r >= outer) break;
      if (at.row + r >= end_row() || at.column + c >= p_.d_columns) continue;
      if (!wanted(at, r, c)) continue;
      Element* const to = d + (at.row + r) * p_.d_pitch + at.column + c;
      const isa::SharedAddress from = Buffer::piece(buffer, r, i % pieces);
      if (at.column + c + each <= p_.d_columns) {
        isa::global_words<4>(to).store(0, isa::SharedView<isa::Words<4>>{from}.load());
      } else {  // the last elements of a row
        WW_NO_UNROLL for (int e = 0; at.column + c + e < p_.d_columns; ++e) {
          isa::GlobalView<Element>{to}.store(e, isa::SharedView<Element>{from}.load(e));
        }
      }
    }
  }

  /// The buffer to global memory, element by element inside D; neighbours in a row go together.
  WW_DEVICE void store_elements(const Corner& at, isa::SharedAddress buffer) const {
    const isa::GlobalView<Element> to{static_cast<Element*>(p_.d_data) + at_.batch * p_.d_batch};
    WW_NO_UNROLL for (int i = lane(); i < outer * inner; i += 32) {
      const int r = i / inner;
      const int c = i % inner;
      if (at.row + r < end_row() && at.column + c < p_.d_columns && wanted(at, r, c)) {
        to.store((at.row + r) * p_.d_pitch + at.column + c, Buffer::element(buffer, r, c).load());
      }
    }
  }

  const OutputParams& p_;
  const ScaleParams& scales_;
  isa::SharedAddress buffers_;
  isa::SharedAddress barriers_;
  float alpha_ = 1;
  float result_scale_ = 1;
  Place at_;              // of the tile at hand
  int first_token_ = -1;  // of the group at hand
  int end_row_ = 0;
  int first_column_ = 0;
  int end_column_ = 0;
  int next_ = 0;  // the buffer that is used next: they take turns over chunks inside D alone
  // Bit i: parity of the next load of C into buffer i.
  static constexpr int c_first_parity = pipeline::first_parity(c_full_row(config));
  int parity_ = -c_first_parity;
};

}  // namespace warpwright::kernel
