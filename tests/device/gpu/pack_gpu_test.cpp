// Packing on a CUDA device: the host's bytes, and what the host refuses.
#include <memory>

#include "tests/device/packed_there.h"
#include "tests/gpu.h"

namespace warpwright::tests {
namespace {

std::shared_ptr<device::CudaBuffer> on_device(const std::vector<std::byte>& bytes) {
  auto made = device::CudaBuffer::make(static_cast<std::int64_t>(bytes.size()));
  EXPECT_TRUE(made) << made.reason();
  EXPECT_FALSE((*made)->from_host(bytes.data(), static_cast<std::int64_t>(bytes.size())));
  return *made;
}

std::string pack_on_gpu(const weights::PlainWeights& w, const PackedFormat& format,
                        std::vector<std::byte>& bytes) {
  const auto codes = on_device(w.codes);
  const auto scales = on_device(w.scales);
  const auto zeros = w.zeros.empty() ? nullptr : on_device(w.zeros);
  const std::int64_t size = packed::kHeaderBytes + packed::data_bytes(format, w.extents);
  const auto to = device::CudaBuffer::make(size + 128);
  EXPECT_TRUE(to) << to.reason();
  const device::PlainInt4 plain{
      w.extents, w.scale, codes->data(), scales->data(), zeros ? zeros->data() : nullptr, w.origin};
  if (auto refused = device::pack_on_cuda(plain, format, (*to)->data())) return refused->reason;
  bytes.resize(static_cast<std::size_t>(size + 128));
  EXPECT_FALSE((*to)->to_host(bytes.data(), size + 128));
  for (std::int64_t i = size; i < size + 128; ++i) {
    EXPECT_EQ(bytes[static_cast<std::size_t>(i)], std::byte{0xff}) << "written behind the end";
  }
  bytes.resize(static_cast<std::size_t>(size));
  return {};
}

TEST(PackOnGpu, TheBytesAreTheHosts) {
  WW_NEEDS_GPU();
  ASSERT_FALSE(device::use_cuda_device(0));
  expect_packed_as_on_the_host(3, 1, pack_on_gpu);
}

TEST(PackOnGpu, RefusesWhatTheHostRefuses) {
  WW_NEEDS_GPU();
  ASSERT_FALSE(device::use_cuda_device(0));
  expect_refused_as_on_the_host(pack_on_gpu);
}

}  // namespace
}  // namespace warpwright::tests
