// A small warp-specialised kernel on the declared pipeline, and what becomes of it when one
// statement is wrong: each such mutant must be found, and the kernel itself must be clean.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/index.h"
#include "tests/must.h"
#include "warpwright/atom/cluster.h"
#include "warpwright/atom/descriptor.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/warp.h"
#include "warpwright/isa/wgmma.h"
#include "warpwright/model/machine.h"
#include "warpwright/model/memory/tensor_map.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/pipeline/tma_pipeline.h"

namespace warpwright {
namespace {

enum class Bug {
  none,
  missing_release,
  release_before_the_wait,
  missing_wait_for_the_stage,
  wrong_consumer_parity,
  wrong_producer_parity,
  too_few_bytes,
  missing_wgmma_wait,
  missing_wgmma_fence,
  missing_init_fence,
  missing_cluster_barrier,
  missing_drain,
  half_a_slice,
  own_cta_released_only,
  last_release_skipped,
};

constexpr const char* names[] = {
    "none",          "missing_release",       "release_before_the_wait",
    "missing_wait",  "consumer_parity",       "producer_parity",
    "too_few_bytes", "missing_wgmma_wait",    "missing_wgmma_fence",
    "no_init_fence", "no_cluster_barrier",    "missing_drain",
    "half_a_slice",  "own_cta_released_only", "last_release_skipped"};

constexpr int stages = 2;
constexpr int blocks = 7;
constexpr int n = 64;
constexpr atom::OperandTile tile{64, 64, 16, atom::Major::k, atom::SmemSwizzle::b128};
constexpr int tile_size = 64 * 128;

struct Ring {
  static constexpr pipeline::TmaPipelineShape value{stages, 4, 2 * tile_size};
};
static_assert(pipeline::counts_match(Ring::value, {2, 1}));
// What a count by hand looks like: B forgotten.
struct Forgotten {
  static constexpr pipeline::TmaPipelineShape value{stages, 4, tile_size};
};

// Two CTAs of a cluster 2 x 1: each its 64 rows of A, both the same B, of which each loads half.
constexpr atom::ClusterShape cluster{2, 1};

struct Maps {
  isa::TensorMap a;
  isa::TensorMap b;
};

using Mainloop = pipeline::TmaPipeline<Ring>;

void produce(Bug bug, const Maps& maps, isa::SharedAddress base, const Mainloop& ring, int rank) {
  isa::set_role("producer");
  pipeline::PipelineState state;
  if (bug == Bug::wrong_producer_parity) state.parity = 1;
  const int half = n / 2;
  for (int block = 0; block < blocks; ++block) {
    isa::SharedAddress full = ring.acquire(state);
    const isa::SharedAddress a = base + static_cast<unsigned>(state.stage * 2 * tile_size);
    const isa::SharedAddress b = a + tile_size;
    isa::tensor_load(a, maps.a, full, isa::Coords{64 * block, 64 * rank});
    const std::uint16_t to = bug == Bug::half_a_slice ? 1 << rank : 0b11;
    isa::tensor_load_multicast(b + static_cast<unsigned>(rank * half * 128), maps.b, full, to,
                               isa::Coords{64 * block, half * rank});
    state.advance(stages);
  }
  if (bug != Bug::missing_drain) ring.producer_tail(state);
}

void consume(Bug bug, isa::SharedAddress base, const Mainloop& ring, int rank, float* out) {
  isa::set_role("consumer");
  pipeline::PipelineState state;
  if (bug == Bug::wrong_consumer_parity) state.parity = 1;
  isa::Fragment<float, n / 2> sum;
  for (int block = 0; block < blocks; ++block) {
    const bool skip = bug == Bug::missing_wait_for_the_stage && block == 3;
    ring.wait(state, skip);
    const isa::SharedAddress a = base + static_cast<unsigned>(state.stage * 2 * tile_size);
    const std::uint64_t da = atom::encode(atom::descriptor(tile, a));
    const std::uint64_t db = atom::encode(atom::descriptor(tile, a + tile_size));
    if (bug != Bug::missing_wgmma_fence) isa::wgmma_fence(sum);
    for (int step = 0; step < atom::k_block_count(tile); ++step) {
      isa::wgmma<DType::bf16, n>(sum, atom::advance(da, atom::k_block_offset(tile, step)),
                                 atom::advance(db, atom::k_block_offset(tile, step)),
                                 block > 0 || step > 0);
    }
    isa::wgmma_commit();
    const auto release = [&] {
      if (bug == Bug::missing_release && block == 2) return;
      if (bug == Bug::last_release_skipped && block == blocks - 1) return;
      if (bug == Bug::own_cta_released_only) {
        const pipeline::TmaPipeline<Ring> alone(base + 4 * tile_size, {1, 1}, 1);
        alone.release(state);
        return;
      }
      ring.release(state);
    };
    if (bug == Bug::release_before_the_wait) release();
    if (bug != Bug::missing_wgmma_wait || block + 1 == blocks) isa::wgmma_wait<0>(sum);
    if (bug != Bug::release_before_the_wait) release();
    state.advance(stages);
  }
  const isa::GlobalView<float> to{out};
  for (int v = 0; v < n / 2; ++v) {
    const int t = isa::thread_index() % 128;
    to.store((64 * rank + atom::c_row(t, v)) * n + atom::c_col(t, v), sum[v]);
  }
}

void kernel(Bug bug, const Maps& maps, float* out) {
  const isa::SharedAddress base = isa::shared_base();
  const int rank = isa::cluster_rank();
  const isa::SharedAddress barriers = base + 4 * tile_size;
  const Mainloop ring(barriers, cluster, pipeline::released_ctas(cluster, rank));
  if (isa::thread_index() == 0) {
    ring.initialise();
    if (bug != Bug::missing_init_fence) isa::fence_mbarrier_init();
  }
  if (bug == Bug::missing_cluster_barrier) {
    isa::sync_threads(160);
  } else {
    isa::cluster_arrive();
    isa::cluster_wait();
  }
  if (isa::warp_index() < 4) {
    consume(bug, base, ring, rank, out);
  } else if (isa::elect_one()) {
    if (bug == Bug::too_few_bytes) {
      const pipeline::TmaPipeline<Forgotten> wrong(barriers, cluster,
                                                   pipeline::released_ctas(cluster, rank));
      const isa::SharedAddress full = wrong.acquire({});
      isa::tensor_load(base, maps.a, full, isa::Coords{0, 64 * rank});
      isa::tensor_load_multicast(base + tile_size + static_cast<unsigned>(rank * n / 2 * 128),
                                 maps.b, full, 0b11, isa::Coords{0, n / 2 * rank});
      return;
    }
    produce(bug, maps, base, ring, rank);
  }
}

std::uint16_t code(int i) {
  return static_cast<std::uint16_t>(numeric::from_double(DType::bf16, i % 7 - 3));
}

class Mutants : public testing::Test {
 protected:
  static constexpr int k = 64 * blocks;
  Mutants() : a_(128 * k), b_(n * k), out_(128 * n) {
    for (std::size_t i = 0; i < a_.size(); ++i) a_[i] = code(static_cast<int>(i % 101));
    for (std::size_t i = 0; i < b_.size(); ++i) b_[i] = code(static_cast<int>(i % 89));
    maps_.a = map(a_, 128, 64);
    maps_.b = map(b_, n, n / 2);
  }

  static isa::TensorMap map(std::vector<std::uint16_t>& data, int rows, int box_rows) {
    model::TensorMapFields f;
    f.base = reinterpret_cast<std::uintptr_t>(data.data());
    f.rank = 2;
    f.extents = {k, static_cast<std::uint64_t>(rows)};
    f.strides = {2 * k};
    f.box = {64, static_cast<std::uint16_t>(box_rows)};
    f.element_bits = 16;
    f.swizzle = atom::SmemSwizzle::b128;
    EXPECT_EQ(model::invalid(f), std::nullopt);
    return model::encode(f);
  }

  model::Report run(Bug bug, model::Mode mode, std::uint64_t seed = 1) {
    std::fill(out_.begin(), out_.end(), -1.0F);
    model::LaunchShape shape;
    shape.ctas = 2;
    shape.cluster_size = 2;
    shape.threads = 160;
    shape.shared_bytes = 4 * tile_size + pipeline::barrier_bytes(stages);
    model::Options how;
    how.mode = mode;
    how.seed = seed;
    const auto bytes = [](const auto& v) {
      return static_cast<std::int64_t>(v.size() * sizeof(v[0]));
    };
    return model::run(shape, how,
                      {{a_.data(), bytes(a_), "A", false},
                       {b_.data(), bytes(b_), "B", false},
                       {out_.data(), bytes(out_), "out", true}},
                      [&] { kernel(bug, maps_, out_.data()); });
  }

  [[nodiscard]] int wrong() const {
    int count = 0;
    for (int i = 0; i < 128; ++i) {
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int x = 0; x < k; ++x) {
          sum += numeric::to_double(DType::bf16, a_[index(i * k + x)]) *
                 numeric::to_double(DType::bf16, b_[index(j * k + x)]);
        }
        if (static_cast<double>(out_[index(i * n + j)]) != sum) ++count;
      }
    }
    return count;
  }

  std::vector<std::uint16_t> a_;
  std::vector<std::uint16_t> b_;
  std::vector<float> out_;
  Maps maps_;
};

TEST_F(Mutants, TheKernelItselfIsCleanAndRight) {
  for (const model::Mode mode : {model::Mode::eager, model::Mode::latest}) {
    must_be_clean(run(Bug::none, mode));
    EXPECT_EQ(wrong(), 0);
  }
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const model::Report report = run(Bug::none, model::Mode::random, seed);
    EXPECT_TRUE(report.clean()) << "seed " << seed << "\n" << report.text();
    EXPECT_EQ(wrong(), 0) << "seed " << seed;
  }
}

TEST_F(Mutants, EveryMutantIsFound) {
  for (int i = 1; i <= static_cast<int>(Bug::last_release_skipped); ++i) {
    const auto bug = static_cast<Bug>(i);
    int by_chance = 0;
    std::string codes;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const model::Report report = run(bug, model::Mode::random, seed);
      if (!report.clean()) ++by_chance;
    }
    const model::Report report = run(bug, model::Mode::latest);
    for (const model::Finding& f : report.findings) codes += " " + std::string(code(f.check));
    std::printf("  %-24s latest:%s; random: %d of 6 seeds\n", names[i], codes.c_str(), by_chance);
    EXPECT_FALSE(report.clean()) << names[i] << " in mode latest";
    EXPECT_GT(by_chance, 0) << names[i] << " in mode random";
  }
}

TEST_F(Mutants, WhatTheReportSaysOfAMissingRelease) {
  const model::Report report = run(Bug::missing_release, model::Mode::latest);
  ASSERT_TRUE(report.has(model::Check::deadlock)) << report.text();
  const std::string said = report.text();
  for (const char* part : {"producer of CTA", "empty[0]", "consumer", "full[0]",
                           "pending 8 of 8 arrivals", "mutant_test.cpp"}) {
    EXPECT_NE(said.find(part), std::string::npos) << "no \"" << part << "\" in\n" << said;
  }
}

}  // namespace
}  // namespace warpwright
