#include "cli/commands/gemm/check_command.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands/gemm/groups.h"
#include "cli/commands/gemm/model_time.h"
#include "cli/commands/gemm/operand_files.h"
#include "cli/commands/gemm/product.h"
#include "cli/reports/progress.h"
#include "cli/reports/refusal_json.h"
#include "cli/reports/report_json.h"
#include "warpwright/simulation/check.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

device::CheckOptions options_of(const RunOptions& run, const CheckCommandOptions& o) {
  device::CheckOptions options;
  require_between("--schedules", o.schedules, 1, 1'000'000);
  if (o.jobs && *o.jobs < 1) {
    throw InputError("--jobs is " + std::to_string(*o.jobs) + "; the nearest legal value is " +
                     as_nearest("1") + ": leave it out for all threads of the machine.");
  }
  options.schedules = o.schedules;
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
              "it must be eager, latest, starve and a number, or the number of a random schedule") +
          ".");
    }
    if (!run.mode.empty())
      throw InputError("--replay names a schedule: " + as_rule("leave --mode out") + ".");
  }
  return options;
}

std::string place(const model::Site& site) {
  if (site.line == 0) return "";
  return std::string(site.file) + ":" + std::to_string(site.line);
}

ordered_json to_json(const device::CheckedFinding& f) {
  ordered_json json = finding_json(f.finding);
  json["schedules"] = f.schedules;
  json["replay"] = f.first.text();
  return json;
}

void print_findings(const device::CheckReport& report, const std::string& plan, bool json,
                    std::ostream& out) {
  if (json) {
    ordered_json all;
    all["plan"] = plan;
    all["schedules"] = report.schedules;
    all["failing"] = report.failing;
    all["findings"] = ordered_json::array();
    for (const device::CheckedFinding& f : report.findings) all["findings"].push_back(to_json(f));
    out << json_text(all);
    return;
  }
  for (const device::CheckedFinding& f : report.findings) {
    const std::string at = place(f.finding.site);
    out << model::code(f.finding.check) << " " << model::name(f.finding.check)
        << (at.empty() ? "" : " at " + at) << " (in " << f.schedules << " of " << report.schedules
        << " schedules; see it with --replay " << f.first.text() << ")\n  " << f.finding.sentence
        << "\n";
  }
  out << "check: " << (report.clean() ? "PASS" : "FAIL") << ". " << plan << " under "
      << report.schedules << (report.schedules == 1 ? " schedule: " : " schedules: ")
      << (report.clean() ? "no" : std::to_string(report.findings.size()))
      << (report.findings.size() == 1 ? " finding.\n" : " findings.\n");
}

std::string fate_of(const device::Mutant& m) {
  switch (m.fate) {
    case device::Mutant::Fate::killed:
      return std::string(model::code(m.finding.check)) + " after " + std::to_string(m.schedules);
    case device::Mutant::Fate::survived:
      return "SURVIVED " + std::to_string(m.schedules);
    case device::Mutant::Fate::equivalent:
      return "equivalent";
  }
  return "";
}

void print_mutants(const device::MutationReport& report, bool json, std::ostream& out) {
  if (json) {
    ordered_json all;
    all["mutants"] = ordered_json::array();
    for (const device::Mutant& m : report.mutants) {
      ordered_json one;
      one["site"] = m.site;
      one["mutation"] = m.mutation.how();
      one["fate"] = m.fate == device::Mutant::Fate::killed     ? "killed"
                    : m.fate == device::Mutant::Fate::survived ? "survived"
                                                               : "equivalent";
      one["schedules"] = m.schedules;
      if (m.fate == device::Mutant::Fate::killed) {
        one["check"] = model::code(m.finding.check);
        one["sentence"] = m.finding.sentence;
        one["replay"] = m.by.text();
      }
      all["mutants"].push_back(std::move(one));
    }
    all["score"] = report.score();
    out << json_text(all);
    return;
  }
  std::vector<std::array<std::string, 4>> rows = {
      {"mutant", "kind", "site", "caught by (schedules)"}};
  for (std::size_t i = 0; i < report.mutants.size(); ++i) {
    const device::Mutant& m = report.mutants[i];
    rows.push_back({std::to_string(i + 1), std::string(m.mutation.how()), m.site, fate_of(m)});
  }
  std::array<std::size_t, 4> width{};
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += row[c];
      if (c + 1 < row.size()) line += std::string(width[c] - row[c].size() + 2, ' ');
    }
    out << line << "\n";
  }
  out << report.score() << "\n";
}

// What a mutant may have survived by: a wait that a lane skips slips a phase only where tiles are
// longer than the ring, and releases matter only where stages are filled again.
void note_short_tiles(const Product& product, std::ostream& err) {
  const Plan& plan = product.plan;
  const KernelFacts& facts = plan.facts();
  const std::int64_t blocks = (plan.problem.k() + facts.tile.k - 1) / facts.tile.k;
  if (blocks <= facts.stages) {
    err << "note: a tile of " << blocks << " k_tiles does not go round the ring of " << facts.stages
        << " stages, so what only a full ring orders was not tried: take a K above "
        << facts.stages * facts.tile.k << ".\n";
  }
  if (tiles_of(product.job, plan) <= plan.ctas) {
    err << "note: no CTA has a second tile, so what orders one tile after another was not tried: "
           "take larger extents or fewer --sms.\n";
  }
}

// The mutant in this row of the table.
model::Mutation mutant_of(const Product& product, const device::CheckOptions& options, int row) {
  const auto all = device::mutants_of(product.plan, product.operands, options);
  if (!all) throw InputError(all.refusal());
  if (row < 1 || row > static_cast<int>(all->size())) {
    throw InputError("--mutant is " + std::to_string(row) + "; " +
                     as_rule("the table has rows 1 to ", std::to_string(all->size())) + ".");
  }
  return (*all)[static_cast<std::size_t>(row) - 1];
}

// What `work` makes of the options, with a line that says how far it is; gone when it returns.
template <class Work>
auto with_progress(std::ostream& err, device::CheckOptions options, const Work& work) {
  Progress progress(err, "check");
  options.progress = [&progress](double share) { progress.share(share); };
  return work(options);
}

// Says whether a result is that of the product.
auto judge_of(const Product& product) {
  return [&product](const MatrixView& got) {
    GemmOperands operands = product.operands;
    operands.d = got;
    return check_job(product.job, operands).passed();
  };
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
  } else {
    behind.n = behind.k = std::nullopt;
    behind.random = o.behind;
  }
  return behind;
}

int reduce(const Product& product, const device::CheckOptions& options, bool json,
           std::ostream& out, std::ostream& err) {
  if (!options.replay)
    throw InputError("--reduce shrinks one schedule: " + as_rule("give --replay too") + ".");
  std::optional<Progress> progress;
  progress.emplace(err, "reduce", "", 0);  // how many runs it takes nobody knows
  const Result<device::Reduction> reduced =
      device::reduce(product.plan, product.operands, *options.replay, options);
  progress.reset();
  if (!reduced) throw InputError(reduced.refusal() + ".", name(reduced.code()));
  if (json) {
    ordered_json all = to_json(reduced->finding);
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

}  // namespace

int check_command(const GemmOptions& run, const CheckCommandOptions& o, std::ostream& out,
                  std::ostream& err) {
  return exit_status(out, err, o.json, [&] {
    if (parse_device(run.device) != run_on_model) {
      throw InputError("check runs on the model alone: " + as_rule("leave --device out") + ".");
    }
    device::CheckOptions options = options_of(run, o);
    const DeviceFacts facts = facts_of(run);
    Product product(run, facts, err);
    const std::string plan = product.plan.name();
    check_memory(product.job);
    const auto runs = static_cast<double>(device::schedules_of(options).size());
    const double threads =
        std::min<double>({runs, static_cast<double>(options.jobs),
                          std::max<double>(1, std::thread::hardware_concurrency())});
    note_duration(err, "check", product.model_seconds() * runs / threads,
                  o.mutate
                      ? "and that is one mutant: smaller extents or fewer --schedules are faster"
                      : "smaller extents or fewer --schedules are faster");
    product.load(run.seed, err, Draw::telling);
    options.right = judge_of(product);
    options.check_offsets = run.check_offsets;
    std::optional<Product> behind;
    std::optional<device::SecondProduct> second;
    if (!o.behind.empty() || !o.tokens_behind.empty()) {
      behind.emplace(options_behind(run, o), facts, err);
      behind->load(run.seed + 1, err, Draw::telling);
      second.emplace(device::SecondProduct{behind->plan, behind->operands, judge_of(*behind)});
      options.second = &*second;
    }
    if (o.mutant) options.mutation = mutant_of(product, options, *o.mutant);
    if (o.reduce) return reduce(product, options, o.json, out, err);
    if (o.mutate) {
      const Result<device::MutationReport> report =
          with_progress(err, options, [&product](const auto& how) {
            return device::mutate(product.plan, product.operands, how);
          });
      if (!report) throw InputError(report.refusal());
      if (!report->unbroken.empty()) {
        device::CheckReport found;
        found.findings = report->unbroken;
        found.schedules = found.failing = 1;
        print_findings(found, plan, o.json, out);
        return 1;
      }
      print_mutants(*report, o.json, out);
      if (report->count(device::Mutant::Fate::survived) == 0) return 0;
      note_short_tiles(product, err);
      return 1;
    }
    const Result<device::CheckReport> report = with_progress(
        err, options,
        [&product](const auto& how) { return device::check(product.plan, product.operands, how); });
    if (!report) throw InputError(report.refusal());
    print_findings(*report, plan, o.json, out);
    return report->clean() ? 0 : 1;
  });
}

}  // namespace warpwright::cli
