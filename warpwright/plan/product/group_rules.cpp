// The rules of the groups of a product: how many they are, and what a caller may expect of them.
#include <charconv>
#include <string>
#include <string_view>

#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

constexpr float kMostZipf = 8;

// A whole word that is such an exponent; a negative number where it is none.
float zipf_of(std::string_view word) {
  double zipf = -1;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, zipf);
  return error == std::errc{} && stop == end && zipf <= kMostZipf ? static_cast<float>(zipf) : -1;
}

}  // namespace

std::optional<Refusal> groups_fault(const GemmProblem& p) {
  if (p.group_count() < 0 || p.group_count() > max_extent) {
    return refuse(RefusalCode::bad_shape, "the number of groups is ", p.group_count(),
                  "; the nearest legal value is ",
                  as_nearest(p.group_count() < 0 ? 1 : max_extent));
  }
  if (!p.groups) return std::nullopt;
  if (p.batch() != 1) {
    return refuse(RefusalCode::bad_shape, "the batch has a length of ", p.batch(),
                  ", and the rows fall into groups: the nearest legal length is ", as_nearest("1"));
  }
  const Groups& g = *p.groups;
  if (g.rows_divisor < 0) {
    return refuse(RefusalCode::bad_value, "rows_divisor is ", g.rows_divisor, "; ",
                  as_rule("0 leaves the index of rows out"), ": the nearest legal value is ",
                  as_nearest(0));
  }
  if (p.is_by_index() && p.a.rows > max_extent) {
    return refuse(RefusalCode::bad_shape, as_tensor("A"), " has ", p.a.rows, " rows; ",
                  as_rule("coordinates have 32 bits"), ": the nearest legal number is ",
                  as_nearest(max_extent));
  }
  constexpr std::int64_t longest = std::int64_t{1} << 36;  // bytes, of 2^32 pieces of 16
  const std::int64_t pitch = std::max<std::int64_t>(p.a.row_stride * element_bytes(p.a.dtype), 1);
  if (p.is_by_index() && p.a.rows > longest / pitch) {
    return refuse(RefusalCode::bad_shape, as_tensor("A"), " has ", p.a.rows, " rows, ", pitch,
                  " bytes apart; ", as_rule("rows by index lie in at most 64 GiB"),
                  ": the nearest legal number is ", as_nearest(longest / pitch));
  }
  if (!(g.expected_tokens >= 0)) {
    return refuse(RefusalCode::bad_value,
                  "the expected tokens of a group are negative or no number; ",
                  as_rule("0 leaves them open"));
  }
  if (g.expected_lengths > LengthSpread::equal) {
    return refuse(RefusalCode::bad_value, "expected_lengths is ",
                  static_cast<int>(g.expected_lengths), "; ",
                  as_rule("it must be routed (0) or equal (1)"), ": the nearest legal is ",
                  as_nearest("equal"));
  }
  if (!(g.expected_zipf >= 0 && g.expected_zipf <= kMostZipf)) {
    return refuse(RefusalCode::bad_value,
                  "expected_zipf is negative, above 8 or no number; the nearest legal is ",
                  as_nearest(g.expected_zipf > kMostZipf ? 8 : 0));
  }
  return std::nullopt;
}

std::optional<Refusal> expect_lengths(Groups& groups, std::string_view name,
                                      std::string_view words) {
  constexpr std::string_view ranked = "zipf:";
  const float zipf = words.starts_with(ranked) ? zipf_of(words.substr(ranked.size())) : 0;
  const bool is_ranked = words.starts_with(ranked) && zipf >= 0;
  if (words != "equal" && words != "routed" && !is_ranked) {
    return refuse(RefusalCode::bad_value, std::string(name), " is \"", std::string(words), "\"; ",
                  as_rule("it must be equal, routed, or zipf:S with S from 0 to 8"),
                  ": the nearest legal is ", as_nearest("routed"));
  }
  groups.expected_lengths = words == "equal" ? LengthSpread::equal : LengthSpread::routed;
  groups.expected_zipf = zipf;
  return std::nullopt;
}

}  // namespace warpwright
