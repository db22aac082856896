#include "python/src/handles.h"

#include <string>
#include <tuple>
#include <utility>

#include "python/src/object.h"
#include "python/src/tensor.h"

namespace warpwright::python {
namespace {

// -- Plan

using View = PlanView<Plan>;

PyObject* plan_repr(PyObject* self) {
  return View::get(self, [](const Plan& p) { return "<warpwright.Plan " + plan_line(p) + ">"; });
}

PyObject* plan_prepare(PyObject* self, PyObject* args, PyObject* keywords) {
  return method([&]() -> PyObject* {
    static const char* names[] = {"workspace", "stream", nullptr};
    PyObject* workspace = nullptr;
    PyObject* stream = nullptr;
    parse_arguments(args, keywords, names, "|OO", &workspace, &stream);
    Workspace none;
    Workspace* memory = &none;
    std::optional<InUse> use;
    if (workspace != nullptr && workspace != Py_None) {
      WorkspaceHandle& given = workspace_in(workspace);
      use.emplace(given);
      memory = &given.workspace;
    }
    View::on_device(held<PlanHandle>(self), [&](const Plan& plan) {
      return prepare(plan, *memory, stream_of(stream == Py_None ? nullptr : stream));
    });
    Py_RETURN_NONE;
  });
}

PyMethodDef plan_methods[] = {
    {"explain", View::explain, METH_NOARGS,
     "explain($self)\n--\n\nTile, cluster, stages, shared memory, roles, barriers, waves, bound."},
    {"prepare", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(plan_prepare)),
     METH_VARARGS | METH_KEYWORDS,
     "prepare($self, workspace=None, stream=None)\n--\n\nLoads the kernel and clears the "
     "workspace's flags, "
     "so "
     "that the first launch may be in a graph capture."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef plan_members[] = {
    {"name", View::name, nullptr, "Kernel and cluster in a word.", nullptr},
    {"kernel",
     [](PyObject* s, void*) { return View::get(s, [](const Plan& p) { return p.kernel; }); },
     nullptr, "The kernel's name, for `kernel=`.", nullptr},
    {"line", View::line, nullptr, "The product, the kernel and why, in a line.", nullptr},
    {"device", View::device, nullptr, "The device it was made for.", nullptr},
    {"workspace_bytes", View::workspace_bytes, nullptr,
     "Bytes of workspace that a launch needs; mostly 0.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot plan_slots[] = {
    {Py_tp_doc, const_cast<char*>("A decision to run one kernel in one way: immutable, without "
                                  "addresses. plan() makes it.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc<PlanHandle>)},
    {Py_tp_repr, reinterpret_cast<void*>(plan_repr)},
    {Py_tp_methods, plan_methods},
    {Py_tp_getset, plan_members},
    {0, nullptr}};

// -- Workspace

// The memory of a tensor, from the first multiple of 256 on.
PyObject* workspace_over(PyObject* tensor) {
  auto reader = std::make_shared<Reader>();
  const Tensor t = reader->read(tensor, "nbytes");
  const bool has_gaps = t.read_only || !t.is_contiguous();
  const int bits = t.type ? numeric::bits(*t.type) : t.offset == OffsetType::int64 ? 64 : 32;
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(t.data) % 256);
  const std::int64_t skipped = past == 0 ? 0 : 256 - past;
  const std::int64_t bytes = t.elements() * bits / 8 - skipped;
  if (has_gaps || bytes < 1) {
    throw Refused{refuse(RefusalCode::bad_workspace, "the tensor of a workspace has ",
                         has_gaps ? "gaps, or is read-only" : "no bytes from a multiple of 256 on",
                         "; ", as_rule("it is contiguous, and may be written"))};
  }
  auto made = std::make_unique<WorkspaceHandle>();
  made->device = t.device;
  made->memory = std::shared_ptr<void>(reader, static_cast<std::byte*>(t.data) + skipped);
  made->workspace = Workspace(made->memory.get(), bytes);
  return wrap(std::move(made));
}

PyObject* workspace_new(PyTypeObject*, PyObject* args, PyObject* keywords) {
  return method([&] {
    static const char* names[] = {"nbytes", "device", nullptr};
    PyObject* given = nullptr;
    const char* device = nullptr;
    parse_arguments(args, keywords, names, "O|s", &given, &device);
    if (PyObject_HasAttrString(given, "__dlpack__") != 0) {
      if (device == nullptr) return workspace_over(given);
      throw Refused{refuse(RefusalCode::bad_value, "device is given, and nbytes is a tensor: ",
                           as_rule("leave device out"))};
    }
    if (device == nullptr) device = "cuda";
    const Ref number = Ref::checked(PyNumber_Index(given));
    const long long bytes = PyLong_AsLongLong(number.get());
    if (bytes == -1 && PyErr_Occurred() != nullptr) refuse_arguments();
    if (bytes < 1) {
      throw Refused{refuse(RefusalCode::bad_workspace, "a workspace of ", bytes,
                           " bytes; the nearest legal is ", as_nearest("1"))};
    }
    auto made = std::make_unique<WorkspaceHandle>();
    std::tie(made->memory, made->device) = memory_on(device, bytes);
    made->workspace = Workspace(made->memory.get(), bytes);
    return wrap(std::move(made));
  });
}

PyObject* workspace_close(PyObject* self, PyObject*) {
  return method([&]() -> PyObject* {
    auto& handle = held<WorkspaceHandle>(self);
    const InUse use(handle);
    handle.closed = true;
    handle.workspace = Workspace();
    handle.memory.reset();
    Py_RETURN_NONE;
  });
}
PyObject* workspace_enter(PyObject* self, PyObject*) {
  return Ref::borrowed(self).release();
}
PyObject* workspace_exit(PyObject* self, PyObject*) {
  return workspace_close(self, nullptr);
}

PyMethodDef workspace_methods[] = {
    {"close", workspace_close, METH_NOARGS,
     "close($self)\n--\n\nFrees the memory; launches that use it must be over. On CUDA it waits."},
    {"__enter__", workspace_enter, METH_NOARGS, nullptr},
    {"__exit__", workspace_exit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef workspace_members[] = {
    {"nbytes",
     [](PyObject* s, void*) {
       return PyLong_FromLongLong(held<WorkspaceHandle>(s).workspace.bytes());
     },
     nullptr, "Its size; 0 once it is closed.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot workspace_slots[] = {
    {Py_tp_doc,
     const_cast<char*>("Workspace(nbytes, device='cuda')\n--\n\nMemory for launches of plans, one "
                       "launch at a time: see Plan.workspace_bytes. nbytes may be a tensor, whose "
                       "memory it is then, of any content. Every stream has its own without "
                       "one.")},
    {Py_tp_new, reinterpret_cast<void*>(workspace_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc<WorkspaceHandle>)},
    {Py_tp_methods, workspace_methods},
    {Py_tp_getset, workspace_members},
    {0, nullptr}};

// -- Array

// A view of an array that another library keeps: it keeps the memory.
template <class Managed>
struct Export {
  Managed managed{};
  std::shared_ptr<void> memory;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

template <class Managed>
void free_export(Managed* managed) {
  delete static_cast<Export<Managed>*>(managed->context);
}

// For a capsule that nobody took the tensor from.
template <class Managed>
void free_capsule(PyObject* capsule) {
  const char* const name = PyCapsule_GetName(capsule);
  if (name == nullptr || std::string_view(name).starts_with("used_")) return;
  free_export(static_cast<Managed*>(PyCapsule_GetPointer(capsule, name)));
}

template <class Managed>
PyObject* capsule_of(const ArrayHandle& array, const char* name) {
  auto made = std::make_unique<Export<Managed>>();
  made->memory = array.memory;
  made->shape = array.shape;
  made->strides.resize(array.shape.size());
  std::int64_t packed = 1;
  for (std::size_t i = array.shape.size(); i-- > 0; packed *= array.shape[i]) {
    made->strides[i] = packed;
  }
  const bool on_host = array.device == run_on_model;
  made->managed.tensor = {array.memory.get(),
                          {on_host ? dlpack::cpu : dlpack::cuda, on_host ? 0 : array.device},
                          static_cast<std::int32_t>(array.shape.size()),
                          type_of(array.type),
                          made->shape.data(),
                          made->strides.data(),
                          0};
  made->managed.context = made.get();
  made->managed.deleter = free_export<Managed>;
  if constexpr (std::is_same_v<Managed, dlpack::ManagedVersioned>) made->managed.version = {1, 0};
  PyObject* const capsule = PyCapsule_New(&made->managed, name, free_capsule<Managed>);
  if (capsule == nullptr) throw PythonError{};
  static_cast<void>(made.release());
  return capsule;
}

// What was launched into the array may still run, on a stream that is not known here, so the
// device is waited for unless the consumer says that it need not be (-1).
PyObject* array_dlpack(PyObject* self, PyObject* args, PyObject* keywords) {
  return method([&] {
    static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
    PyObject* stream = nullptr;
    PyObject* version = nullptr;
    PyObject* ignored = nullptr;
    parse_arguments(args, keywords, names, "|OOOO", &stream, &version, &ignored, &ignored);
    const ArrayHandle& array = held<ArrayHandle>(self);
    const bool waits = stream == nullptr || stream == Py_None || PyLong_AsLong(stream) != -1;
    PyErr_Clear();
    if (array.device != run_on_model && waits) {
      const WithoutGil others;
      const CurrentDevice current(array.device);
      if (auto r = device::synchronise_cuda()) throw Refused{*r};
    }
    const bool versioned = version != nullptr && PyTuple_Check(version) != 0 &&
                           PyTuple_Size(version) == 2 &&
                           PyLong_AsLong(PyTuple_GetItem(version, 0)) >= 1;
    PyErr_Clear();
    return versioned ? capsule_of<dlpack::ManagedVersioned>(array, "dltensor_versioned")
                     : capsule_of<dlpack::Managed>(array, "dltensor");
  });
}

PyObject* array_device(PyObject* self, PyObject*) {
  const ArrayHandle& array = held<ArrayHandle>(self);
  const bool on_host = array.device == run_on_model;
  return Py_BuildValue("(ii)", on_host ? dlpack::cpu : dlpack::cuda, on_host ? 0 : array.device);
}

PyObject* array_shape(PyObject* self, void*) {
  return method([&] {
    const ArrayHandle& array = held<ArrayHandle>(self);
    Ref shape = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(array.shape.size())));
    for (std::size_t i = 0; i < array.shape.size(); ++i) {
      PyTuple_SetItem(shape.get(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(array.shape[i]));
    }
    return shape.release();
  });
}

// For numpy.asarray, whose own DLPack knows no bf16 and no fp8.
PyObject* array_to_numpy(PyObject* self, PyObject* args, PyObject* keywords) {
  return method([&] {
    static const char* names[] = {"dtype", "copy", nullptr};
    PyObject* dtype = Py_None;
    PyObject* copy = Py_None;
    parse_arguments(args, keywords, names, "|OO", &dtype, &copy);
    return Ref::checked(
               PyObject_CallFunctionObjArgs(interop("as_numpy"), self, dtype, copy, nullptr))
        .release();
  });
}

PyObject* array_repr(PyObject* self) {
  return method([&] {
    const ArrayHandle& array = held<ArrayHandle>(self);
    std::string text = "<warpwright.Array ";
    for (std::size_t i = 0; i < array.shape.size(); ++i) {
      text += (i == 0 ? "" : " x ") + std::to_string(array.shape[i]);
    }
    return to_python(text + " " + std::string(numeric::name(array.type)) + " in " +
                     place_name(array.device) + ">");
  });
}

PyMethodDef array_methods[] = {
    {"__array__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(array_to_numpy)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(array_dlpack)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__dlpack_device__", array_device, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef array_members[] = {
    {"shape", array_shape, nullptr, nullptr, nullptr},
    {"_address",
     [](PyObject* s, void*) { return PyLong_FromVoidPtr(held<ArrayHandle>(s).memory.get()); },
     nullptr, nullptr, nullptr},
    {"dtype",
     [](PyObject* s, void*) {
       return to_python(std::string(numeric::name(held<ArrayHandle>(s).type)));
     },
     nullptr, "Its element's name: \"bf16\".", nullptr},
    {"device",
     [](PyObject* s, void*) { return to_python(place_name(held<ArrayHandle>(s).device)); }, nullptr,
     nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot array_slots[] = {
    {Py_tp_doc, const_cast<char*>("A packed array in the memory of a device, for other libraries "
                                  "to take by DLPack. empty() makes it.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc<ArrayHandle>)},
    {Py_tp_repr, reinterpret_cast<void*>(array_repr)},
    {Py_tp_methods, array_methods},
    {Py_tp_getset, array_members},
    {0, nullptr}};

}  // namespace

void add_handles(PyObject* module) {
  add_type<PlanHandle>(module, "warpwright._core.Plan", plan_slots, no_instances);
  add_type<WorkspaceHandle>(module, "warpwright._core.Workspace", workspace_slots, 0);
  add_type<ArrayHandle>(module, "warpwright._core.Array", array_slots, no_instances);
}

void check_place(const std::string& planned, int plan_device, int device) {
  if (plan_device == device) return;
  throw Refused{refuse(RefusalCode::wrong_device, "the plan was made for ", planned,
                       ", and the tensors lie in ", place_name(device), "; ",
                       as_rule("plan for these tensors, or move them there"))};
}

NamedDevice device_for(const Arguments& given, int device) {
  const char* name = given.text(Arg::device);
  std::string usual = device == run_on_model ? "model" : place_name(device);
  if (device == run_nowhere) usual = "auto";
  return taken(device_named(name != nullptr ? name : usual.c_str()));
}

void log_plan(const std::string& line) {
  const Ref said = Ref::checked(to_python(line));
  Ref::checked(PyObject_CallFunctionObjArgs(interop("log_plan"), said.get(), nullptr));
}

WorkspaceHandle& workspace_in(PyObject* object) {
  if (Py_TYPE(object) != type_object<WorkspaceHandle>()) {
    throw Refused{refuse(RefusalCode::bad_workspace, "workspace is no warpwright.Workspace; ",
                         as_rule("leave it out"))};
  }
  auto& handle = held<WorkspaceHandle>(object);
  if (!handle.closed) return handle;
  throw Refused{refuse(RefusalCode::bad_workspace, "the workspace is closed; ",
                       as_rule("make another, or leave it out"))};
}

WorkspaceHandle& workspace_for(int device, PyObject* given) {
  WorkspaceHandle& memory = workspace_in(given);
  if (memory.device == device) return memory;
  throw Refused{refuse(RefusalCode::wrong_device, "the workspace lies in ",
                       place_name(memory.device), " and the tensors in ", place_name(device), "; ",
                       as_rule("leave it out, or make one there"))};
}

InUse::InUse(WorkspaceHandle& workspace) : workspace_(workspace) {
  if (workspace.user == std::this_thread::get_id()) {
    throw Refused{refuse(RefusalCode::bad_workspace,
                         "the workspace is that of the product which a signal has interrupted; ",
                         as_rule("take another, or wait for its end"))};
  }
  if (!workspace.busy.try_lock()) {
    const WithoutGil others;
    workspace.busy.lock();
  }
  workspace.user = std::this_thread::get_id();
}
InUse::~InUse() {
  workspace_.user = std::thread::id();
  workspace_.busy.unlock();
}

std::pair<std::shared_ptr<void>, int> memory_on(const char* device, std::int64_t bytes) {
  const WithoutGil others;
  const NamedDevice on = taken(device_named(device));
  return {taken(run_memory(on, bytes)), on.index};
}

PyObject* new_array(ArrayHandle array) {
  return wrap(std::make_unique<ArrayHandle>(std::move(array)));
}

bool is_array(PyObject* object) {
  return Py_TYPE(object) == type_object<ArrayHandle>();
}

PyObject* new_array_of(PyObject* /*module*/, PyObject* args, PyObject* keywords) {
  return method([&] {
    static const char* names[] = {"shape", "dtype", "device", nullptr};
    PyObject* shape = nullptr;
    const char* dtype = nullptr;
    const char* device = nullptr;
    parse_arguments(args, keywords, names, "O!ss", &PyTuple_Type, &shape, &dtype, &device);
    auto made = std::make_unique<ArrayHandle>();
    const auto type = numeric::parse_dtype(dtype);
    if (!type) {
      throw Refused{refuse(RefusalCode::bad_type, "dtype is \"", dtype,
                           "\", which is no type of an element; the nearest is ",
                           as_nearest("\"bf16\""))};
    }
    made->type = *type;
    static_cast<void>(type_of(made->type));  // refuses
    std::int64_t bytes = numeric::bits(made->type) / 8;
    for (Py_ssize_t i = 0; i < PyTuple_Size(shape); ++i) {
      const std::int64_t extent = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
      if (PyErr_Occurred() != nullptr) refuse_arguments();
      if (extent < 0 || (extent > 0 && bytes > (std::int64_t{1} << 46) / extent)) {
        throw Refused{refuse(RefusalCode::bad_shape, "an array has an extent of ", extent,
                             ", or more elements than any memory holds")};
      }
      made->shape.push_back(extent);
      bytes *= extent;
    }
    std::tie(made->memory, made->device) = memory_on(device, bytes);
    return wrap(std::move(made));
  });
}

}  // namespace warpwright::python
