// tcgen05 against a naive product: every kind, height, group, major and swizzle, read back with
// both shapes of tcgen05.ld; stores, and f16 accumulators.
#include <gtest/gtest.h>

#include "tests/campaign.h"
#include "tests/model/harness.h"
#include "tests/model/operands.h"
#include "tests/model/tensor_memory.h"

namespace warpwright::model {
namespace {

using atom::Major;
using atom::SmemSwizzle;
using isa::Scope;
using isa::SharedAddress;
using isa::TmemAddress;

struct Problem {
  atom::UmmaAtom atom;
  SmemSwizzle swizzle = SmemSwizzle::b128;
  isa::TmemShape shape = isa::TmemShape::lanes32;
  int lane = 0;  // where an accumulator of 64 rows begins
};

std::string text(const Problem& p) {
  return std::string(numeric::name(p.atom.a)) + " x " + std::string(numeric::name(p.atom.b)) +
         " m " + std::to_string(p.atom.m) + " n " + std::to_string(p.atom.n) +
         (p.atom.pair ? " pair" : "") + (p.atom.a_major == Major::k ? " A k" : " A mn") +
         (p.atom.b_major == Major::k ? " B k " : " B mn ") + atom::name(p.swizzle);
}

// What one CTA holds: its rows of A and its part of B's columns, as stored tiles.
struct Share {
  std::vector<unsigned char> a;
  std::vector<unsigned char> b;
};

std::vector<int> part(const std::vector<int>& all, int depth, int first, int rows) {
  return {all.begin() + std::ptrdiff_t{first} * depth,
          all.begin() + std::ptrdiff_t{first + rows} * depth};
}

constexpr int tile_at = 1024;  // the operands, in shared memory; the barrier and a word come before

// D of this CTA, by lanes and columns: lane * 256 + column.
void read_back(const Problem& p, TmemAddress tmem, std::vector<float>& lanes) {
  const int warp = isa::warp_index();
  const int t = isa::lane_index();
  const TmemAddress base = tmem + atom::tmem_address(32 * warp, 0);
  const int columns = atom::umma_columns(p.atom);
  if (p.shape == isa::TmemShape::lanes32) return read_lanes(tmem, columns, lanes.data(), 256);
  for (int c = 0; c < columns; c += 8) {
    for (const int half : {0, 16}) {
      if (p.atom.m == 64 && half != p.lane) continue;
      isa::Fragment<float, 4> f;
      isa::tcgen05_load<isa::TmemShape::lanes16>(f, base + atom::tmem_address(half, c));
      isa::tcgen05_wait_load(f);
      for (int r = 0; r < 4; ++r) {
        const int lane = 32 * warp + half + t / 4 + 8 * (r / 2);
        lanes[index(lane * 256 + c + 2 * (t % 4) + r % 2)] = f[r];
      }
    }
  }
}

template <atom::UmmaKind Kind, int Ctas>
void kernel(const Problem& p, const atom::OperandTile& ta, const atom::OperandTile& tb,
            const std::vector<Share>& shares, std::vector<std::vector<float>>& got) {
  const SharedAddress done = isa::shared_base();
  const SharedAddress at_a = done + tile_at;
  const SharedAddress at_b = at_a + static_cast<SharedAddress>(atom::tile_bytes(ta));
  const Share& mine = shares[index(isa::cluster_rank())];
  copy_in(at_a, mine.a);
  copy_in(at_b, mine.b);
  isa::fence_proxy_async_shared();
  const TmemAddress tmem = take_tmem<Ctas>(done + 8, 256, done);
  const TmemAddress d = tmem + atom::tmem_address(p.lane, 0);
  if (isa::cluster_rank() == 0 && isa::thread_index() == 64) {
    const std::uint64_t da = atom::encode_umma(atom::descriptor(ta, at_a));
    const std::uint64_t db = atom::encode_umma(atom::descriptor(tb, at_b));
    for (int step = 0; step < 2 * atom::k_block_count(ta); ++step) {
      const int k = step % atom::k_block_count(ta);
      isa::tcgen05_mma<Kind, Ctas>(d, atom::advance(da, atom::k_block_offset(ta, k)),
                                   atom::advance(db, atom::k_block_offset(tb, k)),
                                   atom::encode_instruction(p.atom), step > 0);
    }
    if constexpr (Ctas == 2) {
      isa::tcgen05_commit_multicast<Ctas>(done, 3);
    } else {
      isa::tcgen05_commit<Ctas>(done);
    }
  }
  isa::mbarrier_wait<Scope::cta>(done, 0, {"done"});
  isa::tcgen05_fence_after_sync();
  read_back(p, tmem, got[index(isa::cluster_rank())]);
  give_tmem<Ctas>(tmem, 256);
}

// Twice the product of a whole tile along K, the second time on top of the first.
template <atom::UmmaKind Kind, int Ctas>
void check(const Problem& p) {
  SCOPED_TRACE(text(p));
  ASSERT_EQ(atom::umma_fault(p.atom), nullptr) << atom::umma_fault(p.atom);
  const int bits_a = numeric::bits(p.atom.a);
  const int depth = 1024 / bits_a;
  const int rows = p.atom.m / Ctas;
  const int columns = p.atom.n / Ctas;
  const atom::OperandTile ta{rows, depth, bits_a, p.atom.a_major, p.swizzle};
  const atom::OperandTile tb{columns, depth, bits_a, p.atom.b_major, p.swizzle};
  if (atom::tile_fault(ta) != nullptr || atom::tile_fault(tb) != nullptr) return;
  const std::vector<int> a = numbers(p.atom.m * depth, 1);
  const std::vector<int> b = numbers(p.atom.n * depth, 2);
  std::vector<Share> shares;
  shares.reserve(Ctas);
  for (int v = 0; v < Ctas; ++v) {
    shares.push_back({stored(ta, p.atom.a, part(a, depth, v * rows, rows)),
                      stored(tb, p.atom.b, part(b, depth, v * columns, columns))});
  }
  std::vector<std::vector<float>> got(Ctas, std::vector<float>(128 * 256, -1.0F));
  static std::size_t turn = 0;  // a schedule of its own for every case
  const Options how = schedules()[turn++ % schedules().size()];
  SCOPED_TRACE(text(how));
  const LaunchShape shape{.ctas = Ctas,
                          .cluster_size = Ctas,
                          .threads = 128,
                          .shared_bytes = tile_at + atom::tile_bytes(ta) + atom::tile_bytes(tb)};
  const Report report = run(shape, how, {}, [&] { kernel<Kind, Ctas>(p, ta, tb, shares, got); });
  ASSERT_TRUE(report.clean()) << report.text();
  int wrong = 0;
  for (int i = 0; i < p.atom.m; ++i) {
    for (int j = 0; j < p.atom.n; ++j) {
      int sum = 0;
      for (int k = 0; k < depth; ++k) sum += a[index(i * depth + k)] * b[index(j * depth + k)];
      // Where row i of the CTA's rows and column j lie, by hand.
      int lane = i % rows;
      int column = j;
      if (p.atom.m == 64) lane = lane % 16 + 32 * (lane / 16) + p.lane;
      if (p.atom.pair && rows == 64) {
        lane += 64 * (j / (p.atom.n / 2));
        column %= p.atom.n / 2;
      }
      const float value = got[index(i / rows)][index(lane * 256 + column)];
      if (value != static_cast<float>(2 * sum)) ++wrong;
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << p.atom.m * p.atom.n << " elements";
}

template <atom::UmmaKind Kind>
void all_shapes(DType a, DType b) {
  Turns turns(4);
  for (const isa::TmemShape shape : {isa::TmemShape::lanes32, isa::TmemShape::lanes16}) {
    for (const int n : {16, 48, 256}) {
      for (const int m : {64, 128}) {
        if (!turns.take()) continue;
        check<Kind, 1>({.atom = atom::umma_atom(a, b, DType::f32, m, n, false), .shape = shape});
      }
      for (const int m : {128, 256}) {
        if (!turns.take()) continue;
        check<Kind, 2>({.atom = atom::umma_atom(a, b, DType::f32, m, n, true), .shape = shape});
      }
    }
  }
}

TEST(Tcgen05Test, KindF16) {
  all_shapes<atom::UmmaKind::f16>(DType::bf16, DType::bf16);
  all_shapes<atom::UmmaKind::f16>(DType::f16, DType::f16);
}
TEST(Tcgen05Test, KindTf32) {
  all_shapes<atom::UmmaKind::tf32>(DType::tf32, DType::tf32);
}
TEST(Tcgen05Test, KindF8f6f4) {
  all_shapes<atom::UmmaKind::f8f6f4>(DType::e4m3, DType::e4m3);
  all_shapes<atom::UmmaKind::f8f6f4>(DType::e4m3, DType::e5m2);
}

TEST(Tcgen05Test, EveryMajorAndSwizzle) {
  Turns turns(3);
  for (const SmemSwizzle swizzle : swizzles) {
    for (const Major a : {Major::k, Major::mn}) {
      for (const Major b : {Major::k, Major::mn}) {
        if (!turns.take()) continue;
        Problem p{.atom = atom::umma_atom(DType::bf16, DType::bf16, DType::f32, 128, 128, false),
                  .swizzle = swizzle};
        p.atom.a_major = a;
        p.atom.b_major = b;
        check<atom::UmmaKind::f16, 1>(p);
        p.atom.pair = true;
        p.atom.m = 256;
        check<atom::UmmaKind::f16, 2>(p);
      }
    }
  }
}

TEST(Tcgen05Test, SixtyFourRowsFromLaneSixteen) {
  check<atom::UmmaKind::f16, 1>(
      {.atom = atom::umma_atom(DType::f16, DType::f16, DType::f32, 64, 32, false),
       .shape = isa::TmemShape::lanes16,
       .lane = 16});
}

// What is stored with one shape is read with the other, by all warps.
TEST(Tcgen05Test, StoresAreReadBack) {
  const Kernel stores{
      {.threads = 128, .shared_bytes = 1024}, [] {
        const SharedAddress done = isa::shared_base();
        const TmemAddress tmem = take_tmem<1>(done + 8, 256, done);
        const int warp = isa::warp_index();
        const int t = isa::lane_index();
        const TmemAddress base = tmem + atom::tmem_address(32 * warp, 0);
        isa::Fragment<float, 8> out;
        for (int r = 0; r < 8; ++r) out[r] = static_cast<float>(100 * (32 * warp + t) + r);
        isa::tcgen05_store(base, out);
        isa::tcgen05_wait_store();
        isa::Fragment<float, 4> in[2];
        isa::tcgen05_load<isa::TmemShape::lanes16>(in[0], base);
        isa::tcgen05_load<isa::TmemShape::lanes16>(in[1], base + atom::tmem_address(16, 0));
        isa::tcgen05_wait_load(in);
        for (int half = 0; half < 2; ++half) {
          for (int r = 0; r < 4; ++r) {
            const int lane = 32 * warp + 16 * half + t / 4 + 8 * (r / 2);
            EXPECT_EQ(in[half][r], static_cast<float>(100 * lane + 2 * (t % 4) + r % 2));
          }
        }
        give_tmem<1>(tmem, 256);
      }};
  expect_clean(stores);
}

}  // namespace
}  // namespace warpwright::model
