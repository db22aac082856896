#include "warpwright/plan/cost/machine_clocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "warpwright/facts/machines.h"

namespace warpwright {
namespace {

// Clocks of the unit of an SM that is longest at work. For mma.sync there are four.
double busiest_unit(const CostCounts& all, const Costs& costs) {
  double tensor = 0;
  double shared = 0;
  double engine = 0;
  double read = 0;
  double write = 0;
  double lsu = 0;
  for (const auto& [key, count] : all) {
    const double clocks = count * costs.price(key);
    switch (key.kind) {
      case CostKind::wgmma:
      case CostKind::umma:
        tensor += clocks;
        break;
      case CostKind::mma_sync:
        tensor += clocks / 4;
        break;
      case CostKind::shared_byte:
        shared += clocks;
        break;
      case CostKind::tma_copy:
      case CostKind::tma_row:
      case CostKind::tma_outside_row:
        engine += clocks;
        break;
      case CostKind::tma_byte:
      case CostKind::read_byte:
      case CostKind::cp_async_byte:
        read += clocks;
        break;
      case CostKind::write_byte:
        write += clocks;
        break;
      case CostKind::cp_async_issue:
        lsu += clocks;
        break;
      default:
        break;
    }
  }
  return std::max({tensor, shared, engine, read, write, lsu, 0.0});
}

class KnownClocks final : public MachineClocks {
 public:
  explicit KnownClocks(const MachineNumbers& numbers) : numbers_(numbers), costs_(numbers_) {
    machine = prediction_machine(numbers_);
  }

  [[nodiscard]] const KernelClocks& of(const KernelFacts& kernel) const override {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = known_.try_emplace(&kernel);
    if (is_new) at->second = made(kernel);
    return *at->second;
  }

 private:
  [[nodiscard]] std::unique_ptr<const KernelClocks> made(const KernelFacts& kernel) const {
    auto clocks = std::make_unique<KernelClocks>();
    const KernelWork* const work = kept_work(kernel.name);
    if (work == nullptr) {
      const double bits = kernel.a.empty() ? 16 : numeric::bits(kernel.a.front());
      clocks->k_tile = clocks->units = clocks->slope =
          (kernel.tile.m + kernel.tile.n) * kernel.tile.k * bits / 8 / costs_.tma_rate;
      clocks->tile_units = kernel.result_rows * kernel.result_columns *
                           numeric::bits(kernel.result) / 8.0 / costs_.write_rate;
      clocks->shallow = clocks->tile_units;
      return clocks;
    }
    clocks->are_kept = true;
    const TilePhases shallow = phases_of(*work, costs_, work->shallow);
    const TilePhases deep = phases_of(*work, costs_, work->deep);
    clocks->k_tile = shallow.k_tile;
    clocks->first = shallow.first;
    clocks->shallow_k = work->shallow;
    clocks->deep_k = work->deep;
    clocks->shallow = shallow.between + work->shallow * shallow.k_tile;
    clocks->slope =
        (deep.between + work->deep * deep.k_tile - clocks->shallow) / (work->deep - work->shallow);
    clocks->units = busiest_unit(work->all_of_k_tile, costs_);
    clocks->tile_units = busiest_unit(work->all_of_tile, costs_);
    return clocks;
  }

  const MachineNumbers numbers_;
  const Costs costs_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<const KernelFacts*, std::unique_ptr<const KernelClocks>> known_;
};

// For all numbers that costs and predictions read.
std::uint64_t fingerprint(const MachineNumbers& machine) {
  std::uint64_t hash = static_cast<std::uint64_t>(machine.architecture) << 32 |
                       static_cast<std::uint32_t>(machine.sms);
  const auto add = [&](double number) {
    hash = (std::rotl(hash, 9) ^ std::bit_cast<std::uint64_t>(number)) * 0x9e3779b97f4a7c15U;
  };
  for_each_number(machine, [&](const NumberRule&, double number) { add(number); });
  for_each_curve(machine, [&](const NumberRule&, const ClockCurve& curve) {
    for (const auto& [size, clocks] : curve.points) {
      add(size);
      add(clocks);
    }
  });
  for (const MmaClocks& mma : machine.mma_sync) {
    add(mma.clocks);
    add(mma.latency);
  }
  return hash;
}

}  // namespace

double KernelClocks::between(double k_tiles) const {
  const double tile = k_tiles > deep_k
                          ? shallow + (deep_k - shallow_k) * slope + (k_tiles - deep_k) * k_tile
                          : shallow + (k_tiles - shallow_k) * slope;
  return tile - k_tiles * k_tile;
}

double KernelClocks::round(double k_tiles, double ctas) const {
  const double alone = k_tiles * k_tile + between(k_tiles);
  return std::max(alone, ctas * (k_tiles * units + tile_units));
}

std::optional<TilePhases> counted_phases(const Plan& plan, const MachineClocks& clocks) {
  const KernelClocks& kernel = clocks.of(plan.facts());
  if (!kernel.are_kept) return std::nullopt;
  return kernel.phases(std::ceil(static_cast<double>(plan.problem.k()) / plan.tile().k) /
                       std::max(1, plan.cluster_k));
}

const MachineClocks& machine_clocks(const MachineNumbers& numbers) {
  static std::mutex mutex;
  static std::unordered_map<std::uint64_t, std::unique_ptr<const KnownClocks>> all;
  const std::uint64_t key = fingerprint(numbers);
  const std::lock_guard lock(mutex);
  std::unique_ptr<const KnownClocks>& clocks = all[key];
  if (!clocks) clocks = std::make_unique<const KnownClocks>(numbers);
  return *clocks;
}

}  // namespace warpwright
