// What `run` and `run_moe` keep as long as the process lives: plans by their problems, memory by
// streams. Internal to run.cpp and run_moe.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "warpwright/device/cuda.h"
#include "warpwright/device/moe.h"

namespace warpwright {

/// For a hash table: of all their fields.
std::size_t hash_of(const GemmProblem& problem);
std::size_t hash_of(const MixtureProblem& problem);

/// The plans of this process, made once each. A server may see a product of every length there is:
/// past so many all are made anew. What a plan is kept by: its problem, what was asked of it, the
/// device.
template <class Problem, class Choices, class Plan>
class PlanCache {
 public:
  struct Key {
    Problem problem;
    Choices choices;
    int device;
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// Until the process ends, whoever ends last.
  static PlanCache& of_process() {
    static auto* const all = new PlanCache;
    return *all;
  }
  /// Null for a problem that was not seen before.
  [[nodiscard]] std::shared_ptr<const Plan> find(const Key& key) const {
    const std::shared_lock lock(mutex_);
    const auto at = plans_.find(key);
    return at == plans_.end() ? nullptr : at->second;
  }
  void keep(Key key, std::shared_ptr<const Plan> plan) {
    const std::unique_lock lock(mutex_);
    if (plans_.size() >= most) plans_.clear();
    plans_.emplace(std::move(key), std::move(plan));
  }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return hash_of(key.problem) ^ static_cast<std::size_t>(key.device);
    }
  };
  static constexpr std::size_t most = 16384;
  mutable std::shared_mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const Plan>, Hash> plans_;
};

/// What is asked of a product's plan.
struct ProductChoices {
  PlanChoices choices;
  int measure = 0;
  friend bool operator==(const ProductChoices&, const ProductChoices&) = default;
};

using ProductPlans = PlanCache<GemmProblem, ProductChoices, Plan>;
using MixturePlans = PlanCache<MixtureProblem, MixtureChoices, MixturePlan>;

/// What a launch needs of a workspace.
struct WorkspaceNeed {
  std::int64_t bytes = 0;
  /// The plan of a product, which may keep flags there.
  const Plan* product = nullptr;
  bool check_offsets = false;
  std::int64_t flag_bytes = 0;  ///< without such a plan

  [[nodiscard]] bool fits(const Workspace& workspace) const {
    return !(product != nullptr ? workspace.fault(*product, check_offsets)
                                : workspace.fault(bytes, flag_bytes));
  }
};

/// Memory of CUDA streams, and one in reserve on every device. It stays for ever: kernels and
/// graphs may use it at any time.
class WorkspaceCache {
 public:
  static WorkspaceCache& of_process();

  /// A stream's memory, which is this thread's from the choice of it until the launch was noted.
  struct Lease {
    std::unique_lock<std::mutex> busy;
    Workspace* workspace;
  };
  /// For a launch on a stream of the current device. In a graph capture (`captured`), where no
  /// memory can be had, a stream without takes what is in reserve.
  Result<Lease> lease(int device, void* stream, const WorkspaceNeed& need, bool captured);

 private:
  struct Space {
    std::shared_ptr<device::CudaBuffer> memory;
    Workspace workspace;
  };
  struct StreamSpaces {
    std::mutex busy;
    std::vector<Space> spaces;  // the largest last
  };
  static Result<Space> make_space(std::int64_t bytes);
  StreamSpaces& spaces_of(int device, void* stream);
  std::optional<Space> take_reserve(int device, const WorkspaceNeed& need);
  std::optional<Refusal> fill_reserve(int device, std::int64_t bytes);

  std::mutex mutex_;
  std::map<std::pair<int, void*>, StreamSpaces> streams_;
  std::map<int, Space> reserves_;
};

}  // namespace warpwright
