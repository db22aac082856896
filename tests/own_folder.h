// A folder for what a test writes: of its own, and gone with it.
#pragma once

#include <stdlib.h>  // NOLINT: for mkdtemp

#include <filesystem>
#include <fstream>
#include <ios>
#include <stdexcept>
#include <string>

namespace warpwright {

class OwnFolder {
 public:
  explicit OwnFolder(const std::filesystem::path& place = std::filesystem::temp_directory_path()) {
    std::string name = (place / "warpwright-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder is made: " + name);
    path_ = name;
  }
  ~OwnFolder() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string path(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file, and says where it is.
  std::string put(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace warpwright
