#include "cli/commands/gemm/gemm_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "cli/commands/completion.h"
#include "cli/commands/values.h"
#include "cli/compute/words.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

// What the options of a product mean together, for the help of every command that takes them.
constexpr const char* kGemmMeaning =
    "D = activation(alpha * scaled(A * B^T) + beta * C + bias) * scale_d. FILE is PATH.npy (f32,\n"
    "fp16) or PATH.safetensors:TENSOR (f32, fp16, bf16, e4m3, e5m2). Values are rounded to "
    "--dtype,\nto nearest even; as tf32 the tensor core cuts them off. Messages go to "
    "stderr.\n\n"
    "--layout says how A and B are stored, in BLAS's letters for row-major matrices, D = op(A) *\n"
    "op(B): A is M x K for N and K x M for T; B is K x N for N and N x K for T. NT, the default, "
    "has\nK contiguous in both, as 8-bit operands must. Contiguous lines are best a multiple of "
    "16 bytes long.\n\n"
    "Scales are f32: one (tensor); M x 1 and N x 1 (row-column); M x K/128 and N/128 x K/128, "
    "rounded\nup (block). --gated takes B's two halves of N/2 rows: D[m, j] = silu(P[m, j]) * P[m, "
    "j "
    "+ N/2],\nor its even and odd ones (--gate-up interleaved).\n"
    "Files hold L x rows x columns with --batch L, or one matrix for all of the batch.\n\n";

constexpr const char* kGemmExamples =
    "Examples:\n"
    "  warpwright gemm --random 512 512 512 --check\n"
    "  warpwright gemm --a a.npy --b b.npy --out d.npy --check\n"
    "  warpwright gemm --a x.safetensors:x --b w.safetensors:w --out y.safetensors:y --device "
    "cuda\n"
    "  warpwright gemm --a a.npy --b b.npy --c c.npy --alpha 0.5 --beta 2 --out d.npy\n"
    "  warpwright gemm --random 512 512 512 --as b200 --dtype e4m3 --pair --check\n"
    "  warpwright gemm --random 512 512 512 --dtype e4m3 --scaling blockwise --check\n"
    "  warpwright gemm --random 512 1024 256 --gated --check\n"
    "  warpwright gemm --random 256 256 256 --batch 4 --layout NN --bias columns --check\n"
    "  warpwright gemm --random 8192 8192 8192 --device cuda --bench";

constexpr const char* kGroupedMeaning =
    "D[rows of g] = activation(alpha * scaled(A[rows of g] * B[g]^T) + beta * C + bias[g]) * "
    "scale_d\nfor every group g, whose rows are offsets[g] .. offsets[g + 1]. Only the kernel "
    "reads the offsets.\nMessages go to stderr.\n\n"
    "A, the tokens (TOTAL x K), B, the weights (G x N x K), and the scales come from files or are\n"
    "random; rows of a random A in no group are NaN. FILE is PATH.npy (f32, fp16) or\n"
    "PATH.safetensors:TENSOR (f32, fp16, bf16, e4m3, e5m2). Values are rounded to --dtype. Lengths "
    "and\noffsets are int32 or int64 in either. Rows of D in no group are written as zeros; bf16 "
    "and 8-bit\ntypes go into a .npy file as f32.\n\n"
    "--tokens skew:SEED draws the lengths: one group in eight is empty (at least one of four or\n"
    "more), the others have shares of --total (256 tokens a group where it is not given) that are\n"
    "log-normal with sigma 1. --tokens routed:TOKENS,TOPK[,uniform|zipf:S][,seed:N] draws them as "
    "a\nrouter does: each of the TOKENS goes to TOPK different groups, by a weight of rank^-S with "
    "zipf.\n\n"
    "Scales are f32: one (tensor); one for each group, G x 1 (group); one for each token and each\n"
    "row of B, TOTAL x 1 and G x N x 1 (row-column); one for 1 x 128 of A and 128 x 128 of B,\n"
    "TOTAL x K/128 and G x N/128 x K/128, rounded up (block).\n\n";

constexpr const char* kGroupedExamples =
    "Examples:\n"
    "  warpwright grouped --groups 4 --tokens 16,0,3,40 --n 256 --k 128 --check\n"
    "  warpwright grouped --a x.safetensors:x --b w.safetensors:w --tokens 16,0,3,40 --out "
    "y.safetensors:y\n"
    "  warpwright grouped --a x.safetensors:x --b w.safetensors:w --offsets m.safetensors:offsets "
    "--out y.npy\n"
    "  warpwright grouped --groups 8 --tokens skew:1 --total 300 --n 256 --k 256 --dtype e4m3 "
    "--scaling blockwise --check\n"
    "  warpwright grouped --groups 16 --tokens routed:40,2,zipf:1,seed:3 --n 256 --k 128 --check\n"
    "  warpwright grouped --groups 3 --tokens 9 --n 64 --k 64 --bad-offsets beyond "
    "--check-offsets\n"
    "  warpwright grouped --groups 8 --tokens 128 --n 4096 --k 4096 --dtype e4m3 --device cuda "
    "--check --repeat 100";

// The matrices of a dense product.
void add_dense(CLI::App& app, GemmOptions& o) {
  const Values add(app);
  add("--a", o.a, "FILE", "the matrix A[M,K]");
  add("--b", o.b, "FILE", "the matrix B[N,K]");
  add("--c", o.c, "FILE", "the matrix C[M,N], which is added");
  app.add_option("--random", o.random, "random normal matrices of these extents instead of files")
      ->option_text("M N K")
      ->expected(3)
      ->check(whole<std::int64_t>(0, max_extent));
  add("--batch", o.batch, "L", "products in one launch: every matrix is a batch of them");
  offer(add("--d-dtype", o.d_dtype, "TYPE",
            "f32, " + listed(operand_types, is_result_type) +
                ": the type of D (default: that of A and B, bf16 where these are 8-bit floats, f32 "
                "where they are tf32 or s8; f32 into a .npy file)"),
        "f32 " + listed(operand_types, is_result_type, " ", " "));
  add("--scale-a", o.scale_a, "FILE", "the scales of A");
  add("--scale-b", o.scale_b, "FILE", "the scales of B");
}

// The matrices of a product in groups, by the names of the library or of those who speak of X and
// W.
void add_grouped(CLI::App& app, GemmOptions& o) {
  const Values add(app);
  add("--a,--x", o.a, "FILE", "the tokens A[TOTAL,K], groups one after the other");
  add("--b,--w", o.b, "FILE", "the weights B[G,N,K]");
  add("--c", o.c, "FILE", "the matrix C[TOTAL,N], which is added");
  add("--groups", o.groups, "G", "random A and B of so many groups instead of files");
  add("--n", o.n, "N", "rows of each random B[g], columns of the product");
  add("--k", o.k, "K", "columns of random A and B");
  add("--total", o.total, "TOTAL",
      "rows of random A and of D; those behind the groups' are in none (default: the tokens)");
  add("--tokens", o.tokens, "LIST|T|uniform:T|skew:SEED|routed:...|FILE",
      "rows of A in each group: G numbers, one for all, drawn (see below), or a file of G "
      "integers");
  add("--offsets", o.offsets, "int32|int64|FILE",
      "integers of the offsets (default int32), or a file of G + 1 of them instead of --tokens");
  add("--bad-offsets", o.bad_offsets, "decreasing|beyond",
      "end the last group before it begins, or behind A: nothing else may come of it");
  offer(add("--rows-index", o.rows_index, "random:TOKENS|FILE",
            "tokens by index: row r of D reads row INDEX[r] of A, drawn of so many tokens (each "
            "eighth row of none), or a file of TOTAL integers"),
        "random:64");
  add("--rows-divisor", o.rows_divisor, "K",
      "the index is divided by so many first: slots of a router that gives each token K (default "
      "1)");
  add("--expected-tokens", o.expected_tokens, "T",
      "a hint for the choice of the kernel: tokens of a group that has any (default: TOTAL / G)");
  offer(add("--expected-lengths", o.expected_lengths, "equal|routed|zipf:S",
            "another: how the lengths are spread, all equal, as a router spreads them, or where it "
            "likes the group of rank r as r^-S (default routed)"),
        "equal routed zipf:1");
  add("--tile-tokens", o.tile_tokens, "T", "tokens of a tile (default: the plan's choice)");
  add("--search", o.search, "linear_scan|binary_search|warp_scan",
      "how CTAs find their tiles (default: the plan's choice)");
  offer(add("--d-dtype,--y-dtype", o.d_dtype, "TYPE",
            "the type of D (default: that of A, bf16 where this has 8 bits)"),
        "f32 " + listed(operand_types, is_result_type, " ", " "));
  add("--scale-a,--scale-x", o.scale_a, "FILE", "the scales of A");
  add("--scale-b,--scale-w", o.scale_b, "FILE", "the scales of B");
}

// How scales are said.
void add_scales(CLI::App& app, GemmOptions& o) {
  const Values add(app);
  add("--scaling", o.scaling, listed(all_scalings, is_option, "|", "|").c_str(),
      "scales of 8-bit A and B, random ones for random matrices; group only for groups (default "
      "none)");
  add("--block", o.block, "128|64|32",
      "of --scaling blockwise: a scale serves so many rows of B, and so much of K (default 128)");
  add("--scales-major", o.scales_major, "k|mn",
      "how the block scales of A lie: those of a token side by side, or those of a block of K, "
      "which TMA copies (default mn for random scales, k for those of files)");
  add("--scales-layout", o.scales_layout, "linear|tiles",
      "how the scales of mxf8, mxf6, mxf4 and nvf4 lie in files: row by row, as checkpoints have "
      "them, or in tiles of 128 x 4 (default: as their shape says, linear where that is both)");
}

// Weights in their packed form.
void add_weights(CLI::App& app, GemmOptions& o) {
  const Values add(app);
  offer(add("--weights", o.weights, packed::format_words("|", "|").c_str(),
            "B are weights of 4 bits with scales of groups along K: random ones are quantised, a "
            "FILE is what `warpwright pack` wrote; A is e4m3 (for nvf4 bf16), bf16 or fp16"),
        packed::format_words(" ", " "));
  add("--group", o.group, "32|64|128", "weights that share a scale (default 128; a FILE says it)");
  add("--sums", o.sums, "exact|chained|folded|table",
      "packed weights: scale each group's sum and add it in float32, rescale the tensor core's "
      "from group to group, or scale the weights, by fp16 or by a table (default exact; the others "
      "for int4 with e4m3 are of groups; mxf4 with e4m3: add in float32 every 128 of K, or folded: "
      "only in the tensor core)");
  app.add_flag("--zero-points", o.zero_points, "int4 weights with zero points");
  app.add_flag("--or-fp8", o.or_fp8,
               "mxf4 weights, or fp8 of the same values, which takes twice the memory: whichever "
               "is predicted to be faster");
}

// Where it runs, and what is computed.
void add_meaning(CLI::App& app, GemmOptions& o) {
  const Values add(app);
  add("--layout", o.layout, "NT|NN|TN|TT",
      "how A and B are stored, in BLAS's letters (default NT: K contiguous in both)");
  add_place(app, o, "explain: plan");
  offer(add("--dtype", o.dtype, "TYPE",
            listed(operand_types, is_of_all_kernels, ", ", ", ") +
                " or e4m3,e5m2, or, on GPUs without wgmma, " +
                listed(operand_types, is_of_registers) + ", or on sm_100 and sm_120 " +
                format_words(", ", " or ") +
                ", or two of these as mxf8,mxf4, with scales that are made here or come by "
                "--scale-a and --scale-b: what A and B are multiplied as (default: the type of "
                "both files, else bf16)"),
        operand_words(" ") + format_words(" ", " "));
  add("--alpha", o.alpha, "X", "factor of the product (default 1)");
  add("--beta", o.beta, "X", "factor of C (default 1 with --c); with --random it asks for a C");
  app.add_flag("--in-place", o.in_place, "D's memory holds C, and D takes its place");
  add("--pitch", o.pitch, "N",
      "rows of C and D begin N elements apart, and so do shorter rows of A and B where that is a "
      "multiple of 16 bytes (default: no gaps)");
  add_scales(app, o);
  add("--accumulation", o.accumulation, "fast|promoted",
      "8-bit products: add only in the tensor core, or to float32 every 128 of K (default fast; "
      "block scales imply promoted)");
  add_weights(app, o);
  for (const TensorOption& each : tensor_options) {
    if (each.help != nullptr) add(each.name, o.*each.file, each.values, each.help);
  }
  add("--activation", o.activation, listed(all_activations, is_of_products, "|", "|").c_str(),
      "applied last (default none, or silu where the epilogue is gated)");
  app.add_flag(
      "--gated", o.gated,
      "the activation of one half of the columns, the gates, times the other: silu or swiglu_oai");
  add("--gate-up", o.gate_up, "halves|interleaved",
      "for a gated product: B's first rows are the gates, or its even ones (default halves)");
  add_gate_numbers(app, o.gate);
  add("--quantise-d", o.quantise_d, listed(all_quantisations, any<QuantiseD>, "|", "|").c_str(),
      "D are codes with scales: e4m3 and a float32 each 1 x 128, or mxf8, or nvf4, whose scales "
      "--out writes beside D as pack does (default none)");
}

// What is fixed of the plan; all default to the plan's choice.
void add_choices(CLI::App& app, GemmOptions& o, bool is_grouped) {
  const Values add(app);
  offer(add("--cluster", o.cluster, "M,N",
            "CTAs that share loads: 1,1 2,1 1,2 2,2 4,1 1,4 4,2 2,4 8,1 1,8 4,4 (default: the "
            "plan's choice)"),
        "1,1 2,1 1,2 2,2 4,1 1,4 4,2 2,4 8,1 1,8 4,4");
  add("--tile-m", o.tile_m, "N", "rows of a tile (default: the plan's choice)");
  add("--tile-n", o.tile_n, "N", "columns of a tile (default: the plan's choice)");
  offer(add("--schedule", o.schedule, "NAME",
            "cooperative, pingpong or multistage (default: the plan's choice)"),
        "cooperative pingpong multistage");
  add("--swap-ab", o.swap_ab, "yes|no", "B's rows on the MMA's M (default: the plan's choice)");
  offer(add("--kernel", o.kernel, "NAME",
            "this kernel, by the name that explain and `warpwright kernels` print"),
        kernel_words(is_grouped));
  offer(add("--cluster-k", o.cluster_k, "N",
            "CTAs of a cluster that share a tile along K: 1 2 3 4 5 6 8 12 16 (default: the plan's "
            "choice)"),
        "1 2 3 4 5 6 8 12 16");
  add("--ctas", o.ctas, "N", "CTAs of the grid; for a kernel that splits K, into how many parts");
  app.add_flag("--batch-invariant", o.batch_invariant,
               "a row's bits do not depend on M, the batch or other rows");
  app.add_flag("--no-tuning", o.no_tuning, "leave out what `warpwright tune` measured");
  // By a function: a flag that is left out would set an optional to false.
  app.add_flag_function(
      "--pair,!--one-sm",
      [&o](std::int64_t count) {
        if (count == 0) throw CLI::ValidationError("--pair", "--one-sm is given too, its opposite");
        o.pair = count > 0;
      },
      "on sm_100: MMAs of a pair of SMs, or of one (default: the plan's choice)");
  offer(add("--scheduler", o.scheduler, "S",
            "where tiles come from: static persistent tiles (the default of sm_90); dynamic, a "
            "counter (sm_90: the kernels named ..._dyn); on sm_100 one (a tile a cluster) or clc, "
            "CLC (its default, and of sm_120 for who asks)"),
        "static dynamic one clc");
  add("--accumulators", o.accumulators, "N",
      "on sm_100: accumulators in tensor memory (default: the kernel's)");
}

}  // namespace

std::string product_help(const std::string& examples, bool is_grouped) {
  return (is_grouped ? kGroupedMeaning : kGemmMeaning) + examples;
}

void add_gemm_options(CLI::App& app, GemmOptions& o, bool is_grouped) {
  (is_grouped ? add_grouped : add_dense)(app, o);
  add_meaning(app, o);
  add_choices(app, o, is_grouped);
}

void add_machine_option(CLI::App& app, std::string& file) {
  const Values add(app);
  add("--machine", file, "FILE",
      "a device in numbers, as docs/machines.md says and calibrate writes it: plans, predictions "
      "and the model's nominal time follow it");
}

void add_device_files(CLI::App& app, DeviceFiles& files) {
  add_machine_option(app, files.machine);
  const Values add(app);
  add("--correction", files.correction, "FILE",
      "what calibrate --learn learnt of a Hopper card's times: plans and learnt times follow it "
      "(default: what WARPWRIGHT_CORRECTION names, else what was learnt of H200 and H100)");
}

void add_place(CLI::App& app, RunOptions& o, const char* plans) {
  const Values add(app);
  offer(add("--device", o.device, "DEVICE",
            "model, cuda, cuda:1, ..., or auto: a GPU where there is one")
            ->capture_default_str(),
        "model auto cuda cuda:0 cuda:1");
  offer(add("--as", o.as, "NAME",
            known_names() + ": run that device's kernels on the model (" + plans +
                " for that device)"),
        device_words() + "model");
  add_device_files(app, o);
  add("--sms", o.sms, "N",
      "SMs of the model, up to 256: fewer of them take more tiles each (default 8, or what "
      "--cluster and its like need)",
      whole(1, 256));
}

void add_mode(CLI::App& app, RunOptions& o) {
  const Values add(app);
  offer(add("--mode", o.mode, "MODE",
            "when asynchronous operations complete on the model: eager, latest, random or starve "
            "(default latest)"),
        "eager latest random starve");
}

void add_gate_numbers(CLI::App& app, GateOptions& o) {
  const Values add(app);
  add("--gate-limit", o.limit, "X",
      "for a gate: it is at most X, and what it is for within -X and X (default: none for silu, 7 "
      "for swiglu_oai)");
  add("--gate-alpha", o.alpha, "X",
      "for a gate g / (1 + exp(-alpha g)) (default 1 for silu, 1.702 for swiglu_oai)");
  add("--gate-beta", o.beta, "X",
      "added to what a gate is for (default 0 for silu, 1 for swiglu_oai)");
}

std::string given_text(CLI::App& app) {
  // What each option holds the parser knows; for flags it does not.
  std::string all;
  for (CLI::Option* option : app.get_options()) {
    std::string value = option->capture_default_str()->get_default_str();
    if (value.empty() || value == "{}" || value == "[]") continue;
    std::replace(value.begin(), value.end(), ',',
                 option == app.get_option_no_throw("--random") ? ' ' : ',');
    std::erase_if(value, [](char c) { return c == '[' || c == ']' || c == '"'; });
    if (option->get_lnames().front() == "device") continue;  // the model, for all that prints this
    all += " --" + option->get_lnames().front() + " " + value;
  }
  return all;
}

std::string arguments_text(const GemmOptions& options) {
  GemmOptions o = options;
  CLI::App app;
  add_gemm_options(app, o, o.is_grouped);
  std::string all = given_text(app);
  for (const auto& [flag, is_set] : {std::pair{"--zero-points", o.zero_points},
                                     {"--gated", o.gated},
                                     {"--in-place", o.in_place},
                                     {"--check-offsets", o.check_offsets},
                                     {"--zero-rest", o.zero_rest}}) {
    if (is_set) all += std::string(" ") + flag;
  }
  if (o.seed != 1) all += " --seed " + std::to_string(o.seed);
  return all.empty() ? all : all.substr(1);
}

void add_run_options(CLI::App& app, GemmOptions& o, bool is_grouped) {
  const Values add(app);
  add("--out", o.out, "FILE", "where D is written, once it is complete (and right, with --check)");
  app.add_flag("--check", o.check,
               "compare every element of D with float64 over the rounded inputs, and rows in no "
               "group with what they were");
  add("--seed", o.seed, "N", "of the random matrices, and of the model's schedule")
      ->check(refuse_seed)
      ->capture_default_str();
  add_mode(app, o);
  if (is_grouped) {
    app.add_flag(
        "--check-offsets", o.check_offsets,
        "tell whether the offsets are in order, and all numbers of --rows-index of rows of A");
    add("--repeat", o.repeat, "R", "on a GPU: time R launches and tell their share of the roof");
  } else {
    app.add_flag("--bench", o.bench, "on a GPU: time the product and cuBLASLt's in the same run");
  }
  app.add_flag("--json", o.json, "for programs");
  app.footer(product_help(is_grouped ? kGroupedExamples : kGemmExamples, is_grouped));
}

}  // namespace warpwright::cli
