// The main loop of the register family on the model: right for every type, clean in every schedule,
// and each way to break its groups and barriers is found.
#include "tests/kernel/register_loop.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/kernel/register_product.h"
#include "tests/must.h"
#include "warpwright/model/machine.h"
#include "warpwright/model/mutation.h"

namespace warpwright::tests {
namespace {

model::Report run_on_model(RegisterProduct& product, int threads, int shared, int tile,
                           const model::Options& how, const std::function<void()>& body) {
  const auto ctas = [&](int extent) { return (extent + tile - 1) / tile; };
  product.clear();
  const auto memory = [](const char* name, auto& data, bool writable) {
    return model::Allocation{data.data(), static_cast<std::int64_t>(data.size() * sizeof data[0]),
                             name, writable};
  };
  return model::run(
      {.ctas = ctas(product.params.m) * ctas(product.params.n),
       .threads = threads,
       .shared_bytes = shared},
      how,
      {memory("A", product.a, false), memory("B", product.b, false), memory("D", product.d, true)},
      body);
}

template <class Tag>
model::Report run_on_model(RegisterProduct& product, const model::Options& how) {
  constexpr kernel::RegisterConfig c = Tag::config;
  return run_on_model(product, kernel::threads(c), kernel::shared_bytes(c), c.tile_m, how,
                      [&] { multiply_tile<Tag>(product.params); });
}

std::vector<model::Options> schedules() {
  std::vector<model::Options> all;
  for (const model::Mode mode : {model::Mode::eager, model::Mode::latest, model::Mode::timed}) {
    all.emplace_back().mode = mode;
  }
  for (const model::Mode mode : {model::Mode::random, model::Mode::starve}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      all.emplace_back().mode = mode;
      all.back().seed = seed;
    }
  }
  return all;
}

template <class Tag>
void check_loop(const std::vector<model::Options>& how) {
  constexpr DType T = Tag::config.mma.a;
  constexpr int each = 128 / numeric::bits(T);  // elements of 16 bytes
  constexpr int block = Tag::config.tile_k;
  // Whole tiles; rows, columns and K that end inside one; fewer blocks than stages; one piece.
  const struct {
    int m, n, k;
  } shapes[] = {{64, 64, 5 * block}, {70, 49, 3 * block + each}, {64, 64, block}, {3, 5, each}};
  for (const auto& [m, n, k] : shapes) {
    RegisterProduct product(T, m, n, k);
    for (const model::Options& one : how) {
      must_be_clean(run_on_model<Tag>(product, one));
      ASSERT_EQ(product.wrong(), "") << numeric::name(T) << " " << m << " x " << n << " x " << k;
    }
  }
}

template <DType T, int RowBytes, int Stages>
void check_type(const std::vector<model::Options>& how) {
  check_loop<LoopTag<T, RowBytes, Stages>>(how);
}

// Turing's: two MMAs of 16 bytes a step, fed through registers.
struct LoadedTag {
  static constexpr kernel::RegisterConfig config = [] {
    kernel::RegisterConfig c{{atom::MmaKind::warp, 16, 8, 8}, 64, 64, 32, 2, 2, 2};
    c.result = DType::f16;
    c.feed = kernel::Feed::registers;
    return c;
  }();
  static_assert(kernel::config_fault(config, 75) == nullptr);
};

TEST(RegisterLoop, LoadedByRegisters) {
  check_loop<LoadedTag>(schedules());
}

TEST(RegisterLoop, EveryTypeInEverySchedule) {
  check_type<DType::bf16, 64, 3>(schedules());
  const std::vector<model::Options> few = {schedules()[1], schedules()[3]};
  check_type<DType::bf16, 128, 2>(few);
  check_type<DType::bf16, 64, 5>(few);
  check_type<DType::f16, 128, 3>(few);
  check_type<DType::tf32, 64, 3>(few);
  check_type<DType::s8, 64, 4>(few);
  check_type<DType::e4m3, 128, 3>(few);
}

TEST(RegisterLoop, MutantsAreFound) {
  using Tag = LoopTag<DType::bf16, 64, 3>;
  RegisterProduct product(DType::bf16, 64, 64, 6 * Tag::config.tile_k);
  model::Options how;
  how.mode = model::Mode::latest;
  how.count_sites = true;
  const model::Report whole = must_be_clean(run_on_model<Tag>(product, how));
  int found = 0;
  how.count_sites = false;
  how.stop_at_finding = true;
  for (const model::Mutation& mutation : model::mutations(whole.sites)) {
    bool spoke = false;
    for (const model::Mode mode : {model::Mode::eager, model::Mode::latest, model::Mode::random}) {
      how.mode = mode;
      how.mutation = mutation;
      const model::Report report = run_on_model<Tag>(product, how);
      spoke = spoke || !report.clean() || !product.wrong().empty();
    }
    EXPECT_TRUE(spoke) << model::text(mutation) << " " << mutation.how();
    ++found;
  }
  EXPECT_EQ(found, 18);
}

// Eight lanes of an ldmatrix read 16 bytes of eight rows, and eight of a cp.async write rows side
// by side: each time they are in eight different groups of four banks.
template <class Tag>
void expect_no_conflicts() {
  constexpr int bytes = kernel::row_bytes(Tag::config);
  constexpr atom::SmemSwizzle swizzle = kernel::swizzle(Tag::config);
  const auto group = [](int offset) {
    return atom::apply_swizzle(swizzle, static_cast<std::uint32_t>(offset)) / 16 % 8;
  };
  for (int chunk = 0; chunk < bytes / 16; ++chunk) {
    unsigned read = 0;
    for (int row = 8; row < 16; ++row) read |= 1U << group(row * bytes + chunk * 16);
    EXPECT_EQ(read, 0xffU) << "chunk " << chunk;
  }
  for (int first = 0; first < 32; first += 8) {
    unsigned written = 0;
    for (int lane = first; lane < first + 8; ++lane) written |= 1U << group(lane * 16);
    EXPECT_EQ(written, 0xffU) << "lanes from " << first;
  }
}

TEST(RegisterLoop, LanesMeetInNoBank) {
  expect_no_conflicts<LoopTag<DType::bf16, 64, 3>>();
  expect_no_conflicts<LoopTag<DType::bf16, 128, 3>>();
}

TEST(RegisterLoop, ConfigurationsThatAreNone) {
  using kernel::config_fault;
  kernel::RegisterConfig c{mma_of<DType::bf16>(), 128, 256, 32, 2, 4, 4};
  EXPECT_EQ(config_fault(c, 80), nullptr);
  EXPECT_EQ(config_fault(c, 89), nullptr);
  EXPECT_STREQ(config_fault(c, 75), "the target has no such MMA");
  const auto refused = [](kernel::RegisterConfig wrong, const char* part, int target = 80) {
    const char* fault = config_fault(wrong, target);
    ASSERT_NE(fault, nullptr) << part;
    EXPECT_NE(std::string(fault).find(part), std::string::npos) << fault;
  };
  refused({mma_of<DType::bf16>(), 128, 256, 48, 2, 4, 4}, "tile_k is 64 or 128 bytes");
  refused({mma_of<DType::bf16>(), 120, 256, 32, 2, 4, 4}, "16 rows for every warp");
  refused({mma_of<DType::bf16>(), 128, 40, 32, 2, 4, 4}, "16 columns");
  refused({mma_of<DType::bf16>(), 128, 256, 32, 0, 4, 4}, "1 to 16 warps");
  refused({mma_of<DType::bf16>(), 128, 256, 32, 2, 4, 1}, "2 or more");
  refused({mma_of<DType::bf16>(), 128, 256, 32, 2, 4, 5}, "shared memory", 86);
  refused({mma_of<DType::bf16>(), 64, 48, 32, 4, 1, 3}, "in turns");
  refused({mma_of<DType::e4m3>(), 128, 128, 64, 2, 2, 3}, "no such MMA");
  refused(
      {{atom::MmaKind::warp, 8, 8, 16, DType::s8, DType::s8, DType::s32}, 128, 128, 64, 2, 2, 3},
      "takes 16 rows and 16 or 32 bytes of K");
  c.mma = {atom::MmaKind::warp, 16, 8, 8};
  refused(c, "cp.async is of", 75);
  c.feed = kernel::Feed::registers;
  refused(c, "bf16 begins with sm_80", 75);
  c.result = DType::f16;
  refused(c, "the other one of two stages", 75);
  c.stages = 2;
  EXPECT_EQ(config_fault(c, 75), nullptr);
  c.mma = {atom::MmaKind::quad_pair, 8, 8, 4};
  EXPECT_EQ(config_fault(c, 70), nullptr);
  c.mma.b_major = atom::Major::mn;
  refused(c, "K-major in the stages", 70);
  refused({mma_of<DType::bf16>(), 128, 128, 32, 2, 2, 3}, "cp.async is of", 103);
}

}  // namespace
}  // namespace warpwright::tests
