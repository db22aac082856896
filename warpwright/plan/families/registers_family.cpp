// The register family: what its kernels say of themselves, and the grid of a launch.
#include "warpwright/facts/format.h"
#include "warpwright/kernel/registers/facts.h"
#include "warpwright/kernel/registers/params.h"
#include "warpwright/plan/families/bind.h"
#include "warpwright/plan/families/family.h"
#include "warpwright/plan/families/group_walk.h"
#include "warpwright/plan/families/kernels.h"
#include "warpwright/plan/families/registers.h"
#include "warpwright/plan/families/split.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using kernel::RegisterConfig;
using kernel::TileSource;

class RegistersFamily final : public FamilyOf<RegisterConfig> {
 public:
  [[nodiscard]] bool runs_on(int architecture) const override {
    return architecture != 90 && kernel::is_register_target(architecture);
  }
  [[nodiscard]] bool can_run_on(int architecture) const override {
    return kernel::is_register_target(architecture);
  }
  [[nodiscard]] bool uses_tma() const override { return false; }
  [[nodiscard]] const char* whose() const override { return " of mma.sync"; }
  [[nodiscard]] std::span<const atom::ClusterShape> clusters() const override {
    static constexpr atom::ClusterShape one[] = {{1, 1}};
    return one;
  }
  // Nobody has seen CLC of sm_120 at work: it is for who asks for it.
  [[nodiscard]] std::optional<TileSource> usual_tiles(
      const KernelFacts& /*kernel*/) const override {
    return TileSource::static_persistent;
  }
  [[nodiscard]] std::optional<Refusal> fault(const Plan& start) const override {
    return register_fault(start.problem, start.device);
  }
  [[nodiscard]] std::optional<Refusal> named_fault(const KernelFacts& kernel,
                                                   const Ask& ask) const override {
    const RegisterConfig& c = config_of(kernel);
    const DeviceFacts& device = ask.start.device;
    if (const char* const lacking = config_fault(c, device.architecture)) {
      return refuse(RefusalCode::no_kernel, "the kernel ", kernel.name, " does not run on ",
                    device.name, " (sm_", device.architecture, "): ", lacking, "; ",
                    as_rule("leave the kernel open, or name another"));
    }
    if (!register_multiplies(c, ask.problem) || !has_producer(c)) return std::nullopt;
    return problem_fault(ask.problem);
  }
  [[nodiscard]] bool serves(const KernelFacts& kernel, const Ask& ask,
                            bool is_named) const override {
    const RegisterConfig& c = config_of(kernel);
    const bool reaches = has_producer(c) ? ask.by_copies : c.any_alignment || ask.aligned;
    return reaches && register_runs(c, ask.start.device, is_named) &&
           register_multiplies(c, ask.problem);
  }
  void complete(Plan& plan, const KernelFacts& kernel, const Ask& ask,
                std::vector<Candidate>& all) const override {
    const RegisterConfig& c = config_of(kernel);
    const GemmProblem& p = plan.problem;
    const int resident = c.ctas_per_sm * resident_ctas(plan.device, 1);
    if (has_producer(c) && c.buffers > 1) plan.c_path = result_path(p, false);
    plan.flag_bytes = plan.workspace_bytes = 0;
    const auto tiles = register_walk(plan, c, resident, ask.basis.lengths);
    if (!tiles) return;
    const std::int64_t blocks = p.reads_ab() ? (p.k() + c.tile_k - 1) / c.tile_k : 0;
    for (const int ctas : register_grids(c, *tiles, resident, blocks, ask.choices)) {
      plan.ctas = ctas;
      plan.tile_source = c.tiles;
      if (!c.grouped) plan.flag_bytes = plan.workspace_bytes = 0;
      if (splits_tiles(plan)) take_split_memory(plan, c, ctas);
      plan.cost = ctas == 0 ? 0 : uncorrected_seconds(register_floor(plan, c, ask.basis));
      all.push_back(candidate_of(plan, kernel));
    }
  }

  [[nodiscard]] std::vector<pipeline::BarrierRow> barriers(const Plan& plan) const override {
    const RegisterConfig& c = config_of(plan);
    if (!has_producer(c)) return {};
    const pipeline::TmaPipelineShape ring = kernel::mainloop_shape(c);
    std::vector<pipeline::BarrierRow> rows = {pipeline::full_row(ring),
                                              pipeline::empty_row(ring, plan.cluster)};
    if (c.buffers > 1) rows.push_back(kernel::c_full_row(c));
    if (takes_turns(c)) rows.push_back(pipeline::turn_row());
    if (asks_for_tiles(c)) {
      rows.push_back(pipeline::tile_full_row(kernel::tile_ring_shape(c)));
      rows.push_back(pipeline::tile_empty_row(kernel::tile_ring_shape(c), plan.cluster));
    }
    return rows;
  }

  [[nodiscard]] ExplainParts explain(const Plan& plan) const override {
    const RegisterConfig& c = config_of(plan);
    ExplainParts parts;
    if (has_producer(c)) {
      parts.kernel = format("a producer and %d warps that multiply, %s%s\n", consumer_warps(c),
                            takes_turns(c) ? "in turns of two groups" : "all together",
                            asks_for_tiles(c) ? ", tiles from CLC"
                            : is_grouped(c)   ? ", groups found on the device"
                                              : "");
      parts.persistent = !asks_for_tiles(c);
    } else {
      parts.kernel = format("%d warps that all copy, multiply and store%s\n", threads(c) / 32,
                            splits_tiles(plan) ? ", tiles split along K" : "");
    }
    const bool emulated =
        atom::mma_support(c.mma, plan.device.architecture) == atom::MmaSupport::emulated;
    parts.kernel += format(
        "tile       %d x %d x %d, %d x %d a warp, mma.sync m%dn%dk%d%s%s\n", c.tile_m, c.tile_n,
        c.tile_k, c.tile_m / c.warps_m, c.tile_n / c.warps_n, c.mma.m, c.mma.n, c.mma.k,
        emulated ? ", which this device makes of other instructions" : "",
        plan.device.architecture == 70 ? "; nvcc 13 compiles nothing for sm_70: only for the model"
                                       : "");
    const bool asynchronous = c.feed == kernel::Feed::copy_async;
    const std::string scales =
        is_block_scaled(c) ? format(", scales %d", scale_bytes(c, c.tile_m + c.tile_n)) : "";
    parts.kernel += format("stages     %d of %d bytes (A %d, B %d%s), filled by %s%s\n", c.stages,
                           kernel::stage_bytes(c), c.tile_m * kernel::row_bytes(c),
                           c.tile_n * kernel::row_bytes(c), scales.c_str(), kernel::feed_name(c),
                           c.any_alignment ? " in pieces of 16, 8 or 4 bytes, or by element" : "");
    parts.tensor_store = false;
    if (has_producer(c)) return parts;
    parts.beside =
        asynchronous
            ? format(
                  "\nring       a group of cp.async a stage, %d groups ahead; one CTA barrier a "
                  "block of K\n",
                  c.stages - 1)
            : "\nring       the block after the next waits in registers; one CTA barrier a block "
              "of "
              "K\n";
    return parts;
  }

  void bind(const Plan& plan, const GemmOperands& o, const LaunchMemory& memory, Encode encode,
            LaunchGrids& out) const override {
    const RegisterConfig& c = config_of(plan);
    if (has_producer(c)) {
      kernel::BlockScaledParams p;
      fill_params(p, c, plan, o, encode);
      out.grids[0] = grid_of(plan);
      out.count = 1;
      if (!is_block_scaled(c)) {
        out.grids[0].set_params(static_cast<const kernel::GemmParams&>(p));
        return;
      }
      set_scale_maps(p, o, kernel::scale_words(c), false, encode);
      if (o.groups) {
        p.walk.groups = group_tiles(plan, *o.groups);
        if (memory.check_offsets) {
          p.walk.offsets_status = static_cast<std::uint32_t*>(memory.workspace);
          out.grids[0].workspace[1] = {"status", 0, sizeof(std::uint32_t)};
        }
      }
      out.grids[0].set_params(p);
      return;
    }
    kernel::RegisterGemmParams p;
    fill_numbers(p, c, plan, o);
    if (p.operands.k > 0) {
      p.a = kernel::with_steps(operand(o.a), c, c.tile_m);
      p.b = kernel::with_steps(operand(o.b), c, c.tile_n);
    }
    Grid& grid = out.grids[0];
    grid = grid_of(plan);
    if (splits_tiles(plan) && p.operands.k > 0) {
      bind_split(p.walk, grid, plan, memory.workspace);
    } else {
      p.walk.split = tile::whole_tiles(p.walk.raster.count, p.walk.k_tiles, plan.ctas);
    }
    grid.set_params(p);
    out.count = 1;
  }

 private:
  static kernel::RegisterOperand operand(const MatrixView& v) {
    const std::int64_t size = element_bytes(v.dtype);
    return {.base = static_cast<const std::uint8_t*>(v.data),
            .pitch = v.rows > 1 ? v.row_stride * size : 0,
            .rows = static_cast<int>(v.rows),
            .k_bytes = static_cast<int>(v.columns * size),
            .piece = piece_of(v, alignment_of(v.data)),
            .batch = v.batch > 1 ? v.batch_stride * size : 0};
  }
};

}  // namespace

const Family& registers_family() {
  static const RegistersFamily family;
  return family;
}

}  // namespace warpwright
