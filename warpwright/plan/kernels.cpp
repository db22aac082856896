#include "warpwright/plan/kernels.h"

#include <string_view>

#include "warpwright/kernel/blackwell/table.h"
#include "warpwright/kernel/hopper/grouped_table.h"
#include "warpwright/kernel/hopper/table.h"

namespace warpwright {
namespace {

constexpr std::string_view kSelected = WARPWRIGHT_KERNELS;

template <class... Tags>
constexpr bool names_row(kernel::Rows<Tags...> /*rows*/, std::string_view name, bool built_alone) {
  return ((name == Tags::name &&
           (!built_alone || kernel::is_built(Tags::name, Tags::common, kSelected))) ||
          ...);
}

// Is there a row of that name in one of the tables, in this build where that is asked for?
constexpr bool is_in_a_table(std::string_view name, bool built_alone = false) {
  return names_row(kernel::HopperRows{}, name, built_alone) ||
         names_row(kernel::BlackwellRows{}, name, built_alone) ||
         names_row(kernel::GroupedRows{}, name, built_alone);
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
              "WARPWRIGHT_KERNELS is common, all, or names of warpwright/kernel/*/*table.h with "
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
  if (!is_in_a_table(name) || is_in_a_table(name, true)) return {};
  return "this build lacks the kernel " + name +
         "; one configured with -DWARPWRIGHT_KERNELS=all, or with that name, has it";
}

std::optional<Refusal> kernel_fault(const std::optional<std::string>& chosen) {
  const std::string why = chosen ? missing_kernel(*chosen) : std::string();
  if (why.empty()) return std::nullopt;
  return Refusal{RefusalCode::no_kernel, why};
}

}  // namespace warpwright
