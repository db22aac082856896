// Python's handles of plans, workspaces and arrays.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "python/src/arguments.h"
#include "python/src/object.h"

namespace warpwright::python {

/// What a Python object of ours holds.
template <class AnyPlan>
struct AnyPlanHandle {
  std::shared_ptr<const AnyPlan> plan;
  int device = run_nowhere;  ///< for `run`
};
using PlanHandle = AnyPlanHandle<Plan>;

/// What Python sees of plans, of products and of mixtures alike.
template <class AnyPlan>
struct PlanView {
  template <class Get>
  static PyObject* get(PyObject* self, const Get& of) {
    return method([&] { return to_python(of(*held<AnyPlanHandle<AnyPlan>>(self).plan)); });
  }
  static PyObject* explain(PyObject* self, PyObject* /*none*/) {
    return get(self, [](const AnyPlan& p) { return p.explain(); });
  }
  static PyObject* name(PyObject* self, void* /*none*/) {
    return get(self, [](const AnyPlan& p) { return p.name(); });
  }
  static PyObject* line(PyObject* self, void* /*none*/) {
    return get(self, [](const AnyPlan& p) { return plan_line(p); });
  }
  static PyObject* device(PyObject* self, void* /*none*/) {
    return get(self, [](const AnyPlan& p) { return p.device.name; });
  }
  /// Calls load(plan) with its device as the current one. Throws Refused.
  template <class Load>
  static void on_device(const AnyPlanHandle<AnyPlan>& handle, const Load& load) {
    if (handle.device == run_nowhere) {
      throw Refused{refuse(RefusalCode::no_device, "the plan was made for ",
                           handle.plan->device.name, ", which is not here; ",
                           as_rule("plan for cuda:0"))};
    }
    const CurrentDevice current(handle.device);
    auto refused = current.fault();
    if (!refused) refused = load(*handle.plan);
    if (refused) throw Refused{*refused};
  }
};

struct WorkspaceHandle {
  std::shared_ptr<void> memory;
  Workspace workspace;
  int device = run_on_model;
  bool closed = false;
  std::mutex busy;                    ///< while a launch notes itself in it
  std::atomic<std::thread::id> user;  ///< the thread that has locked it
};

struct ArrayHandle {
  std::shared_ptr<void> memory;
  DType type = DType::bf16;
  std::vector<std::int64_t> shape;
  int device = run_on_model;
};

/// Adds the types to the module. Throws PythonError.
void add_handles(PyObject* module);

/// A new object. Throws PythonError.
PyObject* new_plan(PlanHandle plan);
/// What an object holds; throws Refused where it is of another type.
const PlanHandle& plan_in(PyObject* object);
WorkspaceHandle& workspace_in(PyObject* object);
/// The same of one for a call whose tensors lie in `device`.
WorkspaceHandle& workspace_for(int device, PyObject* object);

/// Is a plan, made for the device of that name, one for where the tensors lie? Throws Refused.
void check_place(const std::string& planned, int plan_device, int device);
/// The device= of a call that plans: default where the tensors lie. Throws Refused.
NamedDevice device_for(const Arguments& given, int device);
/// One line at DEBUG of a plan that a call has made.
void log_plan(const std::string& line);

/// A workspace that is this thread's as long as it lives. Others may use the interpreter while it
/// waits; a handler of a signal that interrupts this very thread's launch is refused.
class InUse {
 public:
  explicit InUse(WorkspaceHandle& workspace);
  ~InUse();
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  WorkspaceHandle& workspace_;
};

/// Is it an Array of ours?
bool is_array(PyObject* object);

/// An Array around memory that is there.
PyObject* new_array(ArrayHandle array);

/// Memory of the device of that name, of any content, and what `run` calls it. Throws Refused.
std::pair<std::shared_ptr<void>, int> memory_on(const char* device, std::int64_t bytes);

/// empty(shape, dtype, device).
PyObject* new_array_of(PyObject* module, PyObject* args, PyObject* keywords);

}  // namespace warpwright::python
