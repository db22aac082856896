#include "cli/commands/gemm_command.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/compute/random.h"
#include "tests/cli/run_cli.h"
#include "warpwright/device/cuda.h"

namespace warpwright::cli {
namespace {

namespace fs = std::filesystem;

// A folder of its own for every test.
class GemmCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "warpwright-gemm-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }

  // A random matrix in a file; its spec.
  std::string matrix_file(const std::string& name, DType dtype,
                          const std::vector<std::int64_t>& shape, std::uint64_t stream = 1) const {
    write_tensor(file(name), random_normal(dtype, shape, 11, stream));
    return file(name);
  }

  static std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
};

// One sentence on stderr, nothing on stdout, status 2; the sentence names all of `words`.
void expect_refused_naming(const std::vector<std::string>& arguments,
                           const std::vector<std::string>& words) {
  std::string call;
  for (const std::string& a : arguments) call += a + " ";
  SCOPED_TRACE(call);
  const CliResult r = run_cli(arguments);
  EXPECT_EQ(r.status, 2) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  ASSERT_GT(r.err.size(), 10U);
  EXPECT_EQ(r.err.back(), '\n');
  for (const std::string& word : words) EXPECT_NE(r.err.find(word), std::string::npos) << r.err;
}

std::vector<std::string> gemm(const std::vector<std::string>& more) {
  std::vector<std::string> all = {"gemm"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<std::string> random_gemm(const std::vector<std::string>& more) {
  std::vector<std::string> all = {"gemm", "--random", "40", "24", "16"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Operands with scales of their own are made on the way, of random matrices and of files.
TEST_F(GemmCommand, MicroScaledOperandsAreQuantised) {
  for (const std::string type : {"mxf8", "nvf4"}) {
    const CliResult r = run_cli({"gemm", "--random", "140", "72", "96", "--as", "rtx5090",
                                 "--dtype", type, "--batch", "2", "--check"});
    if (r.err.find("another build has") != std::string::npos) continue;
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_NE(r.err.find(type == "mxf8" ? "e4m3 to bf16" : "e2m1 to bf16"), std::string::npos)
        << r.err;
    EXPECT_NE(r.err.find("check: PASS. All 20160 elements are right"), std::string::npos) << r.err;
    const std::string a = matrix_file("a.npy", DType::f32, {40, 64});
    const std::string b = matrix_file("b.npy", DType::f32, {24, 64}, 2);
    const CliResult of_files =
        run_cli({"gemm", "--a", a, "--b", b, "--as", "rtx5090", "--dtype", type, "--check"});
    EXPECT_EQ(of_files.status, 0) << of_files.err;
  }
  const auto refused = [](std::vector<std::string> more, const std::vector<std::string>& words) {
    std::vector<std::string> all = {"gemm", "--random", "64", "64", "64", "--dtype", "nvf4"};
    all.insert(all.end(), more.begin(), more.end());
    expect_refused_naming(all, words);
  };
  refused({}, {"scaling is micro", "no kernel for", "sm_120"});
  refused({"--as", "a100"}, {"sm_80", "multiply no scales", "bf16 without scales"});
  refused({"--as", "rtx5090", "--scaling", "tensor"}, {"--scaling is tensor", "leave it out"});
  refused({"--as", "rtx5090", "--weights", "int4"}, {"--weights is int4", "leave it out"});
  refused({"--as", "rtx5090", "--scale-a", "x.npy"}, {"--scale-a is given", "leave it out"});
  refused({"--as", "rtx5090", "--gated"}, {"gated"});
}

TEST_F(GemmCommand, ChecksOddShapesOfAllTypes) {
  const std::vector<std::vector<std::string>> shapes = {
      {"129", "131", "72"}, {"1", "1", "8"}, {"77", "301", "200"}, {"255", "7", "8"}};
  for (const char* operand : {"bf16", "fp16"}) {
    for (const char* result : {"f32", "bf16", "fp16"}) {
      for (const auto& shape : shapes) {
        for (const bool with_c : {false, true}) {
          std::vector<std::string> call = {"gemm", "--random"};
          call.insert(call.end(), shape.begin(), shape.end());
          call.insert(call.end(), {"--dtype", operand, "--d-dtype", result, "--check"});
          if (with_c) call.insert(call.end(), {"--alpha", "-0.75", "--beta", "1.5"});
          const CliResult r = run_cli(call);
          EXPECT_EQ(r.status, 0) << shape[0] << " " << operand << " " << result << "\n" << r.err;
          EXPECT_NE(r.err.find("check: PASS"), std::string::npos) << r.err;
          EXPECT_EQ(r.out, "");
        }
      }
    }
  }
}

TEST_F(GemmCommand, ChecksEveryClusterTileAndMode) {
  for (const char* cluster : {"1,1", "2,1", "1,2", "2,2"}) {
    for (const char* mode : {"eager", "latest", "random"}) {
      const CliResult r = run_cli({"gemm", "--random", "300", "520", "136", "--cluster", cluster,
                                   "--tile-n", "128", "--mode", mode, "--check"});
      EXPECT_EQ(r.status, 0) << cluster << " " << mode << "\n" << r.err;
    }
  }
}

TEST_F(GemmCommand, SameSeedSameBytes) {
  const auto run = [&](const char* seed, const std::string& out, const char* mode) {
    const CliResult r = run_cli({"gemm", "--random", "70", "50", "64", "--seed", seed, "--beta",
                                 "1", "--mode", mode, "--out", out});
    EXPECT_EQ(r.status, 0) << r.err;
    return bytes_of(out);
  };
  const std::string first = run("3", file("one.npy"), "latest");
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first, run("3", file("two.npy"), "latest"));
  EXPECT_EQ(first, run("3", file("three.npy"), "random"));
  EXPECT_NE(first, run("4", file("four.npy"), "latest"));
}

TEST_F(GemmCommand, BetaIsOneWithC) {
  const std::string a = matrix_file("a.npy", DType::f32, {16, 8}, 1);
  const std::string c = matrix_file("c.npy", DType::f32, {16, 16}, 2);
  const auto product = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> call = {"gemm", "--a", a, "--b", a, "--out", file(name), "--check"};
    call.insert(call.end(), more.begin(), more.end());
    const CliResult r = run_cli(call);
    EXPECT_EQ(r.status, 0) << r.err;
    return read_tensor(file(name)).bytes;
  };
  const auto with = product("with.npy", {"--c", c});
  EXPECT_EQ(with, product("one.npy", {"--c", c, "--beta", "1"}));
  EXPECT_NE(with, product("without.npy", {}));
}

TEST_F(GemmCommand, MultipliesFiles) {
  const std::string a = matrix_file("ab.safetensors:a", DType::f32, {65, 40}, 1);
  const std::string b = matrix_file("ab.safetensors:b", DType::f32, {33, 40}, 2);
  const std::string c = matrix_file("c.npy", DType::f32, {65, 33}, 3);
  const std::string out = file("d.safetensors:d");
  const CliResult r = run_cli({"gemm", "--a", a, "--b", b, "--c", c, "--alpha", "0.5", "--beta",
                               "-2", "--out", out, "--check"});
  ASSERT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.err.find("note"), std::string::npos) << r.err;  // f32 is expected to be rounded
  const HostTensor d = read_tensor(out);
  EXPECT_EQ(d.dtype, DType::bf16);
  EXPECT_EQ(d.shape, (std::vector<std::int64_t>{65, 33}));

  // An independent look at one element.
  const auto value = [](const HostTensor& t, std::int64_t i) {
    const HostTensor wide = convert(t, DType::f32);
    float x = 0;
    std::memcpy(&x, wide.bytes.data() + 4 * i, 4);
    return static_cast<double>(x);
  };
  const HostTensor ra = convert(read_tensor(a), DType::bf16);
  const HostTensor rb = convert(read_tensor(b), DType::bf16);
  const HostTensor rc = convert(read_tensor(c), DType::bf16);
  double sum = 0;
  for (std::int64_t k = 0; k < 40; ++k) sum += value(ra, 64 * 40 + k) * value(rb, 32 * 40 + k);
  const double want = 0.5 * sum - 2 * value(rc, 64 * 33 + 32);
  EXPECT_NEAR(value(d, 64 * 33 + 32), want, std::abs(want) / 128 + 1e-4);
}

TEST_F(GemmCommand, MultipliesRowsThatTmaCannotRead) {
  for (const auto& [dtype, k] : {std::pair{"bf16", "1"}, {"fp16", "45"}, {"e4m3", "100"}}) {
    const CliResult r = run_cli({"gemm", "--random", "17", "35", k, "--dtype", dtype, "--check"});
    EXPECT_EQ(r.status, 0) << dtype << ' ' << k << r.err;
    EXPECT_NE(r.err.find("PASS"), std::string::npos) << r.err;
  }
  const std::string a = matrix_file("a.npy", DType::f32, {16, 5}, 1);
  const std::string b = matrix_file("b.npy", DType::f32, {8, 5}, 2);
  const CliResult r = run_cli({"gemm", "--a", a, "--b", b, "--check"});
  EXPECT_EQ(r.status, 0) << r.err;
}

TEST_F(GemmCommand, ChoosesTypes) {
  const auto type_of = [&](const std::vector<std::string>& call, const std::string& out) {
    const CliResult r = run_cli(call);
    EXPECT_EQ(r.status, 0) << r.err;
    return read_tensor(out).dtype;
  };
  const std::string npy = file("d.npy");
  const std::string st = file("d.safetensors:d");
  // .npy has no bf16, so f32; .safetensors keeps the operands' type.
  EXPECT_EQ(type_of(random_gemm({"--out", npy}), npy), DType::f32);
  EXPECT_EQ(type_of(random_gemm({"--out", npy, "--dtype", "fp16"}), npy), DType::f32);
  EXPECT_EQ(type_of(random_gemm({"--out", npy, "--d-dtype", "fp16"}), npy), DType::f16);
  EXPECT_EQ(type_of(random_gemm({"--out", st}), st), DType::bf16);
  EXPECT_EQ(type_of(random_gemm({"--out", st, "--dtype", "fp16"}), st), DType::f16);
  EXPECT_EQ(type_of(random_gemm({"--out", st, "--d-dtype", "f32"}), st), DType::f32);
  // Two files of one 16-bit type are multiplied as that.
  const std::string a = matrix_file("a.npy", DType::f16, {16, 8});
  const std::string b = matrix_file("b.npy", DType::f16, {8, 8});
  EXPECT_EQ(type_of(gemm({"--a", a, "--b", b, "--out", st}), st), DType::f16);
}

TEST_F(GemmCommand, SaysWhatItRounds) {
  const std::string half = matrix_file("half.npy", DType::f16, {16, 8});
  const std::string single = matrix_file("single.npy", DType::f32, {16, 8});
  CliResult r = run_cli(gemm({"--a", half, "--b", single, "--check"}));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.err.find("note: A is fp16 in its file and is rounded to bf16"), std::string::npos)
      << r.err;
  EXPECT_EQ(r.err.find("note: B"), std::string::npos) << r.err;

  HostTensor large = random_normal(DType::f32, {16, 8}, 1, 1);
  const float beyond = 70000.0F;
  std::memcpy(large.bytes.data() + 4, &beyond, sizeof beyond);
  write_tensor(file("large.npy"), large);
  r = run_cli(gemm({"--a", single, "--b", file("large.npy"), "--dtype", "fp16", "--check"}));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.err.find("note: 1 element of B beyond the largest fp16 became infinite"),
            std::string::npos)
      << r.err;
}

TEST_F(GemmCommand, EmptyExtents) {
  for (const std::vector<std::string>& shape :
       std::vector<std::vector<std::string>>{{"0", "8", "8"}, {"8", "0", "8"}, {"0", "0", "0"}}) {
    const std::string out = file("empty.npy");
    const CliResult r = run_cli(
        {"gemm", "--random", shape[0], shape[1], shape[2], "--out", out, "--check", "--beta", "1"});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(read_tensor(out).elements(), 0);
  }
  // K = 0: D is beta * C, or zeros.
  const std::string out = file("zeros.npy");
  CliResult r = run_cli({"gemm", "--random", "9", "5", "0", "--out", out, "--check"});
  ASSERT_EQ(r.status, 0) << r.err;
  const HostTensor zeros = read_tensor(out);
  for (const std::byte b : zeros.bytes) EXPECT_EQ(b, std::byte{0});
  r = run_cli({"gemm", "--random", "9", "5", "0", "--beta", "2", "--check", "--d-dtype", "fp16"});
  EXPECT_EQ(r.status, 0) << r.err;
  // The same from files, and alpha = 0, whose K need then be no multiple of 8.
  write_tensor(file("a0.npy"), {DType::f32, {4, 0}, {}});
  write_tensor(file("b0.npy"), {DType::f32, {3, 0}, {}});
  r = run_cli({"gemm", "--a", file("a0.npy"), "--b", file("b0.npy"), "--out", out, "--check"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(read_tensor(out).shape, (std::vector<std::int64_t>{4, 3}));
  r = run_cli({"gemm", "--random", "9", "5", "7", "--alpha", "0", "--beta", "1", "--check"});
  EXPECT_EQ(r.status, 0) << r.err;
}

TEST_F(GemmCommand, BetaZeroDoesNotReadC) {
  HostTensor poison{DType::f32, {16, 16}, std::vector<std::byte>(16 * 16 * 4, std::byte{0xff})};
  write_tensor(file("nan.npy"), poison);
  const std::string a = matrix_file("a.npy", DType::f32, {16, 8}, 1);
  const std::string out = file("d.npy");
  const CliResult r = run_cli(
      {"gemm", "--a", a, "--b", a, "--c", file("nan.npy"), "--beta", "0", "--out", out, "--check"});
  ASSERT_EQ(r.status, 0) << r.err;
  const HostTensor d = read_tensor(out);
  for (std::int64_t i = 0; i < d.elements(); ++i) {
    float x = 0;
    std::memcpy(&x, d.bytes.data() + 4 * i, 4);
    EXPECT_TRUE(std::isfinite(x));
  }
}

TEST_F(GemmCommand, WritesIntoTheFileOfItsInputs) {
  const std::string a = matrix_file("all.safetensors:a", DType::bf16, {24, 24}, 1);
  const std::string c = matrix_file("all.safetensors:c", DType::bf16, {24, 24}, 3);
  const std::string d = file("all.safetensors:d");
  const HostTensor before = read_tensor(a);
  const CliResult r =
      run_cli({"gemm", "--a", a, "--b", a, "--c", c, "--beta", "1", "--out", d, "--check"});
  ASSERT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(read_tensor(a).bytes, before.bytes);  // the file's other tensors stay
  EXPECT_EQ(read_tensor(c).bytes, random_normal(DType::bf16, {24, 24}, 11, 3).bytes);
  EXPECT_EQ(read_tensor(d).shape, (std::vector<std::int64_t>{24, 24}));
}

TEST_F(GemmCommand, RefusesBadScalarsAndChoices) {
  expect_refused_naming(random_gemm({"--alpha", "nan"}), {"alpha", "NaN"});
  expect_refused_naming(random_gemm({"--alpha", "-NaN"}), {"alpha", "NaN"});
  expect_refused_naming(random_gemm({"--beta", "nan"}), {"beta", "NaN"});
  expect_refused_naming(random_gemm({"--alpha", "one"}), {"alpha", "number"});
  expect_refused_naming(random_gemm({"--alpha", "1e39"}), {"alpha", "3.4028234e38"});
  expect_refused_naming(random_gemm({"--beta=-1e400"}), {"beta", "-3.4028234e38"});
  expect_refused_naming(random_gemm({"--dtype", "f32"}), {"--dtype", "bf16"});
  expect_refused_naming(random_gemm({"--dtype", "fp4"}), {"--dtype", "bf16"});
  expect_refused_naming(random_gemm({"--d-dtype", "e4m3"}), {"D is e4m3", "bf16"});
  expect_refused_naming(random_gemm({"--d-dtype", "s8"}), {"--d-dtype", "f32"});
  expect_refused_naming(random_gemm({"--mode", "late"}), {"--mode", "latest"});
  expect_refused_naming(random_gemm({"--cluster", "2"}), {"--cluster", "2,1"});
  expect_refused_naming(random_gemm({"--cluster", "0,1"}), {"cluster", "1,1"});
  expect_refused_naming(random_gemm({"--cluster", "3,1"}), {"3x1", "2x1"});
  expect_refused_naming(random_gemm({"--cluster", "4,4", "--sms", "8"}), {"16", "SMs"});
  expect_refused_naming(random_gemm({"--tile-n", "104"}), {"tile_n 104", "128x128"});
  expect_refused_naming(random_gemm({"--device", "gpu"}), {"--device", "model"});
  expect_refused_naming(random_gemm({"--device", "cuda:"}), {"--device", "cuda:0"});
  expect_refused_naming(random_gemm({"--device", "cuda:-1"}), {"--device", "cuda:0"});
  expect_refused_naming(random_gemm({"--bench"}), {"--bench", "--device cuda"});
  expect_refused_naming(random_gemm({"--device", "cuda", "--mode", "eager"}), {"--mode"});
}

TEST_F(GemmCommand, RefusesADeviceThatIsNotThere) {
  const std::size_t count = device::cuda_devices().size();
  const std::vector<std::string> call = random_gemm({"--device", "cuda:" + std::to_string(count)});
  expect_refused_naming(call, {"CUDA"});
  // Of a machine without the driver it says that, not how the runtime puts it.
  const std::string said = run_cli(call).err;
  EXPECT_EQ(said.find("cudaErrorInsufficientDriver"), std::string::npos) << said;
  if (count == 0 && device::built_with_cuda()) {
    EXPECT_NE(said.find("no NVIDIA driver here"), std::string::npos) << said;
  }
}

TEST_F(GemmCommand, RefusesBadExtents) {
  expect_refused_naming({"gemm", "--random", "-4", "8", "8"}, {"M is -4", "0"});
  expect_refused_naming({"gemm", "--random", "8", "-4", "8"}, {"N is -4", "0"});
  expect_refused_naming({"gemm", "--random", "8", "8", "-1"}, {"K is -1", "0"});
  expect_refused_naming({"gemm", "--random", "8", "8", "3000000000"},
                        {"K is 3000000000", "2147479551"});
  expect_refused_naming({"gemm", "--random", "2000000", "2000000", "8"}, {"memory", "smaller"});
  expect_refused_naming({"gemm", "--random", "8", "8"}, {"--random"});
  expect_refused_naming({"gemm", "--random", "8", "8", "eight"}, {"--random"});
}

TEST_F(GemmCommand, RefusesBadFiles) {
  const std::string a = matrix_file("a.npy", DType::f32, {16, 24}, 1);
  const std::string b = matrix_file("b.npy", DType::f32, {8, 24}, 2);
  const std::string other_k = matrix_file("k.npy", DType::f32, {8, 32}, 2);
  const std::string cube = matrix_file("cube.npy", DType::f32, {2, 3, 4}, 2);
  const std::string vector = matrix_file("vector.npy", DType::f32, {24}, 2);
  const std::string c = matrix_file("c.npy", DType::f32, {8, 16}, 3);
  write_tensor(file("fp8.safetensors:t"),
               {DType::e4m3, {8, 32}, std::vector<std::byte>(8 * 32, std::byte{0})});
  std::ofstream(file("short.npy"), std::ios::binary) << bytes_of(a).substr(0, 200);
  std::ofstream(file("text.npy")) << "not a tensor";

  expect_refused_naming(gemm({}), {"A is missing", "--random"});
  expect_refused_naming(gemm({"--a", a}), {"B is missing"});
  expect_refused_naming(gemm({"--b", b}), {"A is missing"});
  expect_refused_naming(gemm({"--a", a, "--b", b, "--random", "8", "8", "8"}), {"together"});
  expect_refused_naming(gemm({"--a", file("none.npy"), "--b", b}), {"A: ", "none.npy"});
  expect_refused_naming(gemm({"--a", a, "--b", file("none.safetensors:x")}),
                        {"B: ", "none.safetensors"});
  expect_refused_naming(gemm({"--a", file("short.npy"), "--b", b}), {"A: ", "short.npy"});
  expect_refused_naming(gemm({"--a", file("text.npy"), "--b", b}), {"A: ", "text.npy"});
  expect_refused_naming(gemm({"--a", a, "--b", file("b.txt")}), {"B: ", "PATH.npy"});
  expect_refused_naming(gemm({"--a", a, "--b", file("fp8.safetensors")}), {"B: ", ":NAME"});
  expect_refused_naming(gemm({"--a", a, "--b", file("fp8.safetensors:u")}), {"B: ", "\"t\""});
  expect_refused_naming(gemm({"--a", a, "--b", file("fp8.safetensors:t")}), {"A ", "B ", "8x24"});
  expect_refused_naming(gemm({"--a", cube, "--b", b}), {"A ", "3 dimensions", "6x4", "--batch 2"});
  expect_refused_naming(gemm({"--a", a, "--b", vector}), {"B ", "1 dimension (", "24x1"});
  expect_refused_naming(gemm({"--a", a, "--b", other_k}), {"A ", "16x24", "8x32", "B is 8x24"});
  expect_refused_naming(gemm({"--a", a, "--b", b, "--c", c}), {"C ", "as large as D"});
  expect_refused_naming(gemm({"--a", a, "--b", b, "--beta", "1"}), {"C is missing"});
  expect_refused_naming(gemm({"--a", a, "--b", b, "--beta", "1", "--c", c}),
                        {"C ", "8x16", "16x8"});
  expect_refused_naming(gemm({"--a", a, "--b", b, "--beta", "1", "--c", cube}),
                        {"C ", "3 dimensions"});
  expect_refused_naming(random_gemm({"--c", c, "--beta", "1"}), {"together"});
}

TEST_F(GemmCommand, RefusesBadOutputsBeforeTheWork) {
  expect_refused_naming(random_gemm({"--out", file("d.txt")}), {"d.txt", "PATH.npy"});
  expect_refused_naming(random_gemm({"--out", file("none/d.npy")}), {"D ", "none"});
  expect_refused_naming(random_gemm({"--out", file("d.npy"), "--d-dtype", "bf16"}),
                        {"D ", "bf16", "f32"});
  std::ofstream(file("bad.safetensors")) << "not a tensor file";
  expect_refused_naming(random_gemm({"--out", file("bad.safetensors:d")}), {"bad.safetensors"});
  EXPECT_EQ(bytes_of(file("bad.safetensors")), "not a tensor file");
  fs::create_directory(file("folder.npy"));
  expect_refused_naming(random_gemm({"--out", file("folder.npy")}), {"folder.npy"});
}

GemmOptions small_options() {
  GemmOptions options;
  options.random = {20, 12, 16};
  options.check = true;
  return options;
}

TEST_F(GemmCommand, AWrongElementFailsTheCheckAndLeavesTheOutputAlone) {
  const std::string out_file = file("d.npy");
  std::ofstream(out_file) << "precious";
  GemmOptions options = small_options();
  options.out = out_file;
  std::ostringstream out;
  std::ostringstream err;
  const GemmRunner corrupt = [](const Product& product, const GemmOptions& how, std::ostream& log) {
    RunOutput run = run_on_device(product, how, log);
    static_cast<float*>(product.operands.d.data)[7 * 12 + 3] += 0.01F;
    return run;
  };
  EXPECT_EQ(gemm_command(options, out, err, corrupt), 1);
  EXPECT_NE(err.str().find("check: FAIL. 1 of 240 elements is wrong: D[7, 3]"), std::string::npos)
      << err.str();
  EXPECT_EQ(bytes_of(out_file), "precious");
}

TEST_F(GemmCommand, AnElementThatNobodyStoresFailsTheCheck) {
  std::ostringstream out;
  std::ostringstream err;
  const GemmRunner idle = [](const Product&, const GemmOptions&, std::ostream&) {
    return RunOutput{};
  };
  EXPECT_EQ(gemm_command(small_options(), out, err, idle), 1);
  EXPECT_NE(err.str().find("check: FAIL. 240 of 240"), std::string::npos) << err.str();
  EXPECT_NE(err.str().find("nan"), std::string::npos) << err.str();
}

TEST_F(GemmCommand, FindingsAreStatusOne) {
  const std::string out_file = file("d.npy");
  std::ofstream(out_file) << "precious";
  GemmOptions options = small_options();
  options.out = out_file;
  std::ostringstream out;
  std::ostringstream err;
  const GemmRunner faulty = [](const Product&, const GemmOptions&, std::ostream&) -> RunOutput {
    throw RunError("B4 here: too many bytes\n");
  };
  EXPECT_EQ(gemm_command(options, out, err, faulty), 1);
  EXPECT_EQ(err.str(), "B4 here: too many bytes\n");
  EXPECT_EQ(bytes_of(out_file), "precious");
}

TEST_F(GemmCommand, PrintsOneObjectForPrograms) {
  CliResult r = run_cli(random_gemm({"--json", "--check", "--batch", "2", "--activation", "gelu",
                                     "--bias", "columns", "--layout", "NN", "--cluster", "2,1"}));
  ASSERT_EQ(r.status, 0) << r.err;
  const auto json = nlohmann::json::parse(r.out);
  EXPECT_EQ(json["device"], "model");
  EXPECT_EQ(json["batch"], 2);
  EXPECT_EQ(json["m"], 40);
  EXPECT_EQ(json["n"], 24);
  EXPECT_EQ(json["dtype"], (std::vector<std::string>{"bf16", "bf16"}));
  EXPECT_EQ(json["d_dtype"], "bf16");
  EXPECT_EQ(json["scaling"], "none");
  EXPECT_EQ(json["accumulation"], "fast");
  EXPECT_EQ(json["layout"], "NN");
  EXPECT_EQ(json["bias"], "columns");
  EXPECT_EQ(json["activation"], "gelu");
  EXPECT_EQ(json["gated"], false);
  EXPECT_EQ(json["cluster"], (std::vector<int>{2, 1}));
  EXPECT_EQ(json["cluster_k"], 1);
  EXPECT_GT(json["tiles"], 1);
  EXPECT_TRUE(json["findings"].empty());
  EXPECT_EQ(json["check"]["passed"], true);
  EXPECT_EQ(json["check"]["elements"], 2 * 40 * 24);
  EXPECT_EQ(json["check"]["infinite"], 0);
  EXPECT_FALSE(json.contains("time"));
  // The same things have the same names as for groups.
  r = run_cli(
      {"grouped", "--groups", "1", "--tokens", "8", "--n", "64", "--k", "64", "--json", "--check"});
  const auto grouped = nlohmann::json::parse(r.out);
  for (const char* key : {"plan", "device", "n", "k", "dtype", "d_dtype", "scaling", "accumulation",
                          "swapped", "cluster", "ctas", "tiles", "seconds", "findings"}) {
    EXPECT_TRUE(json.contains(key)) << key;
    EXPECT_TRUE(grouped.contains(key)) << key;
    EXPECT_EQ(json[key].type(), grouped[key].type()) << key;
  }
  for (const auto& [key, value] : grouped["check"].items()) {
    if (key.starts_with("rows_")) continue;
    EXPECT_TRUE(json["check"].contains(key)) << key;
  }
  // What the model found, and what the check found, is there too.
  GemmOptions options = small_options();
  options.json = true;
  std::ostringstream out;
  std::ostringstream err;
  const GemmRunner faulty = [](const Product&, const GemmOptions&, std::ostream&) {
    RunOutput run;
    run.report.findings.push_back(
        {.check = model::Check::wrong_result, .sentence = "no", .site = {}});
    return run;
  };
  EXPECT_EQ(gemm_command(options, out, err, faulty), 1);
  const auto found = nlohmann::json::parse(out.str());
  ASSERT_EQ(found["findings"].size(), 1U);
  EXPECT_EQ(found["findings"][0]["sentence"], "no");
  EXPECT_FALSE(found.contains("check"));
}

TEST_F(GemmCommand, LongWorkIsToldAndWorkWithoutMemoryRefusedBeforeItBegins) {
  GemmOptions options;
  options.random = {1, 1, 4'000'000};  // minutes on the model
  options.check = false;
  std::ostringstream out;
  std::ostringstream err;
  std::string before;
  const GemmRunner runner = [&](const Product&, const GemmOptions&, std::ostream&) {
    before = err.str();
    return RunOutput{};
  };
  EXPECT_EQ(gemm_command(options, out, err, runner), 0);
  EXPECT_NE(before.find("gemm: this will take roughly "), std::string::npos) << before;
  expect_refused_naming({"gemm", "--random", "2000000000", "1", "1000000000"},
                        {"GiB of memory", "free"});
}

TEST_F(GemmCommand, AdviceIsSomethingThatWouldWork) {
  if (!device::cuda_devices().empty()) GTEST_SKIP() << "did not run: there is a CUDA device here";
  const CliResult plain = run_cli(random_gemm({"--device", "cuda"}));
  EXPECT_NE(plain.err.find("; the model is always there: --device model"), std::string::npos);
  // The model measures nothing.
  for (const std::vector<std::string>& call :
       {random_gemm({"--device", "cuda", "--bench"}), std::vector<std::string>{"bench", "dense"},
        std::vector<std::string>{"bench", "grouped"},
        std::vector<std::string>{"tune", "64", "64", "64"},
        std::vector<std::string>{"grouped", "--groups", "1", "--tokens", "8", "--n", "64", "--k",
                                 "64", "--device", "cuda", "--repeat", "3"}}) {
    const CliResult r = run_cli(call);
    EXPECT_EQ(r.status, 2) << call[0];
    EXPECT_EQ(r.err.find("--device model"), std::string::npos) << call[0] << ": " << r.err;
  }
}

TEST_F(GemmCommand, ReplacesAnExistingOutput) {
  const std::string out_file = file("d.npy");
  std::ofstream(out_file) << "old";
  const CliResult r = run_cli(random_gemm({"--out", out_file}));
  ASSERT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(read_tensor(out_file).shape, (std::vector<std::int64_t>{40, 24}));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);  // no temporary file stays
}

}  // namespace
}  // namespace warpwright::cli
