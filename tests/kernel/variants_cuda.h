// A product of variants.h in the memory of a CUDA device.
#pragma once

#include <algorithm>
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

/// Copies of a variant's tensors with everything around them, and a workspace.
class OnCuda {
 public:
  explicit OnCuda(const Variant& variant) : copies_(Variant::tensors) {
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      const Tensor& t = variant.tensor(static_cast<int>(i));
      if (t.bytes() > 0) copies_[i] = cuda_memory(t.bytes());
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
    auto made = Workspace::make(plan);
    if (!made) throw std::runtime_error(made.reason());
    workspace_ = std::move(*made);
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
  Workspace workspace_;
  GemmOperands operands_;
};

}  // namespace warpwright::tests
