// --json of every command: one object of the answer, or one of the refusal.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/compute/random.h"
#include "cli/reports/refusal_json.h"
#include "tests/cli/run_cli.h"
#include "tests/cli/tensor_folder.h"

namespace warpwright::cli {
namespace {

using nlohmann::json;

class JsonOutput : public TensorFolder {
 protected:
  // The whole of stdout as one object.
  static json object(const std::vector<std::string>& call, int status = 0) {
    std::string words;
    for (const std::string& word : call) words += word + " ";
    SCOPED_TRACE(words);
    const CliResult r = run_cli(call);
    EXPECT_EQ(r.status, status) << r.err;
    const json found = json::parse(r.out, nullptr, false);
    EXPECT_TRUE(found.is_object()) << r.out;
    return found;
  }
  // The object of a refusal, whose sentence stands on stderr too.
  static json refused(const std::vector<std::string>& call) {
    json error = object(call, 2)["error"];
    EXPECT_EQ(run_cli(call).err, error["message"].get<std::string>() + "\n");
    std::vector<std::string> keys;
    for (const auto& item : error.items()) keys.push_back(item.key());
    EXPECT_EQ(keys, (std::vector<std::string>{"code", "message", "nearest", "rule", "tensor"}));
    return error;
  }
};

TEST_F(JsonOutput, EveryCommandAnswersInOneObject) {
  EXPECT_TRUE(
      object({"gemm", "--random", "40", "24", "16", "--check", "--json"})["check"]["passed"]);
  EXPECT_EQ(object({"grouped", "--groups", "2", "--tokens", "8", "--n", "64", "--k", "64",
                    "--json"})["tokens"],
            json({8, 8}));
  EXPECT_EQ(object({"check", "gemm", "--random", "64", "64", "64", "--schedules", "2",
                    "--json"})["findings"],
            json::array());
  const json plan = object({"explain", "gemm", "--random", "4096", "4096", "4096", "--as", "h200",
                            "--dtype", "fp16", "--json"});
  EXPECT_EQ(plan["dtype"], json({"fp16", "fp16"}));
  EXPECT_EQ(plan["m"], 4096);
  EXPECT_EQ(plan["architecture"], 90);
  EXPECT_EQ(plan["bound"], "tensor_cores");
  EXPECT_EQ(plan["a_copy_bytes"], 0);
  // Rows that TMA cannot read.
  EXPECT_GT(object({"explain", "gemm", "--random", "100", "100", "100", "--json"})["a_copy_bytes"],
            100 * 100 * 2);
  EXPECT_TRUE(plan["kernel"]["built"]);
  EXPECT_GT(plan["waves"].get<double>(), 1);
  EXPECT_FALSE(plan["barriers"].empty());
  EXPECT_EQ(plan["roles"][0]["role"], "producer");
  // What the text says.
  const CliResult text = run_cli(
      {"explain", "gemm", "--random", "4096", "4096", "4096", "--as", "h200", "--dtype", "fp16"});
  EXPECT_TRUE(contains(text.out, plan["plan"])) << text.out;
  EXPECT_EQ(object({"explain", "grouped", "--groups", "2", "--tokens", "5,3", "--n", "64", "--k",
                    "64", "--json"})["tokens"],
            json({5, 3}));
  const json trace =
      object({"trace", "gemm", "--random", "64", "64", "64", "--out", path("t.pftrace"), "--json"});
  EXPECT_GT(trace["events"], 10);
  EXPECT_EQ(trace["unit"], "nominal cycles");
  EXPECT_EQ(trace["out"], path("t.pftrace"));
  EXPECT_EQ(trace["svg"], nullptr);
  const json devices = object({"devices", "--json"});
  EXPECT_EQ(devices["devices"][0]["device"], "model");
  EXPECT_EQ(devices["devices"][0]["sms"], 8);
}

// The commands below `path`, as the refusal of one that is none lists them.
std::vector<std::string> commands_below(std::vector<std::string> path) {
  path.emplace_back("none");
  std::string known = run_cli(path).err;
  const std::size_t at = known.find("; known are ");
  std::vector<std::string> names;
  if (at == std::string::npos) return names;
  std::istringstream words(known.substr(at + 12));
  for (std::string word; words >> word;) names.push_back(word.substr(0, word.find_first_of(",.")));
  return names;
}

TEST_F(JsonOutput, EveryCommandTakesIt) {
  int commands = 0;
  const auto ask = [&commands](std::vector<std::string> path) {
    path.emplace_back("--help");
    EXPECT_TRUE(contains(run_cli(path).out, "\n  --json ")) << path[0] << " " << path[1];
    ++commands;
  };
  for (const std::string& name : commands_below({})) {
    if (name == "completion") continue;  // what it prints is a script
    const std::vector<std::string> below = commands_below({name});
    for (const std::string& sub : below) ask({name, sub});
    if (below.empty()) ask({name});
  }
  EXPECT_GE(commands, 19);
}

TEST_F(JsonOutput, LayoutsMasksAndMmas) {
  const json layout = object({"layout", "(2,3):(3,1)", "--table", "--json"});
  EXPECT_EQ(layout["kind"], "layout");
  EXPECT_EQ(layout["size"], 6);
  EXPECT_EQ(layout["cosize"], 6);
  EXPECT_EQ(layout["offsets"], json({0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(object({"layout", "size((2,3))", "--json"})["kind"], "integer");
  const json mask = object({"mask", "--cluster", "4,4", "--rank", "11", "--json"});
  EXPECT_EQ(mask["cluster"], json({4, 4}));
  EXPECT_EQ(mask["ranks"].size(), 1U);
  EXPECT_EQ(mask["ranks"][0]["a"], 0x8888);
  EXPECT_EQ(mask["ranks"][0]["b"], 0x0f00);
  EXPECT_EQ(object({"mask", "--cluster", "4,4", "--json"})["ranks"].size(), 16U);
  const json mma = object({"mma", "m16n8k16", "--table", "--json"});
  EXPECT_EQ(mma["k"], 16);
  EXPECT_EQ(mma["registers"]["c"].size(), 32U);
  // PTX: c0 and c1 are columns 2 (lane % 4) and the next of row lane / 4, c2 and c3 eight below.
  EXPECT_EQ(mma["registers"]["c"][5], json({{1, 2}, {1, 3}, {9, 2}, {9, 3}}));
  EXPECT_EQ(object({"mma", "m16n8k16", "--tiled", "2x2", "--json"})["tiled"]["tile"],
            json({32, 16, 16}));
}

TEST_F(JsonOutput, PackedWeights) {
  const std::string floats = path("w.safetensors") + ":w";
  write_tensor(floats, random_normal(DType::bf16, {64, 128}, 5, 1));
  const std::string packed = path("p.safetensors") + ":w";
  const json made = object({"pack", floats, packed, "--group", "64", "--json"});
  EXPECT_EQ(made["tensor"], packed);
  EXPECT_EQ(made["n"], 64);
  EXPECT_EQ(made["group"], 64);
  const json shown = object({"explain", "packed", packed, "--json"});
  EXPECT_EQ(shown["bytes"], made["bytes"]);
  EXPECT_EQ(shown["tile"]["codes"].size(), 64U);
  EXPECT_EQ(shown["tile"]["scales"][63].size(), 2U);
  // The codes as the text shows them, of thread 0: "row 0, k 0..3: 1 -2 0 3  row 8, ...".
  const std::string text = run_cli({"explain", "packed", packed, "--threads", "1"}).out;
  const std::size_t at = text.find("row 0, k 0..3:");
  ASSERT_NE(at, std::string::npos) << text;
  std::istringstream codes(text.substr(at + 14));
  for (int i = 0; i < 4; ++i) {
    int code = 0;
    codes >> code;
    EXPECT_EQ(shown["tile"]["codes"][0][static_cast<std::size_t>(i)], code) << i;
  }
}

TEST_F(JsonOutput, EveryCommandRefusesInOneObject) {
  for (const std::vector<std::string>& call :
       std::vector<std::vector<std::string>>{{"gemm"},
                                             {"grouped"},
                                             {"check", "gemm"},
                                             {"explain", "gemm"},
                                             {"trace", "gemm"},
                                             {"bench", "dense", "--device", "model"},
                                             {"tune"},
                                             {"layout", "(8,"},
                                             {"mask", "--cluster", "17,1"},
                                             {"mma", "m1n1k1"},
                                             {"pack", "none.safetensors", "p.safetensors"},
                                             {"explain", "packed", "none.safetensors"},
                                             {"kernels", "--dtype", "x"},
                                             {"devices", "--frob"}}) {
    std::vector<std::string> with = call;
    with.emplace_back("--json");
    const json error = refused(with);
    EXPECT_GT(error["message"].get<std::string>().size(), 10U);
    // Without it as ever.
    expect_refused(call, error["message"]);
  }
}

TEST_F(JsonOutput, RefusalsSayTheirCodeTensorRuleAndNearest) {
  const std::string a = path("a.npy");
  write_tensor(a, random_normal(DType::f32, {16, 32}, 5, 1));
  json error = refused({"explain", "gemm", "--random", "4294967296", "8", "8", "--json"});
  EXPECT_EQ(error["code"], "bad_shape");
  EXPECT_EQ(error["nearest"], "2147479551");
  EXPECT_EQ(error["tensor"], nullptr);
  error = refused({"gemm", "--random", "64", "64", "64", "--d-dtype", "e4m3", "--json"});
  EXPECT_EQ(error["code"], "bad_type");
  EXPECT_EQ(error["tensor"], "D");
  EXPECT_EQ(error["nearest"], "bf16");
  EXPECT_EQ(error["rule"].get<std::string>().find("of bf16 operands it is"), 0U) << error;
  error = refused(
      {"gemm", "--random", "64", "64", "64", "--kernel", "hopper_bf16_bf16_128x265", "--json"});
  EXPECT_EQ(error["code"], "no_kernel");
  EXPECT_EQ(error["nearest"], "hopper_bf16_bf16_128x256");
  error = refused({"gemm", "--a", path("none.npy"), "--b", a, "--json"});
  EXPECT_EQ(error["code"], "file_error");
  error = refused({"gemm", "--random", "8", "8", "--json"});
  EXPECT_EQ(error["code"], "bad_argument");
  error = refused({"gemm", "--random", "8", "8", "8", "--alpha", "x", "--json"});
  EXPECT_EQ(error["code"], "bad_argument");
  error = refused({"gemm", "--random", "64", "64", "64", "--device", "cuda:99", "--json"});
  EXPECT_EQ(error["code"], "no_device");
}

TEST(RefusalJson, TakesSentencesApart) {
  const auto parts = [](const char* sentence) {
    const auto error = error_json("x", sentence)["error"];
    EXPECT_EQ(error["message"], sentence);
    const auto word = [&](const char* key) {
      return error[key].is_null() ? "-" : error[key].get<std::string>();
    };
    return word("tensor") + " | " + word("rule") + " | " + word("nearest");
  };
  EXPECT_EQ(parts("A is f32; operands are bf16 or fp16: the nearest is bf16"),
            "A | operands are bf16 or fp16 | bf16");
  EXPECT_EQ(
      parts("the rows of A are 200 bytes apart (100 elements of bf16); they must be a multiple "
            "of 16 bytes apart: the nearest legal row stride is 104 elements (pad K)"),
      "A | they must be a multiple of 16 bytes apart | 104 elements");
  EXPECT_EQ(parts("M is -1; the nearest legal value is 0"), "- | - | 0");
  EXPECT_EQ(parts("scale_a has a row stride of -1; the nearest legal is 0"), "scale_a | - | 0");
  EXPECT_EQ(parts("the bias is fp16 and D is bf16; a bias is f32: the nearest is f32"),
            "bias | a bias is f32 | f32");
  EXPECT_EQ(parts("A cluster of 16 CTAs needs as many SMs; there are 8: the nearest legal cluster "
                  "is 2x1"),
            "- | there are 8 | 2x1");
  EXPECT_EQ(parts("A (a.npy) has 1 dimension (shape 4); it must have 2: the nearest legal shape is "
                  "4x1, or give --batch 4."),
            "A | it must have 2 | 4x1");
  EXPECT_EQ(parts("There is no option --frob; see warpwright explain gemm --help."), "- | - | -");
  EXPECT_EQ(parts("This machine has not enough memory for these matrices: choose smaller ones."),
            "- | choose smaller ones | -");
  // Whatever a name in it holds.
  EXPECT_EQ(parts(std::string(200'000, '(').c_str()), "- | - | -");
}

TEST(RefusalJson, BytesThatAreNoTextAreReplaced) {
  const std::string text = json_text(error_json("x", "\xff is no name"));
  EXPECT_TRUE(json::parse(text, nullptr, false).is_object()) << text;
}

}  // namespace
}  // namespace warpwright::cli
