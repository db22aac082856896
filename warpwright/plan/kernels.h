// The kernels that this build has: those rows of the tables in kernel/ that the build option
// WARPWRIGHT_KERNELS selects. Plans choose among them, and both devices run no others.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "warpwright/facts/kernel.h"
#include "warpwright/kernel/blackwell/config.h"
#include "warpwright/kernel/hopper/config.h"
#include "warpwright/kernel/registers/config.h"
#include "warpwright/plan/problem.h"

namespace warpwright {

/// A kernel: its name in the table, and what it is compiled for.
template <class Config>
struct KernelRow {
  const char* name;
  Config config;
  bool common;  ///< one of those that a usual build has
};

/// The kernels of the families, in the order of their tables.
const std::vector<KernelRow<kernel::GemmConfig>>& hopper_kernels();
const std::vector<KernelRow<kernel::BlackwellConfig>>& blackwell_kernels();
const std::vector<KernelRow<kernel::RegisterConfig>>& register_kernels();

/// What they say of themselves (`facts` of kernel/*/facts.h).
template <class Config>
std::vector<KernelFacts> facts_of(const std::vector<KernelRow<Config>>& rows) {
  std::vector<KernelFacts> all;
  all.reserve(rows.size());
  for (const KernelRow<Config>& row : rows) all.push_back(facts(row.name, row.config));
  return all;
}

/// The configuration of the kernel `name`; that of none where there is none.
template <class Config>
const Config& config_named(const std::vector<KernelRow<Config>>& rows, const std::string& name) {
  static const auto all = [&rows] {
    std::unordered_map<std::string_view, const Config*> known;
    for (const KernelRow<Config>& row : rows) known[row.name] = &row.config;
    return known;
  }();
  static const Config none;
  const auto found = all.find(name);
  return found == all.end() ? none : *found->second;
}

/// For a kernel of the tables that this build lacks, a part of a sentence that says so; "" for one
/// that it has and for names of no kernel.
std::string missing_kernel(const std::string& name);
/// The same as the refusal of a choice of that kernel; nothing where there is none.
std::optional<Refusal> kernel_fault(const std::optional<std::string>& chosen);

}  // namespace warpwright
