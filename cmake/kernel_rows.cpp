// Part of the build: reads the tables of kernels, and writes for each source file of a family which
// rows it compiles, as types with the kernels' names.
//
//   kernel_rows FAMILY KERNELS CHUNKS FOLDER      (FOLDER/FAMILY_0.h and so on)
//
// The rows that KERNELS selects (kernel::is_built) are dealt out one by one, so that the files take
// about as long. A table with a row that cannot be a kernel stops here.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "warpwright/kernel/tables.h"

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

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) return 2;
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
