#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

namespace warpwright::cli {

Progress::Progress(std::ostream& err, std::string label, std::string unit, std::int64_t total)
    : Progress(err, std::move(label), std::move(unit), total,
               &err == &std::cerr && ::isatty(STDERR_FILENO) == 1) {}

Progress::Progress(std::ostream& err, std::string label, std::string unit, std::int64_t total,
                   bool shown, std::chrono::milliseconds pace)
    : err_(err),
      label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      shown_(shown),
      pace_(pace),
      next_(std::chrono::steady_clock::now() + pace) {}

Progress::~Progress() {
  if (width_ > 0) err_ << '\r' << std::string(width_, ' ') << '\r' << std::flush;
}

void Progress::update(std::int64_t done) {
  if (!shown_ || total_ <= 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + pace_;
  done = std::min(done, total_);
  std::string text = label_ + ": " + std::to_string(done) + " of " + std::to_string(total_) + " " +
                     unit_ + " (" + std::to_string(done * 100 / total_) + "%)";
  const std::size_t width = text.size();
  if (width < width_) text.append(width_ - width, ' ');
  width_ = width;
  err_ << '\r' << text << std::flush;
}

}  // namespace warpwright::cli
