// Packing by the kernels, on the model or on a CUDA device: the host's bytes, and what the host
// refuses.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "tests/weights/some_weights.h"
#include "warpwright/device/pack.h"

namespace warpwright::tests {

/// Packs there: the sentence of a refusal, or nothing and the bytes.
using PackThere = std::function<std::string(
    const weights::PlainWeights& w, const PackedFormat& format, std::vector<std::byte>& bytes)>;

/// For `experts` matrices; every `step`-th of all formats.
inline void expect_packed_as_on_the_host(std::int64_t experts, int step,
                                         const PackThere& pack_there) {
  int number = 0;
  for (const Int4Encoding encoding : {Int4Encoding::sm, Int4Encoding::ex}) {
    for (const int group : {32, 64, 128}) {
      for (const DType from : {DType::bf16, DType::f16, DType::f32}) {
        for (const DType to : {DType::bf16, DType::f32}) {
          if (number++ % step != 0) continue;
          const bool has_zeros = encoding == Int4Encoding::ex && from == DType::f16;
          const packed::Extents e{experts, 70, group == 128 ? 384 : 256 + group};
          weights::PlainWeights w =
              weights::some_weights(e, group, from, has_zeros, packed::least_code(encoding), 5);
          std::memset(w.scales.data() + 8, 0, 4);  // a scale of 0, or two
          const auto host = weights::pack(weights::source_of(w), {encoding, to});
          ASSERT_TRUE(host) << host.reason();
          const PackedFormat format = weights::parse_packed(*host)->format;
          std::vector<std::byte> there;
          ASSERT_EQ(pack_there(w, format, there), "");
          EXPECT_TRUE(there == *host)
              << group << " " << numeric::name(from) << " " << numeric::name(to);
        }
      }
    }
  }
}

inline void expect_refused_as_on_the_host(const PackThere& pack_there) {
  const packed::Extents e{2, 70, 256};
  std::vector<std::byte> none;
  PackedFormat format{Int4Encoding::ex, 64, DType::f32, ZeroPoints::none};
  const auto same = [&](const weights::PlainWeights& w) {
    const auto host = weights::pack(weights::source_of(w), {format.encoding, format.scale});
    ASSERT_FALSE(host);
    EXPECT_EQ(pack_there(w, format, none), host.reason());
  };
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    weights::PlainWeights w = weights::some_weights(e, 64, DType::f32);
    std::memcpy(w.scales.data() + 4 * (100 * 4 + 2), &bad, 4);
    same(w);
  }
  weights::PlainWeights w = weights::some_weights(e, 64, DType::f32);
  const float large = 200;
  std::memcpy(w.scales.data() + 4 * 17, &large, 4);
  format.scale = DType::f16;
  same(w);
  w = weights::some_weights(e, 64, DType::f16, false, -7);
  w.codes[9000] = std::byte{0x80};  // 0 and -8
  format.encoding = Int4Encoding::sm;
  same(w);
  EXPECT_NE(pack_there(w, {Int4Encoding::sm, 48, DType::f16, ZeroPoints::none}, none)
                .find("groups of 32, 64 or 128"),
            std::string::npos);
}

}  // namespace warpwright::tests
