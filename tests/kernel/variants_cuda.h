// A product of variants.h in the memory of a CUDA device.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/kernel/variants.h"
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

/// Copies of a variant's tensors with everything around them, and a workspace.
class OnCuda {
 public:
  explicit OnCuda(const Variant& variant) : copies_(Variant::tensors) {
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      const Tensor& t = variant.tensor(static_cast<int>(i));
      if (t.bytes() > 0) copies_[i] = used_cuda_memory(t.bytes());
    }
    send(variant);
    std::vector<void*> addresses;
    for (const auto& copy : copies_) addresses.push_back(copy ? copy->data() : nullptr);
    operands_ = variant.operands(addresses);
  }

  [[nodiscard]] const GemmOperands& operands() const { return operands_; }

  /// The bytes of a variant with the same extents and types. All of the device is waited for.
  void send(const Variant& variant) {
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      const Tensor& t = variant.tensor(static_cast<int>(i));
      if (copies_[i]) require(copies_[i]->from_host(t.memory(), t.bytes()));
    }
    require(device::synchronise_cuda());
  }
  /// D with everything around it.
  void receive(Variant& variant) const {
    require(device::synchronise_cuda());
    require(copies_[2]->to_host(variant.d().memory(), variant.d().bytes()));
  }

  /// Makes the memory that a plan works in, and makes it ready.
  void prepare(const Plan& plan) {
    workspace_ = {};
    if (plan.workspace_bytes > 0) {
      memory_ = used_cuda_memory(plan.workspace_bytes);
      require(memory_->fill(0xff));
      workspace_ = Workspace(memory_->data(), plan.workspace_bytes);
    }
    require(warpwright::prepare(plan, workspace_, nullptr));
    require(device::synchronise_cuda());
  }
  /// Of a plan that needs no memory, or the one that it was prepared for.
  std::optional<Refusal> launch(const Plan& plan, void* stream = nullptr,
                                const LaunchOptions& options = {}) {
    return warpwright::launch(plan, operands_, workspace_, stream, options);
  }

 private:
  std::vector<std::shared_ptr<device::CudaBuffer>> copies_;
  std::shared_ptr<device::CudaBuffer> memory_;
  Workspace workspace_;
  GemmOperands operands_;
};

}  // namespace warpwright::tests
