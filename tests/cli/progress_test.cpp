// How long work takes, and the line that tells how much of it is done.
#include "cli/reports/progress.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "cli/commands/gemm/model_time.h"
#include "tests/must.h"

namespace warpwright::cli {
namespace {

TEST(ModelTime, GrowsWithTheWork) {
  EXPECT_LT(model_seconds(1, 128, 16, 64), 1);
  EXPECT_GT(model_seconds(1, 128, 16, 1'000'000'000), 3600);
  EXPECT_GT(model_seconds(64, 128, 256, 4096), 8 * model_seconds(8, 128, 256, 2048));
  std::ostringstream said;
  note_duration(said, "gemm", 59, "smaller is faster");
  EXPECT_EQ(said.str(), "");
  note_duration(said, "gemm", 7200, "smaller is faster");
  EXPECT_EQ(said.str(),
            "gemm: this will take roughly 2.0 hours of a machine that has nothing else to do; "
            "smaller is faster.\n");
}

TEST(Progress, TellsTimeShortly) {
  for (const auto& [seconds, text] : {std::pair{0.2, "1 s"},
                                      {42.4, "42 s"},
                                      {200.0, "3 min"},
                                      {3.0 * 3600, "3.0 hours"},
                                      {30.0 * 3600, "30 hours"},
                                      {100.0 * 3600, "4.2 days"},
                                      {1e9, "32 years"}}) {
    EXPECT_EQ(duration_text(seconds), text);
  }
}

// A terminal with a clock of its own.
class ProgressLine : public testing::Test {
 protected:
  Watch watch(bool shown = true) {
    return {.shown = shown, .ticking = false, .now = [this] { return now_; }};
  }
  void wait(double seconds) {
    now_ += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(seconds));
  }
  // What is on the screen's line after all that was printed.
  [[nodiscard]] std::string line() const {
    const std::string all = err_.str();
    const std::size_t start = all.rfind('\r');
    std::string text = start == std::string::npos ? all : all.substr(start + 1);
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
  }

  Watch::Time now_;
  std::ostringstream err_;
};

TEST_F(ProgressLine, SaysHowMuchIsDoneAndHowLongTheRestTakes) {
  {
    Progress progress(err_, "gemm", "tiles", 64, watch());
    wait(1.9);
    progress.update(8);
    EXPECT_EQ(err_.str(), "");  // short work shows nothing
    wait(8.1);
    progress.update(16);
    EXPECT_EQ(line(), "gemm: 16 of 64 tiles (25%), about 30 s left");
    progress.update(17);
    EXPECT_EQ(line(), "gemm: 16 of 64 tiles (25%), about 30 s left");  // not that often
    wait(10);
    progress.update(32);
    EXPECT_EQ(line(), "gemm: 32 of 64 tiles (50%), about 20 s left");
    wait(5);
    progress.update(32);  // none has ended, but time went by
    EXPECT_EQ(line(), "gemm: 32 of 64 tiles (50%), about 15 s left");
    wait(5);
    progress.update(70);  // tiles that only fill up a cluster count too
    EXPECT_EQ(line(), "gemm: 64 of 64 tiles (100%)");
  }
  EXPECT_EQ(line(), "");
  const std::string all = err_.str();
  EXPECT_EQ(all.find('\n'), std::string::npos);
  EXPECT_EQ(all.back(), '\r');  // the line was wiped
}

TEST_F(ProgressLine, Shares) {
  Progress progress(err_, "check", "", 1000, watch());
  wait(6);
  progress.share(0);
  EXPECT_EQ(line(), "check: 0%, 6 s so far");
  wait(54);
  progress.share(0.1);
  EXPECT_EQ(line(), "check: 10%, about 9 min left");
  std::ostringstream out;
  progress.print(out, "a row\n");
  EXPECT_EQ(line(), "");  // for the row may be on the same terminal
  EXPECT_EQ(out.str(), "a row\n");
  wait(1);
  progress.share(0.5);
  EXPECT_EQ(line(), "check: 50%, about 61 s left");
}

TEST_F(ProgressLine, NeverOffATerminal) {
  {
    Progress hidden(err_, "gemm", "tiles", 10, watch(false));
    wait(100);
    for (int i = 0; i <= 10; ++i) hidden.update(i);
    Progress stream(err_, "gemm", "tiles", 10);  // a stream that is not std::cerr is none
    stream.update(10);
    hidden.share(0.5);
  }
  EXPECT_EQ(err_.str(), "");
  EXPECT_FALSE(watch_of(err_).shown);
}

TEST_F(ProgressLine, TicksWhileNothingEnds) {
  std::atomic<int> looks = 0;
  {
    Watch ticking = watch();
    ticking.ticking = true;
    ticking.now = [&looks] {  // the first look is the start, all others are 5 seconds later
      return Watch::Time(std::chrono::seconds(looks++ == 0 ? 0 : 5));
    };
    Progress progress(err_, "gemm", "tiles", 1, ticking);
    while (looks < 2) std::this_thread::yield();
  }
  expect_contains(err_.str(), "gemm: 0 of 1 tiles (0%), 5 s so far");
  EXPECT_EQ(line(), "");
}

}  // namespace
}  // namespace warpwright::cli
