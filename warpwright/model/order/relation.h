// The happens-before relation of a run as one number, to tell whether two programs are the same.
//
// What is hashed, for every access to memory by a thread, TMA or the tensor core: where
// it is, and how many accesses of each other thread, and which phases and groups of asynchronous
// operations, come before it; for every CTA's end, the same. Statements that synchronise are no
// part of it, only what they order: a fence that orders nothing leaves the number as it is. Threads
// are summed up, so the number does not depend on how they interleave.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "warpwright/model/clock.h"
#include "warpwright/model/report/site.h"

namespace warpwright::model {

struct Cluster;
struct Cta;
struct Thread;

class Relation {
 public:
  /// A component that is no thread's, by a name that does not depend on the schedule.
  enum class Owner : std::uint8_t {
    barrier,
    bulk_read,
    bulk_done,
    copies,
    wgmma,
    umma,
    tmem_loads,
    tmem_stores
  };
  void name_component(const Cluster& cluster, std::uint32_t component, Owner owner,
                      std::uint32_t cta_or_thread, std::uint32_t which);

  /// An access by a thread itself. `where` is its place in memory, free of the run's addresses.
  void generic(const Thread& by, std::uint64_t where, bool write, Site site);
  /// An access to shared (or else global) memory by an operation that `issuers` started.
  void asynchronous(std::span<Thread* const> issuers, std::uint64_t where, bool write, bool shared,
                    std::uint32_t line);
  /// An access to tensor memory by an operation that `issuers` started.
  void tensor(std::span<Thread* const> issuers, std::uint64_t where, bool write,
              std::uint32_t line);
  /// A peer's memory must live until this access of the thread: it is counted, not hashed.
  void visit(const Thread& by) { count(by); }
  void exits(const Thread& thread);
  void cta_exits(const Cta& cta);

  [[nodiscard]] std::uint64_t hash() const;

 private:
  struct Count {
    std::uint32_t time;
    std::uint32_t accesses;  // up to that time
  };
  void count(const Thread& by);
  // Accesses of the thread up to `time` of its clock.
  [[nodiscard]] std::uint32_t accesses(std::uint32_t thread, std::uint32_t time) const;
  std::uint64_t hash_of(const Clock& clock, const Cluster& cluster);
  /// For what is known of other clusters and grids.
  std::uint64_t hash_far(const Clock& grid);
  void append(std::uint32_t stream, std::uint64_t value);

  std::unordered_map<std::uint64_t, std::uint64_t> names_;
  std::vector<std::vector<Count>> counts_;  // by thread
  std::vector<std::uint64_t> streams_;      // by thread, then a CTA's end
  std::unordered_map<std::uint32_t, Clock> exited_;
  // Hashes of clocks and of their leaves by identity. The clocks are kept so that an identity is
  // not given to another.
  std::unordered_map<const void*, std::pair<Clock, std::uint64_t>> known_;
  std::unordered_map<const void*, std::uint64_t> leaves_;
  std::uint64_t ends_ = 0;
};

}  // namespace warpwright::model
