// The rules of operands whose scales the tensor core multiplies (Scaling::block_scaled): which
// formats there are, which two are multiplied, and what the width of their elements asks of K.
#include <string>

#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using Fault = std::optional<Refusal>;

const PlannedMatrix& operand(const GemmProblem& p, bool of_a) {
  return of_a ? p.a : p.b;
}
const char* name_of(bool of_a) {
  return of_a ? "A" : "B";
}

// The words of formats that are listed, as modes and types are.
struct FormatWord {
  const MicroFormat* format;
};
const char* name(FormatWord f) {
  return f.format->word;
}
template <class Keep>
std::string formats(const Keep& keep) {
  std::vector<FormatWord> all;
  for (const MicroFormat& f : micro_formats) all.push_back({&f});
  return listed(all, [&](FormatWord f) { return keep(*f.format); });
}

Fault element_fault(const GemmProblem& p, bool of_a) {
  const DType type = operand(p, of_a).dtype;
  if (is_micro_element(type)) return std::nullopt;
  const DType others = operand(p, !of_a).dtype;
  return refuse(RefusalCode::bad_type, as_tensor(name_of(of_a)), " is ", type_name(type),
                ", and scaling is block_scaled, which is of ", listed(all_types, is_micro_element),
                ": the nearest is ",
                as_nearest(type_name(is_micro_element(others) ? others : DType::e4m3)));
}

// Each by itself is one: may these two be multiplied?
Fault mix_fault(const GemmProblem& p) {
  const MicroFormat& a = *micro_format_of(p, true);
  const MicroFormat& b = *micro_format_of(p, false);
  if (a.scale == b.scale || (a == plain_tokens && b.scale == DType::ue8m0)) return std::nullopt;
  const MicroFormat& nvf4 = a.scale == DType::ue4m3 ? a : b;
  const MicroFormat& other = a.scale == DType::ue4m3 ? b : a;
  return refuse(
      RefusalCode::bad_type, as_tensor("A"), " is ", a.word, " and B is ", b.word, "; ",
      as_rule(nvf4.word, " (", type_name(nvf4.scale), " each ", micro_block(nvf4.scale),
              ") is multiplied only by ", nvf4.word, ", and any two of ",
              formats([](const MicroFormat& f) { return f.scale == DType::ue8m0; }),
              " by each other"),
      ": the nearest ", &nvf4 == &a ? "A" : "B", " is ",
      as_nearest(micro_format(DType::e2m1, a == plain_tokens ? DType::ue8m0 : other.scale)->word));
}

// Whole bytes a row, and of operands that are copied with padding whole pieces.
Fault depth_fault(const GemmProblem& p, bool of_a, bool tma) {
  const DType type = operand(p, of_a).dtype;
  const bool pieces = tma && is_padded(p, of_a);
  const std::int64_t step = pieces ? padded_copy_elements : whole_elements(1, type);
  if (p.k() % step == 0) return std::nullopt;
  const std::int64_t nearest = (p.k() + step - 1) / step * step;
  const Sentence text =
      "K is " + number(p.k()) + ", and " + as_tensor(name_of(of_a)) + " is " + type_name(type);
  if (pieces) {
    const DType others = operand(p, !of_a).dtype;
    return refuse(RefusalCode::bad_shape, text, " beside ", type_name(others), ", which ",
                  as_rule("is copied in pieces of ", padded_copy_elements, " elements of K"),
                  ": the nearest legal K is ", as_nearest(nearest));
  }
  return refuse(RefusalCode::bad_shape, text, ", ", step, " of which are ",
                step * numeric::bits(type) / 8 == 1
                    ? "a byte"
                    : number(step * numeric::bits(type) / 8) + " bytes",
                ": the nearest legal K is ", as_nearest(nearest));
}

}  // namespace

std::optional<Refusal> micro_scale_fault(const GemmProblem& p, bool of_a) {
  const DType type = operand(p, of_a).dtype;
  const DType scale = (of_a ? p.scale_a : p.scale_b).dtype;
  if (!is_micro_element(type) || !is_micro_scale(scale) || micro_format(type, scale) != nullptr) {
    return std::nullopt;
  }
  return refuse(RefusalCode::bad_type, as_tensor(of_a ? "scale_a" : "scale_b"), " is ",
                type_name(scale), ", and ", name_of(of_a), " is ", type_name(type), "; ",
                as_rule("scales of ", type_name(type), " are ue8m0, one each ",
                        micro_block(DType::ue8m0), " of K"),
                ": the nearest is ", as_nearest("ue8m0"));
}

std::optional<Refusal> micro_fault(const GemmProblem& p, bool tma) {
  for (const bool of_a : {true, false}) {
    if (auto r = element_fault(p, of_a)) return r;
    if (auto r = micro_scale_fault(p, of_a)) return r;
  }
  if (auto r = mix_fault(p)) return r;
  for (const bool of_a : {true, false}) {
    if (auto r = depth_fault(p, of_a, tma)) return r;
  }
  return std::nullopt;
}

}  // namespace warpwright
