#include "cli/commands/measure/measure_options.h"

#include <CLI/CLI.hpp>
#include <cstdint>

#include "cli/commands/completion.h"
#include "cli/commands/gemm/gemm_options.h"
#include "cli/commands/help.h"
#include "cli/commands/moe/moe_options.h"
#include "cli/commands/numbers.h"
#include "cli/commands/values.h"
#include "cli/compute/weight_words.h"
#include "cli/compute/words.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

constexpr const char* kBenchExamples =
    "A shape takes about 1 second, a large one 2: the 14 shapes half a minute, --sample 200 some "
    "five\nminutes; --configs all takes longer. Operands are random and made on the GPU, launches "
    "go round\nbuffers of more than twice L2, CUDA graphs are replayed in turns, large products "
    "rest between\nrounds, results are compared first. Columns are medians; /first and /best are "
    "cuBLASLt's time\nover ours (1.05: we are 5% faster), for its first pick and the fastest of "
    "its 16 offers; c/best\nis that of our best configuration. A row that could not be measured "
    "says why (exit status 1).\n\n"
    "Examples:\n"
    "  warpwright bench dense\n"
    "  warpwright bench dense --dtype e4m3 --scaling blockwise --json block.json\n"
    "  warpwright bench dense --sample 200 --seed 7 --configs 1\n"
    "  warpwright bench dense --shapes mine.txt --configs all --markdown";

constexpr const char* kBenchGroupedExamples =
    "A shape takes some 3 seconds with all configurations, --configs 1 less than 1. TOKENS of a "
    "shape\nare a length for all groups, 16,0,3, skew:SEED (256 for each group on average), or\n"
    "routed:TOKENS,TOPK[,uniform|zipf:S]: each token picks TOPK different groups, by --seed, as "
    "it\ndoes with --routed and --model. A row says how many are hit, and the longest. The "
    "loop is a\ncuBLASLt call for each group that has tokens, captured in one CUDA graph: it takes "
    "lengths that\nthe host knows; ours are read on the device. Otherwise as bench dense. What "
    "PyTorch takes for\nthe same lengths: script/bench_torch_grouped.py with the file of "
    "--json.\n\n"
    "Examples:\n"
    "  warpwright bench grouped\n"
    "  warpwright bench grouped --dtype e4m3,e4m3-block --json grouped.json\n"
    "  warpwright bench grouped --routed 128,64,8 --seed 3\n"
    "  warpwright bench grouped --model deepseek-v3 --dtype e4m3-block\n"
    "  warpwright bench grouped --shapes mine.txt --dtype bf16 --configs 1";

constexpr const char* kBenchW4a8Examples =
    "A row takes some 5 seconds, all of them two minutes. Int4 weights with exact sums, and in the "
    "same\nrounds those with other sums and our FP8 kernel with block scales; tokens are e4m3 with "
    "a tensor\nscale. Shapes are lines of bench grouped or of bench dense. Otherwise as these.\n\n"
    "Examples:\n"
    "  warpwright bench w4a8\n"
    "  warpwright bench w4a8 --group 64 --markdown --json w4a8.json\n"
    "  warpwright bench w4a8 --shapes mine.txt --configs all";

constexpr const char* kBenchMoeExamples =
    "A row is a layer of experts for so many tokens, whose experts a router draws by --seed: the "
    "whole\nstep in CUDA graphs, weights cold, launches round buffers of more than twice L2. The "
    "floor is the\nweights of the experts that are hit, x and d at the memory's rate, or the "
    "products at the tensor\ncores'. Rows of some tokens are compared with float64 first. --steps "
    "times every step by itself, too:\nits weights cold, what lies between steps as the cache has "
    "it.\n\n"
    "Examples:\n"
    "  warpwright bench moe\n"
    "  warpwright bench moe --model qwen3-30b --dtype e4m3-block --steps --json moe.json\n"
    "  warpwright bench moe --model deepseek-v3 --tokens 1,64 --dtype e4m3-block";

constexpr const char* kTuneExamples =
    "The fastest plan goes into $XDG_CACHE_HOME/warpwright/tuning-v1.tsv (else ~/.cache/...), for "
    "this\nGPU, driver and version; gemm and explain use it unless --no-tuning. A shape takes "
    "some seconds.\n\n"
    "Examples:\n"
    "  warpwright tune 4096 7168 2048\n"
    "  warpwright tune 64 4096 7168 --dtype e4m3 --scaling blockwise --all\n"
    "  warpwright tune --shapes mine.txt\n"
    "  warpwright tune --grouped --shapes groups.txt --dtype e4m3";

constexpr const char* kSeed = "of the random operands, and of --sample";

void add_types(CLI::App& app, TypeOptions& o) {
  const Values add(app);
  offer(add("--dtype", o.dtype, "TYPE", "bf16, fp16 or e4m3: the type of A and B")
            ->capture_default_str(),
        "bf16 fp16 e4m3");
  offer(add("--d-dtype", o.d_dtype, "TYPE",
            "bf16, fp16, f32 or e4m3: the type of D (default bf16; fp16 with fp16)"),
        "bf16 fp16 f32 e4m3");
  offer(add("--scaling", o.scaling, "KIND",
            listed(all_scalings, is_of_all) + ": for 8-bit operands (default tensor)"),
        listed(all_scalings, is_of_all, " ", " "));
  offer(add("--accumulation", o.accumulation, "KIND", "fast or promoted: for 8-bit operands")
            ->capture_default_str(),
        "fast promoted");
}

void add_measured(CLI::App& app, MeasureOptions& o, const char* seed) {
  const Values add(app);
  add("--rounds", o.rounds, "R", "rounds that the medians are taken of")->capture_default_str();
  add("--seed", o.seed, "S", seed)->capture_default_str();
  offer(add("--device", o.device, "DEVICE", "cuda:0, cuda:1, ...")->capture_default_str(),
        "cuda:0 cuda:1");
  add_device_files(app, o);
}

void add_measuring(CLI::App& app, MeasureOptions& o, const char* seed) {
  add_measured(app, o, seed);
  Values add(app);
  add("--clusters", o.clusters, "N",
      "clusters of up to so many CTAs are tried, 1 to 16 (default: as plans take them, 2, or 8 "
      "where rows begin at no multiples of 128 bytes)",
      whole(1, 16));
}

// How plans of groups expect their lengths; `usual` where nothing is said.
void add_expected(CLI::App& app, std::string& words, const std::string& usual) {
  words = usual;
  const Values add(app);
  offer(add("--expected-lengths", words, "equal|routed|zipf:S",
            "how the plan expects lengths to be spread (default " + usual + ")"),
        "equal routed zipf:1");
}

// Layers of experts.
void add_routed(CLI::App& app, RoutedOptions& o) {
  const Values add(app);
  add("--routed", o.routed, "EXPERTS,TOKENS,TOPK[,uniform|zipf:S]",
      "lengths as a router draws them instead of --shapes, each token going to TOPK of EXPERTS, "
      "for the two products of --model (default: qwen3-30b) or one of --n and --k");
  offer(add("--model", o.model, "NAME",
            "the layer of qwen3-30b, mixtral, qwen3-235b, deepseek-v3 or gpt-oss-120b, at 8, 64, "
            "512 and 4096 tokens or as --routed says"),
        model_words());
  add("--n", o.n, "N", "columns of the product of --routed");
  add("--k", o.k, "K", "its K");
}

// `bench moe`.
void add_bench_moe(CLI::App& bench, BenchMoeOptions& o) {
  CLI::App* moe = bench.add_subcommand("moe", "layers of experts, a number of tokens a row");
  const Values add(*moe);
  offer(add("--model", o.model, "NAME",
            "the layer of qwen3-30b, mixtral, qwen3-235b, deepseek-v3, gpt-oss-120b or llama3-8b "
            "(default: the first two)"),
        model_words());
  add("--tokens", o.tokens, "LIST", "numbers of tokens, with commas between")
      ->capture_default_str();
  offer(add("--dtype", o.dtype, "KINDS",
            moe_kind_words(", ") + ", with commas between; mxf4-or-fp8 is the plan's choice of the "
                                   "two with scales of blocks; all is bf16,e4m3-block")
            ->capture_default_str(),
        "all " + moe_kind_words(" "));
  offer(add("--routing", o.routing, "uniform|zipf:S",
            "how the router likes experts (default uniform, or the model's)"),
        "uniform zipf:1");
  add_moe_choices(*moe, o.choices);
  moe->add_flag("--steps", o.steps, "time every step by itself, too");
  moe->add_flag("--dependent", o.dependent,
                "programmatic dependent launch of the first grid, too (the others always are)");
  add_measured(*moe, o, "of the ids and the random operands");
  add.json_file(o.wants_json, o.json,
                "where the numbers are written too, after every row; without FILE they are all "
                "that is printed, in the end");
  moe->footer(kBenchMoeExamples);
}

// What `bench dense` and `bench grouped` share.
void add_benching(CLI::App& app, BenchOptions& o, const char* seed, const char* examples) {
  const Values add(app);
  add("--configs", o.configs, "N",
      "how many of our configurations are tried for the best: a number, or all")
      ->capture_default_str();
  add("--kernel", o.kernel, "NAME", "plans only with this kernel, by the name that explain prints");
  add_measuring(app, o, seed);
  app.add_flag("--gated", o.gated,
               "gates and ups side by side: D has half of the N columns, gated by silu");
  app.add_flag("--batch-invariant", o.batch_invariant,
               "plans whose rows have the same bits in any batch; our best configuration, which "
               "need not, shows what that costs");
  app.add_flag("--dependent", o.dependent,
               "programmatic dependent launch on our side (default: on neither side)");
  app.add_flag("--counters", o.counters,
               "count as well, by ncu: instructions, sectors read from L2, bytes of DRAM");
  app.add_flag("--under-ncu", o.under_ncu)
      ->group("");  // hidden: see cli/commands/measure/counters.h
  add.json_file(o.wants_json, o.json,
                "where the numbers are written too, after every shape; without FILE they are all "
                "that is printed, in the end");
  add("--record", o.record, "FILE.tsv",
      "a file of measured times that those of all tried configurations are added to; products that "
      "it has of this card and commit are left out");
  app.add_flag("--markdown", o.markdown, "print the table as documents want it");
  app.footer(examples);
}

// `bench w4a8`.
void add_bench_w4a8(CLI::App& bench, BenchOptions& o) {
  CLI::App* w4a8 =
      bench.add_subcommand("w4a8", "packed weights of 4 bits times tokens, one shape a row");
  o.kind = BenchKind::w4a8;
  const Values add_w4a8(*w4a8);
  add_w4a8("--shapes", o.shapes, "FILE",
           "shapes, one a line, GROUPS TOKENS N K or M N K, with # comments (default: " +
               std::to_string(w4a8_shapes().size()) + " built in)");
  offer(add_w4a8("--weights", o.weights, "WEIGHTS",
                 CLI::detail::join(packed_kind_words(), ", ") +
                     ": a format times its usual tokens (of int4 and mxf4 e4m3, of nvf4 "
                     "bf16), or with its tokens behind")
            ->check(CLI::IsMember(packed_kind_words()).description(""))
            ->capture_default_str(),
        CLI::detail::join(packed_kind_words(), " "));
  offer(add_w4a8("--group", o.group, "K", "weights along K that share a scale: 32, 64 or 128",
                 whole(32, 128))
            ->capture_default_str(),
        "32 64 128");
  offer(add_w4a8("--encoding", o.encoding, "ex|sm", "of the codes: ex (-8..7) or sm (-7..7)")
            ->check(CLI::IsMember({"ex", "sm"}).description(""))
            ->capture_default_str(),
        "ex sm");
  add_expected(*w4a8, o.expected_lengths, "equal");
  add_benching(*w4a8, o, "of the random operands", kBenchW4a8Examples);
}

}  // namespace

void add_bench_command(CLI::App& app, BenchOptions& o, BenchOptions& of_groups,
                       BenchOptions& of_w4a8, BenchMoeOptions& of_moe) {
  CLI::App* bench = app.add_subcommand("bench", "measure many products beside cuBLASLt on a GPU");
  bench->require_subcommand(1);
  bench->footer(kBenchExamples);
  CLI::App* dense = bench->add_subcommand("dense", "dense products, one shape a row");
  const Values add_dense(*dense);
  add_dense("--shapes", o.shapes, "FILE",
            "shapes, one a line, M N K or MxNxK, with # comments (default: 14 built in)");
  add_dense("--sample", o.sample, "N",
            "N random shapes instead: M 1 to 16384, N and K 64 to 16384, logarithmic");
  add_types(*dense, o.types);
  dense->get_option("--dtype")->description(
      "bf16, fp16 or e4m3: the type of A and B; or packed weights, as bench grouped names them");
  add_benching(*dense, o, kSeed, kBenchExamples);

  CLI::App* grouped = bench->add_subcommand("grouped", "grouped products, one shape a row");
  of_groups.kind = BenchKind::grouped;
  of_groups.configs = of_groups.types.dtype = "all";
  const Values add_grouped(*grouped);
  add_grouped("--shapes", of_groups.shapes, "FILE",
              "shapes, one a line, GROUPS TOKENS N K, with # comments (default: " +
                  std::to_string(grouped_shapes().size()) + " built in)");
  add_routed(*grouped, of_groups.routed);
  grouped->add_flag("--by-index", of_groups.by_index, "tokens are read by their numbers, in order");
  add_expected(*grouped, of_groups.expected_lengths, "routed");
  offer(add_grouped(
            "--dtype", of_groups.types.dtype, "KINDS",
            kind_words(", ") +
                ", with commas between: e4m3 has tensor scales, and what is behind packed weights "
                "of 4 bits are their tokens (of int4 e4m3); all is e4m3,e4m3-block,bf16")
            ->capture_default_str(),
        "all " + kind_words(" "));
  add_benching(*grouped, of_groups, "of the random operands, and of routed lengths",
               kBenchGroupedExamples);

  add_bench_w4a8(*bench, of_w4a8);
  add_bench_moe(*bench, of_moe);
}

void add_tune_command(CLI::App& app, TuneOptions& o) {
  CLI::App* tune =
      app.add_subcommand("tune", "measure every plan of a product on a GPU and keep the fastest");
  tune->add_option("extents", o.extents, "extents of the product")
      ->option_text("M N K")
      ->check(whole<std::int64_t>(0, max_extent))
      ->expected(0, CLI::detail::expected_max_vector_size);
  const Values add(*tune);
  add("--shapes", o.shapes, "FILE", "shapes of a file instead, as for bench");
  tune->add_flag("--grouped", o.grouped, "products in groups; --shapes as for bench grouped");
  add_types(*tune, o.types);
  tune->add_flag("--all", o.all, "measure all legal plans, not only the 32 most promising");
  tune->add_flag("--json", o.json, "for programs");
  add_measuring(*tune, o, kSeed);
  tune->footer(kTuneExamples);
}

}  // namespace warpwright::cli
