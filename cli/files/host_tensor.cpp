#include "cli/files/host_tensor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "warpwright/numeric/bulk.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

bool is_convertible(DType t) {
  return is_operand_type(t) || is_result_type(t);
}

}  // namespace

std::int64_t HostTensor::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

MatrixView packed_view(HostTensor& t) {
  return packed_view(std::as_const(t));
}

MatrixView packed_view(const HostTensor& t) {
  const std::size_t rank = t.shape.size();
  MatrixView view =
      matrix(const_cast<std::byte*>(t.bytes.data()), t.dtype, t.shape[rank - 2], t.shape[rank - 1]);
  if (rank == 3) {
    view.batch = t.shape[0];
    view.batch_stride = view.rows * view.columns;
  }
  return view;
}

std::vector<std::int64_t> integers_of(std::span<const std::byte> bytes, int bits) {
  const std::size_t size = static_cast<std::size_t>(bits) / 8;
  std::vector<std::int64_t> values;
  values.reserve(bytes.size() / size);
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    std::int64_t wide = 0;
    std::int32_t narrow = 0;
    std::memcpy(bits == 64 ? static_cast<void*>(&wide) : &narrow, bytes.data() + at, size);
    values.push_back(bits == 64 ? wide : narrow);
  }
  return values;
}

HostTensor convert(const HostTensor& tensor, DType to) {
  if (tensor.dtype == to) return tensor;
  if (!is_convertible(tensor.dtype) || !is_convertible(to)) {
    throw InputError(
        "A tensor of " + std::string(numeric::word(tensor.dtype)) + " cannot be converted to " +
        std::string(numeric::word(to)) + ": " +
        as_rule("conversions exist between ", listed(all_types, is_convertible, ", ", " and ")) +
        ".");
  }
  const auto from_size = static_cast<std::size_t>(numeric::bits(tensor.dtype) / 8);
  const auto to_size = static_cast<std::size_t>(numeric::bits(to) / 8);
  const std::size_t count = tensor.bytes.size() / from_size;
  HostTensor result{to, tensor.shape, std::vector<std::byte>(count * to_size)};
  // Every source fits a float exactly, so there is one rounding, the last.
  std::array<float, 1024> values;
  std::array<std::uint16_t, 1024> words;
  std::array<std::uint8_t, 1024> codes;
  for (std::size_t first = 0; first < count; first += values.size()) {
    const std::size_t n = std::min(values.size(), count - first);
    numeric::widen_from(tensor.bytes.data() + first * from_size, values.data(), n, tensor.dtype);
    const void* source = values.data();
    if (to_size == 2) {
      numeric::narrow(values.data(), words.data(), n, to);
      source = words.data();
    } else if (to_size == 1) {
      numeric::narrow(values.data(), codes.data(), n, to, numeric::Overflow::saturate);
      source = codes.data();
    }
    std::memcpy(result.bytes.data() + first * to_size, source, n * to_size);
  }
  return result;
}

std::vector<std::byte> row_major(const std::vector<std::byte>& source,
                                 const std::vector<std::int64_t>& shape,
                                 const std::vector<std::size_t>& strides, std::size_t size) {
  std::vector<std::byte> result(source.size());
  std::vector<std::int64_t> index(shape.size(), 0);
  std::size_t from = 0;
  for (std::size_t to = 0; to < source.size(); to += size) {
    std::memcpy(result.data() + to, source.data() + from * size, size);
    for (std::size_t d = shape.size(); d-- > 0;) {
      from += strides[d];
      if (++index[d] < shape[d]) break;
      from -= strides[d] * static_cast<std::size_t>(shape[d]);
      index[d] = 0;
    }
  }
  return result;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  if (shape.empty()) return "()";
  std::string text;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i == 8) return text + "x...";
    if (i > 0) text += 'x';
    text += std::to_string(shape[i]);
  }
  return text;
}

bool is_beyond_counting(std::span<const std::int64_t> shape) {
  constexpr std::int64_t most = std::int64_t{1} << 48;
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (extent == 0) continue;
    if (extent > most / elements) return true;
    elements *= extent;
  }
  return false;
}

std::uint64_t bytes_of_shape(std::span<const std::int64_t> shape, DType dtype,
                             std::uint64_t limit) {
  const std::uint64_t bits =
      bytes_of_shape(shape, static_cast<std::uint64_t>(numeric::bits(dtype)), 8 * limit);
  return (bits + 7) / 8;
}

std::uint64_t bytes_of_shape(std::span<const std::int64_t> shape, std::uint64_t element_bytes,
                             std::uint64_t limit) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::uint64_t bytes = element_bytes;
  for (const std::int64_t extent : shape) {
    if (bytes > limit / static_cast<std::uint64_t>(extent)) return limit + 1;
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return bytes > limit ? limit + 1 : bytes;
}

InputFile::InputFile(const std::string& path) : path_(path) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer before it can be refused.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0)
    throw FileError(path + " cannot be read (" + std::generic_category().message(errno) + ").");
  struct stat facts {};
  if (::fstat(descriptor_, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    ::close(descriptor_);
    throw FileError(path + " cannot be read: " + as_rule("it is not a regular file") + ".");
  }
  size_ = static_cast<std::uint64_t>(facts.st_size);
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

std::vector<std::byte> InputFile::read(std::uint64_t offset, std::uint64_t count) const {
  if (offset > size_ || count > size_ - offset) {
    throw FileError(path_ +
                    " is cut short: " + as_rule("it has ", std::to_string(size_), " bytes") + ".");
  }
  std::vector<std::byte> bytes(count);
  std::uint64_t done = 0;
  while (done < count) {
    const std::size_t step = std::min<std::uint64_t>(count - done, std::uint64_t{1} << 28);
    const ssize_t got =
        ::pread(descriptor_, bytes.data() + done, step, static_cast<off_t>(offset + done));
    if (got < 0) {
      if (errno == EINTR) continue;
      throw FileError(path_ + " cannot be read (" + std::generic_category().message(errno) + ").");
    }
    if (got == 0) throw FileError(path_ + " became shorter while it was read.");
    done += static_cast<std::uint64_t>(got);
  }
  return bytes;
}

}  // namespace warpwright::cli
