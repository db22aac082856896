#pragma once

/// Tensors in host memory, and what reading them from files of any format takes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/files/printable.h"
#include "warpwright/numeric/types.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright::cli {

/// What the user gave cannot be used. `what()` is one sentence that names the file or tensor, the
/// rule that is broken and the nearest legal value. It can be shown: names of files, and what is
/// quoted from them, may hold any bytes (see printable). `code()` is what it is about, a word for
/// programs: of the library's refusals theirs (docs/api.md).
class InputError : public std::runtime_error {
 public:
  explicit InputError(Sentence sentence, const char* code = "bad_argument")
      : std::runtime_error(printable(sentence.reason)),
        sentence_(std::move(sentence)),
        code_(code) {}
  explicit InputError(const Refusal& refusal) : InputError(refusal, name(refusal.code)) {}

  [[nodiscard]] const Sentence& sentence() const { return sentence_; }
  [[nodiscard]] const char* code() const { return code_; }

 private:
  Sentence sentence_;
  const char* code_;  // of static storage
};

/// What there is, or InputError with why there is nothing.
template <class T>
T taken(Result<T> result) {
  if (!result) throw InputError(result.refusal());
  return std::move(*result);
}

/// A file, or what it holds, cannot be used.
class FileError : public InputError {
 public:
  explicit FileError(Sentence sentence)
      : InputError(std::move(sentence), name(RefusalCode::file_error)) {}
};

/// A dense tensor in host memory: row-major elements of `dtype`, without gaps.
struct HostTensor {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  /// The number of elements: 1 for a scalar (an empty shape).
  std::int64_t elements() const;
};

/// A tensor of [batch x] rows x columns, as packed as it is. It is not written through a view of a
/// constant one.
MatrixView packed_view(HostTensor& tensor);
MatrixView packed_view(const HostTensor& tensor);

/// The largest number of dimensions that a tensor file may have.
inline constexpr int kMaxRank = 32;

/// Integers of 32 or 64 bits.
struct HostIntegers {
  int bits = 32;  ///< of each in its file
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> values;
};

/// Integers from their little-endian bytes.
std::vector<std::int64_t> integers_of(std::span<const std::byte> bytes, int bits);

/// The tensor in another element type, each element rounded once to nearest even. What lies beyond
/// the largest f16 or bf16 becomes infinite; beyond the largest fp8 it saturates, as `cvt` does.
/// Between f32, f16, bf16, e4m3 and e5m2. Throws InputError for other types.
HostTensor convert(const HostTensor& tensor, DType to);

/// Elements of `size` bytes in row-major order of `shape`, from memory where one of dimension d
/// lies `strides[d]` elements behind the one before it.
std::vector<std::byte> row_major(const std::vector<std::byte>& source,
                                 const std::vector<std::int64_t>& shape,
                                 const std::vector<std::size_t>& strides, std::size_t size);

/// "3x4" for people; a scalar's shape is "()".
std::string shape_text(std::span<const std::int64_t> shape);

/// Whether the dimensions other than 0 give more than 2^48 elements: of a tensor without elements
/// too, whose bytes say nothing of them. Readers refuse such, so that no product of dimensions
/// overflows. They must not be negative.
bool is_beyond_counting(std::span<const std::int64_t> shape);

/// The bytes of a tensor of this shape, `limit` + 1 when they are more than `limit` (or would not
/// fit 64 bits). The dimensions must not be negative.
std::uint64_t bytes_of_shape(std::span<const std::int64_t> shape, DType dtype, std::uint64_t limit);
/// The same of elements that take `element_bytes` each.
std::uint64_t bytes_of_shape(std::span<const std::int64_t> shape, std::uint64_t element_bytes,
                             std::uint64_t limit);

/// A regular file opened for reading at given offsets, its size known. Throws InputError.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  /// Reads exactly `count` bytes from `offset`, all of which must lie within size().
  std::vector<std::byte> read(std::uint64_t offset, std::uint64_t count) const;

 private:
  std::string path_;
  std::uint64_t size_ = 0;
  int descriptor_ = -1;
};

}  // namespace warpwright::cli
