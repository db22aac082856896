// Table: folded, but codes are looked up in a table of what they become: the bytes of e4m3 of the
// magnitudes 0 to 7 times a scale, made once a group and row. Signs stay where they are. (The
// encoding is sm: -8 has no place among eight.)
#pragma once

#include "warpwright/kernel/hopper/decode/folded.h"

namespace warpwright::kernel {

struct CodeTable {
  std::uint32_t word[2];

  /// With a scale that has been stored times 512.
  WW_DEVICE static CodeTable of(float scale) {
    CodeTable table;
    WW_UNROLL for (int i = 0; i < 2; ++i) {
      float value[4];
      WW_UNROLL for (int j = 0; j < 4; ++j) {
        value[j] = scale * (static_cast<float>(4 * i + j) / packed::kScaleFactor);
      }
      table.word[i] = isa::pack_bytes<DType::e4m3>(value[0], value[1]) |
                      static_cast<std::uint32_t>(isa::pack_bytes<DType::e4m3>(value[2], value[3]))
                          << 16;
    }
    return table;
  }
};

/// A word's first four codes from the table of their row; `second`: the other four. Each lookup
/// takes four neighbours of both rows, of which every other one counts.
template <bool second>
WW_DEVICE std::uint32_t look_up(std::uint32_t word, const CodeTable& of) {
  const std::uint32_t magnitudes = word & 0x77777777U;
  const std::uint32_t found = isa::permute_bytes(
      isa::permute_bytes(of.word[0], of.word[1], magnitudes),
      isa::permute_bytes(of.word[0], of.word[1], magnitudes >> 16), second ? 0x7531 : 0x6420);
  return found | ((second ? packed::second_half(word) : word) & packed::signs);
}

/// The codes of one k_block from the tables of the thread's two rows. No wgmma that reads `to` may
/// be in flight.
WW_DEVICE void convert_scaled(const std::uint32_t (&word)[2], std::uint32_t /*carries*/,
                              const CodeTable (&tables)[2], KBlockA& to) {
  WW_UNROLL for (int p = 0; p < 2; ++p) {
    to[2 * p] = look_up<false>(word[p], tables[0]);
    to[2 * p + 1] = look_up<true>(word[p], tables[1]);
  }
}

}  // namespace warpwright::kernel
