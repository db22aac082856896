// The epilogue of the Hopper kernels, through shared memory:
//   D = activation(alpha * scales * sums + bias + beta * C)
//
// Every consumer warp handles its 16 rows alone, in chunks that fill a buffer: registers ->
// stmatrix (or st.shared) into the swizzled buffer -> global memory. The buffer holds D's elements
// as they lie in memory; where the kernel is swapped the chunk is transposed on the way into it.
// No warp waits for another. From the buffer to D there are three ways:
//   vectors      16 bytes a lane, whole 128-byte lines; the buffer is free at once
//   copy engine  one tensor store (a configuration with `tma_store`); the buffer is busy until it
//                has been read, behind the loads of the next tile
//   elements     where base or pitch of D are no multiple of 16 bytes
// C comes by a tensor load into the same buffer, one chunk ahead, or element by element.
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
#include "warpwright/kernel/gemm_config.h"
#include "warpwright/kernel/hopper_gemm_params.h"
#include "warpwright/kernel/hopper_values.h"

namespace warpwright::kernel {

template <class Tag>
class HopperEpilogue {
 public:
  static constexpr GemmConfig config = Tag::config;
  static constexpr int columns = chunk_columns(config);
  static constexpr int row_chunks = result_columns(config) / columns;  // side by side
  static constexpr int result_atoms = gated_rows(config) ? row_atoms(config) / 2 : row_atoms(config);
  static constexpr int chunks = result_atoms * row_chunks;
  static constexpr int values = columns / 2;  // a thread's values of one chunk
  static constexpr int c_words = result_bytes(config) == 4 ? values : (values + 1) / 2;
  static constexpr int inner = chunk_inner(config);
  static constexpr int outer = chunk_outer(config);
  using Element = isa::StorageOf<config.result>;

  /// `buffers` and `barriers` are those of all consumer warps; warp `warp` of them takes its own.
  WW_DEVICE HopperEpilogue(const HopperGemmParams& p, isa::SharedAddress buffers,
                           isa::SharedAddress barriers, int warp)
      : p_(p),
        buffers_(buffers + warp * epilogue_buffers * epilogue_buffer_bytes),
        barriers_(barriers + warp * epilogue_buffers * 8) {
    alpha_ = p.alpha * scalar(p.tensor_scale_a) * scalar(p.tensor_scale_b);
    result_scale_ = scalar(p.result_scale);
  }

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
  /// are where the warp's 16 rows of the tile begin in the (first half of the) product. In a
  /// grouped one `batch` is the group, and its tokens end before `end_token`.
  WW_DEVICE void begin(int row, int column, int batch, [[maybe_unused]] int end_token = 0) {
    at_ = {row, column, batch};
    if constexpr (is_grouped(config)) {
      end_token_ = end_token;
      if (p_.tensor_scale_a_stride + p_.tensor_scale_b_stride != 0) {
        alpha_ = p_.alpha * scalar(p_.tensor_scale_a, batch * p_.tensor_scale_a_stride) *
                 scalar(p_.tensor_scale_b, batch * p_.tensor_scale_b_stride);
      }
    }
    if (p_.reads_c && p_.c_by_tma && leader()) [[unlikely]] load_c(0);
  }

  /// Writes the warp's 16 rows of every 64 of the tile that `begin` named; parts outside D are
  /// dropped. `sums` is an array of fragments, one for each 64 rows.
  template <class Sums>
  WW_DEVICE void write(Sums& sums) {
    // Two copies of the loop, so that the plain one is short: a kernel with one tile waits for
    // every instruction of it to be fetched.
    if (!config.gated && p_.is_plain) {
      write_chunks<true>(sums);
    } else {
      write_chunks<false>(sums);
    }
  }

  /// At the kernel's end: shared memory must outlive the stores that read it.
  WW_DEVICE void drain() const {
    if constexpr (config.tma_store) {
      if (leader()) isa::bulk_wait_read<0>();
    }
  }

 private:
  template <bool Plain, class Sums>
  WW_DEVICE void write_chunks(Sums& sums) {
    WW_UNROLL for (int chunk = 0; chunk < chunks; ++chunk) {
      const isa::Mark mark("epilogue chunk %", chunk);
      if (outside(corner(chunk))) continue;
      const isa::SharedAddress buffer = buffers_ + next_ * epilogue_buffer_bytes;
      wait_for_buffer();
      float value[values];
      if constexpr (Plain) {
        next_ ^= 1;
        take(sums, chunk, 0, value, alpha_);
      } else {
        std::uint32_t c[c_words];
        fetch_c(chunk, buffer, c);
        take_scaled(sums, chunk, 0, buffer, value);
        if (p_.reads_c) add_c(c, value);
        activate(p_.activation, value);
      }
      if constexpr (config.gated) {
        float up[values];
        take_scaled(sums, chunk, 1, buffer, up);
        WW_UNROLL for (int i = 0; i < values; ++i) value[i] *= up[i];
      }
      if constexpr (sizeof(Element) == 1) {
        WW_UNROLL for (int i = 0; i < values; ++i) value[i] *= result_scale_;
      }
      fill(buffer, value);
      put(corner(chunk), buffer);
    }
  }

  WW_DEVICE static float scalar(const float* from, int i = 0) {
    return from == nullptr ? 1.0F : isa::GlobalView<const float>{from}.load(i);
  }

  /// A lane's sums of a chunk in one half of the product, times `factor`.
  template <class Sums>
  WW_DEVICE static void take(Sums& sums, int chunk, int half, float (&value)[values],
                             float factor) {
    constexpr GemmConfig cfg = Tag::config;
    const int atom = chunk / row_chunks + (gated_rows(cfg) ? half * (row_atoms(cfg) / 2) : 0);
    const int first = chunk % row_chunks * values + (gated_columns(cfg) ? half * cfg.tile_n / 4 : 0);
    WW_UNROLL for (int i = 0; i < values; ++i) value[i] = factor * sums[atom][first + i];
  }

  /// The same with scales and biases of rows and columns. Without a K block there are no sums.
  template <class Sums>
  WW_DEVICE void take_scaled(Sums& sums, int chunk, int half, isa::SharedAddress buffer,
                             float (&value)[values]) const {
    const Place at{at_.row + 64 * (chunk / row_chunks), at_.column + chunk % row_chunks * columns,
                   at_.batch};
    const ChunkVectors<Tag> vectors(p_, alpha_, at, half, columns, buffer);
    if (p_.k > 0) {
      take(sums, chunk, half, value, 1.0F);
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
    next_ ^= 1;
    if (!p_.reads_c) return;
    if (p_.c_by_tma) {
      if (leader()) load_c(following(chunk));
      isa::mbarrier_wait<isa::Scope::cta>(barriers_ + slot * 8, parity_ >> slot & 1,
                                          {"c_full", slot});
      parity_ ^= 1 << slot;
    } else {
      fetch_elements(corner(chunk), buffer);
    }
    read_c(buffer, c);
    isa::sync_warp();
  }

  /// The buffer that is used next may be written.
  WW_DEVICE void wait_for_buffer() const {
    if constexpr (config.tma_store) {
      // Its store before last has been read; a load of C has waited for it.
      if (!p_.c_by_tma) {
        if (leader()) isa::bulk_wait_read<1>();
        isa::sync_warp();
      }
    }
  }

  /// Where a chunk begins in D.
  struct Corner {
    int row;
    int column;
  };

  WW_DEVICE Corner corner(int chunk) const {
    const int row = at_.row + 64 * (chunk / row_chunks);
    const int column = at_.column + chunk % row_chunks * columns;
    return config.swapped ? Corner{column, row} : Corner{row, column};
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
  WW_DEVICE int end_row() const { return is_grouped(config) ? end_token_ : p_.d_rows; }

  WW_DEVICE bool outside(const Corner& at) const {
    return at.column >= p_.d_columns || at.row >= end_row();
  }

  WW_DEVICE static int lane() { return isa::lane_index(); }
  WW_DEVICE static bool leader() { return lane() == 0; }

  /// Byte address of the 16-byte piece `piece` of row `row` in a buffer.
  WW_DEVICE static isa::SharedAddress piece(isa::SharedAddress buffer, int row, int piece) {
    constexpr GemmConfig cfg = Tag::config;
    return atom::apply_swizzle(chunk_swizzle(cfg),
                               buffer + row * chunk_row_bytes(cfg) + piece * 16);
  }

  /// The element of D at (row, column) of a buffer.
  WW_DEVICE static isa::SharedView<Element> element(isa::SharedAddress buffer, int row,
                                                    int column) {
    const int byte = column * static_cast<int>(sizeof(Element));
    return {piece(buffer, row, byte / 16) + byte % 16};
  }

  /// That of value `i` of this lane.
  WW_DEVICE static isa::SharedView<Element> element_of(isa::SharedAddress buffer, int i) {
    const int row = atom::c_row(lane(), i);
    const int column = atom::c_col(lane(), i);
    return config.swapped ? element(buffer, column, row) : element(buffer, row, column);
  }

  /// Starts the load of a chunk of C into the buffer that is used next.
  WW_DEVICE void load_c(int chunk) const {
    if (chunk >= chunks || outside(corner(chunk))) return;
    const Corner at = corner(chunk);
    if constexpr (config.tma_store) isa::bulk_wait_read<0>();  // the store that used the buffer last
    const isa::SharedAddress barrier = barriers_ + next_ * 8;
    isa::mbarrier_arrive_expect(barrier, chunk_bytes(config));
    isa::tensor_load(buffers_ + next_ * epilogue_buffer_bytes, p_.c, barrier,
                     isa::Coords{at.column, at.row, at_.batch});
  }

  /// C into the buffer element by element, zeros outside.
  WW_DEVICE void fetch_elements(const Corner& at, isa::SharedAddress buffer) const {
    const isa::GlobalView<const Element> from{static_cast<const Element*>(p_.c_data) +
                                              at_.batch * p_.c_batch};
    WW_NO_UNROLL for (int i = lane(); i < outer * inner; i += 32) {
      const int r = i / inner;
      const int c = i % inner;
      const bool inside = at.row + r < p_.d_rows && at.column + c < p_.d_columns;
      element(buffer, r, c)
          .store(0, inside ? from.load((at.row + r) * p_.c_pitch + at.column + c) : Element{});
    }
    isa::sync_warp();
  }

  /// The lane's elements of C out of the buffer. Neighbours in memory are read as one word.
  WW_DEVICE static void read_c(isa::SharedAddress buffer, std::uint32_t (&c)[c_words]) {
    if constexpr (sizeof(Element) == 4) {
      WW_UNROLL for (int i = 0; i < values; ++i) {
        c[i] = isa::float_bits(element_of(buffer, i).load());
      }
    } else if constexpr (sizeof(Element) == 2) {
      WW_UNROLL for (int i = 0; i < values; i += 2) {
        if constexpr (config.swapped) {
          c[i / 2] = element_of(buffer, i).load() |
                     static_cast<std::uint32_t>(element_of(buffer, i + 1).load()) << 16;
        } else {
          c[i / 2] = isa::SharedView<std::uint32_t>{element_of(buffer, i).address}.load();
        }
      }
    }
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

  /// Registers into the swizzled buffer.
  WW_DEVICE void fill(isa::SharedAddress buffer, const float (&value)[values]) const {
    if constexpr (sizeof(Element) == 2) {
      fill_matrices(buffer, value);
    } else if constexpr (sizeof(Element) == 1) {
      fill_bytes(buffer, value);
    } else if constexpr (config.swapped) {
      WW_UNROLL for (int i = 0; i < values; ++i) element_of(buffer, i).store(0, value[i]);
    } else {
      WW_UNROLL for (int i = 0; i < values; i += 2) {
        isa::SharedView<isa::Words<2>>{element_of(buffer, i).address}.store(
            0, {isa::float_bits(value[i]), isa::float_bits(value[i + 1])});
      }
    }
  }

  /// Values `2 i` and `2 i + 1` as one word.
  WW_DEVICE static std::uint32_t packed(const float (&value)[values], int i) {
    return isa::pack<config.result>(value[2 * i], value[2 * i + 1]);
  }

  /// 16-bit elements: 8x8 matrices of 16 rows and 8 columns of the accumulator, two or four at a
  /// time. Lane l gives the address of row l % 8 of matrix l / 8.
  WW_DEVICE void fill_matrices(isa::SharedAddress buffer, const float (&value)[values]) const {
    const int row = lane() % 8;
    const int second = lane() / 8 % 2;  // of the two matrices of 8 columns: the lower rows
    const int beside = lane() / 16;     // the next 8 columns
    const auto at = [&](int i) {
      return config.swapped ? piece(buffer, 8 * (i / 4 + beside) + row, second)
                            : piece(buffer, 8 * second + row, i / 4 + beside);
    };
    WW_UNROLL for (int i = 0; i + 8 <= values; i += 8) {
      const std::uint32_t matrices[4] = {packed(value, i / 2), packed(value, i / 2 + 1),
                                         packed(value, i / 2 + 2), packed(value, i / 2 + 3)};
      isa::store_matrix<4, config.swapped>(at(i), matrices);
    }
    if constexpr (values % 8 != 0) {
      constexpr int i = values - 4;
      const std::uint32_t matrices[2] = {packed(value, i / 2), packed(value, i / 2 + 1)};
      // Lanes 16 to 31 repeat the addresses of the others, which are not used.
      isa::store_matrix<2, config.swapped>(
          config.swapped ? piece(buffer, 8 * (i / 4) + row, second)
                         : piece(buffer, 8 * second + row, i / 4),
          matrices);
    }
  }

  /// 8-bit elements, two at a time: neighbours in a row lie in one lane, neighbours in a column in
  /// lanes that differ by 4.
  WW_DEVICE void fill_bytes(isa::SharedAddress buffer, const float (&value)[values]) const {
    if constexpr (sizeof(Element) == 1) {
      WW_UNROLL for (int i = 0; i < values; i += 2) {
        float low = value[i];
        float high = value[i + 1];
        int at = i;
        if constexpr (config.swapped) {
          // Even rows of the accumulator take the first column of the pair, odd ones the second.
          const bool odd = lane() / 4 % 2 != 0;
          const float other = isa::float_of(
              isa::shuffle(isa::float_bits(odd ? low : high), lane() ^ 4));
          low = odd ? other : low;
          high = odd ? high : other;
          at = odd ? i + 1 : i;
          const int row = atom::c_row(lane(), at) & ~1;
          isa::SharedView<std::uint16_t>{
              element(buffer, atom::c_col(lane(), at), row).address}
              .store(0, isa::pack_bytes<config.result>(low, high));
        } else {
          isa::SharedView<std::uint16_t>{element_of(buffer, at).address}.store(
              0, isa::pack_bytes<config.result>(low, high));
        }
      }
    }
  }

  /// The buffer to D.
  WW_DEVICE void put(const Corner& at, isa::SharedAddress buffer) const {
    if constexpr (config.tma_store) {
      if (p_.d_by_vectors) {
        isa::fence_proxy_async_shared();
        isa::sync_warp();
        if (leader()) {
          isa::tensor_store(p_.d, buffer, isa::Coords{at.column, at.row, at_.batch});
          isa::bulk_commit();
        }
        return;
      }
    }
    isa::sync_warp();
    if (p_.d_by_vectors) {
      store_vectors(at, buffer);
    } else {
      store_elements(at, buffer);
    }
    if (config.tma_store || p_.c_by_tma) {
      // A load of C may follow into this buffer: order our accesses before it.
      isa::fence_proxy_async_shared();
      isa::sync_warp();
    }
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
      Element* const to = d + (at.row + r) * p_.d_pitch + at.column + c;
      const isa::SharedAddress from = piece(buffer, r, i % pieces);
      if (at.column + c + each <= p_.d_columns) {
        isa::GlobalView<isa::Words<4>>{reinterpret_cast<isa::Words<4>*>(to)}.store(
            0, isa::SharedView<isa::Words<4>>{from}.load());
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
      if (at.row + r < end_row() && at.column + c < p_.d_columns) {
        to.store((at.row + r) * p_.d_pitch + at.column + c, element(buffer, r, c).load());
      }
    }
  }

  const HopperGemmParams& p_;
  isa::SharedAddress buffers_;
  isa::SharedAddress barriers_;
  float alpha_ = 1;
  float result_scale_ = 1;
  Place at_;        // of the tile at hand
  int end_token_ = 0;
  int next_ = 0;    // the buffer that is used next: they alternate over chunks inside D alone
  int parity_ = 0;  // bit i: parity of the next load of C into buffer i
};

}  // namespace warpwright::kernel
