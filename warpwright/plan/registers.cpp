// The register family: the choice of a kernel, what it says of itself, and the grid of a launch.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "warpwright/kernel/registers/facts.h"
#include "warpwright/kernel/registers/params.h"
#include "warpwright/kernel/workspace_share.h"
#include "warpwright/plan/bind.h"
#include "warpwright/plan/explain_text.h"
#include "warpwright/plan/kernels.h"
#include "warpwright/plan/rules.h"

namespace warpwright {
namespace {

using kernel::RegisterConfig;
using kernel::Schedule;
using kernel::TileSource;
using RegisterRow = KernelRow<RegisterConfig>;

// The largest power of two up to 16 that divides all distances of an operand's rows and matrices.
int piece_of(const MatrixShape& v, int alignment) {
  const std::int64_t size = element_bytes(v.dtype);
  std::int64_t all = alignment;
  if (v.rows > 1) all = std::gcd(all, v.row_stride * size);
  if (v.batch > 1) all = std::gcd(all, v.batch_stride * size);
  return static_cast<int>(std::gcd(all, std::int64_t{16}));
}

bool is_aligned(const GemmProblem& p) {
  return !p.reads_ab() ||
         (piece_of(p.a, p.a.alignment) == 16 && piece_of(p.b, p.b.alignment) == 16);
}

// What other families compute and these kernels do not.
std::optional<Refusal> feature_fault(const GemmProblem& p, const DeviceFacts& device) {
  const auto refused = [](const auto&... words) {
    return refuse(RefusalCode::unsupported, words...);
  };
  const std::string here = "; the kernels of mma.sync, which " + device.name + " runs, ";
  if (p.groups) {
    return refuse(RefusalCode::no_device, "the product has groups, and device ", device.name,
                  " is sm_", device.architecture,
                  "; kernels for groups exist for sm_90 (H100, H200)");
  }
  if (p.packed) {
    return refused("B are packed int4 weights", here, "take none: the nearest B is e4m3");
  }
  if (p.scaling == Scaling::micro && device.architecture < 120) {
    return refused("scaling is micro, and the tensor cores of ", device.name, " (sm_",
                   device.architecture,
                   ") multiply no scales, which of those with mma.sync sm_120 is the first to do: "
                   "the nearest is ",
                   device.architecture < 80   ? "fp16 without scales"
                   : device.architecture < 89 ? "bf16 without scales"
                                              : "row-column scaling of e4m3");
  }
  const bool f16_alone = device.architecture < 80;
  if (is_8bit_float(p.a.dtype) && device.architecture < 89) {
    return refused("A is ", type_name(p.a.dtype), ", and the tensor cores of ", device.name,
                   " (sm_", device.architecture,
                   ") multiply no 8-bit floats, which sm_89 is the first to do: the nearest is ",
                   f16_alone ? "fp16" : "bf16");
  }
  if (f16_alone && p.a.dtype != DType::f16) {
    return refused("A is ", type_name(p.a.dtype), ", and kernels for ", device.name, " (sm_",
                   device.architecture,
                   ") multiply fp16 alone, those for sm_80 and later more: the nearest is fp16");
  }
  if (f16_alone && p.d.dtype == DType::bf16) {
    return refused("D is bf16", here, "convert to fp16 and f32 there: the nearest is fp16");
  }
  if (p.a.dtype == DType::s8 && p.k() > 131071) {
    return refused(
        "K is ", p.k(),
        ", and sums of s8, of 32 bits, hold no more than 131071 products of -128 by -128: "
        "the nearest legal K is 131071");
  }
  if (p.scaling == Scaling::block) {
    return refused("scaling is block", here,
                   "have no block scales: the nearest scaling is row-column");
  }
  const std::int64_t most_k = elements_in(std::int64_t{1} << 31, p.a.dtype) - 64;
  if (p.k() > most_k) {
    return refused("K is ", p.k(), here,
                   "take rows of less than 2^31 bytes: the nearest legal K is ", most_k);
  }
  if (p.accumulation == Accumulation::promoted) {
    return refused("accumulation is promoted", here,
                   "add in the tensor core alone: the nearest accumulation is fast");
  }
  if (p.epilogue.gated) {
    return refused("the epilogue is gated", here, "multiply without a gate: leave it out");
  }
  if (is_8bit_float(p.d.dtype)) {
    return refused("D is ", type_name(p.d.dtype), here,
                   "store bf16, fp16 and f32: the nearest is bf16");
  }
  if (!p.reads_ab() || p.m() == 0 || p.n() == 0 || p.k() <= 1) return std::nullopt;
  for (const auto& [stride, name] : {std::pair{p.a.column_stride, "A"}, {p.b.column_stride, "B"}}) {
    if (stride == 1) continue;
    return refused(name, " is MN-major", here,
                   "take K-major operands alone: neighbours along K next to each other, column "
                   "stride 1");
  }
  return std::nullopt;
}

// Does the device run kernels with a producer, of this build or another, whose schedules can be
// chosen?
bool has_producers(const DeviceFacts& device) {
  const auto is_one = [&](const RegisterRow& row) {
    return has_producer(row.config) && config_fault(row.config, device.architecture) == nullptr;
  };
  const auto& here = registers_kernels();
  const auto& elsewhere = registers_kernels(Rows::missing);
  return std::any_of(here.begin(), here.end(), is_one) ||
         std::any_of(elsewhere.begin(), elsewhere.end(), is_one);
}

std::optional<Refusal> choice_fault(const PlanChoices& c, const DeviceFacts& device) {
  const bool clusters =
      (c.cluster && atom::cluster_size(*c.cluster) != 1) || c.cluster_k.value_or(1) != 1;
  const bool drawn = c.tiles && (*c.tiles == TileSource::drawn || *c.tiles == TileSource::one_tile);
  const bool fed = c.schedule || (c.tiles && *c.tiles == TileSource::launch_control);
  if (!clusters && !drawn && !(fed && !has_producers(device)) && !c.swapped.value_or(false) &&
      !c.pair.value_or(false) && !c.accumulators) {
    return std::nullopt;
  }
  return refuse(RefusalCode::bad_choice,
                "clusters, schedules, swapped operands, tiles that are drawn, pairs and "
                "accumulators in tensor memory are of sm_90 and sm_100; the kernels of mma.sync, "
                "which ",
                device.name, " (sm_", device.architecture, ") runs, have none",
                has_producers(device) ? " but schedules" : "", ": leave them out");
}

// What a plan may choose among for the problem: of any kernel, and, where the copy engine takes A
// and B, of those with a producer.
struct Reach {
  bool aligned = false;
  bool by_copies = false;

  explicit Reach(const GemmProblem& p) : aligned(is_aligned(p)), by_copies(!problem_fault(p)) {}
  [[nodiscard]] bool covers(const RegisterConfig& c) const {
    return has_producer(c) ? by_copies : c.any_alignment || aligned;
  }
};

// Is it a kernel for that device? Kernels that are fed by plain loads run on later ones too, for
// who names them.
bool is_for(const RegisterConfig& c, const DeviceFacts& device, bool named) {
  return kernel::config_fault(c, device.architecture) == nullptr &&
         (named || c.feed != kernel::Feed::registers ||
          kernel::first_target(c) == device.architecture);
}

// Are the types its own, and whether the tensor core multiplies scales?
bool multiplies(const RegisterConfig& c, const GemmProblem& p) {
  return c.mma.a == p.a.dtype && c.mma.b == p.b.dtype && c.result == p.d.dtype &&
         is_block_scaled(c) == (p.scaling == Scaling::micro);
}

// Does the kernel run there, and suit the problem and what the caller fixed?
bool suits(const RegisterRow& i, const Plan& start, const Reach& reach,
           const PlanChoices& choices) {
  const RegisterConfig& c = i.config;
  const GemmProblem& p = start.problem;
  // Nobody has seen launch control of sm_120 at work: it is for who asks for it.
  const TileSource tiles =
      choices.tiles.value_or(choices.kernel ? c.tiles : TileSource::static_persistent);
  return is_for(c, start.device, choices.kernel.has_value()) && multiplies(c, p) &&
         reach.covers(c) && c.tiles == tiles &&
         c.schedule == choices.schedule.value_or(c.schedule) &&
         c.tile_m == choices.tile_m.value_or(c.tile_m) &&
         c.tile_n == choices.tile_n.value_or(c.tile_n) && choices.kernel.value_or(i.name) == i.name;
}

// Tiles are split along K where the grid has more CTAs than there are tiles.
bool is_split(const Plan& p) {
  return p.tile_source == TileSource::static_persistent && p.ctas > tile::tile_count(p.raster);
}

// Predicted seconds of a candidate, at a nominal clock: rounds of tiles, or of parts of them, on an
// SM that its CTAs share. Nobody measured these kernels but on an H200: the shares of the rate are
// what shared memory leaves of it (four warps of 64 x 64 read 4 KB where they multiply 256 clocks,
// those of 32 x 32 as many bytes in a quarter of that). Beside a producer warps do nothing but
// multiply; and in turns one group stores while the other does.
double cost(const Plan& p, const RegisterConfig& c) {
  if (p.ctas == 0) return 0;
  const double tiles = tile::tile_count(p.raster);
  const double blocks = std::ceil(static_cast<double>(p.problem.k()) / c.tile_k);
  const double busy = std::min(p.ctas, c.ctas_per_sm * p.device.sms);
  const double on_an_sm = std::ceil(busy / p.device.sms);
  const double clocks_a_block = c.tile_m * c.tile_n * c.tile_k / 1024.0;
  double share = c.tile_m / c.warps_m >= 64 ? 0.9 : 0.6;
  if (has_producer(c)) share = c.tile_m / c.warps_m * c.tile_n / c.warps_n >= 4096 ? 0.95 : 0.92;
  if (on_an_sm * threads(c) < 256) share *= 0.7;  // too few warps to hide what they wait for
  if (c.any_alignment) share *= 0.8;
  const double of_a_cta =
      is_split(p) ? tiles * blocks / p.ctas : std::ceil(tiles / p.ctas) * blocks;
  const double rounds = is_split(p) ? 1 : std::ceil(tiles / p.ctas);
  const double store = c.tile_m * c.tile_n / (c.schedule == Schedule::pingpong ? 128.0 : 32.0);
  const double clocks = on_an_sm * (of_a_cta * clocks_a_block / share + rounds * store) + 1500 +
                        (is_split(p) ? 4000 + 2 * store * p.ctas / tiles : 0);
  return clocks / 1.7e9;
}

// Grids worth trying: with launch control a CTA a tile; whole tiles, and as many CTAs as give each
// tile the same number of parts.
std::vector<int> grids_of(const RegisterConfig& c, int tiles, int resident, std::int64_t blocks,
                          const PlanChoices& choices) {
  if (tiles == 0) return {0};
  if (asks_for_tiles(c)) {
    return choices.ctas.value_or(tiles) == tiles ? std::vector<int>{tiles} : std::vector<int>{};
  }
  const bool splits = c.splits_k && !choices.batch_invariant && tiles * blocks <= max_extent;
  if (choices.ctas) {
    const int most = splits ? static_cast<int>(std::min<std::int64_t>(resident, tiles * blocks))
                            : std::min(tiles, resident);
    if (*choices.ctas < 1 || *choices.ctas > std::max(most, std::min(tiles, resident))) return {};
    return {*choices.ctas};
  }
  std::vector<int> grids = {std::min(tiles, resident)};
  for (std::int64_t parts = 2; splits && parts <= 16; ++parts) {
    if (parts * 4 <= blocks && parts * tiles <= resident) {
      grids.push_back(static_cast<int>(parts) * tiles);
    }
  }
  return grids;
}

void add_candidates(std::vector<Plan>& all, const Plan& start, const RegisterRow& row,
                    const PlanChoices& choices) {
  const RegisterConfig& c = row.config;
  const GemmProblem& p = start.problem;
  const auto tiles_m = static_cast<int>((p.m() + c.tile_m - 1) / c.tile_m);
  const auto tiles_n = static_cast<int>((p.n() + c.tile_n - 1) / c.tile_n);
  if (std::int64_t{tiles_m} * tiles_n > max_extent / p.batch()) return;
  const int resident = c.ctas_per_sm * resident_ctas(start.device, 1);
  Plan plan = start;
  plan.kernel = row.name;
  if (has_producer(c) && c.buffers > 1) plan.c_path = result_path(p, false);
  plan.raster = tile::make_raster(
      tiles_m, tiles_n, {}, resident,
      {.row = static_cast<double>(c.tile_m), .column = static_cast<double>(c.tile_n)});
  plan.raster.batch = static_cast<int>(p.batch());
  const std::int64_t blocks = p.reads_ab() ? (p.k() + c.tile_k - 1) / c.tile_k : 0;
  for (const int ctas : grids_of(c, tile::tile_count(plan.raster), resident, blocks, choices)) {
    plan.ctas = ctas;
    plan.tile_source = c.tiles;
    plan.flag_bytes = is_split(plan) ? kernel::split_flag_bytes(c, ctas) : 0;
    plan.workspace_bytes = is_split(plan) ? kernel::split_workspace_bytes(c, ctas) : 0;
    plan.cost = cost(plan, c);
    all.push_back(plan);
  }
}

Refusal nothing_found(const Plan& start, const PlanChoices& choices) {
  const GemmProblem& p = start.problem;
  const Reach reach(p);
  std::vector<ResultTile> tiles;
  std::string there;
  bool found = false;
  for (const RegisterRow& i : registers_kernels()) {
    const RegisterConfig& c = i.config;
    const char* const lacking = kernel::config_fault(c, start.device.architecture);
    if (lacking != nullptr && choices.kernel.value_or("") == i.name) {
      return refuse(RefusalCode::no_kernel, "the kernel ", i.name, " does not run on ",
                    start.device.name, " (sm_", start.device.architecture, "): ", lacking,
                    "; leave the kernel open, or name another");
    }
    if (!is_for(c, start.device, false) || !multiplies(c, p)) continue;
    found = true;
    if (choices.kernel.value_or("") == i.name && has_producer(c) && !reach.by_copies) {
      return *problem_fault(p);
    }
    if (!reach.covers(c)) continue;
    tiles.push_back({c.tile_m, c.tile_n});
    there += (there.empty() ? "" : ", ") + std::string(i.name);
  }
  if (!found) {
    return refuse(RefusalCode::no_kernel, "no kernel of mma.sync in this build multiplies ",
                  type_name(p.a.dtype), " by ", type_name(p.b.dtype),
                  p.scaling == Scaling::micro ? " with micro scales" : "", " into ",
                  type_name(p.d.dtype), " on sm_", start.device.architecture);
  }
  if (tiles.empty()) {
    return refuse(
        RefusalCode::no_kernel, "no kernel of mma.sync in this build multiplies ",
        type_name(p.a.dtype), " into ", type_name(p.d.dtype),
        " where rows of A or B begin at other than multiples of 16 bytes: the nearest are "
        "rows that begin there");
  }
  if (auto r = tiles_fault(p, tiles)) return *r;
  std::string wanted;
  const auto wish = [&](const std::string& what) { wanted += (wanted.empty() ? "" : ", ") + what; };
  if (choices.kernel) wish("the name " + *choices.kernel);
  if (choices.tile_m) wish("tile_m " + number(*choices.tile_m));
  if (choices.tile_n) wish("tile_n " + number(*choices.tile_n));
  if (choices.schedule) wish("that schedule");
  if (choices.tiles) wish("tiles from there");
  if (choices.ctas) wish("a grid of " + number(*choices.ctas) + " CTAs");
  return refuse(RefusalCode::no_kernel, "no kernel of mma.sync has ", wanted,
                " for this problem on ", start.device.name, "; there are ", there,
                ", each with 1 to as many CTAs as are resident, and parts of tiles at most as many "
                "as blocks of K");
}

const RegisterConfig& register_config(const Plan& plan) {
  return config_named<RegisterConfig>(plan.kernel);
}

class RegistersFamily final : public Family {
 public:
  [[nodiscard]] bool runs_on(int architecture) const override {
    return architecture != 90 && kernel::is_register_target(architecture);
  }
  [[nodiscard]] bool can_run_on(int architecture) const override {
    return kernel::is_register_target(architecture);
  }
  [[nodiscard]] bool uses_copy_engine() const override { return false; }

  [[nodiscard]] const std::vector<KernelFacts>& kernels() const override {
    static const auto all = facts_of<RegisterConfig>();
    return all;
  }

  [[nodiscard]] Result<std::vector<Plan>> candidates(const Plan& start, const PlanChoices& choices,
                                                     Rows rows) const override {
    if (auto r = feature_fault(start.problem, start.device)) return *r;
    if (auto r = choice_fault(choices, start.device)) return *r;
    std::vector<Plan> all;
    const Reach reach(start.problem);
    for (const RegisterRow& row : registers_kernels(rows)) {
      if (suits(row, start, reach, choices)) add_candidates(all, start, row, choices);
    }
    if (all.empty()) return nothing_found(start, choices);
    return all;
  }

  [[nodiscard]] std::vector<pipeline::BarrierRow> barriers(const Plan& plan) const override {
    const RegisterConfig& c = register_config(plan);
    if (!has_producer(c)) return {};
    const pipeline::TmaPipelineShape ring = kernel::mainloop_shape(c);
    std::vector<pipeline::BarrierRow> rows = {pipeline::full_row(ring),
                                              pipeline::empty_row(ring, plan.cluster)};
    if (c.buffers > 1) rows.push_back(kernel::c_full_row(c));
    if (c.schedule == Schedule::pingpong) rows.push_back(pipeline::turn_row());
    if (asks_for_tiles(c)) {
      rows.push_back(pipeline::tile_full_row(kernel::tile_ring_shape(c)));
      rows.push_back(pipeline::tile_empty_row(kernel::tile_ring_shape(c), plan.cluster));
    }
    return rows;
  }

  [[nodiscard]] ExplainParts explain(const Plan& plan) const override {
    const RegisterConfig& c = register_config(plan);
    ExplainParts parts;
    if (has_producer(c)) {
      parts.kernel =
          format("a producer and %d warps that multiply, %s%s\n", consumer_warps(c),
                 c.schedule == Schedule::pingpong ? "in turns of two groups" : "all together",
                 asks_for_tiles(c) ? ", tiles from launch control" : "");
      parts.persistent = !asks_for_tiles(c);
    } else {
      parts.kernel = format("%d warps that all copy, multiply and store%s\n", threads(c) / 32,
                            is_split(plan) ? ", tiles split along K" : "");
    }
    const bool emulated =
        atom::mma_support(c.mma, plan.device.architecture) == atom::MmaSupport::emulated;
    parts.kernel += format(
        "tile       %d x %d x %d, %d x %d a warp, mma.sync m%dn%dk%d%s%s\n", c.tile_m, c.tile_n,
        c.tile_k, c.tile_m / c.warps_m, c.tile_n / c.warps_n, c.mma.m, c.mma.n, c.mma.k,
        emulated ? ", which this device makes of other instructions" : "",
        plan.device.architecture == 70 ? "; nvcc 13 compiles nothing for sm_70: for the model alone"
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
    const RegisterConfig& c = register_config(plan);
    if (has_producer(c)) {
      kernel::BlockScaledParams p;
      fill_params(p, c, plan, o, encode);
      out.grids[0] = grid_of(plan);
      out.count = 1;
      if (!is_block_scaled(c)) {
        out.grids[0].set_params(static_cast<const kernel::GemmParams&>(p));
        return;
      }
      if (p.operands.k > 0) {
        p.scale_a = encode(scale_request("the scales of A", o.scale_a, c));
        p.scale_b = encode(scale_request("the scales of B", o.scale_b, c));
      }
      p.scale_a_batch = matrices(o.scale_a) > 1 ? 1 : 0;
      p.scale_b_batch = matrices(o.scale_b) > 1 ? 1 : 0;
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
    const int tiles = p.walk.raster.count;
    if (is_split(plan) && p.operands.k > 0) {
      auto* const workspace = static_cast<std::byte*>(memory.workspace);
      p.walk.split = tile::SplitPlan(tiles, p.walk.k_blocks, plan.ctas);
      p.walk.flags = reinterpret_cast<std::uint32_t*>(workspace);
      p.walk.partials = reinterpret_cast<float*>(workspace + plan.flag_bytes);
      grid.workspace[0] = {"flags", 0, plan.flag_bytes};
      grid.workspace[1] = {"workspace", plan.flag_bytes, plan.workspace_bytes};
    } else {
      p.walk.split = tile::whole_tiles(tiles, p.walk.k_blocks, plan.ctas);
    }
    grid.set_params(p);
    out.count = 1;
  }

 private:
  // Rows of tiles of scales as rows of float32 words, of which a copy brings a stage's.
  static MapRequest scale_request(const char* name, const MatrixView& v, const RegisterConfig& c) {
    constexpr int tile_rows = block_scales::kTileRows;
    MatrixView words = matrix(v.data, DType::f32, v.rows / tile_rows, v.columns * tile_rows / 4);
    words.batch = v.batch;
    words.batch_stride = v.batch_stride / 4;
    return map_request(name, words, false, kernel::scale_words(c), 1, atom::SmemSwizzle::none);
  }
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
