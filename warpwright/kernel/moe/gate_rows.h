// The kernel that gates the rows between the products, where the first product leaves gates and ups
// as they are: for weights whose gated tiles are too small for many tokens. Rows stay in the order
// of the experts, and are copied or quantised on the way, as GatherRowsKernel's.
#pragma once

#include <cstdint>

#include "warpwright/isa/fence.h"
#include "warpwright/isa/thread.h"
#include "warpwright/kernel/epilogue_values.h"
#include "warpwright/kernel/moe/token_rows.h"

namespace warpwright::kernel {

struct GateRowsParams {
  /// `k` elements of a row come of 2 k of x.
  TokenRows rows;
  ActivationParams activation;
  bool interleaved = false;  ///< gates and ups alternate, else all gates lie before all ups
};

/// activation(gate) * up of a row's two, in float32 of what was rounded to x's type; rounded again.
class ReadGated {
 public:
  static constexpr bool has_codes = false;
  /// Others are read and gated twice, so warps share rows with one scale (TokenRowsShape).
  static constexpr int kept = 3;

  WW_DEVICE explicit ReadGated(const GateRowsParams& p)
      : p_(p),
        whole_(begin_at_multiples<16>(p.rows.x, p.rows.x_pitch) &&
               (p.interleaved || p.rows.k % 8 == 0)) {}

  /// Gates and ups, or eight neighbours and those behind them where they alternate.
  struct Raw {
    Eight one;
    Eight other;
  };

  WW_DEVICE Raw load(const TokenRows& p, int token, int column) const {
    const unsigned char* const row = p.x + token * p.x_pitch;
    const bool in_turns = p_.interleaved;
    const int first = in_turns ? 2 * column : column;
    return {load_eight(row, first, in_turns ? 2 * p.k : p.k, whole_),
            load_eight(row, in_turns ? first + 8 : p.k + column, 2 * p.k, whole_)};
  }

  WW_DEVICE Eight made(const TokenRows& p, int /*token*/, const Raw& raw) const {
    Eight gates = raw.one;
    Eight ups = raw.other;
    if (p_.interleaved) {
      gates = apart(raw.one, raw.other, false);
      ups = apart(raw.one, raw.other, true);
    }
    if (p_.activation.by_erf) return gated_by_erf(p.type, gates, ups);
    return p.type == DType::bf16 ? gated<DType::bf16>(gates, ups) : gated<DType::f16>(gates, ups);
  }

 private:
  /// The lower (`high`: the upper) elements of eight words.
  WW_DEVICE static Eight apart(const Eight& one, const Eight& other, bool high) {
    Eight made;
    WW_UNROLL
    for (int i = 0; i < 4; ++i) {
      const Eight& from = i < 2 ? one : other;
      const std::uint32_t a = from.word[i % 2 * 2];
      const std::uint32_t b = from.word[i % 2 * 2 + 1];
      made.word[i] = high ? a >> 16 | (b & 0xffff0000U) : (a & 0xffffU) | b << 16;
    }
    return made;
  }

  /// Half after half, which needs fewer registers.
  template <DType type>
  WW_DEVICE Eight gated(const Eight& gates, const Eight& ups) const {
    Eight all;
    WW_UNROLL
    for (int i = 0; i < 4; i += 2) {
      float gate[4];
      float up[4];
      widen<type>(Eight{{gates.word[i], gates.word[i + 1]}}, gate);
      widen<type>(Eight{{ups.word[i], ups.word[i + 1]}}, up);
      multiply_gate(p_.activation, gate, up);
      const Eight made = narrowed(gate, type);
      all.word[i] = made.word[0];
      all.word[i + 1] = made.word[1];
      isa::keep_order();
    }
    return all;
  }

  /// By a loop, which is short: words take turns in the first place.
  WW_DEVICE Eight gated_by_erf(DType type, Eight gates, Eight ups) const {
    WW_NO_UNROLL
    for (int i = 0; i < 4; ++i) {
      float gate[2];
      float up[2];
      widen(gates, type, gate);
      widen(ups, type, up);
      multiply_gate<true>(p_.activation, gate, up);
      const Eight made = narrowed(gate, type);
      gates = {{gates.word[1], gates.word[2], gates.word[3], made.word[0]}};
      ups = {{ups.word[1], ups.word[2], ups.word[3], 0}};
    }
    return gates;
  }

  const GateRowsParams& p_;
  bool whole_;
};

struct GateRowsKernel : RowsLaunch {
  using Params = GateRowsParams;
  static int ctas(const Params& p, int sms) { return ctas_for(TokenRowsWork::items(p.rows), sms); }

  /// The whole kernel, for one thread of `threads`.
  WW_DEVICE static void run(const Params& p) {
    isa::set_role("gates rows");
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    isa::launch_dependents();  // as GatherRowsKernel does
    TokenRowsWork::run(p.rows, SlotsInMemory(p.rows), ReadGated(p), ready,
                       share_of(TokenRowsWork::items(p.rows)));
  }
};

}  // namespace warpwright::kernel
