// The module warpwright._core: the verbs.
#include <csignal>
#include <iostream>
#include <list>
#include <new>
#include <string>

#include "cli/app.h"
#include "python/src/blocks.h"
#include "python/src/docs.h"
#include "python/src/handles.h"
#include "python/src/moe.h"
#include "python/src/packing.h"
#include "python/src/ptx.h"
#include "python/src/slots.h"
#include "python/src/types.h"
#include "warpwright/pictures/grid_svg.h"
#include "warpwright/pictures/perfetto.h"
#include "warpwright/pictures/timeline_svg.h"
#include "warpwright/plan/search/alternatives.h"
#include "warpwright/simulation/check.h"

namespace warpwright::python {
namespace {

constexpr std::array dense = {Arg::a, Arg::b};
constexpr std::array grouped = {Arg::a, Arg::b, Arg::offsets};

PyObject* text(const std::string& of) {
  return PyUnicode_DecodeUTF8(of.data(), static_cast<Py_ssize_t>(of.size()), "replace");
}

Plan plan_for(const Product& p, const DeviceFacts& facts, int index) {
  auto made = measured_plan(p.operands, facts, index, p.options.choices, p.options.measure);
  if (!made) throw Refused{p.told(made.refusal())};
  return *std::move(made);
}

PyObject* result_of(const Arguments& given, Product& p) {
  PyObject* const a = given[Arg::a];
  Ref d(adopted(a, given[Arg::out] != nullptr, p.out));
  if (!p.operands.is_quantised()) return d.release();
  Ref scales(adopted(a, given[Arg::d_scales] != nullptr, p.scales));
  if (given[Arg::d_scales] == nullptr && is_micro_scale(p.operands.d_scales.dtype)) {
    const Ref shape = Ref::checked(PyObject_GetAttrString(d.get(), "shape"));
    const Ref lead =
        Ref::checked(PySequence_GetSlice(shape.get(), 0, PySequence_Size(shape.get()) - 2));
    scales = Ref::checked(
        PyObject_CallFunctionObjArgs(interop("as_tiles"), scales.get(), lead.get(), nullptr));
  }
  return Ref::checked(PyTuple_Pack(2, d.get(), scales.get())).release();
}

PyObject* multiply(const char* name, std::span<const Arg> positional, PyObject* const* args,
                   Py_ssize_t count, PyObject* keywords) {
  return method([&]() -> PyObject* {
    const Arguments given({name, positional, dense.size(), of_product}, args, count, keywords);
    if (given[Arg::plan] != nullptr) {
      given.refuse_unread(std::array{Arg::measure, Arg::expected_tokens, Arg::expected_lengths},
                          "plan says already which plan it is");
    }
    Product p(given, positional.size() == grouped.size(), false);
    run_call<Plan>(given, p, [&p](const Plan* by, auto* made) {
      return by != nullptr ? run(*by, p.operands, p.options) : run(p.operands, p.options, made);
    });
    return result_of(given, p);
  });
}

PyObject* gemm(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return multiply("gemm", dense, args, count, keywords);
}
PyObject* grouped_gemm(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return multiply("grouped_gemm", grouped, args, count, keywords);
}

// For the verbs that plan: offsets make a product one of groups.
Arguments planned_arguments(const char* name, unsigned verbs, std::span<const Arg> also,
                            PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return Arguments({name, grouped, dense.size(), verbs, also}, args, count, keywords);
}

// What is only for running a product.
constexpr std::array not_planned = {Arg::plan, Arg::workspace, Arg::check_offsets, Arg::dependent,
                                    Arg::stream};

PyObject* plan_product(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return method([&]() -> PyObject* {
    const Arguments given =
        planned_arguments("plan", of_product | in_plan, {}, args, count, keywords);
    given.refuse_unread(not_planned, "this makes a plan and runs none");
    const Product p(given, given[Arg::offsets] != nullptr, true);
    const NamedDevice device = device_for(given, p.device);
    return new_plan(plan_for(p, device.facts, device.index), device.index);
  });
}

PyObject* fastest_plan(PyObject*, PyObject* const* plans, Py_ssize_t count) {
  return method([&] {
    return count > 0 && is_moe_plan(plans[0]) ? fastest_mixture(plans, count)
                                              : fastest_of<Plan>(plans, count);
  });
}

// The model that products run on, of so many SMs.
DeviceFacts model_of(int sms) {
  return model_facts(sms, taken(run_facts(run_on_model))->architecture);
}

// A product on the model, with a plan of its own.
struct Study {
  Study(const Arguments& given)
      : product(given, given[Arg::offsets] != nullptr, false),
        facts(model_of(static_cast<int>(given.integer(Arg::sms, 8, 1, 1024)))) {
    if (product.device != run_on_model) {
      throw Refused{refuse(
          RefusalCode::wrong_device, "the tensors lie in ", place_name(product.device),
          ", and this runs on the model; the nearest legal place is ", as_nearest("host memory"))};
    }
    given.refuse_unread(not_planned, "this runs a plan of its own on a model of its own");
    plan = plan_for(product, facts, run_on_model);
  }
  Product product;
  DeviceFacts facts;
  Plan plan;
};

PyObject* check_product(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return method([&]() -> PyObject* {
    constexpr std::array also = {Arg::schedules, Arg::seed, Arg::jobs, Arg::sms};
    const Arguments given = planned_arguments("check", of_product, also, args, count, keywords);
    const Study study(given);
    device::CheckOptions how;
    how.schedules = static_cast<int>(given.integer(Arg::schedules, 64, 1, 1'000'000));
    how.seed = static_cast<std::uint64_t>(given.integer(Arg::seed, 1, 0, INT64_MAX));
    how.jobs = static_cast<int>(given.integer(Arg::jobs, 1, 1, 256));
    const device::CheckReport r = taken(without_gil<WithoutGilOnModel>(
        [&] { return device::check(study.plan, study.product.operands, how); }));
    Ref findings = Ref::checked(PyList_New(0));
    for (const device::CheckedFinding& f : r.findings) {
      const std::string said = std::string(model::code(f.finding.check)) + " " +
                               std::string(model::name(f.finding.check)) + ": " +
                               f.finding.sentence;
      append(findings, Py_BuildValue("(sis)", said.c_str(), f.schedules, f.first.text().c_str()));
    }
    const Ref plan = Ref::checked(new_plan(study.plan, run_on_model));
    return Py_BuildValue("(OiiO)", plan.get(), r.schedules, r.failing, findings.get());
  });
}

PyObject* trace_product(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return method([&]() -> PyObject* {
    constexpr std::array also = {Arg::sms, Arg::seed};
    const Arguments given = planned_arguments("trace", of_product, also, args, count, keywords);
    const Study study(given);
    model::Trace trace;
    device::ModelOptions how;
    how.mode = model::Mode::timed;
    how.trace = &trace;
    how.seed = static_cast<std::uint64_t>(given.integer(Arg::seed, 1, 0, INT64_MAX));
    const model::Report report = taken(without_gil<WithoutGilOnModel>(
        [&] { return device::launch_on_model(study.plan, study.product.operands, how); }));
    if (!report.clean()) {
      throw Refused{
          refuse(RefusalCode::model_findings, "the model found faults:\n", report.text())};
    }
    pictures::TimelineView timeline;
    timeline.title = study.plan.name() + " on " + study.facts.name;
    timeline.ctas = atom::cluster_size(study.plan.cluster) > 1 ? 2 : 1;
    pictures::GridView grid;
    grid.title = timeline.title;
    grid.sms = study.facts.sms;
    grid.ctas_per_sm = study.plan.facts().ctas_per_sm;
    const Ref plan = Ref::checked(new_plan(study.plan, run_on_model));
    const Ref svg = Ref::checked(text(pictures::timeline_svg(trace, timeline)));
    const Ref grid_svg = Ref::checked(text(pictures::grid_svg(trace, grid)));
    const std::string bytes = pictures::perfetto_bytes(trace);
    return Py_BuildValue("(OOOy#L)", plan.get(), svg.get(), grid_svg.get(), bytes.data(),
                         static_cast<Py_ssize_t>(bytes.size()),
                         static_cast<long long>(trace.end()));
  });
}

// The command line, in this process. Signals do what they do to a program of its own.
PyObject* command_line(PyObject*, PyObject* list) {
  return method([&]() -> PyObject* {
    std::vector<std::string> arguments;
    for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
      const char* const each = text_of(PyList_GetItem(list, i));
      if (each == nullptr) throw Refused{refuse(RefusalCode::bad_value, "an argument is no text")};
      arguments.emplace_back(each);
    }
    if (PyErr_Occurred() != nullptr) throw PythonError{};
    std::signal(SIGPIPE, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
    return PyLong_FromLong(
        without_gil([&] { return cli::run_app(arguments, std::cout, std::cerr); }));
  });
}

PyObject* devices(PyObject*, PyObject*) {
  return method([&]() -> PyObject* {
    Ref names = Ref::checked(PyList_New(0));
    append(names, text("model"));
    for (std::size_t i = 0; i < device::cuda_devices().size(); ++i) {
      append(names, text("cuda:" + std::to_string(i)));
    }
    return names.release();
  });
}

using Fast = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
PyMethodDef verb(const char* name, Fast function, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)),
          METH_FASTCALL | METH_KEYWORDS, doc};
}

// "'none', 'relu', 'gelu' (tanh form)".
template <class Is>
std::string activation_words(const Is& is) {
  std::string words;
  for (const Activation each : all_activations) {
    if (!is(each)) continue;
    const ActivationForm form = form_of(each);
    words += (words.empty() ? "'" : ", '") + std::string(form.word) + "'";
    if (*form.note != 0) words += " (" + std::string(form.note) + ")";
  }
  return words;
}
// What help() says of a verb: what it takes, by its positional arguments, then the text.
const char* doc_of(const std::string& head, Verbs verb, const std::string& text) {
  static std::list<std::string> kept;
  return kept.emplace_back(signature_text(head, verb) + text).c_str();
}

PyMethodDef functions[] = {
    verb(
        "gemm", gemm,
        doc_of("gemm(a, b", in_gemm, gemm_doc[0] + activation_words(is_of_products) + gemm_doc[1])),
    verb("grouped_gemm", grouped_gemm,
         doc_of("grouped_gemm(a, b, offsets", in_grouped, grouped_doc)),
    verb("plan", plan_product, doc_of("plan(a, b, offsets=None", in_plan, plan_doc)),
    {"fastest", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(fastest_plan)), METH_FASTCALL,
     fastest_doc},
    verb("moe", moe,
         doc_of("moe(x, topk_ids, topk_weights, w13, w2", in_moe,
                moe_doc[0] + activation_words(gates) + moe_doc[1])),
    verb("plan_moe", plan_mixture,
         doc_of("plan_moe(x, topk_ids, topk_weights, w13, w2", in_plan_moe, plan_moe_doc)),
    verb("check", check_product, nullptr),
    verb("trace", trace_product, nullptr),
    {"empty", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(new_array_of)),
     METH_VARARGS | METH_KEYWORDS, empty_doc},
    {"check_ptx", check_ptx, METH_VARARGS, nullptr},
    {"quantise", quantise_values, METH_VARARGS, nullptr},
    {"order_scales", order_scales, METH_VARARGS, nullptr},
    {"sort_slots", sort_slots, METH_VARARGS, nullptr},
    {"packed_forms", packed_forms, METH_NOARGS, nullptr},
    {"quantise_weights", quantise_weights, METH_VARARGS, nullptr},
    {"pack_checkpoint", pack_checkpoint, METH_VARARGS, nullptr},
    {"load_packed", load_packed, METH_VARARGS, nullptr},
    {"packed_form", packed_form, METH_VARARGS, nullptr},
    {"packed_bytes", packed_bytes, METH_VARARGS, nullptr},
    {"packed_values", packed_values, METH_VARARGS, nullptr},
    {"devices", devices, METH_NOARGS, devices_doc},
    {"command_line", command_line, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// The libraries' names of types by ours, of those that an Array may have, or of the others.
void add_types(PyObject* module, const char* name, bool of_arrays) {
  const Ref names = Ref::checked(PyDict_New());
  for (const ElementType& each : element_types) {
    if (each.of_arrays != of_arrays || each.type == DType::f64) continue;
    const Ref value = Ref::checked(text(each.name));
    const bool is_one = each.type && each.dlpack.lanes == 1;
    const std::string key(is_one ? numeric::name(*each.type) : each.name);
    if (PyDict_SetItemString(names.get(), key.c_str(), value.get()) != 0) throw PythonError{};
  }
  if (PyModule_AddObjectRef(module, name, names.get()) != 0) throw PythonError{};
}

int fill(PyObject* module) {
  try {
    add_handles(module);
    add_moe_plan(module);
    add_types(module, "array_types", true);
    add_types(module, "other_types", false);
    add_formats(module);
    add_keywords(module);
    if (PyModule_AddStringConstant(module, "version", cli::version()) != 0) throw PythonError{};
    const Ref cuda = Ref::borrowed(device::built_with_cuda() ? Py_True : Py_False);
    return PyModule_AddObjectRef(module, "built_with_cuda", cuda.get());
  } catch (...) {
    set_error();
    return -1;
  }
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(fill)}, {0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "warpwright._core",
                          nullptr,
                          0,
                          functions,
                          slots,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyObject* interop(const char* name) {
  // Functions of a module that stays: kept by the address of the name, a literal.
  static std::array<std::pair<const char*, PyObject*>, 24> kept{};
  for (const auto& [key, function] : kept) {
    if (key == name) return function;
  }
  const Ref module = Ref::checked(PyImport_ImportModule("warpwright._interop"));
  PyObject* const function = PyObject_GetAttrString(module.get(), name);
  if (function == nullptr) throw PythonError{};
  for (auto& [key, place] : kept) {
    if (key != nullptr) continue;
    key = name;
    place = function;
    break;
  }
  return function;
}

std::string caught_text() {
  if (PyErr_Occurred() == nullptr) return "it gave no reason";
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw PythonError{};
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const Ref of_type(type);
  const Ref of_value(value);
  const Ref of_traceback(traceback);
  const Ref said(value == nullptr ? nullptr : PyObject_Str(value));
  const char* const chars = said ? text_of(said.get()) : nullptr;
  std::string sentence = chars != nullptr ? chars : "";
  PyErr_Clear();
  // One sentence: the first line of what may be many.
  sentence = sentence.substr(0, sentence.find('\n'));
  return sentence.empty() ? "it gave no reason" : sentence;
}

void refuse_arguments() {
  if (PyErr_Occurred() == nullptr || PyErr_ExceptionMatches(PyExc_TypeError) != 0) {
    throw PythonError{};
  }
  throw Refused{refuse(RefusalCode::bad_value, "an argument is out of range: ", caught_text())};
}

const char* text_of(PyObject* object) {
  if (object == nullptr || PyUnicode_Check(object) == 0) return nullptr;
  const char* const text = PyUnicode_AsUTF8AndSize(object, nullptr);
  if (text == nullptr) PyErr_Clear();
  return text;
}

void set_error() noexcept {
  try {
    try {
      throw;
    } catch (const Refused& refused) {
      const Refusal& r = refused.refusal;
      const Ref reason(text(r.reason));
      const Ref code(text(name(r.code)));
      const Ref tensor(text(r.tensor));
      const Ref rule(text(r.rule));
      const Ref nearest(text(r.nearest));
      const Ref made(PyObject_CallFunctionObjArgs(interop("Refusal"), reason.get(), code.get(),
                                                  tensor.get(), rule.get(), nearest.get(),
                                                  nullptr));
      if (made) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.get())), made.get());
    }
  } catch (const model::Interrupted&) {
    if (PyErr_Occurred() == nullptr) PyErr_SetNone(PyExc_KeyboardInterrupt);
  } catch (const PythonError&) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_SystemError, "an error without a name");
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& unexpected) {
    PyErr_Format(PyExc_SystemError, "warpwright failed, which is a fault of its own: %s",
                 unexpected.what());
  } catch (...) {
    PyErr_SetString(PyExc_SystemError, "warpwright failed, which is a fault of its own");
  }
}

}  // namespace warpwright::python

PyMODINIT_FUNC PyInit__core(void) {
  return PyModuleDef_Init(&warpwright::python::definition);
}
