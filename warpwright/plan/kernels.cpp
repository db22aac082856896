#include "warpwright/plan/kernels.h"

#include <algorithm>
#include <string_view>

#include "warpwright/kernel/blackwell_instances.h"
#include "warpwright/kernel/grouped_instances.h"
#include "warpwright/kernel/instances.h"

namespace warpwright {
namespace {

constexpr std::string_view kSelected = WARPWRIGHT_KERNELS;

template <class... Tags>
constexpr bool names_row(kernel::Rows<Tags...> /*rows*/, std::string_view name) {
  return ((name == Tags::name) || ...);
}

bool is_in_a_table(std::string_view name) {
  return names_row(kernel::HopperRows{}, name) || names_row(kernel::BlackwellRows{}, name) ||
         names_row(kernel::GroupedRows{}, name);
}

constexpr bool all_are_rows(std::string_view names) {
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    if (!names_row(kernel::HopperRows{}, name) && !names_row(kernel::BlackwellRows{}, name) &&
        !names_row(kernel::GroupedRows{}, name)) {
      return false;
    }
    names = comma == std::string_view::npos ? std::string_view{} : names.substr(comma + 1);
  }
  return true;
}
static_assert(kSelected == "common" || kSelected == "all" || all_are_rows(kSelected),
              "WARPWRIGHT_KERNELS is common, all, or names of warpwright/kernel/*instances.h with "
              "commas between them");

template <class Config, class... Tags>
std::vector<KernelRow<Config>> built(kernel::Rows<Tags...> /*rows*/) {
  std::vector<KernelRow<Config>> found;
  ((kernel::is_built(Tags::name, Tags::common, kSelected)
        ? found.push_back({Tags::name, Tags::config, Tags::common})
        : void()),
   ...);
  return found;
}

}  // namespace

const std::vector<KernelRow<kernel::GemmConfig>>& hopper_kernels() {
  static const auto rows = built<kernel::GemmConfig>(kernel::HopperRows{});
  return rows;
}

const std::vector<KernelRow<kernel::BlackwellConfig>>& blackwell_kernels() {
  static const auto rows = built<kernel::BlackwellConfig>(kernel::BlackwellRows{});
  return rows;
}

const std::vector<KernelRow<kernel::GemmConfig>>& grouped_kernels() {
  static const auto rows = built<kernel::GemmConfig>(kernel::GroupedRows{});
  return rows;
}

std::string missing_kernel(const std::string& name) {
  const auto is_it = [&](const auto& row) { return name == row.name; };
  if (std::any_of(hopper_kernels().begin(), hopper_kernels().end(), is_it) ||
      std::any_of(blackwell_kernels().begin(), blackwell_kernels().end(), is_it) ||
      std::any_of(grouped_kernels().begin(), grouped_kernels().end(), is_it)) {
    return {};
  }
  if (!is_in_a_table(name)) return {};
  return "this build lacks the kernel " + name +
         "; one configured with -DWARPWRIGHT_KERNELS=all, or with that name, has it";
}

}  // namespace warpwright
