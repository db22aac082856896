// Kernels that read tokens by index, against the same kernels after the tokens were gathered.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "tests/campaign.h"
#include "tests/draws.h"
#include "tests/kernel/problem.h"
#include "tests/must.h"
#include "warpwright/reference/operand.h"

namespace warpwright::grouped {
namespace {

// Rows of A, or of its scales, in the order of D's; for no token zeros.
struct Gathered {
  Gathered(const GemmOperands& o, const MatrixView& v) : shape(v) {
    const std::int64_t element = numeric::bits(v.dtype) / 8;
    const std::int64_t pitch = (v.columns * element + 15) / 16 * 16 / element;
    bytes.resize(static_cast<std::size_t>(o.m() * pitch * element));
    shape.rows = o.m();
    shape.row_stride = pitch;
    shape.column_stride = 1;
    shape.batch = 1;
    const auto* const from = static_cast<const std::byte*>(v.data);
    for (std::int64_t i = 0; i < o.m(); ++i) {
      const std::int64_t row = reference::row_of_a(o, i);
      for (std::int64_t j = 0; row >= 0 && j < v.columns; ++j) {
        std::memcpy(bytes.data() + (i * pitch + j) * element,
                    from + (row * v.row_stride + j * v.column_stride) * element,
                    static_cast<std::size_t>(element));
      }
    }
    shape.data = bytes.data();
  }

  MatrixView shape;
  std::vector<std::byte> bytes;
};

void expect_bits_of_gathered(const tests::Instance& by_index, const tests::Instance& plain,
                             const tests::Ask& ask) {
  tests::Problem problem(by_index, ask);
  SCOPED_TRACE(problem.text());
  ASSERT_EQ(problem.run(), "");
  const std::vector<std::byte> bits = problem.d_bytes();
  GemmOperands o = problem.operands();
  const Gathered a(o, o.a);
  const bool by_rows = o.scaling == Scaling::row_column || o.scaling == Scaling::blockwise;
  const Gathered scales(o, by_rows ? o.scale_a : o.a);
  o.a = a.shape;
  if (by_rows) o.scale_a = scales.shape;
  o.groups->rows = nullptr;
  o.groups->rows_divisor = 0;
  PlanChoices choices = problem.choices();
  choices.kernel = plain.name;
  const auto made = must(plan(o, problem.facts(), choices));
  problem.poison_d();
  const auto report = must(device::launch_on_model(*made, o));
  EXPECT_TRUE(bits == problem.d_bytes());
}

std::vector<tests::Instance> all_by_index() {
  std::vector<tests::Instance> all = tests::grouped_instances();
  std::erase_if(all, [](const tests::Instance& i) { return !kernel::gathers(i.config); });
  return all;
}

TEST(TokensByIndex, SameBitsAsGatheredTokens) {
  int pairs = 0;
  for (const tests::Instance& i : sampled(all_by_index(), 6)) {
    const std::string name(i.name);
    const std::string plain = name.substr(0, name.size() - std::string("_ix").size());
    for (const tests::Instance& other : tests::grouped_instances()) {
      if (other.name != plain) continue;
      ++pairs;
      unsigned seed = 3;
      for (const Scaling scaling : tests::scalings_in_groups(i.config)) {
        tests::Ask ask = tests::grouped_ask(i, {0, 3, 3, 43, 44, 180}, 136, 200);
        ask.scaling = scaling;
        ask.seed = seed++;
        expect_bits_of_gathered(i, other, ask);
      }
    }
  }
  EXPECT_GT(pairs, 0) << "this build has no kernel and its twin";
}

// By themselves and in pairs, which share tokens in slices of rows, or weights.
TEST(TokensByIndex, InPairs) {
  for (const tests::Instance& i : sampled(all_by_index(), 6)) {
    unsigned seed = 11;
    for (const atom::ClusterShape& cluster : i.facts->clusters) {
      if (atom::cluster_size(cluster) > 2) continue;
      tests::Ask ask = tests::grouped_ask(i, {2, 2, 7, 90, 90, 91}, 136, 136);
      ask.m += 4;  // and rows in no group
      ask.cluster = cluster;
      ask.seed = seed++;
      tests::Problem problem(i, ask);
      const model::Mode mode = seed % 2 == 0 ? model::Mode::latest : model::Mode::random;
      EXPECT_EQ(problem.run(tests::scheduled(mode, seed)), "") << problem.text();
    }
  }
}

}  // namespace
}  // namespace warpwright::grouped
