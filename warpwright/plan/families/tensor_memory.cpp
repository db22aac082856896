#include "warpwright/plan/families/tensor_memory.h"

#include "warpwright/atom/umma_scaled.h"
#include "warpwright/facts/format.h"
#include "warpwright/plan/families/blackwell_scales.h"
#include "warpwright/plan/families/kernels.h"

namespace warpwright {

using kernel::BlackwellConfig;

TmemMap tensor_memory_of(const BlackwellConfig& c, const BlackwellConfig& launched) {
  TmemMap map;
  map.mma = kernel::mma_atom(launched);
  map.allocated = kernel::tmem_columns(c);
  map.shared_columns = kernel::shared_columns(c);
  map.has_ones_a = has_ones(c, true);
  map.has_ones_b = has_ones(c, false);
  map.stages_together = kernel::stages_together(c);
  const int columns = kernel::half_columns(c);
  for (int i = 0; i < c.accumulators; ++i) {
    for (int half = 0; half < kernel::halves(c); ++half) {
      const char* const of = kernel::halves(c) == 1 ? "" : half == 0 ? " of gates" : " of ups";
      std::string what = format("accumulator %d%s, %d rows of f32", i, of, kernel::half_rows(c));
      if (c.blockwise) what += " of a k_tile";
      if (i == 1 && overlaps(c)) {
        what += format("; both have %d of these columns, which the epilogue empties first",
                       map.shared_columns);
      }
      map.parts.push_back({TmemPart::Kind::accumulator, i,
                           i * kernel::accumulator_step(c) + half * columns, columns, what});
    }
  }
  for (int i = 0; i < kernel::scale_buffers(c); ++i) {
    const int first = kernel::first_scale_column(c) + i * kernel::scale_columns(c);
    const std::string what = c.long_k ? "three stages" : "stage";
    const std::string which = kernel::scale_buffers(c) == 1
                                  ? "each " + what
                                  : format("every other %s, %d", what.c_str(), i);
    const int atoms = map.stages_together * kernel::scale_atoms(launched);
    const int of_a = kernel::halves(c) * kernel::sfa_columns(c);
    const auto text = [&](const char* of, bool ones, int count, const char* lines) {
      return format("scales of %s of %s: ", of, which.c_str()) +
             (ones ? "1, copied once" : format("%d of 128 %s x 4", count, lines));
    };
    map.parts.push_back({TmemPart::Kind::scales_a, i, first,
                         kernel::halves(c) * kernel::sfa_columns(launched),
                         text("A", map.has_ones_a, kernel::halves(c) * atoms, "rows")});
    map.parts.push_back(
        {TmemPart::Kind::scales_b, i, first + of_a, kernel::sfb_columns(launched),
         text("B", map.has_ones_b, atoms * kernel::scale_rows_of_b(c), "columns of D")});
  }
  for (int i = 0; is_scaled(c) && i < kernel::k_blocks(c); ++i) {
    const atom::ScaleStep step = atom::scale_step(map.mma, i);
    map.steps.push_back({i * map.mma.k, map.mma.k, step.id, step.column_a, step.column_b});
  }
  return map;
}

std::optional<TmemMap> tensor_memory_of(std::string_view kernel) {
  for (const Rows which : {Rows::built, Rows::missing}) {
    for (const KernelRow<BlackwellConfig>& row : kernels_of<BlackwellConfig>(which)) {
      if (row.name == kernel) return tensor_memory_of(row.config, row.config);
    }
  }
  return std::nullopt;
}

}  // namespace warpwright
