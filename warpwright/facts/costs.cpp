#include "warpwright/facts/costs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <stdexcept>

#include "warpwright/facts/machines.h"

namespace warpwright {
namespace {

std::int64_t whole(double clocks) {
  return std::llround(clocks);
}

// For an instruction that a device lacks it is what it is on the first device that has it.
double known(double number, const MachineNumbers& kin, double MachineNumbers::*of) {
  return number > 0 ? number : kin.*of;
}

constexpr const char* kNames[] = {
#define WW_NAME(name) #name,
    WW_CLOCK_COSTS(WW_NAME) WW_SHARE_COSTS(WW_NAME)
#undef WW_NAME
        "wgmma",
    "umma",
    "mma",
    "mma_latency",
};

// Bits of a key's detail. For wgmma and tcgen05.mma: N and these.
constexpr std::uint32_t kFromRegisters = 1U << 16;
constexpr std::uint32_t kInTurns = 1U << 17;
constexpr std::uint32_t kPair = 1U << 16;
constexpr std::uint32_t kLongK = 1U << 17;

// For mma.sync: M, N and K, the types of A and of the sums, and whether it takes scales.
std::uint32_t mma_detail(const atom::Mma& mma) {
  return static_cast<std::uint32_t>(mma.m) | static_cast<std::uint32_t>(mma.n) << 5 |
         static_cast<std::uint32_t>(mma.k) << 9 | static_cast<std::uint32_t>(mma.a) << 18 |
         static_cast<std::uint32_t>(mma.sums) << 23 | (mma.scale_block > 0 ? 1U << 28 : 0);
}

atom::Mma mma_of(std::uint32_t detail) {
  atom::Mma mma;
  mma.m = static_cast<int>(detail & 31);
  mma.n = static_cast<int>(detail >> 5 & 15);
  mma.k = static_cast<int>(detail >> 9 & 511);
  mma.a = mma.b = static_cast<DType>(detail >> 18 & 31);
  mma.sums = static_cast<DType>(detail >> 23 & 31);
  mma.scale_block = (detail >> 28 & 1) != 0 ? 32 : 0;
  return mma;
}

}  // namespace

CostKey wgmma_key(int n, bool a_in_registers, bool in_turns) {
  return {CostKind::wgmma, static_cast<std::uint32_t>(n) | (a_in_registers ? kFromRegisters : 0) |
                               (in_turns ? kInTurns : 0)};
}

CostKey umma_key(const atom::UmmaAtom& mma) {
  const bool is_long = mma.k * numeric::bits(mma.a) > 256;  // K of 96, not 64
  return {CostKind::umma,
          static_cast<std::uint32_t>(mma.n) | (mma.pair ? kPair : 0) | (is_long ? kLongK : 0)};
}

CostKey mma_key(const atom::Mma& mma, bool latency) {
  return {latency ? CostKind::mma_latency : CostKind::mma_sync, mma_detail(mma)};
}

std::string cost_name(CostKey key) {
  std::string name = kNames[static_cast<std::size_t>(key.kind)];
  switch (key.kind) {
    case CostKind::wgmma:
      return name + "_" + std::to_string(key.detail & 0xffff) +
             ((key.detail & kFromRegisters) != 0 ? "_rs" : "") +
             ((key.detail & kInTurns) != 0 ? "_turns" : "");
    case CostKind::umma:
      return name + "_" + std::to_string(key.detail & 0xffff) +
             ((key.detail & kPair) != 0 ? "_pair" : "") +
             ((key.detail & kLongK) != 0 ? "_k96" : "");
    case CostKind::mma_sync:
    case CostKind::mma_latency: {
      const atom::Mma mma = mma_of(key.detail);
      return name + "_m" + std::to_string(mma.m) + "n" + std::to_string(mma.n) + "k" +
             std::to_string(mma.k) + "_" + std::string(numeric::word(mma.a)) + "_" +
             std::string(numeric::word(mma.sums)) + (mma.scale_block > 0 ? "_scaled" : "");
    }
    default:
      return name;
  }
}

CostKey cost_key(std::string_view name) {
  const auto no_cost = [&] {
    return std::invalid_argument("no cost is called " + std::string(name));
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(CostKind::wgmma); ++i) {
    if (name == kNames[i]) return {static_cast<CostKind>(i)};
  }
  // The others are few: what their names say is read, and must give the name again.
  const std::string text(name);
  CostKey key;
  int m = 0;
  int n = 0;
  int k = 0;
  char a[16] = "";
  char sums[16] = "";
  const bool latency = text.starts_with("mma_latency_");
  if (std::sscanf(text.c_str(), "wgmma_%d", &n) == 1) {
    key = wgmma_key(n, text.find("_rs") != std::string::npos,
                    text.find("_turns") != std::string::npos);
  } else if (std::sscanf(text.c_str(), "umma_%d", &n) == 1) {
    key = {CostKind::umma, static_cast<std::uint32_t>(n) |
                               (text.find("_pair") != std::string::npos ? kPair : 0) |
                               (text.find("_k96") != std::string::npos ? kLongK : 0)};
  } else if (std::sscanf(text.c_str() + (latency ? 12 : 4), "m%dn%dk%d_%15[^_]_%15[^_]", &m, &n, &k,
                         a, sums) == 5) {
    const auto type = numeric::parse_dtype(a);
    const auto type_of_sums = numeric::parse_dtype(sums);
    if (!type || !type_of_sums) throw no_cost();
    atom::Mma mma;
    mma.m = m;
    mma.n = n;
    mma.k = k;
    mma.a = *type;
    mma.sums = *type_of_sums;
    mma.scale_block = text.ends_with("_scaled") ? 32 : 0;
    key = mma_key(mma, latency);
  }
  if (cost_name(key) != name) throw no_cost();
  return key;
}

CostCounts sum(const CostCounts& a, const CostCounts& b, double times) {
  std::map<CostKey, double> all(a.begin(), a.end());
  for (const auto& [key, count] : b) all[key] += count * times;
  std::erase_if(all, [](const auto& entry) { return std::abs(entry.second) < 1e-9; });
  return {all.begin(), all.end()};
}

// In clocks of the device at its highest clock. What an SM gets of L2 is its own port's rate, or
// its share of what L2 gives all SMs at work, whichever is less; and its share of memory's rate.
Costs::Costs(const MachineNumbers& n, double cold_share) : numbers(&n) {
  const MachineNumbers& hopper = machine_of_architecture(90);
  const MachineNumbers& blackwell = machine_of_architecture(100);
  const auto of = [&](double MachineNumbers::*number) { return known(n.*number, hopper, number); };
  const auto later = [&](double MachineNumbers::*number) {
    return known(n.*number, blackwell, number);
  };
  using N = MachineNumbers;
  const std::int64_t miss = whole(cold_share * (n.l2_miss_clocks - n.l2_hit_clocks));
  arrive.clocks = whole(of(&N::arrive_clocks));
  wait.clocks = whole(of(&N::wait_clocks));
  wake.clocks = whole(of(&N::wake_clocks));
  remote_wake.clocks = wake + whole(of(&N::remote_arrive_clocks));
  named_barrier.clocks = whole(n.named_barrier_clocks);
  cluster_barrier.clocks = whole(of(&N::cluster_barrier_clocks));
  warp.clocks = whole(n.warp_clocks);
  warpgroup.clocks = whole(of(&N::warpgroup_clocks));
  proxy_fence.clocks = whole(of(&N::proxy_fence_clocks));
  tma_issue.clocks = whole(of(&N::tma_issue_clocks));
  shared_access.clocks = whole(n.shared_issue_clocks);
  global_access.clocks = whole(n.global_issue_clocks);
  atomic.clocks = whole(n.atomic_clocks);
  element.clocks = whole(n.element_clocks);
  set_registers.clocks = whole(of(&N::set_registers_clocks));
  tensor_fence.clocks = 2;
  load_latency.clocks = whole(n.l2_hit_clocks) + miss;
  tma_latency.clocks = whole(of(&N::tma_load_clocks)) + miss;
  multicast.clocks = whole(of(&N::tma_multicast_clocks));
  store_latency.clocks = whole(of(&N::tma_store_clocks));
  store_done.clocks = whole(of(&N::tma_store_done_clocks));
  store_async.clocks = whole(of(&N::dsmem_clocks));
  cp_async_latency.clocks = whole(of(&N::cp_async_clocks)) + miss;
  wgmma_latency.clocks = whole(of(&N::wgmma_clocks));
  umma_issue.clocks = whole(later(&N::tcgen05_issue_clocks));
  umma_latency.clocks = whole(later(&N::tcgen05_clocks));
  commit_latency.clocks = whole(later(&N::tcgen05_commit_clocks));
  tmem_copy.clocks = whole(later(&N::tcgen05_copy_clocks));
  tmem_latency.clocks = whole(later(&N::tmem_clocks));
  launch_answer.clocks = whole(later(&N::launch_answer_clocks));
  next_cta.clocks = whole(n.exit_clocks);
  clock.clocks = 1;

  tma_copy = of(&N::tma_copy_clocks);
  tma_row = of(&N::tma_row_clocks);
  tma_outside_row = of(&N::tma_outside_row_clocks);
  cp_async_issue = of(&N::cp_async_issue_clocks);
  tmem_register = later(&N::tmem_register_clocks);
  const double an_sm = n.sms * n.clock_hz;
  const double l2 = n.l2_bytes_per_second / an_sm;
  const double memory = n.hbm_bytes_per_second / an_sm;
  const double all = cold_share > 0 ? std::min(l2, memory / cold_share) : l2;
  const auto fed = [&](double port) { return std::min(port, all); };
  read_rate = fed(n.read_bytes_per_clock);
  write_rate = std::min(n.write_bytes_per_clock, l2);
  tma_rate = fed(of(&N::tma_bytes_per_clock));
  cp_async_rate = fed(of(&N::cp_async_bytes_per_clock));
  shared_rate = n.shared_bytes_per_clock;
  far_rate = of(&N::dsmem_bytes_per_clock);
}

Cost Costs::far_access(int bytes) const {
  return {static_cast<std::int64_t>(32 * bytes / far_rate), {CostKind::far_byte}, 32.0 * bytes};
}

double Costs::wgmma(int n, bool a_in_registers, bool in_turns) const {
  const MachineNumbers& m =
      numbers->wgmma_shared_one.points.empty() ? machine_of_architecture(90) : *numbers;
  return wgmma_clocks(m, n, a_in_registers, in_turns);
}

double Costs::umma(const atom::UmmaAtom& mma) const {
  return price(umma_key(mma));
}

std::pair<double, double> Costs::mma_sync(const atom::Mma& mma) const {
  for (const MachineNumbers* m : {numbers, &machine_of_architecture(90),
                                  &machine_of_architecture(120), &machine_of_architecture(70)}) {
    if (const MmaClocks* const entry = find_mma(*m, mma)) return {entry->clocks, entry->latency};
  }
  return {8, 32};
}

double Costs::price(CostKey key) const {
  switch (key.kind) {
#define WW_PRICE(name) \
  case CostKind::name: \
    return static_cast<double>(name.clocks);
    WW_CLOCK_COSTS(WW_PRICE)
#undef WW_PRICE
    case CostKind::tma_copy:
      return tma_copy;
    case CostKind::tma_row:
      return tma_row;
    case CostKind::tma_outside_row:
      return tma_outside_row;
    case CostKind::cp_async_issue:
      return cp_async_issue;
    case CostKind::tmem_register:
      return tmem_register;
    case CostKind::read_byte:
      return 1 / read_rate;
    case CostKind::write_byte:
      return 1 / write_rate;
    case CostKind::tma_byte:
      return 1 / tma_rate;
    case CostKind::cp_async_byte:
      return 1 / cp_async_rate;
    case CostKind::shared_byte:
      return 1 / shared_rate;
    case CostKind::far_byte:
      return 1 / far_rate;
    case CostKind::wgmma:
      return wgmma(static_cast<int>(key.detail & 0xffff), (key.detail & kFromRegisters) != 0,
                   (key.detail & kInTurns) != 0);
    case CostKind::umma: {
      const MachineNumbers& m =
          numbers->tcgen05_mma.points.empty() ? machine_of_architecture(100) : *numbers;
      const int n = static_cast<int>(key.detail & 0xffff);
      const double k = (key.detail & kLongK) != 0 ? 1.5 : 1;
      if ((key.detail & kPair) == 0) return m.tcgen05_mma.at(n) * k;
      // Each CTA of a pair reads half of B.
      return std::max(m.tcgen05_mma.at(256) * n / 256, m.tcgen05_mma.at(n / 2)) * k;
    }
    case CostKind::mma_sync:
      return mma_sync(mma_of(key.detail)).first;
    case CostKind::mma_latency:
      return mma_sync(mma_of(key.detail)).second;
  }
  return 0;
}

double Costs::clocks(const CostCounts& counts) const {
  double all = 0;
  for (const auto& [key, count] : counts) all += count * price(key);
  return all;
}

}  // namespace warpwright
