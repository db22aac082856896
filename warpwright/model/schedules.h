// Kernels under many schedules: memory of a test, how a kernel is launched, what its runs found,
// and what one of them did, for pictures. Without a test framework: model/testing.h puts
// GoogleTest's assertions on top.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "warpwright/facts/machine_numbers.h"
#include "warpwright/model/explore/explorer.h"
#include "warpwright/model/machine.h"
#include "warpwright/model/memory/guarded_memory.h"
#include "warpwright/model/memory/tensor_map.h"
#include "warpwright/model/report/compiled_sites.h"
#include "warpwright/model/report/report.h"
#include "warpwright/numeric/scalar.h"

namespace warpwright::model::testing {

/// Whether the kernel may write a buffer. A write to an input is a finding, to a constant too,
/// which no earlier grid writes either (Launch::dependent).
enum class Access : std::uint8_t { input, output, constant };

/// Global memory of a test, without its element type. Starts at a multiple of a page. While a
/// kernel runs, only the views of isa/ reach it: an access through a raw pointer is a finding
/// (unchecked_access).
class BufferBase {
 public:
  BufferBase(const BufferBase&) = delete;
  BufferBase& operator=(const BufferBase&) = delete;

  /// What the model needs to know of it.
  [[nodiscard]] Allocation allocation() {
    return {memory_.data(),  bytes_, name_, access_ == Access::output, access_ == Access::constant,
            memory_.behind()};
  }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  /// All of the memory, to be kept and put back: every schedule starts from the same bytes.
  [[nodiscard]] std::vector<std::byte> contents() const {
    std::vector<std::byte> copy(static_cast<std::size_t>(bytes_));
    if (bytes_ > 0) std::memcpy(copy.data(), memory_.data(), copy.size());
    return copy;
  }
  void restore(const std::vector<std::byte>& contents) {
    if (bytes_ > 0) std::memcpy(memory_.data(), contents.data(), contents.size());
  }

 protected:
  BufferBase(std::string name, std::size_t bytes, Access access)
      : name_(std::move(name)),
        bytes_(static_cast<std::int64_t>(bytes)),
        access_(access),
        memory_(bytes) {
    // NaN in every floating-point type: what a kernel forgets to write shows.
    std::memset(memory_.data(), 0xff, bytes);
  }
  ~BufferBase() = default;
  [[nodiscard]] void* memory() { return memory_.data(); }

 private:
  std::string name_;
  std::int64_t bytes_;
  Access access_;
  GuardedMemory memory_;
};

/// `count` elements of global memory, called `name` in findings. All bytes are 0xff at first.
template <class T>
class Buffer : public BufferBase {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  Buffer(std::string name, std::size_t count, Access access = Access::output)
      : BufferBase(std::move(name), count * sizeof(T), access), count_(count) {}

  [[nodiscard]] T* data() { return static_cast<T*>(memory()); }
  [[nodiscard]] T& operator[](std::size_t i) { return data()[i]; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] T* begin() { return data(); }
  [[nodiscard]] T* end() { return data() + count_; }

 private:
  std::size_t count_;
};

/// A row-major matrix as TMA sees it, and the box that one copy moves.
struct Matrix {
  int rows = 0;
  int columns = 0;
  int box_rows = 0;
  int box_columns = 0;
  atom::SmemSwizzle swizzle = atom::SmemSwizzle::none;
  int pitch = 0;  ///< elements from row to row; 0 is packed
};

/// How a reduce-add store reads elements of T (TensorMapFields::element_kind).
template <class T>
constexpr std::uint8_t element_kind() {
  if constexpr (std::is_same_v<T, float>) return 0;
  if constexpr (std::is_same_v<T, numeric::fp16_t>) return 1;
  if constexpr (std::is_same_v<T, numeric::bf16_t>) return 2;
  return 3;
}

/// The tensor map of a matrix of T that starts at `base`. Throws std::invalid_argument with the
/// rule that it breaks, where cuTensorMapEncodeTiled would refuse it.
template <class T>
TensorMap tensor_map(const T* base, const Matrix& m) {
  TensorMapFields f;
  f.base = reinterpret_cast<std::uintptr_t>(base);
  f.rank = 2;
  f.extents = {static_cast<std::uint64_t>(m.columns), static_cast<std::uint64_t>(m.rows)};
  f.strides = {static_cast<std::uint64_t>(m.pitch == 0 ? m.columns : m.pitch) * sizeof(T)};
  f.box = {static_cast<std::uint16_t>(m.box_columns), static_cast<std::uint16_t>(m.box_rows)};
  f.element_bits = 8 * sizeof(T);
  f.swizzle = m.swizzle;
  f.element_kind = element_kind<T>();
  if (const auto fault = invalid(f)) throw std::invalid_argument(*fault);
  return encode(f);
}

/// The same for the matrix that lies in `buffer`.
template <class T>
TensorMap tensor_map(Buffer<T>& buffer, const Matrix& m) {
  return tensor_map(buffer.data(), m);
}

/// The schedules a kernel is run under. To rerun only random seed 7:
/// {.eager = false, .latest = false, .timed = false, .random = 1, .starve = 0, .first_seed = 7}.
struct Schedules {
  bool eager = true;
  bool latest = true;
  bool timed = true;  ///< by the virtual clock of Mode::timed
  int random = 8;     ///< so many seeds, from `first_seed` on
  int starve = 3;     ///< so many of Mode::starve: a warp, a CTA, its copies are held back, in turn
  std::uint64_t first_seed = 1;
  /// All schedules in place of these, one of each class (explorer.h), until there is no other or a
  /// limit ends it: for kernels of a few roles and a few rounds.
  std::optional<ExploreLimits> exhaustive = {};
};

/// What a run did: its timeline, and the life of its mbarriers.
struct Recording {
  Trace trace;
  std::vector<BarrierEvent> barriers;
};

/// A grid that a launch begins with.
struct FirstGrid {
  std::function<void()> body;
  int ctas = 1;
  int threads = 32;
  int shared_bytes = 0;
};

/// What is launched and how it is run. A one-dimensional grid, in clusters of `cluster_size`.
struct Launch {
  int ctas = 1;
  int cluster_size = 1;
  bool in_clusters = true;  ///< LaunchShape::in_clusters
  int threads = 32;
  int shared_bytes = 0;
  int registers_per_thread = 255;  ///< at launch: the pool of setmaxnreg
  int sms = 8;
  int occupied_sm = -1;  ///< Options::occupied_sm
  /// Options::machine: what the schedule by the clock costs. It must outlive the runs.
  const MachineNumbers* machine = nullptr;
  Schedules schedules = {};
  /// Options::fence_after_reads: a missing fence between generic reads and an asynchronous write is
  /// a finding (read_then_async_write).
  bool fence_after_reads = false;
  /// Filled with what the kernel does under the clock (Schedules::timed), for pictures.
  Recording* recording = nullptr;
  /// So many launches follow each other on the same memory, which nothing restores in between.
  int launches = 1;
  /// By programmatic dependent launch: each may start when all CTAs of the one before have called
  /// launch_dependents or ended, the first one behind a grid that is not shown. What a thread
  /// touches before it knows of their end, but for constants, is a finding (before_prerequisites).
  bool dependent = false;
  /// Grids before this one, in every launch and as dependent, on the same memory.
  std::vector<FirstGrid> first = {};
  /// Options::mutation: a statement of them that is broken.
  std::optional<Mutation> mutation = {};
  /// Called when a launch has ended and the next may rely on it: says what is wrong with what it
  /// left, or returns an empty string. What it says becomes a finding (left_behind).
  std::function<std::string()> left = {};
  /// Called after every schedule in which nothing was found: says what is wrong with the result, or
  /// returns an empty string. What it says becomes a finding (wrong_result).
  std::function<std::string()> verify = {};
};

/// One run of the kernel.
struct Run {
  std::string
      schedule;  ///< "eager", "latest", "timed", "random seed 3", "starve seed 1", "class 2"
  Report report;
  std::vector<std::string> order = {};  ///< of a class: the pairs that others have the other way
};

/// A finding, and the schedules that it was made in.
struct Seen {
  Finding finding;
  std::vector<std::string> schedules;
};

/// All runs of a kernel.
class Outcome {
 public:
  std::vector<Run> runs;
  /// With Schedules::exhaustive: are these all schedules that there are?
  std::optional<Explored> explored;

  [[nodiscard]] bool clean() const {
    return std::all_of(runs.begin(), runs.end(), [](const Run& r) { return r.report.clean(); });
  }
  [[nodiscard]] bool has(Check check) const { return count(check) > 0; }
  /// In how many schedules `check` found something.
  [[nodiscard]] int count(Check check) const {
    return static_cast<int>(
        std::count_if(runs.begin(), runs.end(), [&](const Run& r) { return r.report.has(check); }));
  }
  /// The findings of all runs, each once: those of one check at one place are the same, with two
  /// accesses both places count. Likely causes first, of those the ones of most schedules.
  [[nodiscard]] std::vector<Seen> findings() const {
    std::vector<Seen> all;
    for (const Run& run : runs) {
      for (const Finding& f : run.report.findings) {
        const auto known =
            std::find_if(all.begin(), all.end(), [&](const Seen& s) { return same(s.finding, f); });
        if (known == all.end()) {
          all.push_back({f, {run.schedule}});
          continue;
        }
        known->finding.count += f.count;
        if (known->schedules.back() != run.schedule) known->schedules.push_back(run.schedule);
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Seen& a, const Seen& b) {
      const int of_a = rank(a.finding);
      const int of_b = rank(b.finding);
      return of_a != of_b ? of_a < of_b : a.schedules.size() > b.schedules.size();
    });
    return all;
  }
  /// The merged report: every finding with the schedules it was made in.
  [[nodiscard]] std::string text() const {
    std::string out =
        (explored ? explored->text() : std::to_string(runs.size()) + " schedules") + ": ";
    if (clean()) return out + "nothing found\n";
    out += "\n";
    for (const Seen& s : findings()) out += text(s);
    return out;
  }
  /// One of them.
  [[nodiscard]] std::string text(const Seen& s) const {
    Report one;
    one.findings = {s.finding};
    return one.text() + "  in " + seen_in(s) + ", first: " + s.schedules.front() + "\n";
  }
  [[nodiscard]] std::string seen_in(const Seen& s) const {
    return std::to_string(s.schedules.size()) + " of " + std::to_string(runs.size()) + " schedules";
  }

 private:
  static bool same(const Site& a, const Site& b) {
    return a.line == b.line && std::strcmp(a.file, b.file) == 0;
  }
  static bool same(const Finding& a, const Finding& b) {
    if (a.check != b.check || !same(a.site, b.site)) return false;
    return std::equal(a.accesses.begin(), a.accesses.end(), b.accesses.begin(), b.accesses.end(),
                      [](const auto& x, const auto& y) { return same(x.site, y.site); });
  }
};

/// Runs of one kernel with several shapes, until every synchronising statement of it has run: what
/// never runs no schedule can find wrong.
class Family {
 public:
  /// `words` are, all of them, in the names and template arguments of the kernel's functions, and
  /// of no others: the name of its class, and where a template has other instances a word of the
  /// one that is meant.
  explicit Family(std::vector<std::string> words) : words_(std::move(words)) {}

  /// The runs of one shape.
  void add(std::string what, Outcome outcome) {
    cases_.push_back({std::move(what), std::move(outcome)});
  }
  /// Statements of this function ("Kernel::drain") no launch can reach; `why` is for the reader.
  void unreachable(std::string function, std::string why) {
    unreachable_.emplace_back(std::move(function), std::move(why));
  }

  /// The kernel's statements that ran in no shape and are not said to be unreachable. Nothing where
  /// the compiler gives no list (lists_sites).
  [[nodiscard]] std::vector<CompiledSite> untried() const {
    std::vector<SyncSite> ran;
    for (const Case& c : cases_) {
      for (const Run& run : c.outcome.runs) {
        ran.insert(ran.end(), run.report.sites.begin(), run.report.sites.end());
      }
    }
    std::vector<CompiledSite> left = not_among(compiled(), ran);
    std::erase_if(left, [this](const CompiledSite& site) {
      return std::any_of(unreachable_.begin(), unreachable_.end(),
                         [&](const auto& u) { return u.first == function_name(site); });
    });
    return left;
  }
  [[nodiscard]] bool clean() const {
    return std::all_of(cases_.begin(), cases_.end(),
                       [](const Case& c) { return !c.outcome.runs.empty() && c.outcome.clean(); });
  }
  /// The shapes that are not clean, with their reports, and the statements that never ran.
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const Case& c : cases_) {
      if (c.outcome.runs.empty()) all += c.what + ": no schedule was run\n";
      if (!c.outcome.clean()) all += c.what + ": " + c.outcome.text();
    }
    for (const CompiledSite& site : untried()) all += "ran in none: " + model::text(site) + "\n";
    return all;
  }
  /// Whether there is such a kernel: without its list the compiler gives no answer, and it is true.
  [[nodiscard]] bool exists() const { return !lists_sites || !compiled().empty(); }

 private:
  [[nodiscard]] std::vector<CompiledSite> compiled() const {
    std::vector<CompiledSite> all;
    if constexpr (lists_sites) all = compiled_sites();  // the library's are always there
    std::erase_if(all, [this](const CompiledSite& site) {
      return !std::all_of(words_.begin(), words_.end(),
                          [&](const std::string& word) { return has_word(site, word); });
    });
    return all;
  }
  struct Case {
    std::string what;
    Outcome outcome;
  };
  std::vector<std::string> words_;
  std::vector<Case> cases_;
  std::vector<std::pair<std::string, std::string>> unreachable_;
};

namespace detail {

inline std::vector<GridLaunch> grids_of(const std::function<void()>& kernel, const Launch& launch,
                                        const std::vector<Allocation>& allocations) {
  GridLaunch grid{.shape = {.ctas = launch.ctas,
                            .cluster_size = launch.cluster_size,
                            .in_clusters = launch.in_clusters,
                            .threads = launch.threads,
                            .shared_bytes = launch.shared_bytes,
                            .registers_per_thread = launch.registers_per_thread},
                  .allocations = allocations,
                  .body = kernel,
                  .dependent = launch.dependent,
                  .ended = {}};
  if (launch.left) {
    grid.ended = [&launch]() -> std::optional<Finding> {
      std::string wrong = launch.left();
      if (wrong.empty()) return std::nullopt;
      return Finding{Check::left_behind, std::move(wrong), {}};
    };
  }
  std::vector<GridLaunch> grids;
  for (int i = 0; i < launch.launches; ++i) {
    for (const FirstGrid& f : launch.first) {
      grids.push_back(
          {.shape = {.ctas = f.ctas, .threads = f.threads, .shared_bytes = f.shared_bytes},
           .allocations = allocations,
           .body = f.body,
           .dependent = launch.dependent,
           .ended = {}});
    }
    grids.push_back(grid);
  }
  return grids;
}

// Runs a kernel again and again, each time from what its buffers held at first.
class Runner {
 public:
  Runner(const std::function<void()>& kernel, const Launch& launch,
         const std::vector<BufferBase*>& buffers)
      : kernel_(kernel), launch_(launch), buffers_(buffers) {
    for (BufferBase* b : buffers) {
      allocations_.push_back(b->allocation());
      before_.push_back(b->contents());
    }
  }

  Report run(Options how) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i]->restore(before_[i]);
    how.sms = launch_.sms;
    how.occupied_sm = launch_.occupied_sm;
    how.machine = launch_.machine;
    how.fence_after_reads = launch_.fence_after_reads;
    how.count_sites = true;
    how.mutation = launch_.mutation;
    if (launch_.recording != nullptr && how.mode == Mode::timed) {
      how.trace = &launch_.recording->trace;
      how.barrier_events = &launch_.recording->barriers;
    }
    Report report = model::run(grids_of(kernel_, launch_, allocations_), how);
    if (report.clean() && launch_.verify) {
      if (std::string wrong = launch_.verify(); !wrong.empty()) {
        report.findings.push_back({Check::wrong_result, std::move(wrong), {}});
      }
    }
    return report;
  }

 private:
  const std::function<void()>& kernel_;
  const Launch& launch_;
  const std::vector<BufferBase*>& buffers_;
  std::vector<Allocation> allocations_;
  std::vector<std::vector<std::byte>> before_;
};

inline Outcome explore(Runner& runner, const ExploreLimits& limits) {
  Explorer explorer(limits);
  Outcome all;
  std::vector<bool> clean;  // by class
  while (auto task = explorer.take()) {
    Options how;
    how.exploration = &task->run;
    Report report = runner.run(how);
    std::vector<std::string> order = task->turned;
    const std::int64_t number = explorer.give(*std::move(task));
    const auto at = static_cast<std::size_t>(number) - 1;
    const bool is_new = at >= clean.size();
    if (is_new) clean.push_back(true);
    // A further run of a class counts only where it is the first that finds something.
    if (!is_new && (report.clean() || !clean[at])) continue;
    clean[at] = report.clean();
    all.runs.push_back({"class " + std::to_string(number), std::move(report), std::move(order)});
  }
  all.explored = explorer.explored();
  return all;
}

inline Outcome run_all(const std::function<void()>& kernel, const Launch& launch,
                       const std::vector<BufferBase*>& buffers) {
  Runner runner(kernel, launch, buffers);
  const Schedules& all = launch.schedules;
  if (all.exhaustive) return explore(runner, *all.exhaustive);
  Outcome outcome;
  const auto once = [&](std::string schedule, Mode mode, std::uint64_t seed) {
    Options how;
    how.mode = mode;
    how.seed = seed;
    outcome.runs.push_back({std::move(schedule), runner.run(how)});
  };
  if (all.eager) once("eager", Mode::eager, 1);
  if (all.latest) once("latest", Mode::latest, 1);
  if (all.timed) once("timed", Mode::timed, 1);
  for (int i = 0; i < all.random; ++i) {
    const std::uint64_t seed = all.first_seed + static_cast<std::uint64_t>(i);
    once("random seed " + std::to_string(seed), Mode::random, seed);
  }
  for (int i = 0; i < all.starve; ++i) {
    const std::uint64_t seed = all.first_seed + static_cast<std::uint64_t>(i);
    once("starve seed " + std::to_string(seed), Mode::starve, seed);
  }
  return outcome;
}

}  // namespace detail

/// Runs `kernel`, the body of one thread, under every schedule of `launch`. The kernel may touch
/// `buffers` and no other global memory; each run starts from what they hold now, and afterwards
/// they hold the results of the last run.
template <class Kernel, class... Buffers>
Outcome run(const Kernel& kernel, const Launch& launch, Buffers&... buffers) {
  return detail::run_all(kernel, launch, {static_cast<BufferBase*>(&buffers)...});
}

}  // namespace warpwright::model::testing
