#include "cli/commands/measure/counters.h"

#include "cli/commands/measure/child_process.h"

namespace warpwright::cli {

NcuLog run_under_ncu(const std::string& program, const std::vector<std::string>& arguments) {
  const std::string ncu = find_program("ncu", "/usr/local/cuda/bin");
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
  const int status = run_program(words, [&](std::string_view piece) { text += piece; });
  NcuLog log = read_ncu_log(text);
  if (!log.error.empty()) {
    log.error = "ncu says: " + log.error;
  } else if (log.counts.empty()) {
    log.error = ncu + " counted nothing" +
                (status >= 0 ? " and left with status " + std::to_string(status)
                             : std::string(" and did not end by itself"));
  }
  return log;
}

}  // namespace warpwright::cli
