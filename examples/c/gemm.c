/* One product through the C ABI, on the machine model: D = A * B^T in bf16, whole numbers, exact. */
#include <stdio.h>
#include <stdlib.h>
#include <warpwright/c.h>

enum { m = 24, n = 136, k = 96 };

/* The bits of a small whole number in bf16: the upper half of a float. */
static uint16_t bf16(int value) {
  union {
    float number;
    uint32_t bits;
  } as;
  as.number = (float)value;
  return (uint16_t)(as.bits >> 16);
}

static int fail(ww_refusal* refused) {
  fprintf(stderr, "%s: %s\n", ww_refusal_code(refused), ww_refusal_text(refused));
  ww_refusal_free(refused);
  return 1;
}

int main(void) {
  /* A and B begin at multiples of 16 bytes, as do their rows. */
  uint16_t* a = aligned_alloc(16, m * k * sizeof(uint16_t));
  uint16_t* b = aligned_alloc(16, n * k * sizeof(uint16_t));
  float* d = aligned_alloc(16, m * n * sizeof(float));
  if (a == NULL || b == NULL || d == NULL) return 1;
  for (int i = 0; i < m * k; ++i) a[i] = bf16(i % 7 - 3);
  for (int i = 0; i < n * k; ++i) b[i] = bf16(i % 5 - 2);

  ww_gemm gemm;
  ww_gemm_init(&gemm);
  gemm.a = ww_packed(a, WW_BF16, m, k);
  gemm.b = ww_packed(b, WW_BF16, n, k);
  gemm.d = ww_packed(d, WW_F32, m, n);

  /* Ask first. */
  ww_device* device;
  ww_refusal* refused = ww_device_open("model", &device);
  if (refused != NULL) return fail(refused);
  ww_plan* plan;
  refused = ww_plan_make(&gemm, device, NULL, &plan);
  if (refused != NULL) return fail(refused);
  printf("%s\n", ww_plan_line(plan));

  /* Launch, with a workspace where the plan needs one. */
  ww_workspace* workspace = NULL;
  if (ww_plan_workspace_bytes(plan) > 0) {
    refused = ww_workspace_make(device, ww_plan_workspace_bytes(plan), &workspace);
    if (refused != NULL) return fail(refused);
  }
  refused = ww_launch(plan, &gemm, workspace, NULL, NULL);
  if (refused != NULL) return fail(refused);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float want = 0;
      for (int l = 0; l < k; ++l) want += (float)(((i * k + l) % 7 - 3) * ((j * k + l) % 5 - 2));
      if (d[i * n + j] != want) {
        printf("D[%d,%d] is %g, not %g\n", i, j, d[i * n + j], want);
        return 1;
      }
    }
  }

  /* The same in one call; and what a refusal looks like. */
  refused = ww_run(&gemm, WW_MODEL, NULL, NULL, NULL, NULL);
  if (refused != NULL) return fail(refused);
  gemm.a.row_stride = k - 1;
  refused = ww_run(&gemm, WW_MODEL, NULL, NULL, NULL, NULL);
  if (refused == NULL) return 1;
  printf("%s: %s\n", ww_refusal_code(refused), ww_refusal_text(refused));
  ww_refusal_free(refused);

  ww_workspace_free(workspace);
  ww_plan_free(plan);
  ww_device_free(device);
  free(a);
  free(b);
  free(d);
  printf("all %d elements are right\n", m * n);
  return 0;
}
