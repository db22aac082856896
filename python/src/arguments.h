// The arguments of the verbs: gemm, grouped_gemm, plan, check and trace take the same.
#pragma once

#include <array>
#include <span>

#include "python/src/tensor.h"

namespace warpwright::python {

/// In the order of their names (arguments.cpp).
enum class Arg : std::uint8_t {
  a,
  b,
  offsets,
  out,
  c,
  alpha,
  beta,
  bias,
  bias_along,
  activation,
  gated,
  gate_up,
  scale_a,
  scale_b,
  scale_d,
  scaling,
  accumulation,
  operands,
  sums,
  dtype,
  quantise_d,
  d_scales,
  batch_invariant,
  kernel,
  cluster,
  expected_tokens,
  measure,
  rows,
  rows_divisor,
  check_offsets,
  dependent,
  stream,
  workspace,
  plan,
  device,
  schedules,
  seed,
  jobs,
  sms,
  count
};
inline constexpr auto arg_count = static_cast<std::size_t>(Arg::count);

/// What was given, by its name; None is not given. Borrowed.
class Arguments {
 public:
  /// Reads a call by the vectorcall convention: `positional` may come without a name; those of
  /// `also`, beside all of a product, and of no other verb, by name. Throws PythonError with a
  /// TypeError, as a function written in Python does.
  Arguments(const char* function, std::span<const Arg> positional, std::span<const Arg> also,
            PyObject* const* args, Py_ssize_t count, PyObject* names);

  [[nodiscard]] PyObject* operator[](Arg arg) const { return at_[static_cast<std::size_t>(arg)]; }

  // Values; these throw Refused where the object is none.
  [[nodiscard]] double number(Arg arg, double otherwise) const;
  [[nodiscard]] std::int64_t integer(Arg arg, std::int64_t otherwise, std::int64_t least,
                                     std::int64_t most) const;
  [[nodiscard]] bool flag(Arg arg) const;
  /// The place of a word in `words`; -1 where it was not given.
  [[nodiscard]] int word(Arg arg, std::span<const char* const> words) const;
  [[nodiscard]] std::optional<DType> type(Arg arg) const;
  [[nodiscard]] const char* text(Arg arg) const;  ///< null where it was not given
  /// Is it a number of Python's, not a tensor?
  [[nodiscard]] bool is_number(Arg arg) const;

 private:
  std::array<PyObject*, arg_count> at_{};
};

/// A product that arguments describe: its tensors are read, and its result is there.
struct Product {
  /// `plans_only`: tensors may be specs, and there need be no result.
  Product(const Arguments& given, bool grouped, bool plans_only);

  Reader reader;
  GemmOperands operands;
  RunOptions options;
  Ref out;     ///< what was given, or made; none of a spec
  Ref scales;  ///< the same of the scales of a D that is quantised

  /// The refusal, with what was only guessed of the call.
  [[nodiscard]] Refusal told(Refusal refused) const;

 private:
  void read_inputs(const Arguments& given, bool grouped);
  void read_rows(const Arguments& given);
  void read_int4(const Arguments& given, bool grouped);
  void read_operand_types(const Arguments& given);
  void read_scales(const Arguments& given, bool grouped);
  void read_result(const Arguments& given, bool plans_only);
  void read_scales_of_result(const Arguments& given, bool plans_only);
  void choose(const Arguments& given);
  /// Notes where a tensor lies; all lie in one place.
  const Tensor& placed(const Tensor& t);
  Tensor read(const Arguments& given, Arg arg, const char* name);

  bool is_batch_ = false;   // D has three dimensions
  std::int64_t slots_ = 0;  // rows of D, where it reads A's by index
  bool guesses_scaling_ = false;
  const char* first_ = nullptr;  // the tensor that said where all lie
};

/// A cudaStream_t from what `stream=` was given: an integer, or a stream of some library. Null: the
/// default stream.
void* stream_of(PyObject* given);

/// (name of a device, for sentences) "cuda:0", "host memory (the model)".
std::string place_name(int device);

}  // namespace warpwright::python
