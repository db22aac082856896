// cp.async on the model: what it writes, when, and what it refuses. The bugs are in the corpus.
#include "warpwright/isa/copy_async.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/chosen.h"
#include "tests/model/steps.h"
#include "tests/must.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/model/mutation.h"
#include "warpwright/model/testing.h"

namespace warpwright::model {
namespace {

using testing::Access;
using testing::Buffer;
using tests::chosen;
using tests::store_until_read;

const testing::Launch alone{.threads = 1, .shared_bytes = 4096};

isa::SharedView<std::uint8_t> bytes_at(int offset) {
  return {isa::shared_base() + static_cast<isa::SharedAddress>(offset)};
}

// Every size, with every number of bytes read: the others become 0, and nothing beside them moves.
TEST(CopyAsync, SizesAndZeroFill) {
  Buffer<std::uint8_t> in("in", 64, Access::input);
  for (int i = 0; i < 64; ++i) in[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i + 1);
  const auto kernel = [&]<int Bytes>() {
    for (int read = 0; read <= Bytes; ++read) {
      EXPECT_CLEAN(testing::run(
          [&] {
            for (int i = 0; i < 64; ++i) bytes_at(0).store(i, 0xee);
            isa::copy_async<Bytes>(isa::shared_base() + 16, in.data() + 32, read);
            isa::copy_async_commit();
            isa::copy_async_wait<0>();
            for (int i = 0; i < 64; ++i) {
              const int at = i - 16;
              const bool inside = at >= 0 && at < Bytes;
              const int expected = !inside ? 0xee : at < read ? 33 + at : 0;
              if (bytes_at(0).load(i) != expected) throw std::runtime_error("a wrong byte");
            }
          },
          alone, in));
    }
  };
  kernel.operator()<4>();
  kernel.operator()<8>();
  kernel.operator()<16>();
}

// A copy of no bytes may name any address: only zeros are written.
TEST(CopyAsync, ReadsNothingWhereNothingIsAsked) {
  Buffer<std::uint8_t> in("in", 64, Access::input);
  EXPECT_CLEAN(testing::run(
      [&] {
        isa::copy_async<16>(isa::shared_base(), in.data() + 4096, 0);
        isa::copy_async_commit();
        isa::copy_async_wait<0>();
        if (bytes_at(0).load(15) != 0) throw std::runtime_error("a wrong byte");
      },
      alone, in));
}

// The counts of a group: those that are left may be on their way, the older ones are there.
TEST(CopyAsync, WaitsCountGroups) {
  Buffer<isa::Words<4>> in("in", 8, Access::input);
  for (std::uint32_t i = 0; i < 8; ++i) in[i] = {{i, i, i, i}};
  const auto shared = [](int i) {
    return isa::SharedView<isa::Words<4>>{isa::shared_base()}.load(i).word[0];
  };
  std::set<bool> early;  // had the newest group landed before its wait?
  for (const Mode mode : {Mode::eager, Mode::latest, Mode::random, Mode::starve, Mode::timed}) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      Options how;
      how.mode = mode;
      how.seed = seed;
      const Report report = run({.threads = 1, .shared_bytes = 4096}, how, {in.allocation()}, [&] {
        for (int i = 0; i < 4; ++i) {
          isa::copy_async<16>(isa::shared_base() + static_cast<isa::SharedAddress>(16 * i),
                              in.data() + i);
          if (i % 2 == 1) isa::copy_async_commit();  // groups of two
        }
        isa::copy_async_commit();  // and an empty one
        isa::copy_async_wait<2>();
        if (shared(0) != 0 || shared(1) != 1) throw std::runtime_error("the first is not there");
        isa::copy_async_wait<1>();
        if (shared(2) != 2 || shared(3) != 3) throw std::runtime_error("the second is not there");
        isa::copy_async_wait<0>();
      });
      EXPECT_TRUE(report.clean()) << report.text();
      Options unchecked = how;
      unchecked.check_order = false;
      bool landed = false;
      (void)run({.threads = 1, .shared_bytes = 4096}, unchecked, {in.allocation()}, [&] {
        isa::copy_async<16>(isa::shared_base(), in.data() + 5);
        isa::copy_async_commit();
        landed = shared(0) == 5;
        isa::copy_async_wait<0>();
      });
      early.insert(landed);
      EXPECT_TRUE(mode != Mode::eager || landed);
      EXPECT_FALSE(mode == Mode::latest && landed);
    }
  }
  EXPECT_EQ(early.size(), 2U);
}

TEST(CopyAsync, Refusals) {
  Buffer<std::uint8_t> in("in", 64, Access::input);
  const auto found = [&](auto kernel) { return testing::run(kernel, alone, in); };
  EXPECT_FINDING(found([&] { isa::copy_async<16>(isa::shared_base() + 8, in.data()); }),
                 Check::misaligned);
  EXPECT_FINDING(found([&] { isa::copy_async<8>(isa::shared_base(), in.data() + 4); }),
                 Check::misaligned);
  EXPECT_FINDING(found([&] { isa::copy_async<16>(isa::shared_base(), in.data() + 64); }),
                 Check::global_bounds);
  EXPECT_FINDING(found([&] { isa::copy_async<16>(isa::shared_base(), in.data(), 17); }),
                 Check::global_bounds);
  EXPECT_FINDING(found([&] { isa::copy_async<16>(isa::shared_base() + 4096, in.data()); }),
                 Check::shared_bounds);
}

// A thread's own read ahead of its wait, and two copies into one place.
TEST(CopyAsync, OwnReadsAndWritesMustWait) {
  Buffer<std::uint8_t> in("in", 64, Access::input);
  EXPECT_ONLY_FINDINGS(testing::run(
                           [&] {
                             isa::copy_async<4>(isa::shared_base(), in.data());
                             isa::copy_async_commit();
                             (void)bytes_at(2).load();
                             isa::copy_async_wait<0>();
                           },
                           alone, in),
                       Check::in_flight_access);
  EXPECT_ONLY_FINDINGS(testing::run(
                           [&] {
                             isa::copy_async<16>(isa::shared_base(), in.data());
                             isa::copy_async<16>(isa::shared_base(), in.data() + 16);
                             isa::copy_async_commit();
                             isa::copy_async_wait<0>();
                           },
                           alone, in),
                       Check::in_flight_access);
  // Neighbours of 4 bytes in one piece of 16 do not meet.
  EXPECT_CLEAN(testing::run(
      [&] {
        isa::copy_async<4>(isa::shared_base(), in.data());
        bytes_at(4).store(0, 1);
        isa::copy_async<4>(isa::shared_base() + 8, in.data());
        isa::copy_async_commit();
        (void)bytes_at(4).load();
        isa::copy_async_wait<0>();
      },
      alone, in));
}

// Each way to break a group or its wait, in a ring of two stages, is found.
TEST(CopyAsync, MutantsAreFound) {
  Buffer<isa::Words<4>> in("in", 6 * 32, Access::input);
  for (isa::Words<4>& words : in) words = {{1, 2, 3, 4}};
  const auto kernel = [&] {
    const int t = isa::thread_index();
    const auto stage = [](int step) {
      return isa::shared_base() + static_cast<isa::SharedAddress>(512 * (step % 2));
    };
    const auto copy = [&](int step) {
      if (step < 6) {
        isa::copy_async<16>(stage(step) + static_cast<isa::SharedAddress>(16 * t),
                            in.data() + step * 32 + t);
      }
      isa::copy_async_commit();
    };
    copy(0);
    for (int step = 0; step < 6; ++step) {
      isa::copy_async_wait<0>();
      isa::sync_threads(32);
      copy(step + 1);
      (void)isa::SharedView<isa::Words<4>>{stage(step)}.load(t ^ 1);
    }
    isa::copy_async_wait<0>();
  };
  const LaunchShape shape{.threads = 32, .shared_bytes = 4096};
  Options how;
  how.mode = Mode::latest;
  how.count_sites = true;
  const Report whole = must_be_clean(run(shape, how, {in.allocation()}, kernel));
  int found = 0;
  int equivalent = 0;
  for (const Mutation& mutation : mutations(whole.sites)) {
    how.mutation = mutation;
    const Report report = run(shape, how, {in.allocation()}, kernel);
    (report.clean() ? equivalent : found) += 1;
    if (mutation.kind == Mutation::Kind::drop && mutation.at == SyncKind::copy_commit) {
      EXPECT_FALSE(report.clean()) << text(mutation);
    }
    if (mutation.kind == Mutation::Kind::wait_more) {
      EXPECT_EQ(report.clean(), mutation.line == whole.sites.back().line) << text(mutation);
    }
  }
  // Clean: the last wait, which has nothing left to wait for, left out, left out once, or weaker by
  // one group.
  EXPECT_EQ(found, 9);
  EXPECT_EQ(equivalent, 3);
}

// --- arrivals behind copies
// Every thread of two warps copies 16 bytes, and an mbarrier counts when they are there.
struct Arriving {
  Buffer<isa::Words<4>> in{"in", 128, Access::input};
  Arriving() {
    for (std::uint32_t i = 0; i < 128; ++i) in[i] = {{i, i, i, i}};
  }
  static isa::SharedAddress barrier() { return isa::shared_base(); }
  static isa::SharedAddress data() { return isa::shared_base() + 1024; }
  static void begin(int count) {
    if (isa::thread_index() == 0) isa::mbarrier_init(barrier(), count);
    isa::sync_threads(64);
  }
  /// This thread's bytes, or with `more` its second ones.
  void copy(int more = 0) {
    const int i = isa::thread_index() + 64 * more;
    isa::copy_async<16>(data() + static_cast<isa::SharedAddress>(16 * i), in.data() + i);
  }
  static void wait(int parity = 0) { isa::mbarrier_wait<isa::Scope::cta>(barrier(), parity); }
  /// Reads those of another thread.
  static void read(int more = 0) {
    const int i = (isa::thread_index() + 33) % 64 + 64 * more;
    const isa::Words<4> words = isa::SharedView<isa::Words<4>>{data()}.load(i);
    if (words.word[3] != static_cast<std::uint32_t>(i)) throw std::runtime_error("wrong bytes");
  }
  static void drain() {
    isa::copy_async_commit();
    isa::copy_async_wait<0>();
  }
};
const testing::Launch two_warps{.threads = 64, .shared_bytes = 4096};

// Whoever waits for the phase sees the bytes, copied in groups or not, in any schedule; and the
// next phase counts the next arrivals.
TEST(CopyAsyncArrive, ItsPhaseBringsTheCopies) {
  Arriving a;
  for (const bool groups : {false, true}) {
    EXPECT_CLEAN(testing::run(
        [&] {
          Arriving::begin(64);
          for (int more = 0; more < 2; ++more) {
            a.copy(more);
            if (groups) isa::copy_async_commit();
            isa::copy_async_arrive(Arriving::barrier());
            Arriving::wait(more);
            Arriving::read(more);
          }
          Arriving::drain();
        },
        two_warps, a.in));
  }
}

// It does not wait itself: in the latest schedule nothing has landed behind it, and its phase is
// open until somebody waits.
TEST(CopyAsyncArrive, DoesNotWait) {
  Arriving a;
  for (const Mode mode : {Mode::eager, Mode::latest}) {
    Options how;
    how.mode = mode;
    how.check_order = false;
    bool complete = false;
    (void)run({.threads = 1, .shared_bytes = 4096}, how, {a.in.allocation()}, [&] {
      isa::mbarrier_init(Arriving::barrier(), 1);
      a.copy();
      isa::copy_async_arrive(Arriving::barrier());
      complete = isa::mbarrier_test_wait<isa::Scope::cta>(Arriving::barrier(), 0);
      Arriving::wait();
      Arriving::drain();
    });
    EXPECT_EQ(complete, mode == Mode::eager);
  }
}

// Copies that are started behind the arrival, a read that waits at another barrier, and a thread
// that ends with both on their way.
TEST(CopyAsyncArrive, CoversNoMoreThanItSays) {
  Arriving a;
  EXPECT_ONLY_FINDINGS(testing::run(
                           [&] {
                             Arriving::begin(64);
                             isa::copy_async_arrive(Arriving::barrier());
                             a.copy();
                             Arriving::wait();
                             Arriving::read();
                             Arriving::drain();
                           },
                           two_warps, a.in),
                       Check::in_flight_access, Check::uninitialised_read, Check::exception);
  EXPECT_ONLY_FINDINGS(testing::run(
                           [&] {
                             Arriving::begin(64);
                             a.copy();
                             isa::copy_async_arrive(Arriving::barrier());
                             isa::sync_threads(64);
                             Arriving::read();
                             Arriving::wait();
                             Arriving::drain();
                           },
                           two_warps, a.in),
                       Check::in_flight_access, Check::exception);
  EXPECT_FINDING(testing::run(
                     [&] {
                       Arriving::begin(64);
                       a.copy();
                       isa::copy_async_arrive(Arriving::barrier());
                     },
                     two_warps, a.in),
                 Check::undrained_exit);
}

// The barrier's count includes every thread's arrival.
TEST(CopyAsyncArrive, CountsThatDoNotMatch) {
  Arriving a;
  const auto found = [&](int count) {
    return testing::run(
        [&, count] {
          Arriving::begin(count);
          a.copy();
          isa::copy_async_arrive(Arriving::barrier());
          Arriving::wait();
          Arriving::read();
          Arriving::drain();
        },
        two_warps, a.in);
  };
  EXPECT_FINDING(found(65), Check::deadlock);
  EXPECT_FINDING(found(63), Check::in_flight_access);  // one thread's copies belong to no wait
  EXPECT_CLEAN(found(64));
}

// It hands on what the copies wrote, no store of its thread.
TEST(CopyAsyncArrive, ReleasesNoStore) {
  Arriving a;
  const auto kernel = [&](bool stores) {
    Arriving::begin(64);
    const int t = isa::thread_index();
    const isa::SharedView<std::uint32_t> beside{Arriving::data() + 2048};
    if (stores) beside.store(t, 1);
    a.copy();
    isa::copy_async_arrive(Arriving::barrier());
    Arriving::wait();
    Arriving::read();
    if (stores) (void)beside.load((t + 33) % 64);
    Arriving::drain();
  };
  EXPECT_CLEAN(testing::run(chosen(kernel, false), two_warps, a.in));
  EXPECT_ONLY_FINDINGS(testing::run(chosen(kernel, true), two_warps, a.in), Check::weak_scope);
}

// Before the asynchronous proxy reads the bytes, the thread that waited fences: behind its wait.
TEST(CopyAsyncArrive, WhoWaitsFencesForTheOtherProxy) {
  Arriving a;
  Buffer<std::uint16_t> out("out", 512);
  const isa::TensorMap map =
      testing::tensor_map(out, {.rows = 8, .columns = 64, .box_rows = 8, .box_columns = 64});
  enum class Fence { none, early, right };
  const auto kernel = [&](Fence fence) {
    Arriving::begin(64);
    a.copy();
    isa::copy_async_arrive(Arriving::barrier());
    if (fence == Fence::early) isa::fence_proxy_async_shared();
    Arriving::wait();
    if (fence == Fence::right) isa::fence_proxy_async_shared();
    if (isa::thread_index() == 0) {
      store_until_read(map, Arriving::data(), isa::Coords{0, 0});
    }
    Arriving::drain();
  };
  for (const Fence fence : {Fence::none, Fence::early}) {
    EXPECT_ONLY_FINDINGS(testing::run(chosen(kernel, fence), two_warps, a.in, out),
                         Check::missing_proxy_fence);
  }
  const std::string early = testing::run(chosen(kernel, Fence::early), two_warps, a.in, out).text();
  expect_contains(early, " comes before the wait at ");
  EXPECT_CLEAN(testing::run(chosen(kernel, Fence::right), two_warps, a.in, out));
}

TEST(CopyAsyncArrive, MutantsAreFound) {
  Arriving a;
  const auto kernel = [&] {
    Arriving::begin(64);
    a.copy();
    isa::copy_async_arrive(Arriving::barrier());
    Arriving::wait();
    Arriving::read();
    Arriving::drain();
  };
  const LaunchShape shape{.threads = 64, .shared_bytes = 4096};
  Options how;
  how.mode = Mode::latest;
  how.count_sites = true;
  const Report whole = must_be_clean(run(shape, how, {a.in.allocation()}, kernel));
  int broken = 0;
  for (const Mutation& mutation : mutations(whole.sites)) {
    if (mutation.at != SyncKind::copy_arrive) continue;
    how.mutation = mutation;
    EXPECT_FALSE(run(shape, how, {a.in.allocation()}, kernel).clean()) << text(mutation);
    ++broken;
  }
  EXPECT_EQ(broken, 5);  // dropped, dropped or repeated the first time, repeated, only by lane 0
}

}  // namespace
}  // namespace warpwright::model
