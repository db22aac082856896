// tcgen05.mma and commit: what a thread hands to the tensor core is carried out in its order, some
// time later, from shared memory into tensor memory (PTX ISA 9.7.16.6 to 9.7.16.12).
#include <algorithm>
#include <bit>
#include <cmath>

#include "warpwright/atom/umma_stationary.h"
#include "warpwright/model/parts.h"
#include "warpwright/model/report/timing.h"
#include "warpwright/model/tcgen05_operands.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::model {
namespace {

// The columns and lanes that hold one CTA's part of the accumulator at `d`.
TmemRegion accumulator(const atom::UmmaAtom& atom, std::uint32_t d) {
  const bool sparse = atom::umma_cta_rows(atom) == 64 && !atom::umma_folds_columns(atom);
  const unsigned halves = sparse ? 0x55U << atom::tmem_lane(d) / 16 : 0xffU;
  return {static_cast<std::uint8_t>(halves), atom::tmem_column(d), atom::umma_columns(atom)};
}

// Does the MMA leave D in this lane of the CTA number `of` of its group as it is?
bool is_kept(const KeptLanes& kept, std::size_t of, int lane) {
  return (kept[4 * of + static_cast<std::size_t>(lane) / 32] >> lane % 32 & 1) != 0;
}

// The part of the accumulator that is written, where some lane of 16 is.
TmemRegion written(const TmemRegion& d, const KeptLanes& kept, std::size_t of) {
  unsigned halves = d.halves;
  for (unsigned half = 0; half < 8; ++half) {
    const std::uint32_t lanes = kept[4 * of + half / 2] >> half % 2 * 16 & 0xffffU;
    if (lanes == 0xffffU) halves &= ~(1U << half);
  }
  return {static_cast<std::uint8_t>(halves), d.column, d.columns};
}

atom::UmmaAtom atom_of(const UmmaRequest& r) {
  return atom::decode_instruction(r.instruction, r.kind, r.ctas == 2, r.scale_block,
                                  r.weights_stay);
}

// Two MMAs with one chain have one accumulator, one shape and one kind. The rest of the word, the
// ids of scales among it, may change from one to the next.
std::uint64_t chain(const UmmaRequest& r) {
  const atom::UmmaAtom atom = atom_of(r);
  const auto shape = static_cast<std::uint64_t>(atom.m << 16 | atom.n << 7 | atom.k);
  return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(r.kind) << 60 |
         std::uint64_t{r.weights_stay} << 59 | shape << 34 |
         static_cast<std::uint64_t>(r.ctas) << 32 | r.d;
}

// Calls visit(row of the CTA, first column, TMEM cell of it, columns): runs that lie together.
template <class Visit>
void for_each_run(const atom::UmmaAtom& atom, std::uint32_t d, const Visit& visit) {
  const int run = atom::umma_columns(atom);
  for (int row = 0; row < atom::umma_cta_rows(atom); ++row) {
    for (int column = 0; column < atom.n; column += run) {
      const atom::TmemCell cell = atom::umma_cell(atom, row, column);
      visit(row, column, atom::tmem_lane(d) + cell.lane, atom::tmem_column(d) + cell.column, run);
    }
  }
}

// An f16 accumulator has its value in the lower half of a cell.
float rounded_cell(float value) {
  const std::uint64_t code = numeric::from_double(DType::f16, value);
  return std::bit_cast<float>(static_cast<std::uint32_t>(code));
}
float cell_value(float cell) {
  const std::uint32_t code = std::bit_cast<std::uint32_t>(cell) & 0xffff;
  return static_cast<float>(numeric::to_double(DType::f16, code));
}

void check_words(const UmmaRequest& r, Site site) {
  Machine& m = machine();
  const auto refuse = [&](Check check, const std::string& sentence) {
    m.fatal(check, m.who(m.current()) + ": tcgen05.mma: " + sentence, site);
  };
  const char* fault =
      atom::instruction_fault(r.instruction, r.kind, r.ctas == 2, r.scale_block, r.weights_stay);
  if (fault != nullptr) refuse(Check::bad_instruction, fault);
  fault = atom::zero_columns_fault(r.zero_columns);
  if (fault != nullptr) refuse(Check::bad_descriptor, fault);
  const atom::UmmaAtom atom = atom_of(r);
  if (r.a_in_tmem) {
    fault = atom::umma_tmem_fault(atom);
    if (fault != nullptr) refuse(Check::bad_instruction, fault);
  } else {
    fault = atom::umma_descriptor_fault(r.descriptor_a, atom.k);
    if (fault != nullptr) refuse(Check::bad_descriptor, fault);
  }
  fault = atom::umma_descriptor_fault(r.descriptor_b, atom.k);
  if (fault != nullptr) refuse(Check::bad_descriptor, fault);
  const int lane = atom::tmem_lane(r.d);
  const bool sixteen = atom.m == 64 && !atom.weights_stay && lane == 16;
  if (lane != 0 && !sixteen) {
    refuse(Check::tmem_lanes, "the accumulator begins at lane " + std::to_string(lane) +
                                  "; it must begin at lane 0 (one of 64 rows also at 16)");
  }
  if (r.a_in_tmem && atom::tmem_lane(r.a) != lane) {
    refuse(Check::tmem_lanes, "A in tensor memory begins at lane " +
                                  std::to_string(atom::tmem_lane(r.a)) +
                                  "; it must begin at the accumulator's, " + std::to_string(lane));
  }
}

// Reads of tensor memory by the MMA `op` of a CTA: what they find is allocated, written and no part
// of D, and their order is proved.
void take_region(const TensorOp& op, Cta& cta, const TmemRegion& region, const char* what,
                 std::uint32_t number) {
  Machine& m = machine();
  m.check_tmem(cta, region, "tcgen05.mma", op.site);
  const TmemRegion d = accumulator(op.atom, op.d);
  if ((d.halves & region.halves) != 0 && d.column < region.column + region.columns &&
      region.column < d.column + d.columns) {
    m.fatal(Check::bad_instruction,
            m.who(*op.issuer) + ": tcgen05.mma: " + what + ", from column " +
                std::to_string(region.column) + " on, lie in the columns of D, " +
                std::to_string(d.column) + " to " + std::to_string(d.column + d.columns - 1),
            op.site);
  }
  if (cta.tmem.lacks(region)) {
    m.finding(Check::uninitialised_read,
              m.who(*op.issuer) + ": tcgen05.mma reads " + what +
                  " from tensor memory of CTA rank " + std::to_string(cta.rank) +
                  " of which nothing has written a part, from column " +
                  std::to_string(region.column) + " on",
              op.site);
  }
  Thread* const issuer = op.issuer;
  if (m.order) m.order->touch_tmem(number, {&issuer, 1}, cta, region, false);
}

void take_a(const TensorOp& op, Cta& cta, std::uint32_t address, std::uint32_t number) {
  TmemRegion region = accumulator(op.atom, address);
  region.columns = atom::umma_a_columns(op.atom);
  take_region(op, cta, region, "elements of A", number);
}

// The columns that an MMA finds its scales in: four scales of K of all rows lie together, the next
// four further on.
void take_scales(const TensorOp& op, Cta& cta, bool of_b, std::uint32_t number) {
  Machine& m = machine();
  const std::uint32_t address = of_b ? op.scales_b : op.scales_a;
  const char* const what = of_b ? "scales of B" : "scales of A";
  if (atom::tmem_lane(address) != 0) {
    m.fatal(Check::tmem_lanes,
            m.who(*op.issuer) + ": tcgen05.mma: the " + what + " begin at lane " +
                std::to_string(atom::tmem_lane(address)) + "; they must begin at lane 0",
            op.site);
  }
  const int words = atom::scale_words(op.atom, of_b ? op.ids.b : op.ids.a);
  for (int word = 0; word < words; ++word) {
    take_region(op, cta,
                {0xff, atom::tmem_column(address) + word * atom::scale_word_step(op.atom, of_b),
                 atom::scale_word_columns(op.atom, of_b)},
                what, number);
  }
}

void check_accumulator(Cta& cta, const TmemRegion& region, bool accumulate, Site site) {
  Machine& m = machine();
  m.check_tmem(cta, region, "tcgen05.mma", site);
  if (!accumulate) return;
  if (!cta.tmem.lacks(region)) return;
  m.finding(Check::uninitialised_read,
            m.who(m.current()) +
                ": tcgen05.mma adds to columns of tensor memory that nothing has written, from "
                "column " +
                std::to_string(region.column) + " on",
            site);
}

// The halves of a pair's operands, or the whole of one CTA's.
void find_operands(TensorOp& op, const UmmaRequest& r, const std::vector<Cta*>& ctas) {
  const int share = static_cast<int>(ctas.size());
  for (Cta* cta : ctas) {
    op.a.push_back({cta, atom::decode_umma(r.descriptor_a), op.atom.m / share, op.atom.k, op.atom.a,
                    op.atom.a_major, "A", atom::umma_operand_bits(r.kind, op.atom.a)});
    op.a.back().in_tmem = r.a_in_tmem;
    op.a.back().tmem = r.a;
    op.b.push_back({cta, atom::decode_umma(r.descriptor_b), op.atom.n / share, op.atom.k, op.atom.b,
                    op.atom.b_major, "B", atom::umma_operand_bits(r.kind, op.atom.b)});
  }
}

}  // namespace

void tcgen05_mma(const UmmaRequest& request, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  Thread& self = m.current();
  m.spend(m.costs().umma_issue);
  const std::vector<Cta*> ctas = m.group(request.ctas, "tcgen05.mma", site);
  check_words(request, site);
  ++m.statistics.ummas;
  auto op = std::make_unique<TensorOp>();
  op->issuer = &self;
  op->site = site;
  self.mma_site = site;
  op->atom = atom_of(request);
  op->d = request.d;
  op->accumulate = request.accumulate;
  op->zero_columns = request.zero_columns;
  op->kept = request.kept_lanes;
  op->halvings = request.halvings;
  op->scales_a = request.scales_a;
  op->scales_b = request.scales_b;
  op->ids = atom::scale_ids(request.instruction);
  find_operands(*op, request, ctas);
  const std::uint32_t number = m.order ? m.order->begin_mma(self, chain(request), site) : 0;
  Thread* const issuer = &self;
  for (const auto* operands : {&op->a, &op->b}) {
    for (const Operand& operand : *operands) {
      const auto pieces = m.check_operand(operand, "tcgen05.mma", site);
      if (m.order) m.order->touch(number, {&issuer, 1}, *operand.cta, pieces, false);
      Machine::mark_operand(operand, +1);
    }
  }
  const TmemRegion all = accumulator(op->atom, request.d);
  for (std::size_t of = 0; of < ctas.size(); ++of) {
    Cta* const cta = ctas[of];
    const TmemRegion region = written(all, op->kept, of);
    if (request.a_in_tmem) take_a(*op, *cta, request.a, number);
    for (const bool of_b : {false, true}) {
      if (op->atom.scale_block > 0) take_scales(*op, *cta, of_b, number);
    }
    check_accumulator(*cta, region, request.accumulate, site);
    if (m.order) m.order->touch_tmem(number, {&issuer, 1}, *cta, region, true);
    cta->tmem.define(region);
    if (request.accumulate) continue;
    for_each_run(op->atom, op->d, [&](int, int, int lane, int column, int run) {
      if (is_kept(op->kept, of, lane)) return;
      std::fill_n(cta->tmem.at(lane, column), run, std::bit_cast<float>(poison_bits));
    });
  }
  if (m.order) m.order->end(number);
  m.issue(std::move(op));
}

void Machine::issue(std::unique_ptr<TensorOp> op) {
  Thread& issuer = *op->issuer;
  if (timed()) schedule(*op);
  if (explore) op->explored = explore->issued();
  issuer.tensor_ops.push_back(std::move(op));
  if (issuer.tensor_ops.size() == 1) tensor_issuers_.push_back(&issuer);
  if (options_.mode != Mode::eager) return;
  while (!advance(issuer)) {
  }
}

bool Machine::advance(Thread& issuer) {
  ++progress_;
  const std::unique_ptr<TensorOp> op = std::move(issuer.tensor_ops.front());
  issuer.tensor_ops.pop_front();
  if (issuer.tensor_ops.empty()) std::erase(tensor_issuers_, &issuer);
  switch (op->what) {
    case TensorOp::What::mma:
      execute(*op);
      break;
    case TensorOp::What::copy:
      copy_to_tmem(*op);
      break;
    case TensorOp::What::shift:
      shift_rows(*op);
      break;
    case TensorOp::What::commit:
      signal(*op);
      break;
  }
  return issuer.tensor_ops.empty();
}

namespace {

// c[row * n + column], the sums that D has, halved as often as is asked.
void take_sums(const TensorOp& op, Tmem& tmem, std::vector<float>& c) {
  const bool halves = op.atom.d == DType::f16;
  const float factor = std::ldexp(1.0F, -op.halvings);
  for_each_run(op.atom, op.d, [&](int row, int column, int lane, int at, int run) {
    float* to = c.data() + static_cast<std::ptrdiff_t>(row) * op.atom.n + column;
    const float* from = tmem.at(lane, at);
    if (halves) {
      std::transform(from, from + run, to, cell_value);
    } else {
      std::copy_n(from, run, to);
    }
    if (op.halvings == 0) return;
    std::transform(to, to + run, to, [&](float sum) { return sum * factor; });
  });
}

// What the MMA writes to D of the CTA number `of` of its group: of s32 c is the product, of other
// types the sum.
void give_sums(const TensorOp& op, Tmem& tmem, std::size_t of, const std::vector<float>& c) {
  for_each_run(op.atom, op.d, [&](int row, int column, int lane, int at, int run) {
    if (is_kept(op.kept, of, lane)) return;
    const float* from = c.data() + static_cast<std::ptrdiff_t>(row) * op.atom.n + column;
    float* to = tmem.at(lane, at);
    if (op.atom.d == DType::f16) {
      std::transform(from, from + run, to, rounded_cell);
    } else if (op.atom.d == DType::s32) {
      for (int i = 0; i < run; ++i) {
        to[i] = add_integer(op.accumulate ? to[i] : 0.0F, from[i], op.atom.saturates);
      }
    } else {
      std::copy_n(from, run, to);
    }
  });
}

void clear_zero_columns(const TensorOp& op, std::vector<float>& b) {
  if (op.zero_columns == 0) return;
  for (int column = 0; column < op.atom.n; ++column) {
    if (!atom::is_zero_column(op.zero_columns, op.atom, column)) continue;
    for (int k = 0; k < op.atom.k; ++k) b.data()[std::ptrdiff_t{k} * op.atom.n + column] = 0;
  }
}

}  // namespace

// D of both CTAs of a pair has all columns: every CTA's rows meet the B of both.
void Machine::execute(const TensorOp& op) {
  const int n = op.atom.n;
  const int k = op.atom.k;
  const int rows = atom::umma_cta_rows(op.atom);
  const bool integers = op.atom.d == DType::s32;
  static thread_local std::vector<float> a;
  static thread_local std::vector<float> b;
  static thread_local std::vector<float> c;
  const auto lines = static_cast<std::size_t>(std::max(rows, 64));  // as multiply() takes them
  a.resize(lines * static_cast<std::size_t>(k));
  b.resize(static_cast<std::size_t>(k) * n);
  c.resize(lines * static_cast<std::size_t>(n));
  int first = 0;
  for (const Operand& operand : op.b) {
    read_operand(operand, b.data() + first, 1, n);
    mark_operand(operand, -1);
    first += operand.rows;
  }
  clear_zero_columns(op, b);
  for (std::size_t of = 0; of < op.a.size(); ++of) {
    const Operand& operand = op.a[of];
    Tmem& tmem = operand.cta->tmem;
    if (operand.in_tmem && !tmem.cells.empty()) read_a_in_tmem(op.atom, operand, a.data());
    read_operand(operand, a.data(), k, 1);
    mark_operand(operand, -1);
    if (tmem.cells.empty()) continue;
    std::fill(c.begin(), c.end(), 0.0F);
    if (op.accumulate && !integers) take_sums(op, tmem, c);
    if (op.atom.scale_block > 0) {
      multiply_by_scales(op, tmem, a, b, c);
    } else {
      for (int row = 0; row < rows; row += 64) {
        multiply(a.data() + static_cast<std::ptrdiff_t>(row) * k, b.data(),
                 c.data() + static_cast<std::ptrdiff_t>(row) * n, n, k);
      }
    }
    give_sums(op, tmem, of, c);
  }
}

void Machine::signal(const TensorOp& op) {
  Cta& cta = *op.cta;
  if (cta.live_threads == 0) return;  // said when it exited
  const int slot = cta.barrier_at[op.barrier / 8];
  MBarrier& bar = cta.barriers[static_cast<std::size_t>(slot)];
  if (!bar.live) {
    finding(Check::dead_barrier,
            "the arrival of a tcgen05.commit of " + who(*op.issuer) + " finds no live mbarrier",
            op.site);
    return;
  }
  if (order) order->committed(*op.issuer, op.handed, cta, bar, op.site);
  arrive(cta, bar, *op.issuer, 1, false, op.site, false);
}

void act::tcgen05_commit(std::uint32_t barrier, std::uint16_t multicast, int ctas, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  Thread& self = m.current();
  m.spend(m.costs().umma_issue);
  m.group(ctas, "tcgen05.commit", site);
  const Commit handed = m.order ? m.order->commits(self) : Commit{};
  (self.mma_site.line > 0 ? self.commit_site : self.bare_commit_site) = site;
  const auto to = [&](Cta& cta) {
    const std::uint32_t offset = barrier & 0xffffffu;
    m.barrier_of(cta, offset, "the arrival of a tcgen05.commit", site);
    auto op = std::make_unique<TensorOp>();
    op->what = TensorOp::What::commit;
    op->issuer = &self;
    op->site = site;
    op->cta = &cta;
    op->barrier = offset;
    op->handed = handed;
    m.issue(std::move(op));
  };
  if (multicast == 0) return to(m.owner(barrier, "tcgen05.commit", site));
  const auto& all = self.cta->cluster->ctas;
  for (unsigned rank = 0; rank < 16; ++rank) {
    if ((multicast >> rank & 1) == 0) continue;
    if (rank >= all.size()) {
      m.fatal(Check::multicast_mask,
              m.who(self) + ": a tcgen05.commit names CTA rank " + std::to_string(rank) +
                  ", which the cluster does not have",
              site);
    }
    if (all[rank]->live_threads == 0) {
      m.fatal(Check::pair_lifetime,
              m.who(self) + ": a tcgen05.commit names CTA rank " + std::to_string(rank) +
                  ", which has exited",
              site);
    }
    to(*all[rank]);
  }
}

void act::tcgen05_fence(bool before, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  m.spend(m.costs().tensor_fence);
  if (m.order) m.order->tensor_fence(m.current(), before, site);
}

}  // namespace warpwright::model
