// A problem in the memory of a CUDA device, and what its results there are.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernel/problems.h"
#include "tests/kernel/rows.h"
#include "warpwright/device/cuda.h"

namespace warpwright::tests {

inline void require(const std::optional<Refusal>& refusal) {
  if (refusal) throw std::runtime_error(refusal->reason);
}

inline std::shared_ptr<device::CudaBuffer> cuda_memory(std::int64_t bytes) {
  const auto made = device::CudaBuffer::make(bytes);
  if (!made) throw std::runtime_error(made.reason());
  return *made;
}

/// Memory of a thread that makes products by thousands: what the last one has left is taken again,
/// since an allocation takes as long as a small product. Its bytes are anything, and the device has
/// been waited for.
inline std::shared_ptr<device::CudaBuffer> used_cuda_memory(std::int64_t bytes) {
  thread_local std::vector<std::shared_ptr<device::CudaBuffer>> all;
  const auto whole = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 4096))));
  for (const auto& one : all) {
    if (one.use_count() == 1 && one->bytes() >= whole && one->bytes() <= 4 * whole) return one;
  }
  if (all.size() > 64) all.clear();
  all.push_back(cuda_memory(whole));
  return all.back();
}

/// Copies of a problem's memory with everything around it, and a workspace that is large enough for
/// the maps of thousands of groups.
class OnCuda {
 public:
  explicit OnCuda(const Problem& problem) : copies_(Problem::pieces) {
    std::vector<void*> addresses;
    for (int i = 0; i < Problem::pieces; ++i) {
      const std::int64_t bytes = problem.piece(i).bytes;
      if (bytes > 0) copies_[index(i)] = used_cuda_memory(bytes);
      addresses.push_back(bytes > 0 ? copies_[index(i)]->data() : nullptr);
    }
    send(problem);
    operands_ = problem.operands(addresses);
    if (problem.in_groups()) take_workspace(room);
  }

  [[nodiscard]] const GemmOperands& operands() const { return operands_; }
  [[nodiscard]] Workspace& workspace() { return workspace_; }
  /// Where the kernel reads the offsets of groups.
  [[nodiscard]] void* offsets() const { return copies_.back()->data(); }

  /// The bytes of a problem with the same extents and types. All of the device is waited for.
  void send(const Problem& problem) {
    for (int i = 0; i < Problem::pieces; ++i) {
      const Problem::Piece piece = problem.piece(i);
      if (piece.bytes > 0) require(copies_[index(i)]->from_host(piece.memory, piece.bytes));
    }
    require(device::synchronise_cuda());
  }
  /// D's memory as a fresh problem has it that is not in place.
  void poison_d() const {
    require(copies_[2]->fill(0xff));
    if (copies_[scales]) require(copies_[scales]->fill(0xff));
  }
  /// D, and its scales, with everything around them.
  void receive(Problem& problem) const {
    require(device::synchronise_cuda());
    require(copies_[2]->to_host(problem.d().memory(), problem.d().bytes()));
    const Tensor& d_scales = problem.d_scales();
    if (copies_[scales]) require(copies_[scales]->to_host(d_scales.memory(), d_scales.bytes()));
  }
  /// Other offsets, in the type of the problem.
  void send_offsets(const std::vector<std::int64_t>& offsets) const {
    const std::vector<std::int32_t> narrow(offsets.begin(), offsets.end());
    const bool wide = operands_.groups->type == OffsetType::int64;
    require(
        copies_.back()->from_host(wide ? static_cast<const void*>(offsets.data()) : narrow.data(),
                                  static_cast<std::int64_t>(offsets.size()) * (wide ? 8 : 4)));
  }

  /// Makes the memory that a plan works in, and makes it ready.
  void prepare(const Plan& plan) {
    grow_workspace(plan);
    require(warpwright::prepare(plan, workspace_, nullptr));
    require(device::synchronise_cuda());
  }
  std::optional<Refusal> launch(const Plan& plan, void* stream = nullptr,
                                const LaunchOptions& options = {}) {
    grow_workspace(plan);
    return warpwright::launch(plan, operands_, workspace_, stream, options);
  }
  /// What the check of the offsets left, behind all of the default stream.
  [[nodiscard]] std::uint32_t status(const Plan& plan) const {
    require(device::synchronise_cuda());
    const auto status = offsets_status(plan, workspace_, nullptr);
    if (!status) require(status.refusal());
    return *status;
  }

 private:
  static constexpr std::size_t scales = 8;       ///< of D: a piece of the problem
  static constexpr std::int64_t room = 2 << 20;  ///< more than any plan without copies needs

  void grow_workspace(const Plan& plan) {
    if (plan.workspace_bytes > workspace_.bytes()) take_workspace(plan.workspace_bytes);
  }
  void take_workspace(std::int64_t bytes) {
    memory_ = used_cuda_memory(bytes);
    require(memory_->fill(0xff));
    workspace_ = Workspace(memory_->data(), bytes);
  }

  std::vector<std::shared_ptr<device::CudaBuffer>> copies_;
  std::shared_ptr<device::CudaBuffer> memory_;
  Workspace workspace_;
  GemmOperands operands_;
};

/// What is wrong with a product; empty when nothing is. Launched `times` times from a D full of
/// NaN, or full of C, it must give the same bytes.
inline std::string fault_on_cuda(const Row& row, const PlanChoices& choices,
                                 const DeviceFacts& facts, int times) {
  Problem problem(row.instance, row.ask);
  OnCuda there(problem);
  const auto made = plan(there.operands(), facts, choices);
  if (!made) return made.reason();
  there.prepare(*made);
  std::vector<std::byte> first;
  for (int launch = 0; launch < times; ++launch) {
    problem.poison_d();
    if (launch > 0) there.send(problem);
    const auto refusal = there.launch(*made, nullptr, {.check_offsets = problem.in_groups()});
    if (refusal) {
      // A GPU need not have 16 free SMs in one GPC; smaller clusters always go.
      if (made->cluster_ctas() > atom::kPortableClusterSize) return {};
      return refusal->reason;
    }
    if (problem.in_groups() && there.status(*made) != 0) {
      return "the offsets are said to be in disorder";
    }
    there.receive(problem);
    std::string said = problem.fault();
    if (!said.empty()) return said;
    if (launch == 0) first = problem.d_bytes();
    if (first != problem.d_bytes()) return "two launches give other bits";
  }
  return {};
}

inline std::string fault_on_cuda(const Seeded& seeded, const DeviceFacts& device) {
  const Row row{seeded.instance(), seeded.ask()};
  return fault_on_cuda(row, seeded.choices(Problem(row.instance, row.ask)), device,
                       seeded.twice() ? 2 : 1);
}

}  // namespace warpwright::tests
