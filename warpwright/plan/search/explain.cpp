// A plan in words and tables, and the roofs it is held against.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/format.h"
#include "warpwright/plan/cost/group_lengths.h"
#include "warpwright/plan/families/family.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/plan/search/search.h"

namespace warpwright {
namespace {

std::string seconds(double s) {
  if (s >= 1e-3) return format("%.2f ms", s * 1e3);
  return format("%.2f us", s * 1e6);
}

// How D leaves the kernel.
std::string store_text(const Plan& plan, bool by_copies) {
  if (plan.d_path == EpiloguePath::elements) {
    return "element by element from shared memory (base, pitch or row length is no multiple of 16 "
           "bytes)";
  }
  return std::string(by_copies ? "TMA store" : "16 bytes a lane") + " from shared memory" +
         (plan.problem.groups ? ", up to the group's end" : "");
}

// How C enters it.
const char* load_text(const Plan& plan) {
  switch (plan.c_path) {
    case EpiloguePath::tma:
      return "TMA load into shared memory";
    case EpiloguePath::elements:
      if (result_path(plan.problem, false) == EpiloguePath::tma) {
        return "element by element into shared memory";
      }
      return "element by element into shared memory (base or pitch is no multiple of 16 bytes)";
    case EpiloguePath::none:
      break;
  }
  return "not read (there is none, or beta is 0)";
}

// The table of roles.
std::string role_table(const KernelFacts& f) {
  std::string out = "\nrole         warps   registers  does\n";
  for (const KernelRole& r : f.roles) {
    const std::string warps = std::to_string(r.first_warp) +
                              (r.last_warp > r.first_warp ? "-" + std::to_string(r.last_warp) : "");
    out += format("%-11s  %-6s  %3d        %s\n", r.name.c_str(), warps.c_str(), r.registers,
                  r.does.c_str());
  }
  return out;
}

// The rows as a table for a reader, with what the first wait's parity means.
std::string barrier_table(const std::vector<pipeline::BarrierRow>& rows) {
  if (rows.empty()) return {};
  std::size_t width = 7;
  for (const pipeline::BarrierRow& r : rows) width = std::max(width, std::string(r.name).size());
  const int column = static_cast<int>(width);
  std::string out = format(
      "\n%-*s  copies  arrivals  bytes   first wait parity  waits -> arrives\n", column, "barrier");
  for (const pipeline::BarrierRow& r : rows) {
    const int first = pipeline::first_parity(r);
    const std::string parity = std::to_string(first) + (r.alternates ? format(", %d", first ^ 1)
                                                        : first == 1 ? ", passes"
                                                                     : "");
    out += format("%-*s  %6d  %8d  %6d  %-17s  %s -> %s\n", column, r.name, r.copies, r.arrivals,
                  r.transaction_bytes, parity.c_str(), r.waiters, r.arrivers);
  }
  return out + "first wait parity: 1 passes on a fresh barrier, 0 waits for its first phase\n";
}

// A's type, or one of as many bits as the tensor core multiplies elements of less than 8 at.
DType multiplied_type(const GemmProblem& p) {
  const DType a = p.a.dtype;
  const bool widened = numeric::bits(a) < 8 && multiplies_bytes(a, p.b.dtype);
  return widened ? DType::e4m3 : a;
}

std::string bound_line(const Plan& plan) {
  const DeviceFacts& device = plan.device;
  if (device.flops_16bit > 0 && device.memory_bytes_per_second > 0) {
    return format("bound      %s: tensor cores %s at %.0f TFLOP/s, HBM %s at %.1f TB/s\n",
                  plan.bound() == Bound::tensor_cores ? "tensor cores" : "HBM",
                  seconds(plan.compute_seconds()).c_str(),
                  tensor_rate(device, multiplied_type(plan.problem)) / 1e12,
                  seconds(plan.memory_seconds()).c_str(), device.memory_bytes_per_second / 1e12);
  }
  return "bound      none: the model has no rates\n";
}

// The share of the grid that the last round fills.
std::string last_wave(const Plan& plan) {
  const double waves = plan.waves();
  if (waves == 0) return {};
  const double part = waves - std::floor(waves);
  return format(" (%.0f%% of the last full)", 100 * (part > 0 ? part : 1.0));
}

}  // namespace

std::string group_reason(const Plan& p, const std::optional<Plan>& next) {
  const int tokens = p.facts().result_rows;
  std::string text =
      format("%.6g tokens %s a group: ", expected_tokens(p.problem),
             p.problem.groups->expected_tokens > 0 ? "expected in" : "on average in");
  text +=
      p.facts().swap_ab
          ? format("few, so the weights lie on wgmma's M and tiles have %d tokens on its N", tokens)
          : format("enough to fill wgmma's M with them, in tiles of %d", tokens);
  text += format("; by its cost, %.1f us", p.cost * 1e6);
  if (next) text += format(", next %s, %.1f us", next->name().c_str(), next->cost * 1e6);
  return text;
}

const char* search_name(kernel::Grouping search) {
  constexpr const char* names[] = {"none", "linear_scan", "binary_search", "warp_scan"};
  return names[static_cast<std::size_t>(search)];
}

double expected_tokens(const GemmProblem& p) {
  if (!p.groups) return 0;
  const auto total = static_cast<double>(p.m());
  if (p.groups->expected_tokens > 0) return std::min(p.groups->expected_tokens, total);
  return total / static_cast<double>(p.group_count());
}

double busy_groups(const GemmProblem& p) {
  return group_lengths(p).busy;
}

std::int64_t Plan::tiles() const {
  if (problem.groups) return std::int64_t{tile::tile_count(raster)} * cluster_ctas();
  const KernelFacts& f = facts();
  if (f.result_rows == 0) return 0;
  return (problem.m() + f.result_rows - 1) / f.result_rows *
         ((result_columns(problem) + f.result_columns - 1) / f.result_columns) * problem.batch();
}

double Plan::waves() const {
  if (ctas == 0) return 0;
  const int size = cluster_ctas();
  return static_cast<double>(tile::tile_count(raster)) * size /
         std::min(ctas, facts().ctas_per_sm * resident_ctas(device, size));
}

double operations(const GemmProblem& p) {
  return 2.0 * static_cast<double>(p.m()) * static_cast<double>(p.n()) *
         static_cast<double>(p.k()) * static_cast<double>(p.batch());
}

double moved_bytes(const GemmProblem& p) {
  // For groups: a B for each that is expected to have rows.
  return moved_bytes(p, p.groups ? busy_groups(p) : 1);
}

double moved_bytes(const GemmProblem& p, double matrices) {
  const auto bytes = [&p](DType t, std::int64_t rows, std::int64_t columns, bool shared) {
    return static_cast<double>(rows) * static_cast<double>(columns) *
           static_cast<double>(shared ? 1 : p.batch()) * numeric::bits(t) / 8;
  };
  double moved = bytes(p.d.dtype, p.m(), result_columns(p), false);
  if (p.reads_c()) moved += bytes(p.c.dtype, p.m(), result_columns(p), p.c.batch_stride == 0);
  if (p.is_quantised()) {
    const MatrixShape s = d_scales_shape(p);
    moved += bytes(s.dtype, s.rows, s.columns, false);
  }
  const GemmProblem known = normalised(p);
  for_each_side_of(
      [&](std::string_view name, const PlannedMatrix& side) {
        // Scales are counted apart, and one number is next to nothing.
        if (name.starts_with("scale_") || name.starts_with("factor_")) return;
        moved += bytes(side.dtype, side.rows, side.columns, true);
      },
      known);
  if (!p.reads_ab()) return moved;
  const bool one_a = p.a.batch_stride == 0;
  const bool one_b = p.b.batch_stride == 0;
  double of_b = bytes(p.b.dtype, p.n(), p.k(), one_b);
  if (p.packed) {
    of_b = static_cast<double>(
        packed::data_bytes(p.packed->format, {one_b ? 1 : p.batch(), p.n(), p.k()}));
  }
  // For tokens by index each that may be asked for.
  moved += bytes(p.a.dtype, p.is_by_index() ? std::min(p.a.rows, p.m()) : p.m(), p.k(), one_a);
  for (const bool of_a : {true, false}) {
    if (serves_all(scale_reach(p, of_a))) continue;                      // next to nothing
    if (!of_a && p.packed && p.scaling == Scaling::blockwise) continue;  // part of the tiles
    const MatrixShape s = scale_shape(p, of_a);
    (of_a ? moved : of_b) += bytes(s.dtype, s.rows, s.columns, of_a ? one_a : one_b);
  }
  return moved + matrices * of_b;
}

double tensor_rate(const DeviceFacts& device, DType type) {
  return device.flops_16bit * 16 / numeric::bits(type);
}

double Plan::compute_seconds() const {
  const double rate = tensor_rate(device, multiplied_type(problem));
  return rate > 0 ? operations(problem) / rate : 0;
}

double Plan::memory_seconds() const {
  if (device.memory_bytes_per_second == 0) return 0;
  return moved_bytes(problem) / device.memory_bytes_per_second;
}

Bound Plan::bound() const {
  return compute_seconds() >= memory_seconds() ? Bound::tensor_cores : Bound::memory;
}

std::string Plan::name() const {
  const std::string along_k = cluster_k > 1 ? "x" + std::to_string(cluster_k) : "";
  const bool could_be_dynamic =
      facts().tiles == kernel::TileSource::dynamic_persistent && waves() > 1;
  return format(
      "%s_c%dx%d%s%s", kernel.empty() ? "none" : kernel.c_str(), cluster.m, cluster.n,
      along_k.c_str(),
      could_be_dynamic && tile_source != kernel::TileSource::dynamic_persistent ? "_static" : "");
}

std::vector<pipeline::BarrierRow> Plan::barriers() const {
  return family_of(*this).barriers(*this);
}

std::string Plan::explain() const {
  const KernelFacts& f = facts();
  const ExplainParts parts = family_of(*this).explain(*this);
  std::string out = "problem    " + formula(problem) + "\n";
  out += format("device     %s, sm_%d, %d SMs\n", device.name.c_str(), device.architecture,
                device.sms);
  out += format("kernel     %s, %s: ", f.family, name().c_str()) + parts.kernel;
  if (!reason.empty()) out += "choice     " + reason + "\n";
  out += format("D          %s\n", store_text(*this, parts.tensor_store).c_str());
  out += format("C          %s\n", load_text(*this));

  out += format("\nshared memory  %d of %lld bytes\n", f.shared_bytes,
                static_cast<long long>(device.shared_bytes_per_cta));
  for (const SharedRegion& r : f.regions) {
    if (r.end == r.begin) continue;
    out += format("  %6d .. %6d  %-17s %6d bytes\n", r.begin, r.end - 1, r.what, r.end - r.begin);
  }
  out += role_table(f);
  out += barrier_table(barriers());
  out += parts.beside;

  out += format("\ntiles      %lld%s, in %d cluster tiles of %d CTAs, bands of %d\n",
                static_cast<long long>(tiles()), problem.groups ? " expected" : "",
                tile::tile_count(raster), atom::cluster_size(cluster), raster.band);
  out +=
      format("grid       %d %sCTAs, %.2f waves%s%s\n", ctas, parts.persistent ? "persistent " : "",
             waves(), last_wave(*this).c_str(), problem.groups ? ", whatever the lengths" : "");
  out += bound_line(*this);
  std::string uses;
  const auto use = [&](const char* what) {
    uses += (uses.empty() ? ", used by " : ", ") + std::string(what);
  };
  if (tile_source == kernel::TileSource::dynamic_persistent)
    use("the counter of tiles (may be left out)");
  if (problem.groups) use("the check of the offsets");
  if (a_copy) use("a copy of A");
  if (b_copy) use("a copy of B");
  out += format("workspace  %lld bytes%s\n", static_cast<long long>(workspace_bytes), uses.c_str());
  return out;
}

}  // namespace warpwright
