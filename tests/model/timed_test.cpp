// What Mode::timed takes, against what the numbers of a machine say.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/model/harness.h"
#include "warpwright/facts/machines.h"
#include "warpwright/isa/copy_async.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/mma.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/trace.h"

namespace warpwright::model {
namespace {

constexpr atom::Mma kBf16{
    .kind = atom::MmaKind::warp, .m = 16, .n = 8, .k = 16, .a = DType::bf16, .b = DType::bf16};

std::int64_t clocks(const Kernel& kernel, const char* device, double cold_share = 0) {
  Trace trace;
  Options how;
  how.mode = Mode::timed;
  how.sms = 1;
  how.machine = known_machine(device);
  how.cold_share = cold_share;
  how.trace = &trace;
  must_be_clean(run(kernel, how));
  return trace.end();
}

// Each warp multiplies into `Sums` sums in turn, `times` times.
template <int Sums>
Kernel multiplies(int warps, int times, int ctas = 1) {
  Kernel kernel;
  kernel.shape = {.ctas = ctas, .cluster_size = 1, .threads = 32 * warps, .shared_bytes = 1024};
  kernel.shape.ctas_per_sm = ctas;
  kernel.body = [=] {
    const isa::Mark mark("all");
    float sums[Sums][4] = {};
    const std::uint32_t a[4] = {};
    const std::uint32_t b[2] = {};
    for (int i = 0; i < times; ++i) {
      for (auto& s : sums) isa::mma_sync<kBf16>(s, a, b);
    }
  };
  return kernel;
}

TEST(Timed, MmaSyncTakesAsLongAsItsDevicesTensorCore) {
  for (const char* device : {"a100", "l40s", "rtx5090", "h200"}) {
    const MmaClocks& mma = *find_mma(*known_machine(device), kBf16);
    const double all = 8 * 8 * mma.clocks;
    EXPECT_NEAR(static_cast<double>(clocks(multiplies<8>(4, 8), device)), all, all / 10) << device;
  }
}

TEST(Timed, WarpsOfAPartitionShareItsTensorCore) {
  const std::int64_t one = clocks(multiplies<8>(1, 8), "a100");
  const std::int64_t four = clocks(multiplies<8>(4, 8), "a100");
  const std::int64_t eight = clocks(multiplies<8>(8, 8), "a100");
  EXPECT_EQ(four, one);
  EXPECT_NEAR(static_cast<double>(eight), 2.0 * static_cast<double>(four), 30);
  // As do CTAs of one SM.
  const std::int64_t two_ctas = clocks(multiplies<8>(4, 8, 2), "a100");
  EXPECT_NEAR(static_cast<double>(two_ctas), static_cast<double>(eight), 30);
}

TEST(Timed, AnMmaWaitsForItsSums) {
  const MmaClocks& mma = *find_mma(*known_machine("a100"), kBf16);
  EXPECT_NEAR(static_cast<double>(clocks(multiplies<1>(1, 20), "a100")), 20 * mma.latency,
              mma.latency);
}

// Copies of 64 KB by 128 threads.
TEST(Timed, CopiesByThreadsHaveLatencyAndBandwidth) {
  constexpr int kBytes = 65536;
  Memory<std::uint8_t> source(kBytes);
  Kernel kernel;
  kernel.shape = {.ctas = 1, .cluster_size = 1, .threads = 128, .shared_bytes = kBytes + 1024};
  kernel.memory = {source.allocation("source", false)};
  const std::uint8_t* const from = source.data();
  kernel.body = [=] {
    const isa::Mark mark("all");
    const int thread = isa::thread_index();
    for (int at = thread * 16; at < kBytes; at += 128 * 16) {
      isa::copy_async<16>(isa::shared_base() + static_cast<std::uint32_t>(at), from + at);
    }
    isa::copy_async_commit();
    isa::copy_async_wait<0>();
  };
  for (const char* device : {"a100", "h200"}) {
    const MachineNumbers& m = *known_machine(device);
    const double rate =
        std::min(m.cp_async_bytes_per_clock, m.l2_bytes_per_second / m.sms / m.clock_hz);
    const double least = kBytes / rate + m.cp_async_clocks;
    const auto took = static_cast<double>(clocks(kernel, device));
    EXPECT_NEAR(took, least, least * 0.05) << device;  // the first warp is done before the last
    // From memory they take its share.
    const double cold = 0.95 * kBytes / (m.hbm_bytes_per_second / m.sms / m.clock_hz);
    EXPECT_GE(static_cast<double>(clocks(kernel, device, 1)), cold) << device;
  }
}

}  // namespace
}  // namespace warpwright::model
