#include "warpwright/plan/families/family.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "warpwright/kernel/check_rows.h"
#include "warpwright/kernel/copy_rows.h"
#include "warpwright/kernel/zero_rows.h"
#include "warpwright/plan/families/bind.h"
#include "warpwright/plan/product/rules.h"

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

// A new grid in front of the others.
Grid& first_grid(LaunchGrids& out) {
  std::move_backward(out.grids.begin(), out.grids.begin() + out.count,
                     out.grids.begin() + out.count + 1);
  ++out.count;
  Grid& grid = out.grids[0];
  grid = {};
  grid.multiplies = false;
  return grid;
}

void add_zero_rows(const Plan& plan, const GemmOperands& o, LaunchGrids& out) {
  using kernel::ZeroRowsKernel;
  const std::int64_t bits = numeric::bits(o.d.dtype);  // of e2m1 two are a byte
  kernel::ZeroRowsParams p;
  p.data = static_cast<unsigned char*>(o.d.data);
  p.pitch = o.d.row_stride * bits / 8;
  p.row_bytes = static_cast<int>(o.d.columns * bits / 8);
  p.piece = static_cast<int>(std::gcd(alignment_of(o.d.data), p.pitch));
  p.offsets = group_offsets(plan.problem, *o.groups);
  Grid& grid = first_grid(out);
  grid.kernel = zero_rows_kernel;
  const std::int64_t rows = std::max<std::int64_t>(o.d.rows, 1);
  grid.ctas = static_cast<int>(
      std::min<std::int64_t>((rows + ZeroRowsKernel::warps - 1) / ZeroRowsKernel::warps,
                             std::int64_t{4} * plan.device.sms));
  grid.threads = ZeroRowsKernel::threads;
  grid.clears = true;
  grid.set_params(p);
}

void add_check_rows(const Plan& plan, const GemmOperands& o, std::byte* workspace,
                    LaunchGrids& out) {
  kernel::CheckRowsParams p;
  p.index = tile::TokenIndex(o.groups->rows, o.groups->rows_divisor,
                             static_cast<int>(plan.problem.a.rows));
  p.rows = o.groups->rows;
  p.offsets = group_offsets(plan.problem, *o.groups);
  // Behind the word of the offsets.
  const std::int64_t at = plan.flag_bytes + std::int64_t{sizeof(std::uint32_t)};
  p.status = reinterpret_cast<std::uint32_t*>(workspace + at);
  Grid& grid = first_grid(out);
  grid.kernel = check_rows_kernel;
  grid.ctas = 1;
  grid.threads = kernel::CheckRowsKernel::threads;
  grid.workspace[0] = {"status of rows", at, at + 2 * std::int64_t{sizeof(std::uint32_t)}};
  grid.set_params(p);
}

// An operand as its copy has it.
MatrixView copied(MatrixView v, const OperandCopy& copy, std::byte* workspace) {
  v.data = workspace + copy.at;
  v.row_stride = copy.row_stride;
  v.column_stride = copy.column_stride;
  v.batch_stride = copy.batch_stride;
  return v;
}

kernel::CopiedRows copied_rows(const MatrixView& from, const MatrixView& to) {
  const auto bytes = [&](std::int64_t elements) {
    return elements * numeric::bits(from.dtype) / 8;
  };
  const bool is_k_major = to.column_stride == 1;
  kernel::CopiedRows c;
  c.from = static_cast<const unsigned char*>(from.data);
  c.to = static_cast<unsigned char*>(to.data);
  c.line_bytes = bytes(is_k_major ? from.columns : from.rows);
  c.lines = is_k_major ? from.rows : from.columns;
  c.matrices = matrices(from);
  c.from_pitch = bytes(is_k_major ? from.row_stride : from.column_stride);
  c.from_matrix = bytes(from.batch_stride);
  c.to_pitch = bytes(is_k_major ? to.row_stride : to.column_stride);
  return c;
}

void add_copy_rows(const Plan& plan, const GemmOperands& o, LaunchGrids& out) {
  using kernel::CopyRowsKernel;
  kernel::CopyRowsParams p;
  Grid& grid = first_grid(out);
  if (plan.a_copy) {
    p.copied[0] = copied_rows(o.a, out.operands.a);
    grid.workspace[0] = {"the copy of A", plan.a_copy->at, plan.a_copy->at + plan.a_copy->bytes};
  }
  if (plan.b_copy) {
    p.copied[1] = copied_rows(o.b, out.operands.b);
    grid.workspace[1] = {"the copy of B", plan.b_copy->at, plan.b_copy->at + plan.b_copy->bytes};
  }
  const std::int64_t chunks =
      CopyRowsKernel::chunks(p.copied[0]) + CopyRowsKernel::chunks(p.copied[1]);
  grid.kernel = copy_rows_kernel;
  grid.ctas = static_cast<int>(
      std::min<std::int64_t>((chunks + CopyRowsKernel::threads - 1) / CopyRowsKernel::threads,
                             std::int64_t{CopyRowsKernel::ctas_an_sm} * plan.device.sms));
  grid.threads = CopyRowsKernel::threads;
  grid.copies = true;
  grid.set_params(p);
}

}  // namespace

std::span<const Family* const> families() {
#define WW_FAMILY(Family_, family, ...) &family##_family(),
  static const std::array all = {WW_FAMILIES(WW_FAMILY)};
#undef WW_FAMILY
  return all;
}

void bind_launch(const Plan& plan, const GemmOperands& o, const LaunchMemory& memory, Encode encode,
                 LaunchGrids& out) {
  auto* const workspace = static_cast<std::byte*>(memory.workspace);
  out.operands = o;
  if (plan.a_copy) out.operands.a = copied(o.a, *plan.a_copy, workspace);
  if (plan.b_copy) out.operands.b = copied(o.b, *plan.b_copy, workspace);
  family_of(plan).bind(plan, out.operands, memory, encode, out);
  // alpha 0 reads neither A nor B, which need not be there.
  if ((plan.a_copy || plan.b_copy) && o.reads_ab()) add_copy_rows(plan, o, out);
  if (memory.check_offsets && o.is_by_index()) add_check_rows(plan, o, workspace, out);
  if (memory.zero_rest) add_zero_rows(plan, o, out);
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
  return known != nullptr ? *known->family : *families().front();
}

tile::GroupOffsets group_offsets(const GemmProblem& p, const Groups& groups) {
  return {groups.offsets, groups.type == OffsetType::int64, static_cast<int>(p.group_count()),
          static_cast<int>(p.m())};
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
