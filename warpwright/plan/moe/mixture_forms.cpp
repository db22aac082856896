// The rules of what engines ask of a mixture beside the plain one: tokens that come as codes, slots
// by themselves, router weights on the input, layers without a gate.
#include <cmath>
#include <tuple>
#include <utility>

#include "warpwright/facts/format.h"
#include "warpwright/plan/moe/mixture_micro.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {

// What an x of e4m3 asks for, and what only it has.
std::optional<Refusal> mixture_codes_fault(const MixtureProblem& p) {
  const PlannedMatrix& s = p.scale_x;
  if (!p.has_codes()) {
    if (!is_given(s)) return std::nullopt;
    return refuse(RefusalCode::bad_value, as_tensor("scale_x"), " is given and x is ",
                  type_name(p.x.dtype), "; ", as_rule("only tokens that are e4m3 have scales"),
                  ": leave it out");
  }
  if (!p.quantises() || p.is_micro()) {
    return refuse(RefusalCode::bad_type, as_tensor("x"), " is e4m3, and scaling is ",
                  name(p.scaling), "; ",
                  as_rule("tokens are e4m3 beside weights for tokens of e4m3 whose scaling is "
                          "row-column or blockwise"),
                  ": the nearest x is ", as_nearest("bf16"));
  }
  if (p.apply_router_weight_on_input) {
    return refuse(RefusalCode::unsupported, "apply_router_weight_on_input is asked for, and ",
                  as_tensor("x"), " is e4m3; ",
                  as_rule("router weights are multiplied to tokens before these are quantised"),
                  ": multiply them to scale_x");
  }
  if (!is_given(s)) {
    if (p.tokens() == 0) return std::nullopt;
    return refuse(RefusalCode::bad_pointer, as_tensor("scale_x"), " is left out, and x is e4m3; ",
                  as_rule("tokens of e4m3 have scales"));
  }
  const bool blocks = p.scaling == Scaling::blockwise;
  const std::int64_t columns = blocks ? ScaleReach::count(p.hidden(), p.scale_block()) : 1;
  const bool is_one = !blocks && s.rows == 1;
  if (s.dtype != DType::f32 || s.batch != 1 || s.columns != columns ||
      (s.rows != p.tokens() && !is_one)) {
    return refuse(
        RefusalCode::bad_shape, as_tensor("scale_x"), " is ", shape_of(s), " of ",
        type_name(s.dtype), "; ",
        (blocks ? as_rule("tokens of e4m3 have one for each ", p.scale_block(), " of a row")
                : as_rule("tokens of e4m3 have one each, or one together")),
        ": the nearest legal is ", as_nearest(shape_of(p.tokens(), columns), " of f32"));
  }
  for (const auto& [extent, stride, what] :
       {std::tuple{s.rows, s.row_stride, "row"}, {s.columns, s.column_stride, "column"}}) {
    if (extent < 2 || stride >= 0) continue;
    return refuse(RefusalCode::bad_stride, as_tensor("scale_x"), " has a ", what, " stride of ",
                  stride, "; the nearest legal is ", as_nearest("0"));
  }
  return std::nullopt;
}

// What a layer without a router is, and what only a router gives sense to.
std::optional<Refusal> mixture_router_fault(const MixtureProblem& p) {
  if (p.is_routed()) return std::nullopt;
  if (p.experts() != 1 || p.total() != 1) {
    return refuse(RefusalCode::bad_shape, as_tensor("topk_ids"), " is left out, and there are ",
                  p.total(), " experts; ", as_rule("a layer without a router has one"),
                  ": the nearest legal is ", as_nearest("1"));
  }
  if (p.is_micro()) {
    return refuse(RefusalCode::unsupported, as_tensor("topk_ids"), " is left out, and scaling is ",
                  name(p.scaling), "; ", as_rule("scales in tiles lie in the order of experts"),
                  ": give every token the id 0");
  }
  const std::pair<bool, const char*> of_routers[] = {
      {is_given(p.topk_weights), "topk_weights"},
      {p.combine != Combine::sum, "combine"},
      {p.apply_router_weight_on_input, "apply_router_weight_on_input"},
      {is_given(p.shared_output), "shared_output"}};
  for (const auto& [is_said, what] : of_routers) {
    if (!is_said) continue;
    return refuse(RefusalCode::bad_value, what, " is given, and ", as_tensor("topk_ids"),
                  " is left out; ", as_rule("it is of layers with a router"), ": leave it out");
  }
  return std::nullopt;
}

// What becomes of router weights and of the rows of slots.
std::optional<Refusal> mixture_combine_fault(const MixtureProblem& p) {
  if (p.apply_router_weight_on_input && p.top_k() != 1) {
    return refuse(RefusalCode::unsupported, "apply_router_weight_on_input is asked for, and ",
                  as_tensor("topk_ids"), " is ", shape_of(p.topk_ids), "; ",
                  as_rule("a token that is multiplied by its router weight has one expert"),
                  ": the nearest legal is ", as_nearest(shape_of(p.tokens(), 1)));
  }
  const DType shared = p.shared_output.dtype;
  if (is_given(p.shared_output) && shared != DType::f32 && !is_16bit_float(shared)) {
    return refuse(RefusalCode::bad_type, as_tensor("shared_output"), " is ", type_name(shared),
                  "; ", as_rule("what is added to the sums is f32, bf16 or fp16"),
                  ": the nearest is ", as_nearest(type_name(p.row_type())));
  }
  if (p.combine != Combine::sum && is_given(p.shared_output)) {
    return refuse(RefusalCode::bad_value, as_tensor("shared_output"), " is given and combine is ",
                  name(p.combine), "; ", as_rule("it is added to the sum over a token's experts"),
                  ": leave it out, or the nearest combine is ", as_nearest("sum"));
  }
  return std::nullopt;
}

// What the plan took for left out would be read. Without tokens theirs have no rows.
std::optional<Refusal> mixture_presence_fault(const MixtureOperands& o, const MatrixView& v,
                                              const char* name) {
  const bool by_token = &v == &o.scale_x || &v == &o.shared_output;
  if (v.columns > 0 && (v.rows > 0 || (by_token && o.tokens() == 0))) return std::nullopt;
  return refuse(RefusalCode::bad_shape, as_tensor(name), " has an address and is ", shape_of(v),
                "; ", as_rule("what is left out has none"));
}

std::optional<Refusal> mixture_launch_fault(const MixtureOperands& o) {
  const float factor = o.routed_scaling_factor;
  if (!std::isfinite(factor)) {
    return refuse(RefusalCode::bad_value, "routed_scaling_factor is ",
                  format("%g", static_cast<double>(factor)), "; ", as_rule("it is a finite number"),
                  ": the nearest is ", as_nearest("1"));
  }
  if (factor == 1) return std::nullopt;
  if (!o.is_routed()) {
    return refuse(RefusalCode::bad_value, "routed_scaling_factor is ",
                  format("%g", static_cast<double>(factor)), ", and ", as_tensor("topk_ids"),
                  " is left out; ", as_rule("it is of layers with a router"), ": leave it out");
  }
  if (o.combine != Combine::none) return std::nullopt;
  return refuse(RefusalCode::bad_value, "routed_scaling_factor is ",
                format("%g", static_cast<double>(factor)), " and combine is none; ",
                as_rule("it is multiplied to router weights, and then no result is"),
                ": leave it out, or the nearest combine is ", as_nearest("weighted"));
}

// The activation of the gate, or of what there is without one.
std::optional<Refusal> mixture_activation_fault(const MixtureProblem& p) {
  if (!p.is_gated && !stands_alone(p.activation)) {
    return refuse(
        RefusalCode::bad_value, "activation is ", name(p.activation), " and there is no gate; ",
        as_rule("what experts without one have is ", listed(all_activations, stands_alone)),
        ": the nearest is ", as_nearest(gates_behind(p.activation) ? "gelu" : "silu"));
  }
  if (!p.is_gated && p.interleaved) {
    return refuse(RefusalCode::bad_value, "gate and up are interleaved, and there is no gate; ",
                  as_rule("the rows of w13 are ups then"), ": the nearest gate_up is ",
                  as_nearest("halves"));
  }
  if (p.is_gated && !gates(p.activation)) {
    return refuse(RefusalCode::bad_value, "activation is ", name(p.activation), "; ",
                  as_rule("the gate of a mixture is ", listed(all_activations, gates)),
                  ": the nearest is ", as_nearest("silu"));
  }
  if (p.is_gated && gates_behind(p.activation) && p.is_micro()) {
    return refuse(
        RefusalCode::unsupported, "activation is ", name(p.activation), ", and scaling is ",
        name(p.scaling), "; ",
        as_rule("it is the gate of a launch between the products, and scales in tiles are "
                "a gated product's"),
        ": the nearest is ", as_nearest("gelu"), ", in its tanh form");
  }
  return std::nullopt;
}

}  // namespace warpwright
