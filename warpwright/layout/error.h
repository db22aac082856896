#pragma once

#include <stdexcept>
#include <string>

namespace warpwright::layout {

/// A refusal of the layout algebra: one sentence that names the law and the numbers.
class Error : public std::invalid_argument {
 public:
  explicit Error(const std::string& sentence) : std::invalid_argument(sentence) {}
};

}  // namespace warpwright::layout
