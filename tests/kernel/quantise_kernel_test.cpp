// Kernels that quantise D, on the model: codes and scales are, bit for bit, those that the host
// makes of the product's float32 values, and no wait of theirs can be left out.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/campaign.h"
#include "tests/draws.h"
#include "tests/kernel/problem.h"
#include "tests/kernel/rows.h"
#include "tests/must.h"
#include "warpwright/device/quantise.h"
#include "warpwright/kernel/epilogue_values.h"
#include "warpwright/plan/families/bind.h"
#include "warpwright/simulation/check.h"

namespace warpwright::tests {
namespace {

constexpr int some_schedules = 12;

Instances quantising(bool groups, bool block_scaled) {
  Instances found;
  for (const Instance& i : groups ? grouped_instances() : instances()) {
    if (i.config.quantises && is_blockwise(i.config) == block_scaled) found.push_back(i);
  }
  return found;
}

// A product of e4m3 with all that is hard for a block: NaN, infinities, rows of zeros, and values
// of all sizes. Its float32 sums come from a kernel that stores them. NaN comes by the bias.
struct Hard {
  std::int64_t m, n, k;
  Tensor a, b, bias, sums;

  Hard(std::int64_t m_, std::int64_t n_, std::int64_t k_, unsigned seed)
      : m(m_),
        n(n_),
        k(k_),
        a(DType::e4m3, m_, k_, k_),
        b(DType::e4m3, n_, k_, k_),
        bias(DType::f32, n_, 1, 1),
        sums(DType::f32, m_, n_, n_) {
    std::mt19937 random(seed);
    a.fill(random, -1, 1);
    b.fill(random, -1, 1);
    bias.fill(random, -1, 1);
    for (std::int64_t i = 0; i < k; ++i) a.set(0, 1, i, 0);  // a row of zeros, but for the bias
    constexpr double infinity = std::numeric_limits<double>::infinity();
    bias.set(0, n / 4, 0, infinity);
    bias.set(0, n / 4 + 1, 0, -infinity);
    bias.set(0, n / 4 + 2, 0, std::numeric_limits<double>::quiet_NaN());
    bias.set(0, n / 2 + 1, 0, 3e37);
  }

  [[nodiscard]] GemmOperands operands() const {
    GemmOperands o;
    o.a = a.view();
    o.b = b.view();
    return o;
  }
  [[nodiscard]] float sum(std::int64_t i, std::int64_t j) const {
    return static_cast<float>(sums.get(0, i, j));
  }
};

void launch(const GemmOperands& o, const std::string& kernel, int sms = 3) {
  const auto made = must(plan(o, model_facts(sms), {.kernel = kernel}));
  const auto report = must(device::launch_on_model(*made, o, {}));
  ASSERT_TRUE(report->clean()) << report->text();
}

// What the epilogue makes of the sums, with the float32 operations of the kernel.
float finished(const Hard& p, const GemmOperands& o, std::int64_t i, std::int64_t j) {
  const auto half = [&](std::int64_t column) {
    const float bias = o.has_bias() ? static_cast<float>(p.bias.get(0, column, 0)) : 0.0F;
    return o.alpha * p.sum(i, column) + bias;
  };
  const float x = half(j);
  float y[] = {x};
  float up[] = {o.is_gated() ? half(j + o.d.columns) : 0};
  const kernel::ActivationParams activation = activation_params(form_of(o.epilogue));
  if (o.is_gated()) {
    kernel::multiply_gate(activation, y, up);
  } else {
    kernel::activate(activation, y);
  }
  return y[0];
}

// Runs the kernel and says where its codes or scales are not those of the host.
void expect_host_bits(const Hard& p, const Instance& instance, Activation activation, float alpha,
                      bool has_bias) {
  const std::int64_t columns = instance.config.gated ? p.n / 2 : p.n;
  const std::int64_t blocks = (columns + 127) / 128;
  SCOPED_TRACE(std::string(instance.name) + ", alpha " + std::to_string(alpha) + ", activation " +
               name(activation));
  Tensor codes(DType::e4m3, p.m, columns, columns + 3);
  Tensor scales(DType::f32, p.m, blocks, 1, p.m + 1);
  GemmOperands o = p.operands();
  o.d = codes.view();
  o.d_scales = scales.view();
  o.alpha = alpha;
  o.epilogue.activation = activation;
  o.epilogue.gated = instance.config.gated;
  o.epilogue.quantise = QuantiseD::block_1x128;
  if (has_bias) {
    o.epilogue.bias = Bias::columns;
    o.bias = p.bias.view();
  }
  launch(o, instance.name);
  Tensor values(DType::f32, p.m, columns, columns);
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      values.set(0, i, j, static_cast<double>(finished(p, o, i, j)));
    }
  }
  Tensor want(DType::e4m3, p.m, columns, columns);
  Tensor want_scales(DType::f32, p.m, blocks, blocks);
  const auto refused =
      quantise_on_host({values.view(), want.view(), want_scales.view(), Scaling::blockwise});
  ASSERT_FALSE(refused.has_value());
  int wrong = 0;
  for (std::int64_t i = 0; i < p.m && wrong < 3; ++i) {
    for (std::int64_t j = 0; j < columns && wrong < 3; ++j) {
      const bool same = *codes.address(0, i, j) == *want.address(0, i, j) &&
                        scales.get(0, i, j / 128) == want_scales.get(0, i, j / 128);
      wrong += same ? 0 : 1;
      EXPECT_TRUE(same) << "[" << i << ", " << j << "] is code "
                        << static_cast<int>(*codes.address(0, i, j)) << " with scale "
                        << scales.get(0, i, j / 128) << ", of " << values.get(0, i, j)
                        << " the host makes " << static_cast<int>(*want.address(0, i, j))
                        << " with " << want_scales.get(0, i, j / 128);
    }
  }
  EXPECT_EQ(codes.disturbed(), 0);
  EXPECT_EQ(scales.disturbed(), 0);
}

// 300 and 296 columns: two blocks of 128 and a short one.
TEST(QuantisedOnTheModel, BitsAreThoseOfTheHost) {
  const unsigned seed = 20;
  Hard p(37, 592, 160, seed);
  Hard narrow(70, 296, 144, seed + 1);
  for (Hard* each : {&p, &narrow}) {
    GemmOperands o = each->operands();
    o.d = each->sums.view();
    launch(o, "hopper_e4m3_f32_128x128_pp");
  }
  const Instances all = quantising(false, false);
  ASSERT_FALSE(all.empty());
  for (const Instance& i : all) {
    const bool gated = i.config.gated;
    const Hard& of = gated ? p : narrow;
    const Activation usual = gated ? Activation::silu : Activation::none;
    expect_host_bits(of, i, usual, 1, false);
    expect_host_bits(of, i, usual, 0.75F, true);
    expect_host_bits(of, i, usual, gated ? 1e-12F : 1e-30F, false);  // scales that are lifted
    expect_host_bits(of, i, usual, gated ? 1e-19F : 1e-37F, false);  // the least scale
    expect_host_bits(of, i, usual, 1e15F, false);
    if (!gated) expect_host_bits(of, i, Activation::relu, -2, true);
    if (!gated) expect_host_bits(of, i, Activation::gelu, 2, false);
  }
}

// Kernels of block scales, and of groups, give each other's bits.
TEST(QuantisedOnTheModel, EveryKernelGivesTheSameBits) {
  for (const bool gated : {false, true}) {
    for (const bool scaled : {false, true}) {
      std::vector<std::byte> first;
      std::string of;
      for (const bool groups : {false, true}) {
        for (const Instance& i : quantising(groups, scaled)) {
          if (i.config.gated != gated || kernel::gathers(i.config)) continue;
          Ask ask{.m = 45,
                  .n = scaled && gated ? 512
                       : gated         ? 592
                                       : 296,
                  .k = 272,
                  .scaling = scaled ? Scaling::blockwise : Scaling::tensor,
                  .seed = 12};
          if (groups) ask.offsets = {0, 45};
          Problem problem(i, ask);
          EXPECT_EQ(problem.run(), "") << problem.text();
          if (first.empty()) {
            first = problem.d_bytes();
            of = i.name;
          }
          EXPECT_TRUE(first == problem.d_bytes()) << i.name << " and " << of;
        }
      }
    }
  }
}

// Groups of all lengths, in every mode, and launched one behind the other.
TEST(QuantisedOnTheModel, RaggedGroups) {
  for (const bool scaled : {false, true}) {
    for (const Instance& i : sampled(quantising(true, scaled), 4)) {
      for (const model::Mode mode :
           {model::Mode::eager, model::Mode::random, model::Mode::latest, model::Mode::starve}) {
        if (!campaign() && (mode == model::Mode::latest || mode == model::Mode::starve)) continue;
        Ask ask = grouped_ask(i, {2, 2, 9, 50, 51, 51, 120}, 136, 272);
        ask.m += 3;
        ask.seed = 31 + static_cast<unsigned>(mode);
        if (mode == model::Mode::random && kernel::supports(i.config, {2, 1})) ask.cluster = {2, 1};
        Problem problem(i, ask);
        device::ModelOptions how = scheduled(mode, ask.seed);
        how.launches = mode == model::Mode::eager ? 2 : 1;
        EXPECT_EQ(problem.run(how), "") << problem.text();
      }
    }
  }
}

// Clean in schedules, and every statement of the quantising epilogue is missed where it is broken:
// the wait between the maxima and the codes among them.
void expect_all_killed(const Instance& instance, const Ask& ask, bool everything) {
  const Problem problem(instance, ask);
  SCOPED_TRACE(problem.text());
  const GemmOperands operands = problem.operands();
  const auto made = must(plan(operands, model_facts(2), problem.choices()));
  auto options = in_schedules(campaign() ? 1000 : 3, 2);
  const auto checked = must(device::check(*made, operands, options));
  ASSERT_TRUE(checked->clean()) << checked->findings.front().finding.sentence;
  options.schedules = some_schedules;
  if (!everything) {
    options.wanted = [](const model::Mutation& m) {
      return m.file.find("epilogue_quantise.h") != std::string::npos;
    };
  }
  const auto mutated = must(device::mutate(*made, operands, options));
  ASSERT_TRUE(mutated->unbroken.empty());
  std::printf("%s: %s\n", instance.name, mutated->score().c_str());
  bool waits = false;
  for (const device::Mutant& m : mutated->mutants) {
    EXPECT_NE(m.fate, device::Mutant::Fate::survived)
        << m.site << ": " << m.mutation.how() << " " << m.mutation.barrier;
    waits = waits || (m.mutation.at == model::SyncKind::named_barrier &&
                      m.fate == device::Mutant::Fate::killed);
  }
  EXPECT_EQ(waits, is_swapped(instance.config));
}

TEST(QuantisedOnTheModel, MutantsOfASwappedTileAreKilled) {
  const Instance i = named("grouped_e4m3_e4m3_256x16_b_bs_sw_gated_q");
  const Ask small = grouped_ask(i, {0, 3, 3, 21}, 256, 144);
  expect_all_killed(i, campaign() ? grouped_ask(i, {0, 3, 3, 21, 40}, 256, 400) : small,
                    campaign());
}

TEST(QuantisedOnTheModel, MutantsOfAWideTileAreKilled) {
  WW_CAMPAIGN_ONLY();
  const Instance i = named("grouped_e4m3_e4m3_128x256_v_bs_p2_gated_q");
  expect_all_killed(i, grouped_ask(i, {0, 3, 3, 21, 40}, 256, 400), true);
}

}  // namespace
}  // namespace warpwright::tests
