// One fiber a CUDA thread, on pooled stacks.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>
#include <utility>

namespace warpwright::model {

/// Stacks of one size, cut from large slabs and reused. There is no guard page per stack: a kernel
/// of thousands of threads would run into the process's limit of mappings. A canary at the far end
/// of each stack is checked when the stack comes back.
class StackPool {
 public:
  static constexpr std::size_t stack_bytes = std::size_t{64} << 10;

  /// Boost.Context's StackAllocator concept.
  boost::context::stack_context allocate();
  void deallocate(boost::context::stack_context& stack);
};

/// A suspended computation. `resume` runs it until it calls `suspend` or ends.
class Fiber {
 public:
  Fiber() = default;

  /// Prepares `body` to run on its own stack at the first `resume`.
  void start(std::function<void()> body);
  /// Runs the body until it suspends or ends. Rethrows nothing: the body handles its exceptions.
  void resume() { self_ = std::move(self_).resume(); }
  /// Called inside the body: back to whoever resumed it.
  void suspend() { caller_ = std::move(caller_).resume(); }
  [[nodiscard]] bool ended() const { return ended_; }
  /// Unwinds the body's stack where it stands (destructors run).
  void cancel() { self_ = boost::context::fiber{}; }

 private:
  boost::context::fiber self_;
  boost::context::fiber caller_;
  bool ended_ = false;
};

}  // namespace warpwright::model
