// Operands whose types do not say what they are multiplied as, and scales that the tensor core
// multiplies: what the words of operands=, a_type= and b_type= make of bytes.
#include <algorithm>

#include "python/src/arguments.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::python {
namespace {

/// What an operand is multiplied as. A format says the scales too.
struct OperandWord {
  DType element = DType::tf32;
  std::optional<DType> scale;
};

constexpr std::size_t format_count = std::size(micro_formats);

// "tf32", the types of formats' elements, and the formats.
constexpr auto operand_words = [] {
  std::array<const char*, 1 + kDTypeCount + format_count> words{"tf32"};
  std::array<OperandWord, words.size()> what{};
  std::size_t count = 1;
  for (const MicroFormat& f : micro_formats) {
    if (micro_format(f.element, DType::ue8m0) != &f) continue;  // an element's first
    words[count] = numeric::name(f.element).data();
    what[count++] = {f.element, {}};
  }
  for (const MicroFormat& f : micro_formats) {
    words[count] = f.word;
    what[count++] = {f.element, f.scale};
  }
  struct All {
    decltype(words) texts;
    decltype(what) meanings;
    std::size_t size;
  };
  return All{words, what, count};
}();

std::string type_name_of(const Tensor& t) {
  return std::string(t.type ? numeric::name(*t.type) : "integers");
}

// Is it said of A, or of B?
std::optional<OperandWord> said_of(const Arguments& given, bool of_a) {
  const Arg own = of_a ? Arg::a_type : Arg::b_type;
  const std::span words(operand_words.texts.data(), operand_words.size);
  const int both = given.word(Arg::operands, words);
  const int one = given.word(own, words);
  if (both >= 0 && one >= 0) {
    throw Refused{bad(own, "is given beside operands, which says both: leave one of them out")};
  }
  if (both < 0 && one < 0) return std::nullopt;
  return operand_words.meanings[static_cast<std::size_t>(std::max(both, one))];
}

// A number of elements that so many bytes are, of a row or from row to row.
std::int64_t elements_of(std::int64_t bytes, DType type, const char* name, const char* of) {
  const std::int64_t piece = whole_elements(1, type) * numeric::bits(type) / 8;  // bytes
  if (bytes % piece != 0) {
    const std::int64_t nearest = (bytes + piece - 1) / piece * piece;
    throw Refused{refuse(RefusalCode::bad_shape, as_tensor(name), " has ", of, " of ", bytes,
                         " bytes, and ", whole_elements(1, type), " elements of ", type_name(type),
                         " are ", piece, ": the nearest legal is ", as_nearest(nearest))};
  }
  return bytes / piece * whole_elements(1, type);
}

// What the scales of an operand may be in other libraries.
bool may_be(const Tensor& t, DType scale) {
  return t.type == scale || t.type == DType::u8 || (scale == DType::ue4m3 && t.type == DType::e4m3);
}

}  // namespace

std::optional<DType> scale_type_of(const std::optional<Tensor>& t, DType element) {
  if (element != DType::e2m1) return DType::ue8m0;
  if (!t || t->type == DType::u8) return std::nullopt;
  return t->type == DType::ue8m0 ? DType::ue8m0 : DType::ue4m3;
}

MatrixView scale_tiles(const Tensor& t, const MatrixView& of, const MatrixShape& shape,
                       std::int64_t matrices) {
  const MicroFormat* const format = micro_format(of.dtype, shape.dtype);
  if (format == nullptr) return {t.data, shape};  // the rules refuse the operand
  if (!may_be(t, shape.dtype)) {
    const bool nvf4 = shape.dtype == DType::ue4m3;
    throw Refused{
        refuse(RefusalCode::bad_type, as_tensor(t.name), " is ", type_name_of(t), "; ",
               as_rule("the scales of ", format->word, " are ",
                       nvf4 ? "float8_e4m3fn" : "float8_e8m0fnu", ", or their bytes as uint8"))};
  }
  const std::int64_t one = shape.rows * shape.columns;
  const std::int64_t batch = t.elements() == one ? 1 : matrices;
  const bool contiguous = t.is_contiguous();
  if (!contiguous || t.elements() != batch * one) {
    const std::int64_t blocks =
        (of.columns + micro_block(shape.dtype) - 1) / micro_block(shape.dtype);
    const bool linear = t.elements() == of.rows * blocks * of.batch;
    throw Refused{
        refuse(RefusalCode::bad_shape, as_tensor(t.name), " has ", t.elements(), " elements",
               contiguous ? "" : " that are not contiguous", "; ",
               as_rule("the scales of ", of.rows, " x ", of.columns, " elements are ", one,
                       " bytes in tiles of 128 x 4, as cuBLASLt and PyTorch have them",
                       matrices > 1 ? ", for each of " + std::to_string(matrices) : ""),
               linear ? ": linear ones become that by " : "",
               linear ? as_nearest("warpwright.block_scales(", t.name, ")") : as_nearest(""))};
  }
  // As many bytes as scales that lie row by row: what it is must be said by the shape.
  const auto last = static_cast<std::size_t>(t.dimensions) - 1;
  if (t.dimensions >= 2 && of.rows > 1 && t.shape[last - 1] == of.rows &&
      t.shape[last] * micro_block(shape.dtype) == of.columns) {
    throw Refused{
        refuse(RefusalCode::bad_shape, as_tensor(t.name), " is ", t.shape[last - 1], " x ",
               t.shape[last], ", which scales row by row are, and those in tiles as well: ",
               as_rule("tiles of 128 x 4 come in another shape, such as one row; "
                       "warpwright.block_scales(",
                       t.name, ") makes them of rows"),
               ": the nearest is ", as_nearest(t.name, ".reshape(-1)"), " where it is tiles")};
  }
  MatrixView view(t.data, shape);
  view.row_stride = shape.columns;
  view.batch = batch;
  view.batch_stride = batch > 1 ? one : 0;
  return view;
}

void take_bytes_as(MatrixView& view, DType type, const char* name) {
  if (view.column_stride != 1 && view.columns > 1) {
    throw Refused{refuse(RefusalCode::bad_stride, as_tensor(name), " has bytes that are ",
                         view.column_stride, " apart along K, and holds ", type_name(type), "; ",
                         as_rule("the bytes of a row lie next to each other"),
                         ": the nearest legal is ", as_nearest("1"))};
  }
  view.dtype = type;
  view.columns = elements_of(view.columns, type, name, "rows");
  if (view.rows > 1) view.row_stride = elements_of(view.row_stride, type, name, "a row stride");
  if (view.batch > 1) {
    view.batch_stride = elements_of(view.batch_stride, type, name, "a batch stride");
  }
  settle_lone_row(view);
}

// What A's and B's bytes are, where their types do not say it.
void Product::read_operand_types(const Arguments& given) {
  for (const bool of_a : {true, false}) {
    const auto said = said_of(given, of_a);
    if (!said) continue;
    MatrixView& view = of_a ? operands.a : operands.b;
    const char* const name = of_a ? "A" : "B";
    said_scales_[of_a ? 0 : 1] = said->scale;
    if (view.dtype == said->element) continue;
    const bool is_tf32 = said->element == DType::tf32;
    if (view.dtype != (is_tf32 ? DType::f32 : DType::u8)) {
      const std::string word = type_name(said->element);
      throw Refused{refuse(RefusalCode::bad_type, as_tensor(name), " is ", type_name(view.dtype),
                           ", and it is to be multiplied as ", word, ", which lies as ",
                           is_tf32 ? "float32" : word + ", or in bytes of uint8")};
    }
    if (is_tf32) {
      view.dtype = DType::tf32;
    } else {
      take_bytes_as(view, said->element, name);
    }
  }
}

void Product::guess_scaling(const ScaleTensors& scales, bool grouped) {
  const auto is_micro = [&](bool of_a) {
    const auto& t = scales[of_a ? 0 : 1];
    return said_scales_[of_a ? 0 : 1] || (t && t->type == DType::ue8m0) ||
           (t && t->type == DType::u8) ||
           (t && numeric::bits((of_a ? operands.a : operands.b).dtype) < 8 && !operands.packed);
  };
  if (is_micro(true) || is_micro(false)) {
    operands.scaling = Scaling::block_scaled;
    return;
  }
  if (!scales[0] && !scales[1]) return;
  // By the shapes: one number; one a row; else one a block. B of groups has one dimension more.
  const Tensor& one = scales[0] ? *scales[0] : *scales[1];
  guesses_scaling_ = true;
  if (grouped && scales[1] && scales[1]->dimensions <= 1) {
    operands.scaling = Scaling::group;
  } else if (one.dimensions == 0 || (one.dimensions == 1 && one.elements() == 1 &&
                                     (!scales[1] || scales[1]->elements() == 1))) {
    operands.scaling = Scaling::tensor;
  } else {  // one number beside several: the scale of the only row
    // Beside tokens of 16 bits packed weights have one a row, no blocks.
    const bool of_rows = operands.packed && numeric::bits(operands.a.dtype) == 16;
    // As a column or a row of them, where they are not as many as the blocks.
    const auto are_rows = [&](bool of_a) {
      const auto& t = scales[of_a ? 0 : 1];
      const MatrixView& of = of_a ? operands.a : operands.b;
      if (!t || t->dimensions < 2) return false;
      const auto last = static_cast<std::size_t>(t->dimensions) - 1;
      const auto is = [&](std::int64_t rows, std::int64_t columns) {
        return t->shape[last - 1] == rows && t->shape[last] == columns;
      };
      for (std::int64_t block = scale_block; block >= least_scale_block; block /= 2) {
        const std::int64_t rows = ScaleReach::count(of.rows, of_a ? 1 : block);
        if (is(rows, ScaleReach::count(of.columns, block))) return false;
      }
      return is(of.rows, 1) || is(1, of.rows);
    };
    operands.scaling = one.dimensions == 1 || of_rows || are_rows(true) || are_rows(false)
                           ? Scaling::row_column
                           : Scaling::blockwise;
  }
}

void Product::read_scale_tiles(const ScaleTensors& scales) {
  std::array<std::optional<DType>, 2> types;
  for (const std::size_t side : {0U, 1U}) {
    const DType element = (side == 0 ? operands.a : operands.b).dtype;
    types[side] = said_scales_[side] ? said_scales_[side] : scale_type_of(scales[side], element);
  }
  GemmProblem p = problem_of(operands);
  p.d.rows = operands.is_by_index() ? slots_ : operands.a.rows;  // there is no D yet
  for (const bool of_a : {true, false}) {
    const std::size_t side = of_a ? 0 : 1;
    const MatrixView& of = of_a ? operands.a : operands.b;
    // As the other's, of the same elements.
    const auto type = types[side] ? types[side] : types[1 - side];
    if (!type && scales[side]) {
      throw Refused{refuse(RefusalCode::bad_type, as_tensor(scales[side]->name),
                           " is uint8, and may be float8_e4m3fn (nvf4) or float8_e8m0fnu (mxf4): ",
                           as_rule("give it that type, or say ", of_a ? "a_type" : "b_type"),
                           ": the nearest is ", as_nearest("\"nvf4\""))};
    }
    if (type) (of_a ? p.scale_a : p.scale_b).dtype = *type;
    MatrixView& view = of_a ? operands.scale_a : operands.scale_b;
    view.dtype = (of_a ? p.scale_a : p.scale_b).dtype;
    if (!scales[side]) continue;
    if (!type) {
      view = {scales[side]->data, scale_shape(p, of_a)};  // the rules refuse the operand
      continue;
    }
    const std::int64_t matrices =
        operands.groups ? of.batch : std::max(operands.a.batch, operands.b.batch);
    view = scale_tiles(*scales[side], of, scale_shape(p, of_a), matrices);
  }
}

}  // namespace warpwright::python
