// What help() says of the verbs. The words of activations come between the parts of gemm's and
// moe's.
#pragma once

namespace warpwright::python {

inline constexpr const char* gemm_doc[] = {
    R"(D = activation(alpha * scaled(A @ B.T) + beta * C + bias) * scale_d; returns D.

Tensors are of any library that speaks DLPack: on a CUDA device they are multiplied there, without
waiting; in host memory (numpy, with ml_dtypes for bf16 and fp8) by the machine model, with all its
checks, slowly.

a            M x K, or L x M x K for a batch: bf16, f16, e4m3, e5m2 or int8, or what operands says.
             Rows that begin at multiples of 16 bytes are faster; 16-bit operands may also lie
             MN-major (a transposed view).
b            N x K, as torch.nn.Linear has its weight; one for all of a batch, or L of them. Or
             PackedWeights, beside an A of e4m3, bf16 or f16, as their encoding says.
out          M x N, apart from all inputs (or the very same as c): nothing is allocated then.
c, beta      a matrix like D that is added, times beta; with beta=0 it is not read.
bias         N (or M with bias_along='rows') of f32 or D's 16-bit type.
activation   )",
    R"(.
gated        D[m, j] = silu(P[m, j]) * P[m, j + N/2]: D has N/2 columns. With swiglu_oai
             (P'' + 1) * P' / (1 + exp(-1.702 P')), where P' is P[m, j], at most 7, and P'' is
             P[m, j + N/2], within -7 and 7.
gate_limit, gate_alpha, gate_beta   other numbers of a gate than its activation's: (P'' + beta) *
             P' / (1 + exp(-alpha P')), P' at most limit, P'' within -limit and limit. silu has
             alpha 1, beta 0 and no limit, swiglu_oai 1.702, 1 and 7. DeepSeek-V4 has silu with
             gate_limit=10.
gate_up      'halves', as above, or 'interleaved': gates are P[m, 2j], and P[m, 2j + 1] what they
             are for.
scale_a, _b  f32, for 8-bit operands: numbers ('tensor'), M and N of them ('row_column'), or
             M x ceil(K/128) and ceil(N/128) x ceil(K/128) ('blockwise'; or 64 or 32 for 128, where
             the shapes are so and D is bf16). scaling says which,
             where the shapes do not; those of rows may be a column or a row too. Scales of 16 bits
             are widened. PackedWeights need no scale_b; for nvf4 it takes the place of their factor
             (alpha). For operands in a format
             ('block_scaled', see a_type): float8_e8m0fnu, a scale each 32 of K, or of nvf4
             float8_e4m3fn, each 16; or their bytes as uint8. They lie in tiles of 128 x 4 as
             cuBLASLt and PyTorch have them, of any shape but rows x blocks, which those have that
             lie row by row: block_scales(linear) makes them of these, reshape(-1) says they are.
scale_d      f32, one number, for a D of 8 bits.
accumulation 'fast' or 'promoted' (to float32 every 128 of K), for 8-bit operands.
a_type, b_type   what A and B are multiplied as where their types do not say it: 'tf32' (of
             float32); 'e4m3', 'e5m2', 'e2m3', 'e3m2' or 'e2m1' (of uint8, whose bytes the elements
             fill densely from the low bits up: K/2 of e2m1, K*3/4 of e2m3 and e3m2); or a format,
             which says the scales too: 'mxf8', 'mxf8-e5m2', 'mxf6', 'mxf6-e3m2', 'mxf4' or 'nvf4'.
             PyTorch's float4_e2m1fn_x2 is e2m1 by itself. Formats may be mixed: a_type='mxf8',
             b_type='mxf4'. Nvf4's float32 scales of the tensors go into alpha, without which such
             products are refused; 1 where there are none.
operands     the same for both.
sums         how the sums of PackedWeights meet the scales of their groups: 'exact' (each group's is
             scaled and added in float32), 'chained' (rescaled from group to group), 'folded' or
             'table' (the weights are scaled, and rounded to e4m3; these three of int4 for e4m3
             in groups only). Default: exact, but of mxf4 for e4m3, which folding rounds none of,
             exact or folded, whichever the plan takes for faster.
dtype        D's type, where out is not given: A's, f32 for tf32, or bf16 for 8-bit operands, int8
             too, whose sums bf16 rounds; f32 of these needs a build of all kernels.
quantise_d   '1x128', for e4m3 operands: D are e4m3 codes, made of float32 values as quantise(D,
             'blockwise') makes them, with a float32 scale for each 1 x 128. Returns (D, scales),
             which are a and scale_a of a next product. On B200 also 'mxf8-1x32', 'nvf4-1x16' and
             'mxf4-1x32', for operands in formats: codes of it, and their scales in tiles of
             128 x 4.
d_scales     memory for these scales, M x ceil(D's columns/128) of any strides: nothing is allocated
             then.
batch_invariant  the bits of a row of D do not depend on M, the batch or other rows.
kernel, cluster  fix what the plan would choose: Plan.kernel, (CTAs along M, along N).
measure      so many of the best plans, by predicted time, are timed when such a product is first
             seen on a GPU, and the fastest is kept, also for the processes after this one. That
             call waits, some 10 ms a plan. None is timed in a graph's capture.
dependent    the kernel may start while the one before it in the stream ends.
stream       an integer (cudaStream_t), or a stream of a library; default: the current stream of
             A's library where it says so by DLPack's C functions (PyTorch 2.10 and later), else the
             default stream.
workspace    a Workspace; default: one that the stream keeps.
plan         a Plan of this very product; default: the one made when such a product was first seen.
             kernel, cluster and batch_invariant beside it are refused where it is not that, measure
             and expected_tokens always.

Raises Refusal, with one sentence: the tensor, the rule, the nearest legal value. Takes no memory
beside D, does not wait, and is legal in a CUDA graph's capture, once such a product ran before.)"};

inline constexpr const char* grouped_doc =
    R"(D[r] = gemm of row r of A by the B of its group; returns D. For mixtures of experts.

a        TOTAL x K, the rows of all groups, one behind the other.
b        G x N x K, a matrix a group; or PackedWeights of G experts.
offsets  G + 1 of int32 or int64, in the operands' memory: rows [offsets[g], offsets[g + 1]) are of
         group g. Only the kernel reads them. Offsets out of order or range make groups empty or
         shorter.
out      TOTAL x N. Rows in no group stay as they are; in a fresh result they are 0. (Scales of
         theirs, with quantise_d, stay as they are.)
scale_a, scale_b   'blockwise': TOTAL x ceil(K/128) and G x ceil(N/128) x ceil(K/128); 'group':
         one number or G, and G; 'row_column': TOTAL and G x N; 'tensor': numbers. 'block_scaled':
         the scales of each group's rows of A begin at a tile, so scale_a has tiles of
         (TOTAL + 127 G) // 128 * 128 rows, whatever the offsets; block_scales(linear, offsets)
         makes them. Those of B are G matrices.
bias     G x N, or N for all.
expected_tokens    rows of a group that has any, only for the choice of a kernel.
expected_lengths   how the groups' lengths are spread, only for the choice: 'routed', as rows fall
                   one by one; 'zipf:S', the same with the group of rank r liked as r^-S, S from 0
                   to 8; 'equal', of those that have rows.
rows     TOTAL of int32, in the operands' memory: tokens by index. Row r of D reads row
         rows[r] // rows_divisor of A, and of its scales, which then have a row a token. One that
         names no row of A reads zeros.
rows_divisor       1 (default) for numbers of tokens, top_k for slots of a router.
check_offsets      waits, and raises Refusal where offsets are not in order, or a number in rows
                   names no row of A. Not in a graph's capture.

All else as for gemm.)";

inline constexpr const char* fastest_doc =
    R"(fastest(*plans)
--

For Plans of products that differ only in b (packed weights, say, and fp8 ones of the same values),
for one device: (plan, index), a Plan whose explain() says what it was chosen among, and which of
them it is. It is the one with the least predicted time, which depends on M, and so do the bits of a
row then. Run it with its own b: gemm(a, b, plan=plan). For MoePlans of mixtures that differ only
in w13 and w2, a MoePlan: moe(x, topk_ids, topk_weights, w13, w2, plan=plan).)";

inline constexpr const char* plan_doc =
    R"(The Plan of gemm(a, b, ...), or with offsets of grouped_gemm(a, b, offsets, ...): which
kernel runs and how, without running it. explain() says it in words, prepare() loads it, and
gemm(a, b, plan=...) runs it.

a, b, offsets and other tensors   as for gemm and grouped_gemm, or Specs, which have no memory:
        plan(Spec((4096, 7168)), Spec((2048, 7168)), device='h200'). For b PackedWeights.spec(n, k).
device  'model', 'cuda', 'cuda:1', or one only to plan for: 'h100', 'h200', 'b200', or the model
        with the instructions of one of these, 'model:b200'. Default: where the tensors lie; for
        Specs a CUDA device, where there is one, else the model.

All else is as for gemm, where help(gemm) says what it means. Raises Refusal where there is no
plan.)";

inline constexpr const char* moe_doc[] = {
    R"(A mixture of experts in one call; returns d[t] = sum over j of topk_weights[t, j] *
w2[e] @ (activation(gate) * up), where gate and up are the halves of w13[e] @ x[t], and e is
topk_ids[t, j] - first_expert.

x            T x H of bf16, or of f16 beside PackedWeights that are packed for it; or of e4m3 with
             scale_x, beside weights for tokens of e4m3: nothing is quantised then. Rows may lie
             apart.
topk_ids     T x top_k (1 to 32) of int32 or int64. A slot whose id is -1, or of another rank's
             expert, is left out, and so is any other id that is no expert's. A token without a
             slot becomes 0. None, and topk_weights None: there is no router, as in mlp().
topk_weights T x top_k of f32, bf16 or f16.
w13          E x 2I x H, E from 1 to 1,024: gates above ups, or as gate_up says; for x's type, or
             e4m3: tokens, and the rows between the products, are quantised by the call then. Or
             PackedWeights of E experts, of whose gates and ups in halves docs/moe.md says more. Or
             of a format of mxf8 to nvf4 (float8_e4m3fn, float4_e2m1fn_x2, or bytes with format=).
w2           E x H x I, of w13's type, or PackedWeights too.
activation   )",
    R"(. Where gated is False one of gemm's but swiglu_oai.
gated        False: experts have no gate, w13 is E x I x H, and activation(w13[e] @ x[t]) goes to
             w2; relu2 is Nemotron's.
gate_up      'halves', or 'interleaved': rows of gates and ups in turns, in bias13 too.
gate_limit, gate_alpha, gate_beta   numbers of the gate, as for gemm: gate_limit=10 with silu is the
             clamp of DeepSeek-V4.
combine      'sum'; or the result is T x top_k x H, zeros for slots that are left out: 'weighted',
             each slot's row times its weight, or 'none', as the expert made it.
apply_router_weight_on_input   for top_k 1: x times its weight, rounded to x's type, is what experts
             take, and their results are not multiplied. For x of 16 bits.
routed_scaling_factor   a finite number that the weights are multiplied by, in float32. Default 1;
             a plan serves any.
shared_output   T x H of f32, bf16 or f16, with combine 'sum': what a shared expert made of the
             tokens, added last. Rows may lie apart.
scale_x      for x of e4m3, f32: T ('row_column'), 1 for all tokens, or T x ceil(H/128)
             ('blockwise'), with any strides.
scale_w13, scale_w2   f32, for e4m3 weights: E x 2I and E x H ('row_column'; tokens are quantised by
             row), or E x ceil(2I/128) x ceil(H/128) and E x ceil(H/128) x ceil(I/128)
             ('blockwise'; tokens by 1 x 128; or 64 or 32 for 128). scaling says which, where the
             shapes do not. Beside PackedWeights they may be left out: 'row_column' (default) or
             'blockwise' says what the tokens are quantised by. For nvf4 ones they are the factors,
             one an expert or row. For mxf8 to nvf4 they are float8_e8m0fnu, or for nvf4
             float8_e4m3fn, in tiles as block_scales() makes them: for w13 those of the gates, then
             of the ups, 2 E matrices of I rows, also where gate_up is 'interleaved'.
factor_w13, factor_w2, factor_x, factor_inner   of those, f32: what an expert is multiplied by
             beside its scales, E or 1; and of nvf4 the scales of the tensors that x and the rows
             between the products become, 1. Default: 1; those of nvf4 weights must be given, 1
             where there are none. Factors, not divisors.
format       'mxf8', 'mxf4', 'nvf4', or of tokens and weights, as 'mxf8,mxf4': what bytes are, and
             tokens become. Default: by the types of w13 and scale_w13; tokens are mxf4 or nvf4
             beside such weights, else mxf8.
sums         of w2 as PackedWeights, as for gemm, with 'row_column'.
bias13, bias2         E x 2I and E x H of f32 or x's type.
first_expert, experts_total   of a rank with a part of the experts: the number of its first, and how
             many all ranks have (default: those here). Ranks' results are added elsewhere.
out          T x H, of x's type (bf16 for e4m3) or f32; with combine T x top_k x H; may be x itself:
             nothing is allocated then.
dtype        d's type, where out is not given: x's, or f32.
expected_lengths      how slots fall on experts, only for the choice of kernels, as in
             grouped_gemm.
batch_invariant       the bits of a token's row depend only on it, its slots and the weights.
first_kernel, second_kernel, by_index, quantises_in_epilogue, gates_in_epilogue, early_weights,
sort_with_gather, one_launch   fix what the plan would choose: both kernels by name; whether the
             first product reads tokens by number, or they are put into the order of experts first;
             whether it quantises its rows itself; whether it gates them itself, or a launch behind
             it does; whether products ask for their first weights before the launch before has
             ended; whether one launch sorts up to 4,096 slots and puts tokens into that order;
             whether one does the whole layer, of up to 256 slots of bf16 by bf16, e4m3 in blocks or
             packed weights (left out: where an H200 says that it pays).
check_ids    waits, and raises Refusal where an id is neither -1 nor one of experts_total. Not in a
             graph's capture.
dependent, stream, workspace   as for gemm. Every mixture needs a workspace, of any content.
plan         a MoePlan of this very mixture; default: the one made when such a mixture was first
             seen.

Rows are rounded to x's type, times their weight, and added in float32 in the order of experts, then
slots: the same bits in every run. On the GPU all is 3 to 6 launches, each dependent on the one
before, or one; the host reads nothing, and waits for nothing. Raises Refusal, with one sentence.
Legal in a CUDA graph's capture, once such a mixture ran before.)"};

inline constexpr const char* plan_moe_doc =
    R"(The MoePlan of moe(...) with these arguments, without running it. explain() shows it as a
table of launches with their floors, prepare() loads its kernels, and moe(..., plan=...) runs it.
Tensors may be Specs; device is as for plan().)";

inline constexpr const char* empty_doc = R"(empty(shape, dtype, device)
--

An Array in the memory of 'model' (the host's) or 'cuda:0', with any content, for other libraries to
take by DLPack. It allocates, and on CUDA waits.)";

inline constexpr const char* devices_doc = R"(devices()
--

Names of the devices on which products run here: 'model', and every CUDA device.)";

}  // namespace warpwright::python
