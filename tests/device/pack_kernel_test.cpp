// Packing on the model: clean, the host's bytes, and what the host refuses.
#include "tests/campaign.h"
#include "tests/device/packed_there.h"
#include "tests/model/mutants.h"
#include "tests/model/on_model.h"
#include "warpwright/device/pack_by.h"

namespace warpwright::tests {
namespace {

// Memory at a multiple of 128, and as much as asked for.
struct Packed {
  model::Memory<std::byte> memory;
  std::span<std::byte> bytes;

  explicit Packed(std::int64_t count) : memory(static_cast<std::size_t>(count + 128)) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    bytes = std::span(memory.data() + (128 - at % 128) % 128, static_cast<std::size_t>(count));
  }
};

std::vector<model::Allocation> allocations(const PackedMemory& memory) {
  std::vector<model::Allocation> all;
  for (const auto& of : memory) {
    if (of.empty()) continue;
    all.push_back({of.data(), static_cast<std::int64_t>(of.size()), "weights", false});
  }
  return all;
}
model::Allocation written(std::span<std::byte> bytes) {
  return {bytes.data(), static_cast<std::int64_t>(bytes.size()), "what is written", true};
}

PackedBytes pack_on_model(const weights::Source& source, const PackedMemory& memory,
                          const weights::PackOptions& options) {
  Packed notes(sizeof(kernel::PackingNotes));
  auto all = allocations(memory);
  all.push_back(written(notes.bytes));
  OnModel on(all);
  const auto there = device::look_by(
      source, options, reinterpret_cast<kernel::PackingNotes*>(notes.bytes.data()), on);
  if (!there) return {.refused = there.reason()};
  Packed packed(there->bytes());
  all.back() = written(packed.bytes);
  OnModel packs(all);
  if (const auto refused = device::pack_by(*there, packed.bytes.data(), packs)) {
    return {.refused = refused->reason};
  }
  return {.bytes = {packed.bytes.begin(), packed.bytes.end()}, .on_host = !there->packed.empty()};
}

TEST(PackKernel, TheBytesAreTheHosts) {
  expect_packed_as_on_the_host(1, campaign() ? 1 : 9, pack_on_model);
}

TEST(PackKernel, RefusesWhatTheHostRefuses) {
  expect_refused_as_on_the_host(pack_on_model);
}

TEST(PackKernel, CheckpointsOfEveryLayout) {
  expect_checkpoints_as_on_the_host(campaign() ? 300 : 2, pack_on_model);
}

// Clean in every schedule, and broken synchronisation is told; returns how many mutants were.
template <class Kernel>
int expect_clean(const kernel::PackWeightsParams& p, std::vector<model::Allocation> memory) {
  model::Kernel kernel;
  kernel.shape = {.ctas = Kernel::ctas(p),
                  .in_clusters = false,
                  .threads = Kernel::threads,
                  .shared_bytes = Kernel::shared_bytes};
  kernel.body = [&p] { Kernel::run(p); };
  kernel.memory = std::move(memory);
  model::expect_clean(kernel);
  for (std::uint64_t seed = 100; seed < (campaign() ? 1100 : 102); ++seed) {
    const model::Report report = model::run(kernel, model::random_schedule(seed));
    EXPECT_TRUE(report.clean()) << seed << ": " << report.text();
  }
  return model::killed_or_same(kernel);
}

// Tiles along K, of rows with units and of AWQ's words with zero points: what is read of the one
// before the other is written.
TEST(PackKernel, CleanInEverySchedule) {
  weights::PlainWeights w = weights::some_e2m1({1, 9, 160}, "mxf4", 110, 120, 3);
  std::mt19937 random(5);
  const SomeCheckpoint awq(*weights::layout_named("awq"), random, false);
  PackedMemory of_awq;
  for (const auto& of : awq.memory) {
    of_awq.emplace_back(const_cast<std::byte*>(of.data()), of.size());
  }
  const auto expect = [](const weights::Source& source, const PackedMemory& memory, auto codes) {
    const PackedFormat format = *weights::packed_format(source, {.tokens = DType::bf16});
    Packed tiles(packed::data_bytes(format, source.extents));
    Packed notes(sizeof(kernel::PackingNotes));
    new (notes.bytes.data()) kernel::PackingNotes;
    kernel::PackWeightsParams p = device::params_of(source, format);
    p.tiles = reinterpret_cast<unsigned char*>(tiles.bytes.data());
    p.notes = reinterpret_cast<kernel::PackingNotes*>(notes.bytes.data());
    auto all = allocations(memory);
    all.push_back(written(tiles.bytes));
    EXPECT_GT(expect_clean<kernel::PackWeights<decltype(codes)>>(p, all), 2);
    all.back() = written(notes.bytes);
    expect_clean<kernel::LookAtWeights>(p, all);
  };
  expect(weights::source_of(w), {w.codes, w.scales}, kernel::WordsAlongK{});
  expect(*weights::read_checkpoint("awq", std::span(&awq.tensors, 1)), of_awq,
         kernel::WordsAlongN{});
}

}  // namespace
}  // namespace warpwright::tests
