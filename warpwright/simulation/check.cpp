#include "warpwright/simulation/check.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "warpwright/facts/share.h"
#include "warpwright/model/report/shrink.h"
#include "warpwright/simulation/check_parts.h"
#include "warpwright/simulation/trial.h"

namespace warpwright::device {
namespace {

const std::string starving = "starve";   // in front of the seed, in a schedule's text
const std::string of_a_class = "class";  // and in front of a class's number

// Knows the right results and asks the caller only about other ones.
class Judge {
 public:
  /// What is wrong with the first result of a trial that has something wrong with it. Every plan
  /// adds in an order of its own, so that a schedule changes no bit.
  std::optional<model::Finding> fault(const Trial& trial) {
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < trial.results(); ++i) {
      auto found = fault(trial, i);
      if (found) return found;
    }
    return std::nullopt;
  }

 private:
  std::optional<model::Finding> fault(const Trial& trial, int which) {
    Accepted& accepted = accepted_[static_cast<std::size_t>(which)];
    const auto [name, of] = trial.name(which);
    if (accepted && trial.content(which) == *accepted) return std::nullopt;
    const Judged judged = trial.is_right(which).value_or(!accepted);
    if (!judged.right) {
      return model::Finding{.check = model::Check::wrong_result,
                            .sentence = std::string(name) + " is not the " + of +
                                        ", although no other check spoke" +
                                        (judged.wrong.empty() ? "" : ": " + judged.wrong),
                            .site = {}};
    }
    if (!accepted) {
      accepted = trial.content(which);
      return std::nullopt;
    }
    return model::Finding{
        .check = model::Check::bits_differ,
        .sentence = std::string(name) + " is the " + of +
                    ", but not in the bits that another schedule gave: what is "
                    "added first depends on what comes first. Mend: add in the order of K, "
                    "whatever has landed",
        .site = {}};
  }

  using Accepted = std::optional<std::vector<std::byte>>;

  std::mutex mutex_;
  std::array<Accepted, Trial::most_results> accepted_;
};

// The happens-before relation of the unbroken plan under each schedule, made when first asked for.
class Relations {
 public:
  Relations(const Subject& subject, const std::vector<Schedule>& schedules)
      : schedules_(schedules), trial_(subject.trial()), hashes_(schedules.size()) {}

  std::uint64_t operator[](std::size_t at) {
    const std::lock_guard lock(mutex_);
    if (!hashes_[at]) {
      ModelOptions how = model_options(schedules_[at], {});
      how.hash_order = true;
      hashes_[at] = trial_->run(how)->order_hash;
    }
    return *hashes_[at];
  }

 private:
  const std::vector<Schedule>& schedules_;
  std::mutex mutex_;
  std::unique_ptr<Trial> trial_;
  std::vector<std::optional<std::uint64_t>> hashes_;
};

// A trial of what the options ask for.
std::unique_ptr<Trial> trial_of(const Subject& subject, const CheckOptions& options) {
  return options.edit ? subject.edited(*options.edit) : subject.trial();
}

// The findings of one run; a D that is wrong though no check spoke is one of them.
std::vector<model::Finding> verdict(const model::Report& report, const Trial& trial, Judge& judge) {
  if (!report.clean()) return report.findings;
  std::vector<model::Finding> all = report.findings;
  if (auto fault = judge.fault(trial)) all.push_back(std::move(*fault));
  return all;
}

bool same_place(const model::Finding& a, const model::Finding& b) {
  return a.check == b.check && a.site.line == b.site.line &&
         std::strcmp(a.site.file, b.site.file) == 0;
}

// Adds those that are not there yet: the counts of a statement stay those of its first run.
void add_sites(const std::vector<model::SyncSite>& more, std::vector<model::SyncSite>& all) {
  for (const model::SyncSite& site : more) {
    const auto known = std::find_if(all.begin(), all.end(), [&](const auto& s) {
      return s.kind == site.kind && s.line == site.line && s.file == site.file &&
             s.barrier == site.barrier;
    });
    if (known == all.end()) all.push_back(site);
  }
}

// Which statements the plan executes, and whether it is clean. That may depend on the schedule (a
// token that spares a wait): looks twice. `reading` becomes the strictest under which it is.
std::optional<Refusal> look(const Subject& subject, Judge& judge, MutationReport& out,
                            CheckOptions& reading) {
  const std::unique_ptr<Trial> first = subject.trial();
  out.unbroken.clear();
  out.sites.clear();
  for (const model::Mode mode : {model::Mode::latest, model::Mode::eager}) {
    ModelOptions how = model_options({mode, 0}, reading);
    how.count_sites = true;
    const Result<model::Report> report = first->run(how);
    if (!report) return report.refusal();
    for (const model::Finding& finding : verdict(*report, *first, judge)) {
      out.unbroken.push_back({finding, {mode, 0}, 1});
    }
    if (!out.unbroken.empty()) {
      if (auto r = subject.disorder()) return r;
      if (!reading.fence_after_reads) return std::nullopt;
      reading.fence_after_reads = false;
      return look(subject, judge, out, reading);
    }
    add_sites(report->sites, out.sites);
  }
  return std::nullopt;
}

}  // namespace

std::string Schedule::text() const {
  if (of_class > 0) return of_a_class + std::to_string(of_class);
  if (mode == model::Mode::eager) return "eager";
  if (mode == model::Mode::latest) return "latest";
  return (mode == model::Mode::starve ? starving : "") + std::to_string(seed);
}

std::optional<Schedule> parse_schedule(const std::string& text) {
  if (text == "eager") return Schedule{model::Mode::eager, 0};
  if (text == "latest") return Schedule{model::Mode::latest, 0};
  const char* last = text.data() + text.size();
  if (text.starts_with(of_a_class)) {
    Schedule schedule{model::Mode::latest, 0};
    const auto [end, error] =
        std::from_chars(text.data() + of_a_class.size(), last, schedule.of_class);
    if (error != std::errc() || end != last || schedule.of_class < 1) return std::nullopt;
    return schedule;
  }
  const bool starves = text.starts_with(starving);
  Schedule schedule{starves ? model::Mode::starve : model::Mode::random, 0};
  const char* first = text.data() + (starves ? starving.size() : 0);
  const auto [end, error] = std::from_chars(first, last, schedule.seed);
  if (error != std::errc() || end != last) return std::nullopt;
  return schedule;
}

std::vector<Schedule> schedules_of(const CheckOptions& options) {
  if (options.replay) return {*options.replay};
  std::vector<Schedule> all;
  const auto wants = [&](model::Mode mode) { return !options.mode || *options.mode == mode; };
  for (const model::Mode mode : {model::Mode::eager, model::Mode::latest}) {
    if (wants(mode) && static_cast<int>(all.size()) < options.schedules) all.push_back({mode, 0});
  }
  const bool random = wants(model::Mode::random);
  const bool starve = wants(model::Mode::starve);
  if (!random && !starve) return all;  // the others have one schedule each
  // One of four starves somebody: enough for every rank, warp and engine in a usual number.
  std::uint64_t seed = options.seed;
  std::uint64_t starving_seed = options.seed;
  while (static_cast<int>(all.size()) < options.schedules) {
    if (starve && (!random || all.size() % 4 == 2)) {
      all.push_back({model::Mode::starve, starving_seed++});
    } else {
      all.push_back({model::Mode::random, seed++});
    }
  }
  return all;
}

// Those of one schedule.
static void add_findings(const std::vector<model::Finding>& found, const Schedule& schedule,
                         CheckReport& out) {
  // Those of one check at one place, which other accesses tell apart, are one here: it counts the
  // schedules that show it.
  std::vector<std::size_t> counted;
  for (const model::Finding& finding : found) {
    const auto known =
        std::find_if(out.findings.begin(), out.findings.end(),
                     [&](const CheckedFinding& f) { return same_place(f.finding, finding); });
    if (known == out.findings.end()) {
      counted.push_back(out.findings.size());
      out.findings.push_back({finding, schedule, 1});
      continue;
    }
    if (known->finding.follows && !finding.follows) {  // a cause speaks for both
      const int before = known->finding.count;
      known->finding = finding;
      known->finding.count = before;
      known->first = schedule;
    }
    known->finding.count += finding.count;
    const auto at = static_cast<std::size_t>(known - out.findings.begin());
    if (std::find(counted.begin(), counted.end(), at) != counted.end()) continue;
    counted.push_back(at);
    ++known->schedules;
  }
}

namespace {

// One run of an exploration, and what came of it.
struct ClassRun {
  model::Explorer::Task task;
  std::vector<std::string> turned;
  std::optional<Result<model::Report>> report;
  std::vector<model::Finding> found;
};

void run_one(const CheckOptions& options, Trial& trial, Judge& judge, ClassRun& run) {
  ModelOptions how = model_options({model::Mode::latest, 0}, options);
  how.count_sites = true;
  how.exploration = &run.task.run;
  run.report = trial.run(how);
  if (*run.report) run.found = verdict(**run.report, trial, judge);
}

// What classes have shown, each finding once a class.
class ClassFindings {
 public:
  void add(ClassRun& run, std::int64_t number, CheckReport& out) {
    std::vector<model::Finding>& told = told_[number];
    std::erase_if(run.found, [&](const model::Finding& finding) {
      return std::any_of(told.begin(), told.end(),
                         [&](const model::Finding& t) { return same_place(t, finding); });
    });
    told.insert(told.end(), run.found.begin(), run.found.end());
    const std::size_t known = out.findings.size();
    add_findings(run.found, {model::Mode::latest, 0, number}, out);
    for (std::size_t i = known; i < out.findings.size(); ++i) {
      out.findings[i].order = run.turned;
    }
  }
  [[nodiscard]] int failing() const { return static_cast<int>(told_.size()); }

 private:
  std::map<std::int64_t, std::vector<model::Finding>> told_;
};

Result<CheckReport> check_all(const Subject& subject, const CheckOptions& options) {
  Judge judge;
  CheckReport out;
  model::Explorer explorer(*options.exhaustive);
  const std::int64_t only = options.replay ? options.replay->of_class : 0;
  ClassFindings findings;
  // The first run is made by itself: it decides whether the operands are taken.
  std::vector<std::unique_ptr<Trial>> trials(static_cast<std::size_t>(workers(1 << 10, options)));
  for (std::size_t most = 1;; most = trials.size()) {
    std::vector<ClassRun> runs;
    while (runs.size() < most) {
      auto task = explorer.take();
      if (!task) break;
      runs.push_back({*std::move(task), {}, {}, {}});
      runs.back().turned = runs.back().task.turned;
    }
    if (runs.empty()) break;
    share(static_cast<std::int64_t>(runs.size()), static_cast<int>(most), [&](int worker) {
      std::unique_ptr<Trial>& trial = trials[static_cast<std::size_t>(worker)];
      if (trial == nullptr) trial = trial_of(subject, options);
      return [&, worker](std::int64_t i) {
        run_one(options, *trials[static_cast<std::size_t>(worker)], judge,
                runs[static_cast<std::size_t>(i)]);
      };
    });
    for (ClassRun& run : runs) {
      if (!*run.report) return run.report->refusal();
      add_sites((*run.report)->sites, out.sites);
      const std::int64_t number = explorer.give(std::move(run.task));
      if (run.found.empty() || (only != 0 && number != only)) continue;
      if (auto r = subject.disorder()) return *r;
      findings.add(run, number, out);
    }
  }
  out.explored = explorer.explored();
  out.only_class = only;
  out.schedules = static_cast<int>(out.explored->classes);
  out.failing = findings.failing();
  if (only > out.explored->classes) {
    return refuse(RefusalCode::bad_value, "there is no class ", std::to_string(only), "; ",
                  as_rule("this case has ", std::to_string(out.explored->classes)));
  }
  std::stable_sort(out.findings.begin(), out.findings.end(), [](const auto& a, const auto& b) {
    return model::rank(a.finding) < model::rank(b.finding);
  });
  return out;
}

}  // namespace

Result<CheckReport> check(const Subject& subject, const CheckOptions& options) {
  if (options.exhaustive) return check_all(subject, options);
  const std::vector<Schedule> schedules = schedules_of(options);
  const int count = static_cast<int>(schedules.size());
  Judge judge;
  std::vector<std::vector<model::Finding>> found(schedules.size());
  CheckReport out;
  out.schedules = count;
  if (count == 0) return out;

  // The first run decides whether the operands are taken, and which D is right.
  const std::unique_ptr<Trial> first = trial_of(subject, options);
  std::vector<std::vector<model::SyncSite>> sites(schedules.size());
  const auto how = [&](std::size_t at) {
    ModelOptions all = model_options(schedules[at], options);
    all.count_sites = true;
    return all;
  };
  const Result<model::Report> report = first->run(how(0));
  if (!report) return report.refusal();
  sites[0] = report->sites;
  found[0] = verdict(*report, *first, judge);
  std::vector<std::unique_ptr<Trial>> trials(static_cast<std::size_t>(workers(count, options)));
  const auto rest = [&](int i, int worker) {
    std::unique_ptr<Trial>& trial = trials[static_cast<std::size_t>(worker)];
    if (trial == nullptr) trial = trial_of(subject, options);
    const auto at = static_cast<std::size_t>(i) + 1;
    const Result<model::Report> other = trial->run(how(at));
    sites[at] = other->sites;
    found[at] = verdict(*other, *trial, judge);
  };
  if (options.progress) options.progress(1.0 / count);
  share_runs(count - 1, options, rest, 1);
  for (const auto& of_one : sites) add_sites(of_one, out.sites);

  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].empty()) continue;
    if (auto r = subject.disorder()) return *r;
    ++out.failing;
    add_findings(found[i], schedules[i], out);
  }
  std::stable_sort(out.findings.begin(), out.findings.end(), [](const auto& a, const auto& b) {
    return model::rank(a.finding) < model::rank(b.finding);
  });
  return out;
}

Result<Reduction> reduce(const Subject& subject, const Schedule& schedule,
                         const CheckOptions& options) {
  if (schedule.mode != model::Mode::random) {
    return refuse(RefusalCode::bad_value, "only a random schedule has decisions to do without; ",
                  as_rule(schedule.text(), " has none"));
  }
  const std::unique_ptr<Trial> held = trial_of(subject, options);
  Trial& trial = *held;
  Judge judge;
  Reduction out;
  ModelOptions how = model_options(schedule, options);
  if (!trial.is_judged()) {
    // The unbroken kernel says what D is to be.
    ModelOptions unbroken = how;
    unbroken.mutation.reset();
    const std::unique_ptr<Trial> whole = subject.trial();
    const Result<model::Report> report = whole->run(unbroken);
    if (!report) return report.refusal();
    static_cast<void>(judge.fault(*whole));
  }
  how.record_decisions = true;
  const Result<model::Report> whole = trial.run(how);
  how.record_decisions = false;
  if (!whole) return whole.refusal();
  const std::vector<model::Finding> found = verdict(*whole, trial, judge);
  if (found.empty())
    return refuse(RefusalCode::bad_value, "schedule ", schedule.text(), " finds nothing");
  out.finding = {found.front(), schedule, 1};
  out.decisions = whole->statistics.decisions;
  const auto shows = [&](const std::vector<std::int64_t>& kept) {
    how.only = kept;
    ++out.runs;
    const Result<model::Report> report = trial.run(how);
    for (const model::Finding& finding : verdict(*report, trial, judge)) {
      if (same_place(finding, out.finding.finding)) return true;
    }
    return false;
  };

  out.kept = model::shrink(whole->decisions, shows);
  how.only = out.kept;
  const Result<model::Report> last = trial.run(how);
  out.decided = last->decided;
  for (const model::Finding& finding : verdict(*last, trial, judge)) {
    if (same_place(finding, out.finding.finding)) out.finding.finding = finding;
  }
  return out;
}

// The edits of a subject as mutants.
static void add_edits(const Subject& subject, const CheckOptions& options,
                      std::vector<Mutant>& all) {
  const std::vector<SubjectEdit> edits = subject.edits();
  for (std::size_t i = 0; i < edits.size(); ++i) {
    if (options.wanted_edit && !options.wanted_edit(i)) continue;
    Mutant mutant;
    mutant.edit = i;
    mutant.site = edits[i].site;
    mutant.how = edits[i].how;
    mutant.kind = edits[i].kind;
    all.push_back(std::move(mutant));
  }
}

// All that are wanted: broken statements, then edits.
static void add_mutants(const Subject& subject, const CheckOptions& options, MutationReport& out) {
  for (const model::Mutation& mutation : model::mutations(out.sites)) {
    if (options.wanted && !options.wanted(mutation)) continue;
    Mutant mutant;
    mutant.mutation = mutation;
    mutant.site = model::text(mutation);
    mutant.how = mutant.kind = mutation.how();
    out.mutants.push_back(std::move(mutant));
  }
  if (!options.wanted || options.wanted_edit) add_edits(subject, options, out.mutants);
}

Result<std::vector<model::Mutation>> mutants_of(const Subject& subject) {
  Judge judge;
  MutationReport report;
  CheckOptions reading;
  reading.fence_after_reads = true;
  if (const auto refusal = look(subject, judge, report, reading)) return *refusal;
  if (!report.unbroken.empty()) return std::vector<model::Mutation>{};
  return model::mutations(report.sites);
}

Result<MutationReport> mutate(const Subject& subject, const CheckOptions& options) {
  const std::vector<Schedule> schedules = schedules_of(options);
  MutationReport out;
  if (schedules.empty()) return out;
  Judge judge;
  CheckOptions reading;
  reading.fence_after_reads = true;
  if (const auto refusal = look(subject, judge, out, reading)) return *refusal;
  if (!out.unbroken.empty()) return out;
  out.fence_after_reads = reading.fence_after_reads;
  add_mutants(subject, options, out);
  // Whether a mutant is the same program is asked in the extreme schedules too, tried or not.
  std::vector<Schedule> asked = schedules;
  for (const model::Mode mode : {model::Mode::eager, model::Mode::latest}) {
    const Schedule extreme{mode, 0};
    if (std::find(asked.begin(), asked.end(), extreme) == asked.end()) asked.push_back(extreme);
  }
  Relations unbroken(subject, asked);
  const auto count = static_cast<int>(out.mutants.size());
  std::vector<std::unique_ptr<Trial>> trials(static_cast<std::size_t>(workers(count, options)));
  share_runs(count, options, [&](int i, int worker) {
    Mutant& mutant = out.mutants[static_cast<std::size_t>(i)];
    std::unique_ptr<Trial> own = mutant.edit ? subject.edited(*mutant.edit) : nullptr;
    std::unique_ptr<Trial>& trial = own ? own : trials[static_cast<std::size_t>(worker)];
    if (trial == nullptr) trial = subject.trial();
    // It is the same program when it orders every access after the same ones, under every schedule.
    // Most mutants die at once, so the first schedules are looked at without that.
    constexpr std::size_t early = 3;
    bool same = true;
    const auto run = [&](std::size_t at, bool compare) {
      ModelOptions how = model_options(asked[at], reading);
      if (!mutant.edit) how.mutation = mutant.mutation;
      how.stop_at_finding = true;
      how.hash_order = compare;
      const Result<model::Report> report = trial->run(how);
      if (compare) same = report->clean() && report->order_hash == unbroken[at];
      return verdict(*report, *trial, judge);
    };
    for (std::size_t at = 0; at < schedules.size(); ++at) {
      const std::vector<model::Finding> found = run(at, same && at >= early);
      ++mutant.schedules;
      if (found.empty()) continue;
      mutant.fate = Mutant::Fate::killed;
      mutant.finding = found.front();
      mutant.by = schedules[at];
      return;
    }
    for (std::size_t at = 0; at < asked.size() && same; ++at) {
      if (at < early || at >= schedules.size()) run(at, true);
    }
    if (!same) return;
    mutant.fate = Mutant::Fate::equivalent;
  });
  return out;
}

Result<CheckReport> check(const Plan& plan, const GemmOperands& operands,
                          const CheckOptions& options) {
  return check(*product_subject(plan, operands, options), options);
}

Result<Reduction> reduce(const Plan& plan, const GemmOperands& operands, const Schedule& schedule,
                         const CheckOptions& options) {
  return reduce(*product_subject(plan, operands, options), schedule, options);
}

Result<std::vector<model::Mutation>> mutants_of(const Plan& plan, const GemmOperands& operands,
                                                const CheckOptions& options) {
  return mutants_of(*product_subject(plan, operands, options));
}

Result<MutationReport> mutate(const Plan& plan, const GemmOperands& operands,
                              const CheckOptions& options) {
  return mutate(*product_subject(plan, operands, options), options);
}

int MutationReport::count(Mutant::Fate fate) const {
  return static_cast<int>(std::count_if(mutants.begin(), mutants.end(),
                                        [&](const Mutant& m) { return m.fate == fate; }));
}

std::vector<MutationReport::OfKind> MutationReport::kinds() const {
  std::vector<OfKind> all;
  for (const Mutant& m : mutants) {
    auto of = std::ranges::find(all, m.kind, &OfKind::kind);
    if (of == all.end()) of = all.insert(all.end(), {m.kind});
    int& counted = m.fate == Mutant::Fate::killed     ? of->killed
                   : m.fate == Mutant::Fate::survived ? of->survived
                                                      : of->equivalent;
    ++counted;
  }
  return all;
}

std::string MutationReport::score() const {
  const int killed = count(Mutant::Fate::killed);
  const int equivalent = count(Mutant::Fate::equivalent);
  const int all = static_cast<int>(mutants.size()) - equivalent;
  const int percent = all == 0 ? 100 : static_cast<int>(100LL * killed / all);  // rounded down
  return "mutation score: " + std::to_string(percent) + "% (killed " + std::to_string(killed) +
         " of " + std::to_string(all) + ", equivalent " + std::to_string(equivalent) + ")";
}

}  // namespace warpwright::device
