#include "python/src/fp4.h"

#include "cli/commands/pack_micro.h"
#include "cli/compute/packing.h"
#include "python/src/packing_parts.h"
#include "warpwright/weights/pack_e2m1.h"

namespace warpwright::python {
namespace {

// What pack_e2m1 is asked for by a form, if any.
weights::E2m1Options options_of(const packed::WeightForm* form) {
  if (form == nullptr) return {};
  return {form->tokens, form->storage.exponents};
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

PyObject* packed_source(const weights::MicroSource& source, const packed::WeightForm* form) {
  const packed::WeightFormat* const has =
      packed::weight_format(source.format->element, source.format->scale);
  if (form != nullptr && has != nullptr && &packed::format_of(*form) != has) {
    throw Refused{refuse(RefusalCode::bad_value, "encoding is of ", packed::format_of(*form).word,
                         " weights, and ", source.origin, " has ", has->word, ": the nearest is ",
                         as_nearest(packed::usual_form(*has).word))};
  }
  std::vector<float> alphas;
  for (const auto& expert : source.experts) alphas.push_back(expert.tensor);
  std::vector<std::byte> bytes;
  {
    const WithoutGil others;
    bytes = taken(weights::pack_e2m1(source, options_of(form)));
  }
  return packed_and_alphas(bytes, alphas);
}

}  // namespace

PyObject* fp4_quantise(PyObject* /*module*/, PyObject* args) {
  return function([&]() -> PyObject* {
    PyObject* weights = nullptr;
    const char* encoding = nullptr;
    if (PyArg_ParseTuple(args, "Os", &weights, &encoding) == 0) refuse_arguments();
    const packed::WeightForm* const form = form_named(encoding, true);
    Reader reader;
    const Tensor t = reader.read(weights, "the weights");
    require_host(t);
    const MatrixView view = matrix_of(t);
    cli::QuantisedMicro quantised;
    {
      const WithoutGil others;
      const packed::WeightFormat& to = packed::format_of(*form);
      quantised =
          cli::quantise_micro(std::span(&view, 1), *micro_format(to.code, to.scales[0]), {}, true);
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
    const packed::WeightForm* const form = form_named(encoding, true);
    Reader reader;
    using Tensors = weights::CheckpointTensors;
    Tensors tensors =
        checkpoint_tensors(reader, {{objects[0], "the codes", &Tensors::codes},
                                    {objects[1], "the scales", &Tensors::scales},
                                    {objects[2], "tensor_scale", &Tensors::tensor_scale}});
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
    const packed::WeightForm* const form = form_named(encoding, true);
    cli::PackCommandOptions o;
    o.in = file;
    if (layout != nullptr) o.from = layout;
    if (form != nullptr) o.tokens = std::string(numeric::word(form->tokens));
    std::optional<cli::PackedTensor> packed;
    {
      const WithoutGil others;
      packed = cli::load_packed_micro(o);
    }
    return packed_and_alphas(packed->tensor.bytes, packed->known_alphas());
  });
}

}  // namespace warpwright::python
