// Every row of the table of weight forms by itself: what headers call it, packing and unpacking,
// the values that the reference reads, a product on the model for each way to sum, within the row's
// bound, and what is refused of it. A new form is covered by its row.
#include <gmock/gmock.h>

#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "tests/must.h"
#include "tests/weights/some_weights.h"
#include "warpwright/reference/verdict.h"
#include "warpwright/run.h"
#include "warpwright/weights/pack.h"

namespace warpwright {
namespace {

using packed::WeightForm;
using testing::HasSubstr;

constexpr std::int64_t kTokens = 16;
constexpr packed::Extents kExtents{1, 128, 256};

// Weights of a form, packed, and their values.
class FormWeights {
 public:
  explicit FormWeights(const WeightForm& form) : form_(form), format_(packed_format(form)) {
    const std::vector<std::byte> bytes = packed_bytes();
    pieces_.resize(bytes.size() / sizeof(Piece));
    std::memcpy(pieces_.data(), bytes.data(), bytes.size());
  }

  [[nodiscard]] const PackedFormat& format() const { return format_; }
  [[nodiscard]] const std::vector<float>& values() const { return values_; }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span(pieces_));
  }
  // As B of a product.
  [[nodiscard]] MatrixView view() {
    return matrix(pieces_.data() + 1, format_.code, kExtents.n, kExtents.k);
  }

 private:
  struct alignas(128) Piece {
    std::byte bytes[128];
  };

  std::vector<std::byte> packed_bytes() {
    const int first = format_.scale == DType::ue8m0 ? 120 : 0x20;
    const weights::PlainWeights w =
        packed::has_float_codes(format_)
            ? weights::some_e2m1(kExtents, packed::format_of(form_).word, first, first + 6, 1)
            : weights::some_weights(kExtents, format_.group, format_.scale, false,
                                    packed::least_code(form_.storage.encoding));
    values_ = values_of(w);
    const packed::Storage& storage = form_.storage;
    return *weights::pack(source_of(w), {storage.encoding, {}, form_.tokens, storage.exponents});
  }

  const WeightForm& form_;
  PackedFormat format_;
  std::vector<Piece> pieces_;
  std::vector<float> values_;
};

// D = A * B^T of a form, in one group where whole products have no such sums.
struct FormProduct {
  FormProduct(const WeightForm& form, FormWeights& weights, GroupSums sums) {
    std::mt19937 random(2);
    const int bytes = numeric::bits(form.tokens) / 8;
    a.resize(static_cast<std::size_t>(kTokens * kExtents.k * bytes));
    for (std::size_t at = 0; at < a.size(); at += static_cast<std::size_t>(bytes)) {
      const std::uint64_t code =
          numeric::from_double(form.tokens, (static_cast<int>(random() % 17) - 8) / 8.0);
      std::memcpy(a.data() + at, &code, static_cast<std::size_t>(bytes));
    }
    const DType result = form.tokens == DType::f16 ? DType::f16 : DType::bf16;
    o.a = matrix(a.data(), form.tokens, kTokens, kExtents.k);
    o.b = weights.view();
    o.d = matrix(d.data(), result, kTokens, kExtents.n);
    o.packed = PackedWeights{.format = weights.format(), .sums = sums};
    if (sums != GroupSums::exact && sums != GroupSums::open) {
      o.groups = {offsets, OffsetType::int32, 0, LengthSpread::routed, 0};
    }
  }

  std::vector<std::byte> a;
  std::vector<std::uint16_t> d =
      std::vector<std::uint16_t>(static_cast<std::size_t>(kTokens * kExtents.n));
  std::int32_t offsets[2] = {0, kTokens};
  GemmOperands o;
};

TEST(WeightForms, HaveNamesOfTheirOwn) {
  std::set<int> numbers;
  std::set<std::string> words, kinds;
  for (const WeightForm& form : packed::weight_forms) {
    SCOPED_TRACE(form.word);
    EXPECT_TRUE(numbers.insert(form.number).second);
    EXPECT_TRUE(words.insert(form.word).second);
    EXPECT_TRUE(form.bench == nullptr || kinds.insert(form.bench).second);
    EXPECT_EQ(packed::weight_form(form.number), &form);
    EXPECT_EQ(packed::weight_form(form.word), &form);
    EXPECT_EQ(packed::weight_form(packed_format(form)), &form);
    EXPECT_EQ(packed::format_fault(packed_format(form)), "");
    EXPECT_NE(numbers.count(2), 1U) << "which C calls open";
  }
}

TEST(WeightForms, ArePackedReadAndUnpacked) {
  for (const WeightForm& form : packed::weight_forms) {
    SCOPED_TRACE(form.word);
    FormWeights weights(form);
    const auto header = must(weights::parse_packed(weights.bytes()));
    EXPECT_EQ(header->format, packed_format(form));
    const auto unpacked = must(weights::unpack(weights.bytes()));
    EXPECT_EQ(values_of(*unpacked), weights.values());
    FormProduct product(form, weights, GroupSums::exact);
    std::vector<float> read(weights.values().size());
    reference::Operand(product.o, reference::Side::b)
        .read(0, 0, 0, kExtents.n, 0, kExtents.k, read.data(), kExtents.k);
    EXPECT_EQ(read, weights.values());
  }
}

TEST(WeightForms, AreMultipliedOnTheModelByEverySum) {
  for (const WeightForm& form : packed::weight_forms) {
    FormWeights weights(form);
    for (const GroupSums sums : {GroupSums::exact, GroupSums::chained, GroupSums::folded,
                                 GroupSums::table, GroupSums::open}) {
      SCOPED_TRACE(std::string(form.word) + ", " + name(sums));
      FormProduct product(form, weights, sums);
      const auto refused = run(product.o, {});
      if (sums != GroupSums::open && !packed::has_sums(form, sums)) {
        EXPECT_TRUE(refused.has_value());
        continue;
      }
      ASSERT_FALSE(refused) << refused->reason;
      reference::ProductTile expected(product.o, 0x1p-23);
      expected.compute(0, 0, 0, 0, kTokens, kExtents.n);
      int wrong = 0;
      for (std::int64_t i = 0; i < kTokens; ++i) {
        for (std::int64_t j = 0; j < kExtents.n; ++j) {
          const double got = numeric::to_double(
              product.o.d.dtype, product.d[static_cast<std::size_t>(i * kExtents.n + j)]);
          const auto verdict = reference::judge(product.o.d.dtype, got, expected.at(i, j));
          if (!verdict.passed) ++wrong;
        }
      }
      EXPECT_EQ(wrong, 0);
    }
  }
}

TEST(WeightForms, OthersAreRefused) {
  for (const WeightForm& form : packed::weight_forms) {
    SCOPED_TRACE(form.word);
    FormWeights weights(form);
    FormProduct product(form, weights, GroupSums::exact);
    const PackedFormat format = weights.format();
    product.o.a.dtype = DType::f32;
    EXPECT_THAT(run(product.o, {})->reason,
                HasSubstr("packed for tokens of " + std::string(numeric::word(form.tokens))));
    const auto refused = [&](auto change) {
      PackedFormat f = format;
      change(f);
      return packed::format_fault(f);
    };
    EXPECT_THAT(refused([](PackedFormat& f) { f.group = 48; }),
                HasSubstr("share a scale in groups"));
    EXPECT_THAT(refused([](PackedFormat& f) { f.scale = DType::s8; }), HasSubstr("the scales of"));
    EXPECT_THAT(refused([](PackedFormat& f) { f.tokens = DType::s8; }), HasSubstr("for tokens of"));
    EXPECT_THAT(refused([](PackedFormat& f) { f.code = DType::f64; }),
                HasSubstr("weights are int4"));
    const std::string zeros = refused([](PackedFormat& f) { f.zero_points = ZeroPoints::groups; });
    EXPECT_EQ(zeros.empty(), form.storage.zero_points) << zeros;
  }
}

}  // namespace
}  // namespace warpwright
