#include "warpwright/model/tcgen05_operands.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "warpwright/model/report/timing.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::model {
namespace {

constexpr std::size_t at_of(int i) {
  return static_cast<std::size_t>(i);
}

// The scales of `count` rows of A or of B as doubles, scale by scale: out[scale * count + row]. The
// copies in the quarters of the lanes serve a quarter of the tensor core each: where they differ,
// what comes out is unlike for the rows of D, and here no number.
void read_scales(const TensorOp& op, Tmem& tmem, bool of_b, int count, std::vector<double>& out) {
  const int id = of_b ? op.ids.b : op.ids.a;
  const int from = atom::tmem_column(of_b ? op.scales_b : op.scales_a);
  const int copies = of_b && atom::umma_folds_columns(op.atom) ? 2 : 4;
  const int scales = atom::umma_scales(op.atom);
  out.resize(at_of(scales * count));
  auto to = out.begin();
  for (int s = 0; s < scales; ++s) {
    for (int row = 0; row < count; ++row, ++to) {
      const atom::ScaleCell cell =
          of_b ? atom::scale_cell_b(op.atom, id, row, s) : atom::scale_cell_a(op.atom, id, row, s);
      const auto code = [&](int copy) {
        const float word = *tmem.at(cell.lane + 32 * copy, from + cell.column);
        return std::bit_cast<std::uint32_t>(word) >> 8 * cell.byte & 0xff;
      };
      *to = numeric::to_double(op.atom.scale, code(0));
      for (int copy = 1; copy < copies; ++copy) {
        if (code(copy) != code(0)) *to = std::numeric_limits<double>::quiet_NaN();
      }
    }
  }
}

}  // namespace

// Where the lanes hold A twice, and unlike, it is no number.
void read_a_in_tmem(const atom::UmmaAtom& atom, const Operand& operand, float* out) {
  Tmem& tmem = operand.cta->tmem;
  const int columns = atom::umma_a_columns(atom);
  const int column = atom::tmem_column(operand.tmem);
  const auto cells = [&](int row, int copy) {
    return tmem.at(atom::tmem_lane(operand.tmem) + atom::umma_a_lane(atom, row, copy), column);
  };
  for (int row = 0; row < operand.rows; ++row, out += operand.k) {
    const float* const from = cells(row, 0);
    widen_cells(operand.type, operand.bits, from, out, operand.k);
    if (atom::umma_a_copies(atom) == 1) continue;
    if (std::memcmp(from, cells(row, 1), at_of(columns) * 4) != 0) {
      std::fill_n(out, operand.k, std::numeric_limits<float>::quiet_NaN());
    }
  }
}

void multiply_by_scales(const TensorOp& op, Tmem& tmem, const std::vector<float>& a,
                        const std::vector<float>& b, std::vector<float>& c) {
  static thread_local std::vector<double> scales;
  static thread_local std::vector<double> scaled_a;
  static thread_local std::vector<double> scaled_b;
  const int rows = atom::umma_cta_rows(op.atom);
  const int n = op.atom.n;
  const int k = op.atom.k;
  const int block = op.atom.scale_block;
  scaled_a.assign(a.begin(), a.end());
  read_scales(op, tmem, false, rows, scales);
  for (int row = 0; row < rows; ++row) {
    double* const of_row = scaled_a.data() + std::ptrdiff_t{row} * k;
    for (int i = 0; i < k; ++i) of_row[i] *= scales[at_of(i / block * rows + row)];
  }
  scaled_b.assign(b.begin(), b.end());
  read_scales(op, tmem, true, n, scales);
  for (int i = 0; i < k; ++i) {
    double* const to = scaled_b.data() + std::ptrdiff_t{i} * n;
    const double* const by = scales.data() + std::ptrdiff_t{i / block} * n;
    for (int j = 0; j < n; ++j) to[j] *= by[j];
  }
  multiply_scaled(scaled_a.data(), scaled_b.data(), c.data(), rows, n, k);
}

// --- tcgen05.cp ---------------------------------------------------------------------------------

// What it writes. 4x256b renews single lanes: nothing is defined that was not before.
static TmemRegion copied_region(atom::TmemCopy shape, std::uint32_t to) {
  const int column = atom::tmem_column(to);
  const int columns = atom::copy_bytes(shape) / 4;
  const unsigned halves =
      shape == atom::TmemCopy::b4x256 ? 0x55U << atom::tmem_lane(to) / 16 : 0xffU;
  return {static_cast<std::uint8_t>(halves), column, columns};
}

void act::tcgen05_copy(const TmemCopyRequest& request, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  Thread& self = m.current();
  m.spend(m.costs().umma_issue);
  const std::vector<Cta*> ctas = m.group(request.ctas, "tcgen05.cp", site);
  const std::string by = m.who(self) + ": tcgen05.cp: ";
  if (const char* fault = atom::umma_descriptor_fault(request.descriptor)) {
    m.fatal(Check::bad_descriptor, by + fault, site);
  }
  const int lane = atom::tmem_lane(request.to);
  if (lane != 0 && (request.shape != atom::TmemCopy::b4x256 || lane > 31)) {
    m.fatal(Check::tmem_lanes,
            by + "it begins at lane " + std::to_string(lane) +
                "; a copy begins at lane 0 (4x256b at any of the first 32)",
            site);
  }
  auto op = std::make_unique<TensorOp>();
  op->what = TensorOp::What::copy;
  op->issuer = &self;
  op->site = site;
  op->shape = request.shape;
  op->d = request.to;
  self.mma_site = site;
  const bool of_rows = request.shape == atom::TmemCopy::b4x256;
  const std::uint32_t number =
      m.order ? m.order->begin_step(self, of_rows ? TensorStep::row_copy : TensorStep::copy, site)
              : 0;
  const TmemRegion region = copied_region(request.shape, request.to);
  Thread* const issuer = &self;
  for (Cta* cta : ctas) {
    op->a.push_back({cta, atom::decode_umma(request.descriptor), atom::copy_rows(request.shape),
                     atom::copy_bytes(request.shape), atom::copied_type(request.widen),
                     atom::Major::k, "its source", 8});
    const auto pieces = m.check_operand(op->a.back(), "tcgen05.cp", site);
    if (m.order) m.order->touch(number, {&issuer, 1}, *cta, pieces, false);
    Machine::mark_operand(op->a.back(), +1);
    m.check_tmem(*cta, region, "tcgen05.cp", site);
    if (m.order) m.order->touch_tmem(number, {&issuer, 1}, *cta, region, true);
    if (!of_rows) cta->tmem.define(region);
  }
  if (m.order) m.order->end(number);
  m.issue(std::move(op));
}

void copy_to_tmem(const TensorOp& op) {
  static thread_local std::vector<std::uint8_t> bytes;
  const int width = atom::copy_bytes(op.shape);
  const int rows = atom::copy_rows(op.shape);
  bytes.resize(at_of(rows * width));
  for (const Operand& source : op.a) {
    read_codes(source, bytes.data());
    Machine::mark_operand(source, -1);
    Tmem& tmem = source.cta->tmem;
    if (tmem.cells.empty()) continue;
    for (int row = 0; row < rows; ++row) {
      for (int copy = 0; copy < atom::copy_count(op.shape); ++copy) {
        const int lane = atom::tmem_lane(op.d) + atom::copy_lane(op.shape, row, copy);
        std::memcpy(tmem.at(lane, atom::tmem_column(op.d)), bytes.data() + at_of(row * width),
                    at_of(width));
      }
    }
  }
}

// --- tcgen05.shift ------------------------------------------------------------------------------

void act::tcgen05_shift(std::uint32_t address, int ctas, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  Thread& self = m.current();
  m.spend(m.costs().umma_issue);
  const std::vector<Cta*> group = m.group(ctas, "tcgen05.shift", site);
  const int lane = atom::tmem_lane(address);
  if (lane % warp_lanes != 0 || lane >= atom::kTmemLanes) {
    m.fatal(Check::tmem_lanes,
            m.who(self) + ": tcgen05.shift: it begins at lane " + std::to_string(lane) +
                "; a shift begins at lane 0, 32, 64 or 96",
            site);
  }
  auto op = std::make_unique<TensorOp>();
  op->what = TensorOp::What::shift;
  op->issuer = &self;
  op->site = site;
  op->d = address;
  self.mma_site = site;
  const std::uint32_t number = m.order ? m.order->begin_step(self, TensorStep::shift, site) : 0;
  const TmemRegion region{static_cast<std::uint8_t>(3U << lane / 16), atom::tmem_column(address),
                          kShiftedColumns};
  Thread* const issuer = &self;
  for (Cta* cta : group) {
    Operand rows;
    rows.cta = cta;
    rows.in_tmem = true;
    op->a.push_back(rows);
    m.check_tmem(*cta, region, "tcgen05.shift", site);
    if (cta->tmem.lacks(region)) {
      m.finding(Check::uninitialised_read,
                m.who(self) + ": tcgen05.shift moves rows of tensor memory of CTA rank " +
                    std::to_string(cta->rank) +
                    " of which nothing has written a part, from column " +
                    std::to_string(region.column) + " on",
                site);
    }
    if (m.order) m.order->touch_tmem(number, {&issuer, 1}, *cta, region, true);
  }
  if (m.order) m.order->end(number);
  m.issue(std::move(op));
}

void shift_rows(const TensorOp& op) {
  const int first = atom::tmem_lane(op.d);
  const int column = atom::tmem_column(op.d);
  for (const Operand& rows : op.a) {
    Tmem& tmem = rows.cta->tmem;
    if (tmem.cells.empty()) continue;
    for (int lane = first; lane + 1 < first + warp_lanes; ++lane) {
      std::copy_n(tmem.at(lane + 1, column), kShiftedColumns, tmem.at(lane, column));
    }
  }
}

}  // namespace warpwright::model
