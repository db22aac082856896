// What operations cost on a machine: its numbers as the timed model uses them, and counts of work,
// which know no machine. Counts times costs are clocks, without a run of the model.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warpwright/atom/mma.h"
#include "warpwright/atom/umma_atom.h"
#include "warpwright/facts/machine_numbers.h"

namespace warpwright {

// Costs of a thread's own instructions, of latencies and of an engine's work: whole clocks each.
#define WW_CLOCK_COSTS(X)                                                    \
  X(arrive)                                                                  \
  X(wait)                                                                    \
  X(wake)        /* from a phase's completion until its waiter runs */       \
  X(remote_wake) /* the same, where another CTA arrived last */              \
  X(named_barrier)                                                           \
  X(cluster_barrier)                                                         \
  X(warp)                                                                    \
  X(warpgroup)                                                               \
  X(proxy_fence)                                                             \
  X(tma_issue)                                                               \
  X(shared_access) /* a lane's load or store */                              \
  X(global_access)                                                           \
  X(atomic)                                                                  \
  X(element) /* to read, scale and convert a register of sums */             \
  X(set_registers)                                                           \
  X(tensor_fence) /* tcgen05.fence */                                        \
  X(load_latency) /* of a thread's load of global memory */                  \
  X(tma_latency)                                                             \
  X(multicast) /* more, for several CTAs */                                  \
  X(store_latency)                                                           \
  X(store_done)                                                              \
  X(store_async) /* from an st.async to its signal */                        \
  X(cp_async_latency)                                                        \
  X(wgmma_latency)                                                           \
  X(umma_issue)                                                              \
  X(umma_latency)                                                            \
  X(commit_latency)                                                          \
  X(tmem_copy)                                                               \
  X(tmem_latency)                                                            \
  X(launch_answer) /* from a try_cancel to its answer */                     \
  X(next_cta)      /* from a CTA's end to the start of the next one there */ \
  X(clock)         /* one */

// Costs of a piece of an engine's work, and of a byte: parts of a clock.
#define WW_SHARE_COSTS(X)                                                                \
  X(tma_copy) /* of TMA's engine, for a copy, a row of it, and one outside the matrix */ \
  X(tma_row)                                                                             \
  X(tma_outside_row)                                                                     \
  X(cp_async_issue) /* of the path of a warp's 32 copies */                              \
  X(tmem_register)                                                                       \
  X(read_byte)                                                                           \
  X(write_byte)                                                                          \
  X(tma_byte)                                                                            \
  X(cp_async_byte)                                                                       \
  X(shared_byte)                                                                         \
  X(far_byte) /* of another CTA's shared memory */

/// What is counted. The last ones are instructions of tensor cores, whose kind is in the key.
enum class CostKind : std::uint8_t {
#define WW_KIND(name) name,
  WW_CLOCK_COSTS(WW_KIND) WW_SHARE_COSTS(WW_KIND)
#undef WW_KIND
      wgmma,
  umma,
  mma_sync,
  mma_latency,
};

/// A cost by its kind and, of tensor cores, the instruction (costs.cpp).
struct CostKey {
  CostKind kind = CostKind::clock;
  std::uint32_t detail = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the 0 is the compiler's
  friend constexpr auto operator<=>(const CostKey&, const CostKey&) = default;
};
CostKey wgmma_key(int n, bool a_in_registers, bool in_turns);
CostKey umma_key(const atom::UmmaAtom& mma);
CostKey mma_key(const atom::Mma& mma, bool latency);

/// "tma_byte", "wgmma_256_turns", "mma_m16n8k16_bf16_f32".
std::string cost_name(CostKey key);
/// The key of such a name. Throws std::invalid_argument for another.
CostKey cost_key(std::string_view name);

/// How often each cost occurs, by ascending keys. For a share of a run it may be a fraction, and
/// for the difference of two negative.
using CostCounts = std::vector<std::pair<CostKey, double>>;
/// a + b * times.
CostCounts sum(const CostCounts& a, const CostCounts& b, double times);

/// What a run's time is made of, whatever the machine.
struct Work {
  CostCounts path;  ///< on the way to its end, one cost behind the other
  CostCounts all;   ///< in all threads and units
};

/// Some clocks of a thread, and what they are counted as.
struct Cost {
  std::int64_t clocks = 0;
  CostKey key;
  double amount = 1;
  constexpr operator std::int64_t() const { return clocks; }  // NOLINT: it stands for its clocks
};

/// A machine's numbers in whole clocks of a thread, and rates of an SM. A number that its
/// architecture does not have is that of the first one that does.
struct Costs {
  /// `cold_share`: of what is loaded, the part that comes from memory and not from L2.
  explicit Costs(const MachineNumbers& numbers, double cold_share = 0);

#define WW_MEMBER(name) Cost name{0, {CostKind::name}};
  WW_CLOCK_COSTS(WW_MEMBER)
#undef WW_MEMBER
  // An engine's pieces of work, in clocks.
  double tma_copy = 0;
  double tma_row = 0;
  double tma_outside_row = 0;
  double cp_async_issue = 0;
  double tmem_register = 0;
  // Rates in bytes a clock of one SM, of whose device all SMs are at work.
  double read_rate = 0;
  double write_rate = 0;
  double tma_rate = 0;
  double cp_async_rate = 0;
  double shared_rate = 0;
  double far_rate = 0;

  /// A lane's load of so many bytes of another CTA's shared memory, where the other lanes of its
  /// warp load too.
  [[nodiscard]] Cost far_access(int bytes) const;
  /// Clocks of a tensor core for one wgmma, or one tcgen05.mma.
  [[nodiscard]] double wgmma(int n, bool a_in_registers, bool in_turns) const;
  [[nodiscard]] double umma(const atom::UmmaAtom& mma) const;
  /// For a partition's tensor core for one mma.sync: clocks, and latency.
  [[nodiscard]] std::pair<double, double> mma_sync(const atom::Mma& mma) const;

  /// Clocks of one of what the key counts.
  [[nodiscard]] double price(CostKey key) const;
  /// Clocks of all of it.
  [[nodiscard]] double clocks(const CostCounts& counts) const;

  const MachineNumbers* numbers;
};

}  // namespace warpwright
