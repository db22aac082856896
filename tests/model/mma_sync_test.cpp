// mma.sync and ldmatrix on the model.
#include <gtest/gtest.h>

#include <bit>

#include "tests/chosen.h"
#include "tests/model/mma_products.h"
#include "warpwright/atom/mma_text.h"
#include "warpwright/isa/warp.h"
#include "warpwright/model/testing.h"

namespace warpwright::model {
namespace {

using tests::chosen;
using tests::kRegisters;
using tests::Mma;
using tests::MmaKind;

const testing::Launch one_warp{.threads = 32, .shared_bytes = 4096};

template <Mma M, int Choice>
void check_product() {
  SCOPED_TRACE(atom::to_text(M) + ", scales from choice " + std::to_string(Choice));
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const tests::Product product(M, seed, Choice);
    testing::Buffer<std::uint32_t> a("A", 32 * kRegisters, testing::Access::input);
    testing::Buffer<std::uint32_t> b("B", 32 * kRegisters, testing::Access::input);
    testing::Buffer<std::uint32_t> sums("sums", 32 * kRegisters);
    std::copy(product.a.begin(), product.a.end(), a.begin());
    std::copy(product.b.begin(), product.b.end(), b.begin());
    std::copy(product.sums.begin(), product.sums.end(), sums.begin());
    testing::Buffer<std::uint32_t> scales_a("scales of A", 32, testing::Access::input);
    testing::Buffer<std::uint32_t> scales_b("scales of B", 32, testing::Access::input);
    std::copy(product.scales_a.begin(), product.scales_a.end(), scales_a.begin());
    std::copy(product.scales_b.begin(), product.scales_b.end(), scales_b.begin());
    const tests::Words words{a.data(), b.data(), sums.data(), scales_a.data(), scales_b.data()};
    Options how;
    how.mode = seed == 1 ? Mode::eager : Mode::random;
    how.seed = seed;
    const Report report = run({.threads = 32}, how,
                              {a.allocation(), b.allocation(), sums.allocation(),
                               scales_a.allocation(), scales_b.allocation()},
                              [&] { tests::multiply_once<M, Choice>(words); });
    EXPECT_TRUE(report.clean()) << report.text();
    EXPECT_EQ(std::vector<std::uint32_t>(sums.begin(), sums.end()), product.expected);
  }
}

template <Mma M, int... Choice>
void check_choices(std::integer_sequence<int, Choice...> /*choices*/) {
  (check_product<M, Choice>(), ...);
}
template <int... I>
void check_products(std::integer_sequence<int, I...> /*indices*/) {
  (check_choices<tests::kProducts[I]>(
       std::make_integer_sequence<int, tests::scale_sources(tests::kProducts[I])>()),
   ...);
}

TEST(MmaSync, ProductsOfSmallIntegersAreExact) {
  check_products(std::make_integer_sequence<int, tests::kProductCount>());
}

// Integers wrap at 32 bits; a float32 sum takes four products at a time, and f16 sums round to f16.
TEST(MmaSync, WhereSumsAreNotExact) {
  const auto sum_of = [](auto tag, std::uint32_t a, std::uint32_t b, std::uint32_t sum) {
    constexpr Mma M = decltype(tag)::value;
    testing::Buffer<std::uint32_t> out("out", 32 * 8);
    EXPECT_CLEAN(testing::run(
        [&] {
          std::uint32_t as[atom::mma_registers_a(M)];
          std::uint32_t bs[atom::mma_registers_b(M)];
          isa::MmaSum<M> sums[atom::mma_registers_c(M)];
          for (std::uint32_t& word : as) word = a;
          for (std::uint32_t& word : bs) word = b;
          for (auto& word : sums) word = std::bit_cast<isa::MmaSum<M>>(sum);
          isa::mma_sync<M>(sums, as, bs);
          isa::GlobalView<std::uint32_t>{out.data()}.store(isa::thread_index(),
                                                           std::bit_cast<std::uint32_t>(sums[0]));
        },
        one_warp, out));
    return out[0];
  };
  using S8 =
      std::integral_constant<Mma, Mma{MmaKind::warp, 16, 8, 32, DType::s8, DType::s8, DType::s32}>;
  // 32 products of (-128)^2 above the largest integer.
  EXPECT_EQ(sum_of(S8{}, 0x80808080U, 0x80808080U, 0x7fffffffU), 0x7fffffffU + 32U * 16384U);
  using F16 =
      std::integral_constant<Mma, Mma{MmaKind::warp, 16, 8, 8, DType::f16, DType::f16, DType::f16}>;
  // 2048 + 8 x 0.25 = 2050 in f16; with products of 2^-3 the sum, 2049, is a tie and goes to even.
  EXPECT_EQ(sum_of(F16{}, 0x38003800U, 0x38003800U, 0x68006800U) & 0xffffU, 0x6801U);
  EXPECT_EQ(sum_of(F16{}, 0x38003800U, 0x34003400U, 0x68006800U) & 0xffffU, 0x6800U);
  using F32 = std::integral_constant<Mma, Mma{MmaKind::warp, 16, 8, 8, DType::f16, DType::f16}>;
  // 2^24 + 4 x 0.5, twice: each group of four is seen whole.
  EXPECT_EQ(sum_of(F32{}, 0x38003800U, 0x3c003c00U, std::bit_cast<std::uint32_t>(16777216.0F)),
            std::bit_cast<std::uint32_t>(16777220.0F));
}

TEST(MmaSync, AllLanesExecuteOneInstruction) {
  static constexpr Mma one{MmaKind::warp, 16, 8, 8};
  static constexpr Mma other{MmaKind::warp, 16, 8, 8, DType::bf16, DType::bf16};
  const auto kernel = [](int lanes, bool mixed) {
    std::uint32_t a[2] = {};
    std::uint32_t b[1] = {};
    float sums[4] = {};
    if (isa::thread_index() >= lanes) return;
    if (mixed && isa::thread_index() % 2 == 1) return isa::mma_sync<other>(sums, a, b);
    isa::mma_sync<one>(sums, a, b);
  };
  EXPECT_CLEAN(testing::run(chosen(kernel, 32, false), one_warp));
  EXPECT_FINDING(testing::run(chosen(kernel, 31, false), one_warp), Check::divergence);
  EXPECT_FINDING(testing::run(chosen(kernel, 32, true), one_warp), Check::divergence);
}

// What an instruction may take of registers of scales; the same of all lanes.
TEST(MmaSync, ScalesComeFromOneChoiceOfLanesAndBytes) {
  static constexpr Mma mxf8 = tests::scaled(MmaKind::mxf8f6f4, 32, DType::e4m3, 32, DType::ue8m0);
  static constexpr Mma nvf4 = tests::scaled(MmaKind::mxf4nvf4, 64, DType::e2m1, 16, DType::ue4m3);
  const auto has = [](const char* fault, const char* part) {
    return fault != nullptr && std::string(fault).find(part) != std::string::npos;
  };
  EXPECT_EQ(atom::mma_scales_fault(mxf8, {3, 1, 2, 3}), nullptr);
  EXPECT_EQ(atom::mma_scales_fault(nvf4, {0, 1, 0, 3}), nullptr);
  EXPECT_TRUE(has(atom::mma_scales_fault(mxf8, {4, 0, 0, 0}), "a multiple of how many"));
  EXPECT_TRUE(has(atom::mma_scales_fault(nvf4, {0, 0, 1, 0}), "a multiple of how many"));
  EXPECT_TRUE(has(atom::mma_scales_fault(mxf8, {0, 2, 0, 0}), "pair 0 or 1"));
  EXPECT_TRUE(has(atom::mma_scales_fault(mxf8, {0, 0, 0, 4}), "0 to 3"));
  const auto kernel = [](bool mixed) {
    const std::uint32_t a[4] = {};
    const std::uint32_t b[2] = {};
    float sums[4] = {};
    if (mixed && isa::thread_index() == 5) {
      return isa::mma_sync<mxf8>(sums, a, b, isa::MmaScales<atom::MmaScaleSource{1}>{});
    }
    isa::mma_sync<mxf8>(sums, a, b, isa::MmaScales<atom::MmaScaleSource{}>{});
  };
  EXPECT_CLEAN(testing::run(chosen(kernel, false), one_warp));
  EXPECT_FINDING(testing::run(chosen(kernel, true), one_warp), Check::divergence);
}

// Operands through ldmatrix, as the register family loads them: A of 16 x 16 by one .x4, two
// columns of B (16 x 16, N x K) by another; transposed, from a tile whose rows lie along K.
TEST(MmaSync, LdmatrixFillsItsFragments) {
  static constexpr Mma mma{MmaKind::warp, 16, 8, 16};
  for (const bool transposed : {false, true}) {
    testing::Buffer<float> out("out", 16 * 16);
    const auto half = [](int value) {
      return static_cast<std::uint16_t>(numeric::from_double(DType::f16, value));
    };
    const auto element_a = [](int m, int k) { return (3 * m + 5 * k) % 7 - 3; };
    const auto element_b = [](int n, int k) { return (2 * n + 3 * k) % 5 - 2; };
    EXPECT_CLEAN(testing::run(
        [&] {
          const isa::SharedAddress at_a = isa::shared_base();
          const isa::SharedAddress at_b = at_a + 512;
          const int lane = isa::thread_index();
          for (int i = lane; i < 256; i += 32) {
            const int row = i / 16;
            const int column = i % 16;
            isa::SharedView<std::uint16_t>{at_a}.store(
                i, half(transposed ? element_a(column, row) : element_a(row, column)));
            isa::SharedView<std::uint16_t>{at_b}.store(
                i, half(transposed ? element_b(column, row) : element_b(row, column)));
          }
          isa::sync_warp();
          // The lane's row of the tile, and the 16-byte chunk in it.
          const auto row_at = [](isa::SharedAddress tile, int row, int chunk) {
            return tile + static_cast<isa::SharedAddress>(32 * row + 16 * chunk);
          };
          std::uint32_t a[4];
          std::uint32_t b[4];
          if (transposed) {
            isa::load_matrix<4, true>(row_at(at_a, lane % 8 + 8 * (lane / 16), lane / 8 % 2), a);
            isa::load_matrix<4, true>(row_at(at_b, lane % 16, lane / 16), b);
          } else {
            isa::load_matrix<4>(row_at(at_a, lane % 16, lane / 16), a);
            isa::load_matrix<4>(row_at(at_b, lane % 8 + 8 * (lane / 16), lane / 8 % 2), b);
          }
          for (int n = 0; n < 2; ++n) {
            float sums[4] = {};
            const std::uint32_t columns[2] = {b[2 * n], b[2 * n + 1]};
            isa::mma_sync<mma>(sums, a, columns);
            for (int v = 0; v < 4; ++v) {
              const int row = lane / 4 + 8 * (v / 2);
              const int column = 8 * n + 2 * (lane % 4) + v % 2;
              isa::GlobalView<float>{out.data()}.store(row * 16 + column, sums[v]);
            }
          }
        },
        one_warp, out));
    for (int m = 0; m < 16; ++m) {
      for (int n = 0; n < 16; ++n) {
        int sum = 0;
        for (int k = 0; k < 16; ++k) sum += element_a(m, k) * element_b(n, k);
        ASSERT_EQ(out[static_cast<std::size_t>(m * 16 + n)], static_cast<float>(sum))
            << m << ", " << n << (transposed ? ", transposed" : "");
      }
    }
  }
}

}  // namespace
}  // namespace warpwright::model
