// A correction of floors (families/floor.h), learnt from measured times: gradient-boosted trees,
// which `script/learn.py` makes of bench/times.tsv.gz, kept as text in correction.tar.xz.
//
// The text is lines of words between blanks. The first is "warpwright-correction 1", the format and
// its version; others are
// - features NAME...: what trees ask for, any of a floor's in any order, which numbers them from 0;
// - held-out MxNxK...: products that had no part in it;
// - times N of CARD, CARD: what it was learnt from, for readers;
// - tree WORD...: a tree in preorder. F:T asks whether feature F is at most T, and the subtree for
//   yes comes first; =V is a leaf.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/plan/product/refusal.h"

namespace warpwright {

class Correction {
 public:
  /// Reads the text, whose features are some of these; refuses another version, other features, and
  /// numbers that are none, by line and word.
  static Result<Correction> parse(std::string_view text, std::span<const char* const> features);

  /// What a floor with these features is multiplied by: e to the sum of the trees' leaves.
  [[nodiscard]] double factor(std::span<const double> features) const;
  /// The same of several floors, a tree at a time.
  [[nodiscard]] std::vector<double> factors(std::span<const std::span<const double>> all) const;

  [[nodiscard]] std::size_t trees() const { return trees_.size(); }
  /// Products that it was not learnt from: "2048x2048x2048".
  [[nodiscard]] const std::vector<std::string>& held_out() const { return held_out_; }

 private:
  friend class CorrectionReader;

  struct Node {
    std::uint8_t feature = 0;
    std::uint8_t yes = 0;  // nodes to where the subtree for yes begins; 0 at a leaf, as is `no`
    std::int16_t no = 0;
    float number = 0;  // the limit, or the leaf's value
  };
  struct Tree {
    std::size_t root = 0;
    int depth = 0;  // questions on its longest way
  };

  [[nodiscard]] float leaf(const Tree& tree, std::span<const double> features) const;

  std::vector<Node> nodes_;
  std::vector<Tree> trees_;
  std::vector<std::string> held_out_;
};

}  // namespace warpwright
