#include "cli/files/safetensors.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "cli/files/output_file.h"
#include "cli/files/printable.h"
#include "warpwright/numeric/edit_distance.h"

namespace warpwright::cli {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr std::string_view kMetadata = "__metadata__";
constexpr std::string_view kNotes = "warpwright.";

struct NamedType {
  std::string_view name;
  int bits;
  std::optional<DType> type;  // nothing: kept when the file is rewritten, but not read
};

constexpr NamedType kTypes[] = {
    {"F32", 32, DType::f32},      {"F16", 16, DType::f16},     {"BF16", 16, DType::bf16},
    {"F8_E4M3", 8, DType::e4m3},  {"F8_E5M2", 8, DType::e5m2}, {"BOOL", 8, std::nullopt},
    {"U8", 8, DType::u8},         {"I8", 8, DType::s8},        {"I16", 16, std::nullopt},
    {"U16", 16, std::nullopt},    {"I32", 32, DType::s32},     {"U32", 32, std::nullopt},
    {"I64", 64, std::nullopt},    {"U64", 64, std::nullopt},   {"F64", 64, std::nullopt},
    {"F8_E8M0", 8, DType::ue8m0}, {"F4", 4, DType::e2m1},      {"F6_E2M3", 6, DType::e2m3},
    {"F6_E3M2", 6, DType::e3m2},  {"C64", 64, std::nullopt},
};

// Is it a type only of codes and scales of blocks?
bool is_micro(const NamedType& t) {
  return t.type && numeric::is_float(*t.type) &&
         (numeric::bits(*t.type) < 8 || *t.type == DType::ue8m0);
}

// May such a tensor be an operand of a product by itself?
bool is_operand(const NamedType& t) {
  return t.type && !is_micro(t) && (numeric::is_float(*t.type) || *t.type == DType::s8);
}

// "F32, F16 and I8": those that are read.
std::string read_types() {
  return joined(kept(kTypes, is_operand), ", ", " and ", &NamedType::name);
}

const NamedType* find_type(std::string_view name) {
  for (const NamedType& t : kTypes) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

const NamedType* find_type(DType type) {
  for (const NamedType& t : kTypes) {
    if (t.type == type) return &t;
  }
  return nullptr;
}

struct Entry {
  std::string name;
  const NamedType* type = nullptr;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // in the bytes behind the header
};

struct Index {
  std::vector<Entry> entries;  // in the order of their bytes
  Json metadata;               // null when there is none
  std::uint64_t data_start = 0;
};

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw FileError(path + " is no legal .safetensors file: " + what + ".");
}

// The bytes of a shape whose elements have `bits` bits; nothing when they are no whole number of
// bytes or more than `limit`.
std::optional<std::uint64_t> entry_bytes(const Entry& entry, std::uint64_t limit) {
  if (std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end()) return 0;
  // 8 times the limit is at most 8 times a file's size, which cannot overflow.
  const std::uint64_t limit_bits = limit * 8;
  auto bits = static_cast<std::uint64_t>(entry.type->bits);
  for (const std::int64_t extent : entry.shape) {
    if (bits > limit_bits / static_cast<std::uint64_t>(extent)) return std::nullopt;
    bits *= static_cast<std::uint64_t>(extent);
  }
  if (bits % 8 != 0 || bits > limit_bits) return std::nullopt;
  return bits / 8;
}

// An integer from 0 to 2^63 - 1, or nothing.
std::optional<std::int64_t> whole_number(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    return std::nullopt;
  }
  const auto number = value.get<std::int64_t>();
  if (number < 0) return std::nullopt;
  return number;
}

// A tensor's entry has these three fields and no others.
void check_fields(const std::string& path, const std::string& tensor, const Json& value) {
  constexpr std::array kFields = {"dtype", "shape", "data_offsets"};
  if (!value.is_object()) {
    fail(path, tensor + " is no JSON object with the fields dtype, shape and data_offsets");
  }
  for (const char* field : kFields) {
    if (!value.contains(field)) fail(path, tensor + " lacks the field " + field);
  }
  for (const auto& [field, content] : value.items()) {
    if (std::find(kFields.begin(), kFields.end(), field) != kFields.end()) continue;
    fail(path, tensor + " has the field " + in_quotes(field) +
                   " beside dtype, shape and data_offsets, which are all that the format has");
  }
}

Entry parse_entry(const std::string& path, const std::string& name, const Json& value,
                  std::uint64_t data_size) {
  const std::string tensor = "tensor " + in_quotes(name);
  check_fields(path, tensor, value);
  Entry entry;
  entry.name = name;
  const Json& dtype = value["dtype"];
  if (!dtype.is_string()) fail(path, tensor + " has a dtype that is no string");
  entry.type = find_type(dtype.get_ref<const std::string&>());
  if (entry.type == nullptr) {
    fail(path, tensor + " has the unknown dtype " + in_quotes(dtype.get_ref<const std::string&>()));
  }
  const Json& shape = value["shape"];
  if (!shape.is_array() || shape.size() > kMaxRank) {
    fail(path, tensor + " has a shape that is no list of at most " + std::to_string(kMaxRank) +
                   " dimensions");
  }
  for (const Json& extent : shape) {
    const std::optional<std::int64_t> number = whole_number(extent);
    if (!number) fail(path, tensor + " has a dimension that is no integer from 0 to 2^63 - 1");
    entry.shape.push_back(*number);
  }
  if (is_beyond_counting(entry.shape)) {
    fail(path, tensor + " has shape " + shape_text(entry.shape) +
                   ", whose dimensions give more than 2^48 elements");
  }
  const Json& offsets = value["data_offsets"];
  std::optional<std::int64_t> begin;
  std::optional<std::int64_t> end;
  if (offsets.is_array() && offsets.size() == 2) {
    begin = whole_number(offsets[0]);
    end = whole_number(offsets[1]);
  }
  if (!begin || !end || *begin > *end) {
    fail(path, tensor + " has data_offsets that are no pair of integers in order");
  }
  entry.begin = static_cast<std::uint64_t>(*begin);
  entry.end = static_cast<std::uint64_t>(*end);
  if (entry.end > data_size) {
    fail(path, tensor + " ends at byte " + std::to_string(entry.end) + " of the data, which has " +
                   std::to_string(data_size));
  }
  const std::uint64_t claimed = entry.end - entry.begin;
  if (entry_bytes(entry, claimed) != claimed) {
    fail(path, tensor + " has " + std::to_string(claimed) + " bytes, which is not what shape " +
                   shape_text(entry.shape) + " of " + std::string(entry.type->name) + " takes");
  }
  return entry;
}

Json parse_header(const std::string& path, const std::vector<std::byte>& text) {
  // A repeated key would silently drop a tensor, or a field of one: the outermost keys name
  // tensors, those below them fields.
  std::set<std::string> names;
  std::set<std::string> fields;
  std::string name;
  std::string repeated;
  const Json::parser_callback_t watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event != Json::parse_event_t::key) return true;
    const auto key = parsed.get<std::string>();
    if (depth == 1) {
      if (!names.insert(key).second) repeated = "tensor " + in_quotes(key) + " is there twice";
      name = key;
      fields.clear();
    } else if (depth == 2 && name != kMetadata && !fields.insert(key).second) {
      repeated = "tensor " + in_quotes(name) + " has the field " + in_quotes(key) + " twice";
    }
    return true;
  };
  const auto* first = reinterpret_cast<const char*>(text.data());
  Json header;
  try {
    header = Json::parse(first, first + text.size(), watch);
  } catch (const Json::exception&) {
    fail(path, "its header is no JSON text");
  }
  if (!repeated.empty()) fail(path, repeated);
  if (!header.is_object()) fail(path, "its header is no JSON object");
  return header;
}

Index read_index(const InputFile& file) {
  const std::string& path = file.path();
  if (file.size() < 8) {
    fail(path, "it has " + std::to_string(file.size()) + " bytes, and 8 are the least");
  }
  const std::vector<std::byte> start = file.read(0, 8);
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<std::uint64_t>(start[i]);
  if (length > file.size() - 8 || length > kMaxHeader) {
    fail(path, "its header claims " + std::to_string(length) + " bytes, and at most " +
                   std::to_string(std::min(file.size() - 8, kMaxHeader)) + " are possible");
  }
  const Json header = parse_header(path, file.read(8, length));

  Index index;
  index.data_start = 8 + length;
  const std::uint64_t data_size = file.size() - index.data_start;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadata) {
      bool is_legal = value.is_object();
      for (const Json& text : value) is_legal = is_legal && text.is_string();
      if (!is_legal) fail(path, "its __metadata__ is no object of strings");
      index.metadata = value;
    } else {
      index.entries.push_back(parse_entry(path, name, value, data_size));
    }
  }
  std::sort(index.entries.begin(), index.entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (const Entry& entry : index.entries) {
    if (entry.begin != at) {
      fail(path, "tensor " + in_quotes(entry.name) + " starts at byte " +
                     std::to_string(entry.begin) + " of the data where the one before it ends at " +
                     std::to_string(at));
    }
    at = entry.end;
  }
  if (at != data_size) {
    fail(path, "its tensors end at byte " + std::to_string(at) + " of the data, which has " +
                   std::to_string(data_size));
  }
  return index;
}

[[noreturn]] void fail_missing(const std::string& path, const std::string& name,
                               const std::vector<TensorFacts>& tensors,
                               const std::string& of_missing) {
  if (tensors.empty())
    throw FileError(path + " holds no tensor " + in_quotes(name) + ": " + as_rule("it is empty") +
                    of_missing + ".");
  std::vector<std::pair<std::size_t, std::string_view>> nearest;
  nearest.reserve(tensors.size());
  for (const TensorFacts& t : tensors)
    nearest.emplace_back(numeric::edit_distance(name, t.name), t.name);
  std::sort(nearest.begin(), nearest.end());
  std::string text = path + " holds no tensor " + in_quotes(name) + "; it holds ";
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < std::min(nearest.size(), kShown); ++i) {
    if (i > 0) text += ", ";
    text += in_quotes(nearest[i].second);
  }
  if (nearest.size() > kShown) text += " and " + std::to_string(nearest.size() - kShown) + " more";
  throw FileError(text + of_missing + ".");
}

[[noreturn]] void fail_type(const std::string& path, const TensorFacts& found,
                            const std::string& read, const std::string& note = "") {
  constexpr std::string_view packed = "packed ";
  std::string hint;
  if (note.starts_with(packed)) {
    const std::size_t end = note.find(' ', packed.size());
    hint = "; it is packed, so give --weights " + note.substr(packed.size(), end - packed.size());
  } else if (note.find("scales in tiles") != std::string::npos) {
    const std::string format = note.substr(0, note.find(','));
    hint = "; it is packed for B200, so give --dtype " + format + " and --as b200" +
           (format == "mxf4" || format == "nvf4"
                ? ", or pack it again with --for bf16 for H100 and H200"
                : "");
  } else if (is_micro(*find_type(found.type))) {
    hint = "; codes and scales of blocks go together, by --scale-a and --scale-b";
  }
  throw FileError("Tensor " + in_quotes(found.name) + " of " + path + " has type " + found.type +
                  "; " +
                  as_rule("the types that are read ", (read == read_types() ? "" : "as integers "),
                          "are ", read, hint) +
                  ".");
}

// Where an index says that tensors lie: of their names the files'.
using Listed = std::map<std::string, std::string>;

// The `weight_map` of an index. Throws InputError.
Listed read_weight_map(const std::string& path) {
  const auto fail_index = [&](const std::string& what) {
    throw FileError(path + " is no index of a checkpoint: " + as_rule(what) + ".");
  };
  const InputFile file(path);
  if (file.size() > kMaxHeader) fail_index("it has more than 100,000,000 bytes");
  const std::vector<std::byte> text = file.read(0, file.size());
  const auto* const first = reinterpret_cast<const char*>(text.data());
  const Json json = Json::parse(first, first + text.size(), nullptr, false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    fail_index("its JSON text has an object \"weight_map\"");
  }
  Listed listed;
  for (const auto& [name, value] : json["weight_map"].items()) {
    const std::string shard = value.is_string() ? value.get<std::string>() : "";
    // Beside the index, so that it reads no other files.
    if (!shard.ends_with(".safetensors") ||
        shard.find_first_of(std::string("/\0", 2)) != shard.npos) {
      fail_index("\"weight_map\" gives " + in_quotes(name) + " a .safetensors file beside it");
    }
    listed[name] = shard;
  }
  if (listed.empty()) fail_index("\"weight_map\" names a tensor");
  return listed;
}

// "model" of "model-00001-of-00003.safetensors", and the number of files; 0 of another name.
std::pair<std::string, int> parts_of_name(const std::string& name) {
  constexpr std::size_t digits = 5;
  const std::string pattern = "-#####-of-#####.safetensors";
  if (name.size() < pattern.size()) return {"", 0};
  const std::string end = name.substr(name.size() - pattern.size());
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool fits = pattern[i] == '#' ? std::isdigit(static_cast<unsigned char>(end[i])) != 0
                                        : pattern[i] == end[i];
    if (!fits) return {"", 0};
  }
  return {name.substr(0, name.size() - pattern.size()), std::stoi(end.substr(10, digits))};
}

std::string part_name(const std::string& stem, int part, int parts) {
  const auto number = [](int x) {
    const std::string text = std::to_string(x);
    return std::string(5 - text.size(), '0') + text;
  };
  return stem + "-" + number(part) + "-of-" + number(parts) + ".safetensors";
}

// The index beside a file that lists it; nothing where there is none, or none that can be read.
std::optional<std::pair<std::string, Listed>> index_of(const std::filesystem::path& path,
                                                       const std::string& stem) {
  const std::string name = path.filename().string();
  for (const std::string& of : {stem, std::string("model")}) {
    const std::string index = (path.parent_path() / (of + std::string(kIndexSuffix))).string();
    std::error_code error;
    if (of.empty() || !std::filesystem::is_regular_file(index, error)) continue;
    try {
      Listed listed = read_weight_map(index);
      const bool has = std::any_of(listed.begin(), listed.end(),
                                   [&](const auto& each) { return each.second == name; });
      if (has) return std::pair(index, std::move(listed));
    } catch (const InputError&) {
      continue;  // the file itself can be read
    }
  }
  return std::nullopt;
}

bool exists(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0;
}

void check_new_name(const std::string& path, const std::string& name) {
  if (name == kMetadata) {
    throw FileError("No tensor of " + path +
                    " can be called __metadata__, which the format keeps "
                    "for itself.");
  }
  if (!is_utf8(name)) {
    throw FileError(path + " cannot hold a tensor " + in_quotes(name) + ": " +
                    as_rule("its name is not UTF-8 text") + ".");
  }
}

void refuse_index_output(const std::string& path) {
  if (!path.ends_with(kIndexSuffix)) return;
  const std::string file =
      path.substr(0, path.size() - kIndexSuffix.size()) + ".packed.safetensors";
  throw FileError(path + " is the index of a checkpoint, which is read and not written: " +
                  as_rule("the nearest file that can be is ", as_nearest(file)) + ".");
}

// A tensor of the file to be written: where its bytes come from.
struct Outgoing {
  Entry entry;
  std::span<const std::byte> bytes;
};

std::string header_text(const std::string& path, const std::vector<Outgoing>& tensors,
                        const Json& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.is_null()) header[std::string(kMetadata)] = metadata;
  std::uint64_t at = 0;
  for (const auto& [entry, bytes] : tensors) {
    header[entry.name] = {{"dtype", entry.type->name},
                          {"shape", entry.shape},
                          {"data_offsets", {at, at + bytes.size()}}};
    at += bytes.size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the data starts at a multiple of 8
  if (text.size() > kMaxHeader) {
    throw FileError(path + " cannot be written: " +
                    as_rule("its header would take ", std::to_string(text.size()),
                            " bytes, and the format allows ", std::to_string(kMaxHeader)) +
                    ".");
  }
  return text;
}

}  // namespace

HostTensor read_safetensors(const std::string& path, const std::string& name) {
  const SafetensorsFile file(path);
  const TensorFacts& found = file.require(name);
  if (!is_operand(*find_type(found.type))) fail_type(path, found, read_types(), file.note(name));
  return {*found.dtype, found.shape, found.file->read(found.begin, found.bytes)};
}

HostIntegers read_safetensors_integers(const std::string& path, const std::string& name) {
  return SafetensorsFile(path).read_integers(name);
}

// The tensors of one file: of a listed checkpoint those that are listed there.
void SafetensorsFile::add(const std::string& path, const Listed* listed) {
  const InputFile& file = files_.emplace_back(path);
  const Index index = read_index(file);
  const std::string shard = std::filesystem::path(path).filename().string();
  for (const Entry& entry : index.entries) {
    if (listed != nullptr) {
      const auto at = listed->find(entry.name);
      if (at == listed->end() || at->second != shard) continue;
    }
    const auto [at, is_new] = by_name_.emplace(entry.name, tensors_.size());
    if (!is_new) {
      throw FileError("The tensor " + in_quotes(entry.name) + " is in " +
                      tensors_[at->second].file->path() + " and in " + path + ": " +
                      as_rule("the files of a checkpoint share no name") + ".");
    }
    tensors_.push_back({entry.name, std::string(entry.type->name), entry.type->type, entry.shape,
                        index.data_start + entry.begin, entry.end - entry.begin, &file});
  }
  for (const auto& [key, text] : index.metadata.items()) {
    if (key.starts_with(kNotes)) notes_[key.substr(kNotes.size())] = text.get<std::string>();
  }
}

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  const std::filesystem::path at(path);
  const bool is_index = path.ends_with(kIndexSuffix);
  const auto [stem, parts] = parts_of_name(at.filename().string());
  std::optional<std::pair<std::string, Listed>> index;
  if (is_index) {
    index = std::pair(path, read_weight_map(path));
  } else {
    index = index_of(at, stem);
  }
  std::set<std::string> names;
  if (index) {
    for (const auto& [name, shard] : index->second) names.insert(shard);
  } else if (parts > 1) {
    for (int part = 1; part <= parts; ++part) names.insert(part_name(stem, part, parts));
  }
  if (!is_index) names.insert(at.filename().string());
  const Listed* const listed = index ? &index->second : nullptr;
  for (const std::string& name : names) {
    const std::string file = (at.parent_path() / name).string();
    std::error_code error;
    if (name == at.filename() || std::filesystem::exists(file, error)) {
      add(name == at.filename() ? path : file, listed);
    } else if (missing_.empty()) {
      missing_ = file;
    }
  }
  if (listed == nullptr || !missing_.empty()) return;
  for (const auto& [name, shard] : *listed) {
    if (by_name_.contains(name)) continue;
    throw FileError(index->first + " says that the tensor " + in_quotes(name) + " is in " + shard +
                    ", and it is not there.");
  }
}

void SafetensorsFile::require_all_files() const {
  if (missing_.empty()) return;
  throw FileError(path_ + " is a part of a checkpoint whose file " + missing_ +
                  " is not there: " + as_rule("some of its tensors would be missed") + ".");
}

const TensorFacts& SafetensorsFile::require(const std::string& name) const {
  const TensorFacts* const found = find(name);
  if (found == nullptr) fail_missing(path_, name, tensors_, missing_words());
  return *found;
}

std::string SafetensorsFile::note(const std::string& name) const {
  const auto at = notes_.find(name);
  return at == notes_.end() ? "" : at->second;
}

const TensorFacts* SafetensorsFile::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &tensors_[at->second];
}

HostTensor SafetensorsFile::read(const std::string& name) const {
  const TensorFacts& t = require(name);
  if (t.dtype) return {*t.dtype, t.shape, t.file->read(t.begin, t.bytes)};
  fail_type(path(), t, read_types() + ", and I32 and U8");
}

HostIntegers SafetensorsFile::read_integers(const std::string& name) const {
  const TensorFacts& t = require(name);
  if (t.type != "I32" && t.type != "I64") fail_type(path(), t, "I32 and I64");
  const int bits = t.type == "I32" ? 32 : 64;
  return {bits, t.shape, integers_of(t.file->read(t.begin, t.bytes), bits)};
}

void write_safetensors(const std::string& path, const std::string& name, const HostTensor& tensor,
                       const std::string& note) {
  const NamedTensor one{name, &tensor};
  write_safetensors(path, std::span(&one, 1), note);
}

void write_safetensors(const std::string& path, std::span<const NamedTensor> written,
                       const std::string& note) {
  for (const auto& [name, tensor] : written) {
    if (tensor == nullptr) continue;
    const NamedType* type = find_type(tensor->dtype);
    const bool is_whole = tensor->dtype == DType::u8 || tensor->dtype == DType::s32;
    if (type == nullptr || !(is_operand(*type) || is_micro(*type) || is_whole)) {
      throw FileError(
          "Tensor " + in_quotes(name) + " of type " + std::string(numeric::word(tensor->dtype)) +
          " cannot be written to " + path + ": " +
          as_rule("the types that are written are ", read_types(), ", and I32 and U8") + ".");
    }
    check_new_name(path, name);
  }
  refuse_index_output(path);
  const OutputLock lock(path);
  Index index;
  std::vector<std::byte> old;
  if (exists(path)) {
    const InputFile file(path);
    index = read_index(file);
    old = file.read(index.data_start, file.size() - index.data_start);
  }
  std::vector<Outgoing> tensors;
  for (Entry& entry : index.entries) {
    const auto is_new = [&](const NamedTensor& t) { return t.name == entry.name; };
    if (std::any_of(written.begin(), written.end(), is_new)) continue;
    const auto bytes = std::span(old).subspan(entry.begin, entry.end - entry.begin);
    tensors.push_back({std::move(entry), bytes});
  }
  for (const auto& [name, tensor] : written) {
    if (tensor == nullptr) continue;
    tensors.push_back(
        {{name, find_type(tensor->dtype), tensor->shape, 0, 0}, std::span(tensor->bytes)});
  }
  // The widest elements first, as the reference writer does: each tensor is aligned to its type.
  std::stable_sort(tensors.begin(), tensors.end(), [](const Outgoing& a, const Outgoing& b) {
    return a.entry.type->bits > b.entry.type->bits;
  });

  if (!note.empty()) index.metadata[std::string(kNotes) + written.front().name] = note;
  std::string start = header_text(path, tensors, index.metadata);
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) {
    length[i] = static_cast<char>((static_cast<std::uint64_t>(start.size()) >> (8 * i)) & 0xff);
  }
  start.insert(0, length);
  std::vector<std::span<const std::byte>> chunks = {std::as_bytes(std::span(start))};
  for (const Outgoing& outgoing : tensors) chunks.push_back(outgoing.bytes);
  replace_file(path, chunks);
}

void check_safetensors_output(const std::string& path, const std::string& name) {
  refuse_index_output(path);
  check_new_name(path, name);
  const OutputLock lock(path);  // a folder that cannot be locked is told of now, too
  if (exists(path)) static_cast<void>(read_index(InputFile(path)));
}

std::vector<std::string> safetensors_names(const std::string& path) {
  const InputFile file(path);
  Index index = read_index(file);
  std::vector<std::string> names;
  for (Entry& entry : index.entries) names.push_back(std::move(entry.name));
  return names;
}

}  // namespace warpwright::cli
