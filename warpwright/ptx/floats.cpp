// Floating point (PTX ISA 9.7.3 to 9.7.5). Sums and products are rounded to nearest even; what PTX
// calls approximate is computed exactly and rounded here, so bits of it differ from a GPU's.
#include <cmath>
#include <functional>
#include <limits>

#include "warpwright/numeric/float_format.h"
#include "warpwright/ptx/forms.h"

namespace warpwright::ptx {
namespace {

// .ftz: a subnormal number is 0 with its sign, of operands and of results.
template <bool flushes>
float flush(float x) {
  if constexpr (flushes) {
    if (std::fabs(x) < std::numeric_limits<float>::min()) return std::copysign(0.0F, x);
  }
  return x;
}

template <class T>
T multiply_add(T a, T b, T c) {
  return std::fma(a, b, c);
}
// The number, of a number and a NaN; -0 is less than 0.
template <class T>
T least(T a, T b) {
  if (a == 0 && b == 0) return std::signbit(a) ? a : b;
  return std::fmin(a, b);
}
template <class T>
T largest(T a, T b) {
  if (a == 0 && b == 0) return std::signbit(a) ? b : a;
  return std::fmax(a, b);
}
template <class T>
T with_sign_of(T a, T b) {
  return std::copysign(b, a);
}
template <class T>
T magnitude(T a) {
  return std::fabs(a);
}
template <class T>
T reciprocal(T a) {
  return 1 / a;
}
template <class T>
T root(T a) {
  return std::sqrt(a);
}
float reciprocal_root(float a) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(a)));
}
float power_of_two(float a) {
  return static_cast<float>(std::exp2(static_cast<double>(a)));
}
float logarithm(float a) {
  return static_cast<float>(std::log2(static_cast<double>(a)));
}
float hyperbolic(float a) {
  return static_cast<float>(std::tanh(static_cast<double>(a)));
}
float sine(float a) {
  return static_cast<float>(std::sin(static_cast<double>(a)));
}
float cosine(float a) {
  return static_cast<float>(std::cos(static_cast<double>(a)));
}

// A function of float32 with its modifiers: .ftz, and .sat, which brings the result into [0, 1].
template <auto F, bool flushes, bool saturates, class... T>
float modified(T... x) {
  const float y = flush<flushes>(F(flush<flushes>(x)...));
  if constexpr (saturates) return y > 0 ? (y < 1 ? y : 1.0F) : 0.0F;  // (NaN: 0)
  return y;
}

template <auto F, class... T>
void add_with_modifiers(Forms& forms, const std::string& name) {
  forms[name + ".f32"] = form_of<&modified<F, false, false, T...>, float, T...>();
  forms[name + ".ftz.f32"] = form_of<&modified<F, true, false, T...>, float, T...>();
  forms[name + ".sat.f32"] = form_of<&modified<F, false, true, T...>, float, T...>();
  forms[name + ".ftz.sat.f32"] = form_of<&modified<F, true, true, T...>, float, T...>();
}

// --- f16 and bf16, one or two in a register; computed in float64, where a product is exact
enum class Operation : std::uint8_t { add, subtract, multiply, multiply_add, least, largest };

template <DType type, Operation what>
std::uint16_t of_half(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  const auto value = [](std::uint16_t code) { return numeric::to_double(type, code); };
  const auto code = [](double x) {
    return static_cast<std::uint16_t>(numeric::from_double(type, x));
  };
  switch (what) {
    case Operation::add:
      return code(value(a) + value(b));
    case Operation::subtract:
      return code(value(a) - value(b));
    case Operation::multiply:
      return code(value(a) * value(b));
    // Exact but where exponents lie 30 or more apart.
    case Operation::multiply_add:
      return code(value(a) * value(b) + value(c));
    case Operation::least:
      return code(least(value(a), value(b)));
    case Operation::largest:
      return code(largest(value(a), value(b)));
  }
  return 0;
}
template <DType type, Operation what, class T>
T of_halves(T a, T b, T c) {
  T result = 0;
  for (unsigned i = 0; i < 8 * sizeof(T); i += 16) {
    const auto part = [i](T x) { return static_cast<std::uint16_t>(x >> i); };
    result = static_cast<T>(result | static_cast<T>(of_half<type, what>(part(a), part(b), part(c)))
                                         << i);
  }
  return result;
}
template <DType type, Operation what, class T>
T of_two_halves(T a, T b) {
  return of_halves<type, what, T>(a, b, T{0});
}
template <class T>
T negative_halves(T a) {
  return static_cast<T>(a ^ static_cast<T>(0x80008000U));
}
template <class T>
T halves_without_sign(T a) {
  return static_cast<T>(a & static_cast<T>(0x7fff7fffU));
}

template <DType type, class T>
void add_halves(Forms& forms, const std::string& t) {
  const auto two = [&]<Operation what>(const char* name) {
    forms[std::string(name) + t] = form_of<&of_two_halves<type, what, T>, T, T, T>();
  };
  two.template operator()<Operation::add>("add");
  two.template operator()<Operation::add>("add.rn");
  two.template operator()<Operation::subtract>("sub");
  two.template operator()<Operation::subtract>("sub.rn");
  two.template operator()<Operation::multiply>("mul");
  two.template operator()<Operation::multiply>("mul.rn");
  two.template operator()<Operation::least>("min");
  two.template operator()<Operation::largest>("max");
  forms["fma.rn" + t] = form_of<&of_halves<type, Operation::multiply_add, T>, T, T, T, T>();
  forms["neg" + t] = form_of<&negative_halves<T>, T, T>();
  forms["abs" + t] = form_of<&halves_without_sign<T>, T, T>();
}

}  // namespace

void add_floats(Forms& forms) {
  for (const char* rounding : {"", ".rn"}) {
    const std::string r = rounding;
    add_with_modifiers<std::plus<>{}, float, float>(forms, "add" + r);
    add_with_modifiers<std::minus<>{}, float, float>(forms, "sub" + r);
    add_with_modifiers<std::multiplies<>{}, float, float>(forms, "mul" + r);
    forms["add" + r + ".f64"] = form_of<std::plus<>{}, double, double, double>();
    forms["sub" + r + ".f64"] = form_of<std::minus<>{}, double, double, double>();
    forms["mul" + r + ".f64"] = form_of<std::multiplies<>{}, double, double, double>();
  }
  add_with_modifiers<&multiply_add<float>, float, float, float>(forms, "fma.rn");
  forms["fma.rn.f64"] = form_of<&multiply_add<double>, double, double, double, double>();
  for (const char* how : {"approx", "full", "rn"}) {
    add_with_modifiers<std::divides<>{}, float, float>(forms, std::string("div.") + how);
  }
  for (const char* how : {"approx", "rn"}) {
    add_with_modifiers<&reciprocal<float>, float>(forms, std::string("rcp.") + how);
    add_with_modifiers<&root<float>, float>(forms, std::string("sqrt.") + how);
  }
  add_with_modifiers<&reciprocal_root, float>(forms, "rsqrt.approx");
  add_with_modifiers<&power_of_two, float>(forms, "ex2.approx");
  add_with_modifiers<&logarithm, float>(forms, "lg2.approx");
  add_with_modifiers<&sine, float>(forms, "sin.approx");
  add_with_modifiers<&cosine, float>(forms, "cos.approx");
  forms["tanh.approx.f32"] = form_of<&hyperbolic, float, float>();
  add_with_modifiers<&least<float>, float, float>(forms, "min");
  add_with_modifiers<&largest<float>, float, float>(forms, "max");
  add_with_modifiers<std::negate<>{}, float>(forms, "neg");
  add_with_modifiers<&magnitude<float>, float>(forms, "abs");
  forms["copysign.f32"] = form_of<&with_sign_of<float>, float, float, float>();
  forms["copysign.f64"] = form_of<&with_sign_of<double>, double, double, double>();
  forms["div.rn.f64"] = form_of<std::divides<>{}, double, double, double>();
  forms["rcp.rn.f64"] = form_of<&reciprocal<double>, double, double>();
  forms["sqrt.rn.f64"] = form_of<&root<double>, double, double>();
  forms["min.f64"] = form_of<&least<double>, double, double, double>();
  forms["max.f64"] = form_of<&largest<double>, double, double, double>();
  forms["neg.f64"] = form_of<std::negate<>{}, double, double>();
  forms["abs.f64"] = form_of<&magnitude<double>, double, double>();
  add_halves<DType::f16, std::uint16_t>(forms, ".f16");
  add_halves<DType::f16, std::uint32_t>(forms, ".f16x2");
  add_halves<DType::bf16, std::uint16_t>(forms, ".bf16");
  add_halves<DType::bf16, std::uint32_t>(forms, ".bf16x2");
}

}  // namespace warpwright::ptx
