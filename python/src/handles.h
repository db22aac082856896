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
  static PyObject* workspace_bytes(PyObject* self, void* /*none*/) {
    const AnyPlan& p = *held<AnyPlanHandle<AnyPlan>>(self).plan;
    if constexpr (std::is_same_v<AnyPlan, Plan>)
      return PyLong_FromLongLong(p.workspace_bytes);
    else
      return PyLong_FromLongLong(p.workspace_bytes());
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

/// Is it a plan of this kind?
template <class AnyPlan>
bool is_plan(PyObject* object) {
  return Py_TYPE(object) == type_object<AnyPlanHandle<AnyPlan>>();
}

/// A new object. Throws PythonError.
template <class AnyPlan>
PyObject* new_plan(AnyPlan plan, int device) {
  return wrap(std::make_unique<AnyPlanHandle<AnyPlan>>(
      AnyPlanHandle<AnyPlan>{std::make_shared<const AnyPlan>(std::move(plan)), device}));
}

/// What an object holds; throws Refused where it is of another type.
template <class AnyPlan>
const AnyPlanHandle<AnyPlan>& plan_in(PyObject* object) {
  if (is_plan<AnyPlan>(object)) return held<AnyPlanHandle<AnyPlan>>(object);
  const bool of_product = std::is_same_v<AnyPlan, Plan>;
  throw Refused{refuse(RefusalCode::bad_value, "plan is no warpwright.",
                       of_product ? "Plan; " : "MoePlan; ",
                       as_rule(of_product ? "plan() makes one" : "plan_moe() makes one"))};
}
WorkspaceHandle& workspace_in(PyObject* object);
/// The same of one for a call whose tensors lie in `device`.
WorkspaceHandle& workspace_for(int device, PyObject* object);

/// Is a plan, made for the device of that name, one for where the tensors lie? Throws Refused.
void check_place(const std::string& planned, int plan_device, int device);
/// The device= of a call that plans: default where the tensors lie. Throws Refused.
NamedDevice device_for(const Arguments& given, int device);
/// One line at DEBUG of a plan that a call has made.
void log_plan(const std::string& line);

/// fastest(plans): that of several which is predicted to be the fastest, and its index.
template <class AnyPlan>
PyObject* fastest_of(PyObject* const* plans, Py_ssize_t count) {
  std::vector<AnyPlan> all;
  for (Py_ssize_t i = 0; i < count; ++i) all.push_back(*plan_in<AnyPlan>(plans[i]).plan);
  auto chosen = taken(fastest(all));
  const auto index = static_cast<Py_ssize_t>(chosen.index);
  const int device = plan_in<AnyPlan>(plans[index]).device;
  const Ref plan = Ref::checked(new_plan(std::move(chosen.plan), device));
  return Py_BuildValue("(On)", plan.get(), index);
}

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

/// Carries out a call by the plan that it gives, or by the one for such calls: run(plan or null,
/// where a new plan goes) says what is refused. Throws Refused.
template <class AnyPlan, class Call, class Run>
void run_call(const Arguments& given, Call& call, const Run& run) {
  const AnyPlan* by = nullptr;
  if (given[Arg::plan] != nullptr) {
    const auto& handle = plan_in<AnyPlan>(given[Arg::plan]);
    check_place(handle.plan->device.name, handle.device, call.device);
    by = handle.plan.get();
  }
  std::optional<InUse> use;
  if (given[Arg::workspace] != nullptr) {
    WorkspaceHandle& memory = workspace_for(call.device, given[Arg::workspace]);
    use.emplace(memory);
    call.options.workspace = &memory.workspace;
  }
  std::shared_ptr<const AnyPlan> made;
  const auto refused = run_apart(call.device, [&] { return run(by, &made); });
  use.reset();
  if (made != nullptr) log_plan(plan_line(*made));
  if (refused) throw Refused{call.told(*refused)};
}

/// Is it an Array of ours?
bool is_array(PyObject* object);

/// An Array around memory that is there.
PyObject* new_array(ArrayHandle array);

/// Memory of the device of that name, of any content, and what `run` calls it. Throws Refused.
std::pair<std::shared_ptr<void>, int> memory_on(const char* device, std::int64_t bytes);

/// empty(shape, dtype, device).
PyObject* new_array_of(PyObject* module, PyObject* args, PyObject* keywords);

}  // namespace warpwright::python
