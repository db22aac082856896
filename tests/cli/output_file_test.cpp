#include "cli/files/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/cli/tensor_folder.h"

namespace warpwright::cli {
namespace {

class OutputFile : public TensorFolder {
 protected:
  // Both before the work and when it is written, with the same reason; nothing changes.
  void expect_unwritable(const std::string& name, const std::string& why) {
    const int before = files();
    expect_refusal([&] { check_output_file("D", name); }, {"D cannot be written to ", why});
    expect_refusal([&] { replace_file(name, "new"); }, {" cannot be written: ", why});
    EXPECT_EQ(files(), before);
  }
};

// Also one that no command line can name, and what is there when it is written.
TEST_F(OutputFile, UnusableNamesAreRefusedBeforeTheWorkAndAtItsEnd) {
  expect_unwritable("", "its name is empty");
  expect_unwritable(path(std::string("a\0b", 3)), "NUL byte");
  expect_unwritable(path("none/x"), "there is no folder " + path("none"));
  expect_unwritable("/dev/null", "not a regular file");
  put("x", "old");
  ASSERT_EQ(::chmod(path("x").c_str(), 0444), 0);
  expect_unwritable(path("x"), "it is read-only");
  EXPECT_EQ(get("x"), "old");
}

TEST_F(OutputFile, SignalsMeanTheSameAfterAWrite) {
  struct sigaction before {};
  struct sigaction after {};
  ::sigaction(SIGTERM, nullptr, &before);
  replace_file(path("x"), "x");
  ::sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST_F(OutputFile, TakesTurns) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const OutputLock lock(path("x"));
    std::ofstream(path("locked")) << "x";
    while (!fs::exists(path("asked"))) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::ofstream(path("done")) << "x";
    ::_exit(0);
  }
  while (!fs::exists(path("locked"))) std::this_thread::yield();
  std::ofstream(path("asked")) << "x";
  {
    const OutputLock lock(path("y"));
    EXPECT_TRUE(fs::exists(path("done")));
  }
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace warpwright::cli
