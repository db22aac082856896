// Codes and scales made of wider tensors, and scales put in order. Functions of the module;
// warpwright/_prepare.py and _formats.py call them.
#pragma once

#include "python/src/python.h"

namespace warpwright::python {

/// quantise(x, scaling or format, recipe, given_scale, codes, scales, scale, linear, offsets,
/// stream): codes, scales and scale are there to be written. Matrices of a batch have tiles of
/// their own.
PyObject* quantise_values(PyObject* module, PyObject* args);

/// order_scales(rows, tiles, offsets, stream, rows_each, blocks_each, is_spread): writes the tiles.
PyObject* order_scales(PyObject* module, PyObject* args);

/// For each format's word (type of the elements, their bits, type of the scales, elements of one).
void add_formats(PyObject* module);

}  // namespace warpwright::python
