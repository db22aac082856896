#include "cli/commands/predict/sample_work.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <sstream>
#include <vector>

#include "cli/commands/gemm/companions.h"
#include "cli/commands/predict/sample.h"
#include "warpwright/facts/machines.h"

namespace warpwright::cli {
namespace {

// The known machine that stands for the kernel, and that with one part ten times as slow each:
// tensor cores, what brings operands, latencies, what threads do, stores.
std::vector<std::shared_ptr<const MachineNumbers>> sample_machines(int architecture) {
  const MachineNumbers& known = machine_of_architecture(architecture);
  std::vector<std::shared_ptr<const MachineNumbers>> all;
  const auto add = [&](const auto& change) {
    auto machine = std::make_shared<MachineNumbers>(known);
    change(*machine);
    all.push_back(std::move(machine));
  };
  constexpr double slower = 10;
  add([](MachineNumbers&) {});
  add([](MachineNumbers& m) {
    for (ClockCurve* curve : {&m.wgmma_shared_one, &m.wgmma_shared_more, &m.wgmma_registers_one,
                              &m.wgmma_registers_more, &m.tcgen05_mma}) {
      for (auto& [size, clocks] : curve->points) clocks *= slower;
    }
    for (MmaClocks& mma : m.mma_sync) mma.clocks *= slower;
  });
  add([](MachineNumbers& m) {
    for (double* rate : {&m.tma_bytes_per_clock, &m.read_bytes_per_clock,
                         &m.cp_async_bytes_per_clock, &m.shared_bytes_per_clock}) {
      *rate /= slower;
    }
  });
  add([](MachineNumbers& m) {
    for (double* clocks :
         {&m.tma_load_clocks, &m.l2_hit_clocks, &m.cp_async_clocks, &m.wake_clocks, &m.wgmma_clocks,
          &m.tcgen05_clocks, &m.tmem_clocks, &m.tcgen05_commit_clocks, &m.remote_arrive_clocks}) {
      *clocks *= slower;
    }
    for (MmaClocks& mma : m.mma_sync) mma.latency *= slower;
  });
  add([](MachineNumbers& m) {
    for (double* clocks :
         {&m.warp_clocks, &m.warpgroup_clocks, &m.element_clocks, &m.shared_issue_clocks,
          &m.global_issue_clocks, &m.tma_issue_clocks, &m.arrive_clocks, &m.wait_clocks,
          &m.tma_copy_clocks, &m.tma_row_clocks, &m.cp_async_issue_clocks}) {
      *clocks *= slower;
    }
  });
  add([](MachineNumbers& m) { m.write_bytes_per_clock /= slower; });
  return all;
}

CostCounts scaled(const CostCounts& counts, double by) {
  return sum({}, counts, by);
}

// Adds a way, where it is none of those that are there. What is less than that comes of clocks
// that are whole.
void add_way(std::vector<CostCounts>& ways, CostCounts way) {
  std::erase_if(way, [](const auto& entry) { return std::abs(entry.second) < 1.0 / 64; });
  if (std::find(ways.begin(), ways.end(), way) == ways.end()) ways.push_back(std::move(way));
}

// Machines that could be: the known ones, and others whose numbers are up to twice as much or as
// little. The same ones every time, whatever other numbers machines have.
std::vector<MachineNumbers> drawn_machines(int architecture) {
  std::vector<MachineNumbers> all = known_machines();
  for (int i = 0; i < 60; ++i) {
    const auto factor = [&](const std::string& name) {
      std::seed_seq words(name.begin(), name.end());
      std::mt19937 random(words);
      random.discard(static_cast<unsigned>(i));
      return std::exp2(2.0 * (random() % 1024) / 1024 - 1);
    };
    MachineNumbers machine = machine_of_architecture(architecture);
    for_each_number(machine,
                    [&](const NumberRule& rule, double& number) { number *= factor(rule.name); });
    for_each_curve(machine, [&](const NumberRule& rule, ClockCurve& curve) {
      const double by = factor(rule.name);
      for (auto& [size, clocks] : curve.points) clocks *= by;
    });
    for (MmaClocks& mma : machine.mma_sync) mma.clocks *= factor("mma_sync");
    all.push_back(std::move(machine));
  }
  return all;
}

// The fewest ways of which on every machine one is within two percent of the longest, the most
// needed first.
std::vector<CostCounts> longest_of(const std::vector<CostCounts>& ways,
                                   const std::vector<Costs>& machines) {
  constexpr double kNear = 0.02;
  std::vector<std::vector<double>> clocks;
  std::vector<double> longest(machines.size(), 0);
  for (const CostCounts& way : ways) {
    std::vector<double>& of = clocks.emplace_back();
    for (std::size_t m = 0; m < machines.size(); ++m) {
      of.push_back(machines[m].clocks(way));
      longest[m] = std::max(longest[m], of.back());
    }
  }
  std::vector<CostCounts> kept;
  std::vector<double> reached(machines.size(), 0);
  while (true) {
    std::size_t best = 0;
    double most = 0;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      double gain = 0;
      for (std::size_t m = 0; m < machines.size(); ++m) {
        if (reached[m] < (1 - kNear) * longest[m])
          gain += std::max(0.0, clocks[w][m] - reached[m]) / longest[m];
      }
      if (gain > most) {
        most = gain;
        best = w;
      }
    }
    if (most == 0) return kept;
    kept.push_back(ways[best]);
    for (std::size_t m = 0; m < machines.size(); ++m) {
      reached[m] = std::max(reached[m], clocks[best][m]);
    }
  }
}

// For a device that runs the kernel.
int architecture_of(const KernelFacts& kernel) {
  const auto& all = kernel.architectures;
  const bool own = std::find(all.begin(), all.end(), kernel.architecture) != all.end();
  return own || all.empty() ? kernel.architecture : all.front();
}

}  // namespace

std::pair<GemmOptions, Plan> sampled_product(const KernelFacts& kernel) {
  GemmOptions o = product_for(kernel);
  const atom::ClusterShape least = *std::min_element(
      kernel.clusters.begin(), kernel.clusters.end(),
      [](const auto& a, const auto& b) { return atom::cluster_size(a) < atom::cluster_size(b); });
  if (kernel.shares_cluster_k) {
    o.cluster_k = 2;
  } else {
    o.cluster = std::to_string(least.m) + "," + std::to_string(least.n);
  }
  o.kernel = kernel.name;
  o.no_tuning = true;
  std::ostringstream silent;
  Product product(o, model_facts(16, architecture_of(kernel)), silent);
  return {o, product.plan};
}

KernelWork sample_work(const KernelFacts& kernel) {
  const auto [options, plan] = sampled_product(kernel);
  const std::int64_t few = least_rounds(kernel);
  const bool shares = plan.cluster_k > 1;
  const std::int64_t shallow = shares ? 4 : 8;
  const std::int64_t deep = 4 * shallow;
  const auto tiles = static_cast<double>(few);
  KernelWork work;
  work.tiles = static_cast<int>(few);
  work.shallow = static_cast<double>(shallow);
  work.deep = static_cast<double>(deep);
  for (const auto& machine : sample_machines(architecture_of(kernel))) {
    const auto run = [&, &o = options, &p = plan](std::int64_t rounds, std::int64_t k_tiles) {
      Work made;
      sample_run(o, p, rounds, k_tiles, machine, &made);
      return made;
    };
    const Work one_shallow = run(few, shallow);
    const Work one_middle = run(few, deep / 2);
    const Work one_deep = run(few, deep);
    const Work two_shallow = run(2 * few, shallow);
    const Work two_deep = run(2 * few, deep);
    const std::int64_t more = deep / 2;
    const double k_tiles = tiles * static_cast<double>(more);
    add_way(work.run, one_shallow.path);
    add_way(work.k_tile, scaled(sum(one_deep.path, one_middle.path, -1), 1 / k_tiles));
    add_way(work.shallow_tile, scaled(sum(two_shallow.path, one_shallow.path, -1), 1 / tiles));
    add_way(work.deep_tile, scaled(sum(two_deep.path, one_deep.path, -1), 1 / tiles));
    if (!work.all_of_k_tile.empty()) continue;
    const double ctas = plan.cluster_ctas();
    work.all_of_k_tile = scaled(sum(one_deep.all, one_middle.all, -1), 1 / (k_tiles * ctas));
    work.all_of_tile = sum(scaled(sum(two_deep.all, one_deep.all, -1), 1 / (tiles * ctas)),
                           work.all_of_k_tile, -static_cast<double>(deep));
  }
  const std::vector<MachineNumbers> drawn = drawn_machines(architecture_of(kernel));
  std::vector<Costs> costs;
  costs.reserve(drawn.size());
  for (const MachineNumbers& machine : drawn) costs.emplace_back(machine);
  for (std::vector<CostCounts>* ways :
       {&work.run, &work.k_tile, &work.shallow_tile, &work.deep_tile}) {
    *ways = longest_of(*ways, costs);
  }
  for (CostCounts* all : {&work.all_of_k_tile, &work.all_of_tile}) {
    std::erase_if(*all, [](const auto& entry) { return entry.first.kind == CostKind::clock; });
  }
  return work;
}

}  // namespace warpwright::cli
