// The Blackwell family: the choice of a kernel, what it says of itself, and the grid of a launch.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "warpwright/atom/mask_text.h"
#include "warpwright/kernel/blackwell/facts.h"
#include "warpwright/kernel/blackwell/params.h"
#include "warpwright/plan/families/bind.h"
#include "warpwright/plan/families/blackwell_scales.h"
#include "warpwright/plan/families/kernels.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/plan/search/explain_text.h"

namespace warpwright {
namespace {

using kernel::BlackwellConfig;
using kernel::TileSource;

std::optional<Refusal> layout_fault(const GemmProblem& p) {
  if (!p.reads_ab() || p.m() == 0 || p.n() == 0) return std::nullopt;
  for (const auto& [major, name] : {std::pair{major_a(p), "A"}, {major_b(p), "B"}}) {
    if (major == atom::Major::k) continue;
    return refuse(RefusalCode::unsupported, as_tensor(name), " is MN-major; ",
                  as_rule("the kernels of sm_100 take K-major operands alone: neighbours along K "
                          "next to each other, column stride 1"));
  }
  return std::nullopt;
}

// What the Hopper kernels compute and these do not.
std::optional<Refusal> feature_fault(const GemmProblem& p) {
  if (p.packed) {
    return refuse(RefusalCode::unsupported, as_tensor("B"), " are packed int4 weights; ",
                  as_rule("the kernels of sm_100 take none"), ": the nearest B is ",
                  as_nearest("e4m3"));
  }
  if (p.scaling == Scaling::blockwise) {
    return refuse(RefusalCode::unsupported, "scaling is blockwise; ",
                  as_rule("the kernels of sm_100 have no block scales"),
                  ": the nearest scaling is ", as_nearest("row-column"));
  }
  if (p.accumulation == Accumulation::promoted) {
    return refuse(RefusalCode::unsupported, "accumulation is promoted; ",
                  as_rule("the tensor cores of sm_100 add in float32 without it"),
                  ": the nearest accumulation is ", as_nearest("fast"));
  }
  if (p.epilogue.gated) {
    return refuse(RefusalCode::unsupported, "the epilogue is gated; ",
                  as_rule("the kernels of sm_100 multiply without a gate: leave it out"));
  }
  if (is_8bit_float(p.d.dtype) && !p.is_quantised()) {
    return refuse(RefusalCode::unsupported, as_tensor("D"), " is ", type_name(p.d.dtype), "; ",
                  as_rule("the kernels of sm_100 store bf16, fp16 and f32"), ": the nearest is ",
                  as_nearest("bf16"));
  }
  return layout_fault(p);
}

// The number of accumulators nearest to what is asked for that a kernel has; 0 where none has the
// tile.
int nearest_accumulators(const PlanChoices& choices) {
  int nearest = 0;
  const auto far = [&](int count) { return std::abs(std::int64_t{count} - *choices.accumulators); };
  for (const auto& i : blackwell_kernels()) {
    const BlackwellConfig& c = i.config;
    if (c.tile_m != choices.tile_m.value_or(c.tile_m)) continue;
    if (c.tile_n != choices.tile_n.value_or(c.tile_n)) continue;
    if (c.pair != choices.pair.value_or(c.pair)) continue;
    if (nearest == 0 || far(c.accumulators) < far(nearest)) nearest = c.accumulators;
  }
  return nearest;
}

// Clusters without the CTAs of a pair, and accumulators that tensor memory does not hold.
std::optional<Refusal> memory_fault(const PlanChoices& choices) {
  if (choices.cluster) {
    const bool pair = choices.pair.value_or(false);
    const std::string refusal = atom::cluster_refusal(*choices.cluster, pair);
    if (!refusal.empty()) {
      Sentence said = refusal.substr(0, refusal.size() - 1);
      said.rule = sentence(atom::cluster_fault(*choices.cluster, pair));
      said.nearest = atom::cluster_text(atom::nearest_legal(*choices.cluster, pair));
      return Refusal(RefusalCode::bad_choice, std::move(said));
    }
  }
  if (choices.accumulators) {
    const int tile_n = choices.tile_n.value_or(128);
    const std::int64_t wanted = std::int64_t{*choices.accumulators} * tile_n;
    const int nearest = nearest_accumulators(choices);
    if (nearest > 0 && (*choices.accumulators < 1 || wanted > atom::kTmemColumns)) {
      return refuse(RefusalCode::bad_choice, *choices.accumulators, " accumulators of ", tile_n,
                    " columns need ", std::max<std::int64_t>(0, wanted),
                    " columns of tensor memory, which has 512; the nearest legal number is ",
                    as_nearest(nearest));
    }
  }
  return std::nullopt;
}

// Predicted time of a candidate, up to a factor. No Blackwell was at hand to measure: rounds of
// tiles, that a pair, and a cluster, read less of their operands, and that with one accumulator the
// MMAs of a tile wait for the epilogue of the one before, about as long as two k_tiles take. It
// orders candidates and is shown to nobody.
double cost(const Plan& p, const BlackwellConfig& c) {
  if (p.ctas == 0) return 0;
  const auto [m, n, k] = p.tile();
  const bool waits = c.accumulators == 1 && c.tiles != TileSource::one_tile;
  const double depth = static_cast<double>(p.problem.k()) + 64 + (waits ? 2.0 * k : 0);
  double time = std::ceil(p.waves()) * m * n * depth;
  if (!c.pair) time *= 1.05;
  if (atom::cluster_size(p.cluster) == 1) time *= 1.06;
  return time;
}

// The grid of the tile source, and the walk over the tiles; false when the caller wants another
// grid, or the tiles are more than a grid has CTAs.
bool lay_out(Plan& plan, const BlackwellConfig& config, const PlanChoices& choices) {
  plan.tile_source = config.tiles;
  const int size = atom::cluster_size(plan.cluster);
  const auto tiles_m = static_cast<int>((plan.problem.m() + config.tile_m - 1) / config.tile_m);
  const auto tiles_n = static_cast<int>((plan.problem.n() + config.tile_n - 1) / config.tile_n);
  const int resident = resident_ctas(plan.device, size);
  plan.raster = tile::make_raster(
      tiles_m, tiles_n, plan.cluster, resident,
      {.row = static_cast<double>(config.tile_m), .column = static_cast<double>(config.tile_n)});
  plan.raster.batch = static_cast<int>(plan.problem.batch());
  const std::int64_t each = std::int64_t{plan.raster.tiles_m} * plan.raster.tiles_n;
  if (each > max_extent / size / plan.problem.batch()) return false;
  const int all = tile::tile_count(plan.raster) * size;
  const bool is_static = config.tiles == TileSource::static_persistent;
  plan.ctas = is_static ? std::min(all, resident) : all;
  if (!choices.ctas) return true;
  const bool fits =
      is_static ? *choices.ctas >= 1 && *choices.ctas <= resident && *choices.ctas % size == 0
                : *choices.ctas == all;
  if (fits && all > 0) plan.ctas = *choices.ctas;
  return fits;
}

bool controlled(const BlackwellConfig& c) {
  return c.tiles == TileSource::clc;
}

const char* source_text(const BlackwellConfig& c) {
  switch (c.tiles) {
    case TileSource::one_tile:
      return "one tile a cluster";
    case TileSource::static_persistent:
      return "persistent, static persistent tiles of the tiles";
    case TileSource::clc:
      return "persistent, tiles from CLC";
    case TileSource::dynamic_persistent:
      break;
  }
  return "";
}

// Who receives whose slices, and whose barriers an MMA's commit reaches.
std::string masks_table(const Plan& plan, bool pair) {
  std::string out = "\nrank  A mask  B mask  commit  arrivals\n";
  for (int rank = 0; rank < atom::cluster_size(plan.cluster); ++rank) {
    const atom::Masks masks = atom::masks(plan.cluster, rank, pair);
    out += format("%4d  0x%04x  0x%04x  0x%04x  %8d\n", rank, masks.a, masks.b, masks.commit,
                  masks.arrivals);
  }
  return out;
}

class BlackwellFamily final : public FamilyOf<BlackwellConfig> {
 public:
  [[nodiscard]] bool runs_on(int architecture) const override {
    return architecture == 100 || architecture == 103;
  }
  [[nodiscard]] const char* whose() const override { return " of sm_100"; }
  [[nodiscard]] std::span<const atom::ClusterShape> clusters() const override {
    return kernel::blackwell_clusters;
  }
  // CLC balances what static persistent tiles cannot.
  [[nodiscard]] std::optional<TileSource> usual_tiles() const override { return TileSource::clc; }
  [[nodiscard]] std::optional<Refusal> fault(const Plan& start) const override {
    if (start.problem.groups) return no_groups(start.device);
    if (start.problem.is_quantised() && !is_micro(start.problem.epilogue.quantise)) {
      return no_codes(start.device);
    }
    return feature_fault(start.problem);
  }
  [[nodiscard]] std::optional<Refusal> choice_fault(const PlanChoices& choices) const override {
    return memory_fault(choices);
  }
  [[nodiscard]] bool serves(const KernelFacts& kernel, const Ask& ask,
                            bool /*is_named*/) const override {
    const BlackwellConfig& c = config_of(kernel);
    return blackwell_multiplies(c, ask.problem) && c.result == ask.problem.d.dtype &&
           c.d_scale == form_of(ask.problem.epilogue.quantise).scale;
  }
  void complete(Plan& plan, const KernelFacts& kernel, const Ask& ask,
                std::vector<Candidate>& all) const override {
    const BlackwellConfig& c = config_of(kernel);
    if (!lay_out(plan, c, ask.choices)) return;
    plan.cost = cost(plan, c);
    all.push_back(candidate_of(plan, kernel));
  }

  [[nodiscard]] std::vector<pipeline::BarrierRow> barriers(const Plan& plan) const override {
    const BlackwellConfig& c = config_of(plan);
    const pipeline::UmmaPipelineShape ring =
        kernel::mainloop_shape(c, plan.problem.a.dtype, plan.problem.b.dtype);
    const pipeline::UmmaAccumulatorShape accumulators = kernel::accumulator_shape(c);
    std::vector<pipeline::BarrierRow> rows = {
        pipeline::full_row(ring), pipeline::empty_row(ring, plan.cluster),
        pipeline::acc_full_row(accumulators), pipeline::acc_empty_row(accumulators)};
    if (c.pair) rows.push_back(pipeline::tmem_done_row());
    if (!quantises(c)) rows.push_back(kernel::c_full_row(c));
    if (controlled(c)) {
      const pipeline::TileRingShape tiles = kernel::tile_ring_shape(c);
      rows.push_back(pipeline::tile_full_row(tiles));
      rows.push_back(pipeline::tile_empty_row(tiles, plan.cluster));
    }
    return rows;
  }

  [[nodiscard]] ExplainParts explain(const Plan& plan) const override {
    const BlackwellConfig& c = config_of(plan);
    const atom::UmmaAtom mma = kernel::mma_atom(c, plan.problem.a.dtype, plan.problem.b.dtype);
    ExplainParts parts;
    parts.persistent = c.tiles == TileSource::static_persistent;
    parts.kernel = format("warp-specialised, %s\n", source_text(c));
    parts.kernel +=
        format("tile       %d x %d x %d a CTA, MMA m%dn%dk%d of kind %s, %s\n", c.tile_m, c.tile_n,
               kernel::tile_k(c), mma.m, mma.n, mma.k, atom::name(c.kind),
               c.pair ? "of two SMs: each holds half of A's rows and of B's columns" : "of one SM");
    parts.kernel += cluster_line(
        plan, plan.cluster.m / kernel::ctas_of_mma(c),
        c.pair ? format(", %d pairs", atom::cluster_size(plan.cluster) / 2) : std::string());
    parts.kernel += stages_text(c);
    parts.beside = tmem_table(c) + scale_table(c) + masks_table(plan, c.pair);
    return parts;
  }

  void bind(const Plan& plan, const GemmOperands& operands, const LaunchMemory& /*memory*/,
            Encode encode, LaunchGrids& out) const override {
    const BlackwellConfig& c = config_of(plan);
    kernel::BlackwellScaledParams p;
    fill_params(p, c, plan, operands, encode);
    p.operands.row_mask = atom::masks(plan.cluster, 0, c.pair).b;
    p.commit_row_mask = atom::row_set(plan.cluster, 0);
    p.commit_column_mask = atom::column_set(plan.cluster, 0);
    if (c.pair) p.commit_column_mask |= atom::column_set(plan.cluster, 1);
    p.instruction =
        atom::encode_instruction(kernel::mma_atom(c, plan.problem.a.dtype, plan.problem.b.dtype));
    p.cluster_size = tile::Divisor(atom::cluster_size(plan.cluster));
    out.grids[0] = grid_of(plan);
    if (is_scaled(c)) {
      set_scale_maps(p, operands, kernel::scale_box_words(c), encode);
      p.full_bytes = pipeline::full_bytes(
          kernel::mainloop_shape(c, plan.problem.a.dtype, plan.problem.b.dtype));
      out.grids[0].set_params(p);
    } else {
      out.grids[0].set_params(static_cast<const kernel::BlackwellGemmParams&>(p));
    }
    out.count = 1;
  }
};

}  // namespace

const Family& blackwell_family() {
  static const BlackwellFamily family;
  return family;
}

}  // namespace warpwright
