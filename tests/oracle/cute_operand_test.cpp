// Shared-memory descriptors and cluster masks equal CuTe's.
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/oracle/cute.h"
#include "warpwright/atom/cluster.h"
#include "warpwright/atom/cluster_layout.h"
#include "warpwright/atom/umma.h"
#include "warpwright/layout/text.h"

namespace warpwright::oracle {
namespace {

constexpr std::uint32_t base = 0x6400;

// CuTe's atoms of the canonical layouts.
template <class T, atom::Major M, atom::SmemSwizzle S>
auto layout_atom() {
  namespace U = cute::UMMA;
  if constexpr (M == atom::Major::k) {
    if constexpr (S == atom::SmemSwizzle::none)
      return U::Layout_K_INTER_Atom<T>{};
    else if constexpr (S == atom::SmemSwizzle::b32)
      return U::Layout_K_SW32_Atom<T>{};
    else if constexpr (S == atom::SmemSwizzle::b64)
      return U::Layout_K_SW64_Atom<T>{};
    else
      return U::Layout_K_SW128_Atom<T>{};
  } else {
    if constexpr (S == atom::SmemSwizzle::none)
      return U::Layout_MN_INTER_Atom<T>{};
    else if constexpr (S == atom::SmemSwizzle::b32)
      return U::Layout_MN_SW32_Atom<T>{};
    else if constexpr (S == atom::SmemSwizzle::b64)
      return U::Layout_MN_SW64_Atom<T>{};
    else
      return U::Layout_MN_SW128_Atom<T>{};
  }
}

// A tile as TMA leaves it: boxes of one span, one after the other.
template <class T, atom::Major M, atom::SmemSwizzle S, int Rows, int Depth>
void compare(DType type) {
  const atom::OperandTile tile{Rows, Depth, numeric::bits(type), M, S};
  ASSERT_EQ(atom::tile_fault(tile), nullptr);
  using Shape = cute::Shape<cute::Int<Rows>, cute::Int<Depth>>;
  const auto layout = [] {
    if constexpr (M == atom::Major::k) {
      return cute::tile_to_shape(layout_atom<T, M, S>(), Shape{});
    } else {
      return cute::tile_to_shape(layout_atom<T, M, S>(), Shape{}, cute::Step<cute::_2, cute::_1>{});
    }
  }();
  auto* start = reinterpret_cast<T*>(static_cast<std::uintptr_t>(base));  // NOLINT
  const auto tensor = cute::make_tensor(cute::make_smem_ptr(start), layout);
  constexpr int k = 256 / cute::sizeof_bits_v<T>;
  constexpr auto major = M == atom::Major::k ? cute::UMMA::Major::K : cute::UMMA::Major::MN;
  const auto first = cute::local_tile(tensor, cute::Shape<cute::Int<Rows>, cute::Int<k>>{},
                                      cute::make_coord(cute::_0{}, cute::_0{}));
  const std::uint64_t theirs = std::uint64_t{cute::UMMA::make_umma_desc<major>(first)};
  const std::uint64_t ours = atom::encode_umma(atom::descriptor(tile, base));
  EXPECT_EQ(ours, theirs) << numeric::name(type) << " swizzle " << atom::name(S) << " rows "
                          << Rows;
  EXPECT_EQ(atom::umma_descriptor_fault(theirs), nullptr);
  EXPECT_EQ(atom::decode_umma(theirs), atom::descriptor(tile, base));
}

template <class T, atom::SmemSwizzle S, int Rows>
void compare_k_major(DType type) {
  constexpr int depth = 1024 / cute::sizeof_bits_v<T>;
  compare<T, atom::Major::k, S, Rows, depth>(type);
}

template <class T>
void compare_type(DType type) {
  using enum atom::SmemSwizzle;
  compare_k_major<T, none, 64>(type);
  compare_k_major<T, b32, 64>(type);
  compare_k_major<T, b64, 64>(type);
  compare_k_major<T, b128, 64>(type);
  compare_k_major<T, b128, 128>(type);
  compare_k_major<T, b128, 256>(type);
}

TEST(CuteOracle, SharedMemoryDescriptors) {
  compare_type<cutlass::bfloat16_t>(DType::bf16);
  compare_type<cutlass::half_t>(DType::f16);
  compare_type<cutlass::float_e4m3_t>(DType::e4m3);
  compare_type<cutlass::tfloat32_t>(DType::tf32);
  using enum atom::SmemSwizzle;
  compare<cutlass::bfloat16_t, atom::Major::mn, none, 64, 64>(DType::bf16);
  compare<cutlass::bfloat16_t, atom::Major::mn, b32, 128, 64>(DType::bf16);
  compare<cutlass::bfloat16_t, atom::Major::mn, b64, 128, 64>(DType::bf16);
  compare<cutlass::bfloat16_t, atom::Major::mn, b128, 128, 64>(DType::bf16);
}

template <int M, int N, bool Pair>
void compare_masks() {
  constexpr atom::ClusterShape shape{M, N};
  if constexpr (atom::cluster_fault(shape, Pair) == atom::ClusterFault::none) {
    using ThrId = cute::Layout<cute::Int<Pair ? 2 : 1>>;
    const auto vmnk =
        cute::tiled_divide(cute::make_layout(cute::Shape<cute::Int<M>, cute::Int<N>, cute::_1>{}),
                           cute::make_tile(ThrId{}));
    EXPECT_EQ(layout::to_text(atom::cluster_layout_vmnk(shape, Pair)), layout_text(vmnk));
    for (int rank = 0; rank < M * N; ++rank) {
      const auto at = vmnk.get_flat_coord(rank);
      const atom::Masks ours = atom::masks(shape, rank, Pair);
      const std::uint16_t a = cute::create_tma_multicast_mask<2>(vmnk, at);
      const std::uint16_t b = cute::create_tma_multicast_mask<1>(vmnk, at);
      const auto commit =
          static_cast<std::uint16_t>(cute::create_tma_multicast_mask<0, 1>(vmnk, at) |
                                     cute::create_tma_multicast_mask<0, 2>(vmnk, at));
      EXPECT_EQ(ours.a, a) << M << "x" << N << " rank " << rank;
      EXPECT_EQ(ours.b, b) << M << "x" << N << " rank " << rank;
      EXPECT_EQ(ours.commit, commit) << M << "x" << N << " rank " << rank;
      EXPECT_EQ(ours.arrivals, int(cute::size<1>(vmnk)) + int(cute::size<2>(vmnk)) - 1);
    }
  }
}

template <int M, int N>
void compare_both() {
  compare_masks<M, N, false>();
  compare_masks<M, N, true>();
}

TEST(CuteOracle, MasksAndClusterLayouts) {
  compare_both<1, 1>();
  compare_both<2, 1>();
  compare_both<1, 2>();
  compare_both<2, 2>();
  compare_both<3, 2>();
  compare_both<4, 1>();
  compare_both<4, 2>();
  compare_both<2, 4>();
  compare_both<4, 4>();
  compare_both<8, 2>();
  compare_both<16, 1>();
  compare_both<1, 16>();
}

}  // namespace
}  // namespace warpwright::oracle
