// Block-scaled tcgen05 against a naive product: every kind, type, block, height and group, with
// scales that come by tcgen05.cp.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "tests/model/scaled_product.h"
#include "tests/model/tensor_memory.h"
#include "tests/processor_time.h"
#include "warpwright/isa/mma.h"
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
  bool a_in_tmem = false;
  // B's first rows stand so many columns of scales (of 32 rows each) behind an atom's beginning,
  // and the address of its scales says so.
  int shift = 0;
  bool shifts_address = true;
};

std::string text(const ScaledProblem& p) {
  return std::string(atom::name(p.atom.kind)) + " " + std::string(numeric::name(p.atom.a)) + " x " +
         std::string(numeric::name(p.atom.b)) + " m " + std::to_string(p.atom.m) + " n " +
         std::to_string(p.atom.n) + " k " + std::to_string(p.atom.k) +
         (p.atom.pair ? " pair" : "") + " block " + std::to_string(p.atom.scale_block) + " by " +
         std::string(numeric::name(p.atom.scale)) + (p.atom.a_major == Major::k ? "" : " A mn") +
         (p.atom.b_major == Major::k ? "" : " B mn") + " " + atom::name(p.swizzle);
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

// Descriptors of a k_block.
std::uint64_t operand_at(const UmmaAtom& atom, const atom::OperandTile& tile, SharedAddress from,
                         int step) {
  if (atom.k == atom::kUmmaLongK) {
    return atom::encode_umma(atom::long_descriptor(tile, from, step, from));
  }
  return atom::advance(atom::encode_umma(atom::descriptor(tile, from)),
                       atom::k_block_offset(tile, step));
}

// A of k_block `step` to the columns at `to`, a byte an element of the kinds that mix.
template <int Ctas>
void copy_a(TmemAddress to, std::uint64_t from, const UmmaAtom& atom) {
  using isa::TmemCopy;
  using isa::TmemWiden;
  const int bits = atom::is_packed(atom.kind) ? 8 : numeric::bits(atom.a);
  if (bits == 4) {
    isa::tcgen05_copy<TmemCopy::b128x256, Ctas, TmemWiden::from_b4x16_p64>(to, from);
  } else if (bits == 6) {
    isa::tcgen05_copy<TmemCopy::b128x256, Ctas, TmemWiden::from_b6x16_p32>(to, from);
  } else {
    isa::tcgen05_copy<TmemCopy::b128x256, Ctas>(to, from);
  }
}

struct ScaledAddresses {
  SharedAddress a, b, scales_a, scales_b;
};

// One thread copies the scales and multiplies.
template <UmmaKind Kind, int Block, int Ctas>
void multiply_scaled_operands(const ScaledProblem& p, TmemAddress tmem, const ScaledAddresses& at) {
  const UmmaAtom& atom = p.atom;
  const atom::OperandTile ta = byte_tile(atom, atom.m / Ctas, p.depth, p.swizzle, atom.a_major);
  const atom::OperandTile tb = byte_tile(atom, atom.n / Ctas, p.depth, p.swizzle, atom.b_major);
  const TmemAddress sfa = tmem + 256;
  TmemAddress sfb = sfa;
  if constexpr (Block > 0) {
    const int words = (p.depth / Block + 3) / 4;
    const int step_a = atom::scale_word_step(atom, false);
    const int step_b = atom::scale_word_step(atom, true);
    sfb += static_cast<TmemAddress>(words * step_a);
    copy_scales<Ctas>(sfa, at.scales_a, atom.m / Ctas, words, step_a);
    if (atom::umma_folds_columns(atom)) {
      for (int w = 0; w < words; ++w) {
        isa::tcgen05_copy<isa::TmemCopy::b64x128_warpx2_01_23, Ctas>(
            sfb + static_cast<TmemAddress>(w * step_b),
            atom::encode_umma(
                atom::scale_descriptor(at.scales_b + static_cast<SharedAddress>(1024 * w))));
      }
    } else {
      copy_scales<Ctas>(sfb, at.scales_b, atom.n + 32 * p.shift, words, step_b);
    }
    if (p.shifts_address) sfb += static_cast<TmemAddress>(p.shift);
  }
  for (int step = 0; step < p.depth / atom.k; ++step) {
    const std::uint64_t da = operand_at(atom, ta, at.a, step);
    const std::uint64_t db = operand_at(atom, tb, at.b, step);
    const std::uint32_t word = atom::encode_instruction(atom);
    const TmemAddress a = tmem + 384 + static_cast<TmemAddress>(8 * step);
    if (p.a_in_tmem) copy_a<Ctas>(a, da, atom);
    if constexpr (Block == 0) {
      if (p.a_in_tmem) {
        isa::tcgen05_mma_tmem<Kind, Ctas>(tmem, a, db, word, step > 0);
      } else {
        isa::tcgen05_mma<Kind, Ctas>(tmem, da, db, word, step > 0);
      }
    } else {
      const atom::ScaleStep s = atom::scale_step(atom, step);
      const std::uint32_t scaled = atom::with_scale_ids(word, s.id, s.id);
      const TmemAddress of_a = sfa + static_cast<TmemAddress>(s.column_a);
      const TmemAddress of_b = sfb + static_cast<TmemAddress>(s.column_b);
      if (p.a_in_tmem) {
        isa::tcgen05_mma_scaled_tmem<Kind, Block, Ctas>(tmem, a, db, scaled, of_a, of_b, step > 0);
      } else {
        isa::tcgen05_mma_scaled<Kind, Block, Ctas>(tmem, da, db, scaled, of_a, of_b, step > 0);
      }
    }
  }
}

template <UmmaKind Kind, int Block, int Ctas>
void scaled_kernel(const ScaledProblem& p, const std::vector<ScaledShare>& shares,
                   std::vector<std::vector<float>>& got) {
  const ScaledShare& mine = shares[index(isa::cluster_rank())];
  const SharedAddress done = isa::shared_base();
  ScaledAddresses at{};
  at.a = done + scaled_tile_at;
  at.b = at.a + static_cast<SharedAddress>(mine.a.size());
  at.scales_a = at.b + static_cast<SharedAddress>(mine.b.size());
  at.scales_b = at.scales_a + static_cast<SharedAddress>(mine.scales_a.size());
  copy_in(at.a, mine.a);
  copy_in(at.b, mine.b);
  copy_in(at.scales_a, mine.scales_a);
  copy_in(at.scales_b, mine.scales_b);
  isa::fence_proxy_async_shared();
  const TmemAddress tmem = take_tmem<Ctas>(done + 8, scaled_columns, done);
  if (isa::cluster_rank() == 0 && isa::thread_index() == 64) {
    multiply_scaled_operands<Kind, Block, Ctas>(p, tmem, at);
    if constexpr (Ctas == 2) {
      isa::tcgen05_commit_multicast<Ctas>(done, 3);
    } else {
      isa::tcgen05_commit<Ctas>(done);
    }
  }
  isa::mbarrier_wait<Scope::cta>(done, 0, {"done"});
  isa::tcgen05_fence_after_sync();
  read_lanes(tmem, atom::umma_columns(p.atom), got[index(isa::cluster_rank())].data(), 256);
  give_tmem<Ctas>(tmem, scaled_columns);
}

// D, row-major.
template <UmmaKind Kind, int Block, int Ctas>
std::vector<float> scaled_product(const ScaledProblem& p, const ScaledMatrix& a,
                                  const ScaledMatrix& b) {
  const int rows = p.atom.m / Ctas;
  const int columns = p.atom.n / Ctas;
  const atom::OperandTile ta = byte_tile(p.atom, rows, p.depth, p.swizzle, p.atom.a_major);
  const atom::OperandTile tb = byte_tile(p.atom, columns, p.depth, p.swizzle, p.atom.b_major);
  std::vector<ScaledShare> shares;
  int bytes = scaled_tile_at;
  for (int v = 0; v < Ctas; ++v) {
    shares.push_back({stored_codes(p.atom, ta, a, v * rows),
                      stored_codes(p.atom, tb, b, v * columns), stored_scales(a, v * rows, rows),
                      stored_scales(b, 0, p.atom.n, 32 * p.shift)});
    const ScaledShare& s = shares.back();
    bytes = scaled_tile_at +
            static_cast<int>(s.a.size() + s.b.size() + s.scales_a.size() + s.scales_b.size());
  }
  std::vector<std::vector<float>> got(Ctas, std::vector<float>(128 * 256, -1.0F));
  static std::size_t turn = 0;  // a schedule of its own for every case
  const Options how = schedules()[turn++ % schedules().size()];
  SCOPED_TRACE(text(how));
  const LaunchShape shape{
      .ctas = Ctas, .cluster_size = Ctas, .threads = 128, .shared_bytes = bytes};
  const Report report =
      run(shape, how, {}, [&] { scaled_kernel<Kind, Block, Ctas>(p, shares, got); });
  EXPECT_TRUE(report.clean()) << report.text();
  std::vector<float> d;
  for (int i = 0; i < p.atom.m; ++i) {
    for (int j = 0; j < p.atom.n; ++j) {
      const int half = rows == 64 ? j / (p.atom.n / 2) : 0;
      const int column = rows == 64 ? j % (p.atom.n / 2) : j;
      d.push_back(got[index(i / rows)][index((i % rows + 64 * half) * 256 + column)]);
    }
  }
  return d;
}

// How many elements of D are other than the naive product's.
int wrong_ones(const ScaledProblem& p, const ScaledMatrix& a, const ScaledMatrix& b,
               const std::vector<float>& d) {
  int wrong = 0;
  for (int i = 0; i < p.atom.m; ++i) {
    for (int j = 0; j < p.atom.n; ++j) {
      if (d[index(i * p.atom.n + j)] != scaled_sum(a, b, i, j, p.atom.k)) ++wrong;
    }
  }
  return wrong;
}

template <UmmaKind Kind, int Block, int Ctas>
void check_scaled(const ScaledProblem& p) {
  SCOPED_TRACE(text(p));
  ASSERT_EQ(atom::umma_fault(p.atom), nullptr) << atom::umma_fault(p.atom);
  static unsigned seed = 0;
  const ScaledMatrix a = random_scaled(p.atom, p.atom.a, p.atom.m, p.depth, seed++);
  const ScaledMatrix b = random_scaled(p.atom, p.atom.b, p.atom.n, p.depth, seed++);
  EXPECT_EQ(wrong_ones(p, a, b, (scaled_product<Kind, Block, Ctas>(p, a, b))), 0)
      << "of " << p.atom.m * p.atom.n << " elements";
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
  for (const int n : {16, 64, 192, 256}) {
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
  for (const int n : {16, 192}) {
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

TEST(Tcgen05ScaledTest, PairsOfSixtyFourRows) {
  check_scaled<UmmaKind::mxf8f6f4, 32, 2>(
      {atom::scaled_umma_atom(UmmaKind::mxf8f6f4, DType::e5m2, DType::e4m3, 128, 256, true), 128});
  check_scaled<UmmaKind::mxf4nvf4, 16, 2>(
      {atom::scaled_umma_atom(UmmaKind::mxf4nvf4, DType::e2m1, DType::e2m1, 128, 256, true, 16,
                              DType::ue4m3),
       256});
}

TEST(Tcgen05ScaledTest, KindF8f6f4OfFewerBits) {
  for (const DType a : {DType::e2m3, DType::e3m2, DType::e2m1}) {
    for (const DType b : {DType::e2m3, DType::e3m2, DType::e2m1}) {
      check_scaled<UmmaKind::f8f6f4, 0, 1>(
          {atom::umma_atom(a, b, DType::f32, 128, 64, false), 128});
    }
  }
  check_scaled<UmmaKind::f8f6f4, 0, 2>(
      {atom::umma_atom(DType::e2m1, DType::e2m3, DType::f32, 256, 64, true), 128});
}

TEST(Tcgen05ScaledTest, AInTensorMemory) {
  const auto of = [](UmmaAtom atom, int depth) {
    return ScaledProblem{.atom = atom, .depth = depth, .a_in_tmem = true};
  };
  for (const DType type : narrow_types) {
    check_scaled<UmmaKind::mxf8f6f4, 32, 1>(
        of(atom::scaled_umma_atom(UmmaKind::mxf8f6f4, type, DType::e4m3, 128, 64, false), 128));
  }
  check_scaled<UmmaKind::mxf4nvf4, 16, 2>(
      of(atom::scaled_umma_atom(UmmaKind::mxf4nvf4, DType::e2m1, DType::e2m1, 256, 64, true, 16,
                                DType::ue4m3),
         256));
  for (const DType type : {DType::e2m3, DType::e2m1}) {
    check_scaled<UmmaKind::f8f6f4, 0, 1>(
        of(atom::umma_atom(type, DType::e2m3, DType::f32, 128, 64, false), 128));
  }
}

// A tile of 64 columns begins in the middle of an atom of 128: its scales begin 2 columns further.
TEST(Tcgen05ScaledTest, ATileThatBeginsInAnAtom) {
  ScaledProblem p{atom::scaled_umma_atom(UmmaKind::mxf4nvf4, DType::e2m1, DType::e2m1, 128, 64,
                                         false, 16, DType::ue4m3),
                  256};
  p.shift = 2;
  check_scaled<UmmaKind::mxf4nvf4, 16, 1>(p);
  p.shifts_address = false;
  const ScaledMatrix a = random_scaled(p.atom, p.atom.a, 128, p.depth, 71);
  const ScaledMatrix b = random_scaled(p.atom, p.atom.b, 64, p.depth, 72);
  const std::vector<float> d = scaled_product<UmmaKind::mxf4nvf4, 16, 1>(p, a, b);
  EXPECT_EQ(wrong_ones(p, a, b, d), 128 * 64) << "the scales before them are NaN";
}

// A scale that is NaN makes NaN of elements that are 0: padding of K must have numbers.
TEST(Tcgen05ScaledTest, PaddingThatIsNoNumber) {
  const ScaledProblem p{
      atom::scaled_umma_atom(UmmaKind::mxf4, DType::e2m1, DType::e2m1, 128, 16, false), 256};
  ScaledMatrix a = random_scaled(p.atom, p.atom.a, 128, p.depth, 81);
  ScaledMatrix b = random_scaled(p.atom, p.atom.b, 16, p.depth, 82);
  for (int k = 224; k < 256; ++k) a.codes[index(7 * 256 + k)] = 0;
  a.scales[7 * 8 + 7] = 0xff;
  for (int k = 0; k < 32; ++k) b.codes[index(3 * 256 + k)] = 0;
  b.scales[3 * 8] = 0xff;
  a.set_values();
  b.set_values();
  const std::vector<float> d = scaled_product<UmmaKind::mxf4, 32, 1>(p, a, b);
  for (int i = 0; i < 128; ++i) {
    for (int j = 0; j < 16; ++j) {
      const float value = d[index(i * 16 + j)];
      if (i == 7 || j == 3) {
        EXPECT_TRUE(std::isnan(value)) << i << ", " << j;
      } else {
        EXPECT_EQ(value, scaled_sum(a, b, i, j, 64));
      }
    }
  }
}

// The same elements and scales by mma.sync of sm_120 in the registers of a warp.
template <atom::Mma M>
std::vector<float> by_warp(const ScaledMatrix& a, const ScaledMatrix& b) {
  static constexpr atom::MmaScaleSource from{};
  std::vector<float> d(16 * 8);
  const auto fill_registers = [](std::uint32_t* registers, const ScaledMatrix& m,
                                 const layout::Layout& tv, int rows, int step, int thread) {
    const int bits = atom::register_bits(M, m.type);
    for (int v = 0; v < layout::size(tv, 1); ++v) {
      const auto at = static_cast<int>(tv(thread, v));
      const unsigned code = m.codes[index(at % rows * m.depth + step * M.k + at / rows)];
      registers[v * bits / 32] |= code << v * bits % 32;
    }
  };
  const auto word_of = [](const ScaledMatrix& m, int row, int step) {
    std::uint32_t word = 0;
    for (int s = 0; s < atom::mma_scales(M); ++s) {
      const int at = row * (m.depth / m.block) + step * atom::mma_scales(M) + s;
      word |= std::uint32_t{m.scales[index(at)]} << 8 * s;
    }
    return word;
  };
  const Kernel kernel{{.threads = 32, .shared_bytes = 1024}, [&] {
                        const int lane = isa::lane_index();
                        float sums[4] = {};
                        for (int step = 0; step < a.depth / M.k; ++step) {
                          std::uint32_t ra[4] = {};
                          std::uint32_t rb[2] = {};
                          fill_registers(ra, a, atom::mma_layout_a(M), M.m, step, lane);
                          fill_registers(rb, b, atom::mma_layout_b(M), M.n, step, lane);
                          const auto row = static_cast<int>(atom::mma_layout_scales_a(M)(lane, 0));
                          const auto col = static_cast<int>(atom::mma_layout_scales_b(M)(lane, 0));
                          isa::mma_sync<M>(
                              sums, ra, rb,
                              isa::MmaScales<from>{word_of(a, row, step), word_of(b, col, step)});
                        }
                        const layout::Layout c = atom::mma_layout_c(M);
                        for (int v = 0; v < 4; ++v) {
                          const auto at = static_cast<int>(c(lane, v));
                          d[index(at % 16 * 8 + at / 16)] = sums[v];
                        }
                      }};
  EXPECT_TRUE(run(kernel, Options{}).clean());
  return d;
}

template <UmmaKind Kind, atom::Mma M>
void check_against_warp(unsigned seed) {
  const ScaledProblem p{
      atom::scaled_umma_atom(Kind, M.a, M.b, 128, 8, false, M.scale_block, M.scale), 256};
  const ScaledMatrix a = random_scaled(p.atom, p.atom.a, 128, p.depth, seed);
  const ScaledMatrix b = random_scaled(p.atom, p.atom.b, 8, p.depth, seed + 1);
  const std::vector<float> d = scaled_product<Kind, M.scale_block, 1>(p, a, b);
  const std::vector<float> of_warp = by_warp<M>(a, b);
  for (int i = 0; i < 16 * 8; ++i) EXPECT_EQ(d[index(i)], of_warp[index(i)]) << i;
}

TEST(Tcgen05ScaledTest, TheSameBitsAsByAWarpOfSm120) {
  using atom::MmaKind;
  check_against_warp<UmmaKind::mxf8f6f4,
                     atom::Mma{MmaKind::mxf8f6f4, 16, 8, 32, DType::e4m3, DType::e3m2, DType::f32,
                               Major::k, Major::k, 32, DType::ue8m0}>(91);
  check_against_warp<UmmaKind::mxf4, atom::Mma{MmaKind::mxf4, 16, 8, 64, DType::e2m1, DType::e2m1,
                                               DType::f32, Major::k, Major::k, 32, DType::ue8m0}>(
      93);
  check_against_warp<UmmaKind::mxf4nvf4,
                     atom::Mma{MmaKind::mxf4nvf4, 16, 8, 64, DType::e2m1, DType::e2m1, DType::f32,
                               Major::k, Major::k, 16, DType::ue4m3}>(95);
}

// 512^3 as tiles of 128 x 256 take it: so many MMAs, and copies of scales, as one kernel.
template <UmmaKind Kind, int Block>
double seconds_of_a_product(const UmmaAtom& atom) {
  const int depth = 4 * atom.k;  // 128 bytes
  const ScaledMatrix a = random_scaled(atom, atom.a, 128, depth, 5);
  const ScaledMatrix b = random_scaled(atom, atom.b, 256, depth, 6);
  const atom::OperandTile ta = byte_tile(atom, 128, depth, SmemSwizzle::b128);
  const atom::OperandTile tb = byte_tile(atom, 256, depth, SmemSwizzle::b128);
  const std::vector<ScaledShare> shares{{stored_codes(atom, ta, a, 0), stored_codes(atom, tb, b, 0),
                                         stored_scales(a, 0, 128), stored_scales(b, 0, 256)}};
  const auto bytes = static_cast<int>(shares[0].a.size() + shares[0].b.size() +
                                      shares[0].scales_a.size() + shares[0].scales_b.size());
  const ScaledProblem p{atom, depth};
  std::vector<std::vector<float>> got(1, std::vector<float>(128 * 256));
  const LaunchShape shape{.threads = 128, .shared_bytes = scaled_tile_at + bytes};
  return tests::least_seconds(2, [&] {
    for (int tile = 0; tile < 8 * 512 / depth; ++tile) {
      const Report report =
          run(shape, Options{}, {}, [&] { scaled_kernel<Kind, Block, 1>(p, shares, got); });
      ASSERT_TRUE(report.clean());
    }
  });
}

TEST(Tcgen05ScaledTest, FiveHundredTwelveCubedInASecond) {
  const double mx = seconds_of_a_product<UmmaKind::mxf8f6f4, 32>(
      atom::scaled_umma_atom(UmmaKind::mxf8f6f4, DType::e4m3, DType::e4m3, 128, 256, false));
  const double nv = seconds_of_a_product<UmmaKind::mxf4nvf4, 16>(atom::scaled_umma_atom(
      UmmaKind::mxf4nvf4, DType::e2m1, DType::e2m1, 128, 256, false, 16, DType::ue4m3));
  EXPECT_LT(mx, 1.0);
  EXPECT_LT(nv, 1.0);
  std::printf("mxf8 %.3f s, nvf4 %.3f s of a processor\n", mx, nv);
}

}  // namespace
}  // namespace warpwright::model
