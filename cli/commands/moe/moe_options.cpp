#include "cli/commands/moe/moe_options.h"

#include <string>

#include "cli/commands/completion.h"
#include "cli/commands/gemm/gemm_options.h"
#include "cli/commands/values.h"
#include "cli/compute/expert_shapes.h"
#include "cli/compute/words.h"
#include "warpwright/facts/weight_forms.h"

namespace warpwright::cli {
namespace {

constexpr const char* kMoeMeaning =
    "d[t] = sum over j of topk_weights[t, j] * down(e, act(gate(e, x[t])) * up(e, x[t])), where\n"
    "e = topk_ids[t, j] - first_expert. A router draws the ids by --seed; tensors are random, and\n"
    "scaled so that sums have a variance of about 1. --check compares every element with float64,\n"
    "within what rounding and quantising on the way explain (docs/moe.md). Messages go to "
    "stderr.\n\n";

constexpr const char* kMoeExamples =
    "Examples:\n"
    "  warpwright moe --tokens 9 --experts 8 --top-k 2 --hidden 512 --inner 256 --check\n"
    "  warpwright moe --tokens 9 --experts 8 --top-k 2 --hidden 512 --inner 256 --dtype e4m3 "
    "--check\n"
    "  warpwright moe --tokens 9 --experts 8 --top-k 2 --hidden 512 --inner 256 --weights mxf4 "
    "--check\n"
    "  warpwright moe --tokens 9 --experts 8 --top-k 2 --hidden 512 --inner 256 --dtype nvf4 "
    "--as b200 --check\n"
    "  warpwright moe --tokens 9 --experts 1 --hidden 512 --inner 256 --check\n"
    "  warpwright moe --tokens 64 --model qwen3-30b --dtype e4m3 --plan --as h200\n"
    "  warpwright moe --tokens 512 --model qwen3-30b --dtype e4m3 --device cuda --check";

const char* const kScalingWords = "none|row-column|blockwise";

}  // namespace

// What engines ask of a layer.
static void add_engine_options(CLI::App& app, MoeOptions& o) {
  const Values add(app);
  add("--x-dtype", o.x_dtype, "TYPE",
      "of x: e4m3, with its scales, as engines send tokens (default: what --dtype says)");
  add("--combine", o.combine, listed(all_combines, any<Combine>, "|", "|").c_str(),
      "d is the sum over a token's experts, or each slot's row by itself, times its router weight "
      "or as it is (default sum)");
  app.add_flag("--router-weights-on-input", o.weights_on_input,
               "a token is multiplied by its router weight before the experts, with --top-k 1");
  add("--routed-scaling-factor", o.routed_scaling_factor, "X",
      "multiplied to the router weights (default 1)");
  add("--shared-output", o.shared_output, "bf16|fp16|f32",
      "what a shared expert made of the tokens, added to the sum (default none)");
}

void add_moe_options(CLI::App& app, MoeOptions& o) {
  const Values add(app);
  add("--tokens", o.tokens, "T", "rows of x and d");
  offer(add("--model", o.model, "NAME",
            "the layer of qwen3-30b, mixtral, qwen3-235b, deepseek-v3, gpt-oss-120b, or llama3-8b, "
            "which is dense: experts, top-k, extents and routing where they are not given"),
        model_words());
  add("--experts", o.experts, "E", "experts that are here");
  add("--top-k", o.top_k, "K",
      "experts of a token; with one expert it may be left out: the MLP of a dense model, without "
      "a router");
  add("--hidden", o.hidden, "H", "elements of a token");
  add("--inner", o.inner, "I", "columns between the products: w13 has 2I rows, w2 I columns");
  add("--first-expert", o.first_expert, "E", "the first expert that is here (default 0)");
  add("--experts-total", o.experts_total, "E",
      "experts of all ranks: slots of others are left out (default: those that are here)");
  offer(add("--routing", o.routing, "uniform|zipf:S",
            "how the router likes experts: all alike, or the one of rank r as r^-S (default "
            "uniform, or the model's)"),
        "uniform zipf:1");
  offer(add("--dtype", o.dtype, "TYPE",
            "of the weights: bf16; or e4m3, int4, mxf8, mxf6, mxf4 or nvf4, for which tokens are "
            "bf16 and are quantised (default bf16); or what tokens become and weights are, "
            "mxf8,mxf4; or what --weights are multiplied by: e4m3, bf16 or fp16"),
        "bf16 fp16 e4m3 int4 mxf8 mxf6 mxf4 nvf4 mxf8,mxf4");
  offer(add("--weights", o.weights, packed::format_words("|", "|").c_str(),
            "weights of 4 bits in their packed form (docs/weights.md): int4 and mxf4 for tokens "
            "that are quantised to e4m3, or with --dtype bf16 or fp16 for those as they are; nvf4 "
            "for these"),
        packed::format_words(" ", " "));
  app.add_flag("--or-fp8", o.or_fp8,
               "mxf4 weights with --scaling blockwise, or fp8 of the same values, which takes "
               "twice the memory: whichever is predicted to be faster");
  add("--scaling", o.scaling, kScalingWords,
      "scales of e4m3: one for each row of weights and each token, or 128 x 128 of weights and 1 x "
      "128 of tokens (default blockwise); for packed weights those of e4m3 tokens (default "
      "row-column)");
  add("--block", o.block, "128|64|32",
      "of blockwise scales: one serves so many rows of weights and so many elements (default 128)");
  offer(add("--d-dtype", o.d_dtype, "TYPE", "of the result: that of x, or f32"), "bf16 fp16 f32");
  const auto some = [](Activation each) { return each != Activation::none; };
  add("--activation", o.activation, listed(all_activations, some, "|", "|").c_str(),
      "for the gate " + listed(all_activations, gates) +
          "; without a gate all but the last two (default silu)");
  add("--gated", o.gated, "yes|no",
      "no: experts without a gate, w13 is I x H and its activation goes to w2 (default yes)");
  add("--gate-up", o.gate_up, "halves|interleaved",
      "the first rows of w13 are the gates, or its even ones (default halves)");
  add_gate_numbers(app, o.gate);
  app.add_flag("--bias", o.bias, "biases of both products, f32");
  add_engine_options(app, o);
  offer(add("--left-out", o.left_out, "N", "each N-th id is -1: the slot is left out"), "3");
  add("--ids", o.ids, "int32|int64", "integers of topk_ids (default int32)");
  add_place(app, o, "a plan:");
  add_moe_choices(app, o.choices);
}

void add_moe_choices(CLI::App& app, MoeChoiceOptions& o) {
  const Values add(app);
  add("--by-index", o.by_index, "yes|no",
      "the first product reads tokens by number, or they are put into the order of experts before "
      "it (default: the plan's choice)");
  add("--quantise-in-epilogue", o.quantise_in_epilogue, "yes|no",
      "for block scales, mxf8 and nvf4: the first product quantises its rows itself (default: the "
      "plan's choice)");
  add("--gate-in-epilogue", o.gate_in_epilogue, "yes|no",
      "the first product gates its rows itself, or a launch behind it does (default: the plan's "
      "choice)");
  add("--early-weights", o.early_weights, "yes|no",
      "products ask for the weights of their first tiles before the launch before has ended, where "
      "they may (default: yes)");
  add("--sort-with-gather", o.sort_with_gather, "auto|yes|no",
      "one launch sorts up to 4096 slots and puts their tokens into the order of experts, or two "
      "do (default: auto, which is one up to 256 slots, and 1024 of packed weights)");
  add("--one-launch", o.one_launch, "auto|yes|no",
      "one launch does the whole layer, of up to 256 slots of bf16 by bf16 or packed weights, or "
      "16 by e4m3 in blocks, or a launch for each step (default: auto, the plan's choice)");
  add("--sort-parts", o.sort_parts, "N",
      "three launches sort, in N parts of small pieces, as more than half a million slots are "
      "(default: none of fewer)");
  const std::string kernels = kernel_words(true);
  offer(add("--first-kernel", o.first_kernel, "NAME", "of the product with w13, by its name"),
        kernels);
  offer(add("--second-kernel", o.second_kernel, "NAME", "of that with w2"), kernels);
  app.add_flag("--batch-invariant", o.batch_invariant,
               "a token's bits do not depend on the number of tokens or on others");
  offer(add("--expected-lengths", o.expected_lengths, "equal|routed|zipf:S",
            "a hint for the plan: how experts' tokens are spread (default routed)"),
        "equal routed zipf:1");
}

std::string arguments_text(const MoeOptions& options) {
  MoeOptions o = options;
  CLI::App app;
  add_moe_options(app, o);
  std::string all = given_text(app);
  for (const auto& [flag, is_set] : {std::pair{"--or-fp8", o.or_fp8},
                                     {"--bias", o.bias},
                                     {"--router-weights-on-input", o.weights_on_input},
                                     {"--batch-invariant", o.choices.batch_invariant}}) {
    if (is_set) all += std::string(" ") + flag;
  }
  if (o.seed != 1) all += " --seed " + std::to_string(o.seed);
  return all.empty() ? all : all.substr(1);
}

void add_moe_commands(CLI::App& app, MoeOptions& o) {
  CLI::App* moe = app.add_subcommand(
      "moe", "a layer of experts: route, gate and project tokens, and add up what comes of them");
  add_moe_options(*moe, o);
  const Values add(*moe);
  moe->add_flag("--check", o.check, "compare every element of d with float64");
  moe->add_flag("--plan", o.plan, "print the plan, a table of kernels with their floors, and stop");
  add("--schedules", o.schedules, "N",
      "run it under so many schedules of the model and check all of them, as `warpwright "
      "check moe` does",
      whole(1, 1'000'000));
  add("--seed", o.seed, "N", "of ids, tensors and the model's schedule")->capture_default_str();
  add_mode(*moe, o);
  moe->add_flag("--json", o.json, "for programs");
  moe->footer(std::string(kMoeMeaning) + kMoeExamples);
  CLI::App* plan = app.get_subcommand("explain")->add_subcommand(
      "moe", "a layer of experts as a table of kernels, with what each moves and its floor");
  add_moe_options(*plan, o);
  plan->add_flag("--json", o.json, "for programs");
  plan->footer(
      "Examples:\n"
      "  warpwright explain moe --tokens 64 --model qwen3-30b --dtype e4m3 --as h200");
  CLI::App* predicted = app.get_subcommand("predict")->add_subcommand(
      "moe", "time of a layer of experts, and of each of its steps");
  add_moe_options(*predicted, o);
  Values of_predicted(*predicted);
  of_predicted("--seed", o.seed, "N", "of ids")->capture_default_str();
  predicted->add_flag("--json", o.json, "for programs");
  predicted->footer(
      "Examples:\n"
      "  warpwright predict moe --tokens 64 --model qwen3-30b --dtype e4m3");
}

}  // namespace warpwright::cli
