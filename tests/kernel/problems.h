// One generator of problems: a seed names a product, whole or in groups, by a kernel of any family,
// with everything else that can be asked. Tests, script/campaign and script/fuzz_gpu
// take theirs from here; what they print of one that fails is enough to make it again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/kernel/grouped_case.h"
#include "tests/kernel/variant_sets.h"
#include "warpwright/device/model.h"

namespace warpwright::tests {

/// Kernels of this build that problems are drawn for; those of groups are after the others. With
/// those of Blackwell, which a Hopper GPU does not run, come the register kernels of sm_120 alone.
inline const std::vector<Instance>& drawn_instances(bool with_blackwell) {
  static const auto all = [](bool blackwell) {
    std::vector<Instance> found = instances();
    if (blackwell) {
      for (const auto& row : blackwell_kernels()) {
        const bool narrow = row.config.kind == atom::UmmaKind::f8f6f4;
        found.push_back(narrow ? foreign_instance(row, DType::e4m3, DType::e5m2)
                               : foreign_instance(row, DType::f16, DType::f16));
        const DType type = narrow ? DType::e4m3 : DType::bf16;
        found.push_back(foreign_instance(row, type, type));
      }
    }
    for (const auto& row : registers_kernels()) {
      if (!blackwell && kernel::first_target(row.config) > 90) continue;
      found.push_back(foreign_instance(row, row.config.mma.a, row.config.mma.b));
    }
    found.insert(found.end(), grouped_instances().begin(), grouped_instances().end());
    return found;
  };
  static const std::vector<Instance> hopper = all(false);
  static const std::vector<Instance> both = all(true);
  return with_blackwell ? both : hopper;
}

/// The facts with groups in which clusters land that are drawn: where the tiles begin must not
/// matter.
inline DeviceFacts with_groups(DeviceFacts facts, std::uint64_t seed) {
  Draws draw(seed);
  SmGroups groups;
  for (const int size : {1, 2, 4}) {
    std::vector<int>& landed = groups.of_clusters[size];
    for (int cluster = 0; cluster < facts.sms; ++cluster) landed.push_back(draw(0, 2));
  }
  facts.sm_groups = std::make_shared<const SmGroups>(std::move(groups));
  return facts;
}

/// The problem that a seed names. Consecutive seeds go round the kernels of the build.
class Problem {
 public:
  /// Of at most about `most` multiplications; `blackwell`: by kernels of Blackwell too.
  Problem(std::uint64_t seed, double most, bool blackwell)
      : seed_(seed), instance_(instance_of(seed, blackwell)) {
    Draws draw(seed);
    mode_ = draw.of(modes);
    twice_ = draw.rarely(4);
    planned_ = draw.rarely(8);
    if (kernel::is_grouped(instance_.config)) {
      what_ = grouped::random_case(instance_, draw, most);
    } else {
      what_ = random_ask(instance_, draw, most);
    }
  }

  [[nodiscard]] std::string text() const {
    const std::string said = in_groups() ? grouped::text(groups())
                                         : std::string(instance_.name) + ", " + tests::text(ask());
    constexpr const char* names[] = {"eager", "latest", "random", "starve"};
    return "seed " + std::to_string(seed_) + ": " + said + ", " +
           names[std::find(std::begin(modes), std::end(modes), mode_) - std::begin(modes)] +
           (twice() ? ", launched twice" : "") +
           (planned_ ? ", by the kernel that a plan chooses" : "");
  }

  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] const Instance& instance() const { return instance_; }
  [[nodiscard]] bool in_groups() const { return std::holds_alternative<grouped::Case>(what_); }
  [[nodiscard]] const Ask& ask() const { return std::get<Ask>(what_); }
  [[nodiscard]] const grouped::Case& groups() const { return std::get<grouped::Case>(what_); }
  /// Two launches with one workspace; in place the second would start from the first one's D.
  [[nodiscard]] bool twice() const { return twice_ && (in_groups() || !ask().in_place); }

  /// What a plan is left to choose: mostly nothing.
  [[nodiscard]] PlanChoices choices(const Variant& variant) const {
    return planned_ && variant.architecture() == 90 ? PlanChoices{} : variant.choices();
  }
  [[nodiscard]] PlanChoices choices_of_groups() const {
    return {.cluster = groups().cluster, .kernel = groups().kernel};
  }

  /// What is wrong with it on the model, in a schedule that is drawn too; empty when nothing is.
  [[nodiscard]] std::string fault_on_model() const {
    device::ModelOptions how;
    how.mode = mode_;
    how.seed = seed_;
    how.launches = twice() ? 2 : 1;
    if (in_groups()) {
      const grouped::Tensors t(groups());
      std::uint32_t status = 77;
      how.offsets_status = &status;
      std::string said =
          fault_of(plan(t.operands, with_groups(model_facts(6), seed_), choices_of_groups()),
                   t.operands, how);
      if (said.empty() && status != 0) said = "the offsets are said to be in disorder";
      return said.empty() ? grouped::fault(groups(), t) : said;
    }
    const Variant variant(instance_, ask());
    const GemmOperands operands = variant.operands();
    const DeviceFacts facts =
        with_groups(model_facts(variant.sms(), variant.architecture()), seed_);
    const std::string said = fault_of(plan(operands, facts, choices(variant)), operands, how);
    return said.empty() ? variant.fault() : said;
  }

 private:
  static constexpr model::Mode modes[] = {model::Mode::eager, model::Mode::latest,
                                          model::Mode::random, model::Mode::starve};

  static const Instance& instance_of(std::uint64_t seed, bool blackwell) {
    const std::vector<Instance>& all = drawn_instances(blackwell);
    return all[static_cast<std::size_t>(seed % all.size())];
  }
  static std::string fault_of(const Result<Plan>& made, const GemmOperands& operands,
                              const device::ModelOptions& how) {
    if (!made) return made.reason();
    const auto report = device::launch_on_model(*made, operands, how);
    if (!report) return report.reason();
    return report->clean() ? "" : report->text();
  }

  std::uint64_t seed_;
  const Instance& instance_;
  model::Mode mode_ = model::Mode::latest;
  bool twice_ = false;
  bool planned_ = false;
  std::variant<Ask, grouped::Case> what_;
};

}  // namespace warpwright::tests
