#include "warpwright/plan/families/blackwell_scales.h"

#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/format.h"
#include "warpwright/plan/families/family.h"
#include "warpwright/plan/product/micro.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {

using kernel::BlackwellConfig;

namespace {

// The kind that multiplies such operands at its best rate.
atom::UmmaKind scaled_kind(const GemmProblem& p) {
  return multiplies_bytes(p.a.dtype, p.b.dtype) ? atom::UmmaKind::mxf8f6f4
                                                : atom::UmmaKind::mxf4nvf4;
}

}  // namespace

bool blackwell_multiplies(const BlackwellConfig& c, const GemmProblem& p) {
  if (!is_scaled(c)) {
    return p.scaling != Scaling::block_scaled && c.kind == atom::umma_kind(p.a.dtype);
  }
  return p.scaling == Scaling::block_scaled && c.kind == scaled_kind(p) &&
         c.plain_tokens == has_plain_tokens(p);
}

BlackwellConfig launched(const BlackwellConfig& c, const GemmProblem& p) {
  return takes_either_scale(c) ? with_scale(c, micro_scale(p, true)) : c;
}

bool blackwell_quantises(const BlackwellConfig& c, QuantiseD way) {
  const DType scale = form_of(way).scale;
  return scale == c.d_scale || (makes_either_scale(c) && scale == DType::ue8m0);
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

std::string tmem_table(const BlackwellConfig& c, const BlackwellConfig& launched) {
  const TmemMap map = tensor_memory_of(c, launched);
  std::string out =
      format("\ntensor memory  %d of %d columns allocated\n", map.allocated, atom::kTmemColumns);
  for (const TmemPart& part : map.parts) {
    out += format("  columns %3d .. %3d  %s\n", part.first, part.first + part.columns - 1,
                  part.what.c_str());
  }
  return out;
}

std::string scale_table(const BlackwellConfig& c, const BlackwellConfig& launched) {
  if (!is_scaled(c)) return "";
  const TmemMap map = tensor_memory_of(c, launched);
  std::string out =
      c.long_k ? "\nk_block  K in 3 stages  scale id  columns from the scales of A, of B\n"
               : "\nk_block  K in the stage  scale id  columns from the scales of A, of B\n";
  int number = 0;
  for (const TmemStep& step : map.steps) {
    out += format("%7d  %3d .. %8d  %8d  %27d, %4d\n", number++, step.first_k,
                  step.first_k + step.k - 1, step.id, step.column_a, step.column_b);
  }
  return out;
}

}  // namespace warpwright
