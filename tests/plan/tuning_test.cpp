#include "warpwright/plan/tuning/tuning.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <thread>

#include "tests/must.h"
#include "tests/own_folder.h"
#include "tests/problem_changes.h"
#include "warpwright/plan/families/hopper.h"
#include "warpwright/plan/tuning/times.h"

namespace warpwright {
namespace {

namespace fs = std::filesystem;

DeviceFacts h200() {
  return *known_facts("h200");
}

TuningKey key(const std::string& problem) {
  return {"NVIDIA H200", "580.159", "0.1.0", problem};
}

TuningEntry entry(double microseconds) {
  return {"hopper_bf16", {2, 1}, 132, microseconds};
}

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class Tuning : public testing::Test {
 protected:
  OwnFolder own_;
  std::string folder_ = own_.path().string();
  std::string path_ = own_.path("deep/down/tuning-v1.tsv");
};

TEST_F(Tuning, KeepsWhatIsStored) {
  TuningCache cache(path_);
  EXPECT_FALSE(cache.warning());  // a file that is not there is no fault
  ASSERT_FALSE(cache.store({{key("one"), entry(1.5)}, {key("two"), entry(2.5)}}));
  EXPECT_DOUBLE_EQ(cache.find(key("one"))->microseconds, 1.5);
  const TuningCache again(path_);
  EXPECT_FALSE(again.warning());
  ASSERT_EQ(again.size(), 2U);
  const auto found = must(again.find(key("two")));
  EXPECT_EQ(found->kernel, "hopper_bf16");
  EXPECT_EQ(found->cluster, (atom::ClusterShape{2, 1}));
  EXPECT_EQ(found->ctas, 132);
  EXPECT_DOUBLE_EQ(found->microseconds, 2.5);
}

TEST_F(Tuning, EveryPartOfTheKeyCounts) {
  TuningCache cache(path_);
  ASSERT_FALSE(cache.store({{key("p"), entry(1)}}));
  EXPECT_TRUE(cache.find(key("p")));
  EXPECT_FALSE(cache.find({"NVIDIA H100", "580.159", "0.1.0", "p"}));
  EXPECT_FALSE(cache.find({"NVIDIA H200", "590.1", "0.1.0", "p"}));
  EXPECT_FALSE(cache.find({"NVIDIA H200", "580.159", "0.2.0", "p"}));
  EXPECT_FALSE(cache.find(key("q")));
}

TEST_F(Tuning, AWriterKeepsWhatOthersWrote) {
  TuningCache early(path_);
  TuningCache late(path_);
  ASSERT_FALSE(early.store({{key("one"), entry(1)}, {key("both"), entry(7)}}));
  ASSERT_FALSE(late.store({{key("two"), entry(2)}, {key("both"), entry(8)}}));
  const TuningCache all(path_);
  EXPECT_EQ(all.size(), 3U);
  EXPECT_DOUBLE_EQ(all.find(key("one"))->microseconds, 1);
  EXPECT_DOUBLE_EQ(all.find(key("both"))->microseconds, 8);  // the last one counts
  EXPECT_EQ(late.size(), 3U);                                // it saw them on the way
}

TEST_F(Tuning, ThreadsAndProcessesLoseNothing) {
  constexpr int processes = 4;
  constexpr int threads = 4;
  constexpr int each = 12;
  const auto write = [this](int process, int thread) {
    for (int i = 0; i < each; ++i) {
      TuningCache cache(path_);
      const std::string name =
          std::to_string(process) + "." + std::to_string(thread) + "." + std::to_string(i);
      if (cache.store({{key(name), entry(i)}})) return false;
    }
    return true;
  };
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool good[threads] = {};
      std::vector<std::thread> pool;
      pool.reserve(threads);
      for (int t = 0; t < threads; ++t) {
        pool.emplace_back([&good, &write, process, t] { good[t] = write(process, t); });
      }
      for (std::thread& thread : pool) thread.join();
      bool all = true;
      for (const bool one : good) all = all && one;
      ::_exit(all ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const TuningCache cache(path_);
  EXPECT_FALSE(cache.warning()) << *cache.warning();
  EXPECT_EQ(cache.size(), static_cast<std::size_t>(processes * threads * each));
  // Nothing is left over but the file and its lock.
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(path_).parent_path()), {}), 2);
}

// A process that is killed while it writes leaves the file as it was or as it was to be, and does
// not keep the others waiting.
TEST_F(Tuning, KilledWritersLoseNothing) {
  ASSERT_FALSE(TuningCache(path_).store({{key("first"), entry(1)}}));
  for (int round = 0; round < 30; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int i = 0;; ++i) {
        if (TuningCache(path_).store({{key("child"), entry(i)}})) ::_exit(1);
      }
    }
    const std::string own = "parent " + std::to_string(round);
    EXPECT_FALSE(TuningCache(path_).store({{key(own), entry(round)}}));
    ::usleep(static_cast<useconds_t>(137 * round));
    EXPECT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    const TuningCache cache(path_);
    EXPECT_FALSE(cache.warning()) << *cache.warning();
    EXPECT_TRUE(cache.find(key(own)));
    EXPECT_TRUE(cache.find(key("first")));
    EXPECT_GE(cache.size(), static_cast<std::size_t>(round) + 2);
  }
}

TEST_F(Tuning, DamagedLinesAreLeftOut) {
  TuningCache cache(path_);
  ASSERT_FALSE(
      cache.store({{key("one"), entry(1)}, {key("three"), entry(3)}, {key("two"), entry(2)}}));
  std::string text = content(path_);
  text.replace(text.find("three"), 5, "thrEE");  // the checksum no longer fits
  std::ofstream(path_, std::ios::binary) << text << "and a line cut off";
  TuningCache damaged(path_);
  ASSERT_TRUE(damaged.warning());
  EXPECT_NE(damaged.warning()->find("2 lines of the tuning cache"), std::string::npos)
      << *damaged.warning();
  EXPECT_EQ(damaged.warning()->find('\n'), std::string::npos);
  EXPECT_EQ(damaged.size(), 2U);
  EXPECT_TRUE(damaged.find(key("one")));
  EXPECT_FALSE(damaged.find(key("thrEE")));
  ASSERT_FALSE(damaged.store({{key("four"), entry(4)}}));
  const TuningCache mended(path_);
  EXPECT_FALSE(mended.warning());
  EXPECT_EQ(mended.size(), 3U);
}

TEST_F(Tuning, AnyBytesAreSurvived) {
  fs::create_directories(fs::path(path_).parent_path());
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 131 % 251);
  std::ofstream(path_, std::ios::binary) << bytes;
  TuningCache cache(path_);
  EXPECT_TRUE(cache.warning());
  EXPECT_EQ(cache.size(), 0U);
  EXPECT_FALSE(cache.store({{key("one"), entry(1)}}));
  EXPECT_EQ(TuningCache(path_).size(), 1U);
}

TEST_F(Tuning, EveryCutOfAFileIsSurvived) {
  TuningCache cache(path_);
  ASSERT_FALSE(cache.store({{key("one"), entry(1)}, {key("two"), entry(2)}}));
  const std::string whole = content(path_);
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
    std::ofstream(path_, std::ios::binary) << whole.substr(0, length);
    EXPECT_LT(TuningCache(path_).size(), 2U) << length;
  }
}

TEST_F(Tuning, AFolderInItsPlaceIsIgnoredAndRefused) {
  fs::create_directories(path_);
  TuningCache cache(path_);
  ASSERT_TRUE(cache.warning());
  EXPECT_NE(cache.warning()->find("no regular file"), std::string::npos) << *cache.warning();
  const auto refusal = must(cache.store({{key("one"), entry(1)}}));
  expect_contains(refusal->reason, path_);
}

TEST_F(Tuning, AnUnwritablePlaceIsASentence) {
  std::ofstream(folder_ + "/file") << "x";
  TuningCache below_a_file(folder_ + "/file/tuning-v1.tsv");
  const auto refusal = must(below_a_file.store({{key("one"), entry(1)}}));
  expect_contains(refusal->reason, "cannot be written");
  EXPECT_FALSE(below_a_file.find(key("one")));
  const auto nowhere = must(TuningCache("").store({{key("one"), entry(1)}}));
  expect_contains(nowhere->reason, "XDG_CACHE_HOME");
  if (::geteuid() == 0) return;  // root writes everywhere
  fs::create_directories(folder_ + "/closed");
  ::chmod((folder_ + "/closed").c_str(), 0555);
  EXPECT_TRUE(TuningCache(folder_ + "/closed/tuning-v1.tsv").store({{key("one"), entry(1)}}));
}

// Known before anything is measured, and the same when it is stored.
TEST_F(Tuning, SaysBeforehandWhatCannotBeWritten) {
  EXPECT_FALSE(TuningCache(path_).unwritable());
  EXPECT_TRUE(TuningCache("").unwritable());
  TuningCache cache(path_);
  ASSERT_FALSE(cache.store({{key("one"), entry(1)}}));
  ASSERT_EQ(::chmod(path_.c_str(), 0444), 0);  // a wish that counts for root too
  for (const auto& refusal : {cache.unwritable(), cache.store({{key("two"), entry(2)}})}) {
    ASSERT_TRUE(refusal);
    expect_contains(refusal->reason, "read-only");
    EXPECT_EQ(refusal->reason.back(), '.');
  }
  EXPECT_FALSE(TuningCache(path_).find(key("two")));
}

// For a run that a signal ended.
TEST_F(Tuning, WritesOverTheDraftOfAnEndedRun) {
  TuningCache cache(path_);
  ASSERT_FALSE(cache.store({{key("one"), entry(1)}}));
  std::ofstream(path_ + ".tmp") << std::string(100000, 'x');
  ASSERT_FALSE(cache.store({{key("two"), entry(2)}}));
  EXPECT_FALSE(fs::exists(path_ + ".tmp"));
  EXPECT_EQ(TuningCache(path_).size(), 2U);
  EXPECT_FALSE(TuningCache(path_).warning());
}

TEST_F(Tuning, LivesWhereXdgSays) {
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string old = before != nullptr ? before : "";
  ::setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(TuningCache::default_path(), "/somewhere/warpwright/tuning-v1.tsv");
  ::setenv("XDG_CACHE_HOME", "not/absolute", 1);
  EXPECT_TRUE(TuningCache::default_path().empty() ||
              TuningCache::default_path().ends_with("/.cache/warpwright/tuning-v1.tsv"));
  if (before != nullptr) {
    ::setenv("XDG_CACHE_HOME", old.c_str(), 1);
  } else {
    ::unsetenv("XDG_CACHE_HOME");
  }
}

// Every field of a problem that a plan depends on shows in its text.
TEST(ProblemText, DiffersWithEveryField) {
  const GemmProblem base = packed_problem(64, 128, 256, DType::bf16, DType::bf16);
  std::vector<GemmProblem> all = {base};
  const auto change = [&](auto&& how) {
    GemmProblem p = base;
    how(p);
    all.push_back(p);
  };
  change([](GemmProblem& p) { set_m(p, 65); });
  change([](GemmProblem& p) { set_n(p, 129); });
  change([](GemmProblem& p) { set_k(p, 257); });
  change([](GemmProblem& p) { set_batch(p, 2); });
  change([](GemmProblem& p) { p.a.dtype = DType::e4m3; });
  change([](GemmProblem& p) { p.b.dtype = DType::e5m2; });
  change([](GemmProblem& p) { p.d.dtype = DType::f32; });
  change([](GemmProblem& p) { read_c(p); });
  change([](GemmProblem& p) { p.alpha = 0; });
  change([](GemmProblem& p) { p.scaling = Scaling::blockwise; });
  change([](GemmProblem& p) { p.accumulation = Accumulation::promoted; });
  change([](GemmProblem& p) { p.epilogue.activation = Activation::silu; });
  change([](GemmProblem& p) { gate(p); });
  change([](GemmProblem& p) {
    gate(p);
    p.epilogue.interleaved = true;
  });
  change([](GemmProblem& p) { p.epilogue.bias = Bias::rows; });
  change([](GemmProblem& p) { scale_d(p); });
  change([](GemmProblem& p) { p.a.row_stride = 264; });
  change([](GemmProblem& p) { p.b.column_stride = 2; });
  change([](GemmProblem& p) {
    set_batch(p, 2);
    p.d.batch_stride = 64 * 128;
  });
  change([](GemmProblem& p) { p.a.alignment = 8; });
  change([](GemmProblem& p) { p.b.alignment = 4; });
  change([](GemmProblem& p) {
    p.epilogue.bias = Bias::rows;
    p.bias.dtype = DType::f32;
  });
  for (const ZeroPoints zeros : {ZeroPoints::none, ZeroPoints::groups}) {
    change([&](GemmProblem& p) {
      p.packed.emplace();
      p.packed->format.zero_points = zeros;
    });
  }
  change([](GemmProblem& p) { p.d.alignment = 2; });
  change([](GemmProblem& p) { set_groups(p, 4); });
  change([](GemmProblem& p) {
    set_groups(p, 4);
    p.groups->type = OffsetType::int64;
  });
  change([](GemmProblem& p) {
    set_groups(p, 4);
    p.groups->expected_tokens = 16;
  });
  change([](GemmProblem& p) {
    set_groups(p, 4);
    p.groups->expected_lengths = LengthSpread::equal;
  });
  change([](GemmProblem& p) {
    set_groups(p, 4);
    p.groups->expected_zipf = 0.5F;
  });
  std::set<std::string> texts;
  for (const GemmProblem& p : all) {
    const std::string text = problem_text(p);
    texts.insert(text);
    const auto read = must(parse_problem(text));
    EXPECT_EQ(problem_text(*read), text);
  }
  EXPECT_EQ(texts.size(), all.size());
  // Strides of a C that is not read mean nothing.
  GemmProblem other = base;
  other.c.row_stride = 999;
  EXPECT_EQ(problem_text(other), problem_text(base));
}

TEST_F(Tuning, APlanFollowsItsEntry) {
  const GemmProblem problem = packed_problem(4096, 4096, 4096, DType::bf16, DType::bf16);
  const Result<Plan> usual = must(plan(problem, h200()));
  TuningCache cache(path_);
  EXPECT_FALSE(tuned_plan(problem, h200(), cache)->entry);
  // Another candidate than the usual one.
  const auto all = must(candidates(problem, h200()));
  const Plan* other = nullptr;
  for (const Plan& p : *all) {
    if (p.kernel == usual->kernel && !(p.cluster == usual->cluster)) other = &p;
  }
  ASSERT_NE(other, nullptr);
  ASSERT_FALSE(cache.store({{tuning_key(problem, h200()), tuning_entry(*other, 170.5)}}));
  const auto tuned = must(tuned_plan(problem, h200(), TuningCache(path_)));
  ASSERT_TRUE(tuned->entry);
  EXPECT_EQ(tuned->plan.cluster, other->cluster);
  EXPECT_EQ(tuned->plan.kernel, other->kernel);
  EXPECT_EQ(tuned->plan.ctas, other->ctas);
  EXPECT_DOUBLE_EQ(tuned->entry->microseconds, 170.5);
  // The caller's own choice comes first, and so does a device of another name.
  EXPECT_FALSE(tuned_plan(problem, h200(), cache, {.cluster = usual->cluster})->entry);
  // For whatever is chosen. What is only of Blackwell is refused here, entry or not.
  for (const auto& choose : std::vector<std::function<void(PlanChoices&)>>{
           [&](PlanChoices& c) { c.tile_m = usual->tile().m; },
           [&](PlanChoices& c) { c.tile_n = usual->tile().n; },
           [](PlanChoices& c) { c.schedule = kernel::Schedule::pingpong; },
           [&](PlanChoices& c) { c.swap_ab = usual->facts().swap_ab; },
           [&](PlanChoices& c) { c.kernel = usual->kernel; },
           [&](PlanChoices& c) { c.ctas = usual->ctas; }, [&](PlanChoices& c) { c.cluster_k = 1; },
           [](PlanChoices& c) { c.pair = false; }, [](PlanChoices& c) { c.pair = true; },
           [](PlanChoices& c) { c.tiles = kernel::TileSource::one_tile; },
           [](PlanChoices& c) { c.accumulators = 2; }, [](PlanChoices& c) { c.tile_tokens = 64; },
           [](PlanChoices& c) { c.search = kernel::Grouping::warp_scan; }}) {
    PlanChoices one;
    choose(one);
    const auto found = tuned_plan(problem, h200(), cache, one);
    EXPECT_TRUE(!found || !found->entry);
  }
  // Plans that keep a row's bits in any batch have entries of their own.
  PlanChoices invariant;
  invariant.batch_invariant = true;
  EXPECT_TRUE(is_kept(invariant));
  EXPECT_FALSE(tuned_plan(problem, h200(), cache, invariant)->entry);
  const auto kept = must(plan(problem, h200(), invariant));
  ASSERT_FALSE(cache.store({{tuning_key(problem, h200(), true), tuning_entry(*kept, 200)}}));
  EXPECT_TRUE(tuned_plan(problem, h200(), cache, invariant)->entry);
  EXPECT_DOUBLE_EQ(tuned_plan(problem, h200(), cache)->entry->microseconds, 170.5);
  DeviceFacts h100 = h200();
  h100.name = "h100";
  EXPECT_FALSE(tuned_plan(problem, h100, cache)->entry);
  // The same GPU under another number is the same GPU.
  DeviceFacts first = h200();
  DeviceFacts second = h200();
  first.name = "cuda:0 NVIDIA H200";
  second.name = "cuda:5 NVIDIA H200";
  EXPECT_EQ(tuning_key(problem, first), tuning_key(problem, second));
}

TEST_F(Tuning, AnEntryDoesNotOverrideAChoiceOfGroups) {
  const GemmProblem problem = packed_grouped_problem(512, 4096, 4096, 8, DType::e4m3, DType::bf16);
  const auto measured = must(plan(problem, h200()));
  TuningCache cache(path_);
  ASSERT_FALSE(cache.store({{tuning_key(problem, h200()), tuning_entry(*measured, 36)}}));
  EXPECT_TRUE(tuned_plan(problem, h200(), cache)->entry);
  EXPECT_FALSE(tuned_plan(problem, h200(), cache, {.tile_tokens = 128})->entry);
  EXPECT_FALSE(tuned_plan(problem, h200(), cache, {.search = kernel::Grouping::warp_scan})->entry);
}

TEST_F(Tuning, AnEntryDoesNotOverrideAChoiceOfBlackwell) {
  const GemmProblem problem = packed_problem(4096, 4096, 4096, DType::bf16, DType::bf16);
  const DeviceFacts b200 = *known_facts("b200");
  const auto measured = must(plan(problem, b200, {.pair = true}));
  TuningCache cache(path_);
  ASSERT_FALSE(cache.store({{tuning_key(problem, b200), tuning_entry(*measured, 80)}}));
  EXPECT_TRUE(tuned_plan(problem, b200, cache)->entry);
  PlanChoices one_sm;
  one_sm.pair = false;
  const auto found = must(tuned_plan(problem, b200, cache, one_sm));
  EXPECT_FALSE(found->entry);
  EXPECT_EQ(found->plan.name(), plan(problem, b200, one_sm)->name());
}

TEST_F(Tuning, AnEntryThatIsNoLongerLegalIsLeftAside) {
  const GemmProblem problem = packed_problem(512, 512, 512, DType::bf16, DType::bf16);
  for (const TuningEntry& stale :
       {TuningEntry{"hopper_that_was_removed", {1, 1}, 132, 1}, TuningEntry{"", {3, 5}, 132, 1}}) {
    TuningCache cache(path_);
    ASSERT_FALSE(cache.store({{tuning_key(problem, h200()), stale}}));
    const auto found = must(tuned_plan(problem, h200(), cache));
    EXPECT_FALSE(found->entry);
    EXPECT_EQ(found->plan.cluster, plan(problem, h200())->cluster);
  }
}

TEST_F(Tuning, RefusesAsPlanDoes) {
  GemmProblem p = packed_problem(64, 64, 64, DType::e4m3, DType::bf16);
  p.a.row_stride = 63;
  expect_contains(why_not(tuned_plan(p, h200(), TuningCache(path_))), "nearest legal is 64");
}

}  // namespace
}  // namespace warpwright
