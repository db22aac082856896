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

// --- allocation; the last number: CTAs of the group
void add_allocation(Forms& forms) {
  for_groups([&](std::uint32_t ctas, const std::string& group) {
    const std::string tail = group + ".sync.aligned";
    for (const char* space : {"", ".shared::cta"}) {
      forms[name_of("tcgen05.alloc", tail, space, ".b32")] = {does<&model::tcgen05_allocate>, "si#",
                                                              nullptr, ctas};
    }
    forms[name_of("tcgen05.dealloc", tail, ".b32")] = {does<&model::tcgen05_deallocate>, "ii#",
                                                       nullptr, ctas};
    forms[name_of("tcgen05.relinquish_alloc_permit", tail)] = {does<&model::tcgen05_relinquish>,
                                                               "#", nullptr, ctas};
  });
}

// --- registers: as those of wgmma's accumulators, which lie side by side. Op::x and Form::x: an
// AccessForm; Op::c: columns between the halves
struct AccessForm {
  model::TmemShape shape = model::TmemShape::lanes32;
  std::uint32_t registers = 1;
  bool packed = false;

  [[nodiscard]] std::uint32_t word() const {
    return static_cast<std::uint32_t>(shape) | registers << 8 | (packed ? 1U << 16 : 0);
  }
};
AccessForm access_form(std::uint32_t word) {
  return {static_cast<model::TmemShape>(word & 0xffU), word >> 8 & 0xffU, word >> 16 != 0};
}
model::TmemAccess access_of(const Frame& f, const Op* op) {
  const AccessForm form = access_form(op->x);
  return {.shape = form.shape,
          .address = f.r[op->a],
          .count = static_cast<int>(form.registers),
          .split = static_cast<int>(op->c),
          .packed = form.packed};
}

const Op* loads(Frame& f, const Op* op) {
  model::TmemAccess access = access_of(f, op);
  access.registers = reinterpret_cast<float*>(f.r + op->d);
  access.state = &f.accumulators[op->b];
  model::tcgen05_load(access, f.site(op));
  return op + 1;
}
// In Program::words from Op::c on: where the result lies, of which run; type, whether the largest,
// of absolute values, and keeps a NaN.
const Op* loads_and_reduces(Frame& f, const Op* op) {
  const std::uint32_t* more = f.program->words.data() + op->c;
  const AccessForm form = access_form(op->x);
  model::TmemAccess access{.shape = form.shape,
                           .address = f.r[op->a],
                           .registers = reinterpret_cast<float*>(f.r + op->d),
                           .count = static_cast<int>(form.registers),
                           .state = &f.accumulators[op->b]};
  access.reduction = {.type = static_cast<model::TmemReduction::Type>(more[2] & 3U),
                      .largest = (more[2] & 4U) != 0,
                      .absolute = (more[2] & 8U) != 0,
                      .keeps_nan = (more[2] & 16U) != 0,
                      .to = reinterpret_cast<float*>(f.r + more[0]),
                      .state = &f.accumulators[more[1]]};
  model::tcgen05_load(access, f.site(op));
  return op + 1;
}
// In Program::words from Op::b on: the registers. They may change at once.
const Op* stores(Frame& f, const Op* op) {
  model::TmemAccess access = access_of(f, op);
  const std::uint32_t* at = f.program->words.data() + op->b;
  std::array<float, 128> values;  // NOLINT: all of those that are read are written
  for (int i = 0; i < access.count; ++i) {
    values[static_cast<std::size_t>(i)] = f.get<float>(at[i]);
  }
  model::FragmentState state;
  access.registers = values.data();
  access.state = &state;
  model::tcgen05_store(access, f.site(op));
  return op + 1;
}

std::span<const Operand> registers_of(Decoder& d, const Operand& list, std::uint32_t count) {
  if (list.kind == Operand::Kind::list && list.parts.size() == count) return list.parts;
  if (list.kind == Operand::Kind::reg && count == 1) return {&list, 1};
  d.fault(std::string(d.opcode()) + " takes a list of " + std::to_string(count) + " registers");
}

// Where there are two halves, operand i says how far apart they begin.
std::uint32_t split_of(Decoder& d, const Statement& s, const AccessForm& access, std::size_t i) {
  if (access.shape != model::TmemShape::b16x32x2) return 0;
  const std::int64_t split = d.immediate(s.operands[i]);
  if (split < 0 || split >= atom::kTmemColumns) {
    d.fault("the second half of " + std::string(d.opcode()) + " lies 0 to 511 columns further");
  }
  return static_cast<std::uint32_t>(split);
}
std::size_t operands_of(const AccessForm& access) {
  return access.shape == model::TmemShape::b16x32x2 ? 3 : 2;
}

// {registers}, [address] {, split}
void decode_load(Decoder& d, const Statement& s, const Form& form) {
  const AccessForm access = access_form(form.x);
  d.need(s, operands_of(access), operands_of(access));
  const auto to = registers_of(d, s.operands[0], access.registers);
  const std::uint32_t address = d.shared_address(s.operands[1]);
  const std::uint32_t split = split_of(d, s, access, 2);
  const std::uint32_t first = d.place(to[0]);
  const int run = d.run_of(to[0].reg);
  d.emit({form.run, first, address, static_cast<std::uint32_t>(run), split, form.x});
}
// {registers}, result, [address]; Form::y: how it is reduced.
void decode_reduction(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 3, 3);
  const auto to = registers_of(d, s.operands[0], access_form(form.x).registers);
  if (s.operands[1].kind != Operand::Kind::reg) {
    d.fault(std::string(d.opcode()) + " takes a register for what it makes");
  }
  const std::uint32_t address = d.shared_address(s.operands[2]);
  const std::uint32_t first = d.place(to[0]);
  const int run = d.run_of(to[0].reg);
  const std::uint32_t more = d.keep_words(
      {d.place(s.operands[1]), static_cast<std::uint32_t>(d.run_of(s.operands[1].reg)), form.y});
  d.emit({form.run, first, address, static_cast<std::uint32_t>(run), more, form.x});
}
// [address], {split,} {registers}
void decode_store(Decoder& d, const Statement& s, const Form& form) {
  const AccessForm access = access_form(form.x);
  d.need(s, operands_of(access), operands_of(access));
  const auto from = registers_of(d, s.operands.back(), access.registers);
  const std::uint32_t address = d.shared_address(s.operands[0]);
  const std::uint32_t split = split_of(d, s, access, 1);
  std::vector<std::uint32_t> at;
  for (const Operand& o : from) at.push_back(d.read(o, 'i'));
  d.emit({.run = form.run, .a = address, .b = d.keep_words(at), .c = split, .x = form.x});
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

// tcgen05.ld.red
void add_reductions(Forms& forms) {
  const auto add = [&](const std::string& tail, unsigned how) {
    for (unsigned times = 2; times <= 128; times *= 2) {
      const std::uint32_t x = AccessForm{model::TmemShape::lanes32, times}.word();
      forms[name_of("tcgen05.ld.red.sync.aligned.32x32b.x", std::to_string(times), tail)] = {
          &loads_and_reduces, "", &decode_reduction, x, how};
    }
  };
  for (const unsigned largest : {0U, 4U}) {
    const std::string name = largest != 0 ? ".max" : ".min";
    add(name + ".u32", largest);
    add(name + ".s32", largest | 1U);
    for (const unsigned absolute : {0U, 8U}) {
      for (const unsigned keeps_nan : {0U, 16U}) {
        add(name_of(name, absolute != 0 ? ".abs" : "", keeps_nan != 0 ? ".NaN" : "", ".f32"),
            largest | 2U | absolute | keeps_nan);
      }
    }
  }
}

void add_registers(Forms& forms) {
  struct Shape {
    model::TmemShape shape;
    const char* text;
    unsigned registers;  // of one repetition
  };
  constexpr Shape shapes[] = {{model::TmemShape::lanes32, ".32x32b", 1},
                              {model::TmemShape::b16x64, ".16x64b", 1},
                              {model::TmemShape::b16x128, ".16x128b", 2},
                              {model::TmemShape::lanes16, ".16x256b", 4},
                              {model::TmemShape::b16x32x2, ".16x32bx2", 1}};
  for (const Shape& s : shapes) {
    for (unsigned times = 1; times * s.registers <= 128; times *= 2) {
      const std::string tail = name_of(".sync.aligned", s.text, ".x", std::to_string(times));
      for (const bool packed : {false, true}) {
        const std::uint32_t x = AccessForm{s.shape, times * s.registers, packed}.word();
        forms[name_of("tcgen05.ld", tail, packed ? ".pack::16b" : "", ".b32")] = {&loads, "",
                                                                                  &decode_load, x};
        forms[name_of("tcgen05.st", tail, packed ? ".unpack::16b" : "", ".b32")] = {
            &stores, "", &decode_store, x};
      }
    }
  }
  add_reductions(forms);
  forms["tcgen05.wait::ld.sync.aligned"] = {&waits<true>, ""};
  forms["tcgen05.wait::st.sync.aligned"] = {&waits<false>, ""};
}

// --- MMAs; what they need beside their registers stands in Program::words from Op::x on
enum MmaWord : std::uint32_t {
  kKind,
  kCtas,
  kScaleBlock,
  kWeightsStay,
  kHalvings,
  kHasLongK,
  kInTmem,  // A
  kAdds,    // these are registers, or kNone
  kScalesA,
  kScalesB,
  kZeroColumns,
  kMasks,  // how many masks of lanes there are
  kMask,   // the first
};

const Op* multiplies(Frame& f, const Op* op) {
  const std::uint32_t* more = f.program->words.data() + op->x;
  model::UmmaRequest request;
  request.kind = static_cast<atom::UmmaKind>(more[kKind]);
  request.ctas = static_cast<int>(more[kCtas]);
  request.d = f.r[op->d];
  request.a_in_tmem = more[kInTmem] != 0;
  if (request.a_in_tmem) {
    request.a = f.r[op->a];
  } else {
    request.descriptor_a = f.get<std::uint64_t>(op->a);
  }
  request.descriptor_b = f.get<std::uint64_t>(op->b);
  request.instruction = f.r[op->c];
  request.accumulate = f.r[more[kAdds]] != 0;
  request.weights_stay = more[kWeightsStay] != 0;
  request.halvings = static_cast<int>(more[kHalvings]);
  if (more[kZeroColumns] != kNone) {
    request.zero_columns = f.get<std::uint64_t>(more[kZeroColumns]);
  }
  if (more[kHasLongK] == 0 && atom::is_packed(request.kind) && request.instruction >> 31 != 0) {
    f.fail(op, "the instruction descriptor asks for K 96, which only sm_103 has");
  }
  for (std::uint32_t i = 0; i < more[kMasks]; ++i) request.kept_lanes[i] = f.r[more[kMask + i]];
  request.scale_block = static_cast<int>(more[kScaleBlock]);
  if (request.scale_block != 0) {
    request.scales_a = f.r[more[kScalesA]];
    request.scales_b = f.r[more[kScalesB]];
  }
  model::tcgen05_mma(request, f.site(op));
  return op + 1;
}

// Form::x of an MMA.
struct MmaForm {
  atom::UmmaKind kind = atom::UmmaKind::f16;
  std::uint32_t ctas = 1;
  bool weights_stay = false;

  [[nodiscard]] std::uint32_t word() const {
    return static_cast<std::uint32_t>(kind) | ctas << 8 | (weights_stay ? 1U << 16 : 0);
  }
};
MmaForm mma_form(const Form& form) {
  return {static_cast<atom::UmmaKind>(form.x & 0xffU), form.x >> 8 & 0xffU, form.x >> 16 != 0};
}

// How often D is halved.
std::uint32_t halvings_of(Decoder& d, const Operand& o, atom::UmmaKind kind) {
  if (kind != atom::UmmaKind::f16 && kind != atom::UmmaKind::tf32) {
    d.fault("only tcgen05.mma of kinds f16 and tf32 scales D");
  }
  if (d.target().number >= 110) {
    d.fault(std::string(d.target().name) + " has no tcgen05.mma that scales D");
  }
  const std::int64_t halvings = d.immediate(o);
  if (halvings < 0 || halvings > 15) d.fault("tcgen05.mma scales D by 2 to the power of 0 to -15");
  return static_cast<std::uint32_t>(halvings);
}

std::vector<std::uint32_t> masks_of(Decoder& d, const Operand& list, std::uint32_t ctas) {
  const std::size_t words = std::size_t{4} * ctas;
  if (list.parts.size() != words) {
    d.fault("tcgen05.mma takes " + std::to_string(words) + " masks of lanes");
  }
  std::vector<std::uint32_t> masks;
  for (const Operand& o : list.parts) masks.push_back(d.read(o, 'i'));
  return masks;
}

// [d], a or [a], b, instruction {, [scales of a], [scales of b]} {, {masks of lanes}}, whether it
// adds {, halvings of d, or where weights stay the columns of b that are zeros}; Form::x: an
// MmaForm; Form::y: the block of scales, 0 without.
void decode_multiplication(Decoder& d, const Statement& s, const Form& form) {
  const MmaForm mma = mma_form(form);
  const bool is_scaled = form.y != 0;
  const bool has_masks = !is_scaled && !mma.weights_stay && s.operands.size() > 4 &&
                         s.operands[4].kind == Operand::Kind::list;
  const std::size_t last = 4 + (is_scaled ? 2 : 0) + (has_masks ? 1 : 0);
  d.need(s, last + 1, last + (is_scaled ? 1 : 2));
  std::vector<std::uint32_t> masks;
  if (has_masks) masks = masks_of(d, s.operands[4], mma.ctas);
  std::uint32_t zero_columns = kNone;
  std::uint32_t halvings = 0;
  if (s.operands.size() == last + 2) {
    const Operand& more = s.operands[last + 1];
    if (mma.weights_stay) {
      zero_columns = d.read(more, 'l');
    } else {
      halvings = halvings_of(d, more, mma.kind);
    }
  }
  const std::uint32_t to = d.shared_address(s.operands[0]);
  const bool in_tmem = s.operands[1].kind == Operand::Kind::address;
  const std::uint32_t a = in_tmem ? d.shared_address(s.operands[1]) : d.read(s.operands[1], 'l');
  const std::uint32_t b = d.read(s.operands[2], 'l');
  const std::uint32_t instruction = d.read(s.operands[3], 'i');
  const std::uint32_t scales_a = is_scaled ? d.shared_address(s.operands[4]) : kNone;
  const std::uint32_t scales_b = is_scaled ? d.shared_address(s.operands[5]) : kNone;
  const std::uint32_t adds = d.read(s.operands[last], 'p');
  std::array<std::uint32_t, kMask> words{};
  words[kKind] = static_cast<std::uint32_t>(mma.kind);
  words[kCtas] = mma.ctas;
  words[kScaleBlock] = form.y;
  words[kWeightsStay] = mma.weights_stay ? 1 : 0;
  words[kHalvings] = halvings;
  words[kHasLongK] = d.target().number == 103 ? 1 : 0;
  words[kInTmem] = in_tmem ? 1 : 0;
  words[kAdds] = adds;
  words[kScalesA] = scales_a;
  words[kScalesB] = scales_b;
  words[kZeroColumns] = zero_columns;
  words[kMasks] = static_cast<std::uint32_t>(masks.size());
  const std::uint32_t begin = d.keep_words(words);
  d.keep_words(masks);
  d.emit({form.run, to, a, b, instruction, begin});
}

// The form of that name, and those that say what becomes of the operand in a buffer of the tensor
// core: they change no value.
void add_collecting(Forms& forms, const std::string& name, std::initializer_list<const char*> to,
                    const Form& form) {
  forms[name] = form;
  for (const char* buffer : to) {
    for (const char* use : {"fill", "use", "lastuse", "discard"}) {
      forms[name_of(name, ".collector::", buffer, "::", use)] = form;
    }
  }
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
  for (const UmmaKind kind : {UmmaKind::f16, UmmaKind::tf32, UmmaKind::f8f6f4, UmmaKind::i8,
                              UmmaKind::mxf8f6f4, UmmaKind::mxf4, UmmaKind::mxf4nvf4}) {
    for_groups([&](std::uint32_t ctas, const std::string& group) {
      const std::string name = name_of("tcgen05.mma", group, ".kind::", atom::name(kind));
      const std::uint32_t x = MmaForm{kind, ctas}.word();
      if (!atom::is_block_scaled(kind)) {
        add_collecting(forms, name, {"a"}, {&multiplies, "", &decode_multiplication, x, 0});
        return;
      }
      for (const Block& b : blocks_of(kind)) {
        add_collecting(forms, name_of(name, ".block_scale", b.text), {"a"},
                       {&multiplies, "", &decode_multiplication, x, b.elements});
      }
    });
    if (atom::is_block_scaled(kind)) continue;
    add_collecting(forms, name_of("tcgen05.mma.ws.cta_group::1.kind::", atom::name(kind)),
                   {"b0", "b1", "b2", "b3"},
                   {&multiplies, "", &decode_multiplication, MmaForm{kind, 1, true}.word(), 0});
  }
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
            &copies, "sl", nullptr,
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
  d.emit({.run = form.run,
          .a = d.shared_address(s.operands[0]),
          .b = form.y != 0 ? d.read(s.operands[1], 'h') : kNone,
          .x = form.x});
}
template <bool before>
void fence(model::Site site) {
  model::tcgen05_fence(before, site);
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
    // The manual writes it both ways.
    for (const std::string& name : {group + ".down", ".down" + group}) {
      forms["tcgen05.shift" + name] = {does<&model::tcgen05_shift>, "s#", nullptr, ctas};
    }
  });
  forms["tcgen05.fence::before_thread_sync"] = {does<&fence<true>>, ""};
  forms["tcgen05.fence::after_thread_sync"] = {does<&fence<false>>, ""};
}

}  // namespace warpwright::ptx
