#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace warpwright::layout {

/// A refusal of the layout algebra, or of an atom: one sentence that names the law and the numbers.
class Error : public std::invalid_argument {
 public:
  /// `rule`: the part of the sentence that says what is legal, where there is one.
  explicit Error(const std::string& sentence, std::string rule = {})
      : std::invalid_argument(sentence), rule_(std::move(rule)) {}

  [[nodiscard]] const std::string& rule() const { return rule_; }

 private:
  std::string rule_;
};

}  // namespace warpwright::layout
