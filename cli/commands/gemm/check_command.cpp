#include "cli/commands/gemm/check_command.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands/gemm/check_family.h"
#include "cli/commands/gemm/companions.h"
#include "cli/commands/gemm/groups.h"
#include "cli/commands/gemm/model_time.h"
#include "cli/commands/gemm/operand_files.h"
#include "cli/reports/check_report.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/plan/families/kernel_list.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

// Asks for the mutant in this row of the table: behind the model's come edits of the subject.
void ask_for_mutant(const device::Subject& subject, int row, device::CheckOptions& options) {
  const auto all = taken(device::mutants_of(subject));
  const std::size_t rows = all.size() + subject.edits().size();
  if (row < 1 || static_cast<std::size_t>(row) > rows) {
    throw InputError("--mutant is " + std::to_string(row) + "; " +
                     as_rule("the table has rows 1 to ", std::to_string(rows)) + ".");
  }
  const std::size_t at = static_cast<std::size_t>(row) - 1;
  if (at < all.size()) {
    options.mutation = all[at];
  } else {
    options.edit = at - all.size();
  }
}

// The product that --behind asks for, like the first in all but its extents.
GemmOptions options_behind(const GemmOptions& run, const CheckCommandOptions& o) {
  if (!run.a.empty()) {
    throw InputError("--behind draws a second product, and the first comes of files: " +
                     as_rule("give random matrices") + ".");
  }
  GemmOptions behind = run;
  behind.m = behind.total = std::nullopt;
  behind.bad_offsets.clear();
  if (run.is_grouped) {
    behind.tokens = o.tokens_behind;
    if (names_file(run.offsets)) behind.offsets.clear();
    if (names_file(run.rows_index)) {
      behind.rows_index.clear();
      behind.rows_divisor = std::nullopt;
    }
  } else {
    behind.n = behind.k = std::nullopt;
    behind.random = o.behind;
  }
  return behind;
}

int reduce(const device::Subject& subject, const device::CheckOptions& options, bool json,
           std::ostream& out, std::ostream& err) {
  if (!options.replay)
    throw InputError("--reduce shrinks one schedule: " + as_rule("give --replay too") + ".");
  std::optional<Progress> progress;
  progress.emplace(err, "reduce", "", 0);  // how many runs it takes nobody knows
  const Result<device::Reduction> reduced = device::reduce(subject, *options.replay, options);
  progress.reset();
  if (!reduced) throw InputError(reduced.refusal() + ".", name(reduced.code()));
  if (json) {
    ordered_json all = checked_json(reduced->finding);
    all["decisions"] = reduced->decisions;
    all["kept"] = reduced->kept;
    all["decided"] = reduced->decided;
    out << json_text(all);
    return 1;
  }
  const model::Finding& f = reduced->finding.finding;
  const std::string at = place(f.site);
  out << model::code(f.check) << " " << model::name(f.check) << (at.empty() ? "" : " at " + at)
      << "\n  " << f.sentence << "\n"
      << reduced->kept.size() << " of " << reduced->decisions
      << " decisions of the schedule matter (found in " << reduced->runs << " runs)"
      << (reduced->kept.empty() ? ": first come first served shows it too.\n" : ":\n");
  for (const std::string& what : reduced->decided) out << "  " << what << "\n";
  return 1;
}

void print_check(const device::CheckReport& report, const CheckedSubject& checked,
                 const std::vector<model::SyncSite>& ran, bool json, std::ostream& out) {
  const Untried untried = checked.untried(ran);
  if (json) {
    ordered_json all;
    all["plan"] = checked.plan;
    all["schedules"] = report.schedules;
    if (report.explored) {
      all["runs"] = report.explored->runs;
      all["all_schedules"] = report.explored->complete;
      if (!report.explored->complete) all["stopped"] = report.explored->why;
    }
    all["failing"] = report.failing;
    all["findings"] = ordered_json::array();
    for (const device::CheckedFinding& f : report.findings) {
      all["findings"].push_back(checked_json(f));
    }
    add_json(untried.coverage, all);
    all["untried"] = untried.ways;
    out << json_text(all);
    return;
  }
  print_findings(report, out);
  const bool stopped = report.explored && !report.explored->complete;
  out << "check: "
      << (!report.clean() ? "FAIL"
          : stopped       ? "NOT ALL"
                          : "PASS")
      << ". " << checked.plan << (stopped ? ", " : " under ");
  if (report.only_class > 0) {
    out << "class" << report.only_class << (report.explored->classes == 1 ? ", " : ", of ");
  }
  if (report.explored) {
    out << report.explored->text() << ": ";
  } else {
    out << report.schedules << (report.schedules == 1 ? " schedule: " : " schedules: ");
  }
  out << findings_text(report.findings.size()) << ".\n";
  const std::string left_out = text(untried);
  if (report.clean() && !left_out.empty()) {
    out << "not tried: " << left_out << ". check --family tries what " << checked.family << ".\n";
  }
}

Untried untried_of(const Product& product, const std::vector<model::SyncSite>& ran) {
  return {device::coverage(product.plan, ran),
          device::untried_ways(product.plan, tiles_of(product.job, product.plan))};
}

// A mutant is known to be the same program by its order of accesses, and who takes which tile is
// part of that.
std::string survived_text(const Plan& plan) {
  const bool taken = plan.ctas > 0 && (plan.tile_source == kernel::TileSource::dynamic_persistent ||
                                       plan.tile_source == kernel::TileSource::clc);
  if (!taken || plan.device.sms >= plan.tiles()) return "";
  return "note: tiles go to whoever comes first: a mutant that ends sooner gives another order, "
         "and "
         "may be the same program; --sms " +
         std::to_string(plan.tiles()) + ", one for each tile, tells.\n";
}

int mutate(const CheckedSubject& checked, const device::CheckOptions& options, bool json,
           std::ostream& out, std::ostream& err) {
  const device::MutationReport report =
      taken(with_progress(err, "check", options, [&checked](const auto& how) {
        return device::mutate(checked.subject, how);
      }));
  if (!report.unbroken.empty()) {
    device::CheckReport found;
    found.findings = report.unbroken;
    found.schedules = found.failing = 1;
    print_check(found, checked, report.sites, json, out);
    return 1;
  }
  print_mutants(report, json, out);
  if (report.count(device::Mutant::Fate::survived) == 0) return 0;
  // What a mutant may have survived by: what does not run is not broken.
  const std::string left_out = text(checked.untried(report.sites));
  if (!left_out.empty()) {
    err << "note: " << survivors_text(report) << "; not tried: " << left_out << ".\n";
  }
  err << checked.survived;
  return 1;
}

// `check kernel NAME`: the product that it begins with.
GemmOptions product_of_kernel(const GemmOptions& run, const std::string& name) {
  if (const auto refusal = unknown_kernel(name)) throw InputError(*refusal);
  for (const KernelFacts* kernel : all_kernels()) {
    if (kernel->name != name) continue;
    GemmOptions product = product_for(*kernel);
    product.seed = run.seed;
    product.mode = run.mode;
    return product;
  }
  return run;
}

}  // namespace

void require_family(const CheckCommandOptions& o) {
  for (const auto& [option, given] :
       {std::pair{"--replay", !o.replay.empty()},
        {"--mutant", o.mutant.has_value()},
        {"--reduce", o.reduce},
        {"--behind", !o.behind.empty() || !o.tokens_behind.empty()}}) {
    if (!given) continue;
    throw InputError(std::string(option) + " is of one product, and --family runs many: " +
                     as_rule("leave one of them out") + ".");
  }
}

// What --exhaustive makes of the options, and what it does not go with.
static void read_exhaustive(const RunOptions& run, const CheckCommandOptions& o,
                            device::CheckOptions& options) {
  const bool of_class = options.replay && options.replay->of_class > 0;
  if (!o.exhaustive) {
    for (const auto& [option, given] : {std::pair{"--most", o.most.has_value()},
                                        {"--within", o.within.has_value()},
                                        {"--replay of a class", of_class}}) {
      if (!given) continue;
      throw InputError(std::string(option) +
                       " is of all schedules of a case: " + as_rule("give --exhaustive too") + ".");
    }
    return;
  }
  for (const auto& [option, given] : {std::pair{"--mutate", o.mutate},
                                      {"--mutant", o.mutant.has_value()},
                                      {"--reduce", o.reduce},
                                      {"--family", o.family},
                                      {"--schedules", o.schedules.has_value()},
                                      {"--mode", !run.mode.empty()}}) {
    if (!given) continue;
    throw InputError("--exhaustive runs all schedules of one case as it is, and " +
                     std::string(option) + " asks for others: " + as_rule("leave one of them out") +
                     ".");
  }
  if (options.replay && !of_class) {
    throw InputError("--replay is \"" + o.replay + "\"; " +
                     as_rule("with --exhaustive it must be class and its number") + ".");
  }
  options.exhaustive.emplace();
  if (o.most) options.exhaustive->classes = *o.most;
  if (o.within) options.exhaustive->seconds = *o.within;
}

device::CheckOptions check_options(const RunOptions& run, const CheckCommandOptions& o) {
  device::CheckOptions options;
  options.schedules = o.schedules.value_or(o.family || !o.kernel.empty() ? 12 : 64);
  require_between("--schedules", options.schedules, 1, 1'000'000);
  require_jobs(o.jobs);
  options.fence_after_reads = o.strict || o.mutant.has_value();  // as --mutate does
  options.seed = run.seed;
  options.mode = parse_mode(run.mode);
  options.jobs = o.jobs.value_or(std::numeric_limits<int>::max());
  if (!o.replay.empty()) {
    options.replay = device::parse_schedule(o.replay);
    if (!options.replay) {
      throw InputError(
          "--replay is \"" + o.replay + "\"; " +
          as_rule(
              "it must be eager, latest, starve or class and a number, or the number of a random "
              "schedule") +
          ".");
    }
    if (!run.mode.empty())
      throw InputError("--replay names a schedule: " + as_rule("leave --mode out") + ".");
  }
  read_exhaustive(run, o, options);
  return options;
}

std::function<device::Judged(const GemmOperands&)> judge_of(const Product& product) {
  return [&product](const GemmOperands& done) -> device::Judged {
    const JobCheck check = check_job(product.job, done);
    if (check.passed()) return true;
    return {false, describe(check, product.job)};
  };
}

int check_subject(const CheckedSubject& checked, device::CheckOptions options,
                  const CheckCommandOptions& o, std::ostream& out, std::ostream& err) {
  if (o.mutant) {
    const Progress progress(err, "mutants", "", 0);
    ask_for_mutant(checked.subject, *o.mutant, options);
  }
  if (o.reduce) return reduce(checked.subject, options, o.json, out, err);
  if (o.mutate) return mutate(checked, options, o.json, out, err);
  const device::CheckReport report =
      taken(with_progress(err, "check", options, [&checked](const auto& how) {
        return device::check(checked.subject, how);
      }));
  print_check(report, checked, report.sites, o.json, out);
  return report.clean() && (!report.explored || report.explored->complete) ? 0 : 1;
}

void note_checks(const device::CheckOptions& options, double seconds, bool mutates,
                 std::ostream& err) {
  if (options.exhaustive) return;  // it has limits of its own
  const auto runs = static_cast<double>(device::schedules_of(options).size());
  const double threads =
      std::min<double>({runs, static_cast<double>(options.jobs),
                        std::max<double>(1, std::thread::hardware_concurrency())});
  note_duration(err, "check", seconds * runs / threads,
                mutates ? "and that is one mutant: smaller extents or fewer --schedules are faster"
                        : "smaller extents or fewer --schedules are faster");
}

int check_command(const GemmOptions& given, const CheckCommandOptions& o, std::ostream& out,
                  std::ostream& err) {
  return exit_status(out, err, o.json, [&] {
    if (parse_device(given.device) != run_on_model) {
      throw InputError("check runs only on the model: " + as_rule("leave --device out") + ".");
    }
    device::CheckOptions options = check_options(given, o);
    const GemmOptions run = o.kernel.empty() ? given : product_of_kernel(given, o.kernel);
    if (!o.kernel.empty() && !o.exhaustive) {
      return check_family(run, options, o.mutate, o.json, out, err);
    }
    if (o.family) {
      require_family(o);
      return check_family(run, options, o.mutate, o.json, out, err);
    }
    const DeviceFacts facts = facts_of(run);
    Product product(run, facts, err);
    check_memory(product.job);
    note_checks(options, product.model_seconds(), o.mutate, err);
    product.load(run.seed, err, Draw::telling);
    options.right = judge_of(product);
    options.check_offsets = run.check_offsets;
    options.zero_rest = run.zero_rest;
    std::optional<Product> behind;
    std::optional<device::SecondProduct> second;
    if (!o.behind.empty() || !o.tokens_behind.empty()) {
      behind.emplace(options_behind(run, o), facts, err);
      behind->load(run.seed + 1, err, Draw::telling);
      second.emplace(device::SecondProduct{behind->plan, behind->operands, judge_of(*behind)});
      options.second = &*second;
    }
    const auto subject = device::product_subject(product.plan, product.operands, options);
    const auto untried = [&product](const auto& ran) { return untried_of(product, ran); };
    return check_subject({.subject = *subject,
                          .plan = product.plan.name(),
                          .untried = untried,
                          .survived = survived_text(product.plan)},
                         options, o, out, err);
  });
}

}  // namespace warpwright::cli
