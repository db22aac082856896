#include "cli/reports/bench_report.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "warpwright/facts/format.h"

namespace warpwright::cli {
namespace {

using bench::GemmTimes;
using nlohmann::ordered_json;

// A time of a row in microseconds; 0 where there is none.
using Time = double (*)(const GemmTimes&);
double our_time(const GemmTimes& t) {
  return t.ours.median;
}
double predicted_time(const GemmTimes& t) {
  return t.predicted_us;
}
double config_time(const GemmTimes& t) {
  return t.config_time.median;
}
double first_time(const GemmTimes& t) {
  return t.first ? t.first->median : 0;
}
double best_time(const GemmTimes& t) {
  return t.best ? t.best->median : 0;
}
double roof_time(const GemmTimes& t) {
  return t.roof.us();
}
double memory_time(const GemmTimes& t) {
  return t.roof.memory_us;
}
// The roof under the card's power limit.
double floor_time(const GemmTimes& t) {
  if (t.roof.memory_us <= 0) return 0;
  return std::max(t.roof.memory_us, t.roof.sustained_us);
}
// A product that was measured beside int4 weights with exact sums: these weights with others, or
// FP8 ones.
const char* word_of(const GemmTimes& t) {
  return t.problem.packed ? name(t.problem.packed->sums) : "fp8";
}
const GemmTimes* beside(const GemmTimes& t, std::string_view word) {
  const auto found = std::find_if(t.beside.begin(), t.beside.end(),
                                  [word](const GemmTimes& x) { return word_of(x) == word; });
  return found == t.beside.end() ? nullptr : &*found;
}
double fastest_beside(const GemmTimes& t, std::string_view word) {
  const GemmTimes* const found = beside(t, word);
  return found == nullptr ? 0 : found->config_time.median;
}
double chained_time(const GemmTimes& t) {
  return fastest_beside(t, "chained");
}
double folded_time(const GemmTimes& t) {
  return fastest_beside(t, "folded");
}
double table_time(const GemmTimes& t) {
  return fastest_beside(t, "table");
}
double fp8_time(const GemmTimes& t) {
  return fastest_beside(t, "fp8");
}
double fp8_plan_time(const GemmTimes& t) {
  const GemmTimes* const found = beside(t, "fp8");
  return found == nullptr ? 0 : found->ours.median;
}

// A speed: another's time over ours, so that more than 1 is faster than it; for the roof,
// and of the plan over the fastest configuration, what is reached of it.
struct Speed {
  const char* name;
  const char* key;
  Time theirs;
  Time mine;
};

std::optional<double> ratio(const GemmTimes& t, Time theirs, Time mine) {
  if (theirs(t) <= 0 || mine(t) <= 0) return std::nullopt;
  return theirs(t) / mine(t);
}

const char* bound_name(const GemmTimes& t) {
  return t.roof.bound() == Bound::memory ? "HBM" : "tensor cores";
}

double tflops(const GemmTimes& t) {
  return bench::tflops(t.roof.operations, t.ours);
}

// What a column shows of a row.
using Cell = std::string (*)(const GemmTimes&);
template <Time time>
std::string time_cell(const GemmTimes& t) {
  return time(t) > 0 ? format("%.2f", time(t)) : "-";
}
template <Time theirs, Time mine>
std::string ratio_cell(const GemmTimes& t) {
  const auto value = ratio(t, theirs, mine);
  return value ? format("%.3f", *value) : "-";
}
template <Time mine>
std::string share_cell(const GemmTimes& t) {
  const auto value = ratio(t, roof_time, mine);
  return value ? format("%.0f%%", 100 * *value) : "-";
}
// How often the floor goes into a time.
template <Time mine>
std::string floors_cell(const GemmTimes& t) {
  const auto value = ratio(t, mine, floor_time);
  return value ? format("%.2f", *value) : "-";
}
std::string bound_share(const GemmTimes& t) {
  return share_cell<our_time>(t) + " of " + bound_name(t);
}
std::string speed_of_ours(const GemmTimes& t) {
  return format("(%.0f)", tflops(t));
}
std::string time_of_ours(const GemmTimes& t) {
  return time_cell<our_time>(t) + " " + speed_of_ours(t);
}
// Half the distance of the quartiles.
std::string spread(const GemmTimes& t) {
  const bench::Timing& x = t.ours;
  return x.median > 0 ? format("%.1f%%", 50 * (x.high - x.low) / x.median) : "-";
}
std::string config_name(const GemmTimes& t) {
  return t.config;
}

// What was counted of ours and of theirs, in millions.
template <double bench::Counters::*what>
std::string counter_cell(const GemmTimes& t) {
  const auto millions = [](const std::optional<bench::Counters>& c) {
    return c ? format("%.2f", *c.*what * 1e-6) : "-";
  };
  return millions(t.counted) + "/" + millions(t.first_counted);
}

// A column of the terminal's table, of the documents', or of both. One that is wider than what it
// holds stands apart from those before it.
struct Column {
  const char* head;  // empty: not on terminals
  int width;
  const char* document;  // empty: not in documents
  Cell cell;
};

// What the reports of products with and without groups do not share.
struct Form {
  const char* format;
  const char* shapes;  // the head of their column in documents
  int shape_width;     // on terminals
  const char* legend;
  std::vector<Column> columns;
  std::vector<Speed> speeds;
};

// The columns of ours, and those of a kind of bench behind them.
std::vector<Column> columns(const std::vector<Column>& own) {
  std::vector<Column> all = {{"ours", 9, "", time_cell<our_time>},
                             {"(TFLOP/s)", 9, "", speed_of_ours},
                             {"", 0, "ours us (TFLOP/s)", time_of_ours},
                             {"spread", 6, "spread", spread},
                             {"predict", 9, "predicted us", time_cell<predicted_time>},
                             {"", 0, "best config", config_name},
                             {"config", 10, "us", time_cell<config_time>}};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

const Form& dense_form() {
  static const Form dense = {
      "warpwright-bench-1",
      "M x N x K",
      18,
      "M x N x K: microseconds (TFLOP/s), the spread of the quartiles, what predict says of "
      "the plan, the\nfastest of our configurations, cuBLASLt's first pick and best offer, our "
      "speed "
      "over theirs, share of\nthe roof\n",
      columns({{"lt first", 9, "lt first", time_cell<first_time>},
               {"lt best", 9, "lt best", time_cell<best_time>},
               {"/first", 7, "/first", ratio_cell<first_time, our_time>},
               {"/best", 6, "/best", ratio_cell<best_time, our_time>},
               {"c/best", 6, "config /best", ratio_cell<best_time, config_time>},
               {"roof", 5, "", share_cell<our_time>},
               {"", 0, "roof", bound_share}}),
      {{"plan over first pick", "plan_over_first", first_time, our_time},
       {"plan over best", "plan_over_best", best_time, our_time},
       {"best config over best", "config_over_best", best_time, config_time}}};
  return dense;
}

const Form& groups_form() {
  static const Form groups = {
      "warpwright-bench-grouped-1",
      "groups x tokens, N, K",
      29,
      "groups x tokens, N, K: microseconds (TFLOP/s), the spread of the quartiles, what predict "
      "says of\nthe plan, the fastest of our configurations, a loop of cuBLASLt calls; our speeds "
      "over "
      "the loop's,\nof the plan and of the fastest; HBM's floor and the share of the roof, of "
      "both\n",
      columns({{"loop", 9, "loop of cuBLASLt", time_cell<first_time>},
               {"/loop", 7, "/loop", ratio_cell<first_time, our_time>},
               {"c/loop", 6, "config /loop", ratio_cell<first_time, config_time>},
               {"HBM us", 9, "HBM floor us", time_cell<memory_time>},
               {"roof", 5, "", share_cell<our_time>},
               {"", 0, "roof", bound_share},
               {"c", 5, "config of roof", share_cell<config_time>}}),
      {{"plan over the loop", "plan_over_loop", first_time, our_time},
       {"best config over the loop", "config_over_loop", first_time, config_time},
       {"plan over best config", "plan_over_config", config_time, our_time},
       {"plan over the roof", "plan_over_roof", roof_time, our_time},
       {"best config over the roof", "config_over_roof", roof_time, config_time}}};
  return groups;
}

const Form& w4a8_form() {
  static const Form w4a8 = {
      "warpwright-bench-w4a8-1",
      "groups x tokens or M x N x K",
      24,
      "exact sums: microseconds (TFLOP/s) of the plan, the spread of its quartiles, what predict "
      "says of\nit, the fastest of our configurations; the fastest with chained and folded sums, "
      "and by "
      "tables; our\nFP8 kernel with block scales, its plan and its fastest; its plan's time over "
      "ours, "
      "its fastest's over\nour fastest; the floor (HBM's, or the tensor cores' at the power limit) "
      "and how "
      "often it\ngoes into our fastest times\n",
      columns({{"chained", 9, "chained", time_cell<chained_time>},
               {"folded", 9, "folded", time_cell<folded_time>},
               {"table", 9, "table", time_cell<table_time>},
               {"fp8", 9, "fp8 plan", time_cell<fp8_plan_time>},
               {"fp8 c", 9, "fp8", time_cell<fp8_time>},
               {"/fp8", 6, "fp8 over plans", ratio_cell<fp8_plan_time, our_time>},
               {"c/fp8", 6, "fp8 over exact", ratio_cell<fp8_time, config_time>},
               {"ch/fp8", 6, "fp8 over chained", ratio_cell<fp8_time, chained_time>},
               {"floor", 8, "floor us", time_cell<floor_time>},
               {"x", 5, "exact over floor", floors_cell<config_time>},
               {"ch x", 5, "chained over floor", floors_cell<chained_time>}}),
      {{"plan over FP8's plan", "plan_over_fp8", fp8_plan_time, our_time},
       {"best exact over best FP8", "exact_over_fp8", fp8_time, config_time},
       {"best chained over best FP8", "chained_over_fp8", fp8_time, chained_time},
       {"best folded over best FP8", "folded_over_fp8", fp8_time, folded_time},
       {"best table over best FP8", "table_over_fp8", fp8_time, table_time},
       {"plan over best config", "plan_over_config", config_time, our_time},
       {"best exact over the floor", "exact_over_floor", floor_time, config_time}}};
  return w4a8;
}

const Form& form_of(BenchKind kind) {
  return kind == BenchKind::dense     ? dense_form()
         : kind == BenchKind::grouped ? groups_form()
                                      : w4a8_form();
}

std::vector<Column> columns_of(const BenchRun& run) {
  std::vector<Column> columns = form_of(run.kind).columns;
  if (run.counted) {
    using bench::Counters;
    columns.insert(
        columns.end(),
        {{"M instr", 15, "M instructions, ours/lt", counter_cell<&Counters::instructions>},
         {"M sectors", 15, "M L2 sectors read, ours/lt", counter_cell<&Counters::sectors>},
         {"DRAM MB", 17, "DRAM MB, ours/lt", counter_cell<&Counters::dram_bytes>}});
  }
  return columns;
}

// How many groups have tokens, and how many the longest has.
std::int64_t groups_hit(const BenchRow& row) {
  return static_cast<std::int64_t>(row.lengths.size()) -
         std::count(row.lengths.begin(), row.lengths.end(), 0);
}
std::int64_t longest_group(const BenchRow& row) {
  const auto most = std::max_element(row.lengths.begin(), row.lengths.end());
  return most == row.lengths.end() ? 0 : *most;
}

// What came of a draw: "127 hit, longest 14, seed 1"; empty for other lengths.
std::string draw_text(const BenchRow& row) {
  const auto seed = row.shape.drawn_by();
  if (!seed || row.lengths.empty()) return {};
  return format("%lld hit, longest %lld, seed %llu", static_cast<long long>(groups_hit(row)),
                static_cast<long long>(longest_group(row)), static_cast<unsigned long long>(*seed));
}

// One kind of speed over all rows that have it.
struct Summary {
  std::optional<double> mean;  // geometric
  int rows = 0;
  double worst = 0;
  std::string worst_shape;
};

Summary summarise(const BenchSection& section, const Speed& speed) {
  Summary summary;
  double logarithms = 0;
  for (const BenchRow& row : section.rows) {
    const auto value = row.times ? ratio(*row.times, speed.theirs, speed.mine) : std::nullopt;
    if (!value) continue;
    if (summary.rows == 0 || *value < summary.worst) {
      summary.worst = *value;
      summary.worst_shape = shape_name(row.shape);
    }
    logarithms += std::log(*value);
    ++summary.rows;
  }
  if (summary.rows > 0) summary.mean = std::exp(logarithms / summary.rows);
  return summary;
}

// How far predictions were off; empty where there are none.
std::string prediction_summary(const BenchSection& section) {
  double all = 0;
  double worst = 0;
  const BenchRow* of = nullptr;
  int rows = 0;
  for (const BenchRow& row : section.rows) {
    const auto more = row.times ? ratio(*row.times, predicted_time, our_time) : std::nullopt;
    if (!more) continue;
    const double off = *more - 1;
    all += std::abs(off);
    ++rows;
    if (of == nullptr || std::abs(off) > std::abs(worst)) {
      worst = off;
      of = &row;
    }
  }
  if (rows == 0) return {};
  return format("predictions: mean absolute error %.1f%% of %d, worst %+.1f%% (%s)",
                100 * all / rows, rows, 100 * worst, shape_name(of->shape).c_str());
}

// What launches take of the host, as the median of the rows; empty where nothing was measured.
std::string host_line(const BenchSection& section) {
  std::vector<double> launch;
  std::vector<double> empty;
  for (const BenchRow& row : section.rows) {
    if (!row.times || row.times->host.ours.median <= 0) continue;
    launch.push_back(row.times->host.ours.median);
    empty.push_back(row.times->host.empty.median);
  }
  if (launch.empty()) return {};
  const auto median = [](std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  return format(
      "host: a launch takes %.2f us, that of an empty kernel %.2f us (medians of %d rows)",
      median(launch), median(empty), static_cast<int>(launch.size()));
}

// Where the fastest exact time over its floor rises most from one row to the next, which has twice
// the tokens; empty without such rows.
std::string steepest_rise(const BenchSection& section) {
  const auto tokens = [](const BenchRow& row) {
    std::int64_t all = row.shape.m;
    for (const std::int64_t length : row.lengths) all += length;
    return all;
  };
  double most = 0;
  std::string where;
  for (std::size_t i = 1; i < section.rows.size(); ++i) {
    const BenchRow& from = section.rows[i - 1];
    const BenchRow& to = section.rows[i];
    const bool follows = from.shape.groups == to.shape.groups && from.shape.n == to.shape.n &&
                         from.shape.k == to.shape.k && tokens(to) == 2 * tokens(from);
    if (!follows || !from.times || !to.times) continue;
    const auto before = ratio(*from.times, config_time, floor_time);
    const auto after = ratio(*to.times, config_time, floor_time);
    if (!before || !after || *after / *before <= most) continue;
    most = *after / *before;
    where = shape_name(from.shape) + " to " + shape_name(to.shape);
  }
  return where.empty() ? where
                       : format("best exact over the floor rises by at most %.2f, from %s", most,
                                where.c_str());
}

// The lines below the rows: speeds, the host, and why rows lack counters or a baseline, each reason
// once.
std::vector<std::string> summary_lines(const BenchRun& run, const BenchSection& section) {
  std::vector<std::string> lines;
  for (const Speed& speed : form_of(run.kind).speeds) {
    const Summary s = summarise(section, speed);
    lines.push_back(speed.name + (s.mean ? format(": geomean %.3f of %d, worst %.3f (%s)", *s.mean,
                                                  s.rows, s.worst, s.worst_shape.c_str())
                                         : std::string(": no row has it")));
  }
  if (const std::string off = prediction_summary(section); !off.empty()) lines.push_back(off);
  if (const std::string host = host_line(section); !host.empty()) lines.push_back(host);
  if (!run.uncounted.empty()) lines.push_back("no counters: " + run.uncounted);
  if (run.kind == BenchKind::w4a8) {
    if (const std::string rise = steepest_rise(section); !rise.empty()) lines.push_back(rise);
    return lines;
  }
  for (const BenchRow& row : section.rows) {
    if (!row.times || row.times->first) continue;
    const std::string line =
        (run.kind == BenchKind::grouped ? "no loop for " + shape_name(row.shape)
                                        : std::string("no baseline")) +
        ": " + row.times->baseline;
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  }
  return lines;
}

// What was measured of one product of ours.
void add_product(ordered_json& j, const GemmTimes& t) {
  j["plan"] = t.plan;
  j["ours"] = timing_json(t.ours);
  j["tflops"] = tflops(t);
  j["predicted_us"] = t.predicted_us > 0 ? ordered_json(t.predicted_us) : ordered_json();
  j["config"] = t.config;
  j["config_time"] = timing_json(t.config_time);
  j["configs"] = t.configs;
  for (const auto& tried : t.tried) {
    j["tried"].push_back({{"config", tried.name}, {"us", tried.us}});
  }
}

ordered_json counters_json(const std::optional<bench::Counters>& c) {
  if (!c) return nullptr;
  return {{"instructions", c->instructions},
          {"l2_read_sectors", c->sectors},
          {"dram_bytes", c->dram_bytes}};
}

// What it was timed beside.
void add_others(ordered_json& j, const BenchRun& run, const GemmTimes& t, bool grouped) {
  if (run.kind == BenchKind::w4a8) {
    j["floor_us"] = floor_time(t);
    j["beside"] = ordered_json::object();
    for (const GemmTimes& other : t.beside) {
      ordered_json& to = j["beside"][word_of(other)];
      add_product(to, other);
      to["relative_error"] = other.relative_error;
    }
    return;
  }
  j["baseline"] = t.baseline;
  j[grouped ? "loop" : "first"] = timing_json(t.first);
  if (grouped) {
    j["calls"] = t.calls;
  } else {
    j["best"] = timing_json(t.best);
    j["offered"] = t.offered;
    j["best_offer"] = t.first ? t.best_index + 1 : 0;
  }
}

ordered_json row_json(const BenchRun& run, const BenchRow& row) {
  const Shape& s = row.shape;
  const bool grouped = s.groups > 0;
  ordered_json j = {{"m", s.m}, {"n", s.n}, {"k", s.k}};
  if (grouped) {
    j = {{"groups", s.groups}, {"tokens", s.tokens}, {"n", s.n}, {"k", s.k}};
    j["lengths"] = row.lengths;
    j["hit"] = groups_hit(row);
    j["longest"] = longest_group(row);
    if (const auto seed = s.drawn_by()) j["lengths_seed"] = *seed;
  }
  if (!row.times) {
    j["refusal"] = row.refusal;
    return j;
  }
  const GemmTimes& t = *row.times;
  const auto number = [](const std::optional<double>& x) {
    return x ? ordered_json(*x) : ordered_json(nullptr);
  };
  add_product(j, t);
  if (!grouped) {
    j["host"] = timing_json(t.host.ours);
    j["host_empty"] = timing_json(t.host.empty);
  }
  add_others(j, run, t, grouped);
  for (const Speed& x : form_of(run.kind).speeds) j[x.key] = number(ratio(t, x.theirs, x.mine));
  if (grouped) {
    j["bytes"] = t.roof.bytes;
    j["memory_us"] = t.roof.memory_us;
    j["compute_us"] = t.roof.compute_us;
  } else {
    j["roof_us"] = t.roof.us();
    j["roof_share"] = number(ratio(t, roof_time, our_time));
  }
  j["bound"] = bound_name(t);
  j["checked_against"] = t.checked_against;
  j["relative_error"] = t.relative_error;
  j["cold"] = t.cold;
  j["rounds"] = t.rounds;
  j["launches"] = t.launches;
  j["buffer_sets"] = t.buffer_sets;
  if (run.counted) {
    j["counters"] = counters_json(t.counted);
    j[grouped ? "loop_counters" : "first_counters"] = counters_json(t.first_counted);
  }
  return j;
}

// Adds a section's rows and their summary to what it is to be told in.
void add_rows(ordered_json& j, const BenchRun& run, const BenchSection& section) {
  j["rows"] = ordered_json::array();
  for (const BenchRow& row : section.rows) j["rows"].push_back(row_json(run, row));
  j["summary"] = ordered_json::object();
  for (const Speed& speed : form_of(run.kind).speeds) {
    const Summary s = summarise(section, speed);
    ordered_json& to = j["summary"][speed.key];
    to = {{"geomean", nullptr}, {"rows", s.rows}, {"worst", nullptr}, {"worst_shape", nullptr}};
    if (!s.mean) continue;
    to["geomean"] = *s.mean;
    to["worst"] = s.worst;
    to["worst_shape"] = s.worst_shape;
  }
}

}  // namespace

std::string provenance(const BenchOrigin& run) {
  return run.date + ", " + run.gpu + ", driver " + run.driver + ", CUDA " + run.cuda +
         (run.cublaslt.empty() ? ", no cuBLASLt" : ", cuBLASLt " + run.cublaslt) + ", commit " +
         run.commit;
}

std::string table_title(const BenchRun& run) {
  return (run.kind == BenchKind::grouped ? "" : run.sections.front().types + "; ") +
         provenance(run) + "\n" + form_of(run.kind).legend;
}

std::string table_heading(const BenchRun& run, const BenchSection& section) {
  const Form& form = form_of(run.kind);
  std::string text = run.kind == BenchKind::grouped ? "\n" + section.types + "\n" : "";
  text += format("%-*s", form.shape_width, "shape");
  for (const Column& c : columns_of(run)) {
    if (c.width > 0) text += format(" %*s", c.width, c.head);
  }
  return text + "  plan; config\n";
}

std::string table_row(const BenchRun& run, const BenchRow& row) {
  const Form& form = form_of(run.kind);
  std::string text = format("%-*s", form.shape_width, shape_name(row.shape).c_str());
  if (!row.times) return text + " " + row.refusal + "\n";
  const GemmTimes& t = *row.times;
  for (const Column& c : columns_of(run)) {
    if (c.width > 0) text += format(" %*s", c.width, c.cell(t).c_str());
  }
  const std::string draw = draw_text(row);
  return text + "  " + t.plan + (t.config == t.plan ? "" : "; " + t.config) +
         (t.cold ? "" : "; not cold") + (draw.empty() ? "" : "; " + draw) + "\n";
}

std::string table_summary(const BenchRun& run, const BenchSection& section) {
  std::string text;
  for (const std::string& line : summary_lines(run, section)) text += line + "\n";
  return text;
}

std::string markdown(const BenchRun& run) {
  const Form& form = form_of(run.kind);
  std::vector<Column> columns = columns_of(run);
  columns.erase(std::remove_if(columns.begin(), columns.end(),
                               [](const Column& c) { return *c.document == '\0'; }),
                columns.end());
  const bool grouped = run.kind == BenchKind::grouped;
  std::string text = (grouped ? "Grouped"
                              : std::string(run.kind == BenchKind::dense ? "Dense " : "") +
                                    run.sections.front().types) +
                     "; " + provenance(run) + ". Made by `" + run.command + "`" +
                     (run.dependent ? ", dependent launch on our side" : "") + ".\n";
  for (const BenchSection& section : run.sections) {
    if (grouped) text += "\n" + section.types + "\n";
    text += std::string("\n| ") + form.shapes + " |";
    for (const Column& c : columns) text += std::string(" ") + c.document + " |";
    text += "\n|";
    for (std::size_t i = 0; i <= columns.size(); ++i) text += " --- |";
    text += "\n";
    for (const BenchRow& row : section.rows) {
      const std::string draw = draw_text(row);
      text += "| " + shape_name(row.shape) + (draw.empty() ? "" : " (" + draw + ")") + " |";
      if (!row.times) text += " " + row.refusal + " |";
      for (std::size_t i = row.times ? 0 : 1; i < columns.size(); ++i) {
        text += (row.times ? " " + columns[i].cell(*row.times) : "") + " |";
      }
      text += "\n";
    }
    text += "\n";
    for (const std::string& line : summary_lines(run, section)) text += "- " + line + "\n";
  }
  return text;
}

std::string json(const BenchRun& run) {
  ordered_json j = {{"format", form_of(run.kind).format},
                    {"date", run.date},
                    {"gpu", run.gpu},
                    {"driver", run.driver},
                    {"cuda", run.cuda},
                    {"cublaslt", run.cublaslt},
                    {"commit", run.commit},
                    {"command", run.command}};
  const bool grouped = run.kind == BenchKind::grouped;
  if (!grouped) j["types"] = run.sections.front().types;
  j["seed"] = run.seed;
  j["dependent"] = run.dependent;
  if (!run.uncounted.empty()) j["counters_left_out"] = run.uncounted;
  if (!grouped) {
    add_rows(j, run, run.sections.front());
    return j.dump(1) + "\n";
  }
  j["sections"] = ordered_json::array();
  for (const BenchSection& section : run.sections) {
    j["sections"].push_back({{"dtype", section.word}, {"types", section.types}});
    add_rows(j["sections"].back(), run, section);
  }
  return j.dump(1) + "\n";
}

ordered_json timing_json(const std::optional<bench::Timing>& t) {
  if (!t) return nullptr;
  return {{"median_us", t->median}, {"low_us", t->low}, {"high_us", t->high}};
}

}  // namespace warpwright::cli
