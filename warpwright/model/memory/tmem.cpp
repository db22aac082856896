// Tensor memory: allocation, and what warps load and store (PTX ISA 9.7.16.7 and 9.7.16.8).
#include "warpwright/model/memory/tmem.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "warpwright/atom/wgmma.h"
#include "warpwright/model/parts.h"
#include "warpwright/model/report/timing.h"

namespace warpwright::model {
namespace {

// Where a warp's access finds register `r` of lane `t`, from its address on, the first cell of two
// where it is packed. Lanes16 is laid out as a wgmma accumulator is, of which a warp holds 16 rows.
atom::TmemCell cell_of(const TmemAccess& access, int t, int r) {
  const int cells = access.packed ? 2 : 1;
  switch (access.shape) {
    case TmemShape::lanes32:
      return {t, cells * r};
    case TmemShape::b16x64:
      return {t / 4 + 8 * (t % 2), cells * (2 * r + t / 2 % 2)};
    case TmemShape::b16x128:
      return {t / 4 + 8 * (r % 2), cells * (4 * (r / 2) + t % 4)};
    case TmemShape::b16x32x2:
      return {t % 16, cells * r + access.split * (t / 16)};
    case TmemShape::lanes16:
      break;
  }
  return {atom::c_row(t, r), cells * atom::c_col(t, r)};
}

// The columns of it, and of the other half where that has its own.
std::vector<TmemRegion> regions_of(const TmemAccess& access) {
  const int lane = atom::tmem_lane(access.address);
  const int column = atom::tmem_column(access.address);
  const bool all = access.shape == TmemShape::lanes32;
  const bool split = access.shape == TmemShape::b16x32x2;
  const auto halves = static_cast<std::uint8_t>((all ? 3U : 1U) << lane / 16);
  const int columns = (all || split ? 1 : 2) * (access.packed ? 2 : 1) * access.count;
  if (!split) return {{halves, column, columns}};
  if (access.split <= columns) return {{halves, column, columns + access.split}};
  return {{halves, column, columns}, {halves, column + access.split, columns}};
}

// The value of a register, of its cells.
float register_of(const TmemAccess& access, const float* cells) {
  if (!access.packed) return *cells;
  const auto low = std::bit_cast<std::uint32_t>(cells[0]) & 0xffffU;
  return std::bit_cast<float>(low | std::bit_cast<std::uint32_t>(cells[1]) << 16);
}
// The least or largest of what a lane has loaded.
template <class T>
T least_of(const float* values, int count, bool largest) {
  T best = std::bit_cast<T>(values[0]);
  for (int i = 1; i < count; ++i) {
    const T next = std::bit_cast<T>(values[i]);
    best = largest ? std::max(best, next) : std::min(best, next);
  }
  return best;
}
// The same of floats: -0 is less than 0, and a NaN is none of them, or the result.
float least_float(const TmemReduction& how, const float* values, int count) {
  const auto is_before = [&](float a, float b) {
    const bool less = a != b ? a < b : std::signbit(a) && !std::signbit(b);
    return how.largest ? !less : less;
  };
  const auto canonical = std::bit_cast<float>(0x7fffffffU);
  float best = canonical;
  for (int i = 0; i < count; ++i) {
    const float next = how.absolute ? std::fabs(values[i]) : values[i];
    if (std::isnan(next) && how.keeps_nan) return canonical;
    if (!std::isnan(next) && (std::isnan(best) || is_before(next, best))) best = next;
  }
  return best;
}
float reduced(const TmemReduction& how, const float* values, int count) {
  switch (how.type) {
    case TmemReduction::Type::u32:
      return std::bit_cast<float>(least_of<std::uint32_t>(values, count, how.largest));
    case TmemReduction::Type::s32:
      return std::bit_cast<float>(least_of<std::int32_t>(values, count, how.largest));
    case TmemReduction::Type::f32:
      break;
  }
  return least_float(how, values, count);
}

// What becomes of its cells, where it is stored: of packed ones only the lower halves.
void to_cells(const TmemAccess& access, float value, float* cells) {
  if (!access.packed) {
    *cells = value;
    return;
  }
  auto bits = std::bit_cast<std::uint32_t>(value);
  for (int i = 0; i < 2; ++i, bits >>= 16) {
    const std::uint32_t upper = std::bit_cast<std::uint32_t>(cells[i]) & 0xffff0000U;
    cells[i] = std::bit_cast<float>(upper | (bits & 0xffffU));
  }
}

const char* what_is(bool load) {
  return load ? "tcgen05.ld" : "tcgen05.st";
}

// The U4 rule: all tcgen05 instructions of a kernel work for groups of one size.
void keep_group(Cta& cta, int ctas, const char* what, Site site) {
  Machine& m = machine();
  if (cta.tmem.ctas == 0) cta.tmem.ctas = ctas;
  if (cta.tmem.ctas == ctas) return;
  m.finding(Check::mixed_groups,
            m.who(m.current()) + ": " + what + ".cta_group::" + std::to_string(ctas) +
                " in a CTA that has used cta_group::" + std::to_string(cta.tmem.ctas) +
                "; a kernel keeps to one",
            site);
}

std::array<Thread*, warp_lanes> warp_of(const Thread& thread) {
  std::array<Thread*, warp_lanes> lanes{};
  const auto first = static_cast<std::size_t>(thread.warp()) * warp_lanes;
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] = thread.cta->threads[first + i].get();
  return lanes;
}

bool is_column_count(int columns) {
  return columns >= 32 && columns <= atom::kTmemColumns &&
         std::has_single_bit(static_cast<unsigned>(columns));
}

// The first place where `columns` are free in all of these CTAs, or -1.
int first_fit(const std::vector<Cta*>& ctas, int columns) {
  for (int column = 0; column + columns <= atom::kTmemColumns; column += 32) {
    const auto fits = [&](const Cta* cta) { return cta->tmem.free(column, columns); };
    if (std::all_of(ctas.begin(), ctas.end(), fits)) return column;
  }
  return -1;
}

void block_for_tmem(Cta& cta, const char* what, int columns, Site site) {
  Machine& m = machine();
  cta.tmem.waiting.push_back(&m.current());
  m.block(
      {.kind = Wait::Kind::tensor_memory, .site = site, .cta = &cta, .id = columns, .what = what});
}

// Waits until the pair's other CTA has come to the same call; true in the CTA that comes last,
// which then acts for both. Calls of only one CTA come last at once.
bool comes_last(const std::vector<Cta*>& ctas, const char* what, int columns, int column,
                Site site) {
  Machine& m = machine();
  if (ctas.size() == 1) return true;
  Cta& own = *m.current().cta;
  Cta& other = *ctas[own.rank % 2 == 0 ? 1 : 0];
  if (other.tmem.call.what != nullptr && !other.tmem.call.done) {
    if (std::string_view(other.tmem.call.what) != what || other.tmem.call.columns != columns) {
      m.fatal(Check::tmem_allocation,
              m.who(m.current()) + ": " + what + " of " + std::to_string(columns) +
                  " columns, while the pair's other CTA waits in " + other.tmem.call.what + " of " +
                  std::to_string(other.tmem.call.columns),
              site);
    }
    return true;
  }
  own.tmem.call = {what, columns, column, false};
  while (!own.tmem.call.done) block_for_tmem(own, what, columns, site);
  return false;
}

void finish_call(const std::vector<Cta*>& ctas, int column) {
  Machine& m = machine();
  for (Cta* cta : ctas) {
    if (cta->tmem.call.what != nullptr && !cta->tmem.call.done) {
      cta->tmem.call.done = true;
      cta->tmem.call.column = column;
    }
    m.wake_all(cta->tmem.waiting);
  }
}

void check_allocation(Cta& cta, int columns, Site site) {
  Machine& m = machine();
  const std::string by = m.who(m.current()) + ": tcgen05.alloc";
  if (!is_column_count(columns)) {
    m.fatal(Check::tmem_allocation,
            by + " of " + std::to_string(columns) +
                " columns; legal are the powers of two from 32 to 512",
            site);
  }
  if (cta.tmem.relinquished) {
    m.finding(Check::tmem_allocation, by + " after the CTA has relinquished its permit to allocate",
              site);
  }
  if (columns > cta.tmem.granted) {
    m.finding(Check::tmem_allocation,
              by + " of " + std::to_string(columns) + " columns after one of " +
                  std::to_string(cta.tmem.granted) +
                  "; a CTA's allocations must not grow from one to the next",
              site);
  }
}

// The columns that the call gives to the current CTA; it blocks until it has them.
int allocate(const std::vector<Cta*>& ctas, int columns, Site site) {
  Machine& m = machine();
  Cta& own = *m.current().cta;
  check_allocation(own, columns, site);
  own.tmem.call = {};
  if (!comes_last(ctas, "tcgen05.alloc", columns, -1, site)) return own.tmem.call.column;
  if (m.explore) m.explore->may_allocate(ctas);
  int column = first_fit(ctas, columns);
  while (column < 0) {
    block_for_tmem(own, "tcgen05.alloc", columns, site);
    if (m.explore) m.explore->may_allocate(ctas);
    column = first_fit(ctas, columns);
  }
  if (m.explore) m.explore->allocates(ctas, "tcgen05.alloc", site);
  for (Cta* cta : ctas) {
    Tmem& tmem = cta->tmem;
    if (tmem.cells.empty()) {
      tmem.cells.resize(static_cast<std::size_t>(atom::kTmemLanes) * atom::kTmemColumns);
    }
    tmem.blocks.push_back({column, columns, site});
    tmem.granted = columns;
    const TmemRegion region{0xff, column, columns};
    for_each_tmem_piece(region, [&](int piece, std::uint16_t mask) {
      tmem.defined[static_cast<std::size_t>(piece)] &= static_cast<std::uint16_t>(~mask);
    });
    for (int lane = 0; lane < atom::kTmemLanes; ++lane) {
      std::fill_n(tmem.at(lane, column), columns, std::bit_cast<float>(poison_bits));
    }
  }
  finish_call(ctas, column);
  return column;
}

void deallocate(const std::vector<Cta*>& ctas, int column, int columns, Site site) {
  Machine& m = machine();
  Cta& own = *m.current().cta;
  const auto block = [&](Tmem& tmem) {
    return std::find_if(tmem.blocks.begin(), tmem.blocks.end(), [&](const Tmem::Block& b) {
      return b.column == column && b.columns == columns;
    });
  };
  if (block(own.tmem) == own.tmem.blocks.end()) {
    m.fatal(Check::tmem_allocation,
            m.who(m.current()) + ": tcgen05.dealloc of " + std::to_string(columns) +
                " columns from column " + std::to_string(column) +
                ", which were not allocated together",
            site);
  }
  if (m.order) m.order->deallocates(warp_of(m.current()), {0xff, column, columns}, site);
  own.tmem.call = {};
  if (!comes_last(ctas, "tcgen05.dealloc", columns, column, site)) return;
  if (m.explore) {
    m.explore->may_allocate(ctas);
    m.explore->allocates(ctas, "tcgen05.dealloc", site);
  }
  for (Cta* cta : ctas) {
    const auto at = block(cta->tmem);
    if (at != cta->tmem.blocks.end()) cta->tmem.blocks.erase(at);
  }
  finish_call(ctas, column);
}

// A call that one lane carries out for its warp, and that may block: the lanes meet before it and
// after it. `agree` is what they must have in common.
void by_warp(const char* what, std::uint64_t agree, Site site, const std::function<void()>& act) {
  Machine& m = machine();
  whole_warp(what, site);
  bool last = false;
  meet_warp(what, site, &agree, [&](std::span<void*> lanes) {
    last = true;
    for (const void* lane : lanes) {
      if (*static_cast<const std::uint64_t*>(lane) == agree) continue;
      m.fatal(Check::divergence,
              std::string("the lanes of a warp give ") + what + " different operands", site);
    }
  });
  if (last) act();
  meet_warp(what, site, nullptr, [](std::span<void*>) {});
}

}  // namespace

std::vector<Cta*> Machine::group(int ctas, const char* what, Site site) {
  Cta& own = *current_->cta;
  keep_group(own, ctas, what, site);
  if (ctas == 1) return {&own};
  const auto& all = own.cluster->ctas;
  const auto peer = static_cast<std::size_t>(own.rank ^ 1);
  if (peer >= all.size()) {
    fatal(Check::pair_lifetime,
          who(*current_) + ": " + what + ".cta_group::2 in CTA rank " + std::to_string(own.rank) +
              " of a cluster of " + std::to_string(all.size()) + ", which is in no pair",
          site);
  }
  if (all[peer]->live_threads == 0) {
    fatal(Check::pair_lifetime,
          who(*current_) + ": " + what + ".cta_group::2, and the pair's other CTA has exited",
          site);
  }
  const bool known = current_->peers_run || (order && Order::knows_of(*current_, *all[peer]));
  if (!known) {
    finding(Check::pair_lifetime,
            who(*current_) + ": " + what +
                ".cta_group::2, and nothing tells that the pair's other CTA has started. Mend: "
                "wait on the cluster barrier first",
            site);
  }
  return {all[peer & ~std::size_t{1}].get(), all[peer | 1].get()};
}

void Machine::check_tmem(Cta& cta, const TmemRegion& region, const char* what, Site site) {
  if (cta.tmem.allocated(region)) return;
  fatal(Check::tmem_allocation,
        who(*current_) + ": " + what + " uses columns " + std::to_string(region.column) + " to " +
            std::to_string(region.column + region.columns - 1) +
            " of the tensor memory of CTA rank " + std::to_string(cta.rank) +
            ", which are not allocated. Mend: allocate as many columns as are used, and use them "
            "before they are given back",
        site);
}

void Machine::execute(Cta& cta, TmemOp& op) {
  if (op.executed) return;
  op.executed = true;
  const TmemAccess& first = op.lanes[0];
  const int lane = atom::tmem_lane(first.address);
  const int column = atom::tmem_column(first.address);
  op.values.resize(static_cast<std::size_t>(warp_lanes) * first.count);
  auto value = op.values.begin();
  for (int t = 0; t < warp_lanes; ++t) {
    for (int r = 0; r < first.count; ++r, ++value) {
      const atom::TmemCell cell = cell_of(first, t, r);
      float* const at = cta.tmem.at(lane + cell.lane, column + cell.column);
      if (op.load) {
        *value = register_of(first, at);
      } else {
        to_cells(first, *value, at);
      }
    }
  }
}

void Machine::tensor_exits(Cta& cta) {
  const std::string name = "CTA " + std::to_string(cta.index);
  for (const Tmem::Block& b : cta.tmem.blocks) {
    finding(Check::tmem_allocation,
            name + " exited without giving back " + std::to_string(b.columns) +
                " columns of tensor memory, from column " + std::to_string(b.column) +
                ". Mend: tcgen05_deallocate() of as many columns by the warp that allocated them, "
                "before it exits",
            b.site);
  }
  for (const Thread* issuer : tensor_issuers_) {
    for (const auto& op : issuer->tensor_ops) {
      const auto uses = [&](const Operand& a) { return a.cta == &cta; };
      const bool commit = op->what == TensorOp::What::commit;
      if (commit ? op->cta != &cta : std::none_of(op->a.begin(), op->a.end(), uses)) continue;
      const bool mma = op->what == TensorOp::What::mma;
      finding(Check::pair_lifetime,
              name + " exited before " +
                  (commit ? "the arrival of a tcgen05.commit"
                   : mma  ? "an MMA"
                          : std::string("a ") + op->name()) +
                  " of " + who(*issuer) + (commit ? " reached it" : " had used its memory"),
              op->site);
    }
  }
}

void act::tcgen05_allocate(std::uint32_t to, int columns, int ctas, Site site) {
  const std::uint64_t agree = std::uint64_t{to} << 32 | static_cast<std::uint32_t>(columns);
  by_warp("tcgen05.alloc", agree, site, [&] {
    Machine& m = machine();
    const int column = allocate(m.group(ctas, "tcgen05.alloc", site), columns, site);
    const std::uint32_t address = atom::tmem_address(0, column);
    m.as_other(m.current().warp() * warp_lanes,
               [&] { shared_store(to, &address, sizeof(address), site); });
  });
}

void act::tcgen05_deallocate(std::uint32_t address, int columns, int ctas, Site site) {
  const std::uint64_t agree = std::uint64_t{address} << 32 | static_cast<std::uint32_t>(columns);
  by_warp("tcgen05.dealloc", agree, site, [&] {
    deallocate(machine().group(ctas, "tcgen05.dealloc", site), atom::tmem_column(address), columns,
               site);
  });
}

void act::tcgen05_relinquish(int ctas, bool effective, Site site) {
  by_warp("tcgen05.relinquish_alloc_permit", 0, site, [&] {
    if (!effective) return;
    Cta& cta = *machine().current().cta;
    keep_group(cta, ctas, "tcgen05.relinquish_alloc_permit", site);
    cta.tmem.relinquished = true;
  });
}

namespace {

void check_access(const TmemAccess& access, const TmemRegion& region, bool load, Site site) {
  Machine& m = machine();
  const Thread& self = m.current();
  const int lane = atom::tmem_lane(access.address);
  const int first = self.warp() % 4 * warp_lanes;
  const bool whole = access.shape == TmemShape::lanes32;
  if (lane != first && (whole || lane != first + 16)) {
    m.fatal(Check::tmem_lanes,
            m.who(self) + ": " + what_is(load) + " from lane " + std::to_string(lane) +
                "; a warp reaches lanes 32 (w % 4) to 32 (w % 4) + 31, here from " +
                std::to_string(first) + (whole ? "" : " or " + std::to_string(first + 16)),
            site);
  }
  m.check_tmem(*self.cta, region, what_is(load), site);
  if (!load) return;
  bool undefined = false;
  for_each_tmem_piece(region, [&](int piece, std::uint16_t mask) {
    // Lanes that no accumulator of 64 rows uses hold nothing, and are read with the others.
    const std::uint16_t had = self.cta->tmem.defined[static_cast<std::size_t>(piece)];
    for (unsigned bits = 3; bits <= 0xffff; bits <<= 2) {
      undefined = undefined || ((mask & bits) != 0 && (mask & bits & had) == 0);
    }
  });
  if (!undefined) return;
  m.finding(Check::uninitialised_read,
            m.who(self) + ": tcgen05.ld reads tensor memory from column " +
                std::to_string(region.column) + " on, of which nothing has written a part" +
                m.fresh_wait_text(),
            site);
}

// The warp's access begins: its operands agree, and its order is proved.
void begin(TmemOp op) {
  Machine& m = machine();
  Cta& cta = *m.current().cta;
  const TmemAccess& first = op.lanes[0];
  for (const TmemAccess& lane : op.lanes) {
    if (lane.address == first.address && lane.count == first.count) continue;
    m.fatal(Check::divergence,
            std::string("the lanes of a warp give ") + what_is(op.load) + " different addresses",
            op.site);
  }
  const std::vector<TmemRegion> regions = regions_of(first);
  for (const TmemRegion& region : regions) check_access(first, region, op.load, op.site);
  if (m.order) {
    const std::array<Thread*, warp_lanes> warp = warp_of(m.current());
    const std::uint32_t number = m.order->begin_tmem(*warp[0], op.load, op.site);
    for (const TmemRegion& region : regions) {
      m.order->touch_tmem(number, warp, cta, region, !op.load);
    }
    m.order->end(number);
  }
  const char* const writer =
      op.load ? m.writer("a tcgen05.wait::ld", "tcgen05.ld", "writes it", op.site) : "";
  for (TmemAccess& lane : op.lanes) {
    if (op.load) {
      lane.state->in_flight = true;
      lane.state->writer = writer;
      if (lane.reduction.to != nullptr) {
        lane.reduction.state->in_flight = true;
        lane.reduction.state->writer = writer;
        *lane.reduction.to = std::bit_cast<float>(poison_bits);
      }
      std::fill_n(lane.registers, lane.count, std::bit_cast<float>(poison_bits));
    } else {
      touch_fragment(*lane.state, op.site);
      op.values.insert(op.values.end(), lane.registers, lane.registers + lane.count);
    }
  }
  for (const TmemRegion& region : regions) {
    if (!op.load) cta.tmem.define(region);
  }
  const double registers = first.count * m.costs().tmem_register;
  op.done = m.after(m.after(m.now(), m.costs().tmem_latency), {static_cast<std::int64_t>(registers),
                                                               {CostKind::tmem_register},
                                                               static_cast<double>(first.count)});
  const bool at_once =
      m.options().mode == Mode::eager || (m.options().mode == Mode::random && m.chance(50));
  if (at_once) m.execute(cta, op);
  cta.tmem_ops[static_cast<std::size_t>(m.current().warp())].push_back(std::move(op));
}

void access(bool load, TmemAccess mine, Site site) {
  whole_warp(what_is(load), site);
  meet_warp(what_is(load), site, &mine, [&](std::span<void*> lanes) {
    TmemOp op;
    op.load = load;
    op.site = site;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      op.lanes[i] = *static_cast<const TmemAccess*>(lanes[i]);
    }
    begin(std::move(op));
  });
}

// The registers get what was loaded.
void give(const TmemOp& op) {
  Machine& m = machine();
  bool touched = false;
  auto value = op.values.begin();
  for (const TmemAccess& lane : op.lanes) {
    if (lane.reduction.to != nullptr) {
      *lane.reduction.to = reduced(lane.reduction, &*value, lane.count);
      lane.reduction.state->in_flight = false;
      lane.reduction.state->unnamed = true;
    }
    for (int r = 0; r < lane.count; ++r, ++value) {
      touched = touched || std::bit_cast<std::uint32_t>(lane.registers[r]) != poison_bits;
      lane.registers[r] = *value;
    }
    lane.state->in_flight = false;
    lane.state->unnamed = true;
  }
  if (!touched) return;
  m.finding(Check::fragment_in_flight,
            "a register was written between tcgen05.ld and the wait that covers it", op.site);
}

}  // namespace

void tcgen05_load(const TmemAccess& access_of_lane, Site site) {
  access(true, access_of_lane, site);
}

void tcgen05_store(const TmemAccess& access_of_lane, Site site) {
  access(false, access_of_lane, site);
}

void act::tcgen05_wait(bool loads, Site site) {
  Machine& m = machine();
  Thread& self = m.current();
  const char* what = loads ? "tcgen05.wait::ld" : "tcgen05.wait::st";
  whole_warp(what, site);
  std::deque<TmemOp>& ops = self.cta->tmem_ops[static_cast<std::size_t>(self.warp())];
  for (const TmemOp& op : ops) {
    if (op.load == loads) m.sleep_until(op.done, loads ? "wait tmem load" : "wait tmem store");
  }
  meet_warp(what, site, nullptr, [&](std::span<void*>) {
    // In the order of their issue; accesses of the other kind stay.
    for (TmemOp& op : ops) {
      if (op.load != loads) continue;
      m.execute(*self.cta, op);
      if (loads) give(op);
    }
    std::erase_if(ops, [&](const TmemOp& op) { return op.load == loads; });
    if (m.order) m.order->tmem_waited(warp_of(self), loads);
  });
}

}  // namespace warpwright::model
