// One product through the C++ API: on the first CUDA device where there is one, else on the model.
#include <warpwright/model.h>
#include <warpwright/warpwright.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

using warpwright::DType;
using warpwright::numeric::bf16_t;

int main() {
  constexpr int m = 200;
  constexpr int n = 136;
  constexpr int k = 96;
  std::vector<bf16_t> a(m * k);
  std::vector<bf16_t> b(n * k);
  std::vector<float> d(m * n);
  // Small whole numbers: every product and sum is exact, so the result can be compared exactly.
  for (int i = 0; i < m * k; ++i) a[i] = bf16_t(i % 7 - 3);
  for (int i = 0; i < n * k; ++i) b[i] = bf16_t(i % 5 - 2);

  const auto cuda = warpwright::device::cuda_device(0);
  const bool on_gpu = cuda.ok() && cuda->architecture == 90;
  const warpwright::DeviceFacts facts = on_gpu ? *cuda : warpwright::model_facts();
  std::printf("running on %s\n", facts.name.c_str());

  // On a GPU the operands live in its memory; the model reads the host's.
  std::vector<std::shared_ptr<warpwright::device::CudaBuffer>> buffers;
  const auto place = [&](void* host, std::size_t bytes) -> void* {
    if (!on_gpu) return host;
    const auto size = static_cast<std::int64_t>(bytes);
    auto buffer = warpwright::device::CudaBuffer::make(size);
    if (!buffer || (*buffer)->from_host(host, size)) return nullptr;
    buffers.push_back(*buffer);
    return buffers.back()->data();
  };
  warpwright::GemmOperands operands;
  operands.a = warpwright::matrix(place(a.data(), a.size() * 2), DType::bf16, m, k);
  operands.b = warpwright::matrix(place(b.data(), b.size() * 2), DType::bf16, n, k);
  operands.d = warpwright::matrix(place(d.data(), d.size() * 4), DType::f32, m, n);

  const auto plan = warpwright::plan(operands, facts);
  if (!plan) {
    std::printf("refused: %s\n", plan.reason().c_str());
    return 2;
  }
  std::printf("%s", plan->explain().c_str());
  auto workspace = warpwright::Workspace::make(*plan);
  if (!workspace) {
    std::printf("refused: %s\n", workspace.reason().c_str());
    return 1;
  }
  if (const auto refused = warpwright::launch(*plan, operands, *workspace, nullptr)) {
    std::printf("refused: %s\n", refused->reason.c_str());
    return 1;
  }
  if (on_gpu) {
    if (const auto failed = warpwright::device::synchronise_cuda()) {
      std::printf("failed: %s\n", failed->reason.c_str());
      return 1;
    }
    const auto& of_d = buffers[2];
    if (of_d->to_host(d.data(), static_cast<std::int64_t>(d.size() * 4))) return 1;
  }

  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float want = 0;
      for (int l = 0; l < k; ++l) want += float((i * k + l) % 7 - 3) * float((j * k + l) % 5 - 2);
      if (d[i * n + j] != want) {
        std::printf("D[%d,%d] is %g, not %g\n", i, j, d[i * n + j], want);
        return 1;
      }
    }
  }
  std::printf("all %d elements are right\n", m * n);
  return 0;
}
