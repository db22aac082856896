#include "warpwright/model/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

namespace warpwright::model {
namespace {

constexpr std::size_t stacks_per_slab = 512;
constexpr std::uint64_t canary = 0x5741525057524754;  // "WARPWRGT"

// Shared by all OS threads: a test may run several machines at once.
struct Slabs {
  std::mutex mutex;
  std::vector<std::byte*> free;
};

// Frames of all threads at one distance from multiples of a power of two would share a few sets of
// the caches: stacks begin up to 4 KiB below the ends of their places, by turns.
std::size_t colour(const std::byte* low) {
  return reinterpret_cast<std::uintptr_t>(low) / StackPool::stack_bytes % 64 * 7 % 64 * 64;
}

Slabs& slabs() {
  static Slabs instance;
  return instance;
}

}  // namespace

boost::context::stack_context StackPool::allocate() {
  Slabs& pool = slabs();
  const std::lock_guard lock(pool.mutex);
  if (pool.free.empty()) {
    void* slab = mmap(nullptr, stack_bytes * stacks_per_slab, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slab == MAP_FAILED) throw std::bad_alloc();
    for (std::size_t i = stacks_per_slab; i-- > 0;) {
      pool.free.push_back(static_cast<std::byte*>(slab) + i * stack_bytes);
    }
  }
  std::byte* low = pool.free.back();
  pool.free.pop_back();
  std::memcpy(low, &canary, sizeof canary);
  boost::context::stack_context stack;
  stack.size = stack_bytes - colour(low);
  stack.sp = low + stack.size;  // stacks grow down
  notes_->made(low, stack_bytes);
  return stack;
}

void StackPool::deallocate(boost::context::stack_context& stack) {
  std::byte* low = static_cast<std::byte*>(stack.sp) - stack.size;
  std::uint64_t found = 0;
  std::memcpy(&found, low, sizeof found);
  if (found != canary) {
    std::fputs("warpwright model: a thread of the kernel overran its stack\n", stderr);
    std::abort();
  }
  const std::lock_guard lock(slabs().mutex);
  slabs().free.push_back(low);
}

void Fiber::start(std::function<void()> body) {
  cancelled_ = ended_ = false;
  StackPool pool{&notes_};
  const boost::context::stack_context stack = pool.allocate();
  notes_.runs();
  self_ = boost::context::fiber(
      std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack), pool,
      [this, body = std::move(body)](boost::context::fiber&& caller) {  // NOLINT
        notes_.enter_fiber();
        const Ended ended{notes_};
        caller_ = std::move(caller);
        try {
          if (!cancelled_) body();
        } catch (const Cancelled&) {  // it has unwound
        }
        ended_ = true;
        return std::move(caller_);
      });
  notes_.has_run();
}

}  // namespace warpwright::model
