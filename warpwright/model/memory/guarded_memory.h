// Memory that only the model may touch while a kernel runs: it is mapped twice, and the place that
// kernels know is closed then, so that an access through a raw pointer is seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace warpwright::model {

struct Allocation;

/// Whole pages with two addresses.
class GuardedMemory {
 public:
  /// Zeros. Throws std::bad_alloc.
  explicit GuardedMemory(std::size_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  /// Where programs know it, a multiple of a page.
  [[nodiscard]] std::byte* data() const { return data_; }
  /// The same bytes, which Guard leaves open.
  [[nodiscard]] std::byte* behind() const { return behind_; }

 private:
  std::size_t bytes_ = 0;
  std::byte* data_ = nullptr;
  std::byte* behind_ = nullptr;
};

/// Closes the allocations that have `memory` of their own, while it lives and is not lifted, for
/// this process. What this OS thread does to them then is noted, and the page opened.
class Guard {
 public:
  explicit Guard(const std::vector<Allocation>& allocations);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  void lift();
  void lower();
  /// The oldest noted address that was not taken yet, or 0.
  std::uintptr_t take();

 private:
  friend bool note_fault(std::uintptr_t address);
  struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
  };
  void protect(int protection) const;
  std::vector<Range> ranges_;
  static constexpr std::size_t most = 64;
  std::uintptr_t noted_[most] = {};
  std::size_t count_ = 0;
  std::size_t taken_ = 0;
  Guard* outer_ = nullptr;
};

}  // namespace warpwright::model
