// What is said of arguments that cannot be, in words of this command line, and of what a help
// shows.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli/compute/random.h"
#include "tests/cli/run_cli.h"
#include "tests/cli/tensor_folder.h"

namespace warpwright::cli {
namespace {

using Call = std::vector<std::string>;

class Messages : public TensorFolder {};

TEST_F(Messages, NumbersAreRefusedAsTheyWereTyped) {
  expect_refused({"gemm", "--random", "1.5", "64", "64"},
                 "--random: \"1.5\" is no integer; see warpwright gemm --help.");
  expect_refused({"gemm", "--random", "64x64x64"}, "numbers stand with spaces between them");
  expect_refused({"gemm", "--random", "99999999999999999999", "64", "64"},
                 "99999999999999999999 is too large: the nearest legal value is 2147479551");
  expect_refused({"gemm", "--random", "-99999999999999999999", "64", "64"},
                 "-99999999999999999999 is too small: the nearest legal value is 0");
  expect_refused({"explain", "gemm", "--m", "64k"}, "--m: \"64k\" is no integer");
  expect_refused({"gemm", "--random", "8", "8", "8", "--sms", "99999999999"},
                 "99999999999 is too large: the nearest legal value is 256");
  expect_refused({"tune", "1.5", "64", "64"}, "M N K: \"1.5\" is no integer");
  expect_refused({"mask", "--cluster", "2,1", "--rank", "x"}, "--rank: \"x\" is no integer");
  expect_refused({"grouped", "--groups", "2", "--expected-tokens", "many"},
                 "\"many\" is no number");
  EXPECT_EQ(run_cli({"explain", "gemm", "--random", "0x40", "64", "64"}).status, 0);
}

TEST_F(Messages, OptionsGivenTwiceOrWithTooFewValues) {
  const std::string see = "; see warpwright gemm --help.";
  const Call product = {"gemm", "--random", "64", "64", "64"};
  const auto with = [&](Call more) {
    more.insert(more.begin(), product.begin(), product.end());
    return more;
  };
  expect_refused(with({"--random", "64", "64", "64"}),
                 "--random is given twice: give it once" + see);
  expect_refused(with({"--seed", "1", "--seed=2", "--seed", "3"}),
                 "--seed is given 3 times: give it once" + see);
  expect_refused({"gemm", "--random", "64", "64"},
                 "--random takes 3 values (M N K), and 2 are given" + see);
  expect_refused({"gemm", "--random", "64"},
                 "--random takes 3 values (M N K), and 1 is given" + see);
  expect_refused({"gemm", "--a"}, "--a is given without its value: write --a FILE" + see);
}

TEST_F(Messages, OneDimensionIsOne) {
  write_tensor(path("v.npy"), random_normal(DType::f32, {64}, 5, 1));
  write_tensor(path("a.npy"), random_normal(DType::f32, {64, 64}, 5, 1));
  expect_refused({"gemm", "--a", path("v.npy"), "--b", path("a.npy")},
                 "has 1 dimension (shape 64)");
}

TEST_F(Messages, NoKernelWithoutScalesSaysSo) {
  expect_refused(
      {"grouped", "--groups", "4", "--tokens", "8", "--n", "64", "--k", "64", "--dtype", "e5m2"},
      "with no scales, fast accumulation");
}

// Of a kernel that other builds have it says which and how.
TEST_F(Messages, NoKernelNamesTheOneThatABuildOfAllHas) {
  const Call call = {"explain", "gemm",    "--random", "64",       "64",
                     "64",      "--dtype", "fp16",     "--layout", "NN"};
  const CliResult r = run_cli(call);
  if (r.status == 0) GTEST_SKIP() << "did not run: this build has all kernels";
  expect_refused(call, "another build has hopper_f16_");
  expect_refused(call, "WARPWRIGHT_KERNELS is all there, or names it; for pip it is");
}

TEST_F(Messages, TypesAreCalledFp16) {
  for (const char* type : {"fp16", "f16", "half"}) {
    const CliResult r = run_cli({"gemm", "--random", "64", "64", "64", "--dtype", type, "--json"});
    EXPECT_TRUE(contains(r.out, "\"fp16\"")) << r.out;
    EXPECT_TRUE(contains(r.err, "fp16 to fp16")) << r.err;
  }
  expect_refused({"gemm", "--random", "64", "64", "64", "--dtype", "fp16", "--d-dtype", "e4m3"},
                 "of fp16 operands it is bf16, fp16 or f32");
}

TEST_F(Messages, AnOutputIsNoInput) {
  const std::string a = path("a.npy");
  write_tensor(a, random_normal(DType::f32, {16, 16}, 5, 1));
  const std::string before = get("a.npy");
  fs::create_symlink(a, path("link.npy"));
  for (const std::string& out : {a, path("./a.npy"), path("link.npy")}) {
    expect_refused({"gemm", "--a", a, "--b", a, "--out", out},
                   "is the file of --a, which it would be written over");
  }
  EXPECT_EQ(get("a.npy"), before);
  const std::string w = path("w.safetensors");
  write_tensor(w + ":w", random_normal(DType::bf16, {16, 16}, 5, 1));
  expect_refused({"gemm", "--a", w + ":w", "--b", w + ":w", "--out", w + ":w"},
                 "is the file of --a");
  // Another tensor of the file is no input.
  EXPECT_EQ(run_cli({"gemm", "--a", w + ":w", "--b", w + ":w", "--out", w + ":y"}).status, 0);
  expect_refused({"grouped", "--a", w + ":w", "--b", w + ":w", "--tokens", "16", "--bias",
                  "columns=" + a, "--out", a},
                 "");
}

TEST_F(Messages, AnOutputIsOfItsKind) {
  const Call product = {"trace", "gemm", "--random", "64", "64", "64"};
  const auto with = [&](Call more) {
    more.insert(more.begin(), product.begin(), product.end());
    return more;
  };
  put("mine.npy", "mine");
  expect_refused(with({"--out", path("mine.npy")}),
                 "what it writes is no .npy file: the nearest is " + path("mine.pftrace"));
  EXPECT_EQ(get("mine.npy"), "mine");
  expect_refused(with({"--svg", path("t.png")}), "no .png file: the nearest is " + path("t.svg"));
  expect_refused(with({"--grid-svg", path("t.html")}), "no .html file");
  expect_refused({"bench", "dense", "--device", "cuda:0", "--json", path("t.txt")},
                 "no .txt file: the nearest is " + path("t.json"));
  EXPECT_EQ(run_cli(with({"--out", path("plain")})).status, 0);
  EXPECT_EQ(run_cli(with({"--out", path("t.perfetto-trace")})).status, 0);
}

// Every line of a help's examples is of the command itself.
TEST_F(Messages, HelpShowsTheExamplesOfItsCommand) {
  for (const std::string path : {"gemm",
                                 "grouped",
                                 "check",
                                 "check gemm",
                                 "check grouped",
                                 "explain",
                                 "explain gemm",
                                 "explain grouped",
                                 "explain packed",
                                 "trace",
                                 "trace gemm",
                                 "trace grouped",
                                 "bench",
                                 "bench dense",
                                 "bench grouped",
                                 "bench w4a8",
                                 "tune",
                                 "pack",
                                 "layout",
                                 "mask",
                                 "mma",
                                 "devices",
                                 "kernels",
                                 "completion"}) {
    Call call;
    std::istringstream words(path);
    for (std::string word; words >> word;) call.push_back(word);
    call.emplace_back("--help");
    const std::string help = run_cli(call).out;
    EXPECT_FALSE(contains(help, "see gemm --help")) << path;
    std::istringstream lines(help.substr(help.find("\nExamples:")));
    int examples = 0;
    for (std::string line; std::getline(lines, line);) {
      const std::size_t at = line.find("warpwright ");
      if (at == std::string::npos) continue;
      ++examples;
      EXPECT_EQ(line.substr(at + 11, path.size()), path) << line;
    }
    EXPECT_GE(examples, 1) << path << "\n" << help;
  }
  EXPECT_TRUE(contains(run_cli({"explain", "gemm", "--help"}).out, "BLAS's letters for row-major"));
}

TEST_F(Messages, KernelsListsWhatThisBuildHas) {
  const CliResult all = run_cli({"kernels"});
  EXPECT_EQ(all.status, 0);
  EXPECT_TRUE(contains(all.out, "\nhopper_bf16_bf16_128x256 ")) << all.out;
  EXPECT_TRUE(contains(all.err, " kernels are in this build")) << all.err;
  const std::string half = run_cli({"kernels", "--dtype", "fp16", "--as", "h200", "--grouped"}).out;
  EXPECT_TRUE(contains(half, "\ngrouped_f16_f16_128x32_b_sw ")) << half;
  EXPECT_FALSE(contains(half, "bf16_bf16")) << half;
  EXPECT_FALSE(contains(half, "\nhopper_")) << half;
  EXPECT_TRUE(contains(run_cli({"kernels", "--as", "b200"}).out, "\nblackwell_f16_bf16_one "));
  EXPECT_FALSE(contains(run_cli({"kernels", "--as", "b200"}).out, "\nhopper_"));
  EXPECT_TRUE(contains(run_cli({"kernels", "--dtype", "int4"}).out, "exact sums"));
  EXPECT_TRUE(contains(run_cli({"kernels", "--dtype", "mxf8"}).out, "registers_mxf8"));
  EXPECT_FALSE(contains(run_cli({"kernels", "--built"}).out, "  no  "));
  expect_refused({"kernels", "--dtype", "f17"}, "the nearest is bf16");
  expect_refused({"kernels", "--as", "h2000"}, "--as is \"h2000\"; it must be v100");
  const CliResult none = run_cli({"kernels", "--dtype", "nvf4", "--as", "h200"});
  EXPECT_EQ(none.status, 0);
  EXPECT_EQ(none.out, "");
  EXPECT_TRUE(contains(none.err, "No kernel is so")) << none.err;
}

TEST_F(Messages, CompletionIsForKnownShells) {
  EXPECT_EQ(run_cli({"completion", "bash"}).status, 0);
  expect_refused({"completion", "tcsh"}, "it must be bash, zsh, fish: the nearest is bash.");
}

}  // namespace
}  // namespace warpwright::cli
