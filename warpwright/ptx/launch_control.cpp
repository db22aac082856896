// CLC: clusters that take over the work of others (PTX ISA 9.7.13.17, 9.7.13.18), and the registers
// of 128 bits that their answers are read in. It is what the model does for isa/clc.h.
#include <array>

#include "warpwright/ptx/forms.h"

namespace warpwright::ptx {
namespace {

// --- registers of 128 bits: four words
using Wide = std::array<std::uint64_t, 2>;

const Op* joins(Frame& f, const Op* op) {
  f.put(op->d, Wide{f.get<std::uint64_t>(op->a), f.get<std::uint64_t>(op->b)});
  return op + 1;
}
const Op* parts(Frame& f, const Op* op) {
  const auto value = f.get<Wide>(op->a);
  f.put(op->d, value[0]);
  f.put(op->b, value[1]);
  return op + 1;
}
const Op* moves(Frame& f, const Op* op) {
  f.put(op->d, f.get<Wide>(op->a));
  return op + 1;
}

// d, {low, high}; {low, high}, a; d, a
void decode_move(Decoder& d, const Statement& s, const Form& /*form*/) {
  d.need(s, 2, 2);
  const Operand& to = s.operands[0];
  const Operand& from = s.operands[1];
  const auto is_list = [](const Operand& o) {
    return o.kind == Operand::Kind::list && o.parts.size() == 2;
  };
  if (is_list(from)) {
    const std::uint32_t low = d.read(from.parts[0], 'l');
    const std::uint32_t high = d.read(from.parts[1], 'l');
    const std::uint32_t at = d.write(to, 'Q');
    Op& op = d.emit(&joins);
    op.d = at;
    op.a = low;
    op.b = high;
  } else if (is_list(to)) {
    const std::uint32_t at = d.read(from, 'q');
    const std::uint32_t low = d.write(to.parts[0], 'L');
    const std::uint32_t high = d.write(to.parts[1], 'L');
    Op& op = d.emit(&parts);
    op.d = low;
    op.a = at;
    op.b = high;
  } else {
    const std::uint32_t at = d.read(from, 'q');
    const std::uint32_t into = d.write(to, 'Q');
    Op& op = d.emit(&moves);
    op.d = into;
    op.a = at;
  }
}

// --- requests and their answers
template <bool multicast>
const Op* asks(Frame& f, const Op* op) {
  model::try_cancel(f.r[op->a], f.r[op->b], multicast, f.site(op));
  return op + 1;
}
// [answer], [barrier]
void decode_request(Decoder& d, const Statement& s, const Form& form) {
  d.need(s, 2, 2);
  const std::uint32_t answer = d.shared_address(s.operands[0]);
  const std::uint32_t barrier = d.shared_address(s.operands[1]);
  Op& op = d.emit(form.run);
  op.a = answer;
  op.b = barrier;
}

model::LaunchAnswer answer_at(const Frame& f, std::uint32_t at) {
  const auto value = f.get<Wide>(at);
  return {value[0], value[1]};
}
const Op* was_canceled(Frame& f, const Op* op) {
  f.r[op->d] = model::cluster_canceled(answer_at(f, op->a), f.site(op)) ? 1 : 0;
  return op + 1;
}
const Op* first_cta(Frame& f, const Op* op) {
  const int first = model::canceled_first_cta(answer_at(f, op->a), f.site(op));
  f.r[op->d] = static_cast<std::uint32_t>(first);
  return op + 1;
}

}  // namespace

void add_launch_control(Forms& forms) {
  forms["mov.b128"] = {nullptr, "", &decode_move};
  for (const std::string space : {"", ".shared::cta"}) {
    const std::string name =
        "clusterlaunchcontrol.try_cancel.async" + space + ".mbarrier::complete_tx::bytes";
    forms[name + ".b128"] = {&asks<false>, "", &decode_request};
    forms[name + ".multicast::cluster::all.b128"] = {&asks<true>, "", &decode_request};
  }
  forms["clusterlaunchcontrol.query_cancel.is_canceled.pred.b128"] = {&was_canceled, "Pq"};
  forms["clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128"] = {&first_cta, "Iq"};
}

}  // namespace warpwright::ptx
