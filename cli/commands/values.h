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
  CLI::Option* operator()(const char* names, Value& value, const std::string& type,
                          const std::string& help) const {
    using Held = typename Plain<Value>::type;
    CLI::Option* option = unchecked(names, value, type, help);
    if constexpr (std::is_same_v<Held, double>) option->check(number_fault);
    if constexpr (std::is_same_v<Held, int>) option->check(whole<int>());
    if constexpr (std::is_same_v<Held, std::int64_t>)
      option->check(whole<std::int64_t>(0, max_extent));
    if constexpr (std::is_same_v<Held, std::uint64_t>) option->check(refuse_seed);
    return option;
  }
  /// One with a check of its own.
  template <class Value, class Check>
  CLI::Option* operator()(const char* names, Value& value, const std::string& type,
                          const std::string& help, const Check& check) const {
    return unchecked(names, value, type, help)->check(check);
  }

  /// --json [FILE.json], which `wants` to be; without a file all that is printed.
  void json_file(bool& wants, std::string& file, const char* help) const {
    const CLI::Option* const json =
        app_.add_option("--json", file, help)->expected(0, 1)->option_text("[FILE.json]");
    app_.parse_complete_callback([&wants, json] { wants = json->count() > 0; });
  }

 private:
  template <class Value>
  CLI::Option* unchecked(const char* names, Value& value, const std::string& type,
                         const std::string& help) const {
    CLI::Option* option = app_.add_option(names, value, help)->type_name(type);
    using Held = typename Plain<Value>::type;
    if constexpr (!std::is_same_v<Held, Value>) option->default_function(value_text(value));
    return option;
  }

  CLI::App& app_;
};

}  // namespace warpwright::cli
