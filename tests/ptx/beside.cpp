// Kernels of any family as nvcc compiles them, on the model beside their bodies in C++: the same
// products with the same parameters, under several schedules, to the same bits. Only right is asked
// where nvcc makes one instruction of a product and a sum, unless --strict: of scales of blocks and
// groups, of codes that an epilogue makes, and with --full, for which products have C and a bias;
// of gates, whose exponential PTX only approximates; and of layers of experts in one launch. A
// kernel of several types is asked for each pair of them, and those that may be by index both ways.
//
//   ptx_beside [--schedules N] [--full | --drawn SEED] [--strict] NAME=FILE...
//   ptx_beside [--schedules N] [--full] --mutants ONE_IN FIRST NAME=FILE...
//   ptx_beside --list
//   ptx_beside --reads FILE NAME...
//
// --drawn asks what is drawn by the seed, and only that it is right. Prints a line for each, and
// exits with 1 if one differs, or has a finding. --mutants breaks the text, one way of ONE_IN from
// the FIRST on (text_mutants.h). --list prints the kernels of this build: family, name, and N of
// sm_N that they are for. --reads only reads, and says of which kernels it cannot.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tests/device/mixture.h"
#include "tests/kernel/problems.h"
#include "tests/ptx/text_mutants.h"
#include "warpwright/plan/families/family.h"
#include "warpwright/ptx/kernel.h"
#include "warpwright/reference/mixture.h"
#include "warpwright/simulation/model_kernels.h"
#include "warpwright/simulation/model_parts.h"
#include "warpwright/simulation/moe.h"

namespace warpwright::tests {
namespace {

using model::Mode;

// Rows that no token fills are multiplied and not stored. In C++ isa::leave_unwritten says so.
void pass_over_rows_of_none(model::Report& report) {
  std::erase_if(report.findings, [](const model::Finding& f) {
    return f.check == model::Check::uninitialised_read &&
           f.sentence.find("wgmma reads") != std::string::npos;
  });
}

// One launch on the model, by the body of C++ or by that of the text.
Result<model::Report> report_of(Problem& problem, const Plan& plan, const device::ModelOptions& how,
                                ptx::Kernel* text) {
  const std::shared_ptr<std::byte> memory = device::host_memory(plan.workspace_bytes);
  std::byte* const workspace = memory.get();
  std::fill_n(workspace, plan.flag_bytes, std::byte{0});
  problem.poison_d();
  const GemmOperands operands = problem.operands();
  const auto grids = std::make_unique<LaunchGrids>();
  bind_launch(plan, operands, {workspace}, device::encode_for_model, *grids);
  std::deque<std::vector<model::Allocation>> touched;
  std::vector<model::GridLaunch> launches;
  for (int i = 0; i < grids->count; ++i) {
    const Grid& grid = grids->grids[static_cast<std::size_t>(i)];
    const auto allocations =
        device::allocations_of(plan, grid.copies ? operands : grids->operands, grid, workspace);
    touched.push_back(allocations.all());
    std::function<void()> body;
    if (text != nullptr && grid.multiplies) {
      if (text->parameter_bytes() != grid.params_bytes) {
        return refuse(RefusalCode::bad_value,
                      "the parameters are no longer those of the text: make it anew with --keep");
      }
      ptx::Launch launch;
      launch.grid[0] = grid.ctas;
      launch.block[0] = grid.threads;
      launch.cluster = grid.cluster_size;
      launch.dynamic_bytes = grid.shared_bytes;
      static_cast<void>(text->shape(launch));
      body = text->body(grid.params.data(), launch, touched.back());
    } else {
      const device::ModelKernel* const kernel = device::model_kernel(grid.kernel);
      if (kernel == nullptr) {
        return refuse(RefusalCode::no_kernel, "this build has no kernel ", grid.kernel);
      }
      body = [kernel, &grid] { kernel->run(grid.params.data()); };
    }
    launches.push_back(device::grid_launch(grid, allocations, std::move(body)));
    if (grid.multiplies) launches.back().shape.ctas_per_sm = plan.facts().ctas_per_sm;
    // Before sm_90 no grid starts ahead of the end of another, and none waits for that.
    if (text != nullptr && grid.multiplies) launches.back().dependent = text->waits_for_grids();
  }
  model::Report report = device::run_on_model(launches, plan.device, how);
  if (text != nullptr && problem.is_by_index()) pass_over_rows_of_none(report);
  return report;
}

// What is wrong with it, or nothing.
std::string launch(Problem& problem, const Plan& plan, const device::ModelOptions& how,
                   ptx::Kernel* text) {
  const Result<model::Report> report = report_of(problem, plan, how, text);
  if (!report) return report.reason();
  return report->clean() ? problem.fault() : report->text();
}

// A kernel of the build, once for each way to ask; if it takes several types by its launch, each of
// them once as B, beside others of A.
std::vector<Instance> instances_named(const std::string& name) {
  std::vector<Instance> found;
  for (const Instance& i : drawn_instances(true)) {
    if (name != i.name) continue;
    found.push_back(i);
    const KernelFacts& f = *i.facts;
    if (!has_block_scales(i) || i.by_index) continue;
    for (std::size_t b = 1; b < std::max(f.a.size(), f.b.size()); ++b) {
      Instance other = i;
      other.a = f.a[(2 * b + 1) % f.a.size()];
      other.b = f.b[b % f.b.size()];
      if (numeric::bits(other.a) + numeric::bits(other.b) > 8) found.push_back(other);
    }
  }
  if (found.empty()) throw std::runtime_error("this build has no kernel " + name);
  return found;
}

// A cluster that takes several tiles takes more than it has accumulators in tensor memory.
void ask_for_tiles(const Instance& i, Ask& ask) {
  if (!is_blackwell(i)) return;
  if (i.facts->grouped) {
    ask.n = 8 * ask.n;
  } else if (i.facts->tiles != kernel::TileSource::one_tile) {
    const int tiles = i.facts->accumulators * atom::cluster_size(ask.cluster);
    const Ask longer = extents(i, (tiles + 1) / 2, 3);
    ask.m = longer.m;
    ask.n = longer.n;
    ask.clusters = shares_tiles(i) ? 3 : 1;
  }
}

Ask ask_of(const Instance& i) {
  const bool packed = kernel::packed_a(i.config);
  const int k = 3 * step_k(i) + (packed ? 0 : step_k(i) / 2);
  Ask ask = i.facts->grouped ? grouped_ask(i, {0, 5, 5, 21}, 128, k) : extents(i, 1, 3);
  ask.k = k;
  if (!takes(i, ask.cluster)) ask.cluster = smallest_cluster(i);
  if (is_register_kernel(i) && has_feature(i, "stream-K")) ask.clusters = 3;  // they share a tile
  ask_for_tiles(i, ask);
  fit_formats(i, ask);
  return ask;
}

// Much at once: C, a bias, two CTAs where the kernel has clusters, whole pieces of 16 bytes.
Ask full_ask_of(const Instance& i) {
  Ask ask = ask_of(i);
  ask.bias = Bias::columns;
  if (i.facts->grouped) return ask;
  if (!i.config.gated && quantisation(i) == QuantiseD::none) ask.beta = 0.5F;
  for (const atom::ClusterShape cluster : {atom::ClusterShape{2, 1}, atom::ClusterShape{2, 2}}) {
    if (atom::cluster_size(ask.cluster) < 2 * (i.facts->pair ? 2 : 1) && takes(i, cluster)) {
      ask.cluster = cluster;
    }
  }
  ask_for_tiles(i, ask);
  ask.n = (ask.n + 127) / 128 * 128;
  if (takes_any_rows(i)) ask.loose = 3;
  return ask;
}

// What is wrong with a product by the text, under so many schedules.
std::string compare(Problem& problem, ptx::Kernel& kernel, int schedules, bool any_rounding,
                    double& seconds, std::size_t& other_bytes) {
  const auto plan = problem.planned();
  if (!plan) return plan.reason();
  constexpr Mode modes[] = {Mode::eager, Mode::random, Mode::latest, Mode::starve};
  for (int s = 0; s < schedules; ++s) {
    const auto how = scheduled(modes[s % 4], static_cast<std::uint64_t>(s) + 1);
    const std::string where = problem.text() + ", schedule " + std::to_string(s + 1) + ": ";
    std::string said = launch(problem, *plan, how, nullptr);
    if (!said.empty()) return where + "the body in C++: " + said;
    const std::vector<std::byte> bits = problem.d_bytes();
    const auto start = std::chrono::steady_clock::now();
    said = launch(problem, *plan, how, &kernel);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!said.empty()) return where + said;
    const std::vector<std::byte> other = problem.d_bytes();
    std::size_t differ = 0;
    for (std::size_t i = 0; i < bits.size(); ++i) differ += bits[i] != other[i] ? 1 : 0;
    other_bytes += differ;
    if (differ == 0 || any_rounding) continue;
    return where + std::to_string(differ) + " of " + std::to_string(bits.size()) +
           " bytes differ from those of the body in C++";
  }
  return {};
}

// A layer in one launch that a plan gives to the kernel of this name; some slots are left out.
MixtureAsk layer_ask(const std::string& name) {
  const auto has = [&name](const char* word) { return name.find(word) != std::string::npos; };
  // A tile is as wide as an expert has tokens.
  MixtureAsk ask{.tokens = has("_w8") ? 3 : has("x8") ? 5 : has("x16") ? 12 : 30, .experts = 3};
  ask.hidden = 256;
  ask.inner = 128;
  if (has("_bs")) ask.scaling = Scaling::blockwise;
  const bool e2m1 = has("e2m1");
  if (e2m1 || has("s4")) {
    PackedFormat format{.tokens = DType::bf16};
    if (e2m1) {
      format.group = 32;
      format.scale = DType::ue8m0;
      format.code = DType::e2m1;
      format.exponents = Exponents::of_rows;
    } else {
      format.encoding = Int4Encoding::ex;
    }
    ask.packed13 = ask.packed2 = PackedWeights{.format = format};
    ask.weight_scales = false;
  }
  return ask;
}

std::string compare_layer(const std::string& name, ptx::Kernel& kernel, int schedules,
                          double& seconds) {
  SomeMixture some(layer_ask(name));
  // Warps by themselves are taken where bits need not be those of steps.
  const bool by_warps = name.find("_w8") != std::string::npos;
  const auto plan =
      plan_moe(some.o, model_facts(), {.batch_invariant = !by_warps, .one_launch = true});
  if (!plan) return plan.reason();
  if (plan->name() != "moe by " + name) return "the plan is " + plan->name();
  for (int s = 0; s < schedules; ++s) {
    const auto how =
        scheduled(s % 2 == 0 ? Mode::random : Mode::latest, static_cast<std::uint64_t>(s) + 1);
    const std::shared_ptr<std::byte> memory = device::host_memory(plan->workspace_bytes());
    std::fill_n(memory.get(), plan->flag_bytes(), std::byte{0});
    const MatrixView& d = some.o.d;
    std::fill_n(static_cast<std::byte*>(d.data), d.rows * d.columns * element_bytes(d.dtype),
                std::byte{0x7f});
    const auto start = std::chrono::steady_clock::now();
    auto report = device::launch_on_model(
        *plan, some.o, how, memory.get(),
        [&](const Grid& grid, const std::vector<model::Allocation>& touched) {
          ptx::Launch launch;
          launch.grid[0] = grid.ctas;
          launch.block[0] = grid.threads;
          launch.cluster = grid.cluster_size;
          launch.dynamic_bytes = grid.shared_bytes;
          static_cast<void>(kernel.shape(launch));
          return kernel.body(grid.params.data(), launch, touched);
        });
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!report) return report.reason();
    pass_over_rows_of_none(*report);
    if (!report->clean()) return "schedule " + std::to_string(s + 1) + ": " + report->text();
    if (reference::check_mixture(some.o).failures > 0) return "the result is wrong";
  }
  return {};
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) throw std::runtime_error("cannot read " + path);
  return text;
}

struct How {
  int schedules = 1;
  int seed = 0;  // of what is asked, where it is drawn
  bool full = false;
  bool strict = false;
  std::uint64_t one_in = 0;  // of the mutants; 0: none is tried
  std::uint64_t first = 0;
};

// What came of a text.
struct Compared {
  std::string said;  // what is wrong
  std::size_t other_bytes = 0;
  std::uint64_t instructions = 0;
  double seconds = 0;
};

// Whether its sums are contracted: those in registers, and numbers that an epilogue makes of them.
bool contracts(const Instance& i) {
  const kernel::GemmConfig& c = i.config;
  return kernel::is_blockwise(c) || kernel::packed_a(c) || adds_k_tiles(i) ||
         quantisation(i) != QuantiseD::none;
}

Compared compare(const std::string& name, const std::string& path, const How& how) {
  Compared c;
  ptx::Kernel kernel(read_text(path), name + ".ptx", name);
  if (name.starts_with("layer_")) {
    c.said = compare_layer(name, kernel, how.schedules, c.seconds);
    c.other_bytes = 1;  // a gate's exponential is an approximation
    c.instructions = kernel.executed();
    return c;
  }
  for (const Instance& instance : instances_named(name)) {
    Draws draw(static_cast<std::uint64_t>(how.seed));
    Problem problem(instance, how.seed > 0 ? random_ask(instance, draw, 2e7)
                              : how.full   ? full_ask_of(instance)
                                           : ask_of(instance));
    // The exponential of a gate, and of activations that are drawn, is an approximation.
    const bool any_rounding =
        instance.config.gated || how.seed > 0 || ((how.full || contracts(instance)) && !how.strict);
    c.said = compare(problem, kernel, how.schedules, any_rounding, c.seconds, c.other_bytes);
    if (!c.said.empty()) break;
  }
  c.instructions = kernel.executed();
  return c;
}

int list() {
  for (const Family* family : families()) {
    for (const KernelFacts* f : built_kernels(*family)) {
      std::printf("%s %s", f->family, f->name.c_str());
      for (const int target : f->architectures) std::printf(" %d", target);
      std::printf("\n");
    }
  }
  return 0;
}

int reads(const std::string& path, const std::vector<std::string>& names) {
  const std::string text = read_text(path);
  int failed = 0;
  for (const std::string& name : names) {
    try {
      ptx::Kernel(text, path, name);
    } catch (const ptx::Fault& fault) {
      std::printf("%s: %s\n", name.c_str(), fault.what());
      ++failed;
    }
  }
  return failed == 0 ? 0 : 1;
}

// Several tiles a CTA, each deeper than the ring: what does not come round is not missed.
Ask deep_ask_of(const Instance& i, bool full) {
  Ask ask = full ? full_ask_of(i) : ask_of(i);
  ask.k += i.config.stages * step_k(i);
  if (!i.facts->grouped) (is_swapped(i.config) ? ask.n : ask.m) += 2 * tile_rows(i);
  return ask;
}

// Breaks a text of a product; what is wrong with it as it is.
std::string mutate(const std::string& name, const std::string& path, const How& how) {
  const ptx::Kernel kernel(read_text(path), name + ".ptx", name);
  const Instance instance = instances_named(name).front();
  const Ask ask = deep_ask_of(instance, how.full);
  Problem problem(instance, ask);
  const auto plan = problem.planned();
  if (!plan) return plan.reason();
  const TextSubject subject(
      instance, ask, kernel,
      [&](Problem& one, const device::ModelOptions& options, ptx::Kernel& text) {
        return report_of(one, *plan, options, &text);
      });
  return print_mutants(subject, how.schedules, how.one_in, how.first);
}

int run(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "--list") return list();
  if (first == "--reads" && argc > 2) return reads(argv[2], {argv + 3, argv + argc});
  How how;
  int failed = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--schedules" || word == "--drawn") {
      (word == "--drawn" ? how.seed : how.schedules) = std::atoi(argv[++i]);
      continue;
    }
    if (word == "--full" || word == "--strict") {
      (word == "--full" ? how.full : how.strict) = true;
      continue;
    }
    if (word == "--mutants") {
      how.one_in = std::strtoull(argv[++i], nullptr, 10);
      how.first = std::strtoull(argv[++i], nullptr, 10);
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    Compared c;
    try {
      if (how.one_in > 0) {
        c.said = mutate(name, word.substr(equals + 1), how);
      } else {
        c = compare(name, word.substr(equals + 1), how);
      }
    } catch (const ptx::Fault& fault) {
      c.said = "line " + std::to_string(fault.line) + ": " + fault.what();
    } catch (const std::exception& e) {
      c.said = e.what();
    }
    if (!c.said.empty()) ++failed;
    std::printf("%s: %s (%.1f million instructions in %.2f s)\n", name.c_str(),
                !c.said.empty()     ? c.said.c_str()
                : how.one_in > 0    ? "broken"
                : c.other_bytes > 0 ? "right, with some of another rounding"
                                    : "same bits",
                static_cast<double>(c.instructions) * 1e-6, c.seconds);
    std::fflush(stdout);
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace warpwright::tests

int main(int argc, char** argv) {
  return warpwright::tests::run(argc, argv);
}
