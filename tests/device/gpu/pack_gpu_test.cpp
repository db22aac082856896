// Packing on a CUDA device gives the host's bytes, and refuses what the host refuses.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>

#include "tests/gpu.h"
#include "tests/weights/some_weights.h"
#include "warpwright/device/cuda.h"
#include "warpwright/device/pack.h"

namespace warpwright::device {
namespace {

using weights::Int4Weights;
using weights::some_weights;

class PackOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    WW_NEEDS_GPU();
    ASSERT_FALSE(use_cuda_device(0));
  }

  static std::shared_ptr<CudaBuffer> on_device(const std::vector<std::byte>& bytes) {
    auto made = CudaBuffer::make(static_cast<std::int64_t>(bytes.size()));
    EXPECT_TRUE(made) << made.reason();
    EXPECT_FALSE((*made)->from_host(bytes.data(), static_cast<std::int64_t>(bytes.size())));
    return *made;
  }

  // What the device makes of `w`: the sentence of a refusal, or nothing and the bytes.
  static std::string packed_there(const Int4Weights& w, const PackedFormat& format,
                                  std::vector<std::byte>& bytes) {
    const auto codes = on_device(w.codes);
    const auto scales = on_device(w.scales);
    const auto zeros = w.zeros.empty() ? nullptr : on_device(w.zeros);
    const std::int64_t size = packed::kHeaderBytes + packed::data_bytes(format, w.extents);
    const auto to = CudaBuffer::make(size + 128);
    EXPECT_TRUE(to) << to.reason();
    const PlainInt4 plain{
        w.extents, w.scale, codes->data(), scales->data(), zeros ? zeros->data() : nullptr,
        w.origin};
    if (auto refused = pack_on_cuda(plain, format, (*to)->data())) return refused->reason;
    bytes.resize(static_cast<std::size_t>(size + 128));
    EXPECT_FALSE((*to)->to_host(bytes.data(), size + 128));
    for (std::int64_t i = size; i < size + 128; ++i) {
      EXPECT_EQ(bytes[static_cast<std::size_t>(i)], std::byte{0xff}) << "written behind the end";
    }
    bytes.resize(static_cast<std::size_t>(size));
    return {};
  }
};

TEST_F(PackOnGpu, TheBytesAreTheHosts) {
  for (const Int4Encoding encoding : {Int4Encoding::sm, Int4Encoding::ex}) {
    for (const int group : {32, 64, 128}) {
      for (const DType from : {DType::bf16, DType::f16, DType::f32}) {
        for (const DType to : {DType::bf16, DType::f32}) {
          const bool has_zeros = encoding == Int4Encoding::ex && from == DType::f16;
          const packed::Extents e{3, 70, group == 128 ? 384 : 256 + group};
          Int4Weights w = some_weights(e, group, from, has_zeros, packed::least_code(encoding), 5);
          std::memset(w.scales.data() + 8, 0, 4);  // a scale of 0, or two
          const auto host = weights::pack(weights::source_of(w), {encoding, to});
          ASSERT_TRUE(host) << host.reason();
          const PackedFormat format = weights::parse_packed(*host)->format;
          std::vector<std::byte> there;
          ASSERT_EQ(packed_there(w, format, there), "");
          EXPECT_TRUE(there == *host)
              << group << " " << numeric::name(from) << " " << numeric::name(to);
        }
      }
    }
  }
}

TEST_F(PackOnGpu, RefusesWhatTheHostRefuses) {
  const packed::Extents e{2, 70, 256};
  std::vector<std::byte> none;
  PackedFormat format{Int4Encoding::ex, 64, DType::f32, ZeroPoints::none};
  const auto same = [&](const Int4Weights& w) {
    const auto host = weights::pack(weights::source_of(w), {format.encoding, format.scale});
    ASSERT_FALSE(host);
    EXPECT_EQ(packed_there(w, format, none), host.reason());
  };
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    Int4Weights w = some_weights(e, 64, DType::f32);
    std::memcpy(w.scales.data() + 4 * (100 * 4 + 2), &bad, 4);
    same(w);
  }
  Int4Weights w = some_weights(e, 64, DType::f32);
  const float large = 200;
  std::memcpy(w.scales.data() + 4 * 17, &large, 4);
  format.scale = DType::f16;
  same(w);
  w = some_weights(e, 64, DType::f16, false, -7);
  w.codes[9000] = std::byte{0x80};  // 0 and -8
  format.encoding = Int4Encoding::sm;
  same(w);
  std::vector<std::byte> unused;
  EXPECT_NE(packed_there(w, {Int4Encoding::sm, 48, DType::f16, ZeroPoints::none}, unused)
                .find("groups of 32, 64 or 128"),
            std::string::npos);
}

}  // namespace
}  // namespace warpwright::device
