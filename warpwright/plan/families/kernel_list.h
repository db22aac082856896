// The kernels that there are: those of this build, and those that builds of more of the table have.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "warpwright/facts/kernel.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright {

/// Every kernel of the library, family by family, those of this build first in each; `built` says
/// which they are. The facts live for ever.
std::vector<const KernelFacts*> all_kernels();

/// The one of that name; null where there is none.
const KernelFacts* find_kernel(std::string_view name);

/// Why `name` names none of them, with the nearest name; nothing where it names one.
[[nodiscard]] std::optional<Refusal> unknown_kernel(std::string_view name);

}  // namespace warpwright
