// Who is who in a thread block cluster, and which CTAs a multicast load or a commit must reach.
//
// A cluster of m x n CTAs computes m x n output tiles (or, with pairs, m/2 x n tiles of double
// height). CTAs in one column x need the same rows of A, CTAs in one row y the same columns of B,
// so each of them loads a slice and multicasts it to the others. Everything here is arithmetic on
// 16-bit CTA sets and runs on the host, at compile time and on the device.
#pragma once

#include <cstdint>

namespace warpwright::atom {

/// CTAs of a cluster: `m` along the rows of the output (cluster x), `n` along its columns (y).
struct ClusterShape {
  int m = 1;
  int n = 1;

  friend constexpr bool operator==(const ClusterShape&, const ClusterShape&) = default;
};

/// Position of a CTA in its cluster: x along M, y along N.
struct ClusterCoord {
  int x = 0;
  int y = 0;

  friend constexpr bool operator==(const ClusterCoord&, const ClusterCoord&) = default;
};

/// The largest cluster any kernel may launch (the non-portable limit; also the width of a mask).
inline constexpr int kMaxClusterSize = 16;
/// The largest cluster every sm_90+ device accepts without opting in to a non-portable size.
inline constexpr int kPortableClusterSize = 8;

constexpr int cluster_size(ClusterShape shape) {
  return shape.m * shape.n;
}

/// `%cluster_ctarank` of the CTA at (x, y): x runs fastest.
constexpr int rank_of(ClusterShape shape, ClusterCoord at) {
  return at.x + at.y * shape.m;
}

constexpr ClusterCoord coord_of(ClusterShape shape, int rank) {
  return {rank % shape.m, rank / shape.m};
}

/// The other CTA of a pair (2-SM MMA): the two ranks differ in bit 0 (PTX, tcgen05 CTA pair).
constexpr int pair_peer(int rank) {
  return rank ^ 1;
}
/// The even CTA issues the MMAs of its pair and owns the barriers the pair's loads complete on.
constexpr bool is_pair_leader(int rank) {
  return (rank & 1) == 0;
}

/// The same offset in the pair leader's shared memory. A shared::cluster address is
/// rank << 24 | offset, so clearing bit 24 selects the even rank (CUTLASS Sm100MmaPeerBitMask).
constexpr std::uint32_t pair_leader_address(std::uint32_t shared_cluster_address) {
  return shared_cluster_address & 0xfeffffffu;
}

/// Why a cluster shape is refused; `none` when it is legal.
enum class ClusterFault { none, extent_below_one, too_many_ctas, pair_needs_even_m };

/// The machine's own rules and no more: at least one CTA each way, at most 16 together, and an even
/// extent along M where pairs are wanted, because a pair shares one tile along M. Extents need not
/// be powers of two (cuBLASLt lists clusters such as 3x1 and 5x3); whether a tile can be cut into
/// multicast slices depends on the tile: see `slices_evenly`.
constexpr ClusterFault cluster_fault(ClusterShape shape, bool pair = false) {
  if (shape.m < 1 || shape.n < 1) return ClusterFault::extent_below_one;
  if (shape.m > kMaxClusterSize || shape.n > kMaxClusterSize / shape.m) {
    return ClusterFault::too_many_ctas;
  }
  if (pair && shape.m % 2 != 0) return ClusterFault::pair_needs_even_m;
  return ClusterFault::none;
}

constexpr const char* sentence(ClusterFault fault) {
  switch (fault) {
    case ClusterFault::none:
      return "the cluster is legal";
    case ClusterFault::extent_below_one:
      return "a cluster has at least one CTA along M and along N";
    case ClusterFault::too_many_ctas:
      return "a cluster has at most 16 CTAs";
    case ClusterFault::pair_needs_even_m:
      return "a CTA pair lies along M, so the cluster's M must be even";
  }
  return "unknown";
}

/// The legal shape nearest to the wanted one: fewest CTAs changed along M plus along N, and of two
/// equally near ones the larger.
constexpr ClusterShape nearest_legal(ClusterShape wanted, bool pair = false) {
  // Beyond one CTA outside the legal range, distance no longer changes the answer; clamping keeps
  // the sums from overflowing.
  const int limit = kMaxClusterSize + 1;
  const int want_m = wanted.m < 0 ? 0 : (wanted.m > limit ? limit : wanted.m);
  const int want_n = wanted.n < 0 ? 0 : (wanted.n > limit ? limit : wanted.n);
  ClusterShape best{pair ? 2 : 1, 1};
  int best_distance = 4 * limit;
  for (int m = 1; m <= kMaxClusterSize; ++m) {
    for (int n = 1; n <= kMaxClusterSize; ++n) {
      const ClusterShape shape{m, n};
      if (cluster_fault(shape, pair) != ClusterFault::none) continue;
      const int distance =
          (m > want_m ? m - want_m : want_m - m) + (n > want_n ? n - want_n : want_n - n);
      if (distance < best_distance ||
          (distance == best_distance && cluster_size(shape) > cluster_size(best))) {
        best = shape;
        best_distance = distance;
      }
    }
  }
  return best;
}

/// Whether an operand tile of `rows` rows (M of A, N of B) can be cut into `slices` multicast
/// slices of whole `unit`s. A K-major tile is cut between 8-row groups, where the swizzle pattern
/// repeats; an MN-major one between TMA boxes, so `unit` is then the span in elements.
constexpr bool slices_evenly(int rows, int slices, int unit = 8) {
  return rows % (unit * slices) == 0;
}

/// The CTAs with this x: they need the same rows of A.
constexpr std::uint16_t column_set(ClusterShape shape, int x) {
  unsigned set = 0;
  for (int y = 0; y < shape.n; ++y) set |= 1u << (x + y * shape.m);
  return static_cast<std::uint16_t>(set);
}

/// The CTAs with this y: they need the same columns of B.
constexpr std::uint16_t row_set(ClusterShape shape, int y) {
  return static_cast<std::uint16_t>(((1u << shape.m) - 1u) << (y * shape.m));
}

/// CTA sets of one CTA; bit r is the CTA with `%cluster_ctarank` r.
struct Masks {
  std::uint16_t a = 0;       ///< who receives the A slice this CTA loads (TMA multicast mask)
  std::uint16_t b = 0;       ///< who receives the B slice this CTA loads
  std::uint16_t commit = 0;  ///< whose empty barrier hears that this CTA's MMA has read a stage
  int arrivals = 0;          ///< MMA issuers whose commit reaches this CTA's empty barrier

  friend constexpr bool operator==(const Masks&, const Masks&) = default;
};

/// Multicast and commit masks of CTA `rank` for MMAs of one SM (`pair` false: wgmma, tcgen05
/// cta_group::1) or of a CTA pair (tcgen05 cta_group::2). The shape must be legal.
///
/// - An A slice goes to the CTAs that hold the same rows of A: the same x, any y.
/// - A B slice goes to the CTAs that hold the same columns of B: the same y, any x; with pairs the
///   two CTAs of a pair hold different halves of those columns, so only CTAs of the same parity.
/// - An MMA reads stages of its own CTA (of both CTAs of its pair). Each CTA that wrote a slice of
///   them must hear the commit before it may write again: the senders of A and of B. Both masks are
///   symmetric (who receives from me also sends to me), so this is their union over the MMA's CTAs.
/// - Each MMA issuer arrives once: the CTAs (the pairs) of the same x and those of the same y,
///   counting the own one once.
/// Facts: CUTLASS create_tma_multicast_mask, copy_traits_sm90_tma.hpp.
constexpr Masks masks(ClusterShape shape, int rank, bool pair) {
  const ClusterCoord at = coord_of(shape, rank);
  const unsigned column = column_set(shape, at.x);
  const unsigned row = row_set(shape, at.y);
  Masks result;
  result.a = static_cast<std::uint16_t>(column);
  if (!pair) {
    result.b = static_cast<std::uint16_t>(row);
    result.commit = static_cast<std::uint16_t>(column | row);
    result.arrivals = shape.m + shape.n - 1;
    return result;
  }
  const unsigned same_parity = 0x5555u << (rank & 1);  // m is even: rank and x have one parity
  result.b = static_cast<std::uint16_t>(row & same_parity);
  result.commit = static_cast<std::uint16_t>(column | column_set(shape, pair_peer(at.x)) | row);
  result.arrivals = shape.m / 2 + shape.n - 1;
  return result;
}

}  // namespace warpwright::atom
