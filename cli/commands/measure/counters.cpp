#include "cli/commands/measure/counters.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace warpwright::cli {
namespace {

// The file of ncu; empty where there is none.
std::string find_ncu() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(std::string(path != nullptr ? path : "") + ":/usr/local/cuda/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = folder + "/ncu";
    std::error_code error;
    if (!folder.empty() && std::filesystem::is_regular_file(file, error) &&
        ::access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return {};
}

// Runs a program; what it prints goes to `out`. Its status as `waitpid` gives it; -1 where it did
// not start.
int run(std::vector<std::string> words, std::string& out) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return -1;
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addclose(&actions, ends[0]);
  ::posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = -1;
  const int error = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::array<char, 4096> piece{};
  ssize_t count = 0;
  while (error == 0 && ((count = ::read(ends[0], piece.data(), piece.size())) > 0 ||
                        (count < 0 && errno == EINTR))) {
    if (count > 0) out.append(piece.data(), static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  int status = -1;
  while (error == 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

NcuLog run_under_ncu(const std::string& program, const std::vector<std::string>& arguments) {
  const std::string ncu = find_ncu();
  if (ncu.empty()) {
    return {{}, "Nsight Compute's ncu is neither on PATH nor in /usr/local/cuda/bin"};
  }
  // The caches are flushed before each kernel (ncu's default); clocks stay as they are.
  std::vector<std::string> words = {
      ncu,         "--csv",           "--print-units", "base",       "--profile-from-start",
      "off",       "--clock-control", "none",          "--log-file", "stdout",
      "--metrics", kNcuMetrics,       program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::string text;
  const int status = run(words, text);
  NcuLog log = read_ncu_log(text);
  if (!log.error.empty()) {
    log.error = "ncu says: " + log.error;
  } else if (log.counts.empty()) {
    log.error = ncu + " counted nothing" +
                (WIFEXITED(status) ? " and left with status " + std::to_string(WEXITSTATUS(status))
                                   : std::string(" and did not end by itself"));
  }
  return log;
}

std::string this_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

}  // namespace warpwright::cli
