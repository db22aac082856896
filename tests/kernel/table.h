// The kernels of this build, for tests that want one with a property and not by its name.
#pragma once

#include <cstdio>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/plan/families/kernels.h"
#include "warpwright/plan/search/plan.h"

namespace warpwright::tests {

using Instance = KernelRow<kernel::GemmConfig>;

/// The kernels of products in groups, or those of whole ones.
inline std::vector<Instance> instances_of(bool groups) {
  std::vector<Instance> found;
  for (const Instance& i : hopper_kernels()) {
    if (kernel::is_grouped(i.config) == groups) found.push_back(i);
  }
  return found;
}
inline const std::vector<Instance>& instances() {
  static const std::vector<Instance> all = instances_of(false);
  return all;
}
inline const std::vector<Instance>& grouped_instances() {
  static const std::vector<Instance> all = instances_of(true);
  return all;
}

/// A kernel of another family as the products below see kernels: one of Hopper with its name, tile
/// and result, and a pair of the types that it multiplies.
template <class Config>
Instance foreign_instance(const KernelRow<Config>& row, DType a, DType b) {
  kernel::GemmConfig c;
  c.operands = kernel::SharedOperands{.a = {a}, .b = {b}};
  c.result = row.config.result;
  c.tile_m = row.config.tile_m;
  c.tile_n = row.config.tile_n;
  return {row.name, c, row.common};
}
inline bool is_blackwell(const Instance& instance) {
  return std::string_view(instance.name).starts_with("blackwell_");
}
inline bool is_register_kernel(const Instance& instance) {
  return std::string_view(instance.name).starts_with("registers_");
}
/// Whether a producer feeds it by TMA copies, and CLC gives it its tiles.
inline bool is_fed(const Instance& instance) {
  return is_register_kernel(instance) &&
         has_producer(config_named<kernel::RegisterConfig>(instance.name));
}
inline bool is_fed_by_request(const Instance& instance) {
  return is_fed(instance) && asks_for_tiles(config_named<kernel::RegisterConfig>(instance.name));
}
/// Whether the tensor core multiplies scales of blocks along K too.
inline bool has_block_scales(const Instance& instance) {
  return is_register_kernel(instance) &&
         is_block_scaled(config_named<kernel::RegisterConfig>(instance.name));
}
/// Whether rows of A and B may begin anywhere.
inline bool takes_any_rows(const Instance& instance) {
  return is_register_kernel(instance) && std::string_view(instance.name).ends_with("_any");
}

inline std::vector<Instance> joined(std::vector<Instance> all, const std::vector<Instance>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

using Property = std::function<bool(const kernel::GemmConfig&)>;

/// All kernels of whole products that have the property, in the order of the table.
inline std::vector<Instance> all_with(const Property& has) {
  std::vector<Instance> found;
  for (const Instance& i : instances()) {
    if (has(i.config)) found.push_back(i);
  }
  return found;
}

/// The first of them. Where the build has none, says so and names those it has.
inline std::optional<Instance> one_with(const std::string& what, const Property& has) {
  const std::vector<Instance> found = all_with(has);
  if (!found.empty()) return found.front();
  std::string names;
  for (const Instance& i : instances()) names += std::string(" ") + i.name;
  std::printf("this build has no kernel with %s; it has%s\n", what.c_str(), names.c_str());
  return std::nullopt;
}

/// The kernel of this name, whole or of groups, which the build has.
inline Instance named(const std::string& name) {
  for (const Instance& i : joined(instances(), grouped_instances())) {
    if (name == i.name) return i;
  }
  throw std::invalid_argument(name);
}

/// K-major operands of one type, sums in the tensor core, whole tiles, nothing swapped or gated.
inline bool is_plain(const kernel::GemmConfig& c) {
  return operand_a(c) == operand_b(c) && operand_a(c).major == atom::Major::k &&
         !sums_in_registers(c) && !is_swapped(c) && !c.gated && takes_whole_tiles(c);
}

/// The two kernels that are there for every type: 128 x 256 shared by both consumers, and
/// 128 x 128 in turns.
inline bool is_basic(const kernel::GemmConfig& c, kernel::Schedule schedule) {
  return is_plain(c) && !kernel::is_dynamic_persistent(c) && schedule_of(c) == schedule &&
         c.tile_m == 128 && c.tile_n == (schedule == kernel::Schedule::pingpong ? 128 : 256);
}

/// Whether a plan may give the kernel clusters that share operands in that shape. Those of a kernel
/// that shares tiles along K do not.
inline bool takes(const kernel::GemmConfig& c, atom::ClusterShape cluster) {
  return kernel::supports(c, cluster) && (!shares_cluster_k(c) || atom::cluster_size(cluster) == 1);
}

inline bool takes(const Instance& instance, atom::ClusterShape cluster) {
  if (is_register_kernel(instance)) return atom::cluster_size(cluster) == 1;
  if (!is_blackwell(instance)) return takes(instance.config, cluster);
  return kernel::supports(config_named<kernel::BlackwellConfig>(instance.name), cluster);
}
/// One CTA, or a pair.
inline atom::ClusterShape smallest_cluster(const Instance& instance) {
  return takes(instance, {1, 1}) ? atom::ClusterShape{1, 1} : atom::ClusterShape{2, 1};
}

inline const char* text(kernel::Schedule schedule) {
  constexpr const char* names[] = {"cooperative", "pingpong", "multistage"};
  return names[static_cast<int>(schedule)];
}

/// Choices that leave a plan no other kernel than `instance`.
inline PlanChoices only(const Instance& instance) {
  PlanChoices choices;
  choices.kernel = instance.name;
  return choices;
}

}  // namespace warpwright::tests
