// --correction: files that plans follow.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_cli.h"
#include "tests/cli/tensor_folder.h"
#include "tests/must.h"

namespace warpwright::cli {
namespace {

class CorrectionOption : public TensorFolder {
 protected:
  static std::vector<std::string> explain(const std::string& file) {
    return {"explain", "gemm", "--random",    "4096",   "4096",         "4096",
            "--as",    "h200", "--no-tuning", "--json", "--correction", file};
  }
  static double best_us(const std::string& file) {
    const CliResult r = run_cli(explain(file));
    EXPECT_EQ(r.status, 0) << r.err;
    return nlohmann::json::parse(r.out)["best_ways"][0]["learnt_us"];
  }
};

TEST_F(CorrectionOption, IsWhatPlansFollow) {
  const double floor_us = best_us(put("one.txt", correction_text("0")));
  EXPECT_GT(floor_us, 100);
  EXPECT_NEAR(best_us(put("two.txt", correction_text("0.693147181"))) / floor_us, 2, 1e-3);
}

TEST_F(CorrectionOption, RefusesAFileThatIsNone) {
  const auto refused = [&](const std::string& text, const std::string& part) {
    const CliResult r = run_cli(explain(put("mine.txt", text)));
    EXPECT_EQ(r.status, 2);
    expect_contains(r.err, "--correction is " + path("mine.txt") + "; " + part);
    expect_contains(r.out, "error");
  };
  refused("", "line 0 of the correction: it has no tree.");
  refused("warpwright-correction 2\n", "line 1 of the correction: its version is \"2\", not 1.");
  refused("warpwright-correction 1\nfeatures tensor weather\n",
          "line 2 of the correction: \"weather\" is none of the features.");
  refused(correction_text("1e9"), "line 3 of the correction: \"=1e9\" is no leaf of a tree.");
  refused(correction_text("nan"), "line 3 of the correction: \"=nan\" is no leaf of a tree.");
  const CliResult r = run_cli(explain(path("none.txt")));
  EXPECT_EQ(r.status, 2);
  expect_contains(r.err, "--correction is " + path("none.txt") + "; no correction can be read");
}

TEST_F(CorrectionOption, IsOfHopperCards) {
  const std::string file = put("mine.txt", correction_text("0"));
  expect_refused(
      {"explain", "gemm", "--random", "64", "64", "64", "--as", "a100", "--correction", file},
      "--correction is of Hopper cards, and a100 is sm_80: leave it out.");
}

}  // namespace
}  // namespace warpwright::cli
