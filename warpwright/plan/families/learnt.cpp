#include "warpwright/plan/families/learnt.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "warpwright/plan/cost/correction_texts.h"

namespace warpwright {

namespace {

// More than any correction; a larger file is something else.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{64} << 20;

// That of WARPWRIGHT_CORRECTION; nothing where none is named, or what is named is none.
std::optional<Correction> correction_of_environment() {
  const char* const path = std::getenv("WARPWRIGHT_CORRECTION");
  if (path == nullptr || *path == '\0') return std::nullopt;
  auto read = read_correction(path);
  if (read) return *std::move(read);
  std::fprintf(stderr,
               "warpwright: WARPWRIGHT_CORRECTION is \"%s\": %s; plans go by the built-in "
               "correction.\n",
               path, read.reason().c_str());
  return std::nullopt;
}

}  // namespace

const Correction& built_correction() {
  static const Correction built = [] {
    if (auto given = correction_of_environment()) return *std::move(given);
    auto read = Correction::parse(correction_texts.front(), floor_features);
    if (!read) throw std::logic_error(read.reason());
    return *std::move(read);
  }();
  return built;
}

const Correction& correction_of(const DeviceFacts& device) {
  return device.correction ? *device.correction : built_correction();
}

Result<Correction> read_correction(const std::string& path) {
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(path, error);
  std::ifstream file(path, std::ios::binary);
  if (!is_file || !file || std::filesystem::file_size(path, error) > kMostBytes) {
    return refuse(RefusalCode::file_error, "no correction can be read there; ",
                  as_rule("give a file that `warpwright calibrate --learn` made"));
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return Correction::parse(text, floor_features);
}

double learnt_seconds(const Floor& floor, const Correction& correction) {
  return learnt_seconds({&floor, 1}, correction).front();
}

std::vector<double> learnt_seconds(std::span<const Floor> floors, const Correction& correction) {
  std::vector<std::span<const double>> features;
  for (const Floor& floor : floors) features.emplace_back(floor.features);
  std::vector<double> seconds = correction.factors(features);
  for (std::size_t i = 0; i < floors.size(); ++i) seconds[i] *= floors[i].seconds;
  return seconds;
}

std::optional<double> learnt_seconds(const Plan& plan) {
  const auto floor = floor_of(plan);
  if (!floor) return std::nullopt;
  return learnt_seconds(*floor, correction_of(plan.device));
}

std::string shape_text(const GemmProblem& p) {
  return std::to_string(p.m()) + "x" + std::to_string(p.n()) + "x" + std::to_string(p.k());
}

bool is_held_out(const GemmProblem& problem) {
  const std::vector<std::string>& held = built_correction().held_out();
  return std::find(held.begin(), held.end(), shape_text(problem)) != held.end();
}

}  // namespace warpwright
