// What the sanitizers are told of fibers, which change stacks behind their backs. Nothing in builds
// without them.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#define WW_HAS_FEATURE(name) __has_feature(name)
#else
#define WW_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || WW_HAS_FEATURE(address_sanitizer)
#define WW_ADDRESS_SANITIZER 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define WW_ADDRESS_SANITIZER 0
#endif
#if defined(__SANITIZE_THREAD__) || WW_HAS_FEATURE(thread_sanitizer)
#define WW_THREAD_SANITIZER 1
#include <sanitizer/tsan_interface.h>
#else
#define WW_THREAD_SANITIZER 0
#endif
#undef WW_HAS_FEATURE
#define WW_IN_ITS_CALLER __attribute__((always_inline)) inline

namespace warpwright::model {

/// Frames are larger where they are watched.
inline constexpr bool watched_stacks = WW_ADDRESS_SANITIZER != 0 || WW_THREAD_SANITIZER != 0;

/// Told of every switch of one fiber: by whoever resumes it, and by the fiber itself.
class FiberNotes {
 public:
  FiberNotes() = default;
  FiberNotes(const FiberNotes&) = delete;
  FiberNotes& operator=(const FiberNotes&) = delete;
  ~FiberNotes() { forget(); }

  /// Its stack, which nobody uses now.
  void made([[maybe_unused]] void* low, [[maybe_unused]] std::size_t bytes) {
#if WW_ADDRESS_SANITIZER
    low_ = low;
    bytes_ = bytes;
    __asan_unpoison_memory_region(low, bytes);
#endif
#if WW_THREAD_SANITIZER
    forget();
    fiber_ = __tsan_create_fiber(0);
#endif
  }

  // Beside a switch from the caller to the fiber.
  WW_IN_ITS_CALLER void leave_caller() {
#if WW_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(&callers_frames_, low_, bytes_);
#endif
    runs();
  }
  WW_IN_ITS_CALLER void back_in_caller() {
#if WW_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(callers_frames_, nullptr, nullptr);
#endif
    has_run();
  }

  // Beside these, and beside its making, when it runs for a moment to say that it is there.
  // ThreadSanitizer counts calls and returns, and a fiber that ends returns from all of its calls:
  // so it is the caller that says who runs, in calls of its own (these functions are inlined, and
  // have no call and no return).
  WW_IN_ITS_CALLER void runs() {
#if WW_THREAD_SANITIZER
    caller_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber_, 0);
#endif
  }
  WW_IN_ITS_CALLER void has_run() {
#if WW_THREAD_SANITIZER
    __tsan_switch_to_fiber(caller_, 0);
#endif
  }

  // In the fiber: at its first switch and every later one.
  void enter_fiber() {
#if WW_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(frames_, &callers_low_, &callers_bytes_);
#endif
  }
  /// `ends`: for ever.
  void leave_fiber([[maybe_unused]] bool ends) {
#if WW_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(ends ? nullptr : &frames_, callers_low_, callers_bytes_);
    if (ends) frames_ = nullptr;
#endif
  }

 private:
  void forget() {
#if WW_THREAD_SANITIZER
    if (fiber_ != nullptr) __tsan_destroy_fiber(fiber_);
    fiber_ = nullptr;
#endif
  }

#if WW_ADDRESS_SANITIZER
  void* low_ = nullptr;
  std::size_t bytes_ = 0;
  void* frames_ = nullptr;  // of the fiber, which the sanitizer keeps apart
  void* callers_frames_ = nullptr;
  const void* callers_low_ = nullptr;
  std::size_t callers_bytes_ = 0;
#endif
#if WW_THREAD_SANITIZER
  void* fiber_ = nullptr;
  void* caller_ = nullptr;
#endif
};

}  // namespace warpwright::model

#undef WW_IN_ITS_CALLER
