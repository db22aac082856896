#include "warpwright/plan/family.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "warpwright/kernel/zero_rows.h"
#include "warpwright/plan/rules.h"

namespace warpwright {
namespace {

struct KnownKernel {
  const KernelFacts* facts;
  const Family* family;
};

const KnownKernel* find(std::string_view name) {
  static const std::unordered_map<std::string_view, KnownKernel> all = [] {
    std::unordered_map<std::string_view, KnownKernel> known;
    for (const Family* family : families()) {
      for (const KernelFacts& facts : family->kernels()) known[facts.name] = {&facts, family};
    }
    return known;
  }();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace

std::span<const Family* const> families() {
  static const std::array<const Family*, 3> all = {&hopper_family(), &blackwell_family(),
                                                   &registers_family()};
  return all;
}

const Family* family_of(const DeviceFacts& device, const PlanChoices& choices) {
  const KnownKernel* named = choices.kernel ? find(*choices.kernel) : nullptr;
  if (named != nullptr && named->family->can_run_on(device.architecture)) return named->family;
  for (const Family* family : families()) {
    if (family->runs_on(device.architecture)) return family;
  }
  return nullptr;
}

const Family& family_of(const Plan& plan) {
  const KnownKernel* known = find(plan.kernel);
  return known != nullptr ? *known->family : hopper_family();
}

void add_zero_rows(const Plan& plan, const GemmOperands& o, LaunchGrids& out) {
  using kernel::ZeroRowsKernel;
  const std::int64_t element = element_bytes(o.d.dtype);
  kernel::ZeroRowsParams p;
  p.data = static_cast<unsigned char*>(o.d.data);
  p.pitch = o.d.row_stride * element;
  p.row_bytes = static_cast<int>(o.d.columns * element);
  p.piece = static_cast<int>(std::gcd(alignment_of(o.d.data), p.pitch));
  p.offsets = group_offsets(plan.problem, *o.groups);
  std::move_backward(out.grids.begin(), out.grids.begin() + out.count,
                     out.grids.begin() + out.count + 1);
  ++out.count;
  Grid& grid = out.grids[0];
  grid = {};
  grid.kernel = zero_rows_kernel;
  const std::int64_t rows = std::max<std::int64_t>(o.d.rows, 1);
  grid.ctas = static_cast<int>(
      std::min<std::int64_t>((rows + ZeroRowsKernel::warps - 1) / ZeroRowsKernel::warps,
                             std::int64_t{4} * plan.device.sms));
  grid.threads = ZeroRowsKernel::threads;
  grid.multiplies = false;
  grid.clears = true;
  grid.set_params(p);
}

tile::GroupOffsets group_offsets(const GemmProblem& p, const Groups& groups) {
  return {groups.offsets, groups.type == OffsetType::int64, static_cast<int>(p.groups),
          static_cast<int>(p.m)};
}

Grid grid_of(const Plan& plan) {
  const KernelFacts& f = plan.facts();
  Grid grid;
  grid.kernel = f.name;
  grid.ctas = plan.ctas;
  grid.cluster_size = plan.cluster_ctas();
  // Answers about tiles travel by instructions that are illegal outside of clusters.
  grid.in_clusters = grid.cluster_size > 1 || f.tiles != kernel::TileSource::static_persistent;
  grid.threads = f.threads;
  grid.shared_bytes = f.shared_bytes;
  grid.registers = f.registers;
  return grid;
}

const KernelFacts& Plan::facts() const {
  static const KernelFacts none;
  const KnownKernel* known = find(kernel);
  return known != nullptr ? *known->facts : none;
}

}  // namespace warpwright
