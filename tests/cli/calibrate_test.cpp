#include "cli/commands/measure/calibrate_command.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/must.h"
#include "warpwright/facts/machines.h"

namespace warpwright::cli {
namespace {

using device::MeasuredNumber;

class Calibrate : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    std::ofstream(file_) << machine_text(*known_machine("h200"));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string content() const {
    std::ifstream file(file_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  int run(const std::vector<MeasuredNumber>& measured) {
    out_.str("");
    err_.str("");
    CalibrateOptions o;
    o.out = file_;
    return calibrate_command(
        o, out_, err_, [&](int, int) { return Result<std::vector<MeasuredNumber>>(measured); });
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("calibrate_test_" + std::to_string(getpid()));
  std::string file_ = (folder_ / "h200.json").string();
  std::ostringstream out_, err_;
};

TEST_F(Calibrate, WritesWhatWasMeasuredAndKeepsTheRest) {
  ASSERT_EQ(run({{"wake_clocks", 0, "two warps", {31, 30, 30}},
                 {"wgmma_shared_one", 64, "groups of 8", {40, 40, 40}}}),
            0)
      << err_.str();
  const MachineNumbers now = parse_machine(content());
  EXPECT_EQ(now.wake_clocks, 30);
  EXPECT_EQ(now.wgmma_shared_one.at(64), 40);
  EXPECT_EQ(now.wgmma_shared_one.points.size(),
            known_machine("h200")->wgmma_shared_one.points.size());
  EXPECT_EQ(now.launch_seconds, known_machine("h200")->launch_seconds);
  expect_contains(now.sources.at("wake_clocks"), "measured: calibrate, two warps");
}

TEST_F(Calibrate, ABusyCardKeepsTheOldFile) {
  const std::string before = content();
  EXPECT_EQ(run({{"launch_seconds", 0, "", {1e-6, 1e-6, 1e-6}},
                 {"wake_clocks", 0, "two warps", {20, 30, 40}}}),
            1);
  EXPECT_EQ(content(), before);
  expect_contains(err_.str(), "wake_clocks differ");
  expect_contains(err_.str(), "stays as it was");
}

TEST_F(Calibrate, AnAbsurdNumberKeepsTheOldFile) {
  const std::string before = content();
  EXPECT_EQ(run({{"hbm_bytes_per_second", 0, "", {1, 1, 1}}}), 1);
  EXPECT_EQ(content(), before);
}

TEST_F(Calibrate, RefusesAFileThatIsNoMachine) {
  std::ofstream(file_) << "{}";
  EXPECT_EQ(run({}), 2);
  EXPECT_EQ(content(), "{}");
}

}  // namespace
}  // namespace warpwright::cli
