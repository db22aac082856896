// A launch of a kernel in PTX, with buffers for its arguments, as what `check` runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warpwright/model/memory/tensor_map.h"
#include "warpwright/ptx/edits.h"
#include "warpwright/ptx/kernel.h"
#include "warpwright/simulation/check.h"

namespace warpwright::device {

/// Global memory of a launch.
struct PtxBuffer {
  std::string name;
  std::vector<std::byte> bytes;  ///< what it begins with
  bool writable = true;
  /// What it must hold behind the run; nothing: that is open.
  std::optional<std::vector<std::byte>> expected = {};
};

/// An argument: bytes; or where `buffer` names one, its address, `offset` bytes behind its begin,
/// or, with a map, that map of it (whose base is not set).
struct PtxArgument {
  std::vector<std::byte> value = {};
  std::optional<std::size_t> buffer = {};
  std::int64_t offset = 0;
  std::optional<model::TensorMapFields> map = {};
  /// The parameter's: its first bytes are the map, the others 0.
  std::size_t struct_bytes = sizeof(model::TensorMap);
};

struct PtxLaunch {
  ptx::Kernel kernel;
  ptx::Launch launch = {};
  int sms = 8;
  std::vector<PtxBuffer> buffers = {};
  std::vector<PtxArgument> arguments = {};
};

/// Throws ptx::Fault where the arguments are not those of the kernel, in number and in size, or the
/// kernel does not take the launch. The launch stays while what is returned is used.
std::unique_ptr<Subject> ptx_subject(const PtxLaunch& launch);

/// Edits of a text in the words of a report.
std::vector<SubjectEdit> as_subject_edits(const std::vector<ptx::Edit>& edits,
                                          const ptx::Kernel& kernel);

}  // namespace warpwright::device
