#include "cli/reports/bench_words.h"

namespace warpwright::cli {

using nlohmann::ordered_json;

std::string number(const std::optional<double>& value) {
  return value ? format("%.3f", *value) : "-";
}

std::string percent(const std::optional<double>& value) {
  return value ? format("%.0f%%", 100 * *value) : "-";
}

std::string microseconds(const std::optional<bench::Timing>& t) {
  return t ? format("%.2f", t->median) : "-";
}

std::string spread(const bench::Timing& t) {
  return t.median > 0 ? format("%.1f%%", 50 * (t.high - t.low) / t.median) : "-";
}

const char* bound_name(Bound bound) {
  return bound == Bound::memory ? "HBM" : "tensor cores";
}

std::string provenance(const BenchHead& head) {
  return head.date + ", " + head.gpu + ", driver " + head.driver + ", CUDA " + head.cuda +
         (head.cublaslt.empty() ? ", no cuBLASLt" : ", cuBLASLt " + head.cublaslt) + ", commit " +
         head.commit;
}

ordered_json timing_json(const bench::Timing& t) {
  return {{"median_us", t.median}, {"low_us", t.low}, {"high_us", t.high}};
}

ordered_json timing_json(const std::optional<bench::Timing>& t) {
  return t ? timing_json(*t) : ordered_json(nullptr);
}

ordered_json number_json(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json head_json(const char* format_name, const BenchHead& head) {
  return {{"format", format_name}, {"date", head.date},      {"gpu", head.gpu},
          {"driver", head.driver}, {"cuda", head.cuda},      {"cublaslt", head.cublaslt},
          {"commit", head.commit}, {"command", head.command}};
}

}  // namespace warpwright::cli
