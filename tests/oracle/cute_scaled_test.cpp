// The words of block-scaled UMMA atoms, and where their scales lie in tensor memory, equal CuTe's.
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/oracle/cute.h"
#include "warpwright/atom/umma_scaled.h"

namespace warpwright::oracle {
namespace {

using atom::UmmaKind;

// CuTe has another type for elements of fewer bits that are padded, as they are where types mix.
template <UmmaKind Kind, DType T>
struct ScaledTypeOf {
  using type = CuteType<T>;
};
template <UmmaKind Kind>
struct ScaledTypeOf<Kind, DType::e2m3> {
  using type = cutlass::detail::float_e2m3_unpacksmem_t;
};
template <UmmaKind Kind>
struct ScaledTypeOf<Kind, DType::e3m2> {
  using type = cutlass::detail::float_e3m2_unpacksmem_t;
};
template <UmmaKind Kind>
struct ScaledTypeOf<Kind, DType::e2m1> {
  using type = std::conditional_t<Kind == UmmaKind::mxf8f6f4,
                                  cutlass::detail::float_e2m1_unpacksmem_t, cutlass::float_e2m1_t>;
};
template <DType Scale>
using ScaleType =
    std::conditional_t<Scale == DType::ue8m0, cutlass::float_ue8m0_t, cutlass::float_ue4m3_t>;

// With every id: CuTe takes them from the upper two bits of the addresses of scales.
template <UmmaKind Kind, DType A, DType B, DType Scale, int M, int N, bool Mn>
void compare_word() {
  namespace U = cute::UMMA;
  constexpr auto major = Mn ? U::Major::MN : U::Major::K;
  atom::UmmaAtom one =
      atom::scaled_umma_atom(Kind, A, B, M, N, M == 256, Scale == DType::ue4m3 ? 16 : 32, Scale);
  one.a_major = one.b_major = Mn ? atom::Major::mn : atom::Major::k;
  ASSERT_EQ(atom::umma_fault(one), nullptr) << atom::umma_fault(one);
  const U::InstrDescriptorBlockScaled theirs =
      U::make_instr_desc_block_scaled<typename ScaledTypeOf<Kind, A>::type,
                                      typename ScaledTypeOf<Kind, B>::type, float, ScaleType<Scale>,
                                      M, N, major, major>();
  for (int id_a = 0; id_a < 4; ++id_a) {
    for (int id_b = 0; id_b < 4; ++id_b) {
      const auto at = [](int id) { return static_cast<std::uint32_t>(id) << 30; };
      const std::uint64_t word =
          U::make_runtime_instr_desc_block_scaled(theirs, at(id_a), at(id_b));
      EXPECT_EQ(atom::with_scale_ids(atom::encode_instruction(one), id_a, id_b),
                static_cast<std::uint32_t>(word >> 32));
    }
  }
}

template <DType A>
void compare_words_of() {
  compare_word<UmmaKind::mxf8f6f4, A, DType::e4m3, DType::ue8m0, 128, 8, false>();
  compare_word<UmmaKind::mxf8f6f4, A, DType::e5m2, DType::ue8m0, 256, 256, true>();
  compare_word<UmmaKind::mxf8f6f4, A, DType::e2m3, DType::ue8m0, 128, 64, false>();
  compare_word<UmmaKind::mxf8f6f4, A, DType::e3m2, DType::ue8m0, 256, 32, true>();
  compare_word<UmmaKind::mxf8f6f4, A, DType::e2m1, DType::ue8m0, 128, 240, false>();
}

TEST(CuteOracle, BlockScaledInstructionDescriptors) {
  using enum DType;
  compare_words_of<e4m3>();
  compare_words_of<e5m2>();
  compare_words_of<e2m3>();
  compare_words_of<e3m2>();
  compare_words_of<e2m1>();
  compare_word<UmmaKind::mxf4, e2m1, e2m1, ue8m0, 128, 8, false>();
  compare_word<UmmaKind::mxf4, e2m1, e2m1, ue8m0, 256, 240, false>();
  compare_word<UmmaKind::mxf4nvf4, e2m1, e2m1, ue4m3, 128, 256, false>();
  compare_word<UmmaKind::mxf4nvf4, e2m1, e2m1, ue4m3, 256, 16, false>();
}

TEST(CuteOracle, LongInstructionDescriptors) {
  cute::UMMA::InstrDescriptorBlockScaled theirs =
      cute::UMMA::make_instr_desc_block_scaled<cutlass::float_e2m1_t, cutlass::float_e2m1_t, float,
                                               cutlass::float_ue8m0_t, 128, 192,
                                               cute::UMMA::Major::K, cute::UMMA::Major::K>();
  theirs.k_size_ = 1;
  atom::UmmaAtom one =
      atom::scaled_umma_atom(UmmaKind::mxf4, DType::e2m1, DType::e2m1, 128, 192, false);
  one.k = atom::kUmmaLongK;
  EXPECT_EQ(atom::encode_instruction(one), static_cast<std::uint32_t>(theirs));
}

// A place in CuTe's tensor memory of bytes.
std::uint32_t byte_place(const atom::ScaleCell& cell, int column) {
  return static_cast<std::uint32_t>(cell.lane) << 18 |
         static_cast<std::uint32_t>(4 * (cell.column + column) + cell.byte);
}

// `Scales` a row and instruction, in two words along K; for 64 rows in one, for the next begins
// where one likes: here behind the whole atom that a copy writes.
template <int Scales, int Rows, bool OfB, bool Folded, class Coordinate>
void compare_scale_cells(const atom::UmmaAtom& one, const Coordinate& coordinate) {
  constexpr int block = Scales == 4 ? 16 : 32;
  constexpr int steps = (Rows == 64 ? 4 : 8) / Scales;
  using Mode = cute::UMMA::TmemAllocMode;
  using Fragment = cute::UMMA::tmem_sf_frg<cutlass::float_ue8m0_t, block, Folded ? 2 : 1, !OfB,
                                           Folded && OfB ? Mode::ScaleFactorDuplicated2by2
                                                         : Mode::ScaleFactorDuplicated4by1>;
  const auto fragment = Fragment::make(cute::make_shape(
      cute::Shape<cute::Int<Rows>, cute::Shape<cute::Int<block>, cute::Int<Scales>>>{}, cute::_1{},
      cute::Int<steps>{}));
  for (int step = 0; step < steps; ++step) {
    const atom::ScaleStep at = atom::scale_step(one, step);
    for (int row = 0; row < Rows; ++row) {
      for (int s = 0; s < Scales; ++s) {
        const atom::ScaleCell cell =
            OfB ? atom::scale_cell_b(one, at.id, row, s) : atom::scale_cell_a(one, at.id, row, s);
        const auto theirs =
            fragment.layout()(cute::make_coord(coordinate(row), cute::make_coord(0, s)), 0, step);
        ASSERT_EQ(byte_place(cell, OfB ? at.column_b : at.column_a),
                  static_cast<std::uint32_t>(theirs))
            << "row " << row << " scale " << s << " step " << step;
      }
    }
  }
}

template <int Scales>
void compare_scale_cells_of(const atom::UmmaAtom& one, const atom::UmmaAtom& pair) {
  const auto straight = [](int row) { return cute::make_coord(row, 0); };
  compare_scale_cells<Scales, 128, false, false>(one, straight);
  compare_scale_cells<Scales, 256, true, false>(one, straight);
  compare_scale_cells<Scales, 64, false, true>(pair, straight);
  compare_scale_cells<Scales, 256, true, true>(
      pair, [](int row) { return cute::make_coord(row % 128, row / 128, 0); });
}

TEST(CuteOracle, ScalesInTensorMemory) {
  const auto atom = [](UmmaKind kind, DType type, int block, bool pair) {
    return atom::scaled_umma_atom(kind, type, type, 128, 256, pair, block);
  };
  compare_scale_cells_of<1>(atom(UmmaKind::mxf8f6f4, DType::e4m3, 32, false),
                            atom(UmmaKind::mxf8f6f4, DType::e4m3, 32, true));
  compare_scale_cells_of<2>(atom(UmmaKind::mxf4, DType::e2m1, 32, false),
                            atom(UmmaKind::mxf4, DType::e2m1, 32, true));
  compare_scale_cells_of<4>(atom(UmmaKind::mxf4nvf4, DType::e2m1, 16, false),
                            atom(UmmaKind::mxf4nvf4, DType::e2m1, 16, true));
}

}  // namespace
}  // namespace warpwright::oracle
