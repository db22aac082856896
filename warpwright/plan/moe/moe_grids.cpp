#include "warpwright/plan/moe/moe_grids.h"

#include <algorithm>

#include "warpwright/kernel/moe/gate_rows.h"
#include "warpwright/kernel/moe/gather_rows.h"
#include "warpwright/kernel/moe/sort_gather.h"
#include "warpwright/kernel/moe/sort_slots.h"
#include "warpwright/kernel/moe/sum_slots.h"
#include "warpwright/plan/families/bind.h"
#include "warpwright/plan/families/group_walk.h"
#include "warpwright/plan/moe/layers.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
// What steps are bound to: the parts of a mixture with their addresses.
class MixtureBinding {
 public:
  MixtureBinding(const MixturePlan& plan, const MixtureOperands& operands, void* workspace,
                 Encode encode_, bool alone)
      : plan(plan),
        o(operands),
        encode(encode_),
        base_(static_cast<std::byte*>(workspace)),
        alone_(alone) {
    for (int i = first_own_part; i < mixture_parts; ++i) {
      const auto part = static_cast<MixturePart>(i);
      if (plan.layout[part].bytes > 0) {
        parts_[part] = MatrixView(base_ + plan.layout[part].at, plan.parts[part]);
      }
    }
    set_operands(operands, parts_);
    MatrixView& tokens = parts_[MixturePart::tokens];
    MatrixView& scales = parts_[MixturePart::token_scales];
    if (tokens.data == nullptr) tokens = operands.x;
    if (scales.data == nullptr) scales = parts_[MixturePart::scale_x];
    MatrixView& results = parts_[MixturePart::results];
    if (results.data == nullptr) results = operands.d;
  }

  void bind(const StepRow& row, MixtureStepGrids& out) const {
    out.row = &row;
    if (row.product != nullptr) return bind_product(row, out);
    out.grids.count = row.grids != nullptr ? row.grids(plan) : 1;
    for (int i = 0; i < out.grids.count; ++i) {
      Grid& grid = out.grids.grids[static_cast<std::size_t>(i)];
      grid = {};
      grid.kernel = row.kernel;
      grid.multiplies = false;
    }
    row.bind(*this, out);
  }

  /// A part, or none where this plan has none.
  [[nodiscard]] const MatrixView& operator[](MixturePart part) const { return parts_[part]; }
  template <class T>
  [[nodiscard]] T* at(MixturePart part) const {
    return static_cast<T*>(parts_[part].data);
  }
  [[nodiscard]] const MixtureParts<MatrixView>& parts() const { return parts_; }
  [[nodiscard]] int sms() const { return std::max(plan.device.sms, 1); }

  [[nodiscard]] tile::SlotIds slot_ids() const {
    tile::SlotIds p;
    p.ids = o.topk_ids.data;
    p.pitch = o.topk_ids.row_stride;
    p.wide = o.id_type == OffsetType::int64;
    p.tokens = static_cast<int>(o.tokens());
    p.top_k = static_cast<int>(o.top_k());
    p.first_expert = static_cast<int>(o.first_expert);
    p.experts = static_cast<int>(o.experts());
    p.experts_total = static_cast<int>(o.total());
    return p;
  }

  const MixturePlan& plan;
  const MixtureOperands& o;
  Encode encode;

 private:
  void bind_product(const StepRow& row, MixtureStepGrids& out) const {
    const Plan& product = plan.*row.product->plan;
    const bool early = !alone_ && asks_early(plan, row);
    // The launch before it writes the offsets then.
    out.counts = early && row.step == MixtureStep::first && plan.counts_slots();
    const tile::SlotIds ids = slot_ids();
    out.product = &product;
    out.operands = row.product->operands(o, parts_, plan.way);
    out.workspace = base_ + plan.layout.products[static_cast<std::size_t>(row.step)].at;
    bind_launch(product, out.operands,
                {out.workspace, false, false, early, out.counts ? &ids : nullptr}, encode,
                out.grids);
  }

  std::byte* base_;
  bool alone_;
  MixtureParts<MatrixView> parts_;
};

namespace {

using Part = MixturePart;

// What is sorted, and to where; its shape is not set.
kernel::SortSlotsParams slots_to_sort(const MixtureBinding& b) {
  kernel::SortSlotsParams p;
  static_cast<tile::SlotIds&>(p) = b.slot_ids();
  p.offsets = b.at<std::int32_t>(Part::offsets);
  p.slots = b.at<std::int32_t>(Part::slots);
  p.rows = b.at<std::int32_t>(Part::rows);
  p.status = b.at<std::uint32_t>(Part::status);
  return p;
}

// Warps of a launch that moves rows: a CTA's, and an SM's.
struct MovingWarps {
  int cta = 0;
  int sm = 0;
};

// Rows of `from` to `to`, each to its own.
kernel::TokenRows rows_to(const MixtureBinding& b, Part from, Part to, Part with,
                          const MovingWarps& warps) {
  const MatrixView& x = b[from];
  const MatrixView& codes = b[to];
  const MatrixView& scales = b[with];
  kernel::TokenRows r;
  r.x = static_cast<const unsigned char*>(x.data);
  r.x_pitch = x.row_stride * element_bytes(x.dtype);
  r.to = static_cast<unsigned char*>(codes.data);
  r.to_pitch = codes.row_stride * numeric::bits(codes.dtype) / 8;
  if (!b.o.is_micro()) {
    r.scales = static_cast<float*>(scales.data);
    r.scale_pitch = scales.row_stride;
    r.scale_step = scales.column_stride;
  }
  r.tokens = static_cast<int>(x.rows);
  r.k = static_cast<int>(codes.columns);  // a gate's rows are twice as long
  r.type = x.dtype;
  // Beside tokens as they are weights may have scales by rows.
  r.form = b.o.is_micro()                       ? kernel::RowForm::micro
           : from == Part::x && b.o.has_codes() ? kernel::RowForm::codes
           : !b.o.quantises()                   ? kernel::RowForm::copy
           : b.o.scaling == Scaling::blockwise  ? kernel::RowForm::blocks
                                                : kernel::RowForm::rows;
  r.block = static_cast<int>(b.o.scale_block());
  const MatrixView& given = b[Part::scale_x];
  if (r.form == kernel::RowForm::codes) {
    r.x_scales = static_cast<const float*>(given.data);
    r.x_scale_pitch = given.row_stride;
    r.x_scale_step = given.column_stride;
    r.scales_blocks = b.o.scaling == Scaling::blockwise;
  }
  const MatrixView& weights = b[Part::input_weights];
  if (from == Part::x && weights.data != nullptr) {
    r.weights = weights.data;
    r.weight_pitch = weights.row_stride;
    r.weight_type = weights.dtype;
  }
  const int most_pieces = from == Part::gate_up ? kernel::ReadGated::kept : 0;
  r.sharers = kernel::TokenRowsWork::sharers_of(
      r, warps.cta, std::int64_t{warps.sm} * b.plan.device.sms, most_pieces);
  return r;
}

// The same with the scales of other formats; `tensor` is the scale of all of them, where there is
// one.
kernel::GatherRowsParams rows_of(const MixtureBinding& b, Part from, Part to, Part with,
                                 Part tensor, const MovingWarps& warps) {
  kernel::GatherRowsParams p{rows_to(b, from, to, with, warps)};
  if (!b.o.is_micro()) return p;
  p.micro = {.element = b[to].dtype,
             .scale = b[with].dtype,
             .tiles = b.at<std::uint8_t>(with),
             .columns = static_cast<int>(b[with].columns),
             .tensor = b.at<const float>(tensor),
             .offsets = b.at<const std::int32_t>(Part::offsets),
             .experts = static_cast<int>(b.o.experts()),
             .parts = kernel::MicroRowsWork::parts_of(p.rows, warps.sm * b.sms())};
  return p;
}
kernel::GatherRowsParams tokens_of(const MixtureBinding& b, const MovingWarps& warps) {
  auto p = rows_of(b, Part::x, Part::tokens, Part::token_scales, Part::factor_x, warps);
  p.rows.top_k = static_cast<int>(b.o.top_k());
  p.micro.by_token = b.o.is_micro() && b.plan.way.by_index;
  return p;
}

// The only grid of a step.
template <class Kernel, class Params>
void set_grid(MixtureStepGrids& out, const Params& p, int ctas) {
  Grid& grid = out.grids.grids[0];
  grid.ctas = ctas;
  grid.threads = Kernel::threads;
  grid.shared_bytes = Kernel::shared_bytes;
  grid.set_params(p);
}

constexpr MovingWarps gathering_warps = {kernel::RowsLaunch::warps,
                                         kernel::RowsLaunch::warps* kernel::RowsLaunch::ctas_an_sm};

}  // namespace

void bind_sort(const MixtureBinding& b, MixtureStepGrids& out) {
  using kernel::SortSlotsKernel;
  kernel::SortSlotsParams p = slots_to_sort(b);
  SortSlotsKernel::shape(p, b.plan.way.sort_parts);
  if (b.plan.way.by_index && b.o.makes_tokens() && !b.o.is_micro()) {
    p.quantised = rows_to(b, Part::x, Part::tokens, Part::token_scales, {p.warps, p.warps});
  }
  for (int i = 0; i < out.grids.count; ++i) {
    const kernel::SortSlotsParams part = SortSlotsKernel::launch(p, i);
    Grid& grid = out.grids.grids[static_cast<std::size_t>(i)];
    grid.ctas = SortSlotsKernel::ctas(part, b.plan.device.sms);
    grid.threads = 32 * part.warps;
    grid.cluster_size = part.cluster;
    grid.in_clusters = part.cluster > 1;
    grid.shared_bytes = SortSlotsKernel::shared_bytes_of(part);
    grid.set_params(part);
  }
}

void bind_sort_gather(const MixtureBinding& b, MixtureStepGrids& out) {
  using kernel::SortGatherKernel;
  kernel::SortGatherParams p;
  p.sort = slots_to_sort(b);
  p.gather = tokens_of(b, {SortGatherKernel::warps, SortGatherKernel::warps});
  SortGatherKernel::shape(p, b.plan.device.sms);
  set_grid<SortGatherKernel>(out, p, p.ctas);
  out.grids.grids[0].shared_bytes = SortGatherKernel::shared_bytes_of(p);
}

void bind_gather(const MixtureBinding& b, MixtureStepGrids& out) {
  using kernel::GatherRowsKernel;
  kernel::GatherRowsParams p = tokens_of(b, gathering_warps);
  p.rows.rows = b.at<std::int32_t>(Part::rows);
  set_grid<GatherRowsKernel>(out, p, GatherRowsKernel::ctas(p, b.plan.device.sms));
}

void bind_gate(const MixtureBinding& b, MixtureStepGrids& out) {
  using kernel::GateRowsKernel;
  kernel::GateRowsParams p;
  const Part to = b.o.quantises() ? Part::codes : Part::inner;
  p.rows = rows_to(b, Part::gate_up, to, Part::code_scales, gathering_warps);
  p.activation = activation_params(form_of(b.o.activation, b.o.gate));
  p.interleaved = b.o.interleaved;
  set_grid<GateRowsKernel>(out, p, GateRowsKernel::ctas(p, b.plan.device.sms));
}

void bind_quantise(const MixtureBinding& b, MixtureStepGrids& out) {
  using kernel::GatherRowsKernel;
  const kernel::GatherRowsParams p =
      rows_of(b, Part::inner, Part::codes, Part::code_scales, Part::factor_inner, gathering_warps);
  set_grid<GatherRowsKernel>(out, p, GatherRowsKernel::ctas(p, b.plan.device.sms));
}

// What is added up, but for the rows of slots.
static kernel::SumSlotsParams sums_of(const MixtureBinding& b) {
  const auto pitch = [&b](Part part) { return b[part].row_stride * element_bytes(b[part].dtype); };
  kernel::SumSlotsParams p;
  p.x = b.at<const unsigned char>(Part::results);
  p.x_pitch = pitch(Part::results);
  p.y = b.at<unsigned char>(Part::d);
  p.y_pitch = pitch(Part::d);
  const MatrixView& weights = b[Part::topk_weights];
  p.weights = weights.data;
  p.weight_pitch = weights.row_stride;
  p.weight_type = weights.dtype;
  p.factor = b.o.routed_scaling_factor;
  const MatrixView& addend = b[Part::shared_output];
  p.addend = static_cast<const unsigned char*>(addend.data);
  p.addend_pitch = pitch(Part::shared_output);
  p.addend_type = addend.dtype;
  p.tokens = static_cast<int>(b.o.results());
  const auto top_k = static_cast<int>(b.o.top_k());
  const bool adds = b.o.combine == Combine::sum;
  p.top_k = adds ? top_k : 1;
  p.of_weights = adds ? 1 : top_k;
  p.k = static_cast<int>(b.o.hidden());
  p.type = b.o.row_type();
  p.y_type = b.o.d.dtype;
  return p;
}

void bind_sum(const MixtureBinding& b, MixtureStepGrids& out) {
  using kernel::SumSlotsKernel;
  kernel::SumSlotsParams p = sums_of(b);
  p.rows = b.at<std::int32_t>(Part::rows);
  set_grid<SumSlotsKernel>(out, p, SumSlotsKernel::ctas(p, b.plan.device.sms));
}

// A product as warps take it that multiply by themselves: its numbers are those of `p`.
static kernel::WarpProduct warp_product(const kernel::LayerConfig& c, const kernel::GemmParams& p,
                                        const MatrixView& weights, int parts) {
  kernel::WarpProduct w;
  if (!kernel::packed_a(c.first)) {
    const int bytes = element_bytes(weights.dtype);
    w.weights = {static_cast<const std::byte*>(weights.data), weights.row_stride * bytes,
                 weights.batch > 1 ? weights.batch_stride * bytes : 0};
  }
  w.packed = p.operands.packed;
  w.tokens = p.operands.tokens;
  w.gate = p.operands.gate;
  w.eight_rows = 8 * w.gate.step * w.weights.pitch;
  // Gates and ups begin with tiles, and with blocks of scales.
  w.ups.bytes = kernel::packed_a(c.first) ? std::int64_t{w.gate.apart} / packed::kTileRows *
                                                w.packed.k_tiles * w.packed.tile_bytes
                                          : w.gate.apart * w.weights.pitch;
  w.ups.scales = w.gate.apart / 128 * p.scales.weights.row_stride;
  w.scales = p.scales.rows;
  w.biases = p.output.row_bias;
  w.block_scales = p.scales.weights;
  w.alpha = p.output.alpha;
  w.factors[0] = p.scales.tensor_a;
  w.factors[1] = p.scales.tensor_b;
  w.factor_strides[0] = p.scales.tensor_a_stride;
  w.factor_strides[1] = p.scales.tensor_b_stride;
  w.k_units = static_cast<int>(pieces(p.operands.k, kernel::unit_k(c)));
  w.share = static_cast<int>(pieces(w.k_units, parts));
  return w;
}

// Rows of the second product, of so many of an expert, as a warp brings them at a time: all of its
// share where they fit, and always whole stages.
static kernel::WarpLayerParams::Chunk chunk_of(const kernel::LayerConfig& c, int share, int rows) {
  const auto bytes = [&](int units) {
    return kernel::token_row_bytes(std::int64_t{units} * kernel::unit_k(c));
  };
  int units = 2;
  while (units + 2 <= share && rows * bytes(units + 2) <= kernel::token_bytes(c) / c.warps)
    units += 2;
  return {units, static_cast<int>(bytes(units))};
}

// The parameters of a kernel whose warps multiply by themselves.
static kernel::WarpLayerParams warp_params(const MixtureBinding& b, const kernel::LayerConfig& c,
                                           const kernel::LayerParams& all) {
  const MixtureWay& way = b.plan.way;
  kernel::WarpLayerParams p;
  p.first = warp_product(c, all.first, b.o.w13, c.warps);
  p.second = warp_product(c, all.second, b.o.w2, way.k_parts);
  p.second.share += p.second.share % 2;  // two units are a stage
  p.slots = all.slots;
  p.activation = all.first.output.activation;
  p.inner = all.first.output.d_data;
  p.inner_pitch = all.first.output.d_pitch;
  p.inner_columns = static_cast<int>(b.o.inner());
  p.first_items = all.first_tiles;
  p.by_parts = tile::Divisor(way.k_parts);
  p.second_items = all.second_tiles;
  p.token_pitch =
      static_cast<int>(kernel::token_row_bytes(std::int64_t{p.first.k_units} * kernel::unit_k(c)));
  p.in_place = overlap(b.o.d, b.o.x);
  for (int rows = 1; rows <= kernel::block_tokens; ++rows) {
    p.chunks[rows - 1] = chunk_of(c, p.second.share, rows);
  }
  p.sum = all.sum;
  p.bias = all.bias;
  p.bias_pitch = all.bias_pitch;
  p.bias_is_wide = all.bias_is_wide;
  p.flags = all.flags;
  return p;
}

// The grid of a layer in one launch.
static void set_layer_grid(const MixtureBinding& b, const kernel::LayerConfig& c,
                           const kernel::LayerParams& p, Grid& grid) {
  const LayerTiles tiles = layer_tiles(b.plan.problem, b.plan.way);
  const std::int64_t items =
      kernel::by_warps(c) ? tiles.most_tokens * tiles.first + tiles.second
                          : tiles.most_tokens * (tiles.first + b.plan.way.k_parts * tiles.second);
  grid.ctas = static_cast<int>(std::min<std::int64_t>(c.first.ctas_per_sm * b.sms(), items));
  grid.in_clusters = true;  // of one CTA: numbers of items are stored there by st.async
  grid.threads = kernel::threads(c);
  grid.registers = kernel::launch_registers(c.first);
  grid.shared_bytes = kernel::shared_bytes(c);
  if (kernel::by_warps(c)) {
    grid.set_params(warp_params(b, c, p));
  } else {
    grid.set_params(p);
  }
}

void bind_layer(const MixtureBinding& b, MixtureStepGrids& out) {
  const kernel::LayerConfig& c = layer_config(b.plan.way.layer);
  kernel::LayerParams p;
  MixtureParts<MatrixView> parts = b.parts();
  // Sums of a part have another type and more rows; codes that are only in shared memory have a
  // shape all the same.
  const MatrixView& partials = b[Part::partials];
  parts[Part::results] = MatrixView(partials.data, b.plan.parts[Part::results]);
  if (kernel::quantises_rows(c)) {
    parts[Part::codes] = MatrixView(b.at<std::byte>(Part::inner), b.plan.parts[Part::codes]);
  }
  fill_params(p.first, c.first, b.plan.first, first_product(b.o, parts, b.plan.way), b.encode);
  GemmOperands second = second_product(b.o, parts, b.plan.way);
  if (is_given(b.o.bias2)) {  // who adds up a token's parts adds it
    p.bias = static_cast<const unsigned char*>(second.bias.data);
    p.bias_pitch = second.bias.batch_stride * element_bytes(second.bias.dtype);
    p.bias_is_wide = second.bias.dtype == DType::f32;
    second.bias = {};
    second.epilogue.bias = Bias::none;
  }
  fill_params(p.second, c.second, b.plan.second, second, b.encode);
  // Rows of both come by number, and as they are: what quantises them is the kernel.
  const auto rows_of = [](const MatrixView& v) {
    const int bytes = element_bytes(v.dtype);
    return kernel::TokenParams{static_cast<const std::byte*>(v.data), v.row_stride * bytes / 16,
                               v.columns * bytes};
  };
  p.first.operands.tokens = rows_of(b.o.x);
  p.second.operands.tokens = rows_of(b[Part::inner]);
  p.slots = kernel::SlotTilesParams(b.slot_ids());
  p.slots.status = b.at<std::uint32_t>(Part::status);
  const MatrixView& weights = b[Part::topk_weights];
  p.slots.weights = weights.data;
  p.slots.weight_pitch = weights.row_stride;
  p.slots.weight_type = weights.dtype;
  p.sum = sums_of(b);
  p.sum.x = static_cast<const unsigned char*>(partials.data);
  p.sum.x_pitch = partials.row_stride * element_bytes(partials.dtype);
  p.second.output.d_pitch = partials.row_stride;
  const MixtureWay& way = b.plan.way;
  const LayerTiles tiles = layer_tiles(b.plan.problem, way);
  p.first_tiles = tile::Divisor(static_cast<int>(tiles.first));
  p.second_tiles = static_cast<int>(tiles.second);
  p.second_items = tile::Divisor(p.second_tiles * way.k_parts);
  p.k_parts = way.k_parts;
  p.part_k_tiles = static_cast<int>(pieces(p.second.walk.k_tiles, way.k_parts));
  p.flags = b.at<std::uint32_t>(Part::flags);
  set_layer_grid(b, c, p, out.grids.grids[0]);
}

void bind_mixture(const MixturePlan& plan, const MixtureOperands& operands, void* workspace,
                  Encode encode, MixtureGrids& out, bool alone) {
  const MixtureBinding binding(plan, operands, workspace, encode, alone);
  out.count = 0;
  out.parts = binding.parts();
  for (const StepRow& row : rows_of(plan)) {
    binding.bind(row, out.steps[static_cast<std::size_t>(out.count++)]);
  }
}

}  // namespace warpwright
