// Copies that nobody waits for at once: cp.async, bulk copies, those of tensors (PTX ISA 9.7.9.25
// to 9.7.9.28), st.async, and tensor maps that a kernel changes.
#include <algorithm>
#include <array>

#include "warpwright/ptx/forms.h"

namespace warpwright::ptx {
namespace {

constexpr std::uint32_t kNone = ~0U;

const model::TensorMap& map_at(const Frame& f, const Op* op, std::uint64_t at) {
  const auto address = static_cast<std::uintptr_t>(at);
  const auto lies_in = [&](const void* begin, std::uint64_t bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(begin);
    return address >= first && address - first <= bytes &&
           bytes - (address - first) >= sizeof(model::TensorMap);
  };
  bool is_known = lies_in(f.params, f.program->param_bytes);
  for (const model::Allocation& a : *f.allocations) {
    is_known = is_known || lies_in(a.base, static_cast<std::uint64_t>(a.bytes));
  }
  if (!is_known) f.fail(op, "a tensor map lies in no parameter and no buffer");
  if (address % 64 != 0) f.fail(op, "a tensor map is no multiple of 64 bytes");
  return *reinterpret_cast<const model::TensorMap*>(address);
}

// --- copies of tensors; in Program::words from Op::x on: coordinates
std::array<int, 5> coordinates(const Frame& f, const Op* op, std::uint32_t count) {
  std::array<int, 5> at{};
  for (std::uint32_t i = 0; i < count; ++i) {
    at[i] = static_cast<int>(f.r[f.program->words[op->x + i]]);
  }
  return at;
}

// Behind the coordinates: how many, the mode, the mask, CTAs of the group.
constexpr std::uint32_t kMore = 5;
const Op* loads_tensor(Frame& f, const Op* op) {
  const std::uint32_t* more = f.program->words.data() + op->x + kMore;
  const std::uint32_t count = more[0];
  const auto at = coordinates(f, op, count);
  const auto mask = more[2] == kNone ? std::uint16_t{0} : static_cast<std::uint16_t>(f.r[more[2]]);
  if (more[2] != kNone && mask == 0) {
    f.fail(op, "the mask of a multicast names no CTA");
  }
  model::tensor_load(map_at(f, op, f.get<std::uint64_t>(op->b)), {at.data(), count},
                     static_cast<model::CopyMode>(more[1]), f.r[op->a], f.r[op->c], mask,
                     static_cast<int>(more[3]), f.site(op));
  return op + 1;
}

template <bool adds>
const Op* stores_tensor(Frame& f, const Op* op) {
  const std::uint32_t* more = f.program->words.data() + op->x + kMore;
  const std::uint32_t count = more[0];
  const auto at = coordinates(f, op, count);
  model::tensor_store(map_at(f, op, f.get<std::uint64_t>(op->b)), {at.data(), count},
                      static_cast<model::CopyMode>(more[1]), f.r[op->a], adds, f.site(op));
  return op + 1;
}

// What a form of a tensor copy says of it: Form::x; Form::y: 1 a mask, 2 a policy.
struct TensorForm {
  unsigned coordinates = 0;
  model::CopyMode mode = model::CopyMode::tile;
  unsigned ctas = 1;

  [[nodiscard]] std::uint32_t bits() const {
    return coordinates | static_cast<unsigned>(mode) << 8 | ctas << 16;
  }
  static TensorForm of(std::uint32_t bits) {
    return {bits & 0xffU, static_cast<model::CopyMode>(bits >> 8 & 0xffU), bits >> 16};
  }
};

// [map, {coordinates}]; returns where their words begin.
std::uint32_t decode_box(Decoder& d, const Operand& box, const Form& form, std::uint32_t mask) {
  const TensorForm how = TensorForm::of(form.x);
  const unsigned rank = how.coordinates;
  if (box.kind != Operand::Kind::address || box.parts.size() != rank + 1) {
    d.fault(std::string(d.opcode()) + " takes [map, {" + std::to_string(rank) + " coordinates}]");
  }
  std::array<std::uint32_t, kMore> at{};
  for (unsigned i = 0; i < rank; ++i) at[i] = d.read(box.parts[i + 1], 'i');
  const std::uint32_t begin = d.keep_words(at);
  d.keep_words({rank, static_cast<std::uint32_t>(how.mode), mask, how.ctas});
  return begin;
}
std::uint32_t decode_map(Decoder& d, const Operand& box) {
  Operand map = box;
  map.parts.resize(1);
  return d.wide_address(map);
}

// [to], [map, {...}], [barrier] {, mask} {, policy}
void decode_tensor_load(Decoder& d, const Statement& s, const Form& form) {
  const std::size_t n = 3 + (form.y & 1U) + (form.y >> 1);
  d.need(s, n, n);
  const std::uint32_t to = d.shared_address(s.operands[0]);
  const std::uint32_t map = decode_map(d, s.operands[1]);
  const std::uint32_t barrier = d.shared_address(s.operands[2]);
  const std::uint32_t mask = (form.y & 1U) != 0 ? d.read(s.operands[3], 'h') : kNone;
  if ((form.y & 2U) != 0) d.read(s.operands[n - 1], 'l');
  const std::uint32_t begin = decode_box(d, s.operands[1], form, mask);
  d.emit({.run = form.run, .a = to, .b = map, .c = barrier, .x = begin});
}

// [map, {...}], [from] {, policy}
void decode_tensor_store(Decoder& d, const Statement& s, const Form& form) {
  const std::size_t n = 2 + (form.y >> 1);
  d.need(s, n, n);
  const std::uint32_t map = decode_map(d, s.operands[0]);
  const std::uint32_t from = d.shared_address(s.operands[1]);
  const std::uint32_t begin = decode_box(d, s.operands[0], form, kNone);
  d.emit({.run = form.run, .a = from, .b = map, .x = begin});
}

void add_tensor_forms(Forms& forms, const std::string& dim, const std::string& mode,
                      const TensorForm& how) {
  for (const unsigned hint : {0U, 2U}) {
    const std::string tail = hint != 0 ? ".L2::cache_hint" : "";
    for (const std::string space : {".shared::cta", ".shared::cluster"}) {
      const std::string load = name_of("cp.async.bulk.tensor.", dim, space, ".global", mode,
                                       ".mbarrier::complete_tx::bytes");
      for (const unsigned ctas : {0U, 1U, 2U}) {  // of 0 the word is not there
        const std::string group = ctas == 0 ? "" : ".cta_group::" + std::to_string(ctas);
        const std::uint32_t x = TensorForm{how.coordinates, how.mode, std::max(ctas, 1U)}.bits();
        forms[name_of(load, group, tail)] = {&loads_tensor, "", &decode_tensor_load, x, hint};
        if (space == ".shared::cta") continue;
        forms[name_of(load, ".multicast::cluster", group, tail)] = {
            &loads_tensor, "", &decode_tensor_load, x, hint | 1U};
      }
    }
    const std::string way = ".global.shared::cta";
    const std::string to = mode == ".tile::gather4" ? ".tile::scatter4" : mode;
    forms[name_of("cp.async.bulk.tensor.", dim, way, to, ".bulk_group", tail)] = {
        &stores_tensor<false>, "", &decode_tensor_store, how.bits(), hint};
    if (how.mode == model::CopyMode::rows) continue;
    forms[name_of("cp.reduce.async.bulk.tensor.", dim, way, ".add", to, ".bulk_group", tail)] = {
        &stores_tensor<true>, "", &decode_tensor_store, how.bits(), hint};
  }
}

void add_tensors(Forms& forms) {
  for (unsigned rank = 1; rank <= 5; ++rank) {
    for (const char* tile : {"", ".tile"}) {
      add_tensor_forms(forms, std::to_string(rank) + "d", tile, {rank});
    }
  }
  // A column and four rows.
  add_tensor_forms(forms, "2d", ".tile::gather4", {1 + model::kCopiedRows, model::CopyMode::rows});
}

// --- bulk copies of bytes
void load_bytes(std::uint32_t to, const void* from, int bytes, std::uint32_t barrier,
                model::Site site) {
  model::bulk_load(from, to, bytes, barrier, site);
}
template <bool reads_only>
void wait_for_bulk(int pending, model::Site site) {
  model::bulk_wait(pending, reads_only, site);
}
// A number of groups that may be pending.
void decode_wait(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 1, 1);
  const std::int64_t pending = d.immediate(s.operands[0]);
  if (pending < 0 || pending > 1'000'000) d.fault("no sane number of groups");
  d.emit({.run = form.run, .a = d.constant(static_cast<std::uint64_t>(pending), false)});
}

// --- copies by a thread
const Op* copies(Frame& f, const Op* op) {
  const int bytes = static_cast<int>(op->x);
  const int used = op->c == kNone ? bytes : static_cast<int>(f.r[op->c]);
  model::copy_async(f.r[op->a], host<void>(f.get<std::uint64_t>(op->b)), bytes, used, f.site(op));
  return op + 1;
}
const Op* copies_or_zeros(Frame& f, const Op* op) {
  const int bytes = static_cast<int>(op->x);
  model::copy_async(f.r[op->a], host<void>(f.get<std::uint64_t>(op->b)), bytes,
                    f.r[op->c] != 0 ? 0 : bytes, f.site(op));
  return op + 1;
}
// [to], [from], bytes {, bytes that are read, or a predicate that says to read none}
void decode_copy(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 3, 4);
  const std::uint32_t to = d.shared_address(s.operands[0]);
  const std::uint32_t from = d.wide_address(s.operands[1]);
  const std::int64_t bytes = d.immediate(s.operands[2]);
  if (bytes != 16 && (form.x != 0 || (bytes != 4 && bytes != 8))) {
    d.fault(std::string(d.opcode()) + " copies " + (form.x != 0 ? "16" : "4, 8 or 16") + " bytes");
  }
  const bool ignores = s.operands.size() > 3 && d.bits(s.operands[3]) == 1;
  const std::uint32_t used =
      s.operands.size() > 3 ? d.read(s.operands[3], ignores ? 'p' : 'i') : kNone;
  d.emit({.run = ignores ? &copies_or_zeros : &copies,
          .a = to,
          .b = from,
          .c = used,
          .x = static_cast<std::uint32_t>(bytes)});
}
// As a commit_group and a wait_group 0 (PTX ISA 9.7.9.25.3.3).
void wait_for_all_copies(model::Site site) {
  model::copy_async_commit(site);
  model::copy_async_wait(0, site);
}

// --- st.async: [to], {four words}, [barrier]
const Op* stores_async(Frame& f, const Op* op) {
  const std::uint32_t* at = f.program->words.data() + op->x;
  const std::array<std::uint32_t, 4> value = {f.r[at[0]], f.r[at[1]], f.r[at[2]], f.r[at[3]]};
  model::store_async(f.r[op->a], value.data(), f.r[op->b], f.site(op));
  return op + 1;
}
void decode_store_async(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 3, 3);
  if (s.operands[1].kind != Operand::Kind::list || s.operands[1].parts.size() != 4) {
    d.fault("st.async of four words takes a list of 4");
  }
  const std::uint32_t to = d.shared_address(s.operands[0]);
  const std::uint32_t barrier = d.shared_address(s.operands[2]);
  std::array<std::uint32_t, 4> at{};
  for (std::size_t i = 0; i < 4; ++i) at[i] = d.read(s.operands[1].parts[i], 'i');
  d.emit({.run = form.run, .a = to, .b = barrier, .x = d.keep_words(at)});
}

// --- tensor maps
// [map], dimension, extent
void decode_extent(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 3, 3);
  const std::uint32_t map = d.shared_address(s.operands[0]);
  const std::int64_t dimension = d.immediate(s.operands[1]);
  if (dimension < 0 || dimension > 4) d.fault("tensor maps have dimensions 0 to 4");
  d.emit({.run = form.run,
          .a = map,
          .b = d.constant(static_cast<std::uint64_t>(dimension), false),
          .c = d.read(s.operands[2], 'i')});
}
const Op* releases_map(Frame& f, const Op* op) {
  model::release_map(const_cast<model::TensorMap*>(&map_at(f, op, f.get<std::uint64_t>(op->a))),
                     f.r[op->b], f.site(op));
  return op + 1;
}
const Op* acquires_map(Frame& f, const Op* op) {
  model::acquire_map(&map_at(f, op, f.get<std::uint64_t>(op->a)), f.site(op));
  return op + 1;
}
// [in global memory] {, [in shared memory]}, 128
void decode_map_fence(Decoder& d, const Statement& s, const Form& form) {
  const std::size_t n = 2 + form.x;
  d.need(s, n, n);
  const std::uint32_t map = d.wide_address(s.operands[0]);
  const std::uint32_t from = form.x != 0 ? d.shared_address(s.operands[1]) : 0;
  if (d.immediate(s.operands[n - 1]) != 128) d.fault("a tensor map has 128 bytes");
  d.emit({.run = form.run, .a = map, .b = from});
}

const Op* makes_policy(Frame& f, const Op* op) {
  f.put(op->d, std::uint64_t{0});
  return op + 1;
}
void decode_policy(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 1, 2);
  d.emit({.run = form.run, .d = d.write(s.operands[0], 'L')});
}

}  // namespace

void add_copies(Forms& forms) {
  add_tensors(forms);
  for (const std::string space : {".shared::cta", ".shared::cluster"}) {
    const std::string load = "cp.async.bulk" + space + ".global.mbarrier::complete_tx::bytes";
    forms[load] = {does<&load_bytes>, "sgis"};
    forms[load + ".L2::cache_hint"] = {does<&load_bytes>, "sgisl"};
  }
  forms["cp.async.bulk.prefetch.L2.global"] = {does<&model::bulk_prefetch>, "gi"};
  forms["cp.async.bulk.commit_group"] = {does<&model::bulk_commit>, ""};
  forms["cp.async.bulk.wait_group"] = {does<&wait_for_bulk<false>>, "", &decode_wait};
  forms["cp.async.bulk.wait_group.read"] = {does<&wait_for_bulk<true>>, "", &decode_wait};
  for (const std::string space : {".shared", ".shared::cta"}) {
    // How much L2 is to bring changes nothing here.
    for (const char* brings : {"", ".L2::64B", ".L2::128B", ".L2::256B"}) {
      forms["cp.async.ca" + space + ".global" + brings] = {nullptr, "", &decode_copy, 0};
      forms["cp.async.cg" + space + ".global" + brings] = {nullptr, "", &decode_copy, 1};
    }
    forms["cp.async.mbarrier.arrive.noinc" + space + ".b64"] = {does<&model::copy_async_arrive>,
                                                                "s"};
  }
  forms["cp.async.commit_group"] = {does<&model::copy_async_commit>, ""};
  forms["cp.async.wait_group"] = {does<&model::copy_async_wait>, "", &decode_wait};
  forms["cp.async.wait_all"] = {does<&wait_for_all_copies>, ""};
  for (const char* weak : {"", ".weak"}) {
    forms[std::string("st.async") + weak + ".shared::cluster.mbarrier::complete_tx::bytes.v4.b32"] =
        {&stores_async, "", &decode_store_async};
  }
  forms["tensormap.replace.tile.global_address.shared::cta.b1024.b64"] = {
      does<&model::replace_map_base>, "sl"};
  forms["tensormap.replace.tile.global_dim.shared::cta.b1024.b32"] = {
      does<&model::replace_map_extent>, "", &decode_extent};
  forms["tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"] =
      {&releases_map, "", &decode_map_fence, 1};
  forms["fence.proxy.tensormap::generic.acquire.gpu"] = {&acquires_map, "", &decode_map_fence, 0};
  for (const char* which : {"evict_first", "evict_last", "evict_normal", "evict_unchanged"}) {
    forms[std::string("createpolicy.fractional.L2::") + which + ".b64"] = {&makes_policy, "",
                                                                           &decode_policy};
  }
}

}  // namespace warpwright::ptx
