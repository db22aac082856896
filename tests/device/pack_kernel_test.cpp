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

// Two tiles along K of rows with units: what is read of the one before the other is written.
TEST(PackKernel, CleanInEverySchedule) {
  weights::PlainWeights w = weights::some_e2m1({1, 9, 160}, "mxf4", 110, 120, 3);
  const weights::Source source = weights::source_of(w);
  const PackedFormat format = *weights::packed_format(source, {.tokens = DType::bf16});
  Packed tiles(packed::data_bytes(format, w.extents));
  kernel::PackWeightsParams p = device::params_of(source, format);
  p.tiles = reinterpret_cast<unsigned char*>(tiles.bytes.data());
  using Pack = kernel::PackWeights<kernel::WordsAlongK>;
  model::Kernel kernel;
  kernel.shape = {.ctas = Pack::ctas(p),
                  .in_clusters = false,
                  .threads = Pack::threads,
                  .shared_bytes = Pack::shared_bytes};
  kernel.body = [&p] { Pack::run(p); };
  kernel.memory = allocations({w.codes, w.scales});
  kernel.memory.push_back(written(tiles.bytes));
  model::expect_clean(kernel);
  EXPECT_GT(model::killed_or_same(kernel), 2);
}

}  // namespace
}  // namespace warpwright::tests
