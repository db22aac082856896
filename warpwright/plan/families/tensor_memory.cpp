#include "warpwright/plan/families/tensor_memory.h"

#include "warpwright/atom/umma_scaled.h"
#include "warpwright/facts/format.h"
#include "warpwright/plan/families/blackwell_scales.h"
#include "warpwright/plan/families/kernels.h"

namespace warpwright {

using kernel::BlackwellConfig;

TmemMap tensor_memory_of(const BlackwellConfig& c) {
  TmemMap map;
  map.mma = kernel::mma_atom(c);
  map.allocated = kernel::tmem_columns(c);
  map.shared_columns = kernel::shared_columns(c);
  map.plain_tokens = c.plain_tokens;
  map.stages_together = kernel::stages_together(c);
  const int columns = kernel::half_columns(c);
  for (int i = 0; i < c.accumulators; ++i) {
    for (int half = 0; half < kernel::halves(c); ++half) {
      const char* const of = kernel::halves(c) == 1 ? "" : half == 0 ? " of gates" : " of ups";
      std::string what = format("accumulator %d%s, 128 rows of f32", i, of);
      if (c.block_scaled) what += " of a k_tile";
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
    const int atoms = map.stages_together * kernel::scale_atoms(c);
    const int of_a = kernel::halves(c) * kernel::sfa_columns(c);
    map.parts.push_back({TmemPart::Kind::scales_a, i, first, of_a,
                         c.plain_tokens ? "scales of A of " + which + ": 1, copied once"
                                        : format("scales of A of %s: %d of 128 rows x 4",
                                                 which.c_str(), kernel::halves(c) * atoms)});
    map.parts.push_back({TmemPart::Kind::scales_b, i, first + of_a, kernel::sfb_columns(c),
                         format("scales of B of %s: %d of 128 columns of D x 4", which.c_str(),
                                atoms * kernel::scale_rows_of_b(c))});
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
      if (row.name == kernel) return tensor_memory_of(row.config);
    }
  }
  return std::nullopt;
}

}  // namespace warpwright
