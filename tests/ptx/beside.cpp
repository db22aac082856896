// Kernels of Hopper as nvcc compiles them, on the model beside their bodies in C++: the same
// products with the same parameters, under several schedules, to the same bits.
//
//   ptx_beside [--schedules N] [--speed] NAME=FILE...
//
// Prints a line for each, and exits with 1 if one differs, or has a finding.
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

#include "tests/kernel/problems.h"
#include "warpwright/ptx/kernel.h"
#include "warpwright/simulation/model_kernels.h"
#include "warpwright/simulation/model_parts.h"

namespace warpwright::tests {
namespace {

using model::Mode;

constexpr std::align_val_t workspace_alignment{256};

// One launch on the model, by the body of C++ or by that of the text; what is wrong, or nothing.
std::string launch(Problem& problem, const Plan& plan, const device::ModelOptions& how,
                   ptx::Kernel* text) {
  const std::size_t bytes = static_cast<std::size_t>(plan.workspace_bytes) + 1;
  const std::shared_ptr<void> memory(::operator new(bytes, workspace_alignment),
                                     [](void* p) { ::operator delete(p, workspace_alignment); });
  auto* const workspace = static_cast<std::byte*>(memory.get());
  std::fill_n(workspace, bytes, std::byte{0xff});
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
      if (text->parameter_bytes() > grid.params.size()) return "the parameters have another size";
      ptx::Launch launch;
      launch.grid[0] = grid.ctas;
      launch.block[0] = grid.threads;
      launch.cluster = grid.cluster_size;
      launch.dynamic_bytes = grid.shared_bytes;
      static_cast<void>(text->shape(launch));
      body = text->body(grid.params.data(), launch, touched.back());
    } else {
      const device::ModelKernel* const kernel = device::model_kernel(grid.kernel);
      if (kernel == nullptr) return "this build has no kernel " + std::string(grid.kernel);
      body = [kernel, &grid] { kernel->run(grid.params.data()); };
    }
    launches.push_back(device::grid_launch(grid, allocations, std::move(body)));
    if (grid.multiplies) launches.back().shape.ctas_per_sm = plan.facts().ctas_per_sm;
  }
  const model::Report report = device::run_on_model(launches, plan.device, how);
  if (report.clean()) return problem.fault();
  return text != nullptr ? text->with_sources(report.text()) : report.text();
}

Instance instance_named(const std::string& name) {
  for (const auto* all : {&instances(), &grouped_instances()}) {
    for (const Instance& i : *all) {
      if (name == i.name) return i;
    }
  }
  throw std::runtime_error("this build has no Hopper kernel " + name);
}

Ask ask_of(const Instance& i) {
  const int k = 3 * step_k(i) + (kernel::packed_a(i.config) ? 0 : step_k(i) / 2);
  if (i.facts->grouped) return grouped_ask(i, {0, 5, 5, 21}, 128, k);
  Ask ask = extents(i, 1, 3);
  ask.k = k;
  if (!takes(i, ask.cluster)) ask.cluster = smallest_cluster(i);
  return ask;
}

struct Time {
  std::uint64_t instructions = 0;
  double seconds = 0;
};

std::string compare(const std::string& name, const std::string& path, int schedules, Time& time) {
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) return "cannot read " + path;
  const Instance instance = instance_named(name);
  Problem problem(instance, ask_of(instance));
  const auto plan = problem.planned();
  if (!plan) return plan.reason();
  ptx::Kernel kernel(std::move(text), name + ".ptx", "");
  constexpr Mode modes[] = {Mode::eager, Mode::random, Mode::latest, Mode::starve};
  for (int s = 0; s < schedules; ++s) {
    const auto how = scheduled(modes[s % 4], static_cast<std::uint64_t>(s) + 1);
    std::string said = launch(problem, *plan, how, nullptr);
    if (!said.empty()) return problem.text() + ": the body in C++: " + said;
    const std::vector<std::byte> bits = problem.d_bytes();
    const auto start = std::chrono::steady_clock::now();
    said = launch(problem, *plan, how, &kernel);
    time.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    time.instructions = kernel.executed();
    if (!said.empty()) return problem.text() + ", schedule " + std::to_string(s + 1) + ": " + said;
    if (problem.d_bytes() != bits) {
      const auto other = problem.d_bytes();
      std::size_t differ = 0;
      for (std::size_t i = 0; i < bits.size(); ++i) differ += bits[i] != other[i] ? 1 : 0;
      return problem.text() + ": " + std::to_string(differ) + " of " + std::to_string(bits.size()) +
             " bytes differ from those of the body in C++";
    }
  }
  return {};
}

int run(int argc, char** argv) {
  int schedules = 1;
  int failed = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--schedules") {
      schedules = std::atoi(argv[++i]);
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    std::string said;
    Time time;
    try {
      said = compare(name, word.substr(equals + 1), schedules, time);
    } catch (const ptx::Fault& fault) {
      said = "line " + std::to_string(fault.line) + ": " + fault.what();
    } catch (const std::exception& e) {
      said = e.what();
    }
    if (!said.empty()) ++failed;
    std::printf("%s: %s (%.1f million instructions in %.2f s)\n", name.c_str(),
                said.empty() ? "same bits" : said.c_str(),
                static_cast<double>(time.instructions) * 1e-6, time.seconds);
    std::fflush(stdout);
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace warpwright::tests

int main(int argc, char** argv) {
  return warpwright::tests::run(argc, argv);
}
