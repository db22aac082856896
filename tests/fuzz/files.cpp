// libFuzzer targets (script/fuzz_files): whatever is in a file or a text, a reader takes it or
// refuses it with one sentence. FUZZ_TARGET says which reader.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/compute/bench_shapes.h"
#include "cli/files/checkpoint.h"
#include "cli/files/npy.h"
#include "cli/files/safetensors.h"
#include "tests/fuzz/checkpoint_tensors.h"
#include "warpwright/layout/text.h"
#include "warpwright/plan/tuning/tuning.h"
#include "warpwright/weights/fp8.h"
#include "warpwright/weights/pack.h"
#include "warpwright/weights/source.h"

namespace warpwright {

// What lies beside the readers in their files and is never called here.
GemmProblem normalised(GemmProblem /*problem*/) {
  std::abort();
}
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

std::optional<Refusal> expect_lengths(Groups& /*groups*/, std::string_view /*name*/,
                                      std::string_view /*words*/) {
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

// A tuning cache's lines with their checksums (plan/tuning/tuning.cpp): a fuzzer would guess none.
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

// A packed tensor of these bytes, its two sums mended: the reader's own checks are behind them.
void read_packed(const std::uint8_t* data, std::size_t size) {
  const auto* const first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first, first + size);
  if (size >= packed::kHeaderBytes) {
    const auto put = [&](std::size_t at, std::span<const std::byte> of) {
      const std::uint64_t sum = weights::sum_of(of, 1);
      std::memcpy(bytes.data() + at, &sum, sizeof sum);
    };
    put(80, std::span(bytes).subspan(packed::kHeaderBytes));
    put(120, std::span(bytes).first(120));
  }
  const auto header = weights::parse_header(bytes);
  const auto read = weights::unpack(bytes, {.threads = 1});
  if (!read) return;
  // What was read is packed again to the same tiles, but for scales of 0 and such that nobody
  // packs.
  const weights::Source source = weights::source_of(*read);
  static_cast<void>(weights::as_fp8(source, {.threads = 1}));
  static_cast<void>(weights::pack(source, {.tokens = header->format.tokens}, {.threads = 1}));
}

void read_checkpoint(const std::string& path) {
  const cli::SafetensorsFile file(path);
  // Those called "e." are experts with numbers.
  const bool numbered =
      std::ranges::any_of(file.tensors(), [](const auto& t) { return t.name.starts_with("e."); });
  const cli::FoundWeights found = cli::find_weights(file, numbered ? "e.*" : "", "");
  const cli::LoadedWeights loaded = cli::load_weights(file, found);
  if (found.layout.empty()) {
    static_cast<void>(weights::quantise(loaded.floats, {.group = 32}, {.threads = 1}));
    return;
  }
  if (found.is_micro) {
    const auto source = weights::read_checkpoint(found.layout, loaded.tensors);
    if (!source) return;
    // All that is said to be there is read.
    const auto [experts, n, k] = source->extents;
    const std::int64_t count = source->blocks_of_128 ? (n + 127) / 128 * ((k + 127) / 128)
                                                     : n * k / micro_block(source->format->scale);
    const auto bytes = static_cast<std::size_t>(n * k * numeric::bits(source->format->element) / 8);
    const auto scales = static_cast<std::size_t>(count * numeric::bits(source->scale) / 8);
    std::vector<std::byte> copy(bytes + scales);
    for (const auto& expert : source->experts) {
      std::memcpy(copy.data(), expert.codes, bytes);
      std::memcpy(copy.data() + bytes, expert.scales, scales);
    }
    // And what is packed of it is what it says.
    for (const DType tokens : {DType::e4m3, DType::bf16, DType::f16}) {
      static_cast<void>(weights::pack(*source, {.tokens = tokens}, {.threads = 1}));
    }
    static_cast<void>(weights::as_fp8(*source, {.threads = 1}));
    return;
  }
  const auto source = weights::read_checkpoint(found.layout, loaded.tensors);
  if (source) static_cast<void>(weights::pack(*source, {}, {.threads = 1}));
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
  } else if (target == "packed") {
    read_packed(data, size);
  } else if (target == "checkpoint") {
    read_checkpoint(file_of(data, size));
  } else if (target == "tensors") {
    fuzz::read_tensors(data, size);
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
    const auto kind = static_cast<cli::BenchKind>(size > 0 ? data[0] % 3 : 0);
    (void)cli::parse_shapes(in, "input", kind);
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
