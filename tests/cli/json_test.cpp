// --json of a refusal: its sentence, taken apart.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/reports/refusal_json.h"

namespace warpwright::cli {
namespace {

using nlohmann::json;

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
