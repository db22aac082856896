#include "cli/commands/moe/moe_family.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cli/commands/gemm/check_members.h"
#include "cli/commands/moe/moe_options.h"
#include "warpwright/plan/moe/steps.h"
#include "warpwright/simulation/coverage.h"

namespace warpwright::cli {
namespace {

struct MoeCompanion {
  std::string what;
  MoeOptions options;
};

// Small mixtures of the given types, for every launch and its ways; the extents of those of many
// slots are the smallest, for the products take all the time.
class MoeCompanions {
 public:
  explicit MoeCompanions(const MoeOptions& given) : given_(given) {}

  std::vector<MoeCompanion> made() {
    add_sorts();
    add_steps();
    add_slots();
    if (given_.dtype.empty() && given_.weights.empty()) add_codes();
    return std::move(all_);
  }

 private:
  using Change = std::function<void(MoeOptions&)>;

  void add(const std::string& what, std::int64_t tokens, std::int64_t top_k,
           const Change& change = {}) {
    MoeOptions o = given_;
    o.model.clear();
    o.tokens = tokens;
    o.top_k = top_k;
    o.experts = 5;
    const bool packed = !o.weights.empty() || o.dtype == "int4";
    o.hidden = o.inner = packed ? 128 : 64;
    o.first_expert = o.experts_total = std::nullopt;
    o.choices.expected_lengths.clear();
    if (change) change(o);
    all_.push_back({what, std::move(o)});
  }

  static void together(MoeOptions& o) {
    o.choices.by_index = "no";
    o.choices.sort_with_gather = "yes";
  }
  static void alone(MoeOptions& o) { o.choices.sort_with_gather = "no"; }
  static void tiny(MoeOptions& o) {
    alone(o);
    if (o.hidden == 64) o.hidden = o.inner = 16;
  }

  void add_sorts() {
    add("one token", 1, 1);
    add("one launch sorts and gathers", 9, 2, together);
    add("a sort and a gather of their own", 9, 2, [](MoeOptions& o) {
      alone(o);
      o.choices.by_index = "no";
    });
    add("slots of several warps", 70, 4, tiny);
    add("slots of several warps, sorted beside", 70, 4, together);
    add("warps of several steps", 520, 4, tiny);
    add("a cluster sorts", 1030, 4, tiny);
    add("three launches sort, parts of several pieces", 160, 2, [](MoeOptions& o) {
      tiny(o);
      o.choices.sort_parts = 2;
    });
  }

  void add_steps() {
    const auto with = [this](const char* what, std::string MoeChoiceOptions::*choice,
                             const char* word) {
      add(what, 9, 2, [=](MoeOptions& o) { o.choices.*choice = word; });
    };
    with("tokens by number", &MoeChoiceOptions::by_index, "yes");
    with("rows quantised by the product", &MoeChoiceOptions::quantise_in_epilogue, "yes");
    with("rows quantised by a launch", &MoeChoiceOptions::quantise_in_epilogue, "no");
    with("no early weights", &MoeChoiceOptions::early_weights, "no");
  }

  void add_slots() {
    add("a rank of many", 12, 3, [](MoeOptions& o) {
      o.first_expert = 5;
      o.experts_total = 20;
    });
    add("a rank of many, sorted by itself", 40, 3, [](MoeOptions& o) {
      alone(o);
      o.first_expert = 10;
      o.experts_total = 20;
    });
    add("slots that are left out", 12, 3, [](MoeOptions& o) { o.left_out = 3; });
    add("slots that are left out, sorted by themselves", 40, 3, [](MoeOptions& o) {
      alone(o);
      o.left_out = 4;
    });
    add("ids of 64 bits", 9, 2, [](MoeOptions& o) { o.ids = "int64"; });
    add("more experts than lanes", 9, 2, [](MoeOptions& o) { o.experts = 40; });
    add("biases", 9, 2, [](MoeOptions& o) { o.bias = true; });
  }

  // Tokens that are quantised: the launches beside the products do that, too.
  void add_codes() {
    struct Codes {
      const char *dtype, *as, *by_index;
    };
    for (const Codes& c : {Codes{"e4m3", "", "no"},
                           {"e4m3", "", "yes"},
                           {"mxf8", "b200", ""},
                           {"nvf4", "b200", ""}}) {
      for (const char* beside : {"yes", "no"}) {
        add(std::string("tokens as ") + c.dtype + (*c.by_index == 'y' ? ", by number" : "") +
                (*beside == 'y' ? ", sorted beside" : ""),
            20, 3, [&](MoeOptions& o) {
              o.dtype = c.dtype;
              if (*c.as != '\0') o.as = c.as;
              o.hidden = o.inner = 128;
              o.choices.by_index = c.by_index;
              o.choices.sort_with_gather = beside;
            });
      }
    }
  }

  const MoeOptions& given_;
  std::vector<MoeCompanion> all_;
};

bool launches(const MixturePlan& plan, std::string_view kernel) {
  const std::vector<const StepRow*> rows = rows_of(plan);
  return kernel.empty() || std::ranges::find(rows, kernel, &StepRow::kernel) != rows.end();
}

// The words of the functions of such a kernel.
std::vector<std::string> words_of(std::string_view kernel) {
  std::vector<std::string> words;
  for (const char* word : std::ranges::find(step_rows(), kernel, &StepRow::kernel)->code) {
    if (word != nullptr) words.emplace_back(word);
  }
  return words;
}

// Null where there is no such mixture, or none that launches the kernel.
std::shared_ptr<MoeJob> job_of(const MoeOptions& o, std::string_view kernel) {
  try {
    auto job = std::make_shared<MoeJob>(o, facts_of(o));
    if (!launches(job->plan, kernel)) return nullptr;
    job->load(o.seed);
    return job;
  } catch (const InputError&) {  // no such mixture
    return nullptr;
  }
}

Member member_of(std::string what, const MoeOptions& options, const std::shared_ptr<MoeJob>& job) {
  return {.what = std::move(what),
          .command = "moe",
          .arguments = arguments_text(options),
          .plan = job->plan.name(),
          .seconds = job->model_seconds(),
          .job = job,
          .subject = device::mixture_subject(job->plan, job->operands, judge_mixture)};
}

}  // namespace

std::vector<std::string_view> mixture_kernels() {
  std::vector<std::string_view> all;
  for (const StepRow& row : step_rows()) {
    const bool is_new = std::ranges::find(all, row.kernel) == all.end();
    if (row.product == nullptr && is_new) all.push_back(row.kernel);
  }
  return all;
}

bool is_of_mixtures(std::string_view kernel) {
  const std::vector<std::string_view> all = mixture_kernels();
  return std::ranges::find(all, kernel) != all.end();
}

MoeOptions small_mixture() {
  MoeOptions o;
  o.tokens = 9;
  o.experts = 5;
  o.top_k = 2;
  o.hidden = o.inner = 64;
  return o;
}

int check_moe_family(const MoeOptions& given, std::string_view kernel,
                     const device::CheckOptions& options, bool mutate, bool json, std::ostream& out,
                     std::ostream& err) {
  Family family{.name = kernel.empty() ? "moe" : std::string(kernel),
                .noun = "mixture",
                .members = {},
                .refused = {},
                .coverage = {}};
  const auto first = std::make_shared<MoeJob>(given, facts_of(given));
  if (launches(first->plan, kernel)) {
    first->load(given.seed);
    family.members.push_back(member_of("as given", given, first));
  }
  for (const MoeCompanion& c : MoeCompanions(given).made()) {
    if (const auto job = job_of(c.options, kernel)) {
      family.members.push_back(member_of(c.what, c.options, job));
    } else if (kernel.empty()) {
      family.refused.push_back(c.what);
    }
  }
  if (kernel.empty()) {
    family.coverage = [first](const auto& ran) { return device::coverage(first->plan, ran); };
  } else {
    family.coverage = [words = words_of(kernel)](const auto& ran) {
      return device::coverage(words, ran);
    };
  }
  return check_members(family, options, mutate, json, out, err);
}

device::Judged judge_mixture(const MixtureOperands& done) {
  const CheckResult check = check_moe(done);
  if (check.passed) return true;
  return {false, describe(check, "d")};
}

}  // namespace warpwright::cli
