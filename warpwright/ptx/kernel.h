// A kernel of a PTX text that runs on the machine model: the checker, the schedules and the reports
// are those of kernels in C++, as its instructions do what the model does for isa/. See
// docs/ptx.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/model/machine.h"
#include "warpwright/ptx/module.h"

namespace warpwright::ptx {

struct Program;
struct Edit;

/// What a launch says of its threads. Clusters lie along x.
struct Launch {
  int grid[3] = {1, 1, 1};
  int block[3] = {1, 1, 1};
  int cluster = 1;
  int dynamic_bytes = 0;  ///< of shared memory, beside what the text declares
  /// That a thread has when it begins, as ptxas counts them; 0: what the text's bounds leave.
  int registers = 0;

  [[nodiscard]] int ctas() const { return grid[0] * grid[1] * grid[2]; }
  [[nodiscard]] int threads() const { return block[0] * block[1] * block[2]; }
};

/// A parameter of the entry, and where it lies in the bytes of all.
struct Parameter {
  std::string name;
  std::uint32_t at = 0;
  std::uint32_t bytes = 0;
  std::uint32_t align = 1;
};

/// Copies have the decoded text in common, and run beside each other in threads.
class Kernel {
 public:
  /// Reads a text, `name` being what findings call it, and decodes an entry; the only one, where
  /// `entry` is empty. Throws Fault.
  Kernel(std::string text, std::string name, std::string_view entry);

  [[nodiscard]] const std::string& entry() const;
  /// What findings call the text.
  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const std::vector<Parameter>& parameters() const;
  /// Bytes of all parameters.
  [[nodiscard]] std::uint32_t parameter_bytes() const;
  /// Operations it was decoded to.
  [[nodiscard]] std::size_t size() const;

  /// Whether it waits for the grids before it: such a launch may start before they have ended.
  [[nodiscard]] bool waits_for_grids() const;

  /// What a launch is for the model. Throws Fault for one that the entry does not take.
  [[nodiscard]] model::LaunchShape shape(const Launch& launch) const;
  /// One thread of it. `params` has parameter_bytes() bytes, aligned to 128; `allocations` are
  /// those of the launch. All must outlive the run, and so must this. Variables of the text begin
  /// anew.
  [[nodiscard]] std::function<void()> body(const std::byte* params, const Launch& launch,
                                           const std::vector<model::Allocation>& allocations);
  /// Adds what the text has in global memory.
  void add_variables(std::vector<model::Allocation>& allocations);
  /// Instructions that threads have executed since it was made.
  [[nodiscard]] std::uint64_t executed() const { return executed_; }

  /// Notes from now on which statements run.
  void note_statements();
  /// The edits (ptx/edits.h) of those that have run since.
  [[nodiscard]] std::vector<Edit> edits() const;
  /// The kernel with one of them made.
  [[nodiscard]] Kernel with(const Edit& edit) const;

 private:
  std::shared_ptr<const Program> program_;
  std::vector<std::byte> globals_;
  std::uint64_t executed_ = 0;
  std::vector<std::uint8_t> ran_;  // by operation; empty: nothing is noted
};

}  // namespace warpwright::ptx
