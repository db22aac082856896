// Files of tensors for tests, each test with a folder of its own.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cli/files/tensor_file.h"
#include "tests/own_folder.h"

namespace warpwright::cli {

namespace fs = std::filesystem;

inline std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>((value >> (8 * i)) & 0xff);
  return text;
}

// A .npy file as its format describes it.
inline std::string npy_text(const std::string& header, const std::string& data, int major = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(major);
  text += '\0';
  return text + little_endian(header.size(), major == 1 ? 2 : 4) + header + data;
}

// A .safetensors file.
inline std::string st_text(const std::string& header, const std::string& data) {
  return little_endian(header.size(), 8) + header + data;
}

inline HostTensor make_tensor(DType dtype, std::vector<std::int64_t> shape, unsigned seed = 1) {
  HostTensor t{dtype, std::move(shape), {}};
  t.bytes.resize(static_cast<std::size_t>(t.elements()) *
                 static_cast<std::size_t>(numeric::bits(dtype) / 8));
  std::mt19937 random(seed);
  for (std::byte& b : t.bytes) b = static_cast<std::byte>(random() & 0xff);
  return t;
}

inline void expect_same(const HostTensor& a, const HostTensor& b) {
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_TRUE(a.bytes == b.bytes);
}

// A correction of one leaf.
inline std::string correction_text(const std::string& leaf) {
  return "warpwright-correction 1\nfeatures tensor\ntree =" + leaf + "\n";
}

// A folder of its own for every test.
class TensorFolder : public ::testing::Test {
 protected:
  explicit TensorFolder(const fs::path& place = fs::temp_directory_path()) : own_(place) {}

  std::string path(const std::string& name) const { return own_.path(name); }
  std::string put(const std::string& name, const std::string& content) const {
    return own_.put(name, content);
  }
  std::string get(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  int files() const { return static_cast<int>(std::distance(fs::directory_iterator(folder_), {})); }

  // The one sentence that refuses `action`; it must hold every one of `parts`.
  template <class Action>
  static void expect_refusal(Action action, const std::vector<std::string>& parts) {
    try {
      action();
    } catch (const InputError& error) {
      const std::string text = error.what();
      for (const std::string& part : parts) {
        EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" in: " << text;
      }
      EXPECT_EQ(text.back(), '.') << text;
      return;
    }
    ADD_FAILURE() << "nothing was refused where \"" << parts.front() << "\" was due";
  }
  void expect_unreadable(const std::string& name, const std::string& content,
                         const std::vector<std::string>& parts, const std::string& tensor = "") {
    const std::string where = put(name, content) + (tensor.empty() ? "" : ":" + tensor);
    expect_refusal([&] { read_tensor(where); }, parts);
  }

  OwnFolder own_;
  const fs::path& folder_ = own_.path();
};

}  // namespace warpwright::cli
