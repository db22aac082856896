// How far long work has come, for people who watch it on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>

namespace warpwright::cli {

/// One line on a terminal that says "label: 12 of 64 tiles (19%)" and goes away at the end. Off a
/// terminal it prints nothing.
class Progress {
 public:
  /// `total` of `unit`s are ahead. Shows on `err` only when that is std::cerr and a terminal.
  Progress(std::ostream& err, std::string label, std::string unit, std::int64_t total);
  /// The same with the decision made by the caller, and how often the line may change.
  Progress(std::ostream& err, std::string label, std::string unit, std::int64_t total, bool shown,
           std::chrono::milliseconds pace = std::chrono::milliseconds(100));
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` units are done. Cheap: the line changes ten times a second at most, and what is done
  /// sooner never shows one.
  void update(std::int64_t done);

 private:
  std::ostream& err_;
  std::string label_;
  std::string unit_;
  std::int64_t total_;
  bool shown_;
  std::chrono::milliseconds pace_;
  std::size_t width_ = 0;  // of what is on the line
  std::chrono::steady_clock::time_point next_;
};

}  // namespace warpwright::cli
