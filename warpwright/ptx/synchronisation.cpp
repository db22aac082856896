// Barriers, mbarriers, fences, and what the lanes of a warp do together (PTX ISA 9.7.13). All of it
// is what the model does for isa/.

#include "warpwright/ptx/forms.h"

namespace warpwright::ptx {
namespace {

constexpr std::uint32_t kNone = ~0U;

// --- mbarriers
void init(std::uint32_t barrier, int count, model::Site site) {
  model::mbarrier_init(barrier, count, site);
  model::name_barrier(barrier, "barrier", 0, "");
}
template <model::Scope scope>
void arrive(std::uint32_t barrier, int count, model::Site site) {
  model::mbarrier_arrive(barrier, count, false, scope, site);
}
template <model::Scope scope>
void arrive_expecting(std::uint32_t barrier, int bytes, model::Site site) {
  model::mbarrier_expect(barrier, bytes, site);
  model::mbarrier_arrive(barrier, 1, false, scope, site);
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

// A state that nobody reads, [barrier] {, a number, else 1}.
void decode_arrival(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 2, 3);
  d.emit({.run = form.run,
          .d = d.write(s.operands[0], 'L'),
          .a = d.shared_address(s.operands[1]),
          .b = s.operands.size() > 2 ? d.read(s.operands[2], 'i') : d.constant(1, false)});
}

// p, [barrier], parity {, a time that is a hint}.
void decode_question(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 3, 4);
  d.emit({.run = form.run,
          .d = d.write(s.operands[0], 'P'),
          .a = d.shared_address(s.operands[1]),
          .b = d.read(s.operands[2], 'i')});
}

void add_mbarriers(Forms& forms) {
  using model::Scope;
  for (const std::string space : {"", ".shared", ".shared::cta"}) {
    const std::string tail = space + ".b64";
    forms["mbarrier.init" + tail] = {does<&init>, "si"};
    forms["mbarrier.inval" + tail] = {does<&model::mbarrier_invalidate>, "s"};
    for (const std::string how : {"", ".relaxed.cta", ".relaxed.cluster"}) {
      forms[name_of("mbarrier.expect_tx", how, tail)] = {does<&model::mbarrier_expect>, "si"};
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
      forms[name_of("mbarrier.arrive", how, tail)] = {plain, "", &decode_arrival};
      forms[name_of("mbarrier.arrive.expect_tx", how, tail)] = {expecting, "Lsi"};
    };
    for (const char* how : {"", ".release.cta"}) {
      add(how, does<&arrive<Scope::cta>>, does<&arrive_expecting<Scope::cta>>);
    }
    add(".release.cluster", does<&arrive<Scope::cluster>>, does<&arrive_expecting<Scope::cluster>>);
    for (const char* how : {".relaxed.cta", ".relaxed.cluster"}) {
      add(how, does<&arrive<Scope::relaxed>>, does<&arrive_expecting<Scope::relaxed>>);
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
  d.emit({.run = form.run,
          .a = d.read(s.operands[0], 'i'),
          .b = s.operands.size() > 1 ? d.read(s.operands[1], 'i') : kNone});
}

template <bool releases>
void cluster_arrive(model::Site site) {
  model::cluster_arrive(releases, site);
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
template <bool shared, bool global>
void fence_proxy(model::Site site) {
  if (shared) model::fence_proxy_async(model::Space::shared, site);
  if (global) model::fence_proxy_async(model::Space::global, site);
}
template <bool increases>
void change_registers(int count, model::Site site) {
  model::set_max_registers(count, increases, site);
}
void decode_registers(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 1, 1);
  const std::int64_t count = d.immediate(s.operands[0]);
  if (count < 24 || count > 256 || count % 8 != 0) {
    d.fault("setmaxnreg takes multiples of 8 from 24 to 256");
  }
  d.emit({.run = form.run, .a = d.constant(static_cast<std::uint64_t>(count), false)});
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
  d.emit({.run = form.run, .d = value, .a = a, .b = b, .x = d.keep_words({c, mask, p})});
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
  d.emit({.run = tells_lane ? &elects<true> : &elects<false>,
          .d = p,
          .a = d.read(s.operands[1], 'i'),
          .b = lane});
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
    forms["barrier.cluster.arrive" + a] = {does<&cluster_arrive<true>>, ""};
    forms["barrier.cluster.arrive.release" + a] = {does<&cluster_arrive<true>>, ""};
    forms["barrier.cluster.arrive.relaxed" + a] = {does<&cluster_arrive<false>>, ""};
    forms["barrier.cluster.wait" + a] = {does<&model::cluster_wait>, ""};
    forms["barrier.cluster.wait.acquire" + a] = {does<&model::cluster_wait>, ""};
  }
  forms["bar.warp.sync"] = {&syncs_warp, "i"};
  forms["fence.mbarrier_init.release.cluster"] = {does<&model::fence_mbarrier_init>, ""};
  forms["fence.proxy.async"] = {does<&fence_proxy<true, true>>, ""};
  forms["fence.proxy.async.global"] = {does<&fence_proxy<false, true>>, ""};
  forms["fence.proxy.async.shared::cta"] = {does<&fence_proxy<true, false>>, ""};
  forms["fence.proxy.async.shared::cluster"] = {does<&fence_proxy<true, false>>, ""};
  forms["griddepcontrol.wait"] = {does<&model::wait_for_grids>, ""};
  forms["griddepcontrol.launch_dependents"] = {does<&model::launch_dependents>, ""};
  forms["setmaxnreg.inc.sync.aligned.u32"] = {does<&change_registers<true>>, "", &decode_registers};
  forms["setmaxnreg.dec.sync.aligned.u32"] = {does<&change_registers<false>>, "",
                                              &decode_registers};
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
