#include "cli/commands/measure/calibrate_command.h"

#include <algorithm>
#include <filesystem>

#include "cli/commands/gemm/run.h"
#include "cli/files/machine_file.h"
#include "cli/files/output_file.h"
#include "cli/files/printable.h"
#include "warpwright/device/cuda.h"
#include "warpwright/facts/format.h"
#include "warpwright/facts/machines.h"
#include "warpwright/plan/cost/calibration.h"

namespace warpwright::cli {
namespace {

// The machine that keeps what no probe measures.
MachineNumbers machine_of(const CalibrateOptions& o, int index) {
  if (!o.from.empty()) return read_machine("--from", o.from);
  if (std::filesystem::exists(o.out)) return read_machine("--out", o.out);
  return machine_of_architecture(taken(device::cuda_device(index)).architecture);
}

std::string card_name(int index) {
  const auto facts = device::cuda_device(index);
  return facts ? facts->name : "a card";
}

std::string source_of(const device::MeasuredNumber& n, const Spread& s, const std::string& card) {
  return "measured: calibrate, " + n.how + ", " + card +
         format("; %zu rounds within %.1f%%", n.rounds.size(), 100 * s.share);
}

void put(MachineNumbers& machine, const device::MeasuredNumber& n, const Spread& s,
         const std::string& card) {
  const auto number = [&](const NumberRule& rule, double& value) {
    if (n.name == rule.name && n.size == 0) value = s.median;
  };
  const auto curve = [&](const NumberRule& rule, ClockCurve& value) {
    if (n.name != rule.name || n.size == 0) return;
    std::erase_if(value.points, [&](const auto& point) { return point.first == n.size; });
    value.points.emplace_back(n.size, s.median);
    std::sort(value.points.begin(), value.points.end());
  };
  for_each_number(machine, number);
  for_each_curve(machine, curve);
  machine.sources[n.name] = source_of(n, s, card);
}

// Either a machine's file or a correction is made.
void check_options(const CalibrateOptions& o) {
  if (o.out.empty() == o.learn.empty()) {
    throw InputError(std::string(o.out.empty() ? "Neither --out nor --learn is given"
                                               : "--out and --learn do not go together") +
                     ": " +
                     as_rule("give --out FILE for a machine's numbers, or --learn FILE for a "
                             "correction") +
                     ".");
  }
  if (!o.learn.empty() && !o.from.empty()) {
    throw InputError("--from is of --out: " + as_rule("leave it out") + ".");
  }
  if (o.learn.empty() && o.seconds) {
    throw InputError("--seconds is of --learn: " + as_rule("leave it out") + ".");
  }
  if (o.seconds) require_between("--seconds", *o.seconds, 10, 86400);
}

}  // namespace

int calibrate_command(const CalibrateOptions& o, std::ostream& out, std::ostream& err,
                      const MachineProbes& probes, const LearnTools& tools) {
  return exit_status(out, err, o.json, [&] {
    check_options(o);
    const int index = parse_device(o.device);
    if (index == run_on_model) {
      throw InputError("--device is model, and a calibration is of a GPU: " +
                       as_rule("give --device cuda") + ".");
    }
    if (!o.learn.empty()) {
      learn_correction({o.learn, index, o.seconds.value_or(LearnOptions{}.seconds), o.json}, tools,
                       out);
      return 0;
    }
    check_output_file("The machine", o.out);
    MachineNumbers machine = machine_of(o, index);
    const auto measured = taken(probes(index, o.rounds));
    const std::string card = card_name(index);
    std::string faults;
    for (const device::MeasuredNumber& n : measured) {
      const Spread s = spread_of(n.rounds);
      if (const auto fault = measurement_fault(n.name, s)) {
        faults += "  " + *fault + "\n";
        continue;
      }
      if (!o.json) {
        const std::string name = n.name + (n.size > 0 ? " " + std::to_string(n.size) : "");
        out << format("%-26s %12.5g  +-%.1f%%  %s\n", name.c_str(), s.median, 50 * s.share,
                      n.how.c_str());
      }
      put(machine, n, s, card);
    }
    if (!faults.empty()) {
      throw RunError(Sentence{"The calibration cannot be trusted, and " + printable(o.out) +
                              " stays as it was:\n" + faults});
    }
    machine.card = card;
    if (const auto fault = machine_fault(machine)) {
      throw RunError(Sentence{printable(o.out) + " stays as it was: " + *fault});
    }
    replace_file(o.out, machine_text(machine));
    if (o.json) {
      out << machine_text(machine);
    } else {
      out << printable(o.out) << ": " << measured.size() << " numbers of " << printable(card)
          << "\n";
    }
    return 0;
  });
}

}  // namespace warpwright::cli
