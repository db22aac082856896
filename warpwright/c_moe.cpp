// The C ABI of a mixture of experts.
#include <cstddef>

#include "warpwright/c_parts.h"

using warpwright::as_nearest;
using warpwright::as_rule;
using warpwright::as_tensor;
using warpwright::RefusalCode;
using warpwright::refuse;

namespace {

using warpwright::MatrixView;
using warpwright::MixtureOperands;
using namespace warpwright::c;

// What programs were compiled with: version 2 of the ABI. Structs may grow at their ends.
static_assert(offsetof(ww_moe, factor_w13) == 712 && sizeof(ww_moe) == 1136 &&
              WW_COMBINE_NONE == static_cast<int>(warpwright::Combine::none) &&
              sizeof(ww_moe_choices) == 56 && sizeof(ww_moe_options) == 16);
constexpr std::size_t first_moe = 712;  // its size when it came

// Both weights as packed weights, or neither.
Fault read_packed(const ww_moe& m, MixtureOperands& o) {
  const struct {
    const char* name;
    const char* sums_name;
    const char* form_name;
    const ww_matrix& given;
    const ww_packed_form* form;
    std::int32_t sums;
    MatrixView& to;
    std::optional<warpwright::PackedWeights>& packed;
  } both[] = {{"w13", "sums_w13", "packed_w13", m.w13, m.packed_w13, m.sums_w13, o.w13, o.packed13},
              {"w2", "sums_w2", "packed_w2", m.w2, m.packed_w2, m.sums_w2, o.w2, o.packed2}};
  if ((m.packed_w13 == nullptr) != (m.packed_w2 == nullptr)) {
    return refuse(RefusalCode::bad_value, "one of packed_w13 and packed_w2 is NULL; ",
                  as_rule("both weights are packed, or none is"));
  }
  for (const auto& each : both) {
    if (auto r = sums_fault(each.sums_name, each.sums, each.form_name, each.form != nullptr)) {
      return r;
    }
    if (each.form == nullptr) continue;
    auto& packed = each.packed.emplace();
    if (auto r = packed_weights(each.name, each.given, *each.form, each.sums, each.to, packed)) {
      return r;
    }
  }
  return std::nullopt;
}

// The factors of packed nvf4 weights come as scales, those of others as factors.
Fault factors_fault(const MixtureOperands& o) {
  using warpwright::DType;
  const struct {
    const char* name;
    const char* scales_name;
    const char* factor_name;
    const std::optional<warpwright::PackedWeights>& packed;
    const MatrixView& scales;
    const MatrixView& factor;
  } both[] = {{"w13", "scale_w13", "factor_w13", o.packed13, o.scale_w13, o.factor_w13},
              {"w2", "scale_w2", "factor_w2", o.packed2, o.scale_w2, o.factor_w2}};
  for (const auto& w : both) {
    const bool in_scales = w.packed && warpwright::packed::has_factor(w.packed->format);
    const bool in_factor = o.is_micro() && w.scales.dtype == DType::ue4m3;
    if (in_scales ? warpwright::is_given(w.scales) : !in_factor || warpwright::is_given(w.factor)) {
      continue;
    }
    return refuse(
        RefusalCode::bad_value, as_tensor(w.name), " are nvf4 weights, and ",
        in_scales ? w.scales_name : w.factor_name, " is not given; ",
        as_rule("it is the factors of their tensors, one for each ",
                in_scales ? "row of each expert" : "expert", ", of 1 where there are none"));
  }
  return std::nullopt;
}

Fault read_moe(const ww_moe* given, MixtureOperands& o) {
  if (given == nullptr) return null_argument("moe");
  ww_moe m;
  ww_moe_init(&m);
  if (auto r = copy_struct(given, m, "ww_moe", first_moe)) return r;
  if (auto r = words_fault(m, moe_words)) return r;
  if (auto r = read_packed(m, o)) return r;
  o.is_gated = m.gate_up != WW_GATED_NONE;
  o.combine = static_cast<warpwright::Combine>(m.combine);
  o.apply_router_weight_on_input = m.apply_router_weight_on_input == 1;
  o.routed_scaling_factor = m.routed_scaling_factor;
  const auto is_apart = [&](const ww_matrix& w) {
    // Without a router both are 0.
    if (&w == &m.topk_ids) return !is_given(w);
    if (&w == &m.topk_weights) return !o.reads_weights() && (o.is_routed() || !is_given(w));
    return m.packed_w13 != nullptr && (&w == &m.w13 || &w == &m.w2);
  };
  if (auto r = read_matrices(m, o, moe_matrices, is_apart)) return r;
  if (o.is_routed() && m.topk_ids.dtype != WW_S32) {
    return refuse(RefusalCode::bad_type, as_tensor("topk_ids"), " has the type ", m.topk_ids.dtype,
                  "; ", as_rule("ids are integers, 4 bytes wide or 8 as id_type says"),
                  ": the nearest legal is ", as_nearest(int{WW_S32}), " (WW_S32)");
  }
  o.id_type = static_cast<warpwright::OffsetType>(m.id_type);
  constexpr warpwright::DType tokens[] = {warpwright::DType::f32, warpwright::DType::e4m3,
                                          warpwright::DType::e2m1};
  o.tokens_as = tokens[m.tokens_as];
  o.scaling = static_cast<warpwright::Scaling>(m.scaling);
  o.activation = static_cast<warpwright::Activation>(m.activation);
  if (auto r = read_gate(m.gate, o.activation, o.gate)) return r;
  o.interleaved = m.gate_up == WW_GATED_INTERLEAVED;
  o.first_expert = m.first_expert;
  o.experts_total = m.experts_total;
  o.expected_lengths = static_cast<warpwright::LengthSpread>(m.expected_lengths);
  o.expected_zipf = m.expected_zipf;
  return std::nullopt;
}

Fault read_moe(const ww_moe_choices* given, warpwright::MixtureChoices& choices) {
  if (given == nullptr) return std::nullopt;
  ww_moe_choices c = {};
  constexpr std::size_t least = offsetof(ww_moe_choices, gates_in_epilogue);  // it came later
  if (auto r = copy_struct(given, c, "ww_moe_choices", least)) return r;
  if (auto r = word_fault("batch_invariant", c.batch_invariant, 1)) return r;
  if (auto r = word_fault("sums_in_product", c.sums_in_product, WW_NO)) return r;
  for (const MoeChoiceMember& member : moe_choices) {
    const std::int32_t said = c.*member.given;
    if (auto r = word_fault(member.name, said, WW_NO)) return r;
    if (said != WW_OPEN) choices.*member.read = said == WW_YES;
  }
  if (c.sums_in_product == WW_YES) {
    return refuse(RefusalCode::bad_choice, "sums_in_product is 1 (WW_YES); ",
                  as_rule("a launch of its own adds up the slots of a token"), ": the nearest is ",
                  as_nearest(int{WW_NO}), " (WW_NO)");
  }
  choices.batch_invariant = c.batch_invariant == 1;
  if (c.first_kernel != nullptr) choices.first_kernel = c.first_kernel;
  if (c.second_kernel != nullptr) choices.second_kernel = c.second_kernel;
  return std::nullopt;
}

Fault read_moe(const ww_moe_options* given, warpwright::MixtureLaunchOptions& options,
               bool& check_ids) {
  if (given == nullptr) return std::nullopt;
  ww_moe_options o = {};
  if (auto r = copy_struct(given, o, "ww_moe_options", sizeof(ww_moe_options))) return r;
  if (auto r = word_fault("dependent", o.dependent, 1)) return r;
  if (auto r = word_fault("check_ids", o.check_ids, 1)) return r;
  options.dependent = o.dependent == 1;
  check_ids = o.check_ids == 1;
  return std::nullopt;
}

}  // namespace

extern "C" {

void ww_moe_init_sized(ww_moe* moe, size_t size) {
  ww_moe made = {};
  made.activation = WW_ACTIVATION_SILU;
  made.gate_up = WW_GATED_HALVES;
  made.routed_scaling_factor = 1;
  made.sums_w13 = made.sums_w2 = WW_SUMS_OPEN;
  init_struct(moe, size, made);
}
void(ww_moe_init)(ww_moe* moe) {
  ww_moe_init_sized(moe, first_moe);
}

ww_refusal* ww_moe_plan_make(const ww_moe* moe, const ww_device* device,
                             const ww_moe_choices* choices, ww_moe_plan** plan) {
  return guarded([&]() -> ww_refusal* {
    if (auto r = null_fault({{"device", device}, {"plan", plan}})) return told(*r);
    MixtureOperands operands;
    if (auto r = read_moe(moe, operands)) return told(*r);
    warpwright::MixtureChoices wanted;
    if (auto r = read_moe(choices, wanted)) return told(*r);
    auto made = warpwright::run_moe_plan(operands, device->facts, wanted);
    if (!made) return told(made.refusal());
    hand_out(plan, handle_of<ww_moe_plan>(
                       std::make_shared<const warpwright::MixturePlan>(std::move(*made))));
    return nullptr;
  });
}
ww_refusal* ww_moe_plan_fastest(const ww_moe_plan* const* plans, int32_t count, int32_t* which,
                                ww_moe_plan** plan) {
  return fastest_of(plans, count, which, plan);
}
const char* ww_moe_plan_name(const ww_moe_plan* plan) {
  return text_of(plan, [](const ww_moe_plan& p) -> const std::string& { return p.name; });
}
const char* ww_moe_plan_explain(const ww_moe_plan* plan) {
  return text_of(plan, [](const ww_moe_plan& p) -> const std::string& { return p.explain; });
}
const char* ww_moe_plan_line(const ww_moe_plan* plan) {
  return text_of(plan, [](const ww_moe_plan& p) -> const std::string& { return p.line; });
}
int64_t ww_moe_plan_workspace_bytes(const ww_moe_plan* plan) {
  return plan == nullptr ? 0 : plan->plan->workspace_bytes();
}
int32_t ww_moe_plan_launches(const ww_moe_plan* plan) {
  return plan == nullptr ? 0 : plan->plan->launches();
}
void ww_moe_plan_free(ww_moe_plan* plan) {
  delete plan;
}

ww_refusal* ww_moe_prepare(const ww_moe_plan* plan) {
  return guarded([&]() -> ww_refusal* {
    if (plan == nullptr) return told(null_argument("plan"));
    return told(warpwright::prepare(*plan->plan));
  });
}
ww_refusal* ww_moe_launch(const ww_moe_plan* plan, const ww_moe* moe, ww_workspace* workspace,
                          void* stream, const ww_moe_options* options) {
  return guarded([&]() -> ww_refusal* {
    if (auto r = null_fault({{"plan", plan}, {"workspace", workspace}})) return told(*r);
    MixtureOperands operands;
    if (auto r = read_moe(moe, operands)) return told(*r);
    if (auto r = factors_fault(operands)) return told(*r);
    warpwright::MixtureLaunchOptions how;
    bool check_ids = false;
    if (auto r = read_moe(options, how, check_ids)) return told(*r);
    if (check_ids) {
      return told(refuse(RefusalCode::unsupported, "check_ids is 1, and a launch does not wait: ",
                         as_rule("ask ww_moe_ids_fault behind it")));
    }
    return told(warpwright::launch(*plan->plan, operands, workspace->workspace, stream, how));
  });
}
ww_refusal* ww_moe_ids_fault(const ww_moe_plan* plan, const ww_workspace* workspace, void* stream) {
  return guarded([&]() -> ww_refusal* {
    if (auto r = null_fault({{"plan", plan}, {"workspace", workspace}})) return told(*r);
    return told(warpwright::ids_fault(*plan->plan, workspace->workspace, stream));
  });
}

ww_refusal* ww_moe_run(const ww_moe* moe, int32_t device, const ww_moe_choices* choices,
                       void* stream, const ww_moe_options* options, ww_moe_plan** made) {
  if (made != nullptr) *made = nullptr;
  return guarded([&]() -> ww_refusal* {
    MixtureOperands operands;
    if (auto r = read_moe(moe, operands)) return told(*r);
    if (auto r = factors_fault(operands)) return told(*r);
    warpwright::MixtureRunOptions how;
    how.device = device;
    how.stream = stream;
    if (auto r = read_moe(choices, how.choices)) return told(*r);
    if (auto r = read_moe(options, how.launch, how.check_ids)) return told(*r);
    std::shared_ptr<const warpwright::MixturePlan> fresh;
    Fault refused = warpwright::run_moe(operands, how, made != nullptr ? &fresh : nullptr);
    if (fresh != nullptr) hand_out(made, handle_of<ww_moe_plan>(std::move(fresh)));
    return told(std::move(refused));
  });
}

}  // extern "C"
