// Tensors of any library that speaks DLPack, as views.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "python/src/dlpack.h"
#include "python/src/python.h"
#include "warpwright/run.h"

namespace warpwright::python {

inline constexpr int max_dimensions = 4;

/// What a Python object says of its memory.
struct Tensor {
  const char* name = "";   ///< "A", for sentences
  bool is_plural = false;  ///< "offsets"
  void* data = nullptr;
  std::optional<DType> type;         ///< none: integers
  std::optional<OffsetType> offset;  ///< of integers of 32 and 64 bits
  int dimensions = 0;
  std::array<std::int64_t, max_dimensions> shape{};
  std::array<std::int64_t, max_dimensions> stride{};  ///< elements
  int device = run_on_model;  ///< for `run`; run_nowhere of a warpwright.Spec
  bool read_only = false;

  [[nodiscard]] std::int64_t elements() const;
  /// Do they lie one behind the other, the last dimension's together?
  [[nodiscard]] bool is_contiguous() const;
};

/// The memory of a tensor whose elements may be of any type, and lie side by side.
struct Memory {
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
  int element_bits = 8;             ///< in memory
  std::optional<DType> type;        ///< none: of no type that products know
  std::vector<std::int64_t> shape;  ///< the innermost extent last
  bool is_in_order = true;          ///< do they lie in the order of the shape?
  bool read_only = false;
};

/// Reads tensors, and keeps what they lent until it ends.
class Reader {
 public:
  Reader() = default;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader();

  /// The stream on which the tensors will be used, for those that ask. Before the first `read`.
  void set_stream(void* stream) { stream_ = stream; }
  /// Throws Refused where the object is no tensor, or PythonError.
  Tensor read(PyObject* object, const char* name);
  /// The same of a tensor that is only memory, of the host. Refuses one with gaps too.
  Memory read_memory(PyObject* object, const char* name);
  /// The stream on which the library of the first tensor that was read works now, on `device`; the
  /// default stream where it does not say.
  void* current_stream(int device);

 private:
  // A tensor as its library lends it.
  struct Lent {
    dlpack::Tensor tensor{};
    const char* type = nullptr;  // its name, where DLPack says only how wide it is
    bool read_only = false;
    PyObject* spec = nullptr;     // the parts of a Spec, which has no tensor
    PyObject* capsule = nullptr;  // that was given itself
  };
  Lent lend(PyObject* object, const char* name);
  Lent lend_exported(PyObject* object, const char* name);
  static Lent lend_capsule(PyObject* capsule, const char* name);
  // A capsule that was given, and whose tensor is legal, is used up.
  void consume(PyObject* capsule);

  void* stream_ = nullptr;
  const dlpack::Exchange* first_ = nullptr;
  std::vector<Ref> lent_;
  std::vector<dlpack::Managed*> consumed_;
  std::vector<dlpack::ManagedVersioned*> consumed_versioned_;
};

/// A row that stands by itself may have any stride: it gets one that is legal.
void settle_lone_row(MatrixView& view);

/// A tensor whose last dimensions are a matrix, and one more, in front, a batch of them.
MatrixView matrix_of(const Tensor& t);
/// One whose last dimension is a column vector.
MatrixView vector_of(const Tensor& t);
/// The same of one that may be written as a matrix of one column, or of one row: `rows` elements.
MatrixView column_of(const Tensor& t, std::int64_t rows);
/// One of a single element.
MatrixView scalar_of(const Tensor& t);

/// "1 dimension", "2 dimensions".
std::string count_of(std::int64_t count, const char* what);

/// The DLPack type of ours; refuses those that DLPack's users do not have.
dlpack::Type type_of(DType type);

}  // namespace warpwright::python
