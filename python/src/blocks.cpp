#include "python/src/blocks.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "python/src/arguments.h"
#include "python/src/object.h"
#include "warpwright/run.h"

namespace warpwright::python {
namespace {

// The arguments that both functions have at their ends.
struct Call {
  Reader reader;
  void* on = nullptr;
  bool is_on = false;
  int device = run_nowhere;

  explicit Call(PyObject* stream) : is_on(stream != nullptr && stream != Py_None) {
    on = stream_of(is_on ? stream : nullptr);
    reader.set_stream(on);
  }
  Tensor read(PyObject* object, const char* name, bool is_written) {
    Tensor t = reader.read(object, name);
    if (device == run_nowhere) device = t.device;
    if (t.device != device) {
      throw Refused{refuse(RefusalCode::wrong_device, as_tensor(name), " lies in ",
                           place_name(t.device), ", and what it is made of in ",
                           place_name(device))};
    }
    if (!is_written || !t.read_only) return t;
    throw Refused{refuse(RefusalCode::bad_pointer, as_tensor(name), " is read-only; ",
                         as_rule("it needs memory that may be written"))};
  }
  ScaleGroups groups(PyObject* offsets) {
    if (offsets == nullptr || offsets == Py_None) return {};
    const Tensor t = read(offsets, "offsets", false);
    if (!t.offset || t.dimensions != 1 || t.shape[0] < 2 || t.stride[0] != 1) {
      throw Refused{refuse(RefusalCode::bad_type, as_tensor("offsets"),
                           " are no row of integers of 32 or 64 bits, one more than groups; the "
                           "nearest is ",
                           as_nearest("int32"))};
    }
    return {t.data, *t.offset, t.shape[0] - 1};
  }
  void finish() {
    check_stream(device, is_on);
    if (device >= 0 && !is_on) on = reader.current_stream(device);
  }
};

// The type of scales in bytes: as the format says it, else one whose padding harms neither.
void take_scales_as(MatrixView& view, DType scale) {
  const bool fits = view.dtype == scale || view.dtype == DType::u8 ||
                    (scale == DType::ue4m3 && view.dtype == DType::e4m3);
  if (fits) view.dtype = scale;
}

MatrixView flattened(MatrixView view) {
  view.rows *= view.batch;
  view.batch = 1;
  view.batch_stride = 0;
  return view;
}
MatrixView one_of(MatrixView view, std::int64_t matrix) {
  if (view.data != nullptr) {
    view.data = static_cast<std::byte*>(view.data) +
                matrix * view.batch_stride * numeric::bits(view.dtype) / 8;
  }
  view.batch = 1;
  view.batch_stride = 0;
  return view;
}
bool lies_on(const MatrixView& view) {
  return view.batch == 1 || view.batch_stride == view.rows * view.row_stride;
}

// A batch, whose matrices have tiles of their own.
std::optional<Refusal> quantise_batch(const Quantisation& q, const Call& call) {
  const bool as_one = lies_on(q.x) && lies_on(q.codes);
  Quantisation all = q;
  all.x = flattened(q.x);
  all.codes = flattened(q.codes);
  all.scales = flattened(q.scales);
  const bool finds = q.tensor_scale.data != nullptr && !q.given;
  const bool same =
      as_one && (q.order == ScaleOrder::rows ? lies_on(q.scales) : q.x.rows % 128 == 0);
  if (q.x.batch == 1 || same) return quantise(all, call.device, call.on);
  if (finds && !as_one) {
    return refuse(RefusalCode::bad_stride, "the matrices of ", as_tensor("x"),
                  " lie apart, and one scale is to be found for all: ", as_rule("give scale"));
  }
  if (finds) {  // with scales that are written once more below, where there are as many
    all.scales = {q.scales.data,
                  scale_tiles_of(q.scales.dtype, all.x.rows,
                                 ScaleReach::count(q.x.columns, micro_block(q.scales.dtype)))};
    if (auto r = quantise(all, call.device, call.on)) return r;
  }
  for (std::int64_t i = 0; i < q.x.batch; ++i) {
    Quantisation one = q;
    one.x = one_of(q.x, i);
    one.codes = one_of(q.codes, i);
    one.scales = one_of(q.scales, i);
    one.given = q.tensor_scale.data != nullptr;
    if (auto r = quantise(one, call.device, call.on)) return r;
  }
  return std::nullopt;
}

Recipe recipe_of(const char* word) {
  for (const Recipe each : {Recipe::floor, Recipe::up, Recipe::nested, Recipe::nested_4_or_6}) {
    if (std::strcmp(micro::name(each), word) == 0) return each;
  }
  throw Refused{refuse(RefusalCode::bad_value, "recipe is \"", word,
                       "\"; it is one of \"floor\", \"up\", \"nested\", \"4-or-6\"")};
}

// Where codes of a format and their scales go; and the scale of the tensor, if there is one.
void read_micro(Call& call, const MicroFormat& format, std::pair<PyObject*, PyObject*> of,
                bool given, bool linear, Quantisation& q) {
  const auto [scales, scale] = of;
  q.scaling = Scaling::block_scaled;
  if (q.codes.dtype == DType::u8) take_bytes_as(q.codes, format.element, "out");
  if (q.codes.dtype != format.element) {
    throw Refused{
        refuse(RefusalCode::bad_type, as_tensor("out"), " is ",
               std::string(numeric::name(q.codes.dtype)), "; ",
               as_rule("codes of ", format.word, " are ",
                       std::string(numeric::name(format.element)), ", or their bytes as uint8"))};
  }
  q.scales = matrix_of(call.read(scales, "scales", true));
  take_scales_as(q.scales, format.scale);
  if (q.scales.rows == 1 && !linear) q.scales.row_stride = q.scales.columns;
  const bool has_scale = scale != nullptr && scale != Py_None;
  if (has_scale) q.tensor_scale = scalar_of(call.read(scale, "scale", !given));
  q.given = has_scale && given;
}

}  // namespace

PyObject* quantise_values(PyObject* /*module*/, PyObject* args) {
  return method([&] {
    PyObject *x = nullptr, *codes = nullptr, *scales = nullptr, *scale = nullptr;
    PyObject *offsets = nullptr, *stream = nullptr;
    const char* word = nullptr;
    const char* recipe = nullptr;
    int given = 0;
    int linear = 0;
    parse_arguments(args, "OszpOOOpOO", &x, &word, &recipe, &given, &codes, &scales, &scale,
                    &linear, &offsets, &stream);
    const MicroFormat* const format = micro_format(std::string_view(word));
    const Scaling* const mode = std::ranges::find_if(all_scalings, [&](Scaling s) {
      return s != Scaling::none && !scales_elements(s) &&
             words_of(s).identifier == std::string(word);
    });
    if (format == nullptr && mode == std::end(all_scalings)) {
      throw Refused{refuse(RefusalCode::bad_value, "scaling is \"", word, "\"; ",
                           as_rule("it is one of \"tensor\", \"row_column\", \"blockwise\", or a "
                                   "format like \"mxf8\""))};
    }
    Call call(stream);
    Quantisation q;
    q.x = matrix_of(call.read(x, "x", false));
    q.codes = matrix_of(call.read(codes, "out", true));
    q.given = given != 0;
    if (format == nullptr) {
      q.scaling = *mode;
      const Tensor t = call.read(scales, "scales", given == 0);
      q.scales = q.scaling == Scaling::tensor      ? scalar_of(t)
                 : q.scaling == Scaling::blockwise ? matrix_of(t)
                                                   : vector_of(t);
    } else {
      read_micro(call, *format, {scales, scale}, given != 0, linear != 0, q);
    }
    if (recipe != nullptr) q.recipe = recipe_of(recipe);
    q.order = linear != 0 ? ScaleOrder::rows : ScaleOrder::tiles;
    q.groups = call.groups(offsets);
    if (q.codes.batch != q.x.batch || q.scales.batch != q.x.batch) {
      throw Refused{refuse(RefusalCode::bad_shape, as_tensor("out"), " and scales are batches of ",
                           q.codes.batch, " and ", q.scales.batch, ", and x one of ", q.x.batch,
                           ": the nearest legal is ", as_nearest(q.x.batch))};
    }
    call.finish();
    require_none(without_gil([&] { return quantise_batch(q, call); }));
    return Py_NewRef(Py_None);
  });
}

PyObject* order_scales(PyObject* /*module*/, PyObject* args) {
  return method([&] {
    PyObject *rows = nullptr, *tiles = nullptr, *offsets = nullptr, *stream = nullptr;
    ScaleReordering what;
    int is_spread = 0;
    parse_arguments(args, "OOOOiip", &rows, &tiles, &offsets, &stream, &what.rows_each,
                    &what.blocks_each, &is_spread);
    Call call(stream);
    what.rows = matrix_of(call.read(rows, "scales", false));
    what.tiles = matrix_of(call.read(tiles, "out", true));
    // Nobody knows which bytes are meant: the padding of ue4m3, 0, is a number of both.
    const bool powers = what.rows.dtype == DType::ue8m0 || is_spread != 0;
    const DType scale = powers ? DType::ue8m0 : DType::ue4m3;
    take_scales_as(what.rows, scale);
    take_scales_as(what.tiles, scale);
    what.groups = call.groups(offsets);
    call.finish();
    require_none(without_gil([&] { return reorder_scales(what, call.device, call.on); }));
    return Py_NewRef(Py_None);
  });
}

void add_formats(PyObject* module) {
  const Ref formats = Ref::checked(PyDict_New());
  for (const MicroFormat& f : micro_formats) {
    const Ref parts = Ref::checked(Py_BuildValue(
        "(sisi)", std::string(numeric::name(f.element)).c_str(), numeric::bits(f.element),
        std::string(numeric::name(f.scale)).c_str(), micro_block(f.scale)));
    if (PyDict_SetItemString(formats.get(), f.word, parts.get()) != 0) throw PythonError{};
  }
  if (PyModule_AddObjectRef(module, "formats", formats.get()) != 0) throw PythonError{};
}

}  // namespace warpwright::python
