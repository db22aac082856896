#include "cli/commands/gemm/quantised_result.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "cli/files/packed_file.h"
#include "cli/files/safetensors.h"
#include "cli/files/tensor_file.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/format.h"
#include "warpwright/facts/micro_scale.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/reference/formulas.h"

namespace warpwright::cli {
namespace {

QuantiseD way_of(const GemmJob& job) {
  return job.product.epilogue.quantise;
}

// 1 where D has none.
float scale_of_all(const GemmJob& job) {
  float scale = 1;
  for (const EpilogueTensor& t : job.epilogue) {
    if (t.view == &GemmOperands::scale_d) std::memcpy(&scale, t.tensor.bytes.data(), sizeof scale);
  }
  return scale;
}

// The rows of tiles in which rows of D have their scales: those of each group begin a tile. 0 of a
// row in no group.
std::vector<std::int64_t> rows_of_scales(const GemmJob& job) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(job.product.d.rows));
  if (!job.product.groups) {
    std::iota(rows.begin(), rows.end(), 0);
    return rows;
  }
  std::int64_t first = 0;
  for (const RowRange& r : job.rows) {
    for (std::int64_t row = r.begin; row < r.end; ++row) {
      rows[static_cast<std::size_t>(row)] = first + row - r.begin;
    }
    first += block_scales::padded_rows(std::max<std::int64_t>(0, r.end - r.begin));
  }
  return rows;
}

}  // namespace

HostTensor values_of(const GemmJob& job, HostTensor& d) {
  MatrixView codes;
  static_cast<MatrixShape&>(codes) = job.product.d;
  codes.data = d.bytes.data();
  codes.row_stride = codes.columns;
  codes.batch_stride = codes.rows * codes.columns;
  const QuantisedForm form = form_of(way_of(job));
  const MatrixShape scales = d_scales_shape(problem_of(job.product));
  HostTensor values{DType::f32, d.shape,
                    std::vector<std::byte>(4 * static_cast<std::size_t>(d.elements()))};
  std::byte* to = values.bytes.data();
  const std::vector<std::int64_t> scale_rows = rows_of_scales(job);
  for (std::int64_t b = 0; b < codes.batch; ++b) {
    for (std::int64_t row = 0; row < codes.rows; ++row) {
      for (std::int64_t column = 0; column < codes.columns; ++column, to += sizeof(float)) {
        const std::int64_t block = column / form.columns;
        const std::int64_t at =
            b * scales.batch_stride +
            (is_micro(way_of(job)) ? block_scales::place(scale_rows[static_cast<std::size_t>(row)],
                                                         block, scales.row_stride)
                                   : row * scales.row_stride + block);
        const bool is_none = row >= job.rest.begin && row < job.rest.end;  // of no group
        const double scale =
            is_none ? 0 : reference::read(job.d_scales.bytes.data(), scales.dtype, at);
        const auto value = static_cast<float>(reference::element(codes, b, row, column) * scale *
                                              static_cast<double>(scale_of_all(job)));
        std::memcpy(to, &value, sizeof value);
      }
    }
  }
  return values;
}

void write_quantised(const GemmJob& job, const HostTensor& d, const std::string& spec) {
  const TensorSpec where = parse_spec(spec);
  HostTensor scales = job.d_scales;
  HostTensor alpha;
  std::string note;
  if (is_micro(way_of(job))) {
    const MicroFormat& format = *micro_format(d.dtype, scales.dtype);
    if (job.product.groups) {  // rows of no group: poison still, which is no scale of these codes
      std::replace(scales.bytes.begin(), scales.bytes.end(), std::byte{0xff},
                   std::byte{static_cast<std::uint8_t>(micro::neutral_scale(format.scale))});
    }
    note = std::string(format.word) + ", " + shape_text(d.shape) + ", scales in tiles";
    if (scales.dtype == DType::ue4m3) {
      scales.dtype = DType::e4m3;  // as files call it
      const float scale = scale_of_all(job);
      alpha = {DType::f32, {1}, std::vector<std::byte>(sizeof scale)};
      std::memcpy(alpha.bytes.data(), &scale, sizeof scale);
      note += warpwright::format(", alpha %.9g", static_cast<double>(scale));
    }
    note += ", from a product";
  } else if (job.rest.count() > 0) {  // only in groups
    std::fill(scales.bytes.begin() + job.rest.begin * scales.shape.back() * 4, scales.bytes.end(),
              std::byte{0});
  }
  const NamedTensor tensors[] = {
      {where.tensor, &d},
      {where.tensor + kScaleSuffix, &scales},
      {where.tensor + kAlphaSuffix, alpha.bytes.empty() ? nullptr : &alpha}};
  write_safetensors(where.path, tensors, note);
}

void check_quantised(const GemmJob& job, const std::string& spec) {
  if (way_of(job) == QuantiseD::none || spec.empty()) return;
  const TensorSpec where = parse_spec(spec);
  if (where.kind != TensorSpec::Kind::safetensors) return;
  for (const char* const suffix : {kScaleSuffix, kAlphaSuffix}) {
    check_safetensors_output(where.path, where.tensor + suffix);
  }
}

}  // namespace warpwright::cli
