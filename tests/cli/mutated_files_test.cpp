// Files with some bytes changed, thousands of them: each is read or refused with one plain
// sentence.
#include <gtest/gtest.h>
#include <sys/time.h>
#include <unistd.h>

#include <iostream>

#include "cli/files/printable.h"
#include "tests/campaign.h"
#include "tests/cli/run_cli.h"
#include "tests/cli/tensor_folder.h"
#include "tests/draws.h"

namespace warpwright::cli {
namespace {

class MutatedFiles : public TensorFolder {
 protected:
  MutatedFiles() : TensorFolder(place()) {
    seed_ = tests::run_seed();
    random_.seed(seed_);
    // At once, as a crash would leave nothing else to see.
    std::cout << "WARPWRIGHT_SEED=" << seed_ << std::endl;
    limit(60);
  }
  ~MutatedFiles() override { limit(0); }

  // A reader that spins ends by a signal: seconds of the process, however busy the machine is.
  static void limit(time_t seconds) {
    const itimerval timer{{}, {seconds, 0}};
    ::setitimer(ITIMER_PROF, &timer, nullptr);
  }

  // In memory, where there is such a place: no disk takes part in what is tested.
  static fs::path place() {
    const char* memory = "/dev/shm";
    return ::access(memory, W_OK | X_OK) == 0 ? memory : fs::temp_directory_path();
  }

  std::size_t below(std::size_t n) { return random_() % n; }

  // One to four changes: a byte, a character of the formats, runs of them put in or taken out, an
  // end, or what a terminal or a parser might trip over.
  std::string mutated(std::string content) {
    static const std::string alphabet = "0123456789-{}[](),:'\"eELTF<>f \\";
    static const std::vector<std::string> evil = {"\\u001b[2J",
                                                  "\\u0000",
                                                  "\\n",
                                                  "\\u202e",
                                                  "\x1b[31m",
                                                  "\xff",
                                                  "\n",
                                                  "\r",
                                                  std::string(1, '\0'),
                                                  "\xc2\x9b",
                                                  "18446744073709551616",
                                                  "\"x\":1,",
                                                  "'x': 1, ",
                                                  "\"data_offsets\"",
                                                  "'descr'"};
    const std::size_t changes = 1 + below(1 + below(4));
    for (std::size_t c = 0; c < changes && !content.empty(); ++c) {
      const std::size_t at = below(content.size());
      switch (below(6)) {
        case 0:
          content[at] = static_cast<char>(below(256));
          break;
        case 1:
          content[at] = alphabet[below(alphabet.size())];
          break;
        case 2:
          content.insert(at, 1 + below(12), alphabet[below(alphabet.size())]);
          break;
        case 3:
          content.erase(at, 1 + below(8));
          break;
        case 4:
          content.insert(at, evil[below(evil.size())]);
          break;
        default:
          content.resize(at);
      }
    }
    return content;
  }

  // The text of a .safetensors file whose header's length fits after a mutation, or does not.
  std::string mutated_safetensors(const std::string& header, const std::string& data) {
    if (below(4) == 0) return mutated(st_text(header, data));
    return st_text(mutated(header), data);
  }
  std::string mutated_npy(const std::string& header, const std::string& data, int major) {
    if (below(4) == 0) return mutated(npy_text(header, data, major));
    return npy_text(mutated(header), data, major);
  }

  // One sentence that a terminal shows as it is, in a line.
  static void expect_plain(const std::string& sentence) {
    EXPECT_EQ(printable(sentence), sentence);
    EXPECT_TRUE(sentence.ends_with('.')) << sentence;
  }

  unsigned seed_ = 0;
  std::mt19937 random_;
};

const int kCases = campaign() ? 9000 : 3000;

TEST_F(MutatedFiles, AreReadOrRefused) {
  const std::string rest = ", 'fortran_order': True, 'shape': (3, 2), }\n";
  const std::string tensors =
      R"({"__metadata__":{"by":"hand"},"t":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
      R"("a \u00e9":{"dtype":"BF16","shape":[4],"data_offsets":[8,16]},)"
      R"("u":{"dtype":"I64","shape":[],"data_offsets":[16,24]}})";
  const std::string data(24, 'd');
  int read = 0;
  int refused = 0;
  int told = 0;
  for (int i = 0; i < kCases && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed_) + ", case " + std::to_string(i));
    std::string spec;
    std::string content;
    if (i % 3 == 0) {
      spec = path("x.npy");
      content = mutated_npy("{'descr': '<f4'" + rest, data, 1 + i % 2);
    } else {
      spec = path("x.safetensors:t");
      content = mutated_safetensors(tensors, data);
    }
    const std::string file = put(i % 3 == 0 ? "x.npy" : "x.safetensors", content);
    bool is_legal = false;
    try {
      const HostTensor t = read_tensor(spec);
      is_legal = true;
      ++read;
      EXPECT_LE(t.bytes.size(), content.size());
    } catch (const InputError& error) {
      ++refused;
      expect_plain(error.what());
    }
    // The whole command's exit status, for some of them.
    if (i % 10 == 0) {
      const CliResult r = run_cli({"explain", "gemm", "--a", spec, "--b", spec});
      if (r.status == 0) {
        EXPECT_TRUE(is_legal);
        EXPECT_EQ(r.err, "");
      } else {
        ++told;
        EXPECT_EQ(r.status, 2);
        EXPECT_EQ(r.out, "");
        ASSERT_FALSE(r.err.empty());
        EXPECT_EQ(printable(r.err), r.err.substr(0, r.err.size() - 1) + "\\n");
      }
    }
    // A tensor goes into a file that is legal, and leaves another as it is.
    if (i % 3 != 0 && i % 32 == 1) {
      const HostTensor more = make_tensor(DType::f16, {2});
      try {
        write_tensor(path("x.safetensors:new"), more);
        expect_same(read_tensor(path("x.safetensors:new")), more);
      } catch (const InputError& error) {
        expect_plain(error.what());
        EXPECT_EQ(get("x.safetensors"), content);
        EXPECT_FALSE(is_legal);
      }
    }
  }
  EXPECT_GT(refused, read);
  EXPECT_GT(read, kCases / 200);
  EXPECT_GT(told, 0);
}

}  // namespace
}  // namespace warpwright::cli
