// What of a text is broken beside its statements that synchronise, and how.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/must.h"
#include "tests/ptx_texts/texts.h"
#include "warpwright/ptx/edits.h"

namespace warpwright::tests {
namespace {

// "how: the statement as it is then", of every statement of a body.
std::vector<std::string> edits_of(const std::string& body) {
  const std::string text = entry(body);
  const ptx::Module module = ptx::parse(text);
  const ptx::Entry& k = module.entries.front();
  std::vector<std::string> all;
  for (const ptx::Edit& edit :
       ptx::edits(module, k, std::vector<bool>(k.statements.size(), true))) {
    const std::string made = ptx::edited(text, edit);
    const std::size_t begin = made.rfind('\n', edit.at) + 1;
    all.push_back(edit.how + ": " + made.substr(begin, made.find('\n', begin) - begin));
  }
  return all;
}
using Edits = std::vector<std::string>;

TEST(Edits, MoveAddressesOfSharedMemory) {
  EXPECT_EQ(edits_of("ld.shared.u32 %r1, [%r2+8];"),
            Edits{"address + 16: ld.shared.u32 %r1, [%r2+24];"});
  EXPECT_EQ(edits_of("@%p1 st.shared.v2.b32 [sm], {%r1, %r2};"),
            Edits{"address + 16: @%p1 st.shared.v2.b32 [sm+16], {%r1, %r2};"});
  EXPECT_EQ(edits_of("mbarrier.arrive.shared::cta.b64 _, [%r2];"),
            Edits{"address + 16: mbarrier.arrive.shared::cta.b64 _, [%r2+16];"});
  EXPECT_EQ(edits_of("cp.async.cg.shared.global [%r1], [%x1], 16;"),
            Edits{"address + 16: cp.async.cg.shared.global [%r1+16], [%x1], 16;"});
  EXPECT_EQ(edits_of("ld.global.u32 %r1, [%o];"), Edits{});
}

TEST(Edits, FlipBitsOfDescriptors) {
  const Edits wgmma = edits_of(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %x1, %x2, %p1, 1, "
      "1, 0, 1;");
  ASSERT_EQ(wgmma.size(), 14U);  // 5 of each descriptor, 2 of its majors, the types, a lane
  EXPECT_EQ(wgmma[0],
            "A's descriptor, bit 62 flipped: { .reg .b64 ww_v; xor.b64 ww_v, %x1, "
            "4611686018427387904U; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, "
            "%f2, %f3}, ww_v, %x2, %p1, 1, 1, 0, 1; }");
  expect_contains(wgmma[2], "start address + 16");
  expect_contains(wgmma[10], "%p1, 1, 1, 1, 1;");
  expect_contains(wgmma[11], "%p1, 1, 1, 0, 0;");
  expect_contains(wgmma[12], "k16.f32.f16.f16 {");
  const Edits tcgen05 =
      edits_of("@%p2 tcgen05.mma.cta_group::1.kind::f16 [%r1], %x1, %x2, %r2, %p1;");
  ASSERT_EQ(tcgen05.size(), 17U);
  EXPECT_EQ(
      tcgen05.back(),
      "instruction descriptor, bit 24 flipped: { .reg .b32 ww_v; xor.b32 ww_v, %r2, 16777216; "
      "@%p2 tcgen05.mma.cta_group::1.kind::f16 [%r1], %x1, %x2, ww_v, %p1; }");
}

TEST(Edits, LeaveALaneOut) {
  EXPECT_EQ(edits_of("@!%p1 bar.sync 0;"),
            Edits{"without lane 31: { .reg .pred ww_q; .reg .b32 ww_l; mov.u32 ww_l, %laneid; "
                  "setp.ne.u32 ww_q, ww_l, 31; .reg .pred ww_n; not.pred ww_n, %p1; and.pred ww_q, "
                  "ww_q, ww_n; @ww_q bar.sync 0; }"});
}

TEST(Edits, SayAnotherWord) {
  EXPECT_EQ(edits_of("fence.proxy.async.shared::cta;"),
            Edits{".shared::cta became .global: fence.proxy.async.global;"});
  EXPECT_EQ(edits_of("fence.proxy.async;").size(), 2U);
  EXPECT_EQ(edits_of("cp.async.bulk.wait_group 0;"),
            Edits{".wait_group became .wait_group.read: cp.async.bulk.wait_group.read 0;"});
  const Edits arrival = edits_of("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];");
  EXPECT_EQ(arrival.size(), 2U);
  expect_contains(arrival[1], "release.cta.shared");
}

TEST(Edits, MoveCopies) {
  const Edits tensor = edits_of(
      "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%x1, {%r2, "
      "3}], [%r4];");
  ASSERT_EQ(tensor.size(), 3U);
  expect_contains(tensor[1], "add.s32 ww_v, %r2, 1;");
  expect_contains(tensor[2], "[%x1, {%r2, ww_v}], [%r4];");
  const Edits bulk = edits_of(
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%x1], 64, [%r4];");
  ASSERT_EQ(bulk.size(), 2U);
  expect_contains(bulk[1], "[%x1], 48, [%r4];");
}

// Only what has run, each edit decodes, and each of these is found.
TEST(Edits, AreFoundWhereTheyRun) {
  const std::string text = entry(
      "mov.u32 %r9, sm;\nmov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 2;\nadd.u32 %r3, %r9, %r2;\n"
      "st.shared.u32 [%r3], %r1;\nbar.sync 0;\nxor.b32 %r4, %r2, 4;\nadd.u32 %r4, %r4, %r9;\n"
      "ld.shared.u32 %r5, [%r4];\nmul.wide.u32 %x1, %r1, 4;\nadd.s64 %x2, %o, %x1;\n"
      "st.global.u32 [%x2], %r5;\nsetp.eq.u32 %p1, %n, 7;\n@!%p1 bra END;\nbar.sync 1;\nEND:");
  alignas(128) struct {
    std::uint64_t out;
    std::uint32_t n = 0;
    std::uint64_t in = 0;
  } params{};
  std::vector<std::uint32_t> out(64);
  params.out = reinterpret_cast<std::uintptr_t>(out.data());
  const std::vector<model::Allocation> allocations = {{out.data(), 256, "out"}};
  ptx::Launch launch;
  launch.block[0] = 64;
  launch.dynamic_bytes = 256;
  const auto run_it = [&](ptx::Kernel& kernel) {
    std::ranges::fill(out, 0);
    return model::run(
        kernel.shape(launch), {}, allocations,
        kernel.body(reinterpret_cast<const std::byte*>(&params), launch, allocations));
  };
  ptx::Kernel kernel(text, "k.ptx", "k");
  EXPECT_TRUE(kernel.edits().empty());  // nothing has run
  kernel.note_statements();
  EXPECT_TRUE(run_it(kernel).clean());
  const std::vector<std::uint32_t> right = out;
  const std::vector<ptx::Edit> edits = kernel.edits();
  EXPECT_EQ(edits.size(), 3U);  // two addresses, and the barrier that runs
  for (const ptx::Edit& edit : edits) {
    ptx::Kernel broken = kernel.with(edit);
    EXPECT_TRUE(!run_it(broken).clean() || out != right) << edit.how << " at " << edit.line;
  }
}

}  // namespace
}  // namespace warpwright::tests
