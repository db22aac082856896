// Packing on a CUDA device: the host's bytes, what the host refuses, and how fast it is.
#include <chrono>
#include <memory>

#include "tests/device/packed_there.h"
#include "tests/gpu.h"
#include "tests/must.h"

namespace warpwright::tests {
namespace {

std::shared_ptr<device::CudaBuffer> buffer(std::int64_t bytes) {
  auto made = must(device::CudaBuffer::make(bytes));
  return *made;
}

PackedBytes pack_on_gpu(const weights::Source& source, const PackedMemory& memory,
                        const weights::PackOptions& options) {
  std::vector<std::shared_ptr<device::CudaBuffer>> buffers;
  std::vector<const std::byte*> addresses;
  for (const auto& of : memory) {
    const auto bytes = static_cast<std::int64_t>(of.size());
    buffers.push_back(buffer(bytes + 1));
    EXPECT_FALSE(buffers.back()->from_host(of.data(), bytes));
    addresses.push_back(static_cast<const std::byte*>(buffers.back()->data()));
  }
  const auto there = device::look_on_cuda(moved(source, memory, addresses), options);
  if (!there) return {.refused = there.reason()};
  const std::int64_t size = there->bytes();
  const auto to = buffer(size + 128);
  if (auto r = device::pack_on_cuda(*there, to->data())) return {.refused = r->reason};
  PackedBytes made{.on_host = !there->packed.empty()};
  made.bytes.resize(static_cast<std::size_t>(size + 128));
  EXPECT_FALSE(to->to_host(made.bytes.data(), size + 128));
  for (std::int64_t i = size; i < size + 128; ++i) {
    EXPECT_EQ(made.bytes[static_cast<std::size_t>(i)], std::byte{0xff}) << "written behind the end";
  }
  made.bytes.resize(static_cast<std::size_t>(size));
  return made;
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

TEST(PackOnGpu, CheckpointsOfEveryLayout) {
  WW_NEEDS_GPU();
  ASSERT_FALSE(device::use_cuda_device(0));
  expect_checkpoints_as_on_the_host(100, pack_on_gpu);
}

// The w13 of gpt-oss-120b, as each loader leaves it: prints bytes read and written a second.
TEST(PackOnGpu, HowFast) {
  WW_NEEDS_GPU();
  ASSERT_FALSE(device::use_cuda_device(0));
  constexpr std::int64_t experts = 128;
  constexpr std::int64_t n = 5760;
  constexpr std::int64_t k = 2880;
  const auto tensor = [&](DType type, std::int64_t rows, std::int64_t columns, int byte,
                          std::vector<std::shared_ptr<device::CudaBuffer>>& kept) {
    const std::int64_t bytes = experts * rows * columns * numeric::bits(type) / 8;
    kept.push_back(buffer(bytes));
    EXPECT_FALSE(kept.back()->fill(byte));
    return MatrixView{kept.back()->data(), type, rows, columns, columns, 1, experts,
                      rows * columns};
  };
  for (const char* layout : {"gpt-oss", "modelopt-nvfp4", "gptq", "awq", "compressed-tensors"}) {
    const std::string_view name = layout;
    const bool is_nvf4 = name.starts_with("modelopt");
    const bool is_float = is_nvf4 || name == "gpt-oss";
    const bool is_across = name == "gptq" || name == "awq";
    const std::int64_t groups = k / (is_nvf4 ? 16 : 32);
    std::vector<std::shared_ptr<device::CudaBuffer>> kept;
    const std::vector<float> ones(experts, 1);
    weights::CheckpointTensors t;
    t.codes = is_float         ? tensor(DType::u8, n, k / 2, 0x53, kept)
              : name == "gptq" ? tensor(DType::s32, k / 8, n, 0x53, kept)
              : is_across      ? tensor(DType::s32, k, n / 8, 0x53, kept)
                               : tensor(DType::s32, n, k / 8, 0x53, kept);
    const DType scale = is_nvf4 ? DType::e4m3 : is_float ? DType::u8 : DType::bf16;
    t.scales =
        is_across ? tensor(scale, groups, n, 0x3c, kept) : tensor(scale, n, groups, 0x3c, kept);
    if (is_across) t.zeros = tensor(DType::s32, groups, n / 8, 0x66, kept);
    if (is_nvf4)
      t.tensor_scale = {const_cast<float*>(ones.data()), DType::f32, 1, 1, 1, 1, experts, 1};
    const auto source = must(weights::read_places(layout, std::span(&t, 1)));
    const weights::PackOptions options{.encoding = Int4Encoding::ex, .tokens = DType::bf16};
    std::shared_ptr<device::CudaBuffer> to;
    std::int64_t bytes = 0;
    double best = 1e9;
    for (int i = 0; i < 4; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const auto there = must(device::look_on_cuda(*source, options));
      EXPECT_TRUE(there->packed.empty());
      if (to == nullptr) to = buffer(there->bytes());
      ASSERT_FALSE(device::pack_on_cuda(*there, to->data()));
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (i > 0) best = std::min(best, took.count());
      bytes = there->bytes();
    }
    for (const auto& of : kept) bytes += of->bytes();
    const double rate = static_cast<double>(bytes) / best / 1e9;
    std::printf("%s: %.2f GB in %.2f ms, %.0f GB/s\n", layout, static_cast<double>(bytes) / 1e9,
                best * 1e3, rate);
  }
}

}  // namespace
}  // namespace warpwright::tests
