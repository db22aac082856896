// `check moe --family` and `check kernel` of the kernels beside a mixture's products: a mixture and
// its companions, until every launch has run in its ways.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/moe/moe_job.h"
#include "warpwright/simulation/check.h"

namespace warpwright::cli {

/// Kernels of mixtures only.
std::vector<std::string_view> mixture_kernels();

bool is_of_mixtures(std::string_view kernel);

/// A mixture to begin with, where a kernel of these is all that is asked for.
MoeOptions small_mixture();

/// Checks the mixture of `given` and small companions of the same types; for a `kernel`, which may
/// be empty, only those that launch it, and its statements. As check_members.
int check_moe_family(const MoeOptions& given, std::string_view kernel,
                     const device::CheckOptions& options, bool mutate, bool json, std::ostream& out,
                     std::ostream& err);

/// Says whether a result is that of the mixture, by its reference.
device::Judged judge_mixture(const MixtureOperands& done);

}  // namespace warpwright::cli
