// The instruction descriptors of every UMMA atom of the tree equal CuTe's.
#include <gtest/gtest.h>

#include <cstddef>
#include <utility>

#include "tests/oracle/cute.h"
#include "warpwright/atom/umma.h"

namespace warpwright::oracle {
namespace {

constexpr cute::UMMA::Major cute_major(atom::Major major) {
  return major == atom::Major::k ? cute::UMMA::Major::K : cute::UMMA::Major::MN;
}

// CuTe's word for the same instruction; it knows N and M only as template arguments.
template <DType A, DType B, DType D, int M, int N, atom::Major MajorA, atom::Major MajorB>
std::uint32_t cute_word() {
  return static_cast<std::uint32_t>(
      cute::UMMA::make_instr_desc<CuteType<A>, CuteType<B>, CuteType<D>, M, N, cute_major(MajorA),
                                  cute_major(MajorB)>());
}

template <DType A, DType B, DType D, int M, int N, atom::Major MajorA, atom::Major MajorB>
void compare_word(bool pair, int& compared) {
  atom::UmmaAtom one = atom::umma_atom(A, B, D, M, N, pair);
  one.a_major = MajorA;
  one.b_major = MajorB;
  if (atom::umma_fault(one) != nullptr) return;
  ++compared;
  EXPECT_EQ(atom::encode_instruction(one), (cute_word<A, B, D, M, N, MajorA, MajorB>()))
      << M << " x " << N;
}

template <DType A, DType B, DType D, int M, std::size_t... I>
void compare_words_of_m(int& compared, std::index_sequence<I...> /*n*/) {
  using atom::Major;
  for (const bool pair : {false, true}) {
    (compare_word<A, B, D, M, 8 * (I + 1), Major::k, Major::k>(pair, compared), ...);
    (compare_word<A, B, D, M, 8 * (I + 1), Major::mn, Major::mn>(pair, compared), ...);
  }
}

template <DType A, DType B, DType D>
int compare_words() {
  int compared = 0;
  compare_words_of_m<A, B, D, 64>(compared, std::make_index_sequence<32>());
  compare_words_of_m<A, B, D, 128>(compared, std::make_index_sequence<32>());
  compare_words_of_m<A, B, D, 256>(compared, std::make_index_sequence<32>());
  return compared;
}

TEST(CuteOracle, InstructionDescriptors) {
  using enum DType;
  // 64 shapes of one CTA and 32 of a pair, in two majors each.
  EXPECT_EQ((compare_words<f16, f16, f32>()), 2 * 96);
  EXPECT_EQ((compare_words<f16, f16, f16>()), 2 * 96);
  EXPECT_EQ((compare_words<bf16, bf16, f32>()), 2 * 96);
  EXPECT_EQ((compare_words<tf32, tf32, f32>()), 2 * 96);
  // A transposed 8-bit B halves the choice of N.
  EXPECT_EQ((compare_words<e4m3, e4m3, f32>()), 96 + 48);
  EXPECT_EQ((compare_words<e4m3, e5m2, f32>()), 96 + 48);
  EXPECT_EQ((compare_words<e5m2, e4m3, f16>()), 96 + 48);
  EXPECT_EQ((compare_words<e5m2, e5m2, f32>()), 96 + 48);
}

}  // namespace
}  // namespace warpwright::oracle
