#include "cli/commands/mma_command.h"

#include <gtest/gtest.h>

#include "tests/cli/run_cli.h"

namespace warpwright::cli {
namespace {

TEST(MmaCommand, PrintsAtomsAndTiles) {
  const CliResult volta = run_cli({"mma", "m8n8k4", "--majors", "nt", "--tiled", "(2,2):(2,1)"});
  EXPECT_EQ(volta.status, 0) << volta.err;
  EXPECT_EQ(
      volta.out,
      "m8n8k4 f16 x f16 + f32, on sm_70, 75; made of other instructions on sm_80, 86, 89, 90, "
      "100, 103, 110, 120, 121\n"
      "TiledMMA\n"
      "  ThrLayoutVMNK:  ((4,2),2,2,1):((1,16),8,4,0)\n"
      "  PermutationMNK: (_,_,_)\n"
      "MMA_Atom\n"
      "  ThrID:      (4,2):(1,16)\n"
      "  Shape_MNK:  (8,8,4)\n"
      "  LayoutA_TV: ((4,2),4):((8,4),1)\n"
      "  LayoutB_TV: ((4,2),4):((8,4),1)\n"
      "  LayoutC_TV: ((2,2,2),(2,2,2)):((1,16,4),(8,2,32))\n");
  const CliResult s8 = run_cli({"mma", "m16n8k32", "--a-dtype", "s8", "--target", "sm_80"});
  EXPECT_EQ(s8.status, 0) << s8.err;
  EXPECT_EQ(s8.out.find("m16n8k32 s8 x s8 + s32, on sm_80"), 0U);
  const CliResult fp8 = run_cli({"mma", "m16n8k32", "--a-dtype", "e4m3", "--b-dtype", "e5m2"});
  EXPECT_EQ(fp8.out.find("m16n8k32 e4m3 x e5m2 + f32, on sm_89, 120, 121;"), 0U) << fp8.err;
  const CliResult table = run_cli({"mma", "wgmma", "m64n64k16", "--table"});
  EXPECT_NE(table.out.find("\n  3.31   55,6   55,7   63,6 "), std::string::npos) << table.out;
  const CliResult permuted =
      run_cli({"mma", "m16n8k16", "--tiled", "2x2", "--permute", "<_,(8,2,2):(1,16,8)>"});
  EXPECT_NE(permuted.out.find("PermutationMNK: (_,(8,2,2):(1,16,8),_)\n"), std::string::npos)
      << permuted.err;
}

TEST(MmaCommand, Refusals) {
  expect_refused({"mma"}, "MMA");
  expect_refused({"mma", "m16n8k16", "--target", "sm_75"}, "it has m8n8k4 of f16");
  expect_refused({"mma", "m16n8k16", "--target", "ampere"}, "a target is written sm_80");
  expect_refused({"mma", "m16n8k16", "--target", "72"}, "targets are sm_70, 75, 80");
  expect_refused({"mma", "m16n8k17"}, "there are m8n8k4 of f16");
  expect_refused({"mma", "16x8x16"}, "one is written m16n8k16");
  expect_refused({"mma", "hmma", "m16n8k16"}, "known are mma, f8f6f4");
  expect_refused({"mma", "m16n8k16", "--a-dtype", "s8", "--sums", "f32"}, "into s32");
  expect_refused({"mma", "m16n8k16", "--a-dtype", "i3"}, "there is no such type");
  expect_refused({"mma", "m16n8k16", "--majors", "nt"}, "K-major alone (TN)");
  expect_refused({"mma", "m8n8k4", "--majors", "xx"}, "it is tn, nt, nn or tt");
  expect_refused({"mma", "m16n8k16", "--tiled", "(2,2):(1,1)"}, "without gaps");
  expect_refused({"mma", "m16n8k16", "--tiled", "2by2"}, "copies of the MMA are written 2x2");
  expect_refused({"mma", "m16n8k16", "--tiled", "2x2", "--permute", "<24>"},
                 "no multiple of the 32");
  expect_refused({"mma", "m16n8k16", "--permute", "(2,2)"}, "is a tiler of M, N and K");
  expect_refused({"mma", "m16n8k16", "m8n8k4", "x"},
                 "[KIND] SHAPE takes 1 to 2 values, and 3 are given");
}

}  // namespace
}  // namespace warpwright::cli
