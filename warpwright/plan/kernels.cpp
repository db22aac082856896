#include "warpwright/plan/kernels.h"

#include <algorithm>
#include <string_view>

#include "warpwright/kernel/blackwell/table.h"
#include "warpwright/kernel/hopper/table.h"
#include "warpwright/kernel/registers/table.h"

namespace warpwright {
namespace {

constexpr std::string_view kSelected = WARPWRIGHT_KERNELS;

// Is there a row of that name, in this build where that is asked for?
constexpr bool names_row(const auto& rows, std::string_view name, bool built_alone) {
  return std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
    return name == row.name && (!built_alone || kernel::is_built(row.name, row.common, kSelected));
  });
}
constexpr bool is_in_a_table(std::string_view name, bool built_alone = false) {
  return names_row(kernel::HopperRows::rows, name, built_alone) ||
         names_row(kernel::BlackwellRows::rows, name, built_alone) ||
         names_row(kernel::RegistersRows::rows, name, built_alone);
}

constexpr bool all_are_rows(std::string_view names) {
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    if (!is_in_a_table(names.substr(0, comma))) return false;
    names = comma == std::string_view::npos ? std::string_view{} : names.substr(comma + 1);
  }
  return true;
}
static_assert(kSelected == "common" || kSelected == "all" || all_are_rows(kSelected),
              "WARPWRIGHT_KERNELS is common, all, or names of warpwright/kernel/*/table.h with "
              "commas between them");

// The rows of this build.
template <class Config>
std::vector<KernelRow<Config>> built(const auto& rows) {
  std::vector<KernelRow<Config>> found;
  for (const auto& row : rows) {
    if (kernel::is_built(row.name, row.common, kSelected)) {
      found.push_back({row.name.c_str(), row.config, row.common});
    }
  }
  return found;
}

}  // namespace

const std::vector<KernelRow<kernel::GemmConfig>>& hopper_kernels() {
  static const auto rows = built<kernel::GemmConfig>(kernel::HopperRows::rows);
  return rows;
}

const std::vector<KernelRow<kernel::BlackwellConfig>>& blackwell_kernels() {
  static const auto rows = built<kernel::BlackwellConfig>(kernel::BlackwellRows::rows);
  return rows;
}

const std::vector<KernelRow<kernel::RegisterConfig>>& register_kernels() {
  static const auto rows = built<kernel::RegisterConfig>(kernel::RegistersRows::rows);
  return rows;
}

std::string missing_kernel(const std::string& name) {
  if (!is_in_a_table(name) || is_in_a_table(name, true)) return {};
  return "this build lacks the kernel " + name +
         "; one configured with -DWARPWRIGHT_KERNELS=all, or with that name, has it";
}

std::optional<Refusal> kernel_fault(const std::optional<std::string>& chosen) {
  const std::string why = chosen ? missing_kernel(*chosen) : std::string();
  if (why.empty()) return std::nullopt;
  return refuse(RefusalCode::no_kernel, why);
}

}  // namespace warpwright
