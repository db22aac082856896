#include "cli/reports/plan_json.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

ordered_json known(double value) {
  return value > 0 ? ordered_json(value) : ordered_json();
}
ordered_json known(std::int64_t value) {
  return value > 0 ? ordered_json(value) : ordered_json();
}

ordered_json types_json(const std::vector<DType>& types) {
  ordered_json words = ordered_json::array();
  for (const DType t : types) words.push_back(numeric::word(t));
  return words;
}

const char* path_name(EpiloguePath path) {
  constexpr const char* names[] = {"none", "tma", "elements"};
  return names[static_cast<std::size_t>(path)];
}

const char* source_name(kernel::TileSource source) {
  constexpr const char* names[] = {"one", "static", "clc", "dynamic"};  // as --scheduler has them
  return names[static_cast<std::size_t>(source)];
}

ordered_json roles_json(const KernelFacts& f) {
  ordered_json roles = ordered_json::array();
  for (const KernelRole& r : f.roles) {
    roles.push_back({{"role", r.name},
                     {"first_warp", r.first_warp},
                     {"last_warp", r.last_warp},
                     {"registers", r.registers},
                     {"does", r.does}});
  }
  return roles;
}

ordered_json regions_json(const KernelFacts& f) {
  ordered_json regions = ordered_json::array();
  for (const SharedRegion& r : f.regions) {
    if (r.end > r.begin) {
      regions.push_back({{"what", r.what}, {"begin", r.begin}, {"bytes", r.end - r.begin}});
    }
  }
  return regions;
}

ordered_json barriers_json(const Plan& plan) {
  ordered_json barriers = ordered_json::array();
  for (const pipeline::BarrierRow& r : plan.barriers()) {
    barriers.push_back({{"barrier", r.name},
                        {"copies", r.copies},
                        {"arrivals", r.arrivals},
                        {"transaction_bytes", r.transaction_bytes},
                        {"first_wait_parity", pipeline::first_parity(r)},
                        {"alternates", r.alternates},
                        {"waiters", r.waiters},
                        {"arrivers", r.arrivers}});
  }
  return barriers;
}

}  // namespace

ordered_json kernel_json(const KernelFacts& f) {
  ordered_json json;
  json["kernel"] = f.name;
  json["built"] = f.built;
  json["family"] = f.family;
  json["architectures"] = f.architectures;
  json["a_dtypes"] = types_json(f.a);
  json["b_dtypes"] = types_json(f.b);
  json["d_dtype"] = numeric::word(f.result);
  json["grouped"] = f.grouped;
  json["swap_ab"] = f.swap_ab;
  json["features"] = f.features;
  json["tile_m"] = f.tile.m;
  json["tile_n"] = f.tile.n;
  json["tile_k"] = f.tile.k;
  json["d_rows"] = f.result_rows;
  json["d_columns"] = f.result_columns;
  json["stages"] = f.stages;
  json["threads"] = f.threads;
  json["registers"] = f.registers;
  json["shared_bytes"] = f.shared_bytes;
  json["ctas_per_sm"] = f.ctas_per_sm;
  json["most_cluster_ctas"] = f.most_cluster_ctas();
  json["scheduler"] = source_name(f.tiles);
  return json;
}

ordered_json device_json(const DeviceFacts& d) {
  ordered_json json;
  json["name"] = d.name;
  json["is_model"] = d.is_model;
  json["architecture"] = d.architecture;
  json["sms"] = d.sms;
  json["shared_bytes_per_cta"] = d.shared_bytes_per_cta;
  json["l2_bytes"] = known(d.l2_bytes);
  json["memory_bytes"] = known(d.memory_bytes);
  json["clock_hz"] = known(d.clock_hz);
  json["memory_bytes_per_second"] = known(d.memory_bytes_per_second);
  json["flops_16bit"] = known(d.flops_16bit);
  return json;
}

ordered_json plan_json(const Plan& plan) {
  const KernelFacts& f = plan.facts();
  const GemmProblem& p = plan.problem;
  ordered_json json;
  json["plan"] = plan.name();
  json["device"] = plan.device.name;
  json["architecture"] = plan.device.architecture;
  json["sms"] = plan.device.sms;
  json["kernel"] = kernel_json(f);
  json["batch"] = p.batch();
  json["m"] = p.m();
  json["n"] = p.n();
  json["k"] = p.k();
  json["groups"] = p.group_count();
  json["dtype"] = {numeric::word(p.a.dtype), numeric::word(p.b.dtype)};
  json["d_dtype"] = numeric::word(p.d.dtype);
  json["scaling"] = name(p.scaling);
  json["cluster"] = {plan.cluster.m, plan.cluster.n};
  json["cluster_k"] = plan.cluster_k;
  json["ctas"] = plan.ctas;
  json["tiles"] = plan.tiles();
  json["waves"] = plan.waves();
  json["scheduler"] = source_name(plan.tile_source);
  json["d_path"] = path_name(plan.d_path);
  json["c_path"] = path_name(plan.c_path);
  json["a_copy_bytes"] = plan.a_copy ? plan.a_copy->bytes : 0;  // into the workspace, first
  json["b_copy_bytes"] = plan.b_copy ? plan.b_copy->bytes : 0;
  json["workspace_bytes"] = plan.workspace_bytes;
  json["compute_seconds"] = known(plan.compute_seconds());
  json["memory_seconds"] = known(plan.memory_seconds());
  const bool has_rates = plan.compute_seconds() > 0 && plan.memory_seconds() > 0;
  const char* const bound = plan.bound() == Bound::memory ? "memory" : "tensor_cores";
  json["bound"] = has_rates ? ordered_json(bound) : ordered_json();
  json["reason"] = plan.reason;
  json["shared_memory"] = regions_json(f);
  json["roles"] = roles_json(f);
  json["barriers"] = barriers_json(plan);
  return json;
}

}  // namespace warpwright::cli
