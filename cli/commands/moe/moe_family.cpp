#include "cli/commands/moe/moe_family.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cli/commands/gemm/check_members.h"
#include "cli/commands/moe/moe_options.h"
#include "warpwright/plan/moe/steps.h"
#include "warpwright/simulation/coverage.h"

namespace warpwright::cli {
namespace {

// A small mixture beside the given one, by what is other than in most; `tiny`: with the smallest
// extents, for of many slots the products take all the time.
struct MoeCompanion {
  const char* what;
  const char* arguments;
  bool tiny = false;
};

// For every launch and its ways.
constexpr MoeCompanion companions[] = {
    {"one token", "--tokens 1 --top-k 1"},
    {"one launch sorts and gathers", "--by-index no --sort-with-gather yes"},
    {"a sort and a gather of their own", "--by-index no --sort-with-gather no"},
    {"slots of several warps", "--tokens 70 --top-k 4 --sort-with-gather no", true},
    {"slots of several warps, sorted beside",
     "--tokens 70 --top-k 4 --by-index no --sort-with-gather yes"},
    {"warps of several steps", "--tokens 520 --top-k 4 --sort-with-gather no", true},
    {"a cluster sorts", "--tokens 1030 --top-k 4 --sort-with-gather no", true},
    {"three launches sort, parts of several pieces",
     "--tokens 160 --sort-with-gather no --sort-parts 2", true},
    {"tokens by number", "--by-index yes"},
    {"rows quantised by the product", "--quantise-in-epilogue yes"},
    {"rows quantised by a launch", "--quantise-in-epilogue no"},
    {"rows gated by a launch", "--gate-in-epilogue no --bias"},
    {"rows gated by a launch, in turns", "--gate-in-epilogue no --gate-up interleaved"},
    {"rows gated by the error function", "--activation gelu_erf"},
    {"no early weights", "--early-weights no"},
    {"a rank of many", "--tokens 12 --top-k 3 --first-expert 5 --experts-total 20"},
    {"a rank of many, sorted by itself",
     "--tokens 40 --top-k 3 --first-expert 10 --experts-total 20 --sort-with-gather no"},
    {"slots that are left out", "--tokens 12 --top-k 3 --left-out 3"},
    {"slots that are left out, sorted by themselves",
     "--tokens 40 --top-k 3 --left-out 4 --sort-with-gather no"},
    {"ids of 64 bits", "--ids int64"},
    {"more experts than lanes", "--experts 40"},
    {"biases", "--bias"},
    {"no gate", "--gated no --activation relu2 --bias"},
    {"router weights on the input", "--top-k 1 --router-weights-on-input --by-index no"},
    {"router weights on the input, by number",
     "--tokens 40 --top-k 1 --router-weights-on-input --by-index yes"},
    {"slots by themselves, weighted", "--combine weighted --left-out 3"},
    {"slots as experts make them", "--combine none"},
    {"one launch", "--hidden 192 --inner 128 --one-launch yes"},
    {"one launch by warps", "--tokens 4 --hidden 192 --inner 128 --one-launch yes"},
    {"one launch, experts with many tokens",
     "--tokens 40 --experts 3 --hidden 192 --inner 128 --one-launch yes"},
    {"one launch of a rank, slots left out, biases",
     "--tokens 12 --top-k 3 --hidden 192 --inner 72 --first-expert 5 --experts-total 20 --left-out "
     "3 "
     "--bias --shared-output bf16 --one-launch yes"},
    {"no router", "--experts 1 --bias"},
    {"no router, in one launch", "--experts 1 --hidden 192 --inner 128 --one-launch yes"},
    {"a shared output", "--shared-output bf16 --routed-scaling-factor 2.5 --left-out 3"},
};
// Where no types are given: tokens that are quantised, which the launches beside the products do.
constexpr MoeCompanion with_codes[] = {
    {"tokens as e4m3", "--dtype e4m3 --by-index no"},
    {"tokens as e4m3, by number", "--dtype e4m3 --by-index yes"},
    {"tokens that are e4m3", "--dtype e4m3 --x-dtype e4m3 --by-index no"},
    {"tokens that are e4m3, by number", "--dtype e4m3 --x-dtype e4m3 --by-index yes"},
    {"codes gated by a launch", "--dtype e4m3 --gate-in-epilogue no"},
    {"codes with scales of blocks of 64 x 64", "--dtype e4m3 --block 64 --by-index no"},
    {"tokens that are e4m3, in blocks of 32 x 32",
     "--dtype e4m3 --x-dtype e4m3 --block 32 --by-index no"},
    {"codes gated by the error function", "--dtype e4m3 --activation gelu_erf"},
    {"codes without a router", "--dtype e4m3 --experts 1"},
    {"tokens as mxf8", "--dtype mxf8 --as b200"},
    {"tokens as nvf4", "--dtype nvf4 --as b200"},
};

// Where no types are given either: other weights than bf16 in one launch, those of few slots by
// warps.
constexpr MoeCompanion other_at_once[] = {
    {"mxf4 in one launch", "--weights mxf4 --dtype bf16 --one-launch yes"},
    {"int4 in one launch", "--weights int4 --dtype bf16 --one-launch yes"},
    {"mxf4 in one launch by warps", "--weights mxf4 --dtype bf16 --tokens 4 --one-launch yes"},
    {"int4 in one launch by warps", "--weights int4 --dtype bf16 --tokens 4 --one-launch yes"},
    {"e4m3 in one launch by warps", "--dtype e4m3 --tokens 4 --one-launch yes"},
};

// Few long rows with a scale each.
constexpr MoeCompanion shared_rows[] = {
    {"rows that warps share, gathered",
     "--dtype e4m3 --scaling row-column --tokens 2 --hidden 520 --by-index no --sort-with-gather "
     "no"},
    {"rows that warps share, sorted and gathered",
     "--dtype e4m3 --scaling row-column --tokens 2 --hidden 520 --by-index no --sort-with-gather "
     "yes"},
    {"rows that warps share, beside the sort",
     "--dtype e4m3 --scaling row-column --tokens 2 --hidden 520 --by-index yes"},
    {"rows that warps share, gated by a launch",
     "--dtype e4m3 --scaling row-column --tokens 2 --inner 520 --gate-in-epilogue no"},
};

// What it adds to the given options.
std::pair<std::string, MoeOptions> companion(MoeOptions o, const MoeCompanion& c,
                                             const std::string& beside = "") {
  o.model.clear();
  o.tokens = 9;
  o.top_k = 2;
  o.experts = 5;
  const bool packed = !o.weights.empty() || o.dtype == "int4";
  o.hidden = o.inner = packed ? 128 : c.tiny ? 16 : 64;
  o.first_expert = o.experts_total = std::nullopt;
  o.choices.expected_lengths.clear();
  CLI::App app;
  add_moe_options(app, o);
  app.parse(c.arguments + beside);
  return {c.what, std::move(o)};
}

std::vector<std::pair<std::string, MoeOptions>> companions_of(const MoeOptions& given) {
  std::vector<std::pair<std::string, MoeOptions>> all;
  for (const MoeCompanion& c : companions) all.push_back(companion(given, c));
  if (!given.dtype.empty() || !given.weights.empty()) return all;
  const std::string extents = " --tokens 20 --top-k 3 --hidden 128 --inner 128";
  for (const MoeCompanion& c : with_codes) {
    all.push_back(companion(given, c, extents + " --sort-with-gather no"));
    all.push_back(companion(given, c, extents + " --sort-with-gather yes"));
    all.back().first += ", sorted beside";
  }
  for (const MoeCompanion& c : shared_rows) all.push_back(companion(given, c));
  for (const MoeCompanion& c : other_at_once) {
    all.push_back(companion(given, c, " --hidden 384 --inner 128"));
  }
  return all;
}

bool launches(const MixturePlan& plan, std::string_view kernel) {
  return kernel.empty() || std::ranges::any_of(rows_of(plan), [kernel](const StepRow& row) {
           return row.kernel == kernel;
         });
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
  for (const auto& [what, options_of] : companions_of(given)) {
    if (const auto job = job_of(options_of, kernel)) {
      family.members.push_back(member_of(what, options_of, job));
    } else if (kernel.empty()) {
      family.refused.push_back(what);
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
