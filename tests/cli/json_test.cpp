// --json of a refusal: what the rule that refused knows.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/reports/refusal_json.h"

namespace warpwright::cli {
namespace {

using nlohmann::json;

TEST(RefusalJson, PrintsWhatIsKnown) {
  const Sentence said = as_tensor("the bias") + " is fp16; " + as_rule("a bias is f32") +
                        ": the nearest is " + as_nearest("f32");
  const auto error = error_json("x", said, said.reason + "\n")["error"];
  EXPECT_EQ(error["code"], "x");
  EXPECT_EQ(error["tensor"], "bias");
  EXPECT_EQ(error["rule"], "a bias is f32");
  EXPECT_EQ(error["nearest"], "f32");
  EXPECT_EQ(error["message"], "the bias is fp16; a bias is f32: the nearest is f32");
}

TEST(RefusalJson, IsNullWhereNothingIsKnown) {
  const auto error = error_json("x", "A is f32; so is B: the nearest is bf16", "A")["error"];
  for (const char* key : {"tensor", "rule", "nearest"}) EXPECT_TRUE(error[key].is_null()) << key;
}

TEST(RefusalJson, BytesThatAreNoTextAreReplaced) {
  const std::string text = json_text(error_json("x", as_rule("\xff"), "\xff is no name"));
  EXPECT_TRUE(json::parse(text, nullptr, false).is_object()) << text;
}

}  // namespace
}  // namespace warpwright::cli
