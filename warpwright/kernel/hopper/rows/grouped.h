// The rows of products in groups, in the order in which plans look at
// them. No stages said: as many as fit.
#pragma once

#include <array>

#include "warpwright/kernel/hopper/limits.h"
#include "warpwright/kernel/hopper/name.h"
#include "warpwright/kernel/hopper/row_words.h"

namespace warpwright::kernel::hopper {

inline constexpr auto grouped_rows = std::to_array<Row<GemmConfig>>({
    common(warp_scan(swap_ab(e4m3(128, 16)))),
    common(warp_scan(swap_ab(e4m3(128, 32)))),
    common(warp_scan(swap_ab(e4m3(128, 48)))),
    common(warp_scan(swap_ab(e4m3(128, 64)))),
    common(binary_search(swap_ab(e4m3(128, 64)))),
    common(linear_scan(swap_ab(e4m3(128, 64)))),
    common(warp_scan(swap_ab(e4m3(128, 128)))),
    common(binary_search(e4m3(128, 256))),
    common(binary_search(pingpong(e4m3(128, 128)))),
    common(warp_scan(swap_ab(blockwise(e4m3(128, 16))))),
    common(warp_scan(swap_ab(blockwise(e4m3(128, 32))))),
    common(warp_scan(swap_ab(blockwise(e4m3(128, 64))))),
    common(binary_search(blockwise(e4m3(128, 128)))),
    common(binary_search(blockwise(e4m3(128, 192)))),
    common(binary_search(in_halves(blockwise(e4m3(128, 256))))),
    common(warp_scan(swap_ab(bf16(128, 16)))),
    common(warp_scan(swap_ab(bf16(128, 32)))),
    common(warp_scan(swap_ab(bf16(128, 64)))),
    common(binary_search(pingpong(bf16(128, 128)))),
    common(binary_search(bf16(128, 256))),
    common(warp_scan(swap_ab(f16(128, 32)))),
    common(binary_search(f16(128, 256))),
    common(warp_scan(swap_ab(gated(consumers(1, e4m3(128, 32)))))),
    common(binary_search(gated(e4m3(128, 256)))),
    common(warp_scan(swap_ab(gated(consumers(1, blockwise(e4m3(128, 32))))))),
    common(binary_search(gated(blockwise(e4m3(128, 128))))),
    common(warp_scan(quantised(gated(swap_ab(blockwise(e4m3(256, 16))))))),
    common(warp_scan(quantised(gated(swap_ab(blockwise(e4m3(256, 32))))))),
    common(warp_scan(quantised(gated(swap_ab(blockwise(e4m3(256, 64))))))),
    common(binary_search(quantised(gated(in_halves(blockwise(e4m3(128, 256))))))),
    common(warp_scan(quantised(gated(swap_ab(e4m3(256, 32)))))),
    common(binary_search(quantised(gated(e4m3(128, 256))))),
    common(warp_scan(swap_ab(gated(consumers(1, bf16(128, 32)))))),
    common(binary_search(gated(bf16(128, 256)))),
    common(dynamic(binary_search(pingpong(e4m3(128, 128))))),
    // Grouped products whose tokens are read by index.
    common(by_index(warp_scan(swap_ab(bf16(128, 32))))),
    common(by_index(binary_search(pingpong(bf16(128, 128))))),
    common(by_index(warp_scan(swap_ab(e4m3(128, 32))))),
    common(by_index(binary_search(pingpong(e4m3(128, 128))))),
    common(by_index(warp_scan(swap_ab(blockwise(e4m3(128, 32)))))),
    common(by_index(binary_search(blockwise(e4m3(128, 128))))),
    common(by_index(warp_scan(swap_ab(gated(consumers(1, bf16(128, 32))))))),
    common(by_index(binary_search(gated(bf16(128, 256))))),
    common(by_index(warp_scan(swap_ab(gated(consumers(1, e4m3(128, 32))))))),
    common(by_index(binary_search(gated(e4m3(128, 256))))),
    common(by_index(warp_scan(swap_ab(gated(consumers(1, blockwise(e4m3(128, 32)))))))),
    common(by_index(binary_search(gated(blockwise(e4m3(128, 128)))))),
    common(by_index(warp_scan(quantised(gated(swap_ab(blockwise(e4m3(256, 16)))))))),
    common(by_index(warp_scan(quantised(gated(swap_ab(blockwise(e4m3(256, 24)))))))),
    more(by_index(warp_scan(swap_ab(bf16(128, 8))))),
    more(by_index(warp_scan(swap_ab(bf16(128, 16))))),
    more(by_index(warp_scan(swap_ab(bf16(128, 64))))),
    more(by_index(warp_scan(swap_ab(e4m3(128, 16))))),
    more(by_index(warp_scan(swap_ab(e4m3(128, 64))))),
    more(by_index(warp_scan(swap_ab(blockwise(e4m3(128, 16)))))),
    more(by_index(warp_scan(swap_ab(blockwise(e4m3(128, 64)))))),
    more(by_index(warp_scan(swap_ab(gated(consumers(1, bf16(128, 16))))))),
    more(by_index(warp_scan(swap_ab(gated(consumers(1, bf16(128, 64))))))),
    // For groups of some 64 to 512 tokens, cut evenly.
    common(widths<72, 112, 128, 136>(binary_search(pingpong(swap_ab(bf16(128, 144)))))),
    common(widths<72, 112, 128, 136>(binary_search(pingpong(swap_ab(e4m3(128, 144)))))),
    more(widths<136, 176, 216>(binary_search(swap_ab(bf16(128, 256))))),
    more(widths<136, 176, 216>(binary_search(swap_ab(e4m3(128, 256))))),
    more(widths<72, 112, 136>(binary_search(swap_ab(gated(bf16(256, 144)))))),
    more(widths<72, 112, 136>(binary_search(swap_ab(gated(e4m3(256, 144)))))),
    more(warp_scan(swap_ab(e4m3(128, 8)))),
    more(warp_scan(swap_ab(e4m3(128, 24)))),
    more(warp_scan(swap_ab(e4m3(128, 96)))),
    more(linear_scan(swap_ab(e4m3(128, 16)))),
    more(binary_search(swap_ab(e4m3(128, 16)))),
    more(binary_search(promoted(e4m3(128, 128)))),
    more(binary_search(blockwise(e4m3(128, 160)))),
    more(warp_scan(swap_ab(blockwise(e4m3(128, 8))))),
    more(warp_scan(quantised(swap_ab(blockwise(e4m3(128, 32)))))),
    more(binary_search(quantised(blockwise(e4m3(128, 128))))),
    more(warp_scan(quantised(gated(swap_ab(e4m3(256, 16)))))),
    more(warp_scan(quantised(gated(swap_ab(e4m3(256, 64)))))),
});

}  // namespace warpwright::kernel::hopper
