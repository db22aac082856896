#include "python/src/moe.h"

#include <array>
#include <string>
#include <vector>

#include "python/src/handles.h"
#include "python/src/object.h"
#include "warpwright/plan/moe/moe_alternatives.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/run_moe.h"

namespace warpwright::python {
namespace {

constexpr std::array operand_args = {Arg::x, Arg::topk_ids, Arg::topk_weights, Arg::w13, Arg::w2};

using MoePlanHandle = AnyPlanHandle<MixturePlan>;

// A mixture that arguments describe: its tensors are read, and its result is there.
struct MixtureCall : CallTensors {
  /// `plans_only`: tensors may be specs, and there need be no result.
  MixtureCall(const Arguments& given, bool plans_only);

  MixtureOperands operands;
  MixtureRunOptions options;
  Ref out;  ///< what was given, or made; none of a spec

 private:
  std::optional<MicroFormat> weights_as_;  ///< where that is said
  struct Scales {
    Arg arg;
    const char* name;
    const MatrixView& weights;
    MatrixView& view;
    bool gated;  ///< where experts have a gate
  };
  std::array<Scales, 2> scales_ = {
      {{Arg::scale_w13, "scale_w13", operands.w13, operands.scale_w13, true},
       {Arg::scale_w2, "scale_w2", operands.w2, operands.scale_w2, false}}};
  void read_router(const Arguments& given);
  MatrixView read_weights(const Arguments& given, Arg arg, const char* name, Arg scales,
                          std::optional<PackedWeights>& packed);
  void read_format(const Arguments& given);
  void read_scales(const Arguments& given);
  void read_scale_tiles(const Arguments& given);
  void read_factors(const Arguments& given);
  void read_result(const Arguments& given, bool plans_only);
  void read_forms(const Arguments& given);
  void choose(const Arguments& given);
};

// A row a token.
MatrixView token_rows(const Tensor& t) {
  if (t.dimensions == 2) return matrix_of(t);
  throw Refused{refuse(RefusalCode::bad_shape, as_tensor(t.name), " has ",
                       count_of(t.dimensions, "dimension"), "; ", as_rule("it has a row a token"),
                       ": the nearest legal is ", as_nearest("2"))};
}

// T x top_k x H as rows of slots, which must lie evenly.
MatrixView slot_rows(MatrixView v) {
  const std::int64_t even = v.rows * v.row_stride;
  if (v.batch > 1 && v.rows > 1 && v.batch_stride != even) {
    throw Refused{refuse(RefusalCode::bad_stride, as_tensor("d"), "'s tokens are ", v.batch_stride,
                         " elements apart; ", as_rule("the rows of its slots lie evenly"),
                         ": the nearest legal is ", as_nearest(even))};
  }
  if (v.batch > 1 && v.rows == 1) v.row_stride = v.batch_stride;
  v.rows *= v.batch;
  v.batch = 1;
  v.batch_stride = 0;
  return v;
}

// A scale an expert serves all of its rows.
MatrixView one_an_expert(const Tensor& t, std::int64_t rows) {
  Tensor flat = t;
  while (flat.dimensions > 1 && flat.shape[static_cast<std::size_t>(flat.dimensions) - 1] == 1) {
    --flat.dimensions;
  }
  MatrixView view = vector_of(flat);
  view.batch = view.rows;
  view.batch_stride = view.row_stride;
  view.rows = rows;
  view.row_stride = 0;
  return view;
}

MixtureCall::MixtureCall(const Arguments& given, bool plans_only) : CallTensors(given) {
  MixtureOperands& o = operands;
  o.x = token_rows(read(given, Arg::x, "x"));
  if (device == run_nowhere && !plans_only) {
    throw Refused{refuse(RefusalCode::bad_pointer, as_tensor("x"),
                         " is a Spec, which has no memory; ",
                         as_rule("give a tensor, or call plan_moe()"))};
  }
  o.is_gated = given.choice(Arg::gated).value_or(true);
  read_router(given);
  read_format(given);
  o.w13 = read_weights(given, Arg::w13, "w13", Arg::scale_w13, o.packed13);
  o.w2 = read_weights(given, Arg::w2, "w2", Arg::scale_w2, o.packed2);
  if (o.packed13) given.refuse_unread(std::array{Arg::format}, "w13 says itself what it is");
  const int sums = given.word(Arg::sums, sums_words);
  if (sums >= 0 && !o.packed2) {
    throw Refused{refuse(RefusalCode::bad_value, "sums is given, and ", as_tensor("w2"),
                         " are no PackedWeights: ", as_rule("leave it out"))};
  }
  if (sums >= 0) o.packed2->sums = static_cast<GroupSums>(sums);
  read_scales(given);
  read_factors(given);
  if (given[Arg::bias13] != nullptr) o.bias13 = vector_of(read(given, Arg::bias13, "bias13"));
  if (given[Arg::bias2] != nullptr) o.bias2 = vector_of(read(given, Arg::bias2, "bias2"));
  read_forms(given);
  // What is no word of a mixture is none here.
  const int activation =
      given.word(Arg::activation, by_number(all_activations, [&o](Activation each) {
                   return (o.is_gated ? gates(each) : stands_alone(each)) ? name(each) : nullptr;
                 }));
  if (activation >= 0) o.activation = static_cast<Activation>(activation);
  o.gate = gate_numbers(given, o.activation);
  o.interleaved = given.word(Arg::gate_up, gate_up_words) == 1;
  o.first_expert = given.integer(Arg::first_expert, 0, 0, INT64_MAX);
  o.experts_total = given.integer(Arg::experts_total, 0, 1, INT64_MAX);
  if (const char* const words = given.text(Arg::expected_lengths)) {
    Groups spread;
    if (auto r = expect_lengths(spread, "expected_lengths", words)) throw Refused{*r};
    o.expected_lengths = spread.expected_lengths;
    o.expected_zipf = spread.expected_zipf;
  }
  choose(given);
  read_result(given, plans_only);
  options.device = device;
  options.stream = stream_of_call(given);
}

void MixtureCall::read_router(const Arguments& given) {
  if (given[Arg::topk_ids] == Py_None && given[Arg::topk_weights] == Py_None) return;
  Tensor ids = read(given, Arg::topk_ids, "topk_ids");
  if (!ids.offset) {
    throw Refused{refuse(RefusalCode::bad_type, as_tensor("topk_ids"),
                         " is not of int32 or int64; the nearest is ", as_nearest("int32"))};
  }
  operands.id_type = *ids.offset;
  ids.type = DType::s32;  // of either width, as Mixture has it
  operands.topk_ids = token_rows(ids);
  operands.topk_weights = token_rows(read(given, Arg::topk_weights, "topk_weights"));
}

MatrixView MixtureCall::read_weights(const Arguments& given, Arg arg, const char* name, Arg scales,
                                     std::optional<PackedWeights>& packed) {
  if (is_packed_weights(given[arg])) {
    const MatrixView view =
        read_packed(given, arg, name, operands.is_routed(), packed.emplace()).view;
    static_cast<void>(packed_factor(given, arg, name, scales, false));
    return view;
  }
  const Tensor t = read(given, arg, name);
  MatrixView view = matrix_of(t);
  if (t.dimensions == 3 || (t.dimensions == 2 && !operands.is_routed())) {
    if (weights_as_ && view.dtype != weights_as_->element) {
      if (view.dtype != DType::u8) {
        throw Refused{refuse(
            RefusalCode::bad_type, as_tensor(name), " is ", type_name(view.dtype),
            ", and format says ", weights_as_->word, "; ",
            as_rule("that lies as ", type_name(weights_as_->element), ", or in bytes of uint8"))};
      }
      take_bytes_as(view, weights_as_->element, name);
    }
    return view;
  }
  throw Refused{refuse(
      RefusalCode::bad_shape, as_tensor(name), " has ", count_of(t.dimensions, "dimension"), "; ",
      as_rule("it has a matrix an expert"), ": the nearest legal is ", as_nearest("3"))};
}

// What weights are, and tokens become, by the word of format=: as `--dtype` has it.
void MixtureCall::read_format(const Arguments& given) {
  const char* const text = given.text(Arg::format);
  if (text == nullptr) return;
  const auto formats = micro_formats_of(text);
  if (!formats || formats->first.scale != formats->second.scale) {
    std::string words;
    for (const MicroFormat& f : micro_formats) words += std::string(f.word) + ", ";
    throw Refused{refuse(RefusalCode::bad_value, "format is \"", text, "\"; ",
                         as_rule("it is one of ", words,
                                 "or two with scales of one type, for tokens "
                                 "and for weights"),
                         ": the nearest is ", as_nearest("\"mxf8,mxf4\""))};
  }
  const bool is_one = std::string_view(text).find(',') == std::string_view::npos;
  if (!is_one) operands.tokens_as = formats->first.element;
  weights_as_ = formats->second;
}

// Scales that the tensor core multiplies.
void MixtureCall::read_scale_tiles(const Arguments& given) {
  for (const Scales& each : scales_) {
    if (given[each.arg] == nullptr) continue;
    const Tensor t = read(given, each.arg, each.name);
    const std::optional<DType> type =
        weights_as_ ? weights_as_->scale : scale_type_of(t, each.weights.dtype);
    if (!type) {
      throw Refused{refuse(RefusalCode::bad_type, as_tensor(each.name),
                           " is uint8, and may be float8_e4m3fn (nvf4) or float8_e8m0fnu (mxf4): ",
                           as_rule("give it that type, or say format"), ": the nearest is ",
                           as_nearest("\"nvf4\""))};
    }
    GemmProblem p;  // for the shape of its scales
    p.scaling = Scaling::block_scaled;
    p.a = p.b = {MatrixShape(each.weights)};
    p.d.batch = each.weights.batch;
    p.scale_a.dtype = p.scale_b.dtype = *type;
    p.epilogue.gated = each.gated && operands.is_gated;
    each.view = scale_tiles(t, each.weights, scale_shape(p, false), each.weights.batch);
  }
}

// Factors of tensors, as nvf4 has them: those of its weights are asked for.
void MixtureCall::read_factors(const Arguments& given) {
  MixtureOperands& o = operands;
  const struct {
    Arg arg;
    const char* name;
    const MatrixView* scales;  // of weights
    MatrixView& view;
  } factors[] = {{Arg::factor_w13, "factor_w13", &o.scale_w13, o.factor_w13},
                 {Arg::factor_w2, "factor_w2", &o.scale_w2, o.factor_w2},
                 {Arg::factor_x, "factor_x", nullptr, o.factor_x},
                 {Arg::factor_inner, "factor_inner", nullptr, o.factor_inner}};
  for (const auto& each : factors) {
    const bool is_nvf4 =
        o.is_micro() && each.scales != nullptr && each.scales->dtype == DType::ue4m3;
    if (given[each.arg] == nullptr) {
      if (!is_nvf4 || device == run_nowhere) continue;
      throw Refused{refuse(RefusalCode::bad_value, as_tensor(each.name),
                           " is not given, and experts of nvf4 have a factor for each tensor; ",
                           as_rule("give it their float32 factors"),
                           ": for experts without factors the nearest is ", as_nearest("1"))};
    }
    if (is_nvf4 && given.is_number(each.arg) && given.number(each.arg, 1) == 1) continue;
    const Tensor t = read(given, each.arg, each.name);
    each.view = t.elements() == 1 ? scalar_of(t) : vector_of(t);
  }
}

// Experts x rows, or experts x rows x 1, are of rows; else of blocks. Int4 weights need none:
// tokens then are quantised by row.
void MixtureCall::read_scales(const Arguments& given) {
  const int said = given.word(Arg::scaling, by_number(all_scalings, [](Scaling s) {
                                const bool is_one = s == Scaling::tensor || s == Scaling::group;
                                return is_one ? nullptr : words_of(s).identifier;
                              }));
  if (said >= 0) {
    operands.scaling = static_cast<Scaling>(said);
  } else if (operands.is_packed() && operands.quantises()) {
    operands.scaling = Scaling::row_column;
  }
  if (said < 0 && !operands.is_packed()) {
    const bool tells = given[Arg::scale_w13] != nullptr &&
                       read(given, Arg::scale_w13, "scale_w13").type == DType::ue8m0;
    if (weights_as_ || tells || numeric::bits(operands.w13.dtype) < 8) {
      operands.scaling = Scaling::block_scaled;
    }
  }
  if (operands.is_micro()) return read_scale_tiles(given);
  for (const Scales& each : scales_) {
    if (given[each.arg] == nullptr) continue;
    const Tensor t = read_scales_tensor(given, each.arg, each.name);
    if (operands.is_packed() && t.elements() == each.weights.batch && each.weights.rows != 1) {
      each.view = one_an_expert(t, each.weights.rows);
      if (said < 0) operands.scaling = Scaling::row_column;
      continue;
    }
    // Those of an MLP may have no dimension for experts.
    const bool is_matrix = t.dimensions >= 3 || (t.dimensions == 2 && !operands.is_routed());
    each.view = is_matrix ? matrix_of(t) : vector_of(t);
    if (said >= 0 || operands.scaling != Scaling::none) continue;
    const bool of_rows = each.view.columns == 1 && each.view.rows == each.weights.rows;
    operands.scaling = of_rows || operands.is_packed() ? Scaling::row_column : Scaling::blockwise;
  }
}

// What engines ask for beside the plain layer.
void MixtureCall::read_forms(const Arguments& given) {
  MixtureOperands& o = operands;
  const int combine =
      given.word(Arg::combine, by_number(all_combines, [](Combine each) { return name(each); }));
  if (combine >= 0) o.combine = static_cast<Combine>(combine);
  o.apply_router_weight_on_input = given.flag(Arg::apply_router_weight_on_input);
  o.routed_scaling_factor = static_cast<float>(given.number(Arg::routed_scaling_factor, 1));
  if (given[Arg::shared_output] != nullptr) {
    o.shared_output = token_rows(read(given, Arg::shared_output, "shared_output"));
  }
  if (given[Arg::scale_x] == nullptr) return;
  const Tensor t = read_scales_tensor(given, Arg::scale_x, "scale_x");
  const bool is_one = t.elements() == 1 && o.tokens() != 1;
  const bool has_blocks = t.dimensions == 2 && t.shape[1] != 1;
  o.scale_x = is_one ? scalar_of(t) : has_blocks ? matrix_of(t) : column_of(t, o.tokens());
}

void MixtureCall::choose(const Arguments& given) {
  MixtureChoices& c = options.choices;
  c.batch_invariant = given.flag(Arg::batch_invariant);
  if (const char* const kernel = given.text(Arg::first_kernel)) c.first_kernel = kernel;
  if (const char* const kernel = given.text(Arg::second_kernel)) c.second_kernel = kernel;
  c.by_index = given.choice(Arg::by_index);
  c.quantises_in_epilogue = given.choice(Arg::quantises_in_epilogue);
  c.gates_in_epilogue = given.choice(Arg::gates_in_epilogue);
  c.early_weights = given.choice(Arg::early_weights);
  c.sort_with_gather = given.choice(Arg::sort_with_gather);
  c.one_launch = given.choice(Arg::one_launch);
  options.launch.dependent = given.flag(Arg::dependent);
  options.check_ids = given.flag(Arg::check_ids);
}

void MixtureCall::read_result(const Arguments& given, bool plans_only) {
  MixtureOperands& o = operands;
  const auto asked = given.type(Arg::dtype);
  if (given[Arg::out] != nullptr) {
    o.d = given_result(given, Arg::out, "d", asked);
    if (o.combine != Combine::sum) o.d = slot_rows(o.d);
    out = Ref::borrowed(given[Arg::out]);
    return;
  }
  o.d = matrix(nullptr, asked.value_or(o.row_type()), o.results(), o.x.columns);
  if (plans_only) return;
  std::vector<std::int64_t> shape = {o.x.rows, o.x.columns};
  if (o.combine != Combine::sum) shape.insert(shape.begin() + 1, o.top_k());
  o.d = new_result(given[Arg::x], "empty_like", shape, o.d.dtype, "d", "out=", out);
  if (o.combine != Combine::sum) o.d = slot_rows(o.d);
}

// -- MoePlan

using MoeView = PlanView<MixturePlan>;

PyObject* moe_plan_repr(PyObject* self) {
  return MoeView::get(
      self, [](const MixturePlan& p) { return "<warpwright.MoePlan " + plan_line(p) + ">"; });
}
PyObject* moe_plan_prepare(PyObject* self, PyObject*) {
  return method([&]() -> PyObject* {
    MoeView::on_device(held<MoePlanHandle>(self),
                       [](const MixturePlan& plan) { return prepare(plan); });
    Py_RETURN_NONE;
  });
}
PyObject* moe_plan_kernels(PyObject* self, void*) {
  return method([&] {
    const MixturePlan& p = *held<MoePlanHandle>(self).plan;
    return Py_BuildValue("(ss)", p.first.kernel.c_str(), p.second.kernel.c_str());
  });
}

PyMethodDef moe_plan_methods[] = {
    {"explain", MoeView::explain, METH_NOARGS,
     "explain($self)\n--\n\nA table of the launches, their kernels and their floors."},
    {"prepare", moe_plan_prepare, METH_NOARGS,
     "prepare($self)\n--\n\nLoads the kernels, so that the first launch may be in a graph "
     "capture."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef moe_plan_members[] = {
    {"name", MoeView::name, nullptr, "Both kernels and their clusters in a word.", nullptr},
    {"kernels", moe_plan_kernels, nullptr,
     "The names of both kernels, for `first_kernel=` and `second_kernel=`.", nullptr},
    {"line", MoeView::line, nullptr, "The mixture, its kernels and launches, in a line.", nullptr},
    {"device", MoeView::device, nullptr, "The device it was made for.", nullptr},
    {"launches",
     [](PyObject* s, void*) { return PyLong_FromLong(held<MoePlanHandle>(s).plan->launches()); },
     nullptr, "Grids that a launch starts, each dependent on the one before.", nullptr},
    {"workspace_bytes", MoeView::workspace_bytes, nullptr,
     "Bytes of workspace that a launch needs.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot moe_plan_slots[] = {
    {Py_tp_doc, const_cast<char*>("A decision how to run a mixture of experts: immutable, without "
                                  "addresses. plan_moe() makes it.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc<MoePlanHandle>)},
    {Py_tp_repr, reinterpret_cast<void*>(moe_plan_repr)},
    {Py_tp_methods, moe_plan_methods},
    {Py_tp_getset, moe_plan_members},
    {0, nullptr}};

}  // namespace

void add_moe_plan(PyObject* module) {
  add_type<MoePlanHandle>(module, "warpwright._core.MoePlan", moe_plan_slots, no_instances);
}

PyObject* moe(PyObject* /*module*/, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return method([&]() -> PyObject* {
    const Arguments given({"moe", operand_args, operand_args.size(), in_moe}, args, count,
                          keywords);
    if (given[Arg::plan] != nullptr) {
      given.refuse_unread(std::array{Arg::expected_lengths}, "plan says already which plan it is");
    }
    MixtureCall call(given, false);
    run_call<MixturePlan>(given, call, [&call](const MixturePlan* by, auto* made) {
      return by != nullptr ? run_moe(*by, call.operands, call.options)
                           : run_moe(call.operands, call.options, made);
    });
    return adopted(given[Arg::x], given[Arg::out] != nullptr, call.out);
  });
}

PyObject* plan_mixture(PyObject* /*module*/, PyObject* const* args, Py_ssize_t count,
                       PyObject* keywords) {
  return method([&]() -> PyObject* {
    const Arguments given({"plan_moe", operand_args, operand_args.size(), in_plan_moe}, args, count,
                          keywords);
    const MixtureCall call(given, true);
    const NamedDevice on = device_for(given, call.device);
    return new_plan(taken(run_moe_plan(call.operands, on.facts, call.options.choices)), on.index);
  });
}

bool is_moe_plan(PyObject* object) {
  return is_plan<MixturePlan>(object);
}

PyObject* fastest_mixture(PyObject* const* plans, Py_ssize_t count) {
  return fastest_of<MixturePlan>(plans, count);
}

}  // namespace warpwright::python
