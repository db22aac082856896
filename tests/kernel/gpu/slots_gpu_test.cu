// The kernels of a mixture's slots on a device, against the host: the sort by its public call, rows
// of tokens and sums by their kernels. DISABLED_Times prints what they take.
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

// Microseconds of a launch within a graph of 20.
template <class Launch>
double time_of(const Launch& launch) {
  cudaStream_t stream{};
  cudaStreamCreate(&stream);
  launch(stream);
  cudaStreamSynchronize(stream);
  cudaGraph_t graph{};
  cudaGraphExec_t ready{};
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  for (int i = 0; i < 20; ++i) launch(stream);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&ready, graph, 0);
  cudaEvent_t before{};
  cudaEvent_t after{};
  cudaEventCreate(&before);
  cudaEventCreate(&after);
  float best = 1e9F;
  for (int i = 0; i < 10; ++i) {
    cudaEventRecord(before, stream);
    cudaGraphLaunch(ready, stream);
    cudaEventRecord(after, stream);
    cudaStreamSynchronize(stream);
    float ms = 0;
    cudaEventElapsedTime(&ms, before, after);
    best = std::min(best, ms);
  }
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaEventDestroy(before);
  cudaEventDestroy(after);
  cudaStreamDestroy(stream);
  return 1000.0 * best / 20;
}

TEST(SlotsOnGpu, DISABLED_Times) {
  WW_NEEDS_HOPPER();
  for (const int tokens : {1, 8, 64, 512, 4096, 8192, 131072}) {
    for (const int experts : {128, 1024}) {
      Both both(tokens, 8, experts, 5);
      std::printf("sort of %7d slots, %4d experts: %.2f us\n", 8 * tokens, experts,
                  time_of([&](cudaStream_t s) {
                    EXPECT_FALSE(device::sort_slots_on_cuda(both.on_device, s));
                  }));
    }
  }
}

// Copies, codes with scales of blocks, and sums, of 2,048 bf16 a token and 8 slots of 128 experts.
TEST(SlotsOnGpu, DISABLED_TimesOfRowsAndSums) {
  WW_NEEDS_HOPPER();
  constexpr int k = 2048;
  constexpr int top_k = 8;
  for (const int tokens : {8, 64, 512, 4096}) {
    Both both(tokens, top_k, 128, 5);
    ASSERT_FALSE(device::sort_slots_on_cuda(both.on_device, nullptr));
    const std::size_t slots = both.ids.size();
    OnDevice<std::uint16_t> x(values(static_cast<std::size_t>(tokens) * k, 4));
    OnDevice<std::uint16_t> copy(std::vector<std::uint16_t>(slots * k, 0));
    OnDevice<std::uint8_t> codes(std::vector<std::uint8_t>(slots * k, 0));
    OnDevice<float> scales(std::vector<float>(slots * (k / 128), 0.0F));
    OnDevice<float> weights(std::vector<float>(slots, 0.125F));
    OnDevice<std::uint16_t> y(std::vector<std::uint16_t>(static_cast<std::size_t>(tokens) * k, 0));
    // Scales of a block of all rows lie side by side, as in a mixture.
    kernel::TokenRows rows{.x = reinterpret_cast<unsigned char*>(x.data()),
                           .x_pitch = 2 * k,
                           .to = reinterpret_cast<unsigned char*>(copy.data()),
                           .to_pitch = 2 * k,
                           .scales = scales.data(),
                           .scale_pitch = 1,
                           .scale_step = static_cast<std::int64_t>(slots),
                           .rows = both.d_rows.data(),
                           .top_k = top_k,
                           .tokens = tokens,
                           .k = k,
                           .form = kernel::RowForm::copy};
    const auto gather = [&](cudaStream_t s) {
      start<kernel::GatherRowsKernel>(gather_rows_kernel, {rows}, s);
    };
    const double copied = time_of(gather);
    rows.to = codes.data();
    rows.to_pitch = k;
    rows.form = kernel::RowForm::blocks;
    const double quantised = time_of(gather);
    rows.rows = nullptr;
    const double in_order = time_of(gather);
    const double summed = time_of([&](cudaStream_t s) {
      start<kernel::SumSlotsKernel>(sum_slots_kernel,
                                    {.x = reinterpret_cast<unsigned char*>(copy.data()),
                                     .x_pitch = 2 * k,
                                     .y = reinterpret_cast<unsigned char*>(y.data()),
                                     .y_pitch = 2 * k,
                                     .weights = weights.data(),
                                     .weight_pitch = top_k,
                                     .rows = both.d_rows.data(),
                                     .tokens = tokens,
                                     .top_k = top_k,
                                     .k = k},
                                    s);
    });
    std::printf(
        "%5d tokens x 2048, top-8: gather %.2f us, gather to e4m3 %.2f us, tokens to e4m3 in their "
        "order %.2f us, sum %.2f us\n",
        tokens, copied, quantised, in_order, summed);
  }
}

}  // namespace
}  // namespace warpwright
