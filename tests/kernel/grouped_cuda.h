// A product of grouped_case.h in the memory of a CUDA device.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tests/kernel/grouped_case.h"
#include "tests/kernel/variants_cuda.h"

namespace warpwright::grouped {

/// Copies of a case's tensors with everything around them, the operands there, and a workspace that
/// is large enough for the maps of thousands of groups.
class OnCuda {
 public:
  explicit OnCuda(const Tensors& t) : operands_(t.operands) {
    place(t.a, operands_.a);
    device::CudaBuffer* const b = place(t.b, operands_.b);
    if (operands_.packed) operands_.b = t.packed.view(b->data());
    d_ = place(t.d, operands_.d);
    if (operands_.scaling != Scaling::none) {
      place(t.scale_a, operands_.scale_a);
      if (operands_.scale_b.data != nullptr) place(t.scale_b, operands_.scale_b);
    }
    const std::int64_t width = operands_.groups->type == OffsetType::int64 ? 8 : 4;
    offsets_ =
        copy(t.operands.groups->offsets, static_cast<std::int64_t>(t.wide.size()) * width).get();
    operands_.groups->offsets = offsets_->data();
    take_workspace(room);
  }

  [[nodiscard]] const GemmOperands& operands() const { return operands_; }
  [[nodiscard]] Workspace& workspace() { return workspace_; }
  /// Where the kernel reads the offsets.
  [[nodiscard]] void* offsets() const { return offsets_->data(); }

  std::optional<Refusal> prepare(const Plan& plan) {
    grow_workspace(plan);
    return warpwright::prepare(plan, workspace_, nullptr);
  }
  std::optional<Refusal> launch(const Plan& plan, void* stream = nullptr,
                                const LaunchOptions& options = {}) {
    grow_workspace(plan);
    return warpwright::launch(plan, operands_, workspace_, stream, options);
  }

  /// Other offsets, in the type of the case.
  void send_offsets(const std::vector<std::int64_t>& offsets) const {
    const std::vector<std::int32_t> narrow(offsets.begin(), offsets.end());
    const bool wide = operands_.groups->type == OffsetType::int64;
    tests::require(
        offsets_->from_host(wide ? static_cast<const void*>(offsets.data()) : narrow.data(),
                            static_cast<std::int64_t>(offsets.size()) * (wide ? 8 : 4)));
  }
  /// D's memory as a fresh case has it.
  void poison_d() const { tests::require(d_->fill(0xff)); }
  /// D with everything around it. All of the device is waited for.
  void receive(Tensors& t) const {
    tests::require(device::synchronise_cuda());
    tests::require(d_->to_host(t.d.memory(), t.d.bytes()));
  }
  /// What the check of the offsets left, behind all of the default stream.
  [[nodiscard]] std::uint32_t status(const Plan& plan) const {
    tests::require(device::synchronise_cuda());
    const auto status = offsets_status(plan, workspace_, nullptr);
    if (!status) tests::require(status.refusal());
    return *status;
  }

 private:
  static constexpr std::int64_t room = 2 << 20;  ///< more than any plan without copies needs

  void grow_workspace(const Plan& plan) {
    if (plan.workspace_bytes > workspace_.bytes()) take_workspace(plan.workspace_bytes);
  }
  void take_workspace(std::int64_t bytes) {
    memory_ = tests::used_cuda_memory(bytes);
    tests::require(memory_->fill(0xff));
    workspace_ = Workspace(memory_->data(), bytes);
  }

  std::shared_ptr<device::CudaBuffer>& copy(const void* data, std::int64_t bytes) {
    copies_.push_back(tests::used_cuda_memory(bytes));
    tests::require(copies_.back()->from_host(data, bytes));
    return copies_.back();
  }
  device::CudaBuffer* place(const tests::Tensor& t, MatrixView& view) {
    device::CudaBuffer* const there = copy(t.memory(), t.bytes()).get();
    view = t.view(there->data());
    return there;
  }

  GemmOperands operands_;
  std::vector<std::shared_ptr<device::CudaBuffer>> copies_;
  device::CudaBuffer* d_ = nullptr;
  device::CudaBuffer* offsets_ = nullptr;
  std::shared_ptr<device::CudaBuffer> memory_;
  Workspace workspace_;
};

}  // namespace warpwright::grouped
