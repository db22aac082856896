#include "warpwright/plan/families/kernels.h"

#include <algorithm>
#include <string_view>

#include "warpwright/kernel/tables.h"

namespace warpwright {
namespace {

constexpr std::string_view kSelected = WARPWRIGHT_KERNELS;

constexpr bool names_row(const auto& rows, std::string_view name) {
  return std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return name == row.name; });
}
constexpr bool is_in_a_table(std::string_view name) {
#define WW_OR_NAMES_ROW(Family, ...) || names_row(kernel::Family##Rows::rows, name)
  return false WW_FAMILIES(WW_OR_NAMES_ROW);
#undef WW_OR_NAMES_ROW
}

constexpr bool is_unknown(std::string_view word) {
  return word != "common" && word != "all" && !is_in_a_table(word);
}
static_assert(!kernel::any_word(kSelected, is_unknown),
              "WARPWRIGHT_KERNELS is common, all, or names of warpwright/kernel/*/table.h, or some "
              "of these with commas between them");

template <class Config>
std::vector<KernelRow<Config>> rows_of(const auto& table, Rows which) {
  std::vector<KernelRow<Config>> found;
  for (const auto& row : table) {
    if (kernel::is_built(row.name, row.common, kSelected) == (which == Rows::built)) {
      found.push_back({row.name.c_str(), row.config, row.common});
    }
  }
  return found;
}

// Made once each.
template <class Table, class Config>
const std::vector<KernelRow<Config>>& rows_of(Rows which) {
  static const auto built = rows_of<Config>(Table::rows, Rows::built);
  static const auto missing = rows_of<Config>(Table::rows, Rows::missing);
  return which == Rows::built ? built : missing;
}

}  // namespace

#define WW_KERNELS_OF(Family, family, Config, ...)                      \
  template <>                                                           \
  const std::vector<KernelRow<kernel::Config>>& kernels_of(Rows rows) { \
    return rows_of<kernel::Family##Rows, kernel::Config>(rows);         \
  }
WW_FAMILIES(WW_KERNELS_OF)
#undef WW_KERNELS_OF

}  // namespace warpwright
