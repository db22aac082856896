// Operations of one, two and three registers as templates: what their function is given, and which
// letters their operands have (Form::operands). Internal to ptx/.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "warpwright/ptx/decoder.h"

namespace warpwright::ptx {

template <class T>
constexpr char reads() {
  if (std::is_same_v<T, bool>) return 'p';
  if (std::is_same_v<T, float>) return 'f';
  if (std::is_same_v<T, double>) return 'F';
  return sizeof(T) == 2 ? 'h' : (sizeof(T) == 4 ? 'i' : 'l');
}
template <class T>
constexpr char writes() {
  if (std::is_same_v<T, bool>) return 'P';
  return sizeof(T) == 2 ? 'H' : (sizeof(T) == 4 ? 'I' : 'L');
}

/// A register as T; a predicate as bool.
template <class T>
T value_at(const Frame& f, std::uint32_t at) {
  if constexpr (std::is_same_v<T, bool>) {
    return f.r[at] != 0;
  } else {
    return f.get<T>(at);
  }
}
template <class T>
void value_to(Frame& f, std::uint32_t at, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    f.r[at] = value ? 1 : 0;
  } else {
    f.put(at, value);
  }
}

template <auto F, class R, class... T>
struct Apply;
template <auto F, class R, class A>
struct Apply<F, R, A> {
  static const Op* run(Frame& f, const Op* op) {
    value_to<R>(f, op->d, F(value_at<A>(f, op->a)));
    return op + 1;
  }
};
template <auto F, class R, class A, class B>
struct Apply<F, R, A, B> {
  static const Op* run(Frame& f, const Op* op) {
    value_to<R>(f, op->d, F(value_at<A>(f, op->a), value_at<B>(f, op->b)));
    return op + 1;
  }
};
template <auto F, class R, class A, class B, class C>
struct Apply<F, R, A, B, C> {
  static const Op* run(Frame& f, const Op* op) {
    value_to<R>(f, op->d, F(value_at<A>(f, op->a), value_at<B>(f, op->b), value_at<C>(f, op->c)));
    return op + 1;
  }
};
template <auto F, class R, class A, class B, class C, class D>
struct Apply<F, R, A, B, C, D> {
  static const Op* run(Frame& f, const Op* op) {
    value_to<R>(f, op->d,
                F(value_at<A>(f, op->a), value_at<B>(f, op->b), value_at<C>(f, op->c),
                  value_at<D>(f, op->x)));
    return op + 1;
  }
};

/// The form of a function of values: R F(T...).
template <auto F, class R, class... T>
Form form_of() {
  return {&Apply<F, R, T...>::run, {writes<R>(), reads<T>()...}};
}

/// The words one behind the other.
template <class... Words>
std::string name_of(const Words&... words) {
  std::string name;
  (name.append(words), ...);
  return name;
}

/// Calls add.operator()<T>() for the integers of 16 bits and more.
template <class Add>
void for_integers(const Add& add) {
  add.template operator()<std::uint16_t>();
  add.template operator()<std::int16_t>();
  add.template operator()<std::uint32_t>();
  add.template operator()<std::int32_t>();
  add.template operator()<std::uint64_t>();
  add.template operator()<std::int64_t>();
}

/// "u32" and so on.
template <class T>
std::string type_name() {
  const char kind = std::is_floating_point_v<T> ? 'f' : (std::is_signed_v<T> ? 's' : 'u');
  return kind + std::to_string(sizeof(T) * 8);
}

}  // namespace warpwright::ptx
