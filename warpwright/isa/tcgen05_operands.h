// Operand lists of tcgen05.ld and tcgen05.st: asm operands cannot be expanded from a pack, so there
// is one macro for every count of registers. Included only by tcgen05_memory.h.
#pragma once

#include "warpwright/isa/wgmma_operands.h"

// clang-format off
// The registers in the instruction's text, below the counts that wgmma has.
#define WW_TEXT_1 "%0"
#define WW_TEXT_2 "%0, %1"
// The registers as outputs.
#define WW_OUT_1 "=f"(d[0])
#define WW_OUT_2 WW_OUT_1, "=f"(d[1])
#define WW_OUT_4 WW_OUT_2, "=f"(d[2]), "=f"(d[3])
#define WW_OUT_8 WW_OUT_4, "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7])
#define WW_OUT_12 WW_OUT_8, "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11])
#define WW_OUT_16 WW_OUT_12, "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15])
#define WW_OUT_20 WW_OUT_16, "=f"(d[16]), "=f"(d[17]), "=f"(d[18]), "=f"(d[19])
#define WW_OUT_24 WW_OUT_20, "=f"(d[20]), "=f"(d[21]), "=f"(d[22]), "=f"(d[23])
#define WW_OUT_28 WW_OUT_24, "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27])
#define WW_OUT_32 WW_OUT_28, "=f"(d[28]), "=f"(d[29]), "=f"(d[30]), "=f"(d[31])
#define WW_OUT_36 WW_OUT_32, "=f"(d[32]), "=f"(d[33]), "=f"(d[34]), "=f"(d[35])
#define WW_OUT_40 WW_OUT_36, "=f"(d[36]), "=f"(d[37]), "=f"(d[38]), "=f"(d[39])
#define WW_OUT_44 WW_OUT_40, "=f"(d[40]), "=f"(d[41]), "=f"(d[42]), "=f"(d[43])
#define WW_OUT_48 WW_OUT_44, "=f"(d[44]), "=f"(d[45]), "=f"(d[46]), "=f"(d[47])
#define WW_OUT_52 WW_OUT_48, "=f"(d[48]), "=f"(d[49]), "=f"(d[50]), "=f"(d[51])
#define WW_OUT_56 WW_OUT_52, "=f"(d[52]), "=f"(d[53]), "=f"(d[54]), "=f"(d[55])
#define WW_OUT_60 WW_OUT_56, "=f"(d[56]), "=f"(d[57]), "=f"(d[58]), "=f"(d[59])
#define WW_OUT_64 WW_OUT_60, "=f"(d[60]), "=f"(d[61]), "=f"(d[62]), "=f"(d[63])
#define WW_OUT_68 WW_OUT_64, "=f"(d[64]), "=f"(d[65]), "=f"(d[66]), "=f"(d[67])
#define WW_OUT_72 WW_OUT_68, "=f"(d[68]), "=f"(d[69]), "=f"(d[70]), "=f"(d[71])
#define WW_OUT_76 WW_OUT_72, "=f"(d[72]), "=f"(d[73]), "=f"(d[74]), "=f"(d[75])
#define WW_OUT_80 WW_OUT_76, "=f"(d[76]), "=f"(d[77]), "=f"(d[78]), "=f"(d[79])
#define WW_OUT_84 WW_OUT_80, "=f"(d[80]), "=f"(d[81]), "=f"(d[82]), "=f"(d[83])
#define WW_OUT_88 WW_OUT_84, "=f"(d[84]), "=f"(d[85]), "=f"(d[86]), "=f"(d[87])
#define WW_OUT_92 WW_OUT_88, "=f"(d[88]), "=f"(d[89]), "=f"(d[90]), "=f"(d[91])
#define WW_OUT_96 WW_OUT_92, "=f"(d[92]), "=f"(d[93]), "=f"(d[94]), "=f"(d[95])
#define WW_OUT_100 WW_OUT_96, "=f"(d[96]), "=f"(d[97]), "=f"(d[98]), "=f"(d[99])
#define WW_OUT_104 WW_OUT_100, "=f"(d[100]), "=f"(d[101]), "=f"(d[102]), "=f"(d[103])
#define WW_OUT_108 WW_OUT_104, "=f"(d[104]), "=f"(d[105]), "=f"(d[106]), "=f"(d[107])
#define WW_OUT_112 WW_OUT_108, "=f"(d[108]), "=f"(d[109]), "=f"(d[110]), "=f"(d[111])
#define WW_OUT_116 WW_OUT_112, "=f"(d[112]), "=f"(d[113]), "=f"(d[114]), "=f"(d[115])
#define WW_OUT_120 WW_OUT_116, "=f"(d[116]), "=f"(d[117]), "=f"(d[118]), "=f"(d[119])
#define WW_OUT_124 WW_OUT_120, "=f"(d[120]), "=f"(d[121]), "=f"(d[122]), "=f"(d[123])
#define WW_OUT_128 WW_OUT_124, "=f"(d[124]), "=f"(d[125]), "=f"(d[126]), "=f"(d[127])
// The registers as inputs.
#define WW_IN_1 "f"(d[0])
#define WW_IN_2 WW_IN_1, "f"(d[1])
#define WW_IN_4 WW_IN_2, "f"(d[2]), "f"(d[3])
#define WW_IN_8 WW_IN_4, "f"(d[4]), "f"(d[5]), "f"(d[6]), "f"(d[7])
#define WW_IN_12 WW_IN_8, "f"(d[8]), "f"(d[9]), "f"(d[10]), "f"(d[11])
#define WW_IN_16 WW_IN_12, "f"(d[12]), "f"(d[13]), "f"(d[14]), "f"(d[15])
#define WW_IN_20 WW_IN_16, "f"(d[16]), "f"(d[17]), "f"(d[18]), "f"(d[19])
#define WW_IN_24 WW_IN_20, "f"(d[20]), "f"(d[21]), "f"(d[22]), "f"(d[23])
#define WW_IN_28 WW_IN_24, "f"(d[24]), "f"(d[25]), "f"(d[26]), "f"(d[27])
#define WW_IN_32 WW_IN_28, "f"(d[28]), "f"(d[29]), "f"(d[30]), "f"(d[31])
#define WW_IN_36 WW_IN_32, "f"(d[32]), "f"(d[33]), "f"(d[34]), "f"(d[35])
#define WW_IN_40 WW_IN_36, "f"(d[36]), "f"(d[37]), "f"(d[38]), "f"(d[39])
#define WW_IN_44 WW_IN_40, "f"(d[40]), "f"(d[41]), "f"(d[42]), "f"(d[43])
#define WW_IN_48 WW_IN_44, "f"(d[44]), "f"(d[45]), "f"(d[46]), "f"(d[47])
#define WW_IN_52 WW_IN_48, "f"(d[48]), "f"(d[49]), "f"(d[50]), "f"(d[51])
#define WW_IN_56 WW_IN_52, "f"(d[52]), "f"(d[53]), "f"(d[54]), "f"(d[55])
#define WW_IN_60 WW_IN_56, "f"(d[56]), "f"(d[57]), "f"(d[58]), "f"(d[59])
#define WW_IN_64 WW_IN_60, "f"(d[60]), "f"(d[61]), "f"(d[62]), "f"(d[63])
#define WW_IN_68 WW_IN_64, "f"(d[64]), "f"(d[65]), "f"(d[66]), "f"(d[67])
#define WW_IN_72 WW_IN_68, "f"(d[68]), "f"(d[69]), "f"(d[70]), "f"(d[71])
#define WW_IN_76 WW_IN_72, "f"(d[72]), "f"(d[73]), "f"(d[74]), "f"(d[75])
#define WW_IN_80 WW_IN_76, "f"(d[76]), "f"(d[77]), "f"(d[78]), "f"(d[79])
#define WW_IN_84 WW_IN_80, "f"(d[80]), "f"(d[81]), "f"(d[82]), "f"(d[83])
#define WW_IN_88 WW_IN_84, "f"(d[84]), "f"(d[85]), "f"(d[86]), "f"(d[87])
#define WW_IN_92 WW_IN_88, "f"(d[88]), "f"(d[89]), "f"(d[90]), "f"(d[91])
#define WW_IN_96 WW_IN_92, "f"(d[92]), "f"(d[93]), "f"(d[94]), "f"(d[95])
#define WW_IN_100 WW_IN_96, "f"(d[96]), "f"(d[97]), "f"(d[98]), "f"(d[99])
#define WW_IN_104 WW_IN_100, "f"(d[100]), "f"(d[101]), "f"(d[102]), "f"(d[103])
#define WW_IN_108 WW_IN_104, "f"(d[104]), "f"(d[105]), "f"(d[106]), "f"(d[107])
#define WW_IN_112 WW_IN_108, "f"(d[108]), "f"(d[109]), "f"(d[110]), "f"(d[111])
#define WW_IN_116 WW_IN_112, "f"(d[112]), "f"(d[113]), "f"(d[114]), "f"(d[115])
#define WW_IN_120 WW_IN_116, "f"(d[116]), "f"(d[117]), "f"(d[118]), "f"(d[119])
#define WW_IN_124 WW_IN_120, "f"(d[120]), "f"(d[121]), "f"(d[122]), "f"(d[123])
#define WW_IN_128 WW_IN_124, "f"(d[124]), "f"(d[125]), "f"(d[126]), "f"(d[127])
// X(lanes of the shape, its name, repetitions, registers, number of the operand after these)
#define WW_TMEM_SHAPES(X) \
  X(32, "32x32b", 1, 1, "%1") \
  X(32, "32x32b", 2, 2, "%2") \
  X(32, "32x32b", 4, 4, "%4") \
  X(32, "32x32b", 8, 8, "%8") \
  X(32, "32x32b", 16, 16, "%16") \
  X(32, "32x32b", 32, 32, "%32") \
  X(32, "32x32b", 64, 64, "%64") \
  X(32, "32x32b", 128, 128, "%128") \
  X(16, "16x256b", 1, 4, "%4") \
  X(16, "16x256b", 2, 8, "%8") \
  X(16, "16x256b", 4, 16, "%16") \
  X(16, "16x256b", 8, 32, "%32") \
  X(16, "16x256b", 16, 64, "%64") \
  X(16, "16x256b", 32, 128, "%128")
// clang-format on
