// The kernels of this build as the model runs them. Internal to device/.
#pragma once

#include <string_view>
#include <vector>

#include "warpwright/kernel/rows.h"

namespace warpwright::device {

/// A kernel of a table: its name there, and the body of one thread, for the kernel's own Params.
struct ModelKernel {
  std::string_view name;
  void (*run)(const void* params);
};

/// The kernel of that name, or nothing where this build has none.
const ModelKernel* model_kernel(std::string_view name);

/// Adds those kernels of a table that one of the build's source files compiles; it makes those
/// files of cmake/model_chunk.cpp.in.
template <class Table, int chunk>
void add_model_kernels(std::vector<ModelKernel>& all);

/// Adds the kernels of layers in one launch.
void add_layer_kernels(std::vector<ModelKernel>& all);

template <class Kernel>
void run_kernel(const void* params) {
  Kernel::run(*static_cast<const typename Kernel::Params*>(params));
}

}  // namespace warpwright::device
