#include "cli/commands/gemm/check_members.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/commands/gemm/check_command.h"
#include "cli/commands/gemm/model_time.h"
#include "cli/files/printable.h"
#include "cli/reports/check_report.h"
#include "cli/reports/refusal_json.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

double seconds_of(const Family& family, const device::CheckOptions& options) {
  double seconds = 0;
  for (const Member& m : family.members) seconds += m.seconds;
  const double threads = std::min<double>(options.jobs, std::thread::hardware_concurrency());
  return seconds * options.schedules / std::max(1.0, threads);
}

// What was found, of all members so far.
struct Outcome {
  device::CheckReport last;  // of the member that was run last, the only one with findings
  int schedules = 0;
  std::size_t members = 0;
  device::Coverage coverage;
};

Outcome check_all(const Family& family, const device::CheckOptions& options, std::ostream& err) {
  Outcome out;
  std::vector<model::SyncSite> ran;
  Progress progress(err, "check");
  const auto count = static_cast<double>(family.members.size());
  for (const Member& m : family.members) {
    device::CheckOptions how = options;
    how.progress = [&](double share) {
      progress.share((static_cast<double>(out.members) + share) / count);
    };
    const device::CheckReport report = taken(device::check(*m.subject, how));
    ++out.members;
    out.schedules += report.schedules;
    ran.insert(ran.end(), report.sites.begin(), report.sites.end());
    out.last = report;
    if (!report.clean()) break;
  }
  out.coverage = family.coverage(ran);
  return out;
}

std::string untried_text(const Outcome& found) {
  const device::Coverage& c = found.coverage;
  if (!c.known) return "which statements the kernel has this compiler does not say";
  if (c.untried.empty())
    return "all " + std::to_string(c.statements) + " synchronising statements ran";
  return std::to_string(c.statements - static_cast<int>(c.untried.size())) + " of " +
         std::to_string(c.statements) + " synchronising statements ran";
}

void print_text(const Family& family, const Outcome& found, std::ostream& out) {
  std::size_t width = 0;
  for (const Member& m : family.members) width = std::max(width, m.what.size());
  for (std::size_t i = 0; i < found.members; ++i) {
    const Member& m = family.members[i];
    out << m.what << std::string(width - m.what.size() + 2, ' ') << m.arguments << "\n";
  }
  if (!family.refused.empty()) {
    out << "not of this " << (family.noun == std::string_view("product") ? "kernel" : family.noun)
        << ": " << joined(family.refused, "; ") << "\n";
  }
  for (const model::CompiledSite& site : found.coverage.untried) {
    if (found.last.clean()) out << "ran in none: " << model::text(site) << "\n";
  }
  print_findings(found.last, out);
  if (!found.last.clean()) {
    const Member& m = family.members[found.members - 1];
    out << "of the " << family.noun << " \"" << m.what << "\": warpwright check " << m.command
        << " " << m.arguments << "\n";
  }
  out << "check: " << (found.last.clean() ? "PASS" : "FAIL") << ". " << family.name << ", "
      << found.members << " " << family.noun << (found.members == 1 ? "" : "s") << " under "
      << found.schedules << " schedules: " << findings_text(found.last.findings.size())
      << (found.last.clean() ? "; " + untried_text(found) : "") << ".\n";
}

void print_json(const Family& family, const Outcome& found, std::ostream& out) {
  ordered_json all;
  all["kernel"] = family.name;
  all["schedules"] = found.schedules;
  all["failing"] = found.last.failing;
  const std::string members = std::string(family.noun) + "s";
  all[members] = ordered_json::array();
  for (std::size_t i = 0; i < found.members; ++i) {
    const Member& m = family.members[i];
    all[members].push_back({{"what", m.what}, {"plan", m.plan}, {"arguments", m.arguments}});
  }
  all["not_of_this_kernel"] = family.refused;
  all["findings"] = ordered_json::array();
  for (const device::CheckedFinding& f : found.last.findings) {
    all["findings"].push_back(checked_json(f));
  }
  add_json(found.coverage, all);
  out << json_text(all);
}

// Mutants of all members: killed where one of them shows it, equivalent where none orders anything
// otherwise.
device::MutationReport mutate_all(const Family& family, const device::CheckOptions& options,
                                  std::ostream& err) {
  device::MutationReport all;
  std::map<std::string, std::size_t> known;  // by how and where
  const auto key = [](const model::Mutation& m) { return std::string(m.how()) + " " + text(m); };
  for (const Member& m : family.members) {
    device::CheckOptions how = options;
    how.wanted = [&](const model::Mutation& mutation) {
      const auto found = known.find(key(mutation));
      return found == known.end() ||
             all.mutants[found->second].fate != device::Mutant::Fate::killed;
    };
    const device::MutationReport report = taken(with_progress(
        err, m.what.c_str(), how, [&m](const auto& o) { return device::mutate(*m.subject, o); }));
    for (const device::Mutant& mutant : report.mutants) {
      const auto [at, is_new] = known.try_emplace(key(mutant.mutation), all.mutants.size());
      if (is_new) {
        all.mutants.push_back(mutant);
        continue;
      }
      device::Mutant& before = all.mutants[at->second];
      const int tried = before.schedules + mutant.schedules;
      if (mutant.fate != device::Mutant::Fate::equivalent) before = mutant;
      before.schedules = tried;
    }
  }
  return all;
}

}  // namespace

int check_members(const Family& family, const device::CheckOptions& options, bool mutate, bool json,
                  std::ostream& out, std::ostream& err) {
  note_duration(err, "check", seconds_of(family, options),
                "fewer --schedules are faster, or a kernel of smaller tiles");
  const Outcome found = check_all(family, options, err);
  if (!found.last.clean() || !mutate) {
    (json ? print_json : print_text)(family, found, out);
    return found.last.clean() ? 0 : 1;
  }
  const device::MutationReport report = mutate_all(family, options, err);
  print_mutants(report, json, out);
  return report.count(device::Mutant::Fate::survived) == 0 ? 0 : 1;
}

}  // namespace warpwright::cli
