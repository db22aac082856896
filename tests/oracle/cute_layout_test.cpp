// The thread/value layouts and accumulator layouts of every UMMA atom of the tree equal CuTe's.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>

#include "tests/oracle/cute.h"
#include "warpwright/atom/tcgen05_layout.h"
#include "warpwright/atom/umma.h"
#include "warpwright/layout/text.h"

namespace warpwright::oracle {
namespace {

// CuTe's traits of a K-major atom.
template <DType T, int M, int N, bool Pair>
struct TraitsOf {
  using Element = CuteType<T>;
  static constexpr auto major = cute::UMMA::Major::K;
  static constexpr auto one = cute::UMMA::ScaleIn::One;
  template <class Op>
  using Narrow = cute::MMA_Traits<Op, Element, Element, float, cute::C<M>, cute::C<N>,
                                  cute::integral_constant<cute::UMMA::Major, major>,
                                  cute::integral_constant<cute::UMMA::Major, major>,
                                  cute::integral_constant<cute::UMMA::ScaleIn, one>,
                                  cute::integral_constant<cute::UMMA::ScaleIn, one>>;
  static auto pick() {
    if constexpr (T == DType::tf32 && Pair) {
      return cute::MMA_Traits<
          cute::SM100_MMA_TF32_2x1SM_SS<Element, Element, float, M, N, major, major>>{};
    } else if constexpr (T == DType::tf32) {
      return cute::MMA_Traits<
          cute::SM100_MMA_TF32_SS<Element, Element, float, M, N, major, major>>{};
    } else if constexpr (numeric::bits(T) == 16 && Pair) {
      return cute::MMA_Traits<
          cute::SM100_MMA_F16BF16_2x1SM_SS<Element, Element, float, M, N, major, major>>{};
    } else if constexpr (numeric::bits(T) == 16) {
      return cute::MMA_Traits<
          cute::SM100_MMA_F16BF16_SS<Element, Element, float, M, N, major, major>>{};
    } else if constexpr (Pair) {
      return Narrow<cute::SM100_MMA_F8F6F4_2x1SM_SS>{};
    } else {
      return Narrow<cute::SM100_MMA_F8F6F4_SS>{};
    }
  }
  using type = decltype(pick());
};

template <DType T, int M, int N, bool Pair>
int compare_layouts() {
  constexpr atom::UmmaAtom one = atom::umma_atom(T, T, DType::f32, M, N, Pair);
  if constexpr (atom::umma_fault(one) != nullptr) {
    return 0;
  } else {
    using Traits = typename TraitsOf<T, M, N, Pair>::type;
    SCOPED_TRACE(std::to_string(M) + " x " + std::to_string(N) + (Pair ? " of a pair" : ""));
    EXPECT_EQ(layout::to_text(atom::tcgen05_thr_id(Pair)), layout_text(typename Traits::ThrID{}));
    EXPECT_EQ(layout::to_text(atom::tcgen05_layout_a_tv(M, one.k, Pair)),
              layout_text(typename Traits::ALayout{}));
    EXPECT_EQ(layout::to_text(atom::tcgen05_layout_b_tv(N, one.k, Pair)),
              layout_text(typename Traits::BLayout{}));
    EXPECT_EQ(layout::to_text(atom::tcgen05_layout_c_tv(M, N, Pair)),
              layout_text(typename Traits::CLayout{}));
    EXPECT_EQ(one.k, int{cute::get<2>(typename Traits::Shape_MNK{})});
    return 1;
  }
}

template <DType T, int M, bool Pair, std::size_t... I>
int compare_layouts_of_m(std::index_sequence<I...> /*n*/) {
  return (compare_layouts<T, M, 8 * (I + 1), Pair>() + ...);
}

template <DType T>
int compare_layouts_of_type() {
  constexpr std::make_index_sequence<32> n;
  return compare_layouts_of_m<T, 64, false>(n) + compare_layouts_of_m<T, 128, false>(n) +
         compare_layouts_of_m<T, 128, true>(n) + compare_layouts_of_m<T, 256, true>(n);
}

TEST(CuteOracle, ThreadValueLayouts) {
  EXPECT_EQ(compare_layouts_of_type<DType::bf16>(), 96);
  EXPECT_EQ(compare_layouts_of_type<DType::tf32>(), 96);
  EXPECT_EQ(compare_layouts_of_type<DType::e4m3>(), 96);
}

template <int M, int N, bool Pair>
void compare_cells() {
  constexpr atom::UmmaAtom one = atom::umma_atom(DType::bf16, DType::bf16, DType::f32, M, N, Pair);
  constexpr int rows = atom::umma_cta_rows(one);
  using Fragment = cute::UMMA::tmem_frg<float, std::uint32_t, Pair ? 2 : 1,
                                        cute::UMMA::TmemAllocMode::Interleaved>;
  const auto fragment = Fragment::make(
      cute::make_shape(cute::Shape<cute::Int<rows>, cute::Int<N>>{}, cute::_1{}, cute::_1{}));
  for (int row = 0; row < rows; ++row) {
    for (int col = 0; col < N; ++col) {
      const atom::TmemCell cell = atom::umma_cell(one, row, col);
      const auto theirs = fragment.layout()(cute::make_coord(row, col), 0, 0);
      ASSERT_EQ(atom::tmem_address(cell.lane, cell.column), static_cast<std::uint32_t>(theirs))
          << M << " x " << N << " at " << row << ", " << col;
    }
  }
}

template <int... N>
void compare_cells_of(std::integer_sequence<int, N...> /*n*/) {
  (compare_cells<64, N, false>(), ...);
  (compare_cells<128, N, false>(), ...);
  (compare_cells<128, N, true>(), ...);
  (compare_cells<256, N, true>(), ...);
}

TEST(CuteOracle, AccumulatorCells) {
  compare_cells_of(std::integer_sequence<int, 16, 32, 48, 64, 96, 128, 160, 192, 256>());
}

}  // namespace
}  // namespace warpwright::oracle
