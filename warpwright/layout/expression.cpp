#include "warpwright/layout/expression.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"

namespace warpwright::layout {
namespace {

using Arguments = std::vector<Value>;

// ---------------------------------------------------------------- arguments

const char* kind_of(const Value& value) {
  constexpr std::array<const char*, 8> names = {
      "a layout", "a swizzled layout", "a coordinate tensor", "a coordinate", "a number", "a shape",
      "a tiler",  "a swizzle"};
  return names.at(value.index());
}

/// One call under evaluation: says which argument is wrong.
class Call {
 public:
  Call(std::string name, Arguments arguments)
      : name_(std::move(name)), arguments_(std::move(arguments)) {}

  std::size_t count() const { return arguments_.size(); }
  const Value& operator[](std::size_t i) const { return arguments_.at(i); }

  void expect_count(std::size_t least, std::size_t most) const {
    if (count() >= least && count() <= most) return;
    const std::string wanted = least == most ? std::to_string(least)
                               : most == SIZE_MAX
                                   ? std::to_string(least) + " or more"
                                   : std::to_string(least) + " or " + std::to_string(most);
    throw Error(name_ + " takes " + wanted + (wanted == "1" ? " argument" : " arguments") +
                ", and " + std::to_string(count()) + (count() == 1 ? " is" : " are") + " given.");
  }

  [[noreturn]] void wrong(std::size_t i, const char* wanted) const {
    throw Error(name_ + ": argument " + std::to_string(i + 1) + " must be " + wanted +
                ", and it is " + kind_of(arguments_.at(i)) + ".");
  }

  std::int64_t number(std::size_t i) const {
    const Tuple t = shape_at(i);
    if (!detail::is_leaf(t)) wrong(i, "a number");
    return t.leaf[0].value;
  }

  Tuple shape_at(std::size_t i) const {
    if (const auto* s = std::get_if<Shape>(&(*this)[i])) {
      for (const Leaf& leaf : s->tuple.leaf)
        if (leaf.basis != -1) wrong(i, "a number or a tuple of numbers without a basis");
      return s->tuple;
    }
    if (const auto* t = std::get_if<Tuple>(&(*this)[i])) return *t;
    if (const auto* n = std::get_if<std::int64_t>(&(*this)[i])) return {*n};
    wrong(i, "a number or a tuple of numbers");
  }

  Layout layout_at(std::size_t i) const {
    const Value& v = (*this)[i];
    if (const auto* l = std::get_if<Layout>(&v)) return *l;
    if (std::holds_alternative<Shape>(v) || std::holds_alternative<Tuple>(v) ||
        std::holds_alternative<std::int64_t>(v))
      return make_layout(shape_at(i));
    wrong(i, "a layout");
  }

  /// Calls f(layout, tile) with argument i as a layout, or as a tiler when it cuts mode by mode.
  template <class F>
  Layout with_tile(const Layout& layout, std::size_t i, F f) const {
    if (const auto* tiler = std::get_if<Tiler>(&(*this)[i])) return f(layout, *tiler);
    if (const auto* s = std::get_if<Shape>(&(*this)[i]); s && !detail::is_leaf(s->tuple))
      return f(layout, make_tiler(s->tuple));
    return f(layout, layout_at(i));
  }

  /// Applies f to the layout in argument 0 and leaves a swizzle or an origin around it as it is.
  template <class F>
  Value inside(F f) const {
    if (const auto* c = std::get_if<ComposedLayout>(&(*this)[0]))
      return ComposedLayout{c->swizzle, c->offset, f(c->layout)};
    if (const auto* t = std::get_if<CoordinateTensor>(&(*this)[0]))
      return CoordinateTensor{t->origin, f(t->layout)};
    return f(layout_at(0));
  }

  /// The layout that gives the domain of argument 0.
  Layout domain() const {
    if (const auto* c = std::get_if<ComposedLayout>(&(*this)[0])) return c->layout;
    if (const auto* t = std::get_if<CoordinateTensor>(&(*this)[0])) return t->layout;
    return layout_at(0);
  }

 private:
  std::string name_;
  Arguments arguments_;
};

/// The value of a layout at a coordinate that is known to lie inside.
Value at_coordinate(const Value& layout, const Tuple& c) {
  if (const auto* composed = std::get_if<ComposedLayout>(&layout)) return (*composed)(c);
  if (const auto* tensor = std::get_if<CoordinateTensor>(&layout)) return (*tensor)(c);
  const auto& plain = std::get<Layout>(layout);
  if (has_basis(plain)) return coordinate(plain, c);
  return plain(c);
}

// ---------------------------------------------------------------- functions

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
  return std::visit(
      [&](const auto& v) -> Value {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, ComposedLayout> || std::is_same_v<T, CoordinateTensor>)
          return at_coordinate(v, c);
        else
          return at_coordinate(domain, c);
      },
      call[0]);
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

struct Function {
  std::string_view name;
  std::string_view usage;
  std::size_t least;
  std::size_t most;
  Value (*apply)(const Call&);
};

constexpr Function kFunctions[] = {
    {"coalesce", "coalesce(A), coalesce(A, profile)", 1, 2,
     [](const Call& call) {
       return call.inside([&](const Layout& l) {
         return call.count() == 1 ? coalesce(l) : coalesce(l, call.shape_at(1));
       });
     }},
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
    {"mode", "mode(A, i)", 2, 2,
     [](const Call& call) {
       return call.inside([&](const Layout& l) {
         const std::int64_t i = call.number(1);
         if (i < 0 || i >= rank(l)) refuse("there is no mode {} in {}.", i, l);
         return mode(l, static_cast<int>(i));
       });
     }},
    {"size", "size(A)", 1, 1, [](const Call& call) { return Value(size(call.domain())); }},
    {"cosize", "cosize(A)", 1, 1, [](const Call& call) { return Value(cosize(call.domain())); }},
    {"rank", "rank(A)", 1, 1,
     [](const Call& call) { return Value(std::int64_t{rank(call.domain())}); }},
    {"depth", "depth(A)", 1, 1,
     [](const Call& call) { return Value(std::int64_t{depth(call.domain())}); }},
    {"at", "at(A, i), at(A, (i,j))", 2, SIZE_MAX, call_at},
    {"swizzle", "swizzle(bits, base, shift, offset)", 4, 4, call_swizzle},
};

// ---------------------------------------------------------------- reading

constexpr int kDeepest = 60;

class Parser {
 public:
  explicit Parser(std::string_view text) : reader_(text) {}

  Value whole() {
    if (reader_.peek() == '\0') throw Error("the expression is empty.");
    Value value = expression(0);
    reader_.end();
    return value;
  }

 private:
  Value expression(int depth) {
    if (depth > kDeepest)
      throw Error("the expression nests calls deeper than " + std::to_string(kDeepest) +
                  " levels.");
    if (reader_.peek() == '<') return tiler(depth);
    const std::string name(reader_.word());
    if (name.empty()) return literal();
    if (name == "Sw") return swizzle(depth);
    if (name == "ArithTuple") {
      const Tuple origin = reader_.tree();
      reader_.expect_circle();
      return CoordinateTensor{origin, reader_.layout()};
    }
    return call(name, depth);
  }

  Value literal() {
    const Tuple tree = reader_.tree();
    if (reader_.accept(':')) return make_layout(tree, reader_.tree());
    return Shape{tree};
  }

  Value swizzle(int depth) {
    const Swizzle swizzle = reader_.swizzle();
    if (!reader_.accept_circle()) return swizzle;
    const std::int64_t offset = reader_.integer();
    reader_.expect_circle();
    const Call inner("a swizzled layout", {expression(depth + 1)});
    return ComposedLayout{swizzle, offset, inner.layout_at(0)};
  }

  /// `<4:1, _, (2,4):(1,2)>`
  Value tiler(int depth) {
    Tiler tiler;
    reader_.expect('<');
    do {
      const std::int64_t begin = reader_.position();
      if (reader_.accept('_')) {
        if (reader_.peek() == ',' || reader_.peek() == '>') {
          tiler.add(Layout{}, true);
          continue;
        }
        reader_.rewind(begin);
      }
      const Call inner("a tiler", {expression(depth + 1)});
      tiler.add(inner.layout_at(0));
    } while (reader_.accept(','));
    reader_.expect('>');
    return tiler;
  }

  Value call(const std::string& name, int depth) {
    const auto* function = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                        [&](const Function& f) { return f.name == name; });
    if (function == std::end(kFunctions)) {
      std::string known;
      for (const Function& f : kFunctions)
        known += (known.empty() ? "" : ", ") + std::string(f.name);
      throw Error("there is no function '" + name + "'; there are " + known + ".");
    }
    reader_.expect('(');
    Arguments arguments;
    if (reader_.peek() != ')') {
      do arguments.push_back(expression(depth + 1));
      while (reader_.accept(','));
    }
    reader_.expect(')');
    const Call call(name, std::move(arguments));
    call.expect_count(function->least, function->most);
    return function->apply(call);
  }

  Reader reader_;
};

// ---------------------------------------------------------------- printing

constexpr std::int64_t kLargestTable = 1 << 18;

struct Printer {
  std::string operator()(std::int64_t n) const { return std::to_string(n); }
  std::string operator()(const Shape& s) const { return layout::to_text(make_layout(s.tuple)); }
  std::string operator()(const Tiler& tiler) const {
    std::string text = "<";
    for (int i = 0; i < tiler.count; ++i)
      text += (i > 0 ? "," : "") + (tiler.keep[i] ? "_" : layout::to_text(tiler.tile[i]));
    return text + ">";
  }
  template <class T>
  std::string operator()(const T& t) const {
    return layout::to_text(t);
  }
};

std::string padded(const std::string& text, std::size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::string grid(const Value& value, const Layout& domain) {
  const std::int64_t rows = size(domain, 0);
  const std::int64_t columns = size(domain, 1);
  std::vector<std::string> cells;
  std::size_t width = std::to_string(columns - 1).size();
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      cells.push_back(to_text(at_coordinate(value, tuple(r, c))));
      width = std::max(width, cells.back().size());
    }
  }
  const std::size_t margin = std::to_string(rows - 1).size();
  std::string text(margin + 1, ' ');
  for (std::int64_t c = 0; c < columns; ++c) text += " " + padded(std::to_string(c), width);
  text += "\n";
  auto cell = cells.begin();
  for (std::int64_t r = 0; r < rows; ++r) {
    text += padded(std::to_string(r), margin) + ":";
    for (std::int64_t c = 0; c < columns; ++c) text += " " + padded(*cell++, width);
    text += "\n";
  }
  return text;
}

}  // namespace

Value evaluate(std::string_view expression) {
  Value value = Parser(expression).whole();
  if (const auto* s = std::get_if<Shape>(&value)) return make_layout(s->tuple);
  return value;
}

std::string to_text(const Value& value) {
  return std::visit(Printer{}, value);
}

std::string to_table(const Value& value) {
  const bool tabular = std::holds_alternative<Layout>(value) ||
                       std::holds_alternative<ComposedLayout>(value) ||
                       std::holds_alternative<CoordinateTensor>(value);
  if (!tabular) return {};
  const Layout domain = Call("the table", {value}).domain();
  const std::int64_t n = size(domain);
  if (n > kLargestTable)
    throw Error("a table of " + std::to_string(n) + " elements is too long to print; the most is " +
                std::to_string(kLargestTable) + ".");
  if (rank(domain) == 2) return grid(value, domain);
  // One index a top-level mode, so that the coordinate reads like a loop nest.
  Tuple extents(n);
  if (!detail::is_leaf(domain)) {
    detail::Builder<Tuple> builder;
    for (int m = 0; m < rank(domain); ++m) builder.add(Tuple(size(domain, m)));
    extents = builder.tuple();
  }
  std::string text;
  for (std::int64_t i = 0; i < n; ++i) {
    const Tuple c = to_coordinate(i, extents);
    text += layout::to_text(c) + " -> " + to_text(at_coordinate(value, c)) + "\n";
  }
  return text;
}

std::string expression_help() {
  std::string text;
  for (const Function& f : kFunctions) text += "  " + std::string(f.usage) + "\n";
  return text;
}

}  // namespace warpwright::layout
