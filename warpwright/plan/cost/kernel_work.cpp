#include "warpwright/plan/cost/kernel_work.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <unordered_map>

#include "warpwright/plan/cost/kept_text.h"
#include "warpwright/plan/cost/kernel_work_texts.h"

namespace warpwright {
namespace {

std::string text_of(const CostCounts& counts) {
  std::string all;
  for (const auto& [key, count] : counts) {
    char number[32];
    std::snprintf(number, sizeof number, " %.5g", count);
    all += (all.empty() ? "" : " ") + cost_name(key) + number;
  }
  return all;
}

CostCounts counts_of(std::string_view text) {
  CostCounts counts;
  while (!text.empty()) {
    const CostKey key = cost_key(cut(text, ' '));
    counts.emplace_back(key, std::stod(std::string(cut(text, ' '))));
  }
  return counts;
}

// Where each kernel's lines lie in the texts of kernel_work.tar.xz.
using Places = std::unordered_map<std::string_view, std::string_view>;
Places places() {
  Places all;
  for (std::string_view text : kernel_work_texts) {
    std::string_view name;
    const char* begin = nullptr;
    while (!text.empty()) {
      const std::string_view line = cut(text, '\n');
      if (line.starts_with(' ')) {
        all[name] = {begin, static_cast<std::size_t>(line.data() + line.size() - begin)};
      } else {
        name = line;
        begin = line.data() + line.size() + 1;
      }
    }
  }
  return all;
}

}  // namespace

// A tile takes the more for a k_tile the more it has: the less of its epilogue is hidden by others'
// loads. Between the two depths that were counted a straight line is no less than it is.
TilePhases phases_of(const KernelWork& work, const Costs& costs, double k_tiles) {
  const auto longest = [&](const std::vector<CostCounts>& ways) {
    double most = 0;
    for (const CostCounts& way : ways) most = std::max(most, costs.clocks(way));
    return most;
  };
  const double shallow = longest(work.shallow_tile);
  const double deep = std::max(shallow, longest(work.deep_tile));
  const double slope = (deep - shallow) / (work.deep - work.shallow);
  TilePhases phases;
  phases.k_tile = std::max(longest(work.k_tile), slope);
  const double tile = k_tiles > work.deep ? deep + (k_tiles - work.deep) * phases.k_tile
                                          : shallow + (k_tiles - work.shallow) * slope;
  phases.between = tile - k_tiles * phases.k_tile;
  phases.first = std::max(0.0, longest(work.run) - work.tiles * shallow);
  return phases;
}

std::string work_text(std::string_view kernel, const KernelWork& work) {
  std::string all = std::string(kernel) + "\n";
  const auto line = [&](const std::string& part, const CostCounts& counts) {
    all += " " + part + "\t" + text_of(counts) + "\n";
  };
  const auto lines = [&](const std::string& part, const std::vector<CostCounts>& ways) {
    for (const CostCounts& way : ways) line(part, way);
  };
  char run[64];
  std::snprintf(run, sizeof run, "run %d %g %g", work.tiles, work.shallow, work.deep);
  lines(run, work.run);
  lines("k_tile", work.k_tile);
  lines("shallow tile", work.shallow_tile);
  lines("deep tile", work.deep_tile);
  line("all k_tile", work.all_of_k_tile);
  line("all tile", work.all_of_tile);
  return all;
}

KernelWork parse_work(std::string_view lines) {
  KernelWork work;
  while (!lines.empty()) {
    std::string_view line = cut(lines, '\n');
    if (!line.starts_with(' ')) continue;
    line.remove_prefix(1);
    const std::string part(cut(line, '\t'));
    CostCounts counts = counts_of(line);
    if (std::sscanf(part.c_str(), "run %d %lf %lf", &work.tiles, &work.shallow, &work.deep) == 3) {
      work.run.push_back(std::move(counts));
    } else if (part == "k_tile") {
      work.k_tile.push_back(std::move(counts));
    } else if (part == "shallow tile") {
      work.shallow_tile.push_back(std::move(counts));
    } else if (part == "deep tile") {
      work.deep_tile.push_back(std::move(counts));
    } else if (part == "all k_tile") {
      work.all_of_k_tile = std::move(counts);
    } else if (part == "all tile") {
      work.all_of_tile = std::move(counts);
    } else {
      throw std::invalid_argument("no part of a kernel's work is called " + part);
    }
  }
  return work;
}

const KernelWork* kept_work(std::string_view kernel) {
  static const Places where = places();
  static std::mutex mutex;
  static std::unordered_map<std::string_view, std::unique_ptr<const KernelWork>> read;
  const auto place = where.find(kernel);
  if (place == where.end()) return nullptr;
  const std::lock_guard lock(mutex);
  std::unique_ptr<const KernelWork>& work = read[place->first];
  if (!work) work = std::make_unique<const KernelWork>(parse_work(place->second));
  return work.get();
}

}  // namespace warpwright
