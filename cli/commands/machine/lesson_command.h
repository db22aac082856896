// `warpwright lesson`: small kernels to learn from, each with a broken twin and a picture.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace warpwright::cli {

struct LessonOptions {
  std::optional<int> number;  ///< not given: the list of all
  bool broken = false;
  bool source = false;         ///< what is printed is its source
  std::vector<int> stages;     ///< of lessons that leave them open; several are compared
  std::vector<int> in_flight;  ///< likewise
  std::string svg, html;
  std::string machine;  ///< a file: a device in numbers, which nominal time follows
  bool json = false;
};

void add_lesson_command(CLI::App& app, LessonOptions& options);

/// Runs a lesson, or its broken twin, under every schedule and shows its picture (see
/// docs/lessons.md). Returns 0 where it is as the lesson says: clean, or broken with the finding
/// that it names; else 1. 2 with one sentence on `err` for options that it does not take.
int lesson_command(const LessonOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
