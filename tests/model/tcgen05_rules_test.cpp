// The rules of block-scaled tcgen05: one kernel that keeps them all, and what is found where it
// keeps one not.
#include <gtest/gtest.h>

#include "tests/model/mutants.h"
#include "tests/model/scaled_product.h"
#include "tests/must.h"
#include "warpwright/atom/cluster.h"
#include "warpwright/isa/barrier.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/tcgen05.h"
#include "warpwright/isa/tcgen05_memory.h"
#include "warpwright/isa/tcgen05_scaled.h"

namespace warpwright::model {
namespace {

using atom::UmmaKind;
using isa::Scope;
using isa::SharedAddress;
using isa::TmemAddress;

// What differs from the kernel that keeps the rules.
struct Scaled {
  bool copies_a = true;
  bool copies_b = true;          // of B both atoms; else only the first
  bool fence = true;             // behind the plain stores of scales
  bool stranger_copies = false;  // another thread than the one that multiplies
  bool waits_for_stranger = false;
  bool stranger_overwrites = false;  // it copies the scales anew behind a word of the issuer
  bool stranger_waits = false;       // and behind the MMAs' end
  int id = 0;
  int sfa = 256;              // column of A's scales; B's follow
  std::uint32_t flip = 0;     // bits of the instruction
  bool early_commit = false;  // the stage is released behind the copies
  bool leader_alone = false;  // of a pair: the other CTA's scales are not there
};

constexpr atom::UmmaAtom rule_atom(int ctas) {
  return atom::scaled_umma_atom(UmmaKind::mxf4, DType::e2m1, DType::e2m1, 128 * ctas, 256,
                                ctas == 2);
}
constexpr int rule_depth = 256;  // of K: 128 bytes, two atoms of scales
constexpr int rule_bytes = 128 * 128 + 256 * 128 + 6 * 512;

template <int Ctas>
TmemAddress begin_scaled(SharedAddress done) {
  if constexpr (Ctas == 2) cluster_sync();
  if (isa::warp_index() == 0) isa::tcgen05_allocate<Ctas>(done + 64, 512);
  if (isa::thread_index() == 32) {
    for (SharedAddress i = 0; i < 3; ++i) {
      isa::mbarrier_init(done + 8 * i, 1, {"done", static_cast<int>(i)});
    }
    isa::fence_mbarrier_init();
  }
  isa::sync_threads(128);
  if constexpr (Ctas == 2) cluster_sync();
  return isa::SharedView<std::uint32_t>{done + 64}.load();
}

// Scales of A (128 rows a CTA) and of all 256 columns, four of K; then those of the next four.
template <int Ctas>
void copy_all_scales(const Scaled& s, TmemAddress tmem, SharedAddress scales, int word) {
  const auto copy = [&](int column, int atom) {
    isa::tcgen05_copy<isa::TmemCopy::b32x128_warpx4, Ctas>(
        tmem + static_cast<TmemAddress>(column),
        atom::encode_umma(atom::scale_descriptor(scales + 512 * static_cast<SharedAddress>(atom))));
  };
  if (s.copies_a) copy(s.sfa, word);
  copy(s.sfa + 4, 2 + 2 * word);
  if (s.copies_b) copy(s.sfa + 8, 3 + 2 * word);
}

// Two k_tiles of 128 of K; the scales lie once in tensor memory and are written again.
template <int Ctas>
void multiply_all(const Scaled& s, TmemAddress tmem, SharedAddress data, SharedAddress done) {
  constexpr atom::UmmaAtom atom = rule_atom(Ctas);
  const atom::OperandTile ta = byte_tile(atom, 128, rule_depth, atom::SmemSwizzle::b128);
  const atom::OperandTile tb = byte_tile(atom, 256 / Ctas, rule_depth, atom::SmemSwizzle::b128);
  const SharedAddress at_b = data + static_cast<SharedAddress>(atom::tile_bytes(ta));
  const SharedAddress scales = at_b + static_cast<SharedAddress>(atom::tile_bytes(tb));
  for (int step = 0; step < 4; ++step) {
    const auto offset = static_cast<std::uint32_t>(32 * step);
    if (step % 2 == 0 && !s.stranger_copies) {
      copy_all_scales<Ctas>(s, tmem, scales, step / 2);
      if (s.early_commit && step == 2) isa::tcgen05_commit<Ctas>(done + 16);
    }
    const atom::ScaleStep at = atom::scale_step(atom, step % 2);
    const std::uint32_t word =
        atom::with_scale_ids(atom::encode_instruction(atom), at.id + s.id, at.id) ^ s.flip;
    isa::tcgen05_mma_scaled<UmmaKind::mxf4, 32, Ctas>(
        tmem, atom::advance(atom::encode_umma(atom::descriptor(ta, data)), offset),
        atom::advance(atom::encode_umma(atom::descriptor(tb, at_b)), offset), word,
        tmem + static_cast<TmemAddress>(s.sfa), tmem + static_cast<TmemAddress>(s.sfa + 4),
        step > 0);
  }
  if constexpr (Ctas == 2) {
    isa::tcgen05_commit_multicast<Ctas>(done, 3);
  } else {
    isa::tcgen05_commit<Ctas>(done);
  }
}

template <int Ctas>
void scaled_body(const Scaled& s) {
  const SharedAddress done = isa::shared_base();
  const SharedAddress data = done + 1024;
  const SharedAddress scales = data + static_cast<SharedAddress>(128 * 128 + 256 / Ctas * 128);
  const std::vector<unsigned char> ones(static_cast<std::size_t>(scales - data), 0x22);
  const std::vector<unsigned char> plain(6 * 512, 127);
  copy_in(data, ones);
  isa::fence_proxy_async_shared();
  if (!s.leader_alone || isa::cluster_rank() == 0) copy_in(scales, plain);
  if (s.fence) isa::fence_proxy_async_shared();
  const TmemAddress tmem = begin_scaled<Ctas>(done);
  const bool leads = isa::cluster_rank() == 0;
  if (s.stranger_copies && leads && isa::thread_index() == 96) {
    copy_all_scales<Ctas>(s, tmem, scales, 0);
    if (s.waits_for_stranger) isa::tcgen05_commit<Ctas>(done + 8);
  }
  if (leads && isa::thread_index() == 64) {
    if (s.waits_for_stranger) {
      isa::mbarrier_wait<Scope::cta>(done + 8, 0, {"done", 1});
      isa::tcgen05_fence_after_sync();
    }
    multiply_all<Ctas>(s, tmem, data, done);
  }
  if (s.stranger_overwrites) {
    isa::sync_threads(128);  // the MMAs are issued
    if (leads && isa::thread_index() == 96) {
      if (s.stranger_waits) {
        isa::mbarrier_wait<Scope::cta>(done, 0, {"done", 0});
        isa::tcgen05_fence_after_sync();
      }
      copy_all_scales<Ctas>(s, tmem, scales, 0);
      isa::tcgen05_commit<Ctas>(done + 8);
      isa::mbarrier_wait<Scope::cta>(done + 8, 0, {"done", 1});
      isa::tcgen05_fence_after_sync();
    }
  }
  if (s.early_commit && isa::warp_index() == 3) {
    isa::mbarrier_wait<Scope::cta>(done + 16, 0, {"done", 2});
    isa::SharedView<std::uint32_t>{scales}.store(isa::lane_index(), 0);  // free: it was copied
    isa::SharedView<std::uint32_t>{data}.store(isa::lane_index(), 0);    // not yet multiplied
  }
  isa::mbarrier_wait<Scope::cta>(done, 0, {"done", 0});
  isa::tcgen05_fence_after_sync();
  isa::Fragment<float, 8> f;
  isa::tcgen05_load(f, tmem + atom::tmem_address(32 * isa::warp_index(), 0));
  isa::tcgen05_wait_load(f);
  if (s.sfa == 256 && !s.early_commit) {
    for (int r = 0; r < 8; ++r) EXPECT_EQ(f[r], 256.0F);  // 1 x 1 x 256
  }
  isa::tcgen05_fence_before_sync();
  isa::sync_threads(128);
  if (isa::warp_index() == 0) isa::tcgen05_deallocate<Ctas>(tmem, 512);
}

template <int Ctas = 1>
Kernel scaled(const Scaled& s) {
  return {{.ctas = Ctas, .cluster_size = Ctas, .threads = 128, .shared_bytes = 1024 + rule_bytes},
          [s] { scaled_body<Ctas>(s); }};
}

TEST(Tcgen05RulesTest, TheKernelThatKeepsThem) {
  expect_clean(scaled<1>({}));
  expect_clean(scaled<2>({}));
}

TEST(Tcgen05RulesTest, ScalesAreWrittenBeforeTheyAreRead) {
  // Not looked at: what an MMA makes of scales that are not there.
  Scaled s{.copies_a = false, .sfa = 260};
  expect_found(scaled<1>(s), Check::uninitialised_read);
  s.copies_a = true;
  s.copies_b = false;
  expect_found(scaled<1>(s), Check::uninitialised_read);
  expect_found(scaled<2>(s), Check::uninitialised_read);
  expect_contains(sentence(scaled<1>(s), Check::uninitialised_read), "scales of B");
}

TEST(Tcgen05RulesTest, CopiesOfAnotherThreadAreWaitedFor) {
  Scaled s{.stranger_copies = true};
  s.waits_for_stranger = true;
  expect_clean(scaled<1>(s));
  s.waits_for_stranger = false;
  s.sfa = 260;
  expect_found(scaled<1>(s), Check::tmem_unordered, Shows::always, {Check::uninitialised_read});
}

TEST(Tcgen05RulesTest, ACopyOfAnotherThreadWaitsForTheMmasThatRead) {
  expect_clean(scaled<1>({.stranger_overwrites = true, .stranger_waits = true}));
  const Kernel early = scaled<1>({.stranger_overwrites = true});
  expect_found(early, Check::tmem_unordered);
  expect_contains(sentence(early, Check::tmem_unordered), "tcgen05.cp issued by thread (warp 3");
}

TEST(Tcgen05RulesTest, Words) {
  expect_found(scaled<1>({.id = 1, .sfa = 260}), Check::bad_instruction);
  expect_found(scaled<1>({.sfa = 260, .flip = 1U << 23}), Check::bad_instruction);
  expect_found(scaled<1>({.sfa = 260, .flip = 1U << 15}), Check::bad_instruction);
  expect_contains(sentence(scaled<1>({.id = 1, .sfa = 260}), Check::bad_instruction), "0 or 2");
}

TEST(Tcgen05RulesTest, ColumnsOfDAndOfScalesAreApart) {
  expect_found(scaled<1>({.sfa = 252}), Check::bad_instruction);
  expect_found(scaled<1>({.sfa = 504}), Check::tmem_allocation);
}

TEST(Tcgen05RulesTest, CopiesReadThroughTheAsynchronousProxy) {
  // There is one, ahead of the stores.
  expect_found(scaled<1>({.fence = false}), Check::misplaced_proxy_fence);
  expect_found(scaled<2>({.fence = false}), Check::misplaced_proxy_fence);
}

TEST(Tcgen05RulesTest, ACommitBehindTheCopiesFreesTheScalesAlone) {
  const Kernel early = scaled<1>({.early_commit = true});
  expect_found(early, Check::in_flight_access, Shows::always, {Check::data_race});
  expect_contains(sentence(early, Check::in_flight_access), "asynchronous read of a tcgen05.mma");
}

TEST(Tcgen05RulesTest, BothCtasOfAPairHaveTheirScales) {
  const std::string said =
      sentence(scaled<2>({.sfa = 260, .leader_alone = true}), Check::uninitialised_read);
  expect_contains(said, "tcgen05.cp");
  expect_contains(said, "rank 1");
}

TEST(Tcgen05RulesTest, Mutants) {
  const std::vector<Mutation> all = mutations(sites_of(scaled<1>({})));
  const auto of_copies = [](const Mutation& m) { return m.at == SyncKind::tmem_copy; };
  EXPECT_EQ(std::count_if(all.begin(), all.end(), of_copies), 3) << "dropped, the first, a lane";
  for (const Mutation& m : all) {
    if (!of_copies(m)) continue;
    EXPECT_TRUE(killed(scaled<1>({.sfa = 260}), m)) << m.how();
  }
}

// --- what is copied ------------------------------------------------------------------------------

// Copies 128 bytes a row and more to tensor memory; `got` is lane * 8 + column of what came.
template <isa::TmemCopy Shape, isa::TmemWiden Widen>
std::vector<std::uint32_t> copied(const std::vector<unsigned char>& image,
                                  const atom::Descriptor& at) {
  std::vector<std::uint32_t> got(128 * 8);
  const Kernel kernel{
      {.threads = 128, .shared_bytes = 1024 + static_cast<int>(image.size())}, [&] {
        const SharedAddress done = isa::shared_base();
        copy_in(done + 1024, image);
        isa::fence_proxy_async_shared();
        const TmemAddress tmem = begin_scaled<1>(done);
        isa::Fragment<float, 8> f;
        for (int r = 0; r < 8; ++r) f[r] = -1.0F;
        const TmemAddress own = tmem + atom::tmem_address(32 * isa::warp_index(), 0);
        isa::tcgen05_store(own, f);
        isa::tcgen05_wait_store();
        isa::tcgen05_fence_before_sync();
        isa::sync_threads(128);
        isa::tcgen05_fence_after_sync();
        if (isa::thread_index() == 0) {
          atom::Descriptor d = at;
          d.start += done + 1024;
          isa::tcgen05_copy<Shape, 1, Widen>(tmem, atom::encode_umma(d));
          isa::tcgen05_commit<1>(done);
        }
        isa::mbarrier_wait<Scope::cta>(done, 0, {"done", 0});
        isa::tcgen05_fence_after_sync();
        isa::Fragment<float, 8> in;
        isa::tcgen05_load(in, own);
        isa::tcgen05_wait_load(in);
        for (int r = 0; r < 8; ++r) {
          got[index(isa::thread_index() * 8 + r)] = std::bit_cast<std::uint32_t>(in[r]);
        }
        isa::tcgen05_fence_before_sync();
        isa::sync_threads(128);
        if (isa::warp_index() == 0) isa::tcgen05_deallocate<1>(tmem, 512);
      }};
  must_be_clean(run(kernel, Options{}));
  return got;
}

constexpr std::uint32_t untouched = 0xbf800000;  // -1

// Rows of `width` bytes in core matrices of 8 rows of 16 bytes, along K first 128 * rows / 8 apart.
template <isa::TmemCopy Shape>
void check_copy(const std::vector<std::vector<int>>& lanes_of_rows) {
  const auto rows = static_cast<int>(lanes_of_rows.size());
  const int width = atom::copy_bytes(Shape);
  std::vector<unsigned char> image(index(std::max(rows, 8) * width));
  atom::Descriptor d;
  d.stride = 128;
  d.leading = static_cast<std::uint32_t>(std::max(rows, 8) * 16);
  const auto value = [](int row, int column) {
    return static_cast<std::uint32_t>(row * 0x01010100 + column);
  };
  for (int row = 0; row < rows; ++row) {
    for (int c = 0; c < width / 4; ++c) {
      const std::uint32_t word = value(row, c);
      const int at = row * 16 + c % 4 * 4 + c / 4 * static_cast<int>(d.leading);
      std::memcpy(image.data() + at, &word, 4);
    }
  }
  std::vector<std::uint32_t> expected(128 * 8, untouched);
  for (int row = 0; row < rows; ++row) {
    for (const int lane : lanes_of_rows[index(row)]) {
      for (int c = 0; c < width / 4; ++c) expected[index(lane * 8 + c)] = value(row, c);
    }
  }
  EXPECT_EQ((copied<Shape, isa::TmemWiden::none>(image, d)), expected);
}

// `lane` maps a row and a number of the copy.
template <class Lane>
std::vector<std::vector<int>> rows_to_lanes(int rows, int copies, const Lane& lane) {
  std::vector<std::vector<int>> all(index(rows));
  for (int row = 0; row < rows; ++row) {
    for (int copy = 0; copy < copies; ++copy) all[index(row)].push_back(lane(row, copy));
  }
  return all;
}

TEST(Tcgen05CopyTest, EveryShape) {
  using isa::TmemCopy;
  check_copy<TmemCopy::b32x128_warpx4>(
      rows_to_lanes(32, 4, [](int row, int copy) { return row + 32 * copy; }));
  check_copy<TmemCopy::b128x256>(rows_to_lanes(128, 1, [](int row, int) { return row; }));
  check_copy<TmemCopy::b128x128>(rows_to_lanes(128, 1, [](int row, int) { return row; }));
  check_copy<TmemCopy::b4x256>(rows_to_lanes(4, 1, [](int row, int) { return 32 * row; }));
  check_copy<TmemCopy::b64x128_warpx2_02_13>(
      rows_to_lanes(64, 2, [](int row, int copy) { return row + 64 * copy; }));
  check_copy<TmemCopy::b64x128_warpx2_01_23>(rows_to_lanes(
      64, 2, [](int row, int copy) { return row % 32 + 64 * (row / 32) + 32 * copy; }));
}

// Elements e of row r, of `bits` bits each, sixteen in 16 bytes: a byte each comes out.
template <isa::TmemWiden Widen>
void check_widening(int bits) {
  std::vector<unsigned char> image(128 * 16, 0xff);
  const auto code = [bits](int row, int e) {
    return static_cast<unsigned>(row * 5 + e * 3) & ((1U << bits) - 1);
  };
  std::vector<std::uint32_t> expected(128 * 8, untouched);
  for (int row = 0; row < 128; ++row) {
    std::array<unsigned char, 16> piece{};
    std::array<unsigned char, 16> wide{};
    for (int e = 0; e < 16; ++e) {
      for (int b = 0; b < bits; ++b) {
        const int at = e * bits + b;
        piece[index(at / 8)] |= static_cast<unsigned char>((code(row, e) >> b & 1) << at % 8);
      }
      wide[index(e)] = static_cast<unsigned char>(code(row, e));
    }
    std::copy_n(piece.begin(), 2 * bits, image.begin() + row * 16);
    std::memcpy(expected.data() + row * 8, wide.data(), 16);
  }
  EXPECT_EQ((copied<isa::TmemCopy::b128x128, Widen>(image, {.leading = 16, .stride = 128})),
            expected);
}

TEST(Tcgen05CopyTest, Widening) {
  check_widening<isa::TmemWiden::from_b4x16_p64>(4);
  check_widening<isa::TmemWiden::from_b6x16_p32>(6);
}

}  // namespace
}  // namespace warpwright::model
