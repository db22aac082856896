// A product as the commands see it that only run its kernel: `check`, `trace` and `explain` do not
// ask whether it is dense or grouped.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "cli/commands/run.h"
#include "warpwright/device/check.h"
#include "warpwright/device/trace_cuda.h"

namespace warpwright::cli {

/// A product with a plan. It has tensors, and memory for its result, once `load` ran: all but what
/// speaks of the plan need them.
class Product {
 public:
  Product() = default;
  virtual ~Product() = default;
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  /// The plan's name, the whole plan for a reader, where it runs and in which clusters.
  [[nodiscard]] virtual std::string plan_name() const = 0;
  [[nodiscard]] virtual std::string explain() const = 0;
  [[nodiscard]] virtual const DeviceFacts& device() const = 0;
  [[nodiscard]] virtual atom::ClusterShape cluster() const = 0;
  /// CTA tiles, for the progress of a run.
  [[nodiscard]] virtual std::int64_t tiles() const = 0;
  /// Seconds that one run on the model takes, roughly.
  [[nodiscard]] virtual double model_seconds() const = 0;
  /// The product in few words, for a picture: "D[64,32], K = 48".
  [[nodiscard]] virtual std::string title() const = 0;

  /// Refuses what this machine's memory cannot hold. Throws InputError.
  virtual void check_memory() const = 0;
  /// Makes the tensors; says on `err` what the user may not expect of them. Throws InputError.
  virtual void load(std::uint64_t seed, std::ostream& err) = 0;

  /// Is this the product? Of a result in host memory, laid out as the one of `load`.
  [[nodiscard]] virtual bool is_right(const MatrixView& result) const = 0;
  virtual Result<model::Report> run_on_model(const device::ModelOptions& options) = 0;
  /// Once, through the memory of the CUDA device. Throws InputError or RunError.
  virtual void run_on_gpu(int index) = 0;
  /// Begins a recording of the plan's kernel on the current CUDA device.
  [[nodiscard]] virtual Result<std::shared_ptr<device::CudaTrace>> record() const = 0;

  /// See warpwright/device/check.h.
  [[nodiscard]] virtual Result<device::CheckReport> check(
      const device::CheckOptions& options) const = 0;
  [[nodiscard]] virtual Result<device::Reduction> reduce(
      const device::Schedule& schedule, const device::CheckOptions& options) const = 0;
  [[nodiscard]] virtual Result<std::vector<model::Mutation>> mutants() const = 0;
  [[nodiscard]] virtual Result<device::MutationReport> mutate(
      const device::CheckOptions& options) const = 0;
};

/// Plans a product for a device. Throws InputError with one sentence.
using ProductMaker =
    std::function<std::unique_ptr<Product>(const DeviceFacts& facts, std::ostream& err)>;

/// What products have in common that have a plan of type P for operands of type O.
template <class P, class O>
class PlannedProduct : public Product {
 public:
  explicit PlannedProduct(P plan) : plan_(std::move(plan)) {}

  [[nodiscard]] std::string plan_name() const override { return plan_.name(); }
  [[nodiscard]] std::string explain() const override { return plan_.explain(); }
  [[nodiscard]] const DeviceFacts& device() const override { return plan_.device; }
  [[nodiscard]] atom::ClusterShape cluster() const override { return plan_.cluster; }
  [[nodiscard]] Result<std::shared_ptr<device::CudaTrace>> record() const override {
    return device::CudaTrace::start(plan_);
  }
  [[nodiscard]] Result<device::CheckReport> check(
      const device::CheckOptions& options) const override {
    return device::check(plan_, operands_, options);
  }
  [[nodiscard]] Result<device::Reduction> reduce(
      const device::Schedule& schedule, const device::CheckOptions& options) const override {
    return device::reduce(plan_, operands_, schedule, options);
  }
  [[nodiscard]] Result<std::vector<model::Mutation>> mutants() const override {
    return device::mutants_of(plan_, operands_);
  }
  [[nodiscard]] Result<device::MutationReport> mutate(
      const device::CheckOptions& options) const override {
    return device::mutate(plan_, operands_, options);
  }

 protected:
  P plan_;
  O operands_;  // in host memory, once loaded
};

}  // namespace warpwright::cli
