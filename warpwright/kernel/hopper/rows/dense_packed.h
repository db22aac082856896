// The rows of whole products with packed weights, in the order in which plans look at
// them. No stages said: as many as fit.
#pragma once

#include <array>

#include "warpwright/kernel/hopper/limits.h"
#include "warpwright/kernel/hopper/name.h"
#include "warpwright/kernel/hopper/row_words.h"

namespace warpwright::kernel::hopper {

inline constexpr auto dense_packed_rows = std::to_array<Row<GemmConfig>>({
    common(two_ctas(cluster_k(exact_by_two(s4(128, 16))))),
    common(two_ctas(cluster_k(exact_by_two(s4(64, 16))))),
    common(cluster_k(exact_by_two(s4(128, 64)))),
    common(exact(s4(128, 128))),
    common(cluster_k(blockwise(s4(128, 32)))),
    common(cluster_k(exact(to(DType::f16, s4(128, 64))))),
    common(cluster_k(zero_points(exact(s4(128, 64))))),
    common(gated(consumers(1, exact(s4(128, 32))))),
    // Weights of e2m1, dense products: tokens of e4m3, then of bf16.
    common(two_ctas(cluster_k(exact_by_two(mxf4(128, 16))))),
    common(two_ctas(cluster_k(exact_by_two(mxf4(64, 16))))),
    common(cluster_k(mxf4(128, 64))),
    common(mxf4(128, 256)),
    common(cluster_k(blockwise(mxf4(128, 32)))),
    common(two_ctas(cluster_k(fp4_bf16(128, 16)))),
    common(cluster_k(fp4_bf16(128, 64))),
    common(fp4_bf16(128, 256)),
    // Int4 weights for tokens of bf16.
    common(two_ctas(cluster_k(exact(s4_bf16(128, 16))))),
    common(cluster_k(exact(s4_bf16(128, 64)))),
    common(exact(s4_bf16(128, 128))),
    common(cluster_k(s4_bf16(128, 64))),
    more(s4_bf16(128, 256)),
    common(cluster_k(zero_points(exact(s4_bf16(128, 64))))),
    common(gated(consumers(1, exact(s4_bf16(128, 32))))),
    // Both for tokens of f16.
    common(two_ctas(cluster_k(fp4_f16(128, 16)))),
    common(cluster_k(fp4_f16(128, 64))),
    common(fp4_f16(128, 128)),
    more(fp4_f16(128, 256)),
    common(two_ctas(cluster_k(s4_f16(128, 16)))),
    common(cluster_k(s4_f16(128, 64))),
    common(s4_f16(128, 128)),
    more(cluster_k(zero_points(s4_f16(128, 64)))),
    more(gated(consumers(1, fp4_f16(128, 32)))),
    more(gated(consumers(1, s4_f16(128, 32)))),
    more(two_ctas(cluster_k(mxf4(128, 16)))),
    common(cluster_k(exact(mxf4(128, 64)))),
    more(mxf4(128, 128)),
    more(exact(mxf4(128, 128))),
    more(cluster_k(fp4_bf16(128, 32))),
    common(fp4_bf16(128, 128)),
    more(cluster_k(exact(s4(128, 32)))),
    more(cluster_k(exact(to(DType::f16, s4(128, 16))))),
    more(exact(to(DType::f16, s4(128, 128)))),
    more(in_halves(exact(s4(192, 128)))),
    more(cluster_k(blockwise(s4(128, 64)))),
    more(cluster_k(blockwise(mxf4(128, 64)))),
    more(in_halves(blockwise(mxf4(128, 128)))),
    more(in_quarters(blockwise(mxf4(128, 256)))),
});

}  // namespace warpwright::kernel::hopper
