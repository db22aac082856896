#include "warpwright/ptx/decoder.h"

#include <algorithm>
#include <utility>

#include "warpwright/numeric/edit_distance.h"

namespace warpwright::ptx {
namespace {

constexpr std::pair<std::string_view, Given> kSpecial[] = {
    {"%tid.x", Given::tid_x},
    {"%tid.y", Given::tid_y},
    {"%tid.z", Given::tid_z},
    {"%ntid.x", Given::ntid_x},
    {"%ntid.y", Given::ntid_y},
    {"%ntid.z", Given::ntid_z},
    {"%ctaid.x", Given::ctaid_x},
    {"%ctaid.y", Given::ctaid_y},
    {"%ctaid.z", Given::ctaid_z},
    {"%nctaid.x", Given::nctaid_x},
    {"%nctaid.y", Given::nctaid_y},
    {"%nctaid.z", Given::nctaid_z},
    {"%laneid", Given::laneid},
    {"%warpid", Given::warpid},
    {"%nwarpid", Given::nwarpid},
    {"%cluster_ctarank", Given::cluster_ctarank},
    {"%cluster_nctarank", Given::cluster_nctarank},
    {"%clusterid.x", Given::clusterid_x},
    {"%nclusterid.x", Given::nclusterid_x},
    {"%cluster_ctaid.x", Given::cluster_ctaid_x},
    {"%cluster_nctaid.x", Given::cluster_nctaid_x},
    {"%cluster_ctaid.y", Given::zero},
    {"%cluster_ctaid.z", Given::zero},
    {"%cluster_nctaid.y", Given::one},
    {"%cluster_nctaid.z", Given::one},
    {"%lanemask_lt", Given::lanemask_lt},
    {"%lanemask_le", Given::lanemask_le},
    {"%lanemask_eq", Given::lanemask_eq},
    {"%lanemask_ge", Given::lanemask_ge},
    {"%lanemask_gt", Given::lanemask_gt},
    {"%dynamic_smem_size", Given::dynamic_bytes},
};

// There are names. Where several are as near, the first by letters is taken.
template <class Names>
std::string nearest(std::string_view name, const Names& names) {
  return std::string(std::ranges::min_element(names, {}, [name](const auto& known) {
                       const std::string_view candidate = known.first;
                       return std::pair(numeric::edit_distance(name, candidate), candidate);
                     })->first);
}

// The nearest of those that begin alike, if any do.
std::string nearest_form(std::string_view opcode, const Forms& forms) {
  std::vector<std::pair<std::string_view, int>> alike;
  const std::string_view first = opcode.substr(0, opcode.find('.'));
  for (const auto& [name, form] : forms) {
    const std::string_view other = name;
    if (other.substr(0, other.find('.')) == first) alike.emplace_back(other, 0);
  }
  return alike.empty() ? nearest(opcode, forms) : nearest(opcode, alike);
}

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t align) {
  return align == 0 ? bytes : (bytes + align - 1) / align * align;
}

const Op* skip_if(Frame& f, const Op* op) {
  return f.r[op->a] != 0 ? op + 2 : op + 1;
}
const Op* skip_unless(Frame& f, const Op* op) {
  return f.r[op->a] == 0 ? op + 2 : op + 1;
}
const Op* jump(Frame& f, const Op* op) {
  return f.program->ops.data() + op->x;
}
const Op* jump_if(Frame& f, const Op* op) {
  return f.r[op->a] != 0 ? f.program->ops.data() + op->x : op + 1;
}
const Op* jump_unless(Frame& f, const Op* op) {
  return f.r[op->a] == 0 ? f.program->ops.data() + op->x : op + 1;
}
const Op* ends(Frame& /*f*/, const Op* /*op*/) {
  return nullptr;
}
const Op* touches(Frame& f, const Op* op) {
  model::touch_fragment(f.accumulators[op->x], f.place(op));
  return op + 1;
}
const Op* uses_peers(Frame& /*f*/, const Op* op) {
  if (model::reads_in_flight > 0) model::values_used();
  return op + 1;
}
const Op* negates(Frame& f, const Op* op) {
  f.r[op->d] = f.r[op->a] == 0 ? 1 : 0;
  return op + 1;
}
const Op* adds_offset(Frame& f, const Op* op) {
  f.r[op->d] = f.r[op->a] + op->x;
  return op + 1;
}
const Op* adds_wide_offset(Frame& f, const Op* op) {
  f.put(op->d, f.get<std::uint64_t>(op->a) +
                   static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(op->x)}));
  return op + 1;
}

// Loads and stores say how caches are to treat them, which changes nothing here.
std::string without_hints(std::string_view opcode) {
  std::string text(opcode);
  if (!opcode.starts_with("ld.") && !opcode.starts_with("st.")) return text;
  for (const std::string hint :
       {".nc", ".ca", ".cg", ".cs", ".lu", ".cv", ".wb", ".wt", ".L1::evict_normal",
        ".L1::evict_unchanged", ".L1::evict_first", ".L1::evict_last", ".L1::no_allocate",
        ".L2::64B", ".L2::128B", ".L2::256B"}) {
    const std::size_t at = text.find(hint);
    if (at == std::string::npos) continue;
    const std::size_t end = at + hint.size();
    if (end == text.size() || text[end] == '.') text.erase(at, hint.size());
  }
  return text;
}

const Op* traps(Frame& f, const Op* op) {
  f.fail(op, "the kernel ends itself by trap");
}

void decode_branch(Decoder& d, const Statement& s, const Form& /*form*/) {
  d.need(s, 1, 1);
  d.emit({.run = &jump, .x = d.label(s.operands[0])});
}

void decode_end(Decoder& d, const Statement& s, const Form& /*form*/) {
  d.need(s, 0, 0);
  d.emit({.run = &ends});
}

}  // namespace

const Forms& all_forms() {
  static const Forms all = [] {
    Forms forms;
    add_arithmetic(forms);
    add_floats(forms);
    add_conversions(forms);
    add_memory(forms);
    add_synchronisation(forms);
    add_copies(forms);
    add_matrices(forms);
    add_register_mmas(forms);
    add_tensor_memory(forms);
    add_launch_control(forms);
    for (const char* name : {"bra", "bra.uni"}) forms[name] = {nullptr, "", &decode_branch};
    for (const char* name : {"ret", "ret.uni", "exit"}) forms[name] = {nullptr, "", &decode_end};
    forms["trap"] = {&traps, ""};
    return forms;
  }();
  return all;
}

bool is_known(std::string_view opcode) {
  return all_forms().contains(without_hints(opcode));
}

Decoder::Decoder(const Module& module, const Entry& entry, Program& program)
    : module_(module), entry_(entry), program_(program) {}

void Decoder::fault(const std::string& sentence) const {
  throw Fault(statement_ == nullptr ? entry_.line : statement_->line, sentence);
}

std::uint32_t Decoder::take(int bits) {
  auto& image = program_.image;
  const int words = std::max(1, bits / 32);
  if (words > 1 && image.size() % 2 != 0) image.push_back(~0U);
  const auto at = static_cast<std::uint32_t>(image.size());
  image.resize(image.size() + static_cast<std::size_t>(words), ~0U);
  return at;
}

std::uint32_t Decoder::constant(std::uint64_t value, bool wide) {
  if (!wide) value &= 0xffffffffU;
  const auto [it, is_new] = constants_[wide ? 1 : 0].try_emplace(value, 0);
  if (!is_new) return it->second;
  const std::uint32_t at = take(wide ? 64 : 32);
  it->second = at;
  program_.image[at] = static_cast<std::uint32_t>(value);
  if (wide) program_.image[at + 1] = static_cast<std::uint32_t>(value >> 32);
  return at;
}

std::uint32_t Decoder::scratch() {
  if (!std::exchange(has_scratch_, true)) scratch_ = take(128);
  return scratch_;
}

std::uint32_t Decoder::given(Given what, std::uint64_t value, bool wide) {
  const std::string key =
      std::to_string(static_cast<int>(what)) + "," + std::to_string(value) + (wide ? "w" : "");
  const auto [it, is_new] = givens_.try_emplace(key, 0);
  if (!is_new) return it->second;
  it->second = take(wide ? 64 : 32);
  program_.given.push_back({what, it->second, wide, value});
  return it->second;
}

// A special register, or the address of a variable.
std::uint32_t Decoder::named(const Operand& o, bool wide) {
  if (o.name[0] == '%') {
    const auto* const found =
        std::ranges::find(kSpecial, o.name, &std::pair<std::string_view, Given>::first);
    if (found != std::end(kSpecial)) {
      if (wide)
        fault(std::string(o.name) + " has 32 bits where " + std::string(opcode()) + " takes 64");
      return given(found->second, 0, false);
    }
    fault("there is no register " + std::string(o.name) + "; the special one nearest to it is " +
          nearest(o.name, kSpecial));
  }
  const auto it = variables_.find(o.name);
  if (it == variables_.end()) fault("there is no variable " + std::string(o.name));
  const Variable& v = *it->second;
  const std::uint64_t at = offsets_.at(&v) + static_cast<std::uint64_t>(o.offset);
  constexpr Given kinds[] = {Given::zero,   Given::param,  Given::constant,
                             Given::global, Given::shared, Given::local};
  // In 32 bits a parameter is where it lies among them, of which cvta.param makes an address.
  if (!wide && v.space == Space::param) return constant(at, false);
  if (!wide && v.space != Space::shared) {
    fault("the address of " + std::string(o.name) + " has 64 bits where " + std::string(opcode()) +
          " takes 32");
  }
  return given(kinds[static_cast<int>(v.space)], at, wide);
}

int Decoder::bits(const Operand& o) const {
  if (o.kind != Operand::Kind::reg) return 0;
  return entry_.registers[static_cast<std::size_t>(o.reg)].bits;
}

std::uint32_t Decoder::place(const Operand& o) const {
  if (o.kind != Operand::Kind::reg) {
    fault(std::string(opcode()) + " takes a register there");
  }
  return at_[static_cast<std::size_t>(o.reg)];
}

// Bits of a letter of Form::operands.
static int bits_of(char kind) {
  switch (kind) {
    case 'p':
    case 'P':
      return 1;
    case 'b':
    case 'B':
      return 8;
    case 'h':
    case 'H':
      return 16;
    case 'l':
    case 'L':
    case 'F':
      return 64;
    case 'q':
    case 'Q':
      return 128;
    default:
      return 32;
  }
}

std::uint32_t Decoder::read(const Operand& o, char kind) {
  const int wanted = bits_of(kind);
  switch (o.kind) {
    case Operand::Kind::reg: {
      if (bits(o) != wanted) {
        fault("a register of " + std::to_string(bits(o)) + " bits stands where " +
              std::string(opcode()) + " takes " + std::to_string(wanted));
      }
      if (!o.negated) return place(o);
      if (kind != 'p') fault("only predicates can be negated");
      const std::uint32_t inverse = take(32);
      emit({.run = &negates, .d = inverse, .a = place(o)});
      return inverse;
    }
    case Operand::Kind::number: {
      if (kind == 'p') return constant(o.bits != 0 ? 1 : 0, false);
      if (wanted == 128) fault(std::string(opcode()) + " takes a register there");
      if (o.number == Operand::Number::decimal ||
          ((kind == 'f' || kind == 'F') && o.number == Operand::Number::integer)) {
        return kind == 'F'
                   ? constant(std::bit_cast<std::uint64_t>(o.value), true)
                   : constant(std::bit_cast<std::uint32_t>(static_cast<float>(o.value)), false);
      }
      if (o.number == Operand::Number::f64 && kind == 'f') {
        return constant(
            std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(o.bits))), false);
      }
      return constant(wanted == 16 ? o.bits & 0xffffU : o.bits, wanted == 64);
    }
    case Operand::Kind::name:
      return named(o, wanted == 64);
    default:
      fault(std::string(opcode()) + " takes a register or a number there");
  }
}

std::uint32_t Decoder::write(const Operand& o, char kind) {
  if (o.kind == Operand::Kind::sink) return scratch();
  if (bits(o) != bits_of(kind)) {
    fault("a register of " + std::to_string(bits(o)) + " bits stands where " +
          std::string(opcode()) + " writes " + std::to_string(bits_of(kind)));
  }
  return place(o);
}

Decoder::Address Decoder::address(const Operand& o) {
  if (o.kind != Operand::Kind::address) fault(std::string(opcode()) + " takes an [address] there");
  const Operand& base = o.parts[0];
  if (o.offset < INT32_MIN || o.offset > INT32_MAX) fault("an offset does not fit 32 bits");
  Address a;
  a.offset = static_cast<std::int32_t>(o.offset);
  if (base.kind == Operand::Kind::reg) {
    a.wide = bits(base) == 64;
    if (!a.wide && bits(base) != 32) fault("an address has 32 or 64 bits");
    a.base = place(base);
  } else if (base.kind == Operand::Kind::name) {
    a.wide = true;
    Operand whole = base;
    whole.offset += o.offset;
    a.offset = 0;
    a.base = named(whole, true);
  } else if (base.kind == Operand::Kind::number) {
    a.wide = true;
    a.base = constant(base.bits, true);
  } else {
    fault("an address begins with a register, a variable or a number");
  }
  return a;
}

std::uint32_t Decoder::at_offset(const Address& a, int width, Run add) {
  if (a.offset == 0) return a.base;
  const std::uint32_t at = take(width);
  emit({.run = add, .d = at, .a = a.base, .x = static_cast<std::uint32_t>(a.offset)});
  return at;
}

std::uint32_t Decoder::shared_address(const Operand& o) {
  return at_offset(address(o), 32, &adds_offset);  // of 64 bits the lower word is the address
}

std::uint32_t Decoder::wide_address(const Operand& o) {
  const Address a = address(o);
  if (!a.wide) fault("the address has 32 bits where " + std::string(opcode()) + " takes 64");
  return at_offset(a, 64, &adds_wide_offset);
}

std::int64_t Decoder::immediate(const Operand& o) {
  if (o.kind != Operand::Kind::number || o.number != Operand::Number::integer) {
    fault(std::string(opcode()) + " takes a number there that is written out");
  }
  return static_cast<std::int64_t>(o.bits);
}

void Decoder::need(const Statement& s, std::size_t least, std::size_t most) {
  const std::size_t n = s.operands.size();
  if (n >= least && n <= most) return;
  fault(std::string(s.opcode) + " has " + std::to_string(n) + " operands, and takes " +
        std::to_string(least) + (most != least ? " to " + std::to_string(most) : ""));
}

std::uint32_t Decoder::keep_words(std::span<const std::uint32_t> words) {
  const auto begin = static_cast<std::uint32_t>(program_.words.size());
  program_.words.insert(program_.words.end(), words.begin(), words.end());
  return begin;
}

void Decoder::emit(Op op) {
  op.place = place_of(statement_ == nullptr ? entry_.line : statement_->line);
  program_.ops.push_back(op);
}

// Operations come in the order of the text.
std::uint32_t Decoder::place_of(int line) {
  auto& places = program_.places;
  if (places.empty() || places.back().line != line) {
    const std::string source = source_text(line);
    places.push_back({source + (source.empty() ? "" : ", ") + program_.name, line});
  }
  return static_cast<std::uint32_t>(places.size() - 1);
}

// "isa/mbarrier.h:29 in pipeline/ring.h:157": a line, and from where it was inlined.
std::string Decoder::source_text(int line) const {
  const auto after =
      std::ranges::upper_bound(module_.sources, line, {}, &std::pair<int, Source>::first);
  if (after == module_.sources.begin()) return {};
  const auto name = [&](const Source& s) {
    const auto it = module_.files.find(s.file);
    std::string_view file = it == module_.files.end() ? "?" : it->second;
    const std::size_t slash = file.rfind('/');  // with its folder
    if (slash != std::string_view::npos && slash > 0) {
      const std::size_t folder = file.rfind('/', slash - 1);
      if (folder != std::string_view::npos) file.remove_prefix(folder + 1);
    }
    return std::string(file) + ":" + std::to_string(s.line);
  };
  const Source at = std::prev(after)->second;
  const auto around = module_.inlined.find(at);
  return name(at) + (around == module_.inlined.end() ? "" : " in " + name(around->second));
}

std::uint32_t Decoder::label(const Operand& o) {
  if (o.kind != Operand::Kind::name) fault("a branch takes a label");
  for (int scope = statement_->scope; scope >= 0;
       scope = entry_.outer[static_cast<std::size_t>(scope)]) {
    for (const Label& l : entry_.labels) {
      if (l.scope == scope && l.name == o.name) return static_cast<std::uint32_t>(l.at);
    }
  }
  fault("there is no label " + std::string(o.name));
}

int Decoder::run_of(int reg) const {
  return run_[static_cast<std::size_t>(reg)];
}

// The registers of a list lie side by side.
void Decoder::run_together(const Operand& list) {
  for (std::size_t i = 0; i < list.parts.size(); ++i) {
    const Operand& o = list.parts[i];
    if (o.kind != Operand::Kind::reg || bits(o) != 32) {
      fault(std::string(opcode()) + " takes registers of 32 bits in its lists");
    }
    if (i == 0) continue;
    const int left = list.parts[i - 1].reg;
    auto& after = after_[static_cast<std::size_t>(left)];
    auto& before = before_[static_cast<std::size_t>(o.reg)];
    if ((after >= 0 && after != o.reg) || (before >= 0 && before != left)) {
      fault(
          "two instructions of tensor cores have some registers of their lists in common, in "
          "another order: such accumulators are not in the subset");
    }
    after = o.reg;
    before = left;
  }
}

void Decoder::lay_out_registers() {
  const std::size_t n = entry_.registers.size();
  at_.assign(n, 0);
  run_.assign(n, -1);
  after_.assign(n, -1);
  before_.assign(n, -1);
  from_peers_.assign(n, false);
  std::vector<int> first;
  for (const Statement& s : entry_.statements) {
    statement_ = &s;
    if (s.opcode.starts_with("ld.shared::cluster")) {
      const Operand& to = s.operands.empty() ? Operand{} : s.operands[0];
      for (const Operand& o : to.kind == Operand::Kind::list ? to.parts : std::vector{to}) {
        if (o.kind == Operand::Kind::reg) from_peers_[static_cast<std::size_t>(o.reg)] = true;
      }
    }
    const bool loads = s.opcode.starts_with("tcgen05.ld.");
    const bool has_two =
        s.opcode.starts_with("wgmma.mma_async") || s.opcode.starts_with("tcgen05.ld.red.");
    const std::size_t lists = has_two ? 2 : loads ? 1 : 0;
    for (std::size_t i = 0; i < lists && i < s.operands.size(); ++i) {
      const Operand& list = s.operands[i];
      if (list.kind == Operand::Kind::reg && loads) first.push_back(list.reg);
      if (list.kind != Operand::Kind::list) continue;
      run_together(list);
      first.push_back(list.parts[0].reg);
    }
  }
  statement_ = nullptr;
  // A list may be the begin of a longer one.
  for (const int reg : first) {
    if (before_[static_cast<std::size_t>(reg)] >= 0) {
      fault(
          "a list of registers of tensor cores begins inside of another: such accumulators are "
          "not in the subset");
    }
    if (run_[static_cast<std::size_t>(reg)] >= 0) continue;
    const int run = static_cast<int>(program_.accumulators++);
    for (int r = reg; r >= 0; r = after_[static_cast<std::size_t>(r)]) {
      at_[static_cast<std::size_t>(r)] = take(32);
      run_[static_cast<std::size_t>(r)] = run;
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (run_[i] < 0) at_[i] = take(entry_.registers[i].bits);
  }
}

// Only what this entry names, as other entries of the text have memory of their own.
std::vector<const Variable*> Decoder::named_variables() const {
  std::vector<const Variable*> used;
  const auto note = [&](const auto& self, const Operand& o) -> void {
    for (const Operand& part : o.parts) self(self, part);
    if (o.kind != Operand::Kind::name) return;
    const auto it = variables_.find(o.name);
    if (it != variables_.end() && std::ranges::find(used, it->second) == used.end()) {
      used.push_back(it->second);
    }
  };
  for (const Statement& s : entry_.statements) {
    for (const Operand& o : s.operands) note(note, o);
  }
  return used;
}

void Decoder::lay_out_variables() {
  const auto add = [&](const Variable& v) { variables_[v.name] = &v; };
  for (const Variable& v : module_.variables) add(v);
  for (const Variable& v : entry_.params) add(v);
  for (const Variable& v : entry_.variables) add(v);
  std::uint64_t at = 0;
  for (const Variable& p : entry_.params) {
    at = rounded_up(at, static_cast<std::uint64_t>(p.align));
    offsets_[&p] = at;
    program_.params.push_back({std::string(p.name), static_cast<std::uint32_t>(at),
                               static_cast<std::uint32_t>(p.bytes),
                               static_cast<std::uint32_t>(p.align)});
    at += static_cast<std::uint64_t>(p.bytes);
  }
  program_.param_bytes = static_cast<std::uint32_t>(at);

  const std::vector<const Variable*> used = named_variables();
  const auto into = [&](std::vector<std::byte>& memory, const Variable& v) {
    const std::uint64_t begin = rounded_up(memory.size(), static_cast<std::uint64_t>(v.align));
    memory.resize(begin + static_cast<std::uint64_t>(v.bytes));
    std::ranges::copy(v.data, memory.begin() + static_cast<std::ptrdiff_t>(begin));
    offsets_[&v] = begin;
  };
  std::uint64_t shared = 0;
  std::uint64_t local = 0;
  for (const Variable* v : used) {
    const auto align = static_cast<std::uint64_t>(v->align);
    if (v->space == Space::constant) into(program_.constants, *v);
    if (v->space == Space::global) into(program_.globals, *v);
    if (v->space == Space::shared && !v->is_extern) {
      offsets_[v] = shared = rounded_up(shared, align);
      shared += static_cast<std::uint64_t>(v->bytes);
    }
    if (v->space == Space::local) {
      offsets_[v] = local = rounded_up(local, align);
      local += static_cast<std::uint64_t>(v->bytes);
    }
  }
  for (const Variable* v : used) {
    if (v->space != Space::shared || !v->is_extern) continue;
    offsets_[v] = shared == 0 ? 0 : rounded_up(shared, static_cast<std::uint64_t>(v->align));
  }
  constexpr std::uint64_t most_local = std::uint64_t{512} << 10;  // that a thread has
  if (local > most_local || shared > std::uint64_t{model::max_shared_bytes}) {
    fault("its variables take " + std::to_string(local) + " bytes of local and " +
          std::to_string(shared) + " of shared memory: the most are " + std::to_string(most_local) +
          " and " + std::to_string(model::max_shared_bytes));
  }
  program_.static_shared = static_cast<std::uint32_t>(shared);
  program_.local_bytes = static_cast<std::uint32_t>(local);
}

// In front of a statement: what it does with registers that others own.
void Decoder::touch(const Statement& s) {
  bool peers = false;
  std::vector<int> runs;
  const auto look = [&](const auto& self, const Operand& o, bool written) -> void {
    for (const Operand& part : o.parts) {
      self(self, part, written && o.kind != Operand::Kind::address);
    }
    if (o.kind != Operand::Kind::reg) return;
    const auto reg = static_cast<std::size_t>(o.reg);
    if (!written && from_peers_[reg]) peers = true;
    if (run_[reg] >= 0 && std::ranges::find(runs, run_[reg]) == runs.end())
      runs.push_back(run_[reg]);
  };
  for (std::size_t i = 0; i < s.operands.size(); ++i) look(look, s.operands[i], i == 0);
  if (peers) emit({.run = &uses_peers});
  if (s.opcode.starts_with("wgmma.mma_async")) return;
  for (const int run : runs) emit({.run = &touches, .x = static_cast<std::uint32_t>(run)});
}

void Decoder::generic(const Statement& s, const Form& form) {
  const auto n = static_cast<std::size_t>(
      std::ranges::count_if(form.operands, [](char kind) { return kind != '#'; }));
  need(s, n, n);
  std::uint32_t read_at[5] = {0, 0, 0, form.x};
  std::uint32_t written = 0;
  std::size_t reads = 0;
  std::size_t i = 0;
  for (const char kind : form.operands) {
    if (kind >= 'A' && kind <= 'Z' && kind != 'F') {
      written = write(s.operands[i++], kind);
    } else {
      read_at[reads++] = kind == '#'   ? constant(form.x, false)
                         : kind == 's' ? shared_address(s.operands[i++])
                         : kind == 'g' ? wide_address(s.operands[i++])
                                       : read(s.operands[i++], kind);
    }
  }
  emit({form.run, written, read_at[0], read_at[1], read_at[2], read_at[3]});
}

void Decoder::decode(const Statement& s) {
  statement_ = &s;
  if (const std::string who = lacking(module_.target, s.opcode); !who.empty()) {
    fault(std::string(module_.target.name) + " has no " + std::string(s.opcode) + ": that is of " +
          who);
  }
  const Forms& forms = all_forms();
  const auto it = forms.find(without_hints(s.opcode));
  if (it == forms.end()) {
    fault("\"" + std::string(s.opcode) + "\" is not in the subset; the nearest instruction is " +
          nearest_form(s.opcode, forms));
  }
  const Form& form = it->second;
  const std::size_t begin = program_.ops.size();
  if (s.guard >= 0) {
    // A branch takes its predicate with it; all else is stepped over.
    if (entry_.registers[static_cast<std::size_t>(s.guard)].bits != 1) {
      fault("a guard is a predicate");
    }
    const std::uint32_t guard = at_[static_cast<std::size_t>(s.guard)];
    if (form.decode == &decode_branch) {
      form.decode(*this, s, form);
      Op& op = program_.ops.back();
      op.run = s.guard_not ? &jump_unless : &jump_if;
      op.a = guard;
      return;
    }
    emit({.run = s.guard_not ? &skip_if : &skip_unless, .a = guard});
  }
  const std::size_t inside = program_.ops.size();
  touch(s);
  if (form.decode != nullptr) {
    form.decode(*this, s, form);
  } else {
    generic(s, form);
  }
  if (s.guard >= 0 && program_.ops.size() != inside + 1) {
    // Several operations are jumped over.
    Op& op = program_.ops[begin];
    op.run = s.guard_not ? &jump_if : &jump_unless;
    op.x = static_cast<std::uint32_t>(program_.ops.size()) | 0x80000000U;
  }
}

void Decoder::decode() {
  lay_out_registers();
  lay_out_variables();
  std::vector<std::uint32_t>& begins = program_.begins;
  for (const Statement& s : entry_.statements) {
    begins.push_back(static_cast<std::uint32_t>(program_.ops.size()));
    decode(s);
  }
  statement_ = nullptr;
  begins.push_back(static_cast<std::uint32_t>(program_.ops.size()));
  emit({.run = &ends});
  for (Op& op : program_.ops) {
    if (op.run != &jump && op.run != &jump_if && op.run != &jump_unless) continue;
    if ((op.x & 0x80000000U) != 0) {
      op.x &= 0x7fffffffU;
    } else {
      op.x = begins[op.x];
    }
  }
}

Program decode(const Module& module, std::string name, std::string_view entry) {
  const auto it = std::ranges::find(module.entries, entry, &Entry::name);
  if (it == module.entries.end()) {
    std::vector<std::pair<std::string_view, int>> names;
    for (const Entry& e : module.entries) names.emplace_back(e.name, 0);
    throw Fault(
        0, "there is no entry " + std::string(entry) + "; the nearest is " + nearest(entry, names));
  }
  Program program;
  program.name = std::move(name);
  program.entry = entry;
  program.max_threads = it->max_threads;
  program.min_ctas = it->min_ctas;
  program.max_registers = it->max_registers;
  const auto has = [&](std::string_view begin) {
    return std::ranges::any_of(it->statements,
                               [begin](const Statement& s) { return s.opcode.starts_with(begin); });
  };
  program.waits_for_grids = has("griddepcontrol.wait");
  program.asks_for_clusters = has("clusterlaunchcontrol.try_cancel");
  Decoder(module, *it, program).decode();
  return program;
}

}  // namespace warpwright::ptx
