#include "warpwright/weights/source.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "warpwright/layout/layout.h"
#include "warpwright/weights/tensor_rules.h"

namespace warpwright::weights {
namespace {

using layout::Layout;
using layout::make_layout;
using layout::tuple;

// Four-bit numbers of a matrix with axes n and x (k, or the groups along it): which of the axes
// comes first in memory, and along which one the numbers share a word.
struct Words {
  bool n_first = true;
  bool share_n = false;
  // Among eight neighbours along n the even ones have the lower half of the word.
  bool evens_low = false;
};

constexpr Words kRowsOfK = {true, false, false};
constexpr Words kDownK = {false, false, false};
constexpr Words kAcrossN = {false, true, false};
constexpr Words kDownN = {true, true, false};
constexpr Words kAwq = {false, true, true};

// A layout of checkpoints. Facts and sources: docs/packing.md.
struct Row {
  LayoutNames names;
  Words codes;
  Words zeros;    // words of 32 bits
  int word = 32;  // bits of a word of codes
  bool is_unsigned = true;
  bool scales_n_first = true;  // else the groups come first
  bool needs_zeros = false;
  int zero_bias = 0;
  bool interleaves = false;  // the scales may lie as [K / 4 groups, 4 N]
};

constexpr LayoutNames kCompressed = {"compressed-tensors", ".weight_packed", ".weight_scale",
                                     ".weight_zero_point", ".weight_g_idx"};
constexpr LayoutNames kExperts = {"compressed-tensors-experts", "_packed", "_scale", "_zero_point",
                                  "_g_idx"};
constexpr LayoutNames gptq(std::string_view layout) {
  return {layout, ".qweight", ".scales", ".qzeros", ".g_idx"};
}
constexpr Row kRows[] = {
    {kCompressed, kRowsOfK, kDownN},
    {kExperts, kRowsOfK, kDownN},
    {gptq("gptq"), kDownK, kAcrossN, 32, true, false, true, 1},
    {gptq("gptq-v2"), kDownK, kAcrossN, 32, true, false, true},
    {{"awq", ".qweight", ".scales", ".qzeros", ""}, kAwq, kAwq, 32, true, false, true},
    {{"w4afp8", "", "_scale_inv", "", ""}, kRowsOfK, {}, 8, false, true, false, 0, true},
    {{"int4", "", "_scale", "", ""}, kRowsOfK, {}, 8, false},
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// (n, x) -> four bits, of words that hold `each` of them.
Layout places(const Words& w, std::int64_t n, std::int64_t x, int each) {
  const std::int64_t shared = ceil_div(w.share_n ? n : x, each);  // words along that axis
  const std::int64_t other = w.share_n ? x : n;
  const bool shared_first = w.share_n == w.n_first;
  const std::int64_t word = shared_first ? each * other : each;  // from one to the next along it
  const std::int64_t step = shared_first ? each : each * shared;
  const Layout along = w.evens_low
                           ? make_layout(tuple(2, each / 2, shared), tuple(each / 2, 1, word))
                           : make_layout(tuple(each, shared), tuple(1, word));
  const Layout across = make_layout(other, step);
  return w.share_n ? make_layout(along, across) : make_layout(across, along);
}

// The rows and columns of the tensor of such words.
std::array<std::int64_t, 2> shape_of(const Words& w, std::int64_t n, std::int64_t x, int each) {
  const std::int64_t words_n = w.share_n ? ceil_div(n, each) : n;
  const std::int64_t words_x = w.share_n ? x : ceil_div(x, each);
  return w.n_first ? std::array{words_n, words_x} : std::array{words_x, words_n};
}

std::string text(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + " x " + std::to_string(columns);
}

// What a reader looks at: one matrix, or a batch of them.
struct Reader {
  const Row& row;
  const CheckpointTensors& t;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t groups = 0;  // along K

  [[nodiscard]] std::optional<Refusal> fault_of(std::string_view suffix, const MatrixView& v,
                                                bool is_legal_type, const char* types) const {
    return checkpoint_fault({row.names.layout, suffix, types, is_legal_type}, v, t.codes.batch);
  }

  // Sets n, k and the groups.
  std::optional<Refusal> shapes() {
    const DType type = t.codes.dtype;
    const bool is_byte = type == DType::s8 || type == DType::u8;
    if (auto f = fault_of(row.names.codes, t.codes, row.word == 32 ? type == DType::s32 : is_byte,
                          row.word == 32 ? "s32" : "s8 or u8")) {
      return f;
    }
    const DType scale = t.scales.dtype;
    if (auto f = fault_of(row.names.scales, t.scales,
                          scale == DType::bf16 || scale == DType::f16 || scale == DType::f32,
                          "bf16, fp16 or f32")) {
      return f;
    }
    const Words& w = row.codes;
    n = w.n_first ? t.codes.rows : t.codes.columns;
    k = w.n_first ? t.codes.columns : t.codes.rows;
    (w.share_n ? n : k) *= row.word / 4;
    if (auto f = depth_fault()) return f;
    groups = row.scales_n_first ? t.scales.columns : t.scales.rows;
    const std::int64_t scale_rows = row.scales_n_first ? t.scales.rows : t.scales.columns;
    if (scale_rows != n && row.interleaves && t.scales.columns == 4 * n) {
      interleaved = true;
      groups = 4 * t.scales.rows;
    } else if (scale_rows != n) {
      return refuse(RefusalCode::bad_shape, "The scales are ",
                    text(t.scales.rows, t.scales.columns), " and the codes ",
                    text(t.codes.rows, t.codes.columns), ", which in layout ", row.names.layout,
                    " stand for N = ", scale_rows, " and N = ", n, ".");
    }
    if (k % groups != 0) {
      return refuse(RefusalCode::bad_shape, "K = ", k, " is no multiple of its ", groups,
                    " groups: ", as_rule("every scale must serve as many weights"), ".");
    }
    const std::int64_t group = k / groups;
    if (group != 32 && group != 64 && group % 128 != 0) {
      Sentence legal = as_rule("groups of 32, 64 and multiples of 128 are packed");
      return groups > 1
                 ? refuse(RefusalCode::bad_shape, "The weights have groups of ", group, " (K = ", k,
                          ", ", groups, " scales a row); ", legal, ".")
                 : refuse(RefusalCode::bad_shape, "The weights have a scale a row, for K = ", k,
                          "; ", legal, ": the nearest legal K is ",
                          as_nearest((k + 127) / 128 * 128), zeros_behind, ".");
    }
    return std::nullopt;
  }

  // Where K is known apart, it is that which fills the words; K of the codes is that then.
  std::optional<Refusal> depth_fault() {
    if (t.k == 0) return std::nullopt;
    const int each = row.word / 4;
    if (row.codes.share_n || ceil_div(t.k, each) * each != k) {
      return refuse(RefusalCode::bad_shape, named(row.names.codes), " is ",
                    text(t.codes.rows, t.codes.columns), ", and K is ", t.k, ": ",
                    as_rule("codes of 4 bits are ", text(n, ceil_div(t.k, each)),
                            ", and other widths are not packed"),
                    ".");
    }
    k = t.k;
    return std::nullopt;
  }

  // A tensor's whole name, where it is known.
  [[nodiscard]] std::string named(std::string_view suffix) const {
    return t.stem.empty() ? tensor_name(suffix) : "Tensor \"" + t.stem + std::string(suffix) + "\"";
  }

  // GPTQ's words of codes do not say how wide these are; zero points do, and the groups of all k.
  [[nodiscard]] std::optional<Refusal> width_fault() const {
    const bool is_gptq = row.names.zeros == ".qzeros" && !row.codes.share_n;
    if (!is_gptq) return std::nullopt;
    const auto other = [&](std::string_view suffix, std::int64_t bits) {
      return refuse(RefusalCode::unsupported, named(suffix), " says that the codes have ", bits,
                    " bits: ", as_rule("weights of 4 bits are packed"), ".");
    };
    const auto is_width = [](std::int64_t bits) { return bits == 2 || bits == 3 || bits == 8; };
    const MatrixView& index = t.group_index;
    if (index.data != nullptr && index.batch == t.codes.batch && index.columns > 0) {
      const std::int64_t bits = 32 * t.codes.rows / index.columns;
      if (32 * t.codes.rows % index.columns == 0 && is_width(bits)) {
        return other(row.names.group_index, bits);
      }
    }
    const MatrixView& z = t.zeros;
    if (z.data != nullptr && z.rows == groups && 32 * z.columns % n == 0 &&
        is_width(32 * z.columns / n)) {
      return other(row.names.zeros, 32 * z.columns / n);
    }
    if (z.data != nullptr) return std::nullopt;
    return refuse(RefusalCode::bad_pointer, named(row.names.zeros),
                  " is missing, so nothing says of how many bits the codes are: ",
                  as_rule("weights in layout ", row.names.layout,
                          " have it, for symmetric ones of 4 "
                          "bits all its words are 0x77777777, or 0x88888888 in version 2"),
                  ".");
  }

  [[nodiscard]] std::optional<Refusal> zeros_fault() const {
    if (auto f = width_fault()) return f;
    if (t.zeros.data == nullptr && !row.needs_zeros) return std::nullopt;
    if (row.names.zeros.empty()) {
      return refuse(RefusalCode::bad_value, "Weights in layout ", row.names.layout,
                    " have no zero points: ", as_rule("leave them out"), ".");
    }
    if (auto f = fault_of(row.names.zeros, t.zeros, t.zeros.dtype == DType::s32, "s32")) return f;
    const auto wanted = shape_of(row.zeros, n, groups, 8);
    if (t.zeros.rows == wanted[0] && t.zeros.columns == wanted[1]) return std::nullopt;
    return refuse(RefusalCode::bad_shape, named(row.names.zeros), " is ",
                  text(t.zeros.rows, t.zeros.columns), "; ",
                  as_rule("for N = ", n, " and ", groups, " groups it is ",
                          text(wanted[0], wanted[1]), " in layout ", row.names.layout),
                  ".");
  }

  // Groups of neighbours along K, in order, are all that one tile's scales can serve.
  [[nodiscard]] std::optional<Refusal> order_fault() const {
    const MatrixView& index = t.group_index;
    if (index.data == nullptr) return std::nullopt;
    if (row.names.group_index.empty()) {
      return refuse(RefusalCode::bad_value, "Weights in layout ", row.names.layout,
                    " have no group index: ", as_rule("leave it out"), ".");
    }
    if (auto f = fault_of(row.names.group_index, index, index.dtype == DType::s32, "s32")) {
      return f;
    }
    if (index.rows * index.columns != k) {
      return refuse(RefusalCode::bad_shape, named(row.names.group_index), " has ",
                    index.rows * index.columns, " numbers; ", as_rule("K is ", k), ".");
    }
    for (std::int64_t i = 0; i < index.batch * k; ++i) {
      std::int32_t of = 0;
      std::memcpy(&of, static_cast<const std::byte*>(index.data) + 4 * i, 4);
      const std::int64_t at = i % k;
      if (of == at * groups / k) continue;
      return refuse(RefusalCode::unsupported, named(row.names.group_index), " puts k = ", at,
                    " into group ", of, " and not ", at * groups / k,
                    ": weights in act-order are not packed; ",
                    as_rule("dequantise them, with GPTQModel for example, and pack the floats, or "
                            "take a checkpoint without desc_act"),
                    ".");
    }
    return std::nullopt;
  }

  [[nodiscard]] Layout scale_places() const {
    if (interleaved)
      return make_layout(make_layout(n, 4), make_layout(tuple(4, groups / 4), tuple(1, 4 * n)));
    return row.scales_n_first ? make_layout(tuple(n, groups), tuple(groups, 1))
                              : make_layout(tuple(n, groups), tuple(1, n));
  }

  bool interleaved = false;
};

const Row* find_row(std::string_view layout) {
  for (const Row& row : kRows) {
    if (row.names.layout == layout) return &row;
  }
  return nullptr;
}

std::size_t bytes_of(const MatrixView& v) {
  return static_cast<std::size_t>(v.rows * v.columns * numeric::bits(v.dtype) / 8);
}

// Looks at all zero points: notes whether one is not 8, refuses what is none of 0..15.
std::optional<Refusal> look_at_zeros(Source& s) {
  const std::int64_t groups = s.extents.k / s.group;
  for (const Source::Matrix& m : s.experts) {
    if (m.zeros == nullptr) continue;
    for (std::int64_t n = 0; n < s.extents.n; ++n) {
      const std::int64_t first = s.zeros(n, 0);
      for (std::int64_t g = 0; g < groups; ++g) {
        const std::int64_t at = first + s.zeros(0, g);
        const int stored = static_cast<int>(m.zeros[at / 2] >> at % 2 * 4) & 15;
        if (stored + s.zero_bias > 15) {
          return refuse(RefusalCode::unsupported, "The zero point of row ", n, " and group ", g,
                        " is stored as ", stored, ", which in layout ", s.origin,
                        " stands for 16, and no code is that large: ",
                        as_rule("try the other version of the layout"), ".");
        }
        s.has_zero_points = s.has_zero_points || stored + s.zero_bias != 8;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::string tensor_name(std::string_view suffix) {
  if (suffix.empty()) return "The tensor of codes";
  return "Tensor *" + std::string(suffix);
}

std::optional<Refusal> checkpoint_fault(const CheckpointTensor& is, const MatrixView& v,
                                        std::int64_t experts) {
  if (v.data == nullptr) {
    return refuse(RefusalCode::bad_pointer, tensor_name(is.suffix),
                  " is missing, and weights in layout ", is.layout, " have it.");
  }
  if (!is.is_legal_type) {
    return refuse(RefusalCode::bad_type, tensor_name(is.suffix), " has type ",
                  numeric::word(v.dtype), "; ",
                  as_rule("it is ", is.types, " in layout ", is.layout), ".");
  }
  // Strides along an extent of 1 say nothing.
  if ((v.columns > 1 && v.column_stride != 1) || (v.rows > 1 && v.row_stride != v.columns) ||
      (v.batch > 1 && v.batch_stride != v.rows * v.columns)) {
    return refuse(RefusalCode::bad_stride, tensor_name(is.suffix), " has gaps or another order; ",
                  as_rule("the tensors of checkpoints are row-major"), ".");
  }
  if (v.batch != experts || v.batch < 1 || v.rows < 1 || v.columns < 1) {
    return refuse(RefusalCode::bad_shape, tensor_name(is.suffix), " has ", v.batch, " matrices of ",
                  text(v.rows, v.columns), "; ", as_rule("the codes are of ", experts, " experts"),
                  ".");
  }
  return std::nullopt;
}

std::span<const LayoutNames> layouts() {
  static const auto all = [] {
    std::vector<LayoutNames> names(micro_layouts().begin(), micro_layouts().end());
    for (const Row& row : kRows) names.push_back(row.names);
    return names;
  }();
  return all;
}

const LayoutNames* layout_named(std::string_view layout) {
  const auto all = layouts();
  const auto found = std::ranges::find(all, layout, &LayoutNames::layout);
  return found == all.end() ? nullptr : &*found;
}

Result<Source> read_places(std::string_view layout, std::span<const CheckpointTensors> tensors) {
  const LayoutNames* const names = layout_named(layout);
  if (names == nullptr || tensors.empty()) {
    std::string known;
    for (const LayoutNames& each : layouts()) {
      known += (known.empty() ? "" : ", ") + std::string(each.layout);
    }
    return refuse(RefusalCode::bad_value, "There are no weights in layout \"", layout, "\"; ",
                  as_rule("the layouts that are read are ", known), ".");
  }
  if (names->format != nullptr) return read_micro_places(*names, tensors);
  const Row* const row = find_row(layout);
  Source source;
  source.origin = row->names.layout;
  source.is_unsigned = row->is_unsigned;
  source.zero_bias = row->zero_bias;
  for (const CheckpointTensors& t : tensors) {
    Reader reader{*row, t};
    if (auto f = reader.shapes()) return *f;
    if (auto f = reader.zeros_fault()) return *f;
    if (auto f = reader.order_fault()) return *f;
    const packed::Extents extents{1, reader.n, reader.k};
    const int group = static_cast<int>(reader.k / reader.groups);
    const Layout scales = reader.scale_places();
    if (source.experts.empty()) {
      source.extents = extents;
      source.group = group;
      source.scale = t.scales.dtype;
      source.codes = places(row->codes, reader.n, reader.k, row->word / 4);
      source.scales = scales;
      source.zeros = places(row->zeros, reader.n, reader.groups, 8);
    } else if (extents != packed::Extents{1, source.extents.n, source.extents.k} ||
               group != source.group || scales != source.scales || t.scales.dtype != source.scale) {
      return refuse(RefusalCode::bad_shape, "Expert ", source.experts.size(), " has N = ", reader.n,
                    ", K = ", reader.k, " in groups of ", group, " with scales of ",
                    numeric::word(t.scales.dtype), "; ",
                    as_rule("expert 0 has N = ", source.extents.n, ", K = ", source.extents.k, ", ",
                            source.group, " and ", numeric::word(source.scale)),
                    ".");
    }
    for (std::int64_t e = 0; e < t.codes.batch; ++e) {
      const auto at = [e](const MatrixView& v) {
        return static_cast<const std::byte*>(v.data) +
               (v.data == nullptr ? 0 : static_cast<std::size_t>(e) * bytes_of(v));
      };
      source.experts.push_back({at(t.codes), at(t.scales), at(t.zeros), 1});
    }
  }
  source.extents.experts = static_cast<std::int64_t>(source.experts.size());
  return source;
}

std::optional<Refusal> look(Source& source) {
  return source.format != nullptr ? look_at_micro_scales(source) : look_at_zeros(source);
}

Result<Source> read_checkpoint(std::string_view layout,
                               std::span<const CheckpointTensors> tensors) {
  auto source = read_places(layout, tensors);
  if (source) {
    if (auto f = look(*source)) return *f;
  }
  return source;
}

bool has_least_code(const Source& source) {
  if (source.seen) return source.seen->least_code;
  const std::int64_t bytes = source.extents.n * source.extents.k / 2;
  for (const Source::Matrix& m : source.experts) {
    for (std::int64_t i = 0; i < bytes; i += 8) {
      std::uint32_t words[2];
      std::memcpy(words, m.codes + i, sizeof words);
      for (const std::uint32_t eight : words) {
        if (packed::has_least_code(eight, source.is_unsigned)) return true;
      }
    }
  }
  return false;
}

}  // namespace warpwright::weights
