#pragma once

/// .safetensors files: an 8-byte header length, a JSON header, and the tensors' bytes. A checkpoint
/// of several files (shards) is read as one by its index, or by any of its files.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/files/host_tensor.h"

namespace warpwright::cli {

/// Reads one tensor of type F32, F16, BF16, F8_E4M3, F8_E5M2 or I8. The file's other tensors may
/// have any type, but the header is checked as a whole: the tensors must tile the file's bytes
/// without overlap or gap. Throws InputError; for a missing tensor it names those there, nearest
/// first.
HostTensor read_safetensors(const std::string& path, const std::string& name);

/// Reads the integers of one tensor of type I32 or I64. Throws InputError.
HostIntegers read_safetensors_integers(const std::string& path, const std::string& name);

/// A tensor of a .safetensors file without its bytes.
struct TensorFacts {
  std::string name;
  std::string type;            ///< as the format has it: "I32"
  std::optional<DType> dtype;  ///< nothing for types that are not read
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  ///< in the file
  std::uint64_t bytes = 0;
  const InputFile* file = nullptr;
};

/// The end of an index's name: "model.safetensors.index.json".
inline constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

/// A .safetensors file, or a checkpoint of several, that is looked at as a whole, each file checked
/// as `read_safetensors` does. The path of an index stands for the files that it lists. So does
/// that of a file which an index beside it lists, or whose name says that it is one of several
/// ("model-00001-of-00002.safetensors"): a layer's tensors and experts may lie in any of them.
class SafetensorsFile {
 public:
  /// Throws InputError: where files are missing, too, but for those that a file by itself would not
  /// need (`missing`).
  explicit SafetensorsFile(const std::string& path);

  /// As it was given.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// In the order of files and of their bytes.
  [[nodiscard]] const std::vector<TensorFacts>& tensors() const { return tensors_; }
  /// ", and FILE is not there" of the first file that is missing; or empty.
  [[nodiscard]] std::string missing_words() const {
    return missing_.empty() ? "" : ", and " + missing_ + " is not there";
  }
  /// Throws InputError where a file of the checkpoint is not there: who looks for all tensors of a
  /// kind, experts say, would miss some.
  void require_all_files() const;
  /// Null where there is no tensor of this name.
  [[nodiscard]] const TensorFacts* find(std::string_view name) const;
  /// What a writer of ours noted of a tensor (write_safetensors), or "".
  [[nodiscard]] std::string note(const std::string& name) const;
  /// A tensor of a type that operands have, of I32, I8 or U8, or of what block-scaled operands are
  /// made of (F4, F6, F8_E8M0; codes packed). Throws InputError.
  [[nodiscard]] HostTensor read(const std::string& name) const;
  /// The integers of one tensor of type I32 or I64. Throws InputError.
  [[nodiscard]] HostIntegers read_integers(const std::string& name) const;
  /// The tensor of this name. Throws InputError, which names those there, nearest first.
  [[nodiscard]] const TensorFacts& require(const std::string& name) const;

 private:
  void add(const std::string& path, const std::map<std::string, std::string>* listed);

  std::string path_;
  std::deque<InputFile> files_;
  std::string missing_;  // the first file of the checkpoint that is not there
  std::vector<TensorFacts> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::map<std::string, std::string> notes_;
};

/// Writes one tensor, atomically. A file that exists keeps its other tensors and its metadata; one
/// that exists and is malformed is refused and left as it is. Processes of this machine that write
/// to the same file take turns, so that it has all their tensors. A `note` goes into the metadata
/// under "warpwright.NAME". Throws InputError.
void write_safetensors(const std::string& path, const std::string& name, const HostTensor& tensor,
                       const std::string& note = "");
/// The same of several tensors at once; the note is of the first. Null: the file has none of that
/// name afterwards.
struct NamedTensor {
  std::string name;
  const HostTensor* tensor;
};
void write_safetensors(const std::string& path, std::span<const NamedTensor> written,
                       const std::string& note = {});

/// Finds out before the work whether a tensor of this name can go into the file, if that is there.
/// Throws InputError.
void check_safetensors_output(const std::string& path, const std::string& name);

/// The names of the file's tensors, in the order of their bytes. Throws InputError.
std::vector<std::string> safetensors_names(const std::string& path);

}  // namespace warpwright::cli
