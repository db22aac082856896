#include "cli/commands/predict/predict_times_command.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/commands/gemm/run.h"
#include "cli/commands/values.h"
#include "cli/files/output_file.h"
#include "cli/files/times_file.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/facts/format.h"
#include "warpwright/facts/machines.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/families/floor.h"
#include "warpwright/plan/families/learnt.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

// Errors are those of configurations within so much of the fastest: others are never run.
constexpr double kNearBest = 1.3;

// Who may choose among the configurations of a product: today's plan, the least floor, the least
// learnt time.
constexpr std::array chooser_names = {"plan", "floor", "learnt"};

// What is known of one card's products of a kind.
struct KindOfTimes {
  int products = 0;
  int ways = 0;
  double floor_error = 0, learnt_error = 0;           // sums over products
  std::array<double, chooser_names.size()> regret{};  // likewise
  std::array<double, chooser_names.size()> worst{};
};

// A recorded way that plans know today.
struct RecordedWay {
  const MeasuredTime* time = nullptr;
  bool is_chosen = false;  // by today's plan
  Floor floor;
  double learnt_us = 0;
};

std::string kind_of(const GemmProblem& p) {
  std::string kind(numeric::word(p.a.dtype));
  if (p.packed) {
    kind += " x " + packed::weights_word(p.packed->format);
  } else if (p.scaling == Scaling::blockwise) {
    kind += " blockwise";
  } else if (p.accumulation == Accumulation::promoted) {
    kind += " promoted";
  }
  if (p.groups) kind += ", groups";
  return kind + (p.is_gated() ? ", gated" : "");
}

// Times in the file that say nothing here: of cards, products or ways that this build lacks.
struct RecordedWays {
  std::vector<RecordedWay> all;
  int unknown = 0;
};

RecordedWays recorded_ways(std::span<const MeasuredTime> times, const GemmProblem& problem) {
  RecordedWays ways;
  const MachineNumbers* const machine = machine_of_card(times.front().card);
  const auto plans = machine == nullptr ? std::vector<Plan>{} : [&] {
    auto made = candidates(problem, *known_facts(machine->name));
    return made ? *std::move(made) : std::vector<Plan>{};
  }();
  std::map<std::string, const Plan*> named;
  for (const Plan& plan : plans) named.emplace(configuration_text(plan), &plan);
  for (const MeasuredTime& time : times) {
    const auto found = named.find(time.configuration);
    const auto floor = found == named.end() ? std::nullopt : floor_of(*found->second);
    if (!floor) {
      ++ways.unknown;
      continue;
    }
    ways.all.push_back({&time, found->second == plans.data(), *floor,
                        1e6 * learnt_seconds(*floor, built_correction())});
  }
  return ways;
}

void judge_ways(const std::vector<RecordedWay>& ways, KindOfTimes& judged) {
  const auto us = [](const RecordedWay& way) { return way.time->microseconds; };
  const auto least = [&](const auto& number) {
    return *std::min_element(
        ways.begin(), ways.end(),
        [&](const RecordedWay& x, const RecordedWay& y) { return number(x) < number(y); });
  };
  const double best = us(least(us));
  const auto floor_us = [](const RecordedWay& way) { return 1e6 * way.floor.seconds; };
  const auto learnt_us = [](const RecordedWay& way) { return way.learnt_us; };
  const auto plan =
      std::find_if(ways.begin(), ways.end(), [](const RecordedWay& w) { return w.is_chosen; });
  const RecordedWay& none = ways.front();
  const std::array chosen = {us(plan == ways.end() ? none : *plan), us(least(floor_us)),
                             us(least(learnt_us))};
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    judged.regret[i] += chosen[i] / best - 1;
    judged.worst[i] = std::max(judged.worst[i], chosen[i] / best - 1);
  }
  double floor_error = 0;
  double learnt_error = 0;
  int near = 0;
  for (const RecordedWay& way : ways) {
    if (us(way) >= kNearBest * best) continue;
    ++near;
    floor_error += std::abs(floor_us(way) / us(way) - 1);
    learnt_error += std::abs(way.learnt_us / us(way) - 1);
  }
  ++judged.products;
  judged.ways += static_cast<int>(ways.size());
  judged.floor_error += floor_error / near;
  judged.learnt_error += learnt_error / near;
}

std::string text_of(const std::map<std::string, KindOfTimes>& all) {
  std::size_t width = 0;
  for (const auto& [name, j] : all) width = std::max(width, name.size());
  std::string text(width, ' ');
  text +=
      "  products   ways  error: floor learnt  regret, worst: plan         floor        learnt\n";
  for (const auto& [name, of_kind] : all) {
    const KindOfTimes& j = of_kind;
    const auto percent = [&](double sum) { return 100 * sum / j.products; };
    text += format("%-*s  %8d %6d        %5.1f%% %5.1f%%", static_cast<int>(width), name.c_str(),
                   j.products, j.ways, percent(j.floor_error), percent(j.learnt_error));
    for (std::size_t i = 0; i < chooser_names.size(); ++i) {
      text += format("%s%5.2f%% %5.1f%%", i == 0 ? "       " : "  ", percent(j.regret[i]),
                     100 * j.worst[i]);
    }
    text += "\n";
  }
  return text;
}

nlohmann::ordered_json json_of(const std::map<std::string, KindOfTimes>& all) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const auto& [name, j] : all) {
    nlohmann::ordered_json row = {{"kind", name}, {"products", j.products}, {"ways", j.ways}};
    row["floor_error"] = j.floor_error / j.products;
    row["learnt_error"] = j.learnt_error / j.products;
    for (std::size_t i = 0; i < chooser_names.size(); ++i) {
      row[std::string(chooser_names[i]) + "_regret"] = j.regret[i] / j.products;
      row[std::string(chooser_names[i]) + "_worst"] = j.worst[i];
    }
    json.push_back(std::move(row));
  }
  return json;
}

std::string features_line(const RecordedWay& way, const GemmProblem& p) {
  std::string line = way.time->card + "\t" + shape_text(p) + "\t" + kind_of(p) + "\t" +
                     way.time->configuration +
                     format("\t%.4f\t%d\t%.4f", way.time->microseconds, way.is_chosen ? 1 : 0,
                            1e6 * way.floor.seconds);
  for (const double feature : way.floor.features) line += format("\t%.6g", feature);
  return line + "\n";
}

std::string features_head() {
  std::string head = "card\tproduct\tkind\tconfiguration\tmicroseconds\tchosen\tfloor";
  for (const char* name : floor_features) head += std::string("\t") + name;
  return head + "\n";
}

}  // namespace

void add_predict_times(CLI::App& predict, PredictTimesOptions& o) {
  CLI::App* times = predict.add_subcommand(
      "times", "hold predictions and choices against the times of a file of bench --record");
  times->add_option("FILE", o.times, "its times, .tsv")->required()->option_text("FILE");
  const Values add(*times);
  add("--features", o.features, "FILE",
      "write there, for each configuration, its floor and what script/learn.py learns from (.tsv)");
  times->add_flag("--json", o.json, "for programs");
  times->footer(
      "Regret: how much longer than the fastest configuration of a product takes the one that the\n"
      "plan, the least floor, or the least learnt time chooses. Errors are those of "
      "configurations\n"
      "within 30% of the fastest. \"held out\" are products that nothing was learnt from.\n\n"
      "Examples:\n"
      "  gzip -dc bench/times.tsv.gz > times.tsv; warpwright predict times times.tsv");
}

int predict_times_command(const PredictTimesOptions& options, std::ostream& out,
                          std::ostream& err) {
  return exit_status(out, err, options.json, [&] {
    const std::vector<MeasuredTime> times = read_times("FILE", options.times);
    if (!options.features.empty()) check_output_file("The features", options.features);
    std::map<std::string, KindOfTimes> all;
    std::string features = features_head();
    int unknown = 0;
    for (auto first = times.begin(); first != times.end();) {
      const auto end = std::find_if_not(
          first, times.end(), [&](const MeasuredTime& t) { return same_product(t, *first); });
      const auto problem = parse_problem(first->product);
      if (!problem) throw InputError("FILE: " + options.times + ": " + problem.refusal() + ".");
      const RecordedWays ways = recorded_ways({first, end}, *problem);
      unknown += ways.unknown;
      if (ways.all.size() > 1) {
        judge_ways(ways.all, all[first->card + ", " + kind_of(*problem) +
                                 (is_held_out(*problem) ? ", held out" : "")]);
      }
      for (const RecordedWay& way : ways.all) features += features_line(way, *problem);
      first = end;
    }
    if (!options.features.empty()) replace_file(options.features, features);
    out << (options.json ? json_text({{"kinds", json_of(all)}, {"unknown", unknown}})
                         : text_of(all));
    if (!options.json && unknown > 0) {
      out << unknown << " times are of ways that this build's plans do not have, or of products "
          << "that nothing is learnt of.\n";
    }
    return 0;
  });
}

}  // namespace warpwright::cli
