// The kernels of this build as CUDA devices run them, and how one is loaded and started. Internal
// to device/, for its .cu files.
#pragma once

#include <cuda_runtime.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/isa/bounded_wait.h"
#include "warpwright/isa/trace.h"
#include "warpwright/kernel/rows.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright::device {

/// Hands the kernels of a file the memory in which their bounded waits report, in a build that has
/// them.
using WatchWaits = cudaError_t (*)(isa::WaitReport*);
/// Hands the kernels of a file the memory to record in; null in builds that do not record.
using RecordInto = cudaError_t (*)(const isa::TraceBuffer&);

/// A kernel of a table: its name there, and what a launch needs.
struct CudaKernel {
  std::string_view name;
  int major;         // of the compute capability it is compiled for; 0: several
  int architecture;  // the first for which it has a body: in code for an older one it is empty
  int threads;
  int shared_bytes;
  const void* function;
  WatchWaits watch;
  RecordInto record;
};

/// Adds those kernels of a table that one of the build's source files compiles; it makes those
/// files of cmake/cuda_chunk.cu.in.
template <class Table, int chunk>
void add_cuda_kernels(std::vector<CudaKernel>& all);

/// Adds the kernels of layers in one launch, which a build with Hopper kernels has.
void add_layer_kernels(std::vector<CudaKernel>& all);

/// Every kernel that is compiled for an architecture of this build.
const std::vector<CudaKernel>& cuda_kernels();
/// The one of that name, or nothing.
const CudaKernel* cuda_kernel(std::string_view name);

/// The architecture whose code of this build the current device runs, compute capability x 10: an
/// sm_89 may run code for 80, and any later device what the driver compiles of PTX for 80. `own`,
/// the device's, where this build has no code for it.
int code_architecture(int own);

/// The kernel `name`, which is for devices of `architecture` (90, 100), loaded on the current
/// device. Every thread remembers those it has launched, so that a launch takes no lock and no
/// memory; another thread's first launch loads them once more, which changes nothing.
[[nodiscard]] std::optional<Refusal> load_kernel(std::string_view name, int architecture,
                                                 const CudaKernel*& loaded);

/// A kernel's grid, and where it goes.
struct CudaGrid {
  const void* function = nullptr;
  int ctas = 0;
  int threads = 0;
  int shared_bytes = 0;
  int cluster_size = 0;    // of no clusters; 1 is a launch of its own kind
  bool dependent = false;  // may start before the grid before it has ended
  cudaStream_t stream = nullptr;
};

/// Launches it with one parameter.
cudaError_t start_grid(const CudaGrid& grid, void* params);

}  // namespace warpwright::device
