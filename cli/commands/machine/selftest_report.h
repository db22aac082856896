// What a self-test found, as it goes: for a reader, and as the file to send back.
#pragma once

#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "warpwright/facts/kernel.h"
#include "warpwright/plan/product/device_facts.h"

namespace warpwright::cli {

/// A product or a layer that was tried.
struct Tried {
  enum class Outcome : std::uint8_t {
    right,
    wrong,    ///< an element is not what it should be, or the model found a fault
    failed,   ///< the run itself
    refused,  ///< there is no plan for it there
  };
  Outcome outcome = Outcome::refused;
  std::string what;     ///< "ragged M, N and K"
  std::string command;  ///< that runs only it
  std::string kernel = {};
  std::string said = {};  ///< why it is not right
  double microseconds = 0;
  std::optional<double> predicted_us = {};

  [[nodiscard]] bool is_bad() const {
    return outcome == Outcome::wrong || outcome == Outcome::failed;
  }
};

/// The parts of a self-test.
enum class SelftestPart : std::uint8_t { kernels, types, mixtures, times };

/// All of it. One thread adds, another may read.
class SelftestReport {
 public:
  SelftestReport(const DeviceFacts& device, std::vector<const KernelFacts*> kernels,
                 std::uint64_t seed);

  void add(SelftestPart part, Tried tried);
  /// A kernel of which nothing can be said on the command line, and why.
  void leave_out(const std::string& kernel, const std::string& why);
  /// A product was not begun, as the time was over.
  void skip();
  /// Why it stopped before its end.
  void stop(const std::string& why);
  void end(double seconds);

  [[nodiscard]] bool is_good() const;
  /// The file's content: no name but the card's and kernels', no path.
  [[nodiscard]] nlohmann::ordered_json json() const;
  /// A few lines for each part, and the verdict.
  [[nodiscard]] std::string text() const;

 private:
  struct OfKernel {
    std::string name;
    int right = 0, refused = 0;
    std::vector<Tried> bad = {};
    std::string left_out = {};
  };
  [[nodiscard]] std::string part_text(const char* name, const std::vector<Tried>& all) const;
  [[nodiscard]] bool all_good() const;  // with the lock held

  mutable std::mutex mutex_;
  nlohmann::ordered_json device_;
  std::string where_;
  std::uint64_t seed_;
  std::vector<OfKernel> kernels_;
  std::vector<Tried> types_, mixtures_, times_;
  int skipped_ = 0;
  std::string stopped_;
  double seconds_ = 0;
};

/// "FAIL a bf16 kernel, ragged: D[1, 2] is ...; again: warpwright ..." for one that is bad.
std::string failure_text(const Tried& tried);

}  // namespace warpwright::cli
