// The rules of what becomes of a product's sums: activation, gate and bias.
#include <algorithm>
#include <cmath>
#include <optional>

#include "warpwright/facts/format.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

// The multiple of `step` nearest to `value` that is a legal extent, at least one step where value
// is above 0.
std::int64_t nearest_multiple(std::int64_t value, std::int64_t step) {
  if (value == 0) return 0;
  return std::clamp((value + step / 2) / step * step, step, max_extent / step * step);
}

// Both halves of B must begin where a tensor map may, in an MN-major B too. With block scales they
// begin in the middle of a block at most: kernels read a scale for every half of one.
std::optional<Refusal> halves_fault(const GemmProblem& p) {
  const bool blocks = p.scaling == Scaling::blockwise;
  const std::int64_t half = p.packed ? packed::kTileRows : blocks ? scale_block / 2 : 8;
  if (p.n() % (2 * half) != 0) {
    return refuse(
        RefusalCode::unsupported, "N is ", p.n(), "; ",
        as_rule("the epilogue is gated, so B's rows are two halves, each of a multiple of ", half,
                " rows ",
                (p.packed ? "(a packed tile)"
                 : blocks ? "(half a block of scales)"
                          : "(16 bytes of a tensor map)")),
        ": the nearest legal N is ", as_nearest(nearest_multiple(p.n(), 2 * half)));
  }
  return std::nullopt;
}

// Rows of gates lie as far apart as a dimension of a tensor map may: not side by side.
std::optional<Refusal> interleaved_fault(const GemmProblem& p) {
  if (p.packed) {
    return refuse(RefusalCode::unsupported, as_tensor("B"), " are ", packed_name(p.packed->format),
                  ", and gate and up are interleaved; ",
                  as_rule("a packed tile has 64 rows of one of them: pack the rows of all gates, "
                          "then those of all ups (rows 0, 2, 4 ..., then 1, 3, 5 ...)"),
                  ": the nearest gate_up is ", as_nearest("halves"));
  }
  if (p.multiplies() && major_b(p) == atom::Major::mn) {
    return refuse(RefusalCode::unsupported, as_tensor("B"),
                  " is MN-major, and gate and up are interleaved; ",
                  as_rule("neighbours in memory would go to two tiles"),
                  ": the nearest is a K-major B, with a column stride of ", as_nearest("1"));
  }
  if (p.n() % 2 == 0) return std::nullopt;
  return refuse(RefusalCode::unsupported, "N is ", p.n(), "; ",
                as_rule("gate and up are interleaved, so B's rows come in pairs"),
                ": the nearest legal N is ",
                as_nearest(p.n() + 1 > max_extent ? p.n() - 1 : p.n() + 1));
}

std::optional<Refusal> gate_fault(const GemmProblem& p) {
  if (!gates_products(p.epilogue.activation)) {
    return refuse(RefusalCode::unsupported, "the epilogue is gated and its activation is ",
                  name(p.epilogue.activation), "; ",
                  as_rule("gated products exist only with ",
                          listed(all_activations, gates_products, ", ", " and ")),
                  ": the nearest activation is ", as_nearest("silu"));
  }
  if (p.reads_c()) {
    return refuse(RefusalCode::unsupported, as_tensor("C"),
                  " is read (beta is not 0) and the epilogue is gated; ",
                  as_rule("a gated product takes no C"), ": the nearest legal beta is ",
                  as_nearest("0"));
  }
  return p.epilogue.interleaved ? interleaved_fault(p) : halves_fault(p);
}

// A number of a gate that is none: `nearest` is what may have been meant, where anything.
std::optional<Refusal> number_fault(const char* name, float value, const char* rule,
                                    std::optional<float> nearest = {}) {
  const auto words = [](float x) { return format("%g", static_cast<double>(x)); };
  if (nearest) {
    return refuse(RefusalCode::bad_value, name, " is ", words(value), "; ", as_rule(rule),
                  ": the nearest legal is ", as_nearest(words(*nearest)));
  }
  return refuse(RefusalCode::bad_value, name, " is ", words(value), "; ", as_rule(rule),
                ": leave it out for the activation's own");
}

// For one that is above 0, and finite where `ends`.
std::optional<Refusal> positive_fault(const char* name, float value, bool ends, const char* rule) {
  const bool is_finite = std::isfinite(value);
  if (value > 0 && (is_finite || !ends)) return std::nullopt;
  return number_fault(name, value, rule,
                      value < 0 && is_finite ? std::optional(-value) : std::nullopt);
}

}  // namespace

std::optional<Refusal> gate_numbers_fault(const std::optional<GateNumbers>& gate, bool is_gated,
                                          Activation activation) {
  if (!gate) return std::nullopt;
  if (!is_gated) {
    return refuse(RefusalCode::bad_value,
                  "numbers of a gate (gate_limit, gate_alpha, gate_beta) are given, and the "
                  "epilogue is not gated: ",
                  as_rule("leave them out"));
  }
  if (auto r = positive_fault("gate_limit", gate->limit, false,
                              "it is a number above 0, infinity for none")) {
    return r;
  }
  if (auto r = positive_fault("gate_alpha", gate->alpha, true, "it is a finite number above 0")) {
    return r;
  }
  const ActivationForm form = form_of(activation);
  if ((form.cubic != 0 || form.by_erf) && gate->alpha != gate_of(activation).alpha) {
    return number_fault("gate_alpha", gate->alpha, "a gelu has no other than its own");
  }
  if (std::isfinite(gate->beta)) return std::nullopt;
  return number_fault("gate_beta", gate->beta, "it is a finite number");
}

std::optional<Refusal> epilogue_fault(const GemmProblem& p) {
  if (!is_of_products(p.epilogue.activation)) {
    return refuse(RefusalCode::unsupported, "the activation is ", name(p.epilogue.activation), "; ",
                  as_rule("it is the gate of a mixture of experts, which a launch between its two "
                          "products has, and no product"),
                  ": the nearest activation is ", as_nearest("gelu"), ", in its tanh form");
  }
  if (p.is_gated()) {
    if (auto r = gate_fault(p)) return r;
  } else if (p.epilogue.interleaved) {
    return refuse(RefusalCode::bad_value,
                  "gate and up are interleaved, and the epilogue is not gated; ",
                  as_rule("a product without a gate has neither"), ": the nearest gate_up is ",
                  as_nearest("halves"));
  } else if (!stands_alone(p.epilogue.activation)) {
    return refuse(RefusalCode::unsupported, "the activation is ", name(p.epilogue.activation),
                  " and the epilogue is not gated; ",
                  as_rule("it is a function of a gate and of what that is for"),
                  ": the nearest is a ", as_nearest("gated"), " product");
  }
  if (p.epilogue.bias == Bias::none || p.bias.dtype == DType::f32) return std::nullopt;
  if (is_16bit_float(p.bias.dtype) && p.bias.dtype == p.d.dtype) return std::nullopt;
  return refuse(RefusalCode::bad_type, as_tensor("the bias"), " is ", type_name(p.bias.dtype),
                " and D is ", type_name(p.d.dtype), "; ",
                as_rule("a bias is f32, or of D's type where that is bf16 or fp16"),
                ": the nearest is ", as_nearest("f32"));
}

}  // namespace warpwright
