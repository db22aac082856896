// One fiber a CUDA thread, on pooled stacks.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <exception>
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
    if (cancelled_ && std::uncaught_exceptions() > 0) return;  // a destructor, on the way out
    notes_.leave_fiber(false);
    caller_ = std::move(caller_).resume();
    notes_.enter_fiber();
    if (cancelled_) throw Cancelled();
  }
  [[nodiscard]] bool ended() const { return ended_; }
  /// Unwinds the body's stack where it stands (destructors run).
  void cancel() {
    // By an exception of its own: of one that Boost throws the sanitizers would know nothing.
    cancelled_ = true;
    if (self_) resume();
    self_ = boost::context::fiber{};
  }

 private:
  struct Cancelled {};
  // Notes that the fiber runs no more.
  struct Ended {
    FiberNotes& notes;
    ~Ended() { notes.leave_fiber(true); }
  };

  FiberNotes notes_;
  boost::context::fiber self_;
  boost::context::fiber caller_;
  bool cancelled_ = false;
  bool ended_ = false;
};

}  // namespace warpwright::model
