// What is made of tensors before they are multiplied: codes and scales of activations, packed int4
// weights. Functions of the module; warpwright/_prepare.py calls them.
#pragma once

#include "python/src/handles.h"

namespace warpwright::python {

/// quantise(x, scaling, given_scale, codes, scales, stream): codes and scales are there to be
/// written.
PyObject* quantise_rows(PyObject* module, PyObject* args);

/// packed_forms() -> [(number, encoding, format, type of tokens, types of the scales, groups, has
/// each tensor a factor, are codes floats)]: the forms of packed weights.
PyObject* packed_forms(PyObject* module, PyObject* args);
/// int4_quantise(weights, group, encoding, scales, zero_points) -> Array, of host memory.
PyObject* int4_quantise(PyObject* module, PyObject* args);
/// int4_pack(layout, codes, scales, zeros, group_index, encoding, scales) -> Array, where the codes
/// lie.
PyObject* int4_pack(PyObject* module, PyObject* args);
/// int4_load(file, layout, group, encoding, scales, zero_points) -> Array, of host memory.
PyObject* int4_load(PyObject* module, PyObject* args);
/// packed_form(data) -> (experts, n, k, group, encoding, scale type, zero points, the bits of the
/// header's factor, origin).
PyObject* packed_form(PyObject* module, PyObject* args);
/// packed_bytes(experts, n, k, group, encoding, scale type, zero points) -> bytes of header and
/// tiles.
PyObject* packed_bytes(PyObject* module, PyObject* args);
/// packed_values(data) -> Array of float32, of host memory.
PyObject* packed_values(PyObject* module, PyObject* args);

}  // namespace warpwright::python
