// Sites and mutants: which synchronising statements a run executed, and one of them broken.
//
// Every synchronising instruction of the model reports itself to a table of sites before it acts;
// the table answers whether this execution is to be broken, and how. Kernels are never edited.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "warpwright/model/report/site.h"

namespace warpwright::model {

/// What a synchronising statement is.
enum class SyncKind : std::uint8_t {
  mbarrier_init,
  mbarrier_expect,
  mbarrier_arrive,
  mbarrier_wait,
  mbarrier_try_wait,
  fence_mbarrier_init,
  fence_proxy_async,
  multicast,  ///< the mask of a multicast load
  bulk_commit,
  bulk_wait,
  copy_commit,  ///< cp.async.commit_group
  copy_wait,    ///< cp.async.wait_group
  copy_arrive,  ///< cp.async.mbarrier.arrive
  wgmma_fence,
  wgmma_commit,
  wgmma_wait,
  named_barrier,
  cluster_arrive,
  cluster_wait,
  warp_sync,
  tmem_alloc,
  tmem_dealloc,
  tmem_relinquish,
  tmem_copy,         ///< tcgen05.cp
  tmem_shift,        ///< tcgen05.shift
  umma_commit,       ///< tcgen05.commit, to one barrier
  umma_commit_mask,  ///< the same with a multicast mask
  tensor_fence_before,
  tensor_fence_after,
  tmem_wait_load,
  tmem_wait_store,
  try_cancel,
  draw,         ///< an atomic increment that gives numbers away
  store_async,  ///< to shared memory of the cluster, with its signal
  grid_wait,    ///< griddepcontrol.wait
  grid_launch,  ///< griddepcontrol.launch_dependents, where a later grid relies on what is before
                ///< it
  flag_set,     ///< a release to a flag in global memory
  flag_wait,    ///< and the wait for it
  flag_count,   ///< an atomic count that releases and acquires
  flag_clear,   ///< a flag back to 0, for the next launch
  map_replace,  ///< tensormap.replace of one field
  map_release,  ///< tensormap.cp_fenceproxy
  map_acquire,  ///< fence.proxy.tensormap::generic.acquire
};

/// "mbarrier.arrive" and so on.
std::string_view name(SyncKind kind);

/// One statement of the kernel, or of a pipeline it calls: a line may hold several kinds, and a
/// pipeline call several barriers, so kind and barrier belong to the key.
struct SyncSite {
  SyncKind kind = SyncKind::mbarrier_init;
  std::string file;
  int line = 0;
  std::string barrier;  ///< the declared name of the mbarrier, where there is one

  std::int64_t executions = 0;  ///< by all threads of the grid
  int threads = 0;              ///< different threads of a CTA that executed it
  int warps = 0;                ///< different warps
  int warpgroups = 0;           ///< different warpgroups
  std::vector<std::string> roles;
  /// The statement's number (arrival count, bytes, mask, groups that may be pending): all bits
  /// seen.
  int value = 0;
  static constexpr int registers = 256;  ///< in `value` of a wait: it names registers
  bool cluster_scope = false;            ///< releases or acquires at cluster scope

  /// "mbarrier.arrive full at hopper/gemm.h:118".
  [[nodiscard]] std::string text() const;
};

/// One way in which one site is broken.
struct Mutation {
  enum class Kind : std::uint8_t {
    drop,             ///< never executed (a try_wait: answers true without looking)
    drop_first,       ///< every thread leaves out its first execution
    count_up,         ///< one more (an init's count, a named barrier's threads: one more warp)
    count_down,       ///< one less
    repeat,           ///< executed twice
    repeat_first,     ///< every thread executes it twice the first time
    flip_parity,      ///< waits for the other parity
    flip_first,       ///< every thread waits for the other parity the first time
    initial_phase,    ///< every wait on barriers of this name starts with the other parity
    bytes_up,         ///< expects 16 bytes more
    bytes_down,       ///< expects 16 bytes less
    bytes_first,      ///< expects 16 bytes more the first time
    clear_low,        ///< the lowest bit of a mask cleared
    clear_high,       ///< the highest bit of a mask cleared
    wait_more,        ///< one group more may stay pending
    weaken,           ///< cluster scope becomes CTA scope; release and acquire become relaxed
    no_wait,          ///< a barrier is counted and not waited for
    other_lane,       ///< another lane executes it in this thread's place
    lane_zero,        ///< lane 0 executes it for its warp
    other_warpgroup,  ///< of two warpgroups side by side one arrives twice and one never
    stranger,         ///< a thread of another warpgroup executes it
    no_registers,     ///< a wait that names no registers
    too_early,        ///< as if it stood before its thread's wait
  };
  Kind kind = Kind::drop;
  SyncKind at = SyncKind::mbarrier_init;
  std::string file;
  int line = 0;
  std::string barrier;

  /// "dropped", "count + 1" and so on.
  [[nodiscard]] std::string_view how() const;
};

/// "mbarrier.arrive full at tma_pipeline.h:118": the site it breaks.
std::string text(const Mutation& mutation);

/// Every way to break each of these sites, in a fixed order.
std::vector<Mutation> mutations(const std::vector<SyncSite>& sites);

/// Counts the sites of one run and picks out the executions that a mutation breaks.
class SiteTable {
 public:
  explicit SiteTable(const std::optional<Mutation>& mutation) : mutation_(mutation) {}

  /// Who executes a statement.
  struct Executor {
    int cta = 0;
    int thread = 0;  ///< index in its CTA
    const char* role = "";
  };

  /// Counts one execution. Returns the mutation that breaks it, or null.
  const Mutation* visit(SyncKind kind, Site site, const char* barrier, int value,
                        bool cluster_scope, Executor who);
  /// Somebody relies on the place of a statement that is no site otherwise.
  void rely_on(SyncKind kind, Site site);
  /// The barrier that the latest init made has this name.
  void name_init(const char* barrier);
  /// What was executed, sorted by place.
  [[nodiscard]] std::vector<SyncSite> sites() const;

 private:
  struct Key {
    const char* file;
    const char* barrier;
    int line;
    SyncKind kind;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  struct Entry {
    std::int64_t executions = 0;
    std::bitset<1024> threads;
    std::vector<const char*> roles;
    int value = 0;
    bool cluster_scope = false;
    bool broken = false;
    bool relied_on = false;
    const char* named = "";  // of an init
  };
  [[nodiscard]] bool matches(const Key& key) const;

  std::optional<Mutation> mutation_;
  std::unordered_map<Key, Entry, Hash> entries_;
  Entry* latest_init_ = nullptr;
  std::unordered_set<std::uint64_t> broke_;  // threads that have executed the broken statement
};

}  // namespace warpwright::model
