// The functions of the layout algebra, as expressions call them.
#include "warpwright/layout/call.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"
#include "warpwright/layout/value_at.h"

namespace warpwright::layout {
namespace {

/// compose, divide and product by a tile: each overloaded for a layout and for a tiler.
template <class F>
Value tiled(const Call& call, F f) {
  return call.inside([&](const Layout& l) { return call.with_tile(l, 1, f); });
}

Value call_composition(const Call& call) {
  if (const auto* swizzle = std::get_if<Swizzle>(&call[0]))
    return composition(*swizzle, call.layout_at(1));
  if (std::holds_alternative<Shape>(call[1]) || std::holds_alternative<std::int64_t>(call[1]))
    return call.inside([&](const Layout& a) { return composition(a, call.shape_at(1)); });
  return tiled(call, [](const Layout& a, const auto& b) { return composition(a, b); });
}

Value call_complement(const Call& call) {
  const Layout l = call.layout_at(0);
  if (call.count() == 1) return complement(l);
  if (const auto* target = std::get_if<Layout>(&call[1])) return complement(l, shape(*target));
  return complement(l, call.shape_at(1));
}

Value call_at(const Call& call) {
  const Layout domain = call.domain();
  Tuple c = call.shape_at(1);
  if (call.count() > 2) {
    detail::Builder<Tuple> builder;
    for (std::size_t i = 1; i < call.count(); ++i) builder.add(call.shape_at(i));
    c = builder.tuple();
  }
  to_index(c, shape(domain));  // refuses what lies outside
  return call.of_tensor(0, [&](const auto& t) { return at_coordinate(t, c); });
}

Value call_swizzle(const Call& call) {
  const Swizzle swizzle = make_swizzle(call.number(0), call.number(1), call.number(2));
  if (const auto* l = std::get_if<Layout>(&call[3])) return composition(swizzle, *l);
  const std::int64_t offset = call.number(3);
  if (offset < 0) throw Error("swizzle: the offset must not be negative.");
  return swizzle(offset);
}

Value call_tile_to_shape(const Call& call) {
  return call.inside([&](const Layout& l) {
    const Tuple target = call.shape_at(1);
    return call.count() == 3 ? tile_to_shape(l, target, call.shape_at(2))
                             : tile_to_shape(l, target);
  });
}

Value call_coalesce(const Call& call) {
  return call.inside([&](const Layout& l) {
    return call.count() == 1 ? coalesce(l) : coalesce(l, call.shape_at(1));
  });
}

Value call_mode(const Call& call) {
  return call.inside([&](const Layout& l) {
    const std::int64_t i = call.number(1);
    if (i < 0 || i >= rank(l)) refuse("there is no mode {} in {}.", i, l);
    return mode(l, static_cast<int>(i));
  });
}

}  // namespace

std::span<const Function> algebra_functions() {
  static const Function functions[] = {
      {"coalesce", "coalesce(A), coalesce(A, profile)", 1, 2, call_coalesce},
      {"composition", "composition(A, B)", 2, 2, call_composition},
      {"complement", "complement(A, n), complement(A)", 1, 2, call_complement},
      {"right_inverse", "right_inverse(A)", 1, 1,
       [](const Call& call) { return Value(right_inverse(call.layout_at(0))); }},
      {"left_inverse", "left_inverse(A)", 1, 1,
       [](const Call& call) { return Value(left_inverse(call.layout_at(0))); }},
      {"logical_divide", "logical_divide(A, B)", 2, 2,
       [](const Call& call) {
         return tiled(call, [](const Layout& a, const auto& b) { return logical_divide(a, b); });
       }},
      {"zipped_divide", "zipped_divide(A, B)", 2, 2,
       [](const Call& call) {
         return tiled(call, [](const Layout& a, const auto& b) { return zipped_divide(a, b); });
       }},
      {"tiled_divide", "tiled_divide(A, B)", 2, 2,
       [](const Call& call) {
         return tiled(call, [](const Layout& a, const auto& b) { return tiled_divide(a, b); });
       }},
      {"logical_product", "logical_product(A, B)", 2, 2,
       [](const Call& call) {
         return tiled(call, [](const Layout& a, const auto& b) { return logical_product(a, b); });
       }},
      {"blocked_product", "blocked_product(A, B)", 2, 2,
       [](const Call& call) {
         return call.inside([&](const Layout& l) { return blocked_product(l, call.layout_at(1)); });
       }},
      {"raked_product", "raked_product(A, B)", 2, 2,
       [](const Call& call) {
         return call.inside([&](const Layout& l) { return raked_product(l, call.layout_at(1)); });
       }},
      {"tile_to_shape", "tile_to_shape(A, shape), tile_to_shape(A, shape, order)", 2, 3,
       call_tile_to_shape},
      {"flatten", "flatten(A)", 1, 1,
       [](const Call& call) { return call.inside([](const Layout& l) { return flatten(l); }); }},
      {"filter", "filter(A)", 1, 1,
       [](const Call& call) { return Value(filter(call.layout_at(0))); }},
      {"mode", "mode(A, i)", 2, 2, call_mode},
      {"size", "size(A)", 1, 1, [](const Call& call) { return Value(size(call.domain())); }},
      {"cosize", "cosize(A)", 1, 1, [](const Call& call) { return Value(cosize(call.domain())); }},
      {"rank", "rank(A)", 1, 1,
       [](const Call& call) { return Value(std::int64_t{rank(call.domain())}); }},
      {"depth", "depth(A)", 1, 1,
       [](const Call& call) { return Value(std::int64_t{depth(call.domain())}); }},
      {"at", "at(A, i), at(A, (i,j))", 2, SIZE_MAX, call_at},
      {"swizzle", "swizzle(bits, base, shift, offset)", 4, 4, call_swizzle},
  };
  return functions;
}

}  // namespace warpwright::layout
