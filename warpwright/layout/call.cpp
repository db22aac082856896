#include "warpwright/layout/call.h"

#include <array>

#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"

namespace warpwright::layout {
namespace {

const char* article_of(const Value& value) {
  constexpr std::array<const char*, std::variant_size_v<Value>> names = {
      "a layout",     "a swizzled layout", "a coordinate tensor",
      "a coordinate", "a number",          "a shape",
      "a tiler",      "a swizzle",         "a tensor",
      "a Copy_Atom",  "a TiledCopy",       "the two sides of a TMA copy",
      "a word"};
  return names.at(value.index());
}

}  // namespace

const char* kind_of(const Value& value) {
  constexpr std::array<const char*, std::variant_size_v<Value>> names = {
      "layout",  "composed layout", "coordinate tensor", "tuple",      "integer",  "shape", "tiler",
      "swizzle", "tensor",          "copy atom",         "tiled copy", "TMA copy", "word"};
  return names.at(value.index());
}

void Call::expect_count(std::size_t least, std::size_t most) const {
  if (count() >= least && count() <= most) return;
  const std::string wanted =
      least == most ? std::to_string(least)
      : most == SIZE_MAX
          ? std::to_string(least) + " or more"
          : std::to_string(least) + (most > least + 1 ? " to " : " or ") + std::to_string(most);
  throw Error(name_ + " takes " + wanted + (wanted == "1" ? " argument" : " arguments") + ", and " +
              std::to_string(count()) + (count() == 1 ? " is" : " are") + " given.");
}

void Call::wrong(std::size_t i, const char* wanted) const {
  throw Error(name_ + ": argument " + std::to_string(i + 1) + " must be " + wanted +
              ", and it is " + article_of(arguments_.at(i)) + ".");
}

std::int64_t Call::number(std::size_t i) const {
  const Tuple t = shape_at(i);
  if (!detail::is_leaf(t)) wrong(i, "a number");
  return t.leaf[0].value;
}

int Call::index(std::size_t i, std::int64_t least, std::int64_t end, const char* of) const {
  const std::int64_t n = number(i);
  if (n < least || n >= end)
    throw Error(name_ + ": " + of + " is " + std::to_string(least) + " to " +
                std::to_string(end - 1) + ", and argument " + std::to_string(i + 1) + " is " +
                std::to_string(n) + ".");
  return static_cast<int>(n);
}

Tuple Call::tuple_at(std::size_t i) const {
  if (const auto* s = std::get_if<Shape>(&(*this)[i])) {
    for (const Leaf& leaf : s->tuple.leaf)
      if (leaf.basis != -1) wrong(i, "a number or a tuple of numbers without a basis");
    return s->tuple;
  }
  if (const auto* t = std::get_if<Tuple>(&(*this)[i])) return *t;
  if (const auto* n = std::get_if<std::int64_t>(&(*this)[i])) return {*n};
  wrong(i, "a number or a tuple of numbers");
}

Tuple Call::shape_at(std::size_t i) const {
  Tuple t = tuple_at(i);
  detail::require_numbers(t);
  return t;
}

Tuple Call::coordinate_at(std::size_t i) const {
  return tuple_at(i);
}

Layout Call::layout_at(std::size_t i) const {
  const Value& v = (*this)[i];
  if (const auto* l = std::get_if<Layout>(&v)) return *l;
  if (std::holds_alternative<Shape>(v) || std::holds_alternative<Tuple>(v) ||
      std::holds_alternative<std::int64_t>(v))
    return make_layout(shape_at(i));
  wrong(i, "a layout");
}

Tensor Call::tensor_at(std::size_t i) const {
  if (const auto* t = std::get_if<Tensor>(&(*this)[i])) return *t;
  wrong(i, "a tensor in memory, such as gmem_ptr[16b](0x0) o (512,256):(256,1)");
}

CopyAtom Call::atom_at(std::size_t i) const {
  if (const auto* a = std::get_if<CopyAtom>(&(*this)[i])) return *a;
  wrong(i, "a Copy_Atom");
}

TiledCopy Call::copy_at(std::size_t i) const {
  if (const auto* c = std::get_if<TiledCopy>(&(*this)[i])) return *c;
  wrong(i, "a TiledCopy");
}

Layout Call::domain() const {
  if (const auto* c = std::get_if<ComposedLayout>(&(*this)[0])) return c->layout;
  if (const auto* t = std::get_if<CoordinateTensor>(&(*this)[0])) return t->layout;
  if (const auto* t = std::get_if<Tensor>(&(*this)[0])) return t->layout;
  return layout_at(0);
}

Value value_of(const ComposedLayout& part) {
  if (part.swizzle.bits == 0 && part.offset == 0) return part.layout;
  return part;
}
Value value_of(const Slice& part) {
  return value_of(ComposedLayout{Swizzle{}, part.offset, part.layout});
}
Value value_of(const CoordinateTensor& part) {
  return part;
}
Value value_of(const Tensor& part) {
  return part;
}

CoordinateTensor coordinates_of(const Layout& l) {
  detail::Builder<Tuple> origin;
  for (int i = 0; i < detail::basis_count(l); ++i) origin.add(Tuple(0));
  return {origin.tuple(), l};
}

void expect_inside(const Tuple& at, const Tuple& extents) {
  if (detail::is_leaf(at)) {
    if (at.leaf[0].value != kAll) to_index(at, extents);
    return;
  }
  if (detail::is_leaf(extents) || rank(at) != rank(extents))
    refuse("a coordinate of rank {} does not fit {}.", rank(at), make_layout(extents));
  for (int m = 0; m < rank(at); ++m) expect_inside(mode(at, m), mode(extents, m));
}

}  // namespace warpwright::layout
