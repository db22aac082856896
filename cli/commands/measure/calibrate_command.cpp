#include "cli/commands/measure/calibrate_command.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/commands/gemm/run.h"
#include "cli/files/output_file.h"
#include "cli/files/printable.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/device/cuda.h"
#include "warpwright/plan/cost/calibration.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

// The machine's file that keeps what no probe measures.
ordered_json machine_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw InputError("No machine's file to start from: " + printable(path) + " is not there; " +
                     as_rule("give --from a file of machines/") + ".");
  }
  ordered_json machine = ordered_json::parse(file, nullptr, false);
  if (!machine.is_object() || !machine.contains("numbers") || !machine["numbers"].is_object() ||
      !machine.contains("curves") || !machine["curves"].is_object()) {
    throw InputError(printable(path) + " is no machine's file: it has no numbers and curves; " +
                     as_rule("give --from a file of machines/") + ".");
  }
  return machine;
}

std::string card_name(int index) {
  const auto facts = device::cuda_device(index);
  return facts ? facts->name : "a card";
}

std::string source_of(const device::MeasuredNumber& n, const Spread& s, const std::string& card) {
  char text[96];
  std::snprintf(text, sizeof text, "; %zu rounds within %.1f%%", n.rounds.size(), 100 * s.share);
  return "measured: calibrate, " + n.how + ", " + card + text;
}

void put(ordered_json& machine, const device::MeasuredNumber& n, const Spread& s,
         const std::string& card) {
  if (n.size == 0) {
    machine["numbers"][n.name] = {s.median, source_of(n, s, card)};
    return;
  }
  ordered_json& curve = machine["curves"][n.name];
  if (!curve.is_array() || curve.size() != 2) curve = {ordered_json::array(), ""};
  bool is_new = true;
  for (ordered_json& point : curve[0]) {
    if (!point.is_array() || point.size() != 2 || point[0] != n.size) continue;
    point[1] = s.median;
    is_new = false;
  }
  if (is_new) curve[0].push_back({n.size, s.median});
  curve[1] = "measured: calibrate, " + n.how + ", " + card;
}

}  // namespace

int calibrate_command(const CalibrateOptions& o, std::ostream& out, std::ostream& err,
                      const MachineProbes& probes) {
  return exit_status(out, err, o.json, [&] {
    const int index = parse_device(o.device);
    if (index == run_on_model) {
      throw InputError("--device is model, and a calibration is of a GPU: " +
                       as_rule("give --device cuda") + ".");
    }
    check_output_file("The machine", o.out);
    ordered_json machine = machine_of(o.from.empty() ? o.out : o.from);
    const auto measured = probes(index, o.rounds);
    if (!measured) throw InputError(measured.refusal());
    const std::string card = card_name(index);
    std::string faults;
    for (const device::MeasuredNumber& n : *measured) {
      const Spread s = spread_of(n.rounds);
      if (const auto fault = measurement_fault(n.name, s)) {
        faults += "  " + *fault + "\n";
        continue;
      }
      if (!o.json) {
        char text[160];
        const std::string name = n.name + (n.size > 0 ? " " + std::to_string(n.size) : "");
        std::snprintf(text, sizeof text, "%-26s %12.5g  +-%.1f%%  %s\n", name.c_str(), s.median,
                      50 * s.share, n.how.c_str());
        out << text;
      }
      put(machine, n, s, card);
    }
    if (!faults.empty()) {
      throw RunError(Sentence{"The calibration cannot be trusted, and " + printable(o.out) +
                              " stays as it was:\n" + faults});
    }
    machine["card"] = card;
    replace_file(o.out, machine.dump(1) + "\n");
    if (o.json) {
      out << json_text(machine);
    } else {
      out << printable(o.out) << ": " << measured->size() << " numbers of " << printable(card)
          << "\n";
    }
    return 0;
  });
}

}  // namespace warpwright::cli
