#include "python/src/packing.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "cli/commands/pack_command.h"
#include "python/src/packing_parts.h"
#include "warpwright/device/pack.h"
#include "warpwright/weights/pack_e2m1.h"

namespace warpwright::python {
namespace {

DType scale_of(const char* word) {
  const auto type = numeric::parse_dtype(word);
  if (type == DType::bf16 || type == DType::f16 || type == DType::f32) return *type;
  throw Refused{refuse(RefusalCode::bad_type, "the scales are \"", word,
                       "\"; the nearest legal type is ", as_nearest("bf16"))};
}

weights::PackOptions pack_options(const char* encoding, const char* scales) {
  weights::PackOptions options;
  if (const packed::WeightForm* const form = form_named(encoding, false)) {
    options.encoding = form->storage.encoding;
    options.tokens = form->tokens;
    const packed::WeightFormat& format = packed::format_of(*form);
    if (!packed::has_groups(format)) options.scale = format.scales[0];
  }
  if (scales != nullptr && !options.scale) options.scale = scale_of(scales);
  return options;
}

// The whole packed tensor, or only its header.
std::vector<std::byte> host_bytes(const Tensor& t, std::int64_t most) {
  if (t.type != DType::u8 || t.dimensions != 1 || (t.shape[0] > 1 && t.stride[0] != 1)) {
    throw Refused{refuse(RefusalCode::bad_type,
                         "data are no contiguous row of uint8, which packed weights are")};
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(most, t.shape[0])));
  if (t.device == run_on_model) {
    std::memcpy(bytes.data(), t.data, bytes.size());
    return bytes;
  }
  const WithoutGil others;
  const CurrentDevice current(t.device);
  if (current.fault()) throw Refused{*current.fault()};
  if (auto r =
          device::copy_to_host(bytes.data(), t.data, static_cast<std::int64_t>(bytes.size()))) {
    throw Refused{*r};
  }
  return bytes;
}

}  // namespace

PyObject* packed_forms(PyObject* /*module*/, PyObject* /*args*/) {
  return function([] {
    const Ref all = Ref::checked(PyList_New(0));
    for (const packed::WeightForm& form : packed::weight_forms) {
      const packed::WeightFormat& format = packed::format_of(form);
      const Ref scales = Ref::checked(PyList_New(0));
      const Ref groups = Ref::checked(PyList_New(0));
      for (const DType each : format.scales) {
        if (each == DType::f64) continue;
        const Ref name = Ref::checked(PyUnicode_FromString(numeric::name(each).data()));
        if (PyList_Append(scales.get(), name.get()) != 0) refuse_arguments();
      }
      for (const int each : format.groups) {
        if (each == 0) continue;
        const Ref group = Ref::checked(PyLong_FromLong(each));
        if (PyList_Append(groups.get(), group.get()) != 0) refuse_arguments();
      }
      const Ref row = Ref::checked(
          Py_BuildValue("(isssOOii)", form.number, form.word, format.word,
                        numeric::name(form.tokens).data(), scales.get(), groups.get(),
                        int{format.has_factor}, int{packed::has_float_codes(packed_format(form))}));
      if (PyList_Append(all.get(), row.get()) != 0) refuse_arguments();
    }
    return Py_NewRef(all.get());
  });
}

PyObject* quantise_rows(PyObject* /*module*/, PyObject* args) {
  return function([&]() -> PyObject* {
    PyObject* x = nullptr;
    const char* scaling = nullptr;
    int given = 0;
    PyObject* codes = nullptr;
    PyObject* scales = nullptr;
    PyObject* stream = nullptr;
    if (PyArg_ParseTuple(args, "OspOOO", &x, &scaling, &given, &codes, &scales, &stream) == 0) {
      refuse_arguments();
    }
    const std::string_view word = scaling;
    const auto* const mode =
        std::find_if(std::begin(all_scalings), std::end(all_scalings), [&](Scaling s) {
          return s != Scaling::none && !scales_elements(s) && words_of(s).identifier == word;
        });
    if (mode == std::end(all_scalings)) {
      throw Refused{refuse(RefusalCode::bad_value, "scaling is \"", word, "\"; ",
                           as_rule("it is one of \"tensor\", \"row_column\", \"blockwise\", or a "
                                   "format like \"mxf8\""))};
    }
    Reader reader;
    void* on = stream_of(is_given(stream) ? stream : nullptr);
    reader.set_stream(on);
    Tensor t[3] = {reader.read(x, "x"), reader.read(codes, "the codes"),
                   reader.read(scales, "the scales")};
    for (const Tensor& each : t) {
      if (each.device == t[0].device) continue;
      throw Refused{refuse(RefusalCode::wrong_device, as_tensor(each.name), " lie in ",
                           place_name(each.device), " and x in ", place_name(t[0].device))};
    }
    for (int i = 1; i < 3; ++i) {
      if (!t[i].read_only || (i == 2 && given != 0)) continue;
      throw Refused{refuse(RefusalCode::bad_pointer, t[i].name, " are read-only; ",
                           as_rule("they need memory that may be written"))};
    }
    Quantisation q;
    q.x = matrix_of(t[0]);
    q.codes = matrix_of(t[1]);
    q.scaling = *mode;
    q.scales = q.scaling == Scaling::tensor      ? scalar_of(t[2])
               : q.scaling == Scaling::blockwise ? matrix_of(t[2])
                                                 : vector_of(t[2]);
    q.given = given != 0;
    check_stream(t[0].device, is_given(stream));
    if (t[0].device >= 0 && !is_given(stream)) on = reader.current_stream(t[0].device);
    std::optional<Refusal> refused;
    {
      const WithoutGil others;
      refused = quantise(q, t[0].device, on);
    }
    if (refused) throw Refused{*refused};
    Py_RETURN_NONE;
  });
}

PyObject* int4_quantise(PyObject* /*module*/, PyObject* args) {
  return function([&] {
    PyObject* weights = nullptr;
    int group = 0;
    const char* encoding = nullptr;
    const char* scales = nullptr;
    int zeros = 0;
    if (PyArg_ParseTuple(args, "Oizzp", &weights, &group, &encoding, &scales, &zeros) == 0) {
      refuse_arguments();
    }
    Reader reader;
    const Tensor t = reader.read(weights, "the weights");
    require_host(t);
    const MatrixView view = matrix_of(t);
    weights::QuantiseOptions how;
    const packed::WeightForm* const form = form_named(encoding, false);
    const bool has_own = form != nullptr && !packed::has_groups(packed::format_of(*form));
    how.group = has_own ? packed::format_of(*form).groups[2] : group;
    const weights::PackOptions options = pack_options(encoding, scales);
    how.encoding = options.encoding.value_or(how.encoding);
    how.scale = options.scale.value_or(how.scale);
    how.zero_points = zeros != 0 ? ZeroPoints::groups : ZeroPoints::none;
    std::vector<std::byte> bytes;
    {
      const WithoutGil others;
      const auto quantised = taken(weights::quantise(std::span(&view, 1), how));
      bytes = taken(
          weights::pack(weights::source_of(quantised), {how.encoding, how.scale, options.tokens}));
    }
    return array_of(bytes);
  });
}

PyObject* int4_pack(PyObject* /*module*/, PyObject* args) {
  return function([&]() -> PyObject* {
    const char* layout = nullptr;
    PyObject* objects[4] = {};
    const char* encoding = nullptr;
    const char* scales = nullptr;
    if (PyArg_ParseTuple(args, "sOOOOzz", &layout, &objects[0], &objects[1], &objects[2],
                         &objects[3], &encoding, &scales) == 0) {
      refuse_arguments();
    }
    Reader reader;
    using Tensors = weights::CheckpointTensors;
    const Tensors tensors =
        checkpoint_tensors(reader, {{objects[0], "the codes", &Tensors::codes},
                                    {objects[1], "the scales", &Tensors::scales},
                                    {objects[2], "the zero points", &Tensors::zeros},
                                    {objects[3], "the group index", &Tensors::group_index}});
    const weights::PackOptions options = pack_options(encoding, scales);
    std::vector<std::byte> bytes;
    {
      const WithoutGil others;
      const auto source = taken(weights::read_checkpoint(layout, std::span(&tensors, 1)));
      bytes = taken(weights::pack(source, options));
    }
    return array_of(bytes);
  });
}

PyObject* int4_load(PyObject* /*module*/, PyObject* args) {
  return function([&] {
    cli::PackCommandOptions o;
    const char* file = nullptr;
    const char* layout = nullptr;
    int group = 0;
    const char* encoding = nullptr;
    const char* scales = nullptr;
    int zeros = 0;
    if (PyArg_ParseTuple(args, "szizzp", &file, &layout, &group, &encoding, &scales, &zeros) == 0) {
      refuse_arguments();
    }
    o.in = file;
    if (layout != nullptr) o.from = layout;
    if (group > 0) o.group = group;
    if (const packed::WeightForm* const form = form_named(encoding, false)) {
      if (packed::is_wide(packed_format(*form)))
        o.tokens = std::string(numeric::word(form->tokens));
      o.encoding = form->storage.encoding == Int4Encoding::sm ? "sm" : "ex";
    }
    if (scales != nullptr) o.scales = scales;
    o.zero_points = zeros != 0;
    cli::HostTensor packed;
    {
      const WithoutGil others;
      packed = cli::load_packed(o);
    }
    return array_of(packed.bytes);
  });
}

PyObject* packed_form(PyObject* /*module*/, PyObject* args) {
  return function([&] {
    PyObject* data = nullptr;
    if (PyArg_ParseTuple(args, "O", &data) == 0) refuse_arguments();
    Reader reader;
    const Tensor t = reader.read(data, "data");
    const std::vector<std::byte> bytes = host_bytes(t, packed::kHeaderBytes);
    const weights::Header h = taken(weights::parse_header(bytes));
    const std::int64_t whole = packed::kHeaderBytes + packed::data_bytes(h.format, h.extents);
    if (t.shape[0] != whole) {
      throw Refused{refuse(RefusalCode::bad_shape, "the packed tensor has ", t.shape[0],
                           " bytes, and its header says ", whole)};
    }
    return Py_BuildValue("(LLLiiiiIs)", static_cast<long long>(h.extents.experts),
                         static_cast<long long>(h.extents.n), static_cast<long long>(h.extents.k),
                         h.format.group, packed::weight_form(h.format)->number,
                         static_cast<int>(h.format.scale), static_cast<int>(h.format.zero_points),
                         std::bit_cast<unsigned>(h.factor), h.source.c_str());
  });
}

PyObject* packed_bytes(PyObject* /*module*/, PyObject* args) {
  return function([&] {
    long long experts = 0;
    long long n = 0;
    long long k = 0;
    int group = 0;
    int form = 0;
    int scale = 0;
    int zeros = 0;
    if (PyArg_ParseTuple(args, "LLLiiip", &experts, &n, &k, &group, &form, &scale, &zeros) == 0) {
      refuse_arguments();
    }
    const PackedFormat format = packed::packed_format(
        form, group, static_cast<DType>(scale), zeros != 0 ? ZeroPoints::groups : ZeroPoints::none);
    if (const std::string wrong = packed::format_fault(format); !wrong.empty()) {
      throw Refused{refuse(RefusalCode::bad_value, wrong)};
    }
    constexpr long long most = 1LL << 31;
    const packed::Extents extents{experts, n, k};
    if (experts < 1 || n < 0 || k < 0 || experts > most || n > most || k > most ||
        packed::too_many(extents)) {
      throw Refused{
          refuse(RefusalCode::bad_shape, "packed weights of ", experts, " x ", n, " x ", k, "; ",
                 as_rule("extents are 0 or more, experts 1 or more, and all fit into a memory"))};
    }
    return PyLong_FromLongLong(packed::kHeaderBytes + packed::data_bytes(format, extents));
  });
}

PyObject* packed_values(PyObject* /*module*/, PyObject* args) {
  return function([&] {
    PyObject* data = nullptr;
    if (PyArg_ParseTuple(args, "O", &data) == 0) refuse_arguments();
    Reader reader;
    const Tensor t = reader.read(data, "data");
    const std::vector<std::byte> bytes = host_bytes(t, t.shape[0]);
    std::vector<float> values;
    packed::Extents e;
    {
      const WithoutGil others;
      const weights::Header h = taken(weights::parse_header(bytes));
      values = taken(weights::packed_values(bytes));
      e = h.extents;
    }
    return array_of(std::as_bytes(std::span(values)), DType::f32, {e.experts, e.n, e.k});
  });
}

}  // namespace warpwright::python
