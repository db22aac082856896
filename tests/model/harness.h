// Kernels of a few lines on the model, in every mode: what is found and what is clean.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/chosen.h"
#include "tests/index.h"
#include "tests/model/steps.h"
#include "tests/must.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/model/machine.h"
#include "warpwright/model/memory/tensor_map.h"
#include "warpwright/model/report/report.h"

namespace warpwright::model {

using tests::chosen;
using tests::expect_load;
using tests::load_and_wait;
using tests::make_barrier;
using tests::store_until_read;
using tests::store_until_written;

constexpr LaunchShape one_thread{.threads = 1, .shared_bytes = 4096};

inline void cluster_sync() {
  isa::cluster_arrive();
  isa::cluster_wait();
}

/// A launch: what `run` takes, without the schedule.
struct Kernel {
  LaunchShape shape;
  std::function<void()> body;
  std::vector<Allocation> memory = {};
  bool dependent = false;  ///< GridLaunch::dependent
  std::function<std::optional<Finding>()> ended = {};
  std::function<void()> begin = [] {};  ///< makes memory what a run starts with
};

/// A word that must be 0 when a grid has ended, for Kernel::ended.
inline std::function<std::optional<Finding>()> stays_zero(const std::uint32_t& word) {
  return [&word]() -> std::optional<Finding> {
    if (word == 0) return std::nullopt;
    return Finding{Check::left_behind, "a word is not 0", {}};
  };
}

inline std::string text(const Options& how) {
  if (how.mode == Mode::eager) return "eager";
  if (how.mode == Mode::latest) return "latest";
  return "random, seed " + std::to_string(how.seed);
}

inline Options in_mode(Mode mode, std::uint64_t seed = 1) {
  Options how;
  how.mode = mode;
  how.seed = seed;
  return how;
}

inline Options random_schedule(std::uint64_t seed) {
  return in_mode(Mode::random, seed);
}

/// Eager, latest, and random with these seeds.
inline std::vector<Options> schedules() {
  std::vector<Options> all = {in_mode(Mode::eager), in_mode(Mode::latest)};
  for (const std::uint64_t seed : {1, 2, 3, 5, 8, 13, 21, 34}) {
    all.push_back(random_schedule(seed));
  }
  return all;
}

inline Report run(const Kernel& kernel, const Options& how) {
  kernel.begin();
  return run({GridLaunch{.shape = kernel.shape,
                         .allocations = kernel.memory,
                         .body = kernel.body,
                         .dependent = kernel.dependent,
                         .ended = kernel.ended}},
             how);
}

/// Every schedule runs `kernel` without a finding.
inline void expect_clean(const Kernel& kernel) {
  for (const Options& how : schedules()) {
    SCOPED_TRACE(text(how));
    must_be_clean(run(kernel, how));
  }
}

/// In which schedules a mistake must show. One of timing cannot show where everything completes at
/// once; it must where everything is as late as it can be, and for some random seed.
enum class Shows { always, unless_eager };

/// `kernel` is found guilty of `expected`, and of nothing but what `also` lists.
inline void expect_found(const Kernel& kernel, Check expected, Shows shows = Shows::always,
                         std::vector<Check> also = {}) {
  also.push_back(expected);
  int by_chance = 0;
  for (const Options& how : schedules()) {
    SCOPED_TRACE(text(how));
    const Report report = run(kernel, how);
    for (const Finding& f : report.findings) {
      EXPECT_TRUE(std::find(also.begin(), also.end(), f.check) != also.end()) << report.text();
    }
    if (shows == Shows::always || how.mode == Mode::latest) {
      EXPECT_TRUE(report.has(expected)) << "not found: " << code(expected) << "\n" << report.text();
    }
    if (how.mode == Mode::random && report.has(expected)) ++by_chance;
  }
  EXPECT_GT(by_chance, 0) << "no random schedule found " << code(expected);
}

/// The sentence of the first finding of `check` in mode latest.
inline std::string sentence(const Kernel& kernel, Check check) {
  const Report report = run(kernel, Options{});
  for (const Finding& f : report.findings) {
    if (f.check == check) return f.sentence;
  }
  ADD_FAILURE() << "not found: " << code(check) << "\n" << report.text();
  return {};
}

/// A two-dimensional tensor of `rows` x `columns` elements and the box that is copied.
struct Matrix {
  void* data = nullptr;
  int rows = 0;
  int columns = 0;
  int element_bytes = 2;
  int box_rows = 0;
  int box_columns = 0;
  atom::SmemSwizzle swizzle = atom::SmemSwizzle::none;
  int kind = 3;   ///< of TensorMapFields::element_kind
  int pitch = 0;  ///< elements; 0 is packed
};

inline TensorMapFields fields(const Matrix& m) {
  TensorMapFields f;
  f.base = reinterpret_cast<std::uintptr_t>(m.data);
  f.rank = 2;
  f.extents = {static_cast<std::uint64_t>(m.columns), static_cast<std::uint64_t>(m.rows)};
  const int pitch = m.pitch == 0 ? m.columns : m.pitch;
  f.strides = {static_cast<std::uint64_t>(pitch) * static_cast<std::uint64_t>(m.element_bytes)};
  f.box = {static_cast<std::uint16_t>(m.box_columns), static_cast<std::uint16_t>(m.box_rows)};
  f.element_bits = static_cast<std::uint8_t>(8 * m.element_bytes);
  f.swizzle = m.swizzle;
  f.element_kind = static_cast<std::uint8_t>(m.kind);
  return f;
}

inline TensorMap map_of(const Matrix& m) {
  return encode(fields(m));
}

/// Global memory that starts at a multiple of 64 bytes.
template <class T>
class Memory {
 public:
  explicit Memory(std::size_t count) : bytes_(count * sizeof(T) + 64), count_(count) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  T* data() {
    auto at = reinterpret_cast<std::uintptr_t>(bytes_.data());
    at = (at + 63) / 64 * 64;
    return reinterpret_cast<T*>(at);
  }
  T& operator[](std::size_t i) { return data()[i]; }
  [[nodiscard]] std::size_t size() const { return count_; }
  Allocation allocation(const char* name, bool writable = true) {
    return {data(), static_cast<std::int64_t>(count_ * sizeof(T)), name, writable};
  }

 private:
  std::vector<unsigned char> bytes_;
  std::size_t count_;
};

}  // namespace warpwright::model
