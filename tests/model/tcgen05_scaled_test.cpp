// Block-scaled tcgen05 against a naive product: every kind, type, block, height and group, with
// scales that come by tcgen05.cp.
#include <gtest/gtest.h>

#include "tests/model/scaled_product.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/tcgen05.h"
#include "warpwright/isa/tcgen05_memory.h"
#include "warpwright/isa/tcgen05_scaled.h"

namespace warpwright::model {
namespace {

using atom::Major;
using atom::SmemSwizzle;
using atom::UmmaAtom;
using atom::UmmaKind;
using isa::Scope;
using isa::SharedAddress;
using isa::TmemAddress;

constexpr int scaled_tile_at = 1024;
constexpr int scaled_columns = 512;

// One CTA's part in shared memory.
struct ScaledShare {
  std::vector<unsigned char> a, b, scales_a, scales_b;
};

struct ScaledProblem {
  UmmaAtom atom;
  int depth = 0;
  SmemSwizzle swizzle = SmemSwizzle::b128;
};

std::string text(const ScaledProblem& p) {
  return std::string(atom::name(p.atom.kind)) + " " + std::string(numeric::name(p.atom.a)) + " x " +
         std::string(numeric::name(p.atom.b)) + " m " + std::to_string(p.atom.m) + " n " +
         std::to_string(p.atom.n) + " k " + std::to_string(p.atom.k) +
         (p.atom.pair ? " pair" : "") + " block " + std::to_string(p.atom.scale_block) + " by " +
         std::string(numeric::name(p.atom.scale)) + (p.atom.a_major == Major::k ? "" : " A mn") +
         (p.atom.b_major == Major::k ? "" : " B mn") + " " + atom::name(p.swizzle);
}

template <int Ctas>
TmemAddress start(SharedAddress word, SharedAddress done) {
  if constexpr (Ctas == 2) {
    isa::cluster_arrive();
    isa::cluster_wait();
  }
  if (isa::warp_index() == 0) isa::tcgen05_allocate<Ctas>(word, scaled_columns);
  if (isa::thread_index() == 32) {
    isa::mbarrier_init(done, 1, {"done"});
    isa::fence_mbarrier_init();
  }
  isa::sync_threads(128);
  if constexpr (Ctas == 2) {
    isa::cluster_arrive();
    isa::cluster_wait();
  }
  return isa::SharedView<std::uint32_t>{word}.load();
}

// All atoms of scales of an operand, from shared memory to the columns from `to` on.
template <int Ctas>
void copy_scales(TmemAddress to, SharedAddress from, int rows, int words, int step) {
  const int atoms = (rows + 127) / 128;
  for (int w = 0; w < words; ++w) {
    for (int at = 0; at < atoms; ++at) {
      const auto bytes = static_cast<SharedAddress>((w * atoms + at) * atom::kScaleAtomBytes);
      isa::tcgen05_copy<isa::TmemCopy::b32x128_warpx4, Ctas>(
          to + static_cast<TmemAddress>(w * step + 4 * at),
          atom::encode_umma(atom::scale_descriptor(from + bytes)));
    }
  }
}

template <int Columns>
void read_lanes(TmemAddress tmem, int columns, std::vector<float>& lanes) {
  const int warp = isa::warp_index();
  const TmemAddress base = tmem + atom::tmem_address(32 * warp, 0);
  for (int c = 0; c < columns; c += 8) {
    isa::Fragment<float, 8> f;
    isa::tcgen05_load(f, base + static_cast<TmemAddress>(c));
    isa::tcgen05_wait_load(f);
    for (int r = 0; r < 8; ++r) {
      lanes[index((32 * warp + isa::lane_index()) * Columns + c + r)] = f[r];
    }
  }
}

// Descriptors of a k_block.
std::uint64_t operand_at(const UmmaAtom& atom, const atom::OperandTile& tile, SharedAddress from,
                         int step) {
  if (atom.k == atom::kUmmaLongK) {
    return atom::encode_umma(atom::long_descriptor(tile, from, step, from));
  }
  return atom::advance(atom::encode_umma(atom::descriptor(tile, from)),
                       atom::k_block_offset(tile, step));
}

template <UmmaKind Kind, int Block, int Ctas>
void scaled_kernel(const ScaledProblem& p, const std::vector<ScaledShare>& shares,
                   std::vector<std::vector<float>>& got) {
  const UmmaAtom& atom = p.atom;
  const atom::OperandTile ta = byte_tile(atom, atom.m / Ctas, p.depth, p.swizzle, atom.a_major);
  const atom::OperandTile tb = byte_tile(atom, atom.n / Ctas, p.depth, p.swizzle, atom.b_major);
  const SharedAddress done = isa::shared_base();
  const SharedAddress at_a = done + scaled_tile_at;
  const SharedAddress at_b = at_a + static_cast<SharedAddress>(atom::tile_bytes(ta));
  const SharedAddress at_sa = at_b + static_cast<SharedAddress>(atom::tile_bytes(tb));
  const ScaledShare& mine = shares[index(isa::cluster_rank())];
  const SharedAddress at_sb = at_sa + static_cast<SharedAddress>(mine.scales_a.size());
  copy_in(at_a, mine.a);
  copy_in(at_b, mine.b);
  copy_in(at_sa, mine.scales_a);
  copy_in(at_sb, mine.scales_b);
  isa::fence_proxy_async_shared();
  const TmemAddress tmem = start<Ctas>(done + 8, done);
  if (isa::cluster_rank() == 0 && isa::thread_index() == 64) {
    const int words = (p.depth / Block + 3) / 4;
    const int step_a = atom::scale_word_step(atom, false);
    const int step_b = atom::scale_word_step(atom, true);
    const TmemAddress sfa = tmem + 256;
    const TmemAddress sfb = sfa + static_cast<TmemAddress>(words * step_a);
    copy_scales<Ctas>(sfa, at_sa, atom.m / Ctas, words, step_a);
    copy_scales<Ctas>(sfb, at_sb, atom.n, words, step_b);
    for (int step = 0; step < p.depth / atom.k; ++step) {
      const atom::ScaleStep s = atom::scale_step(atom, step);
      isa::tcgen05_mma_scaled<Kind, Block, Ctas>(
          tmem, operand_at(atom, ta, at_a, step), operand_at(atom, tb, at_b, step),
          atom::with_scale_ids(atom::encode_instruction(atom), s.id, s.id),
          sfa + static_cast<TmemAddress>(s.column_a), sfb + static_cast<TmemAddress>(s.column_b),
          step > 0);
    }
    if constexpr (Ctas == 2) {
      isa::tcgen05_commit_multicast<Ctas>(done, 3);
    } else {
      isa::tcgen05_commit<Ctas>(done);
    }
  }
  isa::mbarrier_wait<Scope::cta>(done, 0, {"done"});
  isa::tcgen05_fence_after_sync();
  read_lanes<256>(tmem, atom::umma_columns(atom), got[index(isa::cluster_rank())]);
  isa::tcgen05_fence_before_sync();
  isa::sync_threads(128);
  if (isa::warp_index() == 0) isa::tcgen05_deallocate<Ctas>(tmem, scaled_columns);
}

template <UmmaKind Kind, int Block, int Ctas>
void check_scaled(const ScaledProblem& p) {
  SCOPED_TRACE(text(p));
  ASSERT_EQ(atom::umma_fault(p.atom), nullptr) << atom::umma_fault(p.atom);
  static unsigned turn = 0;
  const ScaledMatrix a = random_scaled(p.atom, p.atom.a, p.atom.m, p.depth, 2 * turn);
  const ScaledMatrix b = random_scaled(p.atom, p.atom.b, p.atom.n, p.depth, 2 * turn + 1);
  const int rows = p.atom.m / Ctas;
  const int columns = p.atom.n / Ctas;
  const atom::OperandTile ta = byte_tile(p.atom, rows, p.depth, p.swizzle, p.atom.a_major);
  const atom::OperandTile tb = byte_tile(p.atom, columns, p.depth, p.swizzle, p.atom.b_major);
  std::vector<ScaledShare> shares;
  int bytes = scaled_tile_at;
  for (int v = 0; v < Ctas; ++v) {
    shares.push_back({stored_codes(p.atom, ta, a, v * rows),
                      stored_codes(p.atom, tb, b, v * columns), stored_scales(a, v * rows, rows),
                      stored_scales(b, 0, p.atom.n)});
    const ScaledShare& s = shares.back();
    bytes = scaled_tile_at +
            static_cast<int>(s.a.size() + s.b.size() + s.scales_a.size() + s.scales_b.size());
  }
  std::vector<std::vector<float>> got(Ctas, std::vector<float>(128 * 256, -1.0F));
  const Options how = schedules()[turn++ % schedules().size()];
  SCOPED_TRACE(text(how));
  const LaunchShape shape{
      .ctas = Ctas, .cluster_size = Ctas, .threads = 128, .shared_bytes = bytes};
  const Report report =
      run(shape, how, {}, [&] { scaled_kernel<Kind, Block, Ctas>(p, shares, got); });
  ASSERT_TRUE(report.clean()) << report.text();
  int wrong = 0;
  for (int i = 0; i < p.atom.m; ++i) {
    for (int j = 0; j < p.atom.n; ++j) {
      const float value = got[index(i / rows)][index(i % rows * 256 + j)];
      if (value != scaled_sum(a, b, i, j, p.atom.k)) ++wrong;
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << p.atom.m * p.atom.n << " elements";
}

constexpr DType narrow_types[] = {DType::e4m3, DType::e5m2, DType::e2m3, DType::e3m2, DType::e2m1};

TEST(Tcgen05ScaledTest, EveryPairOfTypes) {
  for (const DType a : narrow_types) {
    for (const DType b : narrow_types) {
      check_scaled<UmmaKind::mxf8f6f4, 32, 1>(
          {atom::scaled_umma_atom(UmmaKind::mxf8f6f4, a, b, 128, 24, false), 256});
    }
  }
}

template <UmmaKind Kind, int Block>
void every_shape(DType type, DType scale, int depth) {
  for (const int n : {16, 64, 128, 192, 256}) {
    check_scaled<Kind, Block, 1>(
        {atom::scaled_umma_atom(Kind, type, type, 128, n, false, Block, scale), depth});
    check_scaled<Kind, Block, 2>(
        {atom::scaled_umma_atom(Kind, type, type, 256, n, true, Block, scale), depth});
  }
}

TEST(Tcgen05ScaledTest, KindMxf8f6f4) {
  every_shape<UmmaKind::mxf8f6f4, 32>(DType::e4m3, DType::ue8m0, 256);
}
TEST(Tcgen05ScaledTest, KindMxf4) {
  every_shape<UmmaKind::mxf4, 32>(DType::e2m1, DType::ue8m0, 256);
}
TEST(Tcgen05ScaledTest, KindMxf4nvf4) {
  every_shape<UmmaKind::mxf4nvf4, 32>(DType::e2m1, DType::ue8m0, 256);
  every_shape<UmmaKind::mxf4nvf4, 16>(DType::e2m1, DType::ue8m0, 256);
  every_shape<UmmaKind::mxf4nvf4, 16>(DType::e2m1, DType::ue4m3, 256);
}

// Three spans of 128 bytes are eight steps of 48.
TEST(Tcgen05ScaledTest, LongK) {
  const auto longer = [](UmmaAtom atom) {
    atom.k = atom::kUmmaLongK;
    return atom;
  };
  for (const int n : {16, 128, 192}) {
    for (const bool pair : {false, true}) {
      const int m = pair ? 256 : 128;
      const auto atom = [&](UmmaKind kind, int block, DType scale) {
        return longer(
            atom::scaled_umma_atom(kind, DType::e2m1, DType::e2m1, m, n, pair, block, scale));
      };
      const ScaledProblem mx{atom(UmmaKind::mxf4, 32, DType::ue8m0), 768};
      const ScaledProblem nv{atom(UmmaKind::mxf4nvf4, 16, DType::ue4m3), 768};
      if (pair) {
        check_scaled<UmmaKind::mxf4, 32, 2>(mx);
        check_scaled<UmmaKind::mxf4nvf4, 16, 2>(nv);
      } else {
        check_scaled<UmmaKind::mxf4, 32, 1>(mx);
        check_scaled<UmmaKind::mxf4nvf4, 16, 1>(nv);
      }
    }
  }
}

TEST(Tcgen05ScaledTest, EverySwizzleAndMajor) {
  for (const SmemSwizzle swizzle : swizzles) {
    for (const auto& [a, b] : {std::pair{Major::k, Major::k}, {Major::mn, Major::mn}}) {
      for (const DType type : {DType::e4m3, DType::e2m3, DType::e2m1}) {
        ScaledProblem p{
            atom::scaled_umma_atom(UmmaKind::mxf8f6f4, type, DType::e4m3, 128, 128, false), 128,
            swizzle};
        p.atom.a_major = a;
        p.atom.b_major = b;
        check_scaled<UmmaKind::mxf8f6f4, 32, 1>(p);
      }
    }
    check_scaled<UmmaKind::mxf4, 32, 1>(
        {atom::scaled_umma_atom(UmmaKind::mxf4, DType::e2m1, DType::e2m1, 128, 64, false), 256,
         swizzle});
  }
}

}  // namespace
}  // namespace warpwright::model
