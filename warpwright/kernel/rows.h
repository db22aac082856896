// Tables of kernels: a row is a configuration and the name that follows from it.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace warpwright::kernel {

/// The name of a kernel, made of what tells it from others.
class Name {
 public:
  constexpr Name(std::string_view text) {  // NOLINT(google-explicit-constructor)
    *this += text;
  }
  constexpr Name& operator+=(std::string_view text) {
    for (const char c : text) text_[static_cast<std::size_t>(size_++)] = c;
    return *this;
  }
  constexpr Name& operator+=(int number) {
    if (number > 9) *this += number / 10;
    const char digit = static_cast<char>('0' + number % 10);
    return *this += std::string_view(&digit, 1);
  }
  constexpr operator std::string_view() const {  // NOLINT(google-explicit-constructor)
    return {text_.data(), static_cast<std::size_t>(size_)};
  }
  [[nodiscard]] constexpr const char* c_str() const { return text_.data(); }

 private:
  std::array<char, 56> text_{};  // ends with a 0
  int size_ = 0;
};

/// A kernel of a table. Its family has name_of(config), config_fault(config), fits_smem(config).
template <class Config>
struct Row {
  Config config;
  bool common;  ///< whether every usual build has it
  Name name;
};

/// The deepest ring of stages that fits into shared memory, of at most 63: looked for bit by bit,
/// as compilers give up on long tables of long searches.
template <class Config>
constexpr int max_stages(Config c) {
  int most = 0;
  for (int bit = 32; bit > 0; bit /= 2) {
    c.stages = most + bit;
    if (fits_smem(c)) most = c.stages;
  }
  return most;
}

/// A row of every usual build. `stages` of 0 become max_stages.
template <class Config>
constexpr Row<Config> common(Config c) {
  if (c.stages == 0) c.stages = max_stages(c);
  return {c, true, name_of(c)};
}
/// Only for those builds that ask for it: WARPWRIGHT_KERNELS is all (the preset all), or names
/// it.
template <class Config>
constexpr Row<Config> more(Config c) {
  Row<Config> row = common(c);
  row.common = false;
  return row;
}

/// One table behind another.
template <class Config, std::size_t first, std::size_t second>
constexpr auto joined(const std::array<Row<Config>, first>& a,
                      const std::array<Row<Config>, second>& b) {
  const auto all = [&]<std::size_t... i>(std::index_sequence<i...> /*rows*/) {
    return std::array<Row<Config>, first + second>{
        {(i < first ? a[i < first ? i : 0] : b[i < first ? 0 : i - first])...}};
  };
  return all(std::make_index_sequence<first + second>{});
}

/// What is wrong with a table: "" where nothing is. A type that compilers print, text and all.
struct TableFault {
  char text[200]{};

  constexpr void add(std::string_view words) {
    std::size_t end = std::string_view(text).size();
    for (const char c : words) text[end++] = c;
  }
};

/// For the first row that cannot be a kernel: its name, and the sentence that says why.
template <class Config, std::size_t size>
constexpr TableFault table_fault(const std::array<Row<Config>, size>& rows) {
  TableFault fault;
  for (const Row<Config>& row : rows) {
    const char* const why = config_fault(row.config);
    if (why == nullptr) continue;
    fault.add(row.name);
    fault.add(": ");
    fault.add(why);
    break;
  }
  return fault;
}

/// Stops the compilation for a table with a fault, which stands in what the compiler prints.
template <TableFault fault>
constexpr bool is_legal() {
  static_assert(fault.text[0] == '\0', "a row of a table cannot be a kernel: see `fault`");
  return true;
}

/// Does any of the words with commas between them pass?
template <class Test>
constexpr bool any_word(std::string_view words, const Test& test) {
  while (!words.empty()) {
    const std::size_t comma = words.find(',');
    if (test(words.substr(0, comma))) return true;
    words = comma == std::string_view::npos ? std::string_view{} : words.substr(comma + 1);
  }
  return false;
}

/// Is the row in a build for `kernels`: words with commas between them, "common", "all" or names?
constexpr bool is_built(std::string_view name, bool common, std::string_view kernels) {
  return any_word(kernels, [&](std::string_view word) {
    return word == "all" || word == name || (common && word == "common");
  });
}

/// A row as a type, for which a kernel is instantiated. The build derives a struct of the kernel's
/// name from it (cmake/kernel_rows.cpp), so that symbols, profilers and registers.tsv show the
/// name.
template <class Table, int row>
struct Instance {
  static constexpr auto config = Table::rows[row].config;
  static constexpr std::string_view name = Table::rows[row].name;
};

/// Those that one source file compiles.
template <class... Tags>
struct Instances {
  /// Calls visit.operator()<Tag>() for each.
  template <class Visit>
  static constexpr void visit([[maybe_unused]] const Visit& visit) {
    (visit.template operator()<Tags>(), ...);
  }
};

}  // namespace warpwright::kernel
