// `warpwright grouped` on tensors in files: what it reads, what it writes, and what it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "cli/compute/random.h"
#include "cli/files/tensor_file.h"
#include "run_cli.h"

namespace warpwright::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// Of a tensor: the matrix (or vector) `index` of those along its first dimension.
HostTensor part(const HostTensor& t, std::int64_t index) {
  const std::size_t size = t.bytes.size() / static_cast<std::size_t>(t.shape[0]);
  const auto* first = t.bytes.data() + static_cast<std::size_t>(index) * size;
  return {t.dtype, {t.shape.begin() + 1, t.shape.end()}, {first, first + size}};
}

// Rows [begin, end) of a matrix.
HostTensor rows(const HostTensor& t, std::int64_t begin, std::int64_t end) {
  const std::int64_t row = static_cast<std::int64_t>(t.bytes.size()) / t.shape[0];
  return {t.dtype,
          {end - begin, t.shape[1]},
          {t.bytes.data() + begin * row, t.bytes.data() + end * row}};
}

class GroupedFiles : public testing::Test {
 protected:
  static constexpr std::int64_t total = 64, groups = 4, n = 72, k = 160;
  const std::vector<std::int64_t> lengths = {16, 0, 3, 40};

  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              (std::string("warpwright_grouped_files_") +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  [[nodiscard]] std::string in(const std::string& name) const {
    return path("t.safetensors") + ":" + name;
  }
  std::string write(const std::string& name, const HostTensor& tensor) const {
    write_tensor(in(name), tensor);
    return in(name);
  }
  // X and W as x and w of t.safetensors.
  void write_operands(DType x, DType w) const {
    write("x", random_normal(x, {total, k}, 7, 1));
    write("w", random_normal(w, {groups, n, k}, 7, 2));
  }
  // Integers as a .npy file, int32 or int64.
  [[nodiscard]] std::string write_integers(const std::string& name, int bits,
                                           const std::vector<std::int64_t>& values) const {
    std::string header = std::string("{'descr': '<i") + (bits == 64 ? "8" : "4") +
                         "', 'fortran_order': False, 'shape': (" + std::to_string(values.size()) +
                         ",), }";
    header.resize(117, ' ');
    header += '\n';
    std::ofstream file(path(name), std::ios::binary);
    file << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size()) << '\0'
         << header;
    for (const std::int64_t v : values) file.write(reinterpret_cast<const char*>(&v), bits / 8);
    return path(name);
  }
  // The same as tensor "t" of a .safetensors file.
  [[nodiscard]] std::string write_named_integers(const std::string& name, int bits,
                                                 const std::vector<std::int64_t>& values) const {
    const auto bytes = values.size() * static_cast<std::size_t>(bits) / 8;
    std::string header = std::string(R"({"t":{"dtype":"I)") + std::to_string(bits) +
                         R"(","shape":[)" + std::to_string(values.size()) +
                         R"(],"data_offsets":[0,)" + std::to_string(bytes) + "]}}";
    const std::uint64_t length = header.size();
    std::ofstream file(path(name), std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), 8);
    file << header;
    for (const std::int64_t v : values) file.write(reinterpret_cast<const char*>(&v), bits / 8);
    return path(name) + ":t";
  }

  [[nodiscard]] CliResult grouped(const Words& more) const {
    Words all = {"grouped", "--a", in("x"), "--b", in("w")};
    all.insert(all.end(), more.begin(), more.end());
    return run_cli(all);
  }
  void refused(const Words& more, const std::string& sentence) const {
    const CliResult r = grouped(more);
    EXPECT_EQ(r.status, 2) << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_TRUE(contains(r.err, sentence)) << sentence << " in " << r.err;
  }
  // `gemm` of each group's rows gives the same bits as D has, and rows in no group are zeros.
  void expect_groups_as_by_gemm(const HostTensor& y, const Words& words,
                                const std::vector<std::string>& scales = {}) const {
    ASSERT_EQ(y.shape, (std::vector<std::int64_t>{total, n}));
    const HostTensor x = read_tensor(in("x"));
    const HostTensor w = read_tensor(in("w"));
    std::int64_t begin = 0;
    for (std::size_t g = 0; g < lengths.size(); ++g) {
      const std::int64_t end = begin + lengths[g];
      if (begin == end) continue;
      Words gemm = {"gemm",
                    "--a",
                    write("a", rows(x, begin, end)),
                    "--b",
                    write("b", part(w, static_cast<std::int64_t>(g))),
                    "--out",
                    in("d")};
      gemm.insert(gemm.end(), words.begin(), words.end());
      if (!scales.empty()) {
        const HostTensor sx = read_tensor(in(scales[0]));
        const HostTensor sw = read_tensor(in(scales[1]));
        gemm.insert(gemm.end(), {"--scale-a", write("sa", rows(sx, begin, end)), "--scale-b",
                                 write("sb", part(sw, static_cast<std::int64_t>(g)))});
      }
      const CliResult r = run_cli(gemm);
      ASSERT_EQ(r.status, 0) << r.err;
      const HostTensor d = read_tensor(in("d"));
      EXPECT_EQ(d.dtype, y.dtype);
      EXPECT_EQ(d.bytes, rows(y, begin, end).bytes) << "group " << g;
      begin = end;
    }
    const HostTensor rest = rows(y, begin, total);
    EXPECT_TRUE(std::all_of(rest.bytes.begin(), rest.bytes.end(),
                            [](std::byte b) { return b == std::byte{0}; }));
  }

 private:
  fs::path folder_;
};

TEST_F(GroupedFiles, EveryGroupIsTheProductThatGemmGives) {
  for (const auto& [x, w] : {std::pair{DType::bf16, DType::bf16},
                             {DType::e4m3, DType::e4m3},
                             {DType::f32, DType::f32},
                             {DType::f16, DType::bf16}}) {
    write_operands(x, w);
    const CliResult r = grouped({"--tokens", "16,0,3,40", "--out", in("y"), "--check"});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_TRUE(contains(r.err, "check: PASS. All 4248 elements are right")) << r.err;
    EXPECT_TRUE(contains(r.err, " Of 5 rows in no group none was written.\n")) << r.err;
    EXPECT_EQ(contains(r.err, "note: A is fp16 in its file and is rounded to bf16."),
              x == DType::f16 && w == DType::bf16)
        << r.err;
    const bool same = x == w && x != DType::f32;
    expect_groups_as_by_gemm(read_tensor(in("y")), same ? Words{} : Words{"--dtype", "bf16"});
  }
}

TEST_F(GroupedFiles, TypesAndScalesOfFiles) {
  write_operands(DType::e4m3, DType::e4m3);
  write("sx", random_scales({total, (k + 127) / 128}, 7, 3));
  write("sw", random_scales({groups, (n + 127) / 128, (k + 127) / 128}, 7, 4));
  const Words block = {"--tokens",  "16,0,3,40", "--scaling", "block", "--scale-a", in("sx"),
                       "--scale-b", in("sw"),    "--out",     in("y"), "--check"};
  const CliResult r = grouped(block);
  EXPECT_EQ(r.status, 0) << r.err;
  expect_groups_as_by_gemm(read_tensor(in("y")), {"--scaling", "block"}, {"sx", "sw"});

  // A scale of each group, and one of X for all of them: as large as with a scale for each.
  write("one", random_scales({1}, 7, 5));
  HostTensor all{DType::f32, {groups}, {}};
  for (int g = 0; g < groups; ++g) {
    const HostTensor one = read_tensor(in("one"));
    all.bytes.insert(all.bytes.end(), one.bytes.begin(), one.bytes.end());
  }
  write("all", all);
  write("each", random_scales({groups, 1}, 7, 6));
  std::vector<HostTensor> results;
  for (const char* of_x : {"one", "all"}) {
    const CliResult group =
        grouped({"--tokens", "16,0,3,40", "--scaling", "group", "--scale-a", in(of_x), "--scale-b",
                 in("each"), "--out", in("y"), "--check"});
    EXPECT_EQ(group.status, 0) << group.err;
    results.push_back(read_tensor(in("y")));
  }
  EXPECT_EQ(results[0].bytes, results[1].bytes);
  // Values are rounded to --dtype, as `gemm` does.
  write_operands(DType::f32, DType::bf16);
  const CliResult rounded =
      grouped({"--tokens", "16,0,3,40", "--dtype", "e4m3", "--out", in("y"), "--check"});
  EXPECT_EQ(rounded.status, 0) << rounded.err;
  EXPECT_TRUE(contains(rounded.err, "note: B is bf16 in its file and is rounded to e4m3."))
      << rounded.err;
  expect_groups_as_by_gemm(read_tensor(in("y")), {"--dtype", "e4m3"});
}

TEST_F(GroupedFiles, LengthsAndOffsetsOfFiles) {
  write_operands(DType::bf16, DType::bf16);
  ASSERT_EQ(grouped({"--tokens", "16,0,3,40", "--out", in("y")}).status, 0);
  const HostTensor y = read_tensor(in("y"));
  const std::vector<std::int64_t> offsets = {0, 16, 16, 19, 59};
  for (const int bits : {32, 64}) {
    for (const Words& more :
         {Words{"--tokens", write_integers("l.npy", bits, lengths)},
          Words{"--tokens", write_named_integers("l.safetensors", bits, lengths)},
          Words{"--offsets", write_integers("o.npy", bits, offsets)},
          Words{"--offsets", write_named_integers("o.safetensors", bits, offsets)}}) {
      Words all = more;
      all.insert(all.end(), {"--out", in("z"), "--json", "--check"});
      const CliResult r = grouped(all);
      EXPECT_EQ(r.status, 0) << r.err;
      EXPECT_TRUE(contains(r.out, std::string("\"offsets\": \"int") +
                                      (bits == 64 && more[0] == "--offsets" ? "64" : "32")))
          << r.out;
      EXPECT_EQ(read_tensor(in("z")).bytes, y.bytes) << testing::PrintToString(more);
    }
  }
  // They serve random tensors too.
  const CliResult r = run_cli({"grouped", "--groups", "4", "--n", "72", "--k", "64", "--offsets",
                               write_integers("o.npy", 64, offsets), "--check"});
  EXPECT_EQ(r.status, 0) << r.err;
}

// Those who speak of X, W and Y may.
TEST_F(GroupedFiles, SecondNames) {
  write_operands(DType::e4m3, DType::e4m3);
  write("sx", random_scales({total, 1}, 7, 3));
  write("sw", random_scales({groups, n, 1}, 7, 4));
  std::vector<HostTensor> results;
  for (const Words& names : {Words{"--a", "--b", "--scale-a", "--scale-b", "--d-dtype"},
                             Words{"--x", "--w", "--scale-x", "--scale-w", "--y-dtype"}}) {
    const CliResult r = run_cli({"grouped", names[0], in("x"), names[1], in("w"), "--scaling",
                                 "row-column", names[2], in("sx"), names[3], in("sw"), names[4],
                                 "bf16", "--tokens", "16,0,3,40", "--out", in("y"), "--check"});
    EXPECT_EQ(r.status, 0) << r.err;
    results.push_back(read_tensor(in("y")));
  }
  EXPECT_EQ(results[0].bytes, results[1].bytes);
}

// C and a bias of files: as large as D, and one for each group.
TEST_F(GroupedFiles, WhatIsAddedToTheProduct) {
  write_operands(DType::bf16, DType::bf16);
  write("c", random_normal(DType::bf16, {total, n}, 7, 3));
  write("bias", random_normal(DType::f32, {groups, n}, 7, 4));
  const auto added = [&](const std::string& c, const std::string& bias) {
    return Words{"--tokens", "16,0,3,40",           "--beta", "-0.5",  "--c",    in(c),
                 "--bias",   "columns=" + in(bias), "--out",  in("y"), "--check"};
  };
  const CliResult r = grouped(added("c", "bias"));
  EXPECT_EQ(r.status, 0) << r.err;
  refused(added("x", "bias"), "C (" + in("x") + ") is 64x160; it must be as large as D: 64x72.");
  refused(added("c", "x"), "for these matrices it must be 4x72x1, or 72x1.");
}

TEST_F(GroupedFiles, NpyHoldsWhatItCan) {
  const HostTensor x = random_normal(DType::f16, {total, k}, 7, 1);
  const HostTensor w = random_normal(DType::f16, {groups, n, k}, 7, 2);
  write_tensor(path("x.npy"), x);
  write_tensor(path("w.npy"), w);
  const auto into = [&](const std::string& out) {
    return run_cli({"grouped", "--a", path("x.npy"), "--b", path("w.npy"), "--tokens", "16,0,3,40",
                    "--dtype", "bf16", "--out", out});
  };
  const CliResult r = into(path("y.npy"));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "note: D is bf16, which .npy does not have")) << r.err;
  const HostTensor y = read_tensor(path("y.npy"));
  EXPECT_EQ(y.dtype, DType::f32);
  const CliResult exact = into(in("y"));
  EXPECT_EQ(exact.status, 0) << exact.err;
  EXPECT_FALSE(contains(exact.err, "note: D")) << exact.err;
  EXPECT_EQ(read_tensor(in("y")).dtype, DType::bf16);
  EXPECT_EQ(y.bytes, convert(read_tensor(in("y")), DType::f32).bytes);
}

TEST_F(GroupedFiles, RefusesWhatDoesNotFit) {
  write_operands(DType::bf16, DType::bf16);
  const Words tokens = {"--tokens", "16,0,3,40"};
  const auto with = [&](const Words& more) {
    Words all = tokens;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  refused({}, "--tokens is missing");
  refused({"--tokens", "16,0,3"}, "lists 3 lengths and there are 4 groups");
  refused({"--tokens", "16,0,3,46"}, "65 tokens in all, and the number of A's rows is 64: ");
  refused(with({"--groups", "4"}),
          "Files and numbers do not go together: leave --groups out, or --a, --b and --c.");
  refused(with({"--total", "70"}), "leave --total out, or --a");
  refused(with({"--scale-a", in("x")}), "--scale-a is given without --scaling");
  refused(with({"--dtype", "e4m3", "--scaling", "tensor"}), "The scales of A are missing");
  refused(with({"--dtype", "e4m3", "--scaling", "tensor", "--scale-a", in("x")}),
          "scale_a (" + in("x") + ") is 64x160; for these matrices it must be 1x1.");
  refused(with({"--out", path("none/y.npy")}), "D cannot be written to ");
  refused(with({"--out", path("y.txt")}), "is no tensor file that is understood");
  // Integers.
  refused({"--tokens", in("x")}, "has type BF16; the types that are read as integers are I32");
  write_tensor(path("f.npy"), random_normal(DType::f32, {4}, 1, 1));
  refused({"--tokens", path("f.npy")}, "read as integers are int32 ('<i4') and int64 ('<i8')");
  refused({"--tokens", write_integers("i.npy", 32, {1, 2, 3})},
          "has 3 integers; there are 4 groups, each with a length: the nearest legal shape is 4.");
  refused({"--tokens", write_integers("i.npy", 32, {1, 2, 3, -1})}, "a length of -1");
  const auto offsets = [&](const std::vector<std::int64_t>& values) {
    return Words{"--offsets", write_integers("i.npy", 64, values)};
  };
  refused(offsets({0, 1, 2, 3}), "has 4 integers; there are 5, one more than there are groups");
  refused(offsets({1, 1, 2, 3, 4}), "has 1 in place 0; the first group begins at row 0");
  refused(offsets({0, 5, 4, 6, 7}), "has 4 in place 2; offsets do not decrease");
  refused(offsets({0, 5, 5, 6, 65}), "has 65 in place 4; A has 64 rows");
  Words both = offsets({0, 5, 5, 6, 7});
  both.insert(both.end(), {"--tokens", "1"});
  refused(both, "both say how long the groups are");

  const auto expect = [](const Words& words, const std::string& sentence) {
    const CliResult r = run_cli(words);
    EXPECT_EQ(r.status, 2) << r.err;
    EXPECT_TRUE(contains(r.err, sentence)) << sentence << " in " << r.err;
  };
  expect({"grouped", "--a", in("x"), "--tokens", "1"}, "B is missing: give both --a FILE and --b");
  expect({"grouped", "--w", in("w"), "--tokens", "1"}, "A is missing");
  expect({"grouped", "--x", in("x"), "--w", in("x"), "--tokens", "1"},
         "B (" + in("x") +
             ") has 2 dimensions (shape 64x160); it must have 3, a matrix for each group: the "
             "nearest legal shape is 1x64x160.");
  expect({"grouped", "--x", in("w"), "--w", in("w"), "--tokens", "1"},
         "A (" + in("w") +
             ") has 3 dimensions (shape 4x72x160); it must have 2: the nearest legal shape is "
             "288x160.");
  write("v", random_normal(DType::bf16, {groups, n, k + 8}, 7, 2));
  expect({"grouped", "--x", in("x"), "--w", in("v"), "--tokens", "1"},
         "both K and must agree: the nearest legal B is 4x72x160.");
  expect({"grouped", "--x", in("nothing"), "--w", in("w"), "--tokens", "1"}, "A: ");
}

// The output stays as it was unless D is complete and right.
TEST_F(GroupedFiles, NothingIsWrittenOfARunThatFailed) {
  write_operands(DType::bf16, DType::bf16);
  const CliResult r = grouped({"--tokens", "16,0,3,40", "--bad-offsets", "beyond",
                               "--check-offsets", "--out", path("y.npy")});
  EXPECT_EQ(r.status, 1) << r.err;
  EXPECT_TRUE(contains(r.err, "Nothing was written to " + path("y.npy"))) << r.err;
  EXPECT_FALSE(fs::exists(path("y.npy")));
}

TEST_F(GroupedFiles, TheOtherCommandsReadThem) {
  write_operands(DType::bf16, DType::bf16);
  const auto with = [&](Words first, const Words& more) {
    first.insert(first.end(), {"grouped", "--a", in("x"), "--b", in("w"), "--tokens", "16,0,3,40"});
    first.insert(first.end(), more.begin(), more.end());
    return run_cli(first);
  };
  const CliResult explained = with({"explain"}, {"--as", "h200"});
  EXPECT_EQ(explained.status, 0) << explained.err;
  EXPECT_TRUE(
      contains(explained.out, "4 groups (1 empty) of up to 40 tokens, 59 in all and 5 rows"))
      << explained.out;
  const CliResult checked = with({"check"}, {"--schedules", "2", "--sms", "2"});
  EXPECT_EQ(checked.status, 0) << checked.err;
  EXPECT_TRUE(contains(checked.out, "under 2 schedules: no findings.")) << checked.out;
  const CliResult traced = with({"trace"}, {"--svg", path("t.svg")});
  EXPECT_EQ(traced.status, 0) << traced.err;
  EXPECT_TRUE(fs::exists(path("t.svg")));
}

}  // namespace
}  // namespace warpwright::cli
