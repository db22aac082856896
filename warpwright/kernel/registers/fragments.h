// What a warp of the register kernels holds: two sets of fragments of A and B, of which one is
// loaded (by ldmatrix, or by plain loads for Volta's quad pairs) while mma.sync multiplies the
// other, with the scales of their blocks where there are some, and the sums. A k_block has the
// set of its parity. Whoever filled the stages, rows lie in them as TMA would leave
// them.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "warpwright/atom/tiled_mma.h"
#include "warpwright/atom/wgmma.h"
#include "warpwright/isa/call.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/mma.h"
#include "warpwright/isa/numeric.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/kernel/registers/config.h"
#include "warpwright/kernel/registers/places.h"

namespace warpwright::kernel {

/// The registers of MMA `i` of those whose registers stand one behind the other in `of`.
template <int count, int all>
WW_DEVICE isa::Words<count> part_of(const std::uint32_t (&of)[all], int i) {
  isa::Words<count> part;
  WW_UNROLL
  for (int j = 0; j < count; ++j) part.word[j] = of[i * count + j];
  return part;
}

/// visit(i) for 0 to count - 1, each a type of its own: std::integral_constant.
template <int count, class Visit>
WW_DEVICE void for_each_constant(const Visit& visit) {
  [&]<int... i>(std::integer_sequence<int, i...> /*indices*/) {
    (visit(std::integral_constant<int, i>()), ...);
  }
  (std::make_integer_sequence<int, count>());
}

/// Where the rows of a warp lie in a stage.
template <class Tag>
class StageRows {
 protected:
  static constexpr RegisterConfig config = Tag::config;
  static constexpr atom::Mma mma = config.mma;
  static constexpr int kRowBytes = row_bytes(config);
  static constexpr int kMTiles = m_tiles(config);
  static constexpr int kNTiles = n_tiles(config);
  static constexpr std::uint32_t kTileA = static_cast<std::uint32_t>(config.tile_m * kRowBytes);

  /// The first of the warp's rows of A, and of B.
  WW_DEVICE static int first_a(int warp) {
    return warp / config.warps_n * (config.tile_m / config.warps_m);
  }
  WW_DEVICE static int first_b(int warp) {
    return warp % config.warps_n * (config.tile_n / config.warps_n);
  }
  WW_DEVICE static std::uint32_t place(int row) {
    return static_cast<std::uint32_t>(row * kRowBytes);
  }
  // Which 16 bytes of a row's first 32 are meant, as the swizzle turns them: later k_blocks differ
  // from it in the bits above.
  WW_DEVICE static std::uint32_t half(int row, int chunk) {
    const std::uint32_t at = place(row);
    return atom::apply_swizzle(swizzle(config), at + static_cast<std::uint32_t>(chunk * 16)) - at;
  }

 public:
  /// For a warp: its MMAs along M and N (for quad pairs: four of them at once), and the registers
  /// of each.
  using Sums = isa::MmaSum<mma>[kMTiles][kNTiles][atom::mma_registers_c(mma)];

 protected:
  /// 16 rows of 32 bytes of a stage by one ldmatrix, as the MMA takes elements of that type: those
  /// that are padded in the stage with a byte each.
  template <DType type>
  WW_DEVICE static void load_rows(isa::SharedAddress row, std::uint32_t (&to)[4],
                                  isa::Site site = isa::Site::here()) {
    if constexpr (is_padded(config, type)) {
      isa::load_matrix_padded<4, numeric::bits(type)>(row, to, site);
      constexpr int up = atom::register_shift(mma, type);
      if constexpr (up > 0) {
        WW_UNROLL
        for (std::uint32_t& word : to) word <<= up;
      }
    } else {
      isa::load_matrix<4>(row, to, site);
    }
  }
  /// sums += the products of a k_block's fragments, the registers of its MMAs one behind the other.
  /// `scales` are none, or one who has those of<m, n>() of an MMA.
  template <int a_words, int b_words, class... Scales>
  WW_DEVICE static void add_products(Sums& sums, const std::uint32_t (&a)[kMTiles][a_words],
                                     const std::uint32_t (&b)[kNTiles][b_words], isa::Site site,
                                     const Scales&... scales) {
    const isa::Call call(site);
    constexpr int a_count = atom::mma_registers_a(mma);
    constexpr int b_count = atom::mma_registers_b(mma);
    WW_UNROLL
    for (int i = 0; i < mmas_a_k_block(config); ++i) {
      for_each_constant<kMTiles>([&](auto m) {
        for_each_constant<kNTiles>([&](auto n) {
          isa::mma_sync<mma>(sums[m][n], part_of<a_count>(a[m], i).word,
                             part_of<b_count>(b[n], i).word, scales.template of<m(), n()>()...);
        });
      });
    }
  }
};

/// Where ldmatrix reads an operand's rows, of `matrix_places`.
template <layout::Layout places>
struct MatrixPlaces {
  static constexpr layout::Layout kRows = layout::component(layout::mode(places, 0), 0);
  static constexpr layout::Layout kWords = layout::component(layout::mode(places, 0), 1);
  static constexpr layout::Layout kMatrices = layout::component(layout::mode(places, 1), 0);
  static constexpr layout::Layout kBlocks = layout::component(layout::mode(places, 2), 1);

  /// The row to which a thread points, and which 16 bytes of its first 32.
  WW_DEVICE static int row(int thread) { return layout::offset_of<kRows>(thread); }
  WW_DEVICE static int chunk(int thread) { return layout::offset_of<kWords>(thread) / 4; }
  /// Rows from there to ldmatrix `i`, and bytes to a k_block.
  WW_DEVICE static int rows_to(int i) { return layout::offset_of<kMatrices>(i); }
  WW_DEVICE static std::uint32_t bytes_to(int k_block) {
    return static_cast<std::uint32_t>(layout::offset_of<kBlocks>(k_block) * 4);
  }
};

/// The fragments of one warp of those that multiply a tile of `Tag::config`, by m16n8 and ldmatrix.
template <class Tag>
class MatrixFragments : public StageRows<Tag> {
  using Base = StageRows<Tag>;
  using PlacesA = MatrixPlaces<matrix_places_a(Tag::config)>;
  using PlacesB = MatrixPlaces<matrix_places_b(Tag::config)>;

 protected:
  using Base::mma, Base::kMTiles, Base::kNTiles, Base::kTileA;
  using Base::place, Base::half;

 public:
  using typename Base::Sums;

  /// `thread` counts those that multiply one tile.
  WW_DEVICE explicit MatrixFragments(int thread) {
    const int row_a = PlacesA::row(thread);
    const int row_b = PlacesB::row(thread);
    place_a_ = place(row_a);
    place_b_ = place(row_b) + kTileA;
    half_a_ = half(row_a, PlacesA::chunk(thread));
    half_b_ = half(row_b, PlacesB::chunk(thread));
  }

  /// Fragments of k_block `k_block` of the stage at `stage`. All lanes call it.
  WW_DEVICE void load(isa::SharedAddress stage, int k_block, isa::Site site = isa::Site::here()) {
    const isa::Call call(site);
    const int set = k_block % 2;
    WW_UNROLL
    for (int m = 0; m < kMTiles; ++m) {
      Base::template load_rows<mma.a>(
          stage + place_a_ + place(PlacesA::rows_to(m)) + (half_a_ ^ PlacesA::bytes_to(k_block)),
          a_[set][m]);
    }
    WW_UNROLL
    for (int n = 0; n < kNTiles; n += 2) {
      std::uint32_t pair[4];
      Base::template load_rows<mma.b>(stage + place_b_ + place(PlacesB::rows_to(n / 2)) +
                                          (half_b_ ^ PlacesB::bytes_to(k_block)),
                                      pair);
      b_[set][n][0] = pair[0];
      b_[set][n][1] = pair[1];
      b_[set][n + 1][0] = pair[2];
      b_[set][n + 1][1] = pair[3];
    }
  }

  /// sums += the products of k_block `k_block`. All lanes call it.
  WW_DEVICE void multiply(Sums& sums, int k_block, isa::Site site = isa::Site::here()) const {
    multiply_scaled(sums, k_block, site);
  }

  /// Every lane has the sums that the epilogue looks for in it.
  WW_DEVICE static void finish(Sums& /*sums*/) {}

 protected:
  /// The same, and of whoever has the scales of the k_block.
  template <class... Scales>
  WW_DEVICE void multiply_scaled(Sums& sums, int k_block, isa::Site site,
                                 const Scales&... scales) const {
    Base::add_products(sums, a_[k_block % 2], b_[k_block % 2], site, scales...);
  }

 private:
  std::uint32_t place_a_ = 0;
  std::uint32_t place_b_ = 0;
  std::uint32_t half_a_ = 0;
  std::uint32_t half_b_ = 0;
  std::uint32_t a_[2][kMTiles][4];
  std::uint32_t b_[2][kNTiles][2];
};

/// The same of block-scaled operands: with their scales, four of a row (a column) in a register,
/// those of 32 rows of A or columns of B in the registers of a warp. There is one set of these,
/// which goes on to the next k_block when the MMAs that take the last are on their way.
template <class Tag>
class ScaledFragments : public MatrixFragments<Tag> {
  using Base = MatrixFragments<Tag>;
  using Base::config, Base::mma, Base::kMTiles, Base::kNTiles;
  static constexpr int kWordsA = kMTiles / 2;
  static constexpr int kWordsB = kNTiles / 4;
  static constexpr std::uint32_t kSfA =
      static_cast<std::uint32_t>((config.tile_m + config.tile_n) * row_bytes(config));
  static constexpr std::uint32_t kSfB =
      kSfA + static_cast<std::uint32_t>(scale_bytes(config, config.tile_m));
  static_assert(mmas_a_k_block(config) == 1);

 public:
  using typename Base::Sums;

  /// `thread` counts those that multiply one tile.
  WW_DEVICE explicit ScaledFragments(int thread) : Base(thread) {
    const int lane = thread % 32;
    const int warp = thread / 32;
    // Who holds whose scales, (lane % 4, lane / 4) -> row: (4,8):(8,1). So lanes with lane % 4 of
    // 0 and 1 serve the first 16 rows of A, those with 2 and 3 the next 16. Columns of B are the
    // same: lane % 4 says which eight of the 32, lane / 4 which of these.
    const int row = lane / 4 + lane % 4 * 8;
    place_a_ =
        kSfA + static_cast<std::uint32_t>(block_scales::row_in_tile(Base::first_a(warp) + row));
    place_b_ =
        kSfB + static_cast<std::uint32_t>(block_scales::row_in_tile(Base::first_b(warp) + row));
  }

  /// Scales of k_block `k_block` of the stage at `stage`: those behind the last k_block's, or new
  /// words of them. All lanes call it.
  WW_DEVICE void load_scales(isa::SharedAddress stage, int k_block) {
    constexpr int taken = atom::mma_scales(mma);
    const int first = k_block * taken;
    if constexpr (taken < block_scales::kTileColumns) {
      if (first % block_scales::kTileColumns != 0) {
        WW_UNROLL
        for (std::uint32_t& word : a_.word) word >>= 8 * taken;
        WW_UNROLL
        for (std::uint32_t& word : b_.word) word >>= 8 * taken;
        return;
      }
    }
    const isa::SharedAddress tile =
        stage +
        static_cast<std::uint32_t>(first / block_scales::kTileColumns * block_scales::kTileBytes);
    a_ = isa::SharedView<isa::Words<kWordsA>>{tile + place_a_}.load();
    b_ = isa::SharedView<isa::Words<kWordsB>>{tile + place_b_}.load();
  }

  /// sums += the products of k_block `k_block`.
  WW_DEVICE void multiply(Sums& sums, int k_block, isa::Site site = isa::Site::here()) const {
    Base::multiply_scaled(sums, k_block, site, Scales{a_, b_});
  }

 private:
  /// A k_block's, in the lowest bytes of each word, as one MMA after the other takes them. (A
  /// choice of bytes or lanes costs a uniform register each: those of four k_blocks would leave too
  /// few.)
  struct Scales {
    const isa::Words<kWordsA>& a;
    const isa::Words<kWordsB>& b;
    template <int m, int n>
    WW_DEVICE auto of() const {
      return isa::MmaScales<atom::MmaScaleSource{0, m % 2, 0, n % 4}>{a.word[m / 2], b.word[n / 4]};
    }
  };

  std::uint32_t place_a_ = 0;
  std::uint32_t place_b_ = 0;
  isa::Words<kWordsA> a_;
  isa::Words<kWordsB> b_;
};

/// Volta's quad pairs, two along M and two along N: 16 x 16 of a warp at once. Rows and columns are
/// dealt so that the eight sums of a lane are the four of two m16n8 side by side, those of the lane
/// whose number has bits 0 and 2 exchanged.
constexpr atom::TiledMma quad_pairs(const atom::Mma& mma) {
  using layout::make_layout;
  using layout::tuple;
  return atom::make_tiled_mma(mma, make_layout(tuple(2, 2), tuple(2, 1)),
                              layout::Tiler(make_layout(tuple(2, 2, 2, 2), tuple(1, 8, 4, 2)),
                                            make_layout(tuple(2, 2, 2, 2), tuple(1, 4, 8, 2))));
}
inline constexpr layout::Layout exchanged_lanes =
    layout::make_layout(layout::tuple(2, 2, 2, 4), layout::tuple(4, 2, 1, 8));

constexpr bool sums_are_in_exchanged_lanes(const layout::Layout& sums) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int v = 0; v < 8; ++v) {
      const int row = atom::c_row(lane, v % 4);
      const int column = atom::c_col(lane, v % 4) + v / 4 * 8;
      if (sums(exchanged_lanes(lane), v) != row + 16 * column) return false;
    }
  }
  return true;
}
/// Is value v of a lane, of 16 rows, v elements behind the first of its row?
constexpr bool values_are_along_k(const layout::Layout& operand) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int v = 0; v < 4; ++v) {
      if (operand(lane, v) != operand(lane, 0) % 16 + 16 * v) return false;
    }
  }
  return true;
}

/// Fragments of m8n8k4 by plain loads: a lane has the rows of its quad pair, 16 bytes of two MMAs
/// at a time. (For A four of the eight lanes that load at once read the rows of the others, and the
/// four rows meet in banks two by two; sm_70 has no ldmatrix.)
template <class Tag>
class QuadPairFragments : public StageRows<Tag> {
  using Base = StageRows<Tag>;
  using Base::mma, Base::kMTiles, Base::kNTiles, Base::kTileA;
  using Base::place, Base::half;
  static constexpr layout::Layout kPlacesA = quad_pairs(mma).layout_a_tv();
  static constexpr layout::Layout kPlacesB = quad_pairs(mma).layout_b_tv();
  static_assert(values_are_along_k(kPlacesA) && values_are_along_k(kPlacesB));
  static_assert(sums_are_in_exchanged_lanes(quad_pairs(mma).layout_c_tv()));

 public:
  using typename Base::Sums;

  /// `thread` counts those that multiply one tile.
  WW_DEVICE explicit QuadPairFragments(int thread) {
    const int row_a = Base::first_a(thread / 32) + layout::offset_of<kPlacesA>(thread % 32, 0);
    const int row_b = Base::first_b(thread / 32) + layout::offset_of<kPlacesB>(thread % 32, 0);
    place_a_ = place(row_a);
    place_b_ = place(row_b) + kTileA;
    half_a_ = half(row_a, 0);
    half_b_ = half(row_b, 0);
  }

  /// Fragments of k_block `k_block` of the stage at `stage`. Whoever calls it: these are plain
  /// loads.
  WW_DEVICE void load(isa::SharedAddress stage, int k_block, isa::Site /*site*/ = {}) {
    WW_UNROLL
    for (int m = 0; m < kMTiles; ++m) {
      load_row(stage + place_a_ + place(16 * m), half_a_, k_block, a_[k_block % 2][m]);
    }
    WW_UNROLL
    for (int n = 0; n < kNTiles; ++n) {
      load_row(stage + place_b_ + place(16 * n), half_b_, k_block, b_[k_block % 2][n]);
    }
  }

  /// sums += the products of k_block `k_block`.
  WW_DEVICE void multiply(Sums& sums, int k_block, isa::Site site = isa::Site::here()) const {
    Base::add_products(sums, a_[k_block % 2], b_[k_block % 2], site);
  }

  /// Gives every lane the sums that the epilogue looks for in it. All lanes call it.
  WW_DEVICE static void finish(Sums& sums) {
    const int from = layout::offset_of<exchanged_lanes>(isa::lane_index());
    WW_UNROLL
    for (auto& of_rows : sums) {
      WW_UNROLL
      for (auto& of_mma : of_rows) {
        WW_UNROLL
        for (float& sum : of_mma) {
          sum = isa::float_of(isa::shuffle(isa::float_bits(sum), from));
        }
      }
    }
  }

 private:
  WW_DEVICE static void load_row(isa::SharedAddress row, std::uint32_t turned, int k_block,
                                 std::uint32_t (&to)[8]) {
    WW_UNROLL
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t k = static_cast<std::uint32_t>(k_block * k_block_bytes + i * 16);
      const isa::Words<4> words = isa::SharedView<isa::Words<4>>{row + (turned ^ k)}.load();
      WW_UNROLL
      for (int j = 0; j < 4; ++j) to[4 * i + j] = words.word[j];
    }
  }

  std::uint32_t place_a_ = 0;
  std::uint32_t place_b_ = 0;
  std::uint32_t half_a_ = 0;
  std::uint32_t half_b_ = 0;
  std::uint32_t a_[2][kMTiles][8];
  std::uint32_t b_[2][kNTiles][8];
};

/// Those of the configuration's MMA.
template <class Tag>
using RegisterFragments = std::conditional_t<
    is_quad_pair(Tag::config), QuadPairFragments<Tag>,
    std::conditional_t<is_block_scaled(Tag::config), ScaledFragments<Tag>, MatrixFragments<Tag>>>;

/// A warp's sums as the epilogue has them: floats, those of 16 rows in one line.
template <class Tag>
struct WarpSums {
  static constexpr int each = atom::mma_registers_c(Tag::config.mma);
  struct Rows {
    float (&mmas)[n_tiles(Tag::config)][each];
    WW_DEVICE float& operator[](int i) const { return mmas[i / each][i % each]; }
  };
  WW_DEVICE Rows operator[](int m) { return {mmas[m]}; }

  /// Integers as floats.
  WW_DEVICE void convert(const typename RegisterFragments<Tag>::Sums& from) {
    WW_UNROLL
    for (int m = 0; m < m_tiles(Tag::config); ++m) {
      WW_UNROLL
      for (int n = 0; n < n_tiles(Tag::config); ++n) {
        WW_UNROLL
        for (int i = 0; i < each; ++i) mmas[m][n][i] = static_cast<float>(from[m][n][i]);
      }
    }
  }

  float mmas[m_tiles(Tag::config)][n_tiles(Tag::config)][each] = {};
};

}  // namespace warpwright::kernel
