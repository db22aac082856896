// Kernels in PTX under schedules of the model.
#pragma once

#include "python/src/python.h"

namespace warpwright::python {

/// check_ptx(text, name, entry, grid, block, cluster, smem, registers, sms, arguments, expected,
/// schedules, seed, jobs, replay, strict, mutate), where _ptx.py says what arguments and expected
/// are: (kernel, schedules, failing, findings, (mutants, score)).
PyObject* check_ptx(PyObject* module, PyObject* args);

}  // namespace warpwright::python
