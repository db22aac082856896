#include "cli/files/npy.h"

#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/files/output_file.h"

namespace warpwright::cli {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

// Reads the header's text, the literal of a Python dictionary with three keys:
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  Header parse() {
    Header header;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !header.descr) {
        header.descr = descr();
      } else if (key == "fortran_order" && !header.fortran_order) {
        header.fortran_order = boolean();
      } else if (key == "shape" && !header.shape) {
        header.shape = tuple();
      } else {
        fail("has the key '" + printable(key, 40) +
             "' where each of 'descr', 'fortran_order' and 'shape' stands once");
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("has text behind its closing brace");
    if (!header.descr) fail("lacks the key 'descr'");
    if (!header.fortran_order) fail("lacks the key 'fortran_order'");
    if (!header.shape) fail("lacks the key 'shape'");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(path_ + " is no legal .npy file: " + as_rule("its header ", what) + ".");
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
      ++at_;
    }
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("lacks '") + c + "' at character " + std::to_string(at_));
  }
  bool take_word(std::string_view word) {
    skip_space();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  std::string string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const std::size_t end =
        quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : std::string_view::npos;
    if (end == std::string_view::npos) {
      fail("lacks a quoted word at character " + std::to_string(at_));
    }
    std::string word(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return word;
  }
  std::string descr() {
    if (take('[')) {
      throw FileError(path_ + " holds records (a structured dtype); " +
                      as_rule("the element types that are read are float32 ('<f4'), float16 "
                              "('<f2') and int8 ('|i1')") +
                      ".");
    }
    return string();
  }
  bool boolean() {
    if (take_word("True")) return true;
    if (!take_word("False")) fail("says neither True nor False for 'fortran_order'");
    return false;
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> shape;
    expect('(');
    while (!take(')')) {
      skip_space();
      std::int64_t extent = -1;
      const char* const end = text_.data() + text_.size();
      const auto [stop, error] = std::from_chars(text_.data() + at_, end, extent);
      if (error != std::errc() || extent < 0) {
        fail("has a shape whose dimension " + std::to_string(shape.size()) +
             " is no integer from 0 to 2^63 - 1");
      }
      at_ = static_cast<std::size_t>(stop - text_.data());
      if (shape.size() == kMaxRank) {
        fail("has a shape of more than " + std::to_string(kMaxRank) + " dimensions");
      }
      shape.push_back(extent);
      take_word("L");  // Python 2 wrote long integers so
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    if (is_beyond_counting(shape)) {
      fail("has shape " + shape_text(shape) + ", whose dimensions give more than 2^48 elements");
    }
    return shape;
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
};

DType dtype_of(const std::string& path, const std::string& descr) {
  constexpr std::string_view kAccepted = "float32 ('<f4'), float16 ('<f2') and int8 ('|i1')";
  if (descr == "|i1") return DType::s8;
  if (descr == "<f4") return DType::f32;
  if (descr == "<f2") return DType::f16;
  const std::string shown = "'" + printable(descr, 40) + "'";
  if (descr.starts_with('>')) {
    throw FileError(path + " holds big-endian elements (" + shown + "); " +
                    as_rule("those that are read are ", std::string(kAccepted), ", little-endian") +
                    ".");
  }
  if (descr == "<V2" || descr == "|V2" || descr == "bfloat16") {
    throw FileError(
        path + " holds elements of type " + shown + ", and .npy has no bfloat16: " +
        as_rule("store the tensor as BF16 in a .safetensors file, or as ", std::string(kAccepted)) +
        ".");
  }
  throw FileError(path + " holds elements of type " + shown + "; " +
                  as_rule("the types that are read from .npy are ", std::string(kAccepted)) + ".");
}

// A file's elements, row-major.
struct Array {
  std::string descr;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

// A type of elements, for messages and for the arithmetic of bytes.
struct ElementType {
  std::string name;
  int bits = 0;
};

// `type_of` knows the types that are read, and throws for others.
template <class TypeOf>
Array read_array(const std::string& path, const TypeOf& type_of) {
  const InputFile file(path);
  const auto bad = [&](const std::string& what) {
    return FileError(path + " is no legal .npy file: " + what + ".");
  };
  if (file.size() < 10)
    throw bad("it has " + std::to_string(file.size()) + " bytes, and 10 are the least");
  const std::vector<std::byte> start = file.read(0, file.size() < 12 ? file.size() : 12);
  if (std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0) {
    throw bad("it does not start with \\x93NUMPY");
  }
  const auto byte = [&](std::size_t i) { return static_cast<std::uint64_t>(start[i]); };
  const std::uint64_t major = byte(6);
  if (major < 1 || major > 3 || byte(7) != 0) {
    throw bad("its version is " + std::to_string(major) + "." + std::to_string(byte(7)) +
              ", and 1.0, 2.0 and 3.0 are read");
  }
  if (major > 1 && start.size() < 12) throw bad("it ends within the length of its header");
  const std::uint64_t prefix = major == 1 ? 10 : 12;
  std::uint64_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > file.size() - prefix) {
    throw bad("its header claims " + std::to_string(length) + " bytes, and the file has " +
              std::to_string(file.size() - prefix) + " behind the length");
  }
  constexpr std::uint64_t kMaxHeader = 1 << 20;
  if (length > kMaxHeader) {
    throw bad("its header claims " + std::to_string(length) + " bytes, and at most " +
              std::to_string(kMaxHeader) + " are read");
  }
  const std::vector<std::byte> text = file.read(prefix, length);
  const Header header =
      HeaderParser(path, {reinterpret_cast<const char*>(text.data()), text.size()}).parse();

  const ElementType type = type_of(*header.descr);
  const auto size = static_cast<std::size_t>(type.bits / 8);
  Array array{*header.descr, *header.shape, {}};
  const std::uint64_t present = file.size() - prefix - length;
  const std::uint64_t needed = bytes_of_shape(array.shape, size, present);
  if (needed != present) {
    throw FileError(path + (needed > present ? " is cut short: " : " has bytes to spare: ") +
                    std::to_string(present) + " bytes follow its header, which is not what shape " +
                    shape_text(array.shape) + " of " + type.name + " takes.");
  }
  array.bytes = file.read(prefix + length, present);
  if (*header.fortran_order && array.shape.size() > 1) {
    std::vector<std::size_t> strides(array.shape.size(), 1);
    for (std::size_t d = 1; d < strides.size(); ++d) {
      strides[d] = strides[d - 1] * static_cast<std::size_t>(array.shape[d - 1]);
    }
    array.bytes = row_major(array.bytes, array.shape, strides, size);
  }
  return array;
}

}  // namespace

HostTensor read_npy_bytes(const std::string& path) {
  Array array = read_array(path, [&](const std::string& descr) -> ElementType {
    if (descr == "|u1") return {"uint8", 8};
    throw FileError(path + " holds elements of type '" + printable(descr, 40) + "'; " +
                    as_rule("bytes are read as uint8 ('|u1')") + ".");
  });
  return {DType::u8, std::move(array.shape), std::move(array.bytes)};
}

HostTensor read_npy(const std::string& path) {
  Array array = read_array(path, [&](const std::string& descr) -> ElementType {
    const DType dtype = dtype_of(path, descr);
    return {std::string(numeric::word(dtype)), numeric::bits(dtype)};
  });
  return {dtype_of(path, array.descr), std::move(array.shape), std::move(array.bytes)};
}

HostIntegers read_npy_integers(const std::string& path) {
  Array array = read_array(path, [&](const std::string& descr) -> ElementType {
    if (descr == "<i4") return {"int32", 32};
    if (descr == "<i8") return {"int64", 64};
    throw FileError(
        path + " holds elements of type '" + descr.substr(0, 40) + "'; " +
        as_rule("the types that are read as integers are int32 ('<i4') and int64 ('<i8')") + ".");
  });
  const int bits = array.descr == "<i4" ? 32 : 64;
  return {bits, std::move(array.shape), integers_of(array.bytes, bits)};
}

void write_npy(const std::string& path, const HostTensor& tensor) {
  if (tensor.dtype != DType::f32 && tensor.dtype != DType::f16) {
    throw FileError(
        path + " cannot hold " + std::string(numeric::word(tensor.dtype)) + ": " +
        as_rule(".npy is written as f32 or fp16, and a .safetensors file takes bf16 and fp8 too") +
        ".");
  }
  std::string header = "{'descr': '";
  header += tensor.dtype == DType::f32 ? "<f4" : "<f2";
  header += "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t extent : tensor.shape) header += std::to_string(extent) + ", ";
  if (tensor.shape.size() > 1) header.resize(header.size() - 2);
  if (tensor.shape.size() == 1) header.pop_back();  // a tuple of one keeps its comma
  header += "), }";
  // NumPy pads so that the elements start at a multiple of 64, and ends with a new line.
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string start(kMagic);
  start += '\x01';
  start += '\x00';
  start += static_cast<char>(header.size() & 0xff);
  start += static_cast<char>(header.size() >> 8);
  start += header;
  const std::array<std::span<const std::byte>, 2> chunks = {std::as_bytes(std::span(start)),
                                                            std::span(tensor.bytes)};
  replace_file(path, chunks);
}

}  // namespace warpwright::cli
