#include "warpwright/layout/expression.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "warpwright/layout/call.h"
#include "warpwright/layout/error.h"
#include "warpwright/layout/text.h"
#include "warpwright/layout/value_at.h"

namespace warpwright::layout {
namespace {

// ---------------------------------------------------------------- reading

constexpr int kDeepest = 60;

class Parser {
 public:
  Parser(std::string_view text, std::span<const Function> more)
      : reader_(text), functions_{algebra_functions(), tensor_functions(), more} {}

  Value whole() {
    if (reader_.peek() == '\0') throw Error("the expression is empty.");
    for (;;) {
      Value value = statement();
      if (!reader_.accept(';') || reader_.peek() == '\0') {
        reader_.end();
        return value;
      }
    }
  }

 private:
  /// `a = EXPR`, `[a, b] = tma_partition(...)`, or an expression.
  Value statement() {
    if (reader_.accept('[')) return pair();
    const std::int64_t begin = reader_.position();
    const std::string name(reader_.word());
    if (name.empty() || !reader_.accept('=')) {
      reader_.rewind(begin);
      return expression(0);
    }
    expect_free(name);
    return names_[name] = expression(0);
  }

  Value pair() {
    std::string name[2];
    for (int i = 0; i < 2; ++i) {
      if (i == 1) reader_.expect(',');
      name[i] = reader_.word();
      if (name[i].empty())
        throw Error("between '[' and ']' stand the names of both sides of a TMA copy.");
      expect_free(name[i]);
    }
    reader_.expect(']');
    reader_.expect('=');
    Value value = expression(0);
    const auto* sides = std::get_if<TmaSides>(&value);
    if (sides == nullptr)
      throw Error("two names in brackets are of what tma_partition gives, and this is one " +
                  std::string(kind_of(value)) + ".");
    names_[name[0]] = sides->gmem;
    names_[name[1]] = std::visit([](const auto& smem) { return Value(smem); }, sides->smem);
    return value;
  }

  void expect_free(const std::string& name) const {
    if (function(name) != nullptr || name == "Sw" || name == "ArithTuple" || name == "X" ||
        name == "smem_ptr" || name == "gmem_ptr")
      throw Error("'" + name + "' is taken: call the value by another name.");
  }

  Value expression(int depth) {
    if (depth > kDeepest)
      throw Error("the expression nests calls deeper than " + std::to_string(kDeepest) +
                  " levels.");
    if (reader_.peek() == '<') return tiler(depth);
    const std::int64_t begin = reader_.position();
    const std::string name(reader_.word());
    if (name.empty() || name == "X") {
      reader_.rewind(begin);
      return literal(depth);
    }
    if (name == "Sw") return swizzle(depth);
    if (name == "smem_ptr" || name == "gmem_ptr") return tensor(name, Swizzle{}, depth);
    if (name == "ArithTuple") {
      const Tuple origin = reader_.tree();
      reader_.expect_circle();
      return CoordinateTensor{origin, inner_layout("a coordinate tensor", depth)};
    }
    if (reader_.peek() == '(') return call(name, depth);
    if (const auto found = names_.find(name); found != names_.end()) return found->second;
    if (name.starts_with("SM") || name == "UniversalCopy") return Word{name};
    return call(name, depth);
  }

  Layout inner_layout(const char* of, int depth) {
    return Call(of, {expression(depth + 1)}).layout_at(0);
  }

  Value literal(int depth) {
    const Tuple tree = reader_.tree();
    if (reader_.accept(':')) return make_layout(tree, reader_.tree());
    if (detail::is_leaf(tree) && tree.leaf[0].basis == -1 && tree.leaf[0].value != kAll &&
        reader_.accept_circle())
      return value_of(ComposedLayout{Swizzle{}, tree.leaf[0].value,
                                     inner_layout("a layout behind an offset", depth)});
    return Shape{tree};
  }

  /// Elements in memory, behind the word of their space.
  Value tensor(const std::string& word, const Swizzle& swizzle, int depth) {
    Pointer pointer = reader_.pointer(word == "smem_ptr" ? Space::shared : Space::global);
    pointer.swizzle = swizzle;
    reader_.expect_circle();
    return Tensor{pointer, inner_layout("a tensor", depth)};
  }

  Value swizzle(int depth) {
    const Swizzle swizzle = reader_.swizzle();
    const bool joined = reader_.accept('_');
    if (!joined && !reader_.accept_circle()) return swizzle;
    const std::int64_t begin = reader_.position();
    const std::string word(reader_.word());
    if (word == "smem_ptr") return tensor(word, swizzle, depth);
    if (joined || !word.empty())
      throw Error("behind a swizzle stands an offset, or smem_ptr, whose addresses it turns.");
    reader_.rewind(begin);
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
    const Function* const found = function(name);
    if (found == nullptr) {
      std::string known;
      for (const std::span<const Function> some : functions_)
        for (const Function& f : some) known += (known.empty() ? "" : ", ") + std::string(f.name);
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
    call.expect_count(found->least, found->most);
    return found->apply(call);
  }

  const Function* function(std::string_view name) const {
    for (const std::span<const Function> some : functions_)
      for (const Function& f : some)
        if (f.name == name) return &f;
    return nullptr;
  }

  Reader reader_;
  std::span<const Function> functions_[3];
  std::map<std::string, Value> names_;
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
  std::string operator()(const Word& word) const { return word.text; }
  std::string operator()(const CopyAtom& atom) const {
    return "Copy_Atom\n  ThrID:        " + layout::to_text(atom.thr_id) +
           "\n  ValLayoutSrc: " + layout::to_text(atom.src) +
           "\n  ValLayoutDst: " + layout::to_text(atom.dst) +
           "\n  ValLayoutRef: " + layout::to_text(atom.ref) +
           "\n  ValueType:    " + std::to_string(atom.bits) + "b";
  }
  std::string operator()(const TiledCopy& copy) const {
    detail::Builder<Tuple> tile;
    for (int m = 0; m < copy.tiler.count; ++m) tile.add(Tuple(size(copy.tiler.tile[m])));
    return "TiledCopy\n  Tiler_MN:       " + layout::to_text(tile.tuple()) +
           "\n  TiledLayout_TV: " + layout::to_text(copy.layout_tv) + "\n" + (*this)(copy.atom);
  }
  std::string operator()(const TmaSides& sides) const {
    return "gmem: " + layout::to_text(sides.gmem) + "\nsmem: " +
           std::visit([](const auto& smem) { return layout::to_text(smem); }, sides.smem);
  }
  template <class T>
  std::string operator()(const T& t) const {
    return layout::to_text(t);
  }
};

/// The value of a layout or a tensor at a coordinate that is known to lie inside.
Value at(const Value& tensor, const Tuple& c) {
  return Call("the table", {tensor}).of_tensor(0, [&](const auto& t) {
    return at_coordinate(t, c);
  });
}

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
      cells.push_back(to_text(at(value, tuple(r, c))));
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

Value evaluate(std::string_view expression, std::span<const Function> more) {
  Value value = Parser(expression, more).whole();
  if (const auto* s = std::get_if<Shape>(&value)) return make_layout(s->tuple);
  if (const auto* word = std::get_if<Word>(&value))
    throw Error(word->text + " is an instruction: make_tma_atom and make_copy_atom take it.");
  return value;
}

std::string to_text(const Value& value) {
  return std::visit(Printer{}, value);
}

std::string to_table(const Value& value) {
  const bool tabular =
      std::holds_alternative<Layout>(value) || std::holds_alternative<ComposedLayout>(value) ||
      std::holds_alternative<CoordinateTensor>(value) || std::holds_alternative<Tensor>(value);
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
    text += layout::to_text(c) + " -> " + to_text(at(value, c)) + "\n";
  }
  return text;
}

std::string expression_help(std::span<const Function> more) {
  std::string text;
  for (const std::span<const Function> some : {algebra_functions(), tensor_functions(), more})
    for (const Function& f : some) text += "  " + std::string(f.usage) + "\n";
  return text;
}

}  // namespace warpwright::layout
