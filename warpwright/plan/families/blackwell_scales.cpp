#include "warpwright/plan/families/blackwell_scales.h"

#include "warpwright/plan/product/micro.h"
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
  return p.scaling == Scaling::block_scaled && c.kind == scaled_kind(p);
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

std::string tmem_table(const BlackwellConfig& c) {
  const int columns = kernel::accumulator_columns(c);
  std::string out = format("\ntensor memory  %d of %d columns allocated\n", kernel::tmem_columns(c),
                           atom::kTmemColumns);
  for (int i = 0; i < c.accumulators; ++i) {
    for (int half = 0; half < kernel::halves(c); ++half) {
      const char* const of = kernel::halves(c) == 1 ? "" : half == 0 ? " of gates" : " of ups";
      out += tmem_line(i * columns + half * kernel::half_columns(c), kernel::half_columns(c),
                       format("accumulator %d%s, 128 rows of f32%s", i, of,
                              c.block_scaled ? " of a k_tile" : ""));
    }
  }
  for (int i = 0; i < kernel::scale_buffers(c); ++i) {
    const int first = kernel::first_scale_column(c) + i * kernel::scale_columns(c);
    const std::string which =
        kernel::scale_buffers(c) == 1 ? "each stage" : format("every other stage, %d", i);
    const int atoms = kernel::scale_atoms(c);
    const int of_a = kernel::halves(c) * kernel::sfa_columns(c);
    out += tmem_line(
        first, of_a,
        format("scales of A of %s: %d of 128 rows x 4", which.c_str(), kernel::halves(c) * atoms));
    out += tmem_line(first + of_a, kernel::sfb_columns(c),
                     format("scales of B of %s: %d of 128 columns of D x 4", which.c_str(),
                            atoms * kernel::scale_rows_of_b(c)));
  }
  return out;
}

std::string scale_table(const BlackwellConfig& c) {
  if (!is_scaled(c)) return "";
  const atom::UmmaAtom mma = kernel::mma_atom(c);
  std::string out = "\nk_block  K in the stage  scale id  columns from the scales of A, of B\n";
  for (int i = 0; i < kernel::tile_k(c) / mma.k; ++i) {
    const atom::ScaleStep step = atom::scale_step(mma, i);
    out += format("%7d  %3d .. %8d  %8d  %27d, %4d\n", i, i * mma.k, (i + 1) * mma.k - 1, step.id,
                  step.column_a, step.column_b);
  }
  return out;
}

}  // namespace warpwright
