// Products of 4- and 6-bit operands from global memory to D: loaded through tensor maps that pad
// them, multiplied by tcgen05.mma of kind f8f6f4, and compared with a product in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "tests/model/tensor_memory.h"
#include "tests/must.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::model {
namespace {

using atom::Major;
using atom::OperandTile;
using atom::SmemSwizzle;
using atom::UmmaKind;
using isa::Scope;
using isa::SharedAddress;
using isa::TmemAddress;

constexpr int depth_multiplied = 256;

// A matrix rows x depth of random codes in global memory, dense, along K or along the rows.
struct Dense {
  Dense(DType t, int row_count, Major m, unsigned seed)
      : type(t),
        rows(row_count),
        major(m),
        line_bytes((m == Major::k ? depth_multiplied : row_count) * numeric::bits(t) / 8),
        bytes(index((m == Major::k ? row_count : depth_multiplied) * line_bytes)) {
    std::mt19937 random(seed);
    const int bits = numeric::bits(type);
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < depth_multiplied; ++k) {
        std::uint64_t code = random() & ((1U << bits) - 1);
        if (!std::isfinite(numeric::to_double(type, code))) code = 1;
        const int along = major == Major::k ? k : row;
        const int line = major == Major::k ? row : k;
        for (int b = 0; b < bits; ++b) {
          const int at = along * bits + b;
          unsigned char& byte = bytes[index(line * line_bytes + at / 8)];
          byte = static_cast<unsigned char>(byte | (code >> b & 1) << at % 8);
        }
        values.push_back(numeric::to_double(type, code));
      }
    }
  }

  TensorMap map(const OperandTile& tile) {
    TensorMapFields f;
    f.base = reinterpret_cast<std::uintptr_t>(bytes.data());
    f.rank = 2;
    f.extents = {static_cast<std::uint64_t>(major == Major::k ? depth_multiplied : rows),
                 static_cast<std::uint64_t>(major == Major::k ? rows : depth_multiplied)};
    f.strides = {static_cast<std::uint64_t>(line_bytes)};
    // Without a swizzle a line of 128 elements is no span of 16 bytes, but must be loaded as one.
    const int inner = tile.padded ? 128 : atom::span_elements(tile);
    f.box = {static_cast<std::uint16_t>(inner), static_cast<std::uint16_t>(atom::box_outer(tile))};
    f.element_bits = static_cast<std::uint8_t>(tile.element_bits);
    f.padded = tile.padded;
    f.swizzle = tile.swizzle;
    EXPECT_EQ(invalid(f), std::nullopt);
    return encode(f);
  }

  DType type;
  int rows;
  Major major;
  int line_bytes;
  Memory<unsigned char> bytes;
  std::vector<double> values;  // row * depth + k
};

struct Stage {
  SharedAddress full;
  SharedAddress done;
  SharedAddress word;
  SharedAddress a;
  SharedAddress b;
};

// Loads a whole tile, box by box, whose first row is `row`.
template <int Ctas>
void load_tile(const OperandTile& tile, const TensorMap& map, SharedAddress to, SharedAddress full,
               int row) {
  for (int box = 0; box < atom::box_count(tile); ++box) {
    const int along = box * atom::span_elements(tile);
    const auto at = to + static_cast<SharedAddress>(box * atom::box_bytes(tile));
    const isa::Coords<2> k_major{along, row};
    const isa::Coords<2> mn_major{row + along, 0};
    isa::tensor_load<Ctas>(at, map, full, tile.major == Major::k ? k_major : mn_major);
  }
}

template <int Ctas>
TmemAddress begin(const Stage& s) {
  return take_tmem<Ctas>(s.word, 256, [&] {
    isa::mbarrier_init(s.full, 1, {"full"});
    isa::mbarrier_init(s.done, 1, {"done"});
  });
}

template <int Ctas>
void multiply_tiles(const atom::UmmaAtom& atom, const OperandTile& ta, const OperandTile& tb,
                    const Stage& s, TmemAddress d) {
  const std::uint64_t da = atom::encode_umma(atom::descriptor(ta, s.a));
  const std::uint64_t db = atom::encode_umma(atom::descriptor(tb, s.b));
  for (int step = 0; step < atom::k_block_count(ta); ++step) {
    isa::tcgen05_mma<UmmaKind::f8f6f4, Ctas>(d, atom::advance(da, atom::k_block_offset(ta, step)),
                                             atom::advance(db, atom::k_block_offset(tb, step)),
                                             atom::encode_instruction(atom), step > 0);
  }
  if constexpr (Ctas == 2) {
    isa::tcgen05_commit_multicast<Ctas>(s.done, 3);
  } else {
    isa::tcgen05_commit<Ctas>(s.done);
  }
}

template <int Ctas>
void finish(const Stage& s, const atom::UmmaAtom& atom, TmemAddress d, std::vector<float>& out) {
  isa::mbarrier_wait<Scope::cta>(s.done, 0, {"done"});
  isa::tcgen05_fence_after_sync();
  read_lanes(d, atom.n, out.data() + index(isa::cluster_rank() * 128 * atom.n), atom.n);
  give_tmem<Ctas>(d, 256);
}

// The product that one CTA, or a pair, makes of operands of these types.
template <int Ctas>
struct Product {
  Product(DType type_a, DType type_b, Major major_a = Major::k, unsigned seed = 1)
      : atom(atom::umma_atom(type_a, type_b, DType::f32, 128 * Ctas, 64, Ctas == 2)),
        ta(atom::umma_tile(UmmaKind::f8f6f4, type_a, 128, depth_multiplied, major_a)),
        tb(atom::umma_tile(UmmaKind::f8f6f4, type_b, 64 / Ctas, depth_multiplied)),
        a(type_a, 128 * Ctas, major_a, seed),
        b(type_b, 64, Major::k, seed + 1000) {
    atom.a_major = major_a;
  }

  Kernel kernel(int bytes) {
    const TensorMap map_a = a.map(ta);
    const TensorMap map_b = b.map(tb);
    return {{.ctas = Ctas,
             .cluster_size = Ctas,
             .threads = 128,
             .shared_bytes = 1024 + atom::tile_bytes(ta) + atom::tile_bytes(tb)},
            [this, map_a, map_b, bytes] {
              const SharedAddress base = isa::shared_base();
              const Stage s{base, base + 8, base + 16, base + 1024,
                            base + 1024 + static_cast<SharedAddress>(atom::tile_bytes(ta))};
              const TmemAddress d = begin<Ctas>(s);
              const int rank = isa::cluster_rank();
              if (isa::thread_index() == 0) {
                const SharedAddress full = Ctas == 2 ? isa::map_rank(s.full, 0) : s.full;
                if (rank == 0) isa::mbarrier_arrive_expect(s.full, bytes);
                load_tile<Ctas>(ta, map_a, s.a, full, 128 * rank);
                load_tile<Ctas>(tb, map_b, s.b, full, tb.rows * rank);
                if (rank == 0) {
                  isa::mbarrier_wait<Scope::cta>(s.full, 0, {"full"});
                  multiply_tiles<Ctas>(atom, ta, tb, s, d);
                }
              }
              finish<Ctas>(s, atom, d, got);
            },
            {a.bytes.allocation("A", false), b.bytes.allocation("B", false)}};
  }

  [[nodiscard]] int loaded() const {
    return Ctas * (atom::loaded_bytes(ta) + atom::loaded_bytes(tb));
  }

  void expect_right(const Options& how) {
    must_be_clean(run(kernel(loaded()), how));
    expect_product();
  }

  void expect_product() {
    int wrong = 0;
    for (int i = 0; i < atom.m; ++i) {
      for (int j = 0; j < atom.n; ++j) {
        double sum = 0;
        double size = 0;
        for (int k = 0; k < depth_multiplied; ++k) {
          const double term =
              a.values[index(i * depth_multiplied + k)] * b.values[index(j * depth_multiplied + k)];
          sum += term;
          size += std::abs(term);
        }
        const double error = std::abs(sum - got[index(i * atom.n + j)]);
        if (!(error <= size * depth_multiplied * 0x1p-24)) ++wrong;
      }
    }
    EXPECT_EQ(wrong, 0) << "of " << atom.m * atom.n << " elements";
  }

  atom::UmmaAtom atom;
  OperandTile ta;
  OperandTile tb;
  Dense a;
  Dense b;
  std::vector<float> got = std::vector<float>(index(128 * Ctas * 64), -1.0F);
};

TEST(PaddedProductTest, EveryMixOfTypesIsRight) {
  constexpr unsigned seed = 20261127;
  std::printf("operands by seed %u\n", seed);
  unsigned turn = 0;
  const DType types[] = {DType::e4m3, DType::e5m2, DType::e2m3, DType::e3m2, DType::e2m1};
  for (const DType type_a : types) {
    for (const DType type_b : types) {
      SCOPED_TRACE(std::string(numeric::name(type_a)) + " x " + std::string(numeric::name(type_b)));
      const Options how = schedules()[turn % schedules().size()];
      if (turn++ % 3 == 0) {
        Product<2>(type_a, type_b, Major::k, seed + turn).expect_right(how);
      } else {
        Product<1>(type_a, type_b, Major::k, seed + turn).expect_right(how);
      }
    }
  }
}

TEST(PaddedProductTest, RowsOfAMayBeContiguous) {
  for (const DType type : {DType::e2m3, DType::e2m1}) {
    SCOPED_TRACE(numeric::name(type));
    Product<1>(type, DType::e4m3, Major::mn).expect_right(random_schedule(3));
  }
}

TEST(PaddedProductTest, CountsTheBytesOfGlobalMemory) {
  Product<1> p(DType::e3m2, DType::e2m1);
  EXPECT_EQ(p.loaded(), 128 * 256 * 6 / 8 + 64 * 256 / 2);
  expect_clean(p.kernel(p.loaded()));
  // Those of shared memory never come.
  expect_found(p.kernel(atom::tile_bytes(p.ta) + atom::tile_bytes(p.tb)), Check::transaction_bytes,
               Shows::always, {Check::deadlock});
}

// Without a swizzle the tensor core wants 16-byte pieces of 8 rows together, but TMA brings 128
// elements of a row. Threads carry the pieces over, and write no padding.
TEST(PaddedProductTest, WithoutASwizzleThreadsCarryThePieces) {
  for (const DType type : {DType::e2m3, DType::e3m2, DType::e2m1}) {
    SCOPED_TRACE(numeric::name(type));
    Product<1> p(type, type);
    OperandTile rows_a = p.ta;
    OperandTile rows_b = p.tb;
    rows_a.swizzle = rows_b.swizzle = SmemSwizzle::none;
    const TensorMap maps[] = {p.a.map(rows_a), p.b.map(rows_b)};
    const OperandTile* const tiles[] = {&rows_a, &rows_b};
    Kernel k = p.kernel(p.loaded());
    const int both = atom::tile_bytes(p.ta) + atom::tile_bytes(p.tb);
    k.shape.shared_bytes = 1024 + 2 * both;
    k.body = [&] {
      const SharedAddress base = isa::shared_base();
      const auto b_behind_a = static_cast<SharedAddress>(atom::tile_bytes(p.ta));
      const Stage s{base, base + 8, base + 16, base + 1024, base + 1024 + b_behind_a};
      const SharedAddress loaded = s.a + static_cast<SharedAddress>(both);
      const TmemAddress d = begin<1>(s);
      if (isa::thread_index() == 0) {
        isa::mbarrier_arrive_expect(s.full, p.loaded());
        for (const int of_b : {0, 1}) {
          for (int half = 0; half < 2; ++half) {
            const int rows = tiles[of_b]->rows;
            const auto at = loaded + (of_b == 1 ? b_behind_a : 0) +
                            static_cast<SharedAddress>(half * rows * 128);
            isa::tensor_load(at, maps[of_b], s.full, isa::Coords{128 * half, 0});
          }
        }
      }
      isa::mbarrier_wait<Scope::cta>(s.full, 0, {"full"});
      for (const int of_b : {0, 1}) {
        const OperandTile& tile = *tiles[of_b];
        const SharedAddress from = loaded + (of_b == 1 ? b_behind_a : 0);
        const SharedAddress to = of_b == 1 ? s.b : s.a;
        for (int i = isa::thread_index(); i < tile.rows * 16; i += 128) {
          const int row = i / 16;
          const int piece = i % 16;  // of 16 elements
          const auto source = from + static_cast<SharedAddress>(piece / 8 * tile.rows * 128 +
                                                                row * 128 + piece % 8 * 16);
          const auto target = to + atom::tile_offset(tile, row, 16 * piece);
          for (int word = 0; word < tile.element_bits / 2; ++word) {
            isa::SharedView<std::uint32_t>{target}.store(
                word, isa::SharedView<std::uint32_t>{source}.load(word));
          }
        }
      }
      isa::fence_proxy_async_shared();
      isa::sync_threads(128);
      if (isa::thread_index() == 0) multiply_tiles<1>(p.atom, rows_a, rows_b, s, d);
      finish<1>(s, p.atom, d, p.got);
    };
    must_be_clean(run(k, random_schedule(5)));
    p.expect_product();
  }
}

}  // namespace
}  // namespace warpwright::model
