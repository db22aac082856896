// A problem in words.
#include <string>

#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

std::string extents(std::int64_t rows, std::int64_t columns) {
  return "[" + number(rows) + "," + number(columns) + "]";
}

// What is activated: the product, C and the bias.
std::string sum_text(const GemmProblem& p) {
  std::string text =
      "alpha * A" + extents(p.a.rows, p.k()) + (p.is_by_index() ? " by index" : "") + " * B" +
      (p.groups ? "[" + number(p.group_count()) + "," + number(p.n()) + "," + number(p.k()) + "]"
                : extents(p.n(), p.k())) +
      "^T";
  if (p.reads_c()) text += " + beta * C";
  if (p.epilogue.bias != Bias::none) {
    text += p.epilogue.bias == Bias::rows ? " + bias of rows" : " + bias of columns";
  }
  return text;
}

std::string details(const GemmProblem& p) {
  std::string text;
  const auto add = [&text](const std::string& what) { text += ", " + what; };
  if (p.packed) add("B " + packed_words(*p.packed));
  if (scales_elements(p.scaling)) {
    add(micro_words(*micro_format_of(p, true), *micro_format_of(p, false)));
  }
  if (p.scaling != Scaling::none)
    add(std::string(name(p.scaling)) + " scales" + block_words(scale_block_of(p)));
  if (!scales_elements(p.scaling) && is_8bit_float(p.a.dtype) && !p.packed) {
    add(p.accumulation == Accumulation::promoted ? "promoted accumulation" : "fast accumulation");
  }
  if (p.multiplies() && major_a(p) == atom::Major::mn) add("A MN-major");
  if (p.multiplies() && major_b(p) == atom::Major::mn) add("B MN-major");
  if (is_given(p.factor_a) || is_given(p.factor_b)) add("factors of tensors");
  if (is_given(p.scale_d)) add("D scaled");
  if (p.is_quantised()) {
    add("D as codes with a scale for each " + std::string(name(p.epilogue.quantise)));
  }
  if (p.groups) {
    add(number(p.group_count()) + (p.group_count() == 1 ? " group" : " groups") +
        " of rows, offsets " + (p.groups->type == OffsetType::int64 ? "int64" : "int32"));
    if (p.is_by_index()) {
      add("tokens by index" + (p.groups->rows_divisor == 1
                                   ? std::string()
                                   : ", of slots / " + number(p.groups->rows_divisor)));
    }
  }
  return text;
}

}  // namespace

std::string packed_words(const PackedWeights& w) {
  const PackedFormat& f = w.format;
  if (packed::has_float_codes(f)) {
    std::string text = "packed " + packed::weights_word(f) + " for " + type_name(f.tokens);
    if (packed::is_wide(f)) return text;
    text += f.exponents == Exponents::own ? ", scales of groups of " + number(f.group) : ", folded";
    const GroupSums sums = packed::sums_for(f, w.sums);
    return text + ", " +
           (sums == GroupSums::open    ? "promoted or fast"
            : sums == GroupSums::exact ? "promoted"
                                       : "fast") +
           " sums";
  }
  return "packed in groups of " + number(f.group) + " with " + type_name(f.scale) + " scales" +
         (packed::is_wide(f) ? " for " + type_name(f.tokens) : "") + ", " +
         name(packed::sums_for(f, w.sums)) + " sums";
}

std::string formula(const GemmProblem& p) {
  const Activation activation = p.epilogue.activation;
  const std::string function = activation == Activation::none ? "" : name(activation);
  std::string text = p.batch() > 1 ? number(p.batch()) + " times " : "";
  text += "D" + extents(p.m(), result_columns(p)) + " = ";
  if (p.is_gated()) {
    // An activation of both, or only of the gate.
    text += function + (stands_alone(activation) ? "(P) * P'" : "(P, P')");
    text += p.epilogue.interleaved ? " with P[0,0',1,1',...] = " : " with [P,P'] = ";
    text += sum_text(p);
  } else {
    text += function.empty() ? sum_text(p) : function + "(" + sum_text(p) + ")";
  }
  const std::string operands =
      type_name(p.a.dtype) + (p.a.dtype == p.b.dtype ? std::string() : "," + type_name(p.b.dtype));
  return text + ", " + operands + " -> " + type_name(p.d.dtype) + details(p);
}

}  // namespace warpwright
