// wgmma, ldmatrix, stmatrix (PTX ISA 9.7.14.5, 9.7.15).
#include <array>
#include <span>

#include "warpwright/atom/wgmma.h"
#include "warpwright/ptx/forms.h"

namespace warpwright::ptx {
namespace {

std::span<model::FragmentState> accumulators(const Frame& f) {
  return {f.accumulators, f.program->accumulators};
}

// A fence is for all registers, as a wait is: PTX names none.
const Op* fences(Frame& f, const Op* op) {
  for (model::FragmentState& state : accumulators(f)) model::pin_fragment(state);
  model::wgmma_fence(f.site(op));
  return op + 1;
}
const Op* waits(Frame& f, const Op* op) {
  model::wgmma_wait(static_cast<int>(op->x), false, f.site(op));
  for (model::FragmentState& state : accumulators(f)) model::pin_fragment(state);
  return op + 1;
}
void decode_wait(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 1, 1);
  const std::int64_t pending = d.immediate(s.operands[0]);
  if (pending < 0 || pending > 7) d.fault("wgmma.wait_group takes 0 to 7 pending groups");
  d.emit({.run = form.run, .x = static_cast<std::uint32_t>(pending)});
}

// Types of A, B and the sums, and whether these saturate: Form::x.
struct WgmmaForm {
  DType a = DType::bf16;
  DType b = DType::bf16;
  DType sums = DType::f32;
  bool saturates = false;

  [[nodiscard]] std::uint32_t word() const {
    const auto u = [](DType type) { return static_cast<std::uint32_t>(type); };
    return u(a) | u(b) << 8 | u(sums) << 16 | (saturates ? 1U << 24 : 0);
  }
};
WgmmaForm wgmma_form(std::uint32_t word) {
  const auto type = [word](int at) { return static_cast<DType>(word >> at & 0xffU); };
  return {type(0), type(8), type(16), word >> 24 != 0};
}

// In Program::words from Op::x on: the run of the accumulator, that of A's registers, types, N, and
// which operands are MN-major.
constexpr std::uint32_t kNone = ~0U;
const Op* multiplies(Frame& f, const Op* op) {
  const std::uint32_t* more = f.program->words.data() + op->x;
  model::WgmmaRequest request;
  const WgmmaForm types = wgmma_form(more[2]);
  request.type = types.a;
  request.type_b = types.b;
  request.sums = types.sums;
  request.saturates = types.saturates;
  request.n = static_cast<int>(more[3]);
  request.descriptor_b = f.get<std::uint64_t>(op->b);
  request.major_a = (more[4] & 1U) != 0 ? atom::Major::mn : atom::Major::k;
  request.major_b = (more[4] & 2U) != 0 ? atom::Major::mn : atom::Major::k;
  request.accumulate = f.r[op->c] != 0;
  request.fragment = reinterpret_cast<float*>(f.r + op->d);
  request.state = &f.accumulators[more[0]];
  if (more[1] != kNone) {
    request.registers_a = f.r + op->a;
    request.state_a = &f.accumulators[more[1]];
  } else {
    request.descriptor_a = f.get<std::uint64_t>(op->a);
  }
  model::wgmma(request, f.site(op));
  return op + 1;
}

// {d}, a or {a}, b, scale-d, and of floats 1, 1 {, trans-a} {, trans-b}; Form::x: a WgmmaForm;
// Form::y: N.
void decode_multiplication(Decoder& d, const Statement& s, const Form& form) {
  const bool from_registers = s.operands.size() > 1 && s.operands[1].kind == Operand::Kind::list;
  const WgmmaForm types = wgmma_form(form.x);
  const bool sixteen = numeric::bits(types.a) == 16;
  const bool integers = types.sums == DType::s32;
  const std::size_t n = integers ? 4 : 6 + (sixteen ? (from_registers ? 1 : 2) : 0);
  d.need(s, n, n);
  const Operand& to = s.operands[0];
  const std::uint32_t registers = form.y / (types.sums == DType::f16 ? 4 : 2);
  if (to.kind != Operand::Kind::list || to.parts.size() != registers) {
    d.fault(std::string(d.opcode()) + " takes a list of " + std::to_string(registers) +
            " registers");
  }
  const Operand& a = s.operands[1];
  if (from_registers && a.parts.size() != 4) d.fault("wgmma takes A from a list of 4 registers");
  const std::uint32_t a_at = from_registers ? d.place(a.parts[0]) : d.read(a, 'l');
  const std::uint32_t b_at = d.read(s.operands[2], 'l');
  const std::uint32_t scale = d.read(s.operands[3], 'p');
  for (std::size_t i = 4; i < 6 && i < n; ++i) {
    if (d.immediate(s.operands[i]) != 1) d.fault("wgmma that negates A or B is not in the subset");
  }
  std::uint32_t majors = 0;
  for (std::size_t i = 6; i < n; ++i) {
    const std::int64_t is_mn = d.immediate(s.operands[i]);
    if (is_mn != 0 && is_mn != 1) d.fault("wgmma's flags of transposition are 0 or 1");
    if (is_mn == 1) majors |= from_registers || i == 7 ? 2U : 1U;
  }
  const auto run = [&d](const Operand& list) {
    return static_cast<std::uint32_t>(d.run_of(list.parts[0].reg));
  };
  d.emit({form.run, d.place(to.parts[0]), a_at, b_at, scale,
          d.keep_words({run(to), from_registers ? run(a) : kNone, form.x, form.y, majors})});
}

void add_multiplications(Forms& forms) {
  const auto add = [&](unsigned n, const WgmmaForm& types) {
    const auto name = [](DType type) { return "." + std::string(numeric::name(type)); };
    const std::string text =
        name_of("wgmma.mma_async.sync.aligned.m64n", std::to_string(n), "k",
                std::to_string(atom::wgmma_k(types.a)), types.saturates ? ".satfinite" : "",
                name(types.sums), name(types.a), name(types.b));
    forms[text] = {&multiplies, "", &decode_multiplication, types.word(), n};
  };
  constexpr DType fp8[] = {DType::e4m3, DType::e5m2};
  constexpr DType integers[] = {DType::s8, DType::u8};
  for (unsigned n = 8; n <= 256; n += 8) {
    add(n, {DType::bf16, DType::bf16});
    for (const DType sums : {DType::f32, DType::f16}) {
      add(n, {DType::f16, DType::f16, sums});
      for (const DType a : fp8) {
        for (const DType b : fp8) add(n, {a, b, sums});
      }
    }
    if (n > 32 && n % 16 != 0) continue;
    for (const DType a : integers) {
      for (const DType b : integers) {
        for (const bool saturates : {false, true}) add(n, {a, b, DType::s32, saturates});
      }
    }
  }
}

// --- matrices between shared memory and registers; in Program::words from Op::x on: them
template <int count, bool transposes>
const Op* loads(Frame& f, const Op* op) {
  std::array<std::uint32_t, count> values{};
  model::load_matrix(f.r[op->a], values, transposes, f.site(op));
  for (std::size_t i = 0; i < count; ++i) f.r[f.program->words[op->x + i]] = values[i];
  return op + 1;
}
// Elements of so many bits become bytes.
template <int count, int bits>
const Op* loads_padded(Frame& f, const Op* op) {
  std::array<std::uint32_t, count> values{};
  model::load_matrix_padded(f.r[op->a], values, bits, f.site(op));
  for (std::size_t i = 0; i < count; ++i) f.r[f.program->words[op->x + i]] = values[i];
  return op + 1;
}
template <int count, bool transposes>
const Op* stores(Frame& f, const Op* op) {
  std::array<std::uint32_t, count> values{};
  for (std::size_t i = 0; i < count; ++i) values[i] = f.r[f.program->words[op->x + i]];
  model::store_matrix(f.r[op->a], values, transposes, f.site(op));
  return op + 1;
}
// Form::x: how many; Form::y: 1 where they are stored.
void decode_matrices(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 2, 2);
  const bool is_store = form.y == 1;
  const Operand& list = s.operands[is_store ? 1 : 0];
  if (list.kind != Operand::Kind::list || list.parts.size() != form.x) {
    d.fault(std::string(d.opcode()) + " takes a list of " + std::to_string(form.x) + " registers");
  }
  const std::uint32_t row = d.shared_address(s.operands[is_store ? 0 : 1]);
  std::vector<std::uint32_t> at;
  for (const Operand& o : list.parts) at.push_back(is_store ? d.read(o, 'i') : d.write(o, 'I'));
  d.emit({.run = form.run, .a = row, .x = d.keep_words(at)});
}

template <int count>
void add_matrix_moves(Forms& forms) {
  for (const std::string space : {".shared", ".shared::cta"}) {
    const std::string many = ".x" + std::to_string(count);
    // Where how many comes first, as CuTe has it, ptxas takes it too.
    for (const std::string& words :
         {".sync.aligned.m8n8" + many, ".sync.aligned" + many + ".m8n8"}) {
      for (const bool trans : {false, true}) {
        const char* const how = trans ? ".trans" : "";
        forms[name_of("ldmatrix", words, how, space, ".b16")] = {
            trans ? &loads<count, true> : &loads<count, false>, "", &decode_matrices, count, 0};
        forms[name_of("stmatrix", words, how, space, ".b16")] = {
            trans ? &stores<count, true> : &stores<count, false>, "", &decode_matrices, count, 1};
      }
    }
    const std::string padded = "ldmatrix.sync.aligned.m8n16.x" + std::to_string(count);
    forms[name_of(padded, space, ".b8x16.b4x16_p64")] = {&loads_padded<count, 4>, "",
                                                         &decode_matrices, count, 0};
    forms[name_of(padded, space, ".b8x16.b6x16_p32")] = {&loads_padded<count, 6>, "",
                                                         &decode_matrices, count, 0};
  }
}

}  // namespace

void add_matrices(Forms& forms) {
  forms["wgmma.fence.sync.aligned"] = {&fences, ""};
  forms["wgmma.commit_group.sync.aligned"] = {does<&model::wgmma_commit>, ""};
  forms["wgmma.wait_group.sync.aligned"] = {&waits, "", &decode_wait};
  add_multiplications(forms);
  add_matrix_moves<1>(forms);
  add_matrix_moves<2>(forms);
  add_matrix_moves<4>(forms);
}

}  // namespace warpwright::ptx
