// Packed int4 weights: their conversion, and every format on the model.
#include <gtest/gtest.h>

#include <random>

#include "tests/campaign.h"
#include "tests/kernel/variants.h"
#include "warpwright/device/model.h"
#include "warpwright/kernel/hopper/decode/table.h"

namespace warpwright::tests {
namespace {

// Every code in every place of a word, beside any others.
TEST(PackedWeightsTest, CodesBecomeE4m3) {
  std::mt19937 random(1);
  for (const Int4Encoding encoding : {Int4Encoding::sm, Int4Encoding::ex}) {
    const std::uint32_t carries = packed::carries_of(encoding);
    for (int round = 0; round < 8 * 16 * 16; ++round) {
      const int place = round / 256;
      std::uint32_t bits = static_cast<std::uint32_t>(random());
      bits &= ~(0xfU << 4 * place);
      bits |= static_cast<std::uint32_t>(round % 16) << 4 * place;
      const std::uint32_t word = packed::word_of(bits);
      const std::uint32_t halves[] = {packed::first_values(word, carries),
                                      packed::second_values(word, carries)};
      EXPECT_EQ(halves[1], packed::first_values(word >> 4 | word << 28, carries));
      for (int i = 0; i < 8; ++i) {
        const double value =
            512 * numeric::to_double(DType::e4m3, halves[i / 4] >> 8 * (i % 4) & 0xff);
        ASSERT_EQ(value, packed::code_of(bits >> 4 * (2 * (i % 4) + i / 4) & 0xf, encoding))
            << std::hex << bits;
      }
    }
  }
}

// Less any zero point: -15 to 15, of which e4m3 has all.
TEST(PackedWeightsTest, DifferencesBecomeE4m3) {
  std::mt19937 random(1);
  for (std::uint32_t zero = 0; zero < 16; ++zero) {
    for (unsigned round = 0; round < 8 * 16 * 4; ++round) {
      const unsigned place = round / 64;
      std::uint32_t bits = static_cast<std::uint32_t>(random());
      bits &= ~(0xfU << 4 * place);
      bits |= round % 16 << 4 * place;
      const std::uint32_t word = packed::word_of(bits);
      const std::uint32_t halves[] = {packed::first_differences(word, zero),
                                      packed::second_differences(word, zero)};
      for (int i = 0; i < 8; ++i) {
        const double value =
            512 * numeric::to_double(DType::e4m3, halves[i / 4] >> 8 * (i % 4) & 0xff);
        const int code = packed::code_of(bits >> 4 * (2 * (i % 4) + i / 4) & 0xf, Int4Encoding::ex);
        ASSERT_EQ(value, code + 8 - static_cast<int>(zero)) << std::hex << bits << " " << zero;
      }
    }
  }
}

// A table gives what a product rounded to e4m3 is: with scales of bf16, whose products f16 holds,
// the same as the way through f16 does.
TEST(PackedWeightsTest, TablesAreScaledCodes) {
  std::mt19937 random(1);
  for (int round = 0; round < 512; ++round) {
    // As the main loop scales them: in the largest group below 2^14.
    const float scale = std::ldexp(static_cast<float>(128 + random() % 128), 6 - round % 16);
    const kernel::CodeTable table = kernel::CodeTable::of(scale);
    const std::uint32_t factor = isa::pack<DType::f16>(scale, scale);
    const std::uint32_t word = packed::word_of(static_cast<std::uint32_t>(random()));
    const std::uint32_t codes[] = {packed::first_values(word, 0), packed::second_values(word, 0)};
    const std::uint32_t found[] = {kernel::look_up<false>(word, table),
                                   kernel::look_up<true>(word, table)};
    for (int half = 0; half < 2; ++half) {
      ASSERT_EQ(found[half], kernel::fold(codes[half], factor)) << round;
      for (int i = 0; i < 4; ++i) {
        const double code = numeric::to_double(DType::e4m3, codes[half] >> 8 * i & 0xff);
        const auto right = numeric::from_double(DType::e4m3, code * static_cast<double>(scale));
        ASSERT_EQ(found[half] >> 8 * i & 0x7f, right & 0x7f) << round << " " << code;
      }
    }
  }
}

// Groups, types of scales and encodings are chosen when the kernel runs: each by every kernel.
TEST(PackedWeightsTest, EveryFormat) {
  struct Job {
    Instance instance;
    unsigned format = 0;
  };
  std::vector<Job> jobs;
  for (const Instance& i : instances()) {
    for (unsigned f = 0; kernel::packed_a(i.config) && f < 18; ++f) jobs.push_back({i, f});
  }
  ASSERT_FALSE(jobs.empty()) << "this build has no kernel of packed weights";
  for (const Job& job : sampled(jobs, 9)) {
    Ask ask;
    ask.m = job.instance.config.tile_n / 2 + 3;
    ask.n = 64 + 128 + 7;  // the last tile has one half
    if (job.instance.config.gated) ask.n = 3 * gated_unit(job.instance.config);
    ask.k = 128 * 3 + 16 * static_cast<int>(job.format % 5);
    ask.seed = job.format;
    const Variant variant(job.instance, ask);
    SCOPED_TRACE(variant.text());
    const GemmOperands operands = variant.operands();
    const auto made = plan(operands, model_facts(variant.sms()), variant.choices());
    ASSERT_TRUE(made.ok()) << made.reason();
    device::ModelOptions options;
    options.mode = job.format % 2 == 0 ? model::Mode::random : model::Mode::latest;
    const auto report = device::launch_on_model(*made, operands, options);
    ASSERT_TRUE(report.ok()) << report.reason();
    EXPECT_TRUE(report->clean()) << report->text();
    EXPECT_EQ(variant.fault(), "");
  }
}

// A K that ends within its first group leaves groups of zeros behind it. Their scales are the last
// one's, so the quotients of chained sums are 1, and nothing of the sums is cut off again.
TEST(PackedWeightsTest, ChainedSumsOfOneGroupAreExact) {
  const auto chained = one_with("chained sums", [](const auto& c) {
    return kernel::packed_a(c) && group_sums(c) == GroupSums::chained;
  });
  ASSERT_TRUE(chained);
  for (int k = 1; k <= 12; ++k) {
    Ask ask;
    ask.m = 9;
    ask.n = 130;
    ask.k = k;
    ask.seed = k % 2 == 0 ? 0 : 12;  // groups of 32, scales of bf16 and f32
    const Variant variant(*chained, ask);
    SCOPED_TRACE(variant.text());
    GemmOperands operands = variant.operands();
    ASSERT_EQ(operands.packed->format.group, 32);
    const auto bits_of = [&](const PlanChoices& choices) {
      std::vector<std::uint16_t> bits;
      const auto made = plan(operands, model_facts(variant.sms()), choices);
      EXPECT_TRUE(made.ok()) << made.reason();
      if (!made.ok() || !device::launch_on_model(*made, operands).ok()) return bits;
      const auto* const d = static_cast<const std::uint16_t*>(operands.d.data);
      for (int i = 0; i < ask.m; ++i) {
        const auto* const row = d + i * operands.d.row_stride;
        bits.insert(bits.end(), row, row + ask.n);
      }
      return bits;
    };
    const auto in_tensor_core = bits_of(variant.choices());
    operands.packed->sums = GroupSums::exact;
    const auto added = bits_of({});
    ASSERT_FALSE(added.empty());
    EXPECT_EQ(in_tensor_core, added);
  }
}

// A scale is 512 times what it says where a kernel forgets that codes are e4m3 / 512; codes that
// are too large by one, tiles in another order: all of it shows.
TEST(PackedWeightsTest, WrongWeightsAreSeen) {
  const auto instance = one_with("packed weights", [](const auto& c) {
    return kernel::packed_a(c) && sums_of(c) == kernel::Sums::promoted;
  });
  ASSERT_TRUE(instance);
  Ask ask;
  ask.m = 5;
  ask.n = 130;
  ask.k = 256;
  ask.seed = 6;
  const Variant variant(*instance, ask);
  GemmOperands operands = variant.operands();
  const auto wrong = [&](const GemmOperands& o) {
    const auto made = plan(o, model_facts(variant.sms()), variant.choices());
    EXPECT_TRUE(made.ok()) << made.reason();
    if (!made.ok()) return false;
    EXPECT_TRUE(device::launch_on_model(*made, o).ok());
    return !variant.fault().empty();
  };
  EXPECT_FALSE(wrong(operands));
  GemmOperands other = operands;
  other.packed->format.encoding =
      operands.packed->format.encoding == Int4Encoding::ex ? Int4Encoding::sm : Int4Encoding::ex;
  EXPECT_TRUE(wrong(other));
  EXPECT_FALSE(wrong(operands));
}

}  // namespace
}  // namespace warpwright::tests
