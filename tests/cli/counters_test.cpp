// What `bench --counters` does without a GPU: ncu's log, how ncu is found and called. The columns
// are in transcripts/reports.txt.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/commands/measure/counters.h"
#include "tests/cli/tensor_folder.h"
#include "tests/must.h"

namespace warpwright::cli {
namespace {

constexpr const char* kLogHead =
    R"("ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",)"
    R"("Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value")"
    "\n";

// A kernel's lines as ncu writes them.
std::string kernel_lines(int id, const std::string& kernel, const std::string& grid,
                         const std::vector<std::string>& values) {
  static constexpr const char* metrics[] = {
      R"("dram__bytes_read.sum","byte")", R"("dram__bytes_write.sum","byte")",
      R"("lts__t_sectors_op_read.sum","sector")", R"("smsp__inst_executed.sum","inst")"};
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += "\"" + std::to_string(id) + R"~(","4711","warpwright","127.0.0.1",")~" + kernel +
            R"~(","1","13","(384, 1, 1)",")~" + grid +
            R"~(","0","9.0","Command line profiler metrics",)~" + metrics[i] + ",\"" + values[i] +
            "\"\n";
  }
  return text;
}

std::string mark_lines(int id, int number) {
  return kernel_lines(id, "warpwright::bench::<unnamed>::mark_kernel()",
                      "(" + std::to_string(number) + ", 1, 1)", {"128", "0", "5", "4"});
}

// Two products. The first is one kernel of ours and two of cuBLASLt; the second has no baseline.
std::string example_log() {
  return "==PROF== Connected to process 4711 (/bin/warpwright)\n"
         "==PROF== Profiling \"mark_kernel\" - 0: 0%....50%....100% - 1 pass\n"
         "==PROF== Disconnected from process 4711\n" +
         std::string(kLogHead) + mark_lines(0, 1) +
         kernel_lines(1, "void gemm<\"\"a\"\", 3>(Params)", "(132, 1, 1)",
                      {"240,000,000", "1,000,000", "91,800,000", "74,800,000"}) +
         mark_lines(2, 2) +
         kernel_lines(3, "nvjet_hsh", "(66, 2, 1)",
                      {"165000000", "2000000", "68000000", "33900000"}) +
         kernel_lines(4, "splitKreduce_kernel<32, 16>", "(16, 1, 1)", {"64", "32", "10", "100"}) +
         mark_lines(5, 3) + kernel_lines(6, "void gemm", "(8, 1, 1)", {"1.5", "2.5", "7", "9"});
}

TEST(NcuLog, KernelsBehindAMarkAreSummed) {
  const NcuLog log = read_ncu_log(example_log());
  EXPECT_EQ(log.error, "");
  ASSERT_EQ(log.counts.size(), 3U);
  EXPECT_EQ(log.counts.at(1).instructions, 74.8e6);
  EXPECT_EQ(log.counts.at(1).sectors, 91.8e6);
  EXPECT_EQ(log.counts.at(1).dram_bytes, 241e6);
  EXPECT_EQ(log.counts.at(2).instructions, 33900100);
  EXPECT_EQ(log.counts.at(2).sectors, 68000010);
  EXPECT_EQ(log.counts.at(2).dram_bytes, 167000096);
  EXPECT_EQ(log.counts.at(3).dram_bytes, 4);
}

TEST(NcuLog, WhatComesBeforeTheFirstMarkIsNotCounted) {
  EXPECT_TRUE(read_ncu_log(kLogHead + kernel_lines(0, "k", "(1, 1, 1)", {"1", "2", "3", "4"}))
                  .counts.empty());
}

TEST(NcuLog, WhatIsInTheWayIsSaid) {
  EXPECT_EQ(read_ncu_log("").error, "");
  EXPECT_EQ(read_ncu_log("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - The user does not have "
                         "permission\n==ERROR== another\n")
                .error,
            "ERR_NVGPUCTRPERM - The user does not have permission");
  // A metric that this GPU has not, and one in another unit.
  for (const auto& [from, to] :
       {std::pair{"\"91,800,000\"", "\"n/a\""},
        std::pair{"\"sector\",\"91,800,000\"", "\"Ksector\",\"91,800\""}}) {
    std::string text = example_log();
    text.replace(text.find(from), std::string(from).size(), to);
    expect_contains(read_ncu_log(text).error, "lts__t_sectors_op_read.sum");
  }
  std::string text = example_log();
  text.replace(text.find("Grid Size"), 9, "Grid");
  EXPECT_EQ(read_ncu_log(text).error, "its table has no column Grid Size");
  EXPECT_TRUE(read_ncu_log(text).counts.empty());
}

// An ncu of the test's own, in front of whatever is on PATH.
class Ncu : public TensorFolder {
 protected:
  Ncu() : path_before_(std::getenv("PATH")) {
    ::setenv("PATH", (path("") + ":" + path_before_).c_str(), 1);
  }
  ~Ncu() override { ::setenv("PATH", path_before_.c_str(), 1); }

  // It keeps its arguments, prints `log` and leaves with `status`.
  void install(const std::string& log, int status) const {
    put("log", log);
    fs::permissions(put("ncu", "#!/bin/sh\nprintf '%s\\n' \"$@\" >'" + path("words") + "'\ncat '" +
                                   path("log") + "'\nexit " + std::to_string(status) + "\n"),
                    fs::perms::owner_all);
  }

 private:
  std::string path_before_;
};

TEST_F(Ncu, IsGivenTheProgramAndItsArguments) {
  install(example_log(), 1);  // a row of its own failed in there
  const NcuLog log = run_under_ncu("/bin/it", {"bench", "a b", "--under-ncu"});
  EXPECT_EQ(log.error, "");
  EXPECT_EQ(log.counts.size(), 3U);
  const std::string words = get("words");
  expect_contains(words, "--profile-from-start\noff\n");
  expect_contains(words, "--clock-control\nnone\n");
  expect_contains(words, std::string(kNcuMetrics) + "\n/bin/it\nbench\na b\n--under-ncu\n");
}

TEST_F(Ncu, ThatRefusesIsQuoted) {
  install("==ERROR== Failed to initialize the profiler: LibraryNotLoaded\n", 255);
  EXPECT_EQ(run_under_ncu("/bin/it", {}).error,
            "ncu says: Failed to initialize the profiler: LibraryNotLoaded");
  install("==WARNING== No kernels were profiled.\n", 3);
  EXPECT_EQ(run_under_ncu("/bin/it", {}).error,
            path("ncu") + " counted nothing and left with status 3");
}

TEST_F(Ncu, ThatIsNotThereIsSaid) {
  ::setenv("PATH", path("").c_str(), 1);
  if (fs::exists("/usr/local/cuda/bin/ncu")) GTEST_SKIP() << "there is an ncu here";
  EXPECT_EQ(run_under_ncu("/bin/it", {}).error,
            "Nsight Compute's ncu is neither on PATH nor in /usr/local/cuda/bin");
}

}  // namespace
}  // namespace warpwright::cli
