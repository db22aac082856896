#include "cli/reports/check_report.h"

#include <algorithm>
#include <span>

#include "cli/files/printable.h"
#include "cli/reports/refusal_json.h"
#include "cli/reports/report_json.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

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

// Is a text broken, beside the statements that synchronise?
bool has_edits(const device::MutationReport& report) {
  return std::ranges::any_of(report.mutants, [](const auto& m) { return m.edit.has_value(); });
}

void print_kinds(const device::MutationReport& report, std::ostream& out) {
  for (const auto& [kind, killed, survived, equivalent] : report.kinds()) {
    out << kind << ": " << killed << " killed";
    if (equivalent > 0) out << ", " << equivalent << " equivalent";
    if (survived > 0) out << ", " << survived << " SURVIVED";
    out << "\n";
  }
}

}  // namespace

std::string place(const model::Site& site) {
  if (site.line == 0) return "";
  return std::string(site.file) + ":" + std::to_string(site.line);
}

ordered_json checked_json(const device::CheckedFinding& f) {
  ordered_json json = finding_json(f.finding);
  json["schedules"] = f.schedules;
  json["replay"] = f.first.text();
  if (f.first.of_class > 0) json["order"] = f.order;
  return json;
}

void print_findings(const device::CheckReport& report, std::ostream& out) {
  for (const device::CheckedFinding& f : report.findings) {
    const std::string at = place(f.finding.site);
    out << model::code(f.finding.check) << " " << model::name(f.finding.check)
        << (at.empty() ? "" : " at " + at) << " (in " << f.schedules << " of " << report.schedules
        << (report.explored ? " classes of schedules; see it with --exhaustive --replay "
                            : " schedules; see it with --replay ")
        << f.first.text() << ")\n  " << f.finding.sentence << "\n";
    for (const std::string& pair : f.order) out << "  Order: " << pair << ".\n";
  }
}

std::string findings_text(std::size_t count) {
  return (count == 0 ? "no" : std::to_string(count)) + (count == 1 ? " finding" : " findings");
}

void add_json(const device::Coverage& c, ordered_json& json) {
  json["statements"] = c.known ? ordered_json(c.statements) : ordered_json();
  json["untried_statements"] = c.known ? ordered_json::array() : ordered_json();
  for (const model::CompiledSite& site : c.untried) {
    json["untried_statements"].push_back(
        {{"file", site.file}, {"line", site.line}, {"function", site.function}});
  }
}

std::string text(const Untried& untried, std::size_t most) {
  const device::Coverage& c = untried.coverage;
  std::string all;
  if (!c.untried.empty()) {
    std::vector<std::string> functions;
    for (const model::CompiledSite& site : c.untried) {
      const std::string name = model::function_name(site);
      if (std::find(functions.begin(), functions.end(), name) == functions.end())
        functions.push_back(name);
    }
    all = std::to_string(c.untried.size()) + " of " + std::to_string(c.statements) +
          " synchronising statements (in ";
    all += joined(std::span(functions).first(std::min(most, functions.size()))) +
           (functions.size() > most ? ", ...)" : ")");
  }
  for (const std::string& way : untried.ways) all += (all.empty() ? "" : "; ") + way;
  return all;
}

std::string survivors_text(const device::MutationReport& report) {
  std::vector<std::string> sites;
  for (const device::Mutant& m : report.mutants) {
    if (m.fate != device::Mutant::Fate::survived) continue;
    if (std::find(sites.begin(), sites.end(), m.site) == sites.end()) sites.push_back(m.site);
  }
  constexpr std::size_t most = 4;
  std::string all = "survived: " + joined(std::span(sites).first(std::min(most, sites.size())));
  if (sites.size() > most) all += " and " + std::to_string(sites.size() - most) + " more sites";
  return all;
}

void print_mutants(const device::MutationReport& report, bool json, std::ostream& out) {
  if (json) {
    ordered_json all;
    all["mutants"] = ordered_json::array();
    for (const device::Mutant& m : report.mutants) {
      ordered_json one;
      one["site"] = m.site;
      one["mutation"] = m.how;
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
    if (has_edits(report)) {
      all["kinds"] = ordered_json::array();
      for (const auto& [kind, killed, survived, equivalent] : report.kinds()) {
        all["kinds"].push_back({{"kind", kind},
                                {"killed", killed},
                                {"survived", survived},
                                {"equivalent", equivalent}});
      }
    }
    all["score"] = report.score();
    out << json_text(all);
    return;
  }
  std::vector<std::vector<std::string>> rows = {
      {"mutant", "kind", "site", "caught by (schedules)"}};
  for (std::size_t i = 0; i < report.mutants.size(); ++i) {
    const device::Mutant& m = report.mutants[i];
    rows.push_back({std::to_string(i + 1), m.how, m.site, fate_of(m)});
  }
  out << aligned(rows);
  if (has_edits(report)) print_kinds(report, out);
  out << report.score() << "\n";
}

}  // namespace warpwright::cli
