#include "warpwright/plan/tuning/tuning_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace warpwright::tuning_file {
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

Content unreadable(const std::string& path, const std::string& why) {
  return {{}, "The tuning cache " + path + " is ignored: " + why + "."};
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
// lock has the draft for itself, and writes over what a run that was ended meanwhile left of it.
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

}  // namespace

std::string field(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
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

Result<Entries> add(const std::string& path,
                    const std::vector<std::pair<TuningKey, TuningEntry>>& entries) {
  const Lock lock(path + ".lock");
  if (!lock.held()) return cannot_write(path, std::strerror(errno));
  Entries merged = read(path).entries;
  for (const auto& [key, entry] : entries) merged.insert_or_assign(key, entry);
  std::string text = std::string(kHeading) + "\n";
  for (const auto& [key, entry] : merged) text += line_of(key, entry);
  if (auto refusal = replace(path, text)) return *refusal;
  return merged;
}

}  // namespace warpwright::tuning_file
