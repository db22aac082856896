// Pieces of work shared by threads of the host.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace warpwright {

/// Runs pieces 0 to `count` - 1 on `threads` threads (0: as many as the machine has), this one
/// among them. `make(worker)` gives each thread what does a piece: a function of its number. What
/// one of them throws is thrown here once all have stopped.
template <class Make>
void share(std::int64_t count, int threads, const Make& make) {
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto loop = [&](int worker) {
    try {
      auto work = make(worker);
      for (std::int64_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;  // the others stop after their piece
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  const std::int64_t wanted =
      threads > 0 ? threads : std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> helpers;
    try {
      for (int i = 1; i < std::min(wanted, count); ++i) helpers.emplace_back(loop, i);
    } catch (const std::system_error&) {
      // The system refuses more threads: those that run, and this one, do the work.
    }
    loop(0);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace warpwright
