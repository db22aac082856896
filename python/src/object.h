// Python objects around C++ ones.
#pragma once

#include <memory>
#include <string>

#include "python/src/python.h"

namespace warpwright::python {

// A Python object around a C++ one. The type is made once, when the module is.
template <class T>
struct Object {
  PyObject_HEAD;
  T* held;
};

template <class T>
PyTypeObject*& type_object() {
  static PyTypeObject* type = nullptr;
  return type;
}

template <class T>
T& held(PyObject* self) {
  return *reinterpret_cast<Object<T>*>(self)->held;
}

template <class T>
PyObject* wrap(std::unique_ptr<T> value) {
  auto* const made = PyObject_New(Object<T>, type_object<T>());
  if (made == nullptr) throw PythonError{};
  made->held = value.release();
  return reinterpret_cast<PyObject*>(made);
}

template <class T>
void dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  delete reinterpret_cast<Object<T>*>(self)->held;
  PyObject_Free(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

// Runs a method's body.
template <class Body>
PyObject* method(const Body& body) noexcept {
  try {
    return body();
  } catch (...) {
    set_error();
    return nullptr;
  }
}

inline PyObject* to_python(const std::string& text) {
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

// 1 << 7 is Py_TPFLAGS_DISALLOW_INSTANTIATION, which the stable ABI has and its headers of 3.10
// leave out.
inline constexpr unsigned long no_instances = 1UL << 7;

template <class T>
void add_type(PyObject* module, const char* name, PyType_Slot* slots, unsigned long flags) {
  PyType_Spec spec = {name, static_cast<int>(sizeof(Object<T>)), 0,
                      static_cast<unsigned>(Py_TPFLAGS_DEFAULT | flags), slots};
  PyObject* const type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  if (type == nullptr) throw PythonError{};
  type_object<T>() = reinterpret_cast<PyTypeObject*>(type);
  if (PyModule_AddType(module, type_object<T>()) != 0) throw PythonError{};
}

}  // namespace warpwright::python
