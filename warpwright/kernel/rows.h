// Tables of kernels as lists of types, and which of their rows a build compiles.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace warpwright::kernel {

/// A table: a type a row, each with a `name`, a `config`, and `common`, whether every usual build
/// has it.
template <class... Tags>
struct Rows {
  static constexpr std::size_t size = sizeof...(Tags);
};
/// The same behind a leading type that is none of them, which lets a macro write ", row" for each.
template <class Head, class... Tags>
struct RowsAfter : Rows<Tags...> {};
struct Head;

/// Is the row in a build for `kernels`: "common", "all", or names with commas between them?
constexpr bool is_built(std::string_view name, bool common, std::string_view kernels) {
  if (kernels == "all") return true;
  if (kernels == "common") return common;
  while (!kernels.empty()) {
    const std::size_t comma = kernels.find(',');
    if (kernels.substr(0, comma) == name) return true;
    kernels = comma == std::string_view::npos ? std::string_view{} : kernels.substr(comma + 1);
  }
  return false;
}

/// Which of `chunks` source files compiles each row of a build for `kernels`; -1: none does. They
/// are dealt out one by one, so that the files take about as long.
template <class... Tags>
constexpr std::array<int, sizeof...(Tags)> dealt(Rows<Tags...> /*rows*/, std::string_view kernels,
                                                 int chunks) {
  std::array<int, sizeof...(Tags)> chunk{};
  std::size_t row = 0;
  int built = 0;
  ((chunk[row++] = is_built(Tags::name, Tags::common, kernels) ? built++ % chunks : -1), ...);
  return chunk;
}

template <bool is_here, class Tag, class Visit>
constexpr void visit_if(const Visit& visit) {
  if constexpr (is_here) visit.template operator()<Tag>();
}

/// Calls visit.operator()<Tag>() for each row that the chunk compiles: a type with the build's
/// `kernels`, how many `chunks` it has, and which of them this is, its `index`.
template <class Chunk, class Visit, class... Tags>
constexpr void visit_rows(Rows<Tags...> /*rows*/, const Visit& visit) {
  constexpr auto chunk_of = dealt(Rows<Tags...>{}, Chunk::kernels, Chunk::chunks);
  [&]<std::size_t... row>(std::index_sequence<row...> /*rows*/) {
    (visit_if<chunk_of[row] == Chunk::index, Tags>(visit), ...);
  }
  (std::index_sequence_for<Tags...>{});
}

// The tables: kernel/hopper/table.h, hopper/grouped_table.h and blackwell/table.h.
struct HopperRows;
struct GroupedRows;
struct BlackwellRows;

}  // namespace warpwright::kernel
