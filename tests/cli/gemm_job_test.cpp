// From arguments to products: what is read, made and asked of the check, dense and in groups.
#include "cli/commands/gemm_job.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "cli/compute/random.h"
#include "tests/cli/run_cli.h"
#include "tests/reference.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/tuning.h"

namespace warpwright::cli {
namespace {

namespace fs = std::filesystem;

// D of the reference.
void multiply(const GemmOperands& o) {
  const tests::Product product(o);
  const std::int64_t size = numeric::bits(o.d.dtype) / 8;
  for (const auto& [batch, group, begin, end] : reference::parts_of(o)) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t j = 0; j < o.d.columns; ++j) {
        const std::uint64_t code =
            reference::code_of(o.d.dtype, product.result(batch, group, i, j));
        const std::int64_t place = reference::matrix_begin(o.d, batch) + i * o.d.row_stride + j;
        std::memcpy(static_cast<char*>(o.d.data) + place * size, &code,
                    static_cast<std::size_t>(size));
      }
    }
  }
}

// A folder of its own for every test.
class Job : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "warpwright-job-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape,
                   std::uint64_t stream) const {
    std::string path = (folder_ / name).string();
    write_tensor(path, random_normal(dtype, shape, 11, stream));
    return path;
  }

  fs::path folder_;
};

GemmOptions random_options(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmOptions o;
  o.random = {m, n, k};
  return o;
}

// Every kind of product that the arguments can pose.
std::vector<GemmOptions> all_kinds() {
  std::vector<GemmOptions> kinds;
  for (const char* layout : {"NT", "NN", "TN", "TT"}) {
    for (const std::int64_t batch : {0, 1, 3}) {
      GemmOptions o = random_options(24, 40, 56);
      o.layout = layout;
      if (batch > 0) o.batch = batch;
      o.alpha = "0.5";
      o.beta = "-1.5";
      o.bias = batch == 1 ? "rows" : "columns";
      o.activation = batch == 1 ? "relu" : "gelu";
      kinds.push_back(o);
    }
  }
  for (const char* types : {"e4m3", "e5m2", "e4m3,e5m2"}) {
    for (const char* scaling : {"none", "tensor", "row-column", "block"}) {
      GemmOptions o = random_options(20, 160, 272);
      o.dtype = types;
      o.scaling = scaling;
      o.accumulation = "promoted";
      o.d_dtype = scaling[0] == 't' ? "e4m3" : "";
      if (scaling[0] == 't') o.scale_d = "0.375";
      if (scaling[0] == 'b') o.batch = 2;
      kinds.push_back(o);
    }
  }
  GemmOptions gated = random_options(16, 96, 64);
  gated.gated = true;
  gated.alpha = "0.125";
  gated.bias = "columns";
  kinds.push_back(gated);
  gated.batch = 2;
  gated.d_dtype = "e4m3";
  gated.layout = "NN";
  kinds.push_back(gated);
  for (const char* scaling : {"none", "tensor", "group", "row-column", "block"}) {
    GemmOptions o;
    o.is_grouped = true;
    o.groups = 4;
    o.tokens = "7,0,3,10";
    o.n = 160;
    o.k = 272;
    o.total = 23;
    o.dtype = "e4m3";
    o.scaling = scaling;
    kinds.push_back(o);
    o.gated = scaling[0] == 'b' || scaling[0] == 't';
    if (!o.gated) o.beta = "0.5";
    if (!o.gated) o.activation = "silu";
    o.bias = scaling[0] == 'r' ? "rows" : "columns";
    o.d_dtype = "e4m3";
    o.scale_d = "0.375";
    o.offsets = "int64";
    kinds.push_back(o);
  }
  return kinds;
}

TEST_F(Job, TheProblemIsThatOfItsOperands) {
  for (const GemmOptions& options : all_kinds()) {
    GemmJob job = read_job(options);
    const std::string planned = problem_text(problem_of(job.product));
    std::ostringstream err;
    load(job, 3, err);
    HostTensor d = poisoned_result(job);
    const Result<GemmProblem> described = describe(operands_of(job, d));
    ASSERT_TRUE(described.ok()) << described.reason();
    EXPECT_EQ(problem_text(*described), planned);
    EXPECT_EQ(err.str(), "");
  }
}

TEST_F(Job, TheCheckAsksForWhatTheOperandsAre) {
  for (const GemmOptions& options : all_kinds()) {
    SCOPED_TRACE(options.layout + " " + options.dtype + " " + options.scaling + " seed 3");
    GemmJob job = read_job(options);
    std::ostringstream err;
    load(job, 3, err);
    HostTensor d = poisoned_result(job);
    const std::int64_t elements = job.product.batch() * job.tokens() * job.result_columns();
    const auto found = [&] { return check_job(job, operands_of(job, d)); };
    EXPECT_EQ(found().elements.failures, elements) << "poison";
    multiply(operands_of(job, d));
    EXPECT_TRUE(found().passed()) << describe(found().elements);
    EXPECT_EQ(found().elements.elements, elements);
    // Another product fails: with A's values one place on, or without a bias or a scale.
    std::rotate(job.a.bytes.begin(), job.a.bytes.begin() + 2, job.a.bytes.end());
    EXPECT_FALSE(found().passed());
  }
}

TEST_F(Job, OneSeedOneJob) {
  GemmOptions o = random_options(30, 40, 272);
  o.dtype = "e4m3";
  o.scaling = "block";
  o.bias = "rows";
  std::ostringstream err;
  GemmJob first = read_job(o);
  GemmJob second = read_job(o);
  GemmJob other = read_job(o);
  load(first, 7, err);
  load(second, 7, err);
  load(other, 8, err);
  EXPECT_EQ(first.a.bytes, second.a.bytes);
  EXPECT_EQ(first.scale_a.bytes, second.scale_a.bytes);
  EXPECT_EQ(first.bias.bytes, second.bias.bytes);
  EXPECT_NE(first.a.bytes, other.a.bytes);
  EXPECT_NE(first.scale_b.bytes, other.scale_b.bytes);
  EXPECT_EQ(first.scale_a.shape, (std::vector<std::int64_t>{30, 3}));
  EXPECT_EQ(first.scale_b.shape, (std::vector<std::int64_t>{1, 3}));
  for (std::int64_t i = 0; i < first.scale_a.elements(); ++i) {
    float x = 0;
    std::memcpy(&x, first.scale_a.bytes.data() + 4 * i, 4);
    EXPECT_GE(x, 0.25F);
  }
}

// Kernels read either way by a path of its own (kernel/hopper/scales.h), for any K and M.
TEST_F(Job, RandomBlockScalesLieBothWays) {
  GemmOptions o = random_options(30, 40, 272);
  o.dtype = "e4m3";
  o.scaling = "block";
  std::ostringstream err;
  for (const std::uint64_t seed : {7, 8}) {
    GemmJob job = read_job(o);
    load(job, seed, err);
    HostTensor d = poisoned_result(job);
    const MatrixView scales = operands_of(job, d).scale_a;
    EXPECT_EQ(scales.row_stride, seed == 7 ? 1 : 3);
    EXPECT_EQ(scales.column_stride, seed == 7 ? 32 : 1);
    for (std::int64_t i = 0; i < 30; ++i) {
      for (std::int64_t j = 0; j < 3; ++j) {
        const auto* values = static_cast<const float*>(scales.data);
        float want = 0;
        std::memcpy(&want, job.scale_a.bytes.data() + 4 * (3 * i + j), 4);
        EXPECT_EQ(values[i * scales.row_stride + j * scales.column_stride], want);
      }
    }
  }
}

TEST_F(Job, FilesOf8BitTensorsAreReadAsTheyAre) {
  GemmOptions o;
  o.a = file("t.safetensors:a", DType::e4m3, {24, 272}, 1);
  o.b = file("t.safetensors:b", DType::e5m2, {160, 272}, 2);
  o.scaling = "block";
  o.scale_a = file("t.safetensors:sa", DType::f32, {24, 3}, 3);
  o.scale_b = file("t.safetensors:sb", DType::f32, {2, 3}, 4);
  o.bias = "columns=" + file("bias.npy", DType::f16, {160}, 5);
  std::ostringstream err;
  GemmJob job = read_job(o);
  EXPECT_EQ(job.product.a.dtype, DType::e4m3);
  EXPECT_EQ(job.product.b.dtype, DType::e5m2);
  EXPECT_EQ(job.product.d.dtype, DType::bf16);
  EXPECT_EQ(job.bias.dtype, DType::f32) << "f16 is not D's type";
  load(job, 1, err);
  EXPECT_EQ(err.str(), "");
  EXPECT_EQ(job.a.bytes, read_tensor(o.a).bytes);
  EXPECT_EQ(job.scale_b.bytes, read_tensor(o.scale_b).bytes);
  HostTensor d = poisoned_result(job);
  multiply(operands_of(job, d));
  const JobCheck found = check_job(job, operands_of(job, d));
  EXPECT_TRUE(found.passed()) << describe(found.elements);
  // Rounded to e4m3, and said so where it saturates.
  o = {};
  o.a = file("wide.npy", DType::f32, {16, 32}, 1);
  HostTensor large = read_tensor(o.a);
  const float beyond = 500;
  std::memcpy(large.bytes.data() + 8, &beyond, 4);
  write_tensor(o.a, large);
  o.b = o.a;
  o.dtype = "e4m3";
  job = read_job(o);
  load(job, 1, err);
  EXPECT_NE(err.str().find("1 element of A beyond the largest e4m3 became that"), std::string::npos)
      << err.str();
}

TEST_F(Job, FilesOfBatchesAndTransposes) {
  GemmOptions o;
  o.batch = 3;
  o.layout = "TN";
  o.a = file("t.safetensors:a", DType::bf16, {3, 56, 24}, 1);  // K x M
  o.b = file("t.safetensors:b", DType::bf16, {56, 40}, 2);     // K x N, for all
  GemmJob job = read_job(o);
  EXPECT_EQ(job.product.m(), 24);
  EXPECT_EQ(job.product.n(), 40);
  EXPECT_EQ(job.product.k(), 56);
  std::ostringstream err;
  load(job, 1, err);
  HostTensor d = poisoned_result(job);
  EXPECT_EQ(d.shape, (std::vector<std::int64_t>{3, 24, 40}));
  multiply(operands_of(job, d));
  const JobCheck found = check_job(job, operands_of(job, d));
  EXPECT_TRUE(found.passed()) << describe(found.elements);
}

TEST_F(Job, RefusesBadWords) {
  struct Case {
    std::vector<std::string> more;
    std::vector<std::string> words;
  };
  const std::string two = file("two.npy", DType::f32, {2, 3}, 1);
  const std::string half = file("half.npy", DType::f16, {32, 1}, 1);
  const Case cases[] = {
      {{"--dtype", "bf16,e4m3"}, {"--dtype", "bf16"}},
      {{"--dtype", "e4m3,"}, {"--dtype", "e4m3,e5m2"}},
      {{"--layout", "NTN"}, {"--layout", "NT, NN, TN or TT"}},
      {{"--scaling", "rows"}, {"--scaling", "none, tensor, group, row-column or block"}},
      {{"--accumulation", "slow"}, {"--accumulation", "fast or promoted"}},
      {{"--activation", "tanh"}, {"--activation", "must be none, relu, gelu"}},
      {{"--bias", "row"}, {"--bias", "rows or columns"}},
      {{"--bias", "rows=" + two}, {"The bias", "2x3", "32x1"}},
      {{"--batch", "0"}, {"--batch is 0", "1"}},
      {{"--schedule", "fast"}, {"--schedule", "cooperative, pingpong or multistage"}},
      {{"--swapped", "maybe"}, {"--swapped", "yes or no"}},
      {{"--scaling", "row-column"}, {"scaling is row-column", "bf16", "none"}},
      {{"--accumulation", "promoted"}, {"accumulation is promoted", "fast"}},
      {{"--scale-a", two}, {"--scale-a", "--scaling", "block"}},
      {{"--dtype", "e4m3", "--scaling", "row-column", "--scale-a", two},
       {"scale_a", "2x3", "32x1"}},
      {{"--dtype", "e4m3", "--scaling", "row-column", "--scale-a", half},
       {"scale_a is fp16", "f32"}},
      {{"--dtype", "e4m3", "--d-dtype", "e4m3", "--scale-d", "many"}, {"scale_d", "number"}},
      {{"--scale-d", "2"}, {"scale_d", "D is bf16"}},
      {{"--dtype", "e4m3", "--layout", "NN"}, {"B is e4m3 and MN-major", "K-major alone"}},
      {{"--gated", "--activation", "relu"}, {"gated", "silu"}},
      {{"--gated", "--beta", "1"}, {"gated", "C"}},
      {{"--dtype", "e4m3", "--d-dtype", "e4m3", "--out", "d.npy"}, {"e4m3", ".npy", "f32"}},
  };
  for (const Case& c : cases) {
    std::vector<std::string> call = {"gemm", "--random", "32", "32", "64"};
    call.insert(call.end(), c.more.begin(), c.more.end());
    std::string text;
    for (const std::string& word : call) text += word + " ";
    SCOPED_TRACE(text);
    const CliResult r = run_cli(call);
    EXPECT_EQ(r.status, 2);
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    for (const std::string& word : c.words) EXPECT_NE(r.err.find(word), std::string::npos) << r.err;
  }
}

TEST_F(Job, RefusesBadFilesOfScalesAndBatches) {
  const std::string a = file("t.safetensors:a", DType::e4m3, {32, 64}, 1);
  const std::string cube = file("t.safetensors:c", DType::e4m3, {3, 32, 64}, 1);
  const auto said = [](const std::vector<std::string>& call) {
    const CliResult r = run_cli(call);
    EXPECT_EQ(r.status, 2);
    return r.err;
  };
  const auto has = [](const std::string& text, const std::string& word) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  has(said({"gemm", "--a", a, "--b", a, "--scaling", "row-column"}), "scales of A are missing");
  has(said({"gemm", "--a", cube, "--b", a}), "or give --batch 3");
  has(said({"gemm", "--a", cube, "--b", a, "--batch", "2"}), "with --batch 2 it has 2 matrices");
}

}  // namespace
}  // namespace warpwright::cli
