// A plan run on the model under many schedules, and with its synchronisation broken on purpose.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warpwright/model/explore/explorer.h"
#include "warpwright/model/machine.h"
#include "warpwright/plan/moe/moe_plan.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright::device {

/// One order of events: a run repeats exactly when it is given the same one.
struct Schedule {
  model::Mode mode = model::Mode::eager;
  std::uint64_t seed = 0;  ///< of random and starve
  /// The class of this number, from 1, of all schedules of a small case (CheckOptions::exhaustive).
  std::int64_t of_class = 0;

  friend bool operator==(const Schedule&, const Schedule&) = default;
  /// What `--replay` takes: "eager", "latest", "starve3", "class17", or the seed of a random
  /// schedule.
  [[nodiscard]] std::string text() const;
};

/// The inverse of Schedule::text.
std::optional<Schedule> parse_schedule(const std::string& text);

/// What a judge says of a result: whether it is right, else in a sentence what is wrong with it.
struct Judged {
  bool right = false;
  std::string wrong;
  Judged(bool is_right, std::string what = {}) : right(is_right), wrong(std::move(what)) {}
};

/// A product that every run launches behind the plan's, in the same workspace: of the same plan or
/// another one, with operands and a result of its own. It is held to all that the first is.
struct SecondProduct {
  const Plan& plan;
  const GemmOperands& operands;
  std::function<Judged(const GemmOperands& done)> right;  ///< see CheckOptions::right
};

/// Which schedules are tried, and how.
struct CheckOptions {
  int schedules = 64;
  std::uint64_t seed = 1;
  /// Only one mode; without it the first schedule is eager, the second latest, of the rest one in
  /// four starves a CTA, a warp or TMA, and the others are random.
  std::optional<model::Mode> mode;
  /// Only this schedule.
  std::optional<Schedule> replay;
  /// All schedules in place of those above, one of each class of orders in which operations that
  /// synchronise can come (model/explore/explorer.h), for small cases: until there is no other, or
  /// a limit ends it. With `replay` of a class only that one is told of.
  std::optional<model::ExploreLimits> exhaustive;
  /// Breaks one statement (for `check` and `reduce`).
  std::optional<model::Mutation> mutation;
  /// Makes this one of Subject::edits (for `check` and `reduce`).
  std::optional<std::size_t> edit;
  /// The strict reading of a disputed rule: see model::Options.
  bool fence_after_reads = false;
  /// OS threads that share the work, no more than the machine has. The result is the same for all.
  int jobs = 1;
  /// Is D right, which the operands name as a run left it, with its scales? Asked once, and again
  /// where a schedule gives other bits; never from two threads at once. Without it the first
  /// schedule's D is taken for right.
  std::function<Judged(const GemmOperands& done)> right;
  /// For groups: the kernel looks at its offsets, too, and must find the first one out of order.
  bool check_offsets = false;
  /// For groups: rows of D in no group become 0.
  bool zero_rest = false;
  /// What is launched behind it, or null.
  const SecondProduct* second = nullptr;
  /// Called now and then with the share done; never from two threads at once.
  std::function<void(double)> progress;
  /// `mutate` tries only those mutants for which this is true; without it all.
  std::function<bool(const model::Mutation&)> wanted;
  /// And only those edits; without it all, or none where `wanted` is given.
  std::function<bool(std::size_t)> wanted_edit;
};

/// The schedules that `options` ask for, in the order in which they are tried.
std::vector<Schedule> schedules_of(const CheckOptions& options);

/// A finding, told once.
struct CheckedFinding {
  model::Finding finding;
  Schedule first;     ///< of the schedules that show it
  int schedules = 1;  ///< how many do
  /// What makes the order of a class of schedules: pairs that another class has the other way.
  std::vector<std::string> order = {};
};

/// What all schedules together found.
struct CheckReport {
  std::vector<CheckedFinding> findings;  ///< causes first, then in the order of the schedules
  int schedules = 0;                     ///< tried
  int failing = 0;                       ///< of those, with a finding
  /// With CheckOptions::exhaustive: are these all schedules? `schedules` counts their classes.
  std::optional<model::Explored> explored;
  std::int64_t only_class = 0;  ///< and the only one whose findings these are; 0: they are of all
  std::vector<model::SyncSite> sites;  ///< that any of them executed
  [[nodiscard]] bool clean() const { return findings.empty(); }
};

/// Runs `plan` under every schedule. D keeps its content: every run has one of its own. Refuses
/// what launch_on_model refuses.
Result<CheckReport> check(const Plan& plan, const GemmOperands& operands,
                          const CheckOptions& options);

/// A failing random schedule with all its decisions back at their defaults but those without which
/// the finding does not show.
struct Reduction {
  CheckedFinding finding;
  std::int64_t decisions = 0;        ///< that the schedule made
  std::vector<std::int64_t> kept;    ///< by name; none when first come first served shows it too
  std::vector<std::string> decided;  ///< what they did
  int runs = 0;                      ///< it took
};

/// Shrinks `schedule` for its first finding. Refuses one that is not random or finds nothing.
Result<Reduction> reduce(const Plan& plan, const GemmOperands& operands, const Schedule& schedule,
                         const CheckOptions& options);

/// What became of one mutant.
struct Mutant {
  enum class Fate : std::uint8_t {
    killed,      ///< some check speaks under some schedule
    survived,    ///< no schedule shows it
    equivalent,  ///< no schedule orders any two accesses differently: the same program
  };
  model::Mutation mutation;
  std::optional<std::size_t> edit = {};  ///< of Subject::edits: it is that, and no mutation
  std::string site;                      ///< as a text
  std::string how;                       ///< "dropped" and so on
  std::string kind;                      ///< for counts: as `how`, or Edit::kind
  Fate fate = Fate::survived;
  model::Finding finding;  ///< of a killed one
  Schedule by;             ///< the first schedule that shows it
  int schedules = 0;       ///< tried, that one included
};

struct MutationReport {
  std::vector<CheckedFinding> unbroken;  ///< of the plan itself; with any, nothing is mutated
  std::vector<model::SyncSite> sites;
  std::vector<Mutant> mutants;
  bool fence_after_reads = false;  ///< under which reading the mutants ran
  [[nodiscard]] int count(Mutant::Fate fate) const;
  /// How many there are of a kind, in the order of the mutants.
  struct OfKind {
    std::string kind;
    int killed = 0;
    int survived = 0;
    int equivalent = 0;
  };
  [[nodiscard]] std::vector<OfKind> kinds() const;
  /// "mutation score: 100% (killed 80 of 80, equivalent 2)". 100% only when all are killed.
  [[nodiscard]] std::string score() const;
};

/// The mutants of the plan in the order of MutationReport::mutants; none when it is not clean. From
/// `options` only what is run beside it counts.
Result<std::vector<model::Mutation>> mutants_of(const Plan& plan, const GemmOperands& operands,
                                                const CheckOptions& options = {});

/// Breaks every synchronising statement that the plan executes in every way there is, one at a
/// time, and tries the schedules until a check speaks. The plan itself must be clean (see `check`).
/// Where it is clean under the strict reading of the disputed rule too
/// (model::Options::fence_after_reads), its mutants are held to that.
Result<MutationReport> mutate(const Plan& plan, const GemmOperands& operands,
                              const CheckOptions& options);

/// What these run again and again: a product with its plan, a mixture of experts, or whatever else
/// the model launches. Each trial of it has results of its own, for one OS thread.
class Trial;
/// A way to break a subject that is none of the model's (model::Mutation).
struct SubjectEdit {
  std::string kind;
  std::string site;
  std::string how;
};
class Subject {
 public:
  Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  virtual ~Subject();
  [[nodiscard]] virtual std::unique_ptr<Trial> trial() const = 0;
  /// Why what was found is the fault of its operands, or nothing.
  [[nodiscard]] virtual std::optional<Refusal> disorder() const { return std::nullopt; }
  /// Edits of what runs, none of which has been made: of a compiler's text, say.
  [[nodiscard]] virtual std::vector<SubjectEdit> edits() const { return {}; }
  /// A trial of it with one of them made.
  [[nodiscard]] virtual std::unique_ptr<Trial> edited(std::size_t which) const;
};

/// A product, with what the options say of its result and of what is launched beside it; all stay.
std::unique_ptr<Subject> product_subject(const Plan& plan, const GemmOperands& operands,
                                         const CheckOptions& options);

/// A mixture of experts, which stays. `right` is what CheckOptions::right is of a product; for the
/// options that and those of groups and of a second product count not.
std::unique_ptr<Subject> mixture_subject(
    const MixturePlan& plan, const MixtureOperands& operands,
    std::function<Judged(const MixtureOperands& done)> right = {});

/// As the functions above.
Result<CheckReport> check(const Subject& subject, const CheckOptions& options);
Result<Reduction> reduce(const Subject& subject, const Schedule& schedule,
                         const CheckOptions& options);
Result<std::vector<model::Mutation>> mutants_of(const Subject& subject);
/// Behind the statements that synchronise come the subject's edits.
Result<MutationReport> mutate(const Subject& subject, const CheckOptions& options);

}  // namespace warpwright::device
