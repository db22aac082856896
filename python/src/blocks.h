// Codes and scales of formats whose scales the tensor core multiplies: made of wider tensors, and
// put in order. Functions of the module; warpwright/_formats.py calls them.
#pragma once

#include "python/src/python.h"

namespace warpwright::python {

/// quantise_blocks(x, format, recipe, given_scale, codes, scales, scale, linear, offsets, stream):
/// codes, scales and scale are there to be written. Matrices of a batch have tiles of their own.
PyObject* quantise_blocks(PyObject* module, PyObject* args);

/// order_scales(rows, tiles, offsets, stream, rows_each, blocks_each, is_spread): writes the tiles.
PyObject* order_scales(PyObject* module, PyObject* args);

/// For each format's word (type of the elements, their bits, type of the scales, elements of one).
void add_formats(PyObject* module);

}  // namespace warpwright::python
