// Clusters that were not launched yet, and whose work a running one takes (PTX ISA 9.7.13.17,
// 9.7.13.18), and registers of 128 bits, which answers lie in.
#include "warpwright/ptx/forms.h"

namespace warpwright::ptx {
namespace {

// A register of 128 bits.
model::LaunchAnswer whole_at(const Frame& f, std::uint32_t at) {
  return {f.get<std::uint64_t>(at), f.get<std::uint64_t>(at + 2)};
}
void put_whole(Frame& f, std::uint32_t at, const model::LaunchAnswer& whole) {
  f.put(at, whole.low);
  f.put(at + 2, whole.high);
}

template <bool multicast>
void request(std::uint32_t answer, std::uint32_t barrier, model::Site site) {
  model::try_cancel(answer, barrier, multicast, site);
}

const Op* says_canceled(Frame& f, const Op* op) {
  f.r[op->d] = model::cluster_canceled(whole_at(f, op->a), f.place(op)) ? 1 : 0;
  return op + 1;
}

// Op::x: the axis.
const Op* gives_place(Frame& f, const Op* op) {
  const int first = model::canceled_first_cta(whole_at(f, op->a), f.place(op));
  f.put(op->d, place_in(first, f.launch->grid, static_cast<int>(op->x)));
  return op + 1;
}
// {x, y, z, nothing}, answer
void decode_places(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 2, 2);
  const Operand& to = s.operands[0];
  if (to.kind != Operand::Kind::list || to.parts.size() != 4) {
    d.fault(std::string(d.opcode()) + " gives a list of 4");
  }
  const std::uint32_t answer = d.read(s.operands[1], 'q');
  for (std::uint32_t axis = 0; axis < 3; ++axis) {
    d.emit({.run = form.run, .d = d.write(to.parts[axis], 'I'), .a = answer, .x = axis});
  }
}

// --- mov.b128: of one register, of {low, high} into one, or of one into these
const Op* copies(Frame& f, const Op* op) {
  put_whole(f, op->d, whole_at(f, op->a));
  return op + 1;
}
const Op* joins(Frame& f, const Op* op) {
  put_whole(f, op->d, {f.get<std::uint64_t>(op->a), f.get<std::uint64_t>(op->b)});
  return op + 1;
}
const Op* splits(Frame& f, const Op* op) {
  const auto whole = whole_at(f, op->a);
  f.put(op->d, whole.low);
  f.put(op->x, whole.high);
  return op + 1;
}
void decode_move(Decoder& d, const Statement& s, const Form& /*form*/) {
  d.need(s, 2, 2);
  const Operand& to = s.operands[0];
  const Operand& from = s.operands[1];
  for (const Operand& o : s.operands) {
    if (o.kind == Operand::Kind::list && o.parts.size() != 2) d.fault("mov.b128 joins 2 registers");
  }
  if (from.kind == Operand::Kind::list) {
    const std::uint32_t low = d.read(from.parts[0], 'l');
    const std::uint32_t high = d.read(from.parts[1], 'l');
    d.emit({.run = &joins, .d = d.write(to, 'Q'), .a = low, .b = high});
    return;
  }
  const std::uint32_t whole = d.read(from, 'q');
  const bool splits_one = to.kind == Operand::Kind::list;
  const std::uint32_t written = splits_one ? d.write(to.parts[0], 'L') : d.write(to, 'Q');
  const std::uint32_t high = splits_one ? d.write(to.parts[1], 'L') : 0;
  d.emit({.run = splits_one ? &splits : &copies, .d = written, .a = whole, .x = high});
}

}  // namespace

void add_launch_control(Forms& forms) {
  for (const std::string space : {"", ".shared::cta"}) {
    const std::string ask =
        "clusterlaunchcontrol.try_cancel.async" + space + ".mbarrier::complete_tx::bytes";
    forms[ask + ".b128"] = {does<&request<false>>, "ss"};
    forms[ask + ".multicast::cluster::all.b128"] = {does<&request<true>>, "ss"};
  }
  const std::string query = "clusterlaunchcontrol.query_cancel.";
  forms[query + "is_canceled.pred.b128"] = {&says_canceled, "Pq"};
  const std::string place = query + "get_first_ctaid";
  forms[place + ".v4.b32.b128"] = {&gives_place, "", &decode_places};
  forms[place + "::x.b32.b128"] = {&gives_place, "Iq", nullptr, 0};
  forms[place + "::y.b32.b128"] = {&gives_place, "Iq", nullptr, 1};
  forms[place + "::z.b32.b128"] = {&gives_place, "Iq", nullptr, 2};
  forms["mov.b128"] = {nullptr, "", &decode_move};
}

}  // namespace warpwright::ptx
