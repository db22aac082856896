/*
 * Warpwright's C ABI: products on NVIDIA tensor cores, and on a model of the machine, for programs
 * in any language.
 *
 *   ww_gemm g;
 *   ww_gemm_init(&g);
 *   g.a = ww_packed(a, WW_BF16, m, k);
 *   g.b = ww_packed(b, WW_BF16, n, k);
 *   g.d = ww_packed(d, WW_BF16, m, n);
 *   ww_refusal* refused = ww_run(&g, 0, NULL, stream, NULL, NULL);  // D = A * B^T on cuda:0
 *   if (refused) { fputs(ww_refusal_text(refused), stderr); ww_refusal_free(refused); }
 *
 * A layer of experts is one call too: ww_moe_run. Every function that can be refused returns NULL,
 * or a refusal that the caller frees. No C++ exception leaves a function. All functions may be
 * called from any thread at any time; a ww_workspace belongs to one thread at a time. docs/c.md
 * says what allocates, locks and waits.
 *
 * The ABI is stable within a version: numbers keep their meaning, structs grow only at their ends
 * (each begins with its size, so that older programs keep working), and functions stay. A library
 * of another version has another soname; ww_abi_version() tells.
 */
#ifndef WARPWRIGHT_C_H
#define WARPWRIGHT_C_H

#include <stddef.h>
#include <stdint.h>

#define WW_ABI_VERSION 2

#if defined(__GNUC__)
#define WW_API __attribute__((visibility("default")))
#else
#define WW_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** WW_ABI_VERSION of the library that runs. */
WW_API int32_t ww_abi_version(void);
/** The library's own version, like "0.3.0". */
WW_API const char* ww_version(void);

/** Element types. */
enum {
  WW_F32 = 1,
  WW_TF32 = 2, /**< 32 bits, of which the tensor core reads the upper 19 */
  WW_F16 = 3,
  WW_BF16 = 4,
  WW_E4M3 = 5,   /**< fp8 without infinity, "float8_e4m3fn" */
  WW_E5M2 = 6,   /**< fp8 with infinity, "float8_e5m2" */
  WW_E2M3 = 7,   /**< fp6, four in three bytes, from the low bits up; strides count elements */
  WW_E3M2 = 8,   /**< the other fp6, as dense */
  WW_E2M1 = 9,   /**< fp4, two in a byte, the first in its low half; strides count elements */
  WW_UE8M0 = 10, /**< a scale of mxf8, mxf6 and mxf4: a power of two, "float8_e8m0fnu" */
  WW_UE4M3 = 11, /**< a scale of nvf4: e4m3 without a sign */
  WW_S4 = 12,    /**< B as packed int4 weights: see ww_packed_form */
  WW_S8 = 13,
  WW_U8 = 14,
  WW_S32 = 15, /**< of checkpoints' codes */
  WW_DTYPE_LAST = WW_S32
};

/** How operands are scaled. Scales are float32, but of WW_SCALING_BLOCK_SCALED, in the operands'
 * memory, of any strides from 0. */
enum {
  WW_SCALING_NONE = 0,
  WW_SCALING_TENSOR = 1,     /**< scale_a and scale_b 1 x 1 */
  WW_SCALING_ROW_COLUMN = 2, /**< M x 1, and N x 1 */
  /** M x ceil(K/128), and ceil(N/128) x ceil(K/128); or 64 or 32 for 128, as the shapes say */
  WW_SCALING_BLOCKWISE = 3,
  WW_SCALING_GROUP = 4, /**< only for groups: 1 x 1 or G x 1, and G x 1 */
  /** mxf8 (WW_E4M3 or WW_E5M2), mxf6 (WW_E2M3 or WW_E3M2) and mxf4 (WW_E2M1) with a WW_UE8M0 each
   *  32 of K, any two of them; or nvf4 by nvf4, WW_E2M1 with a WW_UE4M3 each 16: the types of
   *  scale_a and scale_b say which. Scales lie in tiles of 128 x 4 as cuBLASLt has them: M (N)
   *  rounded up to 128 rows, the blocks of K to 4 columns, packed. In groups the scales of each
   *  group's rows of A begin at a tile; scale_a has (M + 127 G) / 128 * 128 rows then. For a gated
   *  product scale_b has those of the gates, N/2 rounded up to 128 rows, then as many of what they
   *  are for, whichever way the rows of B alternate. */
  WW_SCALING_BLOCK_SCALED = 5,
  WW_SCALING_LAST = WW_SCALING_BLOCK_SCALED
};

/** Where sums of products of 8-bit operands are kept. */
enum {
  WW_ACCUMULATION_FAST = 0,    /**< in the tensor core, which on Hopper keeps 13 bits there */
  WW_ACCUMULATION_PROMOTED = 1 /**< added to float32 every 128 of K */
};

enum {
  WW_ACTIVATION_NONE = 0,
  WW_ACTIVATION_RELU = 1,
  WW_ACTIVATION_GELU = 2, /**< in its tanh form */
  WW_ACTIVATION_SILU = 3,
  WW_ACTIVATION_QUICK_GELU = 4, /**< x / (1 + exp(-1.702 x)) */
  /** only gated, as gpt-oss has it, of a gate g and what it is for, u, with g' = min(g, 7) and u'
   *  within -7 and 7: (u' + 1) * g' / (1 + exp(-1.702 g')) */
  WW_ACTIVATION_SWIGLU_OAI = 5,
  WW_ACTIVATION_RELU2 = 6, /**< max(x, 0)^2 */
  /** GELU by the error function, only of a mixture's gate (ww_moe) */
  WW_ACTIVATION_GELU_ERF = 7,
  WW_ACTIVATION_LAST = WW_ACTIVATION_GELU_ERF
};

/** Which columns of a product of N columns (rows of B) are gates, and which what they are for. */
enum {
  WW_GATED_NONE = 0,        /**< none: D has all columns */
  WW_GATED_HALVES = 1,      /**< D[m, j] = activation(P[m, j]) * P[m, j + N/2] */
  WW_GATED_INTERLEAVED = 2, /**< D[m, j] = activation(P[m, 2j]) * P[m, 2j + 1] */
  WW_GATED_LAST = WW_GATED_INTERLEAVED
};

/** What a bias runs along. */
enum {
  WW_BIAS_NONE = 0,
  WW_BIAS_ROWS = 1,   /**< one value for each row of D: M x 1 */
  WW_BIAS_COLUMNS = 2 /**< one for each column of the product: N x 1 */
};

/** How D is made of its values, beside being rounded to its type. */
enum {
  WW_QUANTISE_NONE = 0,
  WW_QUANTISE_1X128 = 1,     /**< e4m3 codes, and a float32 scale for each 1 x 128 of D */
  WW_QUANTISE_MXF8_1X32 = 2, /**< e4m3 codes, and a ue8m0 for each 1 x 32, in tiles of 128 x 4 */
  WW_QUANTISE_NVF4_1X16 = 3, /**< e2m1 codes, a ue4m3 for each 1 x 16, likewise, and scale_d */
  WW_QUANTISE_MXF4_1X32 = 4, /**< e2m1 codes, a ue8m0 for each 1 x 32, likewise */
  WW_QUANTISE_LAST = WW_QUANTISE_MXF4_1X32
};

/** What the tokens of a mixture become beside weights of WW_SCALING_BLOCK_SCALED. */
enum {
  WW_TOKENS_AS_WEIGHTS = 0, /**< mxf4 or nvf4 beside these, else mxf8 */
  WW_TOKENS_MXF8 = 1,       /**< WW_E4M3 with WW_UE8M0 scales */
  WW_TOKENS_MXF4 = 2,       /**< WW_E2M1 with them */
  WW_TOKENS_LAST = WW_TOKENS_MXF4
};

/** Integers of offsets. */
enum { WW_INT32 = 0, WW_INT64 = 1 };

/** How the lengths of groups are spread, as far as a plan may expect. */
enum {
  WW_LENGTHS_ROUTED = 0, /**< as a router spreads rows that fall into groups one by one */
  WW_LENGTHS_EQUAL = 1   /**< all groups that have any rows have as many */
};

/**
 * A matrix, or a batch of them: element (l, i, j) lies at data + (l * batch_stride + i * row_stride
 * + j * column_stride) elements. All 0: there is none.
 * A and B: 16-bit operands lie K-major (column_stride 1) or MN-major (row_stride 1), 8-bit ones
 * K-major. Their addresses, and the distances of their rows (MN-major: columns) and matrices, are
 * best multiples of 16 bytes; others are copied into the workspace first, which takes time. C and D
 * are row-major, aligned to their elements; multiples of 16 bytes are faster. Scales and biases are
 * aligned to their elements.
 */
typedef struct ww_matrix {
  void* data; /**< of the device, or of the host for the model; NULL where only a plan is made */
  int64_t rows;
  int64_t columns;
  int64_t row_stride; /**< elements */
  int64_t column_stride;
  int64_t batch;        /**< matrices; 1 serves all of D's batch */
  int64_t batch_stride; /**< elements */
  int32_t dtype;        /**< WW_F32 ... */
  int32_t reserved;     /**< 0 */
} ww_matrix;

/** How the sums of packed weights meet the scales of their groups (docs/w4a8.md): of int4 by e4m3
 *  other than exact in products in groups only. */
enum {
  WW_SUMS_EXACT = 0,   /**< summed group by group, scaled, added to float32 */
  WW_SUMS_CHAINED = 1, /**< in the tensor core, rescaled from group to group */
  WW_SUMS_FOLDED = 2,  /**< scales multiplied to the weights, rounded to e4m3 */
  WW_SUMS_TABLE = 3,   /**< the same by a table, of codes without -8 */
  /** What ww_gemm_init and ww_moe_init set: exact; but of WW_PACKED_MXF4, of which folding rounds
   *  none, exact or folded, whichever the plan takes for faster. */
  WW_SUMS_OPEN = 4
};

/** The forms of packed weights: of int4 how the four bits of a code stand for its value. */
enum {
  WW_PACKED_SM = 0, /**< sign and magnitude: -7..7 */
  WW_PACKED_EX = 1, /**< -8..7 */
  WW_PACKED_ANY =
      2, /**< for packing: sm where no code is -8 and there are no zero points, else ex */
  /* Weights of e2m1, which ww_fp4_pack and `warpwright pack --for` pack. */
  WW_PACKED_MXF4 = 3,       /**< WW_UE8M0 scales of 32, for tokens of e4m3: no weight is rounded */
  WW_PACKED_MXF4_EXACT = 4, /**< the same where scales span too far for that: sums of each 32 */
  WW_PACKED_MXF4_BF16 = 5,  /**< for tokens of bf16 */
  WW_PACKED_NVF4_BF16 = 6,  /**< WW_UE4M3 scales of 16, for tokens of bf16 */
  WW_PACKED_EX_BF16 = 7,    /**< int4, -8..7, for tokens of bf16 */
  WW_PACKED_MXF4_F16 = 8,   /**< these three for tokens of f16 */
  WW_PACKED_NVF4_F16 = 9,
  WW_PACKED_EX_F16 = 10,
};

/** Bytes of the header in front of packed weights. */
#define WW_PACKED_HEADER 128

/** The form of packed weights (docs/packing.md): a header and tiles, ww_packed_bytes of them, at
 *  an address that is a multiple of 128. */
typedef struct ww_packed_form {
  size_t size;     /**< sizeof(ww_packed_form): ww_packed_form_init sets it */
  int64_t experts; /**< matrices of N x K; 1 or more */
  int64_t n;
  int64_t k;
  int32_t group;       /**< weights along K that share a scale: 32, 64 or 128 */
  int32_t encoding;    /**< WW_PACKED_ ... */
  int32_t scale;       /**< type of the scales: WW_BF16, WW_F16 or WW_F32 */
  int32_t zero_points; /**< 1: a zero point, 0..15, beside each scale */
} ww_packed_form;

/** A packed row-major matrix of `rows` x `columns`. */
static inline ww_matrix ww_packed(void* data, int32_t dtype, int64_t rows, int64_t columns) {
  ww_matrix made = {data, rows, columns, columns, 1, 1, 0, dtype, 0};
  return made;
}

/**
 * Numbers of a gate, which models differ in; a launch's, so a plan serves any:
 *   g / (1 + exp(-alpha g)) * (u + beta), with g = min(gate, limit), u = clamp(up, -limit, limit).
 * 0 leaves a number to the activation: SILU has alpha 1, no beta and no limit, SWIGLU_OAI 1.702, 1
 * and 7. So a beta of 0 is SILU's, with the others given.
 */
typedef struct ww_gate {
  float alpha; /**< above 0 */
  float beta;
  float limit;      /**< above 0; infinity is none */
  int32_t reserved; /**< 0 */
} ww_gate;

/**
 * D = activation(alpha * scaled(A * B^T) + beta * C + bias) * scale_d, with A M x K, B N x K and
 * D M x N. Grouped: rows [offsets[g], offsets[g + 1]) of A and D are group g's, B is a batch of G
 * matrices, one a group, as are scale_b and a bias along the columns; all operands are K-major.
 */
typedef struct ww_gemm {
  size_t size; /**< sizeof(ww_gemm): ww_gemm_init sets it */
  ww_matrix a;
  ww_matrix b;
  ww_matrix c; /**< may be left out; the very same view as d, or apart from it */
  ww_matrix d; /**< apart from all inputs */
  float alpha;
  float beta;           /**< of C, 1 by ww_gemm_init: with 0 C is not read; without C 0 or 1 */
  int32_t scaling;      /**< WW_SCALING_ ... */
  int32_t accumulation; /**< WW_ACCUMULATION_ ...; block scaling always promotes */
  int32_t activation;   /**< WW_ACTIVATION_ ... */
  int32_t bias_along;   /**< WW_BIAS_ ... */
  int32_t gated;        /**< WW_GATED_ ...: D has N/2 columns then, the activation is SILU or
                             SWIGLU_OAI, and there is no C */
  int32_t grouped;      /**< 1: the rows fall into groups */
  ww_matrix scale_a;
  ww_matrix scale_b;
  ww_matrix scale_d;        /**< f32, 1 x 1, for a D of 8 bits; none is 1 */
  ww_matrix bias;           /**< f32, or D's type where that is bf16 or f16; packed */
  const void* offsets;      /**< G + 1 integers in the operands' memory, read only by the kernel;
                                 those out of order or range make groups empty or shorter */
  int32_t offset_type;      /**< WW_INT32 or WW_INT64 */
  int32_t expected_lengths; /**< WW_LENGTHS_ ..., only for speed */
  double expected_tokens;   /**< rows of a group that has any, only for speed; 0: M / G */
  /** B are packed weights of this form, times tokens of what they are packed for: b.data are their
   * bytes, header and tiles, and all else of b is 0. scale_b may be left out, and is with block
   * scaling. NULL: B is a matrix. */
  union {
    const ww_packed_form* packed;
    const ww_packed_form* int4; /**< its old name */
  };
  int32_t sums;       /**< WW_SUMS_ ... of packed weights */
  int32_t quantise_d; /**< WW_QUANTISE_ ...; d is e4m3 then, of nvf4 and mxf4 e2m1 */
  ww_matrix d_scales; /**< f32, M x ceil(D's columns / 128), any strides from 1: the scales of a D
                           that is quantised are written there */
  /** For a product in groups, tokens by index: row r of the product reads row rows[r] /
   * rows_divisor of A and of scale_a. M of them in the operands' memory; A then has a row a token.
   * One that names no row of A reads zeros. NULL, with a divisor of 0: row r. */
  const int32_t* rows;
  int32_t rows_divisor; /**< 1, or slots a token */
  float expected_zipf;  /**< of routed lengths: the group of rank r is liked as r^-expected_zipf, 0
                             to 8; only for speed */
  ww_gate gate;         /**< of a gated product */
  /** For nvf4 operands that are not packed: 1 says that their tensors have no factors. With 0 an
   *  alpha of 1 is refused: it is the product of the factors, which a launch needs. */
  int32_t no_factors;
  int32_t reserved; /**< 0 */
} ww_gemm;

/** No tensors, alpha 1, beta 1, nothing else asked for. `size` is sizeof(ww_gemm) of the caller,
 *  and so many bytes are written: a program may be older than the library. */
WW_API void ww_gemm_init_sized(ww_gemm* gemm, size_t size);
/** ww_gemm_init(gemm) of this header passes the size. The function of that name is for programs
 *  of version 0.3.0 and before: it knows no member behind expected_tokens. */
WW_API void ww_gemm_init(ww_gemm* gemm);
#define ww_gemm_init(gemm) ww_gemm_init_sized((gemm), sizeof(ww_gemm))

/** What the caller fixes instead of leaving it to the plan; 0 and NULL leave it open. */
typedef struct ww_choices {
  size_t size;             /**< sizeof(ww_choices) */
  int32_t batch_invariant; /**< 1: bits of a row of D do not depend on M, batch or other rows */
  int32_t cluster_m;       /**< CTAs of a cluster along M, and along N: both or none */
  int32_t cluster_n;
  /** So many of the best plans by predicted time, at most 256, are measured when such a product is
   *  first planned for a CUDA device, in memory of their own, and the fastest is taken: it waits,
   *  some 10 ms a plan, and is kept where `warpwright tune` keeps its own. In a graph capture none
   * is. */
  int32_t measure;
  const char* kernel; /**< by its name, as ww_plan_kernel says it */
} ww_choices;

/* -- Refusals: why something was not done ----------------------------------------------------- */

typedef struct ww_refusal ww_refusal;

/** One sentence that names the tensor, the rule and the nearest legal value. Lives as long as the
 *  refusal. */
WW_API const char* ww_refusal_text(const ww_refusal* refusal);
/** Its kind as a word, "bad_stride": docs/api.md lists them. Codes keep their meaning; new ones may
 *  come. Lives for ever. */
WW_API const char* ww_refusal_code(const ww_refusal* refusal);
/** What the rule that refused knows, as parts of the sentence: the tensor ("A", "scale_a", "bias"),
 *  the rule in words, and what would be accepted; "" where it names none. They live as long as the
 *  refusal. */
WW_API const char* ww_refusal_tensor(const ww_refusal* refusal);
WW_API const char* ww_refusal_rule(const ww_refusal* refusal);
WW_API const char* ww_refusal_nearest(const ww_refusal* refusal);
WW_API void ww_refusal_free(ww_refusal* refusal);

/* -- Devices: what plans are made for ---------------------------------------------------------- */

typedef struct ww_device ww_device;

/** "model", or the model with the instructions of another device, "model:rtx5090"; "cuda" or
 *  "cuda:1"; "auto", the first of them, the model where there is none; or one that need not be
 * there, to plan and explain for: "v100", "t4", "a100", "rtx3090", "l40s", "h100", "h200", "b200",
 * "b300", "rtx5090". Refuses with no_device, and the names. */
WW_API ww_refusal* ww_device_open(const char* name, ww_device** device);
/** The machine model of so many SMs (1 to 1024; few are faster) and compute capability x 10: 70
 *  (V100), 75 (T4), 80 (A100), 86 (RTX 3090), 89 (L40S), 90 (H100, H200), 100 (B200), 103 (B300)
 *  or 120 (RTX 5090); others are refused. */
WW_API ww_refusal* ww_device_model(int32_t sms, int32_t architecture, ww_device** device);
/** Its name, for people. */
WW_API const char* ww_device_name(const ww_device* device);
WW_API void ww_device_free(ww_device* device);
/** CUDA devices of this machine that the library can use; 0 in a build without CUDA. */
WW_API int32_t ww_cuda_device_count(void);

/* -- Plans: ask first, launch second ----------------------------------------------------------- */

/** A decision to run one kernel in one way: immutable, without addresses. */
typedef struct ww_plan ww_plan;

/** A plan, or why there is none. Touches no device. Only the alignment of addresses counts; a
 *  tensor without one is taken to be aligned. On a CUDA device the cache of `warpwright tune` is
 *  asked first. */
WW_API ww_refusal* ww_plan_make(const ww_gemm* gemm, const ww_device* device,
                                const ww_choices* choices /* or NULL */, ww_plan** plan);
/** Among `count` plans for one device, of products that differ only in B (packed weights, say, and
 * fp8 ones of the same values), the one that is predicted to be the fastest, whose explanation says
 * it: its number, where `which` is not NULL, and a plan of its own, to be freed like the others.
 * Which it is depends on M, and so then do the bits of a row. */
WW_API ww_refusal* ww_plan_fastest(const ww_plan* const* plans, int32_t count,
                                   int32_t* which /* or NULL */, ww_plan** plan);
/** Kernel and cluster in a word, the kernel's name, and the whole plan for a reader. They live as
 *  long as the plan. */
WW_API const char* ww_plan_name(const ww_plan* plan);
WW_API const char* ww_plan_kernel(const ww_plan* plan);
WW_API const char* ww_plan_explain(const ww_plan* plan);
/** The product and the kernel in one line, for a log. */
WW_API const char* ww_plan_line(const ww_plan* plan);
/** Bytes of workspace that a launch needs; mostly 0. */
WW_API int64_t ww_plan_workspace_bytes(const ww_plan* plan);
WW_API void ww_plan_free(ww_plan* plan);

/* -- Launches ---------------------------------------------------------------------------------- */

/** Memory for launches of plans, one launch at a time. */
typedef struct ww_workspace ww_workspace;

/** Memory of its own for plans of up to `bytes` on `device`; on CUDA it allocates and waits. */
WW_API ww_refusal* ww_workspace_make(const ww_device* device, int64_t bytes,
                                     ww_workspace** workspace);
/** `bytes` of the caller's memory on that device, from a multiple of 256 bytes, of any content. */
WW_API ww_refusal* ww_workspace_over(void* data, int64_t bytes, ww_workspace** workspace);
WW_API int64_t ww_workspace_bytes(const ww_workspace* workspace);
/** Frees its own memory; launches that use it must be over. */
WW_API void ww_workspace_free(ww_workspace* workspace);

typedef struct ww_launch_options {
  size_t size;           /**< sizeof(ww_launch_options) */
  int32_t dependent;     /**< 1: may start before the kernel before it in the stream has ended
                              (programmatic dependent launch); it waits before it reads */
  int32_t check_offsets; /**< 1: the kernel says in the workspace whether the offsets of groups are
                              in order; ww_workspace_offsets_fault reads it. ww_run reads it itself:
                              it waits for the kernel then, and refuses offsets out of order.
                              Numbers in `rows` that name no row of A are told so too */
  int32_t zero_rest;     /**< 1: rows of D in no group become 0; else they stay as they are */
  int32_t reserved;      /**< 0 */
} ww_launch_options;

/** Loads the plan's kernel and clears the workspace's flags on `stream`, so that the first launch
 *  may be in a graph capture. */
WW_API ww_refusal* ww_prepare(const ww_plan* plan, ww_workspace* workspace /* or NULL */,
                              void* stream);
/** Starts the plan on `stream` (a cudaStream_t of the plan's device; NULL is the default stream)
 *  and returns without waiting: no allocation, no synchronisation, legal in a graph capture. On the
 *  model it runs to its end, with all checks. The tensors must stay until the stream is past it. */
WW_API ww_refusal* ww_launch(const ww_plan* plan, const ww_gemm* gemm,
                             ww_workspace* workspace /* or NULL */, void* stream,
                             const ww_launch_options* options /* or NULL */);
/** What the last launch of `plan` in `workspace` with check_offsets says of its offsets: NULL where
 *  they were in order, and all `rows` name rows of A, else a refusal (bad_value). Waits for
 * `stream`, the launch's or the graph replay's, so not in a capture. Refuses a workspace in which
 * no launch has checked any. */
WW_API ww_refusal* ww_workspace_offsets_fault(const ww_workspace* workspace, const ww_plan* plan,
                                              void* stream);

/** The device of ww_run that is the model. */
#define WW_MODEL (-1)

/**
 * Plans, or takes the plan that a call for such a product has made before; takes the memory that
 * belongs to `stream`; launches. `device` is the index of a CUDA device, where the tensors lie, or
 * WW_MODEL. `stream` must be one of that device; the current device of the thread stays as it was.
 * A product that was seen before allocates nothing and does not wait. The first that needs a
 * workspace on a stream allocates it, which is refused in a graph capture unless one such product
 * has run before on that device. `made`, where not NULL, is set to a new handle of the plan if this
 * call had to make it, else to NULL.
 */
WW_API ww_refusal* ww_run(const ww_gemm* gemm, int32_t device,
                          const ww_choices* choices /* or NULL */, void* stream,
                          const ww_launch_options* options /* or NULL */, ww_plan** made);

/* -- A mixture of experts in one call ---------------------------------------------------------- */

/** What the result of a mixture is: T x H, the sum over a token's experts; or (T top_k) x H, the
 *  row of each slot in the order of tokens, times its router weight or as it is, zeros for one that
 *  is left out. */
enum { WW_COMBINE_SUM = 0, WW_COMBINE_WEIGHTED = 1, WW_COMBINE_NONE = 2 };

/**
 * A layer of experts (docs/moe.md), over T tokens of H elements, with E experts here of
 * experts_total:
 *   d[t] = sum over j of topk_weights[t, j] * down(e, activation(gate(e, x[t])) * up(e, x[t])),
 * e = topk_ids[t, j] - first_expert. Slots whose id is -1, of other ranks' experts, or of none are
 * left out; a token without a slot gets zeros. Rows are rounded to x's type and added in float32,
 * in the order of experts, then slots. With topk_ids and topk_weights left out there is no router:
 * w13 and w2 are those of one expert, the MLP of a dense model, whose result is d.
 *
 *   ww_moe m;
 *   ww_moe_init(&m);
 *   m.x = ww_packed(x, WW_BF16, tokens, hidden);  // and ids, weights, w13, w2, d
 *   ww_refusal* refused = ww_moe_run(&m, 0, NULL, stream, NULL, NULL);  // on cuda:0
 */
typedef struct ww_moe {
  size_t size;            /**< sizeof(ww_moe): ww_moe_init sets it */
  ww_matrix x;            /**< T x H of WW_BF16 or WW_F16, or of WW_E4M3 with scale_x; rows may lie
                               apart */
  ww_matrix topk_ids;     /**< T x top_k, 1 to 32; dtype WW_S32, also where id_type is WW_INT64; or
                               left out */
  ww_matrix topk_weights; /**< T x top_k of WW_F32, WW_BF16 or WW_F16 */
  ww_matrix w13;          /**< a batch of E, 1 to 1,024, of 2I x H: gate above up, as gate_up says;
                               of x's type, or WW_E4M3: tokens are quantised by the call then; or
                               of the formats of WW_SCALING_BLOCK_SCALED */
  ww_matrix w2;           /**< a batch of E of H x I, of w13's type */
  ww_matrix d;            /**< T x H of x's type or WW_F32; may be x itself, else apart from all */
  ww_matrix scale_w13;    /**< WW_F32, of weights of WW_E4M3: a batch of E of 2I x 1 for
                               WW_SCALING_ROW_COLUMN, of ceil(2I/128) x ceil(H/128) for
                               WW_SCALING_BLOCKWISE; for WW_SCALING_BLOCK_SCALED the tiles of a
                               gated product's B */
  ww_matrix scale_w2;     /**< likewise, of H x 1, or ceil(H/128) x ceil(I/128); blocks of both, and
                               of scale_x, may be of 64 or 32 for 128, as the shapes say */
  ww_matrix bias13;       /**< a batch of E of 2I x 1, of WW_F32 or x's type, or left out */
  ww_matrix bias2;        /**< a batch of E of H x 1, or left out */
  int32_t id_type;        /**< WW_INT32 or WW_INT64 */
  int32_t scaling;        /**< WW_SCALING_NONE, _ROW_COLUMN, _BLOCKWISE or _BLOCK_SCALED */
  int32_t activation;     /**< of the gate WW_ACTIVATION_SILU (ww_moe_init), _GELU, _GELU_ERF or
                               _SWIGLU_OAI; without one all but the last two */
  int32_t gate_up;        /**< WW_GATED_HALVES (ww_moe_init) or WW_GATED_INTERLEAVED; WW_GATED_NONE:
                               experts have no gate, w13 is a batch of E of I x H */
  int64_t first_expert;   /**< the number of this rank's first expert */
  int64_t experts_total;  /**< of all ranks; 0: E */
  int32_t expected_lengths; /**< WW_LENGTHS_ ..., only for speed */
  float expected_zipf;      /**< as in ww_gemm */
  /** Both weights are packed weights of these forms, whose experts are E: w13.data and w2.data
   *  are their bytes, header and tiles, and all else of w13 and w2 is 0. The scales beside them may
   *  be left out, and are with WW_SCALING_BLOCKWISE. NULL: they are matrices. */
  union {
    const ww_packed_form* packed_w13;
    const ww_packed_form* int4_w13; /**< its old name */
  };
  union {
    const ww_packed_form* packed_w2;
    const ww_packed_form* int4_w2; /**< its old name */
  };
  int32_t sums_w13; /**< WW_SUMS_ ... of packed weights */
  int32_t sums_w2;
  /** For WW_SCALING_BLOCK_SCALED, all WW_F32 or left out (1): factors of the weights' tensors, E x
   *  1 or 1 x 1, which a launch with nvf4 weights needs, of 1 where there are none; for nvf4 the
   *  scales of the tensors that x and the rows between the products become, 1 x 1. */
  ww_matrix factor_w13;
  ww_matrix factor_w2;
  ww_matrix factor_x;
  ww_matrix factor_inner;
  /** For WW_SCALING_BLOCK_SCALED what tokens become: WW_TOKENS_AS_WEIGHTS, _MXF8, or _MXF4. */
  int32_t tokens_as;
  int32_t reserved; /**< 0 */
  ww_gate gate;
  /** WW_F32, of an x of WW_E4M3, which is not quantised then: T x 1, or 1 x 1 for all tokens
   *  (WW_SCALING_ROW_COLUMN), or T x ceil(H/128) (WW_SCALING_BLOCKWISE), any strides; else none.
   *  d is WW_BF16 or WW_F32 then. */
  ww_matrix scale_x;
  ww_matrix shared_output; /**< T x H of WW_F32, WW_BF16 or WW_F16, added to the sum; or left out */
  int32_t combine;         /**< WW_COMBINE_ ...: what d is */
  int32_t apply_router_weight_on_input; /**< 1, for a top_k of 1 and an x of 16 bits: x times its
                                             weight, rounded to x's type, is what experts take */
  float routed_scaling_factor; /**< finite, multiplied to the router weights; 1 by ww_moe_init */
  int32_t reserved2;           /**< 0 */
} ww_moe;

/** No tensors, SiLU, gate above up, a factor of 1; `size` as of ww_gemm_init_sized. */
WW_API void ww_moe_init_sized(ww_moe* moe, size_t size);
/** As ww_gemm_init: the function knows no member behind sums_w2. */
WW_API void ww_moe_init(ww_moe* moe);
#define ww_moe_init(moe) ww_moe_init_sized((moe), sizeof(ww_moe))

/** What the caller leaves to the plan, or fixes. */
enum { WW_OPEN = 0, WW_YES = 1, WW_NO = 2 };

/** 0 and NULL leave it open. */
typedef struct ww_moe_choices {
  size_t size;             /**< sizeof(ww_moe_choices) */
  int32_t batch_invariant; /**< 1: bits of a token's row depend on it, its slots and the weights */
  int32_t by_index;        /**< WW_OPEN ...: the first product reads tokens by number; no: they are
                                put into the order of the experts before it */
  int32_t quantises_in_epilogue; /**< WW_OPEN ...: the first product quantises its rows itself; no:
                                      a launch of its own does. For WW_SCALING_BLOCKWISE and
                                      WW_SCALING_BLOCK_SCALED */
  int32_t sums_in_product;       /**< WW_OPEN or WW_NO */
  int32_t early_weights;    /**< WW_OPEN ...: products ask for their first weights before the launch
                                 before has ended, where that is safe */
  int32_t sort_with_gather; /**< WW_OPEN ...: one launch sorts up to 4,096 slots and puts their
                                 tokens into the order of the experts; no: two do */
  const char* first_kernel; /**< of the product with w13, by its name */
  const char* second_kernel; /**< of that with w2 */
  int32_t gates_in_epilogue; /**< WW_OPEN ...: the first product gates its rows itself; no: a launch
                                  of its own does. Not for WW_SCALING_BLOCK_SCALED */
  int32_t one_launch;        /**< WW_OPEN ...: one launch does the whole layer, of up to 256 slots
                                  of bf16 by bf16 or packed weights, or 16 by e4m3 in blocks; no: a
                                  launch for each step */
} ww_moe_choices;

typedef struct ww_moe_options {
  size_t size;       /**< sizeof(ww_moe_options) */
  int32_t dependent; /**< as in ww_launch_options */
  int32_t check_ids; /**< 1, only for ww_moe_run: it waits for the launch, and refuses (bad_value)
                          where an id was neither -1 nor one of experts_total */
} ww_moe_options;

/** A decision how to run a mixture: immutable, without addresses. */
typedef struct ww_moe_plan ww_moe_plan;

/** A plan, or why there is none. Touches no device. */
WW_API ww_refusal* ww_moe_plan_make(const ww_moe* moe, const ww_device* device,
                                    const ww_moe_choices* choices /* or NULL */,
                                    ww_moe_plan** plan);
/** Among `count` plans for one device, of mixtures that differ only in w13 and w2 (packed weights,
 * say, and fp8 ones of the same values), the one that is predicted to be the fastest, as
 * ww_plan_fastest has it for products: its number, where `which` is not NULL, and a plan of its
 * own. */
WW_API ww_refusal* ww_moe_plan_fastest(const ww_moe_plan* const* plans, int32_t count,
                                       int32_t* which /* or NULL */, ww_moe_plan** plan);
/** Both kernels in a word; the whole plan, a table of its launches with their floors; one line, for
 *  a log. They live as long as the plan. */
WW_API const char* ww_moe_plan_name(const ww_moe_plan* plan);
WW_API const char* ww_moe_plan_explain(const ww_moe_plan* plan);
WW_API const char* ww_moe_plan_line(const ww_moe_plan* plan);
/** Bytes of workspace that a launch needs. */
WW_API int64_t ww_moe_plan_workspace_bytes(const ww_moe_plan* plan);
/** Grids that a launch starts, each dependent on the one before; 0 for no tokens. */
WW_API int32_t ww_moe_plan_launches(const ww_moe_plan* plan);
WW_API void ww_moe_plan_free(ww_moe_plan* plan);

/** Loads the plan's kernels, so that the first launch may be in a graph capture. */
WW_API ww_refusal* ww_moe_prepare(const ww_moe_plan* plan);
/** Starts the plan, as ww_launch does one of a product. `workspace` may be of any content. */
WW_API ww_refusal* ww_moe_launch(const ww_moe_plan* plan, const ww_moe* moe,
                                 ww_workspace* workspace, void* stream,
                                 const ww_moe_options* options /* or NULL */);
/** What the last launch of `plan` in `workspace` says of its ids: NULL, or a refusal (bad_value).
 *  Waits for `stream`, so not in a capture. */
WW_API ww_refusal* ww_moe_ids_fault(const ww_moe_plan* plan, const ww_workspace* workspace,
                                    void* stream);
/** Plans, or takes the plan that was made before; takes the memory that belongs to `stream`;
 *  launches: see ww_run, of which all is true here. A mixture always needs a workspace. */
WW_API ww_refusal* ww_moe_run(const ww_moe* moe, int32_t device,
                              const ww_moe_choices* choices /* or NULL */, void* stream,
                              const ww_moe_options* options /* or NULL */, ww_moe_plan** made);

/* -- Before a product: codes of activations, packed weights ------------------------------------ */

/**
 * Activations as e4m3: x[i, k] is about codes[i, k] * scale. x is M x K of WW_F32, WW_F16 or
 * WW_BF16, codes the same of WW_E4M3, rows of both contiguous; scales are WW_F32: M x 1 for
 * WW_SCALING_ROW_COLUMN, M x ceil(K/128) (or 64, or 32) of any strides for WW_SCALING_BLOCKWISE, 1
 * x 1 for WW_SCALING_TENSOR, where scale_is_given 1 says that it is there and is read, and 0 that
 * it is found. A scale is the largest finite magnitude over 448 (1 where all are 0); infinities and
 * NaN become NaN. The bits are the same on the host (device WW_MODEL) and on CUDA device `device`,
 * where it takes one launch (three to find a tensor's scale), waits for nothing and is legal in a
 * graph capture.
 */
WW_API ww_refusal* ww_quantise(const ww_matrix* x, const ww_matrix* codes, const ww_matrix* scales,
                               int32_t scaling, int32_t scale_is_given, int32_t device,
                               void* stream);

/** How the scale of a block follows from its elements (docs/packing.md). */
enum {
  WW_RECIPE_USUAL = 0,  /**< UP of WW_UE8M0, NESTED of WW_UE4M3 */
  WW_RECIPE_FLOOR = 1,  /**< of WW_UE8M0: OCP MX 1.0; what is beyond the codes is cut off */
  WW_RECIPE_UP = 2,     /**< of WW_UE8M0: nothing is cut off */
  WW_RECIPE_NESTED = 3, /**< of WW_UE4M3: the largest element becomes 6 */
  WW_RECIPE_4_OR_6 = 4, /**< of WW_UE4M3: it becomes 6 or 4, by the smaller squared error */
  WW_RECIPE_LAST = WW_RECIPE_4_OR_6
};

/** How scales of blocks lie. */
enum {
  WW_SCALES_IN_TILES =
      0,                /**< of 128 rows x 4, as products read them, see WW_SCALING_BLOCK_SCALED */
  WW_SCALES_IN_ROWS = 1 /**< M x blocks, the scales of a row next to each other */
};

/** Rows in groups, whose scales in tiles begin at a tile each. */
typedef struct ww_scale_groups {
  const void* offsets; /**< count + 1, as those of ww_gemm, in the memory of the scales */
  int64_t count;       /**< 0: the rows are no groups */
  int32_t offset_type; /**< WW_INT32 or WW_INT64 */
  int32_t reserved;    /**< 0 */
} ww_scale_groups;

/** Codes and scales of mxf8, mxf6, mxf4 or nvf4, which the types of codes and scales say. */
typedef struct ww_block_quantisation {
  size_t size;      /**< sizeof(ww_block_quantisation) */
  ww_matrix x;      /**< M x K of WW_F32, WW_F16 or WW_BF16; elements of a row next to each other */
  ww_matrix codes;  /**< M x K of WW_E4M3, WW_E5M2, WW_E2M3, WW_E3M2 or WW_E2M1; apart from x */
  ww_matrix scales; /**< WW_UE8M0, one each 32 of K, or of WW_E2M1 WW_UE4M3, each 16 */
  /** WW_F32, 1 x 1, only for WW_UE4M3: what codes and scales are multiplied by, ww_gemm.alpha, and
   *  no divisor. It is found and written, or read where scale_is_given is 1. Left out: 1. */
  ww_matrix tensor_scale;
  ww_scale_groups groups;
  int32_t scale_is_given;
  int32_t recipe; /**< WW_RECIPE_ ... */
  int32_t order;  /**< WW_SCALES_IN_ ..., of scales */
  int32_t reserved;
} ww_block_quantisation;

/** Carries it out on CUDA device `device`, or in host memory with WW_MODEL, with the same bits. On
 *  CUDA one launch, three where a tensor's scale is found; waits for nothing, legal in a capture.
 */
WW_API ww_refusal* ww_quantise_blocks(const ww_block_quantisation* what, int32_t device,
                                      void* stream);

/** Puts scales of blocks, WW_UE8M0 or WW_UE4M3, into the order that products read, or with
 *  WW_SCALES_IN_ROWS out of it: rows is M x blocks or a batch of such, tiles M rounded up to 128,
 *  or with groups (M + 127 G) / 128 * 128, x the blocks rounded up to 4, packed, at a multiple of
 *  16 bytes. What lies between rows in tiles becomes 1 (WW_UE8M0) or 0. `device` and `stream` as
 *  above. */
WW_API ww_refusal* ww_order_scales(const ww_matrix* rows, const ww_matrix* tiles, int32_t to,
                                   const ww_scale_groups* groups /* or NULL */, int32_t device,
                                   void* stream);

/** The same into tiles of WW_UE8M0 of scales that serve more: 1 or 128 rows, 1 or 4 blocks of 32 of
 *  K. 1 and 4 are the 1 x 128 of fp8 tokens, 128 and 4 the 128 x 128 of fp8 weights; rows has
 *  ceil(M / rows_each) x ceil(blocks / blocks_each) of WW_UE8M0, or of WW_F32, powers of two:
 * others are refused in host memory and become NaN on a device. */
WW_API ww_refusal* ww_spread_scales(const ww_matrix* rows, const ww_matrix* tiles,
                                    int32_t rows_each, int32_t blocks_each,
                                    const ww_scale_groups* groups /* or NULL */, int32_t device,
                                    void* stream);

/** No extents, one expert, groups of 128, scales of bf16, the encoding left open; `size` as of
 *  ww_gemm_init_sized. */
WW_API void ww_packed_form_init_sized(ww_packed_form* form, size_t size);
/** As ww_gemm_init: the function knows no member behind zero_points. */
WW_API void ww_packed_form_init(ww_packed_form* form);
#define ww_packed_form_init(form) ww_packed_form_init_sized((form), sizeof(ww_packed_form))
/** Bytes of weights of this form, header and tiles, whatever the encoding. */
WW_API ww_refusal* ww_packed_bytes(const ww_packed_form* form, int64_t* bytes);
/** The form of the packed weights that begin at `bytes`, of which WW_PACKED_HEADER are there. Where
 *  `count` is more, it is the whole, whose sum is checked too. Refuses what is damaged. */
WW_API ww_refusal* ww_packed_read(const void* bytes, int64_t count, ww_packed_form* form);
/** The factor of nvf4 weights whose header of WW_PACKED_HEADER bytes is at `bytes`: what products
 * by them are multiplied by (alpha), 0 where the header does not say it (experts whose factors
 * differ, bytes of versions before 0.4), and 1 of all other weights. */
WW_API ww_refusal* ww_packed_factor(const void* bytes, float* factor);
/** Quantises weights in host memory, N x K of WW_F32, WW_BF16 or WW_F16, a batch where there are
 *  experts, and packs them at `packed`, in host memory too. form says group, encoding, scales and
 *  zero points; its extents and an open encoding are set. */
WW_API ww_refusal* ww_int4_quantise(const ww_matrix* weights, ww_packed_form* form, void* packed);
/**
 * Packs int4 weights as checkpoints have them, in host memory: `layout` is "compressed-tensors",
 * "gptq", "gptq-v2", "awq", "w4afp8" or "int4", whose types and shapes docs/packing.md has; zeros
 * and group_index may be NULL where the layout has it so. With packed NULL only form is set:
 * extents, group, what is left open, so that ww_packed_bytes tells how much memory it takes.
 */
WW_API ww_refusal* ww_int4_pack(const char* layout, const ww_matrix* codes, const ww_matrix* scales,
                                const ww_matrix* zeros, const ww_matrix* group_index,
                                ww_packed_form* form, void* packed);
/**
 * Packs mxf4 or nvf4 weights as checkpoints have them, in host memory, for tokens of e4m3 (mxf4),
 * bf16 or f16: `layout` is "gpt-oss", "deepseek-mxfp4", "compressed-tensors-mxfp4",
 * "modelopt-nvfp4" or "compressed-tensors-nvfp4" (docs/low_precision.md has types and shapes); the
 * latter two have a tensor_scale of WW_F32, 1 x 1, a batch where there are experts. In form the
 * encoding is read: WW_PACKED_MXF4 or _MXF4_EXACT, _MXF4_BF16, _MXF4_F16, _NVF4_BF16, _NVF4_F16, or
 * _ANY, which takes exact sums where scales of mxf4 span too far; all of it is set. With packed
 * NULL nothing else is done. `alphas` gets for each expert what products are multiplied by; NULL is
 * refused where one of these is not 1.
 */
WW_API ww_refusal* ww_fp4_pack(const char* layout, const ww_matrix* codes, const ww_matrix* scales,
                               const ww_matrix* tensor_scale /* or NULL */, ww_packed_form* form,
                               float* alphas /* or NULL */, void* packed);
/** The same of int4, mxf4 and nvf4 weights, any of these layouts, where they lie: all tensors and
 *  `packed` in the memory of CUDA device `device`, or in host memory with WW_MODEL; form and alphas
 *  in host memory. The bytes are those of the host, and so are the refusals. Waits for `stream`. */
WW_API ww_refusal* ww_pack_on(const char* layout, const ww_matrix* codes, const ww_matrix* scales,
                              const ww_matrix* zeros /* or NULL */,
                              const ww_matrix* group_index /* or NULL */,
                              const ww_matrix* tensor_scale /* or NULL */, ww_packed_form* form,
                              float* alphas /* or NULL */, void* packed, int32_t device,
                              void* stream);
/** Packs weights in the plain layout where they lie, on CUDA device `device`: codes are two's
 *  complement, two a byte, the even k low, [experts, N, K/2] bytes; scales [experts, N, K/group] of
 *  type scale_type; zeros bytes of that shape, or NULL. Encoding ex or sm. Waits for `stream`. */
WW_API ww_refusal* ww_int4_pack_on(const ww_packed_form* form, const void* codes,
                                   const void* scales, int32_t scale_type, const void* zeros,
                                   void* packed, int32_t device, void* stream);

/* -- What packed weights were called when all were int4: for one version ------------------- */

typedef ww_packed_form ww_int4;                                               /* old name */
#define WW_INT4_HEADER WW_PACKED_HEADER                                       /* old name */
#define ww_int4_init(form) ww_int4_init_sized((form), sizeof(ww_packed_form)) /* old name */
enum {
  WW_INT4_SM = WW_PACKED_SM,                 /* old name */
  WW_INT4_EX = WW_PACKED_EX,                 /* old name */
  WW_INT4_ANY = WW_PACKED_ANY,               /* old name */
  WW_INT4_MXF4 = WW_PACKED_MXF4,             /* old name */
  WW_INT4_MXF4_EXACT = WW_PACKED_MXF4_EXACT, /* old name */
  WW_INT4_MXF4_BF16 = WW_PACKED_MXF4_BF16,   /* old name */
  WW_INT4_NVF4_BF16 = WW_PACKED_NVF4_BF16,   /* old name */
  WW_INT4_BF16 = WW_PACKED_EX_BF16,          /* old name */
  WW_INT4_MXF4_F16 = WW_PACKED_MXF4_F16,     /* old name */
  WW_INT4_NVF4_F16 = WW_PACKED_NVF4_F16,     /* old name */
  WW_INT4_F16 = WW_PACKED_EX_F16             /* old name */
};
WW_API void ww_int4_init_sized(ww_packed_form* form, size_t size);                  /* old name */
WW_API void(ww_int4_init)(ww_packed_form* form);                                    /* old name */
WW_API ww_refusal* ww_int4_bytes(const ww_packed_form* form, int64_t* bytes);       /* old name */
WW_API ww_refusal* ww_int4_read(const void* at, int64_t count, ww_packed_form* to); /* old name */
WW_API ww_refusal* ww_int4_factor(const void* bytes, float* factor);                /* old name */

#ifdef __cplusplus
}
#endif

#endif
