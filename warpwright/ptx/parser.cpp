// Recursive descent over the text, character by character: the grammar has no more than statements
// that end in a semicolon, directives that begin with a dot, and scopes in braces (PTX ISA 4).
#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "warpwright/ptx/module.h"

namespace warpwright::ptx {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

// The characters of a text, with the line they are on.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  [[nodiscard]] int line() const { return line_; }
  [[nodiscard]] bool ended() const { return at_ >= text_.size(); }
  [[nodiscard]] char peek() const { return ended() ? '\0' : text_[at_]; }

  [[noreturn]] void fault(const std::string& sentence) const { throw Fault(line_, sentence); }

  /// Over blanks and comments.
  void skip() {
    while (!ended()) {
      const char c = text_[at_];
      if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        step();
      } else if (text_.substr(at_, 2) == "//") {
        while (!ended() && text_[at_] != '\n') step();
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) fault("the comment that begins here has no end");
        while (at_ < end + 2) step();
      } else {
        return;
      }
    }
  }
  bool take(char c) {
    skip();
    if (peek() != c) return false;
    step();
    return true;
  }
  void expect(char c, const char* where) {
    if (take(c)) return;
    fault(std::string("\"") + c + "\" is missing " + where + ": there is " + here());
  }
  /// What stands here, for a sentence.
  [[nodiscard]] std::string here() const {
    if (ended()) return "the end of the text";
    std::size_t end = at_;
    while (end < text_.size() && end < at_ + 40 && text_[end] != '\n') ++end;
    return "\"" + std::string(text_.substr(at_, end - at_)) + "\"";
  }
  /// Letters, digits, _ and $ and %, as names have them; empty where there are none.
  std::string_view word() {
    skip();
    const std::size_t begin = at_;
    if (peek() == '%') step();
    while (!ended() && is_word(peek())) step();
    return text_.substr(begin, at_ - begin);
  }
  std::string_view need_word(const char* what) {
    const std::string_view w = word();
    if (w.empty()) fault(std::string(what) + " is missing: there is " + here());
    return w;
  }
  /// A word with dots and colons, as opcodes and directives have them.
  std::string_view opcode() {
    skip();
    const std::size_t begin = at_;
    while (!ended() && (is_word(peek()) || peek() == '.' || peek() == ':')) step();
    return text_.substr(begin, at_ - begin);
  }
  std::string_view quoted() {
    expect('"', "before a name");
    const std::size_t begin = at_;
    while (!ended() && peek() != '"') step();
    const std::string_view name = text_.substr(begin, at_ - begin);
    expect('"', "behind a name");
    return name;
  }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] std::string_view since(std::size_t begin) const {
    return text_.substr(begin, at_ - begin);
  }
  void step() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }
  void back(std::size_t at) {
    while (at_ > at) {
      if (text_[--at_] == '\n') --line_;
    }
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

// Bits of a fundamental type (PTX ISA 5.2), "b32"; 0 for none.
int bits_of(std::string_view type) {
  if (type == "pred") return 1;
  if (type == "b128") return 128;
  if (type == "f16x2" || type == "bf16x2") return 32;
  if (type == "bf16") return 16;
  if (type.size() < 2 || std::string_view("bsuf").find(type[0]) == std::string_view::npos) return 0;
  const std::string_view digits = type.substr(1);
  for (const int bits : {8, 16, 32, 64}) {
    if (digits == std::to_string(bits)) return bits;
  }
  return 0;
}

constexpr std::int64_t most_registers = 100'000;

class Parser {
 public:
  explicit Parser(Module& module) : module_(module), at_(*module.text) {}

  void parse() {
    header();
    for (at_.skip(); !at_.ended(); at_.skip()) top();
    if (module_.entries.empty()) at_.fault("the text has no .entry");
  }

 private:
  // .version, .target, .address_size.
  void header() {
    at_.skip();
    const std::string found = at_.here();
    if (at_.opcode() != ".version") {
      at_.fault("the text begins with " + found + ", and PTX begins with .version");
    }
    const double version = number(".version").value;
    module_.version = static_cast<int>(std::lround(std::min(version, 1000.0) * 10));
    const auto text = [](int tenths) {
      return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
    };
    const std::string given = ".version " + text(module_.version);
    if (module_.version > kNewestVersion) {
      at_.fault(given + " is newer than what is known: the nearest is 9.0");
    }
    if (module_.version < kOldestVersion) {
      at_.fault(given + " is older than what is known: the nearest is " + text(kOldestVersion));
    }
    at_.skip();
    if (at_.opcode() != ".target") at_.fault("behind .version comes .target");
    const std::string_view name = at_.need_word("the name behind .target");
    const auto target = target_named(name);
    if (!target) {
      at_.fault(".target " + std::string(name) +
                " is none of those that are known: the nearest is " +
                std::string(nearest_target(name)));
    }
    if (module_.version < first_version(*target)) {
      at_.fault(given + " does not know " + std::string(name) + ": the first that does is " +
                text(first_version(*target)));
    }
    module_.target = *target;
    while (at_.take(',')) at_.word();  // debug
    at_.skip();
    const std::size_t begin = at_.at();
    if (at_.opcode() != ".address_size") return at_.back(begin);
    if (number(".address_size").bits != 64) at_.fault(".address_size is not 64");
  }

  // One directive outside of entries.
  void top() {
    bool is_extern = false;
    for (;;) {
      const std::string_view word = at_.opcode();
      if (word == ".extern") {
        is_extern = true;
      } else if (word == ".visible" || word == ".weak" || word == ".common") {
      } else if (word == ".file") {
        return file();
      } else if (word == ".section") {
        return section();
      } else if (word == ".pragma") {
        return pragma();
      } else if (word == ".entry") {
        return entry();
      } else if (const auto space = space_of(word)) {
        variables(*space, is_extern, module_.variables);
        return;
      } else if (word == ".func") {
        at_.fault("functions that are called are not in the subset: have them inlined");
      } else {
        at_.fault((word.empty() ? at_.here() : "\"" + std::string(word) + "\"") +
                  " is no directive that is known; the nearest is .entry");
      }
    }
  }

  static std::optional<Space> space_of(std::string_view word) {
    if (word == ".global") return Space::global;
    if (word == ".const") return Space::constant;
    if (word == ".shared") return Space::shared;
    if (word == ".local") return Space::local;
    return std::nullopt;
  }

  void file() {
    const int index = static_cast<int>(number("a file's number").bits);
    module_.files[index] = at_.quoted();
    while (at_.take(',')) number("a file's time or size");
  }

  // Debug information: what is in its braces.
  void section() {
    at_.opcode();
    at_.expect('{', "behind .section");
    while (!at_.ended() && at_.peek() != '}') at_.step();
    at_.expect('}', "at the end of a section");
  }

  void pragma() {
    at_.quoted();
    at_.expect(';', "behind .pragma");
  }

  // An integer or a floating-point number, with its sign.
  Operand number(const char* what) {
    at_.skip();
    bool negative = false;
    while (at_.peek() == '-' || at_.peek() == '+') {
      negative ^= at_.peek() == '-';
      at_.step();
    }
    const std::size_t begin = at_.at();
    while (is_word(at_.peek()) || at_.peek() == '.') at_.step();
    std::string_view text = at_.since(begin);
    const std::string word(text);
    if (text.empty()) at_.fault(std::string(what) + " is missing: there is " + at_.here());
    Operand n{.kind = Operand::Kind::number};
    const auto parsed = [&](std::string_view digits, int base) {
      const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), n.bits, base);
      if (digits.empty() || end.ec != std::errc{} || end.ptr != digits.data() + digits.size()) {
        at_.fault("\"" + word + "\" is no number");
      }
    };
    if (text.size() == 10 && text[0] == '0' && (text[1] == 'f' || text[1] == 'F')) {
      n.number = Operand::Number::f32;
      parsed(text.substr(2), 16);
      if (negative) n.bits ^= 0x80000000U;
      return n;
    }
    if (text.size() == 18 && text[0] == '0' && (text[1] == 'd' || text[1] == 'D')) {
      n.number = Operand::Number::f64;
      parsed(text.substr(2), 16);
      if (negative) n.bits ^= std::uint64_t{1} << 63;
      return n;
    }
    if (text.find('.') != std::string_view::npos) {
      n.number = Operand::Number::decimal;
      char* end = nullptr;
      n.value = std::strtod(word.c_str(), &end);
      if (*end != '\0') at_.fault("\"" + word + "\" is no number");
      if (negative) n.value = -n.value;
      return n;
    }
    if (text.back() == 'U' || text.back() == 'u') text.remove_suffix(1);
    if (text.starts_with("0x") || text.starts_with("0X")) {
      parsed(text.substr(2), 16);
    } else if (text.starts_with("0b") || text.starts_with("0B")) {
      parsed(text.substr(2), 2);
    } else {
      parsed(text, text.size() > 1 && text[0] == '0' ? 8 : 10);
    }
    if (negative) n.bits = 0 - n.bits;
    n.value = static_cast<double>(static_cast<std::int64_t>(n.bits));
    return n;
  }

  std::int64_t integer(const char* what) { return static_cast<std::int64_t>(number(what).bits); }

  int alignment() {
    const std::int64_t align = integer("an alignment");
    if (align < 1 || align > 4096 || (align & (align - 1)) != 0) {
      at_.fault("an alignment is a power of two up to 4096");
    }
    return static_cast<int>(align);
  }

  // .align 8 .b8 name[24] = {...}, more; behind the space.
  void variables(Space space, bool is_extern, std::vector<Variable>& all) {
    int align = 0;
    int bits = 0;
    int vector = 1;
    for (at_.skip(); at_.peek() == '.'; at_.skip()) {
      const std::string_view word = at_.opcode();
      if (word == ".align") {
        align = alignment();
      } else if (word == ".v2" || word == ".v4") {
        vector = word[2] - '0';
      } else {
        bits = bits_of(word.substr(1));
        if (bits < 8) at_.fault("\"" + std::string(word) + "\" is no type of a variable");
      }
    }
    if (bits == 0) at_.fault("the variable has no type");
    do {
      Variable v{.name = at_.need_word("a variable's name"), .space = space};
      v.is_extern = is_extern;
      v.align = align != 0 ? align : bits / 8 * vector;
      std::int64_t count = vector;
      bool open = false;
      while (at_.take('[')) {
        if (at_.take(']')) {
          open = true;
          continue;
        }
        count *= integer("an extent");
        at_.expect(']', "behind an extent");
      }
      if (at_.take('=')) {
        initial(v, bits / 8);
        if (open) count = static_cast<std::int64_t>(v.data.size()) / (bits / 8);
      } else if (open) {
        count = 0;
      }
      v.bytes = count * bits / 8;
      if (v.bytes < 0 || v.bytes > (std::int64_t{1} << 30)) {
        at_.fault("the variable " + std::string(v.name) + " has no sane number of bytes");
      }
      if (static_cast<std::int64_t>(v.data.size()) > v.bytes) {
        at_.fault("the variable " + std::string(v.name) + " begins with more than it holds");
      }
      all.push_back(std::move(v));
    } while (at_.take(','));
    at_.expect(';', "behind a variable");
  }

  void initial(Variable& v, int bytes) {
    if (at_.take('{')) {
      do {
        initial(v, bytes);
      } while (at_.take(','));
      return at_.expect('}', "behind what a variable begins with");
    }
    at_.skip();
    if (!(std::isdigit(static_cast<unsigned char>(at_.peek())) != 0 || at_.peek() == '-')) {
      at_.fault("variables that begin with an address are not in the subset");
    }
    Operand n = number("what a variable begins with");
    if (n.number == Operand::Number::decimal) {
      n.bits = bytes == 8 ? std::bit_cast<std::uint64_t>(n.value)
                          : std::bit_cast<std::uint32_t>(static_cast<float>(n.value));
    }
    const std::size_t at = v.data.size();
    v.data.resize(at + static_cast<std::size_t>(bytes));
    std::memcpy(v.data.data() + at, &n.bits, static_cast<std::size_t>(bytes));
  }

  // --- entries
  void entry() {
    Entry e;
    e.line = at_.line();
    e.name = at_.need_word("an entry's name");
    if (at_.take('(') && !at_.take(')')) {
      do {
        if (at_.opcode().empty())
          at_.fault("a parameter of " + std::string(e.name) + " has no .param");
        std::vector<Variable> one;
        parameter(one);
        e.params.push_back(std::move(one.front()));
      } while (at_.take(','));
      at_.expect(')', "behind the parameters");
    }
    for (at_.skip(); at_.peek() == '.'; at_.skip()) performance_directive(e);
    if (at_.take(';')) return;  // declared, no more
    at_.expect('{', "before the body of an entry");
    entry_ = &e;
    scopes_.clear();
    e.outer = {-1};
    scopes_.push_back({0, {}, {}});
    body();
    module_.entries.push_back(std::move(e));
  }

  void parameter(std::vector<Variable>& to) {
    Variable v{.space = Space::param};
    int bits = 0;
    bool aligned = false;
    for (at_.skip(); at_.peek() == '.'; at_.skip()) {
      const std::string_view word = at_.opcode();
      if (word == ".align") {
        v.align = alignment();
        aligned = true;
      } else if (word == ".ptr" || space_of(word)) {
      } else {
        bits = bits_of(word.substr(1));
        if (bits < 8) at_.fault("\"" + std::string(word) + "\" is no type of a parameter");
      }
    }
    v.name = at_.need_word("a parameter's name");
    v.bytes = bits / 8;
    if (!aligned) v.align = bits / 8;
    while (at_.take('[')) {
      v.bytes *= integer("an extent");
      at_.expect(']', "behind an extent");
    }
    if (v.bytes <= 0 || v.bytes > 32764) {
      at_.fault("the parameter " + std::string(v.name) + " has no sane number of bytes");
    }
    to.push_back(std::move(v));
  }

  void performance_directive(Entry& e) {
    const std::string_view word = at_.opcode();
    if (word == ".pragma") return pragma();
    if (word == ".noreturn" || word == ".explicitcluster") return;
    int product = 1;
    do {
      product *= static_cast<int>(integer("a number of threads"));
    } while (at_.take(','));
    if (word == ".maxntid" || word == ".reqntid") e.max_threads = product;
    if (word == ".minnctapersm") e.min_ctas = std::max(product, 1);
    if (word == ".maxnreg") e.max_registers = product;
  }

  struct Scope {
    int number;
    std::unordered_map<std::string_view, int> registers;
    struct Range {
      std::string_view prefix;
      int first;
      int count;
    };
    std::vector<Range> ranges;
  };

  void body() {
    for (;;) {
      at_.skip();
      if (at_.ended()) {
        at_.fault("the text ends inside of the entry " + std::string(entry_->name));
      }
      if (at_.take('{')) {
        entry_->outer.push_back(scopes_.back().number);
        scopes_.push_back({static_cast<int>(entry_->outer.size()) - 1, {}, {}});
      } else if (at_.take('}')) {
        scopes_.pop_back();
        if (scopes_.empty()) return;
      } else if (at_.peek() == '.') {
        directive();
      } else {
        statement();
      }
    }
  }

  void directive() {
    const std::string_view word = at_.opcode();
    if (word == ".reg") return registers();
    if (word == ".loc") return loc();
    if (word == ".pragma") return pragma();
    if (word == ".file") return file();
    if (const auto space = space_of(word)) return variables(*space, false, entry_->variables);
    at_.fault("\"" + std::string(word) +
              "\" is no directive of a body that is known; the nearest is .reg");
  }

  void registers() {
    const std::string_view type = at_.opcode();
    const int bits = bits_of(type.empty() ? type : type.substr(1));
    if (bits == 0) {
      at_.fault("registers of the type \"" + std::string(type) + "\" are not in the subset");
    }
    Scope& scope = scopes_.back();
    do {
      const std::string_view name = at_.need_word("a register's name");
      const int first = static_cast<int>(entry_->registers.size());
      std::int64_t count = 1;
      if (at_.take('<')) {
        count = integer("a number of registers");
        at_.expect('>', "behind a number of registers");
        if (count < 0 || first + count > most_registers) {
          at_.fault("the entry has more than " + std::to_string(most_registers) + " registers");
        }
        scope.ranges.push_back({name, first, static_cast<int>(count)});
      } else {
        scope.registers[name] = first;
      }
      entry_->registers.resize(static_cast<std::size_t>(first + count), {name, bits});
    } while (at_.take(','));
    at_.expect(';', "behind registers");
  }

  // The register of that name, or -1.
  int find_register(std::string_view name) const {
    std::size_t digits = name.size();
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1])) != 0) --digits;
    const std::string_view prefix = name.substr(0, digits);
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto it = scope->registers.find(name); it != scope->registers.end()) {
        return it->second;
      }
      for (const Scope::Range& range : scope->ranges) {
        int index = 0;
        if (range.prefix != prefix) continue;
        const auto end = std::from_chars(name.data() + digits, name.data() + name.size(), index);
        if (end.ec == std::errc{} && index < range.count) return range.first + index;
      }
    }
    return -1;
  }

  // .loc 8 29 3, function_name $L__info_string13, inlined_at 7 157 7
  void loc() {
    const int line = at_.line();
    const auto source = [&] {
      Source s;
      s.file = static_cast<int>(integer("a file's number"));
      s.line = static_cast<int>(integer("a line"));
      s.column = static_cast<int>(integer("a column"));
      return s;
    };
    const Source here = source();
    while (at_.take(',')) {
      const std::string_view what = at_.word();
      if (what == "inlined_at") {
        module_.inlined[here] = source();
      } else {
        at_.word();
        if (at_.take('+')) integer("an offset");
      }
    }
    if (here.line > 0) module_.sources.emplace_back(line, here);
  }

  void statement() {
    Statement s;
    s.scope = scopes_.back().number;
    if (at_.take('@')) {
      s.guard_not = at_.take('!');
      const std::string_view name = at_.need_word("a predicate");
      s.guard = find_register(name);
      if (s.guard < 0) at_.fault("there is no predicate " + std::string(name));
      at_.skip();
    }
    s.line = at_.line();
    const std::size_t begin = at_.at();
    s.opcode = at_.opcode();
    if (s.opcode.empty()) at_.fault("an instruction is missing: there is " + at_.here());
    if (s.opcode.back() == ':' && s.guard < 0) {
      s.opcode.remove_suffix(1);
      entry_->labels.push_back({s.scope, s.opcode, entry_->statements.size()});
      return;
    }
    if (s.opcode[0] == '$' || std::isdigit(static_cast<unsigned char>(s.opcode[0])) != 0) {
      at_.back(begin);
      at_.fault(at_.here() + " is no instruction");
    }
    if (at_.take(';')) {
      entry_->statements.push_back(std::move(s));
      return;
    }
    do {
      s.operands.push_back(operand());
    } while (at_.take(','));
    at_.expect(';', ("behind " + std::string(s.opcode)).c_str());
    entry_->statements.push_back(std::move(s));
  }

  Operand operand() {
    at_.skip();
    Operand o;
    if (at_.take('{')) {
      o.kind = Operand::Kind::list;
      do {
        o.parts.push_back(operand());
      } while (at_.take(','));
      at_.expect('}', "behind a list of operands");
      return o;
    }
    if (at_.take('[')) {
      o.kind = Operand::Kind::address;
      Operand base = operand();
      o.offset = base.kind == Operand::Kind::name ? std::exchange(base.offset, 0) : 0;
      if (base.kind == Operand::Kind::reg && at_.take('+')) o.offset = integer("an offset");
      o.parts.push_back(std::move(base));
      while (at_.take(',')) {
        Operand list = operand();
        for (Operand& part : list.parts) o.parts.push_back(std::move(part));
      }
      at_.expect(']', "behind an address");
      return o;
    }
    if (at_.take('!')) {
      o = operand();
      o.negated = true;
      return o;
    }
    const char c = at_.peek();
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+') {
      return number("a number");
    }
    const std::string_view name = at_.need_word("an operand");
    if (name == "_") {
      o.kind = Operand::Kind::sink;
    } else if (const int reg = find_register(name); reg >= 0) {
      o.kind = Operand::Kind::reg;
      o.reg = reg;
    } else {
      o.kind = Operand::Kind::name;
      o.name = name;
      if (at_.peek() == '.') {  // %tid.x
        at_.step();
        at_.word();
        o.name = std::string_view(name.data(), name.size() + 2);
      }
      if (at_.take('+')) o.offset = integer("an offset");
    }
    if (at_.take('|')) {
      Operand pair{.kind = Operand::Kind::pair};
      pair.parts.push_back(std::move(o));
      pair.parts.push_back(operand());
      return pair;
    }
    return o;
  }

  Module& module_;
  Cursor at_;
  Entry* entry_ = nullptr;
  std::vector<Scope> scopes_;
};

}  // namespace

Module parse(std::string text) {
  Module module;
  module.text = std::make_unique<const std::string>(std::move(text));
  Parser(module).parse();
  return module;
}

}  // namespace warpwright::ptx
