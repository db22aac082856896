// The program as a process: what main() sees to before and after run_app.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>

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

// A closed descriptor's number must not go to the file that is written: it would get what is
// printed.
TEST_F(Process, WhatIsPrintedGoesIntoNoFile) {
  const std::vector<std::string> call = {"trace", "gemm", "--random",  "64",
                                         "64",    "64",   "--cluster", "1,1",
                                         "--out", "",     "--svg",     path("picture")};
  const auto trace = [&](const std::string& name, const std::function<void()>& prepare) {
    std::vector<std::string> all = call;
    all[9] = path(name);
    return run(all, prepare);
  };
  ASSERT_EQ(trace("open", [this] { send_stdout_to(path("said").c_str()); }), 0) << get("err");
  expect_lost(trace("closed", [] { ::close(STDOUT_FILENO); }));
  EXPECT_EQ(get("open"), get("closed"));
  ASSERT_EQ(WEXITSTATUS(trace("silent",
                              [] {
                                ::close(STDIN_FILENO);
                                ::close(STDOUT_FILENO);
                                ::close(STDERR_FILENO);
                              })),
            2);
  EXPECT_EQ(get("open"), get("silent"));
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
