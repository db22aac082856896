// Copies of four rows by number: tile::gather4 and tile::scatter4. What they move, what they
// signal, and what is found wrong with them.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <random>

#include "tests/draws.h"
#include "tests/model/harness.h"
#include "tests/model/mutants.h"
#include "warpwright/atom/swizzle.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"

namespace warpwright::model {
namespace {

using atom::SmemSwizzle;
using isa::Scope;
using isa::SharedAddress;
using Rows = std::array<int, 4>;

constexpr int columns_there = 128;
constexpr int rows_there = 24;
constexpr std::uint16_t left_alone = 0x5aa5;

// Where column c of row r of a tile lies, in bytes, of a span of `span` bytes.
std::uint32_t place_in_tile(SmemSwizzle swizzle, int span, int r, int c) {
  auto at = static_cast<std::uint32_t>(r * span + 2 * c);
  const std::uint32_t line = at >> 7;
  if (swizzle == SmemSwizzle::b32) at ^= (line & 1) << 4;
  if (swizzle == SmemSwizzle::b64) at ^= (line & 3) << 4;
  if (swizzle == SmemSwizzle::b128) at ^= (line & 7) << 4;
  return at;
}

class RowCopyTest : public testing::Test {
 protected:
  RowCopyTest() {
    for (std::size_t i = 0; i < matrix_.size(); ++i) {
      matrix_[i] = static_cast<std::uint16_t>(i * 7 + 1);
    }
  }

  // A map of `width` columns_there of one row.
  TensorMap map(int width, SmemSwizzle swizzle = SmemSwizzle::none) {
    return map_of({matrix_.data(), rows_there, columns_there, 2, 1, width, swizzle});
  }

  [[nodiscard]] std::uint16_t at(int row, int column) {
    const bool inside = row >= 0 && row < rows_there && column >= 0 && column < columns_there;
    return inside ? matrix_[index(row * columns_there + column)] : std::uint16_t{0};
  }

  Kernel kernel(const std::function<void(SharedAddress)>& body, int ctas = 1) {
    return {{.ctas = ctas, .cluster_size = ctas, .threads = 1, .shared_bytes = 8192},
            [=] {
              const SharedAddress bar = isa::shared_base();
              make_barrier(bar, 1, {"full", 0});
              if (ctas > 1) cluster_sync();
              body(bar);
              if (ctas > 1) cluster_sync();
            },
            {matrix_.allocation("matrix")}};
  }

  // One gather of 64 columns_there to offset 1024, expected and waited for.
  static void gather(const TensorMap& m, SharedAddress bar, int column, const Rows& rows,
                     int bytes = 512) {
    isa::mbarrier_arrive_expect(bar, bytes);
    isa::tensor_gather4_to(0, bar + 1024, m, bar, column, {rows[0], rows[1], rows[2], rows[3]});
    isa::mbarrier_wait<Scope::cta>(bar, 0, {"full"});
  }

  static void fill(SharedAddress at, int bytes) {
    const isa::SharedView<std::uint16_t> view{at};
    for (int i = 0; i < bytes / 2; ++i) view.store(i, static_cast<std::uint16_t>(1000 + i));
  }

  Memory<std::uint16_t> matrix_{index(rows_there * columns_there)};
};

TEST_F(RowCopyTest, GathersTilesOfAnyRows) {
  constexpr unsigned seed = 20261125;
  std::printf("gathers by seed %u\n", seed);
  tests::Draws draw(seed);
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE("tile " + std::to_string(i));
    const auto swizzle = static_cast<SmemSwizzle>(draw(0, 3));
    const int width =
        swizzle == SmemSwizzle::none ? 16 * draw(1, 4) : 8 * draw(1, 1 << swizzle_bits(swizzle));
    const int span = swizzle == SmemSwizzle::none ? 2 * width : 16 << atom::swizzle_bits(swizzle);
    const int fours = draw(1, 4);
    const int column = 8 * draw(-4, 18);
    std::vector<Rows> rows(index(fours));
    for (Rows& four : rows) {
      for (int& row : four) row = draw(-2, rows_there + 1);
    }
    std::vector<std::uint16_t> got(index(fours * 4 * width));
    const TensorMap m = map(width, swizzle);
    const Report report =
        run(kernel([&](SharedAddress bar) {
              const isa::SharedView<std::uint16_t> tile{bar + 1024};
              isa::mbarrier_arrive_expect(bar, fours * 4 * width * 2);
              for (int f = 0; f < fours; ++f) {
                const Rows& r = rows[index(f)];
                isa::tensor_gather4_to(0, tile.address + static_cast<SharedAddress>(f * 4 * span),
                                       m, bar, column, {r[0], r[1], r[2], r[3]});
              }
              isa::mbarrier_wait<Scope::cta>(bar, 0);
              for (int r = 0; r < fours * 4; ++r) {
                for (int c = 0; c < width; ++c) {
                  // The tile starts at 2048 of the window, a multiple of every pattern.
                  got[index(r * width + c)] =
                      tile.load(static_cast<int>(place_in_tile(swizzle, span, r, c) / 2));
                }
              }
            }),
            random_schedule(static_cast<std::uint64_t>(i)));
    ASSERT_TRUE(report.clean()) << report.text();
    for (int r = 0; r < fours * 4; ++r) {
      for (int c = 0; c < width; ++c) {
        ASSERT_EQ(got[index(r * width + c)], at(rows[index(r / 4)][index(r % 4)], column + c))
            << r << ", " << c;
      }
    }
  }
}

TEST_F(RowCopyTest, GathersIntoSeveralCtasAndSignalsInThem) {
  const TensorMap m = map(64, SmemSwizzle::b128);
  const Kernel to_three = kernel(
      [&](SharedAddress bar) {
        const int rank = isa::cluster_rank();
        const bool mine = rank != 2;
        if (mine) isa::mbarrier_arrive_expect(bar, 512);
        if (rank == 1) isa::tensor_gather4_to(0b1011, bar + 1024, m, bar, 64, {5, 40, 3, 0});
        if (!mine) return;
        isa::mbarrier_wait<Scope::cluster>(bar, 0);
        const isa::SharedView<std::uint16_t> tile{bar + 1024};
        EXPECT_EQ(tile.load(0), at(5, 64));
        EXPECT_EQ(tile.load(static_cast<int>(place_in_tile(SmemSwizzle::b128, 128, 1, 9) / 2)), 0);
        EXPECT_EQ(tile.load(static_cast<int>(place_in_tile(SmemSwizzle::b128, 128, 3, 63) / 2)),
                  at(0, 127));
      },
      4);
  expect_clean(to_three);
  // Each bit of the mask that is left out is found.
  int masks = 0;
  for (const Mutation& mutation : mutations(sites_of(to_three))) {
    if (mutation.at != SyncKind::multicast) continue;
    ++masks;
    EXPECT_TRUE(killed(to_three, mutation)) << text(mutation);
  }
  EXPECT_EQ(masks, 3);
}

TEST_F(RowCopyTest, APairSignalsItsEvenCta) {
  const TensorMap m = map(64);
  expect_clean(kernel(
      [&](SharedAddress bar) {
        const int rank = isa::cluster_rank();
        if (rank == 0) isa::mbarrier_arrive_expect(bar, 1024);
        isa::tensor_gather4_to<2>(0, bar + 1024, m, isa::map_rank(bar, 0), 0, {rank, 2, 4, 6});
        if (rank == 0) {
          isa::mbarrier_wait<Scope::cluster>(bar, 0);
          EXPECT_EQ(isa::SharedView<std::uint16_t>{bar + 1024}.load(0), at(0, 0));
        }
      },
      2));
}

TEST_F(RowCopyTest, PaddedElements) {
  // 24 rows of 128 elements of 6 bits: 96 bytes a row.
  Memory<unsigned char> codes(24 * 96);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<unsigned char>(i * 5 + 3);
  TensorMapFields f;
  f.base = reinterpret_cast<std::uintptr_t>(codes.data());
  f.rank = 2;
  f.extents = {128, 24};
  f.strides = {96};
  f.box = {128, 1};
  f.element_bits = 6;
  f.padded = true;
  f.swizzle = SmemSwizzle::b128;
  ASSERT_EQ(invalid(f), std::nullopt);
  const TensorMap m = encode(f);
  const Rows rows = {20, 1, 30, 7};
  Kernel k = kernel([&](SharedAddress bar) {
    gather(m, bar, 0, rows, 4 * 96);
    const isa::SharedView<unsigned char> tile{bar + 1024};
    for (int r = 0; r < 4; ++r) {
      for (int byte = 0; byte < 96; ++byte) {
        auto place = static_cast<std::uint32_t>(r * 128 + byte / 12 * 16 + byte % 12);
        place ^= (place >> 7 & 7) << 4;
        const int row = rows[index(r)];
        const unsigned char want = row < 24 ? codes[index(row * 96 + byte)] : 0;
        ASSERT_EQ(tile.load(static_cast<int>(place)), want) << r << ", " << byte;
      }
    }
  });
  k.memory = {codes.allocation("codes", false)};
  expect_clean(k);
}

TEST_F(RowCopyTest, MapsAndCoordinatesThatThereAreNot) {
  const auto with = [&](const TensorMap& m, int column = 0, SharedAddress offset = 0) {
    return kernel([=](SharedAddress bar) {
      isa::mbarrier_arrive_expect(bar, 512);
      isa::tensor_gather4_to(0, bar + 1024 + offset, m, bar, column, {0, 1, 2, 3});
    });
  };
  const TensorMap good = map(64);
  const TensorMap four_rows = map_of({matrix_.data(), rows_there, columns_there, 2, 4, 64});
  TensorMapFields f = *decode(good);
  f.rank = 1;
  const TensorMap vector = encode(f);
  f = *decode(good);
  f.rank = 3;
  f.extents[2] = f.box[2] = 1;
  f.strides[1] = f.strides[0];
  const TensorMap batch = encode(f);
  const auto told = [](const Kernel& k) { return sentence(k, Check::tensor_map); };
  expect_contains(told(with(four_rows)), "whose box is one row, not one of rank 2 and 4 rows");
  expect_contains(told(with(vector)), "not one of rank 1");
  expect_contains(told(with(batch)), "not one of rank 3");
  expect_contains(told(with(good, 4)), "multiple of 16 bytes, not 4 elements of 2 bytes");
  expect_contains(told(with(good, 0, 64)), "multiple of 128 bytes");
  const Kernel box = kernel([&](SharedAddress bar) {
    isa::tensor_scatter4(four_rows, bar + 1024, 0, {0, 1, 2, 3});
  });
  expect_contains(told(box), "whose box is one row");
}

TEST_F(RowCopyTest, BytesThatAreNotExpected) {
  const TensorMap m = map(64);
  expect_found(kernel([=](SharedAddress bar) {
                 gather(m, bar, 0, {0, 1, 2, 99}, 384);
               }),
               Check::transaction_bytes, Shows::always, {Check::deadlock});
  expect_clean(kernel([=](SharedAddress bar) { gather(m, bar, 0, {0, 1, 2, 99}); }));
}

TEST_F(RowCopyTest, AGatherIsOrderedAsALoadIs) {
  const TensorMap m = map(64);
  const auto over_a_write = [&](bool fence) {
    return kernel([=](SharedAddress bar) {
      fill(bar + 1024, 512);
      if (fence) isa::fence_proxy_async_shared();
      gather(m, bar, 0, {0, 1, 2, 3});
    });
  };
  expect_found(over_a_write(false), Check::missing_proxy_fence);
  expect_clean(over_a_write(true));
  const auto read_too_early = kernel([=](SharedAddress bar) {
    isa::mbarrier_arrive_expect(bar, 512);
    isa::tensor_gather4_to(0, bar + 1024, m, bar, 0, {0, 1, 2, 3});
    (void)isa::SharedView<std::uint16_t>{bar + 1024}.load(255);
    isa::mbarrier_wait<Scope::cta>(bar, 0);
  });
  expect_found(read_too_early, Check::in_flight_access);
  // From global memory it reads its rows and no others.
  const auto of_a_written_row = [&](int row, bool fence) {
    return kernel([this, m, row, fence](SharedAddress bar) {
      isa::GlobalView<std::uint16_t>{matrix_.data()}.store(7 * columns_there + 3, 5);
      if (fence) isa::fence_proxy_async_global();
      gather(m, bar, 0, {6, 8, row, 9});
    });
  };
  expect_found(of_a_written_row(7, false), Check::missing_proxy_fence);
  expect_clean(of_a_written_row(7, true));
  expect_clean(of_a_written_row(5, false));
}

TEST_F(RowCopyTest, MutantsOfAGatherAreKilledOrTheSame) {
  const TensorMap m = map(64);
  const Kernel gathers = kernel([=](SharedAddress bar) {
    fill(bar + 1024, 512);
    isa::fence_proxy_async_shared();
    gather(m, bar, 0, {0, 1, 2, 3});
    (void)isa::SharedView<std::uint16_t>{bar + 1024}.load(255);
  });
  expect_clean(gathers);
  EXPECT_GT(killed_or_same(gathers), 8);
}

// Fills four rows of 64 columns_there and stores them.
void scatter_rows(const TensorMap& m, SharedAddress from, int column, const Rows& rows) {
  isa::tensor_scatter4(m, from, column, {rows[0], rows[1], rows[2], rows[3]});
  isa::bulk_commit();
}

TEST_F(RowCopyTest, ScattersToAnyRows) {
  constexpr unsigned seed = 20261126;
  std::printf("scatters by seed %u\n", seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 30; ++i) {
    SCOPED_TRACE("scatter " + std::to_string(i));
    std::fill_n(matrix_.data(), matrix_.size(), left_alone);
    const SmemSwizzle swizzle = i % 2 == 0 ? SmemSwizzle::none : SmemSwizzle::b128;
    const int column = 8 * static_cast<int>(random() % 18);
    Rows rows{};
    // Four that differ, some of them past the last.
    rows[0] = static_cast<int>(random() % rows_there);
    for (std::size_t r = 1; r < 4; ++r) {
      rows[r] = (rows[r - 1] + 1 + static_cast<int>(random() % 9)) % (rows_there + 16);
    }
    const TensorMap m = map(64, swizzle);
    const Report report = run(
        kernel([=](SharedAddress bar) {
          const SharedAddress from = bar + 1024 + 512 * (i % 3);
          const isa::SharedView<std::uint16_t> all{bar + 1024};
          for (int r = 0; r < 4; ++r) {
            for (int c = 0; c < 64; ++c) {
              // The swizzle goes by the address in the window.
              const std::uint32_t to = place_in_tile(swizzle, 128, 4 * (i % 3) + r, c);
              all.store(static_cast<int>(to / 2), static_cast<std::uint16_t>(1000 + 64 * r + c));
            }
          }
          isa::fence_proxy_async_shared();
          scatter_rows(m, from, column, rows);
          isa::bulk_wait<0>();
        }),
        random_schedule(static_cast<std::uint64_t>(i)));
    ASSERT_TRUE(report.clean()) << report.text();
    for (int row = 0; row < rows_there; ++row) {
      const auto* found = std::find(rows.begin(), rows.end(), row);
      for (int c = 0; c < columns_there; ++c) {
        const int x = c - column;
        const auto r = static_cast<int>(found - rows.begin());
        const bool written = found != rows.end() && x >= 0 && x < 64;
        ASSERT_EQ(at(row, c), written ? 1000 + 64 * r + x : left_alone) << row << ", " << c;
      }
    }
  }
}

TEST_F(RowCopyTest, ScattersThatAreWrong) {
  const TensorMap m = map(64);
  const auto with = [&](int column, const Rows& rows) {
    return kernel([=](SharedAddress bar) {
      fill(bar + 1024, 512);
      isa::fence_proxy_async_shared();
      scatter_rows(m, bar + 1024, column, rows);
      isa::bulk_wait<0>();
    });
  };
  expect_clean(with(0, {3, 2, 1, 0}));
  expect_clean(with(0, {3, 99, 1, 99}));  // dropped, both of them
  expect_found(with(0, {3, 2, 1, 3}), Check::data_race);
  expect_contains(sentence(with(0, {3, 2, 2, 0}), Check::data_race), "names row 2 twice");
  expect_contains(sentence(with(0, {3, 2, -1, 0}), Check::tensor_map),
                  "A row to be left out is one past the last");
  expect_found(with(-8, {3, 2, 1, 0}), Check::tensor_map);
}

TEST_F(RowCopyTest, AScatterIsOrderedAsAStoreIs) {
  const TensorMap m = map(64);
  enum class Flaw { none, no_fence, no_commit, no_wait, early_write, part_written };
  const auto with = [&](Flaw flaw) {
    return kernel([=](SharedAddress bar) {
      fill(bar + 1024, flaw == Flaw::part_written ? 496 : 512);
      if (flaw != Flaw::no_fence) isa::fence_proxy_async_shared();
      isa::tensor_scatter4(m, bar + 1024, 0, {9, 4, 11, 2});
      if (flaw != Flaw::no_commit) isa::bulk_commit();
      if (flaw == Flaw::early_write) fill(bar + 1024, 2);
      if (flaw != Flaw::no_wait) isa::bulk_wait_read<0>();
    });
  };
  expect_clean(with(Flaw::none));
  expect_found(with(Flaw::no_fence), Check::missing_proxy_fence);
  expect_found(with(Flaw::no_commit), Check::undrained_exit);
  expect_found(with(Flaw::no_wait), Check::undrained_exit, Shows::unless_eager);
  expect_found(with(Flaw::early_write), Check::in_flight_access, Shows::unless_eager);
  expect_found(with(Flaw::part_written), Check::uninitialised_read);
  EXPECT_GT(killed_or_same(with(Flaw::none)), 3);
  // Two threads scatter to one row, and nothing orders them.
  Kernel two = kernel([](SharedAddress) {});
  two.shape.threads = 2;
  const auto both = [&](int row) {
    two.body = [=] {
      const SharedAddress from = isa::shared_base() + 1024 + 512 * isa::thread_index();
      fill(from, 512);
      isa::fence_proxy_async_shared();
      const int first = 4 * isa::thread_index();
      scatter_rows(m, from, 0,
                   {first, first + 1, first + 2, isa::thread_index() == 0 ? row : first + 3});
      isa::bulk_wait<0>();
    };
    return two;
  };
  expect_clean(both(3));
  expect_found(both(5), Check::in_flight_access);
}

}  // namespace
}  // namespace warpwright::model
