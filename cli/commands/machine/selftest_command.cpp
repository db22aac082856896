#include "cli/commands/machine/selftest_command.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/commands/completion.h"
#include "cli/commands/gemm/gemm_options.h"
#include "cli/commands/machine/selftest_products.h"
#include "cli/commands/machine/selftest_report.h"
#include "cli/commands/numbers.h"
#include "cli/commands/predict/predicted.h"
#include "cli/commands/values.h"
#include "cli/files/output_file.h"
#include "cli/files/printable.h"
#include "cli/reports/progress.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/device/cuda.h"
#include "warpwright/plan/product/known_devices.h"

namespace warpwright::cli {
namespace {

using Outcome = Tried::Outcome;
using Clock = std::chrono::steady_clock;

constexpr int kMostSeconds = 86'400;
constexpr int kMore = 2;     // products of a kernel beside the smallest and the ragged one
constexpr int kRepeat = 20;  // launches that are timed

// Calls `over` with what the step is, where one takes longer than `seconds`.
class Patience {
 public:
  Patience(double seconds, std::function<void(const std::string&)> over)
      : limit_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
        over_(std::move(over)),
        waiter_([this](const std::stop_token& stop) { wait(stop); }) {}

  void step(const std::string& what) {
    const std::lock_guard lock(mutex_);
    what_ = what;
    begun_ = Clock::now();
  }

 private:
  void wait(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      changed_.wait_until(lock, stop, begun_ + limit_, [] { return false; });
      if (stop.stop_requested() || Clock::now() < begun_ + limit_) continue;
      over_(what_);
      return;
    }
  }

  Clock::duration limit_;
  std::function<void(const std::string&)> over_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string what_;
  Clock::time_point begun_ = Clock::now();
  std::jthread waiter_;  // last: it uses the others
};

// The first finding of the model; the others follow from it as often as not.
std::string finding_text(const model::Report& report) {
  const std::string text = report.text();
  return text.substr(0, text.find('\n'));
}

class Selftest {
 public:
  Selftest(const SelftestOptions& options, std::ostream& out, std::ostream& err,
           const SelftestRuns& runs)
      : options_(options),
        out_(out),
        err_(err),
        runs_(runs),
        is_model_(parse_device(options.device) == run_on_model),
        place_{is_model_ ? "model" : options.device, options.as, options.seed},
        facts_(facts_of(where(options))),
        kernels_(selftest_kernels(is_model_ && options.as.empty() ? 0 : facts_.architecture)),
        report_(facts_, kernels_, options.seed),
        progress_(err, "selftest", "products", total()),
        patience_(runs.patience_seconds, [this](const std::string& what) { hang(what); }) {
    if (kernels_.empty()) {
      throw InputError("This build has no kernel that runs on " + facts_.name + " (sm_" +
                           std::to_string(facts_.architecture) + "): " +
                           as_rule("`warpwright kernels` says which builds have some") + ".",
                       name(RefusalCode::no_kernel));
    }
  }

  int run() {
    walk_kernels();
    if (!stopped_) walk_types();
    if (!stopped_) walk_mixtures();
    if (!stopped_ && !is_model_) time_shapes();
    report_.end(seconds(start_));
    write();
    out_ << (options_.json ? json_text(report_.json()) : report_.text());
    if (!options_.report.empty()) {
      err_ << "The report is in " << printable(options_.report)
           << ": it holds no names but the card's and kernels', and no paths.\n";
    }
    return report_.is_good() ? 0 : 1;
  }

 private:
  static RunOptions where(const SelftestOptions& options) {
    RunOptions o;
    o.device = options.device;
    o.as = options.as;
    return o;
  }
  [[nodiscard]] std::int64_t total() const {
    const std::size_t shapes = is_model_ ? 0 : selftest_shapes(place_, "bf16").size();
    return static_cast<std::int64_t>(kernels_.size() * (2 + kMore) + selftest_types(place_).size() +
                                     selftest_mixtures(place_).size() + shapes);
  }
  static double seconds(Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  }
  // Is that share of the time gone? The first product of each kernel does not count: what the
  // driver compiles of PTX then may take minutes.
  [[nodiscard]] bool is_over(double share) const {
    return seconds(counted_) > share * options_.seconds;
  }

  void write() const {
    if (!options_.report.empty()) replace_file(options_.report, json_text(report_.json()));
  }

  // Nothing ends a kernel that hangs but the end of the program.
  void hang(const std::string& what) {
    report_.stop("it hung in " + what);
    report_.end(seconds(start_));
    write();
    err_ << "selftest: FAIL. It hung in " << what << ".\n" << std::flush;
    std::_Exit(1);
  }

  void note(SelftestPart part, Tried tried) {
    progress_.update(++done_);
    if (tried.is_bad() && !options_.json) progress_.print(out_, failure_text(tried));
    report_.add(part, std::move(tried));
  }

  // A run that failed may have taken the GPU's context with it: then all that comes fails too.
  void look_at_device(const Tried& tried) {
    if (is_model_ || tried.outcome != Outcome::failed || !device::synchronise_cuda()) return;
    report_.stop("the GPU takes no launches after a kernel that failed: " + tried.command);
    stopped_ = true;
  }

  // Plans and runs it. `repeat` launches are timed, and the result is not checked then.
  Tried carried_out(const GemmOptions& asked, int repeat) {
    GemmOptions o = asked;
    o.repeat = repeat;
    Tried tried;
    tried.command = std::string("warpwright ") + (o.is_grouped ? "grouped " : "gemm ") +
                    arguments_text(o) + (is_model_ ? "" : " --device " + o.device) +
                    (repeat == 0    ? " --check"
                     : o.is_grouped ? " --repeat " + std::to_string(repeat)
                                    : " --bench");
    std::ostringstream silent;
    std::optional<Product> product;
    try {
      product.emplace(o, facts_of(o), silent);
      tried.kernel = product->plan.kernel;
      product->load(o.seed, silent);
    } catch (const InputError& refusal) {
      tried.said = refusal.what();
      return tried;
    }
    try {
      judge(*product, runs_.product(*product, o, silent), repeat > 0, tried);
    } catch (const InputError& refusal) {
      if (std::string_view(refusal.code()) == name(RefusalCode::no_kernel)) throw;
      // A GPU need not have as many free SMs in one GPC.
      const bool is_wide = product->plan.cluster_ctas() > atom::kPortableClusterSize;
      tried.outcome = is_wide ? Outcome::refused : Outcome::failed;
      tried.said = refusal.what();
    } catch (const RunError& failure) {
      tried.outcome = Outcome::failed;
      tried.said = failure.what();
    }
    return tried;
  }

  static void judge(const Product& product, const RunOutput& ran, bool is_timed, Tried& tried) {
    tried.outcome = Outcome::wrong;
    if (!ran.report.clean()) {
      tried.said = finding_text(ran.report);
    } else if (ran.offsets) {
      tried.said = "the offsets are said to be in disorder: " + *ran.offsets;
    } else if (is_timed) {
      tried.outcome = Outcome::right;
      tried.microseconds = 1e6 * ran.launch_seconds;
      tried.predicted_us = predicted_us(product.plan, product.job.lengths());
    } else if (const JobCheck check = check_job(product.job, product.operands); !check.passed()) {
      tried.said = describe(check.elements);
      if (check.touched + check.gaps > 0) tried.said += " Memory beside D was written.";
    } else {
      tried.outcome = Outcome::right;
    }
  }

  // The first of its arguments that there is a plan for.
  Tried first_of(const Companion& companion, int repeat = 0) {
    Tried tried;
    for (const GemmOptions& o : companion.options) {
      patience_.step(companion.what + ": " + (o.kernel.empty() ? o.dtype : o.kernel));
      tried = carried_out(o, repeat);
      if (tried.outcome != Outcome::refused) break;
    }
    tried.what = companion.what;
    look_at_device(tried);
    return tried;
  }

  // All kernels once, then all of them again, so that time that ends ends for all alike.
  void walk_kernels() {
    std::vector<std::vector<Companion>> products(kernels_.size());
    for (std::size_t turn = 0; turn < 2 + kMore; ++turn) {
      for (std::size_t i = 0; i < kernels_.size() && !stopped_; ++i) {
        if (turn == 0) products[i] = products_of(*kernels_[i]);
        const bool is_there = turn < products[i].size();
        const bool is_late = turn > 0 && is_over(0.7);
        if (is_there && is_late) report_.skip();
        if (!is_there || is_late) {
          progress_.update(++done_);
          continue;
        }
        Tried tried = first_of(products[i][turn]);
        tried.kernel = kernels_[i]->name;
        note(SelftestPart::kernels, std::move(tried));
      }
      if (turn == 0) counted_ = Clock::now();
    }
  }

  std::vector<Companion> products_of(const KernelFacts& kernel) {
    try {
      return selftest_products(kernel, place_, kMore);
    } catch (const InputError& refusal) {
      report_.leave_out(kernel.name, refusal.what());
      return {};
    }
  }

  void walk_types() {
    for (const Companion& companion : selftest_types(place_)) {
      if (!stopped_) note(SelftestPart::types, first_of(companion));
    }
  }

  void walk_mixtures() {
    for (const SelftestMixture& mixture : selftest_mixtures(place_)) {
      if (stopped_) return;
      patience_.step("a mixture of experts, " + mixture.what);
      Tried tried = carried_out(mixture.options);
      tried.what = mixture.what;
      look_at_device(tried);
      note(SelftestPart::mixtures, std::move(tried));
    }
  }

  Tried carried_out(const MoeOptions& o) {
    Tried tried;
    tried.command = "warpwright moe --tokens 9 --experts 8 --top-k 2 --hidden 256 --inner 128";
    if (!o.dtype.empty()) tried.command += " --dtype " + o.dtype;
    if (!o.weights.empty()) tried.command += " --weights " + o.weights;
    if (!o.as.empty()) tried.command += " --as " + o.as;
    tried.command += (is_model_ ? "" : " --device " + o.device) + std::string(" --check");
    std::ostringstream silent;
    std::optional<MoeJob> job;
    try {
      job.emplace(o, facts_of(o));
      job->load(o.seed);
    } catch (const InputError& refusal) {
      tried.said = refusal.what();
      return tried;
    }
    tried.outcome = Outcome::failed;
    try {
      const model::Report report = runs_.mixture(*job, o, silent);
      const CheckResult check =
          report.clean() ? check_moe(job->operands, job->plan.way.gates_behind) : CheckResult{};
      tried.outcome = report.clean() && check.passed ? Outcome::right : Outcome::wrong;
      if (!report.clean()) tried.said = finding_text(report);
      if (!check.passed) tried.said = describe(check);
    } catch (const InputError& refusal) {
      tried.said = refusal.what();
    } catch (const RunError& failure) {
      tried.said = failure.what();
    }
    return tried;
  }

  void time_shapes() {
    const std::string half = facts_.architecture < 80 ? "fp16" : "bf16";
    for (const Companion& companion : selftest_shapes(place_, half)) {
      if (stopped_) return;
      if (is_over(1)) {
        report_.skip();
      } else {
        note(SelftestPart::times, first_of(companion, kRepeat));
      }
    }
  }

  const SelftestOptions& options_;
  std::ostream& out_;
  std::ostream& err_;
  const SelftestRuns& runs_;
  bool is_model_;
  SelftestPlace place_;
  DeviceFacts facts_;
  std::vector<const KernelFacts*> kernels_;
  SelftestReport report_;
  std::int64_t done_ = 0;
  Progress progress_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point counted_ = start_;
  bool stopped_ = false;
  Patience patience_;  // last: what it calls uses the others
};

}  // namespace

int selftest_command(const SelftestOptions& o, std::ostream& out, std::ostream& err,
                     const SelftestRuns& runs) {
  return exit_status(out, err, o.json, [&] {
    require_between("--seconds", o.seconds, 1, kMostSeconds);
    if (!o.report.empty()) check_output_file("The report", o.report);
    return Selftest(o, out, err, runs).run();
  });
}

void add_selftest_command(CLI::App& app, SelftestOptions& o) {
  CLI::App* command = app.add_subcommand(
      "selftest", "try every kernel of this build on a GPU, time some products, and report");
  const Values add(*command);
  offer(add("--device", o.device, "DEVICE", "cuda, cuda:1, ..., or model (default cuda)"),
        "cuda cuda:0 cuda:1 model");
  offer(add("--as", o.as, "NAME",
            "for the model: whose kernels run, " + known_names() + " (default: all)"),
        device_words());
  add("--report", o.report, "FILE", "where the report is written, to send back");
  add("--seconds", o.seconds, "S",
      "how long, after the first product of every kernel (default 120)",
      whole<int>(1, kMostSeconds));
  add("--seed", o.seed, "N", "of the products and their values (default 1)");
  command->add_flag("--json", o.json, "for programs: the report");
  command->footer(
      "For every kernel that runs there: the smallest product, a ragged one and two that the seed\n"
      "draws, each element against float64; for every type: a product, one in groups, a layer of\n"
      "experts, or why there is none; on a GPU ten products' times beside their predictions.\n"
      "Exit status: 0; 1 where something was wrong, with the command that shows it; 2 for bad\n"
      "input.\n\n"
      "Examples:\n"
      "  warpwright selftest --report card.json\n"
      "  warpwright selftest --device model --as t4");
}

}  // namespace warpwright::cli
