// The kernels of a mixture's slots on a device, against the host: the sort by its public call, rows
// of tokens and sums by their kernels. What they take, `bench moe --steps` prints.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tests/gpu.h"
#include "warpwright/device/cuda.h"
#include "warpwright/device/cuda_kernels.h"
#include "warpwright/device/quantise.h"
#include "warpwright/device/sort_slots_params.h"
#include "warpwright/kernel/moe/gather_rows.h"
#include "warpwright/kernel/moe/sum_slots.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/families/family.h"

namespace warpwright {
namespace {

template <class T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& from) : count_(from.size()) {
    EXPECT_EQ(cudaMalloc(&data_, count_ * sizeof(T) + 16), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, from.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cudaFree(data_); }
  T* data() { return data_; }
  std::vector<T> read() {
    std::vector<T> to(count_);
    EXPECT_EQ(cudaMemcpy(to.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return to;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

// Experts as a uniform router draws them, some left out.
std::vector<std::int32_t> routed(int tokens, int top_k, int experts, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens) * top_k);
  for (auto& id : ids) {
    id = random() % 50 == 0 ? -1 : static_cast<std::int32_t>(random() % experts);
  }
  return ids;
}

// A sort on the device and on the host.
struct Both {
  Both(int tokens, int top_k, int experts, unsigned seed)
      : ids(routed(tokens, top_k, experts, seed)),
        offsets(static_cast<std::size_t>(experts) + 1),
        slots(ids.size()),
        rows(ids.size()),
        d_ids(ids),
        d_offsets(offsets),
        d_slots(slots),
        d_rows(rows),
        d_status({7U}) {
    on_host = {.ids = ids.data(),
               .tokens = tokens,
               .top_k = top_k,
               .pitch = top_k,
               .experts = experts,
               .experts_total = experts,
               .offsets = offsets.data(),
               .slots = slots.data(),
               .rows = rows.data(),
               .status = &status};
    EXPECT_FALSE(sort_slots_on_host(on_host));
    on_device = on_host;
    on_device.ids = d_ids.data();
    on_device.offsets = d_offsets.data();
    on_device.slots = d_slots.data();
    on_device.rows = d_rows.data();
    on_device.status = d_status.data();
  }

  std::vector<std::int32_t> ids, offsets, slots, rows;
  std::uint32_t status = 0;
  OnDevice<std::int32_t> d_ids, d_offsets, d_slots, d_rows;
  OnDevice<std::uint32_t> d_status;
  SlotSort on_host, on_device;
};

template <class Kernel>
void start(std::string_view name, typename Kernel::Params p, cudaStream_t stream = nullptr) {
  const device::CudaKernel* kernel = nullptr;
  ASSERT_FALSE(device::load_kernel(name, 90, kernel));
  device::CudaGrid grid;
  grid.function = kernel->function;
  grid.ctas = Kernel::ctas(p, 132);
  grid.threads = Kernel::threads;
  grid.shared_bytes = Kernel::shared_bytes;
  grid.stream = stream;
  ASSERT_EQ(device::start_grid(grid, &p), cudaSuccess);
}

TEST(SlotsOnGpu, AreSortedAsOnTheHost) {
  WW_NEEDS_HOPPER();
  constexpr int cases[][3] = {{0, 8, 128},      {1, 1, 1},         {9, 2, 8},      {64, 8, 128},
                              {512, 8, 1024},   {513, 8, 128},     {4096, 8, 128}, {1000, 7, 61},
                              {131072, 8, 128}, {131072, 8, 1024}, {1048576, 1, 3}};
  unsigned seed = 1;
  for (const auto& [tokens, top_k, experts] : cases) {
    SCOPED_TRACE(std::to_string(tokens) + " x " + std::to_string(top_k) + ", experts " +
                 std::to_string(experts) + ", seed " + std::to_string(seed));
    Both both(tokens, top_k, experts, seed++);
    const auto refusal = device::sort_slots_on_cuda(both.on_device, nullptr);
    ASSERT_FALSE(refusal) << refusal->reason;
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(both.d_offsets.read(), both.offsets);
    EXPECT_EQ(both.d_slots.read(), both.slots);
    EXPECT_EQ(both.d_rows.read(), both.rows);
    EXPECT_EQ(both.d_status.read()[0], both.status);
  }
}

std::vector<std::uint16_t> values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> all(count);
  for (auto& v : all) {
    v = static_cast<std::uint16_t>(
        numeric::from_double(DType::bf16, static_cast<double>(normal(random))));
  }
  return all;
}

// Tokens in the order of experts, and their sums with weights of 1/8, 2/8, ...
TEST(SlotsOnGpu, RowsAndSums) {
  WW_NEEDS_HOPPER();
  constexpr int tokens = 300;
  constexpr int top_k = 6;
  for (const int k : {2048, 1001}) {
    Both both(tokens, top_k, 40, 3);
    ASSERT_FALSE(device::sort_slots_on_cuda(both.on_device, nullptr));
    const int blocks = (k + 127) / 128;
    const auto x = values(static_cast<std::size_t>(tokens) * k, 4);
    std::vector<std::uint8_t> codes(x.size());
    std::vector<float> scales(static_cast<std::size_t>(tokens) * blocks);
    Quantisation q;
    q.x = matrix(const_cast<std::uint16_t*>(x.data()), DType::bf16, tokens, k);
    q.codes = matrix(codes.data(), DType::e4m3, tokens, k);
    q.scales = matrix(scales.data(), DType::f32, tokens, blocks);
    q.scaling = Scaling::blockwise;
    ASSERT_FALSE(quantise_on_host(q));

    const std::size_t slots = both.ids.size();
    OnDevice<std::uint16_t> d_x(x);
    OnDevice<std::uint16_t> d_copy(std::vector<std::uint16_t>(slots * k, 0));
    OnDevice<std::uint8_t> d_codes(std::vector<std::uint8_t>(slots * k, 0));
    OnDevice<float> d_scales(std::vector<float>(slots * blocks, 0.0F));
    kernel::TokenRows rows{.x = reinterpret_cast<unsigned char*>(d_x.data()),
                           .x_pitch = 2 * k,
                           .to = d_codes.data(),
                           .to_pitch = k,
                           .scales = d_scales.data(),
                           .scale_pitch = blocks,
                           .scale_step = 1,
                           .rows = both.d_rows.data(),
                           .top_k = top_k,
                           .tokens = tokens,
                           .k = k,
                           .form = kernel::RowForm::blocks};
    start<kernel::GatherRowsKernel>(gather_rows_kernel, {rows});
    rows.form = kernel::RowForm::copy;
    rows.to = reinterpret_cast<unsigned char*>(d_copy.data());
    rows.to_pitch = 2 * k;
    start<kernel::GatherRowsKernel>(gather_rows_kernel, {rows});
    std::vector<float> weights(slots);
    for (std::size_t i = 0; i < slots; ++i) weights[i] = static_cast<float>(i % 8 + 1) / 8;
    OnDevice<float> d_weights(weights);
    OnDevice<float> d_y(std::vector<float>(static_cast<std::size_t>(tokens) * k, -1.0F));
    start<kernel::SumSlotsKernel>(sum_slots_kernel,
                                  {.x = reinterpret_cast<unsigned char*>(d_copy.data()),
                                   .x_pitch = 2 * k,
                                   .y = reinterpret_cast<unsigned char*>(d_y.data()),
                                   .y_pitch = 4 * k,
                                   .weights = d_weights.data(),
                                   .weight_pitch = top_k,
                                   .rows = both.d_rows.data(),
                                   .tokens = tokens,
                                   .top_k = top_k,
                                   .k = k,
                                   .y_type = DType::f32});
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const auto got_codes = d_codes.read();
    const auto got_scales = d_scales.read();
    const auto got = d_y.read();
    for (int row = 0; row < both.offsets.back(); ++row) {
      const int token = both.slots[static_cast<std::size_t>(row)] / top_k;
      ASSERT_EQ(std::memcmp(&got_codes[static_cast<std::size_t>(row) * k],
                            &codes[static_cast<std::size_t>(token) * k], k),
                0)
          << row;
      ASSERT_EQ(std::memcmp(&got_scales[static_cast<std::size_t>(row) * blocks],
                            &scales[static_cast<std::size_t>(token) * blocks], 4 * blocks),
                0);
    }
    for (int t = 0; t < tokens; ++t) {
      std::vector<std::pair<int, float>> order;
      for (int j = 0; j < top_k; ++j) {
        const auto slot = static_cast<std::size_t>(t * top_k + j);
        if (both.rows[slot] >= 0) order.emplace_back(both.rows[slot], weights[slot]);
      }
      std::sort(order.begin(), order.end());
      for (int i = 0; i < k; ++i) {
        const auto at = static_cast<std::size_t>(t) * k + i;
        float sum = 0;
        for (const auto& [row, w] : order) {
          sum = std::fma(w, static_cast<float>(numeric::to_double(DType::bf16, x[at])), sum);
        }
        ASSERT_EQ(got[at], sum) << t << ", " << i;
      }
    }
  }
}

}  // namespace
}  // namespace warpwright
