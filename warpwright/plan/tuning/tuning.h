// What was measured of kernels on this machine's GPUs, kept in a file from run to run.
//
// The file is text: one line an entry, fields between tabs, a checksum at the end. Writers replace
// it as a whole under a lock, so that none loses what another wrote; readers take no lock. A line
// that is damaged is no entry, and the next writer leaves it out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "warpwright/plan/product/plan.h"

namespace warpwright {

/// What an entry holds for: one problem, on one kind of GPU, under one driver and version of this
/// library.
struct TuningKey {
  std::string gpu;
  std::string driver;
  std::string library;
  std::string problem;

  friend bool operator==(const TuningKey&, const TuningKey&) = default;
  friend bool operator<(const TuningKey& x, const TuningKey& y) {
    return std::tie(x.gpu, x.driver, x.library, x.problem) <
           std::tie(y.gpu, y.driver, y.library, y.problem);
  }
};

/// The fastest way of those that were measured.
struct TuningEntry {
  std::string kernel;  ///< Plan::kernel
  atom::ClusterShape cluster;
  int ctas = 0;
  double microseconds = 0;
};

/// The problem in one line: types, scaling, epilogue, extents, strides and alignments. Two problems
/// have the same text exactly when the same plan serves both.
std::string problem_text(const GemmProblem& problem);

/// The installed NVIDIA driver's version, "580.159"; "unknown" where there is none to be seen.
std::string nvidia_driver_version();

/// The key of `problem` on `device` with this machine's driver and this library. Plans whose rows
/// keep their bits in any batch have entries of their own.
TuningKey tuning_key(const GemmProblem& problem, const DeviceFacts& device,
                     bool batch_invariant = false);

/// Are plans for these choices kept in the cache: none, or only batch_invariant?
bool is_kept(const PlanChoices& choices);

/// The entry that measuring `plan` gives.
TuningEntry tuning_entry(const Plan& plan, double microseconds);

/// The entries of one file.
class TuningCache {
 public:
  /// $XDG_CACHE_HOME/warpwright/tuning-v1.tsv, or in ~/.cache; empty where neither is known.
  static std::string default_path();

  /// Reads `path`. A file that is not there is an empty cache; see `warning` for the rest.
  explicit TuningCache(std::string path);

  [[nodiscard]] const std::string& path() const { return path_; }
  /// One sentence on what could not be read, or nothing.
  [[nodiscard]] const std::optional<std::string>& warning() const { return warning_; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::optional<TuningEntry> find(const TuningKey& key) const;

  /// What would keep entries from being stored, for those who want to know before they measure, or
  /// nothing. Makes the folder.
  [[nodiscard]] std::optional<Refusal> unwritable() const;

  /// Adds entries to the file, in place of those with the same keys, beside whatever others wrote
  /// meanwhile, and to this object. Makes the folder. Refuses, with the file as it was, where that
  /// cannot be written.
  [[nodiscard]] std::optional<Refusal> store(
      const std::vector<std::pair<TuningKey, TuningEntry>>& entries);

 private:
  std::string path_;
  std::map<TuningKey, TuningEntry> entries_;
  std::optional<std::string> warning_;
};

/// Where a plan came from.
struct TunedPlan {
  Plan plan;
  /// The cache's entry that decided, or nothing: `plan` chose.
  std::optional<TuningEntry> entry;
};

/// The plan that the cache names for `problem`, where it has an entry that is still legal; else
/// what `plan` gives. Choices that the caller made leave the cache out, but for batch_invariant.
Result<TunedPlan> tuned_plan(const GemmProblem& problem, const DeviceFacts& device,
                             const TuningCache& cache, const PlanChoices& choices = {});

}  // namespace warpwright
