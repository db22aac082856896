#include "warpwright/run.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "warpwright/plan/known_devices.h"
#include "warpwright/plan/rules.h"

#if WARPWRIGHT_HAS_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace warpwright {
namespace {

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

// What plans are kept by.
struct Key {
  GemmProblem problem;
  PlanChoices choices;
  int device = run_on_model;

  friend bool operator==(const Key&, const Key&) = default;
};

// Mixes the fields of a product.
struct Mixer {
  std::uint64_t& sum;

  template <class T>
  void operator()(const char* name, const T& value) const {
    if constexpr (requires { value.has_value(); }) {
      if (value) (*this)(name, *value);
    } else if constexpr (std::is_same_v<T, PlannedMatrix>) {
      if (is_given(value)) for_each_field(value, *this);
    } else if constexpr (requires { for_each_field(value, *this); }) {
      for_each_field(value, *this);
    } else if constexpr (std::is_floating_point_v<T>) {
      add(std::bit_cast<std::uint64_t>(static_cast<double>(value)));
    } else {
      add(static_cast<std::uint64_t>(value));
    }
  }
  void add(std::uint64_t value) const { sum = (std::rotl(sum, 23) ^ value) * 0x9E3779B97F4A7C15U; }
};

struct Hash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t sum = static_cast<std::uint64_t>(key.device);
    for_each_field(key.problem, Mixer{sum});
    return sum;
  }
};

// The plans of this process, made once each. A server may see a product of every length there is:
// past so many all are made anew.
class Plans {
 public:
  std::shared_ptr<const Plan> find(const Key& key) {
    const std::shared_lock lock(mutex_);
    const auto at = plans_.find(key);
    return at == plans_.end() ? nullptr : at->second;
  }
  void keep(const Key& key, const std::shared_ptr<const Plan>& plan) {
    const std::unique_lock lock(mutex_);
    if (plans_.size() >= most) plans_.clear();
    plans_.emplace(key, plan);
  }

 private:
  static constexpr std::size_t most = 16384;
  std::shared_mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const Plan>, Hash> plans_;
};

Plans& plans() {
  static auto* const all = new Plans;  // until the process ends, whoever ends last
  return *all;
}

// Workspaces of streams. They stay for ever: kernels and graphs may use them at any time.
struct Space {
  std::shared_ptr<device::CudaBuffer> memory;
  Workspace workspace;
};

Result<Space> make_space(std::int64_t bytes) {
  constexpr std::uint64_t least = 1 << 20;
  const auto size =
      static_cast<std::int64_t>(std::bit_ceil(std::max(least, static_cast<std::uint64_t>(bytes))));
  auto memory = device::CudaBuffer::make(size);
  if (!memory) return memory.refusal();
  Workspace over((*memory)->data(), size);
  return Space{*memory, std::move(over)};
}

struct StreamSpaces {
  std::mutex busy;            // from the choice of a space until the launch was noted in it
  std::vector<Space> spaces;  // the largest last
};

class Spaces {
 public:
  StreamSpaces& of(int device, void* stream) {
    const std::lock_guard lock(mutex_);
    return streams_[{device, stream}];
  }
  // What a stream that is being captured may take.
  std::optional<Space> take_reserve(int device, const Plan& plan, bool check_offsets) {
    const std::lock_guard lock(mutex_);
    const auto at = reserves_.find(device);
    if (at == reserves_.end() || at->second.workspace.fault(plan, check_offsets)) {
      return std::nullopt;
    }
    return std::move(reserves_.extract(at).mapped());
  }
  // Sees to it that there is a reserve for plans like this one.
  std::optional<Refusal> fill_reserve(int device, const Plan& plan) {
    const std::lock_guard lock(mutex_);
    const auto at = reserves_.find(device);
    if (at != reserves_.end() && at->second.workspace.bytes() >= plan.workspace_bytes) {
      return std::nullopt;
    }
    auto made = make_space(plan.workspace_bytes);
    if (!made) return made.refusal();
    reserves_.insert_or_assign(device, std::move(*made));
    return std::nullopt;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<int, void*>, StreamSpaces> streams_;
  std::map<int, Space> reserves_;
};

Spaces& spaces() {
  static auto* const all = new Spaces;
  return *all;
}

// A launch in this memory, and what the kernel says of the offsets.
std::optional<Refusal> launch_in(Workspace& workspace, const Plan& plan,
                                 const GemmOperands& operands, const RunOptions& o) {
  if (auto r = launch(plan, operands, workspace, o.stream, o.launch)) return r;
  return o.launch.check_offsets ? offsets_fault(plan, workspace, o.stream) : std::nullopt;
}

std::optional<Refusal> launch_in_kept(const Plan& plan, const GemmOperands& operands,
                                      const RunOptions& o, bool captured) {
  if (o.device == run_on_model) {
    auto workspace = Workspace::make(plan);
    if (!workspace) return workspace.refusal();
    return launch_in(*workspace, plan, operands, o);
  }
  StreamSpaces& of_stream = spaces().of(o.device, o.stream);
  const std::lock_guard lock(of_stream.busy);
  if (!captured) {
    if (auto r = spaces().fill_reserve(o.device, plan)) return r;
  }
  std::vector<Space>& all = of_stream.spaces;
  if (all.empty() || all.back().workspace.fault(plan, o.launch.check_offsets)) {
    if (captured) {
      auto taken = spaces().take_reserve(o.device, plan, o.launch.check_offsets);
      if (!taken) {
        return refuse(RefusalCode::bad_workspace, "the stream is being captured and has no ",
                      plan.workspace_bytes,
                      " bytes of workspace, which cannot be had in a capture; run such a product "
                      "once before the capture, or give it a workspace");
      }
      all.push_back(std::move(*taken));
    } else {
      auto made = make_space(plan.workspace_bytes);
      if (!made) return made.refusal();
      all.push_back(std::move(*made));
    }
  }
  Workspace& workspace = all.back().workspace;
  // A graph that relied on clear flags would keep other plans out of memory that is everyone's.
  if (captured) workspace.forget();
  return launch_in(workspace, plan, operands, o);
}

// The name of the plan in a profiler's timeline, where $WARPWRIGHT_NVTX asks for it.
class NamedRange {
 public:
#if WARPWRIGHT_HAS_NVTX
  explicit NamedRange(const Plan& plan) {
    static const bool wanted = is_set("WARPWRIGHT_NVTX");
    if (wanted) nvtxRangePushA(plan.name().c_str());
    pushed_ = wanted;
  }
  ~NamedRange() {
    if (pushed_) nvtxRangePop();
  }

 private:
  bool pushed_ = false;
#else
  explicit NamedRange(const Plan& /*plan*/) {}
  ~NamedRange() {}  // NOLINT(modernize-use-equals-default): else a range is an unused variable
#endif
 public:
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;
};

// Streams are asked for their device once in a row.
std::optional<Refusal> checked_stream(void* stream, int device) {
  thread_local std::pair<void*, int> last = {nullptr, -1};
  if (stream == nullptr || last == std::pair{stream, device}) return std::nullopt;
  // What is captured for another device fails as it is added.
  if (device::is_captured(stream)) return std::nullopt;
  auto fault = device::stream_fault(stream, device);
  if (!fault) last = {stream, device};
  return fault;
}

// The index of "cuda" or "cuda:3"; -1 for another name.
int cuda_index(std::string_view name) {
  if (name == "cuda") return 0;
  if (!name.starts_with("cuda:")) return -1;
  name.remove_prefix(5);
  int index = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  return error == std::errc() && end == name.data() + name.size() ? index : -1;
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

Result<const DeviceFacts*> run_facts(int device) {
  static const auto* const model = new DeviceFacts(model_facts());
  if (device == run_on_model) return model;
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<int, DeviceFacts>;
  const std::lock_guard lock(*mutex);
  if (const auto at = known->find(device); at != known->end()) return &at->second;
  auto facts = device::cuda_device(device);
  if (!facts) return facts.refusal();
  return &known->emplace(device, *facts).first->second;
}

Result<Plan> run_plan(const GemmProblem& problem, const DeviceFacts& device,
                      const PlanChoices& choices) {
  if (device.is_model) return plan(problem, device, choices);
  static const auto* const cache =
      new TuningCache(is_set("WARPWRIGHT_NO_TUNING") ? "" : TuningCache::default_path());
  auto made = tuned_plan(problem, device, *cache, choices);
  if (!made) return made.refusal();
  return made->plan;
}

Result<NamedDevice> device_named(std::string_view name) {
  const int index = cuda_index(name);
  if (name == "model" || index >= 0) {
    const int device = name == "model" ? run_on_model : index;
    const auto facts = run_facts(device);
    if (!facts) return facts.refusal();
    return NamedDevice{**facts, device};
  }
  constexpr std::string_view model = "model:";
  if (name.starts_with(model)) {
    if (const auto facts = known_facts(name.substr(model.size()))) {
      return NamedDevice{model_facts(model_facts().sms, facts->architecture), run_on_model};
    }
  }
  if (const auto facts = known_facts(name)) return NamedDevice{*facts, run_nowhere};
  std::string known;
  for (const std::string_view each : known_devices()) known += std::string(each) + ", ";
  return refuse(RefusalCode::no_device, "there is no device \"", std::string(name),
                "\"; there are ", known,
                "cuda, cuda:1, ..., and the model with the instructions of "
                "one of these, as model:b200: the nearest legal is model");
}

std::string plan_line(const Plan& plan) {
  return formula(plan.problem) + " by " + (plan.ctas > 0 ? plan.name() : "no kernel") + " on " +
         plan.device.name + (plan.reason.empty() ? "" : ": " + plan.reason);
}

std::optional<Refusal> quantise(const Quantisation& what, int device, void* stream) {
  if (device == run_on_model) return quantise_on_host(what);
  const CurrentDevice current(device);
  if (current.fault()) return current.fault();
  if (auto r = checked_stream(stream, device)) return r;
  return device::quantise_on_cuda(what, stream);
}

std::optional<Refusal> run(const Plan& plan, const GemmOperands& operands,
                           const RunOptions& options) {
  const CurrentDevice current(options.device);
  if (current.fault()) return current.fault();
  if (options.device != run_on_model) {
    if (auto r = checked_stream(options.stream, options.device)) return r;
  }
  if (auto r = mismatch(plan, options.choices)) return r;
  const NamedRange range(plan);
  Workspace none;
  Workspace* workspace = options.workspace;
  if (workspace == nullptr && !none.fault(plan, options.launch.check_offsets)) workspace = &none;
  if (workspace != nullptr && !options.launch.check_offsets) {
    return launch(plan, operands, *workspace, options.stream, options.launch);
  }
  const bool captured = options.device != run_on_model && device::is_captured(options.stream);
  if (captured && options.launch.check_offsets) {
    return refuse(RefusalCode::unsupported,
                  "check_offsets waits for the kernel, which a graph capture does not allow: leave "
                  "it out");
  }
  return workspace != nullptr ? launch_in(*workspace, plan, operands, options)
                              : launch_in_kept(plan, operands, options, captured);
}

std::optional<Refusal> run(const GemmOperands& operands, const RunOptions& options,
                           std::shared_ptr<const Plan>* made) {
  if (made != nullptr) made->reset();
  const auto problem = describe(operands);
  if (!problem) return problem.refusal();
  const Key key{*problem, options.choices, options.device};
  std::shared_ptr<const Plan> plan = plans().find(key);
  if (plan == nullptr) {
    const auto facts = run_facts(options.device);
    if (!facts) return facts.refusal();
    auto fresh = run_plan(*problem, **facts, options.choices);
    if (!fresh) return fresh.refusal();
    plan = std::make_shared<const Plan>(std::move(*fresh));
    plans().keep(key, plan);
    if (made != nullptr) *made = plan;
  }
  RunOptions chosen = options;  // the plan is what they ask for
  chosen.choices = {};
  return run(*plan, operands, chosen);
}

}  // namespace warpwright
