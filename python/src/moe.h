// A mixture of experts from Python: moe, plan_moe, and the type of its plans.
#pragma once

#include "python/src/python.h"

namespace warpwright::python {

/// moe(x, topk_ids, topk_weights, w13, w2, ...) and plan_moe(...), by the vectorcall convention.
PyObject* moe(PyObject* module, PyObject* const* args, Py_ssize_t count, PyObject* keywords);
PyObject* plan_mixture(PyObject* module, PyObject* const* args, Py_ssize_t count,
                       PyObject* keywords);

/// Is it a MoePlan? For several the one that is predicted to be the fastest, and its index.
bool is_moe_plan(PyObject* object);
PyObject* fastest_mixture(PyObject* const* plans, Py_ssize_t count);

/// Adds the type MoePlan to the module. Throws PythonError.
void add_moe_plan(PyObject* module);

}  // namespace warpwright::python
