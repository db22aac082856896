// The slots of a mixture of experts.
#pragma once

#include "python/src/python.h"

namespace warpwright::python {

/// sort_slots(ids, experts, first_expert, experts_total, offsets, slots, rows, stream): the last
/// three tensors are there to be written.
PyObject* sort_slots(PyObject* module, PyObject* args);

}  // namespace warpwright::python
