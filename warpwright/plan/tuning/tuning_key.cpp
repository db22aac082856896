// What an entry of a tuning cache holds for: the product as text, the GPU, its driver.
#include <fstream>
#include <string>
#include <type_traits>

#include "warpwright/facts/format.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/plan/tuning/tuning_file.h"

namespace warpwright {
namespace {

// One value of a product's fields.
template <class T>
std::string word_of(const T& value) {
  if constexpr (std::is_same_v<T, DType>) {
    return std::string(numeric::name(value));
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<int>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return format("%g", static_cast<double>(value));
  } else {
    return std::to_string(value);
  }
}

// The fields of a product: "a=bf16,64,4096,4096,1,1,0,16 ... scaling=0". What is not there is left
// out.
struct Text {
  std::string& out;
  bool is_part = false;  // of a matrix, groups or packed weights: only values

  template <class T>
  void operator()(const char* name, const T& value) const {
    if constexpr (requires { value.has_value(); }) {
      if (value) (*this)(name, *value);
    } else if constexpr (requires { for_each_field(value, *this); }) {
      if (value == T{} && std::is_same_v<T, PlannedMatrix>) return;
      out += std::string(" ") + name + "=";
      for_each_field(value, Text{out, true});
    } else {
      if (!is_part) {
        out += std::string(" ") + name + "=";
      } else if (out.back() != '=') {
        out += ",";
      }
      out += word_of(value);
    }
  }
};

// A device's own name, whichever number it has here.
std::string gpu_name(const DeviceFacts& device) {
  const std::size_t space = device.name.find(' ');
  return device.name.starts_with("cuda:") && space != std::string::npos
             ? device.name.substr(space + 1)
             : device.name;
}

}  // namespace

std::string problem_text(const GemmProblem& problem) {
  std::string text;
  for_each_field(normalised(problem), Text{text});
  return text.substr(1);
}

std::string nvidia_driver_version() {
  std::string text;
  if (std::ifstream file("/sys/module/nvidia/version"); file >> text) return text;
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159  <date>": the first word of digits.
  std::ifstream file("/proc/driver/nvidia/version");
  while (file >> text) {
    if (text.find_first_not_of("0123456789.") == std::string::npos &&
        text.find('.') != std::string::npos) {
      return text;
    }
  }
  return "unknown";
}

TuningKey tuning_key(const GemmProblem& problem, const DeviceFacts& device, bool batch_invariant) {
  // As the file keeps it, so that a key is found again.
  return {tuning_file::field(gpu_name(device)), tuning_file::field(nvidia_driver_version()),
          WARPWRIGHT_VERSION,
          tuning_file::field(problem_text(problem) + (batch_invariant ? " batch_invariant" : ""))};
}

}  // namespace warpwright
