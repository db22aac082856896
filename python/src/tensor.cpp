#include "python/src/tensor.h"

#include <algorithm>
#include <cstring>

#include "python/src/types.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::python {
namespace {

// What a type of tensors offers. Looked up once a type; types are kept alive for it.
struct KnownType {
  PyTypeObject* type = nullptr;
  const dlpack::Exchange* exchange = nullptr;
  bool has_grad = false;
  bool has_sign = false;  // a tensor may be the negative of what its memory holds
};

const dlpack::Exchange* exchange_of(PyTypeObject* type) {
  const Ref capsule(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__"));
  if (!capsule) {
    PyErr_Clear();
    return nullptr;
  }
  const auto* api = static_cast<const dlpack::Exchange*>(
      PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api"));
  if (api == nullptr) PyErr_Clear();
  while (api != nullptr && api->version.major != 1) api = api->older;
  return api != nullptr && api->view != nullptr ? api : nullptr;
}

const KnownType& known(PyTypeObject* type) {
  static std::array<KnownType, 16> table;  // under the interpreter's lock
  static std::size_t next = 0;
  for (const KnownType& each : table) {
    if (each.type == type) return each;
  }
  KnownType& place = table[next++ % table.size()];
  Py_INCREF(reinterpret_cast<PyObject*>(type));
  Py_XDECREF(reinterpret_cast<PyObject*>(std::exchange(place.type, type)));
  place.exchange = exchange_of(type);
  const Ref grad(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "requires_grad"));
  if (!grad) PyErr_Clear();
  place.has_grad = static_cast<bool>(grad);
  const Ref sign(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "is_neg"));
  if (!sign) PyErr_Clear();
  place.has_sign = static_cast<bool>(sign);
  return place;
}

// Nothing here is recorded for a backward pass, so a tensor that asks for one is refused while it
// would be.
void check_grad(PyObject* object, const char* name) {
  static PyObject* const attribute = PyUnicode_InternFromString("requires_grad");
  const Ref wants(PyObject_GetAttr(object, attribute));
  if (!wants) PyErr_Clear();
  if (wants.get() != Py_True) return;
  const Ref enabled = Ref::checked(PyObject_CallFunctionObjArgs(interop("grad_is_on"), nullptr));
  if (enabled.get() != Py_True) return;
  throw Refused{refuse(RefusalCode::unsupported, as_tensor(name),
                       " requires a gradient, and this product records none: ",
                       as_rule("call it under torch.no_grad(), or detach the tensor"))};
}

// PyTorch's views of imaginary parts may have a minus that DLPack does not tell.
void check_sign(PyObject* object, const char* name) {
  static PyObject* const method = PyUnicode_InternFromString("is_neg");
  const Ref negative(PyObject_CallMethodObjArgs(object, method, nullptr));
  if (!negative) PyErr_Clear();
  if (negative.get() != Py_True) return;
  throw Refused{refuse(RefusalCode::unsupported, as_tensor(name),
                       " is a view with a minus sign of its own, which DLPack does not tell: ",
                       as_rule("give its resolve_neg()"))};
}

// The type of elements, or of integers that may be offsets. Returns its lanes.
int set_type(Tensor& t, const dlpack::Type& type) {
  const ElementType* const known = find_type([&](const ElementType& each) {
    const dlpack::Type& of = each.dlpack;
    return type.code == of.code && type.bits == of.bits && type.lanes == of.lanes;
  });
  if (known != nullptr) {
    t.type = known->type;
    t.offset = known->offset;
    return known->dlpack.lanes;
  }
  constexpr const char* kinds[] = {"int",    "uint",    "float", "an opaque type of ",
                                   "bfloat", "complex", "bool"};
  const std::string kind = type.code < std::size(kinds)
                               ? kinds[type.code]
                               : "float of DLPack's kind " + std::to_string(type.code) + ", ";
  const bool is_integers = t.is_plural || std::strcmp(t.name, "topk_ids") == 0;
  throw Refused{refuse(RefusalCode::bad_type, as_tensor(t.name), " ", t.is_plural ? "are" : "is",
                       " ", kind, static_cast<int>(type.bits),
                       ", which is no type here; the nearest is ",
                       as_nearest(is_integers ? "int32" : "bfloat16"))};
}

// The type of that name. Returns its lanes.
int set_type(Tensor& t, const char* name) {
  t.type = numeric::parse_dtype(name);
  const ElementType* const known =
      find_type([&](const ElementType& each) { return std::strcmp(each.name, name) == 0; });
  if (known == nullptr) return 1;
  t.type = known->type;
  t.offset = known->offset;
  return known->dlpack.lanes;
}

// The type of elements that are only memory; nothing of others than products know.
std::optional<DType> memory_type(const dlpack::Type& type, const char* name) {
  const ElementType* const known = find_type([&](const ElementType& each) {
    const dlpack::Type& of = each.dlpack;
    return name != nullptr ? std::strcmp(each.name, name) == 0
                           : type.code == of.code && type.bits == of.bits && type.lanes == of.lanes;
  });
  return known != nullptr ? known->type : std::nullopt;
}

// Where an element of the tensor's own is several: the extents of what it holds.
void count_lanes(Tensor& t, int lanes) {
  if (lanes == 1 || t.dimensions == 0) return;
  const auto last = static_cast<std::size_t>(t.dimensions) - 1;
  for (std::size_t i = 0; i < last; ++i) t.stride[i] *= lanes;
  t.shape[last] *= lanes;
}

// Elements of 4 or 6 bits as ml_dtypes has them, each in a byte.
Refusal one_a_byte(const char* name) {
  return refuse(RefusalCode::bad_type, as_tensor(name),
                " has elements of less than 8 bits with a byte each, and operands are dense: the "
                "nearest is ",
                as_nearest("warpwright.pack_elements(", name, ")"));
}

void check_dimensions(const char* name, std::int64_t dimensions) {
  if (dimensions >= 0 && dimensions <= max_dimensions) return;
  throw Refused{refuse(RefusalCode::bad_shape, as_tensor(name), " has ",
                       count_of(dimensions, "dimension"), "; the nearest legal is ",
                       as_nearest("3"))};
}

// `type`: its name, where DLPack says only how wide it is.
Tensor tensor_of(const dlpack::Tensor& from, const char* name, const char* type = nullptr) {
  Tensor t;
  t.name = name;
  t.is_plural = std::strcmp(name, "offsets") == 0 || std::strcmp(name, "rows") == 0;
  const int lanes = type != nullptr ? set_type(t, type) : set_type(t, from.type);
  if (t.type && numeric::bits(*t.type) * lanes < from.type.bits * from.type.lanes) {
    throw Refused{one_a_byte(name)};
  }
  check_dimensions(name, from.dimensions);
  t.dimensions = from.dimensions;
  std::copy_n(from.shape, t.dimensions, t.shape.begin());
  // Where there are no elements, strides may be anything.
  const bool is_packed = from.strides == nullptr || t.elements() == 0;
  std::int64_t packed = 1;
  for (int i = t.dimensions - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    t.stride[at] = is_packed ? packed : from.strides[i];
    packed *= std::max<std::int64_t>(1, t.shape[at]);
  }
  count_lanes(t, lanes);
  t.data = static_cast<char*>(from.data) + from.byte_offset;
  if (from.data == nullptr) t.data = nullptr;
  if (from.device.kind == dlpack::cpu) {
    t.device = run_on_model;
  } else if (from.device.kind == dlpack::cuda || from.device.kind == dlpack::cuda_managed) {
    t.device = from.device.index;
    if (t.device < 0) {  // else it would be taken for the model, which reads host memory
      throw Refused{refuse(RefusalCode::no_device, as_tensor(name), " lies on CUDA device ",
                           t.device, "; the nearest legal is ", as_nearest("0"))};
    }
  } else {
    throw Refused{refuse(RefusalCode::no_device, as_tensor(name),
                         " lies on a device of DLPack's kind ", from.device.kind,
                         "; the nearest legal are ", as_nearest("host memory"),
                         " (the model) and CUDA devices")};
  }
  return t;
}

// (dtype name, shape, strides or None) of a warpwright.Spec.
Tensor spec_of(PyObject* parts, const char* name) {
  Tensor t;
  t.name = name;
  t.device = run_nowhere;
  const char* const type = text_of(PyTuple_GetItem(parts, 1));
  const int lanes = type != nullptr ? set_type(t, type) : 1;
  PyObject* const shape = PyTuple_GetItem(parts, 2);
  PyObject* const strides = PyTuple_GetItem(parts, 3);
  const Py_ssize_t count = PyTuple_Size(shape);
  check_dimensions(name, count);
  t.dimensions = static_cast<int>(count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    t.shape[static_cast<std::size_t>(i)] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    t.stride[static_cast<std::size_t>(i)] = PyLong_AsLongLong(PyTuple_GetItem(strides, i));
  }
  if (PyErr_Occurred() != nullptr) throw PythonError{};
  count_lanes(t, lanes);
  return t;
}

}  // namespace

void settle_lone_row(MatrixView& view) {
  if (view.rows > 1 || view.column_stride != 1) return;
  const bool narrow = numeric::bits(view.dtype) < 8;  // it may be copied with padding
  const std::int64_t step = whole_elements(narrow ? padded_copy_bytes : 16, view.dtype);
  view.row_stride = (view.columns + step - 1) / step * step;
}

namespace {

MatrixView view_of(const Tensor& t, int inner) {
  if (!t.type) {
    throw Refused{refuse(
        RefusalCode::bad_type, as_tensor(t.name),
        " has integers; the nearest type of a tensor that is multiplied, scaled or added is ",
        as_nearest("bfloat16 or float32"))};
  }
  if (t.dimensions != inner && t.dimensions != inner + 1) {
    const std::string row = inner == 2 && t.dimensions == 1
                                ? " (of one row 1 x " + std::to_string(t.shape[0]) + ")"
                                : "";
    throw Refused{refuse(RefusalCode::bad_shape, as_tensor(t.name), " has ",
                         count_of(t.dimensions, "dimension"), "; the nearest legal is ",
                         as_nearest(inner), row, ", or ", inner + 1, " for a batch")};
  }
  for (int i = 0; i < t.dimensions; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (t.shape[at] <= 1 || t.stride[at] >= 0) continue;
    throw Refused{refuse(RefusalCode::bad_stride, as_tensor(t.name), " has a stride of ",
                         t.stride[at], " in dimension ", i,
                         ", so it lies backwards; the nearest legal is ", as_nearest(-t.stride[at]),
                         ": a copy")};
  }
  MatrixView view;
  view.data = t.data;
  view.dtype = *t.type;
  const auto last = static_cast<std::size_t>(t.dimensions);
  if (t.dimensions > inner) {
    view.batch = t.shape[0];
    view.batch_stride = view.batch == 1 ? 0 : t.stride[0];
  }
  if (inner == 2) {
    view.rows = t.shape[last - 2];
    view.columns = t.shape[last - 1];
    view.row_stride = t.stride[last - 2];
    view.column_stride = view.columns == 1 ? 1 : t.stride[last - 1];
    settle_lone_row(view);
  } else {
    view.rows = t.shape[last - 1];
    view.columns = 1;
    view.row_stride = view.rows == 1 ? 1 : t.stride[last - 1];
  }
  return view;
}

}  // namespace

std::string count_of(std::int64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::int64_t Tensor::elements() const {
  std::int64_t count = 1;
  for (int i = 0; i < dimensions; ++i) count *= shape[static_cast<std::size_t>(i)];
  return count;
}

bool Tensor::is_contiguous() const {
  std::int64_t packed = 1;
  for (int i = dimensions - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    if (shape[at] != 1 && stride[at] != packed) return false;
    packed *= shape[at];
  }
  return true;
}

Reader::~Reader() {
  for (dlpack::Managed* each : consumed_) {
    if (each->deleter != nullptr) each->deleter(each);
  }
  for (dlpack::ManagedVersioned* each : consumed_versioned_) {
    if (each->deleter != nullptr) each->deleter(each);
  }
}

Tensor Reader::read(PyObject* object, const char* name) {
  const Lent lent = lend(object, name);
  if (lent.spec != nullptr) return spec_of(lent.spec, name);
  Tensor t = tensor_of(lent.tensor, name, lent.type);
  t.read_only = lent.read_only;
  consume(lent.capsule);
  return t;
}

Memory Reader::read_memory(PyObject* object, const char* name) {
  const Lent lent = lend(object, name);
  if (lent.spec != nullptr) {
    throw Refused{refuse(RefusalCode::bad_pointer, as_tensor(name),
                         " is a Spec, which has no memory; ", as_rule("give a tensor"))};
  }
  const dlpack::Tensor& from = lent.tensor;
  if (from.device.kind != dlpack::cpu) {
    throw Refused{refuse(RefusalCode::wrong_device, as_tensor(name),
                         " lies on a device, and the model reads host memory: the nearest is ",
                         as_nearest("a copy there"))};
  }
  Memory m;
  m.data = static_cast<std::byte*>(from.data);
  if (m.data != nullptr) m.data += from.byte_offset;
  m.read_only = lent.read_only;
  m.element_bits = from.type.bits * from.type.lanes;
  m.type = memory_type(from.type, lent.type);
  m.shape.assign(from.shape, from.shape + from.dimensions);
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // stride and extent
  std::int64_t packed = 1;
  for (auto i = static_cast<std::size_t>(from.dimensions); i-- > 0;) {
    const std::int64_t stride = from.strides != nullptr ? from.strides[i] : packed;
    if (m.shape[i] != 1) steps.emplace_back(stride, m.shape[i]);
    m.is_in_order = m.is_in_order && (m.shape[i] == 1 || stride == packed);
    packed *= m.shape[i];
  }
  m.bytes = packed * m.element_bits / 8;
  std::ranges::sort(steps);
  std::int64_t dense = 1;
  for (const auto& [stride, extent] : steps) {
    if (packed == 0) break;
    if (stride != dense) {
      throw Refused{refuse(RefusalCode::bad_stride, as_tensor(name),
                           " has gaps between its elements, or lies backwards: the nearest is ",
                           as_nearest("a contiguous copy, or the whole of which it is a view"))};
    }
    dense *= extent;
  }
  consume(lent.capsule);
  return m;
}

Reader::Lent Reader::lend(PyObject* object, const char* name) {
  const KnownType& type = known(Py_TYPE(object));
  if (type.has_grad || type.exchange == nullptr) check_grad(object, name);
  if (type.has_sign) check_sign(object, name);
  if (type.exchange == nullptr) return lend_exported(object, name);
  Lent lent;
  if (type.exchange->view(object, &lent.tensor) != 0) {
    throw Refused{
        refuse(RefusalCode::bad_value, as_tensor(name), " cannot be read: ", caught_text())};
  }
  if (first_ == nullptr) first_ = type.exchange;
  return lent;
}

// By Python calls: __dlpack__, and a name of the type where DLPack, or its exporter, has none.
Reader::Lent Reader::lend_exported(PyObject* object, const char* name) {
  if (PyCapsule_CheckExact(object) != 0) {
    Lent given = lend_capsule(object, name);
    given.capsule = object;
    return given;
  }
  const Ref stream = Ref::checked(PyLong_FromVoidPtr(stream_));
  Ref parts(PyObject_CallFunctionObjArgs(interop("export"), object, stream.get(), nullptr));
  if (!parts) {
    throw Refused{
        refuse(RefusalCode::bad_value, as_tensor(name), " is no tensor: ", caught_text())};
  }
  Lent lent;
  if (PyTuple_Size(parts.get()) == 4) {
    lent.spec = parts.get();
  } else {
    lent = lend_capsule(PyTuple_GetItem(parts.get(), 0), name);
    lent.type = text_of(PyTuple_GetItem(parts.get(), 1));
    lent.read_only = lent.read_only || PyTuple_GetItem(parts.get(), 2) == Py_True;
  }
  lent_.push_back(std::move(parts));
  return lent;
}

Reader::Lent Reader::lend_capsule(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned") != 0) {
    auto* const managed =
        static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    if (managed->version.major > 1) {
      throw Refused{refuse(RefusalCode::unsupported, as_tensor(name), " comes by DLPack ",
                           managed->version.major, "; the nearest that is known is ",
                           as_nearest("1"))};
    }
    if ((managed->flags & dlpack::flag_padded) != 0) throw Refused{one_a_byte(name)};
    return {managed->tensor, nullptr, (managed->flags & dlpack::flag_read_only) != 0};
  }
  if (PyCapsule_IsValid(capsule, "dltensor") != 0) {
    auto* const managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule, "dltensor"));
    return {managed->tensor};
  }
  const char* const found = PyCapsule_GetName(capsule);
  PyErr_Clear();
  if (found != nullptr && std::strncmp(found, "used_", 5) == 0) {
    throw Refused{refuse(RefusalCode::bad_value, "the capsule of ", name,
                         " was used before, and a capsule gives its tensor once: ",
                         as_rule("ask the tensor for another by __dlpack__()"))};
  }
  throw Refused{refuse(RefusalCode::bad_value, "the capsule of ", name,
                       " holds no tensor of DLPack; ", as_rule("pass the tensor itself"))};
}

void Reader::consume(PyObject* capsule) {
  if (capsule == nullptr) return;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned") != 0) {
    consumed_versioned_.push_back(static_cast<dlpack::ManagedVersioned*>(
        PyCapsule_GetPointer(capsule, "dltensor_versioned")));
    PyCapsule_SetName(capsule, "used_dltensor_versioned");
  } else {
    consumed_.push_back(static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule, "dltensor")));
    PyCapsule_SetName(capsule, "used_dltensor");
  }
}

void* Reader::current_stream(int device) {
  if (first_ == nullptr || first_->current_stream == nullptr) return nullptr;
  void* stream = nullptr;
  if (first_->current_stream(dlpack::cuda, device, &stream) != 0) {
    throw Refused{refuse(RefusalCode::device_error, "there is no current stream: ", caught_text())};
  }
  return stream;
}

MatrixView matrix_of(const Tensor& t) {
  return view_of(t, 2);
}

MatrixView vector_of(const Tensor& t) {
  return view_of(t, 1);
}

MatrixView column_of(const Tensor& t, std::int64_t rows) {
  const auto last = static_cast<std::size_t>(t.dimensions) - 1;
  if (t.dimensions < 2 || (t.shape[last] != 1 && t.shape[last - 1] != 1)) return vector_of(t);
  // The dimension of one element goes, so that of a batch of matrices a batch of vectors is left.
  const std::size_t gone = t.shape[last] == 1 && t.shape[last - 1] == rows ? last : last - 1;
  if (t.shape[gone] != 1 || t.shape[last + last - 1 - gone] != rows) return vector_of(t);
  Tensor flat = t;
  --flat.dimensions;
  if (gone != last) {
    flat.shape[gone] = t.shape[last];
    flat.stride[gone] = t.stride[last];
  }
  return vector_of(flat);
}

MatrixView scalar_of(const Tensor& t) {
  if (t.elements() != 1) {
    throw Refused{refuse(RefusalCode::bad_shape, as_tensor(t.name), " has ", t.elements(),
                         " elements; ", as_rule("it is one number"),
                         ": the nearest legal shape is ", as_nearest("()"))};
  }
  Tensor flat = t;
  flat.dimensions = 1;
  flat.shape[0] = 1;
  return view_of(flat, 1);
}

dlpack::Type type_of(DType type) {
  const ElementType* const found =
      find_type([&](const ElementType& each) { return each.of_arrays && each.type == type; });
  if (found != nullptr) return found->dlpack;
  throw Refused{refuse(RefusalCode::bad_type, "dtype is ", std::string(numeric::name(type)),
                       ", and no array has that type; the nearest is ",
                       as_nearest(type == DType::f64 ? "f32" : "bf16"))};
}

}  // namespace warpwright::python
