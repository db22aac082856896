// What the launcher must refuse: a kernel allowed fewer registers than it holds live.
__global__ void __maxnreg__(32) spills(const float* in, float* out, int rounds) {
  float live[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) live[i] = in[i * 32 + threadIdx.x];
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < 64; ++i) live[i] = live[i] * live[(i + 7) % 64] + 1.0f;
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) out[i * 32 + threadIdx.x] = live[i];
}
