// cvt (PTX ISA 9.7.9.21), between integers, between floats, and from one to the other.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "warpwright/numeric/float_format.h"
#include "warpwright/ptx/forms.h"

namespace warpwright::ptx {
namespace {

using numeric::Overflow;
using numeric::Rounding;

// A register may be wider than the type of what it holds: the value is extended to it.
template <class T>
const Op* put_extended(Frame& f, const Op* op, T value) {
  if (op->x == 64) {
    f.put(op->d, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  } else if constexpr (sizeof(T) < 8) {
    f.put(op->d, static_cast<std::uint32_t>(static_cast<std::int32_t>(value)));
  } else {
    f.put(op->d, static_cast<std::uint32_t>(value));
  }
  return op + 1;
}

template <class D, class S, bool saturates>
const Op* between_integers(Frame& f, const Op* op) {
  const S from = f.get<S>(op->a);
  if constexpr (saturates) {
    using Limits = std::numeric_limits<D>;
    if (std::cmp_less(from, Limits::min())) return put_extended(f, op, Limits::min());
    if (std::cmp_greater(from, Limits::max())) return put_extended(f, op, Limits::max());
  }
  return put_extended(f, op, static_cast<D>(from));
}

template <class D, class S>
const Op* to_float(Frame& f, const Op* op) {
  f.put(op->d, static_cast<D>(f.get<S>(op->a)));
  return op + 1;
}

enum class To : std::uint8_t { even, zero, down, up };
template <To how, class T>
T rounded(T x) {
  switch (how) {
    case To::even:
      return std::nearbyint(x);
    case To::zero:
      return std::trunc(x);
    case To::down:
      return std::floor(x);
    case To::up:
      return std::ceil(x);
  }
  return x;
}

// What does not fit becomes the nearest that does; NaN 0.
template <class D, class S, To how>
const Op* to_integer(Frame& f, const Op* op) {
  const auto x = static_cast<double>(rounded<how>(f.get<S>(op->a)));
  using Limits = std::numeric_limits<D>;
  D value = 0;
  if (std::isnan(x)) {
    value = 0;
  } else if (x <= static_cast<double>(Limits::min())) {
    value = Limits::min();
  } else if (x >= static_cast<double>(Limits::max())) {
    value = Limits::max();
  } else {
    value = static_cast<D>(x);
  }
  return put_extended(f, op, value);
}

template <To how, class T>
const Op* to_whole(Frame& f, const Op* op) {
  f.put(op->d, rounded<how>(f.get<T>(op->a)));
  return op + 1;
}

const Op* saturated(Frame& f, const Op* op) {
  const auto x = f.get<float>(op->a);
  f.put(op->d, x > 0 ? (x < 1 ? x : 1.0F) : 0.0F);
  return op + 1;
}

// --- types of 16 and 8 bits
template <DType type, class D>
const Op* widen(Frame& f, const Op* op) {
  f.put(op->d, static_cast<D>(numeric::to_double(type, f.get<std::uint16_t>(op->a))));
  return op + 1;
}
template <DType type>
std::uint32_t code(double x, Rounding rounding, Overflow overflow) {
  return static_cast<std::uint32_t>(numeric::from_double(type, x, rounding, overflow));
}
template <DType type, Rounding rounding, Overflow overflow, class S, bool relu>
const Op* narrow(Frame& f, const Op* op) {
  auto x = static_cast<double>(f.get<S>(op->a));
  if (relu && x < 0) x = 0;
  f.put(op->d, static_cast<std::uint16_t>(code<type>(x, rounding, overflow)));
  return op + 1;
}
// Two at once: the first operand in the upper half.
template <DType type, Rounding rounding, Overflow overflow, bool relu>
const Op* narrow_pair(Frame& f, const Op* op) {
  constexpr int bits = numeric::bits(type);
  const auto one = [&](std::uint32_t at) {
    auto x = static_cast<double>(f.get<float>(at));
    if (relu && x < 0) x = 0;
    return code<type>(x, rounding, overflow);
  };
  f.r[op->d] = one(op->b) | one(op->a) << bits;
  return op + 1;
}
template <DType type, bool relu>
const Op* halves_to_bytes(Frame& f, const Op* op) {
  const auto pair = f.get<std::uint32_t>(op->a);
  const auto one = [](std::uint32_t half) {
    double x = numeric::to_double(DType::f16, half & 0xffffU);
    if (relu && x < 0) x = 0;
    return code<type>(x, Rounding::nearest_even, Overflow::saturate);
  };
  f.r[op->d] = one(pair) | one(pair >> 16) << 8;
  return op + 1;
}
template <DType type>
const Op* bytes_to_halves(Frame& f, const Op* op) {
  const auto pair = f.get<std::uint32_t>(op->a);
  const auto one = [](std::uint32_t byte) {
    return code<DType::f16>(numeric::to_double(type, byte & 0xffU), Rounding::nearest_even,
                            Overflow::special);
  };
  f.r[op->d] = one(pair) | one(pair >> 8) << 16;
  return op + 1;
}

// An operand of an integer type narrower than its register: any register of as many bits or more.
void decode_conversion(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 2, 2);
  const auto check = [&](const Operand& o, unsigned least) {
    if (o.kind == Operand::Kind::reg && d.bits(o) >= static_cast<int>(std::max(least, 16U))) return;
    d.fault("a register of " + std::to_string(d.bits(o)) + " bits stands where " +
            std::string(d.opcode()) + " takes " + std::to_string(least));
  };
  check(s.operands[0], form.x & 0xffU);
  check(s.operands[1], form.x >> 8);
  d.emit({.run = form.run,
          .d = d.place(s.operands[0]),
          .a = d.place(s.operands[1]),
          .x = static_cast<std::uint32_t>(d.bits(s.operands[0]))});
}

template <class D, class S>
Form conversion(Run run) {
  return {run, "", &decode_conversion, sizeof(D) * 8 | sizeof(S) * 8 << 8};
}

template <class D, class S>
void add_between(Forms& forms) {
  const std::string types = type_name<D>() + "." + type_name<S>();
  forms["cvt." + types] = conversion<D, S>(&between_integers<D, S, false>);
  forms["cvt.sat." + types] = conversion<D, S>(&between_integers<D, S, true>);
}

template <class F, class I>
void add_float_and_integer(Forms& forms) {
  const std::string integer = type_name<I>();
  const std::string types = "." + integer + "." + type_name<F>();
  forms["cvt.rn." + type_name<F>() + "." + integer] = conversion<F, I>(&to_float<F, I>);
  for (const char* ftz : {"", ".ftz"}) {
    forms[std::string("cvt.rni") + ftz + types] = conversion<I, F>(&to_integer<I, F, To::even>);
    forms[std::string("cvt.rzi") + ftz + types] = conversion<I, F>(&to_integer<I, F, To::zero>);
    forms[std::string("cvt.rmi") + ftz + types] = conversion<I, F>(&to_integer<I, F, To::down>);
    forms[std::string("cvt.rpi") + ftz + types] = conversion<I, F>(&to_integer<I, F, To::up>);
  }
}

template <class I>
void add_integer(Forms& forms) {
  add_between<I, std::uint8_t>(forms);
  add_between<I, std::int8_t>(forms);
  add_between<I, std::uint16_t>(forms);
  add_between<I, std::int16_t>(forms);
  add_between<I, std::uint32_t>(forms);
  add_between<I, std::int32_t>(forms);
  add_between<I, std::uint64_t>(forms);
  add_between<I, std::int64_t>(forms);
  add_float_and_integer<float, I>(forms);
  add_float_and_integer<double, I>(forms);
}

template <DType type>
void add_half(Forms& forms, const std::string& t) {
  forms["cvt.f32." + t] = {&widen<type, float>, "Ih"};
  forms["cvt.f64." + t] = {&widen<type, double>, "Lh"};
  const auto add = [&]<Rounding r>(const std::string& name) {
    constexpr Overflow special = Overflow::special;
    constexpr Overflow saturate = Overflow::saturate;
    const std::string one = "." + t + ".f32";
    const std::string two = "." + t + "x2.f32";
    forms[name + one] = {&narrow<type, r, special, float, false>, "Hf"};
    forms[name + ".relu" + one] = {&narrow<type, r, special, float, true>, "Hf"};
    forms[name + ".satfinite" + one] = {&narrow<type, r, saturate, float, false>, "Hf"};
    forms[name + two] = {&narrow_pair<type, r, special, false>, "Iff"};
    forms[name + ".relu" + two] = {&narrow_pair<type, r, special, true>, "Iff"};
    forms[name + ".satfinite" + two] = {&narrow_pair<type, r, saturate, false>, "Iff"};
  };
  add.template operator()<Rounding::nearest_even>("cvt.rn");
  add.template operator()<Rounding::toward_zero>("cvt.rz");
  forms["cvt.rn." + t + ".f64"] = {
      &narrow<type, Rounding::nearest_even, Overflow::special, double, false>, "HF"};
}

template <DType type>
void add_byte(Forms& forms, const std::string& t) {
  constexpr Rounding even = Rounding::nearest_even;
  forms["cvt.rn.satfinite." + t + "x2.f32"] = {&narrow_pair<type, even, Overflow::saturate, false>,
                                               "Hff"};
  forms["cvt.rn.satfinite.relu." + t + "x2.f32"] = {
      &narrow_pair<type, even, Overflow::saturate, true>, "Hff"};
  forms["cvt.rn.satfinite." + t + "x2.f16x2"] = {&halves_to_bytes<type, false>, "Hi"};
  forms["cvt.rn.satfinite.relu." + t + "x2.f16x2"] = {&halves_to_bytes<type, true>, "Hi"};
  forms["cvt.rn.f16x2." + t + "x2"] = {&bytes_to_halves<type>, "Ih"};
}

}  // namespace

void add_conversions(Forms& forms) {
  add_integer<std::uint8_t>(forms);
  add_integer<std::int8_t>(forms);
  for_integers([&]<class T>() { add_integer<T>(forms); });
  forms["cvt.f64.f32"] = {&to_float<double, float>, "Lf"};
  forms["cvt.rn.f32.f64"] = {&to_float<float, double>, "IF"};
  forms["cvt.sat.f32.f32"] = {&saturated, "If"};
  forms["cvt.rni.f32.f32"] = {&to_whole<To::even, float>, "If"};
  forms["cvt.rzi.f32.f32"] = {&to_whole<To::zero, float>, "If"};
  forms["cvt.rmi.f32.f32"] = {&to_whole<To::down, float>, "If"};
  forms["cvt.rpi.f32.f32"] = {&to_whole<To::up, float>, "If"};
  add_half<DType::f16>(forms, "f16");
  add_half<DType::bf16>(forms, "bf16");
  add_byte<DType::e4m3>(forms, "e4m3");
  add_byte<DType::e5m2>(forms, "e5m2");
  forms["cvt.rn.satfinite.e2m1x2.f32"] = {
      &narrow_pair<DType::e2m1, Rounding::nearest_even, Overflow::saturate, false>, "Bff"};
}

}  // namespace warpwright::ptx
