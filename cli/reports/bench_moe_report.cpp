#include "cli/reports/bench_moe_report.h"

#include <algorithm>

#include "cli/reports/refusal_json.h"
#include "warpwright/facts/format.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;

std::int64_t longest(const MoeBenchRow& row) {
  return row.lengths.empty() ? 0 : *std::max_element(row.lengths.begin(), row.lengths.end());
}

// Half the distance of the quartiles, as a share of the median.
std::string spread_text(const bench::Timing& t) {
  return t.median > 0 ? format("%.1f%%", 50 * (t.high - t.low) / t.median) : "-";
}

// "12.34", or "-" where nothing is known.
std::string us_text(double us) {
  return us > 0 ? format("%.2f", us) : "-";
}

// How often the floor goes into the time.
std::string times_floor(double us, double floor) {
  return us > 0 && floor > 0 ? format("%.2f", us / floor) : "-";
}

ordered_json known_us(double us) {
  return us > 0 ? ordered_json(us) : ordered_json();
}

ordered_json steps_json(const MoeBenchRow& row) {
  ordered_json steps = ordered_json::array();
  for (const PlannedStep& step : row.plan->steps()) {
    ordered_json one = {{"step", step.name},
                        {"kernel", step.kernel},
                        {"expected_floor_us", known_us(step.floor * 1e6)}};
    for (const bench::MoeStepTime& timed : row.times->steps) {
      if (timed.of.step == step.step) one["alone"] = timing_json(timed.timing);
    }
    steps.push_back(std::move(one));
  }
  return steps;
}

ordered_json row_json(const MoeBenchRow& row, std::uint64_t seed) {
  ordered_json j = {{"tokens", row.tokens},
                    {"hit", bench::busy_groups(row.lengths)},
                    {"longest", longest(row)},
                    {"seed", seed},
                    {"lengths", row.lengths}};
  if (!row.times) {
    j["refusal"] = row.refusal;
    return j;
  }
  const bench::MoeTimes& t = *row.times;
  j["ours"] = timing_json(t.ours);
  if (t.beside) j["by_steps"] = timing_json(*t.beside);
  j["floor_us"] = known_us(row.roof.us());
  j["memory_us"] = known_us(row.roof.memory_us);
  j["compute_us"] = known_us(row.roof.compute_us);
  j["bytes"] = row.roof.bytes;
  j["operations"] = row.roof.operations;
  j["launches"] = row.plan->launches();
  j["plan"] = row.plan->name();
  j["reason"] = row.plan->reason;
  j["by_index"] = row.plan->way.by_index;
  j["quantises_in_epilogue"] = row.plan->way.fused;
  j["gates_in_epilogue"] = row.plan->problem.is_gated && !row.plan->way.gates_behind;
  j["sorts_with_gather"] = row.plan->way.sorts_rows;
  j["one_launch"] = row.plan->way.one_launch();
  j["steps"] = steps_json(row);
  j["checked_tokens"] = t.checked_tokens;
  j["worst_share_of_allowed"] = t.worst_share;
  j["cold"] = t.cold;
  j["rounds"] = t.rounds;
  j["launches_of_a_round"] = t.launches;
  j["buffer_sets"] = t.buffer_sets;
  return j;
}

}  // namespace

std::string moe_title(const MoeBenchRun& run) {
  return provenance(run) +
         "\nmicroseconds of a whole step, the spread of their quartiles; the floor of the experts "
         "that are hit,\nx and d, and how often it goes into the time; launches, and kernels of "
         "the two products\n";
}

std::string moe_heading(const MoeBenchSection& s) {
  return format("\n%s, %s: %lld experts, top-%lld, hidden %lld, inner %lld\n", s.model.name,
                s.kind.c_str(), static_cast<long long>(s.model.experts),
                static_cast<long long>(s.model.top_k), static_cast<long long>(s.model.hidden),
                static_cast<long long>(s.model.inner)) +
         format("%7s %5s %8s %9s %7s %9s %6s %9s  %s\n", "tokens", "hit", "longest", "us", "spread",
                "floor", "ratio", "launches", "kernels");
}

std::string moe_row(const MoeBenchRow& row) {
  std::string text = format("%7lld %5lld %8lld ", static_cast<long long>(row.tokens),
                            static_cast<long long>(bench::busy_groups(row.lengths)),
                            static_cast<long long>(longest(row)));
  if (!row.times) return text + row.refusal + "\n";
  const bench::MoeTimes& t = *row.times;
  text += format("%9s %7s %9s %6s %9d  ", us_text(t.ours.median).c_str(),
                 spread_text(t.ours).c_str(), us_text(row.roof.us()).c_str(),
                 times_floor(t.ours.median, row.roof.us()).c_str(), row.plan->launches());
  if (row.plan->way.one_launch()) {
    text += row.plan->name();
  } else {
    text += row.plan->first.name() + ", " + row.plan->second.name();
  }
  text += t.cold ? "\n" : " (too few buffers to keep weights out of L2)\n";
  if (t.beside) {
    text += format("%22s %9s %7s %9s %6s\n", "by steps", us_text(t.beside->median).c_str(),
                   spread_text(*t.beside).c_str(), "",
                   times_floor(t.beside->median, row.roof.us()).c_str());
  }
  for (const bench::MoeStepTime& step : t.steps) {
    const double floor = step.of.floor * 1e6;
    text += format("%22s %9s %7s %9s %6s %9s  ", step.of.name, us_text(step.timing.median).c_str(),
                   spread_text(step.timing).c_str(), us_text(floor).c_str(),
                   times_floor(step.timing.median, floor).c_str(), "") +
            step.of.kernel + "\n";
  }
  return text;
}

std::string moe_json(const MoeBenchRun& run) {
  ordered_json j = {{"format", "warpwright-bench-moe-1"},
                    {"date", run.date},
                    {"gpu", run.gpu},
                    {"driver", run.driver},
                    {"cuda", run.cuda},
                    {"commit", run.commit},
                    {"command", run.command},
                    {"seed", run.seed},
                    {"dependent", run.dependent}};
  j["sections"] = ordered_json::array();
  for (const MoeBenchSection& s : run.sections) {
    ordered_json section = {{"model", s.model.name},      {"dtype", s.kind},
                            {"experts", s.model.experts}, {"top_k", s.model.top_k},
                            {"hidden", s.model.hidden},   {"inner", s.model.inner}};
    section["rows"] = ordered_json::array();
    for (const MoeBenchRow& row : s.rows) section["rows"].push_back(row_json(row, run.seed));
    j["sections"].push_back(std::move(section));
  }
  return json_text(j);
}

}  // namespace warpwright::cli
