// Kernels of device/quantise_by.h and its kind on the model, one behind the other: what OnCuda
// does.
#pragma once

#include <cstring>

#include "tests/model/harness.h"

namespace warpwright::tests {

/// They touch only `memory`, and every one of them is clean.
class OnModel {
 public:
  explicit OnModel(std::vector<model::Allocation> memory, model::Options how = {})
      : memory_(std::move(memory)), how_(std::move(how)) {}

  static void fill(void* at, int byte, std::int64_t bytes) {
    if (bytes > 0) std::memset(at, byte, static_cast<std::size_t>(bytes));
  }
  static void write(void* to, const void* from, std::int64_t bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  static void read(const void* from, void* to, std::int64_t bytes) { write(to, from, bytes); }

  template <class Kernel>
  void run(int ctas, const typename Kernel::Params& params) {
    model::Kernel kernel;
    kernel.shape = {.ctas = ctas,
                    .in_clusters = false,
                    .threads = Kernel::threads,
                    .shared_bytes = Kernel::shared_bytes};
    kernel.body = [&params] { Kernel::run(params); };
    kernel.memory = memory_;
    must_be_clean(model::run(kernel, how_));
    ++runs;
  }

  int runs = 0;

 private:
  std::vector<model::Allocation> memory_;
  model::Options how_;
};

}  // namespace warpwright::tests
