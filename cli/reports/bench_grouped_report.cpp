#include "cli/reports/bench_grouped_report.h"

#include <algorithm>

#include "cli/reports/bench_report.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

std::optional<double> ratio(double theirs, double ours) {
  if (theirs <= 0 || ours <= 0) return std::nullopt;
  return theirs / ours;
}

double roof_us(const GroupedRow& row) {
  return std::max(row.compute_us, row.memory_us);
}

Bound bound_of(const GroupedRow& row) {
  return row.compute_us >= row.memory_us ? Bound::tensor_cores : Bound::memory;
}

double tflops(const GroupedRow& row, const bench::Timing& t) {
  return t.median > 0 ? row.work.operations / t.median * 1e-6 : 0;
}

// The names and the values of the speeds, in the order of the summary.
struct GroupedSpeed {
  const char* name;
  const char* key;
  std::optional<double> (*of)(const GroupedRow&);
};
constexpr GroupedSpeed kGroupedSpeeds[] = {
    {"plan over the loop", "plan_over_loop", plan_over_loop},
    {"best config over the loop", "config_over_loop", config_over_loop},
    {"plan over best config", "plan_over_config", plan_over_config},
    {"plan over the roof", "plan_over_roof", plan_over_roof},
    {"best config over the roof", "config_over_roof", config_over_roof}};

// One kind of speed over all rows that have it.
struct Summary {
  std::optional<double> mean;
  int rows = 0;
  double worst = 0;
  std::string worst_shape;
};

Summary summarise(const GroupedSection& section, const GroupedSpeed& speed) {
  Summary summary;
  std::vector<double> values;
  for (const GroupedRow& row : section.rows) {
    const std::optional<double> value = speed.of(row);
    if (!value) continue;
    if (values.empty() || *value < summary.worst) {
      summary.worst = *value;
      summary.worst_shape = shape_name(row.shape);
    }
    values.push_back(*value);
  }
  summary.mean = geomean(values);
  summary.rows = static_cast<int>(values.size());
  return summary;
}

std::string summary_line(const GroupedSection& section, const GroupedSpeed& speed) {
  const Summary s = summarise(section, speed);
  if (!s.mean) return std::string(speed.name) + ": no row has it";
  return format("%s: geomean %.3f of %d, worst %.3f (%s)", speed.name, *s.mean, s.rows, s.worst,
                s.worst_shape.c_str());
}

// Why rows lack a loop, each with its shape.
std::vector<std::string> reasons(const GroupedSection& section) {
  std::vector<std::string> all;
  for (const GroupedRow& row : section.rows) {
    if (!row.times || row.times->loop) continue;
    all.push_back("no loop for " + shape_name(row.shape) + ": " + row.times->baseline);
  }
  return all;
}

ordered_json row_json(const GroupedRow& row) {
  ordered_json j = {{"groups", row.shape.groups},
                    {"tokens", row.shape.tokens},
                    {"n", row.shape.n},
                    {"k", row.shape.k},
                    {"lengths", row.lengths}};
  if (!row.times) {
    j["refusal"] = row.refusal;
    return j;
  }
  const bench::GroupedTimes& t = *row.times;
  j["plan"] = t.plan;
  j["ours"] = timing_json(t.ours);
  j["tflops"] = tflops(row, t.ours);
  j["config"] = t.config;
  j["config_time"] = timing_json(t.config_time);
  j["configs"] = t.configs;
  j["baseline"] = t.baseline;
  j["loop"] = timing_json(t.loop);
  j["calls"] = t.calls;
  for (const GroupedSpeed& speed : kGroupedSpeeds) j[speed.key] = number_json(speed.of(row));
  j["bytes"] = row.work.bytes;
  j["memory_us"] = row.memory_us;
  j["compute_us"] = row.compute_us;
  j["bound"] = bound_name(bound_of(row));
  j["relative_error"] = t.relative_error;
  j["cold"] = t.cold;
  j["rounds"] = t.rounds;
  j["launches"] = t.launches;
  j["buffer_sets"] = t.buffer_sets;
  return j;
}

}  // namespace

std::optional<double> plan_over_loop(const GroupedRow& row) {
  if (!row.times || !row.times->loop) return std::nullopt;
  return ratio(row.times->loop->median, row.times->ours.median);
}

std::optional<double> config_over_loop(const GroupedRow& row) {
  if (!row.times || !row.times->loop) return std::nullopt;
  return ratio(row.times->loop->median, row.times->config_time.median);
}

std::optional<double> plan_over_config(const GroupedRow& row) {
  if (!row.times) return std::nullopt;
  return ratio(row.times->config_time.median, row.times->ours.median);
}

std::optional<double> plan_over_roof(const GroupedRow& row) {
  if (!row.times) return std::nullopt;
  return ratio(roof_us(row), row.times->ours.median);
}

std::optional<double> config_over_roof(const GroupedRow& row) {
  if (!row.times) return std::nullopt;
  return ratio(roof_us(row), row.times->config_time.median);
}

std::string table_title(const GroupedRun& run) {
  return provenance(run) +
         "\ngroups x tokens, N, K: microseconds (TFLOP/s), the spread of the quartiles, the "
         "fastest of our\nconfigurations, a loop of cuBLASLt calls; our speeds over the loop's, "
         "of the plan and of the\nfastest; HBM's floor and the share of the roof, of both\n";
}

std::string table_heading(const GroupedSection& section) {
  return std::string("\n") + section.kind.heading + "\n" +
         format("%-24s %9s %9s %6s  %9s %9s  %6s %6s  %8s %5s %5s  %s\n", "shape", "ours",
                "(TFLOP/s)", "spread", "config", "loop", "/loop", "c/loop", "HBM us", "roof", "c",
                "plan; config");
}

std::string table_row(const GroupedRow& row) {
  const std::string name = shape_name(row.shape);
  if (!row.times) return format("%-24s %s\n", name.c_str(), row.refusal.c_str());
  const bench::GroupedTimes& t = *row.times;
  const std::string plans = t.config == t.plan ? t.plan : t.plan + "; " + t.config;
  return format("%-24s %9.2f %9s %6s  %9.2f %9s  %6s %6s  %8.2f %5s %5s  %s%s\n", name.c_str(),
                t.ours.median, format("(%.0f)", tflops(row, t.ours)).c_str(),
                spread(t.ours).c_str(), t.config_time.median, microseconds(t.loop).c_str(),
                number(plan_over_loop(row)).c_str(), number(config_over_loop(row)).c_str(),
                row.memory_us, percent(plan_over_roof(row)).c_str(),
                percent(config_over_roof(row)).c_str(), plans.c_str(), t.cold ? "" : "; not cold");
}

std::string table_summary(const GroupedSection& section) {
  std::string text;
  for (const GroupedSpeed& speed : kGroupedSpeeds) text += summary_line(section, speed) + "\n";
  for (const std::string& reason : reasons(section)) text += reason + "\n";
  return text;
}

std::string markdown(const GroupedRun& run) {
  std::string text = "Grouped; " + provenance(run) + ". Made by `" + run.command + "`" +
                     (run.dependent ? ", dependent launch on our side" : "") + ".\n";
  for (const GroupedSection& section : run.sections) {
    text += std::string("\n") + section.kind.heading + "\n\n" +
            "| groups x tokens, N, K | ours us (TFLOP/s) | spread | best config | us | loop of "
            "cuBLASLt | /loop | config /loop | HBM floor us | roof | config of roof |\n"
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for (const GroupedRow& row : section.rows) {
      text += "| " + shape_name(row.shape) + " | ";
      if (!row.times) {
        text += row.refusal + " | | | | | | | | | |\n";
        continue;
      }
      const bench::GroupedTimes& t = *row.times;
      text += format("%.2f (%.0f) | %s | %s | %.2f | %s | %s | %s | %.2f | %s of %s | %s |\n",
                     t.ours.median, tflops(row, t.ours), spread(t.ours).c_str(), t.config.c_str(),
                     t.config_time.median, microseconds(t.loop).c_str(),
                     number(plan_over_loop(row)).c_str(), number(config_over_loop(row)).c_str(),
                     row.memory_us, percent(plan_over_roof(row)).c_str(), bound_name(bound_of(row)),
                     percent(config_over_roof(row)).c_str());
    }
    text += "\n";
    for (const GroupedSpeed& speed : kGroupedSpeeds)
      text += "- " + summary_line(section, speed) + "\n";
    for (const std::string& reason : reasons(section)) text += "- " + reason + "\n";
  }
  return text;
}

std::string json(const GroupedRun& run) {
  ordered_json j = head_json("warpwright-bench-grouped-1", run);
  j["seed"] = run.seed;
  j["dependent"] = run.dependent;
  j["sections"] = ordered_json::array();
  for (const GroupedSection& section : run.sections) {
    ordered_json s = {{"dtype", section.kind.word}, {"types", section.kind.heading}};
    s["rows"] = ordered_json::array();
    for (const GroupedRow& row : section.rows) s["rows"].push_back(row_json(row));
    s["summary"] = ordered_json::object();
    for (const GroupedSpeed& speed : kGroupedSpeeds) {
      const Summary m = summarise(section, speed);
      s["summary"][speed.key] = {
          {"geomean", number_json(m.mean)},
          {"rows", m.rows},
          {"worst", m.mean ? ordered_json(m.worst) : ordered_json(nullptr)},
          {"worst_shape", m.mean ? ordered_json(m.worst_shape) : ordered_json(nullptr)}};
    }
    j["sections"].push_back(s);
  }
  return j.dump(1) + "\n";
}

}  // namespace warpwright::cli
