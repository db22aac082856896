// A PTX text as it is written: variables, entries, and their statements. Names point into the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "warpwright/ptx/targets.h"

namespace warpwright::ptx {

/// What is wrong with a text, at one of its lines (0: with no line of it), or with what is asked of
/// it.
struct Fault : std::runtime_error {
  Fault(int at, const std::string& sentence) : std::runtime_error(sentence), line(at) {}
  int line;
};

/// State spaces (PTX ISA 5.1).
enum class Space : std::uint8_t { generic, param, constant, global, shared, local };

/// Versions of the language that this room knows: from the first that has sm_75 to all of 9.
inline constexpr int kOldestVersion = 63;
inline constexpr int kNewestVersion = 99;

struct Register {
  std::string_view name;
  int bits = 32;  ///< 1: a predicate
};

/// An operand, or a part of one.
struct Operand {
  enum class Kind : std::uint8_t {
    reg,
    number,   ///< of `bits`; `value` where it was written as a decimal fraction
    name,     ///< a variable, a label, a special register
    address,  ///< [parts[0] + offset], of a tensor copy [parts[0], {parts[1]...}]
    list,     ///< {parts...}
    pair,     ///< parts[0]|parts[1]
    sink,     ///< _
  };
  enum class Number : std::uint8_t { integer, f32, f64, decimal };
  Kind kind = Kind::sink;
  Number number = Number::integer;
  bool negated = false;  ///< !p
  int reg = -1;
  std::uint64_t bits = 0;
  double value = 0;
  std::int64_t offset = 0;  ///< of an address or a name
  std::string_view name = {};
  std::vector<Operand> parts = {};
};

struct Statement {
  int line = 0;
  int scope = 0;   ///< where its names are looked up
  int guard = -1;  ///< a predicate
  bool guard_not = false;
  std::string_view opcode;
  std::vector<Operand> operands;
};

struct Variable {
  std::string_view name = {};
  Space space = Space::global;
  std::int64_t bytes = 0;
  int align = 1;
  bool is_extern = false;            ///< of shared memory: what the launch adds
  std::vector<std::byte> data = {};  ///< what it begins with
};

struct Label {
  int scope = 0;
  std::string_view name;
  std::size_t at = 0;  ///< the statement behind it
};

/// A kernel.
struct Entry {
  std::string_view name;
  int line = 0;
  std::vector<Variable> params;
  std::vector<Variable> variables;  ///< of its own, shared and local
  std::vector<Register> registers;
  std::vector<Statement> statements;
  std::vector<Label> labels;
  std::vector<int> outer;  ///< of each scope, the one around it; -1 for the first
  int max_threads = 0;     ///< .maxntid, or .reqntid
  int min_ctas = 1;        ///< .minnctapersm
  int max_registers = 0;   ///< .maxnreg
};

/// A line of the source that the text was made of.
struct Source {
  int file = 0;
  int line = 0;
  int column = 0;
  friend bool operator<(const Source& a, const Source& b) {
    return std::tie(a.file, a.line, a.column) < std::tie(b.file, b.line, b.column);
  }
};

struct Module {
  std::unique_ptr<const std::string> text;
  int version = 0;  ///< 90: 9.0
  Target target;
  std::vector<Variable> variables;
  std::vector<Entry> entries;
  std::map<int, std::string_view> files;
  std::vector<std::pair<int, Source>> sources;  ///< from which line of the text on
  std::map<Source, Source> inlined;             ///< what is inlined, and where
};

/// Reads a text. Throws Fault.
Module parse(std::string text);

}  // namespace warpwright::ptx
