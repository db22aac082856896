// The kernels that this build has: those rows of the tables in kernel/ that the build option
// WARPWRIGHT_KERNELS selects. Plans choose among them, and both devices run no others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "warpwright/kernel/blackwell/config.h"
#include "warpwright/kernel/hopper/config.h"
#include "warpwright/plan/problem.h"

namespace warpwright {

/// A kernel: its name in the table, and what it is compiled for.
template <class Config>
struct KernelRow {
  const char* name;
  Config config;
  bool common;  ///< one of those that a usual build has
};

/// The kernels of Hopper and of Blackwell, in the order of their tables.
const std::vector<KernelRow<kernel::GemmConfig>>& hopper_kernels();
const std::vector<KernelRow<kernel::BlackwellConfig>>& blackwell_kernels();

/// For a kernel of the tables that this build lacks, a part of a sentence that says so; "" for one
/// that it has and for names of no kernel.
std::string missing_kernel(const std::string& name);
/// The same as the refusal of a choice of that kernel; nothing where there is none.
std::optional<Refusal> kernel_fault(const std::optional<std::string>& chosen);

}  // namespace warpwright
