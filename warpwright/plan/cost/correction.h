// A correction of floors (families/floor.h), learnt from measured times: gradient-boosted trees,
// which `script/learn.py` makes of bench/times.tsv.gz, kept as text in correction.tar.xz.
//
// The text is lines of words between blanks:
//   warpwright-correction 1     the format and its version
//   features NAME...            what trees ask for, in the order of their numbers
//   held-out MxNxK...           products that had no part in it
//   times N of CARD, CARD       what it was learnt from; for readers
//   tree WORD...                a tree in preorder: F:T asks whether feature F is at most T, the
//                               subtree for yes first; =V is a leaf
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
  /// Reads the text for these features; refuses another version, other features, and numbers that
  /// are none, by line and word.
  static Result<Correction> parse(std::string_view text, std::span<const char* const> features);

  /// What a floor with these features is multiplied by: e to the sum of the trees' leaves.
  [[nodiscard]] double factor(std::span<const double> features) const;

  [[nodiscard]] std::size_t trees() const { return roots_.size(); }
  /// Products that it was not learnt from: "2048x2048x2048".
  [[nodiscard]] const std::vector<std::string>& held_out() const { return held_out_; }

 private:
  friend class CorrectionReader;

  struct Node {
    std::int32_t feature = -1;  // -1 at a leaf
    std::int32_t no = 0;        // where the subtree for no begins; that for yes is the next node
    double number = 0;          // the limit, or the leaf's value
  };

  std::vector<Node> nodes_;
  std::vector<std::int32_t> roots_;
  std::vector<std::string> held_out_;
};

}  // namespace warpwright
