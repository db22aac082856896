#include "python/src/packing.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/gemm/run.h"
#include "cli/commands/pack_command.h"
#include "cli/compute/packing.h"
#include "warpwright/device/pack.h"
#include "warpwright/weights/pack.h"

namespace warpwright::python {
namespace {

// A sentence of the command line, whose options are arguments here: "--zero-points" is
// "zero_points=".
std::string as_arguments(const std::string& sentence) {
  std::string text;
  for (std::size_t i = 0; i < sentence.size(); ++i) {
    if (sentence.compare(i, 2, "--") != 0) {
      text += sentence[i];
      continue;
    }
    for (i += 2; i < sentence.size() && (std::islower(sentence[i]) != 0 || sentence[i] == '-');
         ++i) {
      text += sentence[i] == '-' ? '_' : sentence[i];
    }
    if (text.ends_with("from")) text.replace(text.size() - 4, 4, "layout");
    text += '=';
    --i;
  }
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// The code of that name; for what only the command line refuses, which mostly is a file,
// file_error.
RefusalCode code_of(const char* name) {
  for (int i = 0; i < static_cast<int>(RefusalCode::file_error); ++i) {
    const auto code = static_cast<RefusalCode>(i);
    if (std::strcmp(warpwright::name(code), name) == 0) return code;
  }
  return RefusalCode::file_error;
}

template <class Body>
PyObject* function(const Body& body) noexcept {
  try {
    return body();
  } catch (const cli::InputError& error) {
    try {
      Sentence said = error.sentence();
      said.reason = error.what();
      for (std::string* part : {&said.reason, &said.rule, &said.nearest}) {
        *part = as_arguments(*part);
      }
      throw Refused{{code_of(error.code()), std::move(said)}};
    } catch (...) {
      set_error();
    }
    return nullptr;
  } catch (...) {
    set_error();
    return nullptr;
  }
}

bool is_given(PyObject* object) {
  return object != nullptr && object != Py_None;
}

// The form that is called `encoding` (or by its format's word, for the usual tokens), of floats or
// of whole numbers; null for a null word.
const packed::WeightForm* form_named(const char* word, bool of_floats) {
  if (word == nullptr) return nullptr;
  const packed::WeightFormat* const format = packed::weight_format(word);
  std::vector<std::string> legal;
  for (const packed::WeightForm& form : packed::weight_forms) {
    if (packed::has_float_codes(packed_format(form)) != of_floats) continue;
    const bool is_usual = of_floats && &packed::format_of(form) == format;
    if (is_usual || std::strcmp(form.word, word) == 0) return &form;
    legal.push_back("\"" + std::string(form.word) + "\"");
  }
  std::string words;
  for (const std::string& each : legal) {
    words += (words.empty() ? "" : &each == &legal.back() ? " or " : ", ") + each;
  }
  throw Refused{
      refuse(RefusalCode::bad_value, "encoding is \"", word, "\"; ", as_rule("it is ", words))};
}

// Bytes as an Array of the host.
PyObject* array_of(std::span<const std::byte> bytes, DType type, std::vector<std::int64_t> shape) {
  ArrayHandle array;
  array.memory = memory_on("model", static_cast<std::int64_t>(bytes.size())).first;
  std::memcpy(array.memory.get(), bytes.data(), bytes.size());
  array.type = type;
  array.shape = std::move(shape);
  return new_array(std::move(array));
}
PyObject* array_of(std::span<const std::byte> bytes) {
  return array_of(bytes, DType::u8, {static_cast<std::int64_t>(bytes.size())});
}

void require_host(const Tensor& t) {
  if (t.device == run_on_model) return;
  throw Refused{refuse(RefusalCode::wrong_device, as_tensor(t.name), " lies in ",
                       place_name(t.device),
                       ", and this works in host memory: ", as_rule("give it a copy there"))};
}

// A matrix or a batch of them of a checkpoint.
MatrixView checkpoint_view(Reader& reader, PyObject* object, const char* name, int& device) {
  if (!is_given(object)) return {};
  Tensor t = reader.read(object, name);
  if (t.offset == OffsetType::int32) t.type = DType::s32;
  if (device == run_nowhere) device = t.device;
  if (device != t.device) {
    throw Refused{refuse(RefusalCode::wrong_device, as_tensor(name), " lies in ",
                         place_name(t.device), "; ",
                         as_rule("it belongs in ", place_name(device)))};
  }
  if (t.dimensions == 1) {
    t.dimensions = 2;
    t.shape = {1, t.shape[0]};
    t.stride = {t.shape[1], t.stride[0]};
  }
  return matrix_of(t);
}

// The tensors of a checkpoint, and where they lie; what is read at once lies in host memory.
struct NamedCheckpointTensor {
  PyObject* given;
  const char* name;
  MatrixView weights::CheckpointTensors::*to;
  bool is_read = false;
};
weights::CheckpointTensors checkpoint_tensors(Reader& reader,
                                              std::initializer_list<NamedCheckpointTensor> all,
                                              int& device) {
  weights::CheckpointTensors tensors;
  int host = run_on_model;
  device = run_nowhere;
  for (const auto& [given, name, to, is_read] : all)
    tensors.*to = checkpoint_view(reader, given, name, is_read ? host : device);
  return tensors;
}

DType scale_of(const char* word) {
  const auto type = numeric::parse_dtype(word);
  if (type == DType::bf16 || type == DType::f16 || type == DType::f32) return *type;
  throw Refused{refuse(RefusalCode::bad_type, "the scales are \"", word,
                       "\"; the nearest legal type is ", as_nearest("bf16"))};
}

// What `pack` is asked for by a form, if any, and a type of scales.
weights::PackOptions pack_options(const packed::WeightForm* form, const char* scales) {
  weights::PackOptions options;
  if (form != nullptr) {
    options = {form->storage.encoding, {}, form->tokens, form->storage.exponents};
  }
  if (scales != nullptr) options.scale = scale_of(scales);
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

// A packed tensor, and the factors of the experts' tensors.
PyObject* with_alphas(const Ref& packed, std::span<const float> alphas) {
  const Ref factors = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(alphas.size())));
  for (std::size_t e = 0; e < alphas.size(); ++e) {
    PyTuple_SetItem(factors.get(), static_cast<Py_ssize_t>(e),
                    PyFloat_FromDouble(static_cast<double>(alphas[e])));
  }
  return Py_BuildValue("(OO)", packed.get(), factors.get());
}
PyObject* packed_and_alphas(std::span<const std::byte> bytes, std::span<const float> alphas) {
  return with_alphas(Ref::checked(array_of(bytes)), alphas);
}

std::vector<float> alphas_of(const weights::Source& source) {
  std::vector<float> alphas;
  for (const auto& expert : source.experts) alphas.push_back(expert.tensor);
  return alphas;
}

// Packs a source, as a form where one is named.
PyObject* packed_source(const weights::Source& source, const packed::WeightForm* form,
                        const weights::PackOptions& options) {
  std::vector<std::byte> bytes;
  {
    const WithoutGil others;
    if (auto r = weights::form_fault(source, form)) throw Refused{*r};
    bytes = taken(weights::pack(source, options));
  }
  return packed_and_alphas(bytes, alphas_of(source));
}

// The same on a CUDA device where the source lies, into memory of the library of `like`.
PyObject* packed_there(weights::Source source, const packed::WeightForm* form,
                       const weights::PackOptions& options, PyObject* like, Reader& reader,
                       int device) {
  if (auto r = weights::form_fault(source, form)) throw Refused{*r};
  void* const stream = reader.current_stream(device);
  const auto on_device = [&](const auto& act) {
    const WithoutGil others;
    const CurrentDevice current(device);
    if (current.fault()) throw Refused{*current.fault()};
    return act();
  };
  const device::WeightsThere there =
      on_device([&] { return taken(device::look_on_cuda(std::move(source), options, stream)); });
  const Ref made = Ref::checked(PyObject_CallFunction(
      interop("empty_like"), "O(L)si", like, static_cast<long long>(there.bytes()), "u8", device));
  const Tensor packed = reader.read(made.get(), "the packed tensor");
  const auto refused = on_device([&] { return device::pack_on_cuda(there, packed.data, stream); });
  if (refused) throw Refused{*refused};
  return with_alphas(made, alphas_of(there.source));
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
        append(scales, PyUnicode_FromString(numeric::name(each).data()));
      }
      for (const int each : format.groups) {
        if (each == 0) continue;
        append(groups, PyLong_FromLong(each));
      }
      append(all, Py_BuildValue("(isssOOii)", form.number, form.word, format.word,
                                numeric::name(form.tokens).data(), scales.get(), groups.get(),
                                int{format.has_factor},
                                int{packed::has_float_codes(packed_format(form))}));
    }
    return Py_NewRef(all.get());
  });
}

PyObject* quantise_weights(PyObject* /*module*/, PyObject* args) {
  return function([&] {
    PyObject* weights = nullptr;
    int group = 0;
    const char* encoding = nullptr;
    const char* scales = nullptr;
    int zeros = 0;
    int of_floats = 0;
    parse_arguments(args, "Oizzpp", &weights, &group, &encoding, &scales, &zeros, &of_floats);
    const packed::WeightForm* const form = form_named(encoding, of_floats != 0);
    weights::PackOptions options = pack_options(form, scales);
    Reader reader;
    const Tensor t = reader.read(weights, "the weights");
    require_host(t);
    const MatrixView view = matrix_of(t);
    cli::QuantisedMicro micro;
    weights::PlainWeights plain;
    {
      const WithoutGil others;
      if (of_floats != 0) {
        const packed::WeightFormat& to = packed::format_of(*form);
        micro = cli::quantise_micro(std::span(&view, 1), *micro_format(to.code, to.scales[0]), {},
                                    true);
      } else {
        weights::QuantiseOptions how;
        how.group = group;
        how.encoding = options.encoding.value_or(how.encoding);
        how.scale = options.scale.value_or(how.scale);
        how.zero_points = zeros != 0 ? ZeroPoints::groups : ZeroPoints::none;
        plain = taken(weights::quantise(std::span(&view, 1), how));
        micro.source = weights::source_of(plain);
        options.encoding = how.encoding;
      }
    }
    return packed_source(micro.source, form, options);
  });
}

PyObject* pack_checkpoint(PyObject* /*module*/, PyObject* args) {
  return function([&]() -> PyObject* {
    const char* layout = nullptr;
    PyObject* objects[5] = {};
    const char* encoding = nullptr;
    const char* scales = nullptr;
    int of_floats = 0;
    parse_arguments(args, "sOOOOOzzp", &layout, &objects[0], &objects[1], &objects[2], &objects[3],
                    &objects[4], &encoding, &scales, &of_floats);
    const weights::LayoutNames* const names = weights::layout_named(layout);
    if (names != nullptr && (names->format != nullptr) != (of_floats != 0)) {
      throw Refused{refuse(
          RefusalCode::bad_value, "layout is ", layout, "; ",
          as_rule(of_floats != 0 ? "pack_int4_checkpoint" : "pack_fp4_checkpoint", " packs it"))};
    }
    const packed::WeightForm* const form = form_named(encoding, of_floats != 0);
    Reader reader;
    using Tensors = weights::CheckpointTensors;
    int device = run_nowhere;
    Tensors tensors =
        checkpoint_tensors(reader,
                           {{objects[0], "the codes", &Tensors::codes},
                            {objects[1], "the scales", &Tensors::scales},
                            {objects[2], "the zero points", &Tensors::zeros},
                            {objects[3], "the group index", &Tensors::group_index, true},
                            {objects[4], "tensor_scale", &Tensors::tensor_scale, true}},
                           device);
    // A factor for each expert is a batch of numbers.
    MatrixView& factors = tensors.tensor_scale;
    if (factors.rows == 1 && factors.columns == tensors.codes.batch && factors.batch == 1 &&
        factors.column_stride == 1) {
      factors = {factors.data, factors.dtype, 1, 1, 1, 1, tensors.codes.batch, 1};
    }
    // And one for the gate and one for the up of each, twice as many.
    if (factors.rows == tensors.codes.batch && factors.columns == 2 && factors.batch == 1 &&
        (factors.rows == 1 || factors.row_stride == 2) && factors.column_stride == 1) {
      factors = {factors.data, factors.dtype, 1, 1, 1, 1, 2 * tensors.codes.batch, 1};
    }
    const weights::PackOptions options = pack_options(form, scales);
    if (device >= 0) {
      return packed_there(taken(weights::read_places(layout, std::span(&tensors, 1))), form,
                          options, objects[0], reader, device);
    }
    return packed_source(taken(weights::read_checkpoint(layout, std::span(&tensors, 1))), form,
                         options);
  });
}

PyObject* load_packed(PyObject* /*module*/, PyObject* args) {
  return function([&]() -> PyObject* {
    cli::PackCommandOptions o;
    const char* file = nullptr;
    const char* layout = nullptr;
    int group = 0;
    const char* encoding = nullptr;
    const char* scales = nullptr;
    int zeros = 0;
    int of_floats = 0;
    parse_arguments(args, "szizzpp", &file, &layout, &group, &encoding, &scales, &zeros,
                    &of_floats);
    o.in = file;
    if (layout != nullptr) o.from = layout;
    if (group > 0) o.group = group;
    if (const packed::WeightForm* const form = form_named(encoding, of_floats != 0)) {
      o.tokens = std::string(numeric::word(form->tokens));
      const bool is_sm = form->storage.encoding == Int4Encoding::sm;
      if (of_floats == 0) o.encoding = is_sm ? "sm" : "ex";
    }
    if (scales != nullptr) o.scales = scales;
    o.zero_points = zeros != 0;
    const auto packed = without_gil([&] { return cli::load_packed(o, of_floats != 0); });
    return packed_and_alphas(packed.tensor.bytes, packed.known_alphas());
  });
}

PyObject* packed_form(PyObject* /*module*/, PyObject* args) {
  return function([&] {
    PyObject* data = nullptr;
    parse_arguments(args, "O", &data);
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
    parse_arguments(args, "LLLiiip", &experts, &n, &k, &group, &form, &scale, &zeros);
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
    parse_arguments(args, "O", &data);
    Reader reader;
    const Tensor t = reader.read(data, "data");
    const std::vector<std::byte> bytes = host_bytes(t, t.shape[0]);
    std::vector<float> values;
    packed::Extents e;
    {
      const WithoutGil others;
      const weights::PlainWeights w = taken(weights::unpack(bytes));
      values = weights::values_of(w);
      e = w.extents;
    }
    return array_of(std::as_bytes(std::span(values)), DType::f32, {e.experts, e.n, e.k});
  });
}

}  // namespace warpwright::python
