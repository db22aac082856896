// The Hopper family: what its kernels say of themselves, and the grids of a launch.
#include <algorithm>

#include "warpwright/facts/format.h"
#include "warpwright/kernel/hopper/facts.h"
#include "warpwright/pipeline/ordered_sequence.h"
#include "warpwright/plan/families/bind.h"
#include "warpwright/plan/families/family.h"
#include "warpwright/plan/families/group_walk.h"
#include "warpwright/plan/families/hopper.h"
#include "warpwright/plan/families/kernels.h"
#include "warpwright/plan/families/learnt.h"
#include "warpwright/plan/families/split.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using kernel::GemmConfig;

// A stride of a tensor map is below this many bytes.
constexpr std::int64_t most_map_stride = std::int64_t{1} << 40;

// Whether TMA can read a matrix of block scales, tokens x blocks: tokens side by side,
// blocks apart, everything at multiples of 16 bytes.
bool copyable_scales(const MatrixView& v) {
  const auto aligned = [](std::int64_t extent, std::int64_t stride) {
    return extent <= 1 || (stride > 0 && stride % 4 == 0 && stride < most_map_stride / 4);
  };
  return v.row_stride == 1 && reinterpret_cast<std::uintptr_t>(v.data) % 16 == 0 &&
         (v.columns <= 1 || v.column_stride >= v.rows) && aligned(v.columns, v.column_stride) &&
         aligned(matrices(v), v.batch_stride);
}

// Has TMA bring the scales of the tokens, `v`, where it can.
void set_scale_map(kernel::GemmParams& p, const kernel::GemmConfig& c, const MatrixView& v,
                   Encode encode) {
  p.scales.copies_tokens = kernel::copies_scales(c) && copyable_scales(v);
  if (!p.scales.copies_tokens) return;
  MapRequest r =
      map_request("the scales of A", v, true, kernel::copied_scales(c), 1, atom::SmemSwizzle::none);
  if (v.columns <= 1) r.outer_stride = (v.rows + 3) / 4 * 4;  // never used, but must be a legal one
  if (r.batch == 1) r.batch_stride = r.outer_stride;
  p.operands.token_scales = encode(r);
}

// The parameters of a kernel whose tiles have several widths.
kernel::WidthsGemmParams with_widths(const kernel::GemmParams& p, const GemmConfig& c,
                                     const GemmOperands& o, Encode encode) {
  kernel::WidthsGemmParams out{p, {}};
  narrower_maps(out, c, tile_widths(c), o, encode);
  return out;
}

// The ring, with all the bytes of a stage that the launch will know.
pipeline::TmaPipelineShape stage_shape(const Plan& plan) {
  const GemmConfig& c = hopper_config(plan);
  pipeline::TmaPipelineShape shape = kernel::mainloop_shape(c);
  if (plan.problem.packed) {
    shape.stage_bytes += c.tile_m / packed::kTileRows * in_flight(c) *
                         packed::tile_bytes(plan.problem.packed->format);
  }
  return shape;
}

// The mbarriers by which CTAs of a cluster that share a tile along K get each other's parts. A warp
// with fewer columns of its own gets fewer bytes.
pipeline::BarrierRow parts_row(const GemmConfig& c, int ctas) {
  const kernel::ClusterParts parts = kernel::cluster_parts(c);
  int most = 0;
  for (int rank = 0; rank < ctas; ++rank) {
    for (int warp = 0; warp < parts.warps; ++warp) {
      most = std::max(most, parts.words_before(parts.first(rank + 1, ctas), warp) -
                                parts.words_before(parts.first(rank, ctas), warp));
    }
  }
  return {"parts",
          parts.warps,
          1,
          most * (ctas - 1) * parts.unit_bytes(),
          "its leader, and copies of the other CTAs' parts",
          "each consumer warp",
          0};
}

class HopperFamily final : public FamilyOf<GemmConfig> {
 public:
  [[nodiscard]] bool runs_on(int architecture) const override { return architecture == 90; }
  [[nodiscard]] std::span<const atom::ClusterShape> clusters() const override {
    return kernel::supported_clusters;
  }
  // L2 is asked up to four times as often for a row that begins within a line, and a cluster asks
  // once for all of its CTAs.
  [[nodiscard]] int most_cluster_ctas(const GemmProblem& p) const override {
    if (p.groups || p.packed) return 2;
    return pitch_of_a(p) % 128 != 0 || pitch_of_b(p) % 128 != 0 ? 8 : 2;
  }
  [[nodiscard]] std::optional<Refusal> fault(const Plan& start) const override {
    if (start.problem.scaling != Scaling::block_scaled) return std::nullopt;  // nor such a D
    return refuse(RefusalCode::unsupported, "scaling is block_scaled, and no kernel for ",
                  start.device.name, " (sm_", start.device.architecture,
                  ") has scales that the tensor core multiplies, which those for sm_100 and sm_120 "
                  "have: the nearest device is ",
                  as_nearest("b200"), " (--as b200 without one)");
  }
  [[nodiscard]] bool serves(const KernelFacts& kernel, const Ask& ask,
                            bool /*is_named*/) const override {
    return hopper_serves(config_of(kernel), ask);
  }
  void complete(Plan& plan, const KernelFacts& kernel, const Ask& ask,
                std::vector<Candidate>& all) const override {
    hopper_ways(plan, kernel, config_of(kernel), ask, all);
  }
  void correct(const Ask& ask, std::span<Candidate* const> ways) const override {
    if (!ask.problem.multiplies()) return;
    std::vector<Floor> floors;
    for (const Candidate* way : ways) {
      floors.push_back(
          hopper_floor(plan_of(ask.start, *way), config_of(*way->kernel), ask.basis, true));
    }
    const std::vector<double> seconds = learnt_seconds(floors, correction_of(ask.start.device));
    for (std::size_t i = 0; i < ways.size(); ++i) ways[i]->cost = seconds[i];
  }

  [[nodiscard]] std::vector<pipeline::BarrierRow> barriers(const Plan& plan) const override {
    const GemmConfig& c = hopper_config(plan);
    const pipeline::TmaPipelineShape shape = stage_shape(plan);
    std::vector<pipeline::BarrierRow> rows = {
        pipeline::full_row(shape),
        pipeline::empty_row(shape, kernel::ring_cluster(c, plan.cluster)), kernel::c_full_row(c)};
    if (takes_turns(c)) rows.push_back(pipeline::turn_row());
    if (kernel::shares_cluster_k(c) && plan.cluster_k > 1) {
      rows.push_back(parts_row(c, plan.cluster_k));
    }
    if (kernel::is_dynamic_persistent(c)) {
      const pipeline::TileRingShape ring = kernel::tile_ring_shape(c);
      rows.push_back(pipeline::tile_full_row(ring));
      rows.push_back(pipeline::tile_empty_row(ring, plan.cluster));
    }
    return rows;
  }

  [[nodiscard]] ExplainParts explain(const Plan& plan) const override {
    const GemmConfig& c = hopper_config(plan);
    const atom::ClusterShape cluster = plan.cluster;
    ExplainParts parts;
    std::string& out = parts.kernel;
    out += hopper_schedule_text(c);
    out += format(
        "tile       %d x %d x %d, wgmma m64n%dk%d, %d consumer warpgroups of %d rows each%s\n",
        c.tile_m, c.tile_n, kernel::tile_k(c), kernel::warpgroup_columns(c) / passes(c),
        atom::wgmma_k(operand_a(c).type), c.consumer_warpgroups, kernel::warpgroup_rows(c),
        passes(c) > 1    ? format(", in %d passes over the columns", passes(c)).c_str()
        : c.side_by_side ? format(" and %d columns", kernel::warpgroup_columns(c)).c_str()
                         : "");
    if (kernel::has_widths(c)) {
      out += "widths     " + kernel::widths_words(tile_widths(c)) +
             " tokens: a group is cut into tiles of nearly equal width, each with wgmmas as wide\n";
    }
    out += cluster_line(plan, cluster.m, "");
    if (slices_k(c)) {
      out += format(
          "slices     %d CTAs share a tile along K, each with a piece; each adds up some columns "
          "of "
          "all pieces\n",
          plan.ctas / std::max(1, tile::tile_count(plan.raster)));
    }
    const auto shape = stage_shape(plan);
    const int of_b = atom::tile_bytes(kernel::tile_b(c));
    out += format("stages     %d of %d bytes (A %d, B %d)\n", c.stages, shape.stage_bytes,
                  shape.stage_bytes - of_b, of_b);
    if (kernel::packed_a(c)) out += hopper_weights_text(plan);
    out += format("sums       %s\n", hopper_sums_text(c).c_str());
    if (c.quantises) {
      out += std::string("codes      e4m3, and a float32 scale for each 128 columns of a row, ") +
             (is_swapped(c) ? "whose maxima 8 warps give each other through shared memory\n"
                            : "which four lanes hold\n");
    }
    if (plan.tile_source == kernel::TileSource::dynamic_persistent) {
      out +=
          "walk       tiles drawn from a counter in the workspace; without one static persistent "
          "tiles\n";
    }
    parts.tensor_store = store_of(c) != kernel::Store::lanes;
    return parts;
  }

  void bind(const Plan& plan, const GemmOperands& o, const LaunchMemory& memory, Encode encode,
            LaunchGrids& out) const override {
    const GemmConfig& c = hopper_config(plan);
    auto* const workspace = static_cast<std::byte*>(memory.workspace);
    kernel::GemmParams p;
    fill_params(p, c, plan, o, encode);
    if (p.operands.k > 0 && o.scaling == Scaling::blockwise) {
      set_scale_map(p, c, o.scale_a, encode);
    }
    Grid& grid = out.grids[0];
    grid = grid_of(plan);
    if (splits_k(c) && p.operands.k > 0) {
      bind_split(p.walk, grid, plan, workspace);
    }
    if (slices_k(c)) bind_slices(p.walk, grid, plan, workspace);
    if (plan.tile_source == kernel::TileSource::dynamic_persistent && workspace != nullptr) {
      p.walk.counter = reinterpret_cast<std::uint32_t*>(workspace);
      grid.workspace[0] = {"counter", 0, sizeof(std::uint32_t)};
    }
    if (o.groups) {
      p.walk.groups = group_tiles(plan, *o.groups);
      p.walk.weights_early = memory.weights_early;
      if (memory.sorted != nullptr) p.walk.ahead = tile::OffsetsAhead(*memory.sorted);
      if (memory.check_offsets) {
        const std::int64_t at = plan.flag_bytes;
        p.walk.offsets_status = reinterpret_cast<std::uint32_t*>(workspace + at);
        grid.workspace[1] = {"status", at, at + std::int64_t{sizeof(std::uint32_t)}};
      }
    }
    if (kernel::has_widths(c)) {
      grid.set_params(with_widths(p, c, o, encode));
    } else {
      grid.set_params(p);
    }
    out.count = 1;
  }
};

}  // namespace

const GemmConfig& hopper_config(const Plan& plan) {
  return config_named<GemmConfig>(plan.kernel);
}

const Family& hopper_family() {
  static const HopperFamily family;
  return family;
}

}  // namespace warpwright
