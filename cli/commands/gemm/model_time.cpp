#include "cli/commands/gemm/model_time.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "cli/reports/progress.h"

namespace warpwright::cli {

double model_seconds(std::int64_t tiles, int m, int n, std::int64_t k) {
  // Barriers, copies and the checks of their bytes take their time for every 64 of K, whatever the
  // tile's size; then there are the multiplications, and the tile's way to memory.
  constexpr double stage = 1.5e-3;
  constexpr double product = 8e-10;
  constexpr double element = 4e-7;
  const double elements = static_cast<double>(m) * n;
  const double stages = std::ceil(static_cast<double>(k) / 64);
  return static_cast<double>(tiles) *
         (stages * (stage + product * 64 * elements) + element * elements);
}

double check_seconds(double products) {
  constexpr double a_thread = 6e8;  // products in a second
  return products / (a_thread * std::max(1U, std::thread::hardware_concurrency()));
}

void note_duration(std::ostream& err, const std::string& command, double seconds,
                   const std::string& advice) {
  if (seconds <= 60) return;
  err << command << ": this will take roughly " << duration_text(seconds)
      << " of a machine that has nothing else to do; " << advice << ".\n";
}

}  // namespace warpwright::cli
