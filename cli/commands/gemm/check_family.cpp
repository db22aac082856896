#include "cli/commands/gemm/check_family.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/commands/gemm/check_command.h"
#include "cli/commands/gemm/companions.h"
#include "cli/commands/gemm/gemm_options.h"
#include "cli/commands/gemm/groups.h"
#include "cli/commands/gemm/model_time.h"
#include "cli/reports/check_report.h"
#include "cli/reports/refusal_json.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

// A product of the family that the kernel takes.
struct Member {
  std::string what;
  GemmOptions options;
  std::unique_ptr<Product> product;
};

// All that the kernel takes of them, and the names of those that it does not.
struct Members {
  std::vector<Member> taken;
  std::vector<std::string> refused;
};

// The first of these arguments that are a product of the kernel, planned and with its tensors.
std::unique_ptr<Product> made_of(const std::vector<GemmOptions>& tries, GemmOptions& options) {
  std::ostringstream silent;
  for (const GemmOptions& o : tries) {
    try {
      auto product = std::make_unique<Product>(o, facts_of(o), silent);
      product->load(o.seed, silent, Draw::telling);
      options = o;
      return product;
    } catch (const InputError&) {  // the kernel does not take this one
    }
  }
  return nullptr;
}

Members members_of(const GemmOptions& given, std::ostream& err) {
  Members all;
  all.taken.push_back({"as given", given, std::make_unique<Product>(given, facts_of(given), err)});
  const Plan& plan = all.taken.front().product->plan;
  if (plan.kernel.empty()) {
    throw InputError("--family is given, and " + as_tensor("D") +
                     " has no element, so that no kernel runs: " + as_rule("leave it out") + ".");
  }
  all.taken.front().options.kernel = plan.kernel;
  all.taken.front().product->load(given.seed, err, Draw::telling);
  for (Companion& companion : companions_of(given, plan)) {
    GemmOptions options;
    auto product = made_of(companion.options, options);
    if (product == nullptr) {
      all.refused.push_back(companion.what);
    } else {
      all.taken.push_back({companion.what, std::move(options), std::move(product)});
    }
  }
  return all;
}

double seconds_of(const Members& members, const device::CheckOptions& options) {
  double seconds = 0;
  for (const Member& m : members.taken) seconds += m.product->model_seconds();
  const double threads = std::min<double>(options.jobs, std::thread::hardware_concurrency());
  return seconds * options.schedules / std::max(1.0, threads);
}

std::string listed(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : "; ") + word;
  return all;
}

// What was found, of all members so far.
struct Outcome {
  std::string kernel;
  device::CheckReport last;  // of the member that was run last, the only one with findings
  int schedules = 0;
  std::size_t products = 0;
  device::Coverage coverage;
};

Outcome check_members(const Members& members, const device::CheckOptions& options,
                      std::ostream& err) {
  Outcome out;
  out.kernel = members.taken.front().product->plan.kernel;
  std::vector<model::SyncSite> ran;
  Progress progress(err, "check");
  const auto count = static_cast<double>(members.taken.size());
  for (const Member& m : members.taken) {
    device::CheckOptions how = options;
    how.right = judge_of(*m.product);
    how.check_offsets = m.options.check_offsets;
    how.progress = [&](double share) {
      progress.share((static_cast<double>(out.products) + share) / count);
    };
    const Result<device::CheckReport> report =
        device::check(m.product->plan, m.product->operands, how);
    if (!report) throw InputError(report.refusal());
    ++out.products;
    out.schedules += report->schedules;
    ran.insert(ran.end(), report->sites.begin(), report->sites.end());
    out.last = *report;
    if (!report->clean()) break;
  }
  out.coverage = device::coverage(members.taken.front().product->plan, ran);
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

void print_text(const Members& members, const Outcome& found, std::ostream& out) {
  std::size_t width = 0;
  for (const Member& m : members.taken) width = std::max(width, m.what.size());
  for (std::size_t i = 0; i < found.products; ++i) {
    const Member& m = members.taken[i];
    out << m.what << std::string(width - m.what.size() + 2, ' ') << arguments_text(m.options)
        << "\n";
  }
  if (!members.refused.empty()) out << "not of this kernel: " << listed(members.refused) << "\n";
  for (const model::CompiledSite& site : found.coverage.untried) {
    if (found.last.clean()) out << "ran in none: " << model::text(site) << "\n";
  }
  print_findings(found.last, out);
  if (!found.last.clean()) {
    const Member& m = members.taken[found.products - 1];
    out << "of the product \"" << m.what << "\": warpwright check "
        << (m.options.is_grouped ? "grouped " : "gemm ") << arguments_text(m.options) << "\n";
  }
  out << "check: " << (found.last.clean() ? "PASS" : "FAIL") << ". " << found.kernel << ", "
      << found.products << (found.products == 1 ? " product" : " products") << " under "
      << found.schedules << " schedules: " << findings_text(found.last.findings.size())
      << (found.last.clean() ? "; " + untried_text(found) : "") << ".\n";
}

void print_json(const Members& members, const Outcome& found, std::ostream& out) {
  ordered_json all;
  all["kernel"] = found.kernel;
  all["schedules"] = found.schedules;
  all["failing"] = found.last.failing;
  all["products"] = ordered_json::array();
  for (std::size_t i = 0; i < found.products; ++i) {
    const Member& m = members.taken[i];
    all["products"].push_back({{"what", m.what},
                               {"plan", m.product->plan.name()},
                               {"arguments", arguments_text(m.options)}});
  }
  all["not_of_this_kernel"] = members.refused;
  all["findings"] = ordered_json::array();
  for (const device::CheckedFinding& f : found.last.findings) {
    all["findings"].push_back(checked_json(f));
  }
  add_json(found.coverage, all);
  out << json_text(all);
}

// Mutants of all members: killed where one of them shows it, equivalent where none orders anything
// otherwise.
device::MutationReport mutate_members(const Members& members, const device::CheckOptions& options,
                                      std::ostream& err) {
  device::MutationReport all;
  std::map<std::string, std::size_t> known;  // by how and where
  const auto key = [](const model::Mutation& m) { return std::string(m.how()) + " " + text(m); };
  for (const Member& m : members.taken) {
    device::CheckOptions how = options;
    how.right = judge_of(*m.product);
    how.check_offsets = m.options.check_offsets;
    how.wanted = [&](const model::Mutation& mutation) {
      const auto found = known.find(key(mutation));
      return found == known.end() ||
             all.mutants[found->second].fate != device::Mutant::Fate::killed;
    };
    const Result<device::MutationReport> report = with_progress(
        err, m.what.c_str(), how,
        [&m](const auto& o) { return device::mutate(m.product->plan, m.product->operands, o); });
    if (!report) throw InputError(report.refusal());
    for (const device::Mutant& mutant : report->mutants) {
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

int check_family(const GemmOptions& given, const device::CheckOptions& options, bool mutate,
                 bool json, std::ostream& out, std::ostream& err) {
  if (!given.a.empty() || !given.b.empty()) {
    throw InputError("--family draws the tensors of all its products, and " + as_tensor("A") +
                     " is of a file: " +
                     as_rule(given.is_grouped ? "give --groups instead" : "give --random instead") +
                     ".");
  }
  const Members members = members_of(given, err);
  note_duration(err, "check", seconds_of(members, options),
                "fewer --schedules are faster, or a kernel of smaller tiles");
  const Outcome found = check_members(members, options, err);
  if (!found.last.clean() || !mutate) {
    (json ? print_json : print_text)(members, found, out);
    return found.last.clean() ? 0 : 1;
  }
  const device::MutationReport report = mutate_members(members, options, err);
  print_mutants(report, json, out);
  return report.count(device::Mutant::Fate::survived) == 0 ? 0 : 1;
}

}  // namespace warpwright::cli
