#include "python/src/arguments.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "python/src/handles.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/numeric/edit_distance.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::python {
namespace {

constexpr std::array<const char*, arg_count> names = {
#define NAME(name) #name,
#include "python/src/arguments.inc"
};

namespace product {
constexpr unsigned all = in_gemm | in_grouped | in_plan;
constexpr unsigned groups = in_grouped | in_plan;
constexpr unsigned runs = in_gemm | in_grouped;
constexpr unsigned only_grouped = in_grouped;
constexpr unsigned only_plans = in_plan;
}  // namespace product
namespace mixture {
constexpr unsigned all = in_moe | in_plan_moe;
constexpr unsigned runs = in_moe;
constexpr unsigned only_plans = in_plan_moe;
}  // namespace mixture

constexpr struct {
  Arg arg;
  const char* type;
  const char* usual;
  unsigned verbs;
} rows[] = {
#define ROW(list, name, type, usual, verbs) {Arg::name, type, usual, list::verbs},
#include "python/src/arguments.inc"
};

// The verbs that show an argument.
constexpr auto shown = [] {
  std::array<unsigned, arg_count> verbs{};
  for (const auto& row : rows) verbs[static_cast<std::size_t>(row.arg)] |= row.verbs;
  return verbs;
}();

// The names as Python has them in its calls: mostly the very same objects.
PyObject* interned(std::size_t i) {
  static std::array<PyObject*, arg_count> all{};
  if (all[i] == nullptr) all[i] = PyUnicode_InternFromString(names[i]);
  return all[i];
}

std::size_t find_name(PyObject* name) {
  for (std::size_t i = 0; i < arg_count; ++i) {
    if (interned(i) == name) return i;
  }
  for (std::size_t i = 0; i < arg_count; ++i) {
    if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0) return i;
  }
  return arg_count;
}

bool is_of(std::span<const Arg> some, Arg arg) {
  return std::find(some.begin(), some.end(), arg) != some.end();
}

[[noreturn]] void type_error(const char* format, const char* function, const char* name) {
  PyErr_Format(PyExc_TypeError, format, function, name);
  throw PythonError{};
}

}  // namespace

std::string signature_text(std::string head, unsigned verb) {
  head += ", *";
  for (const auto& row : rows) {
    if ((row.verbs & verb) == 0) continue;
    head += std::string(", ") + names[static_cast<std::size_t>(row.arg)] + "=" + row.usual;
  }
  return head + ")\n--\n\n";
}

void add_keywords(PyObject* module) {
  const Ref all = Ref::checked(PyDict_New());
  for (const auto& [name, verb] : {std::pair{"gemm", in_gemm},
                                   {"grouped_gemm", in_grouped},
                                   {"plan", in_plan},
                                   {"moe", in_moe},
                                   {"plan_moe", in_plan_moe}}) {
    const Ref list = Ref::checked(PyList_New(0));
    for (const auto& row : rows) {
      if ((row.verbs & verb) == 0) continue;
      append(list,
             Py_BuildValue("(sss)", names[static_cast<std::size_t>(row.arg)], row.type, row.usual));
    }
    if (PyDict_SetItemString(all.get(), name, list.get()) != 0) throw PythonError{};
  }
  if (PyModule_AddObjectRef(module, "keywords", all.get()) != 0) throw PythonError{};
}

Refusal bad(Arg arg, const std::string& what) {
  return refuse(RefusalCode::bad_value, names[static_cast<std::size_t>(arg)], " ", what);
}

Arguments::Arguments(const Signature& of, PyObject* const* args, Py_ssize_t count,
                     PyObject* keywords) {
  if (count > static_cast<Py_ssize_t>(of.positional.size())) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most %zd arguments without a name (%zd given)",
                 of.function, static_cast<Py_ssize_t>(of.positional.size()), count);
    throw PythonError{};
  }
  std::array<bool, arg_count> seen{};
  for (Py_ssize_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(of.positional[static_cast<std::size_t>(i)]);
    at_[at] = args[i];
    seen[at] = true;
  }
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_Size(keywords);
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GetItem(keywords, i);
    const std::size_t at = find_name(name);
    const auto arg = static_cast<Arg>(at);
    const bool taken = at < arg_count && ((shown[at] & of.verbs) != 0 ||
                                          is_of(of.positional, arg) || is_of(of.also, arg));
    if (!taken) {
      const char* const text = text_of(name);
      type_error("%s() got an unexpected keyword argument '%s'", of.function, text ? text : "?");
    }
    if (seen[at]) type_error("%s() got multiple values for argument '%s'", of.function, names[at]);
    seen[at] = true;
    at_[at] = args[count + i];
  }
  const auto required = of.positional.first(of.required);
  for (const Arg arg : required) {
    const auto at = static_cast<std::size_t>(arg);
    if (!seen[at]) type_error("%s() missing required argument '%s'", of.function, names[at]);
  }
  for (std::size_t i = 0; i < arg_count; ++i) {
    if (at_[i] == Py_None && !is_of(required, static_cast<Arg>(i))) at_[i] = nullptr;
  }
}

double Arguments::number(Arg arg, double otherwise) const {
  PyObject* const given = (*this)[arg];
  if (given == nullptr) return otherwise;
  const double value = PyFloat_AsDouble(given);
  if (value == -1 && PyErr_Occurred() != nullptr) {
    throw Refused{bad(arg, "is no number: " + caught_text())};
  }
  return value;
}

std::int64_t Arguments::integer(Arg arg, std::int64_t otherwise, std::int64_t least,
                                std::int64_t most) const {
  PyObject* const given = (*this)[arg];
  if (given == nullptr) return otherwise;
  const std::int64_t value = PyLong_AsLongLong(given);
  if (value == -1 && PyErr_Occurred() != nullptr) {
    throw Refused{bad(arg, "is no whole number: " + caught_text())};
  }
  if (value >= least && value <= most) return value;
  throw Refused{bad(arg, "is " + std::to_string(value) + "; the nearest legal value is " +
                             std::to_string(value < least ? least : most))};
}

bool Arguments::flag(Arg arg) const {
  PyObject* const given = (*this)[arg];
  if (given == nullptr || given == Py_False) return false;
  if (given == Py_True) return true;
  throw Refused{bad(arg, "is neither True nor False; the nearest legal value is False")};
}

std::optional<bool> Arguments::choice(Arg arg) const {
  if ((*this)[arg] == nullptr) return std::nullopt;
  return flag(arg);
}

const char* Arguments::text(Arg arg) const {
  PyObject* const given = (*this)[arg];
  if (given == nullptr) return nullptr;
  const char* const text = text_of(given);
  if (text == nullptr) throw Refused{bad(arg, "is no text")};
  return text;
}

bool Arguments::is_number(Arg arg) const {
  PyObject* const given = (*this)[arg];
  if (given == nullptr) return false;
  if (PyFloat_Check(given) != 0 || PyLong_Check(given) != 0) return true;
  // numpy's scalars.
  return PyObject_HasAttrString(given, "__float__") != 0 &&
         PyObject_HasAttrString(given, "__dlpack__") == 0 && PyCapsule_CheckExact(given) == 0;
}

bool Arguments::says(Arg arg) const {
  PyObject* const given = (*this)[arg];
  if (given == nullptr || given == Py_False) return false;
  if (const char* const text = text_of(given)) {
    const auto* const row = std::ranges::find(rows, arg, [](const auto& r) { return r.arg; });
    return "'" + std::string(text) + "'" != row->usual;
  }
  PyErr_Clear();
  if (!is_number(arg)) return true;
  const double value = PyFloat_AsDouble(given);
  PyErr_Clear();
  return value != 0;
}

void Arguments::refuse_unread(std::span<const Arg> some, const char* why) const {
  for (const Arg arg : some) {
    if (says(arg)) throw Refused{bad(arg, "is given, and " + std::string(why) + ": leave it out")};
  }
}

namespace {
std::string in_small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}
}  // namespace

int Arguments::word(Arg arg, std::span<const char* const> words) const {
  const char* const given = text(arg);
  if (given == nullptr) return -1;
  for (std::size_t i = 0; i < words.size(); ++i) {  // null: none of this call's
    if (words[i] != nullptr && std::strcmp(words[i], given) == 0) return static_cast<int>(i);
  }
  std::string known;
  std::pair<std::size_t, std::string> nearest = {SIZE_MAX, ""};
  for (const char* const one : words) {
    if (one == nullptr) continue;
    const std::string word = "\"" + std::string(one) + "\"";
    known += (known.empty() ? "" : ", ") + word;
    nearest = std::min(nearest, {numeric::edit_distance(in_small_letters(given), one), word});
  }
  // A word of servers, by which rows alternate.
  const bool alternates = arg == Arg::activation && std::strcmp(given, "swigluoai") == 0;
  // And one that no product has.
  const bool gates = arg == Arg::activation && std::strcmp(given, name(Activation::gelu_erf)) == 0;
  throw Refused{refuse(RefusalCode::bad_value, names[static_cast<std::size_t>(arg)], " is \"",
                       given, "\"; ", as_rule("it is one of ", known), ": the nearest is ",
                       as_nearest(nearest.second),
                       alternates ? ", with gate_up=\"interleaved\" for rows of gates and ups in "
                                    "turns, as servers have them"
                       : gates    ? ", in its tanh form; that by the error function is a gate of "
                                    "moe"
                                  : "")};
}

std::optional<DType> Arguments::type(Arg arg) const {
  PyObject* const given = (*this)[arg];
  if (given == nullptr) return std::nullopt;
  const Ref name(PyObject_CallFunctionObjArgs(interop("dtype_name"), given, nullptr));
  const char* const text = name ? text_of(name.get()) : nullptr;
  const auto type = text != nullptr ? numeric::parse_dtype(text) : std::nullopt;
  if (type) return type;
  const std::string why = name ? std::string(text != nullptr ? text : "?") : caught_text();
  throw Refused{refuse(RefusalCode::bad_type, names[static_cast<std::size_t>(arg)], " is ", why,
                       ", which is no type of an element; the nearest is ",
                       as_nearest("\"bf16\""))};
}

std::optional<GateNumbers> gate_numbers(const Arguments& given, Activation activation) {
  GateNumbers numbers = gate_of(activation);
  bool is_any = false;
  for (const auto& [arg, number] : {std::pair{Arg::gate_limit, &numbers.limit},
                                    {Arg::gate_alpha, &numbers.alpha},
                                    {Arg::gate_beta, &numbers.beta}}) {
    if (given[arg] == nullptr) continue;
    is_any = true;
    *number = static_cast<float>(given.number(arg, 0));
  }
  return is_any ? std::optional(numbers) : std::nullopt;
}

std::string place_name(int device) {
  if (device == run_on_model) return "host memory (the model)";
  if (device == run_nowhere) return "no memory (a Spec)";
  return "cuda:" + std::to_string(device);
}

void* stream_of(PyObject* given) {
  if (given == nullptr) return nullptr;
  Ref number;
  if (PyLong_Check(given) == 0) {
    number = Ref(PyObject_CallFunctionObjArgs(interop("stream_handle"), given, nullptr));
    if (!number) {
      throw Refused{refuse(RefusalCode::bad_value, "stream is no stream: ", caught_text())};
    }
    given = number.get();
  }
  const long long handle = PyLong_AsLongLong(given);
  if (handle < 0) {
    PyErr_Clear();
    throw Refused{refuse(RefusalCode::bad_value,
                         "stream is no address of a cudaStream_t; the nearest legal is ",
                         as_nearest("0, the default stream"))};
  }
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(handle));
}

Product::Product(const Arguments& given, bool grouped, bool plans_only) : CallTensors(given) {
  read_inputs(given, grouped);
  if (device == run_nowhere && !plans_only) {
    throw Refused{refuse(RefusalCode::bad_pointer, as_tensor("A"),
                         " is a Spec, which has no memory; ",
                         as_rule("give a tensor, or call plan()"))};
  }
  read_scales(given, grouped);
  read_alpha(given, plans_only);
  operands.beta = static_cast<float>(given.number(Arg::beta, 1));
  choose(given);
  read_result(given, plans_only);
  read_scales_of_result(given, plans_only);
  options.device = device;
  options.stream = stream_of_call(given);
}

Refusal Product::told(Refusal refused) const {
  if (guesses_scaling_ && refused.reason.find("scale_") != std::string::npos) {
    refused.reason += std::string(" (that scaling is ") + words_of(operands.scaling).identifier +
                      " was taken from the shapes: scaling= says which it is)";
  }
  return refused;
}

const Tensor& CallTensors::placed(const Tensor& t) {
  if (first_ == nullptr) {
    first_ = t.name;
    device = t.device;
  }
  if (t.device == device) return t;
  throw Refused{refuse(RefusalCode::wrong_device, as_tensor(t.name), " lies in ",
                       place_name(t.device), " and ", first_, " in ", place_name(device),
                       "; the nearest legal place of ", t.name, " is ",
                       as_nearest("that of ", first_))};
}

Tensor CallTensors::read(const Arguments& given, Arg arg, const char* name) {
  return placed(reader.read(given[arg], name));
}

Tensor CallTensors::read_scales_tensor(const Arguments& given, Arg arg, const char* name) {
  Tensor t = read(given, arg, name);
  if (t.type != DType::bf16 && t.type != DType::f16) return t;
  if (t.device == run_nowhere) {  // a Spec
    t.type = DType::f32;
    return t;
  }
  if (given[Arg::stream] != nullptr) return t;  // the library would widen on a stream of its own
  Ref wide(PyObject_CallFunctionObjArgs(interop("widened"), given[arg], nullptr));
  if (!wide) throw PythonError{};
  if (wide.get() == Py_None) return t;
  t = placed(reader.read(wide.get(), name));
  widened_.push_back(std::move(wide));
  return t;
}

MatrixView CallTensors::given_result(const Arguments& given, Arg arg, const char* name,
                                     std::optional<DType> asked) {
  const Tensor t = read(given, arg, name);
  const MatrixView view = matrix_of(t);
  if (t.read_only) {
    throw Refused{refuse(RefusalCode::bad_pointer, as_tensor(name), " is read-only; ",
                         as_rule("the result needs memory that may be written"))};
  }
  if (asked && *asked != view.dtype) {
    throw Refused{refuse(RefusalCode::bad_type, "dtype is ", std::string(numeric::name(*asked)),
                         " and ", as_tensor(name), " is ", std::string(numeric::name(view.dtype)),
                         "; ", as_rule("leave dtype out, or give it ", name, "'s"))};
  }
  return view;
}

MatrixView CallTensors::new_result(PyObject* like, const char* maker,
                                   std::span<const std::int64_t> shape, std::optional<DType> type,
                                   const char* name, const char* keyword, Ref& made) {
  const Ref extents = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (std::size_t i = 0; i < shape.size(); ++i) {
    PyTuple_SetItem(extents.get(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(shape[i]));
  }
  const Ref place = Ref::checked(PyLong_FromLong(device));
  if (type) {
    static_cast<void>(type_of(*type));  // refuses what no result is
    const Ref of = Ref::checked(PyUnicode_FromString(std::string(numeric::name(*type)).c_str()));
    made = Ref(PyObject_CallFunctionObjArgs(interop(maker), like, extents.get(), of.get(),
                                            place.get(), nullptr));
  } else {
    made = Ref(
        PyObject_CallFunctionObjArgs(interop(maker), like, extents.get(), place.get(), nullptr));
  }
  if (!made) {
    const std::string why = caught_text();
    throw Refused{refuse(RefusalCode::out_of_memory, "there is no memory for ", as_tensor(name),
                         ": ", why, "; ", as_rule("give it as ", keyword))};
  }
  return matrix_of(placed(reader.read(made.get(), name)));
}

void check_stream(int device, bool is_given) {
  if (device != run_on_model || !is_given) return;
  throw Refused{refuse(RefusalCode::bad_value,
                       "stream is given, and the tensors lie in host memory, where what is asked "
                       "for is done at once: ",
                       as_rule("leave it out"))};
}

void* CallTensors::stream_of_call(const Arguments& given) {
  check_stream(device, given[Arg::stream] != nullptr);
  if (device < 0 || given[Arg::stream] != nullptr) return stream_;
  return reader.current_stream(device);
}

PyObject* adopted(PyObject* like, bool was_given, Ref& made) {
  if (was_given || !is_array(made.get())) return made.release();
  return Ref::checked(PyObject_CallFunctionObjArgs(interop("adopted"), like, made.get(), nullptr))
      .release();
}

bool is_packed_weights(PyObject* weights) {
  return reinterpret_cast<PyObject*>(Py_TYPE(weights)) == interop("PackedWeights");
}

float CallTensors::packed_factor(const Arguments& given, Arg weights, const char* name, Arg scales,
                                 bool has_alpha) {
  if (given[scales] != nullptr) return 1;
  const char* const argument = names[static_cast<std::size_t>(scales)];
  const Ref alpha = Ref::checked(PyObject_GetAttrString(given[weights], "alpha"));
  if (alpha.get() == Py_None) {
    throw Refused{refuse(
        RefusalCode::bad_value, as_tensor(name),
        " are nvf4 weights whose factor (alpha) is not known, and ", argument, " is not given; ",
        as_rule("give it the factors, one for each matrix or row, in the operands' "
                "memory, or make them as PackedWeights(data, alpha=(FACTOR,))"))};
  }
  const Ref all = Ref::checked(PySequence_Tuple(alpha.get()));
  const Py_ssize_t count = PyTuple_Size(all.get());
  double factor = 1;
  bool alike = true;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const double each = PyFloat_AsDouble(PyTuple_GetItem(all.get(), i));
    if (PyErr_Occurred() != nullptr) refuse_arguments();
    alike = alike && (i == 0 || each == factor);
    factor = each;
  }
  if (alike && (has_alpha || factor == 1)) return static_cast<float>(factor);
  throw Refused{refuse(RefusalCode::bad_value, "the experts of ", as_tensor(name),
                       " have a factor each (alpha), and ", argument, " is not given; ",
                       as_rule("give it the factors, one for each expert or row, in the operands' "
                               "memory"))};
}

CallTensors::PackedMatrix CallTensors::read_packed(const Arguments& given, Arg arg,
                                                   const char* name, bool in_groups,
                                                   PackedWeights& packed) {
  PyObject* const weights = given[arg];
  bool is_batch = false;
  const Ref form = Ref::checked(PyObject_GetAttrString(weights, "form"));
  const Ref data = Ref::checked(PyObject_GetAttrString(weights, "data"));
  long long numbers[7] = {};
  int has_experts = 0;
  long long factor = 0;  // its bits: `alpha` says it too
  parse_arguments(form.get(), "LLLLLLLp|L", &numbers[0], &numbers[1], &numbers[2], &numbers[3],
                  &numbers[4], &numbers[5], &numbers[6], &has_experts, &factor);
  is_batch = has_experts != 0;
  const Tensor t = placed(reader.read(data.get(), name));
  const packed::Extents extents{numbers[0], numbers[1], numbers[2]};
  packed.format =
      packed::packed_format(static_cast<int>(numbers[4]), static_cast<int>(numbers[3]),
                            static_cast<DType>(numbers[5]), static_cast<ZeroPoints>(numbers[6]));
  if (const std::string wrong = packed::format_fault(packed.format); !wrong.empty()) {
    throw Refused{
        refuse(RefusalCode::bad_value, "the form of ", as_tensor(name), " is none: ", wrong)};
  }
  const std::int64_t bytes = packed::kHeaderBytes + packed::data_bytes(packed.format, extents);
  if (t.type != DType::u8 || t.dimensions != 1 || t.stride[0] != 1 || t.shape[0] != bytes) {
    throw Refused{refuse(RefusalCode::bad_shape, "the data of ", as_tensor(name),
                         " are no contiguous row of ", bytes,
                         " bytes (uint8), which packed weights of their form take")};
  }
  if (in_groups && !is_batch) {
    throw Refused{refuse(RefusalCode::bad_shape, as_tensor(name),
                         " are packed weights of one matrix, and rows in groups take one a group: ",
                         as_rule("give ", extents.n, " x ", extents.k,
                                 " weights of as many experts as there are groups"))};
  }
  auto* const first = static_cast<std::byte*>(t.data);
  MatrixView view = matrix(first == nullptr ? nullptr : first + packed::kHeaderBytes,
                           packed.format.code, extents.n, extents.k);
  view.batch = extents.experts;
  view.batch_stride = extents.experts > 1 ? extents.n * extents.k : 0;
  return {view, is_batch};
}

void Product::read_epilogue(const Arguments& given) {
  GemmOperands& o = operands;
  constexpr std::array<const char*, 2> along = {"rows", "columns"};
  const int runs = given.word(Arg::bias_along, along);
  if (given[Arg::bias] != nullptr) {
    o.epilogue.bias = runs == 0 ? Bias::rows : Bias::columns;
    o.bias = column_of(read(given, Arg::bias, "the bias"), runs == 0 ? o.a.rows : o.b.rows);
  }
  const int activation =
      given.word(Arg::activation, by_number(all_activations, [](Activation each) {
                   return is_of_products(each) ? name(each) : nullptr;
                 }));
  o.epilogue.gated = given.flag(Arg::gated);
  if (!o.epilogue.gated) {
    given.refuse_unread(std::array{Arg::gate_up}, "the product has no gate");
  }
  if (given[Arg::bias] == nullptr) {
    given.refuse_unread(std::array{Arg::bias_along}, "there is no bias");
  }
  o.epilogue.interleaved = given.word(Arg::gate_up, gate_up_words) == 1;
  const int quantise = given.word(
      Arg::quantise_d, by_number(all_quantisations, [](QuantiseD each) { return name(each); }));
  if (quantise >= 0) o.epilogue.quantise = static_cast<QuantiseD>(quantise);
  o.epilogue.activation = activation >= 0    ? static_cast<Activation>(activation)
                          : o.epilogue.gated ? Activation::silu
                                             : Activation::none;
  o.epilogue.gate = gate_numbers(given, o.epilogue.activation);
}

void Product::read_groups(const Arguments& given) {
  GemmOperands& o = operands;
  if (given[Arg::offsets] == nullptr) {
    throw Refused{refuse(RefusalCode::bad_pointer, as_tensor("offsets"), " are not given; ",
                         as_rule(o.b.batch, " groups have ", o.b.batch + 1,
                                 " offsets, int32 or int64, in the operands' memory"))};
  }
  const Tensor t = read(given, Arg::offsets, "offsets");
  if (!t.offset) {
    throw Refused{refuse(RefusalCode::bad_type, as_tensor("offsets"), " are ",
                         std::string(numeric::name(t.type.value_or(DType::f32))),
                         ", no integers of 32 or 64 bits; the nearest is ", as_nearest("int32"))};
  }
  if (t.dimensions != 1 || t.shape[0] != o.b.batch + 1) {
    throw Refused{refuse(RefusalCode::bad_shape, as_tensor("offsets"), " have ", t.elements(),
                         " elements in ", count_of(t.dimensions, "dimension"), "; ",
                         as_rule("B is ", o.b.batch, " matrices, one a group"),
                         ": the nearest legal shape is ", as_nearest("(", o.b.batch + 1, ",)"))};
  }
  if (t.stride[0] != 1) {
    throw Refused{refuse(RefusalCode::bad_stride, as_tensor("offsets"), " have a stride of ",
                         t.stride[0], "; ", as_rule("they lie next to each other"),
                         ": the nearest legal is ", as_nearest("1"))};
  }
  o.groups = Groups{t.data, *t.offset, given.number(Arg::expected_tokens, 0)};
  if (const char* const words = given.text(Arg::expected_lengths)) {
    if (auto r = expect_lengths(*o.groups, "expected_lengths", words)) throw Refused{*r};
  }
  read_rows(given);
}

void Product::read_inputs(const Arguments& given, bool grouped) {
  GemmOperands& o = operands;
  const Tensor a = read(given, Arg::a, "A");
  o.a = matrix_of(a);
  is_batch_ = a.dimensions == 3;
  if (is_packed_weights(given[Arg::b])) {
    PackedWeights& packed = operands.packed.emplace();
    const int sums = given.word(Arg::sums, sums_words);
    if (sums >= 0) packed.sums = static_cast<GroupSums>(sums);
    const PackedMatrix b = read_packed(given, Arg::b, "B", grouped, packed);
    o.b = b.view;
    is_batch_ = is_batch_ || (!grouped && b.is_batch);
  } else {
    if (given[Arg::sums] != nullptr) {
      throw Refused{bad(Arg::sums, "is given, and B are no PackedWeights: leave it out")};
    }
    const Tensor b = read(given, Arg::b, "B");
    o.b = matrix_of(b);
    is_batch_ = is_batch_ || (!grouped && b.dimensions == 3);
    if (grouped && b.dimensions != 3) {
      throw Refused{refuse(
          RefusalCode::bad_shape, as_tensor("B"), " has ", count_of(b.dimensions, "dimension"),
          "; ", as_rule("it has a matrix a group"), ": the nearest legal is ", as_nearest("3"))};
    }
  }
  read_operand_types(given);
  if (given[Arg::c] != nullptr) o.c = matrix_of(read(given, Arg::c, "C"));
  read_epilogue(given);
  if (!grouped) {
    given.refuse_unread(std::array{Arg::rows, Arg::rows_divisor, Arg::expected_tokens,
                                   Arg::expected_lengths, Arg::check_offsets},
                        "the product has no groups");
    return;
  }
  read_groups(given);
}

// Tokens by index.
void Product::read_rows(const Arguments& given) {
  if (given[Arg::rows] == nullptr) {
    if (given[Arg::rows_divisor] == nullptr) return;
    throw Refused{bad(Arg::rows_divisor, "is given without rows: leave it out")};
  }
  const Tensor t = read(given, Arg::rows, "rows");
  if (t.offset != OffsetType::int32) {
    throw Refused{refuse(RefusalCode::bad_type, as_tensor("rows"),
                         " are no integers of 32 bits; the nearest is ", as_nearest("int32"))};
  }
  if (t.dimensions != 1 || (t.shape[0] > 1 && t.stride[0] != 1)) {
    throw Refused{refuse(RefusalCode::bad_shape, as_tensor("rows"), " have ",
                         count_of(t.dimensions, "dimension"), ", or lie apart; ",
                         as_rule("they are one for each row of D, next to each "
                                 "other"),
                         ": the nearest legal shape is ", as_nearest("(", t.elements(), ",)"))};
  }
  const double divisor = given.number(Arg::rows_divisor, 1);
  if (!(divisor >= 1 && divisor <= 1 << 30) || divisor != std::floor(divisor)) {
    throw Refused{bad(Arg::rows_divisor, "is no whole number of 1 or more; the nearest is 1")};
  }
  operands.groups->rows = static_cast<const std::int32_t*>(t.data);
  operands.groups->rows_divisor = static_cast<int>(divisor);
  slots_ = t.shape[0];
}

void Product::take_scales(const Arguments& given, int said) {
  // Numbers of Python's have no memory on the device: they go into alpha.
  if ((given[Arg::scale_a] != nullptr && !given.is_number(Arg::scale_a)) ||
      (given[Arg::scale_b] != nullptr && !given.is_number(Arg::scale_b)) ||
      (said >= 0 && said != static_cast<int>(Scaling::tensor))) {
    throw Refused{refuse(RefusalCode::bad_value, as_tensor("scale_a"),
                         " and scale_b are not both numbers of Python's, or not of the whole "
                         "tensors; the nearest legal are ",
                         as_nearest("two numbers"),
                         ", or two float32 tensors in the operands' memory")};
  }
  const double product = given.number(Arg::scale_a, 1) * given.number(Arg::scale_b, 1);
  if (std::isnan(product)) {
    throw Refused{refuse(RefusalCode::bad_value, as_tensor("scale_a"), " or scale_b is NaN; ",
                         as_rule("both must be numbers"), ": the nearest legal is ",
                         as_nearest("1"))};
  }
  operands.alpha *= static_cast<float>(product);
}

void Product::read_scales(const Arguments& given, bool grouped) {
  const int said = given.word(
      Arg::scaling, by_number(all_scalings, [](Scaling s) { return words_of(s).identifier; }));
  constexpr std::array<const char*, 2> kept = {"fast", "promoted"};
  operands.accumulation =
      static_cast<Accumulation>(std::max(0, given.word(Arg::accumulation, kept)));
  if (given[Arg::scale_d] != nullptr) {
    operands.scale_d = scalar_of(read(given, Arg::scale_d, "scale_d"));
  }
  if (given.is_number(Arg::scale_a) || given.is_number(Arg::scale_b)) {
    take_scales(given, said);
    return;
  }
  ScaleTensors scales;
  if (given[Arg::scale_a] != nullptr) {
    scales[0] = read_scales_tensor(given, Arg::scale_a, "scale_a");
  }
  if (given[Arg::scale_b] != nullptr) {
    scales[1] = read_scales_tensor(given, Arg::scale_b, "scale_b");
  }
  if (said >= 0) {
    operands.scaling = static_cast<Scaling>(said);
  } else {
    guess_scaling(scales, grouped);
  }
  if (operands.scaling == Scaling::block_scaled) {
    read_scale_tiles(scales);
    return;
  }
  for (const bool of_a : {true, false}) {
    const auto& t = scales[of_a ? 0 : 1];
    if (!t) continue;
    MatrixView& view = of_a ? operands.scale_a : operands.scale_b;
    if (operands.scaling == Scaling::blockwise || operands.scaling == Scaling::none) {
      view = t->dimensions >= 2 ? matrix_of(*t) : vector_of(*t);
    } else if (operands.scaling == Scaling::tensor) {
      view = scalar_of(*t);
    } else {
      view = t->dimensions == 0 ? scalar_of(*t)
                                : column_of(*t, of_a ? operands.a.rows : operands.b.rows);
    }
    if (operands.scaling == Scaling::group && !of_a && t->elements() == 1) {  // one of all groups
      view.rows = operands.b.batch;
      view.row_stride = 0;
    }
  }
}

// Factors of tensors are a part of alpha: those of packed weights by themselves, those of other
// nvf4 operands where the caller says them.
void Product::read_alpha(const Arguments& given, bool plans_only) {
  const auto alpha = static_cast<float>(given.number(Arg::alpha, 1));
  operands.alpha *= alpha;
  if (operands.packed) {
    const float factor = packed_factor(given, Arg::b, "B", Arg::scale_b, true);
    if (factor != 1 && alpha == factor) {
      throw Refused{
          bad(Arg::alpha, "is the factor of B, which such weights bring along: leave it out")};
    }
    operands.alpha *= factor;
    return;
  }
  const bool has_factors =
      operands.scaling == Scaling::block_scaled &&
      (operands.scale_a.dtype == DType::ue4m3 && operands.scale_b.dtype == DType::ue4m3);
  if (!has_factors || plans_only || given[Arg::alpha] != nullptr) return;
  throw Refused{refuse(RefusalCode::bad_value,
                       "alpha is not given, and nvf4 operands have a factor for each tensor, whose "
                       "product it is: ",
                       as_rule("give it"), ": for operands without factors the nearest is ",
                       as_nearest("1"))};
}

void Product::choose(const Arguments& given) {
  options.choices.batch_invariant = given.flag(Arg::batch_invariant);
  options.measure = static_cast<int>(given.integer(Arg::measure, 0, 0, most_measured));
  if (const char* const kernel = given.text(Arg::kernel)) options.choices.kernel = kernel;
  if (PyObject* const cluster = given[Arg::cluster]) {
    const bool is_pair = PyTuple_Check(cluster) != 0 && PyTuple_Size(cluster) == 2;
    const long m = is_pair ? PyLong_AsLong(PyTuple_GetItem(cluster, 0)) : -1;
    const long n = is_pair ? PyLong_AsLong(PyTuple_GetItem(cluster, 1)) : -1;
    PyErr_Clear();
    if (m < 1 || n < 1 || m > 16 || n > 16) {
      throw Refused{bad(Arg::cluster, "is not two numbers of CTAs; the nearest legal is (1, 1)")};
    }
    options.choices.cluster = {static_cast<int>(m), static_cast<int>(n)};
  }
  options.launch.dependent = given.flag(Arg::dependent);
  options.launch.check_offsets = given.flag(Arg::check_offsets);
}

void Product::read_result(const Arguments& given, bool plans_only) {
  const auto asked = given.type(Arg::dtype);
  const std::int64_t columns = operands.epilogue.gated ? operands.b.rows / 2 : operands.b.rows;
  const std::int64_t batch = operands.groups ? 1 : std::max(operands.a.batch, operands.b.batch);
  DType usual = DType::bf16;
  if (operands.a.dtype == DType::f16) usual = DType::f16;
  if (operands.a.dtype == DType::tf32) usual = DType::f32;
  if (operands.is_quantised()) usual = form_of(operands.epilogue.quantise).codes;
  const DType type = asked.value_or(usual);
  if (PyObject* const given_out = given[Arg::out]) {
    operands.d = given_result(given, Arg::out, "D", asked);
    if (operands.is_quantised() && operands.d.dtype == DType::u8) {
      take_bytes_as(operands.d, usual, "D");
    }
    if (operands.is_by_index() && operands.d.rows != slots_) {
      throw Refused{refuse(RefusalCode::bad_shape, as_tensor("D"), " has ", operands.d.rows,
                           " rows, and rows ", slots_, " integers: the nearest legal number is ",
                           as_nearest(slots_))};
    }
    out = Ref::borrowed(given_out);
    return;
  }
  MatrixView& d = operands.d;
  d = matrix(nullptr, type, operands.is_by_index() ? slots_ : operands.a.rows, columns);
  d.batch = batch;
  d.batch_stride = batch == 1 ? 0 : d.rows * d.columns;
  if (plans_only || operands.a.rows < 0) return;
  std::array<std::int64_t, 3> shape = {batch, d.rows, d.columns};
  const auto extents = std::span<const std::int64_t>(shape).last(is_batch_ ? 3 : 2);
  if (type == DType::e2m1 && operands.is_quantised()) {
    shape[2] = (d.columns + 1) / 2;
    d = new_result(given[Arg::a], "empty_halves", extents, std::nullopt, "D", "out=", out);
    if (d.dtype == DType::u8) take_bytes_as(d, type, "D");
  } else {
    d = new_result(given[Arg::a], "empty_like", extents, type, "D", "out=", out);
  }
  options.launch.zero_rest = operands.groups.has_value();
}

void Product::read_scales_of_result(const Arguments& given, bool plans_only) {
  GemmOperands& o = operands;
  const MatrixShape shape = d_scales_shape(problem_of(o));
  const auto as_scales = [&](MatrixView view) {
    const bool fits =
        view.dtype == DType::u8 || (view.dtype == DType::e4m3 && shape.dtype == DType::ue4m3);
    if (is_micro_scale(shape.dtype) && fits) view.dtype = shape.dtype;
    return view;
  };
  if (PyObject* const given_scales = given[Arg::d_scales]) {
    o.d_scales = as_scales(given_result(given, Arg::d_scales, "d_scales", std::nullopt));
    scales = Ref::borrowed(given_scales);
    return;
  }
  if (!o.is_quantised()) return;
  o.d_scales = {nullptr, shape};
  if (plans_only || o.d.rows < 0) return;
  const std::array<std::int64_t, 3> all = {shape.batch, shape.rows, shape.columns};
  const auto extents = std::span(all).last(is_batch_ ? 3 : 2);
  if (shape.dtype == DType::f32) {
    o.d_scales = new_result(given[Arg::a], "empty_scales", extents, std::nullopt, "d_scales",
                            "d_scales=", scales);
    return;
  }
  const DType named = shape.dtype == DType::ue4m3 ? DType::e4m3 : shape.dtype;
  o.d_scales = as_scales(
      new_result(given[Arg::a], "empty_like", extents, named, "d_scales", "d_scales=", scales));
}

}  // namespace warpwright::python
