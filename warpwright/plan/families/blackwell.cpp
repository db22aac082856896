// The Blackwell family: the choice of a kernel, what it says of itself, and the grid of a launch.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "warpwright/atom/mask_text.h"
#include "warpwright/facts/format.h"
#include "warpwright/kernel/blackwell/facts.h"
#include "warpwright/kernel/blackwell/params.h"
#include "warpwright/plan/families/bind.h"
#include "warpwright/plan/families/blackwell.h"
#include "warpwright/plan/families/blackwell_scales.h"
#include "warpwright/plan/families/family.h"
#include "warpwright/plan/families/group_walk.h"
#include "warpwright/plan/families/kernels.h"
#include "warpwright/plan/families/split.h"
#include "warpwright/plan/product/micro.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using kernel::BlackwellConfig;
using kernel::TileSource;

// A cluster whose slices are no whole boxes of an MN-major operand, for any kernel.
std::optional<Refusal> slice_fault(const GemmProblem& p, const PlanChoices& choices) {
  if (!choices.cluster || !p.multiplies()) return std::nullopt;
  const bool mn = major_a(p) == atom::Major::mn || major_b(p) == atom::Major::mn;
  if (!mn) return std::nullopt;
  const auto serves = [&](const auto& row, atom::ClusterShape cluster) {
    return choices.pair.value_or(row.config.pair) == row.config.pair &&
           choices.tile_n.value_or(row.config.tile_n) == row.config.tile_n &&
           row.config.kind == atom::umma_kind(p.a.dtype) && kernel::takes_any_major(row.config) &&
           kernel::supports(with_majors(row.config, p), cluster);
  };
  const auto& all = blackwell_kernels();
  const auto any = [&](atom::ClusterShape cluster) {
    return std::any_of(all.begin(), all.end(), [&](const auto& r) { return serves(r, cluster); });
  };
  if (any(*choices.cluster)) return std::nullopt;
  atom::ClusterShape nearest{1, 1};
  for (const atom::ClusterShape& c : kernel::blackwell_clusters) {
    const bool below = c.m <= choices.cluster->m && c.n <= choices.cluster->n;
    if (below && any(c) && atom::cluster_size(c) > atom::cluster_size(nearest)) nearest = c;
  }
  return refuse(RefusalCode::bad_choice, "cluster ", atom::cluster_text(*choices.cluster), ": ",
                as_rule("the CTAs of a cluster share an MN-major operand in slices of 64 rows"),
                "; the nearest legal cluster is ", as_nearest(atom::cluster_text(nearest)));
}

// What the Hopper kernels compute and these do not.
std::optional<Refusal> feature_fault(const GemmProblem& p) {
  if (p.packed) {
    return refuse(RefusalCode::unsupported, as_tensor("B"), " are ", packed_name(p.packed->format),
                  "; ", as_rule("the kernels of sm_100 take none"), ": the nearest dtype is ",
                  as_nearest(unpacked_word(p, true)));
  }
  if (is_8bit_float(p.d.dtype) && !p.is_quantised()) {
    return refuse(RefusalCode::unsupported, as_tensor("D"), " is ", type_name(p.d.dtype), "; ",
                  as_rule("the kernels of sm_100 store bf16, fp16 and f32"), ": the nearest is ",
                  as_nearest("bf16"));
  }
  return std::nullopt;
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

std::string sums_text(const BlackwellConfig& c) {
  std::string text = "in tensor memory";
  if (c.blockwise) {
    text = format("added to float32 registers every %d of K, times the block's scales",
                  kernel::tile_k(c));
  }
  return c.splits_k ? text + "; parts of tiles through the workspace" : text;
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

// What few tokens and groups are: how they are found, cut, and loaded; empty for other kernels.
std::string tokens_text(const BlackwellConfig& c, bool by_index) {
  std::string text;
  if (c.grouped) {
    text += "groups     found on the device: a warp looks at 32 groups at a step\n";
    text += by_index ? "tokens     by index: each lane of a warp gathers four rows by TMA\n"
                     : "maps       one over all tokens; rows loaded past a group's end are not "
                       "stored\n";
  }
  if (kernel::has_widths(c)) {
    text += "widths     " + kernel::widths_words(c.widths) +
            (kernel::cuts_evenly(c) ? " tokens: cut into tiles of nearly equal width"
                                    : " tokens: all but a group's last tile are the widest") +
            ", each with MMAs as wide\n";
  }
  return text;
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

kernel::StagedOperand staged(const atom::OperandTile& tile) {
  return {tile.major == atom::Major::mn, atom::encode_umma(atom::descriptor(tile, 0)),
          atom::k_block_offset(tile, 1)};
}

// The MMA of a plan, by the types of its own A and B.
atom::UmmaAtom mma_of(const Plan& plan, const BlackwellConfig& config) {
  const BlackwellConfig c = launched(config, plan.problem);
  const DType a = plan.problem.a.dtype;
  const DType b = plan.problem.b.dtype;
  return c.swap_ab ? kernel::mma_atom(c, b, a) : kernel::mma_atom(c, a, b);
}

// The stages of a plan, with the bytes that its types signal.
pipeline::UmmaPipelineShape stages_of(const Plan& plan, const BlackwellConfig& c) {
  if (!is_scaled(c)) return kernel::mainloop_shape(c);
  const BlackwellConfig by = launched(c, plan.problem);
  const DType a = plan.problem.a.dtype;
  const DType b = plan.problem.b.dtype;
  return c.swap_ab ? kernel::mainloop_shape(by, b, a) : kernel::mainloop_shape(by, a, b);
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
  // CLC balances what static persistent tiles cannot, but those that are split along K; how many
  // tiles groups have no grid knows.
  [[nodiscard]] std::optional<TileSource> usual_tiles(const KernelFacts& kernel) const override {
    const BlackwellConfig& c = config_of(kernel);
    return c.grouped || c.splits_k ? TileSource::static_persistent : TileSource::clc;
  }
  [[nodiscard]] std::optional<Refusal> fault(const Plan& start) const override {
    if (start.problem.is_quantised() && !is_micro(start.problem.epilogue.quantise)) {
      return no_codes(start.device);
    }
    return feature_fault(start.problem);
  }
  [[nodiscard]] std::optional<Refusal> choice_fault(const GemmProblem& problem,
                                                    const PlanChoices& choices) const override {
    if (auto r = memory_fault(choices)) return r;
    return slice_fault(problem, choices);
  }
  [[nodiscard]] std::optional<Refusal> named_fault(const KernelFacts& kernel,
                                                   const Ask& ask) const override {
    const DeviceFacts& device = ask.start.device;
    if (!config_of(kernel).long_k || device.architecture == 103) return std::nullopt;
    return refuse(RefusalCode::no_kernel, "the kernel ", kernel.name, " does not run on ",
                  device.name, " (sm_", device.architecture, "); ",
                  as_rule("only sm_103 (b300) has MMAs of K 96"), ": the nearest is ",
                  as_nearest("the kernel without _k96"));
  }
  [[nodiscard]] bool serves(const KernelFacts& kernel, const Ask& ask,
                            bool /*is_named*/) const override {
    return blackwell_serves(config_of(kernel), ask);
  }
  void complete(Plan& plan, const KernelFacts& kernel, const Ask& ask,
                std::vector<Candidate>& all) const override {
    blackwell_ways(plan, kernel, config_of(kernel), ask, all);
  }

  [[nodiscard]] std::vector<pipeline::BarrierRow> barriers(const Plan& plan) const override {
    const BlackwellConfig& c = config_of(plan);
    const pipeline::UmmaPipelineShape ring = stages_of(plan, c);
    const pipeline::UmmaAccumulatorShape accumulators = kernel::accumulator_shape(c);
    std::vector<pipeline::BarrierRow> rows = {
        pipeline::full_row(ring), pipeline::empty_row(ring, plan.cluster),
        pipeline::acc_full_row(accumulators), pipeline::acc_empty_row(accumulators)};
    if (overlaps(c)) rows.push_back(pipeline::acc_read_row(accumulators));
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
    const atom::UmmaAtom mma = mma_of(plan, c);
    ExplainParts parts;
    parts.persistent = c.tiles == TileSource::static_persistent;
    parts.kernel =
        format("warp-specialised, %s%s%s\n", source_text(c), c.splits_k ? ", split along K" : "",
               c.swap_ab ? ", operands swap_ab (rows are columns of D)" : "");
    parts.kernel += tokens_text(c, plan.problem.is_by_index());
    parts.kernel +=
        format("tile       %d x %d x %d a CTA, MMA m%dn%dk%d of kind %s, %s\n", c.tile_m, c.tile_n,
               kernel::tile_k(c), mma.m, mma.n, mma.k, atom::name(c.kind),
               c.pair ? "of two SMs: each holds half of A's rows and of B's columns" : "of one SM");
    parts.kernel += cluster_line(
        plan, plan.cluster.m / kernel::ctas_of_mma(c),
        c.pair ? format(", %d pairs", atom::cluster_size(plan.cluster) / 2) : std::string());
    parts.kernel += stages_text(c) + long_k_text(c);
    parts.kernel +=
        "sums       " + sums_text(c) +
        (kernel::halves(c) > 1 ? "; a gate and what it is for have an accumulator each\n"
         : c.gated             ? "; a gate and what it is for have 16 rows in turns\n"
                               : "\n");
    parts.tensor_store = static_cast<kernel::EpilogueShape>(c).store != kernel::Store::lanes;
    const BlackwellConfig by = launched(c, plan.problem);
    parts.beside = tmem_table(c, by) + scale_table(c, by) + masks_table(plan, c.pair);
    return parts;
  }

  void bind(const Plan& plan, const GemmOperands& operands, const LaunchMemory& memory,
            Encode encode, LaunchGrids& out) const override {
    const BlackwellConfig c = with_majors(config_of(plan), plan.problem);
    kernel::BlackwellGemmParams p;
    fill_params(p, c, plan, operands, encode);
    const int together = kernel::stages_together(c);
    p.walk.k_tiles = (p.walk.k_tiles + together - 1) / together * together;
    Grid& grid = out.grids[0];
    grid = grid_of(plan);
    p.operands.row_mask = atom::masks(plan.cluster, 0, c.pair).b;
    p.commit_row_mask = atom::row_set(plan.cluster, 0);
    p.commit_column_mask = atom::column_set(plan.cluster, 0);
    if (c.pair) p.commit_column_mask |= atom::column_set(plan.cluster, 1);
    p.instruction = atom::encode_instruction(mma_of(plan, c));
    p.cluster_size = tile::Divisor(atom::cluster_size(plan.cluster));
    p.staged_a = staged(kernel::tile_a(c));
    p.staged_b = staged(kernel::tile_b(c));
    if (is_scaled(c) && c.gated) {  // of scales, which lie so whichever way the rows do
      p.operands.gate = {1, static_cast<int>(gate_scale_rows(plan.problem))};
    }
    if (c.splits_k && p.operands.k > 0) bind_split(p.walk, grid, plan, memory.workspace);
    if (operands.groups) {
      p.walk.groups = group_tiles(plan, *operands.groups);
      if (memory.check_offsets) {
        p.walk.offsets_status = static_cast<std::uint32_t*>(memory.workspace);
        grid.workspace[1] = {"status", 0, sizeof(std::uint32_t)};
      }
    }
    if (operands.is_by_index() && p.operands.k > 0) {
      p.operands.b =
          encode(rows_request("A", operands.a, loaded_tile(operands, true, kernel::tile_b(c))));
    }
    set_params(grid, p, c, plan, operands, encode);
    out.count = 1;
  }

 private:
  // The parameters that the kernel takes, which are more where it has scales, or several widths.
  static void set_params(Grid& grid, const kernel::BlackwellGemmParams& p, const BlackwellConfig& c,
                         const Plan& plan, const GemmOperands& o, Encode encode) {
    if (is_scaled(c)) {
      kernel::BlackwellScaledWidthsParams all{{p, {}}, {}};
      set_scale_maps(all, o, kernel::scale_box_words(c), c.swap_ab, encode);
      all.more_bytes = stages_of(plan, c).stage_bytes - kernel::mainloop_shape(c).stage_bytes;
      all.token_bytes = kernel::tile_k(c) * numeric::bits(o.a.dtype) / 8;
      all.scales_of_32 = takes_either_scale(c) && micro_scale(plan.problem, true) == DType::ue8m0;
      all.codes_of_32 =
          makes_either_scale(c) && form_of(plan.problem.epilogue.quantise).scale == DType::ue8m0;
      if (!kernel::has_widths(c)) {
        return grid.set_params(static_cast<const kernel::BlackwellScaledParams&>(all));
      }
      if (!o.is_by_index()) narrower_maps(all, c, c.widths, o, encode);
      grid.set_params(all);
    } else if (kernel::has_widths(c)) {
      kernel::BlackwellWidthsParams all{p, {}};
      if (!o.is_by_index()) narrower_maps(all, c, c.widths, o, encode);
      grid.set_params(all);
    } else {
      grid.set_params(p);
    }
  }
};

}  // namespace

const Family& blackwell_family() {
  static const BlackwellFamily family;
  return family;
}

}  // namespace warpwright
