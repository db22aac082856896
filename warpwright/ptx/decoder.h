// From statements to operations. A form is an opcode with all of its modifiers; a table has every
// form of the subset, and what it does with its operands. Internal to ptx/.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "warpwright/ptx/program.h"

namespace warpwright::ptx {

class Decoder;

/// What `operands` says of each operand, in their order: written P a predicate, B 8, H 16, I 32,
/// L 64, Q 128 bits; read p, b, h, i, l, q, and f a float32, F a float64; s an address of shared
/// memory, g one of 64 bits. # is no operand, but the number Form::x. Others decode by themselves.
struct Form {
  Run run = nullptr;
  std::string operands;
  void (*decode)(Decoder& decoder, const Statement& s, const Form& form) = nullptr;
  std::uint32_t x = 0;  ///< for `decode`, and Op::x of what has none
  std::uint32_t y = 0;
};

using Forms = std::unordered_map<std::string, Form>;

// What each file of forms adds.
void add_arithmetic(Forms& forms);
void add_floats(Forms& forms);
void add_conversions(Forms& forms);
void add_memory(Forms& forms);
void add_synchronisation(Forms& forms);
void add_copies(Forms& forms);
void add_matrices(Forms& forms);
void add_register_mmas(Forms& forms);
void add_tensor_memory(Forms& forms);
void add_launch_control(Forms& forms);

/// All of them.
const Forms& all_forms();
/// Is this opcode, which may have hints, one of them?
bool is_known(std::string_view opcode);

class Decoder {
 public:
  Decoder(const Module& module, const Entry& entry, Program& program);
  void decode();

  // --- for forms
  [[noreturn]] void fault(const std::string& sentence) const;
  /// Where an operand lies that is read or written as Form::operands says.
  std::uint32_t read(const Operand& o, char kind);
  std::uint32_t write(const Operand& o, char kind);
  /// The register of an operand, of any width; its bits.
  std::uint32_t place(const Operand& o) const;
  [[nodiscard]] int bits(const Operand& o) const;
  /// An address: where its base lies, and whether that has 64 bits.
  struct Address {
    std::uint32_t base = 0;
    bool wide = false;
    std::int32_t offset = 0;
  };
  Address address(const Operand& o);
  /// An address of shared memory in one register: an operation adds the offset, if there is one.
  std::uint32_t shared_address(const Operand& o);
  /// The same of 64 bits.
  std::uint32_t wide_address(const Operand& o);
  /// An integer that is written out.
  std::int64_t immediate(const Operand& o);
  /// A run of `n` operands.
  void need(const Statement& s, std::size_t least, std::size_t most);
  std::uint32_t constant(std::uint64_t value, bool wide);
  /// Registers that nobody reads, of up to 128 bits.
  std::uint32_t scratch();
  /// One of 32 bits that only one operation uses.
  std::uint32_t reserve() { return take(32); }
  /// Where these words lie in Program::words from now on.
  std::uint32_t keep_words(std::span<const std::uint32_t> words);
  std::uint32_t keep_words(std::initializer_list<std::uint32_t> words) {
    return keep_words(std::span(words.begin(), words.size()));
  }
  /// Adds an operation; its place is filled in.
  void emit(Op op);
  Program& program() { return program_; }
  const Entry& entry() const { return entry_; }
  const Target& target() const { return module_.target; }
  std::string_view opcode() const { return statement_->opcode; }
  /// The statement that a label names.
  std::uint32_t label(const Operand& o);
  /// Which run of accumulators begins with this register of the text; -1 for none.
  [[nodiscard]] int run_of(int reg) const;

 private:
  std::uint32_t place_of(int line);
  [[nodiscard]] std::string source_text(int line) const;
  void lay_out_registers();
  [[nodiscard]] std::vector<const Variable*> named_variables() const;
  void lay_out_variables();
  void run_together(const Operand& list);
  void decode(const Statement& s);
  void generic(const Statement& s, const Form& form);
  void touch(const Statement& s);
  std::uint32_t take(int bits);
  /// A register of `width` bits with the address, whose offset `add` adds; its own where it has
  /// none.
  std::uint32_t at_offset(const Address& a, int width, Run add);
  std::uint32_t named(const Operand& o, bool wide);
  std::uint32_t given(Given what, std::uint64_t value, bool wide);

  const Module& module_;
  const Entry& entry_;
  Program& program_;
  const Statement* statement_ = nullptr;
  std::vector<std::uint32_t> at_;    // of the registers of the text
  std::vector<int> run_;             // that they belong to, or -1
  std::vector<int> after_, before_;  // neighbours in an accumulator
  std::vector<bool> from_peers_;     // loaded from the shared memory of others
  std::unordered_map<std::uint64_t, std::uint32_t> constants_[2];
  std::unordered_map<std::string, std::uint32_t> givens_;
  std::unordered_map<std::string_view, const Variable*> variables_;
  std::unordered_map<const Variable*, std::uint64_t> offsets_;
  std::uint32_t scratch_ = 0;
  bool has_scratch_ = false;
};

/// Decodes an entry of a module. Throws Fault.
Program decode(const Module& module, std::string name, std::string_view entry);

}  // namespace warpwright::ptx
