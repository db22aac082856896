// tcgen05: tensor memory, and the MMAs and copies into it (PTX ISA 9.7.16). All of it is what the
// model does for isa/tcgen05.h, tcgen05_memory.h and tcgen05_scaled.h.
#include <array>
#include <span>

#include "warpwright/atom/umma_scaled.h"
#include "warpwright/ptx/forms.h"

namespace warpwright::ptx {
namespace {

constexpr std::uint32_t kNone = ~0U;

// Calls add(ctas, ".cta_group::1") and the same for a pair.
template <class Add>
void for_groups(const Add& add) {
  add(1, ".cta_group::1");
  add(2, ".cta_group::2");
}

// --- allocation; Op::x: CTAs of the group
const Op* allocates(Frame& f, const Op* op) {
  model::tcgen05_allocate(f.r[op->a], static_cast<int>(f.r[op->b]), static_cast<int>(op->x),
                          f.site(op));
  return op + 1;
}
const Op* deallocates(Frame& f, const Op* op) {
  model::tcgen05_deallocate(f.r[op->a], static_cast<int>(f.r[op->b]), static_cast<int>(op->x),
                            f.site(op));
  return op + 1;
}
const Op* relinquishes(Frame& f, const Op* op) {
  model::tcgen05_relinquish(static_cast<int>(op->x), f.site(op));
  return op + 1;
}
// [where the columns' address goes, or the copy], columns ('i') or a descriptor ('l')
template <char kind>
void decode_place(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 2, 2);
  const std::uint32_t to = d.shared_address(s.operands[0]);
  const std::uint32_t of = d.read(s.operands[1], kind);
  Op& op = d.emit(form.run);
  op.a = to;
  op.b = of;
  op.x = form.x;
}

void add_allocation(Forms& forms) {
  for_groups([&](std::uint32_t ctas, const std::string& group) {
    const std::string tail = group + ".sync.aligned";
    for (const char* space : {"", ".shared::cta"}) {
      forms[name_of("tcgen05.alloc", tail, space, ".b32")] = {&allocates, "", &decode_place<'i'>,
                                                              ctas};
    }
    forms[name_of("tcgen05.dealloc", tail, ".b32")] = {&deallocates, "ii", nullptr, ctas};
    forms[name_of("tcgen05.relinquish_alloc_permit", tail)] = {&relinquishes, "", nullptr, ctas};
  });
}

// --- registers: as those of wgmma's accumulators, which lie side by side
const Op* loads(Frame& f, const Op* op) {
  model::tcgen05_load({.shape = static_cast<model::TmemShape>(op->x & 0xffU),
                       .address = f.r[op->a],
                       .registers = reinterpret_cast<float*>(f.r + op->d),
                       .count = static_cast<int>(op->x >> 8),
                       .state = &f.accumulators[op->b]},
                      f.site(op));
  return op + 1;
}
// In Program::words from Op::b on: the registers. They may change at once.
const Op* stores(Frame& f, const Op* op) {
  const std::uint32_t count = op->x >> 8;
  const std::uint32_t* at = f.program->words.data() + op->b;
  std::array<float, 128> values;  // NOLINT: all of those that are read are written
  for (std::uint32_t i = 0; i < count; ++i) values[i] = f.get<float>(at[i]);
  model::FragmentState state;
  model::tcgen05_store({.shape = static_cast<model::TmemShape>(op->x & 0xffU),
                        .address = f.r[op->a],
                        .registers = values.data(),
                        .count = static_cast<int>(count),
                        .state = &state},
                       f.site(op));
  return op + 1;
}

std::span<const Operand> registers_of(Decoder& d, const Operand& list, std::uint32_t count) {
  if (list.kind == Operand::Kind::list && list.parts.size() == count) return list.parts;
  if (list.kind == Operand::Kind::reg && count == 1) return {&list, 1};
  d.fault(std::string(d.opcode()) + " takes a list of " + std::to_string(count) + " registers");
}

// {registers}, [address]; Form::x: lanes of the shape; Form::y: registers.
void decode_load(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 2, 2);
  const auto to = registers_of(d, s.operands[0], form.y);
  const std::uint32_t address = d.shared_address(s.operands[1]);
  const std::uint32_t first = d.place(to[0]);
  const int run = d.run_of(to[0].reg);
  Op& op = d.emit(form.run);
  op.d = first;
  op.a = address;
  op.b = static_cast<std::uint32_t>(run);
  op.x = form.x | form.y << 8;
}
// [address], {registers}
void decode_store(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 2, 2);
  const auto from = registers_of(d, s.operands[1], form.y);
  const std::uint32_t address = d.shared_address(s.operands[0]);
  std::vector<std::uint32_t> at;
  for (const Operand& o : from) at.push_back(d.read(o, 'i'));
  const std::uint32_t begin = d.begin_words();
  for (const std::uint32_t word : at) d.add_word(word);
  Op& op = d.emit(form.run);
  op.a = address;
  op.b = begin;
  op.x = form.x | form.y << 8;
}

template <bool of_loads>
const Op* waits(Frame& f, const Op* op) {
  model::tcgen05_wait(of_loads, false, f.site(op));
  if (!of_loads) return op + 1;
  // For all registers, as PTX names none.
  for (std::uint32_t i = 0; i < f.program->accumulators; ++i) {
    model::pin_fragment(f.accumulators[i]);
  }
  return op + 1;
}

void add_registers(Forms& forms) {
  struct Shape {
    model::TmemShape shape;
    const char* text;
    unsigned registers;  // of one repetition
  };
  constexpr Shape shapes[] = {{model::TmemShape::lanes32, ".32x32b", 1},
                              {model::TmemShape::lanes16, ".16x256b", 4}};
  for (const Shape& s : shapes) {
    for (unsigned times = 1; times * s.registers <= 128; times *= 2) {
      const std::string tail =
          name_of(".sync.aligned", s.text, ".x", std::to_string(times), ".b32");
      const auto lanes = static_cast<std::uint32_t>(s.shape);
      forms["tcgen05.ld" + tail] = {&loads, "", &decode_load, lanes, times * s.registers};
      forms["tcgen05.st" + tail] = {&stores, "", &decode_store, lanes, times * s.registers};
    }
  }
  forms["tcgen05.wait::ld.sync.aligned"] = {&waits<true>, ""};
  forms["tcgen05.wait::st.sync.aligned"] = {&waits<false>, ""};
}

// --- MMAs; in Program::words from Op::x on: kind, CTAs, block of scales, whether A lies in tensor
// memory, where the predicate and the scales' addresses are, whether the target has K 96, how many
// masks of lanes there are, and these
const Op* multiplies(Frame& f, const Op* op) {
  const std::uint32_t* more = f.program->words.data() + op->x;
  model::UmmaRequest request;
  request.kind = static_cast<atom::UmmaKind>(more[0]);
  request.ctas = static_cast<int>(more[1]);
  request.d = f.r[op->d];
  request.a_in_tmem = more[3] != 0;
  if (request.a_in_tmem) {
    request.a = f.r[op->a];
  } else {
    request.descriptor_a = f.get<std::uint64_t>(op->a);
  }
  request.descriptor_b = f.get<std::uint64_t>(op->b);
  request.instruction = f.r[op->c];
  request.accumulate = f.r[more[4]] != 0;
  if (more[7] == 0 && atom::is_packed(request.kind) && request.instruction >> 31 != 0) {
    f.fail(op, "the instruction descriptor asks for K 96, which only sm_103 has");
  }
  for (std::uint32_t i = 0; i < more[8]; ++i) {
    if (f.r[more[9 + i]] == 0) continue;
    f.fail(op, "tcgen05.mma that leaves lanes of D out is not in the subset");
  }
  request.scale_block = static_cast<int>(more[2]);
  if (request.scale_block != 0) {
    request.scales_a = f.r[more[5]];
    request.scales_b = f.r[more[6]];
  }
  model::tcgen05_mma(request, f.site(op));
  return op + 1;
}

// [d], a or [a], b, instruction {, [scales of a], [scales of b]} {, {masks of lanes}}, whether it
// adds; Form::x: kind, CTAs; Form::y: the block of scales, 0 without.
void decode_multiplication(Decoder& d, const Statement& s, const Form& form) {
  const std::size_t scales = form.y != 0 ? 2 : 0;
  const bool has_masks =
      scales == 0 && s.operands.size() > 4 && s.operands[4].kind == Operand::Kind::list;
  const std::size_t last = 4 + scales + (has_masks ? 1 : 0);
  if (s.operands.size() == last + 2) {
    d.fault("tcgen05.mma that scales D is not in the subset");
  }
  d.need(s, last + 1, last + 1);
  std::vector<std::uint32_t> masks;
  if (has_masks) {
    const std::size_t words = 4 * (form.x >> 8);
    if (s.operands[4].parts.size() != words) {
      d.fault("tcgen05.mma takes " + std::to_string(words) + " masks of lanes");
    }
    for (const Operand& o : s.operands[4].parts) masks.push_back(d.read(o, 'i'));
  }
  const std::uint32_t to = d.shared_address(s.operands[0]);
  const bool in_tmem = s.operands[1].kind == Operand::Kind::address;
  const std::uint32_t a = in_tmem ? d.shared_address(s.operands[1]) : d.read(s.operands[1], 'l');
  const std::uint32_t b = d.read(s.operands[2], 'l');
  const std::uint32_t instruction = d.read(s.operands[3], 'i');
  const std::uint32_t scales_a = scales != 0 ? d.shared_address(s.operands[4]) : kNone;
  const std::uint32_t scales_b = scales != 0 ? d.shared_address(s.operands[5]) : kNone;
  const std::uint32_t adds = d.read(s.operands[last], 'p');
  const std::uint32_t begin = d.begin_words();
  for (const std::uint32_t word :
       {form.x & 0xffU, form.x >> 8, form.y, in_tmem ? 1U : 0U, adds, scales_a, scales_b,
        d.target().number == 103 ? 1U : 0U, static_cast<std::uint32_t>(masks.size())}) {
    d.add_word(word);
  }
  for (const std::uint32_t mask : masks) d.add_word(mask);
  Op& op = d.emit(form.run);
  op.d = to;
  op.a = a;
  op.b = b;
  op.c = instruction;
  op.x = begin;
}

void add_multiplications(Forms& forms) {
  using atom::UmmaKind;
  struct Block {
    const char* text;
    std::uint32_t elements;
  };
  // What the two ways to write it call the same; without a word, what it is of that kind.
  const auto blocks_of = [](UmmaKind kind) -> std::vector<Block> {
    if (kind == UmmaKind::mxf8f6f4) return {{"", 32}, {".block32", 32}, {".scale_vec::1X", 32}};
    if (kind == UmmaKind::mxf4) return {{"", 32}, {".block32", 32}, {".scale_vec::2X", 32}};
    return {{".block16", 16}, {".block32", 32}, {".scale_vec::4X", 16}, {".scale_vec::2X", 32}};
  };
  for_groups([&](std::uint32_t ctas, const std::string& group) {
    for (const UmmaKind kind : {UmmaKind::f16, UmmaKind::tf32, UmmaKind::f8f6f4, UmmaKind::mxf8f6f4,
                                UmmaKind::mxf4, UmmaKind::mxf4nvf4}) {
      const std::string name = name_of("tcgen05.mma", group, ".kind::", atom::name(kind));
      const std::uint32_t x = static_cast<std::uint32_t>(kind) | ctas << 8;
      if (!atom::is_block_scaled(kind)) {
        forms[name] = {&multiplies, "", &decode_multiplication, x, 0};
        continue;
      }
      for (const Block& b : blocks_of(kind)) {
        forms[name_of(name, ".block_scale", b.text)] = {&multiplies, "", &decode_multiplication, x,
                                                        b.elements};
      }
    }
  });
}

// --- copies into tensor memory; Op::x: shape, what widens, CTAs
const Op* copies(Frame& f, const Op* op) {
  model::tcgen05_copy({.shape = static_cast<atom::TmemCopy>(op->x & 0xffU),
                       .widen = static_cast<atom::TmemWiden>(op->x >> 8 & 0xffU),
                       .ctas = static_cast<int>(op->x >> 16),
                       .to = f.r[op->a],
                       .descriptor = f.get<std::uint64_t>(op->b)},
                      f.site(op));
  return op + 1;
}

void add_copies_to_tmem(Forms& forms) {
  using atom::TmemCopy;
  using atom::TmemWiden;
  constexpr std::pair<TmemCopy, const char*> shapes[] = {
      {TmemCopy::b32x128_warpx4, ".32x128b.warpx4"},
      {TmemCopy::b128x256, ".128x256b"},
      {TmemCopy::b128x128, ".128x128b"},
      {TmemCopy::b4x256, ".4x256b"},
      {TmemCopy::b64x128_warpx2_02_13, ".64x128b.warpx2::02_13"},
      {TmemCopy::b64x128_warpx2_01_23, ".64x128b.warpx2::01_23"}};
  constexpr std::pair<TmemWiden, const char*> widens[] = {
      {TmemWiden::none, ""},
      {TmemWiden::from_b4x16_p64, ".b8x16.b4x16_p64"},
      {TmemWiden::from_b6x16_p32, ".b8x16.b6x16_p32"}};
  for_groups([&](std::uint32_t ctas, const std::string& group) {
    for (const auto& [shape, text] : shapes) {
      for (const auto& [widen, to] : widens) {
        forms[name_of("tcgen05.cp", group, text, to)] = {
            &copies, "", &decode_place<'l'>,
            static_cast<std::uint32_t>(shape) | static_cast<std::uint32_t>(widen) << 8 |
                ctas << 16};
      }
    }
  });
}

// --- commits and fences
const Op* commits(Frame& f, const Op* op) {
  const std::uint16_t mask = op->b == kNone ? 0 : static_cast<std::uint16_t>(f.r[op->b]);
  if (op->b != kNone && mask == 0) f.fail(op, "the mask of a multicast names no CTA");
  model::tcgen05_commit(f.r[op->a], mask, static_cast<int>(op->x), f.site(op));
  return op + 1;
}
// [barrier] {, mask}; Form::y: 1 with it.
void decode_commit(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 1 + form.y, 1 + form.y);
  const std::uint32_t barrier = d.shared_address(s.operands[0]);
  const std::uint32_t mask = form.y != 0 ? d.read(s.operands[1], 'h') : kNone;
  Op& op = d.emit(form.run);
  op.a = barrier;
  op.b = mask;
  op.x = form.x;
}
template <bool before>
const Op* fences(Frame& f, const Op* op) {
  model::tcgen05_fence(before, f.site(op));
  return op + 1;
}

}  // namespace

void add_tensor_memory(Forms& forms) {
  add_allocation(forms);
  add_registers(forms);
  add_multiplications(forms);
  add_copies_to_tmem(forms);
  for_groups([&](std::uint32_t ctas, const std::string& group) {
    for (const char* space : {"", ".shared::cluster"}) {
      const std::string name = name_of("tcgen05.commit", group, ".mbarrier::arrive::one", space);
      forms[name + ".b64"] = {&commits, "", &decode_commit, ctas, 0};
      forms[name + ".multicast::cluster.b64"] = {&commits, "", &decode_commit, ctas, 1};
    }
  });
  forms["tcgen05.fence::before_thread_sync"] = {&fences<true>, ""};
  forms["tcgen05.fence::after_thread_sync"] = {&fences<false>, ""};
}

}  // namespace warpwright::ptx
