// What `run` keeps as long as the process lives: plans by their products, memory by streams.
// Internal to run.cpp.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "warpwright/device/cuda.h"

namespace warpwright {

/// The plans of this process, made once each. A server may see a product of every length there is:
/// past so many all are made anew.
class PlanCache {
 public:
  /// What a plan is kept by: its product, what was asked of it, the device.
  struct Key {
    GemmProblem problem;
    PlanChoices choices;
    int device;
    int measure = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// Until the process ends, whoever ends last.
  static PlanCache& of_process();
  /// Null for a product that was not seen before.
  [[nodiscard]] std::shared_ptr<const Plan> find(const Key& key) const;
  void keep(Key key, std::shared_ptr<const Plan> plan);

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  static constexpr std::size_t most = 16384;
  mutable std::shared_mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const Plan>, Hash> plans_;
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
  /// For a launch of `plan` on a stream of the current device. In a graph capture (`captured`),
  /// where no memory can be had, a stream without takes what is in reserve.
  Result<Lease> lease(int device, void* stream, const Plan& plan, bool check_offsets,
                      bool captured);

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
  std::optional<Space> take_reserve(int device, const Plan& plan, bool check_offsets);
  std::optional<Refusal> fill_reserve(int device, const Plan& plan);

  std::mutex mutex_;
  std::map<std::pair<int, void*>, StreamSpaces> streams_;
  std::map<int, Space> reserves_;
};

}  // namespace warpwright
