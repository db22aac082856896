// Activations and gates as kernels compute them, and as the host's formulas do, against their
// definition in long double: for every activation, at the special values of a float and at random
// bits. What is finite stays finite, infinities have the limits, and NaN comes only of NaN.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "warpwright/kernel/epilogue_values.h"
#include "warpwright/plan/families/bind.h"
#include "warpwright/reference/formulas.h"

namespace warpwright::activations {
namespace {

using Limits = std::numeric_limits<float>;

std::vector<float> hard_values(unsigned seed, int random_ones) {
  std::vector<float> values;
  for (const float x :
       {0.0F, Limits::denorm_min(), Limits::min(), 1e-30F, 0.5F, 1.0F, 6.99F, 7.0F, 7.01F, 87.0F,
        88.8F, 104.0F, 1e4F, 1.8e19F, 0x1p64F, 1.9e19F, 1e25F, Limits::max(), Limits::infinity()}) {
    values.insert(values.end(), {x, -x});
  }
  values.push_back(Limits::quiet_NaN());
  std::mt19937 random(seed);
  for (int i = 0; i < random_ones; ++i) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  }
  for (int i = 0; i < random_ones; ++i) {
    values.push_back(
        std::ldexp(static_cast<float>(random()) / 0x1p31F - 1, static_cast<int>(i % 9)));
  }
  return values;
}

// By the definition, whose limits are x or 0.
long double defined(const ActivationForm& form, float value) {
  const auto x = static_cast<long double>(value);
  if (std::isnan(value) || (!form.cuts && !form.is_smooth && !form.by_erf)) return x;
  if (form.squares) return x < 0 ? 0 : x * x;
  if (form.cuts || std::isinf(value)) return x < 0 ? 0 : x;
  if (form.by_erf) return x * std::erfc(-x * std::sqrt(0.5L)) / 2;
  const long double z =
      x * (static_cast<long double>(form.slope) + static_cast<long double>(form.cubic) * x * x);
  return x / (1 + std::exp(-z));
}

float by_kernel(const ActivationForm& form, float x) {
  float value[] = {x};
  kernel::activate<true>(activation_params(form), value);
  return value[0];
}

void expect_close(long double got, long double want, long double share, float least = 0x1p-100F) {
  ASSERT_EQ(std::isnan(got), std::isnan(want));
  ASSERT_EQ(std::isfinite(got), std::isfinite(want));
  if (!std::isfinite(want)) {
    ASSERT_TRUE(std::isnan(want) || got == want);
    return;
  }
  ASSERT_LE(std::abs(got - want), std::abs(want) * share + static_cast<long double>(least))
      << "due is " << want;
}

TEST(Activation, EveryValueHasItsOwn) {
  for (const Activation activation : all_activations) {
    const ActivationForm form = form_of(activation);
    for (const float x : hard_values(5, 20000)) {
      SCOPED_TRACE(std::string(name(activation)) + " of " + std::to_string(x));
      const long double want = defined(form, x);
      // A square may be beyond float32, and then is infinite.
      if (form.squares && std::isfinite(x) && want > static_cast<long double>(Limits::max())) {
        ASSERT_EQ(by_kernel(form, x), Limits::infinity());
        continue;
      }
      // For exp(-z) a float z loses |z| 2^-23, 104 at most.
      ASSERT_NO_FATAL_FAILURE(expect_close(by_kernel(form, x), want, 0x1p-15L));
      ASSERT_NO_FATAL_FAILURE(expect_close(reference::activated(form, x), want, 0x1p-15L));
      ASSERT_NO_FATAL_FAILURE(
          expect_close(reference::activated(form, static_cast<double>(x)), want, 0x1p-40L));
      // The bound that a check allows holds what a kernel loses, and is small.
      const auto bounded = reference::activated<reference::Roundings::counted>(
          form, reference::Bounded<double>{static_cast<double>(x)});
      if (!std::isfinite(x)) continue;
      ASSERT_LE(std::abs(static_cast<double>(by_kernel(form, x)) - bounded.value),
                bounded.bound + std::abs(bounded.value) * 0x1p-24);
      ASSERT_LE(bounded.bound, std::abs(bounded.value) * 0x1p-13 + 0x1p-99);
    }
  }
}

// For a gate all that its parts and their product are by themselves, with any numbers.
void expect_gates(const ActivationForm& form) {
  const std::vector<float> ups = hard_values(6, 20);
  const double most = form.limit > 0 ? form.limit : std::numeric_limits<double>::infinity();
  for (const float g : hard_values(7, 200)) {
    for (const float u : ups) {
      SCOPED_TRACE(std::to_string(g) + " for " + std::to_string(u));
      const float gate = static_cast<double>(g) > most ? static_cast<float>(most) : g;
      float up =
          std::abs(static_cast<double>(u)) > most ? std::copysign(static_cast<float>(most), u) : u;
      up += static_cast<float>(form.offset);
      // An infinity times what is next to 0, and may be 0 as a float, may be NaN.
      const long double act = defined(form, gate);
      if (std::isinf(up) && act != 0 && std::abs(act) < 0x1p-100L) continue;
      const long double want = act * static_cast<long double>(up);
      float value[] = {g};
      float other[] = {u};
      kernel::multiply_gate<true>(activation_params(form), value, other);
      const reference::Bounded<double> host = reference::gated<reference::Roundings::counted>(
          form, reference::Bounded<double>{static_cast<double>(g)},
          reference::Bounded<double>{static_cast<double>(u)}, 1.0);
      // Below the least float an activation has less than its share.
      const float least = std::isfinite(up) ? 0x1p-100F * (1 + std::abs(up)) : 0;
      ASSERT_NO_FATAL_FAILURE(expect_close(host.value, want, 0x1p-20L, least));
      // A product of two finite ones may be beyond the largest float.
      const auto largest = static_cast<long double>(Limits::max());
      if (std::isfinite(want) && std::abs(want) > largest * (1 - 0x1p-14L)) continue;
      ASSERT_NO_FATAL_FAILURE(expect_close(value[0], want, 0x1p-14L, least));
    }
  }
}

TEST(Activation, EveryGateHasItsOwn) {
  for (const Activation activation : all_activations) {
    if (!gates(activation)) continue;
    SCOPED_TRACE(name(activation));
    expect_gates(form_of(activation));
    for (const GateNumbers& numbers :
         {gate_of(activation), GateNumbers{1, 0, 10}, GateNumbers{1.702F, 1, 7},
          GateNumbers{0.5F, -1}, GateNumbers{1e30F, 1e30F, 1e-30F}}) {
      SCOPED_TRACE(std::to_string(numbers.alpha) + ", " + std::to_string(numbers.beta) + ", " +
                   std::to_string(numbers.limit));
      expect_gates(form_of(activation, numbers));
    }
  }
}

}  // namespace
}  // namespace warpwright::activations
