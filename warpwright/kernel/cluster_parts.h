// Who adds up what of a tile whose sums the CTAs of a cluster share along K.
//
// A unit is eight columns of the rows of one warp: of as many atoms as it has, four sums of each in
// a lane. Units are numbered column by column, the warps of each one after the other, and every CTA
// adds up a range of them: so each warp has some columns, side by side. The other CTAs send their
// sums of a unit to its CTA, each to a place of its own.
#pragma once

namespace warpwright::kernel {

struct ClusterParts {
  int warps = 1;  ///< that hold sums
  int words = 1;  ///< eights of columns of the tile
  int atoms = 1;  ///< of 64 rows, of a warp

  static constexpr int most_ctas = 16;
  static constexpr int atom_bytes = 32 * 16;  ///< of a unit: four floats a lane

  [[nodiscard]] constexpr int units() const { return warps * words; }
  [[nodiscard]] constexpr int unit_bytes() const { return atoms * atom_bytes; }
  /// The first unit of CTA `rank` of so many.
  [[nodiscard]] constexpr int first(int rank, int ctas) const { return units() * rank / ctas; }
  /// Whose unit it is.
  [[nodiscard]] constexpr int owner(int unit, int ctas) const {
    return ((unit + 1) * ctas - 1) / units();
  }
  /// Columns of a warp, in eights, whose units lie before `unit`.
  [[nodiscard]] constexpr int words_before(int unit, int warp) const {
    return (unit - warp + warps - 1) / warps;
  }
  /// Room for what a CTA gets, in clusters of any size.
  [[nodiscard]] constexpr int bytes() const {
    int most = 0;
    for (int ctas = 2; ctas <= most_ctas; ++ctas) {
      const int places = (units() + ctas - 1) / ctas * (ctas - 1);
      most = places > most ? places : most;
    }
    return most * unit_bytes();
  }
};

}  // namespace warpwright::kernel
