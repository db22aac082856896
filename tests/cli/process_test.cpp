// The program as a process: what main() sees to before and after run_app.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "tests/cli/tensor_folder.h"

namespace warpwright::cli {
namespace {

class Process : public TensorFolder {
 protected:
  // Runs the program after `prepare` in its process; stderr goes to the file "err". The status of
  // waitpid.
  int run(std::vector<std::string> arguments, const std::function<void()>& prepare) {
    const std::string err = path("err");
    const pid_t child = ::fork();
    if (child == 0) {
      const int file = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(file, STDERR_FILENO);
      ::close(file);
      prepare();
      arguments.insert(arguments.begin(), WARPWRIGHT_EXE);
      std::vector<char*> words;
      words.reserve(arguments.size() + 1);
      for (std::string& argument : arguments) words.push_back(argument.data());
      words.push_back(nullptr);
      ::execv(WARPWRIGHT_EXE, words.data());
      ::_exit(127);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }

  void expect_lost(int status) {
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 2);
    const std::string err = get("err");
    EXPECT_NE(err.find("The output is not complete"), std::string::npos) << err;
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
  }

  static void send_stdout_to(const char* file) {
    const int full = ::open(file, O_WRONLY | O_CREAT, 0600);
    ::dup2(full, STDOUT_FILENO);
    ::close(full);
  }
};

const std::vector<std::string> kExplain = {"explain", "gemm", "--random", "64", "64", "64"};

TEST_F(Process, AFullOrClosedStdoutIsStatusTwo) {
  for (const auto& call : std::vector<std::vector<std::string>>{
           kExplain,
           {"layout", "8:1"},
           {"--help"},
           {"--version"},
           {"check", "gemm", "--random", "64", "64", "64", "--schedules", "1", "--json"}}) {
    expect_lost(run(call, [] { send_stdout_to("/dev/full"); }));
    expect_lost(run(call, [] { ::close(STDOUT_FILENO); }));
    expect_lost(run(call, [] {
      ::close(STDIN_FILENO);
      ::close(STDOUT_FILENO);
    }));
  }
}

// The number of a closed descriptor must not go to a file or a device that is opened later, which
// would get what is printed.
TEST_F(Process, ClosedDescriptorsAreHeld) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(descriptor);
    ::execl(WARPWRIGHT_EXE, "warpwright", "gemm", "--random", "4096", "4096", "4096", nullptr);
    ::_exit(127);
  }
  const fs::path held = "/proc/" + std::to_string(child) + "/fd";
  const auto names = [&held](const char* number) {
    std::error_code ignored;
    return fs::read_symlink(held / number, ignored) == "/dev/null";
  };
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  bool are_held = false;
  while (!are_held && std::chrono::steady_clock::now() < late) {
    are_held = names("0") && names("1") && names("2");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(are_held);
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

// A trace that is told of on a closed stdout is the same, and so is its picture.
TEST_F(Process, AFileIsWrittenAlsoWhereStdoutIsClosed) {
  const auto trace = [this](const std::string& name, const std::function<void()>& prepare) {
    return run({"trace", "gemm", "--random", "64", "64", "64", "--out", path(name)}, prepare);
  };
  ASSERT_EQ(trace("open", [this] { send_stdout_to(path("said").c_str()); }), 0) << get("err");
  expect_lost(trace("closed", [] { ::close(STDOUT_FILENO); }));
  EXPECT_FALSE(get("open").empty());
  EXPECT_EQ(get("open"), get("closed"));
}

// `warpwright explain ... | head -0` is quiet, whatever the shell does with SIGPIPE.
TEST_F(Process, AReaderWhoHasSeenEnoughIsNoFault) {
  for (const auto disposition : {SIG_DFL, SIG_IGN}) {
    const int status = run(kExplain, [disposition] {
      int ends[2];
      if (::pipe(ends) != 0) ::_exit(126);
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      std::signal(SIGPIPE, disposition);
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE) << status;
    EXPECT_EQ(get("err"), "");
  }
}

}  // namespace
}  // namespace warpwright::cli
