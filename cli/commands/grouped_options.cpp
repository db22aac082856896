#include "cli/commands/grouped_options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

#include "cli/commands/measure_options.h"

namespace warpwright::cli {
namespace {

constexpr const char* kGroupedHelp =
    "Y[offsets[g] .. offsets[g + 1]) = alpha * scaled(X[those rows] * W[g]^T) for every group g.\n"
    "The kernel alone reads the offsets. Messages go to stderr.\n\n"
    "X (TOTAL x K), W (G x N x K) and the scales come from files or are random; rows of a random "
    "X\n"
    "in no group are NaN. FILE is PATH.npy (f32, f16) or PATH.safetensors:TENSOR (f32, f16, bf16,\n"
    "e4m3, e5m2). Values are rounded to --dtype. Lengths and offsets are int32 or int64 in "
    "either.\n"
    "Rows of Y in no group are written as zeros; bf16 and 8-bit types go into a .npy file as "
    "f32.\n\n"
    "--tokens skew:SEED draws the lengths: one group in eight is empty (at least one of four or\n"
    "more), the others have shares of --total (256 tokens a group where it is not given) that are\n"
    "log-normal with sigma 1.\n\n"
    "Scales are f32: one (tensor); one for each group, G x 1 (group); one for each token and each\n"
    "row of W, TOTAL x 1 and G x N x 1 (row-column); one for 1 x 128 of X and 128 x 128 of W,\n"
    "TOTAL x K/128 and G x N/128 x K/128, rounded up (block).\n\n"
    "Examples:\n"
    "  warpwright grouped --groups 4 --tokens 16,0,3,40 --n 256 --k 128 --check\n"
    "  warpwright grouped --x x.safetensors:x --w w.safetensors:w --tokens 16,0,3,40 --out "
    "y.safetensors:y\n"
    "  warpwright grouped --x x.safetensors:x --w w.safetensors:w --offsets m.safetensors:offsets "
    "--out y.npy\n"
    "  warpwright grouped --groups 8 --tokens skew:1 --total 300 --n 256 --k 256 --dtype e4m3 "
    "--scaling block --check\n"
    "  warpwright grouped --groups 3 --tokens 9 --n 64 --k 64 --bad-offsets beyond "
    "--check-offsets\n"
    "  warpwright grouped --groups 8 --tokens 128 --n 4096 --k 4096 --dtype e4m3 --device cuda "
    "--check --repeat 100\n"
    "  warpwright explain grouped --groups 32 --tokens skew:7 --total 8192 --n 4096 --k 7168 --as "
    "h200";

// What there is to multiply.
void add_shape(CLI::App& app, GroupedOptions& o) {
  const auto file = [&app](const char* name, std::string& value, const char* help) {
    app.add_option(name, value, help)->type_name("FILE");
  };
  file("--x", o.x, "the tokens X[TOTAL,K], groups one after the other");
  file("--w", o.w, "the weights W[G,N,K]");
  file("--scale-x", o.scale_x, "the scales of X");
  file("--scale-w", o.scale_w, "the scales of W");
  const auto extent = [&app](const char* name, std::optional<std::int64_t>& value, const char* type,
                             const char* help) {
    app.add_option(name, value, help)->type_name(type);
  };
  extent("--groups", o.groups, "G", "random X and W of so many groups instead of files");
  extent("--n", o.n, "N", "rows of each random W[g], columns of Y");
  extent("--k", o.k, "K", "columns of random X and W");
  extent("--total", o.total, "TOTAL",
         "rows of random X and of Y; those behind the groups' are in none (default: the tokens)");
  app.add_option("--tokens", o.tokens,
                 "rows of X in each group: G numbers, one for all, drawn (see below), or a file of "
                 "G integers")
      ->type_name("LIST|T|uniform:T|skew:SEED|FILE");
}

}  // namespace

void add_grouped_options(CLI::App& app, GroupedOptions& o) {
  add_shape(app, o);
  const auto text = [&app](const char* name, std::string& value, const char* type,
                           const std::string& help) {
    return app.add_option(name, value, help)->type_name(type);
  };
  text("--device", o.device, "DEVICE",
       "model, cuda, cuda:1, ..., or auto: a GPU where there is one")
      ->capture_default_str();
  text("--as", o.as, "NAME",
       known_names(true) +
           ": run that device's kernels on the model (explain: plan for that device)");
  add_sms_option(app, o);
  text("--dtype", o.dtype, "TYPE",
       "bf16, fp16, e4m3, e5m2 or e4m3,e5m2: what X and W are multiplied as (default: the type of "
       "both files, else bf16)");
  text("--d-dtype", o.y_dtype, "TYPE",
       "the type of Y (default: that of X, bf16 where this has 8 bits)");
  text("--alpha", o.alpha, "X", "factor of the product (default 1)");
  text("--scaling", o.scaling, "none|tensor|group|row-column|block",
       "scales of 8-bit X and W, random ones for random X and W (default none)");
  text("--accumulation", o.accumulation, "fast|promoted",
       "8-bit products: add in the tensor core alone, or to float32 every 128 of K (default fast; "
       "block scales imply promoted)");
  text("--offsets", o.offsets, "int32|int64|FILE",
       "integers of the offsets (default int32), or a file of G + 1 of them instead of --tokens");
  text("--bad-offsets", o.bad_offsets, "decreasing|beyond",
       "end the last group before it begins, or behind X: nothing else may come of it");
  app.add_option("--expected-tokens", o.expected_tokens,
                 "a hint for the choice of the kernel: tokens of a group that has any (default: "
                 "TOTAL / G)")
      ->type_name("T");
  text("--cluster", o.cluster, "M,N",
       "CTAs that share loads: 1,1 2,1 1,2 2,2 4,4 (default: the plan's choice)");
  app.add_option("--tile-tokens", o.tile_tokens, "tokens of a tile (default: the plan's choice)")
      ->type_name("T");
  text("--swapped", o.swapped, "yes|no", "weights on the MMA's M (default: the plan's choice)");
  text("--search", o.search, "horizontal|vertical|ballot",
       "how CTAs find their tiles (default: the plan's choice)");
  text("--kernel", o.kernel, "NAME", "this kernel, by the name that explain prints");
}

CLI::App* add_grouped_command(CLI::App& app, GroupedOptions& o) {
  CLI::App* grouped = app.add_subcommand(
      "grouped", "multiply groups of tokens by weights of their own: Y[g] = X[g] * W[g]^T");
  add_grouped_options(*grouped, o);
  grouped
      ->add_option("--out", o.out,
                   "where Y[TOTAL,N] is written, once it is complete (and right, with --check)")
      ->type_name("FILE");
  grouped->add_flag("--check", o.check,
                    "compare every element of Y with float64, and rows in no group with what they "
                    "were");
  grouped->add_flag("--check-offsets", o.check_offsets,
                    "let the kernel tell whether the offsets are in order");
  grouped->add_option("--seed", o.seed, "of the random tensors, and of the model's schedule")
      ->type_name("N")
      ->check(refuse_seed)
      ->capture_default_str();
  grouped
      ->add_option("--mode", o.mode,
                   "when asynchronous operations complete on the model: eager, latest or random "
                   "(default latest)")
      ->type_name("MODE");
  grouped
      ->add_option("--repeat", o.repeat,
                   "on a GPU: time R launches and tell their share of the roof")
      ->type_name("R");
  grouped->add_flag("--json", o.json, "for programs");
  grouped->footer(kGroupedHelp);
  return grouped;
}

}  // namespace warpwright::cli
