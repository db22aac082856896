// The probes on the model, compared with what an H200 answered.
#include "tests/probes/probes.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "tests/probes/h200.h"
#include "warpwright/model/testing.h"

namespace warpwright::probes {
namespace {

namespace testing = model::testing;

isa::TensorMap map_of(const Copy& c, std::uint32_t* base) {
  model::TensorMapFields f;
  const int size = c.type == DType::f32 ? 4 : 2;
  f.base = reinterpret_cast<std::uintptr_t>(base);
  f.rank = 2;
  f.extents = {static_cast<std::uint64_t>(c.columns), static_cast<std::uint64_t>(c.rows)};
  f.strides = {static_cast<std::uint64_t>(c.pitch * size)};
  f.box = {static_cast<std::uint16_t>(c.box_columns), static_cast<std::uint16_t>(c.box_rows)};
  f.element_bits = static_cast<std::uint8_t>(8 * size);
  f.swizzle = c.swizzle;
  f.element_kind = c.type == DType::f32 ? 0 : (c.type == DType::f16 ? 1 : 2);
  EXPECT_EQ(model::invalid(f), std::nullopt);
  return model::encode(f);
}

class ProbeTest : public ::testing::TestWithParam<Probe> {};

TEST_P(ProbeTest, ModelAnswersAsTheH200) {
  const Probe& p = GetParam();
  const Answer* known = answer_of(p.name);
  const bool traps = known != nullptr && known->words == 0;
  if (known != nullptr && known->words > 0) {
    ASSERT_EQ(known->words, p.words);
  }
  testing::Buffer<std::uint32_t> tensor("tensor", tensor_words);
  testing::Buffer<std::uint32_t> out("out", out_words);
  for (int i = 0; i < tensor_words; ++i) tensor[static_cast<std::size_t>(i)] = tensor_word(p, i);
  Input in{};
  in.map = map_of(p.copy, tensor.data());
  in.copy = p.copy;
  in.kind = p.kind;
  in.words = p.words;
  in.stride = p.stride;
  in.tensor = tensor.data();
  in.out = out.data();
  const auto compare = [&] {
    std::ostringstream wrong;
    const std::uint32_t* answer = answers_in_tensor(p.kind) ? tensor.data() : out.data();
    for (int i = 0; i < p.words && !p.open && known != nullptr && known->words > 0; ++i) {
      if (answer[i] == known->word[i]) continue;
      wrong << "word " << i << std::hex << ": model " << answer[i] << ", H200 " << known->word[i]
            << std::dec << "; ";
    }
    return wrong.str();
  };
  // Other schedules elect other lanes than an H200 does: the ISA leaves it open.
  testing::Schedules schedules{.random = 2};
  if (p.kind == Kind::elect) schedules.random = schedules.starve = 0;
  const testing::Launch launch{.ctas = cluster_size(p),
                               .cluster_size = cluster_size(p),
                               .threads = threads,
                               .shared_bytes = shared_bytes,
                               .schedules = schedules,
                               .verify = compare};
  const testing::Outcome outcome = testing::run([&] { body(in); }, launch, tensor, out);
  if (traps) {
    EXPECT_ONLY_FINDINGS(outcome, model::Check::tensor_map);
  } else if (*p.finds != '\0') {
    for (const testing::Run& run : outcome.runs) {
      ASSERT_FALSE(run.report.clean()) << run.schedule;
      EXPECT_EQ(code(run.report.findings.front().check), p.finds) << run.report.text();
    }
  } else {
    EXPECT_CLEAN(outcome);
  }
  if (known == nullptr) GTEST_SKIP() << "clean, but no H200's answer is recorded";
}

INSTANTIATE_TEST_SUITE_P(H200, ProbeTest, ::testing::ValuesIn(all),
                         [](const auto& probe) { return std::string(probe.param.name); });

}  // namespace
}  // namespace warpwright::probes
