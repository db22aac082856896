// A problem in words.
#include <string>

#include "warpwright/plan/rules.h"

namespace warpwright {
namespace {

std::string extents(std::int64_t rows, std::int64_t columns) {
  return "[" + number(rows) + "," + number(columns) + "]";
}

// What is activated: the product, C and the bias.
std::string sum_text(const GemmProblem& p) {
  std::string text =
      "alpha * A" + extents(p.m, p.k) + " * B" +
      (p.groups > 0 ? "[" + number(p.groups) + "," + number(p.n) + "," + number(p.k) + "]"
                    : extents(p.n, p.k)) +
      "^T";
  if (p.reads_c) text += " + beta * C";
  if (p.epilogue.bias != Bias::none) {
    text += p.epilogue.bias == Bias::rows ? " + bias of rows" : " + bias of columns";
  }
  return text;
}

std::string details(const GemmProblem& p) {
  std::string text;
  const auto add = [&text](const std::string& what) { text += ", " + what; };
  if (p.packed) {
    const PackedFormat& f = p.packed->format;
    add("B packed in groups of " + number(f.group) + " with " + type_name(f.scale) + " scales");
    constexpr const char* sums[] = {"exact", "chained", "folded"};
    add(std::string(sums[static_cast<std::size_t>(p.packed->sums)]) + " sums");
  }
  if (p.scaling != Scaling::none) add(std::string(scaling_name(p.scaling)) + " scales");
  if (is_8bit_float(p.a) && !p.packed) {
    add(p.accumulation == Accumulation::promoted ? "promoted accumulation" : "fast accumulation");
  }
  const bool multiplies = p.reads_ab && p.m > 0 && p.n > 0;
  if (multiplies && major_a(p) == atom::Major::mn) add("A MN-major");
  if (multiplies && major_b(p) == atom::Major::mn) add("B MN-major");
  if (p.scales_d) add("D scaled");
  if (p.groups > 0) {
    add(number(p.groups) + (p.groups == 1 ? " group" : " groups") + " of rows, offsets " +
        (p.offsets == OffsetType::int64 ? "int64" : "int32"));
  }
  return text;
}

}  // namespace

std::string formula(const GemmProblem& p) {
  const Activation activation = p.epilogue.activation;
  const std::string function = activation == Activation::none ? "" : name(activation);
  std::string text = p.batch > 1 ? number(p.batch) + " times " : "";
  text += "D" + extents(p.m, result_columns(p)) + " = ";
  if (p.epilogue.gated) {
    text += function + "(P) * P' with [P,P'] = " + sum_text(p);
  } else {
    text += function.empty() ? sum_text(p) : function + "(" + sum_text(p) + ")";
  }
  const std::string operands = type_name(p.a) + (p.a == p.b ? std::string() : "," + type_name(p.b));
  return text + ", " + operands + " -> " + type_name(p.d) + details(p);
}

}  // namespace warpwright
