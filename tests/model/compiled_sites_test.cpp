// The list of synchronising statements that the compiler keeps: executed or not, of each instance
// of a kernel by itself.
#include "warpwright/model/report/compiled_sites.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/must.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/warp.h"
#include "warpwright/model/testing.h"

namespace warpwright::model {
namespace {

namespace testing = model::testing;

struct listed_with_a_branch {
  static constexpr bool branch = true;
};
struct listed_without_it {
  static constexpr bool branch = false;
};

// Three statements, or two: the first in every launch, the others in some.
template <class Tag>
struct ListedKernel {
  static constexpr int first_line = __LINE__ + 3;
  // What `threads` is no compiler knows.
  static void run(int threads) {
    isa::sync_threads(threads);
    if (threads > 64) isa::sync_warp();
    if constexpr (Tag::branch) {
      if (threads > 1000) isa::named_barrier_sync(3, threads);
    }
  }
};

std::vector<int> lines_of(const std::vector<CompiledSite>& sites) {
  std::vector<int> lines;
  for (const CompiledSite& site : sites) lines.push_back(site.line - ListedKernel<int>::first_line);
  return lines;
}

template <class Tag>
testing::Outcome run_listed(int threads) {
  testing::Launch launch{.threads = threads, .shared_bytes = 16};
  launch.schedules = {.latest = false, .timed = false, .random = 1, .starve = 0};
  return testing::run([=] { ListedKernel<Tag>::run(threads); }, launch);
}

class CompiledSites : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!lists_sites) GTEST_SKIP() << "this compiler gives no list";
  }
};

TEST_F(CompiledSites, HasWhatAnInstanceKeeps) {
  EXPECT_CLEAN(run_listed<listed_with_a_branch>(32));
  EXPECT_CLEAN(run_listed<listed_without_it>(32));
  EXPECT_EQ(lines_of(compiled_sites("listed_with_a_branch")), (std::vector{0, 1, 3}));
  EXPECT_EQ(lines_of(compiled_sites("listed_without_it")), (std::vector{0, 1}));
  EXPECT_TRUE(compiled_sites("listed_without").empty()) << "a part of a word";
  const std::vector<CompiledSite> all = compiled_sites("listed_with_a_branch");
  EXPECT_EQ(all.front().file, "tests/model/compiled_sites_test.cpp");
  EXPECT_EQ(function_name(all.front()), "ListedKernel::run");
  EXPECT_EQ(text(all.front()),
            "compiled_sites_test.cpp:" + std::to_string(all.front().line) + " (ListedKernel::run)");
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                             [](const auto& a, const auto& b) { return a.line < b.line; }));
}

TEST_F(CompiledSites, AFamilyWantsEachToRun) {
  testing::Family family({"ListedKernel", "listed_with_a_branch"});
  EXPECT_TRUE(family.exists());
  EXPECT_FALSE(testing::Family({"listed_nowhere"}).exists());
  family.add("a warp", run_listed<listed_with_a_branch>(32));
  EXPECT_TRUE(family.clean());
  EXPECT_EQ(lines_of(family.untried()), (std::vector{1, 3}));
  expect_contains(family.text(), "ran in none: compiled_sites_test.cpp");
  family.add("three warps", run_listed<listed_with_a_branch>(96));
  EXPECT_EQ(lines_of(family.untried()), (std::vector{3}));
  testing::Family told = family;
  told.unreachable("ListedKernel::run", "a launch has at most 1,024 threads");
  EXPECT_TRUE(told.untried().empty());
  EXPECT_CLEAN_FAMILY(told);
  family.add("all warps", run_listed<listed_with_a_branch>(1024));
  EXPECT_TRUE(family.untried().empty());
  EXPECT_CLEAN_FAMILY(family);
}

// Runs of another instance say nothing of this one but where they stand on the same lines.
TEST_F(CompiledSites, NamesOfFunctions) {
  const auto name = [](const char* function) {
    return function_name({.file = "a/b.h", .line = 7, .function = function});
  };
  EXPECT_EQ(name("void a::b::C<Tag>::d(int) const [with Tag = e::f]"), "C::d");
  EXPECT_EQ(name("static a::R<int, (b::E)1> a::C<x, y<z> >::f(const P&)"), "C::f");
  EXPECT_EQ(name("void f()"), "f");
  EXPECT_EQ(name("a::C<T>::C(int, const char*)"), "C::C");
}

}  // namespace
}  // namespace warpwright::model
