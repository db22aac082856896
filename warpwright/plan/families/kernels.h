// The kernels that this build has: those rows of the tables in kernel/ that the build option
// WARPWRIGHT_KERNELS selects. Plans choose among them, and both devices run no others.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "warpwright/facts/kernel.h"
#include "warpwright/kernel/families.h"

namespace warpwright {

/// A kernel: its name in the table, and what it is compiled for.
template <class Config>
struct KernelRow {
  const char* name;
  Config config;
  bool common;  ///< one of those that a usual build has
};

/// Which rows of the tables: those of this build, or those that only other builds have.
enum class Rows : std::uint8_t { built, missing };

/// The kernels of a family, in the order of its table.
template <class Config>
const std::vector<KernelRow<Config>>& kernels_of(Rows rows);
// <family>_kernels(): the same by the family's name.
#define WW_KERNELS_OF(Family, family, Config, ...)                                                 \
  template <>                                                                                      \
  const std::vector<KernelRow<kernel::Config>>& kernels_of(Rows rows);                             \
  inline const std::vector<KernelRow<kernel::Config>>& family##_kernels(Rows rows = Rows::built) { \
    return kernels_of<kernel::Config>(rows);                                                       \
  }
WW_FAMILIES(WW_KERNELS_OF)
#undef WW_KERNELS_OF

/// What all of a family's kernels say of themselves (`facts` of kernel/*/facts.h), those of this
/// build first.
template <class Config>
std::vector<KernelFacts> facts_of() {
  std::vector<KernelFacts> all;
  for (const Rows which : {Rows::built, Rows::missing}) {
    for (const KernelRow<Config>& row : kernels_of<Config>(which)) {
      all.push_back(facts(row.name, row.config));
      all.back().built = which == Rows::built;
    }
  }
  return all;
}

/// Their configurations, in the same order.
template <class Config>
const std::vector<const Config*>& configs_of() {
  static const auto all = [] {
    std::vector<const Config*> found;
    for (const Rows which : {Rows::built, Rows::missing}) {
      for (const KernelRow<Config>& row : kernels_of<Config>(which)) found.push_back(&row.config);
    }
    return found;
  }();
  return all;
}

/// The configuration of the kernel `name`, of this build or another; that of none where there is
/// none.
template <class Config>
const Config& config_named(std::string_view name) {
  static const auto all = [] {
    std::unordered_map<std::string_view, const Config*> known;
    for (const Rows which : {Rows::built, Rows::missing}) {
      for (const KernelRow<Config>& row : kernels_of<Config>(which)) known[row.name] = &row.config;
    }
    return known;
  }();
  static const Config none;
  const auto found = all.find(name);
  return found == all.end() ? none : *found->second;
}

}  // namespace warpwright
