// A place in the source, carried by every instruction so that reports can name it.
#pragma once

namespace warpwright::model {

/// `file` relative to the folder that this header's own name begins from: the project's, or the one
/// where it is installed. What lies elsewhere keeps its name, so that no report depends on where
/// the project was built.
constexpr const char* in_project(const char* file) {
  constexpr const char* self = __FILE__;
  constexpr int root = static_cast<int>(sizeof __FILE__ - sizeof "warpwright/model/report/site.h");
  for (int i = 0; i < root; ++i) {
    if (file[i] != self[i]) return file;
  }
  return file + root;
}

/// File and line of the kernel statement that issued an instruction. Used as a default argument,
/// `Site site = Site::here()`, it names the caller.
struct Site {
  const char* file = "";
  int line = 0;

  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {in_project(file), line};
  }
};

}  // namespace warpwright::model
