#include "warpwright/run.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "warpwright/device/launch_parts.h"
#include "warpwright/device/measure.h"
#include "warpwright/plan/cost/group_lengths.h"
#include "warpwright/plan/product/known_devices.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/plan/tuning/tuning.h"
#include "warpwright/run_parts.h"

namespace warpwright {
namespace {

constexpr std::string_view model_as = "model:";

// Starts a plan: `launch`, or what is below its check of the operands.
using Start = std::optional<Refusal> (*)(const Plan&, const GemmOperands&, Workspace&, void*,
                                         const LaunchOptions&);

std::optional<Refusal> run_by(Start start, const Plan& plan, const GemmOperands& operands,
                              const RunOptions& o) {
  const bool checks = o.launch.check_offsets;
  const WorkspaceNeed need{plan.workspace_bytes, &plan, checks};
  return start_in_place({o.device, o.stream, o.workspace}, device::needs_workspace(plan, checks),
                        need, checks ? "check_offsets" : nullptr, plan,
                        [&](Workspace& workspace) -> std::optional<Refusal> {
                          if (auto r = start(plan, operands, workspace, o.stream, o.launch)) {
                            return r;
                          }
                          return checks ? offsets_fault(plan, workspace, o.stream) : std::nullopt;
                        });
}

// The tuning cache of this process: read once, and what the process measures is added.
class Tunings {
 public:
  static Tunings& of_process() {
    static auto* const all = new Tunings;
    return *all;
  }
  Result<TunedPlan> plan(const GemmProblem& problem, const DeviceFacts& device,
                         const PlanChoices& choices) {
    const std::shared_lock lock(mutex_);
    return tuned_plan(problem, device, cache_, choices);
  }
  // Where the file cannot be written the process keeps the plan all the same.
  void store(const TuningKey& key, const TuningEntry& entry) {
    const std::unique_lock lock(mutex_);
    if (!cache_.path().empty()) static_cast<void>(cache_.store({{key, entry}}));
  }

 private:
  std::shared_mutex mutex_;
  TuningCache cache_{is_set("WARPWRIGHT_NO_TUNING") ? "" : TuningCache::default_path()};
};

Result<Plan> plan_as_tuned(const GemmProblem& problem, const DeviceFacts& device,
                           const PlanChoices& choices) {
  auto made = Tunings::of_process().plan(problem, device, choices);
  if (!made) return made.refusal();
  return std::move((*made).plan);
}

std::string microseconds(double us) {
  char text[32];
  std::snprintf(text, sizeof text, us < 100 ? "%.2f us" : "%.1f us", us);
  return text;
}

// The fastest of the best few plans.
Result<Plan> measure_candidates(const GemmProblem& problem, const GemmOperands& operands,
                                const DeviceFacts& device, int index, const PlanChoices& choices,
                                int measure) {
  auto plans = candidates(problem, device, choices);
  if (!plans) return plans.refusal();
  std::vector<Plan>& all = *plans;
  if (all.size() > static_cast<std::size_t>(measure)) {
    all.erase(all.begin() + measure, all.end());
  }
  Plan chosen = all.front();
  if (chosen.ctas == 0) return chosen;
  const CurrentDevice current(index);
  const auto times = current.fault()
                         ? Result<std::vector<double>>(*current.fault())
                         : device::measure_plans(all, operands, typical_lengths(problem));
  if (!times) {
    chosen.reason += (chosen.reason.empty() ? "" : "; ") + ("not measured: " + times.reason());
    return chosen;
  }
  const auto best = std::min_element(times->begin(), times->end());
  const auto which = static_cast<std::size_t>(best - times->begin());
  chosen = all[which];
  chosen.reason =
      "the fastest of " + std::to_string(all.size()) + " that were measured here, " +
      microseconds(*best) +
      (which == 0 ? ", and the first by predicted time"
                  : "; the first by predicted time took " + microseconds(times->front()));
  if (is_kept(choices)) {
    Tunings::of_process().store(tuning_key(problem, device, choices.batch_invariant),
                                tuning_entry(chosen, *best));
  }
  return chosen;
}

std::optional<Refusal> measure_fault(int measure) {
  if (measure >= 0 && measure <= most_measured) return std::nullopt;
  return refuse(RefusalCode::bad_value, as_tensor("measure"), " is ", measure, "; ",
                as_rule("0 to ", most_measured, " plans are measured"), ": the nearest legal is ",
                as_nearest(measure < 0 ? 0 : most_measured));
}

Result<Plan> plan_as_measured(const GemmProblem& problem, const GemmOperands& operands,
                              const DeviceFacts& device, int index, const PlanChoices& choices,
                              int measure) {
  auto tuned = Tunings::of_process().plan(problem, device, choices);
  if (!tuned) return tuned.refusal();
  if (measure == 0 || index < 0 || (*tuned).entry) return std::move((*tuned).plan);
  return measure_candidates(problem, operands, device, index, choices, measure);
}

}  // namespace

CurrentDevice::CurrentDevice(int device) {
  if (device == run_on_model) return;
  const int current = device::current_cuda_device();
  if (current == device) return;
  fault_ = device::use_cuda_device(device);
  if (!fault_) before_ = current;
}

CurrentDevice::~CurrentDevice() {
  if (before_ >= 0) static_cast<void>(device::use_cuda_device(before_));
}

namespace {

// The instructions that the model has: those of the device that WARPWRIGHT_MODEL names now.
Result<int> model_architecture() {
  const char* const name = std::getenv("WARPWRIGHT_MODEL");
  if (name == nullptr || *name == 0) return model_facts().architecture;
  thread_local std::pair<std::string, int> last;
  if (last.first == name) return last.second;
  if (const auto known = known_facts(name)) {
    last = {name, known->architecture};
    return last.second;
  }
  std::string words;
  for (const std::string_view each : known_devices()) words += std::string(each) + ", ";
  return refuse(RefusalCode::no_device, "WARPWRIGHT_MODEL is \"", name,
                "\", which is no device whose instructions the model has; ",
                as_rule("it is one of ", words.substr(0, words.size() - 2)), ": the nearest is ",
                as_nearest("h200"));
}

}  // namespace

Result<int> device_key(int device) {
  if (device != run_on_model) return device;
  const auto architecture = model_architecture();
  if (!architecture) return architecture.refusal();
  return run_nowhere - *architecture;
}

Result<const DeviceFacts*> run_facts(int device) {
  const auto key = device_key(device);
  if (!key) return key.refusal();
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<int, DeviceFacts>;
  const std::lock_guard lock(*mutex);
  if (const auto at = known->find(*key); at != known->end()) return &at->second;
  const bool on_model = device == run_on_model;
  auto facts =
      on_model ? model_facts(model_facts().sms, run_nowhere - *key) : device::cuda_device(device);
  if (!facts) return facts.refusal();
  return &known->emplace(*key, *facts).first->second;
}

Result<Plan> run_plan(const GemmOperands& operands, const DeviceFacts& device,
                      const PlanChoices& choices) {
  const auto problem = describe(operands, addresses_of(operands));
  if (!problem) return problem.refusal();
  return plan_as_tuned(*problem, device, choices);
}

Result<Plan> measured_plan(const GemmOperands& operands, const DeviceFacts& device, int index,
                           const PlanChoices& choices, int measure) {
  if (auto r = measure_fault(measure)) return *r;
  const auto problem = describe(operands, addresses_of(operands));
  if (!problem) return problem.refusal();
  return plan_as_measured(*problem, operands, device, index, choices, measure);
}

Result<int> device_index(std::string_view name) {
  if (name == "model") return run_on_model;
  if (name == "cuda") return 0;
  if (name == "auto") return device::cuda_devices().empty() ? run_on_model : 0;
  if (name.starts_with("cuda:")) {
    int index = -1;
    const char* const end = name.data() + name.size();
    const auto [at, error] = std::from_chars(name.data() + 5, end, index);
    if (error == std::errc() && at == end && index >= 0) return index;
  } else if (name.starts_with(model_as)) {
    if (known_facts(name.substr(model_as.size()))) return run_on_model;
  } else if (known_facts(name)) {
    return run_nowhere;
  }
  std::string known;
  for (const std::string_view each : known_devices()) known += std::string(each) + ", ";
  return refuse(
      RefusalCode::no_device, "there is no device \"", std::string(name), "\"; ",
      as_rule(
          "there are ", known,
          "cuda, cuda:1, ..., and the model with the instructions of one of these, as model:b200"),
      ": the nearest legal is ", as_nearest("model"));
}

Result<NamedDevice> device_named(std::string_view name) {
  const auto index = device_index(name);
  if (!index) return index.refusal();
  if (*index == run_nowhere) return NamedDevice{*known_facts(name), *index};
  const auto facts = run_facts(*index);
  if (!facts) return facts.refusal();
  NamedDevice found{**facts, *index};
  if (name.starts_with(model_as)) {
    const int architecture = known_facts(name.substr(model_as.size()))->architecture;
    found.facts = model_facts(found.facts.sms, architecture);
  }
  return found;
}

Result<std::shared_ptr<void>> run_memory(const NamedDevice& device, std::int64_t bytes) {
  if (device.index == run_nowhere) {
    return refuse(RefusalCode::no_device, device.facts.name,
                  " is a device only to plan for; the nearest legal are ",
                  as_nearest("cuda:0 and model"));
  }
  if (device.index == run_on_model) {
    constexpr std::align_val_t alignment{256};
    return std::shared_ptr<void>(
        ::operator new(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), alignment),
        [](void* p) { ::operator delete(p, alignment); });
  }
  const CurrentDevice current(device.index);
  if (current.fault()) return *current.fault();
  auto buffer = device::CudaBuffer::make(bytes);
  if (!buffer) return buffer.refusal();
  return std::shared_ptr<void>(*buffer, (*buffer)->data());
}

std::string plan_line(const Plan& plan) {
  return formula(plan.problem) + " by " + (plan.ctas > 0 ? plan.name() : "no kernel") + " on " +
         plan.device.name + (plan.reason.empty() ? "" : ": " + plan.reason);
}

namespace {

// What takes no plan: here in host memory, or on a CUDA device.
template <class What>
std::optional<Refusal> carry_out(const What& what, int device, void* stream,
                                 std::optional<Refusal> (*on_host)(const What&),
                                 std::optional<Refusal> (*on_cuda)(const What&, void*)) {
  if (device == run_on_model) return on_host(what);
  const CurrentDevice current(device);
  if (current.fault()) return current.fault();
  if (auto r = checked_stream(stream, device)) return r;
  return on_cuda(what, stream);
}

}  // namespace

std::optional<Refusal> quantise(const Quantisation& what, int device, void* stream) {
  return carry_out(what, device, stream, quantise_on_host, device::quantise_on_cuda);
}

std::optional<Refusal> reorder_scales(const ScaleReordering& what, int device, void* stream) {
  return carry_out(what, device, stream, reorder_scales_on_host, device::reorder_scales_on_cuda);
}

std::optional<Refusal> sort_slots(const SlotSort& what, int device, void* stream) {
  return carry_out(what, device, stream, sort_slots_on_host, device::sort_slots_on_cuda);
}

std::optional<Refusal> run(const Plan& plan, const GemmOperands& operands,
                           const RunOptions& options) {
  if (auto r = mismatch(plan, options.choices)) return r;
  return run_by(launch, plan, operands, options);
}

std::optional<Refusal> run(const GemmOperands& operands, const RunOptions& options,
                           std::shared_ptr<const Plan>* made) {
  if (made != nullptr) made->reset();
  const auto problem = describe(operands);
  if (!problem) return problem.refusal();
  if (auto r = measure_fault(options.measure)) return r;
  const auto device = device_key(options.device);
  if (!device) return device.refusal();
  const bool measures = options.measure > 0 && options.device >= 0;
  ProductPlans::Key key{*problem, {options.choices, measures ? options.measure : 0}, *device};
  std::shared_ptr<const Plan> plan = ProductPlans::of_process().find(key);
  if (plan == nullptr) {
    const auto facts = run_facts(options.device);
    if (!facts) return facts.refusal();
    // In a capture nothing can be waited for: what it takes is kept as a plan that is not measured.
    if (measures && device::is_captured(options.stream)) key.choices.measure = 0;
    auto fresh = plan_as_measured(*problem, operands, **facts, options.device, options.choices,
                                  key.choices.measure);
    if (!fresh) return fresh.refusal();
    plan = std::make_shared<const Plan>(std::move(*fresh));
    ProductPlans::of_process().keep(std::move(key), plan);
    if (made != nullptr) *made = plan;
  }
  return run_by(device::launch_matched, *plan, operands, options);
}

}  // namespace warpwright
