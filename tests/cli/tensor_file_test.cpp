#include "cli/files/tensor_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "cli/files/npy.h"
#include "cli/files/safetensors.h"
#include "tests/cli/tensor_folder.h"
#include "tests/must.h"

namespace warpwright::cli {
namespace {

using TensorFile = TensorFolder;

TEST(TensorSpec, SplitsAtTheLastMarker) {
  EXPECT_EQ(parse_spec("a/b.npy").path, "a/b.npy");
  EXPECT_EQ(parse_spec("a/b.npy").kind, TensorSpec::Kind::npy);
  const TensorSpec plain = parse_spec("m.safetensors:layers.0.w:q");
  EXPECT_EQ(plain.path, "m.safetensors");
  EXPECT_EQ(plain.tensor, "layers.0.w:q");
  const TensorSpec twice = parse_spec("a:b.safetensors:c.safetensors:d.npy");
  EXPECT_EQ(twice.kind, TensorSpec::Kind::safetensors);
  EXPECT_EQ(twice.path, "a:b.safetensors:c.safetensors");
  EXPECT_EQ(twice.tensor, "d.npy");
  EXPECT_THROW(parse_spec("m.safetensors"), InputError);
  EXPECT_THROW(parse_spec("m.safetensors:"), InputError);
  EXPECT_THROW(parse_spec("m.bin"), InputError);
  EXPECT_THROW(parse_spec(""), InputError);
}

TEST_F(TensorFile, NpyRoundTrip) {
  const std::vector<std::vector<std::int64_t>> shapes = {{}, {5}, {3, 4}, {0, 7}, {2, 3, 4, 5}};
  for (const DType t : {DType::f32, DType::f16}) {
    for (const auto& shape : shapes) {
      const HostTensor tensor = make_tensor(t, shape);
      write_tensor(path("x.npy"), tensor);
      expect_same(read_tensor(path("x.npy")), tensor);
    }
  }
  EXPECT_EQ(files(), 1) << "a temporary file was left";
}

TEST_F(TensorFile, NpyIsWrittenAsNumpyWritesIt) {
  HostTensor tensor = make_tensor(DType::f32, {2, 3});
  write_tensor(path("x.npy"), tensor);
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  header.resize(117, ' ');
  header += '\n';
  EXPECT_EQ(get("x.npy"), npy_text(header, text_of(tensor.bytes)));
  tensor.shape = {6};
  write_tensor(path("x.npy"), tensor);
  expect_contains(get("x.npy"), "'shape': (6,), }");
  EXPECT_EQ(get("x.npy").find('\n') % 64, 63u);
}

TEST_F(TensorFile, NpyReadsEveryVersionAndSpelling) {
  const std::string data("\x00\x00\x80\x3f\x00\x00\x00\x40", 8);
  for (const int major : {1, 2, 3}) {
    put("x.npy",
        npy_text("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }  \n", data, major));
    const HostTensor t = read_tensor(path("x.npy"));
    EXPECT_EQ(t.dtype, DType::f32);
    EXPECT_EQ(t.shape, std::vector<std::int64_t>{2});
    EXPECT_EQ(text_of(t.bytes), data);
  }
  put("x.npy", npy_text("{\"shape\":(2L,2L),\"fortran_order\":False,\"descr\":\"<f2\"}", data));
  EXPECT_EQ(read_tensor(path("x.npy")).shape, (std::vector<std::int64_t>{2, 2}));
}

TEST_F(TensorFile, NpyColumnMajorIsTransposed) {
  // Element (i, j, k) of a 2x3x2 array is the code 16 i + 4 j + k, stored first index fastest.
  std::string data;
  for (int k = 0; k < 2; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) data += little_endian(16 * i + 4 * j + k, 2);
    }
  }
  put("x.npy", npy_text("{'descr': '<f2', 'fortran_order': True, 'shape': (2, 3, 2)}", data));
  std::string want;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 2; ++k) want += little_endian(16 * i + 4 * j + k, 2);
    }
  }
  EXPECT_EQ(text_of(read_tensor(path("x.npy")).bytes), want);
  put("x.npy",
      npy_text("{'descr': '|i1', 'fortran_order': False, 'shape': (2, 2)}", "\xff\x01\x7f\x80"));
  EXPECT_EQ(read_tensor(path("x.npy")).dtype, DType::s8);
  EXPECT_EQ(text_of(read_tensor(path("x.npy")).bytes), "\xff\x01\x7f\x80");
  put("x.npy", npy_text("{'descr': '<f2', 'fortran_order': True, 'shape': (0, 3)}", ""));
  EXPECT_TRUE(read_tensor(path("x.npy")).bytes.empty());
}

TEST_F(TensorFile, NpyRefusals) {
  const std::string four(4, '\0');
  const auto header = [](const std::string& descr, const std::string& shape) {
    return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  };
  expect_unreadable("x.npy", npy_text(header(">f4", "(1,)"), four), {"big-endian", "<f4", "<f2"});
  expect_unreadable("x.npy", npy_text(header("<f8", "(1,)"), four + four), {"'<f8'", "'<f4'"});
  expect_unreadable("x.npy", npy_text(header("<V2", "(2,)"), four), {"bfloat16", ".safetensors"});
  expect_unreadable("x.npy", npy_text("{'descr': [('a', '<f4')], }", four), {"records"});
  expect_unreadable("x.npy", npy_text(header("<f4", "(2,)"), four), {"cut short", "4 bytes"});
  expect_unreadable("x.npy", npy_text(header("<f4", "(1,)"), four + "x"), {"to spare"});
  expect_unreadable("x.npy", npy_text(header("<f4", "(-1,)"), four), {"dimension 0"});
  expect_unreadable("x.npy", npy_text(header("<f4", "(9223372036854775808,)"), four), {"2^63"});
  expect_unreadable("x.npy", npy_text(header("<f4", "(4611686018427387905, 4)"), four),
                    {"4611686018427387905x4", "more than 2^48 elements"});
  expect_unreadable("x.npy", npy_text(header("<f4", "(0, 1048577, 268435456)"), ""),
                    {"more than 2^48 elements"});
  expect_unreadable("x.npy", npy_text(header("<f4", "(1048576, 268435456)"), four), {"cut short"});
  expect_unreadable("x.npy", npy_text(header("<f4", "(1,") + ")", four), {"header"});
  expect_unreadable("x.npy", npy_text(header("<f4", "1"), four), {"lacks '('"});
  expect_unreadable("x.npy", npy_text("{'descr': '<f4', 'descr': '<f4'}", four), {"descr"});
  expect_unreadable("x.npy", npy_text("{'descr': '<f4', 'shape': (1,)}", four),
                    {"lacks the key 'fortran_order'"});
  expect_unreadable("x.npy", npy_text("{'shape': (1,), 'fortran_order': False}", four),
                    {"lacks the key 'descr'"});
  expect_unreadable("x.npy", npy_text("{'descr': '<f4', 'fortran_order': False}", four),
                    {"lacks the key 'shape'"});
  expect_unreadable("x.npy", npy_text(header("<f4", "(1,)") + "x", four), {"closing brace"});
  expect_unreadable("x.npy", npy_text("{'descr: ", four), {"quoted word"});
  expect_unreadable("x.npy", npy_text("", ""), {"lacks '{'"});
  expect_unreadable("x.npy", "\x93NUMPX\x01", {"bytes"});
  expect_unreadable("x.npy", std::string("\x93NUMPX\x01\x00\x00\x00", 10), {"NUMPY"});
  expect_unreadable("x.npy", std::string("\x93NUMPY\x04\x00\x00\x00", 10), {"4.0", "1.0"});
  expect_unreadable("x.npy", std::string("\x93NUMPY\x02\x00\x00\x00", 10), {"length"});
  expect_unreadable("x.npy", std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{", 13),
                    {"4294967295", "1 behind"});
  expect_unreadable("x.npy", "", {"0 bytes"});
  const std::string deep = "(" + std::string(100, '1') + ")";
  expect_unreadable("x.npy", npy_text(header("<f4", deep), four), {"2^63"});
  std::string ones = "(";
  for (int i = 0; i < 33; ++i) ones += "1,";
  expect_unreadable("x.npy", npy_text(header("<f4", ones + ")"), four), {"more than 32"});

  expect_refusal([&] { read_tensor(path("none.npy")); }, {"none.npy", "No such file"});
  fs::create_directory(path("folder.npy"));
  expect_refusal([&] { read_tensor(path("folder.npy")); }, {"not a regular file"});
  expect_refusal([&] { write_tensor(path("b.npy"), make_tensor(DType::bf16, {2})); },
                 {"bf16", ".safetensors"});
}

TEST_F(TensorFile, SafetensorsRoundTrip) {
  const std::vector<std::vector<std::int64_t>> shapes = {{}, {5}, {3, 4}, {0, 7}, {2, 3, 4, 5}};
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2, DType::s8}) {
    for (const auto& shape : shapes) {
      const HostTensor tensor = make_tensor(t, shape);
      fs::remove(path("x.safetensors"));
      write_tensor(path("x.safetensors:a.b:c"), tensor);
      expect_same(read_tensor(path("x.safetensors:a.b:c")), tensor);
    }
  }
  EXPECT_EQ(files(), 1) << "a temporary file was left";
}

TEST_F(TensorFile, SafetensorsReadsAHandMadeFile) {
  put("x.safetensors",
      st_text(
          R"({"__metadata__":{"by":"hand"},"b":{"dtype":"I64","shape":[1],"data_offsets":[4,12]},)"
          R"("a":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]},)"
          R"("empty":{"dtype":"F32","shape":[0,3],"data_offsets":[4,4]}}   )",
          "\x01\x02\x03\x04"
          "ABCDEFGH"));
  const HostTensor t = read_tensor(path("x.safetensors:a"));
  EXPECT_EQ(t.dtype, DType::bf16);
  EXPECT_EQ(t.shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(text_of(t.bytes), "\x01\x02\x03\x04");
  EXPECT_TRUE(read_tensor(path("x.safetensors:empty")).bytes.empty());
  expect_refusal([&] { read_tensor(path("x.safetensors:b")); }, {"I64", "BF16"});
  EXPECT_EQ(safetensors_names(path("x.safetensors")),
            (std::vector<std::string>{"a", "empty", "b"}));
}

TEST_F(TensorFile, SafetensorsNamesTheNearestFirst) {
  for (const char* name : {"layer.10.weight", "layer.0.weight", "bias"}) {
    write_tensor(path("x.safetensors:") + name, make_tensor(DType::f16, {2}));
  }
  expect_refusal([&] { read_tensor(path("x.safetensors:layer.0.weigth")); },
                 {R"("layer.0.weight", "layer.10.weight", "bias".)"});
  for (int i = 0; i < 20; ++i) {
    write_tensor(path("x.safetensors:t") + std::to_string(i), make_tensor(DType::f16, {1}));
  }
  expect_refusal([&] { read_tensor(path("x.safetensors:t99")); }, {"and 15 more"});
}

TEST_F(TensorFile, SafetensorsKeepsWhatElseIsInTheFile) {
  put("x.safetensors",
      st_text(
          R"({"__metadata__":{"by":"hand"},"k":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
          R"("w":{"dtype":"F16","shape":[1],"data_offsets":[3,5]}})",
          "abcde"));
  const HostTensor first = make_tensor(DType::f32, {2, 2});
  const HostTensor second = make_tensor(DType::bf16, {3}, 2);
  write_tensor(path("x.safetensors:w"), first);
  write_tensor(path("x.safetensors:new"), second);
  expect_same(read_tensor(path("x.safetensors:w")), first);
  expect_same(read_tensor(path("x.safetensors:new")), second);
  EXPECT_EQ(safetensors_names(path("x.safetensors")), (std::vector<std::string>{"w", "new", "k"}))
      << "the widest elements come first, so that each is aligned";
  const std::string content = get("x.safetensors");
  expect_contains(content, R"("__metadata__":{"by":"hand"})");
  expect_contains(content, R"("k":{"dtype":"U8","shape":[3],"data_offsets":[22,25]})");
  EXPECT_TRUE(content.ends_with("abc"));
  EXPECT_EQ(
      (8 + static_cast<unsigned char>(content[0]) + 256 * static_cast<unsigned char>(content[1])) %
          8,
      0);
}

TEST_F(TensorFile, SafetensorsRefusals) {
  const auto one = [](const std::string& entry) { return "{\"t\":" + entry + "}"; };
  const auto bad = [&](const std::string& header, const std::string& data,
                       const std::vector<std::string>& parts) {
    expect_unreadable("x.safetensors", st_text(header, data), parts, "t");
  };
  const std::string eight(8, 'x');
  bad(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,9]})"), eight, {"ends at byte 9", "8"});
  bad(one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), eight, {"8 bytes", "3 of F32"});
  bad(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), eight, {"end at byte 4"});
  bad(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), eight, {"starts at byte 4"});
  bad(one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), eight, {"in order"});
  bad(one(R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})"), eight, {"pair of integers"});
  bad(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8.0]})"), eight, {"pair of integers"});
  bad(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]})"), eight,
      {"pair of integers"});
  bad(one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), eight, {"dimension"});
  bad(one(R"({"dtype":"F32","shape":[4611686018427387904,4611686018427387904],)"
          R"("data_offsets":[0,8]})"),
      eight, {"more than 2^48 elements"});
  bad(one(R"({"dtype":"F32","shape":[1048576,1048576],"data_offsets":[0,8]})"), eight,
      {"is not what shape"});
  // No elements, and dimensions whose product nobody can count.
  bad(one(R"({"dtype":"U8","shape":[0,1152921504606846976,16],"data_offsets":[0,0]})"), "",
      {"0x1152921504606846976x16", "more than 2^48 elements"});
  bad(one(R"({"dtype":"F4","shape":[3],"data_offsets":[0,8]})"), eight, {"F4 takes"});
  bad(one(R"({"dtype":"F33","shape":[2],"data_offsets":[0,8]})"), eight, {"unknown dtype", "F33"});
  bad(one(R"({"dtype":7,"shape":[2],"data_offsets":[0,8]})"), eight, {"dtype"});
  bad(one(R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})"), eight, {"shape"});
  bad(one(R"({"dtype":"F32","shape":[2]})"), eight, {"\"t\" lacks the field data_offsets"});
  bad(one(R"({"dtype":"F32","data_offsets":[0,8]})"), eight, {"\"t\" lacks the field shape"});
  bad(one(R"({"shape":[2],"data_offsets":[0,8]})"), eight, {"\"t\" lacks the field dtype"});
  bad(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"offset":8})"), eight,
      {"has the field \"offset\" beside dtype, shape and data_offsets"});
  bad(one(R"({"dtype":"F32","dtype":"F16","shape":[2],"data_offsets":[0,8]})"), eight,
      {"\"t\" has the field \"dtype\" twice"});
  bad(one("[]"), eight, {"no JSON object with the fields dtype, shape and data_offsets"});
  bad(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("u":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      eight, {"\"u\" starts at byte 0", "ends at 4"});
  bad(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      eight, {"twice"});
  bad(R"({"__metadata__":{"a":1}})", "", {"__metadata__"});
  bad(R"({"t":)", "", {"no JSON"});
  bad("[]", "", {"no JSON object"});
  bad("{}", "", {"empty"});
  bad(std::string(100000, '['), "", {"no JSON"});
  expect_unreadable("x.safetensors", "abc", {"3 bytes", "8 are the least"}, "t");
  expect_unreadable("x.safetensors", std::string(8, '\xff') + "{}", {"at most 2"}, "t");
  expect_unreadable("x.safetensors", little_endian(3, 8) + "{}", {"claims 3"}, "t");

  // A malformed file is not written over either.
  const std::string before = get("x.safetensors");
  const HostTensor tensor = make_tensor(DType::f32, {1});
  expect_refusal([&] { write_tensor(path("x.safetensors:t"), tensor); }, {"claims 3"});
  EXPECT_EQ(get("x.safetensors"), before);
  fs::remove(path("x.safetensors"));
  expect_refusal([&] { write_tensor(path("x.safetensors:__metadata__"), tensor); }, {"keeps"});
  expect_refusal([&] { write_tensor(path("x.safetensors:\xff"), tensor); }, {"UTF-8"});
  const HostTensor halves{DType::s4, {2}, std::vector<std::byte>(1)};
  expect_refusal([&] { write_tensor(path("x.safetensors:t"), halves); }, {"s4", "BF16"});
  EXPECT_EQ(files(), 0);
}

TEST_F(TensorFile, ATensorMustBeWhatItsShapeSays) {
  HostTensor tensor = make_tensor(DType::f32, {2, 2});
  tensor.shape = {2, 3};
  expect_refusal([&] { write_tensor(path("x.npy"), tensor); }, {"16 bytes", "2x3 of f32"});
  tensor.shape = {-2, -2};
  expect_refusal([&] { write_tensor(path("x.npy"), tensor); }, {"-2x-2"});
  EXPECT_EQ(files(), 0);
}

float f32_at(const HostTensor& t, std::size_t i) {
  float x = 0;
  std::memcpy(&x, t.bytes.data() + 4 * i, 4);
  return x;
}

TEST(Convert, RoundsToNearestEven) {
  HostTensor t{DType::f32, {6}, {}};
  const float values[] = {1.0f + 0x1p-8f, 1.0f + 0x1.8p-7f, -3.0f, 1e30f, -INFINITY, NAN};
  t.bytes.resize(sizeof(values));
  std::memcpy(t.bytes.data(), values, sizeof(values));
  const HostTensor bf16 = convert(t, DType::bf16);
  EXPECT_EQ(bf16.shape, t.shape);
  EXPECT_EQ(text_of(bf16.bytes).substr(0, 6), std::string("\x80\x3f\x82\x3f\x40\xc0", 6));
  const HostTensor f16 = convert(t, DType::f16);
  EXPECT_EQ(text_of(f16.bytes).substr(4), std::string("\x00\xc2\x00\x7c\x00\xfc\xff\x7f", 8));
  EXPECT_EQ(text_of(convert(t, DType::e4m3).bytes), "\x38\x38\xc4\x7e\xfe\x7f")
      << "fp8 saturates and keeps NaN";
  const HostTensor back = convert(convert(f16, DType::bf16), DType::f32);
  EXPECT_EQ(back.dtype, DType::f32);
  EXPECT_EQ(f32_at(back, 0), 1.0f);
  EXPECT_EQ(f32_at(back, 2), -3.0f);
  EXPECT_EQ(f32_at(back, 4), -INFINITY);
  EXPECT_TRUE(std::isnan(f32_at(back, 5)));
  EXPECT_THROW(convert(t, DType::e2m1), InputError);
  expect_same(convert(t, DType::f32), t);
  const HostTensor many = make_tensor(DType::f16, {3000});
  EXPECT_EQ(convert(many, DType::f32).bytes.size(), 12000u);
}

}  // namespace
}  // namespace warpwright::cli
