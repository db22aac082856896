// What expressions give, as text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "warpwright/layout/error.h"
#include "warpwright/layout/expression.h"

namespace warpwright::layout {

inline std::string answer(const std::string& expression) {
  return to_text(evaluate(expression));
}

/// The sentence by which an expression is refused.
inline std::string refusal(const std::string& expression) {
  try {
    const Value value = evaluate(expression);
    ADD_FAILURE() << expression << " gave " << to_text(value);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace warpwright::layout
