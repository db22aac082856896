#include "python/src/slots.h"

#include "python/src/arguments.h"
#include "python/src/object.h"
#include "python/src/tensor.h"

namespace warpwright::python {
namespace {

// Integers that the sort writes, one behind the other.
std::int32_t* written(const Tensor& t, std::int64_t count, int device) {
  if (t.device != device) {
    throw Refused{refuse(RefusalCode::wrong_device, as_tensor(t.name), " lies in ",
                         place_name(t.device), " and topk_ids in ", place_name(device))};
  }
  if (t.offset != OffsetType::int32) {
    throw Refused{refuse(RefusalCode::bad_type, as_tensor(t.name), " is not of int32; ",
                         as_rule("numbers of slots and rows are"))};
  }
  if (t.read_only) {
    throw Refused{refuse(RefusalCode::bad_pointer, as_tensor(t.name), " is read-only; ",
                         as_rule("it needs memory that may be written"))};
  }
  if (t.dimensions != 1 || t.shape[0] != count || (count > 1 && t.stride[0] != 1)) {
    throw Refused{refuse(RefusalCode::bad_shape, as_tensor(t.name), " has another shape than (",
                         count, "), or gaps")};
  }
  return static_cast<std::int32_t*>(t.data);
}

void sort(PyObject* args) {
  PyObject* ids = nullptr;
  PyObject* out[3] = {};
  PyObject* stream = nullptr;
  long long experts = 0;
  long long first = 0;
  long long total = 0;
  parse_arguments(args, "OLLLOOOO", &ids, &experts, &first, &total, &out[0], &out[1], &out[2],
                  &stream);
  Reader reader;
  const bool is_given = stream != nullptr && stream != Py_None;
  void* on = stream_of(is_given ? stream : nullptr);
  reader.set_stream(on);
  const Tensor t = reader.read(ids, "topk_ids");
  if (!t.offset) {
    throw Refused{refuse(RefusalCode::bad_type, as_tensor("topk_ids"),
                         " is not of int32 or int64; the nearest is ", as_nearest("int32"))};
  }
  if (t.dimensions != 2) {
    throw Refused{refuse(RefusalCode::bad_shape, as_tensor("topk_ids"), " has ",
                         count_of(t.dimensions, "dimension"), "; the nearest legal is ",
                         as_nearest("2"), ": the experts of each token")};
  }
  if (t.shape[1] > 1 && t.stride[1] != 1) {
    throw Refused{refuse(RefusalCode::bad_stride, as_tensor("topk_ids"), " has a column stride of ",
                         t.stride[1], "; ", as_rule("the experts of a token are neighbours"),
                         ": the nearest legal is ", as_nearest("1"))};
  }
  SlotSort s;
  s.ids = t.data;
  s.type = *t.offset;
  s.tokens = t.shape[0];
  s.top_k = t.shape[1];
  s.pitch = t.shape[0] > 1 ? t.stride[0] : t.shape[1];
  s.experts = experts;
  s.first_expert = first;
  s.experts_total = total;
  const std::int64_t slots = s.tokens * s.top_k;
  s.offsets = written(reader.read(out[0], "the offsets"), experts + 1, t.device);
  s.slots = written(reader.read(out[1], "the slots"), slots, t.device);
  s.rows = written(reader.read(out[2], "the rows"), slots, t.device);
  check_stream(t.device, is_given);
  if (t.device >= 0 && !is_given) on = reader.current_stream(t.device);
  require_none(without_gil([&] { return warpwright::sort_slots(s, t.device, on); }));
}

}  // namespace

PyObject* sort_slots(PyObject* /*module*/, PyObject* args) {
  return method([&] {
    sort(args);
    return Py_NewRef(Py_None);
  });
}

}  // namespace warpwright::python
