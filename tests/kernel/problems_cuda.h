// The problems of problems.h, and those of variant_sets.h, on a CUDA device.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/kernel/grouped_cuda.h"
#include "tests/kernel/problems.h"
#include "tests/kernel/variants_cuda.h"

namespace warpwright::tests {

/// What is wrong with a product; empty when nothing is. Launched `times` times from a D full of
/// NaN, or full of C, it must give the same bytes.
inline std::string fault_on_cuda(const VariantCase& c, const PlanChoices& choices,
                                 const DeviceFacts& facts, int times) {
  Variant variant(c.instance, c.ask);
  OnCuda there(variant);
  const auto made = plan(there.operands(), facts, choices);
  if (!made) return made.reason();
  there.prepare(*made);
  std::vector<std::byte> first;
  for (int launch = 0; launch < times; ++launch) {
    if (launch > 0) there.send(Variant(c.instance, c.ask));
    if (const auto refusal = there.launch(*made)) {
      // A GPU need not have 16 free SMs in one GPC; smaller clusters always go.
      if (made->cluster_ctas() > atom::kPortableClusterSize) return {};
      return refusal->reason;
    }
    there.receive(variant);
    std::string said = variant.fault();
    if (!said.empty()) return said;
    const std::byte* const bytes = variant.d().memory();
    if (launch == 0) first.assign(bytes, bytes + variant.d().bytes());
    if (!std::equal(first.begin(), first.end(), bytes)) return "two launches give other bits";
  }
  return {};
}

/// The same of products in groups.
inline std::string fault_on_cuda(const grouped::Case& c, const PlanChoices& choices,
                                 const DeviceFacts& facts, int times) {
  grouped::Tensors t(c);
  grouped::OnCuda there(t);
  const auto made = plan(there.operands(), facts, choices);
  if (!made) return made.reason();
  for (int launch = 0; launch < times; ++launch) {
    there.poison_d();
    const auto refused = there.launch(*made, nullptr, {.check_offsets = true});
    if (refused) return refused->reason;
    if (there.status(*made) != 0) return "the offsets are said to be in disorder";
    there.receive(t);
    std::string said = grouped::fault(c, t);
    if (!said.empty()) return said;
  }
  return {};
}

inline std::string fault_on_cuda(const Problem& problem, const DeviceFacts& device) {
  const DeviceFacts facts = with_groups(device, problem.seed());
  const int times = problem.twice() ? 2 : 1;
  if (problem.in_groups()) {
    return fault_on_cuda(problem.groups(), problem.choices_of_groups(), facts, times);
  }
  const VariantCase what{problem.instance(), problem.ask()};
  return fault_on_cuda(what, problem.choices(Variant(what.instance, what.ask)), facts, times);
}

}  // namespace warpwright::tests
