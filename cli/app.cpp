#include "cli/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

#include "cli/commands/completion.h"
#include "cli/commands/draw/draw_command.h"
#include "cli/commands/gemm/check_command.h"
#include "cli/commands/gemm/gemm_options.h"
#include "cli/commands/gemm/trace_command.h"
#include "cli/commands/gemm_command.h"
#include "cli/commands/help.h"
#include "cli/commands/machine/check_ptx_command.h"
#include "cli/commands/machine/devices_command.h"
#include "cli/commands/machine/kernels_command.h"
#include "cli/commands/machine/layout_command.h"
#include "cli/commands/machine/lesson_command.h"
#include "cli/commands/machine/mask_command.h"
#include "cli/commands/machine/mma_command.h"
#include "cli/commands/machine/selftest_command.h"
#include "cli/commands/measure/calibrate_command.h"
#include "cli/commands/measure/measure_options.h"
#include "cli/commands/moe/moe_command.h"
#include "cli/commands/moe/moe_family.h"
#include "cli/commands/moe/moe_options.h"
#include "cli/commands/numbers.h"
#include "cli/commands/pack_command.h"
#include "cli/commands/predict/predict_command.h"
#include "cli/commands/predict/predict_kernel_command.h"
#include "cli/commands/predict/predict_moe_command.h"
#include "cli/commands/predict/predict_times_command.h"
#include "cli/commands/unpack_command.h"
#include "cli/commands/values.h"
#include "cli/compute/weight_words.h"
#include "cli/compute/words.h"
#include "warpwright/atom/values.h"
#include "warpwright/layout/expression.h"
#include "warpwright/plan/families/kernel_list.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/weights/pack.h"
#include "warpwright/weights/source.h"

namespace warpwright::cli {
namespace {

constexpr const char* kAbout =
    "Warpwright multiplies matrices on NVIDIA tensor cores, or, without a GPU, on a model of the "
    "machine that runs the very same kernel and checks its synchronisation.";

constexpr const char* kExamples =
    "Examples:\n"
    "  warpwright gemm --random 512 512 512 --check\n"
    "  warpwright gemm --a x.safetensors:x --b w.safetensors:w --out y.npy --check\n"
    "  warpwright grouped --groups 4 --tokens 16,0,3,40 --n 256 --k 128 --check\n"
    "  warpwright moe --tokens 9 --experts 8 --top-k 2 --hidden 512 --inner 256 --check\n"
    "  warpwright explain gemm --random 4096 4096 4096 --as h200\n"
    "  warpwright layout 'composition((6,2):(8,2), (4,3):(3,1))'\n"
    "  warpwright mask --cluster 4,4 --rank 11\n"
    "  warpwright pack w.safetensors:w packed.safetensors:w --group 128\n"
    "  warpwright mma m8n8k4 --tiled 2x2 --table\n"
    "  warpwright lesson 3 --broken\n"
    "  warpwright draw layout '(4,8):(8,1)' --svg layout.svg\n"
    "  warpwright kernels --dtype fp16 --as h200\n"
    "`warpwright COMMAND --help` tells more. Exit status: 0; 1 when a check failed; 2 for bad "
    "input.\n"
    "A command prints one object with --json; for a refusal it is {\"error\": {\"code\": ...}}.";

constexpr const char* kCheckExamples =
    "Exit status: 0 when nothing was found (with --mutate: when no mutant survived; with\n"
    "--exhaustive: and all schedules ran), else 1.\n\n"
    "Examples:\n"
    "  warpwright check gemm --random 256 256 448 --schedules 100\n"
    "  warpwright check gemm --random 128 128 128 --exhaustive\n"
    "  warpwright check gemm --random 256 256 448 --cluster 2,1 --family\n"
    "  warpwright check kernel hopper_bf16_bf16_128x128_pp\n"
    "  warpwright check gemm --random 256 256 448 --replay 17\n"
    "  warpwright check gemm --random 256 256 448 --cluster 2,1 --tile-n 128 --sms 2 --mutate\n"
    "  warpwright check grouped --groups 4 --tokens 20,0,3,40 --n 256 --k 128 --sms 2";

constexpr const char* kExplainExamples =
    "Examples:\n"
    "  warpwright explain gemm --random 4096 4096 4096 --as h200\n"
    "  warpwright explain gemm --a x.safetensors:x --b w.safetensors:w --d-dtype f32\n"
    "  warpwright explain gemm --m 300 --n 200 --k 256 --cluster 2,2\n"
    "  warpwright explain grouped --groups 8 --tokens 16 --n 4096 --k 4096 --as h200";

constexpr const char* kPackExamples =
    "Layouts: compressed-tensors (pack-quantized), gptq, gptq-v2, awq, w4afp8 (of SGLang), int4 "
    "(two\n"
    "signed codes a byte beside NAME_scale, unasked where they are U8); bf16 stands for floats, "
    "which are quantised,\n"
    "bf16-kn for floats that lie [E,] K x N, as fused experts of some modules do. Groups in\n"
    "act-order (g_idx) are refused. Layouts with scales of blocks: modelopt-nvfp4, "
    "compressed-tensors-nvfp4,\n"
    "compressed-tensors-mxfp4, quark-mxfp4, gpt-oss (and -original), deepseek-mxfp4, deepseek-fp8 "
    "(and "
    "-ue8m0),\n"
    "whose powers of two for 128 x 128 make it mxf8; for these and with --to codes are written\n"
    "as NAME, scales in tiles as NAME_scale, and nvf4's factors as NAME_alpha.\n\n"
    "Examples:\n"
    "  warpwright pack w.safetensors:w packed.safetensors:w --group 64\n"
    "  warpwright pack model.safetensors:model.layers.0.mlp.down_proj packed.safetensors\n"
    "  warpwright pack 'moe.safetensors:experts.*.down_proj' packed.safetensors:down --from "
    "gptq\n"
    "  warpwright pack w.safetensors:w blocks.safetensors:w --to nvf4\n"
    "  warpwright pack w.safetensors:w mx.safetensors:w --to mxf4 --for e4m3\n"
    "  warpwright pack mx.safetensors:w fp8.safetensors:w --as fp8";

constexpr const char* kUnpackExamples =
    "Weights are written in a layout that `warpwright pack` reads, which gives the same bytes "
    "again:\n"
    "int4 as NAME and NAME_scale, with zero points as compressed-tensors has them, mxf4 as "
    "gpt-oss\n"
    "(NAME_blocks, NAME_scales), nvf4 as ModelOpt (NAME.weight, .weight_scale, "
    ".weight_scale_2).\n\n"
    "Examples:\n"
    "  warpwright unpack packed.safetensors:w plain.safetensors:w";

constexpr const char* kExplainPackedExamples =
    "Examples:\n"
    "  warpwright explain packed packed.safetensors:w --tile 0,1,0\n"
    "  warpwright explain packed packed.safetensors:w --json";

constexpr const char* kPredictExamples =
    "Examples:\n"
    "  warpwright predict gemm 4096 4096 4096 --dtype e4m3\n"
    "  warpwright predict grouped --groups 8 --tokens 64 --n 4096 --k 4096 --as h200 --json\n"
    "  warpwright predict moe --tokens 64 --model qwen3-30b";

constexpr const char* kTraceExamples =
    "Times on the model are nominal cycles: they show what overlaps and who waits for whom. A GPU\n"
    "records real time when it was built with WARPWRIGHT_TRACE.\n\n"
    "Examples:\n"
    "  warpwright trace gemm --random 512 2048 512 --schedule pingpong --out t.pftrace --svg "
    "t.svg\n"
    "  warpwright trace gemm --random 1536 1536 512 --as b200 --scheduler clc --occupy-sm 2 "
    "--grid-svg g.svg\n"
    "  warpwright trace grouped --groups 4 --tokens 20,0,3,40 --n 256 --k 128 --svg t.svg\n"
    "  warpwright trace gemm --random 4096 4096 4096 --device cuda --out t.pftrace";

// The arguments that `check` has beside those of the product.
void add_check_options(CLI::App& app, RunOptions& o, CheckCommandOptions& how) {
  const Values add(app);
  add("--schedules", how.schedules, "N",
      "schedules to try: eager, latest, then random and starving ones (default 64; for each "
      "product of a family 12)",
      whole(1, 1'000'000));
  add("--seed", o.seed, "N", "of the random matrices, and of the first random schedule")
      ->capture_default_str();
  offer(
      add("--mode", o.mode, "MODE", "only schedules of this kind: eager, latest, random or starve"),
      "eager latest random starve");
  app.add_flag("--exhaustive", how.exhaustive,
               "all schedules of a small case: one of each class of orders in which operations "
               "that synchronise can come");
  add("--most", how.most, "N", "with --exhaustive: stop after so many classes (default 100000)",
      whole(1, 100'000'000));
  add("--within", how.within, "S", "with --exhaustive: stop after so many seconds (default 60)",
      whole(1, 1'000'000));
  add("--jobs", how.jobs, "J", "threads that share the work (default: those of the machine)");
  app.add_flag("--strict", how.strict,
               "ask for a proxy fence also between a thread's read and an asynchronous write");
  app.add_flag("--mutate", how.mutate,
               "break every synchronising statement, one at a time, and tell which check speaks");
  app.add_flag("--json", how.json, "for programs");
}

// How a run that is checked is looked at again.
void add_replay_options(CLI::App& app, CheckCommandOptions& how) {
  const Values add(app);
  add("--replay", how.replay, "S",
      "only one schedule: eager, latest, a seed, or starve and a seed; with --exhaustive class and "
      "its number");
  add("--mutant", how.mutant, "N", "run this mutant of --mutate's table");
  app.add_flag("--reduce", how.reduce,
               "with --replay: find the few decisions of the schedule that matter");
}

// Those of one product.
void add_product_check_options(CLI::App& app, GemmOptions& o, CheckCommandOptions& how,
                               bool is_grouped) {
  const Values add(app);
  app.add_flag("--family", how.family,
               "check companions of the product too, small ones by the same kernel, until every "
               "synchronising statement has run");
  add_replay_options(app, how);
  if (is_grouped) {
    add("--behind", how.tokens_behind, "LIST|T|uniform:T|skew:SEED",
        "launch a second random product behind the first in the same workspace, of groups with "
        "these tokens");
  } else {
    app.add_option("--behind", how.behind,
                   "launch a second random product, of these extents, behind the first in the same "
                   "workspace")
        ->option_text("M N K")
        ->expected(3)
        ->check(whole<std::int64_t>(0, max_extent));
  }
  if (is_grouped) {
    app.add_flag("--check-offsets", o.check_offsets,
                 "let the kernel tell whether the offsets are in order and rows by index are "
                 "there, and look at what it says");
    app.add_flag("--zero-rest", o.zero_rest,
                 "rows in no group (--total) become 0, by a launch of their own");
  }
}

// `check moe`.
void add_moe_check(CLI::App& check, MoeOptions& o, CheckCommandOptions& how) {
  CLI::App* moe = check.add_subcommand(
      "moe", "all launches of a layer of experts, each as early as it may start");
  add_moe_options(*moe, o);
  add_check_options(*moe, o, how);
  moe->add_flag(
      "--family", how.family,
      "check companions of the mixture too, small ones, until every launch has run in its ways: "
      "both sorts, gathers, sums, ranks, slots on all sides of every threshold");
  add_replay_options(*moe, how);
  moe->footer(
      "Exit status: 0 when nothing was found (with --mutate: when no mutant survived), else 1.\n\n"
      "Examples:\n"
      "  warpwright check moe --tokens 5 --experts 3 --top-k 2 --hidden 64 --inner 64 --schedules "
      "100\n"
      "  warpwright check moe --tokens 5 --experts 3 --top-k 2 --hidden 64 --inner 64 --mutate "
      "--schedules 4");
}

// `check kernel NAME`.
void add_kernel_check(CLI::App& check, RunOptions& o, CheckCommandOptions& how) {
  CLI::App* kernel = check.add_subcommand(
      "kernel", "a kernel by its name, with products that reach all of its statements");
  std::string names = kernel_words();
  for (const std::string_view each : mixture_kernels()) names += std::string(each) + " ";
  offer(kernel->add_option("NAME", how.kernel, "as `warpwright kernels` prints it")
            ->required()
            ->option_text("NAME"),
        names);
  add_check_options(*kernel, o, how);
  kernel->footer(
      "The products are those of `check --family`: ragged and short extents, C, biases, scales,\n"
      "clusters, shares of a tile, groups. What a kernel does not take is named.\n\n"
      "Examples:\n"
      "  warpwright check kernel hopper_bf16_bf16_128x128_pp\n"
      "  warpwright check kernel hopper_bf16_bf16_128x128_pp --mutate --schedules 4");
}

// `check ptx FILE`.
void add_ptx_check(CLI::App& check, CheckPtxOptions& o) {
  CLI::App* ptx = check.add_subcommand(
      "ptx", "a kernel that nvcc, or another compiler, has made a PTX text of");
  add_ptx_options(*ptx, o);
  add_check_options(*ptx, o.run, o.check);
  add_replay_options(*ptx, o.check);
  ptx->footer(
      "Arguments follow the parameters of the entry. A map's extents stand as a tensor's do, the\n"
      "innermost last.\n\n"
      "Examples:\n"
      "  warpwright check ptx scale.ptx --block 128 --arg x=128:f32,random:1 --arg f32:0.5\n"
      "  warpwright check ptx load.ptx --entry load --block 128 --smem 9216 "
      "--buffer a=64x64:bf16,random:1,in --arg map:a,bf16,64x64,box:64x64,swizzle:128 --arg "
      "d=64x64:bf16");
}

void add_pack_options(CLI::App& app, PackCommandOptions& o) {
  app.add_option("IN", o.in,
                 "weights, of a file or of a checkpoint's files by its index "
                 "(model.safetensors.index.json) or by one of them; * in NAME stands for the "
                 "numbers of experts")
      ->required()
      ->option_text("IN.safetensors[:NAME]");
  app.add_option("OUT", o.out, "where the packed tensor is written, beside what is there")
      ->required()
      ->option_text("OUT.safetensors[:NAME]");
  std::string layouts;
  for (const weights::LayoutNames& names : weights::layouts()) {
    layouts += std::string(names.layout) + " ";
  }
  const Values add(app);
  offer(add("--from", o.from, "LAYOUT", "their layout (default: as their names tell)"),
        layouts + "bf16");
  const std::string formats = of_numbers_words(" ") + format_words(" ", " ");
  offer(add("--to", o.to, "FORMAT", "what floats become: int4 (default), mxf8, mxf4, nvf4, ..."),
        formats);
  offer(add("--recipe", o.recipe, "R",
            "their scales: floor or up (default) of mxf8, mxf6 and mxf4, nested (default) or "
            "4-or-6 of nvf4"),
        "floor up nested 4-or-6");
  offer(add("--as", o.as, "FORM",
            "fp8: writes mxf4 weights of a checkpoint or of a packed tensor as e4m3 with a scale "
            "for each 128 x 128, which rounds none"),
        "fp8");
  offer(add("--for", o.tokens, "TOKENS",
            "packs mxf4 and nvf4 weights for H100 and H200, which convert them in registers: for "
            "tokens of e4m3 (not nvf4), bf16 or fp16"),
        packed::tokens_words(nullptr, " ", " "));
  offer(add("--group", o.group, "G",
            "weights along K that share a scale, for floats: 32, 64 or 128", whole(32, 128)),
        "32 64 128");
  app.add_flag("--zero-points", o.zero_points, "floats get a zero point beside every scale");
  offer(add("--encoding", o.encoding, "E",
            "codes -8..7 (ex) or -7..7 (sm) (default: ex for floats, else sm where no code is -8)"),
        "ex sm");
  offer(add("--scales", o.scales, "T",
            "their type: bf16, fp16 or f32 (default: the weights' own, for floats bf16)"),
        "bf16 fp16 f32");
  add("--jobs", o.jobs, "J", "threads that share the work (default: those of the machine)");
  app.add_flag("--json", o.json, "for programs");
  app.footer(kPackExamples);
}

void add_unpack_options(CLI::App& app, UnpackOptions& o) {
  app.add_option("IN", o.in, "a packed tensor")->required()->option_text("IN.safetensors[:NAME]");
  app.add_option("OUT", o.out, "where its codes and scales are written, beside what is there")
      ->required()
      ->option_text("OUT.safetensors[:NAME]");
  const Values add(app);
  add("--jobs", o.jobs, "J", "threads that share the work (default: those of the machine)");
  app.add_flag("--json", o.json, "for programs");
  app.footer(kUnpackExamples);
}

void add_explain_packed(CLI::App& app, ExplainPackedOptions& o) {
  app.add_option("FILE", o.file, "the packed tensor")
      ->required()
      ->option_text("FILE.safetensors[:NAME]");
  app.add_option("--tile", o.tile, "of expert E the tile R of the rows and T of K")
      ->option_text("E,R,T")
      ->delimiter(',')
      ->expected(3)
      ->check(whole<std::int64_t>(0));
  const Values add(app);
  add("--threads", o.threads, "N", "of the warpgroup whose words are shown, 0 to 128",
      whole(0, 128))
      ->capture_default_str();
  app.add_option("--against", o.against,
                 "the weights in floats that it was made of: tells the error")
      ->option_text("FILE.safetensors[:NAME]");
  app.add_flag("--json", o.json, "for programs: the tile's codes and scales by rows of weights");
  app.footer(kExplainPackedExamples);
}

// The pictures that `trace` draws, and the SM that it leaves out.
void add_trace_options(CLI::App& app, TraceOptions& how) {
  const Values add(app);
  add("--out", how.out, "FILE", "where the trace is written, for ui.perfetto.dev");
  add("--svg", how.svg, "FILE", "where a picture of the first tiles is written");
  add("--grid-svg", how.grid_svg, "FILE", "where a picture of all SMs and their tiles is written");
  add("--occupy-sm", how.occupy_sm, "I",
      "an SM of the model that another grid holds: nothing of this one runs there", whole(0, 255));
}

// From a help's examples those of one command; what stands before them stays.
std::string examples_of(const std::string& help, const std::string& command) {
  std::istringstream lines(help);
  std::string text;
  const std::string start = "  warpwright ";
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(start) || line.starts_with(start + command + " ")) text += line + "\n";
  }
  text.pop_back();
  return text;
}

void add_calibrate_command(CLI::App& app, CalibrateOptions& options) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "measure what a GPU's units take, and write the machine's file");
  const Values add(*command);
  add("--out", options.out, "FILE", "the machine's file, replaced as a whole or not at all");
  add("--learn", options.learn, "FILE",
      "instead: measure products on a Hopper card, and write there how far their times are from "
      "floors, for --correction of other commands");
  add("--seconds", options.seconds, "N", "that --learn measures (default 600)",
      whole<int>(10, 86400));
  add("--from", options.from, "FILE",
      "a machine's file whose other numbers are kept (default: that of --out, or where there is "
      "none the known machine of the GPU's kind)");
  add("--device", options.device, "DEVICE", "cuda, cuda:1, ... (default cuda)");
  add("--rounds", options.rounds, "N", "of every measurement (default 5)", whole<int>(3, 100));
  command->add_flag("--json", options.json, "for programs: the file's content");
  command->footer(
      "--learn draws products of every kind and learns from what each way to run them took, by\n"
      "python3 with LightGBM (`pip install lightgbm`). It needs 2,000 times. They stay beside "
      "FILE\n"
      "(FILE.times.tsv.gz), so that a call more goes on. Where this program lies in its source\n"
      "tree, the times of bench/times.tsv.gz (H200 and H100) are learnt from too, for kinds that\n"
      "nobody measured here.\n\n"
      "Examples:\n"
      "  warpwright calibrate --out h200.json\n"
      "  warpwright calibrate --learn h200.txt; warpwright gemm ... --correction h200.txt");
}

// `gemm` and `grouped`, and the commands that take either. One of all these is called.
void add_product_commands(CLI::App& app, GemmOptions& product, CheckCommandOptions& check_how,
                          TraceOptions& trace_how) {
  CLI::App* gemm = app.add_subcommand(
      "gemm", "multiply matrices: D[M,N] = alpha * A[M,K] * B[N,K]^T + beta * C[M,N]");
  CLI::App* grouped = app.add_subcommand(
      "grouped", "multiply groups of tokens by weights of their own: D[g] = A[g] * B[g]^T");
  const auto add = [&app](const char* name, const char* about, const char* examples) {
    CLI::App* command = app.add_subcommand(name, about)->require_subcommand(1);
    command->footer(examples);
    return command;
  };
  CLI::App* check =
      add("check", "run a kernel on the model under many schedules and tell what is wrong with it",
          kCheckExamples);
  add_kernel_check(*check, product, check_how);
  CLI::App* explain =
      add("explain", "show how a product would be computed, and why", kExplainExamples);
  CLI::App* predict =
      add("predict", "say how long a product will take on a device that need not be here",
          kPredictExamples);
  CLI::App* trace = add("trace", "record what happens when, as a timeline", kTraceExamples);
  for (CLI::App* run : {gemm, grouped}) {
    const bool is_grouped = run == grouped;
    add_gemm_options(*run, product, is_grouped);
    add_run_options(*run, product, is_grouped);
    const auto add_to = [&](CLI::App* command, const std::string& about) {
      CLI::App* one = command->add_subcommand(
          run->get_name(), about + (is_grouped ? " of a product in groups" : " of a product"));
      add_gemm_options(*one, product, is_grouped);
      const std::string path = command->get_name() + " " + run->get_name();
      one->footer(product_help(examples_of(command->get_footer(), path), is_grouped));
      return one;
    };
    CLI::App* checks = add_to(check, "the kernel");
    add_check_options(*checks, product, check_how);
    add_product_check_options(*checks, product, check_how, is_grouped);
    CLI::App* plan =
        add_to(explain, "the plan, tiles, cluster, stages, shared memory, barriers and bound,");
    if (!is_grouped) {
      const Values add_extent(*plan);
      add_extent("--m", product.m, "M", "rows of A and D");
      add_extent("--n", product.n, "N", "rows of B, columns of D");
      add_extent("--k", product.k, "K", "columns of A and B");
    }
    CLI::App* traces = add_to(trace, "the timeline, every role of every CTA, TMA and tensor core,");
    add_trace_options(*traces, trace_how);
    CLI::App* predicted = add_to(predict, "time, what bounds it and its parts,");
    const Values add_predicted(*predicted);
    if (!is_grouped) {
      add_predicted("shape", product.random, "M N K", "M, N and K, as --random has them")
          ->expected(3);
    }
    offer(add_predicted("--configs", product.configs, "N|all",
                        "lists so many ways to run it instead, or all, by kept counts"),
          "all");
    for (CLI::App* printing : {plan, traces, predicted}) {
      printing->add_flag("--json", product.json, "for programs");
    }
  }
}

// The command whose help the arguments are nearest to: "explain gemm" of `explain gemm --foo`.
std::string command_of(const CLI::App& app) {
  std::string name;
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    name += " " + at->get_name();
  }
  return name;
}

// Why the first word behind `app`'s name is none of its commands; empty when it is one, an option
// or missing.
std::string unknown_command(const CLI::App& app, const std::string& prefix,
                            const std::vector<std::string>& words, std::size_t at) {
  if (at >= words.size() || words[at].empty() || words[at].front() == '-') return {};
  std::string known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == words[at]) {
      const bool has_more = command->get_require_subcommand_min() > 0;
      return has_more ? unknown_command(*command, prefix + words[at] + " ", words, at + 1) : "";
    }
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  return "There is no command \"" + prefix + words[at] + "\"; known " +
         (known.find(',') == std::string::npos ? "is " : "are ") + known + ".";
}

// Refuses empty arguments: they are what a script passes whose variable is not set, and mean
// nothing to any option. Empty when there is none.
std::string empty_argument(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string option = arguments[i];
    if (option.starts_with("--") && option.find('=') == option.size() - 1) {
      option.pop_back();  // --out=
    } else if (option.empty()) {
      option = i > 0 ? arguments[i - 1] : "";
    } else {
      continue;
    }
    if (option.starts_with("--")) {
      return option + " is given an empty value: leave it out, or give it one.";
    }
    return "An argument is empty" + (option.empty() ? "" : ", the one behind " + option) +
           ": leave it out, or write what it is to be.";
  }
  return {};
}

// Whether a refusal goes to stdout as an object: for where the arguments could not be read. For
// `bench` and `draw` --json may name a file instead.
bool asks_for_json(const std::vector<std::string>& arguments) {
  const auto at = std::find(arguments.begin(), arguments.end(), "--json");
  if (at == arguments.end()) return false;
  return (arguments.front() != "bench" && arguments.front() != "draw") ||
         at + 1 == arguments.end() || (at + 1)->starts_with("-");
}

// The status of a command whose output went to `out`: whatever it was, output that did not arrive
// is trouble.
int status_of_output(int status, std::ostream& out, std::ostream& err) {
  const bool was_lost = !out;
  out.clear();
  errno = 0;
  out.flush();  // once more after an earlier failure, for its reason
  if (out && !was_lost) return status;
  err << "The output is not complete: stdout did not take all of it"
      << (errno == 0 ? "" : " (" + std::generic_category().message(errno) + ")") << ".\n";
  return 2;
}

// The command line: its commands, what their options say, and what is done then.
class CommandLine {
 public:
  explicit CommandLine(const std::vector<std::string>& arguments) : arguments_(arguments) {
    app_.formatter(std::make_shared<HelpFormatter>());  // before the commands, which take it over
    app_.set_version_flag("--version", std::string("warpwright ") + version());
    app_.require_subcommand(1);
    add_devices();
    add_kernels_command(app_, kernels_options_);
    add_product_commands(app_, product_, check_how_, trace_how_);
    add_moe_commands(app_, moe_);
    add_moe_check(*app_.get_subcommand("check"), moe_, check_how_);
    add_ptx_check(*app_.get_subcommand("check"), check_ptx_);
    add_predict_kernel(*app_.get_subcommand("predict"), predict_kernel_);
    add_predict_times(*app_.get_subcommand("predict"), predict_times_);
    add_measurements();
    add_packing();
    add_layout();
    add_mask_command(app_, mask_options_);
    add_mma_command(app_, mma_options_);
    add_lesson_command(app_, lesson_options_);
    draw_options_.arguments = arguments_;
    add_draw_command(app_, draw_options_);
    add_completion();
    app_.footer(kExamples);  // last: commands take over what is there when they are made
  }

  /// Reads the arguments and does what they say, or refuses them.
  int run(std::ostream& out, std::ostream& err) {
    const bool wants_json = asks_for_json(arguments_);
    const auto refuse = [&](const Sentence& sentence) {
      return exit_status(out, err, wants_json, [&]() -> int { throw InputError(sentence); });
    };
    std::string unusable = empty_argument(arguments_);
    if (unusable.empty() && arguments_.size() > 1 && arguments_.front() == "--version") {
      unusable = "The argument \"" + arguments_[1] + "\" is one too many.";
    }
    if (unusable.empty()) unusable = unknown_command(app_, "", arguments_, 0);
    if (!unusable.empty()) return refuse(unusable);
    // CLI11 takes the arguments from the back.
    std::vector<std::string> reversed(arguments_.rbegin(), arguments_.rend());
    try {
      app_.parse(std::move(reversed));
    } catch (const CLI::ParseError& stop) {
      if (stop.get_exit_code() == 0) return app_.exit(stop, out, err);
      const std::string extra = unknown_argument(app_, arguments_);
      const std::string said = extra.empty() ? sentence_of(stop, app_, arguments_) : extra;
      return refuse(unmarked(said) + "; see warpwright" + command_of(app_) + " --help.");
    }
    return call(out, err);
  }

 private:
  void add_devices() {
    CLI::App* devices = app_.add_subcommand("devices", "list the model and every CUDA device");
    devices->add_flag("--json", json_, "for programs");
    devices->footer("Examples:\n  warpwright devices");
  }

  void add_measurements() {
    bench_options_.arguments = arguments_;
    bench_options_.command = "warpwright";
    for (const std::string& argument : arguments_) {
      bench_options_.command += " " + printable(argument);
    }
    bench_grouped_options_ = bench_w4a8_options_ = bench_options_;
    bench_moe_options_.command = bench_options_.command;
    add_bench_command(app_, bench_options_, bench_grouped_options_, bench_w4a8_options_,
                      bench_moe_options_);
    add_tune_command(app_, tune_options_);
    add_calibrate_command(app_, calibrate_options_);
    add_selftest_command(app_, selftest_options_);
  }

  void add_packing() {
    CLI::App* pack = app_.add_subcommand(
        "pack", "pack weights of 4 bits for products with tokens of 8 or 16 bits");
    add_pack_options(*pack, pack_options_);
    CLI::App* unpack =
        app_.add_subcommand("unpack", "write the codes and scales of a packed tensor");
    add_unpack_options(*unpack, unpack_options_);
    CLI::App* packed_form = app_.get_subcommand("explain")->add_subcommand(
        "packed", "what a packed tensor holds, and a tile of it byte by byte");
    add_explain_packed(*packed_form, packed_options_);
  }

  void add_layout() {
    CLI::App* layout =
        app_.add_subcommand("layout", "evaluate a layout expression in CuTe's notation");
    const Values add(*layout);
    add("EXPR", expression_, "", "for example '(8,16):(16,1)' or 'coalesce((2,4):(1,2))'")
        ->required();
    layout->add_flag("--table", table_, "print the table of indices too");
    layout->add_flag("--json", json_, "for programs");
    layout->footer(
        "A layout is SHAPE:STRIDE, or only SHAPE for a compact one; NAME = EXPR; may stand before "
        "EXPR. Functions, which nest:\n" +
        warpwright::layout::expression_help(atom::copy_functions()) +
        "\nExamples:\n"
        "  warpwright layout 'composition((6,2):(8,2), (4,3):(3,1))'\n"
        "  warpwright layout '(8,16):(16,1)' --table\n"
        "  warpwright layout 'get_flat_coord((1,4,4,1), 11)'\n"
        "  warpwright layout 'mA = (512,256):(256,1); local_tile(mA, (128,256,64), (1,0,_), "
        "(1,X,1))'");
  }

  void add_completion() {
    CLI::App* completion = app_.add_subcommand(
        "completion", "print the script by which a shell completes this command line");
    offer(Values(*completion)("SHELL", shell_, "", "bash, zsh or fish")->required(),
          "bash zsh fish");
    completion->footer(
        "An installed warpwright is completed without this.\n\n"
        "Examples:\n"
        "  source <(warpwright completion bash)\n"
        "  warpwright completion fish > ~/.config/fish/completions/warpwright.fish");
  }

  int call(std::ostream& out, std::ostream& err) {
    const std::string command = command_of(app_);
    if (command == " devices") return devices_command(json_, out, err);
    if (command == " kernels") return kernels_command(kernels_options_, out, err);
    if (command == " completion") {
      return exit_status(out, err, false, [&] {
        out << completion_script(app_, shell_);
        return 0;
      });
    }
    if (command == " pack") return pack_command(pack_options_, out, err);
    if (command == " unpack") return unpack_command(unpack_options_, out, err);
    if (command == " explain packed") return explain_packed_command(packed_options_, out, err);
    if (command == " calibrate") return calibrate_command(calibrate_options_, out, err);
    if (command == " selftest") return selftest_command(selftest_options_, out, err);
    if (command == " tune") return tune_command(tune_options_, out, err);
    if (command == " layout") return layout_command(expression_, table_, json_, out, err);
    if (command == " lesson") return lesson_command(lesson_options_, out, err);
    if (command.starts_with(" draw ")) return draw_command(draw_options_, out, err);
    if (command == " mask") return mask_command(mask_options_, out, err);
    if (command == " mma") return mma_command(mma_options_, out, err);
    if (command == " check ptx") return check_ptx_command(check_ptx_, out, err);
    if (command == " predict kernel") return predict_kernel_command(predict_kernel_, out, err);
    if (command == " predict times") return predict_times_command(predict_times_, out, err);
    if (command.ends_with(" moe")) return call_mixture(command, out, err);
    if (command == " check kernel" && is_of_mixtures(check_how_.kernel)) {
      MoeOptions mixture = small_mixture();
      static_cast<RunOptions&>(mixture) = product_;
      return check_moe_command(mixture, check_how_, out, err);
    }
    return call_product(command, out, err);
  }

  // A command that takes a mixture.
  int call_mixture(const std::string& command, std::ostream& out, std::ostream& err) {
    if (command.starts_with(" check")) return check_moe_command(moe_, check_how_, out, err);
    if (command.starts_with(" bench")) return bench_moe_command(bench_moe_options_, out, err);
    if (command.starts_with(" predict")) return predict_moe_command(moe_, out, err);
    if (command.starts_with(" explain")) return explain_moe_command(moe_, out, err);
    return moe_command(moe_, out, err);
  }

  // A command that takes a product, or a product in groups.
  int call_product(const std::string& command, std::ostream& out, std::ostream& err) {
    product_.is_grouped = command.ends_with(" grouped");
    if (command.starts_with(" check")) return check_command(product_, check_how_, out, err);
    if (command.starts_with(" explain")) return explain_command(product_, out, err);
    if (command.starts_with(" predict")) return predict_command(product_, out, err);
    if (command.starts_with(" trace")) return trace_command(product_, trace_how_, out, err);
    if (command.starts_with(" bench")) {
      return bench_command(product_.is_grouped          ? bench_grouped_options_
                           : command.ends_with(" w4a8") ? bench_w4a8_options_
                                                        : bench_options_,
                           out, err);
    }
    return gemm_command(product_, out, err);
  }

  const std::vector<std::string>& arguments_;
  CLI::App app_{kAbout, "warpwright"};

  bool json_ = false;  // of the commands that have no options of their own
  KernelsOptions kernels_options_;
  GemmOptions product_;
  CheckCommandOptions check_how_;
  CheckPtxOptions check_ptx_;
  PredictKernelOptions predict_kernel_;
  PredictTimesOptions predict_times_;
  TraceOptions trace_how_;
  MoeOptions moe_;
  BenchOptions bench_options_;
  BenchOptions bench_grouped_options_;
  BenchOptions bench_w4a8_options_;
  BenchMoeOptions bench_moe_options_;
  TuneOptions tune_options_;
  CalibrateOptions calibrate_options_;
  SelftestOptions selftest_options_;
  PackCommandOptions pack_options_;
  UnpackOptions unpack_options_;
  ExplainPackedOptions packed_options_;
  std::string expression_;
  bool table_ = false;
  MaskOptions mask_options_;
  MmaOptions mma_options_;
  LessonOptions lesson_options_;
  DrawOptions draw_options_;
  std::string shell_;
};

}  // namespace

const char* version() {
  return WARPWRIGHT_VERSION;
}

int run_app(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  return status_of_output(CommandLine(arguments).run(out, err), out, err);
}

}  // namespace warpwright::cli
