#include "cli/commands/predict/predict_kernel_command.h"

#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands/completion.h"
#include "cli/commands/gemm/gemm_options.h"
#include "cli/commands/predict/sample_work.h"
#include "cli/commands/values.h"
#include "cli/files/printable.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/facts/format.h"
#include "warpwright/facts/machines.h"
#include "warpwright/plan/families/kernel_list.h"
#include "warpwright/plan/product/known_devices.h"

namespace warpwright::cli {
namespace {

const KernelFacts& kernel_named(const std::string& name) {
  if (const auto refusal = unknown_kernel(name)) throw InputError(*refusal);
  return *find_kernel(name);
}

std::string counts_text(const CostCounts& counts) {
  if (counts.empty()) return "nothing";
  return joined(counts, ", ", ", ",
                [](const auto& one) { return format("%.4g ", one.second) + cost_name(one.first); });
}

nlohmann::ordered_json counts_json(const CostCounts& counts) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [key, count] : counts) json[cost_name(key)] = count;
  return json;
}

// The depth of which a tile's clocks are said.
constexpr double kDepth = 24;

void print_text(const KernelFacts& kernel, const KernelWork& work, const MachineNumbers& machine,
                std::ostream& out) {
  const Costs costs(machine);
  const TilePhases phases = phases_of(work, costs, kDepth);
  out << format(
      "%s on %s: k_tile %.0f clocks, a tile of %g of them %.0f more, start and end %.0f\n",
      kernel.name.c_str(), machine.name.c_str(), phases.k_tile, kDepth, phases.between,
      phases.first);
  const auto lines = [&](const std::string& what, const std::vector<CostCounts>& ways) {
    out << what << ", the longest of\n";
    for (const CostCounts& way : ways) {
      out << format("  %7.0f clocks: ", costs.clocks(way)) << counts_text(way) << "\n";
    }
  };
  lines("a k_tile among many", work.k_tile);
  lines(format("one more tile of %g k_tiles", work.shallow), work.shallow_tile);
  lines(format("one more tile of %g", work.deep), work.deep_tile);
  lines(format("a run of %d tiles of %g", work.tiles, work.shallow), work.run);
  out << "all that a CTA does for a k_tile\n  " << counts_text(work.all_of_k_tile)
      << "\nand for a tile beside them\n  " << counts_text(work.all_of_tile) << "\n";
}

nlohmann::ordered_json to_json(const KernelFacts& kernel, const KernelWork& work,
                               const MachineNumbers& machine) {
  const TilePhases phases = phases_of(work, Costs(machine), kDepth);
  nlohmann::ordered_json json;
  json["kernel"] = kernel.name;
  json["device"] = machine.name;
  json["clocks"] = {
      {"first", phases.first}, {"k_tile", phases.k_tile}, {"between", phases.between}};
  json["all"] = {{"k_tile", counts_json(work.all_of_k_tile)},
                 {"tile", counts_json(work.all_of_tile)}};
  const auto ways_json = [](const std::vector<CostCounts>& ways) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const CostCounts& way : ways) all.push_back(counts_json(way));
    return all;
  };
  json["ways"] = {{"run", ways_json(work.run)},
                  {"k_tile", ways_json(work.k_tile)},
                  {"shallow_tile", ways_json(work.shallow_tile)},
                  {"deep_tile", ways_json(work.deep_tile)}};
  json["tiles"] = work.tiles;
  json["shallow"] = work.shallow;
  json["deep"] = work.deep;
  return json;
}

}  // namespace

void add_predict_kernel(CLI::App& predict, PredictKernelOptions& o) {
  CLI::App* kernel = predict.add_subcommand(
      "kernel", "what one SM does with a kernel's tiles, in counts and in a device's clocks");
  offer(kernel->add_option("NAME", o.kernel, "as `warpwright kernels` prints it")
            ->required()
            ->option_text("NAME"),
        kernel_words());
  const Values add(*kernel);
  offer(add("--as", o.device.as, "NAME", "whose clocks: " + known_names()), device_words());
  add_machine_option(*kernel, o.device.machine);
  kernel->add_flag("--counts", o.counts, "only the counts, as the library keeps them");
  kernel->add_flag("--json", o.json, "for programs");
  kernel->footer(
      "A way is what waits for one another from the beginning of a run to its end. A device takes\n"
      "what the longest way takes on it.\n\n"
      "Examples:\n"
      "  warpwright predict kernel hopper_bf16_bf16_128x128_pp\n"
      "  warpwright predict kernel registers_bf16_bf16_128x128 --as a100");
}

int predict_kernel_command(const PredictKernelOptions& options, std::ostream& out,
                           std::ostream& err) {
  return exit_status(out, err, options.json, [&] {
    const KernelFacts& kernel = kernel_named(options.kernel);
    RunOptions run = options.device;
    if (run.as.empty() && run.machine.empty()) {
      run.as = machine_of_architecture(kernel.architecture).name;
    }
    const DeviceFacts facts = facts_elsewhere(run);
    const KernelWork work = sample_work(kernel);
    if (options.counts) {
      out << work_text(kernel.name, work);
    } else if (options.json) {
      out << json_text(to_json(kernel, work, numbers_of(facts)));
    } else {
      print_text(kernel, work, numbers_of(facts), out);
    }
    return 0;
  });
}

}  // namespace warpwright::cli
