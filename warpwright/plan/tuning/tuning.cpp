#include "warpwright/plan/tuning/tuning.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <type_traits>

#include "warpwright/facts/format.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHeading = "# warpwright tuning v1";
constexpr std::size_t kFields = 10;
// More than anybody's measurements; a larger file is something else.
constexpr std::uintmax_t kMaxBytes = std::uintmax_t{64} << 20;

// FNV-1a: enough to tell a damaged line.
std::uint64_t checksum(std::string_view text) {
  std::uint64_t sum = 0xcbf29ce484222325U;
  for (const char c : text) {
    sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return sum;
}

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// A field without the characters that part fields and lines.
std::string field(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
}

std::string line_of(const TuningKey& k, const TuningEntry& e) {
  char time[32];
  std::snprintf(time, sizeof(time), "%.4f", e.microseconds);
  const std::string text = field(k.gpu) + "\t" + field(k.driver) + "\t" + field(k.library) + "\t" +
                           field(k.problem) + "\t" + field(e.kernel) + "\t" +
                           std::to_string(e.cluster.m) + "\t" + std::to_string(e.cluster.n) + "\t" +
                           std::to_string(e.ctas) + "\t" + time;
  return text + "\t" + hex(checksum(text)) + "\n";
}

template <class T>
bool parse(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

std::optional<std::pair<TuningKey, TuningEntry>> read_line(std::string_view line) {
  const std::vector<std::string_view> f = split(line);
  if (f.size() != kFields) return std::nullopt;
  const std::string_view text = line.substr(0, line.size() - f.back().size() - 1);
  if (f.back() != hex(checksum(text))) return std::nullopt;
  TuningKey key{std::string(f[0]), std::string(f[1]), std::string(f[2]), std::string(f[3])};
  TuningEntry entry;
  entry.kernel = std::string(f[4]);
  const bool numbers = parse(f[5], entry.cluster.m) && parse(f[6], entry.cluster.n) &&
                       parse(f[7], entry.ctas) && parse(f[8], entry.microseconds);
  if (!numbers || !std::isfinite(entry.microseconds)) return std::nullopt;
  return std::pair{std::move(key), std::move(entry)};
}

struct Content {
  std::map<TuningKey, TuningEntry> entries;
  std::optional<std::string> warning;
};

Content unreadable(const std::string& path, const std::string& why) {
  return {{}, "The tuning cache " + path + " is ignored: " + why + "."};
}

Content read(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return {};
  if (error) return unreadable(path, error.message());
  if (status.type() != fs::file_type::regular) return unreadable(path, "it is no regular file");
  if (fs::file_size(path, error) > kMaxBytes || error) {
    return unreadable(path, "it is larger than 64 MiB");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return unreadable(path, std::strerror(errno));
  Content content;
  int damaged = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    if (auto entry = read_line(line)) {
      content.entries.insert_or_assign(std::move(entry->first), std::move(entry->second));
    } else {
      ++damaged;
    }
  }
  if (damaged > 0) {
    content.warning = std::to_string(damaged) + (damaged == 1 ? " line" : " lines") +
                      " of the tuning cache " + path + (damaged == 1 ? " is" : " are") +
                      " damaged and ignored; the next `warpwright tune` writes it anew.";
  }
  return content;
}

Refusal cannot_write(const std::string& path, const std::string& why) {
  return refuse(RefusalCode::file_error, "The tuning cache cannot be written to ", path, ": ", why,
                ".");
}

// A lock on a file beside the cache, which is never replaced; held as long as this lives.
class Lock {
 public:
  explicit Lock(const std::string& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (file_ < 0) return;
    int result = 0;
    do {
      result = ::flock(file_, LOCK_EX);
    } while (result != 0 && errno == EINTR);
    held_ = result == 0;
  }
  ~Lock() {
    if (file_ >= 0) ::close(file_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  [[nodiscard]] bool held() const { return held_; }

 private:
  int file_ = -1;
  bool held_ = false;
};

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// The file as a whole is the old one or the new one, whenever somebody looks. Whoever holds the
// lock is alone with the draft, and writes over what a run that was ended meanwhile left of it.
std::optional<Refusal> replace(const std::string& path, const std::string& text) {
  const std::string draft = path + ".tmp";
  const int file =
      ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file < 0) return cannot_write(path, std::strerror(errno));
  const bool written = write_all(file, text) && ::fsync(file) == 0;
  const int why = errno;
  ::close(file);
  if (written && ::rename(draft.c_str(), path.c_str()) == 0) return std::nullopt;
  const std::string reason = std::strerror(written ? errno : why);
  ::unlink(draft.c_str());
  return cannot_write(path, reason);
}

// One value of a product's fields.
template <class T>
std::string word_of(const T& value) {
  if constexpr (std::is_same_v<T, DType>) {
    return std::string(numeric::name(value));
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<int>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return format("%g", static_cast<double>(value));
  } else {
    return std::to_string(value);
  }
}

// The fields of a product: "a=bf16,64,4096,4096,1,1,0,16 ... scaling=0". What is not there is left
// out.
struct Text {
  std::string& out;
  bool is_part = false;  // of a matrix, groups or packed weights: values alone

  template <class T>
  void operator()(const char* name, const T& value) const {
    if constexpr (requires { value.has_value(); }) {
      if (value) (*this)(name, *value);
    } else if constexpr (requires { for_each_field(value, *this); }) {
      if (value == T{} && std::is_same_v<T, PlannedMatrix>) return;
      out += std::string(" ") + name + "=";
      for_each_field(value, Text{out, true});
    } else {
      if (!is_part) {
        out += std::string(" ") + name + "=";
      } else if (out.back() != '=') {
        out += ",";
      }
      out += word_of(value);
    }
  }
};

// A device's own name, whichever number it has here.
std::string gpu_name(const DeviceFacts& device) {
  const std::size_t space = device.name.find(' ');
  return device.name.starts_with("cuda:") && space != std::string::npos
             ? device.name.substr(space + 1)
             : device.name;
}

bool chosen(const PlanChoices& choices) {
  return choices != PlanChoices{};
}

}  // namespace

std::string problem_text(const GemmProblem& problem) {
  std::string text;
  for_each_field(normalised(problem), Text{text});
  return text.substr(1);
}

std::string nvidia_driver_version() {
  std::string text;
  if (std::ifstream file("/sys/module/nvidia/version"); file >> text) return text;
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159  <date>": the first word of digits.
  std::ifstream file("/proc/driver/nvidia/version");
  while (file >> text) {
    if (text.find_first_not_of("0123456789.") == std::string::npos &&
        text.find('.') != std::string::npos) {
      return text;
    }
  }
  return "unknown";
}

TuningKey tuning_key(const GemmProblem& problem, const DeviceFacts& device) {
  // As the file keeps it, so that a key is found again.
  return {field(gpu_name(device)), field(nvidia_driver_version()), WARPWRIGHT_VERSION,
          field(problem_text(problem))};
}

TuningEntry tuning_entry(const Plan& plan, double microseconds) {
  return {plan.kernel, plan.cluster, plan.ctas, microseconds};
}

std::string TuningCache::default_path() {
  constexpr const char* name = "/warpwright/tuning-v1.tsv";
  // The specification of XDG leaves out paths that are not absolute.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + name;
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache" + name;
  return {};
}

TuningCache::TuningCache(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  Content content = read(path_);
  entries_ = std::move(content.entries);
  warning_ = std::move(content.warning);
}

std::optional<TuningEntry> TuningCache::find(const TuningKey& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

std::optional<Refusal> TuningCache::unwritable() const {
  if (path_.empty()) {
    return refuse(
        RefusalCode::file_error,
        "There is no place for the tuning cache: set XDG_CACHE_HOME or HOME to a folder's "
        "absolute path.");
  }
  std::error_code error;
  const fs::path folder = fs::path(path_).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) return cannot_write(path_, error.message());
  const fs::file_status status = fs::status(path_, error);
  if (fs::exists(status)) {
    if (!fs::is_regular_file(status)) return cannot_write(path_, "it is no regular file");
    // root may write where no mode bit allows it; the owner's wish counts all the same.
    constexpr fs::perms write =
        fs::perms::owner_write | fs::perms::group_write | fs::perms::others_write;
    if ((status.permissions() & write) == fs::perms::none) {
      return cannot_write(path_, "it is read-only");
    }
  }
  const char* where = folder.empty() ? "." : folder.c_str();
  if (::access(where, W_OK | X_OK) != 0) return cannot_write(path_, std::strerror(errno));
  return std::nullopt;
}

std::optional<Refusal> TuningCache::store(
    const std::vector<std::pair<TuningKey, TuningEntry>>& entries) {
  if (auto refusal = unwritable()) return refusal;
  const Lock lock(path_ + ".lock");
  if (!lock.held()) return cannot_write(path_, std::strerror(errno));
  std::map<TuningKey, TuningEntry> merged = read(path_).entries;
  for (const auto& [key, entry] : entries) merged.insert_or_assign(key, entry);
  std::string text = std::string(kHeading) + "\n";
  for (const auto& [key, entry] : merged) text += line_of(key, entry);
  if (auto refusal = replace(path_, text)) return refusal;
  entries_ = std::move(merged);
  warning_.reset();
  return std::nullopt;
}

Result<TunedPlan> tuned_plan(const GemmProblem& problem, const DeviceFacts& device,
                             const TuningCache& cache, const PlanChoices& choices) {
  if (!device.is_model && !chosen(choices)) {
    if (const auto entry = cache.find(tuning_key(problem, device))) {
      PlanChoices tuned;
      tuned.cluster = entry->cluster;
      // A planner that names its kernels also takes the name and the grid.
      if (!entry->kernel.empty()) {
        tuned.kernel = entry->kernel;
        tuned.ctas = entry->ctas;
      }
      const Result<Plan> found = plan(problem, device, tuned);
      // A kernel that is gone, or a grid that this GPU does not hold, is no plan.
      const bool same = found && found->kernel == entry->kernel && found->cluster == entry->cluster;
      if (same) return TunedPlan{*found, entry};
    }
  }
  const Result<Plan> usual = plan(problem, device, choices);
  if (!usual) return usual.refusal();
  return TunedPlan{*usual, std::nullopt};
}

}  // namespace warpwright
