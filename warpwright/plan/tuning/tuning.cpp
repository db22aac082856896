#include "warpwright/plan/tuning/tuning.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "warpwright/plan/tuning/tuning_file.h"

namespace warpwright {
namespace {

namespace fs = std::filesystem;
using tuning_file::cannot_write;

}  // namespace

bool is_kept(const PlanChoices& choices) {
  PlanChoices rest = choices;
  rest.batch_invariant = false;
  return rest == PlanChoices{};
}

TuningEntry tuning_entry(const Plan& plan, double microseconds) {
  return {plan.kernel, plan.cluster, plan.ctas, microseconds};
}

std::string TuningCache::default_path() {
  constexpr const char* name = "/warpwright/tuning-v1.tsv";
  // The specification of XDG leaves out paths that are not absolute.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + name;
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache" + name;
  return {};
}

TuningCache::TuningCache(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  tuning_file::Content content = tuning_file::read(path_);
  entries_ = std::move(content.entries);
  warning_ = std::move(content.warning);
}

std::optional<TuningEntry> TuningCache::find(const TuningKey& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

std::optional<Refusal> TuningCache::unwritable() const {
  if (path_.empty()) {
    return refuse(
        RefusalCode::file_error,
        "There is no place for the tuning cache: set XDG_CACHE_HOME or HOME to a folder's "
        "absolute path.");
  }
  std::error_code error;
  const fs::path folder = fs::path(path_).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) return cannot_write(path_, error.message());
  const fs::file_status status = fs::status(path_, error);
  if (fs::exists(status)) {
    if (!fs::is_regular_file(status)) return cannot_write(path_, "it is no regular file");
    // root may write where no mode bit allows it; the owner's wish counts all the same.
    constexpr fs::perms write =
        fs::perms::owner_write | fs::perms::group_write | fs::perms::others_write;
    if ((status.permissions() & write) == fs::perms::none) {
      return cannot_write(path_, "it is read-only");
    }
  }
  const char* where = folder.empty() ? "." : folder.c_str();
  if (::access(where, W_OK | X_OK) != 0) return cannot_write(path_, std::strerror(errno));
  return std::nullopt;
}

std::optional<Refusal> TuningCache::store(
    const std::vector<std::pair<TuningKey, TuningEntry>>& entries) {
  if (auto refusal = unwritable()) return refusal;
  auto merged = tuning_file::add(path_, entries);
  if (!merged) return merged.refusal();
  entries_ = std::move(*merged);
  warning_.reset();
  return std::nullopt;
}

Result<TunedPlan> tuned_plan(const GemmProblem& problem, const DeviceFacts& device,
                             const TuningCache& cache, const PlanChoices& choices) {
  if (!device.is_model && is_kept(choices)) {
    if (const auto entry = cache.find(tuning_key(problem, device, choices.batch_invariant))) {
      PlanChoices tuned = choices;
      tuned.cluster = entry->cluster;
      // A planner that names its kernels also takes the name and the grid.
      if (!entry->kernel.empty()) {
        tuned.kernel = entry->kernel;
        tuned.ctas = entry->ctas;
      }
      const Result<Plan> found = plan(problem, device, tuned);
      // A kernel that is gone, or a grid that this GPU does not hold, is no plan.
      const bool same = found && found->kernel == entry->kernel && found->cluster == entry->cluster;
      if (same) return TunedPlan{*found, entry};
    }
  }
  const Result<Plan> usual = plan(problem, device, choices);
  if (!usual) return usual.refusal();
  return TunedPlan{*usual, std::nullopt};
}

}  // namespace warpwright
