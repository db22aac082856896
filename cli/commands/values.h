// Options with a value, as CLI11 adds them, with the checks that their type asks for.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>

#include "cli/commands/numbers.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {

/// What an option of this type holds.
template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<std::optional<T>> {
  using type = T;
};

/// What such an option holds, for arguments_text.
template <class T>
std::function<std::string()> value_text(const std::optional<T>& value) {
  return [&value] { return value ? CLI::detail::to_string(*value) : std::string(); };
}

/// Adds options with a value; one of these for each command.
class Values {
 public:
  explicit Values(CLI::App& app) : app_(app) {}
  template <class Value>
  CLI::Option* operator()(const char* names, Value& value, const char* type,
                          const std::string& help) const {
    CLI::Option* option = app_.add_option(names, value, help)->type_name(type);
    using Held = typename Plain<Value>::type;
    if constexpr (!std::is_same_v<Held, Value>) option->default_function(value_text(value));
    if constexpr (std::is_same_v<Held, double>) option->check(number_fault);
    if constexpr (std::is_same_v<Held, int>) option->check(whole<int>());
    if constexpr (std::is_same_v<Held, std::int64_t>)
      option->check(whole<std::int64_t>(0, max_extent));
    return option;
  }

 private:
  CLI::App& app_;
};

}  // namespace warpwright::cli
