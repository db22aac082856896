#include "warpwright/reference/operand.h"

#include <algorithm>
#include <vector>

#include "warpwright/facts/packed_values.h"
#include "warpwright/numeric/bulk.h"

namespace warpwright::reference {
namespace {

std::int64_t distinct(const MatrixView& v) {
  return v.data == nullptr || v.batch_stride == 0 ? 1 : v.batch;
}

// The four bits of (row, k) among those of a packed tile, by row + 64 k.
template <const layout::Layout& places>
const std::vector<int>& nibbles() {
  static const std::vector<int> all = [] {
    std::vector<int> found(packed::kTileRows * packed::kTileK);
    int at = 0;
    for (int& place : found) place = static_cast<int>(layout::offset_of<places>(at++));
    return found;
  }();
  return all;
}

// The value of the code of (row, k) in a packed tile.
double code_in(const std::byte* tile, const PackedFormat& f, int row, int k) {
  const auto place =
      static_cast<std::size_t>(row) + packed::kTileRows * static_cast<std::size_t>(k);
  const int nibble = packed::is_wide(f) ? nibbles<packed::kNibbles16>()[place]
                                        : nibbles<packed::kNibbles>()[place];
  const std::uint32_t bits = packed::bits_of(f, word_at<std::uint32_t>(tile, nibble / 8));
  const std::uint32_t code = bits >> nibble % 8 * 4 & 15U;
  return packed::value_of(f, code);
}

}  // namespace

std::int64_t row_of_a(const GemmOperands& o, std::int64_t row) {
  if (!o.is_by_index()) return row;
  const std::int32_t index = o.groups->rows[row];
  const std::int64_t token = index < 0 ? -1 : index / o.groups->rows_divisor;
  return token < o.a.rows ? token : -1;
}

double scale_of_a(const GemmOperands& o, std::int64_t batch, std::int64_t group, std::int64_t row,
                  std::int64_t k) {
  const std::int64_t its = row_of_a(o, row);
  return its < 0 ? 0 : scale_of(o, Side::a, batch, group, its, k);
}

GroupRows rows_of_group(const GemmOperands& o, std::int64_t group) {
  const auto offset = [&](std::int64_t place) {
    return o.groups->type == OffsetType::int64 ? word_at<std::int64_t>(o.groups->offsets, place)
                                               : word_at<std::int32_t>(o.groups->offsets, place);
  };
  const std::int64_t begin = std::clamp<std::int64_t>(offset(group), 0, o.d.rows);
  return {begin, std::clamp<std::int64_t>(offset(group + 1), begin, o.d.rows)};
}

std::int64_t first_scale_row(const GemmOperands& o, std::int64_t group) {
  std::int64_t first = 0;
  for (std::int64_t g = 0; o.groups && g < group; ++g) {
    const auto [begin, end] = rows_of_group(o, g);
    first += block_scales::padded_rows(end - begin);
  }
  return first;
}

Operand::Operand(const GemmOperands& operands, Side side) : o_(operands), side_(side) {
  if (side != Side::a || !o_.groups || !scales_elements(o_.scaling)) return;
  if (has_plain_tokens(o_)) return;  // a scale for each row of A, wherever groups begin
  scale_rows_.assign(static_cast<std::size_t>(o_.d.rows), -1);
  std::int64_t first = 0;
  for (std::int64_t group = 0; group < o_.b.batch; ++group) {
    const auto [begin, end] = rows_of_group(o_, group);
    for (std::int64_t row = begin; row < end; ++row) {
      scale_rows_[static_cast<std::size_t>(row)] = first + row - begin;
    }
    first += block_scales::padded_rows(end - begin);
  }
}

std::int64_t Operand::matrices() const {
  if (is_packed()) return o_.b.batch;
  const std::int64_t scales =
      scales_elements(o_.scaling) ? distinct(side_ == Side::a ? o_.scale_a : o_.scale_b) : 1;
  return std::max(distinct(view()), scales);
}

void Operand::read(std::int64_t batch, std::int64_t group, std::int64_t row, std::int64_t rows,
                   std::int64_t k, std::int64_t depth, float* to, std::int64_t pitch,
                   std::int64_t step) const {
  const Block block{side_ == Side::a ? batch : group, row, rows, step, k, depth, to, pitch};
  if (is_packed()) {
    read_packed(block);
  } else if (side_ == Side::a && o_.is_by_index()) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t its = row_of_a(o_, row + i * step);
      if (its < 0) {
        std::fill_n(to + i * pitch, depth, 0.0F);
      } else {
        read_lines({batch, its, 1, 1, k, depth, to + i * pitch, pitch});
      }
    }
  } else {
    read_lines(block);
  }
  if (!scales_elements(o_.scaling)) return;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t its = row + i * step;
    const std::int64_t of_scales = !scale_rows_.empty() ? scale_rows_[static_cast<std::size_t>(its)]
                                   : side_ == Side::b   ? scale_row_of_b(o_, its)
                                                        : row_of_a(o_, its);
    if (of_scales >= 0) scale_line(batch, group, of_scales, k, depth, to + i * pitch);
  }
}

// Multiplies elements [k, k + depth) of a row by their scales, which stand at row `row`.
void Operand::scale_line(std::int64_t batch, std::int64_t group, std::int64_t row, std::int64_t k,
                         std::int64_t depth, float* to) const {
  const std::int64_t reach = scale_reach(o_, side_).depth;
  for (std::int64_t j = 0; j < depth;) {
    const std::int64_t end = reach == 0 ? depth : std::min(depth, j + reach - (k + j) % reach);
    const auto scale = static_cast<float>(scale_of(o_, side_, batch, group, row, k + j));
    for (; j < end; ++j) to[j] *= scale;
  }
}

void Operand::read_lines(const Block& at) const {
  const MatrixView& v = view();
  if (!numeric::widens_from_memory(v.dtype) ||
      (v.column_stride != 1 && (v.row_stride != 1 || at.step != 1))) {
    for (std::int64_t i = 0; i < at.rows; ++i) {
      for (std::int64_t j = 0; j < at.depth; ++j) {
        at.to[i * at.pitch + j] =
            static_cast<float>(element(v, at.matrix, at.row + i * at.step, at.k + j));
      }
    }
    return;
  }
  const auto* const first =
      static_cast<const std::byte*>(v.data) +
      (matrix_begin(v, at.matrix) + at.row * v.row_stride + at.k * v.column_stride) *
          (numeric::bits(v.dtype) / 8);
  const auto line = [&](std::int64_t elements) {
    return first + elements * (numeric::bits(v.dtype) / 8);
  };
  if (v.column_stride == 1) {
    for (std::int64_t i = 0; i < at.rows; ++i) {
      numeric::widen_from(line(i * at.step * v.row_stride), at.to + i * at.pitch,
                          static_cast<std::size_t>(at.depth), v.dtype);
    }
    return;
  }
  std::vector<float> column(static_cast<std::size_t>(at.rows));
  for (std::int64_t j = 0; j < at.depth; ++j) {
    numeric::widen_from(line(j * v.column_stride), column.data(), column.size(), v.dtype);
    for (std::int64_t i = 0; i < at.rows; ++i) {
      at.to[i * at.pitch + j] = column[static_cast<std::size_t>(i)];
    }
  }
}

void Operand::read_packed(const Block& at) const {
  const PackedFormat& f = o_.packed->format;
  const packed::Extents extents{o_.b.batch, o_.b.rows, o_.b.columns};
  const std::int64_t expert = o_.b.batch == 1 ? 0 : at.matrix;
  for (std::int64_t i = 0; i < at.rows; ++i) {
    const std::int64_t n = at.row + i * at.step;
    const int row = static_cast<int>(n % packed::kTileRows);
    for (std::int64_t j = 0; j < at.depth;) {
      const std::int64_t k = at.k + j;
      const int first = static_cast<int>(k % packed::kTileK);
      const int slice = first / f.group;
      const std::byte* const tile =
          static_cast<const std::byte*>(o_.b.data) +
          packed::tile_index(extents, expert, n / packed::kTileRows, k / packed::kTileK) *
              packed::tile_bytes(f);
      const double scale = packed::scale_in(tile, f, row, slice);
      const int zero_point = packed::zero_point_in(tile, f, row, slice);
      const std::int64_t end = std::min<std::int64_t>(at.depth, j + (slice + 1) * f.group - first);
      for (int in_tile = first; j < end; ++j, ++in_tile) {
        at.to[i * at.pitch + j] =
            static_cast<float>(packed_value(code_in(tile, f, row, in_tile), scale, zero_point));
      }
    }
  }
}

}  // namespace warpwright::reference
