// CPython through its stable ABI of 3.10, and the two ways in which a call ends early.
#pragma once

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <optional>
#include <utility>

#include "warpwright/model/machine.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright::python {

/// Python's error indicator is set.
struct PythonError {};
/// To become a warpwright.Refusal.
struct Refused {
  Refusal refusal;
};

/// A reference that is given back at the end.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  /// One that must be there: else Python's error is on.
  static Ref checked(PyObject* owned) {
    if (owned == nullptr) throw PythonError{};
    return Ref(owned);
  }
  static Ref borrowed(PyObject* object) {
    Py_XINCREF(object);
    return Ref(object);
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { Py_XDECREF(object_); }

  [[nodiscard]] PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

/// Lets other Python threads run as long as it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

  /// Lets Python's handlers of signals run. True where one has raised: its error is on then.
  bool is_interrupted() {
    PyEval_RestoreThread(state_);
    const bool raised = PyErr_CheckSignals() != 0;
    state_ = PyEval_SaveThread();
    return raised;
  }

 private:
  PyThreadState* state_;
};

/// The same while the model runs, which Ctrl-C ends.
class WithoutGilOnModel : public WithoutGil {
 public:
  WithoutGilOnModel() : by_signals_([this] { return is_interrupted(); }) {}

 private:
  model::Interruptible by_signals_;
};

/// A function of warpwright/_interop.py, imported when first asked for. Borrowed.
PyObject* interop(const char* name);

/// Makes a refusal, or what else was thrown, Python's error. For the last catch of a function.
void set_error() noexcept;

/// The text of an error that is on, which is cleared, where it is an Exception; others (an
/// interrupt) are thrown on.
std::string caught_text();

/// After arguments that could not be parsed: a refusal, but for a TypeError, which stays one.
[[noreturn]] void refuse_arguments();

/// Reads arguments as PyArg_ParseTuple does.
template <class... Places>
void parse_arguments(PyObject* args, const char* format, Places... places) {
  if (PyArg_ParseTuple(args, format, places...) == 0) refuse_arguments();
}
/// And with these names, the last of them null.
template <class... Places>
void parse_arguments(PyObject* args, PyObject* keywords, const char* const* names,
                     const char* format, Places... places) {
  char** const all = const_cast<char**>(names);
  if (PyArg_ParseTupleAndKeywords(args, keywords, format, all, places...) == 0) refuse_arguments();
}

/// Adds what was made to a list.
inline void append(const Ref& list, PyObject* made) {
  const Ref each = Ref::checked(made);
  if (PyList_Append(list.get(), each.get()) != 0) throw PythonError{};
}

/// What `body` returns, while other Python threads run.
template <class Others = WithoutGil, class Body>
auto without_gil(const Body& body) {
  const Others others;
  return body();
}

/// What there is, or the refusal thrown.
template <class T>
T taken(Result<T> result) {
  if (!result) throw Refused{result.refusal()};
  return std::move(*result);
}
inline void require_none(const std::optional<Refusal>& refused) {
  if (refused) throw Refused{*refused};
}

/// The UTF-8 of a str, which lives as long as that; null where it is none.
const char* text_of(PyObject* object);

}  // namespace warpwright::python
