// Public bugs as PTX, broken and mended: what tests/corpus has in C++, in the words of a compiler's
// text. tests/corpus/README.md lists them.
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "tests/must.h"
#include "tests/ptx_texts/texts.h"
#include "warpwright/model/memory/tensor_map.h"

namespace warpwright::tests {
namespace {

using model::Mode;

constexpr Mode kModes[] = {Mode::eager, Mode::latest, Mode::random, Mode::random, Mode::starve};

// Broken, each schedule has a finding of that code and none of another; mended, none has any.
template <class Run>
void broken_and_mended(const std::string& code, const Run& run_it) {
  std::uint64_t seed = 0;
  for (const Mode mode : kModes) {
    ++seed;
    const model::Report broken = run_it(false, mode, seed);
    EXPECT_NE(finding(broken, code), "") << broken.text();
    for (const model::Finding& f : broken.findings) EXPECT_EQ(model::code(f.check), code);
    must_be_clean(run_it(true, mode, seed));
  }
}

// A tensor of two groups, each of 8 rows of 8 words; a map of the first; and a slot of global
// memory where a kernel makes others of it.
struct Maps {
  struct alignas(128) Params {
    model::TensorMap map;
    std::uint64_t slot;
    std::uint64_t tensor;
    std::uint32_t group;
  };
  alignas(128) std::array<std::uint32_t, 128> tensor{};
  alignas(128) std::array<std::uint64_t, 16> slot{};
  std::vector<model::Allocation> allocations = {{tensor.data(), sizeof tensor, "tensor", false},
                                                {slot.data(), sizeof slot, "slot"}};

  Maps() { std::iota(tensor.begin(), tensor.end(), 0U); }

  Params params(std::uint32_t group) {
    model::TensorMapFields fields;
    fields.rank = 2;
    fields.element_bits = 32;
    fields.element_kind = 3;
    fields.extents = {8, 8};
    fields.box = {8, 8};
    fields.strides = {32};
    fields.base = reinterpret_cast<std::uintptr_t>(tensor.data());
    return {model::encode(fields), reinterpret_cast<std::uintptr_t>(slot.data()),
            reinterpret_cast<std::uintptr_t>(tensor.data()), group};
  }

  // Launches of one entry `k` of a warp, one behind the other.
  model::Report run(const std::string& text, int launches, Mode mode, std::uint64_t seed,
                    int threads = 32) {
    ptx::Kernel kernel(text, "k.ptx", "k");
    ptx::Launch launch;
    launch.block[0] = threads;
    launch.dynamic_bytes = 4096;
    std::vector<Params> given;
    for (int i = 0; i < launches; ++i) given.push_back(params(static_cast<std::uint32_t>(i)));
    std::vector<model::GridLaunch> grids;
    for (const Params& p : given) {
      model::GridLaunch grid;
      grid.shape = kernel.shape(launch);
      grid.allocations = allocations;
      grid.body = kernel.body(reinterpret_cast<const std::byte*>(&p), launch, allocations);
      grids.push_back(grid);
    }
    model::Options options;
    options.mode = mode;
    options.seed = seed;
    return model::run(grids, options);
  }
};

// The map lies at sm, barriers at sm + 512, boxes from sm + 1024 on.
std::string of_maps(const std::string& body) {
  std::string copy;
  for (int i = 0; i < 128; i += 8) {
    const std::string at = std::to_string(i);
    copy += "ld.param.u64 %x1, [map+" + at + "];\nst.shared.u64 [%sm+" + at + "], %x1;\n";
  }
  return kHead +
         ".extern .shared .align 1024 .b8 shared[];\n"
         ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 slot, .param .u64 tensor,\n"
         "                  .param .u32 group)\n{\n"
         ".reg .b64 %slot, %tensor, %x<9>;\n.reg .b32 %sm, %group, %bar, %next, %r<20>;\n"
         ".reg .pred %leads, %done;\n"
         "ld.param.u64 %slot, [slot];\nld.param.u64 %tensor, [tensor];\nld.param.u32 %group, "
         "[group];\nmov.u32 %sm, shared;\nadd.u32 %bar, %sm, 512;\nadd.u32 %next, %sm, 520;\n"
         "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %leads, %r1, 0;\n@!%leads bra MADE;\n"
         "mbarrier.init.shared::cta.b64 [%bar], 1;\nmbarrier.init.shared::cta.b64 [%next], 1;\n"
         "fence.mbarrier_init.release.cluster;\n" +
         copy + "MADE:\nbar.sync 0;\n" + body + "ret;\n}\n";
}

// A warp gives the map in the slot to group %r2.
const std::string kGive =
    "mul.lo.u32 %r3, %r2, 256;\ncvt.u64.u32 %x2, %r3;\nadd.s64 %x3, %tensor, %x2;\n"
    "@%leads tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%sm], %x3;\n"
    "bar.warp.sync 0xffffffff;\n"
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
    "[%slot], [%sm], 128;\nbar.warp.sync 0xffffffff;\n";
const std::string kAcquire = "fence.proxy.tensormap::generic.acquire.gpu [%slot], 128;\n";

std::string load(const std::string& barrier, int box) {
  return "mbarrier.arrive.expect_tx.shared::cta.b64 _, [" + barrier +
         "], 256;\nadd.u32 %r4, %sm, " + std::to_string(1024 + 256 * box) +
         ";\ncp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r4], "
         "[%slot, {0, 0}], [" +
         barrier + "];\n";
}
std::string wait(const std::string& barrier, const std::string& label) {
  return label + ":\nmbarrier.try_wait.parity.shared::cta.b64 %done, [" + barrier +
         "], 0;\n@!%done bra " + label + ";\n";
}

// One map serves the scales of all experts in turn. It is given to the next expert while the last
// load of the one before may not have read it yet: that tile then has the next one's scales.
// flashinfer-ai/flashinfer #5438: https://github.com/flashinfer-ai/flashinfer/issues/5438
TEST(PtxCorpus, AMapIsGivenAwayUnderTheLastLoadOfTheExpertBefore) {
  const auto text = [](bool mended) {
    const std::string first = "@!%leads bra ASKED;\n" + kAcquire + load("%bar", 0) + "ASKED:\n";
    const std::string landed = "@!%leads bra LANDED;\n" + wait("%bar", "FIRST") + "LANDED:\n";
    return of_maps("mov.u32 %r2, 0;\n" + kGive + first +
                   (mended ? landed + "bar.warp.sync 0xffffffff;\n" : "") + "mov.u32 %r2, 1;\n" +
                   kGive + (mended ? "" : landed) + "@!%leads bra END;\n" + kAcquire +
                   load("%next", 1) + wait("%next", "SECOND") + "END:\n");
  };
  Maps maps;
  broken_and_mended("P4", [&](bool mended, Mode mode, std::uint64_t seed) {
    return maps.run(text(mended), 1, mode, seed);
  });
}

// Two products of a graph make their maps in one workspace, and each loads through the map at the
// same address without having acquired it: the second still goes by the first one's. The public
// account says "stale TMA descriptors"; what cuBLAS did in particular is not known.
// NVIDIA/TransformerEngine #3171: https://github.com/NVIDIA/TransformerEngine/pull/3171
TEST(PtxCorpus, TwoProductsMakeTheirMapsInOneWorkspace) {
  const auto text = [](bool mended) {
    return of_maps("mov.u32 %r2, %group;\n" + kGive + "@!%leads bra END;\n" +
                   (mended ? kAcquire : "") + load("%bar", 0) + wait("%bar", "LANDS") + "END:\n");
  };
  Maps maps;
  broken_and_mended("P4", [&](bool mended, Mode mode, std::uint64_t seed) {
    return maps.run(text(mended), 2, mode, seed);
  });
}

// Scales of 16 columns come by cp.async of half a warp. Every lane arrives once when its copies
// have landed, and once at once; a barrier that counts only one arrival a lane is filled by the
// second ones. The kind of flashinfer's narrow fp8 tiles on CUTLASS's block-scale main loop, whose
// own cause is not public. flashinfer-ai/flashinfer #4396, #4409:
// https://github.com/flashinfer-ai/flashinfer/pull/4409
TEST(PtxCorpus, AScaleIsReadBeforeItsCopyHasLanded) {
  const auto text = [](bool mended) {
    return entry(
        "mov.u32 %r9, sm;\nmov.u32 %r1, %tid.x;\nadd.u32 %r8, %r9, 64;\n"
        "setp.eq.u32 %p0, %r1, 0;\n@%p0 mbarrier.init.shared::cta.b64 [%r9], " +
        std::string(mended ? "64" : "32") +
        ";\nbar.sync 0;\nsetp.ge.u32 %p1, %r1, 32;\n@%p1 bra USE;\n"
        "setp.lt.u32 %p2, %r1, 16;\nmul.wide.u32 %x1, %r1, 4;\nadd.s64 %x2, %i, %x1;\n"
        "shl.b32 %r2, %r1, 2;\nadd.u32 %r3, %r8, %r2;\n"
        "@%p2 cp.async.ca.shared.global [%r3], [%x2], 4;\n"
        "cp.async.mbarrier.arrive.noinc.shared.b64 [%r9];\n"
        "mbarrier.arrive.shared.b64 _, [%r9];\ncp.async.wait_all;\nbra END;\n"
        "USE:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [%r9], 0;\n@!%p3 bra USE;\n"
        "and.b32 %r4, %r1, 15;\nshl.b32 %r4, %r4, 2;\nadd.u32 %r4, %r4, %r8;\n"
        "ld.shared.u32 %r5, [%r4];\nmul.wide.u32 %x1, %r1, 4;\nadd.s64 %x2, %o, %x1;\n"
        "st.global.u32 [%x2+-128], %r5;\nEND:\n");
  };
  // Eager copies land at once: there the order of the two is what is missing.
  for (const Mode mode : {Mode::latest, Mode::eager, Mode::random, Mode::starve}) {
    const std::vector<std::uint32_t> scales(16, 5);
    const Ran broken = run(text(false), 64, 32, 0, scales, 256, mode);
    if (mode == Mode::latest) {
      EXPECT_NE(finding(broken.report, "T4"), "") << broken.report.text();
    }
    const Ran mended = run(text(true), 64, 32, 0, scales, 256, mode);
    EXPECT_TRUE(mended.report.clean()) << mended.report.text();
    EXPECT_EQ(mended.out, std::vector<std::uint32_t>(32, 5));
  }
}

// Producer and consumer meet once a tile. The consumer goes on to the next one early where an
// expert has no rows, and neither meets nor moves its cursor; the producer waits for it for good.
// linkedin/Liger-Kernel #1463: https://github.com/linkedin/Liger-Kernel/pull/1463
TEST(PtxCorpus, AnEarlyContinueSkipsTheMeeting) {
  // Rows of a tile; a ring of two stages, full barriers at sm, empty ones at sm + 16.
  const std::string cursor =
      "and.b32 %r4, %r3, 1;\nshl.b32 %r5, %r4, 3;\nadd.u32 %r6, %r9, %r5;\nshr.u32 %r7, %r3, 1;\n"
      "and.b32 %r7, %r7, 1;\n";
  const auto text = [&](bool mended) {
    const std::string empty = "setp.eq.u32 %p4, %r10, 0;\n@%p4 bra NEXT;\n";
    return entry(
        "mov.u32 %r9, sm;\nmov.u32 %r1, %tid.x;\nsetp.eq.u32 %p0, %r1, 0;\n"
        "@!%p0 bra MADE;\nmbarrier.init.shared::cta.b64 [%r9], 1;\n"
        "mbarrier.init.shared::cta.b64 [%r9+8], 1;\nmbarrier.init.shared::cta.b64 [%r9+16], 1;\n"
        "mbarrier.init.shared::cta.b64 [%r9+24], 1;\nMADE:\nbar.sync 0;\nmov.u32 %r2, 0;\n"
        "mov.u32 %r3, 0;\n@!%p0 bra CONSUMER;\nPRODUCER:\n" +
        cursor +
        "xor.b32 %r8, %r7, 1;\nFREE:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r6+16], %r8;\n@!%p1 bra FREE;\n"
        "mbarrier.arrive.shared::cta.b64 _, [%r6];\nadd.u32 %r3, %r3, 1;\n"
        "setp.lt.u32 %p2, %r3, 6;\n@%p2 bra PRODUCER;\nbra END;\n"
        "CONSUMER:\nmul.wide.u32 %x1, %r2, 4;\nadd.s64 %x2, %i, %x1;\nld.global.u32 %r10, "
        "[%x2];\n" +
        (mended ? "" : empty) + cursor +
        "FULL:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r6], %r7;\n@!%p1 bra FULL;\n"
        "mbarrier.arrive.shared::cta.b64 _, [%r6+16];\nadd.u32 %r3, %r3, 1;\n" +
        (mended ? empty : "") +
        "add.s64 %x3, %o, %x1;\nst.global.u32 [%x3], %r10;\n"
        "NEXT:\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, 6;\n@%p2 bra CONSUMER;\nEND:\n");
  };
  const std::vector<std::uint32_t> rows = {3, 0, 2, 0, 0, 1};
  broken_and_mended("D1", [&](bool mended, Mode mode, std::uint64_t seed) {
    return run(text(mended), 2, 6, 0, rows, 64, mode, 1, seed).report;
  });
}

// All CTAs of a grid meet at a count in global memory, and there are as many as one kind of GPU has
// SMs. On one that has fewer (78 in place of 132) those that run wait for those that cannot begin.
// osayamenja/FlashMoE #3: https://github.com/osayamenja/FlashMoE/issues/3
TEST(PtxCorpus, TheGridIsAsLargeAsAnotherGpu) {
  const std::string text = entry(
      "mov.u32 %r1, %nctaid.x;\natom.acq_rel.gpu.global.add.u32 %r2, [%o], 1;\n"
      "MEET:\nld.acquire.gpu.global.u32 %r3, [%o];\nsetp.lt.u32 %p0, %r3, %r1;\n@%p0 bra MEET;\n");
  constexpr int sms = 8;  // of the model
  broken_and_mended("D1", [&](bool mended, Mode mode, std::uint64_t seed) {
    return run(text, 1, 1, 0, {}, 0, mode, mended ? sms : 13, seed).report;
  });
}

}  // namespace
}  // namespace warpwright::tests
