#include "cli/files/ncu_log.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "cli/files/printable.h"

namespace warpwright::cli {
namespace {

// The cells of a line, all of which may be quoted; a quote inside of one is written twice.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && line.substr(i + 1).starts_with('"')) {
      cells.back() += c;
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

template <class Take>
void for_each_line(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// "1,234,567" or "12.5"; nothing for "n/a".
std::optional<double> number_of(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  return as_number<double>(text);
}

// Where a metric of kNcuMetrics goes, and its base unit; null for another's name.
struct Metric {
  const char* name;
  const char* unit;
  double bench::Counters::*to;
};
const Metric* metric_of(const std::string& name) {
  static constexpr Metric metrics[] = {
      {"smsp__inst_executed.sum", "inst", &bench::Counters::instructions},
      {"lts__t_sectors_op_read.sum", "sector", &bench::Counters::sectors},
      {"dram__bytes_read.sum", "byte", &bench::Counters::dram_bytes},
      {"dram__bytes_write.sum", "byte", &bench::Counters::dram_bytes},
  };
  const auto* const found = std::find_if(std::begin(metrics), std::end(metrics),
                                         [&](const Metric& m) { return name == m.name; });
  return found == std::end(metrics) ? nullptr : found;
}

class Reader {
 public:
  void read(std::string_view line) {
    constexpr std::string_view error = "==ERROR== ";
    if (line.starts_with(error)) {
      complain(std::string(line.substr(error.size())));
    } else if (line.starts_with("\"ID\"")) {
      read_head(cells_of(line));
    } else if (line.starts_with('"')) {
      read_row(cells_of(line));
    }
  }

  NcuLog log;

 private:
  enum Cell { kernel, grid, name, unit, value, count };

  void complain(const std::string& what) {
    if (log.error.empty()) log.error = what;
  }

  void read_head(const std::vector<std::string>& cells) {
    static constexpr const char* heads[count] = {"Kernel Name", "Grid Size", "Metric Name",
                                                 "Metric Unit", "Metric Value"};
    for (int i = 0; i < count; ++i) {
      const auto at = std::find(cells.begin(), cells.end(), heads[i]);
      if (at == cells.end()) complain(std::string("its table has no column ") + heads[i]);
      columns_[i] = static_cast<std::size_t>(at - cells.begin());
    }
  }

  void read_row(const std::vector<std::string>& cells) {
    for (const std::size_t column : columns_) {
      if (column >= cells.size()) return;
    }
    if (cells[columns_[kernel]].find(bench::kMarkKernel) != std::string::npos) {
      const std::string& size = cells[columns_[grid]];  // "(3, 1, 1)"
      mark_ = 0;
      std::from_chars(size.data() + 1, size.data() + size.size(), mark_);
      return;
    }
    const Metric* metric = metric_of(cells[columns_[name]]);
    if (metric == nullptr || mark_ == 0) return;
    const auto number = number_of(cells[columns_[value]]);
    if (!number || cells[columns_[unit]] != metric->unit) {
      complain(std::string(metric->name) + " is " + cells[columns_[value]] + " " +
               cells[columns_[unit]] + ", which is no number of " + metric->unit + "s");
      return;
    }
    log.counts[mark_].*(metric->to) += *number;
  }

  std::size_t columns_[count] = {};
  int mark_ = 0;
};

}  // namespace

NcuLog read_ncu_log(std::string_view text) {
  Reader reader;
  for_each_line(text, [&](std::string_view line) { reader.read(line); });
  return reader.log;
}

KernelTimes read_kernel_times(std::string_view text) {
  KernelTimes all;
  std::vector<std::string> head;
  const auto cell = [&](const std::vector<std::string>& cells, const char* name) {
    const auto at =
        static_cast<std::size_t>(std::find(head.begin(), head.end(), name) - head.begin());
    return at < cells.size() ? cells[at] : std::string();
  };
  const auto complain = [&](const std::string& what) {
    if (all.error.empty()) all.error = what;
  };
  constexpr std::string_view error = "==ERROR== ";
  for_each_line(text, [&](std::string_view line) {
    if (line.starts_with(error)) return complain(std::string(line.substr(error.size())));
    if (line.starts_with("\"ID\"")) {
      head = cells_of(line);
      return;
    }
    if (head.empty() || !line.starts_with('"')) return;
    const std::vector<std::string> cells = cells_of(line);
    if (cell(cells, "Metric Name") != "gpu__time_duration.sum") return;
    const auto number = number_of(cell(cells, "Metric Value"));
    const std::string unit = cell(cells, "Metric Unit");
    const double factor = unit == "nsecond" || unit == "ns"                          ? 1
                          : unit == "usecond" || unit == "us" || unit == "\xc2\xb5s" ? 1e3
                          : unit == "msecond" || unit == "ms"                        ? 1e6
                          : unit == "second" || unit == "s"                          ? 1e9
                                                                                     : 0;
    if (!number || factor == 0) {
      return complain("gpu__time_duration.sum is " + cell(cells, "Metric Value") + " " + unit +
                      ", which is no time");
    }
    all.times.push_back({cell(cells, "Kernel Name"), *number * factor});
  });
  if (head.empty()) complain("it is no table of ncu --csv");
  if (all.times.empty()) complain("it has no gpu__time_duration.sum");
  return all;
}

}  // namespace warpwright::cli
