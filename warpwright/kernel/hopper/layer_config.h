// The kernels that do a whole layer of experts in one launch, as values: both products by one ring
// of stages, and what a launch takes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "warpwright/kernel/hopper/faults.h"
#include "warpwright/kernel/hopper/row_words.h"
#include "warpwright/kernel/moe/slot_adder.h"
#include "warpwright/kernel/moe/slot_tiles.h"
#include "warpwright/kernel/params.h"
#include "warpwright/pipeline/tile_ring.h"

namespace warpwright::kernel {

/// Both products of a layer. One consumer warpgroup multiplies, or warps by themselves; stages are
/// the same of both.
struct LayerConfig {
  GemmConfig first;   ///< by w13, gated
  GemmConfig second;  ///< by w2; its sums are float32. Rows of both come by number
  int warps = 0;      ///< that multiply by themselves (warp_layer.h); 0: a warpgroup does (layer.h)

  friend constexpr bool operator==(const LayerConfig&, const LayerConfig&) = default;
};

/// The warp of a layer that draws.
inline constexpr int ticket_warp = 1;

/// Do rows of 16 bits become e4m3 where a launch brings them? Then rows between the products lie in
/// memory as they come from the gate.
constexpr bool quantises_rows(const LayerConfig& c) {
  return is_blockwise(c.first);
}

constexpr bool by_warps(const LayerConfig& c) {
  return c.warps > 0;
}
/// Rows of weights of a block, which a warp multiplies: the M of mma.sync. Its N has room for twice
/// as many tokens as those of a tile, which there are few of.
inline constexpr int block_rows = 16;
inline constexpr int block_tokens = 4;

constexpr int threads(const LayerConfig& c) {
  return by_warps(c) ? 32 * c.warps : threads(c.first);
}
constexpr int tile_tokens(const LayerConfig& c) {
  return by_warps(c) ? block_tokens : c.first.tile_n;
}
/// Warps that count at an expert's flag, of an item of the first product.
constexpr int counting_warps(const LayerConfig& c) {
  return by_warps(c) ? c.warps : consumer_warps(c.first);
}
/// K of a unit of a block, and its bytes with scales, where warps multiply by themselves: of 64
/// bytes of a row, or of a packed tile.
constexpr int unit_k(const LayerConfig& c) {
  return packed_a(c.first) ? packed::kTileK : 64 * 8 / operand_bits(c.first);
}
constexpr int unit_bytes(const LayerConfig& c) {
  return block_rows * 64 + (packed_a(c.first) ? 128 : quantises_rows(c) ? 16 : 0);
}
/// Rows of weights of a tile of either product, as items are counted.
constexpr int weight_rows(const LayerConfig& c, bool second) {
  return by_warps(c) ? block_rows : result_rows(second ? c.second : c.first);
}

/// Registers of a thread that loads, and of one that multiplies. Decoding weights takes most.
constexpr int producer_registers(const LayerConfig& c) {
  return c.first.ctas_per_sm == 1 ? launch_registers(c.first) : 56;
}
constexpr int consumer_registers(const LayerConfig& c) {
  return 2 * launch_registers(c.first) - producer_registers(c);
}
constexpr bool moves_registers(const LayerConfig& c) {
  return producer_registers(c) < launch_registers(c.first);
}

/// Who must know the next item: the producer, the warps that copy tokens, all consumer warps, and
/// who draws. One answer: who draws ahead takes what others would begin sooner.
constexpr pipeline::TileRingShape tile_ring_shape(const LayerConfig& c) {
  if (by_warps(c)) return {2, c.warps};
  return {1, 2 + row_warps + consumer_warps(c.first)};
}

/// Where things lie in shared memory: a product's, then the ring of numbers and the tables of
/// slots. What the sort needs meanwhile lies in the epilogue's buffers.
struct LayerMap {
  SmemMap product;
  int numbers = 0;
  int first = 0;  ///< the number that is drawn first
  int tables = 0;
  int bytes = 0;
};
constexpr LayerMap layer_map(const LayerConfig& c) {
  const bool is_larger = epilogue_bytes(c.second) > epilogue_bytes(c.first);
  LayerMap map{smem_map(is_larger ? c.second : c.first)};
  map.numbers = (map.product.bytes + 15) / 16 * 16;
  map.first = (map.numbers + pipeline::ring_bytes(tile_ring_shape(c)) + 15) / 16 * 16;
  map.tables = map.first + 16;
  map.bytes = map.tables + SlotTiles<1>::bytes;
  return map;
}

/// The same where warps multiply by themselves: each has stages of two units. Rows of tokens are
/// those of all tokens for the first product, then each warp's own for the second; sums are those
/// of both in turn.
struct WarpLayerMap {
  static constexpr int most_slots = 16;
  static constexpr int token_bytes = 24 * 1024;  ///< at least
  static constexpr int sum_rows = 128;  ///< of a block of the second product: slots times parts
  static constexpr int sum_bytes = 4 * sum_rows * block_rows;
  int stages = 0;
  int tokens = 0;
  int sums = 0;
  int numbers = 0;
  int first = 0;
  int tables = 0;
  int bytes = 0;
};
/// Bytes for tokens. A stage of weights of 16 bits is small enough for one more of them to fit.
constexpr int token_bytes(const LayerConfig& c) {
  return WarpLayerMap::token_bytes + (unit_bytes(c) > block_rows * 64 ? 7 * 1024 : 0);
}
constexpr WarpLayerMap warp_layer_map(const LayerConfig& c) {
  WarpLayerMap map;
  map.tokens = c.warps * c.first.stages * 2 * unit_bytes(c);
  map.sums = map.tokens + token_bytes(c);
  map.numbers = map.sums + WarpLayerMap::sum_bytes;
  map.first = (map.numbers + pipeline::ring_bytes(tile_ring_shape(c)) + 15) / 16 * 16;
  map.tables = map.first + 16;
  map.bytes = map.tables + SlotTiles<1, few_slots>::bytes;
  return map;
}
/// Bytes from row to row of tokens of `k` elements, of two bytes each there, and a scale of each
/// 128 behind. Rows begin 64 bytes apart from where all banks are the same: two are read at once.
constexpr std::int64_t token_row_bytes(std::int64_t k) {
  return (2 * k + 4 * ((k + 127) / 128) + 127) / 128 * 128 + 64;
}
constexpr int shared_bytes(const LayerConfig& c) {
  return by_warps(c) ? warp_layer_map(c).bytes : layer_map(c).bytes;
}

constexpr bool fits_smem(const LayerConfig& c) {
  return c.first.ctas_per_sm * (shared_bytes(c) + reserved_smem_bytes) <= sm_smem_bytes;
}

/// Weights of 16 bits in global memory, K-major: bytes from row to row, and from expert to expert.
struct LayerWeights {
  const std::byte* data = nullptr;
  std::int64_t pitch = 0;
  std::int64_t expert = 0;
};

/// What a launch takes.
struct LayerParams {
  GemmParams first;
  GemmParams second;
  SlotTilesParams slots;
  SumSlotsParams sum;                   ///< its rows are partial sums of the second product
  const unsigned char* bias = nullptr;  ///< of w2's rows, side by side; null: none
  std::int64_t bias_pitch = 0;          ///< bytes from expert to expert
  bool bias_is_wide = true;             ///< float32, else x's type
  tile::Divisor first_tiles;            ///< items of a tile of tokens: tiles along w13
  tile::Divisor second_items;           ///< the same: parts of tiles along w2
  int second_tiles = 0;                 ///< tiles along w2
  int k_parts = 1;                      ///< of each, along K
  int part_k_tiles = 0;                 ///< k_tiles of a part; the last may have fewer
  /// Flags, all 0 between launches: the number that is drawn next; for each expert, `expert_step`
  /// words apart, how many warps have stored their rows of a tile, and in the upper half how many
  /// items of the second product have seen them all; for each token, and tile along w2, how many
  /// parts of its rows are there.
  std::uint32_t* flags = nullptr;

  static constexpr int experts_at = counter_bytes / 4;
  static constexpr int expert_step = 8;
  static constexpr int seen = 1 << 16;

  [[nodiscard]] constexpr std::uint32_t* expert_flag(int expert) const {
    return flags + experts_at + expert * expert_step;
  }
  [[nodiscard]] constexpr std::uint32_t* token_flag(int token, int tile) const {
    return flags + experts_at + slots.experts * expert_step + token * second_tiles + tile;
  }
  /// Bytes of the flags.
  static constexpr std::int64_t flag_bytes(std::int64_t experts, std::int64_t tokens,
                                           std::int64_t tiles) {
    return (4 * (experts_at + experts * expert_step + tokens * tiles) + 255) / 256 * 256;
  }
};

/// From a gate's weights to those of its up, and from its scales to theirs, in floats.
struct OtherPart {
  std::int64_t bytes = 0;
  std::int64_t scales = 0;
};

/// A product as warps take it that multiply by themselves. Units are those of K.
struct WarpProduct {
  LayerWeights weights;
  std::int64_t eight_rows = 0;  ///< bytes, from a gate, or row, to the eighth behind
  OtherPart ups;
  PackedParams packed;
  TokenParams tokens;
  GateParams gate;
  Vector scales;  ///< of rows of weights
  Vector biases;
  ScaleMatrix block_scales;  ///< of weights, in blocks of 128 x 128
  float alpha = 1;
  const float* factors[2] = {};  ///< of all sums of an expert, from one to the next so many floats
  int factor_strides[2] = {};
  int k_units = 0;
  int share = 0;  ///< units of a warp's share of a block
};

/// What a launch takes where warps multiply by themselves. (Not more: each line of the constant
/// bank that is read first costs all warps some 100 ns.)
struct WarpLayerParams {
  WarpProduct first;
  WarpProduct second;
  SlotTilesParams slots;
  ActivationParams activation;
  void* inner = nullptr;  ///< rows between the products
  std::int64_t inner_pitch = 0;
  int inner_columns = 0;
  tile::Divisor first_items;  ///< of a tile of tokens: blocks of the first product
  tile::Divisor by_parts;     ///< shares of the K of a block of the second product
  int second_items = 0;
  int token_pitch = 0;    ///< of all tokens in shared memory: token_row_bytes
  bool in_place = false;  ///< the result lies where tokens do
  /// Rows of the second product that a warp brings at a time: units of so many rows of an expert,
  /// and the bytes from row to row.
  struct Chunk {
    int units = 0;
    int pitch = 0;
  } chunks[block_tokens];
  SumSlotsParams sum;  ///< its rows are in shared memory
  const unsigned char* bias = nullptr;
  std::int64_t bias_pitch = 0;
  bool bias_is_wide = true;
  /// All 0 between launches: the number that is drawn next; items of the second product that wait
  /// for nobody any more; for each expert how often warps have counted its rows.
  std::uint32_t* flags = nullptr;

  static constexpr int done_at = 8;
  [[nodiscard]] constexpr std::uint32_t* done_flag() const { return flags + done_at; }
  [[nodiscard]] constexpr std::uint32_t* expert_flag(int expert) const {
    return flags + LayerParams::experts_at + expert * LayerParams::expert_step;
  }
};

/// A kernel, by its name.
struct LayerRow {
  LayerConfig config;
  std::string_view name;
};

namespace hopper {

/// Both products by tiles of `plain`, which is swapped and not grouped yet, with as many stages as
/// fit.
constexpr LayerConfig layer(GemmConfig plain) {
  plain = warp_scan(consumers(1, plain));
  const auto of = [&](int stages) {
    plain.stages = stages;
    return LayerConfig{by_index(gated(plain)), to(DType::f32, by_index(plain))};
  };
  int stages = 1;
  while (fits_smem(of(stages + 1))) ++stages;
  return of(stages);
}

/// The same by so many warps, which multiply by themselves.
constexpr LayerConfig by_warps(int warps, GemmConfig plain) {
  plain = warp_scan(consumers(1, plain));
  const auto of = [&](int stages) {
    plain.stages = stages;
    return LayerConfig{by_index(gated(plain)), to(DType::f32, by_index(plain)), warps};
  };
  int stages = 1;
  while (fits_smem(of(stages + 1))) ++stages;
  return of(stages);
}

/// Those that there are. A plan looks for one of its types, with tiles of as many tokens as an
/// expert has.
inline constexpr auto layer_rows = std::to_array<LayerRow>({
    {by_warps(8, two_ctas(swap_ab(bf16(128, 8)))), "layer_bf16_w8"},
    {by_warps(8, two_ctas(fp4_bf16(128, 16))), "layer_e2m1xbf16_w8"},
    {by_warps(8, two_ctas(exact(s4_bf16(128, 16)))), "layer_s4xbf16_w8"},
    {by_warps(8, two_ctas(swap_ab(blockwise(e4m3(128, 8))))), "layer_e4m3_w8_bs"},
    {layer(swap_ab(bf16(128, 8))), "layer_bf16_128x8"},
    {layer(swap_ab(bf16(128, 16))), "layer_bf16_128x16"},
    {layer(swap_ab(bf16(128, 32))), "layer_bf16_128x32"},
    {layer(two_ctas(fp4_bf16(128, 16))), "layer_e2m1xbf16_128x16"},
    {layer(two_ctas(exact(s4_bf16(128, 16)))), "layer_s4xbf16_128x16"},
});

}  // namespace hopper

inline constexpr int layer_count = static_cast<int>(hopper::layer_rows.size());

/// What cannot be such a kernel: why, as a sentence; null when it can.
constexpr const char* config_fault(const LayerConfig& c) {
  if (by_warps(c)) {
    if (c.warps < 2 || c.first.stages < 3 || WarpLayerMap::most_slots > few_slots ||
        WarpLayerMap::sum_bytes < 4 * c.warps * 4 * block_rows * block_tokens ||
        WarpLayerMap::sum_rows < WarpLayerMap::most_slots * c.warps) {
      return "warps that multiply by themselves have stages of their own, and sums of two items";
    }
    return fits_smem(c) ? nullptr : "the stages do not fit into shared memory";
  }
  if (const char* fault = config_fault(c.first)) return fault;
  if (const char* fault = config_fault(c.second)) return fault;
  if (!is_swapped(c.first) || threads(c.first) != SlotTiles<1>::threads ||
      c.first.tile_m != c.second.tile_m || c.first.tile_n != c.second.tile_n ||
      c.first.stages != c.second.stages || !gathers(c.first) || !gathers(c.second)) {
    return "both products of a layer have the same stages, swapped, and one consumer warpgroup";
  }
  if (epilogue_bytes(c.first) < SlotTiles<1>::scratch_bytes) {
    return "slots are sorted in the epilogue's buffers";
  }
  return fits_smem(c) ? nullptr : "the stages do not fit into shared memory";
}

/// A row as a type, for which a kernel is instantiated.
template <int row>
struct LayerInstance {
  static constexpr LayerConfig config = hopper::layer_rows[row].config;
  static constexpr std::string_view name = hopper::layer_rows[row].name;
};
// So that symbols and profilers show the names.
struct layer_bf16_w8 : LayerInstance<0> {};
struct layer_e2m1xbf16_w8 : LayerInstance<1> {};
struct layer_s4xbf16_w8 : LayerInstance<2> {};
struct layer_e4m3_w8_bs : LayerInstance<3> {};
struct layer_bf16_128x8 : LayerInstance<4> {};
struct layer_bf16_128x16 : LayerInstance<5> {};
struct layer_bf16_128x32 : LayerInstance<6> {};
struct layer_e2m1xbf16_128x16 : LayerInstance<7> {};
struct layer_s4xbf16_128x16 : LayerInstance<8> {};
/// All of them.
using LayerInstances = Instances<layer_bf16_w8, layer_e2m1xbf16_w8, layer_s4xbf16_w8,
                                 layer_e4m3_w8_bs, layer_bf16_128x8, layer_bf16_128x16,
                                 layer_bf16_128x32, layer_e2m1xbf16_128x16, layer_s4xbf16_128x16>;
static_assert(layer_count == 9);

}  // namespace warpwright::kernel
