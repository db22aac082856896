#include "cli/app.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/commands/check_command.h"
#include "cli/commands/devices_command.h"
#include "cli/commands/explain_command.h"
#include "cli/commands/gemm_command.h"
#include "cli/commands/gemm_product.h"
#include "cli/commands/grouped_command.h"
#include "cli/commands/grouped_options.h"
#include "cli/commands/help.h"
#include "cli/commands/layout_command.h"
#include "cli/commands/mask_command.h"
#include "cli/commands/measure_options.h"
#include "cli/commands/trace_command.h"
#include "warpwright/layout/expression.h"

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
    "  warpwright explain gemm --random 4096 4096 4096 --as h200\n"
    "  warpwright layout 'composition((6,2):(8,2), (4,3):(3,1))'\n"
    "  warpwright mask --cluster 4,4 --rank 11\n"
    "`warpwright COMMAND --help` tells more. Exit status: 0; 1 when a check failed; 2 for bad "
    "input.";

constexpr const char* kGemmExamples =
    "D = activation(alpha * scaled(A * B^T) + beta * C + bias) * scale_d. FILE is PATH.npy (f32,\n"
    "f16) or PATH.safetensors:TENSOR (f32, f16, bf16, e4m3, e5m2). Values are rounded to --dtype, "
    "to\nnearest even. Messages go to stderr.\n\n"
    "--layout says how A and B are stored, in BLAS's letters for row-major matrices, D = op(A) *\n"
    "op(B): A is M x K for N and K x M for T; B is K x N for N and N x K for T. NT, the default, "
    "has\nK contiguous in both, as 8-bit operands must. Contiguous lines are a multiple of 16 "
    "bytes long.\n\n"
    "Scales are f32: one (tensor); M x 1 and N x 1 (row-column); M x K/128 and N/128 x K/128, "
    "rounded\nup (block). --gated takes B's two halves of N/2 rows: D[m, j] = silu(P[m, j]) * P[m, "
    "j "
    "+ N/2].\n"
    "With --batch L files hold L x rows x columns, or one matrix for all of the batch.\n\n"
    "Examples:\n"
    "  warpwright gemm --random 512 512 512 --check\n"
    "  warpwright gemm --a a.npy --b b.npy --out d.npy --check\n"
    "  warpwright gemm --a x.safetensors:x --b w.safetensors:w --out y.safetensors:y --device "
    "cuda\n"
    "  warpwright gemm --a a.npy --b b.npy --c c.npy --alpha 0.5 --beta 2 --out d.npy\n"
    "  warpwright gemm --random 512 512 512 --as b200 --dtype e4m3 --pair --check\n"
    "  warpwright gemm --random 512 512 512 --dtype e4m3 --scaling block --check\n"
    "  warpwright gemm --random 512 1024 256 --gated --check\n"
    "  warpwright gemm --random 256 256 256 --batch 4 --layout NN --bias columns --check\n"
    "  warpwright gemm --random 8192 8192 8192 --device cuda --bench";

constexpr const char* kCheckExamples =
    "Exit status: 0 when nothing was found (with --mutate: when no mutant survived), else 1.\n\n"
    "Examples:\n"
    "  warpwright check gemm --random 256 256 448 --schedules 100\n"
    "  warpwright check gemm --random 256 256 448 --replay 17\n"
    "  warpwright check gemm --random 256 256 448 --cluster 2,1 --tile-n 128 --sms 2 --mutate\n"
    "  warpwright check grouped --groups 4 --tokens 20,0,3,40 --n 256 --k 128 --sms 2";

constexpr const char* kExplainExamples =
    "Examples:\n"
    "  warpwright explain gemm --random 4096 4096 4096 --as h200\n"
    "  warpwright explain gemm --a x.safetensors:x --b w.safetensors:w --d-dtype f32\n"
    "  warpwright explain gemm --m 300 --n 200 --k 256 --cluster 2,2\n"
    "  warpwright explain grouped --groups 8 --tokens 16 --n 4096 --k 4096 --as h200";

constexpr const char* kTraceExamples =
    "On the model times are nominal cycles: they show what overlaps and who waits for whom. A GPU\n"
    "records real time when it was built with WARPWRIGHT_TRACE.\n\n"
    "Examples:\n"
    "  warpwright trace gemm --random 512 2048 512 --schedule pingpong --out t.pftrace --svg "
    "t.svg\n"
    "  warpwright trace gemm --random 1536 1536 512 --as b200 --scheduler clc --occupy-sm 2 "
    "--grid-svg g.svg\n"
    "  warpwright trace grouped --groups 4 --tokens 20,0,3,40 --n 256 --k 128 --svg t.svg\n"
    "  warpwright trace gemm --random 4096 4096 4096 --device cuda --out t.pftrace";

// Adds an option with a text; one of these for each command.
class Texts {
 public:
  explicit Texts(CLI::App& app) : app_(app) {}
  CLI::Option* operator()(const char* name, std::string& value, const char* type,
                          const std::string& help) const {
    return app_.add_option(name, value, help)->type_name(type);
  }

 private:
  CLI::App& app_;
};

// Where the matrices come from, and how they lie.
void add_matrix_options(CLI::App& app, GemmOptions& o) {
  const Texts text(app);
  text("--a", o.a, "FILE", "the matrix A[M,K]");
  text("--b", o.b, "FILE", "the matrix B[N,K]");
  text("--c", o.c, "FILE", "the matrix C[M,N], read when beta is not 0");
  text("--out", o.out, "FILE", "where D[M,N] is written, once it is complete");
  app.add_option("--random", o.random, "random normal matrices of these extents instead of files")
      ->option_text("M N K")
      ->expected(3);
  app.add_option("--batch", o.batch, "products in one launch: every matrix is a batch of them")
      ->type_name("L");
  text("--layout", o.layout, "NT|NN|TN|TT", "how A and B are stored (default NT; see below)");
  text("--device", o.device, "DEVICE",
       "model, cuda, cuda:1, ..., or auto: a GPU where there is one")
      ->capture_default_str();
  text("--as", o.as, "NAME",
       known_names() + ": run that device's kernels on the model (explain: plan for that device)");
  add_sms_option(app, o);
  text("--dtype", o.dtype, "TYPE",
       "bf16, fp16, e4m3, e5m2 or e4m3,e5m2: what A and B are multiplied as (default: the type of "
       "both files, else bf16)");
  text("--d-dtype", o.d_dtype, "TYPE",
       "f32, bf16, fp16, e4m3 or e5m2: the type of D (default: that of A and B, bf16 where these "
       "have 8 bits; f32 into a .npy file)");
}

// What is computed of them.
void add_meaning_options(CLI::App& app, GemmOptions& o) {
  const Texts text(app);
  text("--alpha", o.alpha, "X", "factor of the product (default 1)");
  text("--beta", o.beta, "X", "factor of C (default 0)");
  text("--scaling", o.scaling, "none|tensor|row-column|block",
       "scales of 8-bit A and B, random ones for random matrices (default none)");
  text("--scale-a", o.scale_a, "FILE", "the scales of A");
  text("--scale-b", o.scale_b, "FILE", "the scales of B");
  text("--scale-d", o.scale_d, "X|FILE", "factor of an 8-bit D (default 1)");
  text("--accumulation", o.accumulation, "fast|promoted",
       "8-bit products: add in the tensor core alone, or to float32 every 128 of K (default fast; "
       "block scales imply promoted)");
  text("--bias", o.bias, "rows|columns[=FILE]",
       "a value added to each row (M) or column (N) of the product, random without a file");
  text("--activation", o.activation, "none|relu|gelu|silu", "applied last (default none)");
  app.add_flag("--gated", o.gated, "silu of one half of the columns times the other");
}

// What is fixed of the plan; all default to the plan's choice.
void add_plan_options(CLI::App& app, GemmOptions& o) {
  const Texts text(app);
  text("--cluster", o.cluster, "M,N",
       "CTAs that share loads: 1,1 2,1 1,2 2,2 4,4, on sm_100 also 4,2 (default: the plan's "
       "choice)");
  const auto number = [&app](const char* name, std::optional<int>& value, const char* help) {
    app.add_option(name, value, help)->type_name("N");
  };
  number("--tile-m", o.tile_m, "rows of a tile (default: the plan's choice)");
  number("--tile-n", o.tile_n, "columns of a tile (default: the plan's choice)");
  text("--schedule", o.schedule, "NAME",
       "cooperative, pingpong or multistage (default: the plan's choice)");
  text("--swapped", o.swapped, "yes|no", "B's rows on the MMA's M (default: the plan's choice)");
  text("--kernel", o.kernel, "NAME", "this kernel, by the name that explain prints");
  number("--cluster-k", o.cluster_k,
         "CTAs of a cluster that share a tile along K: 1 2 3 4 5 6 8 12 16 (default: the plan's "
         "choice)");
  number("--ctas", o.ctas, "CTAs of the grid; of a kernel that splits K, into how many parts");
  app.add_flag("--no-tuning", o.no_tuning, "leave out what `warpwright tune` measured");
  app.add_flag("--pair,!--one-sm", o.pair,
               "on sm_100: MMAs of a pair of SMs, or of one (default: the plan's choice)");
  text("--scheduler", o.scheduler, "S",
       "on sm_100: one (a tile a cluster), static or clc, launch control (default clc)");
  number("--accumulators", o.accumulators,
         "on sm_100: accumulators in tensor memory (default: the kernel's)");
}

// The arguments that all commands on a product have in common.
void add_gemm_options(CLI::App& app, GemmOptions& o) {
  add_matrix_options(app, o);
  add_meaning_options(app, o);
  add_plan_options(app, o);
}

// The arguments that `check` has beside those of the product.
void add_check_options(CLI::App& app, RunOptions& o, CheckCommandOptions& how) {
  app.add_option("--schedules", how.schedules, "schedules to try: eager, latest, then random ones")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of the random matrices, and of the first random schedule")
      ->type_name("N")
      ->check(refuse_seed)
      ->capture_default_str();
  app.add_option("--mode", o.mode, "schedules of this kind alone: eager, latest or random")
      ->type_name("MODE");
  app.add_option("--replay", how.replay, "one schedule alone: eager, latest or a seed")
      ->type_name("S");
  app.add_option("--jobs", how.jobs, "threads that share the work (default: those of the machine)")
      ->type_name("J");
  app.add_flag("--strict", how.strict,
               "ask for a proxy fence also between a thread's read and an asynchronous write");
  app.add_flag("--mutate", how.mutate,
               "break every synchronising statement, one at a time, and tell which check speaks");
  app.add_option("--mutant", how.mutant, "run this mutant of --mutate's table")->type_name("N");
  app.add_flag("--reduce", how.reduce,
               "with --replay: find the few decisions of the schedule that matter");
  app.add_flag("--json", how.json, "for programs");
}

// The pictures that `trace` draws, and the SM that it leaves out.
void add_trace_options(CLI::App& app, TraceOptions& how) {
  app.add_option("--svg", how.svg, "where a picture of the first tiles is written")
      ->type_name("FILE");
  app.add_option("--grid-svg", how.grid_svg,
                 "where a picture of all SMs and their tiles is written")
      ->type_name("FILE");
  app.add_option("--occupy-sm", how.occupy_sm,
                 "an SM of the model that another grid holds: nothing of this one runs there")
      ->type_name("I");
}

// The first line of a message without its full stop.
std::string first_line(std::string text) {
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  return text;
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

int run_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app(kAbout, "warpwright");
  app.footer(kExamples);
  app.formatter(std::make_shared<HelpFormatter>());  // before the commands, which take it over
  app.set_version_flag("--version", std::string("warpwright ") + version());
  app.require_subcommand(1);

  const CLI::App* devices = app.add_subcommand("devices", "list the model and every CUDA device");

  GemmOptions gemm_options;
  CLI::App* gemm = app.add_subcommand(
      "gemm", "multiply matrices: D[M,N] = alpha * A[M,K] * B[N,K]^T + beta * C[M,N]");
  add_gemm_options(*gemm, gemm_options);
  gemm->add_flag("--check", gemm_options.check,
                 "compare every element of D with float64 over the rounded inputs");
  gemm->add_option("--seed", gemm_options.seed,
                   "of the random matrices, and of the model's schedule")
      ->type_name("N")
      ->check(refuse_seed)
      ->capture_default_str();
  gemm->add_option("--mode", gemm_options.mode,
                   "when asynchronous operations complete on the model: eager, latest or random "
                   "(default latest)")
      ->type_name("MODE");
  gemm->add_flag("--bench", gemm_options.bench,
                 "on a GPU: time the product and cuBLASLt's in the same run");
  gemm->add_flag("--json", gemm_options.json, "for programs");
  gemm->footer(kGemmExamples);

  GroupedOptions grouped_options;
  const CLI::App* grouped = add_grouped_command(app, grouped_options);

  GemmOptions check_options;
  CheckCommandOptions how;
  CLI::App* check = app.add_subcommand(
      "check", "run a kernel on the model under many schedules and tell what is wrong with it");
  check->require_subcommand(1);
  CLI::App* check_gemm = check->add_subcommand("gemm", "the kernel of a product");
  GroupedOptions check_grouped_options;
  CLI::App* check_grouped = check->add_subcommand("grouped", "the kernel of a grouped product");
  add_grouped_options(*check_grouped, check_grouped_options);
  add_check_options(*check_grouped, check_grouped_options, how);
  add_gemm_options(*check_gemm, check_options);
  add_check_options(*check_gemm, check_options, how);
  check->footer(kCheckExamples);
  check_gemm->footer(kCheckExamples);
  check_grouped->footer(kCheckExamples);

  GemmOptions explain_options;
  CLI::App* explain =
      app.add_subcommand("explain", "show how a product would be computed, and why");
  explain->require_subcommand(1);
  CLI::App* explain_gemm = explain->add_subcommand(
      "gemm", "the plan of a gemm: tiles, cluster, stages, shared memory, barriers, bound");
  add_gemm_options(*explain_gemm, explain_options);
  explain_gemm->add_option("--m", explain_options.m, "rows of A and D")->type_name("M");
  explain_gemm->add_option("--n", explain_options.n, "rows of B, columns of D")->type_name("N");
  explain_gemm->add_option("--k", explain_options.k, "columns of A and B")->type_name("K");
  GroupedOptions explain_grouped_options;
  CLI::App* explain_grouped = explain->add_subcommand("grouped", "the plan of a grouped product");
  add_grouped_options(*explain_grouped, explain_grouped_options);
  explain->footer(kExplainExamples);
  explain_gemm->footer(kExplainExamples);
  explain_grouped->footer(kExplainExamples);

  GemmOptions trace_options;
  TraceOptions trace_how;
  CLI::App* trace = app.add_subcommand("trace", "record what happens when, as a timeline");
  trace->require_subcommand(1);
  CLI::App* trace_gemm = trace->add_subcommand(
      "gemm", "the timeline of a gemm: every role of every CTA, copy engine and tensor core");
  add_gemm_options(*trace_gemm, trace_options);
  constexpr const char* trace_out = "where the trace is written, for ui.perfetto.dev";
  trace_gemm->get_option("--out")->description(trace_out);
  add_trace_options(*trace_gemm, trace_how);
  GroupedOptions trace_grouped_options;
  CLI::App* trace_grouped =
      trace->add_subcommand("grouped", "the timeline of a grouped product, likewise");
  add_grouped_options(*trace_grouped, trace_grouped_options);
  trace_grouped->add_option("--out", trace_how.out, trace_out)->type_name("FILE");
  add_trace_options(*trace_grouped, trace_how);
  trace->footer(kTraceExamples);
  trace_gemm->footer(kTraceExamples);
  trace_grouped->footer(kTraceExamples);

  BenchOptions bench_options;
  bench_options.command = "warpwright";
  for (const std::string& argument : arguments) bench_options.command += " " + printable(argument);
  BenchOptions bench_grouped_options = bench_options;
  const CLI::App* bench = add_bench_command(app, bench_options, bench_grouped_options);
  TuneOptions tune_options;
  const CLI::App* tune = add_tune_command(app, tune_options);

  std::string expression;
  bool table = false;
  CLI::App* layout =
      app.add_subcommand("layout", "evaluate a layout expression in CuTe's notation");
  layout->add_option("EXPR", expression, "for example '(8,16):(16,1)' or 'coalesce((2,4):(1,2))'")
      ->required()
      ->type_name("");
  layout->add_flag("--table", table, "print the table of indices too");
  layout->footer(
      "A layout is SHAPE:STRIDE, or SHAPE alone for a compact one. Functions, which nest:\n" +
      layout::expression_help());

  std::string cluster;
  bool pair = false;
  std::optional<int> rank;
  CLI::App* mask = app.add_subcommand("mask", "the multicast and commit masks of a cluster");
  mask->add_option("--cluster", cluster, "CTAs along M and along N, at most 16 in all")
      ->required()
      ->type_name("M,N");
  mask->add_flag("--pair", pair, "for MMAs of a pair of SMs");
  mask->add_option("--rank", rank, "the line of this CTA alone")->type_name("R");

  std::string unusable = empty_argument(arguments);
  if (unusable.empty()) unusable = unknown_command(app, "", arguments, 0);
  if (!unusable.empty()) {
    err << printable(unusable) << "\n";
    return 2;
  }
  // CLI11 takes the arguments from the back.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& stop) {
    if (stop.get_exit_code() == 0) return app.exit(stop, out, err);
    const std::string extra = unknown_argument(app, arguments);
    err << printable(extra.empty() ? first_line(stop.what()) : extra) << "; see warpwright"
        << command_of(app) << " --help.\n";
    return 2;
  }
  if (devices->parsed()) return devices_command(out, err);
  if (gemm->parsed()) return gemm_command(gemm_options, out, err);
  if (grouped->parsed()) return grouped_command(grouped_options, out, err);
  if (check_gemm->parsed()) {
    return check_command(check_options, gemm_product(check_options), how, out, err);
  }
  if (check_grouped->parsed()) {
    return check_command(check_grouped_options, grouped_product(check_grouped_options), how, out,
                         err);
  }
  if (explain_gemm->parsed()) {
    return explain_command(explain_options, gemm_product(explain_options), out, err);
  }
  if (explain_grouped->parsed()) {
    return explain_command(explain_grouped_options, grouped_product(explain_grouped_options), out,
                           err);
  }
  if (trace_gemm->parsed()) {
    trace_how.out = std::exchange(trace_options.out, "");  // the trace's file, not D's
    return trace_command(trace_options, gemm_product(trace_options), trace_how, out, err);
  }
  if (trace_grouped->parsed()) {
    return trace_command(trace_grouped_options, grouped_product(trace_grouped_options), trace_how,
                         out, err);
  }
  if (bench->parsed()) {
    const bool dense = bench->got_subcommand("dense");
    return bench_command(dense ? bench_options : bench_grouped_options, out, err);
  }
  if (tune->parsed()) return tune_command(tune_options, out, err);
  if (layout->parsed()) return layout_command(expression, table, out, err);
  return mask_command(cluster, pair, rank, out, err);
}

}  // namespace

const char* version() {
  return WARPWRIGHT_VERSION;
}

int run_app(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  return status_of_output(run_command(arguments, out, err), out, err);
}

}  // namespace warpwright::cli
