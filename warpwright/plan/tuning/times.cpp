#include "warpwright/plan/tuning/times.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <type_traits>

#include "warpwright/facts/format.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/plan/tuning/tuning.h"

namespace warpwright {
namespace {

constexpr std::string_view kHeading =
    "card\tcommit\tproduct\tlengths\tconfiguration\tmicroseconds\tchosen\n";
// A launch takes less than an hour.
constexpr double kMostMicroseconds = 3.6e9;

std::vector<std::string_view> split_at(std::string_view text, char sign) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(sign);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

template <class T>
bool read_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// One value, as problem_text writes it.
template <class T>
bool read_word(std::string_view text, T& value) {
  if constexpr (std::is_same_v<T, DType>) {
    const auto type = numeric::parse_dtype(text);
    if (type) value = *type;
    return type.has_value();
  } else if constexpr (std::is_enum_v<T> || std::is_same_v<T, bool>) {
    // Modes are few.
    int number = 0;
    const int end = std::is_enum_v<T> ? 16 : 2;
    if (!read_number(text, number) || number < 0 || number >= end) return false;
    value = static_cast<T>(number);
    return true;
  } else {
    return read_number(text, value);
  }
}

using Words = std::map<std::string_view, std::string_view>;  // by field

// Reads the fields of a product, and of its parts their values in order.
class ProblemReader {
 public:
  explicit ProblemReader(Words words) : words_(std::move(words)) {}

  template <class T>
  void operator()(const char* name, T& value) const {
    const auto found = words_.find(name);
    const bool given = found != words_.end();
    if constexpr (requires { value.has_value(); }) {
      if (given) read_part(name, found->second, value.emplace());
    } else if constexpr (std::is_same_v<T, PlannedMatrix>) {
      if (given) read_part(name, found->second, value);
    } else if (!given || !read_word(found->second, value)) {
      fault_ = name;
    }
    if (given) words_.erase(found);
  }

  // The first field that is missing, wrong or one too many; empty where there is none.
  [[nodiscard]] std::string fault() const {
    return fault_.empty() && !words_.empty() ? std::string(words_.begin()->first) : fault_;
  }

 private:
  // The visitors of parts take what they visit as constant; it is a part of the problem that is
  // being read.
  template <class Part>
  void read_part(const char* name, std::string_view text, Part& part) const {
    const auto values = split_at(text, ',');
    std::size_t next = 0;
    for_each_field(std::as_const(part), [&](const char*, const auto& value) {
      using T = std::remove_const_t<std::remove_reference_t<decltype(value)>>;
      if (next >= values.size() || !read_word(values[next], const_cast<T&>(value))) fault_ = name;
      ++next;
    });
    if (next != values.size()) fault_ = name;
  }

  mutable Words words_;
  mutable std::string fault_;
};

Refusal bad_row(std::size_t number, const char* field, const std::string& why) {
  return refuse(RefusalCode::file_error, "row ", number, ", field ", field, ": ", why);
}

Result<MeasuredTime> parse_row(std::string_view line, std::size_t number) {
  constexpr const char* names[] = {"card",          "commit",       "product", "lengths",
                                   "configuration", "microseconds", "chosen"};
  const auto f = split_at(line, '\t');
  if (f.size() != std::size(names)) {
    return refuse(RefusalCode::file_error, "row ", number, " has ", f.size(), " fields; ",
                  as_rule("a row has ", std::size(names), ", with tabs between"));
  }
  for (std::size_t i = 0; i < f.size(); ++i) {
    if (f[i].empty()) return bad_row(number, names[i], "it is empty");
  }
  MeasuredTime t{std::string(f[0]),   std::string(f[1]), std::string(f[2]),
                 std::string(f[3]),   std::string(f[4]), 0,
                 f.back() == "chosen"};
  if (!read_number(f[5], t.microseconds) || !(t.microseconds > 0) ||
      t.microseconds > kMostMicroseconds) {
    return bad_row(number, names[5],
                   "\"" + std::string(f[5]) + "\" is no time of a launch: more than 0 and " +
                       "at most " + format("%g", kMostMicroseconds));
  }
  if (!t.chosen && f.back() != "-") {
    return bad_row(number, names[6],
                   "\"" + std::string(f.back()) + "\" is neither \"chosen\" nor \"-\"");
  }
  return t;
}

}  // namespace

std::string configuration_text(const Plan& plan) {
  const tile::Raster& raster = plan.raster;
  return format("%s/%d/%s%d", plan.name().c_str(), plan.ctas, raster.along_m ? "m" : "n",
                raster.band);
}

Result<GemmProblem> parse_problem(std::string_view text) {
  Words words;
  for (const std::string_view each : split_at(text, ' ')) {
    const std::size_t equals = std::min(each.find('='), each.size());
    words[each.substr(0, equals)] = each.substr(std::min(equals + 1, each.size()));
  }
  GemmProblem problem;
  const ProblemReader reader(std::move(words));
  for_each_field_of(reader, problem);
  if (const std::string name = reader.fault(); !name.empty()) {
    return refuse(RefusalCode::file_error, "\"", name,
                  "\" is missing in the product, or is none of its fields and values");
  }
  if (problem_text(problem) != text) {
    return refuse(RefusalCode::file_error,
                  "the product is not written as the library writes it: \"", problem_text(problem),
                  "\"");
  }
  return problem;
}

std::string times_text(const std::vector<MeasuredTime>& times) {
  std::string text(kHeading);
  for (const MeasuredTime& t : times) {
    text += t.card + "\t" + t.commit + "\t" + t.product + "\t" + t.lengths + "\t" +
            t.configuration + "\t" + format("%.3f", t.microseconds) + "\t" +
            (t.chosen ? "chosen" : "-") + "\n";
  }
  return text;
}

Result<std::vector<MeasuredTime>> parse_times(std::string_view text) {
  if (!text.starts_with(kHeading)) {
    return refuse(RefusalCode::file_error, "it is no file of measured times: ",
                  as_rule("the first line of one names the fields card, commit, product, lengths, "
                          "configuration, microseconds and chosen"));
  }
  text.remove_prefix(kHeading.size());
  std::vector<MeasuredTime> times;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const auto row = parse_row(text.substr(0, end), times.size() + 1);
    if (!row) return row.refusal();
    times.push_back(*row);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return times;
}

bool same_product(const MeasuredTime& x, const MeasuredTime& y) {
  return x.card == y.card && x.product == y.product && x.lengths == y.lengths;
}

void put_times(std::vector<MeasuredTime>& times, const std::vector<MeasuredTime>& rows) {
  std::erase_if(times, [&](const MeasuredTime& t) { return same_product(t, rows.front()); });
  times.insert(times.end(), rows.begin(), rows.end());
}

}  // namespace warpwright
