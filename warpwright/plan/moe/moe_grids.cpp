#include "warpwright/plan/moe/moe_grids.h"

#include <algorithm>

#include "warpwright/kernel/moe/gather_rows.h"
#include "warpwright/kernel/moe/sort_gather.h"
#include "warpwright/kernel/moe/sort_slots.h"
#include "warpwright/kernel/moe/sum_slots.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

// One launch of a mixture, bound step by step.
class MixtureBinding {
 public:
  MixtureBinding(const MixturePlan& plan, const MixtureOperands& operands, void* workspace,
                 bool alone)
      : plan_(plan),
        alone_(alone),
        o_(operands),
        base_(static_cast<std::byte*>(workspace)),
        status_(at<std::uint32_t>(plan.layout.status)),
        offsets_(at<std::int32_t>(plan.layout.offsets)),
        slots_(at<std::int32_t>(plan.layout.slots)),
        rows_(at<std::int32_t>(plan.layout.rows)) {
    const MixtureLayout& l = plan.layout;
    const auto placed = [&](const PlannedMatrix& m, const MixtureBytes& where) {
      return m.rows == 0 ? MatrixView{} : MatrixView(base_ + where.at, m);
    };
    const bool is_x = plan.way.by_index && !operands.quantises();
    parts_ = {is_x ? operands.x : placed(plan.parts.tokens, l.tokens),
              placed(plan.parts.token_scales, l.token_scales),
              placed(plan.parts.inner, l.inner),
              placed(plan.parts.codes, l.codes),
              placed(plan.parts.code_scales, l.code_scales),
              placed(plan.parts.rows, l.results)};
  }

  void bind(MixtureStep step, Encode encode, MixtureStepGrids& out) const {
    switch (step) {
      case MixtureStep::sort:
        return plan_.sorts_with_gather ? sort_and_gather(out) : sort(out);
      case MixtureStep::gather:
        return gather(o_.x, parts_.tokens, parts_.token_scales, o_.factor_x, true, out);
      case MixtureStep::first:
        return first(encode, out);
      case MixtureStep::quantise:
        return gather(parts_.inner, parts_.codes, parts_.code_scales, o_.factor_inner, false, out);
      case MixtureStep::second:
        return second(encode, out);
      case MixtureStep::sum:
        return sum(out);
    }
  }

 private:
  template <class T>
  T* at(const MixtureBytes& part) const {
    return reinterpret_cast<T*>(base_ + part.at);
  }

  [[nodiscard]] bool asks_early(MixtureStep step) const {
    return !alone_ && plan_.asks_early(step);
  }

  static void make_grid(Grid& grid, std::string_view kernel, int ctas, int threads) {
    grid = {};
    grid.kernel = kernel;
    grid.ctas = ctas;
    grid.threads = threads;
    grid.multiplies = false;
  }

  static Grid& only_grid(MixtureStepGrids& out, std::string_view kernel, int ctas, int threads) {
    out.grids.count = 1;
    make_grid(out.grids.grids[0], kernel, ctas, threads);
    return out.grids.grids[0];
  }

  [[nodiscard]] tile::SlotIds slot_ids() const {
    tile::SlotIds p;
    p.ids = o_.topk_ids.data;
    p.pitch = o_.topk_ids.row_stride;
    p.wide = o_.id_type == OffsetType::int64;
    p.tokens = static_cast<int>(o_.tokens());
    p.top_k = static_cast<int>(o_.top_k());
    p.first_expert = static_cast<int>(o_.first_expert);
    p.experts = static_cast<int>(o_.experts());
    p.experts_total = static_cast<int>(o_.total());
    return p;
  }
  void touch_ids(MixtureStepGrids& out) const {
    const std::int64_t reached = reach({{o_.tokens(), o_.topk_ids.row_stride}, {o_.top_k(), 1}});
    out.touch(o_.topk_ids.data, reached * offset_bytes(o_.id_type), "topk_ids");
  }

  // What is sorted, and to where; its shape is not set.
  kernel::SortSlotsParams slots_to_sort(MixtureStepGrids& out) const {
    kernel::SortSlotsParams p;
    static_cast<tile::SlotIds&>(p) = slot_ids();
    p.offsets = offsets_;
    p.slots = slots_;
    p.rows = rows_;
    p.status = status_;
    touch_ids(out);
    out.touch(status_, plan_.layout.status.bytes, "status", true);
    out.touch(offsets_, plan_.layout.offsets.bytes, "offsets", true);
    out.touch(slots_, plan_.layout.slots.bytes, "slots", true);
    out.touch(rows_, plan_.layout.rows.bytes, "rows", true);
    return p;
  }

  void sort(MixtureStepGrids& out) const {
    using kernel::SortSlotsKernel;
    kernel::SortSlotsParams p = slots_to_sort(out);
    SortSlotsKernel::shape(p, plan_.sort_parts);
    if (plan_.way.by_index && o_.quantises() && !o_.is_micro()) {
      p.quantised = rows_to(o_.x, parts_.tokens, parts_.token_scales, p.warps);
      touch_rows(o_.x, parts_.tokens, parts_.token_scales, out);
    }
    out.grids.count = SortSlotsKernel::launches(p);
    for (int i = 0; i < out.grids.count; ++i) {
      const kernel::SortSlotsParams part = SortSlotsKernel::launch(p, i);
      Grid& grid = out.grids.grids[static_cast<std::size_t>(i)];
      make_grid(grid, sort_slots_kernel, SortSlotsKernel::ctas(part, plan_.device.sms),
                32 * part.warps);
      grid.cluster_size = part.cluster;
      grid.in_clusters = part.cluster > 1;
      grid.shared_bytes = SortSlotsKernel::shared_bytes_of(part);
      grid.set_params(part);
    }
  }

  // The sort and the gather in one launch.
  void sort_and_gather(MixtureStepGrids& out) const {
    using kernel::SortGatherKernel;
    kernel::SortGatherParams p;
    p.sort = slots_to_sort(out);
    p.gather = rows_of(o_.x, parts_.tokens, parts_.token_scales, o_.factor_x,
                       SortGatherKernel::warps, out);
    p.gather.micro.by_token = o_.is_micro() && plan_.way.by_index;
    p.gather.rows.top_k = p.sort.top_k;
    SortGatherKernel::shape(p, plan_.device.sms);
    Grid& grid = only_grid(out, sort_gather_kernel, p.ctas, SortGatherKernel::threads);
    grid.shared_bytes = SortGatherKernel::shared_bytes_of(p);
    grid.set_params(p);
  }

  // Rows of x to `to`, each to its own, by `warps` an SM.
  [[nodiscard]] kernel::TokenRows rows_to(const MatrixView& x, const MatrixView& to,
                                          const MatrixView& scales, int warps) const {
    kernel::TokenRows r;
    r.x = static_cast<const unsigned char*>(x.data);
    r.x_pitch = x.row_stride * element_bytes(x.dtype);
    r.to = static_cast<unsigned char*>(to.data);
    r.to_pitch = to.row_stride * numeric::bits(to.dtype) / 8;
    if (!o_.is_micro()) {
      r.scales = static_cast<float*>(scales.data);
      r.scale_pitch = scales.row_stride;
      r.scale_step = scales.column_stride;
    }
    r.tokens = static_cast<int>(x.rows);
    r.k = static_cast<int>(x.columns);
    r.type = x.dtype;
    // Beside tokens as they are weights may have scales by rows.
    r.form = o_.is_micro()                      ? kernel::RowForm::micro
             : !o_.quantises()                  ? kernel::RowForm::copy
             : o_.scaling == Scaling::blockwise ? kernel::RowForm::blocks
                                                : kernel::RowForm::rows;
    r.parts = kernel::TokenRowsWork::parts_of(r, std::int64_t{warps} * plan_.device.sms);
    return r;
  }

  static void touch_rows(const MatrixView& x, const MatrixView& to, const MatrixView& scales,
                         MixtureStepGrids& out) {
    out.touch(x.data, extent_bytes(x), "rows");
    out.touch(to.data, extent_bytes(to), "copied rows", true);
    if (scales.data != nullptr) out.touch(scales.data, extent_bytes(scales), "scales", true);
  }

  // The same with the scales of other formats, by `warps` an SM; `factor` is the scale of all of
  // them, where there is one.
  kernel::GatherRowsParams rows_of(const MatrixView& x, const MatrixView& to,
                                   const MatrixView& scales, const MatrixView& factor, int warps,
                                   MixtureStepGrids& out) const {
    kernel::GatherRowsParams p{rows_to(x, to, scales, warps)};
    touch_rows(x, to, scales, out);
    if (!o_.is_micro()) return p;
    p.micro = {
        .element = to.dtype,
        .scale = scales.dtype,
        .tiles = static_cast<std::uint8_t*>(scales.data),
        .columns = static_cast<int>(scales.columns),
        .tensor = static_cast<const float*>(factor.data),
        .offsets = offsets_,
        .experts = static_cast<int>(o_.experts()),
        .parts = kernel::MicroRowsWork::parts_of(p.rows, warps * std::max(plan_.device.sms, 1))};
    out.touch(factor.data, extent_bytes(factor), "the scale of the tensor");
    return p;
  }

  // The same in a launch of its own; `by_number`: of tokens to the rows of their slots.
  void gather(const MatrixView& x, const MatrixView& to, const MatrixView& scales,
              const MatrixView& factor, bool by_number, MixtureStepGrids& out) const {
    using kernel::GatherRowsKernel;
    kernel::GatherRowsParams p =
        rows_of(x, to, scales, factor, GatherRowsKernel::warps * GatherRowsKernel::ctas_an_sm, out);
    if (by_number) {
      p.rows.rows = rows_;
      p.rows.top_k = static_cast<int>(o_.top_k());
      out.touch(rows_, plan_.layout.rows.bytes, "numbers of rows");
    }
    if (o_.is_micro()) {
      p.micro.by_token = by_number && plan_.way.by_index;
      out.touch(offsets_, plan_.layout.offsets.bytes, "offsets");
    }
    only_grid(out, gather_rows_kernel, GatherRowsKernel::ctas(p, plan_.device.sms),
              GatherRowsKernel::threads)
        .set_params(p);
  }

  void product(const Plan& plan, const GemmOperands& operands, const MixtureBytes& part, bool early,
               Encode encode, MixtureStepGrids& out, const tile::SlotIds* sorted = nullptr) const {
    out.product = &plan;
    out.operands = operands;
    out.workspace = base_ + part.at;
    bind_launch(plan, operands, {out.workspace, false, false, early, sorted}, encode, out.grids);
  }

  void first(Encode encode, MixtureStepGrids& out) const {
    const bool early = asks_early(MixtureStep::first);
    const tile::SlotIds ids = slot_ids();
    const bool counts = early && plan_.counts_slots();
    product(plan_.first, first_product(o_, parts_, plan_.way, offsets_, slots_), plan_.layout.first,
            early, encode, out, counts ? &ids : nullptr);
    if (counts) touch_ids(out);
  }

  void second(Encode encode, MixtureStepGrids& out) const {
    const GemmOperands operands = second_product(o_, parts_, offsets_);
    product(plan_.second, operands, plan_.layout.second, plan_.asks_early(MixtureStep::second),
            encode, out);
  }

  void sum(MixtureStepGrids& out) const {
    using kernel::SumSlotsKernel;
    const kernel::SumSlotsParams p = sums(out);
    only_grid(out, sum_slots_kernel, SumSlotsKernel::ctas(p, plan_.device.sms),
              SumSlotsKernel::threads)
        .set_params(p);
    out.touch(parts_.rows.data, extent_bytes(parts_.rows), "rows of the second product");
  }

  // What adds up rows is given, whoever does it.
  kernel::SumSlotsParams sums(MixtureStepGrids& out) const {
    const auto bytes = [](const MatrixView& v) { return v.row_stride * element_bytes(v.dtype); };
    kernel::SumSlotsParams p;
    p.x = static_cast<const unsigned char*>(parts_.rows.data);
    p.x_pitch = bytes(parts_.rows);
    p.y = static_cast<unsigned char*>(o_.d.data);
    p.y_pitch = bytes(o_.d);
    p.weights = o_.topk_weights.data;
    p.weight_pitch = o_.topk_weights.row_stride;
    p.rows = rows_;
    p.tokens = static_cast<int>(o_.tokens());
    p.top_k = static_cast<int>(o_.top_k());
    p.k = static_cast<int>(o_.hidden());
    p.type = o_.x.dtype;
    p.y_type = o_.d.dtype;
    p.weight_type = o_.topk_weights.dtype;
    out.touch(p.weights, extent_bytes(o_.topk_weights), "topk_weights");
    out.touch(rows_, plan_.layout.rows.bytes, "rows");
    out.touch(p.y, extent_bytes(o_.d), "d", true);
    return p;
  }

  const MixturePlan& plan_;
  bool alone_;
  const MixtureOperands& o_;
  std::byte* base_;
  std::uint32_t* status_;
  std::int32_t* offsets_;
  std::int32_t* slots_;
  std::int32_t* rows_;
  MixtureParts<MatrixView> parts_;
};

}  // namespace

void bind_mixture(const MixturePlan& plan, const MixtureOperands& operands, void* workspace,
                  Encode encode, MixtureGrids& out, bool alone) {
  const MixtureBinding binding(plan, operands, workspace, alone);
  out.count = 0;
  for (const MixtureStep step : plan.steps()) {
    MixtureStepGrids& grids = out.steps[static_cast<std::size_t>(out.count++)];
    grids.step = step;
    binding.bind(step, encode, grids);
  }
}

}  // namespace warpwright
