// One fiber a CUDA thread, on pooled stacks.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>
#include <utility>

#include "warpwright/model/fiber_notes.h"

namespace warpwright::model {

/// Stacks of one size, cut from large slabs and reused. There is no guard page per stack: a kernel
/// of thousands of threads would run into the process's limit of mappings. A canary at the far end
/// of each stack is checked when the stack comes back.
class StackPool {
 public:
  static constexpr std::size_t stack_bytes = std::size_t{watched_stacks ? 256 : 64} << 10;

  explicit StackPool(FiberNotes* notes) : notes_(notes) {}

  /// Boost.Context's StackAllocator concept.
  boost::context::stack_context allocate();
  void deallocate(boost::context::stack_context& stack);

 private:
  FiberNotes* notes_;  // of the fiber that the stack is for
};

/// A suspended computation. `resume` runs it until it calls `suspend` or ends.
class Fiber {
 public:
  Fiber() = default;

  /// Prepares `body` to run on its own stack at the first `resume`.
  void start(std::function<void()> body);
  /// Runs the body until it suspends or ends. Rethrows nothing: the body handles its exceptions.
  void resume() {
    notes_.leave_caller();
    self_ = std::move(self_).resume();
    notes_.back_in_caller();
  }
  /// Called inside the body: back to whoever resumed it.
  void suspend() {
    notes_.leave_fiber(false);
    const Entered entered{notes_};  // also when `cancel` comes as an exception
    caller_ = std::move(caller_).resume();
  }
  [[nodiscard]] bool ended() const { return ended_; }
  /// Unwinds the body's stack where it stands (destructors run).
  void cancel() {
    // One that was never resumed has nothing to unwind.
    const bool unwinds = entered_ && self_;
    if (unwinds) notes_.leave_caller();
    self_ = boost::context::fiber{};
    if (unwinds) notes_.back_in_caller();
  }

 private:
  // Notes that the fiber runs again, or for the last time.
  struct Entered {
    FiberNotes& notes;
    ~Entered() { notes.enter_fiber(); }
  };
  struct Ended {
    FiberNotes& notes;
    ~Ended() { notes.leave_fiber(true); }
  };

  FiberNotes notes_;
  boost::context::fiber self_;
  boost::context::fiber caller_;
  bool entered_ = false;
  bool ended_ = false;
};

}  // namespace warpwright::model
