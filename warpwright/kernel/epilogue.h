// The epilogue of all kernels, through shared memory:
//   D = activation(alpha * scales * sums + bias + beta * C)
// or its codes and their scales (epilogue_quantise.h).
//
// Every consumer warp handles its 16 rows by itself, in subtiles that fill a buffer: registers ->
// stmatrix (or st.shared) into the swizzled buffer -> global memory. The buffer holds D's elements
// as they lie in memory: a swapped kernel's subtile is transposed on the way. No warp waits for
// another, but where D is quantised and swapped. From the buffer to D there are three ways:
//   vectors      16 bytes a lane, whole 128-byte lines; the buffer is free at once
//   TMA          one tensor store (a configuration that says so); busy behind the next tile's loads
//   elements     where base or pitch of D are no multiple of 16 bytes
// C comes by a tensor load into the same buffer, one subtile ahead, or element by element.
#pragma once

#include <type_traits>

#include "warpwright/isa/call.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/tensor_map.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/trace.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/alpha.h"
#include "warpwright/kernel/epilogue_quantise.h"
#include "warpwright/kernel/epilogue_values.h"
#include "warpwright/kernel/epilogue_vectors.h"
#include "warpwright/kernel/params.h"
#include "warpwright/kernel/subtile_buffer.h"
#include "warpwright/kernel/subtile_order.h"
#include "warpwright/kernel/subtile_sums.h"
#include "warpwright/tile/raster.h"

namespace warpwright::kernel {

/// The epilogue for `Tag::config`, an EpilogueConfig.
template <class Tag>
class Epilogue {
 public:
  static constexpr EpilogueShape config = Tag::config;
  static constexpr int columns = subtile_columns(config);
  using Order = SubtileOrder<config>;
  static constexpr int subtiles = Order::atoms * Order::beside;
  using Buffer = SubtileBuffer<Tag>;
  static constexpr int buffer_bytes = epilogue_buffer_bytes(config);
  static constexpr int values = Buffer::values;
  static constexpr int c_words = Buffer::c_words;
  static constexpr int inner = subtile_inner(config);
  static constexpr int outer = subtile_outer(config);
  using Element = typename Buffer::Element;

  /// `buffers` and `barriers` are all consumer warps'; warp `warp` of them takes its own.
  WW_DEVICE Epilogue(const OutputParams& p, const ScaleParams& scales, isa::SharedAddress buffers,
                     isa::SharedAddress barriers, int warp)
      : p_(p),
        scales_(scales),
        buffers_(buffers + warp * config.buffers * buffer_bytes),
        barriers_(barriers + warp * config.buffers * 8),
        quantiser_(buffers, warp) {
    if constexpr (alpha_late) late_alpha_ = LateAlpha(scales);
    if constexpr (!alpha_late) alpha_ = alpha_of(p, scales);
    result_scale_ = float_or_one(p.result_scale);
  }

  /// Initialises the barriers of the loads of C of all consumer warps. One thread of the CTA calls
  /// it, before the CTA barrier; only launches that load C need it.
  WW_DEVICE static void initialise(isa::SharedAddress barriers) {
    if constexpr (copies_c(config)) {
      constexpr int count = config.warps * config.buffers;
      WW_NO_UNROLL for (int i = 0; i < count; ++i) {
        isa::mbarrier_init(barriers + i * 8, 1, {"c_full", i}, "the leader of its warp");
      }
    }
  }

  /// Before the main loop of a tile, of which the warp's part begins at `row` and `column`: starts
  /// the loads of what its first subtile needs.
  WW_DEVICE void begin(const tile::Work& work, int row, int column = 0) {
    const int batch = work.tile.batch;
    at_ = {work.row + row, work.column + column, batch};
    if constexpr (config.grouped) {
      end_row_ = work.end_token;
      if (scales_.tensor_a_stride + scales_.tensor_b_stride != 0) {
        alpha_ = alpha_of(p_, scales_, batch);
      }
    }
    if (config.gated || !p_.is_plain) [[unlikely]] {
      if (p_.reads_c && c_by_tma() && leader()) load_c(following(-1));
      if constexpr (loads == VectorLoads::early) load_vectors(following(-1));
    }
  }

  /// Writes the warp's rows of the tile that `begin` named, 16 of each atom, as far as they are
  /// `complete`; parts outside D are dropped. `sums` is an array of fragments, one an atom.
  template <class Sums>
  WW_DEVICE void write(Sums& sums, [[maybe_unused]] const CompleteSums& complete,
                       isa::Site site = isa::Site::here()) {
    if constexpr (config.shares_columns) {
      first_column_ = at_.column + complete.first_column;
      end_column_ = at_.column + complete.end_column;
    }
    const auto source = [&](int subtile, int half, float(&value)[values]) {
      SubtileSums<Tag>::read(sums, subtile, half, value);
    };
    if constexpr (config.quantises) {
      const isa::Call call(site);
      write_codes(source, [&](int subtile, const float(&value)[values]) {
        SubtileSums<Tag>::keep(sums, subtile, value);
      });
    } else {
      write_from(source, site);
    }
  }

  /// The same with `source(subtile, half, value)` to fetch a lane's sums of a subtile in one half
  /// of the product. It is not asked when there is no k_tile.
  template <class Source>
  WW_DEVICE void write_from(const Source& source, isa::Site site = isa::Site::here()) {
    const isa::Call call(site);
    if constexpr (alpha_late) alpha_ = late_alpha_.value(p_);
    // Not all is unrolled: a kernel with one tile waits for every instruction to be fetched.
    if (!config.gated && p_.is_plain) [[likely]] {
      WW_UNROLL_BY(config.loops ? 1 : subtiles)
      for (int subtile = 0; subtile < subtiles; ++subtile) write_subtile<true>(source, subtile);
    } else {
      if constexpr (loads == VectorLoads::ahead) load_vectors(following(-1));
      WW_NO_UNROLL for (int subtile = 0; subtile < subtiles; ++subtile)
          write_subtile<false>(source, subtile);
    }
  }

  Order order;  ///< of the subtiles of a tile

  /// At the kernel's end: shared memory must outlive the stores that read it.
  WW_DEVICE void drain() const {
    if constexpr (config.store != Store::lanes) {
      if (leader()) isa::bulk_wait_read<0>();
    }
  }

 private:
  /// Few tiles that CTAs share wait for nothing too early; others may lack a second register.
  static constexpr bool alpha_late = config.shares_columns;
  static_assert(!alpha_late || !(config.grouped || config.quantises));
  static constexpr int halves = config.gated ? 2 : 1;
  static constexpr VectorLoads loads = config.vectors;
  static constexpr int group = 4;  // values that are combined at once
  // Side by side: in large tiles, and where two halves are too many registers to move on; not where
  // most launches go another way (scales_columns).
  static constexpr bool side_by_side =
      config.gated || (subtiles * values > 64 && loads != VectorLoads::early);
  static constexpr int unrolled = side_by_side ? values / group : 1;

  template <bool Plain, class Source>
  WW_DEVICE void write_subtile(const Source& source, int subtile) {
    const isa::Mark mark("epilogue subtile %", subtile);
    if (outside(coord(subtile))) return;
    const isa::SharedAddress buffer = buffers_ + next_ * buffer_bytes;
    wait_for_buffer<Plain>();
    float value[values];
    if constexpr (Plain) {
      turn();
      source(subtile, 0, value);
      WW_UNROLL for (int i = 0; i < values; ++i) value[i] *= alpha_;
    } else {
      combine(source, subtile, buffer, value);
    }
    if constexpr (sizeof(Element) == 1) {
      WW_UNROLL for (int i = 0; i < values; ++i) value[i] *= result_scale_;
    }
    Buffer::fill(buffer, value);
    put<Plain>(coord(subtile), buffer);
  }

  /// Codes and scales: `keep` holds values, for `source` to find, until the maxima are known.
  template <class Source, class Keep>
  WW_DEVICE void write_codes(const Source& source, const Keep& keep) {
    constexpr int together = Quantiser<Tag>::subtiles;
    float value[values];
    if constexpr (loads == VectorLoads::ahead) load_vectors(following(-1));
    WW_NO_UNROLL for (int first = 0; first < subtiles; first += together) {
      const isa::Mark mark("epilogue subtile %", first);
      if (!Quantiser<Tag>::meets && outside(coord(first))) continue;
      quantiser_.begin();
      WW_NO_UNROLL for (int i = first; i < first + together; ++i) {
        if (outside(coord(i))) continue;
        wait_for_buffer<false>();
        combine(source, i, buffers_, value);
        quantiser_.look(i - first, p_.d_columns - coord(i).column, value);
        keep(i, value);
      }
      quantiser_.find_scales(p_.d_scales, coord(first), at_.batch,
                             outside(coord(first)) ? 0 : end_row());
      WW_NO_UNROLL for (int i = first; i < first + together; ++i) {
        if (outside(coord(i))) continue;
        source(i, 0, value);
        quantiser_.divide(i - first, value);
        wait_for_buffer<false>();
        Buffer::fill(buffers_, value);
        put<false>(coord(i), buffers_);
      }
    }
  }

  /// A lane's values of a subtile with all that becomes of them; no sums without a k_tile.
  template <class Source>
  WW_DEVICE void combine(const Source& source, int subtile, isa::SharedAddress buffer,
                         float (&value)[values]) {
    std::uint32_t c[c_words];
    fetch_c(subtile, buffer, c);
    if (vectors_.scales_columns(p_)) {
      vectors_.put_scales(p_, alpha_, buffer);
      if constexpr (subtiles > 1) load_vectors(following(subtile));
      source(subtile, 0, value);
      return vectors_.scale_columns(p_, buffer, value);
    }
    vectors_.put(p_, scales_, alpha_, place(subtile), buffer);
    const SubtileVectors<Tag> vectors(buffer, vectors_.are_there(p_), alpha_);
    if constexpr (subtiles > 1) load_vectors(following(subtile));
    if (halves == 1 && loads == VectorLoads::ahead && p_.is_linear) {
      source(subtile, 0, value);
      vectors.apply(0, 0, value);
      return isa::sync_warp();
    }
    float second[halves == 2 ? values : group]{};
    WW_UNROLL for (int i = 0; i < values; ++i) value[i] = 0;
    if (p_.has_sums) {
      source(subtile, 0, value);
      if constexpr (halves == 2) source(subtile, 1, second);
    }
    // One group after the other comes to the front, and goes to the end when it is done.
    WW_UNROLL_BY(unrolled) for (int i = 0; i < values; i += group) {
      float v[group];
      copy_front(v, value);
      vectors.apply(0, i, v);
      if constexpr (takes_c(config)) {
        if (p_.reads_c) add_c(c, v);
        drop_front<c_words / (values / group)>(c);
      }
      if constexpr (halves == 2) {
        float up[group];
        copy_front(up, second);
        vectors.apply(1, i, up);
        multiply_gate(p_.activation, v, up);
        drop_front<group>(second);
      } else {
        activate(p_.activation, v);
      }
      drop_front<group>(value);
      WW_UNROLL for (int j = 0; j < group; ++j) value[values - group + j] = v[j];
    }
    isa::sync_warp();  // the buffer is written next
  }

  /// A subtile of C as its elements lie in memory, or zeros; then the buffer is free, and the next
  /// one's turn. Starts the load of the subtile after it.
  WW_DEVICE void fetch_c(int subtile, isa::SharedAddress buffer, std::uint32_t (&c)[c_words]) {
    const int slot = next_;
    turn();
    if (!takes_c(config) || !p_.reads_c) return;
    if (c_by_tma()) {
      if (leader()) load_c(following(subtile));
      isa::mbarrier_wait<isa::Scope::cta>(barriers_ + slot * 8, parity_ >> slot & 1,
                                          {"c_full", slot});
      parity_ ^= 1 << slot;
    } else {
      fetch_elements(coord(subtile), buffer);
    }
    Buffer::read_c(buffer, c);
    isa::sync_warp();
  }

  /// Asks for the vectors of a subtile, which is combined next.
  WW_DEVICE void load_vectors(int subtile) {
    if (loads == VectorLoads::by_turns || subtile >= subtiles || outside(coord(subtile))) return;
    vectors_.load(p_, scales_, place(subtile));
  }

  /// The next buffer's turn.
  WW_DEVICE void turn() { next_ = next_ + 1 == config.buffers ? 0 : next_ + 1; }

  /// The buffer that is used next may be written.
  template <bool Plain>
  WW_DEVICE void wait_for_buffer() const {
    if constexpr (config.store != Store::lanes) {
      // Its latest store has been read; a load of C has waited for it.
      if (Plain || !c_by_tma()) {
        if (leader()) isa::bulk_wait_read<config.buffers - 1>();
        isa::sync_warp();
      }
    } else if constexpr (config.buffers == 1) {
      isa::sync_warp();  // all lanes have read the subtile before
    }
  }

  /// Where its rows begin in the product.
  WW_DEVICE Place place(int subtile) const {
    return {at_.row + config.row_atom_step * order.atom(subtile),
            at_.column + order.column(subtile) * columns, at_.batch};
  }

  WW_DEVICE TileCoord coord(int subtile) const {
    const Place at = place(subtile);
    return config.swap_ab ? TileCoord{at.column, at.row} : TileCoord{at.row, at.column};
  }

  /// The next subtile of the tile that is inside D; `subtiles` or one outside when there is none.
  WW_DEVICE int following(int subtile) const {
    return order.following(subtile, [&](int next) { return outside(coord(next)); });
  }

  /// Rows of D that the tile at hand may write end before it.
  WW_DEVICE int end_row() const { return config.grouped ? end_row_ : p_.d_rows; }

  WW_DEVICE bool outside(const TileCoord& at) const {
    return at.column >= p_.d_columns || at.row >= end_row();
  }

  WW_DEVICE bool c_by_tma() const { return copies_c(config) && p_.c_by_tma; }

  WW_DEVICE static int lane() { return isa::lane_index(); }
  WW_DEVICE static bool leader() { return lane() == 0; }

  /// Starts the load of a subtile of C into the buffer that is used next.
  WW_DEVICE void load_c(int subtile) const {
    if (subtile >= subtiles || outside(coord(subtile))) return;
    const TileCoord at = coord(subtile);
    if constexpr (config.store != Store::lanes)
      isa::bulk_wait_read<0>();  // the store that used the buffer last
    const isa::SharedAddress barrier = barriers_ + next_ * 8;
    isa::mbarrier_arrive_expect(barrier, subtile_bytes(config));
    isa::tensor_load(buffers_ + next_ * buffer_bytes, p_.c, barrier,
                     isa::Coords{at.column, at.row, at_.batch * p_.c_map_batch});
  }

  /// C into the buffer element by element, zeros outside and in columns of others: what lies behind
  /// a group is not read, nor what others write, it may be D.
  WW_DEVICE void fetch_elements(const TileCoord& at, isa::SharedAddress buffer) const {
    const isa::GlobalView<const Element> from{static_cast<const Element*>(p_.c_data) +
                                              at_.batch * p_.c_batch};
    WW_NO_UNROLL for (int i = lane(); i < outer * inner; i += 32) {
      const int r = i / inner;
      const int c = i % inner;
      const bool inside =
          at.row + r < end_row() && at.column + c < p_.d_columns && wanted(at, r, c);
      Buffer::element(buffer, r, c)
          .store(0, inside ? from.load((at.row + r) * p_.c_pitch + at.column + c) : Element{});
    }
    isa::sync_warp();
  }

  /// value += beta * C, of the first words of `c`.
  WW_DEVICE void add_c(const std::uint32_t (&c)[c_words], float (&value)[group]) const {
    constexpr int words = sizeof(Element) / 2;  // of a pair
    WW_UNROLL for (int i = 0; i < group; i += 2) {
      const isa::Pair pair = isa::unpack<config.result>(c + i / 2 * words);
      value[i] += p_.beta * pair.low;
      value[i + 1] += p_.beta * pair.high;
    }
  }

  /// The buffer to D.
  template <bool Plain>
  WW_DEVICE void put(const TileCoord& at, isa::SharedAddress buffer) const {
    const bool aligned = Plain || p_.d_aligned;
    if constexpr (config.store != Store::lanes) {
      if (aligned) {
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
    if (aligned) {
      store_vectors(at, buffer);
    } else {
      store_elements(at, buffer);
    }
    if (!Plain && c_by_tma()) {
      // A load of C may follow into this buffer: order our accesses before it.
      isa::fence_proxy_async_shared();
      isa::sync_warp();  // its pieces have been read
    }
  }

  /// Is an element of the buffer among the columns that are complete?
  WW_DEVICE bool wanted(const TileCoord& at, int row, int column) const {
    if constexpr (!config.shares_columns) return true;
    const int c = config.swap_ab ? at.row + row : at.column + column;
    return c >= first_column_ && c < end_column_;
  }

  /// The buffer to global memory, 16 bytes a lane. Buffers alternate, and the next subtile's lanes
  /// meet before the one after it writes to this one again.
  WW_DEVICE void store_vectors(const TileCoord& at, isa::SharedAddress buffer) const {
    constexpr int pieces = subtile_row_bytes(config) / 16;
    constexpr int each = 16 / static_cast<int>(sizeof(Element));
    constexpr int rows = 32 / pieces;  // at once
    static_assert(32 % pieces == 0);
    // Beside scales that are loaded early the main loop has no register for what follows.
    const int me = loads == VectorLoads::early ? isa::forgotten(lane()) : lane();
    const int row = me / pieces;
    const int piece = me % pieces;
    const int c = piece * each;
    Element* const d = static_cast<Element*>(p_.d_data) + at_.batch * p_.d_batch;
    std::int64_t to = (at.row + row) * p_.d_pitch + at.column + c;
    WW_UNROLL for (int first = 0; first < outer; first += rows, to += rows * p_.d_pitch) {
      const int r = row + first;
      if (outer % rows != 0 && r >= outer) break;
      if (at.row + r >= end_row() || at.column + c >= p_.d_columns) continue;
      if (!wanted(at, r, c)) continue;
      const isa::SharedAddress from = Buffer::piece(buffer, row, piece, first);
      if (!config.grouped || at.column + c + each <= p_.d_columns) {
        isa::global_words<4>(d + to).store(0, isa::SharedView<isa::Words<4>>{from}.load());
      } else {  // the last elements of a row, which only groups have
        WW_NO_UNROLL for (int e = 0; at.column + c + e < p_.d_columns; ++e) {
          isa::GlobalView<Element>{d}.store(to + e, isa::SharedView<Element>{from}.load(e));
        }
      }
    }
  }

  /// The buffer to global memory, element by element inside D; neighbours in a row go together.
  WW_DEVICE void store_elements(const TileCoord& at, isa::SharedAddress buffer) const {
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
  std::conditional_t<config.quantises, Quantiser<Tag>, NoQuantiser> quantiser_;
  LateAlpha late_alpha_;  ///< where it is late
  float alpha_ = 1;       ///< of the tile that is written
  float result_scale_ = 1;
  LoadedVectors<Tag> vectors_;  ///< of what is combined next
  Place at_;                    // of the tile at hand
  int end_row_ = 0;
  int first_column_ = 0;
  int end_column_ = 0;
  int next_ = 0;  // the buffer that is used next: only subtiles inside D take turns
  // Bit i: parity of the next load of C into buffer i.
  static constexpr int c_first_parity = pipeline::first_parity(c_full_row(config));
  int parity_ = -c_first_parity;
};

}  // namespace warpwright::kernel
