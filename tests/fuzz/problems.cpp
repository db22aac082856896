// Problems by consecutive seeds (tests/kernel/problems.h) on the model or a GPU, as many as there
// is time for: script/campaign and script/fuzz_gpu run it. Prints every seed that failed, and
// figures.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/kernel/problem_cuda.h"

namespace warpwright::tests {
namespace {

constexpr char usage[] =
    "fuzz_problems [--device model|cuda] [--first SEED] [--count N] [--seconds S] [--jobs J]\n"
    "              [--most MULTIPLICATIONS] [--kernel NAME] [--seeds model|cuda]\n"
    "Runs the problems of the seeds from --first on (1), --count of them (1000) or as many as\n"
    "--seconds allow, on --jobs threads (one a core), each of at most about --most\n"
    "multiplications (3e5); with --kernel only those by that kernel, or by all whose names begin "
    "so\n"
    "where NAME ends in *. Every element of every result is compared with float64, and all that\n"
    "lies around the results must stay as it was. Exits with 1 when a problem failed; --count 1\n"
    "--first SEED runs it again. Seeds name the same problems in builds with the same kernels.\n"
    "The model knows other kernels than a GPU, whose problems it runs with --seeds cuda.\n";

struct Asked {
  bool cuda = false;
  std::string seeds;  // whose problems they name, if not the device's
  std::uint64_t first = 1;
  std::uint64_t count = 1000;
  double seconds = 1e9;
  int jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  double most = 3e5;
  std::string kernel;
  /// Are problems by this kernel wanted?
  [[nodiscard]] bool wants(std::string_view name) const {
    if (kernel.empty() || name == kernel) return true;
    return kernel.back() == '*' && name.rfind(kernel.substr(0, kernel.size() - 1), 0) == 0;
  }
  /// Do seeds name problems of Blackwell kernels too?
  [[nodiscard]] bool blackwell() const { return !cuda && seeds != "cuda"; }
};

Asked parse(const std::vector<std::string>& words) {
  Asked asked;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const std::string& name = words[i];
    if (i + 1 == words.size()) throw std::invalid_argument(name + ": a value is missing");
    const std::string& value = words[i + 1];
    if (name == "--device") {
      if (value != "model" && value != "cuda") throw std::invalid_argument("--device " + value);
      asked.cuda = value == "cuda";
    } else if (name == "--seeds") {
      if (value != "model" && value != "cuda") throw std::invalid_argument("--seeds " + value);
      asked.seeds = value;
    } else if (name == "--first") {
      asked.first = std::stoull(value);
    } else if (name == "--count") {
      asked.count = std::stoull(value);
    } else if (name == "--seconds") {
      asked.seconds = std::stod(value);
    } else if (name == "--jobs") {
      asked.jobs = std::max(1, std::stoi(value));
    } else if (name == "--kernel") {
      asked.kernel = value;
    } else if (name == "--most") {
      asked.most = std::stod(value);
    } else {
      throw std::invalid_argument(name + ": no such option");
    }
  }
  if (asked.cuda && asked.seeds == "model") {
    throw std::invalid_argument("--seeds model: a GPU lacks some of the model's kernels");
  }
  return asked;
}

class Fuzz {
 public:
  explicit Fuzz(const Asked& asked) : asked_(asked), next_(asked.first) {
    const std::vector<Instance>& all = drawn_instances(asked.blackwell());
    const auto wanted = [&](const Instance& i) { return asked.wants(i.name); };
    if (std::none_of(all.begin(), all.end(), wanted)) {
      throw std::invalid_argument("--kernel " + asked.kernel + ": not in this build");
    }
    if (!asked.cuda) return;
    const auto device = device::cuda_device(0);
    if (!device) throw std::runtime_error(device.reason());
    facts_ = *device;
  }

  int run() {
    {
      std::vector<std::jthread> threads;
      for (int i = 1; i < asked_.jobs; ++i) threads.emplace_back([this] { work(); });
      work();
    }
    const double spent = seconds();
    std::printf(
        "%llu problems by %zu kernels, %llu in groups, seeds %llu to %llu, %.0f s: %d "
        "failed\n",
        static_cast<unsigned long long>(done_), by_kernel_.size(),
        static_cast<unsigned long long>(in_groups_), static_cast<unsigned long long>(asked_.first),
        static_cast<unsigned long long>(last_), spent, failed_);
    return failed_ == 0 ? 0 : 1;
  }

 private:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  void work() {
    if (asked_.cuda) require(device::use_cuda_device(0));
    while (!broken_ && seconds() < asked_.seconds) {
      const std::uint64_t seed = next_++;
      if (taken_ >= asked_.count) return;
      const Seeded problem(seed, asked_.most, asked_.blackwell());
      if (!asked_.wants(problem.instance().name)) continue;
      if (taken_++ >= asked_.count) return;
      std::string said;
      try {
        said = asked_.cuda ? fault_on_cuda(problem, facts_) : problem.fault_on_model();
      } catch (const std::exception& failed) {
        // A kernel that failed takes the context with it.
        said = failed.what();
        broken_ = asked_.cuda;
      }
      const std::lock_guard lock(mutex_);
      ++done_;
      last_ = std::max(last_, seed);
      in_groups_ += problem.in_groups() ? 1 : 0;
      ++by_kernel_[problem.instance().name];
      if (!said.empty() && ++failed_ <= 20) {
        std::printf("%s: %s\n", problem.text().c_str(), said.c_str());
      }
      if (done_ % 10000 == 0) {
        std::printf("%llu done, %.0f s\n", static_cast<unsigned long long>(done_), seconds());
      }
      std::fflush(stdout);
    }
  }

  Asked asked_;
  DeviceFacts facts_;
  std::atomic<std::uint64_t> next_;
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<bool> broken_{false};
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::uint64_t done_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t in_groups_ = 0;
  int failed_ = 0;
  std::map<std::string, std::uint64_t> by_kernel_;
};

}  // namespace
}  // namespace warpwright::tests

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && (words[0] == "--help" || words[0] == "-h")) {
    std::fputs(warpwright::tests::usage, stdout);
    return 0;
  }
  try {
    return warpwright::tests::Fuzz(warpwright::tests::parse(words)).run();
  } catch (const std::exception& refused) {
    std::fprintf(stderr, "%s\n%s", refused.what(), warpwright::tests::usage);
    return 2;
  }
}
