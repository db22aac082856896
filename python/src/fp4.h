// Weights of e2m1, packed. Functions of the module; warpwright/_fp4.py calls them.
#pragma once

#include "python/src/handles.h"

namespace warpwright::python {

/// fp4_quantise(weights, encoding) -> (Array, alphas), of host memory.
PyObject* fp4_quantise(PyObject* module, PyObject* args);
/// fp4_pack(layout, codes, scales, tensor_scale, encoding) -> (Array, alphas), of host memory.
PyObject* fp4_pack(PyObject* module, PyObject* args);
/// fp4_load(file, layout, encoding) -> (Array, alphas), of host memory.
PyObject* fp4_load(PyObject* module, PyObject* args);

}  // namespace warpwright::python
