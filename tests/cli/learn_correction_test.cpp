// calibrate --learn: what it calls, and what it says where something is missing.
#include "cli/commands/measure/learn_correction.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "cli/commands/measure/calibrate_command.h"
#include "tests/cli/run_cli.h"
#include "tests/cli/tensor_folder.h"
#include "tests/must.h"

namespace warpwright::cli {
namespace {

// What learns, in a folder of the test's own: a python3 that keeps its words, and stands for the
// scripts; a card that nobody has.
class Learn : public TensorFolder {
 protected:
  Learn() : path_before_(std::getenv("PATH")) {
    fs::create_directories(path("bin"));
    fs::create_directories(path("share/warpwright"));
    tools_.program = path("bin/warpwright");
    tools_.card = [](int) {
      DeviceFacts facts = *known_facts("h100");
      facts.name = "NVIDIA H100 80GB HBM3";
      return Result<DeviceFacts>(facts);
    };
    options_.learn = path("mine.txt");
  }
  ~Learn() override { ::setenv("PATH", path_before_.c_str(), 1); }

  void install_scripts() const {
    for (const char* name : {"record", "learn.py"})
      put(std::string("share/warpwright/") + name, "");
  }
  // `-c` ends with `libraries`, record with `recorded`, and learn.py leaves `made`.
  void install_python(int libraries, int recorded, const std::string& made) const {
    put("made", made);
    const std::string script = "#!/bin/sh\necho \"$@\" >>'" + path("words") +
                               "'\ncase \"$1\" in\n" + "-c) exit " + std::to_string(libraries) +
                               ";;\n*/record) echo 7 times; exit " + std::to_string(recorded) +
                               ";;\nesac\n/bin/cp '" + path("made") + "' \"$6\"\n";
    fs::permissions(put("python3", script), fs::perms::owner_all);
    ::setenv("PATH", path("").c_str(), 1);
  }
  int run() {
    out_.str("");
    err_.str("");
    return calibrate_command(options_, out_, err_, device::measure_machine, tools_);
  }

  std::string path_before_;
  LearnTools tools_;
  CalibrateOptions options_;
  std::ostringstream out_, err_;
};

TEST_F(Learn, RunsBothScriptsAndLooksAtWhatTheyMake) {
  install_scripts();
  install_python(0, 0, correction_text("0.5"));
  options_.seconds = 60;
  ASSERT_EQ(run(), 0) << err_.str();
  const std::string words = get("words");
  const std::string scripts = path("share/warpwright");
  expect_contains(words, scripts + "/record " + path("mine.times.tsv.gz") + " --program " +
                             tools_.program + " --seconds 60 --device cuda:0\n");
  expect_contains(words, scripts + "/learn.py " + tools_.program + " --times " +
                             path("mine.times.tsv.gz") + " --out " + path("mine.txt") + "\n");
  EXPECT_EQ(get("mine.txt"), correction_text("0.5"));
  expect_contains(out_.str(), "7 times\n");
  expect_contains(out_.str(), path("mine.txt") + ": a correction of NVIDIA H100 80GB HBM3.");
  options_.json = true;
  ASSERT_EQ(run(), 0) << err_.str();
  EXPECT_EQ(nlohmann::json::parse(out_.str())["correction"], path("mine.txt"));
}

TEST_F(Learn, SaysWhatIsMissing) {
  EXPECT_EQ(run(), 2);
  expect_contains(err_.str(), "--learn needs the script record, and neither " +
                                  path("share/warpwright") + " nor a source tree");
  install_scripts();
  ::setenv("PATH", path("").c_str(), 1);
  EXPECT_EQ(run(), 2);
  expect_contains(err_.str(), "python3, which is not on PATH");
  install_python(1, 0, "");
  EXPECT_EQ(run(), 2);
  expect_contains(err_.str(), "`pip install lightgbm`");
  EXPECT_FALSE(fs::exists(path("mine.txt")));
}

TEST_F(Learn, ScriptsOfTheSourceTreeServeToo) {
  fs::create_directories(path("script"));
  fs::create_directories(path("build/bin"));
  tools_.program = path("build/bin/warpwright");
  for (const char* name : {"record", "learn.py"}) put(std::string("script/") + name, "");
  install_python(0, 0, correction_text("0"));
  EXPECT_EQ(run(), 0) << err_.str();
  expect_contains(get("words"), path("script/learn.py"));
}

TEST_F(Learn, AScriptThatFailsKeepsTheOldFile) {
  install_scripts();
  put("mine.txt", "old");
  install_python(0, 3, "");
  EXPECT_EQ(run(), 1);
  expect_contains(err_.str(), "record did not do its work");
  expect_contains(err_.str(), path("mine.times.tsv.gz"));
  EXPECT_EQ(get("mine.txt"), "old");
  install_python(0, 0, "scribble\n");
  EXPECT_EQ(run(), 1);
  expect_contains(err_.str(), "is no correction: line 1 of the correction");
}

TEST_F(Learn, IsOfCardsWhoseFloorsAreKnown) {
  install_scripts();
  install_python(0, 0, correction_text("0"));
  const auto of = [&](const char* machine, const char* name) {
    tools_.card = [=](int) {
      DeviceFacts facts = *known_facts(machine);
      facts.name = name;
      return Result<DeviceFacts>(facts);
    };
    EXPECT_EQ(run(), 2);
    return err_.str();
  };
  expect_contains(of("a100", "NVIDIA A100"),
                  "--learn is of Hopper cards, and NVIDIA A100 is sm_80");
  expect_contains(of("h200", "NVIDIA Z900"), "machines/ has none of NVIDIA Z900");
  tools_.card = [](int) {
    return Result<DeviceFacts>(refuse(RefusalCode::no_device, "there is no GPU here"));
  };
  EXPECT_EQ(run(), 2);
  expect_contains(err_.str(), "there is no GPU here");
}

TEST_F(Learn, IsOneOfTwoThingsToWrite) {
  const std::string file = path("mine.txt");
  expect_refused({"calibrate"}, "Neither --out nor --learn is given: give --out FILE for");
  expect_refused({"calibrate", "--out", file, "--learn", file}, "do not go together");
  expect_refused({"calibrate", "--from", file, "--learn", file}, "--from is of --out");
  expect_refused({"calibrate", "--out", file, "--seconds", "60"}, "--seconds is of --learn");
  expect_refused({"calibrate", "--learn", file, "--seconds", "1"},
                 "--seconds is 1; the nearest legal value is 10");
  expect_refused({"calibrate", "--learn", file, "--device", "model"}, "--device is model");
  if (device::cuda_devices().empty()) expect_refused({"calibrate", "--learn", file}, "CUDA");
}

}  // namespace
}  // namespace warpwright::cli
