#include "cli/commands/gemm/micro_files.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "cli/commands/gemm/operand_files.h"
#include "cli/files/checkpoint.h"
#include "cli/files/packed_file.h"
#include "cli/files/safetensors.h"
#include "warpwright/device/scale_order.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/format.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

std::string type_of(const HostTensor& t) {
  return std::string(numeric::word(t.dtype));
}

const char* scales_name(bool of_a) {
  return of_a ? "scale_a" : "scale_b";
}

// What is wrong with the code of a scale; null where nothing is.
const char* fault_of(DType scale, std::byte code) {
  const auto value = static_cast<unsigned>(code);
  if (scale == DType::ue8m0) return value == 0xff ? "NaN" : nullptr;
  return (value & 0x7f) == 0x7f ? "NaN" : value > 0x7f ? "a negative number" : nullptr;
}

// What the scales of an operand are to be.
struct Wanted {
  const GemmOperands& product;
  bool of_a = true;
  std::int64_t matrices = 1;
  std::int64_t rows = 0;
  std::int64_t blocks = 0;
  MatrixShape tiles;

  [[nodiscard]] Extents linear() const {
    return matrices > 1 ? Extents{matrices, rows, blocks} : Extents{rows, blocks};
  }
  [[nodiscard]] Extents padded() const {
    return matrices > 1 ? Extents{matrices, tiles.rows, tiles.columns}
                        : Extents{tiles.rows, tiles.columns};
  }
  [[nodiscard]] std::int64_t row_in_tiles(std::int64_t row) const {
    return of_a ? row : scale_row_of_b(product, row);
  }
  [[nodiscard]] std::int64_t tile_bytes() const { return matrices * tiles.rows * tiles.columns; }
};

Wanted wanted(const GemmJob& job, bool of_a) {
  const GemmOperands& p = job.product;
  const HostTensor& of = of_a ? job.a : job.b;
  Wanted w{p, of_a, 1, 0, 0, {}};
  w.matrices = of.shape.size() == 3 ? of.shape.front() : 1;
  w.rows = of_a ? p.a.rows : p.n();
  w.blocks = ScaleReach::count(p.k(), scale_reach(p, of_a).depth);
  w.tiles = scale_shape(problem_of(p), of_a);
  return w;
}

// The format that a note of `warpwright pack` says; null where it is none of such.
const MicroFormat* format_of_note(const std::string& note) {
  return micro_format(std::string_view(note).substr(0, note.find(',')));
}

// Refuses scales that are no numbers: of linear ones all count, of tiles those of rows that are
// there, with what lies behind K.
void refuse_nan(const std::string& what, const ScalesOfFile& scales, const Wanted& w) {
  const DType type = scales.tensor.dtype;
  const std::int64_t blocks = scales.in_tiles ? w.tiles.columns : w.blocks;
  for (std::int64_t row = 0; row < w.matrices * w.rows; ++row) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::int64_t at =
          scales.in_tiles
              ? row / w.rows * w.tiles.rows * w.tiles.columns +
                    block_scales::place(w.row_in_tiles(row % w.rows), block, w.tiles.columns)
              : row * w.blocks + block;
      const char* const wrong = fault_of(type, scales.tensor.bytes[static_cast<std::size_t>(at)]);
      if (wrong == nullptr) continue;
      throw InputError(what + " has " + wrong + " at row " + std::to_string(row) + ", block " +
                       std::to_string(block) + "; " +
                       as_rule("scales are numbers of ", type_of(scales.tensor), " from 0 on") +
                       ".");
    }
  }
}

// Did `warpwright pack` write these scales beside codes?
bool are_packed(const std::string& spec) {
  const TensorSpec where = parse_spec(spec);
  if (where.kind != TensorSpec::Kind::safetensors || !where.tensor.ends_with(kScaleSuffix)) {
    return false;
  }
  const std::string codes = where.tensor.substr(0, where.tensor.rfind(kScaleSuffix));
  return format_of_note(SafetensorsFile(where.path).note(codes)) != nullptr;
}

bool same_but_for_ones(Extents x, Extents y) {
  std::erase(x, 1);
  std::erase(y, 1);
  return x == y;
}

// For plain tokens: a float32 for each row of A.
void check_row_scales(const std::string& what, const HostTensor& t, const Wanted& w) {
  if (t.dtype != DType::f32) {
    throw InputError(what + " is " + type_of(t) + "; " +
                     as_rule("tokens of e4m3 have a scale for each row, as F32") + ".");
  }
  const std::int64_t rows = w.matrices * w.rows;
  if (t.elements() != rows) {
    throw InputError(what + " is " + shape_text(t.shape) + "; " +
                     as_rule("tokens of e4m3 have a scale for each row") +
                     ": the nearest legal shape is " + as_nearest(shape_text(Extents{rows, 1})) +
                     ".");
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    float value = 0;
    std::memcpy(&value, t.bytes.data() + 4 * row, sizeof value);
    if (std::isfinite(value)) continue;
    throw InputError(what + " has " + (std::isnan(value) ? "NaN" : "an infinity") + " at row " +
                     std::to_string(row) + "; " + as_rule("scales are numbers") + ".");
  }
}

// Scales that serve more than a scale of mxf8 and its like, and float32 that are powers of two, as
// the rows of ue8m0 that stand for them: 1 x 128 of fp8 tokens, 128 x 128 of weights. `from` then
// says what they were.
void spread_scales(const std::string& what, const Wanted& w, ScalesOfFile& scales) {
  HostTensor& t = scales.tensor;
  const bool is_f32 = t.dtype == DType::f32;
  const auto parts = [](std::int64_t all, std::int64_t each) { return (all + each - 1) / each; };
  const auto extents = [&](std::int64_t rows_each, std::int64_t blocks_each) {
    Extents e = {parts(w.rows, rows_each), parts(w.blocks, blocks_each)};
    if (w.matrices > 1) e.insert(e.begin(), w.matrices);
    return e;
  };
  constexpr std::pair<int, int> reaches[] = {{1, 1}, {1, 4}, {128, 4}};
  const auto* const reach = std::ranges::find_if(reaches, [&](const auto& r) {
    return (is_f32 || r.second > 1) && same_but_for_ones(t.shape, extents(r.first, r.second));
  });
  const bool is_linear = !is_f32 && same_but_for_ones(t.shape, w.linear());
  if (is_linear || (!is_f32 && t.elements() == w.tile_bytes())) return;
  if (reach == std::end(reaches)) {
    if (!is_f32) return;
    throw InputError(what + " is " + shape_text(t.shape) + " of f32; " +
                     as_rule("for these matrices it is ", shape_text(extents(1, 4)),
                             ", a scale for each 1 x 128, or ", shape_text(extents(128, 4)),
                             ", for each 128 x 128") +
                     ": the nearest legal shape is " + as_nearest(shape_text(extents(1, 4))) + ".");
  }
  const auto [rows_each, blocks_each] = *reach;
  const MatrixView codes =
      matrix(nullptr, t.dtype, parts(w.rows, rows_each), parts(w.blocks, blocks_each));
  HostTensor rows{w.tiles.dtype, w.linear(), {}};
  for (std::int64_t matrix = 0; matrix < w.matrices; ++matrix) {
    ScaleReordering order;
    order.rows = codes;
    order.rows.data = t.bytes.data() + matrix * codes.rows * codes.columns * (is_f32 ? 4 : 1);
    order.rows_each = rows_each;
    order.blocks_each = blocks_each;
    order.tiles =
        scale_tiles_of(w.tiles.dtype, codes.rows * rows_each, codes.columns * blocks_each);
    std::vector<std::byte> tiles(static_cast<std::size_t>(order.tiles.rows * order.tiles.columns));
    order.tiles.data = tiles.data();
    if (const auto refused = reorder_scales_on_host(order)) {
      throw InputError(what + ": " + refused->reason + ".");
    }
    for (std::int64_t row = 0; row < w.rows; ++row) {
      for (std::int64_t block = 0; block < w.blocks; ++block) {
        rows.bytes.push_back(
            tiles[static_cast<std::size_t>(block_scales::place(row, block, order.tiles.columns))]);
      }
    }
  }
  scales.from = shape_text(t.shape) + ", one for each " + std::to_string(rows_each) + " x " +
                std::to_string(32 * blocks_each);
  t = std::move(rows);
}

// Are they in tiles? Throws InputError where they are neither.
bool lies_in_tiles(const std::string& what, const HostTensor& t, const Wanted& w,
                   const std::string& layout) {
  const bool linear = same_but_for_ones(t.shape, w.linear());
  const bool tiles = t.elements() == w.tile_bytes();
  if (layout == "linear" ? linear : layout == "tiles" ? tiles : linear || tiles) {
    return layout == "tiles" || !linear;
  }
  const std::string rows = shape_text(w.linear()) + ", a scale for each " +
                           std::to_string(micro_block(w.tiles.dtype)) + " of K";
  const std::string in_tiles = shape_text(w.padded()) + " in tiles of 128 x 4";
  throw InputError(what + " is " + shape_text(t.shape) + "; " +
                   as_rule("for these matrices it is ", layout == "linear" ? rows
                                                        : layout == "tiles"
                                                            ? in_tiles
                                                            : rows + ", or " + in_tiles) +
                   ": the nearest legal shape is " +
                   as_nearest(shape_text(layout == "tiles" ? w.padded() : w.linear())) + ".");
}

}  // namespace

HostTensor read_codes_as(const std::string& name, const std::string& spec,
                         const MicroFormat& format) {
  HostTensor tensor = [&] {
    try {
      return read_codes(spec);
    } catch (const InputError& refusal) {
      throw InputError(as_tensor(name) + ": " + refusal.sentence(), refusal.code());
    }
  }();
  const std::string what = name + " (" + spec + ")";
  if (tensor.dtype == format.element) return tensor;
  const std::string element(numeric::word(format.element));
  if (tensor.dtype != DType::u8) {
    throw InputError(what + " is " + type_of(tensor) + " and has scales of a file; " +
                     as_rule("the codes of ", format.word, " are ", element, ", or bytes (U8)") +
                     ": the nearest is " + as_nearest(element) + ".");
  }
  tensor.dtype = format.element;
  if (tensor.shape.empty()) return tensor;
  const std::int64_t step = whole_elements(1, format.element);
  const std::int64_t bytes = step * numeric::bits(format.element) / 8;
  const std::int64_t row = tensor.shape.back();
  if (row % bytes != 0) {
    throw InputError(what + " has rows of " + std::to_string(row) + " bytes; " +
                     as_rule(step, " elements of ", element, " are ", bytes) +
                     ": the nearest legal number is " +
                     as_nearest((row + bytes - 1) / bytes * bytes) + ".");
  }
  tensor.shape.back() = row / bytes * step;
  return tensor;
}

std::optional<ScalesOfFile> packed_scales(const std::string& name, const std::string& spec,
                                          const MicroFormat& format) {
  const TensorSpec where = parse_spec(spec);
  if (where.kind != TensorSpec::Kind::safetensors) return std::nullopt;
  const SafetensorsFile file(where.path);
  const MicroFormat* const packed = format_of_note(file.note(where.tensor));
  if (packed == nullptr) return std::nullopt;
  if (!(*packed == format)) {
    throw InputError(as_tensor(name) + " (" + spec + ") was packed as " + packed->word +
                     ", and --dtype has " + format.word + ": the nearest is " +
                     as_nearest(packed->word) + ".");
  }
  ScalesOfFile scales{true, file.read(where.tensor + kScaleSuffix), {}, 1.0F};
  scales.tensor.dtype = format.scale;
  scales.packed_alpha = packed_alpha(name, spec).value_or(1.0F);
  return scales;
}

std::optional<float> packed_alpha(const std::string& name, const std::string& spec) {
  const TensorSpec where = parse_spec(spec);
  if (where.kind != TensorSpec::Kind::safetensors) return std::nullopt;
  const SafetensorsFile file(where.path);
  const MicroFormat* const packed = format_of_note(file.note(where.tensor));
  if (packed == nullptr || file.find(where.tensor + kAlphaSuffix) == nullptr) return std::nullopt;
  HostTensor alpha = file.read(where.tensor + kAlphaSuffix);
  take_as_f32(name + "'s alpha", alpha);
  std::vector<float> values(static_cast<std::size_t>(alpha.elements()));
  std::memcpy(values.data(), alpha.bytes.data(), values.size() * sizeof(float));
  if (values.empty()) return std::nullopt;
  if (std::ranges::all_of(values, [&](float each) { return each == values.front(); })) {
    return values.front();
  }
  throw InputError(as_tensor(name) + " (" + spec + ") has an alpha for each of " +
                   std::to_string(values.size()) + " matrices; " +
                   as_rule("a product has one, so they must be alike") + ".");
}

void check_packed_scales(const GemmJob& job, bool of_a, const std::string& spec) {
  const ScalesOfFile& scales = *(of_a ? job.scales_of_a : job.scales_of_b);
  const std::string what = std::string(scales_name(of_a)) + " (" + spec + kScaleSuffix + ")";
  const Wanted w = wanted(job, of_a);
  static_cast<void>(lies_in_tiles(what, scales.tensor, w, "tiles"));
  if (!of_a || !job.product.is_grouped()) refuse_nan(what, scales, w);
}

ScalesOfFile read_scales_as(const GemmJob& job, bool of_a, const std::string& spec,
                            const std::string& layout) {
  const MicroFormat& format = *micro_format_of(job.product, of_a);
  const std::string name = scales_name(of_a);
  const std::string what = name + " (" + spec + ")";
  ScalesOfFile scales;
  try {
    scales.tensor = read_codes(spec);
  } catch (const InputError& refusal) {
    throw InputError(as_tensor(name) + ": " + refusal.sentence(), refusal.code());
  }
  HostTensor& t = scales.tensor;
  const Wanted w = wanted(job, of_a);
  if (format == plain_tokens) {
    check_row_scales(what, t, w);
    scales.in_tiles = true;  // as they are
    return scales;
  }
  const bool as_signed = format.scale == DType::ue4m3 && t.dtype == DType::e4m3;
  const bool powers = format.scale == DType::ue8m0;
  if (powers && t.dtype == DType::bf16) t = convert(t, DType::f32);
  const bool as_f32 = powers && t.dtype == DType::f32;
  if (t.dtype != format.scale && t.dtype != DType::u8 && !as_signed && !as_f32) {
    throw InputError(what + " is " + type_of(t) + "; " +
                     as_rule("the scales of ", format.word, " are ", powers ? "F8_E8M0" : "F8_E4M3",
                             powers ? ", bytes (U8), or powers of two as F32" : ", or bytes (U8)") +
                     ".");
  }
  if (!as_f32) t.dtype = format.scale;
  if (powers && layout != "tiles") spread_scales(what, w, scales);
  scales.in_tiles =
      lies_in_tiles(what, t, w, layout.empty() && are_packed(spec) ? "tiles" : layout);
  const bool by_groups = of_a && job.product.is_grouped();
  if (!scales.in_tiles || !by_groups) refuse_nan(what, scales, w);
  return scales;
}

void note_scales_beside(const GemmOptions& o, const GemmJob& job, std::ostream& err) {
  const auto note = [&](const char* name, const std::string& spec, const std::string& option,
                        DType type) {
    if (spec.empty() || !option.empty() || (type != DType::e4m3 && type != DType::e5m2)) return;
    const TensorSpec where = parse_spec(spec);
    if (where.kind != TensorSpec::Kind::safetensors) return;
    const SafetensorsFile file(where.path);
    const TensorFacts* const scales = scales_beside(file, where.tensor);
    if (scales == nullptr) return;
    err << "note: " << name << " is multiplied as it lies in its file, where "
        << printable(in_quotes(scales->name))
        << " is beside it: are these its scales? Then give --scale-" << (*name == 'A' ? "a " : "b ")
        << printable(where.path + ":" + scales->name) << " and --scaling.\n";
  };
  if (job.is_block_scaled() || job.product.packed) return;
  note("A", o.a, o.scale_a, job.a.dtype);
  note("B", o.b, o.scale_b, job.b.dtype);
}

void tell_scales(const GemmJob& job, std::ostream& err) {
  for (const bool of_a : {true, false}) {
    const auto& scales = of_a ? job.scales_of_a : job.scales_of_b;
    if (scales && scales->packed_alpha) {
      err << "note: " << (of_a ? "A" : "B") << " is as `warpwright pack` wrote it: its scales, and "
          << format("%.9g", static_cast<double>(*scales->packed_alpha))
          << " in alpha, come with it.\n";
    }
    if (!scales || scales->in_tiles) continue;
    err << "note: " << scales_name(of_a) << " is "
        << (scales->from.empty() ? "linear, " + shape_text(scales->tensor.shape) : scales->from)
        << ", and was put into tiles of 128 x 4.\n";
  }
}

}  // namespace warpwright::cli
