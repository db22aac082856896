// Random numbers of tests, the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace warpwright::tests {

/// The seed of this run: WARPWRIGHT_SEED, which script/test makes of the commit. Elsewhere it is
/// drawn once, and printed.
inline unsigned run_seed() {
  static const unsigned seed = [] {
    const char* given = std::getenv("WARPWRIGHT_SEED");
    if (given != nullptr) return static_cast<unsigned>(std::strtoul(given, nullptr, 10));
    const unsigned drawn = std::random_device{}();
    std::printf("WARPWRIGHT_SEED=%u draws these cases again\n", drawn);
    return drawn;
  }();
  return seed;
}

class Draws {
 public:
  /// Neighbouring seeds draw nothing alike.
  explicit Draws(std::uint64_t seed) : random_(mixed(seed)) {}

  /// From `low` to `high`, both included.
  int operator()(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }
  /// One time in `count`.
  bool rarely(int count) { return (*this)(1, count) == 1; }
  template <class T, std::size_t count>
  const T& of(const T (&all)[count]) {
    return all[static_cast<std::size_t>((*this)(0, static_cast<int>(count) - 1))];
  }
  template <class T>
  const T& of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>((*this)(0, static_cast<int>(all.size()) - 1))];
  }
  unsigned seed() { return random_(); }

 private:
  static unsigned mixed(std::uint64_t seed) {
    seed = (seed ^ seed >> 31) * 0x9e3779b97f4a7c15U;
    return static_cast<unsigned>(seed >> 32);
  }

  std::mt19937 random_;
};

}  // namespace warpwright::tests
