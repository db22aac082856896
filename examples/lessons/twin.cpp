#include "lessons/twin.h"

#include <algorithm>
#include <utility>

#include "lessons/source.h"

namespace lessons {
namespace {

using testing::Seen;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Where an expression ends that begins at `at`: at one of `ends` outside of its brackets.
std::size_t end_of(std::string_view line, std::size_t at, std::string_view ends) {
  int depth = 0;
  for (; at < line.size(); ++at) {
    const char c = line[at];
    if (line.substr(at, 2) == "::") {
      ++at;
    } else if (depth == 0 && ends.find(c) != std::string_view::npos) {
      break;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      --depth;
    }
  }
  return at;
}

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

// "Broken ? A : B": A for the twin, B else, without parentheses that hold nothing else.
bool choose(const std::string& line, TwinLine& twin) {
  constexpr std::string_view asks = "Broken ? ";
  std::size_t begin = line.find(asks);
  if (begin == std::string::npos) return false;
  const std::size_t colon = end_of(line, begin + asks.size(), ":");
  std::size_t end = end_of(line, colon + 1, ",;)]>");
  const std::string broken = trimmed(line.substr(begin + asks.size(), colon - begin - asks.size()));
  const std::string right = trimmed(line.substr(colon + 1, end - colon - 1));
  const bool is_operand = begin > 1 && line[begin - 1] == '(' && line[begin - 2] == ' ';
  if (is_operand && end < line.size() && line[end] == ')') {
    --begin;
    ++end;
  }
  twin.broken = line.substr(0, begin) + broken + line.substr(end);
  twin.right = line.substr(0, begin) + right + line.substr(end);
  return true;
}

// "if constexpr (!Broken) S": the twin does without S; "(Broken)": only it has S.
bool leave_out(const std::string& line, TwinLine& twin) {
  for (const auto& [asks, of_twin] :
       {std::pair<std::string_view, bool>{"if constexpr (!Broken) ", false},
        {"if constexpr (Broken) ", true},
        {"!Broken && ", false}}) {
    const std::size_t at = line.find(asks);
    if (at == std::string::npos) continue;
    (of_twin ? twin.broken : twin.right) = line.substr(0, at) + line.substr(at + asks.size());
    return true;
  }
  return false;
}

bool names(const Lesson& lesson, const warpwright::model::Site& site) {
  const std::vector<std::string> lines = lines_of(source(site.file));
  const auto number = static_cast<std::size_t>(site.line);
  return number >= 1 && number <= lines.size() &&
         lines[number - 1].find(lesson.line) != std::string::npos;
}

bool is_own(const Lesson& lesson, const warpwright::model::Finding& f) {
  if (f.check != lesson.finding) return false;
  return lesson.line.empty() || names(lesson, f.site) ||
         std::any_of(
             f.accesses.begin(), f.accesses.end(),
             [&](const warpwright::model::Access& access) { return names(lesson, access.site); });
}

}  // namespace

std::vector<TwinLine> twin_lines(std::string_view source) {
  std::vector<TwinLine> twins;
  const std::vector<std::string> lines = lines_of(source);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    TwinLine twin;
    twin.line = static_cast<int>(i) + 1;
    if (choose(lines[i], twin) || leave_out(lines[i], twin)) twins.push_back(std::move(twin));
  }
  return twins;
}

std::string twin_diff(std::string_view source) {
  std::string diff;
  for (const TwinLine& twin : twin_lines(source)) {
    diff += "line " + std::to_string(twin.line) + "\n";
    if (!twin.right.empty()) diff += "-" + twin.right + "\n";
    if (!twin.broken.empty()) diff += "+" + twin.broken + "\n";
  }
  return diff;
}

std::vector<std::string> files(const Lesson& lesson) {
  const std::string number = std::to_string(lesson.number);
  std::vector<std::string> all = {"examples/lessons/" + std::string(2 - number.size(), '0') +
                                  number + "_" + std::string(lesson.name) + ".h"};
  constexpr std::string_view other = "own_kernel/linear_relu.h";
  if (source(all.front()).find(other) != std::string_view::npos) {
    all.push_back("examples/" + std::string(other));
  }
  return all;
}

std::vector<Seen> ranked_findings(const Lesson& lesson, const testing::Outcome& outcome) {
  std::vector<Seen> all = outcome.findings();
  std::stable_sort(all.begin(), all.end(), [&](const Seen& a, const Seen& b) {
    const bool own = is_own(lesson, a.finding);
    if (own != is_own(lesson, b.finding)) return own;
    return own && a.schedules.size() > b.schedules.size();
  });
  return all;
}

}  // namespace lessons
