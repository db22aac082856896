// How far long work has come, for people who watch it on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>

namespace warpwright::cli {

/// Who watches, and by which clock.
struct Watch {
  using Time = std::chrono::steady_clock::time_point;
  bool shown = false;   ///< is there a terminal?
  bool ticking = true;  ///< the line also changes while no work ends, from a thread of its own
  std::function<Time()> now = std::chrono::steady_clock::now;
};

/// Shown when `err` is std::cerr and that a terminal: never into a pipe or a file.
Watch watch_of(const std::ostream& err);

/// "45 s", "3 min", "2.5 hours", "12 days": a time for a reader, of two digits or so.
std::string duration_text(double seconds);

/// One line on a terminal that says "gemm: 12 of 64 tiles (19%), about 35 s left". It comes after
/// 2 seconds, so that short work shows none, changes ten times a second at most and is wiped at the
/// end. Off a terminal nothing is printed.
class Progress {
 public:
  /// `total` of `unit`s are ahead; without a unit the line has only a percentage, with a total of
  /// 0 the time that went by.
  Progress(std::ostream& err, std::string label, std::string unit, std::int64_t total);
  Progress(std::ostream& err, std::string label, std::string unit, std::int64_t total, Watch watch);
  /// Work that tells its share (see `share`).
  Progress(std::ostream& err, std::string label);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` units are done. Cheap.
  void update(std::int64_t done);
  /// A share from 0 to 1 is done.
  void share(double done);
  /// Puts `text` on `out`, which may be the same terminal, with no line of progress in its way.
  void print(std::ostream& out, const std::string& text);

 private:
  void tell(double share, std::int64_t done);
  void draw();  // with the lock held
  void wipe();
  [[nodiscard]] std::string line(Watch::Time now) const;

  std::ostream& err_;
  std::string label_;
  std::string unit_;
  std::int64_t total_;
  Watch watch_;
  std::mutex mutex_;
  Watch::Time start_;
  Watch::Time told_;  // when `share_` last grew
  Watch::Time next_;  // of the line
  double share_ = 0;
  std::int64_t done_ = 0;
  std::size_t width_ = 0;  // of what is on the line
  std::jthread ticker_;
};

}  // namespace warpwright::cli
