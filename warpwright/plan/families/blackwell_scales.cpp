#include "warpwright/plan/families/blackwell_scales.h"

#include "warpwright/facts/block_scales.h"
#include "warpwright/plan/product/micro.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/plan/search/explain_text.h"

namespace warpwright {

using kernel::BlackwellConfig;

namespace {

// The kind that multiplies such operands at its best rate.
atom::UmmaKind scaled_kind(const GemmProblem& p) {
  if (multiplies_bytes(p.a.dtype, p.b.dtype)) return atom::UmmaKind::mxf8f6f4;
  return micro_scale(p, true) == DType::ue4m3 ? atom::UmmaKind::mxf4nvf4 : atom::UmmaKind::mxf4;
}

// Columns from `first` on.
std::string tmem_line(int first, int columns, const std::string& what) {
  return format("  columns %3d .. %3d  %s\n", first, first + columns - 1, what.c_str());
}

}  // namespace

bool blackwell_multiplies(const BlackwellConfig& c, const GemmProblem& p) {
  if (!is_scaled(c)) {
    return p.scaling != Scaling::block_scaled && c.kind == atom::umma_kind(p.a.dtype);
  }
  return p.scaling == Scaling::block_scaled && c.kind == scaled_kind(p) &&
         c.plain_tokens == has_plain_tokens(p);
}

std::string stages_text(const BlackwellConfig& c) {
  const int a = kernel::a_bytes(c);
  const int b = atom::tile_bytes(kernel::tile_b(c));
  std::string out =
      format("stages     %d of %d bytes (A %d, B %d", c.stages,
             a + b + kernel::halves(c) * kernel::sfa_bytes(c) + kernel::sfb_bytes(c), a, b);
  if (is_scaled(c)) {
    out += format(", scales of A %d, of B %d", kernel::halves(c) * kernel::sfa_bytes(c),
                  kernel::sfb_bytes(c));
  }
  return out + ")\n";
}

std::string long_k_text(const BlackwellConfig& c) {
  if (!c.long_k) return "";
  const int together = kernel::stages_together(c);
  return format("k_blocks   %d of K 96 on %d stages: K counts as a multiple of %d\n",
                kernel::k_blocks(c), together, together * kernel::tile_k(c));
}

std::string tmem_table(const BlackwellConfig& c) {
  const int columns = kernel::half_columns(c);
  std::string out = format("\ntensor memory  %d of %d columns allocated\n", kernel::tmem_columns(c),
                           atom::kTmemColumns);
  for (int i = 0; i < c.accumulators; ++i) {
    for (int half = 0; half < kernel::halves(c); ++half) {
      const char* const of = kernel::halves(c) == 1 ? "" : half == 0 ? " of gates" : " of ups";
      std::string what = format("accumulator %d%s, 128 rows of f32", i, of);
      if (c.block_scaled) what += " of a k_tile";
      if (i == 1 && overlaps(c)) {
        what += format("; both have %d of these columns, which the epilogue empties first",
                       kernel::shared_columns(c));
      }
      out += tmem_line(i * kernel::accumulator_step(c) + half * columns, columns, what);
    }
  }
  for (int i = 0; i < kernel::scale_buffers(c); ++i) {
    const int first = kernel::first_scale_column(c) + i * kernel::scale_columns(c);
    const std::string what = c.long_k ? "three stages" : "stage";
    const std::string which = kernel::scale_buffers(c) == 1
                                  ? "each " + what
                                  : format("every other %s, %d", what.c_str(), i);
    const int atoms = kernel::stages_together(c) * kernel::scale_atoms(c);
    const auto add = [&](bool of_a, int from, int size, int count, const char* lines) {
      std::string text = format("scales of %s of %s: ", of_a ? "A" : "B", which.c_str());
      text += has_ones(c, of_a) ? "1, copied once" : format("%d of 128 %s x 4", count, lines);
      out += tmem_line(from, size, text);
    };
    const int of_a = kernel::halves(c) * kernel::sfa_columns(c);
    add(true, first, of_a, kernel::halves(c) * atoms, "rows");
    add(false, first + of_a, kernel::sfb_columns(c), atoms * kernel::scale_rows_of_b(c),
        "columns of D");
  }
  return out;
}

std::string scale_table(const BlackwellConfig& c) {
  if (!is_scaled(c)) return "";
  const atom::UmmaAtom mma = kernel::mma_atom(c);
  std::string out =
      c.long_k ? "\nk_block  K in 3 stages  scale id  columns from the scales of A, of B\n"
               : "\nk_block  K in the stage  scale id  columns from the scales of A, of B\n";
  for (int i = 0; i < kernel::k_blocks(c); ++i) {
    const atom::ScaleStep step = atom::scale_step(mma, i);
    out += format("%7d  %3d .. %8d  %8d  %27d, %4d\n", i, i * mma.k, (i + 1) * mma.k - 1, step.id,
                  step.column_a, step.column_b);
  }
  return out;
}

}  // namespace warpwright
