// The kernels of this build, for tests that want one with a property and not by its name.
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warpwright/kernel/hopper/limits.h"
#include "warpwright/plan/families/family.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright::tests {

/// A kernel of this build, of any family, with a pair of the types that it multiplies.
struct Instance {
  const char* name;
  const KernelFacts* facts;
  DType a, b;                      ///< the caller's A and B
  kernel::GemmConfig config = {};  ///< what is only of Hopper; for others see `asked_like`
  int format = 0;                  ///< which of the scales that it multiplies, and makes
  bool by_index = false;           ///< asked for tokens by index
};

/// The kernels of this build that the family has, in their order.
inline std::vector<const KernelFacts*> built_kernels(const Family& family) {
  std::vector<const KernelFacts*> built;
  for (const KernelFacts& f : family.kernels()) {
    if (f.built) built.push_back(&f);
  }
  return built;
}

/// The kernels of products in groups, or those of whole ones.
inline std::vector<Instance> instances_of(bool groups) {
  std::vector<Instance> found;
  for (const KernelFacts* f : built_kernels(hopper_family())) {
    if (f->grouped != groups) continue;
    found.push_back({f->name.c_str(), f, f->a.front(), f->b.front(),
                     config_named<kernel::GemmConfig>(f->name)});
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

inline bool has(const KernelFacts& f, std::string_view feature) {
  return std::find(f.features.begin(), f.features.end(), feature) != f.features.end();
}
inline bool has_feature(const Instance& instance, std::string_view feature) {
  return has(*instance.facts, feature);
}
/// The configuration of a Hopper kernel that is asked what this one of Blackwell is, with tokens on
/// N: in groups, gated, by index.
inline kernel::GemmConfig asked_like(const KernelFacts& f, DType a, DType b,
                                     bool by_index = false) {
  kernel::GemmConfig c;
  if (!f.swap_ab) return c;
  const auto sums = has(f, "block scales") ? kernel::Sums::blockwise : kernel::Sums::tensor_core;
  c.operands = kernel::SharedOperands{.a = {b}, .b = {a}, .sums = sums, .swap_ab = true};
  kernel::Grouped walk{f.search};
  if (f.gathers || by_index) walk.tiles = kernel::ByIndex{};
  c.walk = walk;
  c.result = f.result;
  c.gated = has(f, "gated");
  return c;
}
inline bool is_blackwell(const Instance& instance) {
  return instance.facts->accumulators > 0;  // in tensor memory
}
inline bool is_register_kernel(const Instance& instance) {
  return instance.facts->family == std::string_view("registers_gemm");
}
/// Whether a producer feeds it by TMA copies, and CLC gives it its tiles.
inline bool is_fed(const Instance& instance) {
  return is_register_kernel(instance) && instance.facts->roles.front().name == "producer";
}
inline bool is_fed_by_request(const Instance& instance) {
  return is_fed(instance) && instance.facts->tiles == kernel::TileSource::clc;
}
/// Whether the tensor core multiplies scales of blocks along K too; and their type.
inline bool has_block_scales(const Instance& instance) {
  return !instance.facts->micro_scales.empty();
}
inline DType micro_scale_of(const Instance& instance) {
  const std::vector<DType>& all = instance.facts->micro_scales;
  return all.empty() ? DType::f32 : all[instance.format];
}
/// How D is quantised.
inline QuantiseD quantisation(const Instance& instance) {
  const std::vector<DType>& made = instance.facts->d_scales;
  for (const QuantiseD way : all_quantisations) {
    if (made.empty() || form_of(way).codes != instance.facts->result) continue;
    if (form_of(way).scale == made[instance.format]) return way;
  }
  return instance.config.quantises ? QuantiseD::block_1x128 : QuantiseD::none;
}
/// The K from `k` on that a kernel's operands have: whole bytes, or whole pieces of copies that
/// pad.
inline int whole_k(const Instance& instance, int k) {
  const bool pads = has_block_scales(instance) && (is_padded_in_shared(instance.a, instance.b) ||
                                                   is_padded_in_shared(instance.b, instance.a));
  const int each = pads ? padded_copy_elements : instance.a == DType::e2m1 ? 2 : 1;
  return (k + each - 1) / each * each;
}
/// Whether one of Blackwell adds up k_tiles in registers, times scales where there are some.
inline bool adds_k_tiles(const Instance& instance) {
  return is_blackwell(instance) && has_feature(instance, "block scales");
}
/// Whether rows of A and B may begin anywhere.
inline bool takes_any_rows(const Instance& instance) {
  return has_feature(instance, "any alignment");
}
/// K of a k_tile; for kernels with smaller ones, the 128 bytes of K that several have.
inline int step_k(const Instance& instance) {
  if (!is_register_kernel(instance)) return instance.facts->tile.k;
  const bool bytes = has_block_scales(instance) && multiplies_bytes(instance.a, instance.b);
  return bytes ? 128 : 1024 / numeric::bits(instance.a);
}
/// Rows and columns of a tile as the kernel has them, which may be the columns and rows of D.
inline int tile_rows(const Instance& instance) {
  const KernelFacts& f = *instance.facts;
  return f.swap_ab ? f.result_columns : f.result_rows;
}
inline int tile_columns(const Instance& instance) {
  const KernelFacts& f = *instance.facts;
  return f.swap_ab ? f.result_rows : f.result_columns;
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

/// Do its CTAs share tiles, and so take products that have something to share?
inline bool shares_tiles(const Instance& instance) {
  return !takes_whole_tiles(instance.config) ||
         (is_blackwell(instance) && has_feature(instance, "stream-K"));
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
  const KernelFacts& f = *instance.facts;
  return std::find(f.clusters.begin(), f.clusters.end(), cluster) != f.clusters.end() &&
         (!f.shares_cluster_k || atom::cluster_size(cluster) == 1);
}
/// One CTA, or a pair.
inline atom::ClusterShape smallest_cluster(const Instance& instance) {
  return takes(instance, {1, 1}) ? atom::ClusterShape{1, 1} : atom::ClusterShape{2, 1};
}

inline const char* text(kernel::Schedule schedule) {
  constexpr const char* names[] = {"cooperative", "pingpong"};
  return names[static_cast<int>(schedule)];
}

/// Choices that leave a plan no other kernel than `instance`.
inline PlanChoices only(const Instance& instance) {
  PlanChoices choices;
  choices.kernel = instance.name;
  return choices;
}

}  // namespace warpwright::tests
