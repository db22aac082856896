// One thing of a problem made different, for tests.
#pragma once

#include "warpwright/plan/product/plan.h"

namespace warpwright {

inline void set_m(GemmProblem& p, std::int64_t m) {
  p.a.rows = p.d.rows = m;
  if (p.has_c()) p.c.rows = m;
}
inline void set_n(GemmProblem& p, std::int64_t n) {
  p.b.rows = n;
  p.d.columns = result_columns(p);
  if (p.has_c()) p.c.columns = p.d.columns;
}
inline void set_k(GemmProblem& p, std::int64_t k) {
  p.a.columns = p.b.columns = k;
}
/// Matrices lie apart as their strides say: 0 of those that serve all.
inline void set_batch(GemmProblem& p, std::int64_t batch) {
  p.a.batch = p.d.batch = batch;
  if (!p.groups) p.b.batch = batch;
  if (p.has_c()) p.c.batch = batch;
}
inline void set_groups(GemmProblem& p, std::int64_t groups) {
  if (!p.groups) p.groups.emplace();
  p.b.batch = groups;
}
inline void gate(GemmProblem& p, bool gated = true) {
  p.epilogue.gated = gated;
  set_n(p, p.n());
}
/// A C that lies as D does.
inline void read_c(GemmProblem& p, bool read = true) {
  p.beta = read ? 1.0F : 0.0F;
  p.c = read ? p.d : PlannedMatrix{};
}
inline void scale_d(GemmProblem& p, bool scaled = true) {
  p.scale_d = scaled ? packed_matrix(DType::f32, 1, 1) : PlannedMatrix{};
}

}  // namespace warpwright
