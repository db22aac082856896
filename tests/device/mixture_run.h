// A mixture of experts run on the model, its result within its bound.
#pragma once

#include <gtest/gtest.h>

#include "tests/device/mixture.h"
#include "tests/must.h"
#include "tests/scheduled.h"
#include "warpwright/reference/mixture.h"
#include "warpwright/simulation/moe.h"

namespace warpwright::tests {

/// Runs it, and has every element in its bound.
inline void run_and_check(SomeMixture& some, const MixtureChoices& choices = {},
                          const device::ModelOptions& options = {}) {
  const auto plan = must(plan_moe(some.o, model_facts(), choices));
  const auto report = must(device::launch_on_model(*plan, some.o, options));
  ASSERT_TRUE(report->clean()) << report->text();
  const auto verdict = reference::check_mixture(some.o, plan->way.gates_behind);
  EXPECT_EQ(verdict.failures, 0) << verdict.worst_token << " " << verdict.worst_column << " got "
                                 << verdict.worst_got << " want " << verdict.worst_want << " +- "
                                 << verdict.worst_allowed;
}

}  // namespace warpwright::tests
