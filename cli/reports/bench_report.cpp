#include "cli/reports/bench_report.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

std::optional<double> over_config(const BenchRow& row, const std::optional<bench::Timing>& theirs) {
  if (!theirs || row.times->config_time.median <= 0) return std::nullopt;
  return theirs->median / row.times->config_time.median;
}

std::optional<double> over(const BenchRow& row, const std::optional<bench::Timing>& theirs) {
  if (!theirs || row.times->ours.median <= 0) return std::nullopt;
  return theirs->median / row.times->ours.median;
}

// The names and the values of the speeds, in the order of the columns.
struct Speed {
  const char* name;
  const char* key;
  std::optional<double> (*of)(const BenchRow&);
};
constexpr Speed kSpeeds[] = {{"plan over first pick", "plan_over_first", speed_over_first},
                             {"plan over best", "plan_over_best", speed_over_best},
                             {"best config over best", "config_over_best", config_over_best}};

// Why rows lack a baseline, each reason once.
std::vector<std::string> reasons(const BenchRun& run) {
  std::vector<std::string> all;
  for (const BenchRow& row : run.rows) {
    if (!row.times || row.times->first) continue;
    bool known = false;
    for (const std::string& reason : all) known = known || reason == row.times->baseline;
    if (!known) all.push_back(row.times->baseline);
  }
  return all;
}

std::string summary_line(const BenchRun& run, const Speed& speed) {
  const SpeedSummary s = summarise(run.rows, speed.of);
  if (!s.mean) return std::string(speed.name) + ": no row has it";
  return format("%s: geomean %.3f of %d, worst %.3f (%s)", speed.name, *s.mean, s.rows, s.worst,
                shape_name(s.worst_shape).c_str());
}

// What launches take of the host, as the median of the rows; empty where nothing was measured.
std::string host_line(const BenchRun& run) {
  std::vector<double> ours;
  std::vector<double> empty;
  for (const BenchRow& row : run.rows) {
    if (!row.times || row.times->host.ours.median <= 0) continue;
    ours.push_back(row.times->host.ours.median);
    empty.push_back(row.times->host.empty.median);
  }
  if (ours.empty()) return {};
  const auto median = [](std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  return format(
      "host: a launch takes %.2f us, that of an empty kernel %.2f us (medians of %d rows)",
      median(ours), median(empty), static_cast<int>(ours.size()));
}

ordered_json row_json(const BenchRow& row) {
  ordered_json j = {{"m", row.shape.m}, {"n", row.shape.n}, {"k", row.shape.k}};
  if (!row.times) {
    j["refusal"] = row.refusal;
    return j;
  }
  const bench::GemmTimes& t = *row.times;
  j["plan"] = t.plan;
  j["ours"] = timing_json(t.ours);
  j["tflops"] = bench::tflops(t.problem, t.ours);
  j["config"] = t.config;
  j["config_time"] = timing_json(t.config_time);
  j["configs"] = t.configs;
  j["host"] = timing_json(t.host.ours);
  j["host_empty"] = timing_json(t.host.empty);
  j["baseline"] = t.baseline;
  j["first"] = timing_json(t.first);
  j["best"] = timing_json(t.best);
  j["offered"] = t.offered;
  j["best_offer"] = t.first ? t.best_index + 1 : 0;
  for (const Speed& speed : kSpeeds) j[speed.key] = number_json(speed.of(row));
  j["roof_us"] = t.roof_us;
  j["roof_share"] = number_json(roof_share(row));
  j["bound"] = bound_name(t.bound);
  j["checked_against"] = t.checked_against;
  j["relative_error"] = t.relative_error;
  j["cold"] = t.cold;
  j["rounds"] = t.rounds;
  j["launches"] = t.launches;
  j["buffer_sets"] = t.buffer_sets;
  return j;
}

}  // namespace

std::optional<double> speed_over_first(const BenchRow& row) {
  return row.times ? over(row, row.times->first) : std::nullopt;
}

std::optional<double> speed_over_best(const BenchRow& row) {
  return row.times ? over(row, row.times->best) : std::nullopt;
}

std::optional<double> config_over_best(const BenchRow& row) {
  return row.times ? over_config(row, row.times->best) : std::nullopt;
}

std::optional<double> roof_share(const BenchRow& row) {
  if (!row.times || row.times->roof_us <= 0 || row.times->ours.median <= 0) return std::nullopt;
  return row.times->roof_us / row.times->ours.median;
}

std::optional<double> geomean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

SpeedSummary summarise(const std::vector<BenchRow>& rows,
                       const std::function<std::optional<double>(const BenchRow&)>& speed) {
  SpeedSummary summary;
  std::vector<double> values;
  for (const BenchRow& row : rows) {
    const std::optional<double> value = speed(row);
    if (!value) continue;
    if (values.empty() || *value < summary.worst) {
      summary.worst = *value;
      summary.worst_shape = row.shape;
    }
    values.push_back(*value);
  }
  summary.mean = geomean(values);
  summary.rows = static_cast<int>(values.size());
  return summary;
}

std::string table_heading(const BenchRun& run) {
  return run.types + "; " + provenance(run) + "\n" +
         "M x N x K: microseconds (TFLOP/s), the spread of the quartiles, the fastest of our "
         "configurations,\ncuBLASLt's first pick and best offer, our speed over theirs, share of "
         "the roof\n" +
         format("%-18s %9s %9s %6s  %9s %9s %9s  %6s %6s %6s %5s  %s\n", "shape", "ours",
                "(TFLOP/s)", "spread", "config", "lt first", "lt best", "/first", "/best", "c/best",
                "roof", "plan; config");
}

std::string table_row(const BenchRow& row) {
  const std::string name = shape_name(row.shape);
  if (!row.times) return format("%-18s %s\n", name.c_str(), row.refusal.c_str());
  const bench::GemmTimes& t = *row.times;
  const std::string plans = t.config == t.plan ? t.plan : t.plan + "; " + t.config;
  return format("%-18s %9.2f %9s %6s  %9.2f %9s %9s  %6s %6s %6s %5s  %s%s\n", name.c_str(),
                t.ours.median, format("(%.0f)", bench::tflops(t.problem, t.ours)).c_str(),
                spread(t.ours).c_str(), t.config_time.median, microseconds(t.first).c_str(),
                microseconds(t.best).c_str(), number(speed_over_first(row)).c_str(),
                number(speed_over_best(row)).c_str(), number(config_over_best(row)).c_str(),
                percent(roof_share(row)).c_str(), plans.c_str(), t.cold ? "" : "; not cold");
}

std::string table_summary(const BenchRun& run) {
  std::string text;
  for (const Speed& speed : kSpeeds) text += summary_line(run, speed) + "\n";
  if (const std::string host = host_line(run); !host.empty()) text += host + "\n";
  for (const std::string& reason : reasons(run)) text += "no baseline: " + reason + "\n";
  return text;
}

std::string markdown(const BenchRun& run) {
  std::string text = "Dense " + run.types + "; " + provenance(run) + ". Made by `" + run.command +
                     "`" + (run.dependent ? ", dependent launch on our side" : "") + ".\n\n" +
                     "| M x N x K | ours us (TFLOP/s) | spread | best config | us | lt first | lt "
                     "best | /first | /best | config /best | roof |\n"
                     "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const BenchRow& row : run.rows) {
    text += "| " + shape_name(row.shape) + " | ";
    if (!row.times) {
      text += row.refusal + " | | | | | | | | | |\n";
      continue;
    }
    const bench::GemmTimes& t = *row.times;
    text +=
        format("%.2f (%.0f) | %s | %s | %.2f | ", t.ours.median, bench::tflops(t.problem, t.ours),
               spread(t.ours).c_str(), t.config.c_str(), t.config_time.median) +
        microseconds(t.first) + " | " + microseconds(t.best) + " | " +
        number(speed_over_first(row)) + " | " + number(speed_over_best(row)) + " | " +
        number(config_over_best(row)) + " | " + percent(roof_share(row)) + " of " +
        bound_name(t.bound) + " |\n";
  }
  text += "\n";
  for (const Speed& speed : kSpeeds) text += "- " + summary_line(run, speed) + "\n";
  if (const std::string host = host_line(run); !host.empty()) text += "- " + host + "\n";
  for (const std::string& reason : reasons(run)) text += "- no baseline: " + reason + "\n";
  return text;
}

std::string json(const BenchRun& run) {
  ordered_json j = head_json("warpwright-bench-1", run);
  j["types"] = run.types;
  j["seed"] = run.seed;
  j["dependent"] = run.dependent;
  j["rows"] = ordered_json::array();
  for (const BenchRow& row : run.rows) j["rows"].push_back(row_json(row));
  j["summary"] = ordered_json::object();
  for (const Speed& speed : kSpeeds) {
    const SpeedSummary s = summarise(run.rows, speed.of);
    j["summary"][speed.key] = {
        {"geomean", number_json(s.mean)},
        {"rows", s.rows},
        {"worst", s.mean ? ordered_json(s.worst) : ordered_json(nullptr)},
        {"worst_shape", s.mean ? ordered_json(shape_name(s.worst_shape)) : ordered_json(nullptr)}};
  }
  return j.dump(1) + "\n";
}

}  // namespace warpwright::cli
