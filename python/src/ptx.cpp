#include "python/src/ptx.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "cli/reports/check_report.h"
#include "python/src/arguments.h"
#include "python/src/object.h"
#include "python/src/tensor.h"
#include "warpwright/simulation/ptx_subject.h"

namespace warpwright::python {
namespace {

using device::PtxArgument;
using device::PtxMap;
using device::PtxNumber;
using device::PtxRange;

std::string name_of(std::size_t argument) {
  return "argument " + std::to_string(argument + 1);
}

template <class... Parts>
[[noreturn]] void refuse_value(const Parts&... parts) {
  throw Refused{refuse(RefusalCode::bad_value, parts...)};
}

std::int64_t whole(PyObject* object, const std::string& name, const PtxRange& range) {
  const std::int64_t value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred() != nullptr) {
    refuse_value(name, " is no whole number: ", caught_text());
  }
  if (value >= range.least && value <= range.most) return value;
  refuse_value(name, " is ", value, "; the nearest legal value is ",
               as_nearest(value < range.least ? range.least : range.most));
}

// A row of whole numbers, or None for none.
std::vector<std::int64_t> numbers_of(PyObject* row, const std::string& name) {
  std::vector<std::int64_t> all;
  if (row == Py_None) return all;
  const Ref items = Ref::checked(PySequence_Tuple(row));
  for (Py_ssize_t i = 0; i < PyTuple_Size(items.get()); ++i) {
    all.push_back(whole(PyTuple_GetItem(items.get(), i), name, {0, INT64_MAX}));
  }
  return all;
}

// A number in words: the type's, and the value.
std::vector<std::byte> number_of(PyObject* given, const std::string& name) {
  const char* word = nullptr;
  PyObject* value = nullptr;
  if (PyArg_ParseTuple(given, "sO", &word, &value) == 0) throw PythonError{};
  const auto type = PtxNumber::parse(word);
  if (!type) {
    refuse_value(as_tensor(name), " is of type \"", word,
                 "\", which no number has; the nearest is ", as_nearest("\"u32\""));
  }
  if (type->floats) {
    const double number = PyFloat_AsDouble(value);
    if (PyErr_Occurred() != nullptr) {
      refuse_value(as_tensor(name), " is no number: ", caught_text());
    }
    return type->bytes(number);
  }
  std::uint64_t integer = 0;
  if (type->is_signed) {
    const auto most = static_cast<std::int64_t>(type->most());
    integer = static_cast<std::uint64_t>(whole(value, name, {type->least(), most}));
  } else {
    integer = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred() != nullptr || integer > type->most()) {
      PyErr_Clear();
      refuse_value(as_tensor(name), " is no integer of ", word, ": the nearest legal are ",
                   as_nearest("0 to ", type->most()));
    }
  }
  return type->bytes(integer);
}

// A tensor of the host and the buffer of the launch that holds it.
struct HostTensor {
  std::size_t argument = 0;
  Memory memory;
  std::size_t buffer = 0;
  std::int64_t offset = 0;
};

// What a call brings.
class PtxCall {
 public:
  explicit PtxCall(device::PtxLaunch& launch) : launch_(launch) {}

  void read_arguments(PyObject* list);
  void read_expected(PyObject* list);
  /// Notes what the first schedule leaves, `how` it runs.
  void keep_from(const device::Schedule& first);
  /// Writes it into the tensors.
  void write_back() const;

 private:
  void read_map(PyObject* given, const std::string& name, PtxArgument& argument);
  void make_buffers();
  void make_buffer(std::span<HostTensor* const> tensors);

  device::PtxLaunch& launch_;
  Reader reader_;
  std::vector<HostTensor> tensors_;
  std::vector<std::vector<std::byte>> left_;
};

// A tuple for each argument: (kind, ...).
void PtxCall::read_arguments(PyObject* list) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(PyList_Size(list)); ++i) {
    PyObject* const given = PyList_GetItem(list, static_cast<Py_ssize_t>(i));
    const Ref rest = Ref::checked(PyTuple_GetSlice(given, 1, PyTuple_Size(given)));
    const std::string kind = text_of(PyTuple_GetItem(given, 0));
    const std::string name = name_of(i);
    PtxArgument argument;
    if (kind == "number") {
      argument.value = number_of(rest.get(), name);
    } else if (kind == "bytes") {
      const char* bytes = nullptr;
      Py_ssize_t count = 0;
      if (PyArg_ParseTuple(rest.get(), "y#", &bytes, &count) == 0) throw PythonError{};
      const auto* const first = reinterpret_cast<const std::byte*>(bytes);
      argument.value.assign(first, first + count);
    } else {
      tensors_.push_back({i, reader_.read_memory(PyTuple_GetItem(given, 1), name.c_str())});
      if (kind == "map") read_map(rest.get(), name, argument);
    }
    launch_.arguments.push_back(std::move(argument));
  }
  make_buffers();
}

// (tensor, box, swizzle, extents, pitches, dtype, struct_bytes); the tensor has been read.
void PtxCall::read_map(PyObject* given, const std::string& name, PtxArgument& argument) {
  PyObject *tensor = nullptr, *box = nullptr, *swizzle = nullptr, *extents = nullptr;
  PyObject *pitches = nullptr, *bytes = nullptr;
  const char* dtype = nullptr;
  if (PyArg_ParseTuple(given, "OOOOOzO", &tensor, &box, &swizzle, &extents, &pitches, &dtype,
                       &bytes) == 0) {
    throw PythonError{};
  }
  const Memory& memory = tensors_.back().memory;
  PtxMap map;
  map.type = memory.type;
  map.element_bits = memory.element_bits;
  if (dtype != nullptr) {
    map.type = numeric::parse_dtype(dtype);
    if (map.type) map.element_bits = numeric::bits(*map.type);
  }
  if ((dtype != nullptr && !map.type) || map.element_bits % 8 != 0) {
    throw Refused{refuse(RefusalCode::bad_type, as_tensor(name), " is a map of ",
                         dtype != nullptr ? dtype : "elements of less than a byte", "; ",
                         as_rule("its dtype is one of whole bytes"), ": the nearest is ",
                         as_nearest("\"u8\""))};
  }
  map.box = numbers_of(box, "the box of " + name);
  map.extents = numbers_of(extents, "an extent of " + name);
  map.pitches = numbers_of(pitches, "a pitch of " + name);
  map.swizzle = static_cast<int>(whole(swizzle, "the swizzle of " + name, {0, 128}));
  argument.struct_bytes =
      static_cast<std::size_t>(whole(bytes, "struct_bytes of " + name, device::ptx_struct_bytes));
  if (map.extents.empty()) {
    map.extents = memory.shape;
    if (!memory.is_in_order) {
      throw Refused{refuse(RefusalCode::bad_stride, as_tensor(name),
                           " is a map of a transposed view: ",
                           as_rule("give the array as it lies in memory, or extents"))};
    }
  }
  if (const auto rule = map.fault()) {
    refuse_value(as_tensor(name), " is a map, which takes ", as_rule(*rule));
  }
  argument.map = map.fields();
}

// Tensors that share memory share a buffer.
void PtxCall::make_buffers() {
  std::vector<HostTensor*> by_address;
  for (HostTensor& t : tensors_) by_address.push_back(&t);
  std::ranges::stable_sort(by_address, [](const HostTensor* a, const HostTensor* b) {
    return a->memory.data < b->memory.data;
  });
  std::vector<std::vector<HostTensor*>> groups;
  const std::byte* end = nullptr;
  for (HostTensor* const t : by_address) {
    if (groups.empty() || t->memory.data >= end) groups.emplace_back();
    groups.back().push_back(t);
    end = std::max<const std::byte*>(end, t->memory.data + t->memory.bytes);
  }
  const auto first_argument = [](const std::vector<HostTensor*>& group) {
    return (*std::ranges::min_element(group, {}, &HostTensor::argument))->argument;
  };
  std::ranges::sort(groups, {}, first_argument);
  for (const auto& group : groups) make_buffer(group);
}

void PtxCall::make_buffer(std::span<HostTensor* const> tensors) {
  const std::byte* const begin = tensors.front()->memory.data;
  const std::byte* end = begin;
  std::size_t first = SIZE_MAX;
  device::PtxBuffer buffer;
  buffer.writable = false;
  for (HostTensor* const t : tensors) {
    end = std::max<const std::byte*>(end, t->memory.data + t->memory.bytes);
    first = std::min(first, t->argument);
    buffer.writable = buffer.writable || !t->memory.read_only;
    t->buffer = launch_.buffers.size();
    t->offset = t->memory.data - begin;
    PtxArgument& argument = launch_.arguments[t->argument];
    argument.buffer = t->buffer;
    argument.offset = t->offset;
  }
  buffer.name = name_of(first);
  buffer.bytes.assign(begin, end);
  launch_.buffers.push_back(std::move(buffer));
}

// (index of an argument, tensor) each.
void PtxCall::read_expected(PyObject* list) {
  for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
    PyObject* const pair = PyList_GetItem(list, i);
    const auto index = static_cast<std::size_t>(PyLong_AsLongLong(PyTuple_GetItem(pair, 0)));
    const std::string name = "what is expected of " + name_of(index);
    const auto tensor = std::ranges::find(tensors_, index, &HostTensor::argument);
    if (tensor == tensors_.end()) {
      refuse_value("expect has something for ", name_of(index), ", which is no tensor; ",
                   as_rule("it is by index of args, from 0"));
    }
    const Memory memory = reader_.read_memory(PyTuple_GetItem(pair, 1), name.c_str());
    auto& buffer = launch_.buffers[tensor->buffer];
    if (tensor->offset != 0) {
      refuse_value(as_tensor(name), " is a part of the memory of ", buffer.name, ": ",
                   as_rule("say what that holds"));
    }
    if (memory.bytes != tensor->memory.bytes) {
      throw Refused{refuse(RefusalCode::bad_shape, as_tensor(name), " has ",
                           count_of(memory.bytes, "byte"), ", and that has ",
                           as_nearest(tensor->memory.bytes))};
    }
    buffer.expected.emplace(memory.data, memory.data + memory.bytes);
  }
}

void PtxCall::keep_from(const device::Schedule& first) {
  left_.resize(launch_.buffers.size());
  launch_.ended = [this, first](const device::ModelOptions& how, std::size_t buffer,
                                std::span<const std::byte> left) {
    if (how.mode == first.mode && how.seed == first.seed) {
      left_[buffer].assign(left.begin(), left.end());
    }
  };
}

void PtxCall::write_back() const {
  for (const HostTensor& t : tensors_) {
    if (t.memory.read_only || left_[t.buffer].empty()) continue;
    std::memcpy(t.memory.data, left_[t.buffer].data() + t.offset,
                static_cast<std::size_t>(t.memory.bytes));
  }
}

// The arguments of the function, as they come.
struct Given {
  const char* text = nullptr;
  Py_ssize_t length = 0;
  const char* name = nullptr;
  const char* entry = nullptr;
  int grid[3] = {};
  int block[3] = {};
  PyObject *cluster = nullptr, *smem = nullptr, *registers = nullptr, *sms = nullptr;
  PyObject *arguments = nullptr, *expected = nullptr;
  PyObject *schedules = nullptr, *seed = nullptr, *jobs = nullptr;
  const char* replay = nullptr;
  int strict = 0;
  int mutate = 0;
};

device::CheckOptions options_of(const Given& given) {
  device::CheckOptions how;
  how.schedules = static_cast<int>(whole(given.schedules, "schedules", {1, 1'000'000}));
  how.seed = static_cast<std::uint64_t>(whole(given.seed, "seed", {0, INT64_MAX}));
  how.jobs = static_cast<int>(whole(given.jobs, "jobs", {1, 256}));
  how.fence_after_reads = given.strict != 0;
  if (given.replay == nullptr) return how;
  how.replay = device::parse_schedule(given.replay);
  if (how.replay && how.replay->of_class == 0) return how;
  refuse_value("replay is \"", given.replay, "\"; ",
               as_rule("it is what a finding calls its first schedule"), ": the nearest is ",
               as_nearest("\"eager\""));
}

device::PtxLaunch launch_of(const Given& given) {
  device::PtxLaunch launch{
      .kernel = ptx::Kernel(std::string(given.text, static_cast<std::size_t>(given.length)),
                            given.name, given.entry != nullptr ? given.entry : "")};
  std::ranges::copy(given.grid, launch.launch.grid);
  std::ranges::copy(given.block, launch.launch.block);
  const auto number = [](PyObject* object, const char* name, const PtxRange& range) {
    return static_cast<int>(whole(object, name, range));
  };
  launch.launch.cluster = number(given.cluster, "cluster", device::ptx_clusters);
  launch.launch.dynamic_bytes = number(given.smem, "smem", device::ptx_dynamic_bytes);
  if (given.registers != Py_None) {
    launch.launch.registers = number(given.registers, "registers", device::ptx_registers);
  }
  launch.sms = std::max(number(given.sms, "sms", device::ptx_sms), launch.launch.cluster);
  return launch;
}

PyObject* findings_of(const device::CheckReport& report) {
  Ref all = Ref::checked(PyList_New(0));
  for (const device::CheckedFinding& f : report.findings) {
    append(all, Py_BuildValue("(NNNNiN)", to_python(std::string(model::code(f.finding.check))),
                              to_python(std::string(model::name(f.finding.check))),
                              to_python(cli::place(f.finding.site)), to_python(f.finding.sentence),
                              f.schedules, to_python(f.first.text())));
  }
  return all.release();
}

// And the score, in words.
PyObject* mutants_of(const device::MutationReport& report) {
  Ref all = Ref::checked(PyList_New(0));
  for (const device::Mutant& m : report.mutants) {
    const bool is_killed = m.fate == device::Mutant::Fate::killed;
    append(all, Py_BuildValue("(NNNsNi)", to_python(m.kind), to_python(m.site), to_python(m.how),
                              is_killed                                  ? "killed"
                              : m.fate == device::Mutant::Fate::survived ? "survived"
                                                                         : "equivalent",
                              to_python(is_killed ? std::string(model::code(m.finding.check)) : ""),
                              m.schedules));
  }
  return Py_BuildValue("(ON)", all.get(), to_python(report.score()));
}

PyObject* checked(const Given& given) {
  device::PtxLaunch launch = launch_of(given);
  const device::CheckOptions how = options_of(given);
  PtxCall call(launch);
  call.read_arguments(given.arguments);
  call.read_expected(given.expected);
  const std::unique_ptr<device::Subject> subject = device::ptx_subject(launch);
  call.keep_from(device::schedules_of(how).front());
  std::optional<Result<device::CheckReport>> report;
  std::optional<Result<device::MutationReport>> mutants;
  {
    const WithoutGilOnModel others;
    report = device::check(*subject, how);
    launch.ended = nullptr;
    if (given.mutate != 0 && report->ok() && (*report)->clean()) {
      mutants = device::mutate(*subject, how);
    }
  }
  if (!report->ok()) throw Refused{report->refusal()};
  if (mutants && !mutants->ok()) throw Refused{mutants->refusal()};
  call.write_back();
  const Ref findings = Ref::checked(findings_of(**report));
  const Ref broken =
      mutants ? Ref::checked(mutants_of(**mutants)) : Ref::checked(Py_BuildValue("([]s)", ""));
  return Py_BuildValue("(NiiOO)", to_python(launch.kernel.entry()), (*report)->schedules,
                       (*report)->failing, findings.get(), broken.get());
}

}  // namespace

PyObject* check_ptx(PyObject* /*module*/, PyObject* args) {
  return method([&]() -> PyObject* {
    Given g;
    parse_arguments(args, "y#sz(iii)(iii)OOOOO!O!OOOzpp", &g.text, &g.length, &g.name, &g.entry,
                    &g.grid[0], &g.grid[1], &g.grid[2], &g.block[0], &g.block[1], &g.block[2],
                    &g.cluster, &g.smem, &g.registers, &g.sms, &PyList_Type, &g.arguments,
                    &PyList_Type, &g.expected, &g.schedules, &g.seed, &g.jobs, &g.replay, &g.strict,
                    &g.mutate);
    try {
      return checked(g);
    } catch (const ptx::Fault& fault) {
      refuse_value(
          fault.line > 0 ? std::string(g.name) + ", line " + std::to_string(fault.line) + ": " : "",
          fault.what());
    }
  });
}

}  // namespace warpwright::python
