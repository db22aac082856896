#include "cli/compute/check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/format.h"
#include "warpwright/facts/share.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/reference/product.h"
#include "warpwright/reference/verdict.h"

namespace warpwright::cli {
namespace {

// A task is one kTile x kTile tile of D. Each task's sums are its own, in an order that is fixed,
// so the result depends neither on how many threads there are nor on which of them takes which.
constexpr std::int64_t kTile = reference::most_of_tile;

// Rows and columns of D from `row` and `column` on, of one part of it.
struct Task {
  reference::Part part;
  std::int64_t row, column;
};

std::vector<Task> tasks_of(const GemmOperands& o) {
  std::vector<Task> tasks;
  for (const reference::Part& part : reference::parts_of(o)) {
    for (std::int64_t row = part.begin; row < part.end; row += kTile) {
      for (std::int64_t column = 0; column < o.d.columns; column += kTile) {
        tasks.push_back({part, row, column});
      }
    }
  }
  return tasks;
}

std::int64_t& count_of(CheckResult& result, reference::Kind kind) {
  switch (kind) {
    case reference::Kind::infinite:
      return result.infinite;
    case reference::Kind::nan:
      return result.nan;
    case reference::Kind::saturated:
      return result.saturated;
    default:
      return result.overflowed;
  }
}

// Notes one element and tells whether it is the worst so far.
bool note(CheckResult& result, const reference::Verdict& verdict, double got, double want) {
  if (!verdict.passed) ++result.failures;
  if (verdict.kind != reference::Kind::finite) {
    ++count_of(result, verdict.kind);
    return false;
  }
  if (result.worst_row >= 0 && !(verdict.ratio > result.worst_ratio)) return false;
  result.worst_ratio = verdict.ratio;
  result.worst_error = verdict.error;
  result.worst_allowed = verdict.allowed;
  result.worst_got = got;
  result.worst_want = want;
  return true;
}

// Judges elements of a row of D that share a scale, where D has scales.
class Judged {
 public:
  /// `scale_row`: of `row`'s scales, where they lie in tiles.
  Judged(const GemmOperands& o, std::int64_t batch, std::int64_t row, std::int64_t scale_row,
         std::int64_t block, std::span<const reference::Expected> due)
      : d_(o.d.dtype), way_(o.epilogue.quantise) {
    if (way_ == QuantiseD::none) return;
    if (is_micro(way_)) {
      const QuantisedForm form = form_of(way_);
      const auto* const codes = static_cast<const std::uint8_t*>(o.d_scales.data);
      const std::uint8_t code = codes[batch * o.d_scales.batch_stride +
                                      block_scales::place(scale_row, block, o.d_scales.row_stride)];
      const auto* const tensor = static_cast<const float*>(o.scale_d.data);
      const float of_all = tensor == nullptr ? 1.0F : *tensor;
      scale_ = numeric::to_double(form.scale, code) * static_cast<double>(of_all);
      has_scale_ = reference::is_micro_scale_of(way_, code, of_all, due);
      return;
    }
    scale_ = reference::element(o.d_scales, batch, row, block);
    has_scale_ = reference::is_scale_of(scale_, due);
  }
  [[nodiscard]] double scale() const { return scale_; }
  [[nodiscard]] reference::Verdict verdict(double code, const reference::Expected& want) const {
    if (way_ == QuantiseD::none) return reference::judge(d_, code, want);
    if (has_scale_ && is_micro(way_)) return reference::judge_micro_code(d_, code, scale_, want);
    if (has_scale_) return reference::judge_code(code, scale_, want);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return {.passed = false, .error = infinity, .allowed = 0, .ratio = infinity};
  }

 private:
  DType d_;
  QuantiseD way_;
  double scale_ = 1;
  bool has_scale_ = true;
};

// Judges a tile of D; `due` is a thread's own.
CheckResult check_tile(const GemmOperands& o, const Task& task, reference::Tile& due) {
  const auto& [batch, group, begin, end] = task.part;
  const std::int64_t rows = std::min(kTile, end - task.row);
  const std::int64_t columns = std::min(kTile, o.d.columns - task.column);
  due.compute(batch, group, task.row, task.column, rows, columns);
  CheckResult result;
  result.elements = rows * columns;
  // A tile's columns share scales of a D that has some, all of them or a few.
  static_assert(kTile == scale_block);
  const std::int64_t together = form_of(o.epilogue.quantise).columns;
  const bool groups_apart = o.groups && is_micro(o.epilogue.quantise);
  const std::int64_t to_scales =
      groups_apart ? reference::first_scale_row(o, group) - reference::rows_of_group(o, group).begin
                   : 0;
  std::vector<reference::Expected> row(static_cast<std::size_t>(columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) row[static_cast<std::size_t>(j)] = due.at(i, j);
    std::optional<Judged> block;
    for (std::int64_t j = 0; j < columns; ++j) {
      if (j % together == 0) {
        const auto count = static_cast<std::size_t>(std::min(together, columns - j));
        block.emplace(o, batch, task.row + i, task.row + i + to_scales,
                      (task.column + j) / together,
                      std::span(row).subspan(static_cast<std::size_t>(j), count));
      }
      const Judged& judged = *block;
      const double code = reference::element(o.d, batch, task.row + i, task.column + j);
      const reference::Expected& want = row[static_cast<std::size_t>(j)];
      const double got = code * judged.scale();
      if (!note(result, judged.verdict(code, want), got, want.value)) continue;
      result.worst_batch = batch;
      result.worst_row = task.row + i;
      result.worst_col = task.column + j;
    }
  }
  return result;
}

// Adds what was found in a part of D, whose places are those of D. Among equally bad elements the
// first in row-major order stays, whichever part comes first.
void merge(CheckResult& total, const CheckResult& part) {
  total.elements += part.elements;
  total.failures += part.failures;
  total.infinite += part.infinite;
  total.nan += part.nan;
  total.saturated += part.saturated;
  total.overflowed += part.overflowed;
  total.passed = total.failures == 0;
  if (part.worst_row < 0) return;
  const auto place = [](const CheckResult& r) {
    return std::tuple(r.worst_batch, r.worst_row, r.worst_col);
  };
  const bool is_earlier = place(part) < place(total);
  const bool is_worse =
      part.worst_ratio > total.worst_ratio || (part.worst_ratio == total.worst_ratio && is_earlier);
  if (total.worst_row >= 0 && !is_worse) return;
  total.worst_batch = part.worst_batch;
  total.worst_row = part.worst_row;
  total.worst_col = part.worst_col;
  total.worst_ratio = part.worst_ratio;
  total.worst_error = part.worst_error;
  total.worst_allowed = part.worst_allowed;
  total.worst_got = part.worst_got;
  total.worst_want = part.worst_want;
}

void require(bool is_legal, const char* operand, DType dtype, const std::string& rule) {
  if (is_legal) return;
  throw InputError(std::string("Matrix ") + operand + " of type " +
                   std::string(numeric::word(dtype)) +
                   " cannot be checked: " + as_rule("the types are ", rule) + ".");
}

void require_checkable(const GemmOperands& o) {
  const auto is_number = [](DType t) { return is_operand_type(t) || is_result_type(t); };
  const std::string rule = listed(all_types, is_result_type, ", ", " and ");
  const std::string operands = listed(all_types, is_number, ", ", " and ");
  if (o.a.rows < 0 || o.b.rows < 0 || o.a.columns < 0 || o.d.batch < 0) {
    throw InputError("A GEMM of " + std::to_string(o.a.rows) + " x " + std::to_string(o.b.rows) +
                     " x " + std::to_string(o.a.columns) +
                     " cannot be checked: " + as_rule("no extent may be below 0") + ".");
  }
  const auto is_operand = [&](DType t) {
    return is_number(t) || (is_micro_element(t) && scales_elements(o.scaling));
  };
  require(is_operand(o.a.dtype), "A", o.a.dtype, operands);
  require(o.packed || is_operand(o.b.dtype), "B", o.b.dtype, operands);
  if (beta_of(o) != 0) require(is_result_type(o.c.dtype), "C", o.c.dtype, rule);
  require(is_result_type(o.d.dtype) || is_micro(o.epilogue.quantise), "D", o.d.dtype, rule);
  const bool narrow = o.packed || (numeric::is_8bit(o.a.dtype) && numeric::is_8bit(o.b.dtype));
  if (o.scaling != Scaling::none && !scales_elements(o.scaling) && !narrow) {
    throw InputError("A scaled product of " + std::string(numeric::word(o.a.dtype)) +
                     " cannot be checked: " + as_rule("scales belong to operands of 8 bits") + ".");
  }
}

}  // namespace

CheckResult check_gemm(const GemmOperands& o, const CheckSettings& settings) {
  require_checkable(o);
  const std::vector<Task> tasks = tasks_of(o);
  const auto count = static_cast<std::int64_t>(tasks.size());
  CheckResult total;
  total.batch = o.d.batch;
  total.dtype = o.d.dtype;
  std::int64_t done = 0;
  std::mutex mutex;
  share(count, settings.threads, [&](int /*worker*/) {
    return [&, due = reference::Tile(o, settings.accumulator_epsilon)](std::int64_t i) mutable {
      const CheckResult part = check_tile(o, tasks[static_cast<std::size_t>(i)], due);
      const std::lock_guard lock(mutex);
      merge(total, part);
      ++done;
      if (settings.progress) {
        settings.progress(static_cast<double>(done) / static_cast<double>(count));
      }
    };
  });
  return total;
}

// The largest finite number of D's type, for a reader.
static std::string largest(DType type) {
  return format("%.4g", numeric::format_of(type).max());
}

std::string describe(const CheckResult& result, const std::string& name) {
  if (result.elements == 0) return name + " has no elements, so there is nothing to check.";
  const auto number = [](double x) { return format("%.9g", x); };
  const std::string count = std::to_string(result.elements);
  // The elements without a distance, each kind with what was asked of it.
  const std::string type(numeric::word(result.dtype));
  const std::string beyond = "beyond " + type + "'s largest number, " + largest(result.dtype);
  std::string special;
  std::int64_t others = result.elements;
  const auto tell = [&](std::int64_t how_many, const std::string& are) {
    if (how_many == 0) return;
    others -= how_many;
    special += (special.empty() ? ": " : ", ") + std::to_string(how_many) +
               (how_many == 1 ? " is " : " are ") + are;
  };
  tell(result.infinite, "infinite as float64 is " + beyond);
  tell(result.saturated,
       type + "'s largest number, " + largest(result.dtype) + ", as float64 is beyond");
  tell(result.nan, "NaN as float64 is");
  tell(result.overflowed, "infinite or NaN where float32 may overflow on the way");
  if (result.passed && others == 0) return "All " + count + " elements are right" + special + ".";
  const std::string place =
      name + "[" + (result.batch > 1 ? std::to_string(result.worst_batch) + ", " : std::string()) +
      std::to_string(result.worst_row) + ", " + std::to_string(result.worst_col) + "]";
  std::string text;
  if (result.passed) {
    text = "All " + count + " elements are right" + special + "; the worst" +
           (special.empty() ? "" : " of the others") + ", " + place + ",";
  } else if (result.failures == 1) {
    text = "1 of " + count + " elements is wrong: " + place;
  } else {
    text = std::to_string(result.failures) + " of " + count + " elements are wrong; the worst, " +
           place + ",";
  }
  text += " is " + number(result.worst_got) + " where " + number(result.worst_want) + " is due";
  if (std::isinf(result.worst_ratio)) return text + ".";
  return text + ": off by " + number(result.worst_error) + ", allowed are " +
         number(result.worst_allowed) + ".";
}

}  // namespace warpwright::cli
