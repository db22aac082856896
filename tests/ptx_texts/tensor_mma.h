// A text with tcgen05.mma: operands that lie in shared memory without a swizzle, or A in tensor
// memory; sums that tensor memory may hold before; everything that the accumulator's lanes hold
// behind it. What it should be is computed by hand.
#pragma once

#include <functional>
#include <random>

#include "tests/ptx_texts/texts.h"

namespace warpwright::tests {

/// Elements of 8 bits, and one instruction of K 32 a step.
struct MmaCase {
  std::string opcode = "tcgen05.mma.cta_group::1.kind::i8";
  std::string target = "sm_100a";
  int m = 128;
  int n = 64;
  int steps = 2;
  bool pair = false;
  bool a_is_signed = true;
  bool b_is_signed = true;
  bool a_is_mn = false;
  bool b_is_mn = false;
  bool a_in_tmem = false;
  bool saturates = false;
  bool weights_stay = false;
  bool adds_first = false;  ///< the first instruction adds to what is there
  std::string more = {};    ///< behind the predicate
  std::vector<std::uint32_t> masks = {};
  std::uint32_t flips = 0;  ///< of the instruction descriptor
  std::string before = {};
  std::string between = {};  ///< two instructions
  std::string behind = {};   ///< the MMAs, by the thread that issues them

  [[nodiscard]] int ctas() const { return pair ? 2 : 1; }
  [[nodiscard]] int rows() const { return m / ctas(); }
  /// Parts of N side by side in the lanes, and the columns of one.
  [[nodiscard]] int folds() const { return weights_stay ? 128 / m : pair && m == 128 ? 2 : 1; }
  [[nodiscard]] int columns() const { return n / folds(); }
  [[nodiscard]] std::uint32_t instruction() const {
    const auto u = [](int x) { return static_cast<std::uint32_t>(x); };
    return (u(saturates) << 3 | 2U << 4 | u(a_is_signed) << 7 | u(b_is_signed) << 10 |
            u(a_is_mn) << 15 | u(b_is_mn) << 16 | u(n / 8) << 17 | u(m / 16) << 24) ^
           flips;
  }
  /// The lane that a CTA's row has in a part of N.
  [[nodiscard]] int lane(int row, int part) const {
    if (folds() > 1) return row + rows() * part;
    return m == 64 ? row % 16 + row / 16 * 32 : row;
  }
};

inline constexpr int kStepDepth = 32;
inline constexpr int kLanes = 128;

/// What a case multiplies: all rows of A and of B, codes of 8 bits, and sums for every lane.
struct MmaNumbers {
  std::vector<std::uint8_t> a, b;   // row * depth + k
  std::vector<std::uint32_t> sums;  // (cta * 128 + lane) * columns + column
};

inline MmaNumbers mma_numbers(const MmaCase& c, unsigned seed) {
  std::mt19937 random(seed);
  MmaNumbers x;
  x.a.resize(index_of(c.m * c.steps * kStepDepth));
  x.b.resize(index_of(c.n * c.steps * kStepDepth));
  for (auto* codes : {&x.a, &x.b}) {
    for (std::uint8_t& code : *codes) code = static_cast<std::uint8_t>(random() >> 8);
  }
  x.sums.resize(index_of(c.ctas() * kLanes * c.columns()));
  // Near the ends of s32, where sums wrap or saturate.
  for (std::uint32_t& sum : x.sums) sum = 0x7fff0000U + (random() & 0x1ffffU);
  return x;
}

/// What the accumulators hold in the end. `is_zero(column)`: B's column is taken for zeros.
inline std::vector<std::uint32_t> mma_sums(const MmaCase& c, const MmaNumbers& x,
                                           const std::function<bool(int)>& is_zero = {}) {
  std::vector<std::uint32_t> sums = x.sums;
  const auto value = [](std::uint8_t code, bool is_signed) {
    return std::int64_t{is_signed ? static_cast<std::int8_t>(code) : code};
  };
  const int depth = c.steps * kStepDepth;
  for (int i = 0; i < c.m; ++i) {
    for (int j = 0; j < c.n; ++j) {
      const int lane = c.lane(i % c.rows(), j / c.columns());
      if (!c.masks.empty()) {
        const std::size_t at = index_of(i / c.rows() * 4 + lane / 32);
        if ((c.masks[at] >> lane % 32 & 1) != 0) continue;
      }
      std::uint32_t& cell =
          sums[index_of((i / c.rows() * kLanes + lane) * c.columns() + j % c.columns())];
      for (int step = 0; step < c.steps; ++step) {
        std::int64_t sum =
            step > 0 || c.adds_first ? static_cast<std::int32_t>(cell) : std::int64_t{0};
        for (int k = step * kStepDepth; k < (step + 1) * kStepDepth; ++k) {
          if (is_zero && is_zero(j)) break;
          sum += value(x.a[index_of(i * depth + k)], c.a_is_signed) *
                 value(x.b[index_of(j * depth + k)], c.b_is_signed);
        }
        if (c.saturates) sum = std::min(std::max(sum, -(std::int64_t{1} << 31)), 0x7fffffffL);
        cell = static_cast<std::uint32_t>(sum);
      }
    }
  }
  return sums;
}

/// The bytes of an operand's rows, step by step, as a descriptor without a swizzle finds them.
inline void add_operand(const MmaCase& c, const std::vector<std::uint8_t>& codes, int first,
                        int rows, bool is_mn, std::vector<std::uint8_t>& image) {
  const int depth = c.steps * kStepDepth;
  for (int step = 0; step < c.steps; ++step) {
    const std::size_t begin = image.size();
    image.resize(begin + index_of(rows * kStepDepth));
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < kStepDepth; ++k) {
        const int at =
            is_mn ? k * 16 + row / 16 * 512 + row % 16 : row * 16 + k / 16 * 16 * rows + k % 16;
        image[begin + index_of(at)] =
            codes[index_of((first + row) * depth + step * kStepDepth + k)];
      }
    }
  }
}

/// What a CTA reads from global memory: the operands as they lie in shared memory, then by lanes A
/// as it lies in tensor memory, where it does, and the sums.
inline std::vector<std::uint32_t> mma_image(const MmaCase& c, const MmaNumbers& x, int cta) {
  std::vector<std::uint8_t> bytes;
  if (!c.a_in_tmem) add_operand(c, x.a, cta * c.rows(), c.rows(), c.a_is_mn, bytes);
  add_operand(c, x.b, cta * c.n / c.ctas(), c.n / c.ctas(), c.b_is_mn, bytes);
  const int depth = c.steps * kStepDepth;
  const std::size_t begin = bytes.size();
  if (c.a_in_tmem) bytes.resize(begin + index_of(kLanes * depth), 0xee);
  for (int row = 0; c.a_in_tmem && row < c.rows(); ++row) {
    for (int part = 0; part < c.folds(); ++part) {
      std::copy_n(x.a.begin() + std::ptrdiff_t{cta * c.rows() + row} * depth, depth,
                  bytes.begin() + static_cast<std::ptrdiff_t>(begin) +
                      std::ptrdiff_t{c.lane(row, part)} * depth);
    }
  }
  std::vector<std::uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  const auto sums = x.sums.begin() + std::ptrdiff_t{cta} * kLanes * c.columns();
  words.insert(words.end(), sums, sums + std::ptrdiff_t{kLanes} * c.columns());
  return words;
}

// --- the text ------------------------------------------------------------------------------------
// %u0: shared memory, 16 bytes for a barrier and an address, then the operands from 1024 on; %u1:
// tensor memory; %u2: of the warp's lanes; %u3: the thread; %w1: what the CTA reads; %w2: writes.

/// Every thread brings its part of shared memory, of `words` words, and goes on in `%w1` behind it.
inline std::string copies_operands(int words) {
  std::string text = "mov.u32 %u4, %u3;\nCOPY:\nsetp.ge.u32 %q0, %u4, " + std::to_string(words) +
                     ";\n@%q0 bra COPIED;\nmul.wide.u32 %w3, %u4, 4;\nadd.s64 %w3, %w1, %w3;\n"
                     "ld.global.u32 %u5, [%w3];\nshl.b32 %u6, %u4, 2;\nadd.u32 %u6, %u0, %u6;\n"
                     "st.shared.u32 [%u6+1024], %u5;\nadd.u32 %u4, %u4, 128;\nbra.uni COPY;\n"
                     "COPIED:\nfence.proxy.async.shared::cta;\n";
  return text + "add.s64 %w1, %w1, " + std::to_string(4 * words) + ";\n";
}

/// Every lane stores its words of `%w1` to the columns from `first` on, and goes on behind them.
inline std::string stores_lanes(int first, int columns) {
  std::string text =
      "mul.wide.u32 %w3, %u3, " + std::to_string(4 * columns) + ";\nadd.s64 %w3, %w1, %w3;\n";
  for (int i = 0; i < columns; ++i) {
    text += "ld.global.u32 %u5, [%w3+" + std::to_string(4 * i) + "];\nadd.u32 %u6, %u2, " +
            std::to_string(first + i) + ";\ntcgen05.st.sync.aligned.32x32b.x1.b32 [%u6], {%u5};\n";
  }
  return text + "tcgen05.wait::st.sync.aligned;\nadd.s64 %w1, %w1, " +
         std::to_string(4 * kLanes * columns) + ";\n";
}

inline std::string loads_lanes(int columns) {
  std::string text =
      "mul.wide.u32 %w3, %u3, " + std::to_string(4 * columns) + ";\nadd.s64 %w3, %w2, %w3;\n";
  for (int i = 0; i < columns; ++i) {
    text += "add.u32 %u6, %u2, " + std::to_string(i) +
            ";\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%u7}, [%u6];\n"
            "tcgen05.wait::ld.sync.aligned;\nst.global.u32 [%w3+" +
            std::to_string(4 * i) + "], %u7;\n";
  }
  return text;
}

/// A descriptor in a register, of shared memory from %u0 + `offset` on.
inline std::string descriptor(const std::string& to, int offset, int rows, bool is_mn) {
  const std::uint64_t leading = is_mn ? 128 : static_cast<std::uint64_t>(16 * rows);
  const std::uint64_t stride = is_mn ? 512 : 128;
  const std::uint64_t word = leading / 16 << 16 | stride / 16 << 32 | std::uint64_t{1} << 46;
  return "add.u32 %u8, %u0, " + std::to_string(offset) +
         ";\nand.b32 %u8, %u8, 262143;\nshr.u32 %u8, %u8, 4;\ncvt.u64.u32 " + to +
         ", %u8;\nor.b64 " + to + ", " + to + ", " + std::to_string(word) + ";\n";
}

inline constexpr int kColumnsOfA = 256;

inline std::string multiplies(const MmaCase& c) {
  const int bytes_a = c.a_in_tmem ? 0 : c.rows() * kStepDepth;
  const int bytes_b = c.n / c.ctas() * kStepDepth;
  std::string text = c.before + "mov.u32 %u9, " + std::to_string(c.instruction()) + ";\n";
  std::string masks;
  for (std::size_t i = 0; i < c.masks.size(); ++i) {
    const std::string mask = "%m" + std::to_string(i);
    text += "mov.u32 " + mask + ", " + std::to_string(c.masks[i]) + ";\n";
    masks += (masks.empty() ? " {" : ", ") + mask;
  }
  if (!masks.empty()) masks += "},";
  for (int step = 0; step < c.steps; ++step) {
    if (step > 0) text += c.between;
    std::string a = "%w4";
    if (c.a_in_tmem) {
      text += "add.u32 %u10, %u1, " + std::to_string(kColumnsOfA + 8 * step) + ";\n";
      a = "[%u10]";
    } else {
      text += descriptor("%w4", 1024 + step * bytes_a, c.rows(), c.a_is_mn);
    }
    text += descriptor("%w5", 1024 + c.steps * bytes_a + step * bytes_b, c.n / c.ctas(), c.b_is_mn);
    text += "setp.ne.u32 %q2, " + std::to_string(step + (c.adds_first ? 1 : 0)) + ", 0;\n";
    text.append(c.opcode).append(" [%u1], ").append(a).append(", %w5, %u9,");
    text.append(masks).append(" %q2").append(c.more).append(";\n");
  }
  text += c.behind;
  const std::string commit = "tcgen05.commit.cta_group::" + std::to_string(c.ctas()) +
                             ".mbarrier::arrive::one.shared::cluster";
  return text + (c.pair ? "mov.b16 %v0, 3;\n" + commit + ".multicast::cluster.b64 [%u0], %v0;\n"
                        : commit + ".b64 [%u0];\n");
}

/// The whole kernel, of 128 threads.
inline std::string mma_text(const MmaCase& c) {
  const std::string group = ".cta_group::" + std::to_string(c.ctas());
  const std::string meet =
      c.pair ? "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n" : "";
  const int words = (c.a_in_tmem ? 0 : c.rows() * c.steps * kStepDepth / 4) +
                    c.n / c.ctas() * c.steps * kStepDepth / 4;
  const int all =
      words + (c.a_in_tmem ? kLanes * c.steps * kStepDepth / 4 : 0) + kLanes * c.columns();
  std::string body =
      ".reg .b32 %u<12>, %m<8>;\n.reg .b64 %w<6>;\n.reg .pred %q<4>;\n.reg .b16 %v<1>;\n"
      "mov.u32 %u0, sm;\nmov.u32 %u3, %tid.x;\nmov.u32 %u11, %cluster_ctarank;\n"
      "mul.wide.u32 %w1, %u11, " +
      std::to_string(4 * all) +
      ";\nadd.s64 %w1, %i, %w1;\n"
      "mul.wide.u32 %w2, %u11, " +
      std::to_string(4 * kLanes * c.columns()) + ";\nadd.s64 %w2, %o, %w2;\n" +
      copies_operands(words) + meet +
      "setp.ge.u32 %q1, %u3, 32;\n@%q1 bra ALLOCATED;\ntcgen05.alloc" + group +
      ".sync.aligned.shared::cta.b32 [%u0+8], 512;\ntcgen05.relinquish_alloc_permit" + group +
      ".sync.aligned;\nALLOCATED:\nsetp.ne.u32 %q3, %u3, 64;\n@%q3 bra MADE;\n"
      "mbarrier.init.shared::cta.b64 [%u0], 1;\nfence.mbarrier_init.release.cluster;\nMADE:\n"
      "bar.sync 0;\nld.shared.u32 %u1, [%u0+8];\nshr.u32 %u2, %u3, 5;\nshl.b32 %u2, %u2, 21;\n"
      "add.u32 %u2, %u1, %u2;\n";
  if (c.a_in_tmem) body += stores_lanes(kColumnsOfA, c.steps * kStepDepth / 4);
  body += stores_lanes(0, c.columns()) + "tcgen05.fence::before_thread_sync;\nbar.sync 0;\n" +
          meet +
          "tcgen05.fence::after_thread_sync;\nor.b32 %u4, %u3, %u11;\n"
          "setp.ne.u32 %q3, %u4, 0;\n@%q3 bra ISSUED;\n" +
          multiplies(c) +
          "ISSUED:\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %q2, [%u0], 0;\n"
          "@%q2 bra WAITED;\nbra.uni WAIT;\nWAITED:\ntcgen05.fence::after_thread_sync;\n" +
          loads_lanes(c.columns()) + "tcgen05.fence::before_thread_sync;\nbar.sync 0;\n" + meet +
          "@%q1 bra END;\ntcgen05.dealloc" + group + ".sync.aligned.b32 %u1, 512;\nEND:\n" + meet;
  std::string text = entry(body);
  return text.replace(text.find("sm_90a"), 6, c.target);
}

/// What the text is launched with, as one cluster.
inline Given mma_given(const MmaCase& c, const MmaNumbers& x, model::Mode mode = model::Mode::eager,
                       std::uint64_t seed = 1) {
  std::vector<std::uint32_t> in;
  for (int cta = 0; cta < c.ctas(); ++cta) {
    const std::vector<std::uint32_t> part = mma_image(c, x, cta);
    in.insert(in.end(), part.begin(), part.end());
  }
  return {kLanes, c.ctas() * kLanes * c.columns(), 0, in, 65536, mode, c.ctas(), seed, c.ctas()};
}

}  // namespace warpwright::tests
