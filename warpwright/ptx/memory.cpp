// Loads, stores, additions in memory, and what addresses are (PTX ISA 5.1, 9.7.9). An address of
// shared memory is the model's; one that is generic has a bit that no address of the host has.
// Those of parameters, constants and local memory are the host's.
#include <algorithm>
#include <array>

#include "warpwright/model/launch_answers.h"
#include "warpwright/model/polling.h"
#include "warpwright/ptx/forms.h"

namespace warpwright::ptx {
namespace {

constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << 62;

[[noreturn]] void outside(const Frame& f, const Op* op, const char* what) {
  f.fail(op, std::string("an address outside of ") + what);
}

bool lies_in(std::uint64_t at, std::uint64_t bytes, const std::byte* begin, std::uint64_t size) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  return at >= first && at - first <= size && size - (at - first) >= bytes;
}
bool in_params(const Frame& f, std::uint64_t at, std::uint64_t bytes) {
  return lies_in(at, bytes, f.params, f.program->param_bytes);
}
bool in_constants(const Frame& f, std::uint64_t at, std::uint64_t bytes) {
  return lies_in(at, bytes, f.program->constants.data(), f.program->constants.size());
}
bool in_local(const Frame& f, std::uint64_t at, std::uint64_t bytes) {
  return lies_in(at, bytes, f.local, f.program->local_bytes);
}

// How memory is reached: by its space, and the shared one of the own CTA or of the cluster.
enum class Way : std::uint8_t { generic, param, constant, global, shared, cluster, local };

template <Way way>
void fetch(Frame& f, const Op* op, std::uint64_t at, void* to, int bytes) {
  const auto n = static_cast<std::uint64_t>(bytes);
  if constexpr (way == Way::param) {
    if (!in_params(f, at, n)) outside(f, op, "the parameters");
    std::memcpy(to, host<std::byte>(at), n);
  } else if constexpr (way == Way::constant) {
    if (!in_constants(f, at, n)) outside(f, op, "the constants");
    std::memcpy(to, host<std::byte>(at), n);
  } else if constexpr (way == Way::local) {
    if (!in_local(f, at, n)) outside(f, op, "local memory");
    std::memcpy(to, host<std::byte>(at), n);
  } else if constexpr (way == Way::shared) {
    model::shared_load(static_cast<std::uint32_t>(at), to, bytes, f.site(op));
    if (f.program->asks_for_clusters) {
      model::launch_answers_read(static_cast<std::uint32_t>(at), bytes);
    }
  } else if constexpr (way == Way::cluster) {
    model::cluster_load(static_cast<std::uint32_t>(at), to, bytes, f.site(op));
  } else if constexpr (way == Way::global) {
    model::global_load(host<std::byte>(at), to, bytes, f.site(op));
  } else if ((at & kSharedWindow) != 0) {
    fetch<Way::shared>(f, op, at, to, bytes);
  } else if (in_params(f, at, n) || in_constants(f, at, n) || in_local(f, at, n)) {
    std::memcpy(to, host<std::byte>(at), n);
  } else {
    fetch<Way::global>(f, op, at, to, bytes);
  }
}

template <Way way>
void keep(Frame& f, const Op* op, std::uint64_t at, const void* from, int bytes) {
  const auto n = static_cast<std::uint64_t>(bytes);
  if constexpr (way == Way::local) {
    if (!in_local(f, at, n)) outside(f, op, "local memory");
    std::memcpy(host<std::byte>(at), from, n);
  } else if constexpr (way == Way::shared) {
    model::shared_store(static_cast<std::uint32_t>(at), from, bytes, f.site(op));
  } else if constexpr (way == Way::cluster) {
    model::cluster_store(static_cast<std::uint32_t>(at), from, bytes, f.site(op));
  } else if constexpr (way == Way::global) {
    model::global_store(host<std::byte>(at), from, bytes, f.site(op));
  } else if ((at & kSharedWindow) != 0) {
    keep<Way::shared>(f, op, at, from, bytes);
  } else if (in_local(f, at, n)) {
    keep<Way::local>(f, op, at, from, bytes);
  } else {
    keep<Way::global>(f, op, at, from, bytes);
  }
}

// Op::x of a load or store: bytes of an element, how many, whether they have a sign, and whether
// the address has 64 bits. Op::c is its offset; Op::d, where there are several, their list.
constexpr std::uint32_t packed(int bytes, int count, bool is_signed, bool wide) {
  return static_cast<std::uint32_t>(bytes | count << 8 | (is_signed ? 1 << 16 : 0) |
                                    (wide ? 1 << 17 : 0));
}
constexpr std::uint32_t kWideRegister = 0x80000000U;

std::uint64_t address_of(const Frame& f, const Op* op) {
  const std::uint64_t base =
      (op->x & 1U << 17) != 0 ? f.get<std::uint64_t>(op->a) : f.get<std::uint32_t>(op->a);
  return base + static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(op->c)});
}

void put_element(Frame& f, std::uint32_t at, const std::byte* from, int bytes, bool is_signed) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, static_cast<std::size_t>(bytes));
  if (is_signed && bytes < 8) {
    const int unused = 64 - 8 * bytes;
    value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
  }
  if ((at & kWideRegister) != 0) {
    f.put(at & ~kWideRegister, value);
  } else {
    f.put(at, static_cast<std::uint32_t>(value));
  }
}

template <Way way>
const Op* load(Frame& f, const Op* op) {
  const int bytes = static_cast<int>(op->x & 0xffU);
  const int count = static_cast<int>(op->x >> 8 & 0xffU);
  const bool is_signed = (op->x & 1U << 16) != 0;
  alignas(16) std::array<std::byte, 32> values;  // NOLINT: all of those that are read are written
  fetch<way>(f, op, address_of(f, op), values.data(), bytes * count);
  if (count == 1) {
    put_element(f, op->d, values.data(), bytes, is_signed);
    return op + 1;
  }
  const std::uint32_t* at = f.program->words.data() + op->d;
  for (int i = 0; i < count; ++i) {
    put_element(f, at[i], values.data() + i * bytes, bytes, is_signed);
  }
  return op + 1;
}

template <Way way>
const Op* store(Frame& f, const Op* op) {
  const int bytes = static_cast<int>(op->x & 0xffU);
  const int count = static_cast<int>(op->x >> 8 & 0xffU);
  alignas(16) std::array<std::byte, 32> values;  // NOLINT
  const std::uint32_t* at = count == 1 ? &op->d : f.program->words.data() + op->d;
  for (int i = 0; i < count; ++i) {
    std::memcpy(values.data() + i * bytes, f.r + at[i], static_cast<std::size_t>(bytes));
  }
  keep<way>(f, op, address_of(f, op), values.data(), bytes * count);
  return op + 1;
}

// Form::x: bytes of an element, how many, whether they have a sign; Form::y: 1 where the form is a
// store.
void decode_access(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 2, 2);
  const bool stores = form.y == 1;
  const int bytes = static_cast<int>(form.x & 0xffU);
  const int count = static_cast<int>(form.x >> 8 & 0xffU);
  const Operand& value = s.operands[stores ? 1 : 0];
  const Decoder::Address address = d.address(s.operands[stores ? 0 : 1]);
  const auto one = [&](const Operand& o) -> std::uint32_t {
    if (stores && o.kind == Operand::Kind::number) {
      return d.read(o, bytes == 8 ? 'l' : 'i');
    }
    if (!stores && o.kind == Operand::Kind::sink) return d.scratch();
    const std::uint32_t at = d.place(o);
    if (d.bits(o) < std::max(8 * bytes, 16)) {
      d.fault("a register of " + std::to_string(d.bits(o)) + " bits stands where " +
              std::string(d.opcode()) + " moves " + std::to_string(8 * bytes));
    }
    return !stores && d.bits(o) == 64 ? at | kWideRegister : at;
  };
  std::uint32_t where = 0;
  if (bytes == 16) {  // one register: moved as two
    const std::uint32_t at = stores ? d.read(value, 'q') : d.write(value, 'Q');
    const std::uint32_t flag = stores ? 0 : kWideRegister;
    where = d.keep_words({at | flag, (at + 2) | flag});
  } else if (count == 1) {
    // (A list of one is one.)
    where =
        one(value.kind == Operand::Kind::list && value.parts.size() == 1 ? value.parts[0] : value);
  } else {
    if (value.kind != Operand::Kind::list ||
        value.parts.size() != static_cast<std::size_t>(count)) {
      d.fault(std::string(d.opcode()) + " moves a list of " + std::to_string(count));
    }
    std::vector<std::uint32_t> at;
    for (const Operand& o : value.parts) at.push_back(one(o));
    where = d.keep_words(at);
  }
  d.emit({.run = form.run,
          .d = where,
          .a = address.base,
          .c = static_cast<std::uint32_t>(address.offset),
          .x = bytes == 16 ? packed(8, 2, false, address.wide)
                           : packed(bytes, count, (form.x & 1U << 16) != 0, address.wide)});
}

void add_accesses(Forms& forms, const std::string& kind, const std::string& space, Run run,
                  bool stores) {
  struct Type {
    const char* name;
    int bytes;
  };
  constexpr Type types[] = {{"b8", 1},  {"u8", 1},  {"s8", 1},  {"b16", 2}, {"u16", 2},
                            {"s16", 2}, {"b32", 4}, {"u32", 4}, {"s32", 4}, {"f32", 4},
                            {"b64", 8}, {"u64", 8}, {"s64", 8}, {"f64", 8}, {"b128", 16}};
  for (const Type& t : types) {
    for (const int count : {1, 2, 4}) {
      if (t.bytes * count > 16) continue;
      const std::string vector = count == 1 ? "" : ".v" + std::to_string(count);
      forms[name_of(kind, space, vector, ".", t.name)] = {
          run, "", &decode_access, packed(t.bytes, count, t.name[0] == 's', false),
          stores ? 1U : 0U};
    }
  }
}

// --- addresses of one space and generic ones
// A name gives the host's address in 64 bits, and in 32 a place among the parameters.
const Op* address_of_parameter(Frame& f, const Op* op) {
  const auto at = f.get<std::uint64_t>(op->a);
  const bool is_place = at < f.program->param_bytes;
  f.put(op->d, is_place ? at + reinterpret_cast<std::uintptr_t>(f.params) : at);
  return op + 1;
}
const Op* to_window(Frame& f, const Op* op) {
  f.put(op->d, f.get<std::uint64_t>(op->a) | kSharedWindow);
  return op + 1;
}
const Op* from_window(Frame& f, const Op* op) {
  f.put(op->d, f.get<std::uint64_t>(op->a) & ~kSharedWindow);
  return op + 1;
}
const Op* copy_wide(Frame& f, const Op* op) {
  f.put(op->d, f.get<std::uint64_t>(op->a));
  return op + 1;
}

// --- words that tell others
const Op* acquire_load(Frame& f, const Op* op) {
  const auto at = f.get<std::uint64_t>(op->a);
  const bool again = f.asks_again(op, at);
  const auto seen = f.get<std::uint32_t>(op->b);
  const model::Site site = f.site(op);
  // A loop of loads that has nothing else in it waits for another value.
  const std::uint32_t value = again ? model::flag_load_other(host<void>(at), seen, site)
                                    : model::flag_load(host<void>(at), site);
  f.put(op->b, value);
  f.put(op->d, value);
  f.not_yet();
  return op + 1;
}
void decode_acquire(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 2, 2);
  const std::uint32_t at = d.wide_address(s.operands[1]);
  d.emit({.run = form.run, .d = d.write(s.operands[0], 'I'), .a = at, .b = d.reserve()});
}
template <model::Update how, class T>
void update(void* word, T value, model::Site site) {
  model::update_global(word, how, value, sizeof(T), site);
}
template <class T>
void add_in_cluster(std::uint32_t address, T value, model::Site site) {
  model::cluster_add(address, value, site);
}

const Op* nothing(Frame& /*f*/, const Op* op) {
  return op + 1;
}
void decode_hint(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 1, 2);
  d.address(s.operands[0]);
  d.emit({.run = form.run});
}

}  // namespace

void add_memory(Forms& forms) {
  struct Where {
    const char* name;
    Run load;
    Run store;
  };
  const Where all[] = {
      {"", &load<Way::generic>, &store<Way::generic>},
      {".global", &load<Way::global>, &store<Way::global>},
      {".shared", &load<Way::shared>, &store<Way::shared>},
      {".shared::cta", &load<Way::shared>, &store<Way::shared>},
      {".shared::cluster", &load<Way::cluster>, &store<Way::cluster>},
      {".local", &load<Way::local>, &store<Way::local>},
      {".param", &load<Way::param>, nullptr},
      {".const", &load<Way::constant>, nullptr},
  };
  for (const Where& w : all) {
    for (const char* how : {"", ".weak", ".volatile", ".relaxed.cta", ".relaxed.cluster",
                            ".relaxed.gpu", ".relaxed.sys"}) {
      add_accesses(forms, std::string("ld") + how, w.name, w.load, false);
      if (w.store == nullptr) break;
      add_accesses(forms, std::string("st") + how, w.name, w.store, true);
    }
  }
  for (const char* type : {"u32", "b32", "s32"}) {
    const std::string t = std::string(".global.") + type;
    forms["ld.acquire.gpu" + t] = {&acquire_load, "", &decode_acquire};
    forms["st.release.gpu" + t] = {does<&model::flag_set>, "gi"};
    forms["st.relaxed.gpu" + t] = {does<&model::flag_store>, "gi"};
  }
  forms["atom.acq_rel.gpu.global.add.u32"] = {does<&model::flag_count>, "Igi"};
  forms["red.release.gpu.global.add.u32"] = {does<&model::flag_add>, "gi"};
  forms["atom.relaxed.gpu.global.inc.u32"] = {does<&model::draw>, "Igi"};
  using model::Update;
  forms["red.relaxed.gpu.global.max.u32"] = {does<&update<Update::largest, std::uint32_t>>, "gi"};
  forms["red.relaxed.gpu.global.min.u64"] = {does<&update<Update::least, std::uint64_t>>, "gl"};
  forms["red.relaxed.gpu.global.add.u64"] = {does<&update<Update::add, std::uint64_t>>, "gl"};
  const std::string to_cluster = "red.relaxed.cluster.shared::cluster.add.";
  forms[to_cluster + "u32"] = {does<&add_in_cluster<std::uint32_t>>, "si"};
  forms[to_cluster + "f32"] = {does<&add_in_cluster<float>>, "sf"};
  forms["cvta.shared.u64"] = {&to_window, "Ll"};
  forms["cvta.shared::cta.u64"] = {&to_window, "Ll"};
  forms["cvta.to.shared.u64"] = {&from_window, "Ll"};
  for (const char* space : {"global", "local", "const"}) {
    forms[std::string("cvta.") + space + ".u64"] = {&copy_wide, "Ll"};
    forms[std::string("cvta.to.") + space + ".u64"] = {&copy_wide, "Ll"};
  }
  forms["cvta.param.u64"] = {&address_of_parameter, "Ll"};
  forms["mapa.shared::cluster.u32"] =
      form_of<&model::map_rank, std::uint32_t, std::uint32_t, int>();
  for (const char* name : {"prefetch.tensormap", "prefetch.param.tensormap", "prefetch.global.L1",
                           "prefetch.global.L2"}) {
    forms[name] = {&nothing, "", &decode_hint};
  }
}

}  // namespace warpwright::ptx
