// A plan in words and tables.
#include <algorithm>
#include <cmath>

#include "warpwright/pipeline/ordered_sequence.h"
#include "warpwright/plan/explain_parts.h"
#include "warpwright/plan/rules.h"

namespace warpwright {
namespace {

using kernel::GemmConfig;

std::string seconds(double s) {
  if (s >= 1e-3) return format("%.2f ms", s * 1e3);
  return format("%.2f us", s * 1e6);
}

// How D leaves the kernel.
const char* store_text(const Plan& plan) {
  if (plan.d_path == EpiloguePath::elements) {
    return "element by element from shared memory (base, pitch or row length is no multiple of 16 "
           "bytes)";
  }
  return plan.config.store == kernel::Store::tensor ? "TMA store from shared memory"
                                                    : "16 bytes a lane from shared memory";
}

// How C enters it.
const char* load_text(const Plan& plan) {
  switch (plan.c_path) {
    case EpiloguePath::copy_engine:
      return "TMA load into shared memory";
    case EpiloguePath::elements:
      return "element by element into shared memory (base or pitch is no multiple of 16 bytes)";
    case EpiloguePath::none:
      break;
  }
  return "not read (beta is 0)";
}

// Where sums are kept, and what becomes of them besides alpha and beta.
std::string sums_text(const Plan& plan) {
  std::string text;
  switch (plan.config.sums) {
    case kernel::Sums::tensor_core:
      text = "in the tensor core's accumulators";
      if (kernel::operand_bits(plan.config) == 8) {
        text += ", 13 bits below the leading one (fast accumulation)";
      }
      break;
    case kernel::Sums::promoted:
      text = format("added to float32 registers every %d of K", kernel::tile_k(plan.config));
      break;
    case kernel::Sums::block_scaled:
      text = format("added to float32 registers every %d of K, times the block's scales",
                    kernel::tile_k(plan.config));
      break;
  }
  if (plan.config.gated) text += "; a tile holds the same part of both halves of N";
  return text;
}

// What is asked, and of which device.
std::string heading(const Plan& plan) {
  return "problem    " + formula(plan.problem) + "\n" +
         format("device     %s, sm_%d, %d SMs\n", plan.device.name.c_str(),
                plan.device.architecture, plan.device.sms);
}

std::string bound_line(const Plan& plan) {
  const DeviceFacts& device = plan.device;
  if (device.flops_16bit > 0 && device.memory_bytes_per_second > 0) {
    return format("bound      %s: tensor cores %s at %.0f TFLOP/s, HBM %s at %.1f TB/s\n",
                  plan.bound() == Bound::tensor_cores ? "tensor cores" : "HBM",
                  seconds(plan.compute_seconds()).c_str(),
                  tensor_rate(device, plan.problem.a) / 1e12,
                  seconds(plan.memory_seconds()).c_str(), device.memory_bytes_per_second / 1e12);
  }
  return "bound      none: the model has no rates\n";
}

}  // namespace

TileShape Plan::tile() const {
  if (blackwell) return {blackwell->tile_m, blackwell->tile_n, kernel::tile_k(*blackwell)};
  return {config.tile_m, config.tile_n, kernel::tile_k(config)};
}

int Plan::threads() const {
  return blackwell ? kernel::threads(*blackwell) : kernel::threads(config);
}

int Plan::shared_bytes() const {
  return blackwell ? kernel::smem_map(*blackwell).bytes : kernel::smem_map(config).bytes;
}

const char* Plan::role_of_warp(int warp) const {
  return blackwell ? kernel::role_of_warp(*blackwell, warp) : kernel::role_of_warp(config, warp);
}

std::int64_t Plan::tiles() const {
  if (blackwell) {
    const auto [m, n, k] = tile();
    return ((problem.m + m - 1) / m) * ((problem.n + n - 1) / n) * problem.batch;
  }
  const std::int64_t rows = config.swapped ? result_columns(problem) : problem.m;
  const std::int64_t columns = config.swapped ? problem.m : result_columns(problem);
  const int tm = kernel::result_rows(config);
  const int tn = kernel::result_columns(config);
  return (rows + tm - 1) / tm * ((columns + tn - 1) / tn) * problem.batch;
}

double Plan::waves() const {
  if (ctas == 0) return 0;
  const int size = cluster_ctas();
  return static_cast<double>(tile::tile_count(raster)) * size /
         std::min(ctas, config.ctas_per_sm * resident_ctas(device, size));
}

double operations(const GemmProblem& p) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
         static_cast<double>(p.batch);
}

double moved_bytes(const GemmProblem& p) {
  const auto bytes = [&p](DType t, std::int64_t rows, std::int64_t columns, bool shared) {
    return static_cast<double>(rows) * static_cast<double>(columns) *
           static_cast<double>(shared ? 1 : p.batch) * numeric::bits(t) / 8;
  };
  double moved = bytes(p.d, p.m, result_columns(p), false);
  if (p.reads_c) moved += bytes(p.c, p.m, result_columns(p), p.c_batch_stride == 0);
  if (p.epilogue.bias != Bias::none) {
    moved += bytes(p.bias, p.epilogue.bias == Bias::rows ? p.m : p.n, 1, true);
  }
  if (!p.reads_ab) return moved;
  const bool one_a = p.a_batch_stride == 0;
  const bool one_b = p.b_batch_stride == 0;
  moved += bytes(p.a, p.m, p.k, one_a) + bytes(p.b, p.n, p.k, one_b);
  const std::int64_t blocks = (p.k + 127) / 128;
  if (p.scaling == Scaling::row_column) {
    moved += bytes(DType::f32, p.m, 1, one_a) + bytes(DType::f32, p.n, 1, one_b);
  } else if (p.scaling == Scaling::block) {
    moved +=
        bytes(DType::f32, p.m, blocks, one_a) + bytes(DType::f32, (p.n + 127) / 128, blocks, one_b);
  }
  return moved;
}

double tensor_rate(const DeviceFacts& device, DType type) {
  return device.flops_16bit * (numeric::bits(type) == 8 ? 2 : 1);
}

double Plan::compute_seconds() const {
  const double rate = tensor_rate(device, problem.a);
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
  if (blackwell) return blackwell_name(*this);
  const std::string instance = kernel.empty() ? "none" : kernel;
  const std::string along_k = cluster_k > 1 ? "x" + std::to_string(cluster_k) : "";
  return format("%s_c%dx%d%s", instance.c_str(), cluster.m, cluster.n, along_k.c_str());
}

std::vector<pipeline::BarrierRow> Plan::barriers() const {
  if (blackwell) return blackwell_barriers(*this);
  const pipeline::TmaPipelineShape shape = kernel::mainloop_shape(config);
  std::vector<pipeline::BarrierRow> rows = {pipeline::full_row(shape),
                                            pipeline::empty_row(shape, cluster)};
  rows.push_back(kernel::c_full_row(config));
  if (config.schedule == kernel::Schedule::pingpong) rows.push_back(pipeline::turn_row());
  return rows;
}

std::string barrier_table(const std::vector<pipeline::BarrierRow>& rows) {
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

ExplainParts hopper_parts(const Plan& plan) {
  const GemmConfig& c = plan.config;
  const atom::ClusterShape cluster = plan.cluster;
  const kernel::SmemMap map = kernel::smem_map(c);
  ExplainParts parts;
  std::string& out = parts.kernel;
  constexpr const char* schedules[] = {"cooperative", "ping-pong", "multistage"};
  out += format("kernel     hopper_gemm, %s: persistent, %s%s%s%s\n", plan.name().c_str(),
                kernel::has_producer(c) ? "warp-specialised, " : "",
                schedules[static_cast<int>(c.schedule)],
                c.swapped ? ", operands swapped (rows are columns of D)" : "",
                c.sharing == kernel::Sharing::workspace ? ", split along K" : "");
  out +=
      format("tile       %d x %d x %d, wgmma m64n%dk%d, %d consumer warpgroups of %d rows each\n",
             c.tile_m, c.tile_n, kernel::tile_k(c), c.tile_n, atom::wgmma_k(c.a.multiplied),
             c.consumer_warpgroups, kernel::warpgroup_rows(c));
  out += format("cluster    %d x %d", cluster.m, cluster.n);
  if (cluster.n > 1) {
    out += format(", A multicast to %d CTAs in slices of %d rows", cluster.n, c.tile_m / cluster.n);
  }
  if (cluster.m > 1) {
    out += format(", B multicast to %d CTAs in slices of %d rows", cluster.m, c.tile_n / cluster.m);
  }
  out += "\n";
  const auto shape = kernel::mainloop_shape(c);
  out += format("stages     %d of %d bytes (A %d, B %d)\n", c.stages, shape.stage_bytes,
                atom::tile_bytes(kernel::tile_a(c)), atom::tile_bytes(kernel::tile_b(c)));
  parts.regions = {{"A stages", map.a, map.b},
                   {"B stages", map.b, map.epilogue},
                   {"epilogue buffers", map.epilogue, map.scales},
                   {"block scales", map.scales, map.barriers},
                   {"barriers", map.barriers, map.bytes}};
  out += format("sums       %s\n", sums_text(plan).c_str());

  std::string& roles = parts.roles;
  roles += "\nrole         warps   registers  does\n";
  if (kernel::has_producer(c)) {
    const int registers = kernel::producer_registers(c);
    const bool scales = c.sums == kernel::Sums::block_scaled;
    roles += format("producer     0       %3d        one lane issues the TMA loads of A and B\n",
                    registers);
    if (scales) {
      roles += format("scales       1       %3d        fetches block scales that are not copied\n",
                      registers);
    }
    roles += format("idle         %d-3     %3d        %s\n", scales ? 2 : 1, registers,
                    kernel::moves_registers(c) ? "gave their registers away" : "nothing");
  }
  for (int w = 0; w < c.consumer_warpgroups; ++w) {
    const int warp = kernel::first_consumer_warp(c) + 4 * w;
    roles += format(
        "consumer %d   %d-%-3d  %3d        wgmma on %d rows from row %d, then the epilogue%s\n", w,
        warp, warp + 3, kernel::consumer_registers(c), kernel::warpgroup_rows(c),
        kernel::atom_row(c, w, 0),
        !kernel::has_producer(c) && w == 0 ? "; a lane of warp 0 issues the loads" : "");
  }
  return parts;
}

std::string Plan::explain() const {
  const ExplainParts parts = blackwell ? blackwell_parts(*this) : hopper_parts(*this);
  std::string out = heading(*this) + parts.kernel;
  out += format("D          %s\n", store_text(*this));
  out += format("C          %s\n", load_text(*this));

  out +=
      format("\nshared memory  %d of %d bytes\n", parts.regions.back().end, kernel::max_smem_bytes);
  for (const SmemRegion& r : parts.regions) {
    if (r.end == r.begin) continue;
    out += format("  %6d .. %6d  %-17s %6d bytes\n", r.begin, r.end - 1, r.what, r.end - r.begin);
  }
  out += parts.roles;

  out += barrier_table(barriers());
  out += parts.beside;

  out += format("\ntiles      %lld, in %d cluster tiles of %d CTAs, bands of %d\n",
                static_cast<long long>(tiles()), tile::tile_count(raster),
                atom::cluster_size(cluster), raster.band);
  out += format(
      "grid       %d %sCTAs, %.2f waves%s\n", ctas, parts.persistent ? "persistent " : "", waves(),
      waves() > 0
          ? format(" (%.0f%% of the last full)",
                   100 * (waves() - std::floor(waves()) > 0 ? waves() - std::floor(waves()) : 1.0))
                .c_str()
          : "");
  out += bound_line(*this);
  out += format("workspace  %lld bytes\n", static_cast<long long>(workspace_bytes));
  return out;
}

}  // namespace warpwright
