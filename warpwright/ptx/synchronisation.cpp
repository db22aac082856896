// Barriers, mbarriers, fences, and what the lanes of a warp do together (PTX ISA 9.7.13). All of it
// is what the model does for isa/.

#include "warpwright/ptx/forms.h"

namespace warpwright::ptx {
namespace {

constexpr std::uint32_t kNone = ~0U;

// --- mbarriers
const Op* init(Frame& f, const Op* op) {
  const model::Site site = f.site(op);
  model::mbarrier_init(f.r[op->a], static_cast<int>(f.r[op->b]), site);
  model::name_barrier(f.r[op->a], "barrier", 0, "");
  return op + 1;
}
const Op* invalidates(Frame& f, const Op* op) {
  model::mbarrier_invalidate(f.r[op->a], f.site(op));
  return op + 1;
}
const Op* expects(Frame& f, const Op* op) {
  model::mbarrier_expect(f.r[op->a], static_cast<int>(f.r[op->b]), f.site(op));
  return op + 1;
}
template <model::Scope scope>
const Op* arrives(Frame& f, const Op* op) {
  model::mbarrier_arrive(f.r[op->a], static_cast<int>(f.r[op->b]), false, scope, f.site(op));
  return op + 1;
}
template <model::Scope scope>
const Op* arrives_expecting(Frame& f, const Op* op) {
  const model::Site site = f.site(op);
  model::mbarrier_expect(f.r[op->a], static_cast<int>(f.r[op->b]), site);
  model::mbarrier_arrive(f.r[op->a], 1, false, scope, site);
  return op + 1;
}

// A question asked again, with nothing but arithmetic since the same one was answered "not yet", is
// a wait, whatever loop it stands in: the model then knows who waits for what.
template <model::Scope scope, bool may_suspend>
const Op* asks(Frame& f, const Op* op) {
  const std::uint32_t barrier = f.r[op->a];
  const auto parity = static_cast<int>(f.r[op->b] & 1U);
  const bool again = f.asks_again(op, std::uint64_t{barrier} << 1 | static_cast<unsigned>(parity));
  const model::Site site = f.site(op);
  bool done = true;
  if (again) {
    model::mbarrier_wait(barrier, parity, scope, site);
  } else {
    done = model::mbarrier_test(barrier, parity, may_suspend, scope, site);
  }
  f.r[op->d] = done ? 1 : 0;
  if (done) {
    f.asked = nullptr;
  } else {
    f.not_yet();
  }
  return op + 1;
}

// [barrier], of Form::x with a state in front that nobody reads; then a number, or 1.
void decode_arrival(Decoder& d, const Statement& s, const Form& form) {
  const std::size_t first = form.x;
  const bool needs_number = form.y == 1;
  d.need(s, first + (needs_number ? 2 : 1), first + (form.y == 2 ? 1 : 2));
  if (first == 1) {
    if (s.operands[0].kind != Operand::Kind::sink) d.write(s.operands[0], 'L');
  }
  const std::uint32_t at = d.shared_address(s.operands[first]);
  const std::uint32_t number =
      s.operands.size() > first + 1 ? d.read(s.operands[first + 1], 'i') : d.constant(1, false);
  Op& op = d.emit(form.run);
  op.a = at;
  op.b = number;
}

// p, [barrier], parity {, a time that is a hint}.
void decode_question(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 3, 4);
  const std::uint32_t p = d.write(s.operands[0], 'P');
  const std::uint32_t at = d.shared_address(s.operands[1]);
  const std::uint32_t parity = d.read(s.operands[2], 'i');
  Op& op = d.emit(form.run);
  op.d = p;
  op.a = at;
  op.b = parity;
}

void add_mbarriers(Forms& forms) {
  using model::Scope;
  for (const std::string space : {"", ".shared", ".shared::cta"}) {
    const std::string tail = space + ".b64";
    forms["mbarrier.init" + tail] = {&init, "", &decode_arrival, 0, 1};
    forms["mbarrier.inval" + tail] = {&invalidates, "", &decode_arrival, 0, 2};
    for (const std::string how : {"", ".relaxed.cta", ".relaxed.cluster"}) {
      forms[name_of("mbarrier.expect_tx", how, tail)] = {&expects, "", &decode_arrival, 0, 1};
    }
    for (const std::string wait : {"try_wait", "test_wait"}) {
      const bool suspends = wait == "try_wait";
      const auto add = [&](const std::string& how, Run run) {
        forms[name_of("mbarrier.", wait, ".parity", how, tail)] = {run, "", &decode_question};
      };
      for (const char* how : {"", ".acquire.cta"}) {
        add(how, suspends ? &asks<Scope::cta, true> : &asks<Scope::cta, false>);
      }
      add(".acquire.cluster",
          suspends ? &asks<Scope::cluster, true> : &asks<Scope::cluster, false>);
      for (const char* how : {".relaxed.cta", ".relaxed.cluster"}) {
        add(how, suspends ? &asks<Scope::relaxed, true> : &asks<Scope::relaxed, false>);
      }
    }
  }
  for (const std::string space : {"", ".shared", ".shared::cta", ".shared::cluster"}) {
    const std::string tail = space + ".b64";
    const auto add = [&](const std::string& how, Run plain, Run expecting) {
      forms[name_of("mbarrier.arrive", how, tail)] = {plain, "", &decode_arrival, 1, 0};
      forms[name_of("mbarrier.arrive.expect_tx", how, tail)] = {expecting, "", &decode_arrival, 1,
                                                                1};
    };
    for (const char* how : {"", ".release.cta"}) {
      add(how, &arrives<Scope::cta>, &arrives_expecting<Scope::cta>);
    }
    add(".release.cluster", &arrives<Scope::cluster>, &arrives_expecting<Scope::cluster>);
    for (const char* how : {".relaxed.cta", ".relaxed.cluster"}) {
      add(how, &arrives<Scope::relaxed>, &arrives_expecting<Scope::relaxed>);
    }
  }
}

// --- barriers of threads
template <bool waits>
const Op* comes_to_barrier(Frame& f, const Op* op) {
  const int threads = op->b == kNone ? (f.threads + 31) / 32 * 32 : static_cast<int>(f.r[op->b]);
  model::named_barrier(static_cast<int>(f.r[op->a]), threads, waits, f.site(op));
  return op + 1;
}
void decode_barrier(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, form.x, 2);
  const std::uint32_t id = d.read(s.operands[0], 'i');
  const std::uint32_t threads = s.operands.size() > 1 ? d.read(s.operands[1], 'i') : kNone;
  Op& op = d.emit(form.run);
  op.a = id;
  op.b = threads;
}

template <bool releases>
const Op* cluster_arrives(Frame& f, const Op* op) {
  model::cluster_arrive(releases, f.site(op));
  return op + 1;
}
const Op* cluster_waits(Frame& f, const Op* op) {
  model::cluster_wait(f.site(op));
  return op + 1;
}

// The lanes that an instruction names are all that the warp has: the model has no part of one.
void check_lanes(const Frame& f, const Op* op, std::uint32_t mask) {
  if ((mask & f.warp_mask) == f.warp_mask) return;
  f.fail(op,
         "the mask of lanes leaves some of the warp out, and only whole warps are in "
         "the subset");
}

const Op* syncs_warp(Frame& f, const Op* op) {
  check_lanes(f, op, f.r[op->a]);
  model::sync_warp(f.site(op));
  return op + 1;
}

// --- fences
const Op* fences_init(Frame& f, const Op* op) {
  model::fence_mbarrier_init(f.site(op));
  return op + 1;
}
template <bool shared, bool global>
const Op* fences_proxy(Frame& f, const Op* op) {
  const model::Site site = f.site(op);
  if (shared) model::fence_proxy_async(model::Space::shared, site);
  if (global) model::fence_proxy_async(model::Space::global, site);
  return op + 1;
}
const Op* waits_for_grids(Frame& f, const Op* op) {
  model::wait_for_grids(f.site(op));
  return op + 1;
}
const Op* launches_dependents(Frame& f, const Op* op) {
  model::launch_dependents(f.site(op));
  return op + 1;
}
template <bool increases>
const Op* changes_registers(Frame& f, const Op* op) {
  model::set_max_registers(static_cast<int>(op->x), increases, f.site(op));
  return op + 1;
}
void decode_registers(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 1, 1);
  const std::int64_t count = d.immediate(s.operands[0]);
  if (count < 24 || count > 256 || count % 8 != 0) {
    d.fault("setmaxnreg takes multiples of 8 from 24 to 256");
  }
  d.emit(form.run).x = static_cast<std::uint32_t>(count);
}

// --- exchanges inside of a warp
enum class Shuffle : std::uint8_t { idx, up, down, bfly };
template <Shuffle how>
const Op* shuffles(Frame& f, const Op* op) {
  const std::uint32_t* more = f.program->words.data() + op->x;  // c, the mask, and the predicate
  const std::uint32_t c = f.r[more[0]];
  check_lanes(f, op, f.r[more[1]]);
  const std::uint32_t segment = c >> 8 & 31U;
  const auto lane = static_cast<std::uint32_t>(f.lane);
  const std::uint32_t by = f.r[op->b] & 31U;
  const std::uint32_t last = (lane & segment) | (c & 31U & ~segment);
  const std::uint32_t first = lane & segment;
  std::uint32_t from = 0;
  bool inside = true;
  switch (how) {
    case Shuffle::idx:
      from = first | (by & ~segment);
      inside = from <= last;
      break;
    case Shuffle::up:
      from = lane - by;
      inside = static_cast<std::int32_t>(from) >= static_cast<std::int32_t>(last);
      break;
    case Shuffle::down:
      from = lane + by;
      inside = from <= last;
      break;
    case Shuffle::bfly:
      from = lane ^ by;
      inside = from <= last;
      break;
  }
  if (!inside) from = lane;
  const std::uint32_t value = model::shuffle(f.r[op->a], static_cast<int>(from & 31U), f.site(op));
  f.r[op->d] = value;
  f.r[more[2]] = inside ? 1 : 0;
  return op + 1;
}
void decode_shuffle(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 5, 5);
  const Operand& to = s.operands[0];
  const bool is_pair = to.kind == Operand::Kind::pair;
  const std::uint32_t value = d.write(is_pair ? to.parts[0] : to, 'I');
  const std::uint32_t p = is_pair ? d.write(to.parts[1], 'P') : d.reserve();
  const std::uint32_t a = d.read(s.operands[1], 'i');
  const std::uint32_t b = d.read(s.operands[2], 'i');
  const std::uint32_t c = d.read(s.operands[3], 'i');
  const std::uint32_t mask = d.read(s.operands[4], 'i');
  const std::uint32_t begin = d.begin_words();
  for (const std::uint32_t word : {c, mask, p}) d.add_word(word);
  Op& op = d.emit(form.run);
  op.d = value;
  op.a = a;
  op.b = b;
  op.x = begin;
}

template <bool tells_lane>
const Op* elects(Frame& f, const Op* op) {
  check_lanes(f, op, f.r[op->a]);
  const model::Site site = f.site(op);
  const bool elected = model::elect_one(site);
  if (tells_lane) {
    const std::uint32_t lanes = model::ballot(elected, site);
    std::uint32_t leader = 0;
    while ((lanes >> leader & 1U) == 0) ++leader;
    f.r[op->b] = leader;
  }
  f.r[op->d] = elected ? 1 : 0;
  return op + 1;
}
void decode_election(Decoder& d, const Statement& s, const Form& /*form*/) {
  d.need(s, 2, 2);
  const Operand& to = s.operands[0];
  if (to.kind != Operand::Kind::pair) d.fault("elect.sync gives a lane and a predicate, d|p");
  const bool tells_lane = to.parts[0].kind != Operand::Kind::sink;
  const std::uint32_t lane = d.write(to.parts[0], 'I');
  const std::uint32_t p = d.write(to.parts[1], 'P');
  const std::uint32_t mask = d.read(s.operands[1], 'i');
  Op& op = d.emit(tells_lane ? &elects<true> : &elects<false>);
  op.d = p;
  op.b = lane;
  op.a = mask;
}

enum class Vote : std::uint8_t { ballot, all, any, uni };
template <Vote how>
const Op* votes(Frame& f, const Op* op) {
  check_lanes(f, op, f.r[op->b]);
  const std::uint32_t lanes = model::ballot(f.r[op->a] != 0, f.site(op));
  const bool all = lanes == f.warp_mask;
  f.r[op->d] = how == Vote::ballot ? lanes
               : how == Vote::all  ? (all ? 1 : 0)
               : how == Vote::any  ? (lanes != 0 ? 1 : 0)
                                   : (all || lanes == 0 ? 1 : 0);
  return op + 1;
}
const Op* matches(Frame& f, const Op* op) {
  check_lanes(f, op, f.r[op->b]);
  f.r[op->d] = model::match_any(f.r[op->a], f.site(op));
  return op + 1;
}

}  // namespace

void add_synchronisation(Forms& forms) {
  add_mbarriers(forms);
  for (const std::string name : {"bar", "bar.cta", "barrier", "barrier.cta"}) {
    for (const char* aligned : {"", ".aligned"}) {
      forms[name + ".sync" + aligned] = {&comes_to_barrier<true>, "", &decode_barrier, 1};
      forms[name + ".arrive" + aligned] = {&comes_to_barrier<false>, "", &decode_barrier, 2};
    }
  }
  for (const char* aligned : {"", ".aligned"}) {
    const std::string a = aligned;
    forms["barrier.cluster.arrive" + a] = {&cluster_arrives<true>, ""};
    forms["barrier.cluster.arrive.release" + a] = {&cluster_arrives<true>, ""};
    forms["barrier.cluster.arrive.relaxed" + a] = {&cluster_arrives<false>, ""};
    forms["barrier.cluster.wait" + a] = {&cluster_waits, ""};
    forms["barrier.cluster.wait.acquire" + a] = {&cluster_waits, ""};
  }
  forms["bar.warp.sync"] = {&syncs_warp, "i"};
  forms["fence.mbarrier_init.release.cluster"] = {&fences_init, ""};
  forms["fence.proxy.async"] = {&fences_proxy<true, true>, ""};
  forms["fence.proxy.async.global"] = {&fences_proxy<false, true>, ""};
  forms["fence.proxy.async.shared::cta"] = {&fences_proxy<true, false>, ""};
  forms["fence.proxy.async.shared::cluster"] = {&fences_proxy<true, false>, ""};
  forms["griddepcontrol.wait"] = {&waits_for_grids, ""};
  forms["griddepcontrol.launch_dependents"] = {&launches_dependents, ""};
  forms["setmaxnreg.inc.sync.aligned.u32"] = {&changes_registers<true>, "", &decode_registers};
  forms["setmaxnreg.dec.sync.aligned.u32"] = {&changes_registers<false>, "", &decode_registers};
  forms["shfl.sync.idx.b32"] = {&shuffles<Shuffle::idx>, "", &decode_shuffle};
  forms["shfl.sync.up.b32"] = {&shuffles<Shuffle::up>, "", &decode_shuffle};
  forms["shfl.sync.down.b32"] = {&shuffles<Shuffle::down>, "", &decode_shuffle};
  forms["shfl.sync.bfly.b32"] = {&shuffles<Shuffle::bfly>, "", &decode_shuffle};
  forms["elect.sync"] = {nullptr, "", &decode_election};
  forms["vote.sync.ballot.b32"] = {&votes<Vote::ballot>, "Ipi"};
  forms["vote.sync.all.pred"] = {&votes<Vote::all>, "Ppi"};
  forms["vote.sync.any.pred"] = {&votes<Vote::any>, "Ppi"};
  forms["vote.sync.uni.pred"] = {&votes<Vote::uni>, "Ppi"};
  forms["match.any.sync.b32"] = {&matches, "Iii"};
}

}  // namespace warpwright::ptx
