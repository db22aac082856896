// int4 weights on the command line: random ones, those of a file, and what is refused.
#include <string>
#include <vector>

#include "cli/compute/random.h"
#include "tests/cli/run_cli.h"
#include "tests/cli/tensor_folder.h"

namespace warpwright::cli {
namespace {

using PackedCall = std::vector<std::string>;

PackedCall call_with(PackedCall all, const PackedCall& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

class PackedCommand : public TensorFolder {
 protected:
  // A random tensor in a file of its own name; its spec.
  std::string tensor(const std::string& name, DType type,
                     const std::vector<std::int64_t>& shape) const {
    const std::string spec = path(name + ".safetensors") + ":" + name;
    write_tensor(spec, random_normal(type, shape, 5, 1));
    return spec;
  }
  // Packed weights of so many experts.
  std::string packed(std::int64_t experts, std::int64_t n, std::int64_t k,
                     const std::string& group) const {
    const std::string spec = path("packed.safetensors") + ":w";
    const CliResult made =
        run_cli({"pack", tensor("w", DType::bf16, {experts, n, k}), spec, "--group", group});
    EXPECT_EQ(made.status, 0) << made.err;
    return spec;
  }
};

void expect_right_packed(const PackedCall& arguments) {
  const CliResult r = run_cli(call_with(arguments, {"--check"}));
  EXPECT_EQ(r.status, 0) << r.err << r.out;
  EXPECT_TRUE(contains(r.err, "check: PASS")) << r.err;
}

TEST_F(PackedCommand, RandomWeights) {
  const PackedCall gemm = {"gemm", "--random", "16", "128", "512", "--weights", "int4"};
  expect_right_packed(gemm);
  expect_right_packed(
      call_with(gemm, {"--group", "32", "--scaling", "row-column", "--bias", "columns"}));
  expect_right_packed(
      call_with(gemm, {"--sums", "chained", "--group", "64", "--scaling", "tensor"}));
  expect_right_packed(call_with(gemm, {"--scaling", "block"}));
  expect_right_packed(call_with(gemm, {"--sums", "folded", "--group", "32", "--bias", "rows"}));
  expect_right_packed(call_with(gemm, {"--sums", "table", "--group", "64"}));
  expect_right_packed(call_with(gemm, {"--zero-points", "--scaling", "tensor"}));
  expect_right_packed(call_with(gemm, {"--gated"}));
  const PackedCall grouped = {"grouped", "--groups", "3",   "--tokens",  "9,0,20", "--n",
                              "128",     "--k",      "256", "--weights", "int4"};
  expect_right_packed(call_with(grouped, {"--sums", "folded"}));
  expect_right_packed(call_with(grouped, {"--zero-points", "--group", "64"}));
  expect_right_packed(call_with(grouped, {"--gated"}));
  expect_right_packed({"grouped", "--groups", "4", "--tokens", "9,0,1,20", "--n", "136", "--k",
                       "256", "--weights", "int4", "--scaling", "group"});
}

TEST_F(PackedCommand, WeightsOfAFile) {
  const std::string w = packed(3, 72, 192, "64");
  const std::string x = tensor("x", DType::e4m3, {30, 192});
  const PackedCall grouped = {"grouped",  "--x",    x,           "--w", w,
                              "--tokens", "9,0,21", "--weights", "int4"};
  expect_right_packed(grouped);
  expect_refused(call_with(grouped, {"--sums", "table"}), "packed with the encoding sm");
  expect_refused(call_with(grouped, {"--group", "128"}), "has groups of 64: leave it out");
  expect_refused({"gemm", "--a", x, "--b", w, "--weights", "int4"}, "has 3 experts");
  expect_refused({"gemm", "--a", tensor("y", DType::e4m3, {30, 128}), "--b",
                  packed(1, 72, 192, "64"), "--weights", "int4"},
                 "must agree");
  expect_refused({"gemm", "--a", x, "--b", x, "--weights", "int4"}, "packed weights are U8");
}

TEST_F(PackedCommand, Refusals) {
  const PackedCall gemm = {"gemm", "--random", "16", "128", "512"};
  expect_refused(call_with(gemm, {"--group", "64"}), "give --weights int4 too");
  expect_refused(call_with(gemm, {"--weights", "int8"}), "the nearest legal value is int4");
  expect_refused(call_with(gemm, {"--weights", "int4", "--sums", "exactly"}), "--sums");
  expect_refused(call_with(gemm, {"--weights", "int4", "--accumulation", "fast"}),
                 "--sums is about");
  expect_refused(call_with(gemm, {"--weights", "int4", "--layout", "NN"}), "packed N x K");
  expect_refused(call_with(gemm, {"--weights", "int4", "--zero-points", "--sums", "folded"}),
                 "folded and B has zero points");
  expect_refused(call_with(gemm, {"--weights", "int4", "--dtype", "bf16"}),
                 "the nearest A is e4m3");
}

TEST_F(PackedCommand, ExplainSaysWhatAStageBrings) {
  const CliResult r = run_cli({"explain", "grouped", "--groups", "8", "--tokens", "16", "--n",
                               "4096", "--k", "4096", "--weights", "int4", "--as", "h200",
                               "--kernel", "grouped_s4xe4m3_bf16_128x16_b_pr_sw2_k2"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "a bulk copy of 8448 bytes for 64 rows of a stage")) << r.out;
  EXPECT_TRUE(contains(r.out, "of 20992 bytes (A 16896, B 4096)")) << r.out;
  const CliResult passes =
      run_cli({"explain", "grouped", "--groups", "8", "--tokens", "64", "--n", "4096", "--k",
               "4096", "--weights", "int4", "--as", "h200", "--tile-tokens", "64"});
  EXPECT_EQ(passes.status, 0) << passes.err;
  EXPECT_TRUE(contains(passes.out, "wgmma m64n32k32")) << passes.out;
  EXPECT_TRUE(contains(passes.out, "in 2 passes over the columns")) << passes.out;
}

}  // namespace
}  // namespace warpwright::cli
