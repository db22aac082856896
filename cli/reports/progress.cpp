#include "cli/reports/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <iostream>
#include <stop_token>
#include <system_error>
#include <utility>

#include "warpwright/facts/format.h"

namespace warpwright::cli {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::chrono::seconds kQuiet(2);        // what takes less shows no line
constexpr std::chrono::milliseconds kPace(100);  // between two changes of it
constexpr std::int64_t kShares = 1000;

}  // namespace

Watch watch_of(const std::ostream& err) {
  Watch watch;
  watch.shown = &err == &std::cerr && ::isatty(STDERR_FILENO) == 1;
  return watch;
}

std::string duration_text(double seconds) {
  constexpr double minute = 60;
  constexpr double hour = 60 * minute;
  constexpr double day = 24 * hour;
  const auto text = [seconds](double unit, const char* name) {
    const double count = seconds / unit;
    return format(count < 9.95 ? "%.1f %s" : "%.0f %s", count, name);
  };
  if (seconds < 1.5 * minute) {
    return std::to_string(std::max<std::int64_t>(1, std::llround(seconds))) + " s";
  }
  if (seconds < 1.5 * hour) return std::to_string(std::llround(seconds / minute)) + " min";
  if (seconds < 2 * day) return text(hour, "hours");
  if (seconds < 1000 * day) return text(day, "days");
  return text(365.25 * day, "years");
}

Progress::Progress(std::ostream& err, std::string label, std::string unit, std::int64_t total)
    : Progress(err, std::move(label), std::move(unit), total, watch_of(err)) {}

Progress::Progress(std::ostream& err, std::string label)
    : Progress(err, std::move(label), "", kShares) {}

Progress::Progress(std::ostream& err, std::string label, std::string unit, std::int64_t total,
                   Watch watch)
    : err_(err),
      label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      watch_(std::move(watch)),
      start_(watch_.now()),
      told_(start_),
      next_(start_ + kQuiet) {
  if (!watch_.shown || !watch_.ticking) return;
  try {
    ticker_ = std::jthread([this](const std::stop_token& stop) {
      std::condition_variable_any never;
      std::unique_lock lock(mutex_);
      while (!stop.stop_requested()) {
        never.wait_for(lock, stop, 5 * kPace, [] { return false; });
        if (!stop.stop_requested()) draw();
      }
    });
  } catch (const std::system_error&) {
    // Without a thread the line changes when work ends.
  }
}

Progress::~Progress() {
  if (ticker_.joinable()) {
    ticker_.request_stop();
    ticker_.join();
  }
  wipe();
}

void Progress::update(std::int64_t done) {
  if (!watch_.shown || total_ <= 0) return;
  done = std::min(done, total_);
  tell(static_cast<double>(done) / static_cast<double>(total_), done);
}

void Progress::share(double done) {
  if (!watch_.shown) return;
  done = std::clamp(done, 0.0, 1.0);
  tell(done, static_cast<std::int64_t>(done * static_cast<double>(total_)));
}

void Progress::print(std::ostream& out, const std::string& text) {
  const std::lock_guard lock(mutex_);
  wipe();
  out << text << std::flush;
}

void Progress::tell(double share, std::int64_t done) {
  const std::lock_guard lock(mutex_);
  if (share > share_) told_ = watch_.now();
  share_ = share;
  done_ = done;
  draw();
}

std::string Progress::line(Watch::Time now) const {
  const double spent = Seconds(now - start_).count();
  if (total_ <= 0) return label_ + ": " + duration_text(spent) + " so far";
  const std::string percent = std::to_string(static_cast<int>(share_ * 100)) + "%";
  std::string text = label_ + ": ";
  text += unit_.empty() ? percent
                        : std::to_string(done_) + " of " + std::to_string(total_) + " " + unit_ +
                              " (" + percent + ")";
  if (share_ <= 0) return text + ", " + duration_text(spent) + " so far";
  if (share_ >= 1) return text;
  // What is left at the pace up to here, less what went by since work last ended.
  const double left = Seconds(told_ - start_).count() * (1 - share_) / share_;
  return text + ", about " + duration_text(std::max(0.0, left - Seconds(now - told_).count())) +
         " left";
}

void Progress::draw() {
  const Watch::Time now = watch_.now();
  if (now < next_) return;
  next_ = now + kPace;
  std::string text = line(now);
  const std::size_t width = text.size();
  if (width < width_) text.append(width_ - width, ' ');
  width_ = width;
  err_ << '\r' << text << std::flush;
}

void Progress::wipe() {
  if (width_ > 0) err_ << '\r' << std::string(width_, ' ') << '\r' << std::flush;
  width_ = 0;
}

}  // namespace warpwright::cli
