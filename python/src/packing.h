// Packed weights. Functions of the module; warpwright/_prepare.py calls them.
#pragma once

#include "python/src/handles.h"

namespace warpwright::python {

/// packed_forms() -> [(number, encoding, format, type of tokens, types of the scales, groups, has
/// each tensor a factor, are codes floats)]: the forms of packed weights.
PyObject* packed_forms(PyObject* module, PyObject* args);
/// quantise_weights(weights, group, encoding, scales, zero_points, of_floats) -> (Array, alphas),
/// of host memory, as the next two; `of_floats`: as mxf4 or nvf4, else as int4.
PyObject* quantise_weights(PyObject* module, PyObject* args);
/// pack_checkpoint(layout, codes, scales, zeros, group_index, tensor_scale, encoding, scales,
/// of_floats).
PyObject* pack_checkpoint(PyObject* module, PyObject* args);
/// load_packed(file, layout, group, encoding, scales, zero_points, of_floats).
PyObject* load_packed(PyObject* module, PyObject* args);
/// packed_form(data) -> (experts, n, k, group, encoding, scale type, zero points, the bits of the
/// header's factor, origin).
PyObject* packed_form(PyObject* module, PyObject* args);
/// packed_bytes(experts, n, k, group, encoding, scale type, zero points) -> bytes of header and
/// tiles.
PyObject* packed_bytes(PyObject* module, PyObject* args);
/// packed_values(data) -> Array of float32, of host memory.
PyObject* packed_values(PyObject* module, PyObject* args);

}  // namespace warpwright::python
