// The tensor core against a naive product: every operand type, major and swizzle.
#include <gtest/gtest.h>

#include <limits>

#include "tests/campaign.h"
#include "tests/model/harness.h"
#include "tests/model/operands.h"
#include "warpwright/atom/descriptor.h"
#include "warpwright/atom/wgmma.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/wgmma.h"

namespace warpwright::model {
namespace {

using atom::Major;
using atom::SmemSwizzle;
using isa::SharedAddress;

void expect_product(const std::vector<int>& a, const std::vector<int>& b, int n, int depth,
                    int times, const std::vector<float>& got) {
  int wrong = 0;
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < n; ++j) {
      int sum = 0;
      for (int k = 0; k < depth; ++k) {
        sum += a[index(i * depth + k)] * b[index(j * depth + k)];
      }
      if (got[index(i * n + j)] != static_cast<float>(times * sum)) ++wrong;
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << 64 * n << " elements";
}

// Twice the product of a whole tile along K: the second time on top of the first.
template <DType T, int N, Major A, Major B>
void both_in_shared_memory(SmemSwizzle swizzle_a, SmemSwizzle swizzle_b) {
  constexpr int bits = numeric::bits(T);
  const int depth = 1024 / bits;  // 128 bytes
  const atom::OperandTile ta{64, depth, bits, A, swizzle_a};
  const atom::OperandTile tb{N, depth, bits, B, swizzle_b};
  if (atom::tile_fault(ta) != nullptr || atom::tile_fault(tb) != nullptr) return;
  SCOPED_TRACE(std::string(numeric::name(T)) + " n " + std::to_string(N) + " A " +
               (A == Major::k ? "k " : "mn ") + atom::name(swizzle_a) + " B " +
               (B == Major::k ? "k " : "mn ") + atom::name(swizzle_b));
  const std::vector<int> a = numbers(64 * depth, 1);
  const std::vector<int> b = numbers(N * depth, 2);
  const auto image_a = stored(ta, T, a);
  const auto image_b = stored(tb, T, b);
  std::vector<float> got(64 * N, -1.0F);
  const LaunchShape shape{.threads = 128,
                          .shared_bytes = static_cast<int>(image_a.size() + image_b.size())};
  // A schedule of its own for every case.
  static std::size_t turn = 0;
  const Options how = schedules()[turn++ % schedules().size()];
  SCOPED_TRACE(text(how));
  const Report report = run(shape, how, {}, [&] {
    const SharedAddress at_a = isa::shared_base();
    const SharedAddress at_b = at_a + static_cast<SharedAddress>(image_a.size());
    copy_in(at_a, image_a);
    copy_in(at_b, image_b);
    isa::fence_proxy_async_shared();
    isa::sync_threads(128);
    isa::Fragment<float, N / 2> acc;
    const std::uint64_t da = atom::encode(atom::descriptor(ta, at_a));
    const std::uint64_t db = atom::encode(atom::descriptor(tb, at_b));
    isa::wgmma_fence(acc);
    for (int round = 0; round < 2; ++round) {
      for (int step = 0; step < atom::k_block_count(ta); ++step) {
        isa::wgmma<T, N, A, B>(acc, atom::advance(da, atom::k_block_offset(ta, step)),
                               atom::advance(db, atom::k_block_offset(tb, step)),
                               round > 0 || step > 0);
      }
      isa::wgmma_commit();
    }
    isa::wgmma_wait<1>();
    isa::wgmma_wait<0>(acc);
    for (int v = 0; v < N / 2; ++v) {
      const int t = isa::thread_index();
      const int row = 16 * (t / 32) + t % 32 / 4 + 8 * (v / 2 % 2);
      const int col = 8 * (v / 4) + 2 * (t % 4) + v % 2;
      got[index(row * N + col)] = acc[v];
    }
  });
  EXPECT_TRUE(report.clean()) << report.text();
  expect_product(a, b, N, depth, 2, got);
}

template <DType T, int N>
void all_majors_and_swizzles() {
  for (const SmemSwizzle s : sampled<SmemSwizzle>({std::begin(swizzles), std::end(swizzles)}, 2)) {
    both_in_shared_memory<T, N, Major::k, Major::k>(s, s);
    if constexpr (numeric::bits(T) == 16) {
      both_in_shared_memory<T, N, Major::mn, Major::k>(s, s);
      both_in_shared_memory<T, N, Major::k, Major::mn>(s, s);
      both_in_shared_memory<T, N, Major::mn, Major::mn>(s, s);
    }
  }
}

template <DType T>
void all_widths() {
  all_majors_and_swizzles<T, 8>();
  all_majors_and_swizzles<T, 64>();
  all_majors_and_swizzles<T, 96>();
  all_majors_and_swizzles<T, 256>();
}

TEST(WgmmaTest, Bf16) {
  all_widths<DType::bf16>();
}
TEST(WgmmaTest, F16) {
  all_widths<DType::f16>();
}
TEST(WgmmaTest, E4m3) {
  all_widths<DType::e4m3>();
}
TEST(WgmmaTest, E5m2) {
  all_widths<DType::e5m2>();
}

TEST(WgmmaTest, EachOperandHasItsOwnSwizzle) {
  for (const SmemSwizzle a : swizzles) {
    for (const SmemSwizzle b : swizzles) {
      both_in_shared_memory<DType::bf16, 64, Major::k, Major::mn>(a, b);
      both_in_shared_memory<DType::e4m3, 64, Major::k, Major::k>(a, b);
    }
  }
}

template <DType T, int N>
void a_in_registers() {
  constexpr int bits = numeric::bits(T);
  const int depth = 256 / bits;  // one instruction
  SCOPED_TRACE(std::string(numeric::name(T)) + " n " + std::to_string(N));
  const atom::OperandTile tb{N, depth, bits, Major::k, SmemSwizzle::b32};
  const std::vector<int> a = numbers(64 * depth, 3);
  const std::vector<int> b = numbers(N * depth, 4);
  const auto image_b = stored(tb, T, b);
  for (const Options& how : schedules()) {
    SCOPED_TRACE(text(how));
    std::vector<float> got(64 * N, -1.0F);
    const LaunchShape shape{.threads = 128, .shared_bytes = static_cast<int>(image_b.size())};
    const Report report = run(shape, how, {}, [&] {
      const int t = isa::thread_index();
      copy_in(isa::shared_base(), image_b);
      isa::fence_proxy_async_shared();
      isa::sync_threads(128);
      std::uint32_t words[4] = {};
      constexpr int each = 32 / bits;
      for (int v = 0; v < 4 * each; ++v) {
        // Registers 0, 2: the upper row; 1, 3: eight below; 2, 3: the upper half of K.
        const int r = v / each;
        const int row = 16 * (t / 32) + t % 32 / 4 + 8 * (r % 2);
        const int k = each * (t % 4) + v % each + 4 * each * (r / 2);
        words[r] |=
            static_cast<std::uint32_t>(code(T, a[index(row * depth + k)]) << (bits * (v % each)));
      }
      isa::Fragment<std::uint32_t, 4> registers;
      for (int r = 0; r < 4; ++r) registers[r] = words[r];
      isa::Fragment<float, N / 2> acc;
      isa::wgmma_fence(acc, registers);
      isa::wgmma_registers<T, N>(acc, registers,
                                 atom::encode(atom::descriptor(tb, isa::shared_base())), false);
      isa::wgmma_commit();
      isa::wgmma_wait<0>(acc, registers);
      for (int v = 0; v < N / 2; ++v) {
        const auto at = index(atom::c_row(t, v) * N + atom::c_col(t, v));
        got[at] = acc[v];
      }
    });
    EXPECT_TRUE(report.clean()) << report.text();
    expect_product(a, b, N, depth, 1, got);
  }
}

TEST(WgmmaTest, AFromRegisters) {
  a_in_registers<DType::bf16, 8>();
  a_in_registers<DType::f16, 96>();
  a_in_registers<DType::e4m3, 96>();
  a_in_registers<DType::e5m2, 8>();
}

TEST(WgmmaTest, TwoWarpgroupsAndTwoAccumulators) {
  // Each warpgroup has two accumulators in flight, in one group and in two.
  const int depth = 64;
  const atom::OperandTile t{64, depth, 16, Major::k, SmemSwizzle::b128};
  const std::vector<int> a = numbers(64 * depth, 5);
  const std::vector<int> b = numbers(64 * depth, 6);
  const auto image_a = stored(t, DType::bf16, a);
  const auto image_b = stored(t, DType::bf16, b);
  for (const Options& how : schedules()) {
    SCOPED_TRACE(text(how));
    std::vector<float> got[4];
    for (auto& g : got) g.assign(64 * 64, -1.0F);
    const LaunchShape shape{.threads = 256, .shared_bytes = 2 * 8192};
    const Report report = run(shape, how, {}, [&] {
      const SharedAddress at = isa::shared_base();
      if (isa::thread_index() < 128) {
        copy_in(at, image_a);
        copy_in(at + 8192, image_b);
        isa::fence_proxy_async_shared();
      }
      isa::sync_threads(256);
      const int group = isa::warp_index() / 4;
      isa::Fragment<float, 32> acc[2];
      const std::uint64_t d[2] = {atom::encode(atom::descriptor(t, at)),
                                  atom::encode(atom::descriptor(t, at + 8192))};
      isa::wgmma_fence(acc[0]);
      isa::wgmma_fence(acc[1]);
      for (int i = 0; i < 2; ++i) {
        for (int step = 0; step < 4; ++step) {
          const std::uint32_t by = atom::k_block_offset(t, step);
          isa::wgmma<DType::bf16, 64>(acc[i], atom::advance(d[i], by), atom::advance(d[1 - i], by),
                                      step > 0);
        }
        if (group == 0) isa::wgmma_commit();
      }
      if (group == 1) isa::wgmma_commit();
      if (group == 0) {
        isa::wgmma_wait<1>(acc[0]);
        const int thread = isa::thread_index();
        for (int v = 0; v < 32; ++v) {
          got[0][index(atom::c_row(thread, v) * 64 + atom::c_col(thread, v))] = acc[0][v];
        }
      }
      isa::wgmma_wait<0>(acc);
      for (int i = 0; i < 2; ++i) {
        for (int v = 0; v < 32; ++v) {
          const int thread = isa::thread_index() % 128;
          got[2 * group + i][index(atom::c_row(thread, v) * 64 + atom::c_col(thread, v))] =
              acc[i][v];
        }
      }
    });
    EXPECT_TRUE(report.clean()) << report.text();
    for (int g = 0; g < 2; ++g) {
      expect_product(a, b, 64, depth, 1, got[index(2 * g)]);
      expect_product(b, a, 64, depth, 1, got[index(2 * g + 1)]);
    }
  }
}

TEST(WgmmaTest, SpecialValuesGoThrough) {
  // inf * 0 is NaN, and rows without them stay clean.
  const int depth = 64;
  const atom::OperandTile t{64, depth, 16, Major::k, SmemSwizzle::b128};
  std::vector<int> a(64 * 64, 1);
  const auto image_b = stored(t, DType::f16, a);
  auto image_a = stored(t, DType::f16, a);
  image_a[0] = 0x00;
  image_a[1] = 0x7c;  // row 0: an infinity
  const Report report = run({.threads = 128, .shared_bytes = 2 * 8192}, {}, {}, [&] {
    const SharedAddress at = isa::shared_base();
    copy_in(at, image_a);
    copy_in(at + 8192, image_b);
    isa::fence_proxy_async_shared();
    isa::sync_threads(128);
    isa::Fragment<float, 32> acc;
    isa::wgmma_fence(acc);
    isa::wgmma<DType::f16, 64>(acc, atom::encode(atom::descriptor(t, at)),
                               atom::encode(atom::descriptor(t, at + 8192)), false);
    isa::wgmma_commit();
    isa::wgmma_wait<0>(acc);
    for (int v = 0; v < 32; ++v) {
      const float x = acc[v];
      EXPECT_EQ(x, atom::c_row(isa::thread_index(), v) == 0 ? std::numeric_limits<float>::infinity()
                                                            : 16.0F);
    }
  });
  EXPECT_TRUE(report.clean()) << report.text();
}

}  // namespace
}  // namespace warpwright::model
