// The rules of a mixture whose scales the tensor core multiplies, and of how many experts and rows
// there are.
#include "warpwright/plan/moe/mixture_micro.h"

#include <algorithm>

#include "warpwright/kernel/moe/micro_rows.h"
#include "warpwright/kernel/moe/sort_slots.h"
#include "warpwright/kernel/moe/sum_slots.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

constexpr std::int64_t most_experts = kernel::SortSlotsKernel::max_experts;
constexpr std::int64_t most_top_k = kernel::SumSlotsKernel::max_top_k;
constexpr std::int64_t most_slots = kernel::SortSlotsKernel::max_slots;

struct Named {
  const PlannedMatrix* matrix;
  const char* name;
};

}  // namespace

std::optional<Refusal> mixture_tokens_fault(const MixtureProblem& p) {
  if (!p.is_micro()) {
    if (p.tokens_as == DType::f32) return std::nullopt;
    return refuse(RefusalCode::bad_value, "tokens_as is ", type_name(p.tokens_as),
                  ", and scaling is ", name(p.scaling), "; ",
                  as_rule("it says what tokens become beside block_scaled weights: leave it out"));
  }
  for (const Named& v : {Named{&p.scale_w13, "scale_w13"}, {&p.scale_w2, "scale_w2"}}) {
    const DType scale = v.matrix->dtype;
    if (scale == p.micro_scale() && micro_format(p.w13.dtype, scale) != nullptr) continue;
    const bool legal = micro_format(p.w13.dtype, p.micro_scale()) != nullptr;
    return refuse(
        RefusalCode::bad_type, as_tensor(v.name), " is ", type_name(scale), ", and w13 ",
        type_name(p.w13.dtype), "; ", as_rule("scales of both weights are ue8m0, or of e2m1 ue4m3"),
        ": the nearest is ", as_nearest(type_name(legal ? p.micro_scale() : DType::ue8m0)));
  }
  if (kernel::makes_micro_rows(p.token_type(), p.micro_scale())) return std::nullopt;
  return refuse(RefusalCode::bad_value, "tokens would become ", type_name(p.token_type()),
                " with scales of ", type_name(p.micro_scale()), "; ",
                as_rule("they become mxf8, mxf4, or beside nvf4 weights nvf4"),
                ": the nearest tokens_as is ",
                as_nearest(type_name(p.micro_scale() == DType::ue4m3 ? DType::e2m1 : DType::e4m3)));
}

std::optional<Refusal> mixture_factors_fault(const MixtureProblem& p) {
  const struct {
    Named of;
    bool of_tokens;
  } all[] = {{{&p.factor_w13, "factor_w13"}, false},
             {{&p.factor_w2, "factor_w2"}, false},
             {{&p.factor_x, "factor_x"}, true},
             {{&p.factor_inner, "factor_inner"}, true}};
  for (const auto& [of, of_tokens] : all) {
    const PlannedMatrix& v = *of.matrix;
    if (!is_given(v)) continue;
    const bool legal = of_tokens ? p.micro_scale() == DType::ue4m3 : p.is_micro();
    if (!legal) {
      return refuse(RefusalCode::bad_value, as_tensor(of.name), " is given; ",
                    as_rule(of_tokens ? "tokens of nvf4 have a scale of the tensor"
                                      : "weights that are block_scaled have factors"),
                    ": leave it out");
    }
    const std::int64_t most = of_tokens ? 1 : p.experts();
    if (v.dtype == DType::f32 && v.batch == 1 && v.columns == 1 &&
        (v.rows == 1 || v.rows == most)) {
      continue;
    }
    return refuse(RefusalCode::bad_shape, as_tensor(of.name), " is ", shape_of(v), " of ",
                  type_name(v.dtype), "; ",
                  as_rule(of_tokens ? "there is one" : "there is one, or one for each expert"),
                  ": the nearest legal is ", as_nearest(shape_of(most, 1), " of f32"));
  }
  return std::nullopt;
}

std::optional<Refusal> mixture_experts_fault(const MixtureProblem& p) {
  if (p.experts() < 1 || p.experts() > most_experts) {
    return refuse(RefusalCode::bad_shape, as_tensor("w13"), " has ", p.experts(), " experts; ",
                  as_rule("a mixture has 1 to ", most_experts, " of them on a device"),
                  ": the nearest legal is ",
                  as_nearest(p.experts() < 1 ? std::int64_t{1} : most_experts));
  }
  if (p.first_expert < 0 || p.experts_total < 0 || p.total() > max_extent ||
      p.first_expert + p.experts() > p.total()) {
    const auto said = [&](const char* what, std::int64_t value, std::int64_t nearest) {
      return refuse(RefusalCode::bad_value, what, " is ", value, ", and there are ", p.experts(),
                    " experts here, from ", p.first_expert, " on, of ", p.total(), "; ",
                    as_rule("those of a rank lie among all of them"), ": the nearest legal ", what,
                    " is ", as_nearest(nearest));
    };
    if (p.total() > max_extent) return said("experts_total", p.experts_total, max_extent);
    if (p.experts_total < 0 || (p.experts_total > 0 && p.experts_total < p.experts())) {
      return said("experts_total", p.experts_total, p.experts());
    }
    return said("first_expert", p.first_expert, p.first_expert < 0 ? 0 : p.total() - p.experts());
  }
  if (!p.is_routed()) return std::nullopt;
  if (p.top_k() < 1 || p.top_k() > most_top_k || p.slots() > most_slots) {
    const std::int64_t top_k = std::clamp<std::int64_t>(p.top_k(), 1, most_top_k);
    return refuse(
        RefusalCode::bad_shape, as_tensor("topk_ids"), " is ", shape_of(p.topk_ids), "; ",
        as_rule("a token has 1 to ", most_top_k, " experts, and all have at most ", most_slots),
        ": the nearest legal is ",
        as_nearest(shape_of(std::min<std::int64_t>(p.tokens(), most_slots / top_k), top_k)));
  }
  return std::nullopt;
}

// What the products would say of their own shapes, which would tell two blocks.
std::optional<Refusal> mixture_blocks_fault(const MixtureProblem& p) {
  if (!p.has_small_blocks()) return std::nullopt;
  const std::int64_t block = p.scale_block();
  for (const auto& [w, scales, name_of] :
       {std::tuple{&p.w13, &p.scale_w13, "w13"}, {&p.w2, &p.scale_w2, "w2"}}) {
    const std::int64_t rows = ScaleReach::count(w->rows, block);
    const std::int64_t columns = ScaleReach::count(w->columns, block);
    if (!is_given(*scales) || (scales->rows == rows && scales->columns == columns)) continue;
    return refuse(RefusalCode::bad_shape, as_tensor(std::string("scale_") + name_of), " is ",
                  shape_of(*scales), ", and ", name_of, " ", shape_of(*w), "; ",
                  as_rule("both weights have scales of blocks of 128 x 128, 64 x 64 or 32 x 32"),
                  ": the nearest legal is ", as_nearest(shape_of(rows, columns)));
  }
  return std::nullopt;
}

std::optional<Refusal> mixture_gate_fault(const MixtureProblem& p) {
  if (!p.is_gated) return std::nullopt;
  const std::int64_t inner = p.w13.rows / 2;
  // Who gates apart multiplies them as one matrix.
  const bool halves = p.scaling == Scaling::blockwise && !p.has_small_blocks();
  const std::int64_t step = p.is_packed() ? packed::kTileRows : halves ? scale_block / 2 : 8;
  if (inner % step == 0) return std::nullopt;
  return refuse(
      RefusalCode::unsupported, "inner is ", inner, "; ",
      as_rule("w13 has the rows of gates and of ups ", p.interleaved ? "in turns" : "in two halves",
              ", each of a multiple of ", step, " rows"),
      ": the nearest legal inner is ",
      as_nearest(std::max(step, (inner + step / 2) / step * step)));
}

}  // namespace warpwright
