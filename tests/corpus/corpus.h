// What the kernels of the corpus share. Each entry is a bug that was shipped or reported in public,
// rebuilt in a few lines of our own: broken, where the named check must fire and no other may, and
// mended, where nothing may be found in any schedule.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "tests/chosen.h"
#include "tests/model/steps.h"
#include "warpwright/atom/descriptor.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/warp.h"
#include "warpwright/isa/wgmma.h"
#include "warpwright/model/testing.h"

namespace warpwright::corpus {

using isa::Scope;
using isa::SharedAddress;
using model::Check;
using model::testing::Access;
using model::testing::Buffer;
using model::testing::Launch;
using model::testing::run;
using tests::chosen;
using tests::expect_load;
using tests::load_and_wait;
using tests::make_barrier;
using tests::store_until_written;

inline const Launch one_thread{.threads = 1, .shared_bytes = 8192};
inline const Launch two_warps{.threads = 64, .shared_bytes = 8192};

/// What a kernel is found guilty of, and where that is asked. For the length of a call.
struct Guilty {
  std::initializer_list<Check> checks;
  bool alone;   ///< and of no others
  bool always;  ///< and of one of them in every schedule; each is found in some
  isa::Site asked;
};
struct Only : Guilty {
  Only(std::initializer_list<Check> all, isa::Site site = isa::Site::here())
      : Guilty{all, true, true, site} {}
};
struct Always : Guilty {
  Always(std::initializer_list<Check> all, isa::Site site = isa::Site::here())
      : Guilty{all, false, true, site} {}
};
/// Where all completes at once there is nothing to be found.
struct OnlyLate : Guilty {
  OnlyLate(std::initializer_list<Check> all, isa::Site site = isa::Site::here())
      : Guilty{all, true, false, site} {}
};
struct Among : Guilty {
  Among(std::initializer_list<Check> all, isa::Site site = isa::Site::here())
      : Guilty{all, false, false, site} {}
};

inline void expect_guilty(const model::testing::Outcome& outcome, const Guilty& guilty) {
  const ::testing::ScopedTrace trace(guilty.asked.file, guilty.asked.line, "the kernel");
  EXPECT_TRUE(model::testing::detail::finds(outcome, guilty.checks, guilty.alone));
  for (const auto& one : outcome.runs) {
    const bool found = std::any_of(guilty.checks.begin(), guilty.checks.end(),
                                   [&](Check c) { return one.report.has(c); });
    EXPECT_TRUE(found || !guilty.always) << one.schedule;
  }
}

/// All of these words are in what was found.
inline void expect_says(const model::testing::Outcome& outcome,
                        std::initializer_list<const char*> words) {
  for (const char* word : words) {
    EXPECT_NE(outcome.text().find(word), std::string::npos) << word << "\n" << outcome.text();
  }
}

/// The kernel is guilty while it is broken, `kernel(false)`, and clean when it is mended. Returns
/// what the broken one did.
template <class Kernel, class... Buffers>
model::testing::Outcome expect_mended(const Kernel& kernel, const Guilty& guilty,
                                      const Launch& launch, Buffers&... buffers) {
  auto broken = run(chosen(kernel, false), launch, buffers...);
  expect_guilty(broken, guilty);
  EXPECT_CLEAN(run(chosen(kernel, true), launch, buffers...));
  return broken;
}

/// Bytes of the box that the small kernels copy: 8 rows of 64 16-bit elements.
inline constexpr int box_bytes = 1024;

/// A tensor of `boxes` such boxes, one below the other, and its map.
struct Tensor {
  Buffer<std::uint16_t> memory;
  isa::TensorMap map;

  Tensor(const char* name, int boxes, Access access)
      : memory(name, static_cast<std::size_t>(boxes) * box_bytes / 2, access),
        map(model::testing::tensor_map(
            memory, {.rows = boxes * 8, .columns = 64, .box_rows = 8, .box_columns = 64})) {
    for (std::uint16_t& element : memory) element = 1;
  }
};

/// Where the data of the small kernels begins; barriers lie before it.
inline SharedAddress data(int box = 0) {
  return isa::shared_base() + 1024 + static_cast<SharedAddress>(box) * box_bytes;
}
inline SharedAddress barrier(int i = 0) {
  return isa::shared_base() + static_cast<SharedAddress>(i) * 8;
}

/// Starts the load of box `box` of a tensor.
inline void load(SharedAddress to, const Tensor& from, SharedAddress signal, int box = 0,
                 isa::Site site = isa::Site::here()) {
  isa::tensor_load(to, from.map, signal, isa::Coords{0, box * 8}, site);
}

/// The same, and arrives where it signals, and expects it.
inline void load_expected(SharedAddress to, const Tensor& from, SharedAddress signal, int box = 0,
                          isa::Site site = isa::Site::here()) {
  isa::mbarrier_arrive_expect(signal, box_bytes, site);
  load(to, from, signal, box, site);
}

/// Starts the store of box `box` as a group of its own.
inline void store(const Tensor& to, SharedAddress from, int box = 0,
                  isa::Site site = isa::Site::here()) {
  isa::tensor_store(to.map, from, isa::Coords{0, box * 8}, site);
  isa::bulk_commit(site);
}

/// `threads` threads, this one `index` of them, write a box.
inline void fill(SharedAddress at, int index = 0, int threads = 1,
                 isa::Site site = isa::Site::here()) {
  for (int i = index; i < box_bytes / 16; i += threads) {
    isa::SharedView<isa::Words<4>>{at}.store(i, {{1, 2, 3, 4}}, site);
  }
}

/// The same threads read it.
inline void read(SharedAddress at, int index = 0, int threads = 1,
                 isa::Site site = isa::Site::here()) {
  for (int i = index; i < box_bytes / 16; i += threads) {
    (void)isa::SharedView<isa::Words<4>>{at}.load(i, site);
  }
}

inline void cluster_sync(isa::Site site = isa::Site::here()) {
  isa::cluster_arrive(site);
  isa::cluster_wait(site);
}

/// Operands of one wgmma of 64 x 64 x 16 bf16, two boxes each: A at `a`, B at `b`.
inline constexpr atom::OperandTile operand{64, 16, 16, atom::Major::k, atom::SmemSwizzle::none};
using Accumulator = isa::Fragment<float, 32>;

inline void multiply(Accumulator& sum, SharedAddress a, SharedAddress b, bool accumulate = false,
                     isa::Site site = isa::Site::here()) {
  isa::wgmma<DType::bf16, 64>(sum, atom::encode(atom::descriptor(operand, a)),
                              atom::encode(atom::descriptor(operand, b)), accumulate, site);
}

}  // namespace warpwright::corpus
