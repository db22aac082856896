// The checks of shared and global memory, of TMA copies and of wgmma: for each a kernel that
// breaks the rule and one that keeps it.
#include <gtest/gtest.h>

#include <memory>

#include "tests/model/harness.h"
#include "warpwright/atom/descriptor.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/call.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/tma.h"
#include "warpwright/isa/warp.h"
#include "warpwright/isa/wgmma.h"

namespace warpwright::model {
namespace {

using isa::Scope;
using isa::SharedAddress;

// Writes bytes [0, n) after `at` with one thread.
void fill(SharedAddress at, int n) {
  for (int i = 0; i < n / 16; ++i) {
    isa::SharedView<isa::Words<4>>{at}.store(i, {{1, 2, 3, 4}});
  }
}

// A tensor of 8 x 64 elements of 16 bits (1 KiB) and a box that is all of it.
struct Tensor {
  Memory<std::uint16_t> memory{8 * 64};
  TensorMap map = map_of({memory.data(), 8, 64, 2, 8, 64});
  std::vector<Allocation> allocations = {memory.allocation("tensor")};

  /// A kernel of one thread, with its choices.
  template <class Body, class... Choices>
  Kernel kernel(const Body& body, Choices... choices) {
    return {one_thread, chosen(body, choices...), allocations};
  }
};

// --- plain accesses -----------------------------------------------------------------------------

TEST(MemoryChecks, UninitialisedSharedMemory) {
  const auto body = [](int written) {
    const isa::SharedView<std::uint32_t> word{isa::shared_base()};
    word.store(0, 1);
    isa::SharedView<std::uint16_t>{isa::shared_base()}.store(2, 1);
    if (written == 8) isa::SharedView<std::uint16_t>{isa::shared_base()}.store(3, 1);
    (void)word.load(1);
  };
  expect_found({one_thread, chosen(body, 6)}, Check::uninitialised_read);
  expect_clean({one_thread, chosen(body, 8)});
}

// What a kernel says nothing depends on is NaN; what lies beside it must still be written.
TEST(MemoryChecks, BytesThatAreLeftUnwritten) {
  const auto body = [](int word_read, std::uint32_t* seen) {
    const isa::SharedView<std::uint32_t> word{isa::shared_base()};
    isa::leave_unwritten(isa::shared_base() + 16, 32);
    *seen = word.load(word_read);
  };
  for (const int inside : {4, 11}) {
    std::uint32_t seen = 0;
    expect_clean({one_thread, chosen(body, inside, &seen)});
    EXPECT_EQ(seen, 0xffffffffU);
  }
  std::uint32_t seen = 0;
  for (const int outside : {3, 12}) {
    expect_found({one_thread, chosen(body, outside, &seen)}, Check::uninitialised_read);
  }
}

TEST(MemoryChecks, SharedBounds) {
  const auto store = [](std::uint32_t offset) {
    return [=] { isa::SharedView<std::uint32_t>{isa::shared_base() + offset}.store(0, 1); };
  };
  const LaunchShape shape{.threads = 1, .shared_bytes = 100};
  expect_clean({shape, store(96)});
  expect_found({shape, store(100)}, Check::shared_bounds);
  expect_found({shape, store(static_cast<std::uint32_t>(-4))}, Check::shared_bounds);
  expect_found({shape, [] { (void)isa::SharedView<std::uint32_t>{0}.load(); }},
               Check::shared_bounds);
}

TEST(MemoryChecks, SharedViewsAreOfTheOwnCta) {
  // ld.shared and st.shared name the window of the own CTA.
  const auto kernel = [](bool remote) {
    const int rank = isa::cluster_rank();
    const SharedAddress at = isa::map_rank(isa::shared_base(), remote ? 1 - rank : rank);
    cluster_sync();
    isa::SharedView<std::uint32_t>{at}.store(0, 1);
    cluster_sync();
  };
  const LaunchShape shape{.ctas = 2, .cluster_size = 2, .threads = 1, .shared_bytes = 64};
  expect_found(Kernel{shape, chosen(kernel, true)}, Check::shared_bounds);
  expect_clean(Kernel{shape, chosen(kernel, false)});
}

TEST(MemoryChecks, Misaligned) {
  const auto store = [](std::uint32_t offset) {
    return [=] { isa::SharedView<isa::Words<2>>{isa::shared_base() + offset}.store(0, {}); };
  };
  expect_found({one_thread, store(4)}, Check::misaligned);
  expect_clean({one_thread, store(8)});
  expect_found({one_thread, [] { isa::mbarrier_init(isa::shared_base() + 4, 1); }},
               Check::misaligned);
  alignas(16) std::uint8_t memory[32] = {};
  const std::vector<Allocation> allocations = {{memory, 32, "bytes", true}};
  const auto global = [&](int offset) {
    const isa::GlobalView<std::uint32_t> view{reinterpret_cast<std::uint32_t*>(memory + offset)};
    view.store(1, view.load(0));
  };
  expect_found({one_thread, chosen(global, 2), allocations}, Check::misaligned);
  expect_clean({one_thread, chosen(global, 4), allocations});
}

TEST(MemoryChecks, GlobalBounds) {
  Memory<std::uint32_t> in(8);
  Memory<std::uint32_t> out(8);
  const std::vector<Allocation> memory = {in.allocation("in", false), out.allocation("out")};
  const auto load = [&](int i) {
    return [p = in.data(), i] { (void)isa::GlobalView<const std::uint32_t>{p}.load(i); };
  };
  const auto store = [](std::uint32_t* p, int i) {
    return [=] { isa::GlobalView<std::uint32_t>{p}.store(i, 1); };
  };
  expect_clean({one_thread, load(7), memory});
  expect_found({one_thread, load(8), memory}, Check::global_bounds);
  expect_found({one_thread, load(-1), memory}, Check::global_bounds);
  expect_clean({one_thread, store(out.data(), 7), memory});
  expect_found({one_thread, store(out.data(), 8), memory}, Check::global_bounds);
  expect_found({one_thread, store(in.data(), 0), memory}, Check::global_bounds);
  // Reading first must not make an input writable.
  expect_found({one_thread,
                [&] {
                  load(0)();
                  store(in.data(), 0)();
                },
                memory},
               Check::global_bounds);
  expect_contains(sentence({one_thread, store(out.data(), 8), memory}, Check::global_bounds),
                  "out");
}

// --- tensor maps and copies ---------------------------------------------------------------------

TEST(MemoryChecks, TensorMapRules) {
  alignas(64) static std::uint16_t data[4096] = {};
  const TensorMapFields good = fields({data, 16, 64, 2, 8, 64, atom::SmemSwizzle::b128});
  EXPECT_EQ(invalid(good), std::nullopt);
  const auto broken = [&](const std::function<void(TensorMapFields&)>& change, const char* word) {
    TensorMapFields f = good;
    change(f);
    const auto fault = must(invalid(f), word);
    expect_contains(*fault, word);
  };
  using Fields = TensorMapFields;
  broken([](Fields& f) { f.rank = 0; }, "rank");
  broken([](Fields& f) { f.rank = 6; }, "rank");
  broken([](Fields& f) { f.base += 8; }, "base");
  broken([](Fields& f) { f.extents[1] = 0; }, "extent");
  broken([](Fields& f) { f.extents[0] = (std::uint64_t{1} << 32) + 1; }, "extent");
  broken([](Fields& f) { f.box[1] = 0; }, "box");
  broken([](Fields& f) { f.box[1] = 257; }, "256");
  broken([](Fields& f) { f.strides[0] += 8; }, "stride");
  broken([](Fields& f) { f.strides[0] = std::uint64_t{1} << 40; }, "2^40");
  broken([](Fields& f) { f.box[0] = 60; }, "16 bytes");
  broken([](Fields& f) { f.box[0] = 72; }, "span");
  broken([](Fields& f) { f.swizzle = atom::SmemSwizzle::b64; }, "span");
  Fields edge = good;
  edge.extents = {std::uint64_t{1} << 32, std::uint64_t{1} << 32};
  edge.box[1] = 256;
  edge.strides[0] = (std::uint64_t{1} << 40) - 16;
  EXPECT_EQ(invalid(edge), std::nullopt);
  // What is packed comes out again; what nobody packed does not.
  const auto again = must(decode(encode(edge)));
  EXPECT_EQ(again->strides, edge.strides);
  EXPECT_EQ(again->box, edge.box);
  EXPECT_FALSE(decode(TensorMap{}).has_value());
}

TEST(MemoryChecks, TensorMapsInKernels) {
  Tensor t;
  const auto load = [&](const TensorMap& map, std::uint32_t offset = 1024) {
    const SharedAddress bar = isa::shared_base();
    make_barrier(bar, 1);
    load_and_wait(1024, isa::shared_base() + offset, map, bar, isa::Coords{0, 0});
  };
  expect_clean(t.kernel(load, t.map));
  expect_clean(t.kernel(load, t.map, 128));
  const TensorMap nothing;
  expect_found(t.kernel(load, nothing), Check::tensor_map);
  TensorMapFields f = *decode(t.map);
  f.box[0] = 4;
  const TensorMap bad = encode(f);
  expect_found(t.kernel(load, bad), Check::tensor_map);
  f = *decode(t.map);
  f.rank = 3;
  f.extents[2] = 1;
  f.box[2] = 1;
  const TensorMap deeper = encode(f);
  expect_found(t.kernel(load, deeper), Check::tensor_map);
  for (const std::uint32_t offset : {1024U + 16, 1024U + 32, 1024U + 64}) {
    SCOPED_TRACE(offset);
    expect_found(t.kernel(load, t.map, offset), Check::tensor_map);
  }
  // 1 KiB from 3200 reaches past the 4 KiB; from 3072 it just fits.
  expect_found(t.kernel(load, t.map, 3200), Check::shared_bounds);
  expect_clean(t.kernel(load, t.map, 3072));
}

TEST(MemoryChecks, ABarrierOfAnotherCtaThanTheDestination) {
  Tensor t;
  const auto kernel = [&](bool remote) {
    const SharedAddress bar = isa::shared_base();
    make_barrier(bar, 1);
    cluster_sync();
    isa::mbarrier_arrive_expect(bar, 1024);
    const int rank = isa::cluster_rank();
    isa::tensor_load(bar + 1024, t.map, isa::map_rank(bar, remote ? 1 - rank : rank),
                     isa::Coords{0, 0});
    isa::mbarrier_wait<Scope::cluster>(bar, 0);
    cluster_sync();
  };
  const LaunchShape shape{.ctas = 2, .cluster_size = 2, .threads = 1, .shared_bytes = 4096};
  expect_found(Kernel{shape, chosen(kernel, true), t.allocations}, Check::tensor_map);
  expect_clean(Kernel{shape, chosen(kernel, false), t.allocations});
}

TEST(MemoryChecks, ASwizzledNarrowBoxStaysInBounds) {
  // Rows of 64 bytes, 128 apart; the swizzle carries the last one to the upper half of its line.
  Memory<std::uint16_t> source(8 * 32);
  const TensorMap map = map_of({source.data(), 8, 32, 2, 8, 32, atom::SmemSwizzle::b128});
  const auto kernel = [&] {
    const SharedAddress bar = isa::shared_base();
    make_barrier(bar, 1);
    load_and_wait(512, bar + 1024, map, bar, isa::Coords{0, 0});
  };
  const std::vector<Allocation> memory = {source.allocation("source", false)};
  expect_found({{.threads = 1, .shared_bytes = 2048 - 64}, kernel, memory}, Check::shared_bounds);
  expect_clean({{.threads = 1, .shared_bytes = 2048}, kernel, memory});
}

TEST(MemoryChecks, StoreAtANegativeCoordinate) {
  Tensor t;
  const auto kernel = [&](int column, int row) {
    fill(isa::shared_base(), 1024);
    isa::fence_proxy_async_shared();
    store_until_written(t.map, isa::shared_base(), isa::Coords{column, row});
  };
  expect_found(t.kernel(kernel, -1, 0), Check::tensor_map);
  expect_found(t.kernel(kernel, 0, -8), Check::tensor_map);
  expect_clean(t.kernel(kernel, 0, 0));
  expect_clean(t.kernel(kernel, 56, 7));
  expect_clean(t.kernel(kernel, 1000, 1000));
}

TEST(MemoryChecks, TensorsLargerThanTheirMemory) {
  Tensor t;
  TensorMapFields f = *decode(t.map);
  f.extents[1] = 9;
  const TensorMap larger = encode(f);
  const auto kernel = [&](int row) {
    const SharedAddress bar = isa::shared_base();
    make_barrier(bar, 1);
    load_and_wait(1024, bar + 1024, larger, bar, isa::Coords{0, row});
  };
  expect_found(t.kernel(kernel, 1), Check::global_bounds);
  expect_clean(t.kernel(kernel, 0));
}

TEST(MemoryChecks, StoresIntoInputs) {
  Tensor t;
  const auto body = [&] {
    fill(isa::shared_base(), 1024);
    isa::fence_proxy_async_shared();
    store_until_written(t.map, isa::shared_base(), isa::Coords{0, 0});
  };
  expect_found({one_thread, body, {t.memory.allocation("tensor", false)}}, Check::global_bounds);
  expect_clean({one_thread, body, t.allocations});
}

TEST(MemoryChecks, DestinationTouchedInFlight) {
  Tensor t;
  enum class Touch { none, load, store, tensor_store, tensor_load };
  const auto kernel = [&](Touch touch) {
    const SharedAddress bar = isa::shared_base();
    const SharedAddress to = bar + 1024;
    make_barrier(bar, 1);
    expect_load(touch == Touch::tensor_load ? 2048 : 1024, to, t.map, bar, isa::Coords{0, 0});
    const isa::SharedView<std::uint32_t> view{to};
    if (touch == Touch::load) (void)view.load(200);
    if (touch == Touch::store) view.store(200, 1);
    if (touch == Touch::tensor_load) {
      isa::tensor_load(to + 128, t.map, bar, isa::Coords{0, 0});
    }
    if (touch == Touch::tensor_store) {
      store_until_written(t.map, to, isa::Coords{0, 0});
    }
    isa::mbarrier_wait<Scope::cta>(bar, 0);
    (void)view.load(200);
    view.store(200, 1);
  };
  expect_clean(t.kernel(kernel, Touch::none));
  for (const Touch touch : {Touch::load, Touch::store, Touch::tensor_load, Touch::tensor_store}) {
    SCOPED_TRACE(static_cast<int>(touch));
    expect_found(t.kernel(kernel, touch), Check::in_flight_access);
  }
}

TEST(MemoryChecks, ReadingWhatAStoreReadsIsNoConflict) {
  Tensor t;
  expect_clean({one_thread,
                [&] {
                  fill(isa::shared_base(), 1024);
                  isa::fence_proxy_async_shared();
                  isa::tensor_store(t.map, isa::shared_base(), isa::Coords{0, 0});
                  isa::bulk_commit();
                  (void)isa::SharedView<std::uint32_t>{isa::shared_base()}.load(7);
                  isa::bulk_wait_read<0>();
                },
                t.allocations});
}

TEST(MemoryChecks, StoreOfUninitialisedBytes) {
  Tensor t;
  const auto kernel = [&](int bytes) {
    fill(isa::shared_base(), bytes);
    isa::fence_proxy_async_shared();
    store_until_written(t.map, isa::shared_base(), isa::Coords{0, 0});
  };
  expect_found(t.kernel(kernel, 1008), Check::uninitialised_read);
  expect_clean(t.kernel(kernel, 1024));
}

TEST(MemoryChecks, ExitWithStoresUndrained) {
  Tensor t;
  const auto kernel = [&](bool commit, bool wait) {
    fill(isa::shared_base(), 1024);
    isa::fence_proxy_async_shared();
    isa::tensor_store(t.map, isa::shared_base(), isa::Coords{0, 0});
    if (commit) isa::bulk_commit();
    if (wait) isa::bulk_wait_read<0>();
  };
  expect_found(t.kernel(kernel, true, false), Check::undrained_exit, Shows::unless_eager);
  expect_found(t.kernel(kernel, false, false), Check::undrained_exit, Shows::unless_eager);
  // A wait covers only what was committed.
  expect_found(t.kernel(kernel, false, true), Check::undrained_exit, Shows::unless_eager);
  expect_clean(t.kernel(kernel, true, true));
}

// --- lanes --------------------------------------------------------------------------------------

// A prefetch moves nothing, but what it names is there.
TEST(MemoryChecks, PrefetchOutsideEveryTensor) {
  Memory<std::uint32_t> source(64);
  const std::vector<Allocation> memory = {source.allocation("source", false)};
  const auto kernel = [&](int first, int bytes) {
    isa::bulk_prefetch(source.data() + first, bytes);
  };
  const LaunchShape shape{.threads = 1, .shared_bytes = 1024};
  expect_clean(Kernel{shape, chosen(kernel, 0, 256), memory});
  expect_found(Kernel{shape, chosen(kernel, 4, 256), memory}, Check::global_bounds);
  expect_found(Kernel{shape, chosen(kernel, 0, 24), memory}, Check::misaligned);
  expect_found(Kernel{shape, chosen(kernel, 1, 16), memory}, Check::misaligned);
}

TEST(MemoryChecks, LanesThatDoNotMeet) {
  const LaunchShape warp{.threads = 32, .shared_bytes = 1024};
  expect_found({warp,
                [] {
                  if (isa::lane_index() < 16) isa::sync_warp();
                }},
               Check::divergence);
  // bar.warp.sync is not .aligned: from sm_70 on lanes may come to it at several places.
  expect_clean({warp, [] {
                  if (isa::lane_index() < 16) {
                    isa::sync_warp();
                    return;
                  }
                  isa::sync_warp();
                }});
  // What is .aligned is one instruction at one place.
  for (const int which : {0, 1, 2, 3}) {
    expect_found({warp,
                  [which] {
                    const bool low = isa::lane_index() < 16;
                    if (which == 0) {
                      if (low) {
                        isa::named_barrier_sync(1, 32);
                      } else {
                        isa::named_barrier_sync(1, 32);
                      }
                    } else if (which == 1) {
                      if (low) {
                        isa::cluster_arrive();
                      } else {
                        isa::cluster_arrive();
                      }
                      isa::cluster_wait();
                    } else if (which == 2) {
                      isa::cluster_arrive();
                      if (low) {
                        isa::cluster_wait();
                      } else {
                        isa::cluster_wait();
                      }
                    } else {
                      if (low) {
                        isa::sync_threads(32);
                      } else {
                        isa::sync_threads(32);
                      }
                    }
                  }},
                 Check::divergence);
  }
  // A barrier waits for the lanes of a warp and counts 32: half a warp is none.
  expect_found({{.threads = 128, .shared_bytes = 1024},
                [] {
                  if (isa::lane_index() < 16) isa::named_barrier_sync(1, 64);
                  isa::sync_warp();
                }},
               Check::divergence);
  expect_found({{.threads = 128, .shared_bytes = 1024},
                [] {
                  if (isa::lane_index() < 16) isa::named_barrier_sync(1, 64);
                }},
               Check::divergence);
  expect_found({warp,
                [] {
                  if (isa::lane_index() == 5) {
                    (void)isa::elect_one();
                  } else {
                    (void)isa::shuffle(1, 0);
                  }
                }},
               Check::divergence);
  expect_clean({warp, [] {
                  isa::sync_warp();
                  (void)isa::elect_one();
                  (void)isa::shuffle(1, 0);
                }});
  // Lanes that left the warp in an orderly way are missed all the same: .aligned wants all 32.
  expect_found({warp,
                [] {
                  if (isa::lane_index() == 31) return;
                  isa::sync_warp();
                }},
               Check::divergence);
}

// On a GPU the index of a warp is a shuffle of all its lanes, though nobody waits for it here.
TEST(MemoryChecks, AWarpIndexThatOneLaneAsksFor) {
  const LaunchShape warp{.threads = 32, .shared_bytes = 1024};
  expect_found({warp,
                [] {
                  if (isa::lane_index() == 0) (void)isa::warp_index();
                }},
               Check::divergence);
  expect_found({warp,
                [] {
                  if (isa::lane_index() == 31) return;
                  (void)isa::warp_index();
                }},
               Check::divergence);
  expect_found({warp,
                [] {
                  if (isa::lane_index() < 5) {
                    (void)isa::warp_index();
                  } else {
                    (void)isa::warp_index();
                  }
                }},
               Check::divergence);
  expect_found({warp,
                [] {
                  if (isa::lane_index() != 7) (void)isa::uniform(1);
                }},
               Check::divergence);
  // Each lane at its own pace.
  expect_clean({{.threads = 40, .shared_bytes = 1024}, [] {
                  for (int i = 0; i < 3; ++i) (void)isa::warp_index();
                }});
}

// A function of a kernel with an instruction of the whole warp, told to the model by its call, or
// not.
void converge(int depth, isa::Site site = isa::Site::here()) {
  const isa::Call call(site);
  if (depth > 0) return converge(depth - 1);
  std::uint32_t to[1];
  isa::load_matrix<1>(isa::shared_base() + 16 * (isa::lane_index() % 8), to);
}

// A warp comes to an aligned instruction by one call: the two arms of a branch are two places, at
// whatever depth, though the instruction stands in one line. Calls by turns, and calls that are
// over, do not count.
TEST(MemoryChecks, LanesThatComeByTwoCalls) {
  const auto body = [](int depth, bool apart) {
    isa::SharedView<std::uint32_t>{isa::shared_base()}.store(isa::lane_index(), 0);
    isa::sync_warp();
    converge(depth);
    if (isa::lane_index() == 3 && apart) {
      converge(depth);
    } else {
      converge(depth);
    }
    for (int i = 0; i < 2; ++i) converge(i);
  };
  const LaunchShape warp{.threads = 32, .shared_bytes = 1024};
  for (const int depth : {0, 1, 2}) {
    expect_found({warp, chosen(body, depth, true)}, Check::divergence);
    const Report found = run({warp, chosen(body, depth, true)}, Options{});
    expect_contains(found.text(), "by the call at ");
    expect_clean({warp, chosen(body, depth, false)});
  }
  // A syncwarp may stand at several places, and so be called from them.
  expect_clean({warp, [] {
                  const auto meet = [](isa::Site site = isa::Site::here()) {
                    const isa::Call call(site);
                    isa::sync_warp();
                  };
                  if (isa::lane_index() < 7) {
                    meet();
                  } else {
                    meet();
                  }
                }});
}

TEST(MemoryChecks, MatrixLoadsOfAPartialWarp) {
  expect_found({{.threads = 16, .shared_bytes = 1024},
                [] {
                  std::uint32_t to[4];
                  isa::load_matrix<4>(isa::shared_base(), to);
                }},
               Check::divergence);
}

// --- wgmma --------------------------------------------------------------------------------------

constexpr atom::OperandTile operand{64, 16, 16, atom::Major::k, atom::SmemSwizzle::none};
constexpr LaunchShape warpgroup{.threads = 128, .shared_bytes = 8192};
using Accumulator = isa::Fragment<float, 32>;

// A 64 x 16 and B 64 x 16 of bf16, zeros of all threads; then the proxies are in order.
void zero_operands() {
  for (int i = isa::thread_index(); i < 4096 / 16; i += 128) {
    isa::SharedView<isa::Words<4>>{isa::shared_base()}.store(i, {});
  }
  isa::fence_proxy_async_shared();
  isa::sync_threads(128);
}

std::uint64_t descriptor_a() {
  return atom::encode(atom::descriptor(operand, isa::shared_base()));
}
std::uint64_t descriptor_b() {
  return atom::encode(atom::descriptor(operand, isa::shared_base() + 2048));
}

void issue(Accumulator& acc, bool accumulate = false) {
  isa::wgmma<DType::bf16, 64>(acc, descriptor_a(), descriptor_b(), accumulate);
}

TEST(WgmmaChecks, Fences) {
  enum class Fences { none, first, both };
  const auto body = [](Fences fences, bool touch) {
    zero_operands();
    Accumulator acc;
    if (fences != Fences::none) isa::wgmma_fence(acc);
    issue(acc);
    isa::wgmma_commit();
    isa::wgmma_wait<0>(acc);
    if (touch) acc[3] += 1.0F;
    if (fences == Fences::both) isa::wgmma_fence(acc);
    issue(acc, true);
    isa::wgmma_commit();
    isa::wgmma_wait<0>(acc);
  };
  expect_found({warpgroup, chosen(body, Fences::none, false)}, Check::wgmma_unfenced);
  expect_found({warpgroup, chosen(body, Fences::first, true)}, Check::wgmma_unfenced);
  expect_clean({warpgroup, chosen(body, Fences::first, false)});
  expect_clean({warpgroup, chosen(body, Fences::both, true)});
}

TEST(WgmmaChecks, RegistersWrittenBehindTheModelsBack) {
  expect_found({warpgroup,
                [] {
                  zero_operands();
                  Accumulator acc;
                  isa::wgmma_fence(acc);
                  issue(acc);
                  isa::wgmma_commit();
                  acc.registers()[9] = 4.0F;
                  isa::wgmma_wait<0>(acc);
                }},
               Check::fragment_in_flight);
}

TEST(WgmmaChecks, AccumulatingIntoNothing) {
  // Registers hold whatever they held: the sum must not look right.
  bool looks_right = false;
  const Kernel kernel{warpgroup, [&] {
                        zero_operands();
                        Accumulator acc;
                        isa::wgmma_fence(acc);
                        issue(acc, true);
                        isa::wgmma_commit();
                        isa::wgmma_wait<0>(acc);
                        looks_right = looks_right || acc[0] == 0.0F;
                      }};
  for (const Options& how : schedules()) {
    SCOPED_TRACE(text(how));
    looks_right = false;
    (void)run(kernel, how);
    EXPECT_FALSE(looks_right);
  }
}

TEST(WgmmaChecks, DivergentThreads) {
  const auto body = [](std::uint64_t extra_b, std::uint64_t extra_a, bool flag) {
    zero_operands();
    Accumulator acc;
    isa::wgmma_fence(acc);
    const bool odd_one = isa::thread_index() == 77;
    isa::wgmma<DType::bf16, 64>(acc, descriptor_a() + (odd_one ? extra_a : 0),
                                descriptor_b() + (odd_one ? extra_b : 0), odd_one && flag);
    isa::wgmma_commit();
    isa::wgmma_wait<0>(acc);
  };
  expect_found({warpgroup, chosen(body, 1, 0, false)}, Check::divergence);
  expect_found({warpgroup, chosen(body, 0, 1, false)}, Check::divergence);
  expect_found({warpgroup, chosen(body, 0, 0, true)}, Check::divergence);
  expect_clean({warpgroup, chosen(body, 0, 0, false)});
  // A warp that does not come.
  expect_found({warpgroup,
                [] {
                  zero_operands();
                  Accumulator acc;
                  if (isa::warp_index() == 2) return;
                  isa::wgmma_fence(acc);
                }},
               Check::divergence);
  expect_found({{.threads = 64, .shared_bytes = 8192},
                [] {
                  Accumulator acc;
                  isa::wgmma_fence(acc);
                }},
               Check::divergence);
}

TEST(WgmmaChecks, Descriptors) {
  const auto body = [](const std::function<void(atom::Descriptor&)>& change) {
    zero_operands();
    atom::Descriptor b = atom::descriptor(operand, (isa::shared_base() + 2048) & 0xffffff);
    change(b);
    Accumulator acc;
    isa::wgmma_fence(acc);
    isa::wgmma<DType::bf16, 64>(acc, descriptor_a(), atom::encode(b), false);
    isa::wgmma_commit();
    isa::wgmma_wait<0>(acc);
  };
  expect_clean({warpgroup, chosen(body, [](atom::Descriptor&) {})});
  expect_found({warpgroup, chosen(body, [](atom::Descriptor& d) { d.start = 0; })},
               Check::bad_descriptor);
  expect_found({warpgroup, chosen(body, [](atom::Descriptor& d) { d.start = 1024 + 8192 - 1024; })},
               Check::bad_descriptor);
  expect_found({warpgroup, chosen(body, [](atom::Descriptor& d) { d.stride = 2048; })},
               Check::bad_descriptor);
  expect_found({warpgroup, chosen(body, [](atom::Descriptor& d) { d.base_offset = 1; })},
               Check::bad_descriptor);
}

TEST(WgmmaChecks, UninitialisedOperand) {
  const auto body = [](int bytes) {
    if (isa::thread_index() == 0) fill(isa::shared_base(), bytes);
    isa::fence_proxy_async_shared();
    isa::sync_threads(128);
    Accumulator acc;
    isa::wgmma_fence(acc);
    issue(acc);
    isa::wgmma_commit();
    isa::wgmma_wait<0>(acc);
  };
  expect_found({warpgroup, chosen(body, 4080)}, Check::uninitialised_read);
  expect_clean({warpgroup, chosen(body, 4096)});
}

TEST(WgmmaChecks, ExitWithGroupsInFlight) {
  const auto body = [](bool commit, bool wait) {
    zero_operands();
    auto acc = std::make_unique<Accumulator>();
    isa::wgmma_fence(*acc);
    issue(*acc);
    if (commit) isa::wgmma_commit();
    if (wait) isa::wgmma_wait<0>(*acc);
  };
  expect_found({warpgroup, chosen(body, true, false)}, Check::undrained_exit);
  expect_found({warpgroup, chosen(body, false, false)}, Check::undrained_exit);
  expect_found({warpgroup, chosen(body, false, true)}, Check::undrained_exit);
  expect_clean({warpgroup, chosen(body, true, true)});
}

// After the wgmma thread 0 writes an operand; a copy into one: Wgmma.StageReleasedBeforeTheWait
// of the corpus.
TEST(WgmmaChecks, OperandsOverwrittenInFlight) {
  enum class Wait { none, one, zero };
  const auto body = [](Wait wait) {
    zero_operands();
    Accumulator acc;
    isa::wgmma_fence(acc);
    issue(acc);
    isa::wgmma_commit();
    if (wait == Wait::one) isa::wgmma_wait<1>();
    if (wait == Wait::zero) isa::wgmma_wait<0>();
    if (isa::thread_index() == 0) isa::SharedView<std::uint32_t>{isa::shared_base()}.store(5, 1);
    isa::sync_warp();
    isa::wgmma_wait<0>(acc);
  };
  expect_found({warpgroup, chosen(body, Wait::none)}, Check::in_flight_access);
  expect_found({warpgroup, chosen(body, Wait::one)}, Check::in_flight_access);
  expect_clean({warpgroup, chosen(body, Wait::zero)});
}

TEST(WgmmaChecks, OperandsReadBeforeTheyLand) {
  Memory<std::uint16_t> source(2048);
  const TensorMap map = map_of({source.data(), 32, 64, 2, 32, 64});
  const auto kernel = [&](bool wait) {
    const SharedAddress bar = isa::shared_base() + 4096;
    if (isa::thread_index() == 0) {
      make_barrier(bar, 1);
    }
    isa::sync_threads(128);
    if (isa::thread_index() == 0) {
      expect_load(4096, isa::shared_base(), map, bar, isa::Coords{0, 0});
    }
    isa::sync_threads(128);
    if (wait) isa::mbarrier_wait<Scope::cta>(bar, 0);
    Accumulator acc;
    isa::wgmma_fence(acc);
    issue(acc);
    isa::wgmma_commit();
    isa::wgmma_wait<0>(acc);
    isa::mbarrier_wait<Scope::cta>(bar, 0);
  };
  expect_found(Kernel{warpgroup, chosen(kernel, false), {source.allocation("source", false)}},
               Check::in_flight_access, Shows::unless_eager);
  expect_clean(Kernel{warpgroup, chosen(kernel, true), {source.allocation("source", false)}});
}

// A box wider than the tensor, for padding in shared memory: what lies outside goes nowhere, and
// need not have been written. A byte inside must have been.
TEST(MemoryChecks, PaddingThatAStoreLeavesBehind) {
  Memory<std::uint16_t> memory(8 * 64);
  const TensorMap map = map_of({memory.data(), 8, 64, 2, 8, 72});
  const auto body = [&](int last_row_bytes) {
    for (int row = 0; row < 8; ++row) {
      fill(isa::shared_base() + static_cast<SharedAddress>(row * 144),
           row < 7 ? 128 : last_row_bytes);
    }
    isa::fence_proxy_async_shared();
    store_until_written(map, isa::shared_base(), isa::Coords{0, 0});
  };
  const std::vector<Allocation> allocations = {memory.allocation("tensor")};
  expect_found({one_thread, chosen(body, 112), allocations}, Check::uninitialised_read);
  expect_clean({one_thread, chosen(body, 128), allocations});
}

}  // namespace
}  // namespace warpwright::model
