#include "cli/commands/measure/child_process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace warpwright::cli {

std::string find_program(const std::string& name, const std::string& beside) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(std::string(path != nullptr ? path : "") + ":" + beside);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = std::filesystem::path(folder) / name;
    std::error_code error;
    if (!folder.empty() && std::filesystem::is_regular_file(file, error) &&
        ::access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return {};
}

int run_program(std::vector<std::string> words, const std::function<void(std::string_view)>& said) {
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
    if (count > 0) said({piece.data(), static_cast<std::size_t>(count)});
  }
  ::close(ends[0]);
  int status = -1;
  while (error == 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return error == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string this_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

}  // namespace warpwright::cli
