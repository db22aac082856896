// What a self-test multiplies: small products by each kernel, others by the plan, layers of
// experts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/commands/gemm/companions.h"
#include "cli/commands/moe/moe_job.h"

namespace warpwright::cli {

/// Where a self-test runs, as --device and --as have it, and its seed.
struct SelftestPlace {
  std::string device = "model";
  std::string as;
  std::uint64_t seed = 1;

  /// The same arguments there; on a GPU nothing of the model's stays.
  [[nodiscard]] GemmOptions at(GemmOptions options) const;
};

/// Kernels of this build that a device of `architecture` runs; 0: of any, each on its own model.
std::vector<const KernelFacts*> selftest_kernels(int architecture);

/// Products by the kernel: the smallest that it takes, a ragged one, and `more` others that the
/// seed draws of those that `check kernel` runs, some of which it may not take. Throws InputError
/// where the command line can say no product of it.
std::vector<Companion> selftest_products(const KernelFacts& kernel, const SelftestPlace& place,
                                         int more);

/// For every type a product and one in groups, by the kernel that a plan takes.
std::vector<Companion> selftest_types(const SelftestPlace& place);

/// A layer of experts of every type that a mixture has.
struct SelftestMixture {
  std::string what;
  MoeOptions options;
};
std::vector<SelftestMixture> selftest_mixtures(const SelftestPlace& place);

/// Ten products to time: `half` is a type of 16 bits that the device multiplies.
std::vector<Companion> selftest_shapes(const SelftestPlace& place, const std::string& half);

}  // namespace warpwright::cli
