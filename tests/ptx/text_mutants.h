// A product by a text, broken in every way that there is: the statements that synchronise, and what
// only the text says (warpwright/ptx/edits.h).
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernel/problems.h"
#include "tests/scheduled.h"
#include "warpwright/simulation/ptx_subject.h"
#include "warpwright/simulation/trial.h"

namespace warpwright::tests {

class TextSubject final : public device::Subject {
 public:
  /// One launch of a problem by a text.
  using Launch = std::function<Result<model::Report>(
      Problem& problem, const device::ModelOptions& how, ptx::Kernel& kernel)>;

  TextSubject(Instance instance, Ask ask, const ptx::Kernel& kernel, Launch launch)
      : instance_(std::move(instance)),
        ask_(std::move(ask)),
        kernel_(kernel),
        launch_(std::move(launch)) {
    OneTrial trial(*this, kernel_);
    trial.kernel().note_statements();
    for (const model::Mode mode : {model::Mode::latest, model::Mode::eager}) {
      static_cast<void>(trial.run(scheduled(mode, 1)));
    }
    edits_ = trial.kernel().edits();
  }

  [[nodiscard]] std::unique_ptr<device::Trial> trial() const override {
    return std::make_unique<OneTrial>(*this, kernel_);
  }
  [[nodiscard]] std::vector<device::SubjectEdit> edits() const override {
    return device::as_subject_edits(edits_, kernel_);
  }
  [[nodiscard]] std::unique_ptr<device::Trial> edited(std::size_t which) const override {
    return std::make_unique<OneTrial>(*this, kernel_.with(edits_.at(which)));
  }

 private:
  class OneTrial final : public device::Trial {
   public:
    OneTrial(const TextSubject& of, ptx::Kernel kernel)
        : of_(of), problem_(of.instance_, of.ask_), kernel_(std::move(kernel)) {}
    ptx::Kernel& kernel() { return kernel_; }
    Result<model::Report> run(device::ModelOptions options) override {
      options.launches = 1;
      return of_.launch_(problem_, options, kernel_);
    }
    [[nodiscard]] int results() const override { return 1; }
    [[nodiscard]] ResultName name(int /*which*/) const override { return {"D", "product"}; }
    [[nodiscard]] std::vector<std::byte> content(int /*which*/) const override {
      return problem_.d_bytes();
    }
    [[nodiscard]] std::optional<device::Judged> is_right(int /*which*/) const override {
      return device::Judged(problem_.fault().empty());
    }
    [[nodiscard]] bool is_judged() const override { return true; }

   private:
    const TextSubject& of_;
    mutable Problem problem_;
    ptx::Kernel kernel_;
  };

  Instance instance_;
  Ask ask_;
  const ptx::Kernel& kernel_;
  Launch launch_;
  std::vector<ptx::Edit> edits_;
};

/// Each `one_in`-th mutant from the `first`-th on, under so many schedules. Prints a line for each
/// that is not killed, how many of each kind there are, and the score. Returns what is wrong with
/// the text itself, or nothing.
inline std::string print_mutants(const TextSubject& subject, int schedules, std::uint64_t one_in,
                                 std::uint64_t first) {
  auto options = in_schedules(schedules, 2);
  std::uint64_t number = one_in - first % one_in;
  options.wanted = [&](const model::Mutation& /*mutation*/) { return number++ % one_in == 0; };
  options.wanted_edit = [&](std::size_t /*which*/) { return number++ % one_in == 0; };
  const Result<device::MutationReport> report = device::mutate(subject, options);
  if (!report) return report.reason();
  if (!report->unbroken.empty()) return report->unbroken.front().finding.sentence;
  for (const device::Mutant& m : report->mutants) {
    if (m.fate == device::Mutant::Fate::killed) continue;
    const bool same = m.fate == device::Mutant::Fate::equivalent;
    std::printf("%s: %s, %s\n", same ? "equivalent" : "SURVIVED", m.site.c_str(), m.how.c_str());
  }
  for (const auto& [kind, killed, survived, equivalent] : report->kinds()) {
    std::printf("%s: %d killed, %d equivalent, %d survived\n", kind.c_str(), killed, equivalent,
                survived);
  }
  std::printf("%s\n", report->score().c_str());
  return {};
}

}  // namespace warpwright::tests
