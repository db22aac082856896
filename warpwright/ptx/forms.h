// Operations of one, two and three registers as templates: what their function is given, and which
// letters their operands have (Form::operands). Internal to ptx/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

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

/// Calls use(at...) with the places of the first `count` of Op::a, b, c and x.
template <std::size_t count, class Use>
void with_places(const Op* op, const Use& use) {
  const std::uint32_t at[] = {op->a, op->b, op->c, op->x};
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    use(at[i]...);
  }
  (std::make_index_sequence<count>());
}

template <auto F, class R, class... T>
const Op* apply(Frame& f, const Op* op) {
  with_places<sizeof...(T)>(op,
                            [&](auto... at) { value_to<R>(f, op->d, F(value_at<T>(f, at)...)); });
  return op + 1;
}

/// The form of a function of values: R F(T...).
template <auto F, class R, class... T>
Form form_of() {
  return {&apply<F, R, T...>, {writes<R>(), reads<T>()...}};
}

template <class T>
T* host(std::uint64_t at) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(at));
}

/// An argument of a function of the model; a pointer is an address of the host's.
template <class T>
T argument_at(const Frame& f, std::uint32_t at) {
  if constexpr (std::is_pointer_v<T>) {
    return host<std::remove_pointer_t<T>>(f.get<std::uint64_t>(at));
  } else {
    return f.get<T>(at);
  }
}

template <auto F, class Signature = decltype(F)>
struct Does;
template <auto F, class R, class... T>
struct Does<F, R (*)(T...)> {
  static const Op* run(Frame& f, const Op* op) {
    using All = std::tuple<T...>;
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      with_places<sizeof...(i)>(op, [&](auto... at) {
        const auto call = [&] {
          return F(argument_at<std::tuple_element_t<i, All>>(f, at)..., f.site(op));
        };
        if constexpr (std::is_void_v<R>) {
          call();
        } else {
          f.put(op->d, call());
        }
      });
    }
    (std::make_index_sequence<sizeof...(T) - 1>());
    return op + 1;
  }
};
/// Calls R F(T..., model::Site), a function of the model, with Op::a, b, c and x; what it returns
/// goes to Op::d.
template <auto F>
constexpr Run does = &Does<F>::run;

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
