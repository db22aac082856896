// Integers, bits, predicates (PTX ISA 9.7.1, 9.7.6, 9.7.8), and moves.
#include <algorithm>
#include <functional>

#include "warpwright/ptx/forms.h"

namespace warpwright::ptx {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <int bytes, bool is_signed>
struct IntegerOf;
template <bool s>
struct IntegerOf<2, s> {
  using type = std::conditional_t<s, std::int16_t, std::uint16_t>;
};
template <bool s>
struct IntegerOf<4, s> {
  using type = std::conditional_t<s, std::int32_t, std::uint32_t>;
};
template <bool s>
struct IntegerOf<8, s> {
  using type = std::conditional_t<s, std::int64_t, std::uint64_t>;
};
template <bool s>
struct IntegerOf<16, s> {
  using type = std::conditional_t<s, __int128, unsigned __int128>;
};
template <class T>
using Wide = typename IntegerOf<2 * sizeof(T), std::is_signed_v<T>>::type;

template <class T>
constexpr int bits = static_cast<int>(sizeof(T)) * 8;

// What is the same for both signs wraps around, as unsigned numbers do.
template <class T>
T add(T a, T b) {
  return static_cast<T>(Unsigned<T>(a) + Unsigned<T>(b));
}
template <class T>
T subtract(T a, T b) {
  return static_cast<T>(Unsigned<T>(a) - Unsigned<T>(b));
}
template <class T>
Wide<T> product(T a, T b) {
  return static_cast<Wide<T>>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
}
template <class T>
T multiply_low(T a, T b) {
  return static_cast<T>(product(a, b));
}
template <class T>
T multiply_high(T a, T b) {
  return static_cast<T>(product(a, b) >> bits<T>);
}
template <class T>
T multiply_add_low(T a, T b, T c) {
  return add(multiply_low(a, b), c);
}
template <class T>
T multiply_add_high(T a, T b, T c) {
  return add(multiply_high(a, b), c);
}
template <class T>
Wide<T> multiply_add_wide(T a, T b, Wide<T> c) {
  return add(product(a, b), c);
}
// Division by zero gives what the machine happens to: all ones.
template <class T>
T divide(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return subtract(T{0}, a);
  return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
  return static_cast<T>(a % b);
}
template <class T>
T least(T a, T b) {
  return std::min(a, b);
}
template <class T>
T largest(T a, T b) {
  return std::max(a, b);
}
template <class T>
T negative(T a) {
  return subtract(T{0}, a);
}
template <class T>
T magnitude(T a) {
  return a < 0 ? negative(a) : a;
}
template <class T>
T shift_left(T a, std::uint32_t by) {
  return by >= bits<T> ? T{0} : static_cast<T>(Unsigned<T>(a) << by);
}
template <class T>
T shift_right(T a, std::uint32_t by) {
  if (by >= bits<T>) return static_cast<T>(std::is_signed_v<T> && a < 0 ? -1 : 0);
  return static_cast<T>(a >> by);
}
template <class T>
T choose(T a, T b, bool p) {
  return p ? a : b;
}

template <bool wraps>
std::uint32_t funnel_left(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const std::uint32_t n = wraps ? c & 31U : std::min(c, 32U);
  return static_cast<std::uint32_t>(((std::uint64_t{b} << 32 | a) << n) >> 32);
}
template <bool wraps>
std::uint32_t funnel_right(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const std::uint32_t n = wraps ? c & 31U : std::min(c, 32U);
  return static_cast<std::uint32_t>((std::uint64_t{b} << 32 | a) >> n);
}

template <class T>
T extract(T a, std::uint32_t from, std::uint32_t length) {
  from &= 0xffU;
  length &= 0xffU;
  if (length == 0) return 0;
  constexpr std::uint32_t top = bits<T> - 1;
  const bool sign = std::is_signed_v<T> && (a >> std::min(from + length - 1, top) & 1) != 0;
  Unsigned<T> result = sign ? ~Unsigned<T>{0} : Unsigned<T>{0};
  for (std::uint32_t i = 0; i < length && i <= top; ++i) {
    const Unsigned<T> bit = from + i <= top ? Unsigned<T>(a) >> (from + i) & 1 : (sign ? 1 : 0);
    result = static_cast<Unsigned<T>>((result & ~(Unsigned<T>{1} << i)) | bit << i);
  }
  return static_cast<T>(result);
}
template <class T>
T insert(T a, T b, std::uint32_t at, std::uint32_t length) {
  at &= 0xffU;
  length &= 0xffU;
  if (at >= bits<T> || length == 0) return b;
  const T ones = length >= bits<T> ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1);
  const T mask = static_cast<T>(ones << at);
  return static_cast<T>((b & ~mask) | (static_cast<T>(a << at) & mask));
}
template <class T>
T reversed(T a) {
  T result = 0;
  for (int i = 0; i < bits<T>; ++i) result = static_cast<T>(result << 1 | (a >> i & 1));
  return result;
}
template <class T>
int leading_zero_bits(T a) {
  return a == 0 ? bits<T> : __builtin_clzll(a) - (64 - bits<T>);
}
// The highest bit that is not the sign's.
template <class T>
std::uint32_t find_bit(T a) {
  const Unsigned<T> u = a < 0 ? ~Unsigned<T>(a) : Unsigned<T>(a);
  return u == 0 ? ~0U : static_cast<std::uint32_t>(bits<T> - 1 - leading_zero_bits(u));
}
template <class T>
std::uint32_t find_bit_shift(T a) {
  const std::uint32_t at = find_bit(a);
  return at == ~0U ? at : static_cast<std::uint32_t>(bits<T> - 1) - at;
}
template <class T>
std::uint32_t leading_zeros(T a) {
  return static_cast<std::uint32_t>(leading_zero_bits(a));
}
template <class T>
std::uint32_t ones(T a) {
  return static_cast<std::uint32_t>(__builtin_popcountll(a));
}

std::uint32_t permute(std::uint32_t a, std::uint32_t b, std::uint32_t selectors) {
  const std::uint64_t bytes = a | std::uint64_t{b} << 32;
  std::uint32_t chosen = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t selector = selectors >> 4 * i & 0xfU;
    std::uint32_t byte = static_cast<std::uint32_t>(bytes >> 8 * (selector & 7U)) & 0xffU;
    if ((selector & 8U) != 0) byte = (byte & 0x80U) != 0 ? 0xffU : 0;  // its sign
    chosen |= byte << 8 * i;
  }
  return chosen;
}

std::uint32_t by_table(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t table) {
  std::uint32_t result = 0;
  for (unsigned row = 0; row < 8; ++row) {
    if ((table >> row & 1U) == 0) continue;
    result |= ((row & 4U) != 0 ? a : ~a) & ((row & 2U) != 0 ? b : ~b) & ((row & 1U) != 0 ? c : ~c);
  }
  return result;
}

template <class T>
void add_integer(Forms& forms) {
  const std::string t = "." + type_name<T>();
  forms["add" + t] = form_of<&add<T>, T, T, T>();
  forms["sub" + t] = form_of<&subtract<T>, T, T, T>();
  forms["mul.lo" + t] = form_of<&multiply_low<T>, T, T, T>();
  forms["mul.hi" + t] = form_of<&multiply_high<T>, T, T, T>();
  forms["mad.lo" + t] = form_of<&multiply_add_low<T>, T, T, T, T>();
  forms["mad.hi" + t] = form_of<&multiply_add_high<T>, T, T, T, T>();
  if constexpr (sizeof(T) < 8) {
    forms["mul.wide" + t] = form_of<&product<T>, Wide<T>, T, T>();
    forms["mad.wide" + t] = form_of<&multiply_add_wide<T>, Wide<T>, T, T, Wide<T>>();
  }
  forms["div" + t] = form_of<&divide<T>, T, T, T>();
  forms["rem" + t] = form_of<&remainder<T>, T, T, T>();
  forms["min" + t] = form_of<&least<T>, T, T, T>();
  forms["max" + t] = form_of<&largest<T>, T, T, T>();
  forms["shr" + t] = form_of<&shift_right<T>, T, T, std::uint32_t>();
  forms["selp" + t] = form_of<&choose<T>, T, T, T, bool>();
  forms["mov" + t] = form_of<std::identity{}, T, T>();
  if constexpr (std::is_signed_v<T>) {
    forms["neg" + t] = form_of<&negative<T>, T, T>();
    forms["abs" + t] = form_of<&magnitude<T>, T, T>();
  }
  if constexpr (sizeof(T) >= 4) {
    forms["bfe" + t] = form_of<&extract<T>, T, T, std::uint32_t, std::uint32_t>();
    forms["bfind" + t] = form_of<&find_bit<T>, std::uint32_t, T>();
    forms["bfind.shiftamt" + t] = form_of<&find_bit_shift<T>, std::uint32_t, T>();
  }
}

// Types without a sign, "b32"; T is unsigned, or bool.
template <class T>
void add_bits(Forms& forms, const std::string& name) {
  const std::string t = "." + name;
  using Not = std::conditional_t<std::is_same_v<T, bool>, std::logical_not<bool>, std::bit_not<T>>;
  forms["and" + t] = form_of<std::bit_and<T>{}, T, T, T>();
  forms["or" + t] = form_of<std::bit_or<T>{}, T, T, T>();
  forms["xor" + t] = form_of<std::bit_xor<T>{}, T, T, T>();
  forms["not" + t] = form_of<Not{}, T, T>();
  forms["mov" + t] = form_of<std::identity{}, T, T>();
  if constexpr (!std::is_same_v<T, bool>) {
    forms["selp" + t] = form_of<&choose<T>, T, T, T, bool>();
    forms["shl" + t] = form_of<&shift_left<T>, T, T, std::uint32_t>();
    forms["shr" + t] = form_of<&shift_right<T>, T, T, std::uint32_t>();
    if constexpr (sizeof(T) >= 4) {
      forms["bfi" + t] = form_of<&insert<T>, T, T, T, std::uint32_t, std::uint32_t>();
      forms["brev" + t] = form_of<&reversed<T>, T, T>();
      forms["clz" + t] = form_of<&leading_zeros<T>, std::uint32_t, T>();
      forms["popc" + t] = form_of<&ones<T>, std::uint32_t, T>();
    }
  }
}

// --- setp
template <class T>
bool is_nan(T a) {
  return a != a;  // NOLINT
}
template <class T>
bool either_nan(T a, T b) {
  return is_nan(a) || is_nan(b);
}
template <class T>
bool no_nan(T a, T b) {
  return !either_nan(a, b);
}
// The form with u: true beside a NaN too.
template <auto F, class T>
bool or_nan(T a, T b) {
  return F(a, b) || either_nan(a, b);
}
template <class T>
bool both_unequal(T a, T b) {
  return a != b && no_nan(a, b);
}

enum class Joined : std::uint8_t { no, with_and, with_or, with_xor };

template <auto F, class T, Joined how>
const Op* compare(Frame& f, const Op* op) {
  bool says = F(value_at<T>(f, op->a), value_at<T>(f, op->b));
  if constexpr (how != Joined::no) {
    const bool other = f.r[op->c] != 0;
    says = how == Joined::with_and  ? says && other
           : how == Joined::with_or ? says || other
                                    : says != other;
  }
  f.r[op->d] = says ? 1 : 0;
  return op + 1;
}

const Op* opposite(Frame& f, const Op* op) {
  f.r[op->d] = f.r[op->a] == 0 ? 1 : 0;
  return op + 1;
}

// setp p, a, b; p|q, a, b; or with a third predicate.
void decode_compare(Decoder& d, const Statement& s, const Form& form) {
  const bool joined = form.operands.size() > 3;
  d.need(s, joined ? 4 : 3, joined ? 4 : 3);
  const Operand& to = s.operands[0];
  const bool is_pair = to.kind == Operand::Kind::pair;
  if (is_pair && joined) {
    d.fault("setp of two predicates that takes a third is not in the subset");
  }
  const std::uint32_t written = d.write(is_pair ? to.parts[0] : to, 'P');
  d.emit({.run = form.run,
          .d = written,
          .a = d.read(s.operands[1], form.operands[1]),
          .b = d.read(s.operands[2], form.operands[2]),
          .c = joined ? d.read(s.operands[3], 'p') : 0});
  if (is_pair) d.emit({.run = &opposite, .d = d.write(to.parts[1], 'P'), .a = written});
}

template <auto F, class T>
void add_comparison(Forms& forms, const std::string& name, const std::string& type) {
  const std::string operands = {'P', reads<T>(), reads<T>()};
  const auto add = [&](const char* join, Run run, const char* more) {
    forms["setp." + name + join + "." + type] = {run, operands + more, &decode_compare};
  };
  add("", &compare<F, T, Joined::no>, "");
  add(".and", &compare<F, T, Joined::with_and>, "p");
  add(".or", &compare<F, T, Joined::with_or>, "p");
  add(".xor", &compare<F, T, Joined::with_xor>, "p");
}

template <class T>
void add_equalities(Forms& forms, const std::string& type) {
  add_comparison<std::equal_to<>{}, T>(forms, "eq", type);
  add_comparison<std::not_equal_to<>{}, T>(forms, "ne", type);
}

template <class T>
void add_comparisons(Forms& forms) {
  const std::string type = type_name<T>();
  add_equalities<T>(forms, type);
  add_comparison<std::less<>{}, T>(forms, "lt", type);
  add_comparison<std::less_equal<>{}, T>(forms, "le", type);
  add_comparison<std::greater<>{}, T>(forms, "gt", type);
  add_comparison<std::greater_equal<>{}, T>(forms, "ge", type);
  if constexpr (std::is_unsigned_v<T>) {
    add_comparison<std::less<>{}, T>(forms, "lo", type);
    add_comparison<std::less_equal<>{}, T>(forms, "ls", type);
    add_comparison<std::greater<>{}, T>(forms, "hi", type);
    add_comparison<std::greater_equal<>{}, T>(forms, "hs", type);
  }
  if constexpr (std::is_floating_point_v<T>) {
    add_comparison<&both_unequal<T>, T>(forms, "ne", type);
    add_comparison<&or_nan<std::equal_to<>{}, T>, T>(forms, "equ", type);
    add_comparison<&or_nan<std::not_equal_to<>{}, T>, T>(forms, "neu", type);
    add_comparison<&or_nan<std::less<>{}, T>, T>(forms, "ltu", type);
    add_comparison<&or_nan<std::less_equal<>{}, T>, T>(forms, "leu", type);
    add_comparison<&or_nan<std::greater<>{}, T>, T>(forms, "gtu", type);
    add_comparison<&or_nan<std::greater_equal<>{}, T>, T>(forms, "geu", type);
    add_comparison<&no_nan<T>, T>(forms, "num", type);
    add_comparison<&either_nan<T>, T>(forms, "nan", type);
  }
}

// --- moves of several registers: {low, high} <-> one twice as wide
template <class Part, class Whole>
const Op* joins(Frame& f, const Op* op) {
  Whole whole = 0;
  const std::uint32_t* at = f.program->words.data() + op->x;
  for (std::size_t i = 0; i < sizeof(Whole) / sizeof(Part); ++i) {
    whole = static_cast<Whole>(whole | static_cast<Whole>(f.get<Part>(at[i]))
                                           << (8 * sizeof(Part) * i));
  }
  f.put(op->d, whole);
  return op + 1;
}
template <class Part, class Whole>
const Op* splits(Frame& f, const Op* op) {
  const auto whole = f.get<Whole>(op->a);
  const std::uint32_t* at = f.program->words.data() + op->x;
  for (std::size_t i = 0; i < sizeof(Whole) / sizeof(Part); ++i) {
    f.put(at[i], static_cast<Part>(whole >> (8 * sizeof(Part) * i)));
  }
  return op + 1;
}

// mov.b32 and mov.b64: of one register, or of a list and one. Form::x: bits.
void decode_move(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 2, 2);
  const Operand& to = s.operands[0];
  const Operand& from = s.operands[1];
  const bool wide = form.x == 64;
  const char read = wide ? 'l' : 'i';
  const char write = wide ? 'L' : 'I';
  const bool splits_one = to.kind == Operand::Kind::list;
  if (!splits_one && from.kind != Operand::Kind::list) {
    d.emit({.run = form.run, .d = d.write(to, write), .a = d.read(from, read)});
    return;
  }
  const Operand& list = splits_one ? to : from;
  const auto parts = static_cast<int>(list.parts.size());
  if (parts != 2 && parts != 4) d.fault("mov joins 2 registers, or 4 of 16 or 8 bits");
  const unsigned bits = form.x / static_cast<unsigned>(parts);
  const bool halves = bits == 16;
  const char reads = bits == 8 ? 'b' : halves ? 'h' : 'i';
  const char writes = bits == 8 ? 'B' : halves ? 'H' : 'I';
  std::vector<std::uint32_t> at;
  for (const Operand& o : list.parts) {
    at.push_back(splits_one ? d.write(o, writes) : d.read(o, reads));
  }
  const std::uint32_t one = splits_one ? d.read(from, read) : d.write(to, write);
  constexpr Run runs[2][4] = {
      {&joins<std::uint16_t, std::uint32_t>, &joins<std::uint32_t, std::uint64_t>,
       &joins<std::uint16_t, std::uint64_t>, &joins<std::uint8_t, std::uint32_t>},
      {&splits<std::uint16_t, std::uint32_t>, &splits<std::uint32_t, std::uint64_t>,
       &splits<std::uint16_t, std::uint64_t>, &splits<std::uint8_t, std::uint32_t>}};
  d.emit({.run = runs[splits_one ? 1 : 0][bits == 8 ? 3
                                          : wide    ? (halves ? 2 : 1)
                                                    : 0],
          .d = one,
          .a = one,
          .x = d.keep_words(at)});
}

}  // namespace

void add_arithmetic(Forms& forms) {
  for_integers([&]<class T>() {
    add_integer<T>(forms);
    add_comparisons<T>(forms);
  });
  add_bits<bool>(forms, "pred");
  add_bits<std::uint16_t>(forms, "b16");
  add_bits<std::uint32_t>(forms, "b32");
  add_bits<std::uint64_t>(forms, "b64");
  for (const char* bits : {"32", "64"}) {  // of a list too
    Form& move = forms[std::string("mov.b") + bits];
    move.decode = &decode_move;
    move.x = static_cast<std::uint32_t>(std::stoi(bits));
  }
  forms["mov.f32"] = form_of<std::identity{}, float, float>();
  forms["mov.f64"] = form_of<std::identity{}, double, double>();
  forms["selp.f32"] = form_of<&choose<float>, float, float, float, bool>();
  forms["selp.f64"] = form_of<&choose<double>, double, double, double, bool>();
  using U = std::uint32_t;
  forms["shf.l.wrap.b32"] = form_of<&funnel_left<true>, U, U, U, U>();
  forms["shf.l.clamp.b32"] = form_of<&funnel_left<false>, U, U, U, U>();
  forms["shf.r.wrap.b32"] = form_of<&funnel_right<true>, U, U, U, U>();
  forms["shf.r.clamp.b32"] = form_of<&funnel_right<false>, U, U, U, U>();
  forms["prmt.b32"] = form_of<&permute, U, U, U, U>();
  forms["lop3.b32"] = form_of<&by_table, U, U, U, U, U>();
  add_comparisons<float>(forms);
  add_comparisons<double>(forms);
  add_equalities<std::uint16_t>(forms, "b16");
  add_equalities<std::uint32_t>(forms, "b32");
  add_equalities<std::uint64_t>(forms, "b64");
}

}  // namespace warpwright::ptx
