// A function call of an expression under evaluation: reads its arguments, and says which is wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warpwright/layout/expression.h"

namespace warpwright::layout {

using Arguments = std::vector<Value>;

/// A layout of basis strides as a tensor that begins at 0.
CoordinateTensor coordinates_of(const Layout& l);
/// Refuses a coordinate that lies outside of these extents; `_` lies inside.
void expect_inside(const Tuple& at, const Tuple& extents);

class Call {
 public:
  Call(std::string name, Arguments arguments)
      : name_(std::move(name)), arguments_(std::move(arguments)) {}

  std::size_t count() const { return arguments_.size(); }
  const Value& operator[](std::size_t i) const { return arguments_.at(i); }
  const std::string& name() const { return name_; }

  void expect_count(std::size_t least, std::size_t most) const;
  /// Refuses argument i, which is not what is `wanted`.
  [[noreturn]] void wrong(std::size_t i, const char* wanted) const;

  std::int64_t number(std::size_t i) const;
  /// A number from `least` on, below `end`.
  int index(std::size_t i, std::int64_t least, std::int64_t end, const char* of) const;
  Tuple shape_at(std::size_t i) const;
  /// A shape in which `_` may keep modes whole.
  Tuple coordinate_at(std::size_t i) const;
  Layout layout_at(std::size_t i) const;
  Tensor tensor_at(std::size_t i) const;
  CopyAtom atom_at(std::size_t i) const;
  TiledCopy copy_at(std::size_t i) const;

  /// Calls f(layout, tile) with argument i as a layout, or as a tiler when it cuts mode by mode.
  template <class F>
  Layout with_tile(const Layout& layout, std::size_t i, F f) const {
    if (const auto* tiler = std::get_if<Tiler>(&(*this)[i])) return f(layout, *tiler);
    if (const auto* s = std::get_if<Shape>(&(*this)[i]); s && !detail::is_leaf(s->tuple))
      return f(layout, make_tiler(s->tuple));
    return f(layout, layout_at(i));
  }

  /// f of argument i in its own kind: a layout, a swizzled one, a tensor of coordinates or in
  /// memory.
  template <class F>
  Value of_tensor(std::size_t i, F f) const {
    if (const auto* c = std::get_if<ComposedLayout>(&(*this)[i])) return f(*c);
    if (const auto* t = std::get_if<CoordinateTensor>(&(*this)[i])) return f(*t);
    if (const auto* t = std::get_if<Tensor>(&(*this)[i])) return f(*t);
    return f(layout_at(i));
  }
  /// The same, a layout of basis strides as the tensor of coordinates that it is.
  template <class F>
  Value of_values(std::size_t i, F f) const {
    return of_tensor(i, [&](const auto& t) -> Value {
      if constexpr (std::is_same_v<std::decay_t<decltype(t)>, Layout>) {
        if (has_basis(t)) return f(coordinates_of(t));
      }
      return f(t);
    });
  }

  /// Applies f to the layout in argument 0 and leaves what is around it as it is.
  template <class F>
  Value inside(F f) const {
    return of_tensor(0, [&](const auto& t) { return Value(with_layout(t, f(layout_of(t)))); });
  }

  /// The layout that gives the domain of argument 0.
  Layout domain() const;

 private:
  Tuple tuple_at(std::size_t i) const;

  std::string name_;
  Arguments arguments_;
};

/// A function that expressions may call.
struct Function {
  std::string_view name;
  std::string_view usage;  ///< "name(A, B)"
  std::size_t least;
  std::size_t most;
  std::function<Value(const Call&)> apply;
};

/// A part as a value: a plain layout where nothing is left of offset and swizzle.
Value value_of(const Slice& part);
Value value_of(const ComposedLayout& part);
Value value_of(const CoordinateTensor& part);
Value value_of(const Tensor& part);

/// Those of the algebra (functions.cpp), and of tensors and copies (tensor_functions.cpp).
std::span<const Function> algebra_functions();
std::span<const Function> tensor_functions();

}  // namespace warpwright::layout
