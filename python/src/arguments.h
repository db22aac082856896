// The arguments of the verbs: gemm, grouped_gemm, plan, check and trace take the same, moe and
// plan_moe others.
#pragma once

#include <array>
#include <span>

#include "python/src/tensor.h"

namespace warpwright::python {

/// The verbs, as bits of those that show an argument.
enum Verbs : unsigned { in_gemm = 1, in_grouped = 2, in_plan = 4, in_moe = 8, in_plan_moe = 16 };
/// Those that take what a product is, and refuse what they do not read.
inline constexpr unsigned of_product = in_gemm | in_grouped;

enum class Arg : std::uint8_t {
#define NAME(name) name,
#include "python/src/arguments.inc"
  count
};
inline constexpr auto arg_count = static_cast<std::size_t>(Arg::count);

/// What a function takes.
struct Signature {
  const char* function;
  std::span<const Arg> positional;  ///< may come without a name, in this order
  std::size_t required;             ///< so many of these must come
  unsigned verbs;                   ///< those that one of these shows come by name
  std::span<const Arg> also = {};   ///< and these
};

/// What help() and inspect say that a verb takes: "gemm(a, b" is a `head`.
std::string signature_text(std::string head, unsigned verb);

/// _core.keywords: for each verb the name, type and default of what comes by name.
void add_keywords(PyObject* module);

/// What was given, by its name; None is not given. Borrowed.
class Arguments {
 public:
  /// Reads a call by the vectorcall convention. Throws PythonError with a TypeError, as a function
  /// written in Python does.
  Arguments(const Signature& of, PyObject* const* args, Py_ssize_t count, PyObject* names);

  [[nodiscard]] PyObject* operator[](Arg arg) const { return at_[static_cast<std::size_t>(arg)]; }

  // Values; these throw Refused where the object is none.
  [[nodiscard]] double number(Arg arg, double otherwise) const;
  [[nodiscard]] std::int64_t integer(Arg arg, std::int64_t otherwise, std::int64_t least,
                                     std::int64_t most) const;
  [[nodiscard]] bool flag(Arg arg) const;
  /// The same of one that may be left open.
  [[nodiscard]] std::optional<bool> choice(Arg arg) const;
  /// The place of a word in `words`; -1 where it was not given.
  [[nodiscard]] int word(Arg arg, std::span<const char* const> words) const;
  [[nodiscard]] std::optional<DType> type(Arg arg) const;
  [[nodiscard]] const char* text(Arg arg) const;  ///< null where it was not given
  /// Is it a number of Python's, not a tensor?
  [[nodiscard]] bool is_number(Arg arg) const;
  /// Was anything given but False, None, 0 or the word that is the default?
  [[nodiscard]] bool says(Arg arg) const;
  /// Refuses those of `some` that say anything, for they would be read by nobody: "`why`: leave it
  /// out".
  void refuse_unread(std::span<const Arg> some, const char* why) const;

 private:
  std::array<PyObject*, arg_count> at_{};
};

/// The refusal of the value of an argument: "NAME is ...".
Refusal bad(Arg arg, const std::string& what);

/// A cudaStream_t from what `stream=` was given: an integer, or a stream of some library. Null: the
/// default stream.
void* stream_of(PyObject* given);

/// Refuses a stream that is given for tensors in host memory.
void check_stream(int device, bool is_given);

/// The tensors of a call, which lie in one place.
class CallTensors {
 public:
  Reader reader;
  int device = run_nowhere;  ///< where they lie, as `run` calls it

  /// A refusal of the call.
  [[nodiscard]] static Refusal told(Refusal refused) { return refused; }

 protected:
  explicit CallTensors(const Arguments& given) : stream_(stream_of(given[Arg::stream])) {
    reader.set_stream(stream_);
  }
  Tensor read(const Arguments& given, Arg arg, const char* name);
  /// The same of float32 scales: those of 16 bits are widened, which is exact, by their library.
  Tensor read_scales_tensor(const Arguments& given, Arg arg, const char* name);
  /// Notes where a tensor lies.
  const Tensor& placed(const Tensor& t);
  /// The result that was given as `arg`, which may be written and is of type `asked`, where that
  /// was given too.
  MatrixView given_result(const Arguments& given, Arg arg, const char* name,
                          std::optional<DType> asked);
  /// A new tensor of the library of `like`, made by `maker` of _interop.py; `keyword` could have
  /// given it.
  MatrixView new_result(PyObject* like, const char* maker, std::span<const std::int64_t> shape,
                        std::optional<DType> type, const char* name, const char* keyword,
                        Ref& made);
  /// PackedWeights, whose bytes are a header and tiles; `in_groups`: they must be a batch of
  /// experts.
  struct PackedMatrix {
    MatrixView view;
    bool is_batch = false;
  };
  PackedMatrix read_packed(const Arguments& given, Arg arg, const char* name, bool in_groups,
                           PackedWeights& packed);
  /// What a product by PackedWeights is multiplied by: the factor of nvf4, or 1 where the argument
  /// `scales` is given, which takes its place. Refuses factors that are not known or not all alike,
  /// and with `has_alpha` false all but 1.
  static float packed_factor(const Arguments& given, Arg weights, const char* name, Arg scales,
                             bool has_alpha);
  /// The stream of the call: what was given, or that on which the tensors' library works now.
  void* stream_of_call(const Arguments& given);

 private:
  void* stream_;
  std::vector<Ref> widened_;
  const char* first_ = nullptr;  // the tensor that said where all lie
};

/// scale_a and scale_b, as far as they are given.
using ScaleTensors = std::array<std::optional<Tensor>, 2>;

/// A product that arguments describe: its tensors are read, and its result is there.
struct Product : CallTensors {
  /// `plans_only`: tensors may be specs, and there need be no result.
  Product(const Arguments& given, bool grouped, bool plans_only);

  GemmOperands operands;
  RunOptions options;
  Ref out;     ///< what was given, or made; none of a spec
  Ref scales;  ///< the same of the scales of a D that is quantised

  /// The refusal, with what was only guessed of the call.
  [[nodiscard]] Refusal told(Refusal refused) const;

 private:
  void read_inputs(const Arguments& given, bool grouped);
  void read_groups(const Arguments& given);
  void read_epilogue(const Arguments& given);
  void read_rows(const Arguments& given);
  void read_operand_types(const Arguments& given);
  void read_scales(const Arguments& given, bool grouped);
  /// Scales that are numbers of Python's; `said` is the scaling, or less than 0.
  void take_scales(const Arguments& given, int said);
  void guess_scaling(const ScaleTensors& scales, bool grouped);
  void read_scale_tiles(const ScaleTensors& scales);
  void read_alpha(const Arguments& given, bool plans_only);
  void read_result(const Arguments& given, bool plans_only);
  void read_scales_of_result(const Arguments& given, bool plans_only);
  void choose(const Arguments& given);
  std::array<std::optional<DType>, 2> said_scales_;  // by a_type and b_type
  bool is_batch_ = false;                            // D has three dimensions
  std::int64_t slots_ = 0;                           // rows of D, where it reads A's by index
  bool guesses_scaling_ = false;
};

/// A matrix of bytes as one of the elements that lie densely in them. Throws Refused.
void take_bytes_as(MatrixView& view, DType type, const char* name);

/// The scales that the type of a tensor says, of elements of that type; nothing of bytes that may
/// be either kind.
std::optional<DType> scale_type_of(const std::optional<Tensor>& t, DType element);

/// Scales of blocks along K, in tiles: as many bytes as whole tiles have, of any shape. `shape`: of
/// one matrix. For a batch of `matrices` operands each may have its own. Throws Refused.
MatrixView scale_tiles(const Tensor& t, const MatrixView& of, const MatrixShape& shape,
                       std::int64_t matrices);

/// (name of a device, for sentences) "cuda:0", "host memory (the model)".
std::string place_name(int device);

/// The result as the caller has it: of the library of `like`, where that could not make it before.
PyObject* adopted(PyObject* like, bool was_given, Ref& made);

/// Runs what lies in `device` while other threads of Python go on.
template <class Body>
auto run_apart(int device, const Body& body) {
  if (device == run_on_model) {
    const WithoutGilOnModel others;
    return body();
  }
  const WithoutGil others;
  return body();
}

/// The numbers of a gate, where any is given; the others are those of its activation.
std::optional<GateNumbers> gate_numbers(const Arguments& given, Activation activation);

/// The words of modes, in the order of their numbers.
template <class Mode, std::size_t N, class Word>
std::array<const char*, N> by_number(const Mode (&all)[N], const Word& word) {
  std::array<const char*, N> words{};
  for (const Mode mode : all) words[static_cast<std::size_t>(mode)] = word(mode);
  return words;
}

inline constexpr std::array<const char*, 2> gate_up_words = {"halves", "interleaved"};
inline constexpr std::array sums_words = {"exact", "chained", "folded", "table"};

/// Is it a warpwright.PackedWeights?
bool is_packed_weights(PyObject* weights);

}  // namespace warpwright::python
