// wgmma with sums of f16, two in a register, and of s32, which wrap or saturate: from texts,
// against products by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/must.h"
#include "tests/ptx_texts/texts.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::tests {
namespace {

constexpr int kGroup = 128;
constexpr int kRowsOfA = 64;

struct WgmmaCase {
  DType a = DType::s8;
  DType b = DType::s8;
  DType sums = DType::s32;
  bool saturates = false;
  bool a_in_registers = false;
  int n = 16;

  [[nodiscard]] int k() const { return 256 / numeric::bits(a); }
  [[nodiscard]] bool halves() const { return sums == DType::f16; }
  [[nodiscard]] int registers() const { return n / (halves() ? 4 : 2); }
  [[nodiscard]] std::string opcode() const {
    const auto name = [](DType type) { return "." + std::string(numeric::name(type)); };
    return "wgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k" + std::to_string(k()) +
           (saturates ? ".satfinite" : "") + name(sums) + name(a) + name(b);
  }
};

// Elements as codes, row * k + k, and sums, row * n + column.
struct WgmmaNumbers {
  std::vector<std::uint32_t> a, b;
  std::vector<std::int64_t> sums;
};
WgmmaNumbers numbers_of(const WgmmaCase& c, unsigned seed) {
  std::mt19937 random(seed);
  const auto element = [&](DType type) {
    if (!numeric::is_float(type)) return static_cast<std::uint32_t>(random() & 0xffU);
    return static_cast<std::uint32_t>(
        numeric::from_double(type, static_cast<double>(random() % 9) - 4));
  };
  WgmmaNumbers x;
  for (int i = 0; i < kRowsOfA * c.k(); ++i) x.a.push_back(element(c.a));
  for (int i = 0; i < c.n * c.k(); ++i) x.b.push_back(element(c.b));
  for (int i = 0; i < kRowsOfA * c.n; ++i) {
    // Near the ends of s32; where f16 has only even numbers.
    x.sums.push_back(c.halves() ? 2 * static_cast<std::int64_t>(random() % 1800) - 1800
                                : static_cast<std::int32_t>(0x7fff0000U + (random() & 0x1ffffU)));
  }
  return x;
}

// A whole number as f16 has it: to even where it must be rounded.
std::int64_t as_half(std::int64_t x) {
  return static_cast<std::int64_t>(
      std::abs(x) < 2048 ? static_cast<double>(x) : 2 * std::nearbyint(static_cast<double>(x) / 2));
}
std::vector<std::int64_t> product_of(const WgmmaCase& c, const WgmmaNumbers& x, int times) {
  const auto value = [](DType type, std::uint32_t code) {
    return static_cast<std::int64_t>(numeric::to_double(type, code));
  };
  std::vector<std::int64_t> sums = x.sums;
  for (int turn = 0; turn < times; ++turn) {
    for (int i = 0; i < kRowsOfA; ++i) {
      for (int j = 0; j < c.n; ++j) {
        std::int64_t& sum = sums[index_of(i * c.n + j)];
        for (int k = 0; k < c.k(); ++k) {
          sum +=
              value(c.a, x.a[index_of(i * c.k() + k)]) * value(c.b, x.b[index_of(j * c.k() + k)]);
        }
        const std::int64_t most = 0x7fffffff;
        if (c.halves()) {
          sum = as_half(sum);
        } else if (c.saturates) {
          sum = std::min(std::max(sum, -most - 1), most);
        } else {
          sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum));
        }
      }
    }
  }
  return sums;
}

// The words of a thread's registers, of sums by row and column.
std::vector<std::uint32_t> in_registers(const WgmmaCase& c, const std::vector<std::int64_t>& sums) {
  std::vector<std::uint32_t> words(index_of(kGroup * c.registers()));
  for (int t = 0; t < kGroup; ++t) {
    for (int v = 0; v < c.n / 2; ++v) {
      const int row = t / 32 * 16 + t % 32 / 4 + v / 2 % 2 * 8;
      const int column = v / 4 * 8 + t % 4 * 2 + v % 2;
      const std::int64_t sum = sums[index_of(row * c.n + column)];
      if (c.halves()) {
        const auto code =
            static_cast<std::uint32_t>(numeric::from_double(DType::f16, static_cast<double>(sum)));
        words[index_of(t * c.registers() + v / 2)] |= code << v % 2 * 16;
      } else {
        words[index_of(t * c.registers() + v)] = static_cast<std::uint32_t>(sum);
      }
    }
  }
  return words;
}

// Rows of elements as a K-major descriptor without a swizzle finds them; and the four registers of
// a thread's A.
void add_rows(const WgmmaCase& c, const std::vector<std::uint32_t>& codes, int rows,
              std::vector<std::uint8_t>& bytes) {
  const int size = numeric::bits(c.a) / 8;
  const std::size_t begin = bytes.size();
  bytes.resize(begin + index_of(rows * 32));
  for (int row = 0; row < rows; ++row) {
    for (int at = 0; at < 32; ++at) {
      const std::uint32_t code = codes[index_of(row * c.k() + at / size)];
      bytes[begin + index_of(row * 16 + at / 16 * 16 * rows + at % 16)] =
          static_cast<std::uint8_t>(code >> at % size * 8);
    }
  }
}
std::vector<std::uint32_t> registers_of_a(const WgmmaCase& c, const WgmmaNumbers& x) {
  const int per_word = 32 / numeric::bits(c.a);
  std::vector<std::uint32_t> words(std::size_t{4} * kGroup);
  for (int i = 0; i < 4 * kGroup * per_word; ++i) {
    const int t = i / per_word / 4;
    const int word = i / per_word % 4;
    const int row = t / 32 * 16 + t % 32 / 4 + word % 2 * 8;
    const int k = t % 4 * per_word + i % per_word + word / 2 * (c.k() / 2);
    words[index_of(i / per_word)] |= x.a[index_of(row * c.k() + k)]
                                     << i % per_word * numeric::bits(c.a);
  }
  return words;
}

std::string list_named(const std::string& name, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    list.append(i == 0 ? "{%" : ", %").append(name).append(std::to_string(i));
  }
  return list + "}";
}

// A thread's `count` words from `from`, or to it, as registers of that name.
std::string moved(const std::string& from, const std::string& name, int count, bool load) {
  std::string text = "mul.wide.u32 %w3, %u1, " + std::to_string(4 * count) + ";\nadd.s64 %w3, " +
                     from + ", %w3;\n";
  for (int i = 0; i < count; ++i) {
    const std::string at = "[%w3+" + std::to_string(4 * i) + "]";
    const std::string word = "%" + name + std::to_string(i);
    text.append(load ? "ld.global.u32 " : "st.global.u32 ").append(load ? word : at);
    text.append(", ").append(load ? at : word).append(";\n");
  }
  return text;
}

// Twice the product on top of the sums. `in`: shared memory's words, the sums, A's registers.
std::string wgmma_text(const WgmmaCase& c, const std::string& between = "") {
  const int words = (kRowsOfA + c.n) * 8;
  const auto descriptor = [](const char* to, int offset, int rows) {
    const std::uint64_t word = static_cast<std::uint64_t>(rows) << 16 | std::uint64_t{8}
                                                                            << 32;  // in 16 bytes
    return "add.u32 %u3, %u0, " + std::to_string(offset) +
           ";\nand.b32 %u3, %u3, 262143;\nshr.u32 %u3, %u3, 4;\ncvt.u64.u32 " + to +
           ", %u3;\nor.b64 " + to + ", " + to + ", " + std::to_string(word) + ";\n";
  };
  std::string body =
      ".reg .b32 %u<5>, %d<128>, %a<4>;\n.reg .b64 %w<6>;\n.reg .pred %q;\nmov.u32 %u0, sm;\n"
      "mov.u32 %u1, %tid.x;\nmov.u32 %u2, %u1;\nCOPY:\nsetp.ge.u32 %q, %u2, " +
      std::to_string(words) +
      ";\n@%q bra COPIED;\nmul.wide.u32 %w3, %u2, 4;\nadd.s64 %w3, %i, %w3;\n"
      "ld.global.u32 %u3, [%w3];\nshl.b32 %u4, %u2, 2;\nadd.u32 %u4, %u0, %u4;\n"
      "st.shared.u32 [%u4], %u3;\nadd.u32 %u2, %u2, 128;\nbra.uni COPY;\nCOPIED:\n"
      "fence.proxy.async.shared::cta;\nbar.sync 0;\nadd.s64 %w1, %i, " +
      std::to_string(4 * words) + ";\n" + moved("%w1", "d", c.registers(), true) +
      "add.s64 %w2, %w1, " + std::to_string(4 * kGroup * c.registers()) + ";\n" +
      moved("%w2", "a", 4, true) + descriptor("%w4", 0, kRowsOfA) +
      descriptor("%w5", kRowsOfA * 32, c.n) + "setp.eq.u32 %q, %u1, %u1;\n" +
      "wgmma.fence.sync.aligned;\n";
  for (int turn = 0; turn < 2; ++turn) {
    body.append(c.opcode()).append(" ").append(list_named("d", c.registers())).append(", ");
    body += c.a_in_registers ? list_named("a", 4) : "%w4";
    body += ", %w5, %q";
    if (numeric::is_float(c.a)) body += ", 1, 1";
    if (numeric::bits(c.a) == 16) body += c.a_in_registers ? ", 0" : ", 0, 0";
    body += ";\n";
  }
  body += "wgmma.commit_group.sync.aligned;\n" + between + "wgmma.wait_group.sync.aligned 0;\n";
  return entry(body + moved("%o", "d", c.registers(), false));
}

Given given(const WgmmaCase& c, const WgmmaNumbers& x) {
  std::vector<std::uint8_t> bytes;
  add_rows(c, x.a, kRowsOfA, bytes);
  add_rows(c, x.b, c.n, bytes);
  std::vector<std::uint32_t> in(bytes.size() / 4);
  std::memcpy(in.data(), bytes.data(), bytes.size());
  for (const auto& part : {in_registers(c, x.sums), registers_of_a(c, x)}) {
    in.insert(in.end(), part.begin(), part.end());
  }
  return {.threads = kGroup, .words = kGroup * c.registers(), .in = in, .shared = 32768};
}

void expect_wgmma(const WgmmaCase& c) {
  SCOPED_TRACE(c.opcode() + (c.a_in_registers ? ", A in registers" : ""));
  static unsigned turn = 0;
  const WgmmaNumbers x = numbers_of(c, ++turn);
  Given g = given(c, x);
  g.mode = turn % 2 == 0 ? model::Mode::latest : model::Mode::eager;
  const Ran ran = run(wgmma_text(c), g);
  EXPECT_TRUE(ran.report.clean()) << ran.report.text();
  EXPECT_EQ(ran.out, in_registers(c, product_of(c, x, 2)));
}

TEST(WgmmaSums, OfIntegers) {
  for (const bool a_in_registers : {false, true}) {
    for (const bool saturates : {false, true}) {
      for (const DType a : {DType::s8, DType::u8}) {
        for (const DType b : {DType::s8, DType::u8}) {
          expect_wgmma({a, b, DType::s32, saturates, a_in_registers});
        }
      }
    }
  }
  for (const int n : {8, 24, 48, 256}) expect_wgmma({.n = n});
}

TEST(WgmmaSums, OfHalves) {
  for (const bool a_in_registers : {false, true}) {
    expect_wgmma({DType::f16, DType::f16, DType::f16, false, a_in_registers});
    expect_wgmma({DType::e4m3, DType::e5m2, DType::f16, false, a_in_registers, 8});
    expect_wgmma({DType::e5m2, DType::e4m3, DType::f16, false, a_in_registers, 40});
  }
  expect_wgmma({DType::f16, DType::f16, DType::f16, false, false, 256});
}

TEST(WgmmaSums, BelongToTheTensorCore) {
  for (const WgmmaCase& c : {WgmmaCase{}, WgmmaCase{DType::f16, DType::f16, DType::f16}}) {
    const WgmmaNumbers x = numbers_of(c, 1);
    const std::string last = "%d" + std::to_string(c.registers() - 1);
    const Ran touched = run(wgmma_text(c, "mov.u32 %u4, " + last + ";\n"), given(c, x));
    EXPECT_NE(finding(touched.report, "W2"), "") << touched.report.text();
  }
}

TEST(WgmmaSums, AreOfTheirShapes) {
  EXPECT_EQ(refusal_of(wgmma_text({})), "");
  expect_contains(refusal_of(wgmma_text({.n = 40})), "is not in the subset");
  EXPECT_EQ(refusal_of(replaced(wgmma_text({}), "%w4, %w5, %q", "%w4, %w5, %q, 1, 1")),
            "wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.s8 has 6 operands, and takes 4");
  const std::string halves = wgmma_text({DType::f16, DType::f16, DType::f16});
  EXPECT_EQ(refusal_of(replaced(halves, "{%d0, %d1, %d2, %d3}", "{%d0, %d1}")),
            "wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 takes a list of 4 registers");
}

}  // namespace
}  // namespace warpwright::tests
