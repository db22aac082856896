// The tensor core: wgmma with groups, accumulators that belong to it while in flight, and operands
// read as late as the schedule allows (PTX ISA 9.7.15).
#include "warpwright/model/tensor_core.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <limits>

#include "warpwright/atom/wgmma.h"
#include "warpwright/model/order/order_text.h"
#include "warpwright/model/parts.h"
#include "warpwright/model/report/timing.h"
#include "warpwright/numeric/bulk.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/numeric/vector_clones.h"

namespace warpwright::model {
namespace {

// A position in a vector.
constexpr std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

void widen(DType type, const void* codes, float* out, std::size_t n) {
  numeric::widen_from(codes, out, n, type);
}

}  // namespace

float add_integer(float sum, float product, bool saturates) {
  const std::int64_t exact =
      std::int64_t{std::bit_cast<std::int32_t>(sum)} + static_cast<std::int64_t>(product);
  constexpr std::int64_t least = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const std::int64_t value = saturates ? std::clamp(exact, least, most) : exact;
  return std::bit_cast<float>(static_cast<std::uint32_t>(value));
}

// c[64 x n] += a[64 x k] * b[k x n], all row-major; k is a multiple of 4. The order of the sums is
// the machine's own business (the ISA leaves it open); ours is fixed.
WW_VECTOR_CLONES
void multiply(const float* a, const float* b, float* c, int n, int k) {
  for (int m = 0; m < 64; ++m) {
    float* row = c + m * n;
    for (int i = 0; i < k; i += 4) {
      const float a0 = a[m * k + i];
      const float a1 = a[m * k + i + 1];
      const float a2 = a[m * k + i + 2];
      const float a3 = a[m * k + i + 3];
      const float* b0 = b + i * n;
      const float* b1 = b0 + n;
      const float* b2 = b1 + n;
      const float* b3 = b2 + n;
      for (int j = 0; j < n; ++j) {
        row[j] = row[j] + (a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j]);
      }
    }
  }
}

// No product of block-scaled elements has more bits than a double, nor has their sum where their
// exponents do not lie far apart.
WW_VECTOR_CLONES
void multiply_scaled(const double* a, const double* b, float* c, int m, int n, int k) {
  static thread_local std::vector<double> sums;
  sums.resize(index(n));
  double* const sum = sums.data();
  for (int r = 0; r < m; ++r, a += k, c += n) {
    for (int j = 0; j < n; ++j) sum[j] = 0;
    for (int i = 0; i < k; i += 4) {
      const double* b0 = b + i * n;
      const double* b1 = b0 + n;
      const double* b2 = b1 + n;
      const double* b3 = b2 + n;
      for (int j = 0; j < n; ++j) {
        sum[j] += a[i] * b0[j] + a[i + 1] * b1[j] + a[i + 2] * b2[j] + a[i + 3] * b3[j];
      }
    }
    for (int j = 0; j < n; ++j) c[j] = static_cast<float>(c[j] + sum[j]);
  }
}

namespace {

// The codes of `count` elements of a piece, of 8 bits or less: they lie one behind the other, the
// first lowest.
void unpack_piece(int bits, const std::byte* piece, std::uint8_t* codes, int count) {
  std::array<std::uint64_t, 2> words{};
  std::memcpy(words.data(), piece, index(count * bits / 8));
  for (int i = 0, at = 0; i < count; ++i, at += bits) {
    std::uint64_t code = words[index(at / 64)] >> at % 64;
    if (at % 64 + bits > 64) code |= words[1] << (64 - at % 64);
    codes[i] = static_cast<std::uint8_t>(code & ((1U << bits) - 1));
  }
}

void widen_piece(DType type, const std::byte* piece, float* out, int count) {
  const int bits = numeric::bits(type);
  if (bits >= 8) return widen(type, piece, out, index(count));
  std::array<std::uint8_t, 32> codes{};
  unpack_piece(bits, piece, codes.data(), count);
  numeric::widen(codes.data(), out, index(count), type);
}

}  // namespace

void widen_cells(DType type, int bits, const void* cells, float* out, int count) {
  if (bits >= 8 && numeric::bits(type) >= 8) return widen(type, cells, out, index(count));
  static thread_local std::vector<std::uint8_t> codes;
  codes.resize(index(count));
  const auto* const bytes = static_cast<const std::uint8_t*>(cells);
  const unsigned mask = (1U << numeric::bits(type)) - 1;
  for (int i = 0; i < count; ++i) {
    codes[index(i)] = static_cast<std::uint8_t>(bytes[i * bits / 8] >> i * bits % 8 & mask);
  }
  numeric::widen(codes.data(), out, index(count), type);
}

void read_codes(const Operand& operand, std::uint8_t* out) {
  for_each_piece(operand, [&](int row, int i, std::uint32_t address) {
    unpack_piece(numeric::bits(operand.type), operand.cta->shared.data() + address,
                 out + std::ptrdiff_t{row} * operand.k + i, piece_elements(operand));
  });
}

void read_operand(const Operand& operand, float* out, int row_step, int k_step) {
  const bool along_k = operand.major == atom::Major::k;
  const int piece = piece_elements(operand);
  std::array<float, 32> values{};
  for_each_piece(operand, [&](int row, int i, std::uint32_t address) {
    widen_piece(operand.type, operand.cta->shared.data() + address, values.data(), piece);
    for (int e = 0; e < piece; ++e) {
      const int r = along_k ? row : row + e;
      const int kk = along_k ? i + e : i;
      out[r * row_step + kk * k_step] = values[static_cast<std::size_t>(e)];
    }
  });
}

namespace {

// The same for 8-bit operands as Hopper adds them: the products of one instruction and the running
// sum are cut off 13 bits below the leading one of the largest of them (probed on an H200, see
// docs/model.md), so that a long sum loses small addends.
WW_VECTOR_CLONES
void multiply_narrow(const float* a, const float* b, float* c, int n, int k) {
  constexpr std::uint32_t exponent_mask = 0x7f800000U;
  static thread_local std::vector<std::uint32_t> largest;
  largest.resize(index(n));
  for (int m = 0; m < 64; ++m) {
    float* row = c + m * n;
    const float* am = a + m * k;
    std::uint32_t* top = largest.data();
    for (int j = 0; j < n; ++j) top[j] = std::bit_cast<std::uint32_t>(row[j]) & exponent_mask;
    for (int i = 0; i < k; ++i) {
      const float* bi = b + i * n;
      for (int j = 0; j < n; ++j) {
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(am[i] * bi[j]) & exponent_mask;
        top[j] = bits > top[j] ? bits : top[j];
      }
    }
    bool finite = true;
    for (int j = 0; j < n; ++j) {
      finite = finite && top[j] != exponent_mask;
      // 2^13 over the leading one; sums of only zeros keep any.
      top[j] = top[j] == 0 ? 127U << 23 : ((254U + 13U) << 23) - top[j];
    }
    if (!finite) {
      // For infinities and NaN no exponent tells; the columns beside them are added as ever.
      constexpr std::uint32_t of_none = ((254U + 13U) << 23) - exponent_mask;
      for (int j = 0; j < n; ++j) {
        const auto scale = std::bit_cast<float>(top[j]);
        const bool is_none = top[j] == of_none;
        float sum =
            is_none ? row[j] : static_cast<float>(static_cast<std::int32_t>(row[j] * scale));
        for (int i = 0; i < k; ++i) {
          const float product = am[i] * b[i * n + j];
          sum += is_none ? product : static_cast<float>(static_cast<std::int32_t>(product * scale));
        }
        row[j] = is_none ? sum : sum / scale;
      }
      continue;
    }
    for (int j = 0; j < n; ++j) {
      row[j] = static_cast<float>(static_cast<std::int32_t>(row[j] * std::bit_cast<float>(top[j])));
    }
    for (int i = 0; i < k; ++i) {
      const float* bi = b + i * n;
      for (int j = 0; j < n; ++j) {
        row[j] += static_cast<float>(
            static_cast<std::int32_t>(am[i] * bi[j] * std::bit_cast<float>(top[j])));
      }
    }
    for (int j = 0; j < n; ++j) row[j] /= std::bit_cast<float>(top[j]);
  }
}

Operand operand_a(Cta& cta, const WgmmaRequest& r) {
  return {&cta, atom::decode(r.descriptor_a), 64, atom::wgmma_k(r.type), r.type, r.major_a,
          "A",  numeric::bits(r.type)};
}

Operand operand_b(Cta& cta, const WgmmaRequest& r) {
  return {&cta, atom::decode(r.descriptor_b), r.n, atom::wgmma_k(r.type), r.type_b, r.major_b,
          "B",  numeric::bits(r.type_b)};
}

}  // namespace

void Machine::mark_operand(const Operand& operand, int change) {
  std::vector<std::uint16_t>& readers = operand.cta->readers;
  for_each_piece(operand, [&](int, int, std::uint32_t address) {
    readers[address / 16] = static_cast<std::uint16_t>(readers[address / 16] + change);
  });
}

std::span<const std::uint32_t> Machine::check_operand(const Operand& operand, const char* what,
                                                      Site site) {
  Cta& cta = *operand.cta;
  const char* fault = atom::descriptor_fault(operand.descriptor);
  if (fault != nullptr) {
    fatal(Check::bad_descriptor, std::string(operand.name) + ": " + fault, site);
  }
  bool in_flight = false;
  bool undefined = false;
  std::uint32_t at = 0;
  static thread_local std::vector<std::uint32_t> pieces;
  pieces.clear();
  for_each_piece(operand, [&](int, int, std::uint32_t address) {
    if (address < shared_base_offset || address + 16 > cta.shared.size()) {
      fatal(Check::bad_descriptor,
            std::string("the descriptor of ") + operand.name + " reaches offset " +
                std::to_string(address) + ", outside the CTA's shared memory",
            site);
    }
    pieces.push_back(address / 16);
    const auto first = cta.defined.begin() + address;
    const auto end = first + piece_bytes_used(operand);
    if (cta.writers[address / 16] > 0) {
      in_flight = true;
      at = address;
    } else if (std::find(first, end, 0) != end) {
      undefined = true;
      at = address;
    }
  });
  if (!in_flight && !undefined) return pieces;
  const std::string reads =
      who(*current_) + ": " + what + " reads shared memory at offset " + std::to_string(at) +
      (operand.cta != current_->cta ? " of CTA rank " + std::to_string(cta.rank) : "");
  if (in_flight) {
    finding(
        Check::in_flight_access,
        reads + " that is still being written by " + copies_into(cta, at, 16) + in_flight_text(),
        site);
  }
  if (undefined) {
    finding(Check::uninitialised_read, reads + " that nothing has written" + fresh_wait_text(),
            site);
  }
  return pieces;
}

void Machine::take_operands(Cta& cta, const WgmmaOp& op) {
  std::uint32_t number = 0;
  if (order) {
    const auto group = static_cast<std::size_t>(current_->index / warpgroup_threads);
    number = order->begin_wgmma(*current_, cta.warpgroups[group].order, op.site);
  }
  const auto take = [&](const Operand& operand) {
    const auto pieces = check_operand(operand, "wgmma", op.site);
    if (order) order->touch(number, warpgroup_of(*current_), cta, pieces, false);
    mark_operand(operand, +1);
  };
  if (op.registers_a.empty()) take(operand_a(cta, op.shape));
  take(operand_b(cta, op.shape));
  if (order) order->end(number);
}

void Machine::release_operands(Cta& cta, const WgmmaOp& op) {
  if (op.registers_a.empty()) mark_operand(operand_a(cta, op.shape), -1);
  mark_operand(operand_b(cta, op.shape), -1);
}

std::array<Thread*, warpgroup_threads> Machine::warpgroup_of(const Thread& thread) {
  std::array<Thread*, warpgroup_threads> all{};
  const std::size_t first =
      static_cast<std::size_t>(thread.index / warpgroup_threads) * warpgroup_threads;
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = thread.cta->threads[first + i].get();
  return all;
}

namespace {

// The sums of an instruction, whose operands are a and b, on top of c.
void add_product(const WgmmaRequest& r, const float* a, const float* b, std::vector<float>& c) {
  const int k = atom::wgmma_k(r.type);
  if (r.sums == DType::s32) {
    static thread_local std::vector<float> product;
    product.assign(c.size(), 0.0F);
    multiply(a, b, product.data(), r.n, k);
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = add_integer(c[i], product[i], r.saturates);
    return;
  }
  (numeric::bits(r.type) == 8 ? multiply_narrow : multiply)(a, b, c.data(), r.n, k);
  if (r.sums != DType::f16) return;
  for (float& sum : c) {
    sum = static_cast<float>(numeric::to_double(DType::f16, numeric::from_double(DType::f16, sum)));
  }
}

// Registers of a thread that hold its sums, and values in each.
int values_in(DType sums) {
  return sums == DType::f16 ? 2 : 1;
}
int sum_registers(int n, DType sums) {
  return n / 2 / values_in(sums);
}

// Calls visit(register, its first value, where that value's sum is, and the next one).
template <class Visit>
void for_each_sum(Accumulator& acc, int t, const Visit& visit) {
  const int values = values_in(acc.sums);
  const auto sum = [&](int v) {
    return acc.values.data() + std::ptrdiff_t{atom::c_row(t, v)} * acc.n + atom::c_col(t, v);
  };
  float* const fragment = acc.fragments[index(t)];
  for (int r = 0; r < sum_registers(acc.n, acc.sums); ++r) {
    visit(fragment[r], sum(values * r), sum(values * r + values - 1));
  }
}

// The sums of a thread's registers, and back. Two of f16 lie in one, the first lower.
void take_sums(Accumulator& acc, int t) {
  for_each_sum(acc, t, [&](float at, float* first, float* second) {
    if (acc.sums != DType::f16) {
      *first = at;
      return;
    }
    const auto codes = std::bit_cast<std::uint32_t>(at);
    *first = static_cast<float>(numeric::to_double(DType::f16, codes & 0xffffU));
    *second = static_cast<float>(numeric::to_double(DType::f16, codes >> 16));
  });
}
void give_sums(Accumulator& acc, int t) {
  for_each_sum(acc, t, [&](float& at, const float* first, const float* second) {
    if (acc.sums != DType::f16) {
      at = *first;
      return;
    }
    const auto code = [](float sum) {
      return static_cast<std::uint32_t>(numeric::from_double(DType::f16, sum));
    };
    at = std::bit_cast<float>(code(*first) | code(*second) << 16);
  });
}

}  // namespace

void Machine::execute(Cta& cta, WgmmaOp& op) {
  if (op.executed) return;
  op.executed = true;
  const WgmmaRequest& r = op.shape;
  const int k = atom::wgmma_k(r.type);
  static thread_local std::vector<float> a;
  static thread_local std::vector<float> b;
  a.resize(static_cast<std::size_t>(64) * k);
  b.resize(static_cast<std::size_t>(k) * r.n);
  if (op.registers_a.empty()) {
    read_operand(operand_a(cta, r), a.data(), k, 1);
  } else {
    const int bits = numeric::bits(r.type);
    const int values = atom::a_values(bits);
    std::array<float, 16> wide{};
    for (int t = 0; t < warpgroup_threads; ++t) {
      widen(r.type, op.registers_a.data() + static_cast<std::size_t>(t) * 4, wide.data(),
            static_cast<std::size_t>(values));
      for (int v = 0; v < values; ++v) {
        const int at = bits == 8 ? atom::a_row<8>(t, v) * k + atom::a_k<8>(t, v)
                                 : atom::a_row<16>(t, v) * k + atom::a_k<16>(t, v);
        a[index(at)] = wide[static_cast<std::size_t>(v)];
      }
    }
  }
  read_operand(operand_b(cta, r), b.data(), 1, r.n);
  std::vector<float>& c = op.accumulator->values;
  if (!r.accumulate) std::fill(c.begin(), c.end(), 0.0F);
  add_product(r, a.data(), b.data(), c);
}

void Machine::retire(Cta& cta, Warpgroup& group, std::vector<WgmmaOp>& ops, Site site) {
  for (WgmmaOp& op : ops) {
    execute(cta, op);
    release_operands(cta, op);
    for (FragmentState* a : op.states_a) {
      if (a != nullptr) a->unnamed = --a->reads == 0;
    }
    Accumulator& acc = *op.accumulator;
    if (--acc.in_flight > 0) continue;
    bool touched = false;
    for (int t = 0; t < warpgroup_threads; ++t) {
      const float* const fragment = acc.fragments[static_cast<std::size_t>(t)];
      for (int r = 0; r < sum_registers(acc.n, acc.sums); ++r) {
        touched = touched || std::bit_cast<std::uint32_t>(fragment[r]) != poison_bits;
      }
      give_sums(acc, t);
      FragmentState& state = *acc.states[static_cast<std::size_t>(t)];
      state.in_flight = false;
      state.unnamed = true;
    }
    if (touched) {
      finding(Check::fragment_in_flight,
              "an accumulator was written between wgmma and the wait that covers it", site);
    }
    std::erase_if(group.accumulators, [&](const auto& a) { return a.get() == &acc; });
  }
}

const char* Machine::writer(const char* wait, const char* instruction, const char* does,
                            Site site) {
  for (const Writer& w : writers_) {
    if (w.instruction == instruction && w.site.line == site.line && w.site.file == site.file &&
        w.text.ends_with(does)) {
      return w.text.c_str();
    }
  }
  writers_.push_back({instruction, site,
                      std::string(wait) + " covers the " + instruction + " at " + at_line(site) +
                          " that " + does});
  return writers_.back().text.c_str();
}

Site Machine::place_of(const char* writer) const {
  for (const Writer& w : writers_) {
    if (w.text.c_str() == writer) return w.site;
  }
  return {};
}

void Machine::execute_some(Cta& cta, Warpgroup& group) {
  if (options_.mode == Mode::latest || timed()) return;
  // In issue order: instructions on one accumulator do not overtake each other.
  for (auto& ops : group.groups) {
    for (WgmmaOp& op : ops) {
      if (op.executed) continue;
      if (options_.mode == Mode::random && chance(50)) return;
      execute(cta, op);
    }
  }
  for (WgmmaOp& op : group.open) {
    if (op.executed) continue;
    if (options_.mode == Mode::random && chance(50)) return;
    execute(cta, op);
  }
}

namespace {

// Runs `action` when all 128 threads of the current warpgroup have come.
void meet_warpgroup(const char* what, Site site, void* argument,
                    const std::function<void(std::span<void*>)>& action) {
  Machine& m = machine();
  Thread& self = m.current();
  const int at = self.index / warpgroup_threads;
  if (m.shape().threads < (at + 1) * warpgroup_threads) {
    m.fatal(Check::divergence, std::string(what) + " needs a whole warpgroup of 128 threads", site);
  }
  m.meet(self.cta->warpgroup_meetings[static_cast<std::size_t>(at)], warpgroup_threads,
         self.index % warpgroup_threads, site, {what}, argument, action);
}

Warpgroup& warpgroup() {
  Thread& self = machine().current();
  return self.cta->warpgroups[static_cast<std::size_t>(self.index / warpgroup_threads)];
}

// The thread of the current warpgroup that the trace watches.
const Thread& leader() {
  const Thread& self = machine().current();
  return *self.cta->threads[index(self.index / warpgroup_threads * warpgroup_threads)];
}

Accumulator& accumulator(Warpgroup& group, std::span<void*> requests, bool load, Site site) {
  const char* const writer = machine().writer("a wgmma.wait_group", "wgmma", "writes it", site);
  const auto& first = *static_cast<const WgmmaRequest*>(requests[0]);
  for (const auto& a : group.accumulators) {
    if (a->fragments[0] == first.fragment) return *a;
  }
  auto acc = std::make_unique<Accumulator>();
  acc->n = first.n;
  acc->sums = first.sums;
  acc->values.assign(static_cast<std::size_t>(64) * first.n, 0.0F);
  for (int t = 0; t < warpgroup_threads; ++t) {
    const auto& request = *static_cast<const WgmmaRequest*>(requests[static_cast<std::size_t>(t)]);
    acc->fragments[static_cast<std::size_t>(t)] = request.fragment;
    acc->states[static_cast<std::size_t>(t)] = request.state;
    request.state->in_flight = true;
    request.state->writer = writer;
    if (load) take_sums(*acc, t);
    std::fill_n(request.fragment, sum_registers(first.n, first.sums),
                std::bit_cast<float>(poison_bits));
  }
  group.accumulators.push_back(std::move(acc));
  return *group.accumulators.back();
}

// FragmentState::touched_epoch of what nothing has named since it was touched.
constexpr auto no_fence = std::numeric_limits<std::uint32_t>::max();

}  // namespace

void act::wgmma_fence(Site site) {
  meet_warpgroup("wgmma.fence", site, nullptr, [](std::span<void*>) {});
  ++machine().current().fence_epoch;
}

void wgmma(const WgmmaRequest& request, Site site) {
  Machine& m = machine();
  Thread& self = m.current();
  const auto fenced = [&](const FragmentState* state, const char* registers) {
    if (state == nullptr || state->touched_epoch <= self.fence_epoch) return;
    m.finding(Check::wgmma_unfenced,
              m.who(self) + " issues wgmma on " + registers +
                  " it touched since the last wgmma.fence that names them (the first wgmma needs "
                  "one too): the compiler may move the access over any other. Mend: wgmma_fence() "
                  "with these registers, between the access and the wgmma",
              site);
  };
  fenced(request.state, "registers of an accumulator that");
  fenced(request.state_a, "registers of A that");
  WgmmaRequest mine = request;
  meet_warpgroup("wgmma", site, &mine, [&](std::span<void*> requests) {
    Cta& cta = *self.cta;
    Warpgroup& group = warpgroup();
    ++m.statistics.wgmmas;
    WgmmaOp op;
    op.shape = *static_cast<const WgmmaRequest*>(requests[0]);
    op.site = site;
    const char* const reader = op.shape.registers_a == nullptr
                                   ? ""
                                   : m.writer("a wgmma.wait_group", "wgmma", "reads it as A", site);
    for (void* p : requests) {
      const auto& other = *static_cast<const WgmmaRequest*>(p);
      if (other.descriptor_b != op.shape.descriptor_b || other.accumulate != op.shape.accumulate ||
          (other.registers_a == nullptr && other.descriptor_a != op.shape.descriptor_a)) {
        m.fatal(Check::divergence, "the threads of a warpgroup give wgmma different operands",
                site);
      }
      if (other.registers_a != nullptr) {
        op.registers_a.insert(op.registers_a.end(), other.registers_a, other.registers_a + 4);
        op.states_a.push_back(other.state_a);
        ++other.state_a->reads;
        other.state_a->was_a = true;
        other.state_a->writer = reader;
      }
    }
    op.accumulator = &accumulator(group, requests, op.shape.accumulate, site);
    if (op.accumulator->n != op.shape.n || op.accumulator->sums != op.shape.sums) {
      m.fatal(Check::fragment_in_flight,
              "wgmma of another shape or type on an accumulator that is in flight", site);
    }
    ++op.accumulator->in_flight;
    m.take_operands(cta, op);
    group.open.push_back(std::move(op));
    m.execute_some(cta, group);
  });
}

void act::wgmma_commit(Site site) {
  meet_warpgroup("wgmma.commit_group", site, nullptr, [](std::span<void*>) {
    Machine& m = machine();
    Warpgroup& group = warpgroup();
    if (m.timed()) m.schedule(*m.current().cta, leader(), group);
    group.groups.emplace_back(std::make_move_iterator(group.open.begin()),
                              std::make_move_iterator(group.open.end()));
    group.open.clear();
    ++group.order.committed;
    machine().execute_some(*machine().current().cta, group);
  });
}

void act::wgmma_wait(int pending, Site site) {
  const std::deque<std::vector<WgmmaOp>>& in_flight = warpgroup().groups;
  const int over = static_cast<int>(in_flight.size()) - pending;
  if (over > 0 && !in_flight[static_cast<std::size_t>(over - 1)].empty()) {
    machine().sleep_until(in_flight[static_cast<std::size_t>(over - 1)].back().done, "wait wgmma");
  }
  meet_warpgroup("wgmma.wait_group", site, nullptr, [&](std::span<void*>) {
    Machine& m = machine();
    Warpgroup& group = warpgroup();
    while (static_cast<int>(group.groups.size()) > pending) {
      m.retire(*m.current().cta, group, group.groups.front(), site);
      group.groups.pop_front();
    }
    if (m.order) m.order->wgmma_waited(m.warpgroup_of(m.current()), group.order, pending);
  });
}

void pin_fragment(FragmentState& state) {
  const Thread& self = machine().current();
  if (state.touched_epoch == no_fence) state.touched_epoch = self.fence_epoch + 1;
  if (state.in_flight || state.reads > 0 || self.leaves_registers) return;
  state.unnamed = false;
}

void touch_fragment(FragmentState& state, Site site) {
  Machine& m = machine();
  // Registers know no line: that of the instruction that has them is named.
  const auto place = [&] { return site.line > 0 ? site : m.place_of(state.writer); };
  if (state.in_flight || state.reads > 0) {
    m.finding(Check::fragment_in_flight,
              m.who(m.current()) + " touches a register before " + state.writer +
                  ". Missing: that wait. Mend: wait, with fewer groups left pending, before the "
                  "registers are touched",
              place());
  }
  if (state.unnamed) {
    m.finding(Check::fragment_in_flight,
              m.who(m.current()) +
                  " touches a register that no wait has named, behind the time when " +
                  state.writer +
                  ": the compiler may move the access over the wait. Mend: give the "
                  "fragment to wgmma_wait() or tcgen05_wait_load()",
              place());
    state.unnamed = false;  // said once
  }
  m.spend(m.costs().element);
  state.touched_epoch = no_fence;
}

// An accumulator that nobody reads again is no loss; but what wgmma reads must stay until it has.
void end_fragment(FragmentState& state) {
  if (!state.was_a || (state.reads == 0 && !state.unnamed) || std::uncaught_exceptions() > 0)
    return;
  Machine& m = machine();
  m.finding(Check::fragment_in_flight,
            m.who(m.current()) +
                " ends a fragment that wgmma took A from, and no wait has named it: the compiler "
                "may give its registers to other values before. Mend: give it to wgmma_wait()",
            m.place_of(state.writer));
  Warpgroup& group = warpgroup();
  const auto forget = [&](auto& ops) {
    for (WgmmaOp& op : ops) {
      std::replace(op.states_a.begin(), op.states_a.end(), &state,
                   static_cast<FragmentState*>(nullptr));
    }
  };
  for (auto& ops : group.groups) forget(ops);
  forget(group.open);
}

}  // namespace warpwright::model
