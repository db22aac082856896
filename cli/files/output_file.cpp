#include "cli/files/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <mutex>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/files/tensor_file.h"

namespace warpwright::cli {
namespace {

std::string reason(int error) {
  return std::generic_category().message(error);
}

// The folder a file lies in, with its last slash; empty for the working folder.
std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

std::string name_of(const std::string& path) {
  return path.substr(folder_of(path).size());
}

// The folder for people and for the system, which has no empty name for the working folder.
std::string folder_name(const std::string& path) {
  std::string folder = folder_of(path);
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder.empty() ? "." : folder;
}

mode_t mode_of_new_files() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

// The file that writing to a path replaces.
struct Target {
  std::string path;   // no link
  mode_t mode = 0;    // of the file that is there, or of a new one
  std::string fault;  // why it cannot be written; empty when it can
};

Target faulty(std::string fault) {
  Target target;
  target.fault = std::move(fault);
  return target;
}

// What is wrong with the folder that a file would lie in; empty when nothing is.
std::string folder_fault(const std::string& path) {
  const std::string folder = folder_name(path);
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0) {
    if (errno == ENOENT) return "there is no folder " + folder;
    return "the folder " + folder + " cannot be reached (" + reason(errno) + ")";
  }
  if (!S_ISDIR(facts.st_mode)) return folder + " is no folder";
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return "the folder " + folder + " is not writable (" + reason(errno) + ")";
  }
  return {};
}

// Follows links to the file itself, which need not be there.
Target find_target(std::string path) {
  if (path.empty()) return faulty("its name is empty");
  if (path.find('\0') != std::string::npos) return faulty("its name holds a NUL byte");
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) {
    return faulty("it exists and is not a regular file");
  }
  constexpr int kMaxLinks = 40;  // as the system has it
  for (int links = 0; links <= kMaxLinks; ++links) {
    const std::string name = name_of(path);
    if (name.empty() || name == "." || name == "..") return faulty("it names a folder, not a file");
    // /dev/stdout is a link there: its file is somebody's who writes on, and cannot be replaced.
    if (path.starts_with("/proc/")) return faulty("it leads into /proc, which holds no such files");
    if (std::string fault = folder_fault(path); !fault.empty()) return faulty(std::move(fault));
    if (::lstat(path.c_str(), &facts) != 0) {
      if (errno == ENOENT) return {std::move(path), mode_of_new_files(), {}};
      return faulty(reason(errno));
    }
    if (S_ISLNK(facts.st_mode)) {
      char text[PATH_MAX];
      const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
      if (size < 0) return faulty("it is a link that cannot be read (" + reason(errno) + ")");
      const std::string aim(text, static_cast<std::size_t>(size));
      path = aim.starts_with('/') ? std::string() : folder_of(path);
      path += aim;
      continue;
    }
    // root may write where no mode bit allows it; the owner's wish counts all the same.
    if ((facts.st_mode & 0222) == 0) return faulty("it is read-only; chmod u+w makes it writable");
    if (::access(path.c_str(), W_OK) != 0) {
      return faulty("it is not writable (" + reason(errno) + ")");
    }
    return {std::move(path), static_cast<mode_t>(facts.st_mode & 07777), {}};
  }
  return faulty("its links lead in a circle");
}

// What a signal would leave behind: the draft that is being written. Its name stands here from
// before the file is made until after it has its final name; to remove what is not there does no
// harm. One draft at a time: `one_draft` is held while it lives.
constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGXFSZ};
std::mutex one_draft;
std::atomic<bool> has_draft = false;
static_assert(std::atomic<bool>::is_always_lock_free);
char draft_name[PATH_MAX];
std::array<struct sigaction, kEnding.size()> usual_actions;

// Removes the draft and does what the signal does without it, so that the exit status tells it.
extern "C" void remove_draft(int signal) {
  const int error = errno;
  if (has_draft.load()) ::unlink(draft_name);
  for (std::size_t i = 0; i < kEnding.size(); ++i) {
    if (kEnding[i] == signal) ::sigaction(signal, &usual_actions[i], nullptr);
  }
  ::raise(signal);  // comes when this handler has returned
  errno = error;
}

// While one lives, signals that end the program remove the draft. Those that are ignored (as
// nohup does with HUP) stay so.
class SignalGuard {
 public:
  SignalGuard() {
    struct sigaction action {};
    action.sa_handler = remove_draft;
    action.sa_flags = SA_RESTART;
    ::sigfillset(&action.sa_mask);
    for (std::size_t i = 0; i < kEnding.size(); ++i) {
      ::sigaction(kEnding[i], nullptr, &usual_actions[i]);
      if (usual_actions[i].sa_handler != SIG_IGN) ::sigaction(kEnding[i], &action, nullptr);
    }
  }
  ~SignalGuard() {
    has_draft.store(false);
    for (std::size_t i = 0; i < kEnding.size(); ++i) {
      ::sigaction(kEnding[i], &usual_actions[i], nullptr);
    }
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
};

std::string random_letters(int count) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  std::string text;
  for (int i = 0; i < count; ++i) text += letters[random() % letters.size()];
  return text;
}

// A file in the target's folder that disappears unless it was renamed to the target.
class Draft {
 public:
  explicit Draft(const std::string& target) : lock_(one_draft), target_(target) {
    const std::string start = folder_of(target) + ".warpwright-";
    do {
      const std::string name = start + random_letters(12);
      if (name.size() >= sizeof draft_name) {
        errno = ENAMETOOLONG;
        break;
      }
      has_draft.store(false);
      std::memcpy(draft_name, name.c_str(), name.size() + 1);
      has_draft.store(true);
      descriptor_ = ::open(draft_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    } while (descriptor_ < 0 && errno == EEXIST);
    if (descriptor_ < 0) {
      throw FileError(target + " cannot be written: " +
                      as_rule("a file cannot be created in its folder (", reason(errno), ")") +
                      ".");
    }
  }
  ~Draft() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!is_done_) ::unlink(draft_name);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      // Linux writes at most 2 GiB at once; smaller steps are as fast.
      const std::size_t step = std::min<std::size_t>(bytes.size(), std::size_t{1} << 28);
      const ssize_t done = ::write(descriptor_, bytes.data(), step);
      if (done < 0) {
        if (errno == EINTR) continue;
        fail();
      }
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
  }

  void commit(mode_t mode) {
    if (::fchmod(descriptor_, mode) != 0 || ::fsync(descriptor_) != 0) fail();
    if (::close(std::exchange(descriptor_, -1)) != 0) fail();
    if (::rename(draft_name, target_.c_str()) != 0) fail();
    is_done_ = true;
  }

 private:
  [[noreturn]] void fail() const {
    throw FileError(target_ + " cannot be written (" + reason(errno) + "); " +
                    as_rule("what was there before is unchanged") + ".");
  }

  std::lock_guard<std::mutex> lock_;
  SignalGuard guard_;  // its end comes after the file's
  std::string target_;
  int descriptor_ = -1;
  bool is_done_ = false;
};

}  // namespace

void check_output_file(const std::string& what, const std::string& path) {
  const Target target = find_target(path);
  if (!target.fault.empty()) {
    throw FileError(what + " cannot be written to " + (path.empty() ? "\"\"" : path) + ": " +
                    target.fault + ".");
  }
  const Draft probe(target.path);
}

bool is_same_output(const std::string& one, const std::string& other) {
  const Target a = find_target(one);
  const Target b = find_target(other);
  if (!a.fault.empty() || !b.fault.empty() || name_of(a.path) != name_of(b.path)) return false;
  struct stat x {};
  struct stat y {};
  return ::stat(folder_name(a.path).c_str(), &x) == 0 &&
         ::stat(folder_name(b.path).c_str(), &y) == 0 && x.st_dev == y.st_dev &&
         x.st_ino == y.st_ino;
}

void replace_file(const std::string& path, std::span<const std::span<const std::byte>> chunks) {
  const Target target = find_target(path);
  if (!target.fault.empty()) {
    throw FileError((path.empty() ? "\"\"" : path) + " cannot be written: " + target.fault + ".");
  }
  Draft file(target.path);
  for (const std::span<const std::byte> chunk : chunks) file.write(chunk);
  file.commit(target.mode);
}

void replace_file(const std::string& path, const std::string& content) {
  const std::span<const std::byte> chunk = std::as_bytes(std::span(content));
  replace_file(path, std::span(&chunk, 1));
}

OutputLock::OutputLock(const std::string& path) {
  const Target target = find_target(path);
  if (!target.fault.empty()) throw FileError(path + " cannot be written: " + target.fault + ".");
  const std::string folder = folder_name(target.path);
  folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int result = -1;
  if (folder_ >= 0) {
    do {
      result = ::flock(folder_, LOCK_EX);
    } while (result != 0 && errno == EINTR);
  }
  if (result == 0) return;
  const std::string why = reason(errno);
  if (folder_ >= 0) ::close(folder_);
  throw FileError(path + " cannot be written: " +
                  as_rule("the folder ", folder, " cannot be locked (", why, ")") + ".");
}

OutputLock::~OutputLock() {
  ::close(folder_);
}

}  // namespace warpwright::cli
