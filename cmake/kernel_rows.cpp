// Part of the build: reads the tables of kernels, and writes for each source file of a family which
// rows it compiles, as types with the kernels' names.
//
//   kernel_rows FAMILY KERNELS CHUNKS FOLDER      (FOLDER/FAMILY_0.h and so on)
//
// The rows that KERNELS selects (kernel::is_built) are dealt out one by one, so that the files take
// about as long. A table with a row that cannot be a kernel stops here, and so does a name in
// KERNELS that no table has.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warpwright/kernel/tables.h"
#include "warpwright/numeric/edit_distance.h"

using namespace warpwright::kernel;

#define WW_IS_LEGAL(Family, ...) static_assert(is_legal<table_fault(Family##Rows::rows)>());
WW_FAMILIES(WW_IS_LEGAL)
#undef WW_IS_LEGAL

namespace {

template <class Table>
void write_chunk(const std::string& path, const char* table, std::string_view kernels, int chunk,
                 int chunks) {
  std::ofstream out(path);
  out << "// Made by the build (cmake/kernel_rows.cpp).\n\nnamespace warpwright::kernel {\n\n";
  std::string list;
  int built = 0;
  for (std::size_t i = 0; i < Table::rows.size(); ++i) {
    const auto& row = Table::rows[i];
    if (!is_built(row.name, row.common, kernels) || built++ % chunks != chunk) continue;
    const std::string name(row.name);
    out << "struct " << name << " : Instance<" << table << ", " << i << "> {};\n";
    list += (list.empty() ? "\n    " : ",\n    ") + name;
  }
  out << "\nusing ChunkRows = Instances<" << list << ">;\n\n}  // namespace warpwright::kernel\n";
}

template <class Table>
void add_names(std::vector<std::string_view>& names) {
  for (const auto& row : Table::rows) names.push_back(row.name);
}

// A word of KERNELS that names nothing; empty where all do.
std::string_view unknown_word(std::string_view kernels,
                              const std::vector<std::string_view>& names) {
  std::string_view unknown;
  any_word(kernels, [&](std::string_view word) {
    if (word.empty() || std::find(names.begin(), names.end(), word) != names.end()) return false;
    unknown = word;
    return true;
  });
  return unknown;
}

// The name with the fewest changes; for several the one that begins alike for longest.
std::string_view nearest_to(std::string_view word, const std::vector<std::string_view>& names) {
  const auto distance = [&](std::string_view name) {
    const auto differs = std::mismatch(word.begin(), word.end(), name.begin(), name.end());
    return std::pair(warpwright::numeric::edit_distance(word, name), word.end() - differs.first);
  };
  return *std::min_element(names.begin(), names.end(),
                           [&](auto a, auto b) { return distance(a) < distance(b); });
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) return 2;
  std::vector<std::string_view> names = {"common", "all"};
#define WW_ADD_NAMES(Family, ...) add_names<Family##Rows>(names);
  WW_FAMILIES(WW_ADD_NAMES)
#undef WW_ADD_NAMES
  if (const std::string_view word = unknown_word(arguments[2], names); !word.empty()) {
    const std::string_view nearest = nearest_to(word, names);
    std::fprintf(
        stderr,
        "WARPWRIGHT_KERNELS has \"%.*s\", which no table of kernels has: the nearest is %.*s.\n",
        static_cast<int>(word.size()), word.data(), static_cast<int>(nearest.size()),
        nearest.data());
    return 2;
  }
  const std::string family = arguments[1];
  const int chunks = std::atoi(arguments[3]);
  for (int i = 0; i < chunks; ++i) {
    const std::string path =
        std::string(arguments[4]) + "/" + family + "_" + std::to_string(i) + ".h";
#define WW_WRITE(Family, name, ...) \
  if (family == #name) write_chunk<Family##Rows>(path, #Family "Rows", arguments[2], i, chunks);
    WW_FAMILIES(WW_WRITE)
#undef WW_WRITE
  }
  return 0;
}
