// libFuzzer targets (script/fuzz_files): whatever is in a file or a text, a reader takes it or
// refuses it with one sentence. FUZZ_TARGET says which reader.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>

#include "cli/compute/bench_shapes.h"
#include "cli/files/npy.h"
#include "cli/files/safetensors.h"
#include "warpwright/layout/text.h"
#include "warpwright/plan/tuning.h"

namespace warpwright {

// What lies beside the readers in their files and is never called here.
Result<Plan> plan(const GemmProblem& /*problem*/, const DeviceFacts& /*device*/,
                  const PlanChoices& /*choices*/) {
  std::abort();
}
GemmProblem packed_problem(std::int64_t /*m*/, std::int64_t /*n*/, std::int64_t /*k*/,
                           DType /*operands*/, DType /*result*/, bool /*in_place*/) {
  std::abort();
}
GemmProblem packed_grouped_problem(std::int64_t /*groups*/, std::int64_t /*tokens*/,
                                   std::int64_t /*n*/, std::int64_t /*k*/, DType /*operands*/,
                                   DType /*result*/) {
  std::abort();
}

namespace {

// A file of these bytes in memory, the same one for all inputs.
std::string file_of(const std::uint8_t* data, std::size_t size) {
  static const int file = memfd_create("input", 0);
  if (file < 0 || ftruncate(file, 0) != 0 ||
      pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) {
    std::perror("the input's file");
    std::abort();
  }
  return "/proc/self/fd/" + std::to_string(file);
}

// A tuning cache's lines with their checksums (plan/tuning.cpp): a fuzzer would guess none.
std::string summed(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::uint64_t sum = 0xcbf29ce484222325U;
    for (const char c : line) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    char word[20];
    std::snprintf(word, sizeof word, "\t%016llx\n", static_cast<unsigned long long>(sum));
    out += line + word;
  }
  return out;
}

void read(const std::uint8_t* data, std::size_t size) {
  const std::string target = FUZZ_TARGET;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (target == "npy") {
    // Both ways: floats, and integers.
    try {
      (void)cli::read_npy(file_of(data, size));
    } catch (const cli::InputError&) {
      (void)cli::read_npy_integers(file_of(data, size));
    }
  } else if (target == "safetensors") {
    const std::string path = file_of(data, size);
    for (const std::string& name : cli::safetensors_names(path)) {
      try {
        (void)cli::read_safetensors(path, name);
      } catch (const cli::InputError&) {
        (void)cli::read_safetensors_integers(path, name);
      }
    }
  } else if (target == "tuning") {
    const std::string lines = summed(text);
    const TuningCache cache(
        file_of(reinterpret_cast<const std::uint8_t*>(lines.data()), lines.size()));
    (void)cache.find({"gpu", "driver", "library", "problem"});
  } else if (target == "layout") {
    // The first byte chooses the grammar.
    const std::string_view rest = std::string_view(text).substr(size > 0 ? 1 : 0);
    switch (size > 0 ? data[0] % 4 : 0) {
      case 0:
        return (void)layout::size(layout::parse_layout(rest));
      case 1:
        return (void)layout::parse_composed_layout(rest);
      case 2:
        return (void)layout::parse_coordinate_tensor(rest);
      default:
        return (void)layout::parse_tuple(rest);
    }
  } else {
    std::istringstream in(text);
    (void)cli::parse_shapes(in, "input", size > 0 && data[0] % 2 == 1);
  }
}

}  // namespace
}  // namespace warpwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    warpwright::read(data, size);
  } catch (const warpwright::cli::InputError&) {
    // It is refused with a sentence.
  } catch (const std::invalid_argument&) {
    // A layout's way of refusing.
  }
  return 0;
}
