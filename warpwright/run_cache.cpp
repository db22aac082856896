#include "warpwright/run_cache.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace warpwright {
namespace {

// Mixes the fields of a problem.
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

template <class Problem>
std::size_t mixed(const Problem& problem) {
  std::uint64_t sum = 0;
  for_each_field(problem, Mixer{sum});
  return sum;
}

}  // namespace

std::size_t hash_of(const GemmProblem& problem) {
  return mixed(problem);
}

std::size_t hash_of(const MixtureProblem& problem) {
  return mixed(problem);
}

WorkspaceCache& WorkspaceCache::of_process() {
  static auto* const all = new WorkspaceCache;
  return *all;
}

Result<WorkspaceCache::Space> WorkspaceCache::make_space(std::int64_t bytes) {
  constexpr std::uint64_t least = 1 << 20;
  const auto size =
      static_cast<std::int64_t>(std::bit_ceil(std::max(least, static_cast<std::uint64_t>(bytes))));
  auto memory = device::CudaBuffer::make(size);
  if (!memory) return memory.refusal();
  Workspace over((*memory)->data(), size);
  return Space{*memory, std::move(over)};
}

WorkspaceCache::StreamSpaces& WorkspaceCache::spaces_of(int device, void* stream) {
  const std::lock_guard lock(mutex_);
  return streams_[{device, stream}];
}

std::optional<WorkspaceCache::Space> WorkspaceCache::take_reserve(int device,
                                                                  const WorkspaceNeed& need) {
  const std::lock_guard lock(mutex_);
  const auto at = reserves_.find(device);
  if (at == reserves_.end() || !need.fits(at->second.workspace)) return std::nullopt;
  return std::move(reserves_.extract(at).mapped());
}

// Sees to it that there is a reserve of so many bytes.
std::optional<Refusal> WorkspaceCache::fill_reserve(int device, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto at = reserves_.find(device);
  if (at != reserves_.end() && at->second.workspace.bytes() >= bytes) return std::nullopt;
  auto made = make_space(bytes);
  if (!made) return made.refusal();
  reserves_.insert_or_assign(device, std::move(*made));
  return std::nullopt;
}

Result<WorkspaceCache::Lease> WorkspaceCache::lease(int device, void* stream,
                                                    const WorkspaceNeed& need, bool captured) {
  StreamSpaces& of_stream = spaces_of(device, stream);
  std::unique_lock busy(of_stream.busy);
  if (!captured) {
    if (auto r = fill_reserve(device, need.bytes)) return *r;
  }
  std::vector<Space>& all = of_stream.spaces;
  if (all.empty() || !need.fits(all.back().workspace)) {
    if (captured) {
      auto taken = take_reserve(device, need);
      if (!taken) {
        return refuse(
            RefusalCode::bad_workspace, "the stream is being captured and has no ", need.bytes,
            " bytes of workspace, which cannot be had in a capture; ",
            as_rule("run such a product once before the capture, or give it a workspace"));
      }
      all.push_back(std::move(*taken));
    } else {
      auto made = make_space(need.bytes);
      if (!made) return made.refusal();
      all.push_back(std::move(*made));
    }
  }
  Workspace& workspace = all.back().workspace;
  // A graph that relied on clear flags would keep other plans out of memory that is everyone's.
  if (captured) workspace.forget();
  return Lease{std::move(busy), &workspace};
}

}  // namespace warpwright
