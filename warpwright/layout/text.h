#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "warpwright/layout/layout.h"
#include "warpwright/layout/tensor.h"

/// Layouts as text, in the notation CuTe prints: `((2,4),8):((1,16),2)`. Static integers may be
/// written with CuTe's underscore (`_8`); what is printed has none. A `_` by itself is kAll, and
/// `X` 0, as a projection has them.
namespace warpwright::layout {

std::string to_text(const Leaf& leaf);
std::string to_text(const Tuple& tuple);
std::string to_text(const Layout& layout);
std::string to_text(const Swizzle& swizzle);
std::string to_text(const ComposedLayout& layout);
std::string to_text(const CoordinateTensor& tensor);
/// `Sw<3,4,3>_smem_ptr[16b](0x400)`: the address is in bytes, `.4` behind it four bits more.
std::string to_text(const Pointer& pointer);
std::string to_text(const Tensor& tensor);

std::ostream& operator<<(std::ostream& out, const Tuple& tuple);
std::ostream& operator<<(std::ostream& out, const Layout& layout);
std::ostream& operator<<(std::ostream& out, const ComposedLayout& layout);
std::ostream& operator<<(std::ostream& out, const CoordinateTensor& tensor);

/// Reads a text from left to right. Blanks between tokens are skipped.
class Reader {
 public:
  explicit constexpr Reader(std::string_view text) : text_(text) {}

  constexpr char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n'))
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  constexpr bool accept(char c) {
    if (peek() != c || c == '\0') return false;
    ++at_;
    return true;
  }
  /// Accepts a whole word (letters, digits and underscores after a first letter).
  constexpr std::string_view word() {
    peek();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || (at_ > begin && is_digit(text_[at_])) ||
                                  (at_ > begin && text_[at_] == '_')))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }
  constexpr std::int64_t position() const { return static_cast<std::int64_t>(at_); }
  constexpr void rewind(std::int64_t position) { at_ = static_cast<std::size_t>(position); }

  constexpr void expect(char c) {
    if (accept(c)) return;
    switch (c) {
      case ')':
        refuse("a ')' is missing at character {} of the text.", position() + 1);
      case ',':
        refuse("a ',' is missing at character {} of the text.", position() + 1);
      case ':':
        refuse("a ':' is missing at character {} of the text.", position() + 1);
      case '<':
        refuse("a '<' is missing at character {} of the text.", position() + 1);
      case '>':
        refuse("a '>' is missing at character {} of the text.", position() + 1);
      case '=':
        refuse("a '=' is missing at character {} of the text.", position() + 1);
      case '[':
        refuse("a '[' is missing at character {} of the text.", position() + 1);
      case ']':
        refuse("a ']' is missing at character {} of the text.", position() + 1);
      case '(':
        refuse("a '(' is missing at character {} of the text.", position() + 1);
      default:
        refuse("the text is not understood at character {}.", position() + 1);
    }
  }

  /// `8`, `_8` or `-8`.
  constexpr std::int64_t integer() {
    peek();
    bool negative = accept('-');
    if (accept('_') && !negative && at_ < text_.size() && text_[at_] == '-') {
      negative = true;
      ++at_;
    }
    if (at_ >= text_.size() || !is_digit(text_[at_]))
      refuse("an integer is missing at character {} of the text.", position() + 1);
    std::int64_t value = 0;
    while (at_ < text_.size() && is_digit(text_[at_])) {
      if (value >= kMaxMagnitude / 10)
        refuse("the integer at character {} of the text leaves the range of 62 bits.",
               position() + 1);
      value = value * 10 + (text_[at_++] - '0');
    }
    return negative ? -value : value;
  }

  /// An integer, with `@k` or `@j@k` behind it; `_` or `X`.
  constexpr Leaf leaf() {
    const char first = peek();
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (first == 'X' && !is_letter(next)) return ++at_, Leaf{0, -1};
    if (first == '_' && !is_digit(next) && next != '-') return ++at_, Leaf{kAll, -1};
    Leaf leaf{integer(), -1};
    while (accept('@')) {
      const std::int64_t k = integer();
      if (k < 0 || k > 30) refuse("the basis @{} does not exist: it must be 0 to 30.", k);
      if (leaf.basis >= (1 << 20)) refuse("a basis of more than four levels is not supported.");
      // The text names the outermost level last; it is kept in the lowest bits.
      const std::int32_t inner = leaf.basis == -1 ? 0 : inner_path(leaf.basis);
      leaf.basis = static_cast<std::int32_t>(k) + inner;
    }
    return leaf;
  }

  /// A leaf or a parenthesised list of trees.
  constexpr Tuple tree(int depth = 0) {
    if (!accept('(')) {
      Tuple t;
      t.count = 1;
      t.leaf[0] = leaf();
      return t;
    }
    if (depth == 100) refuse("the nesting is deeper than 100 levels.");
    detail::Builder<Tuple> builder;
    if (peek() == ')') refuse("an empty '()' stands at character {} of the text.", position() + 1);
    do builder.add(tree(depth + 1));
    while (accept(','));
    expect(')');
    return builder.tuple();
  }

  /// `Sw<3,4,3>`, its `Sw` already read.
  constexpr Swizzle swizzle() {
    expect('<');
    const std::int64_t bits = integer();
    expect(',');
    const std::int64_t base = integer();
    expect(',');
    const std::int64_t shift = integer();
    expect('>');
    return make_swizzle(bits, base, shift);
  }

  /// `[16b](0x400)` or `[16b](unset)`, its space already read.
  constexpr Pointer pointer(Space space) {
    Pointer pointer{space};
    expect('[');
    const std::int64_t bits = integer();
    if (bits < 1 || bits > 128 || word() != "b")
      refuse("a pointer is written smem_ptr[16b](0x400), with its elements' bits, 1 to 128.");
    pointer.bits = static_cast<int>(bits);
    expect(']');
    expect('(');
    if (accept('0') && at_ < text_.size() && text_[at_] == 'x') {
      ++at_;
      pointer.is_set = true;
      pointer.address = 8 * hexadecimal();
      if (accept('.')) pointer.address += integer() & 7;
    } else if (word() != "unset") {
      refuse("a pointer's address is written 0x400, or unset where it has none.");
    }
    expect(')');
    return pointer;
  }

  /// The `o` between the parts of a composed layout.
  constexpr bool accept_circle() {
    const std::int64_t begin = position();
    if (word() == "o") return true;
    rewind(begin);
    return false;
  }
  constexpr void expect_circle() {
    if (!accept_circle()) refuse("an 'o' is missing at character {} of the text.", position() + 1);
  }

  /// `shape:stride`, or only a shape for its compact layout.
  constexpr Layout layout() {
    const Tuple shape = tree();
    return accept(':') ? make_layout(shape, tree()) : make_layout(shape);
  }

  constexpr void end() {
    if (peek() == ')') refuse("a ')' too many stands at character {} of the text.", position() + 1);
    if (peek() != '\0') refuse("the text goes on at character {} after its end.", position() + 1);
  }

 private:
  static constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static constexpr bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  constexpr std::int64_t hexadecimal() {
    std::int64_t value = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) break;
      value = value * 16 + digit;
      if (value >= std::int64_t{1} << 56) refuse("an address has at most 56 bits.");
    }
    if (at_ == begin) refuse("a digit is missing at character {} of the text.", position() + 1);
    return value;
  }
  /// One level further in: the lowest level moves up and gets the mark of an inner one.
  static constexpr std::int32_t inner_path(std::int32_t basis) {
    return ((basis & 31) + 1) << 5 | (basis >> 5) << 10;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Reads a layout; the stride may be left out for the compact one.
constexpr Layout parse_layout(std::string_view text) {
  Reader reader(text);
  const Layout layout = reader.layout();
  reader.end();
  return layout;
}

/// Reads `Sw<3,4,3> o 0 o (8,64):(64,1)`.
constexpr ComposedLayout parse_composed_layout(std::string_view text) {
  Reader reader(text);
  if (reader.word() != "Sw") refuse("a composed layout begins with 'Sw<'.");
  ComposedLayout composed;
  composed.swizzle = reader.swizzle();
  reader.expect_circle();
  composed.offset = reader.integer();
  reader.expect_circle();
  composed.layout = reader.layout();
  reader.end();
  return composed;
}

/// Reads `ArithTuple(0,128) o (((64,128),1),4):(((1@0,1@1),0),64@0)`.
constexpr CoordinateTensor parse_coordinate_tensor(std::string_view text) {
  Reader reader(text);
  if (reader.word() != "ArithTuple") refuse("a coordinate tensor begins with 'ArithTuple'.");
  CoordinateTensor tensor;
  tensor.origin = reader.tree();
  reader.expect_circle();
  tensor.layout = reader.layout();
  reader.end();
  return tensor;
}

/// Reads a tree of integers: a shape, a stride or a coordinate.
constexpr Tuple parse_tuple(std::string_view text) {
  Reader reader(text);
  const Tuple tuple = reader.tree();
  reader.end();
  return tuple;
}

inline namespace literals {

/// `"(8,16):(16,1)"_layout`, read when the program is compiled.
consteval Layout operator""_layout(const char* text, std::size_t length) {
  return parse_layout({text, length});
}
consteval Tuple operator""_tuple(const char* text, std::size_t length) {
  return parse_tuple({text, length});
}

}  // namespace literals

}  // namespace warpwright::layout
