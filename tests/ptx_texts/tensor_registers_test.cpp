// tcgen05.ld and tcgen05.st in every shape, whole words and halves: each register of each lane
// against where the manual's figures have it.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "tests/campaign.h"
#include "tests/must.h"
#include "tests/ptx_texts/texts.h"

namespace warpwright::tests {
namespace {

struct Access {
  std::string shape;
  int times = 1;
  bool packed = false;
  int split = 0;
  int half = 0;  // 16: the upper lanes of the warp

  [[nodiscard]] int registers() const {
    return times * (shape == "16x256b" ? 4 : shape == "16x128b" ? 2 : 1);
  }
  [[nodiscard]] bool is_split() const { return shape == "16x32bx2"; }
};

// Lane of the warp and column of register r of lane t; for halves the first column of two.
std::pair<int, int> cell(const Access& a, int t, int r) {
  const int by = a.packed ? 2 : 1;
  if (a.shape == "32x32b") return {t, r * by};
  if (a.shape == "16x64b") return {a.half + (t >> 2) + (t & 1) * 8, (2 * r + (t >> 1 & 1)) * by};
  if (a.shape == "16x128b") {
    return {a.half + (t >> 2) + (r & 1) * 8, ((r >> 1) * 4 + (t & 3)) * by};
  }
  if (a.shape == "16x256b") {
    return {a.half + (t >> 2) + (r >> 1 & 1) * 8, ((r >> 2) * 8 + (t & 3) * 2 + (r & 1)) * by};
  }
  return {a.half + (t & 15), r * by + (t >> 4) * a.split};
}
int columns(const Access& a) {
  int last = 0;
  for (int t = 0; t < 32; ++t) {
    for (int r = 0; r < a.registers(); ++r) last = std::max(last, cell(a, t, r).second);
  }
  return last + (a.packed ? 2 : 1);
}

std::string list_of(int registers) {
  std::string list = "{%z0";
  for (int r = 1; r < registers; ++r) list += ", %z" + std::to_string(r);
  return list + "}";
}
std::string instruction(const Access& a, bool load) {
  const std::string address = "[%u4]" + (a.is_split() ? ", " + std::to_string(a.split) : "");
  const std::string tail = ".sync.aligned." + a.shape + ".x" + std::to_string(a.times) +
                           (!a.packed ? ""
                            : load    ? ".pack::16b"
                                      : ".unpack::16b") +
                           ".b32 ";
  const std::string list = list_of(a.registers());
  return load ? "tcgen05.ld" + tail + list + ", " + address + ";\ntcgen05.wait::ld.sync.aligned;\n"
              : "tcgen05.st" + tail + address + ", " + list + ";\ntcgen05.wait::st.sync.aligned;\n";
}

// %u0: shared memory, %u1: the thread, %u2: its warp's lanes, %u3: what was allocated, %u4: from
// where the access goes; `body` has tensor memory.
std::string in_tensor_memory(const Access& a, const std::string& body) {
  const std::string text = entry(
      ".reg .b32 %u<9>, %z<128>;\n.reg .b64 %w<3>;\n.reg .pred %q;\nmov.u32 %u0, sm;\n"
      "mov.u32 %u1, %tid.x;\nsetp.ge.u32 %q, %u1, 32;\n@%q bra MADE;\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%u0], 512;\n"
      "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\nMADE:\nbar.sync 0;\n"
      "ld.shared.u32 %u3, [%u0];\nshr.u32 %u2, %u1, 5;\nshl.b32 %u2, %u2, 21;\n"
      "add.u32 %u2, %u3, %u2;\nadd.u32 %u4, %u2, " +
      std::to_string(a.half << 16) + ";\n" + body +
      "tcgen05.fence::before_thread_sync;\nbar.sync 0;\n@%q bra END;\n"
      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %u3, 512;\nEND:\n");
  return replaced(text, "sm_90a", "sm_100a");
}

// The thread's `count` words of global memory.
std::string stores_words(int count) {
  std::string text =
      "mul.wide.u32 %w0, %u1, " + std::to_string(4 * count) + ";\nadd.s64 %w0, %o, %w0;\n";
  for (int i = 0; i < count; ++i) {
    text += "st.global.u32 [%w0+" + std::to_string(4 * i) + "], %z" + std::to_string(i) + ";\n";
  }
  return text;
}
std::string one_column(const char* way, int column) {
  const bool load = std::string(way) == "ld";
  return "add.u32 %u5, %u2, " + std::to_string(column) + ";\ntcgen05." + way +
         ".sync.aligned.32x32b.x1.b32 " + (load ? "{%u6}, [%u5];\n" : "[%u5], {%u6};\n");
}

std::vector<Access> accesses() {
  std::vector<Access> all;
  for (const bool packed : {false, true}) {
    for (const int half : {0, 16}) {
      for (const int times : {1, 4, 32}) {
        for (const char* shape : {"16x64b", "16x128b", "16x256b"}) {
          all.push_back({shape, times, packed, 0, half});
        }
        for (const int split : {times * (packed ? 2 : 1), 200}) {
          all.push_back({"16x32bx2", times, packed, split, half});
        }
      }
    }
    all.push_back({"32x32b", 128, packed});
    all.push_back({"16x64b", 128, packed});
    all.push_back({"16x128b", 64, packed});
  }
  return all;
}

// Tensor memory holds 512 times the lane and the column, and something above.
TEST(TensorRegisters, AreLoaded) {
  Turns turns(4);
  for (const Access& a : accesses()) {
    if (!turns.take()) continue;
    SCOPED_TRACE(instruction(a, true));
    std::string body = "shl.b32 %u6, %u1, 9;\nadd.u32 %u6, %u6, 0x550000;\n";
    for (int column = 0; column < columns(a); ++column) {
      body += one_column("st", column) + "add.u32 %u6, %u6, 1;\n";
    }
    body += "tcgen05.wait::st.sync.aligned;\n" + instruction(a, true) + stores_words(a.registers());
    const Ran ran = run(
        in_tensor_memory(a, body),
        {.threads = 128, .words = 128 * a.registers(), .shared = 64, .mode = model::Mode::latest});
    ASSERT_TRUE(ran.report.clean()) << ran.report.text();
    int wrong = 0;
    for (int thread = 0; thread < 128; ++thread) {
      for (int r = 0; r < a.registers(); ++r) {
        const auto [lane, column] = cell(a, thread % 32, r);
        const auto low = static_cast<std::uint32_t>((thread / 32 * 32 + lane) * 512 + column);
        const std::uint32_t wanted = a.packed ? low | (low + 1) << 16 : low + 0x550000;
        wrong += ran.out[index_of(thread * a.registers() + r)] == wanted ? 0 : 1;
      }
    }
    EXPECT_EQ(wrong, 0);
  }
}

// Each register has a number of its own, whose complement is its upper half.
TEST(TensorRegisters, AreStored) {
  Turns turns(4);
  for (const Access& a : accesses()) {
    if (!turns.take()) continue;
    SCOPED_TRACE(instruction(a, false));
    const int all = columns(a);
    std::string body = "mov.u32 %u6, 0;\n";
    for (int column = 0; column < all; ++column) body += one_column("st", column);
    body += "tcgen05.wait::st.sync.aligned;\nshl.b32 %u6, %u1, 7;\n";
    for (int r = 0; r < a.registers(); ++r) {
      body += "not.b32 %u7, %u6;\nshl.b32 %u7, %u7, 16;\nor.b32 %z" + std::to_string(r) +
              ", %u6, %u7;\nadd.u32 %u6, %u6, 1;\n";
    }
    body += instruction(a, false) + "mul.wide.u32 %w0, %u1, " + std::to_string(4 * all) +
            ";\nadd.s64 %w0, %o, %w0;\n";
    for (int column = 0; column < all; ++column) {
      body += one_column("ld", column) + "tcgen05.wait::ld.sync.aligned;\nst.global.u32 [%w0+" +
              std::to_string(4 * column) + "], %u6;\n";
    }
    const Ran ran =
        run(in_tensor_memory(a, body),
            {.threads = 128, .words = 128 * all, .shared = 64, .mode = model::Mode::latest});
    ASSERT_TRUE(ran.report.clean()) << ran.report.text();
    std::vector<std::uint32_t> wanted(ran.out.size());
    for (int thread = 0; thread < 128; ++thread) {
      for (int r = 0; r < a.registers(); ++r) {
        const auto [lane, column] = cell(a, thread % 32, r);
        const auto at = index_of((thread / 32 * 32 + lane) * all + column);
        const auto low = static_cast<std::uint32_t>(thread * 128 + r);
        wanted[at] = a.packed ? low : low | ~low << 16;
        if (a.packed) wanted[at + 1] = ~low & 0xffffU;
      }
    }
    EXPECT_EQ(ran.out, wanted);
  }
}

std::string found(const Access& a, const std::string& body, const std::string& code) {
  const model::Report report =
      run(in_tensor_memory(a, body),
          {.threads = 128, .words = 128, .shared = 64, .mode = model::Mode::latest})
          .report;
  const std::string said = finding(report, code);
  return said.empty() ? "not " + code + ": " + report.text() : said;
}

TEST(TensorRegisters, AreNotLoadedFromElsewhere) {
  const std::string one = "mov.u32 %z0, 0;\n";
  const auto expect = [](const std::string& said, const std::string& part) {
    expect_contains(said, part);
  };
  const Access low{"16x64b", 1, false, 0, 8};
  expect(found(low, one + instruction(low, false), "U2"), "; a warp reaches lanes 32 (w % 4) to");
  const Access unwritten{"16x32bx2", 1, false, 64};
  expect(found(unwritten, one + one_column("st", 0) + instruction(unwritten, true), "M1"),
         "from column 64 on");
  const Access behind{"16x32bx2", 1, false, 511, 0};
  Access wide = behind;
  wide.packed = true;
  EXPECT_EQ(found(behind, one + instruction(behind, false), "U1").substr(0, 6), "not U1");
  expect(found(wide, one + instruction(wide, false), "U1"), "columns 511 to 512");
  // The other half of it is on its way too.
  const Access split{"16x32bx2", 1, false, 100};
  const std::string stored = one + "mov.u32 %u6, 1;\n" + instruction(split, false);
  const std::size_t wait = stored.find("tcgen05.wait");
  expect(found(split,
               stored.substr(0, wait) + one_column("ld", 100) + "tcgen05.wait::ld.sync.aligned;\n",
               "U5"),
         "columns 100 to 100");
}

// --- tcgen05.ld.red: each lane has eight numbers, which are made of `made`, and what comes of them
struct Reduction {
  const char* how;
  std::array<std::uint32_t, 4> made;
  std::uint32_t result;
};

std::string reduces(const std::string& how) {
  return "tcgen05.ld.red.sync.aligned.32x32b.x8." + how + " " + list_of(8) +
         ", %z8, [%u4];\ntcgen05.wait::ld.sync.aligned;\n";
}
std::string reduction_text(const std::string& how, const std::array<std::uint32_t, 4>& made) {
  std::string body;
  for (int column = 0; column < 8; ++column) {
    // Each lane begins at another of the four.
    body += "add.u32 %u7, %u1, " + std::to_string(column) + ";\nand.b32 %u7, %u7, 3;\n";
    for (int i = 0; i < 4; ++i) {
      body += "setp.eq.u32 %q1, %u7, " + std::to_string(i) + ";\n@%q1 mov.u32 %u6, " +
              std::to_string(made[index_of(i)]) + ";\n";
    }
    body += one_column("st", column);
  }
  body += "tcgen05.wait::st.sync.aligned;\n" + reduces(how) + stores_words(9);
  std::string text = in_tensor_memory({.shape = "32x32b", .times = 8}, ".reg .pred %q1;\n" + body);
  return replaced(text, "sm_100a", "sm_103a");
}

TEST(TensorRegisters, AreReduced) {
  const std::uint32_t one = 0x3f800000, minus_two = 0xc0000000, zero = 0, minus_zero = 0x80000000;
  const std::uint32_t nan = 0x7fc00001, largest = 0xff7fffff, infinity = 0x7f800000;
  const Reduction all[] = {{"min.u32", {5, 0x80000000, 7, 9}, 5},
                           {"max.u32", {5, 0x80000000, 7, 9}, 0x80000000},
                           {"min.s32", {5, 0x80000000, 7, 9}, 0x80000000},
                           {"max.s32", {5, 0x80000000, 7, 9}, 9},
                           {"min.f32", {one, minus_two, zero, largest}, largest},
                           {"max.f32", {one, minus_two, zero, infinity}, infinity},
                           {"min.f32", {zero, minus_zero, one, nan}, minus_zero},
                           {"max.f32", {zero, minus_zero, minus_two, nan}, zero},
                           {"max.f32", {nan, nan, nan, nan}, 0x7fffffff},
                           {"min.NaN.f32", {one, minus_two, zero, nan}, 0x7fffffff},
                           {"min.abs.f32", {one, minus_two, largest, nan}, one},
                           {"max.abs.f32", {one, minus_two, zero, minus_zero}, 0x40000000},
                           {"max.abs.NaN.f32", {one, minus_two, nan, zero}, 0x7fffffff},
                           {"max.NaN.f32", {one, minus_two, zero, zero}, one}};
  for (const Reduction& r : all) {
    const Ran ran =
        run(reduction_text(r.how, r.made), {.threads = 128, .words = 9 * 128, .shared = 64});
    ASSERT_TRUE(ran.report.clean()) << ran.report.text();
    for (int thread = 0; thread < 128; ++thread) {
      EXPECT_EQ(ran.out[index_of(9 * thread + 8)], r.result) << r.how;
      for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(ran.out[index_of(9 * thread + i)], r.made[index_of((thread + i) % 4)]);
      }
    }
  }
}

TEST(TensorRegisters, WhatIsReducedIsWaitedFor) {
  const std::string text = reduction_text("max.s32", {1, 2, 3, 4});
  const std::string wait = "%z8, [%u4];\ntcgen05.wait::ld.sync.aligned;\n";
  // A touch of what is made only, before the wait.
  const std::string early =
      replaced(text, wait, "%z8, [%u4];\nmov.u32 %u7, %z8;\ntcgen05.wait::ld.sync.aligned;\n");
  const Ran ran = run(early, {.threads = 128, .words = 9 * 128, .shared = 64});
  EXPECT_NE(finding(ran.report, "W2"), "") << ran.report.text();
  EXPECT_EQ(refusal_of(replaced(text, "sm_103a", "sm_100a")),
            "sm_100a has no tcgen05.ld.red.sync.aligned.32x32b.x8.max.s32: that is of sm_103 or "
            "sm_110, with a or f");
  for (const char* target : {"sm_103f", "sm_110a", "sm_110f"}) {
    EXPECT_EQ(refusal_of(replaced(text, "sm_103a", target)), "");
  }
  EXPECT_EQ(refusal_of(replaced(text, "%z8, [%u4]", "5, [%u4]")),
            "tcgen05.ld.red.sync.aligned.32x32b.x8.max.s32 takes a register for what it makes");
}

}  // namespace
}  // namespace warpwright::tests
