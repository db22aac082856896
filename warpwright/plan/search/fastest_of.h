// How one of several plans is chosen, of products and of mixtures alike. Internal to plan/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "warpwright/facts/format.h"
#include "warpwright/plan/product/plan.h"
#include "warpwright/plan/product/refusal.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::alternatives {

/// What packed weights, or those of this type, are in a sentence.
inline std::string weights_of(const std::optional<PackedWeights>& packed, DType type) {
  if (packed) return packed_name(packed->format);
  return type_name(type) + " weights";
}

// "packed mxf4 weights in 6.1 us", on the model without the time, which has no unit there.
template <class AnyPlan>
std::string words_of(const AnyPlan& plan, std::string weights) {
  if (plan.device.is_model) return weights;
  return weights + format(" in %.2f us", plan.cost * 1e6);
}

/// The plan with the least cost, the first of equals; its reason says what it was chosen among.
/// `Kind` has the types AnyPlan, Problem and Chosen, and of a problem what its `weights` are in
/// words, what all have in common (`without_weights`), its `formula`, and a `noun` for it.
template <class Kind, class AnyPlan = typename Kind::AnyPlan, class Chosen = typename Kind::Chosen>
Result<Chosen> fastest_of(std::span<const AnyPlan> plans) {
  if (plans.empty()) return refuse(RefusalCode::bad_value, "there is no plan to choose");
  const auto all = Kind::without_weights(plans.front().problem);
  for (std::size_t i = 1; i < plans.size(); ++i) {
    if (Kind::without_weights(plans[i].problem) != all) {
      return refuse(
          RefusalCode::bad_value, "plan ", i, " is of ", Kind::formula(plans[i].problem),
          ", and plan 0 of ", Kind::formula(plans.front().problem), ": ",
          as_rule("plans to choose among are of one ", Kind::noun, ", but for its weights"));
    }
    if (plans[i].device.name != plans.front().device.name) {
      return refuse(RefusalCode::wrong_device, "plan ", i, " is for ", plans[i].device.name,
                    ", and plan 0 for ", plans.front().device.name, ": ",
                    as_rule("plans to choose among are for one device"));
    }
  }
  const auto least =
      std::min_element(plans.begin(), plans.end(),
                       [](const AnyPlan& x, const AnyPlan& y) { return x.cost < y.cost; });
  Chosen chosen{static_cast<std::size_t>(least - plans.begin()), *least};
  if (plans.size() == 1) return chosen;
  std::string why =
      words_of(*least, Kind::weights(least->problem)) + ", predicted to be faster than ";
  bool is_first = true;
  for (const AnyPlan& other : plans) {
    if (&other == &*least) continue;
    why += (is_first ? "" : " and ") + words_of(other, Kind::weights(other.problem));
    is_first = false;
  }
  chosen.plan.reason = why + (chosen.plan.reason.empty() ? "" : "; ") + chosen.plan.reason;
  return chosen;
}

/// The same of problems, of which `make(problem)` makes plans: what no kernel serves is left out,
/// unless there is no other. Where bits must not depend on M the first that has a plan is taken.
template <class Kind, class Problem = typename Kind::Problem, class Make>
Result<typename Kind::Chosen> plan_fastest_of(std::span<const Problem> problems,
                                              bool batch_invariant, const Make& make) {
  std::vector<typename Kind::AnyPlan> plans;
  std::vector<std::size_t> numbers;
  std::optional<Refusal> first;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    auto made = make(problems[i]);
    if (made) {
      plans.push_back(std::move(*made));
      numbers.push_back(i);
      if (batch_invariant) break;
    } else if (made.refusal().code != RefusalCode::no_kernel &&
               made.refusal().code != RefusalCode::unsupported) {
      return made.refusal();
    } else if (!first) {
      first = made.refusal();
    }
  }
  if (plans.empty() && first) return *first;
  auto chosen = fastest_of<Kind>(std::span<const typename Kind::AnyPlan>(plans));
  if (chosen) (*chosen).index = numbers[chosen->index];
  return chosen;
}

}  // namespace warpwright::alternatives
