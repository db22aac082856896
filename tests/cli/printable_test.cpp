#include "cli/files/printable.h"

#include <gtest/gtest.h>

#include "tests/cli/run_cli.h"
#include "tests/cli/tensor_folder.h"

namespace warpwright::cli {
namespace {

TEST(Printable, WritesOutWhatATerminalWouldObeyOrGarble) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("layer.0 \"w\" \\x"), "layer.0 \"w\" \\x");
  EXPECT_EQ(printable("Größe, 行列, 🙂"), "Größe, 行列, 🙂");
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(printable(std::string("\x1b[31m\0\x7f", 7)), "\\x1b[31m\\x00\\x7f");
  EXPECT_EQ(printable("\u009b\u202e\u2028"), "\\u009b\\u202e\\u2028");
  // No UTF-8: a lone byte, a cut character, spellings that are too long, a surrogate, beyond
  // Unicode.
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(printable("\xc0\xaf\xe0\x80\xaf"), "\\xc0\\xaf\\xe0\\x80\\xaf");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xe2\x28\xa1"), "\\xe2(\\xa1");
}

TEST(Printable, EveryTextComesOutAsUtf8AndStaysAsItIs) {
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::size_t n = random() % 12; text.size() < n;) {
      text += static_cast<char>(random() & 0xff);
    }
    const std::string shown = printable(text);
    EXPECT_TRUE(is_utf8(shown));
    EXPECT_EQ(printable(shown), shown);
    for (const char c : shown) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable("abcd", 4), "abcd");
  EXPECT_EQ(printable("abcde", 4), "abcd...");
  EXPECT_EQ(printable("abcé", 4), "abc...");
  EXPECT_EQ(in_quotes(std::string(81, 'x')), "\"" + std::string(80, 'x') + "...\"");
}

using HostileNames = TensorFolder;

// One sentence of plain text, whatever the file or the user call things.
TEST_F(HostileNames, AreWrittenOutInMessages) {
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const std::string four(4, 'x');
  const auto unreadable = [&](const std::string& header, const std::string& shown) {
    expect_unreadable("x.safetensors", st_text(header, four), {shown}, "t");
  };
  unreadable(R"({"a\u001b[2J\u0000\n\u202e":)" + entry + "}", R"("a\x1b[2J\x00\n\u202e")");
  unreadable(R"({"a\u001b":)" + entry + R"(,"a\u001b":)" + entry + "}",
             R"("a\x1b" is there twice)");
  unreadable(R"({"a\u001b":{}})", R"("a\x1b" lacks the field dtype)");
  unreadable(R"({"t":{"dtype":"F\u0007","shape":[1],"data_offsets":[0,4]}})", R"(dtype "F\x07")");
  unreadable(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"\u0007":1}})", R"("\x07")");

  const std::string rest = ", 'fortran_order': False, 'shape': (1,)}";
  expect_unreadable("x.npy", npy_text("{'de\x1bscr\xff': '<f4'" + rest, four),
                    {R"('de\x1bscr\xff')"});
  expect_unreadable("x.npy",
                    npy_text("{'descr': '<\x1b"
                             "f\n4'" +
                                 rest,
                             four),
                    {R"('<\x1bf\n4')"});

  expect_refusal([&] { read_tensor(path("\x1b[31m\xfe.npy")); }, {R"(\x1b[31m\xfe.npy)"});
  expect_refusal([&] { read_tensor(path(std::string("a\0.npy", 6))); }, {R"(a\x00.npy)", "NUL"});
}

}  // namespace
}  // namespace warpwright::cli
