// What a machine keeps of the order of synchronising operations while it runs for an Explorer: it
// writes them down, and lets them come in the order that it is told. Internal to model/.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "warpwright/model/clock.h"
#include "warpwright/model/explore/exploration.h"
#include "warpwright/model/intrinsics.h"

namespace warpwright::model {

struct Cluster;
struct Copy;
struct Cta;
struct Flag;
struct GridRun;
struct MBarrier;
struct NamedBarrier;
struct TensorOp;
struct Thread;
class Machine;

class Recorder {
 public:
  Recorder(Machine& machine, Exploration& io);

  // --- life
  void launched(Cluster& cluster);
  /// The thread, the last of its CTA, exits: it waits for its turn, where clusters are queued.
  void may_exit(Thread& thread);
  void exits(Thread& thread);
  void cta_exits(const Cta& cta);
  /// The thread's CTA no longer keeps the next grid from starting.
  void lets_next_start(const Cta& cta);
  void waited_for_grids(Thread& thread);
  /// May the next cluster of the grid's queue be launched?
  [[nodiscard]] bool may_launch(const GridRun& grid);

  // --- threads that execute an instruction together
  void converged(std::span<Thread* const> others, Thread& last);
  void cluster_arrives(Thread& thread);
  void cluster_completed(Cluster& cluster);
  void cluster_waited(Thread& thread);

  // --- mbarriers
  void initialised(const Cta& cta, const MBarrier& bar);
  /// The current thread's arrival, or bytes that it expects, wait for their turn.
  void may_arrive(const MBarrier& bar);
  /// It was counted, for the current thread or the asynchronous operation that is carried out.
  void arrived(const MBarrier& bar, SyncEvent::Kind kind, const char* what, Site site);
  void flipped(const MBarrier& bar);
  void wait(MBarrier& bar, int parity, Scope scope, Site site);
  bool test(MBarrier& bar, int parity, bool may_suspend, Scope scope, Site site);

  // --- named barriers: by the last lane of a warp to come
  void may_meet(const Cta& cta, const NamedBarrier& bar, int id);
  void meets(std::span<Thread* const> others, Thread& last, const NamedBarrier& bar, Site site);
  void met(const NamedBarrier& bar, std::span<Thread* const> waiting);

  // --- words of global memory
  /// The current thread's operation on the word waits for its turn.
  void may_touch(std::uintptr_t word);
  struct Wanted {
    std::uint32_t value = 0;
    std::uint32_t mask = 0;
    bool any_other = false;
  };
  void reads(std::uintptr_t word, const Wanted* wanted, const char* what, Site site);
  void writes(std::uintptr_t word, std::uint32_t before, const char* what, Site site);
  /// The current thread is about to wait for the word, or goes on.
  void blocks(std::uintptr_t word, const Wanted& wanted, const char* what, Site site);

  // --- what CTAs share otherwise
  void may_allocate(std::span<Cta* const> ctas);
  void allocates(std::span<Cta* const> ctas, const char* what, Site site);
  void takes_registers(const Cta& cta, int change, int free_before);
  /// Additions whose order the sum's bits tell.
  void may_add(const Cta& cta, std::uint32_t offset);
  void adds(const Cta& cta, std::uint32_t offset, Site site);

  // --- asynchronous operations
  /// One that the current thread issues; its number.
  std::uint32_t issued();
  [[nodiscard]] bool may_advance(const Copy& copy);
  [[nodiscard]] bool may_advance(const TensorOp& op);
  /// Does any thread wait for what the copy signals?
  [[nodiscard]] bool is_awaited(const Copy& copy);
  /// It acts, until `acted`. Those of tensor memory follow each other by thread.
  void acts(const Copy& copy);
  void acts(const TensorOp& op);
  void acted(const Thread* in_line = nullptr);
  void takes_from_queue(const Copy& copy);
  /// A copy whose data another destination's copy has taken.
  void shares_data(const Copy& copy);
  void adds_to_memory(const Copy& copy);
  /// Is the copy's next step one that others can tell?
  [[nodiscard]] static bool is_told(const Copy& copy);

  // --- the scheduler
  /// In a run that chooses, until the current thread is chosen.
  void turn();
  [[nodiscard]] bool chooses() const { return io_.chooses; }
  /// Which of so many.
  std::uint32_t choose(std::size_t count);
  std::vector<Thread*>& waiting_for_turn() { return turn_; }
  /// Some thread is held back, for its turn or by a try_wait.
  [[nodiscard]] bool holds_back() const { return held_ > 0 || !turn_.empty(); }
  /// Nothing else can go on: lets go of somebody, if there is one.
  bool let_go();
  /// A thread polls otherwise than by one mbarrier: its answers are not all tried.
  void polls(const char* how) { io_.beyond = how; }
  /// The run is over; `stopped`: before its end.
  void ends(bool stopped);

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  struct Agent {
    std::uint32_t component = 0;
    std::uint64_t name = 0;
    std::uint32_t time = 0;
    Clock knows;
    const Thread* thread = nullptr;
  };
  struct Need {
    std::int64_t state = 0;
    bool observes = false;
    std::uint32_t behind = 0;  // so many observations in this state
  };
  // What is asked of an object's order.
  struct Gate {
    std::unordered_map<std::uint64_t, Need> needs;              // phased, by agent and turn
    std::unordered_map<std::int64_t, std::uint32_t> observers;  // asked for, by state
    std::unordered_map<std::int64_t, std::uint32_t> observed;   // of these
    std::vector<std::uint64_t> line;                            // not phased: agents and turns
    std::size_t next = 0;
    std::size_t left = 0;
  };
  struct Object {
    std::uint32_t component = 0;
    std::int64_t state = 0;  // flips, or writes
    Clock settled;           // what the latest flip, or write, tells
    Clock arriving;
    Clock seen;  // of observations since, or reads
    std::vector<std::uint32_t> arrivals;
    std::vector<std::uint32_t> observations;
    Gate gate;
    std::vector<Thread*> parked;
  };
  struct Asked {
    const MBarrier* barrier = nullptr;
    int parity = 0;
    std::uint32_t time = 0;
  };
  struct ThreadState {
    std::vector<Asked> asked;  // and answered "not yet" since its last event
    std::uint32_t hints = 0;
    std::uint32_t operations = 0;  // asynchronous ones issued
    std::uint32_t pending = none;  // index in the trace
  };
  struct Hinted {
    Thread* thread = nullptr;
    MBarrier* barrier = nullptr;
    std::uint64_t hint = 0;  // of its warp
  };

  [[nodiscard]] std::uint32_t number_of(const Thread& thread) const;
  Agent& agent_of(const Thread& thread);
  Agent& actor();
  std::uint32_t make_object(std::uint64_t name, bool phased, std::string text);
  std::uint32_t object_of(const MBarrier& bar);
  std::uint32_t word_object(std::uintptr_t word);
  std::uint32_t shared_word(const Cta& cta, std::uint32_t offset);
  std::uint32_t queue_of(const GridRun& grid);
  std::uint32_t tmem_of(const Cta& cta);
  std::uint32_t named_object(const Cta& cta, const NamedBarrier& bar, int id);
  [[nodiscard]] int slots_of(const GridRun& grid) const;
  /// Do launches of the grid's clusters, and ends of its CTAs, meet requests for the next one?
  [[nodiscard]] bool queues(const GridRun& grid) const;

  [[nodiscard]] std::uint32_t turn_of(const Agent& agent, std::uint32_t object) const;
  [[nodiscard]] bool allowed(const Agent& agent, std::uint32_t object) const;
  void park(std::uint32_t object);
  void wake_parked(Object& object);
  SyncEvent& note(Agent& agent, std::uint32_t object, SyncEvent::Kind kind, const char* what,
                  Site site);
  void learn(Agent& agent, SyncEvent& event, const Clock& what);
  void write(Agent& agent, std::uint32_t object, const char* what, Site site,
             std::uint32_t before = 0);
  void flip(std::uint32_t object);
  void observe(MBarrier& bar, Site site);
  void pend(Thread& thread, std::uint32_t object, SyncEvent::Kind kind, const char* what,
            Site site);
  void not_pending(Thread& thread) { threads_[number_of(thread)].pending = none; }
  bool wait_as_hint(MBarrier& bar, int parity, Site site);
  void demand(const Demand& d);

  Machine& machine_;
  Exploration& io_;
  JoinCache joins_;
  std::vector<Agent> agents_;  // threads by their numbers
  std::vector<Agent> operations_;
  std::vector<ThreadState> threads_;
  std::uint32_t next_component_ = 0;
  std::uint32_t acting_ = none;
  std::vector<Object> objects_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_name_;
  std::unordered_map<const void*, std::uint32_t> by_place_;
  std::unordered_map<std::uintptr_t, std::uint32_t> by_word_;
  std::unordered_map<std::uint64_t, std::uint32_t> turns_;  // of an agent on an object
  std::unordered_map<std::uint64_t, Gate> gates_;           // by the names of objects to come
  std::unordered_map<const void*, Clock> clocks_;           // of cluster barriers, data, registers
  std::unordered_map<const void*, Clock> completed_;        // of cluster barriers
  struct GridClocks {
    Clock holding;
    Clock ended;
    std::unordered_map<int, Clock> slots;
    Agent launcher;
  };
  std::unordered_map<int, GridClocks> grids_;
  std::vector<Thread*> turn_;
  std::vector<Hinted> hinted_;
  std::unordered_set<std::uint64_t> refused_;  // hints of warps that are answered "not yet"
  std::size_t held_ = 0;
  bool abandoned_ = false;
  bool gated_ = false;
  bool over_ = false;
};

}  // namespace warpwright::model
