// A place in the source, carried by every instruction so that reports can name it.
#pragma once

namespace warpwright::model {

/// File and line of the kernel statement that issued an instruction. Used as a default argument,
/// `Site site = Site::here()`, it names the caller.
struct Site {
  const char* file = "";
  int line = 0;

  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace warpwright::model
