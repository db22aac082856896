#include "cli/files/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "cli/files/safetensors.h"
#include "tests/cli/run_cli.h"
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

  [[nodiscard]] int drafts() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().filename().string().starts_with(".warpwright-")) ++count;
    }
    return count;
  }

  // Waits for a draft of `child`, whose end would leave it behind. False when it ended before.
  [[nodiscard]] bool saw_a_draft(pid_t child) const {
    while (drafts() == 0) {
      if (::waitpid(child, nullptr, WNOHANG) != 0) return false;
    }
    return true;
  }
};

TEST_F(OutputFile, UnusableNamesAreRefusedBeforeTheWork) {
  expect_unwritable("", "its name is empty");
  expect_unwritable(path(std::string("a\0b", 3)), "NUL byte");
  expect_unwritable(path("none/x"), "there is no folder " + path("none"));
  put("file", "x");
  expect_unwritable(path("file/x"), "is no folder");
  expect_unwritable(path("file/x/y"), "cannot be reached");
  fs::create_directory(path("folder"));
  expect_unwritable(path("folder"), "not a regular file");
  expect_unwritable(path("folder/"), "not a regular file");
  expect_unwritable(path("folder/.."), "not a regular file");
  expect_unwritable(path("new/"), "it names a folder");
  expect_unwritable(path(std::string(300, 'x')), "name too long");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  expect_unwritable(path("pipe"), "not a regular file");
  expect_unwritable("/dev/null", "not a regular file");
  expect_unwritable("/proc/x", "/proc");
  fs::create_symlink("circle", path("circle"));
  expect_unwritable(path("circle"), "links lead in a circle");
  fs::create_symlink("none/x", path("astray"));
  expect_unwritable(path("astray"), "there is no folder");
  EXPECT_EQ(get("file"), "x");
}

// Also for root, whom the system would let.
TEST_F(OutputFile, ReadOnlyFilesStayAsTheyAre) {
  put("x.npy", "old");
  fs::create_symlink("x.npy", path("link.npy"));
  ASSERT_EQ(::chmod(path("x.npy").c_str(), 0444), 0);
  expect_unwritable(path("x.npy"), "it is read-only");
  expect_unwritable(path("link.npy"), "it is read-only");
  EXPECT_EQ(get("x.npy"), "old");
  ASSERT_EQ(::chmod(path("x.npy").c_str(), 0644), 0);
  replace_file(path("x.npy"), "new");
  EXPECT_EQ(get("x.npy"), "new");
}

TEST_F(OutputFile, LinksStayAndTheirFilesAreWritten) {
  fs::create_directory(path("far"));
  fs::create_symlink("far/b", path("a"));
  fs::create_symlink(path("c"), path("far/b"));
  check_output_file("D", path("a"));
  EXPECT_FALSE(fs::exists(path("c")));
  replace_file(path("a"), "one");  // c is made
  EXPECT_EQ(get("c"), "one");
  replace_file(path("a"), "two");
  EXPECT_EQ(get("c"), "two");
  EXPECT_TRUE(fs::is_symlink(path("a")));
  EXPECT_TRUE(fs::is_symlink(path("far/b")));
  EXPECT_FALSE(fs::is_symlink(path("c")));

  const HostTensor tensor = make_tensor(DType::f32, {3});
  fs::create_symlink("real.safetensors", path("s.safetensors"));
  write_tensor(path("s.safetensors:a"), tensor);
  write_tensor(path("s.safetensors:b"), tensor);
  EXPECT_EQ(safetensors_names(path("real.safetensors")).size(), 2U);
}

TEST_F(OutputFile, KnowsTheSameFileByItsOtherNames) {
  fs::create_directory(path("folder"));
  fs::create_symlink("x", path("link"));
  fs::create_directory_symlink("folder", path("other"));
  EXPECT_TRUE(is_same_output(path("x"), path("x")));
  EXPECT_TRUE(is_same_output(path("x"), path("folder/../x")));
  EXPECT_TRUE(is_same_output(path("x"), path("link")));
  EXPECT_TRUE(is_same_output(path("folder/x"), path("other/x")));
  EXPECT_FALSE(is_same_output(path("x"), path("y")));
  EXPECT_FALSE(is_same_output(path("x"), path("folder/x")));
}

// A signal removes the draft, and the exit status still tells it.
TEST_F(OutputFile, SignalsLeaveNothingBehind) {
  const HostTensor tensor = make_tensor(DType::f32, {1000, 1000});
  write_tensor(path("x.npy"), tensor);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    for (int i = 0; i < 5; ++i) {
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        while (true) write_tensor(path("x.npy"), tensor);
      }
      ASSERT_TRUE(saw_a_draft(child));
      ASSERT_EQ(::kill(child, signal), 0);
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFSIGNALED(status));
      EXPECT_EQ(WTERMSIG(status), signal);
      EXPECT_EQ(drafts(), 0);
      expect_same(read_tensor(path("x.npy")), tensor);
    }
  }
}

// As under nohup.
TEST_F(OutputFile, AnIgnoredSignalStaysIgnored) {
  const HostTensor tensor = make_tensor(DType::f32, {1000, 1000});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGHUP, SIG_IGN);
    for (int i = 0; i < 10; ++i) write_tensor(path("x.npy"), tensor);
    ::_exit(0);
  }
  ASSERT_TRUE(saw_a_draft(child));
  ASSERT_EQ(::kill(child, SIGHUP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  expect_same(read_tensor(path("x.npy")), tensor);
}

TEST_F(OutputFile, SignalsMeanTheSameAfterAWrite) {
  struct sigaction before {};
  struct sigaction after {};
  ::sigaction(SIGTERM, nullptr, &before);
  replace_file(path("x"), "x");
  ::sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

// Every tensor of every process arrives, also those of the first ones, who make the file.
TEST_F(OutputFile, ProcessesThatShareAFileLoseNothing) {
  constexpr int kProcesses = 6;
  constexpr int kEach = 6;
  const auto name = [this](int process, int i) {
    return path("x.safetensors:t") + std::to_string(process) + "." + std::to_string(i);
  };
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(gate[1]);
      char ignored = 0;
      const ssize_t end = ::read(gate[0], &ignored, 1);  // they start together
      try {
        for (int i = 0; i < kEach; ++i) {
          write_tensor(name(process, i), make_tensor(DType::bf16, {process + 1, i + 1}));
        }
      } catch (const InputError&) {
        ::_exit(1);
      }
      ::_exit(end == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  ::close(gate[0]);
  ::close(gate[1]);
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(safetensors_names(path("x.safetensors")).size(), kProcesses * kEach);
  for (int process = 0; process < kProcesses; ++process) {
    for (int i = 0; i < kEach; ++i) {
      expect_same(read_tensor(name(process, i)), make_tensor(DType::bf16, {process + 1, i + 1}));
    }
  }
  EXPECT_EQ(files(), 1);
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

std::vector<std::string> with(std::vector<std::string> call, const std::vector<std::string>& more) {
  call.insert(call.end(), more.begin(), more.end());
  return call;
}

// For every command that writes: status 2, one sentence, before there was any work.
TEST_F(OutputFile, EveryCommandThatWritesRefusesBeforeTheWork) {
  const std::vector<std::string> endings = {".npy", ".pftrace", ".svg", ".json"};
  for (const std::string& ending : endings) {
    put("read_only" + ending, "old");
    ASSERT_EQ(::chmod(path("read_only" + ending).c_str(), 0444), 0);
    fs::create_directory(path("folder" + ending));
  }
  const std::vector<std::string> extents = {"--random", "64", "64", "64"};
  const std::vector<std::string> groups = {"--groups", "2",  "--tokens", "3",
                                           "--n",      "64", "--k",      "64"};
  const std::vector<std::pair<std::vector<std::string>, const char*>> outputs = {
      {with({"gemm"}, extents), "--out"},
      {with({"trace", "gemm"}, extents), "--out"},
      {with({"trace", "gemm"}, extents), "--svg"},
      {with({"trace", "gemm"}, extents), "--grid-svg"},
      {with({"trace", "grouped"}, groups), "--out"},
      {with({"trace", "grouped"}, groups), "--svg"},
      {with({"trace", "grouped"}, groups), "--grid-svg"},
      {{"bench", "dense"}, "--json"},
      {{"bench", "grouped"}, "--json"}};
  for (const auto& [call, option] : outputs) {
    const std::string kind(option);
    const std::string& ending = endings[kind == "--json"                ? 3
                                        : kind.find("svg") != kind.npos ? 2
                                        : call[0] == "trace"            ? 1
                                                                        : 0];
    for (const std::string& name :
         {std::string(), path("none/x" + ending), path("folder" + ending),
          path("read_only" + ending), path("read_only.npy/x" + ending),
          path(std::string("x\0", 2) + ending), path(std::string(300, 'x') + ending)}) {
      const CliResult r = run_cli(with(call, {option, name}));
      EXPECT_EQ(r.status, 2) << call[0] << " " << option << " " << name << "\n" << r.err;
      EXPECT_EQ(r.out, "");
      EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
      EXPECT_EQ(r.err.find("GPU"), std::string::npos)
          << "it looked for the device first: " << r.err;
    }
  }
  EXPECT_EQ(files(), 8);
  for (const std::string& ending : endings) EXPECT_EQ(get("read_only" + ending), "old");
  const CliResult metadata = run_cli(
      with({"gemm"}, {"--random", "8", "8", "8", "--out", path("x.safetensors:__metadata__")}));
  EXPECT_EQ(metadata.status, 2);
  EXPECT_EQ(metadata.err.find("gemm: D"), std::string::npos) << "it was multiplied first";
  const CliResult name =
      run_cli(with({"gemm"}, {"--random", "8", "8", "8", "--out", path("x.safetensors:\xff")}));
  EXPECT_EQ(name.status, 2);
  EXPECT_EQ(name.err.find("gemm: D"), std::string::npos) << "it was multiplied first";
}

TEST_F(OutputFile, TuneRefusesAnUnusableCacheBeforeTheWork) {
  put("file", "x");
  ASSERT_EQ(::setenv("XDG_CACHE_HOME", path("file").c_str(), 1), 0);
  const CliResult r = run_cli({"tune", "64", "64", "64"});
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(r.status, 2);
  EXPECT_TRUE(r.err.starts_with("The tuning cache cannot be written to ")) << r.err;
}

TEST_F(OutputFile, NoOutputOfTraceIsWrittenOverAnother) {
  fs::create_symlink("t", path("link"));
  const std::vector<std::pair<const char*, const char*>> pairs = {
      {"--out", "--svg"}, {"--out", "--grid-svg"}, {"--svg", "--grid-svg"}};
  for (const auto& [one, other] : pairs) {
    for (const std::string& name : {path("t"), path("./t"), path("link")}) {
      const CliResult r =
          run_cli({"trace", "gemm", "--random", "64", "64", "64", one, path("t"), other, name});
      EXPECT_EQ(r.status, 2) << r.err;
      EXPECT_NE(r.err.find(std::string("the file of ") + one), std::string::npos) << r.err;
      EXPECT_FALSE(fs::exists(path("t")));
    }
  }
}

TEST(EmptyArguments, AreRefused) {
  const auto refused = [](const std::vector<std::string>& call, const std::string& words) {
    const CliResult r = run_cli(call);
    EXPECT_EQ(r.status, 2) << r.err;
    EXPECT_NE(r.err.find(words), std::string::npos) << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  };
  const std::vector<std::string> gemm = {"gemm", "--random", "8", "8", "8"};
  for (const char* option : {"--out", "--c", "--scale-a", "--device", "--dtype", "--kernel"}) {
    refused(with(gemm, {option, ""}), std::string(option) + " is given an empty value");
  }
  refused(with(gemm, {"--out=", "--check"}), "--out is given an empty value");
  refused({"gemm", "--a", "", "--b", "b.npy"}, "--a is given an empty value");
  refused({"bench", "dense", "--shapes", ""}, "--shapes is given an empty value");
  refused({"layout", ""}, "behind layout");
  refused({""}, "An argument is empty");
  refused(with(gemm, {"--bias", "rows="}), "rows=FILE");
}

// A full disk: it takes some characters and no more.
class FullDisk : public std::streambuf {
 public:
  explicit FullDisk(int room) : room_(room) {}

 private:
  int overflow(int c) override { return room_-- > 0 ? c : traits_type::eof(); }
  int room_;
};

TEST(LostOutput, IsStatusTwoForEveryCommand) {
  for (const std::vector<std::string>& call : std::vector<std::vector<std::string>>{
           {"--help"},
           {"--version"},
           {"gemm", "--help"},
           {"devices"},
           {"layout", "(8,4):(4,1)", "--table"},
           {"mask", "--cluster", "2,2"},
           {"explain", "gemm", "--random", "64", "64", "64"},
           {"explain", "grouped", "--groups", "1", "--tokens", "8", "--n", "64", "--k", "64"},
           {"check", "gemm", "--random", "64", "64", "64", "--schedules", "1"},
           {"check", "gemm", "--random", "64", "64", "64", "--schedules", "1", "--json"},
           {"grouped", "--groups", "1", "--tokens", "8", "--n", "64", "--k", "64", "--json"}}) {
    for (const int room : {0, 12}) {
      FullDisk disk(room);
      std::ostream out(&disk);
      std::ostringstream err;
      EXPECT_EQ(run_app(call, out, err), 2) << call[0];
      EXPECT_NE(err.str().find("The output is not complete"), std::string::npos) << err.str();
    }
    std::ofstream full("/dev/full");  // which fails as late as in the last flush
    std::ostringstream err;
    EXPECT_EQ(run_app(call, full, err), 2) << call[0];
    EXPECT_NE(err.str().find("The output is not complete"), std::string::npos) << err.str();
  }
  // What says nothing on stdout loses nothing there.
  FullDisk disk(0);
  std::ostream out(&disk);
  std::ostringstream err;
  EXPECT_EQ(run_app({"gemm", "--random", "8", "8", "8"}, out, err), 0) << err.str();
}

}  // namespace
}  // namespace warpwright::cli
