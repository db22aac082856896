// What a Blackwell plan says of itself.
#include "warpwright/plan/explain_parts.h"

namespace warpwright {
namespace {

using kernel::BlackwellConfig;
using kernel::TileSource;

bool controlled(const BlackwellConfig& c) {
  return c.tiles == TileSource::launch_control;
}

const char* source_text(const BlackwellConfig& c) {
  switch (c.tiles) {
    case TileSource::one_tile:
      return "one tile a cluster";
    case TileSource::static_persistent:
      return "persistent, static shares of the tiles";
    case TileSource::launch_control:
      return "persistent, tiles from launch control";
  }
  return "";
}

std::string cluster_line(const Plan& plan) {
  const BlackwellConfig& c = *plan.blackwell;
  const atom::ClusterShape cluster = plan.cluster;
  const int sharing_b = cluster.m / kernel::ctas_of_mma(c);
  std::string line = format("cluster    %d x %d", cluster.m, cluster.n);
  if (c.pair) line += format(", %d pairs", atom::cluster_size(cluster) / 2);
  if (cluster.n > 1) {
    line +=
        format(", A multicast to %d CTAs in slices of %d rows", cluster.n, c.tile_m / cluster.n);
  }
  if (sharing_b > 1) {
    line +=
        format(", B multicast to %d CTAs in slices of %d rows", sharing_b, c.tile_n / cluster.m);
  }
  return line + "\n";
}

// Who receives whose slices, and whose barriers an MMA's commit reaches.
std::string masks_table(const Plan& plan) {
  std::string out = "\nrank  A mask  B mask  commit  arrivals\n";
  for (int rank = 0; rank < atom::cluster_size(plan.cluster); ++rank) {
    const atom::Masks masks = atom::masks(plan.cluster, rank, plan.blackwell->pair);
    out += format("%4d  0x%04x  0x%04x  0x%04x  %8d\n", rank, masks.a, masks.b, masks.commit,
                  masks.arrivals);
  }
  return out;
}

std::string tmem_table(const BlackwellConfig& c) {
  const int columns = kernel::accumulator_columns(c);
  std::string out = format("\ntensor memory  %d of %d columns allocated\n", kernel::tmem_columns(c),
                           atom::kTmemColumns);
  for (int i = 0; i < c.accumulators; ++i) {
    out += format("  columns %3d .. %3d  accumulator %d, 128 rows of f32\n", i * columns,
                  (i + 1) * columns - 1, i);
  }
  return out;
}

}  // namespace

std::string blackwell_name(const Plan& plan) {
  const BlackwellConfig& c = *plan.blackwell;
  const char* source = controlled(c) ? "clc" : c.tiles == TileSource::one_tile ? "one" : "static";
  return format(
      "%s_%s_%dx%dx%d%s_s%d_a%d_%s_c%dx%d", std::string(numeric::name(plan.problem.a)).c_str(),
      std::string(numeric::name(plan.problem.d)).c_str(), c.tile_m, c.tile_n, kernel::tile_k(c),
      c.pair ? "_pair" : "", c.stages, c.accumulators, source, plan.cluster.m, plan.cluster.n);
}

std::vector<pipeline::BarrierRow> blackwell_barriers(const Plan& plan) {
  const BlackwellConfig& c = *plan.blackwell;
  const pipeline::UmmaPipelineShape ring = kernel::mainloop_shape(c);
  const pipeline::UmmaAccumulatorShape accumulators = kernel::accumulator_shape(c);
  std::vector<pipeline::BarrierRow> rows = {
      pipeline::full_row(ring), pipeline::empty_row(ring, plan.cluster),
      pipeline::acc_full_row(accumulators), pipeline::acc_empty_row(accumulators)};
  if (c.pair) rows.push_back(pipeline::tmem_done_row());
  rows.push_back(kernel::c_full_row(c));
  if (controlled(c)) {
    const pipeline::LaunchControlShape answers = kernel::launch_control_shape(c);
    rows.push_back(pipeline::tile_full_row(answers));
    rows.push_back(pipeline::tile_empty_row(answers, plan.cluster));
  }
  return rows;
}

ExplainParts blackwell_parts(const Plan& plan) {
  const BlackwellConfig& c = *plan.blackwell;
  const atom::UmmaAtom mma = kernel::mma_atom(c, plan.problem.a, plan.problem.b);
  const kernel::BlackwellSmemMap map = kernel::smem_map(c);
  ExplainParts parts;
  parts.persistent = c.tiles == TileSource::static_persistent;
  parts.kernel = format("kernel     blackwell_gemm, %s: warp-specialised, %s\n",
                        plan.name().c_str(), source_text(c));
  parts.kernel +=
      format("tile       %d x %d x %d a CTA, MMA m%dn%dk%d of kind %s, %s\n", c.tile_m, c.tile_n,
             kernel::tile_k(c), mma.m, mma.n, mma.k, atom::name(c.kind),
             c.pair ? "of two SMs: each holds half of A's rows and of B's columns" : "of one SM");
  parts.kernel += cluster_line(plan);
  parts.kernel += format("stages     %d of %d bytes (A %d, B %d)\n", c.stages,
                         kernel::mainloop_shape(c).stage_bytes, atom::tile_bytes(kernel::tile_a(c)),
                         atom::tile_bytes(kernel::tile_b(c)));
  parts.regions = {{"A stages", map.a, map.b},
                   {"B stages", map.b, map.epilogue},
                   {"epilogue buffers", map.epilogue, map.answers}};
  if (controlled(c)) parts.regions.push_back({"tile answers", map.answers, map.barriers});
  parts.regions.push_back({"barriers", map.barriers, map.tmem});
  parts.regions.push_back({"TMEM address", map.tmem, map.bytes});
  parts.roles = "\nrole         warps   does\n";
  parts.roles += "load         0       one lane issues the TMA loads of A and B\n";
  parts.roles += c.pair ? "mma          1       one lane of the even CTA issues the MMAs of both; "
                          "owns the tensor memory\n"
                        : "mma          1       one lane issues the MMAs; owns the tensor memory\n";
  parts.roles += controlled(c)
                     ? "scheduler    2       one lane asks launch control for the next tile\n"
                       "idle         3\n"
                     : "idle         2-3\n";
  parts.roles +=
      "epilogue     4-7     tensor memory -> registers -> shared memory -> D, 32 rows a "
      "warp\n";
  parts.beside = tmem_table(c) + masks_table(plan);
  return parts;
}

}  // namespace warpwright
