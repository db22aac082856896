// A launch of a kernel in PTX, with buffers for its arguments, as what `check` runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/model/memory/tensor_map.h"
#include "warpwright/numeric/types.h"
#include "warpwright/ptx/edits.h"
#include "warpwright/ptx/kernel.h"
#include "warpwright/simulation/check.h"
#include "warpwright/simulation/model.h"

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

/// A type of numbers among parameters: u8 to u64, s8 to s64, b8 to b64, and floats of whole bytes.
struct PtxNumber {
  int bits = 32;
  bool is_signed = false;
  std::optional<DType> floats = {};  ///< nothing: integers

  /// The type of a word, or nothing.
  static std::optional<PtxNumber> parse(std::string_view word);
  /// What integers it holds.
  [[nodiscard]] std::int64_t least() const;
  [[nodiscard]] std::uint64_t most() const;
  [[nodiscard]] std::vector<std::byte> bytes(std::uint64_t integer) const;
  [[nodiscard]] std::vector<std::byte> bytes(double number) const;
};

/// A tiled tensor map in words: extents of the tensor and of the box, the innermost last; pitches
/// in bytes, the rows' last, dense where none is given.
struct PtxMap {
  int element_bits = 8;
  std::optional<DType> type = {};  ///< for stores that add; nothing: integers
  std::vector<std::int64_t> extents = {};
  std::vector<std::int64_t> box = {};
  std::vector<std::int64_t> pitches = {};
  int swizzle = 0;  ///< bytes: 0, 32, 64 or 128

  /// The rule that it breaks, as "5 extents at most", or nothing.
  [[nodiscard]] std::optional<std::string> fault() const;
  /// The map, without a base. Call `fault` first.
  [[nodiscard]] model::TensorMapFields fields() const;
};

/// What the numbers of a launch may be, before its kernel is asked.
struct PtxRange {
  std::int64_t least;
  std::int64_t most;
};
inline constexpr PtxRange ptx_clusters = {1, 16};
inline constexpr PtxRange ptx_dynamic_bytes = {0, model::max_shared_bytes};
inline constexpr PtxRange ptx_registers = {24, 255};
inline constexpr PtxRange ptx_sms = {1, 256};
inline constexpr PtxRange ptx_struct_bytes = {sizeof(model::TensorMap), 4096};

struct PtxLaunch {
  ptx::Kernel kernel;
  ptx::Launch launch = {};
  int sms = 8;
  std::vector<PtxBuffer> buffers = {};
  std::vector<PtxArgument> arguments = {};
  /// Called behind each run with what each buffer holds then, in the thread that ran it.
  std::function<void(const ModelOptions& how, std::size_t buffer, std::span<const std::byte> left)>
      ended = {};
};

/// Throws ptx::Fault where the arguments are not those of the kernel, in number and in size, or the
/// kernel does not take the launch. The launch stays while what is returned is used.
std::unique_ptr<Subject> ptx_subject(const PtxLaunch& launch);

/// Edits of a text in the words of a report.
std::vector<SubjectEdit> as_subject_edits(const std::vector<ptx::Edit>& edits,
                                          const ptx::Kernel& kernel);

}  // namespace warpwright::device
