#include "python/src/fp4.h"

#include <string_view>

#include "cli/commands/pack_micro.h"
#include "cli/compute/packing.h"
#include "python/src/packing_parts.h"
#include "warpwright/facts/packed_e2m1.h"
#include "warpwright/weights/pack_e2m1.h"

namespace warpwright::python {
namespace {

// What the word of a form asks for: of the format and of what pack_e2m1 leaves open. Null: nothing.
struct Fp4Form {
  DType scale = DType::ue8m0;
  weights::E2m1Options options;
};
std::optional<Fp4Form> fp4_form(const char* word) {
  if (word == nullptr) return std::nullopt;
  const std::string_view text = word;
  if (text == "mxf4") return Fp4Form{DType::ue8m0, {DType::e4m3, Exponents::of_rows}};
  if (text == "mxf4-exact") return Fp4Form{DType::ue8m0, {DType::e4m3, Exponents::own}};
  if (text == "mxf4-bf16") return Fp4Form{DType::ue8m0, {DType::bf16, {}}};
  if (text == "mxf4-fp16") return Fp4Form{DType::ue8m0, {DType::f16, {}}};
  if (text == "nvf4" || text == "nvf4-bf16") return Fp4Form{DType::ue4m3, {DType::bf16, {}}};
  if (text == "nvf4-fp16") return Fp4Form{DType::ue4m3, {DType::f16, {}}};
  throw Refused{refuse(RefusalCode::bad_value, "encoding is \"", word, "\"; ",
                       as_rule("it is \"mxf4\", \"mxf4-exact\", \"mxf4-bf16\", \"mxf4-fp16\", "
                               "\"nvf4-bf16\" or \"nvf4-fp16\""))};
}

// The packed bytes, and the factors of the experts' tensors.
PyObject* packed_and_alphas(std::span<const std::byte> bytes, std::span<const float> alphas) {
  const Ref factors = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(alphas.size())));
  for (std::size_t e = 0; e < alphas.size(); ++e) {
    PyTuple_SetItem(factors.get(), static_cast<Py_ssize_t>(e),
                    PyFloat_FromDouble(static_cast<double>(alphas[e])));
  }
  const Ref array = Ref::checked(array_of(bytes));
  return Py_BuildValue("(OO)", array.get(), factors.get());
}

PyObject* packed_source(const weights::MicroSource& source, const std::optional<Fp4Form>& form) {
  if (form && form->scale != source.format->scale) {
    throw Refused{refuse(RefusalCode::bad_value, "encoding is of ",
                         form->scale == DType::ue8m0 ? "mxf4" : "nvf4", " weights, and ",
                         source.origin, " has ", source.format->word, ": the nearest is ",
                         as_nearest(source.format->scale == DType::ue8m0 ? "mxf4" : "nvf4-bf16"))};
  }
  std::vector<float> alphas;
  for (const auto& expert : source.experts) alphas.push_back(expert.tensor);
  std::vector<std::byte> bytes;
  {
    const WithoutGil others;
    bytes = taken(weights::pack_e2m1(source, form ? form->options : weights::E2m1Options{}));
  }
  return packed_and_alphas(bytes, alphas);
}

}  // namespace

PyObject* fp4_quantise(PyObject* /*module*/, PyObject* args) {
  return function([&]() -> PyObject* {
    PyObject* weights = nullptr;
    const char* encoding = nullptr;
    if (PyArg_ParseTuple(args, "Os", &weights, &encoding) == 0) refuse_arguments();
    const auto form = fp4_form(encoding);
    Reader reader;
    const Tensor t = reader.read(weights, "the weights");
    require_host(t);
    const MatrixView view = matrix_of(t);
    cli::QuantisedMicro quantised;
    {
      const WithoutGil others;
      quantised = cli::quantise_micro(std::span(&view, 1), *micro_format(DType::e2m1, form->scale),
                                      {}, true);
    }
    return packed_source(quantised.source, form);
  });
}

PyObject* fp4_pack(PyObject* /*module*/, PyObject* args) {
  return function([&]() -> PyObject* {
    const char* layout = nullptr;
    PyObject* objects[3] = {};
    const char* encoding = nullptr;
    if (PyArg_ParseTuple(args, "sOOOz", &layout, &objects[0], &objects[1], &objects[2],
                         &encoding) == 0) {
      refuse_arguments();
    }
    const auto form = fp4_form(encoding);
    Reader reader;
    int device = run_nowhere;
    weights::CheckpointTensors tensors;
    tensors.codes = checkpoint_view(reader, objects[0], "the codes", device);
    tensors.scales = checkpoint_view(reader, objects[1], "the scales", device);
    tensors.tensor_scale = checkpoint_view(reader, objects[2], "tensor_scale", device);
    if (device >= 0) {
      throw Refused{
          refuse(RefusalCode::wrong_device, "the codes lie in ", place_name(device),
                 ", and checkpoints are packed in host memory: ", as_rule("give copies there"))};
    }
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
    const auto source = taken(weights::read_micro_checkpoint(layout, std::span(&tensors, 1)));
    return packed_source(source, form);
  });
}

PyObject* fp4_load(PyObject* /*module*/, PyObject* args) {
  return function([&]() -> PyObject* {
    const char* file = nullptr;
    const char* layout = nullptr;
    const char* encoding = nullptr;
    if (PyArg_ParseTuple(args, "szz", &file, &layout, &encoding) == 0) refuse_arguments();
    const auto form = fp4_form(encoding);
    cli::PackCommandOptions o;
    o.in = file;
    if (layout != nullptr) o.from = layout;
    if (form && form->options.tokens) o.tokens = std::string(numeric::word(*form->options.tokens));
    std::optional<cli::PackedTensor> packed;
    {
      const WithoutGil others;
      packed = cli::load_packed_micro(o);
    }
    return packed_and_alphas(packed->tensor.bytes, packed->known_alphas());
  });
}

}  // namespace warpwright::python
