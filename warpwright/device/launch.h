// Running a plan: memory that its launches share, and the launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "warpwright/plan/product/plan.h"

namespace warpwright {

namespace device {
class CudaBuffer;
struct Backend;
}  // namespace device

/// How a launch is made.
struct LaunchOptions {
  /// The kernel may start while the one before it in the stream still runs, as soon as that one
  /// lets it (programmatic dependent launch). It reads and writes nothing before the other has
  /// ended; the offsets of groups may come from it too.
  bool dependent = false;
  /// For groups: the kernel says in the workspace whether the offsets are in order, for tokens by
  /// index whether the numbers of rows in groups name rows of A; `offsets_fault`
  /// reads it there. Costs nothing on the way of the tiles.
  bool check_offsets = false;
  /// For groups: rows of D in no group become 0, by a small grid before the kernel; else they stay
  /// as they are. With offsets in order these are the rows before the first and from the last on.
  bool zero_rest = false;
};

/// Memory for launches of plans, one launch at a time. It knows which of its bytes are flags, or a
/// counter of tiles, that a launch left 0: a launch that needs them clears them first unless it
/// knows them to be 0, so memory of any content will do, and plans may share it in any order.
/// Captured into a graph, a launch either clears its flags in the graph, or, where they were known
/// to be 0 (`prepare`), relies on them; other plans that would write to those are refused from then
/// on.
class Workspace {
 public:
  /// None: for plans that need none.
  Workspace() = default;
  /// `bytes` of the device's (of the host's, for the model) memory from `data`, a multiple of 256.
  /// The memory stays the caller's.
  Workspace(void* data, std::int64_t bytes) : data_(data), bytes_(bytes) {}
  /// Memory of its own on the current CUDA device (host memory for plans of the model) for `plan`.
  static Result<Workspace> make(const Plan& plan);

  /// So many bytes of a kind of device.
  static Result<Workspace> of(const device::Backend* backend, std::int64_t bytes);

  Workspace(Workspace&& other) noexcept = default;
  Workspace& operator=(Workspace&& other) noexcept = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() = default;

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  /// Was a launch noted that checks its offsets?
  [[nodiscard]] bool checks_offsets() const { return checks_offsets_; }
  /// Notes one.
  void note_check() { checks_offsets_ = true; }

  /// Why it cannot be given to a launch that writes to the first `bytes` of it, or nothing. The
  /// first `flag_bytes` of these are its flags.
  [[nodiscard]] std::optional<Refusal> fault(std::int64_t bytes, std::int64_t flag_bytes) const;
  /// What a launch must do about the flags.
  enum class Flags : std::uint8_t { are_clear, clear_first };
  /// Why it cannot be given to a launch of `plan`, or nothing.
  [[nodiscard]] std::optional<Refusal> fault(const Plan& plan, bool check_offsets = false) const;
  /// Notes a launch of `plan` that `fault` let pass, and says what it must do about its flags.
  /// `captured`: it goes into a graph, to run at any time from now on.
  Flags note_launch(const Plan& plan, bool captured, bool check_offsets = false);
  /// The same of a launch that may write to all of it, the first `flag_bytes` of which are its
  /// flags.
  Flags note_launch(std::int64_t flag_bytes, bool captured);
  /// Notes that the first `flag_bytes` of it were cleared.
  void note_cleared(std::int64_t flag_bytes);
  /// Notes that a launch failed: nothing is known of the flags any more.
  void forget();

 private:
  Flags note(std::int64_t flag_bytes, std::int64_t used, bool captured);

  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
  std::int64_t clear_ = 0;   // bytes in front that are 0 between launches
  std::int64_t relied_ = 0;  // of those, what captured launches rely on
  /// What captured launches that clear their own flags leave as they are; all others may be
  /// overwritten at any time.
  std::int64_t trusted_ = INT64_MAX;
  bool checks_offsets_ = false;
  std::shared_ptr<void> owned_;
};

/// Runs `plan` where it was made for. On a CUDA device: starts it on `stream` (a cudaStream_t; null
/// is the default stream) of the current device and returns without waiting; operands and offsets
/// are device pointers and must stay until the stream is past the launch. Takes no memory and does
/// not synchronise: legal inside a graph capture, where the offsets of groups may differ from
/// replay to replay. On the model (link warpwright::model and include warpwright/model.h): runs it
/// to its end with all checks; a finding comes back as a refusal with the report's text. Errors
/// come back as one sentence.
[[nodiscard]] std::optional<Refusal> launch(const Plan& plan, const GemmOperands& operands,
                                            Workspace& workspace, void* stream,
                                            const LaunchOptions& options = {});

/// The same for plans that need no workspace. Tiles that would be drawn from a counter are then
/// static persistent tiles.
[[nodiscard]] std::optional<Refusal> launch(const Plan& plan, const GemmOperands& operands,
                                            void* stream, const LaunchOptions& options = {});

/// What the last launch of `plan` in `workspace` that checked its offsets says of them: 0 where
/// they were in order, else what `offsets_fault` makes a sentence of. Waits for `stream`, so not in
/// a graph capture; behind a graph's replay it speaks of that one. Refuses plans without groups,
/// and a workspace in which no launch has checked any.
Result<std::uint32_t> offsets_status(const Plan& plan, const Workspace& workspace, void* stream);

/// What it says of numbers of tokens: 0 where there are none or all name rows of A, else what
/// `rows_fault` makes a sentence of. All else as for `offsets_status`.
Result<std::uint64_t> rows_status(const Plan& plan, const Workspace& workspace, void* stream);

/// Both as a refusal (bad_value), the offsets first; nothing where all was right.
[[nodiscard]] std::optional<Refusal> offsets_fault(const Plan& plan, const Workspace& workspace,
                                                   void* stream);

/// Loads the kernel of `plan` on the current CUDA device and clears the flags of `workspace` on
/// `stream`, so that the first launch may already be inside a graph capture and finds them clear.
/// Refuses a device of another architecture than the plan's. Does nothing for plans of the model.
[[nodiscard]] std::optional<Refusal> prepare(const Plan& plan, Workspace& workspace, void* stream);

}  // namespace warpwright
