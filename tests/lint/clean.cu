// What the launcher must let pass.
__global__ void clean(float* out) {
  out[threadIdx.x] = 1.0f;
}
