#include "warpwright/simulation/trial.h"

#include <cstring>
#include <utility>

#include "warpwright/simulation/model_parts.h"
#include "warpwright/simulation/moe.h"

namespace warpwright::device {
namespace {

std::size_t bytes_of(const MatrixView& v) {
  if (v.rows == 0 || v.columns == 0) return 0;
  const std::int64_t elements = (v.batch - 1) * v.batch_stride + (v.rows - 1) * v.row_stride +
                                (v.columns - 1) * v.column_stride + 1;
  return static_cast<std::size_t>(elements) * numeric::bits(v.dtype) / 8;
}

// Is D also an input?
bool is_in_place(const GemmOperands& o) {
  return o.c.data == o.d.data;
}

// Memory for a tensor that is written, as aligned as the caller's.
class OwnTensor {
 public:
  explicit OwnTensor(const MatrixView& from)
      : from_(from), bytes_(bytes_of(from)), storage_(bytes_ + 256) {
    constexpr std::uintptr_t line = 128;
    const auto wanted = reinterpret_cast<std::uintptr_t>(from.data) % line;
    const auto base = reinterpret_cast<std::uintptr_t>(storage_.data());
    data_ = storage_.data() + ((wanted + line - base % line) % line);
  }
  OwnTensor(OwnTensor&&) = default;

  void copy() { std::memcpy(data_, from_.data, bytes_); }
  /// NaN, so that a missing element is seen.
  void poison() { std::memset(data_, 0xff, bytes_); }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] const std::byte* end() const { return data_ + bytes_; }

 private:
  MatrixView from_;
  std::size_t bytes_;
  std::vector<std::byte> storage_;
  std::byte* data_ = nullptr;
};

// Memory for a result: D, and its scales where it is quantised.
class OwnResult {
 public:
  explicit OwnResult(const GemmOperands& operands)
      : operands_(operands), d_(operands.d), scales_(operands.d_scales) {}

  /// What C brings, or NaN.
  void refresh() {
    if (is_in_place(operands_)) {
      d_.copy();
    } else {
      d_.poison();
    }
    scales_.poison();
  }
  /// The operands, with their result here.
  [[nodiscard]] GemmOperands operands() const {
    GemmOperands there = operands_;
    there.d.data = d_.data();
    if (there.is_quantised()) there.d_scales.data = scales_.data();
    if (is_in_place(operands_)) there.c.data = d_.data();
    return there;
  }
  [[nodiscard]] std::vector<std::byte> content() const {
    std::vector<std::byte> all(static_cast<const std::byte*>(d_.data()), d_.end());
    all.insert(all.end(), static_cast<const std::byte*>(scales_.data()), scales_.end());
    return all;
  }

 private:
  const GemmOperands& operands_;
  OwnTensor d_, scales_;
};

// A plan with its operands, and what is launched behind it.
struct ProductSubject final : Subject {
  const Plan& plan;
  const GemmOperands& operands;
  std::function<Judged(const GemmOperands& done)> right;
  bool check_offsets = false;
  bool zero_rest = false;
  const SecondProduct* second = nullptr;

  ProductSubject(const Plan& plan_, const GemmOperands& operands_, const CheckOptions& options)
      : plan(plan_),
        operands(operands_),
        right(options.right),
        check_offsets(options.check_offsets),
        zero_rest(options.zero_rest),
        second(options.second) {}

  [[nodiscard]] std::unique_ptr<Trial> trial() const override;
  [[nodiscard]] std::optional<Refusal> disorder() const override {
    return device::disorder(operands);
  }
};

class ProductTrial final : public Trial {
 public:
  explicit ProductTrial(const ProductSubject& subject)
      : subject_(subject), first_(subject.operands) {
    if (subject.second != nullptr) second_.emplace(subject.second->operands);
  }

  Result<model::Report> run(ModelOptions options) override {
    first_.refresh();
    // A second launch would start from the first one's D.
    if (is_in_place(subject_.operands)) options.launches = 1;
    GemmOperands behind;
    if (second_) {
      second_->refresh();
      behind = second_->operands();
      options.second = FollowingProduct{&subject_.second->plan, &behind};
    }
    options.zero_rest = subject_.zero_rest;
    std::uint32_t status = 0;
    std::uint64_t rows = 0;
    if (subject_.check_offsets) {
      options.offsets_status = &status;
      options.rows_status = &rows;
    }
    Result<model::Report> report = report_on_model(subject_.plan, first_.operands(), options);
    const std::uint32_t due = subject_.check_offsets ? disorder_status(subject_.operands) : 0;
    if (report && report->clean() && status != due && subject_.plan.ctas > 0) {
      model::Report told = *report;
      told.findings.push_back(wrong_status(status, due));
      return told;
    }
    // Rows of groups out of order are nobody's.
    const std::uint64_t rows_due =
        subject_.check_offsets && due == 0 ? stray_status(subject_.operands) : rows;
    if (report && report->clean() && rows != rows_due && subject_.plan.ctas > 0) {
      model::Report told = *report;
      told.findings.push_back(wrong_rows(rows, rows_due));
      return told;
    }
    return report;
  }

  [[nodiscard]] int results() const override { return second_ ? 2 : 1; }
  [[nodiscard]] ResultName name(int which) const override {
    return {which == 0 ? "D" : "D of the second product", "product"};
  }
  [[nodiscard]] std::vector<std::byte> content(int which) const override {
    return (which == 0 ? first_ : *second_).content();
  }
  [[nodiscard]] std::optional<Judged> is_right(int which) const override {
    const auto& right = which == 0 ? subject_.right : subject_.second->right;
    if (!right) return std::nullopt;
    return right((which == 0 ? first_ : *second_).operands());
  }
  [[nodiscard]] bool is_judged() const override { return static_cast<bool>(subject_.right); }

 private:
  [[nodiscard]] model::Finding wrong_rows(std::uint64_t status, std::uint64_t due) const {
    const auto said = [this](std::uint64_t s) {
      return rows_fault(s, subject_.plan.problem).value_or("all name rows of A");
    };
    return {.check = model::Check::wrong_result,
            .sentence = "the check of the numbers of tokens says: " + said(status) +
                        "; it must say: " + said(due),
            .site = {}};
  }
  static model::Finding wrong_status(std::uint32_t status, std::uint32_t due) {
    const auto said = [](std::uint32_t s) {
      return offsets_fault(s).value_or("they are in order");
    };
    return {.check = model::Check::wrong_result,
            .sentence = "the kernel's check of the offsets says: " + said(status) +
                        "; it must say: " + said(due),
            .site = {}};
  }

  const ProductSubject& subject_;
  OwnResult first_;
  std::optional<OwnResult> second_;
};

std::unique_ptr<Trial> ProductSubject::trial() const {
  return std::make_unique<ProductTrial>(*this);
}

struct MixtureSubject final : Subject {
  const MixturePlan& plan;
  const MixtureOperands& operands;
  std::function<Judged(const MixtureOperands& done)> right;

  MixtureSubject(const MixturePlan& plan_, const MixtureOperands& operands_,
                 std::function<Judged(const MixtureOperands& done)> right_)
      : plan(plan_), operands(operands_), right(std::move(right_)) {}

  [[nodiscard]] std::unique_ptr<Trial> trial() const override;
};

class MixtureTrial final : public Trial {
 public:
  explicit MixtureTrial(const MixtureSubject& subject)
      : subject_(subject), d_(subject.operands.d) {}

  Result<model::Report> run(ModelOptions options) override {
    if (is_in_place()) {
      d_.copy();
      options.launches = 1;  // a second one would start from the first one's d
    } else {
      d_.poison();
    }
    return launch_on_model(subject_.plan, operands(), options);
  }

  [[nodiscard]] int results() const override { return 1; }
  [[nodiscard]] ResultName name(int /*which*/) const override { return {"d", "mixture"}; }
  [[nodiscard]] std::vector<std::byte> content(int /*which*/) const override {
    return {static_cast<const std::byte*>(d_.data()), d_.end()};
  }
  [[nodiscard]] std::optional<Judged> is_right(int /*which*/) const override {
    if (!subject_.right) return std::nullopt;
    return subject_.right(operands());
  }
  [[nodiscard]] bool is_judged() const override { return static_cast<bool>(subject_.right); }

 private:
  [[nodiscard]] bool is_in_place() const {
    return subject_.operands.x.data == subject_.operands.d.data;
  }
  // With the result here.
  [[nodiscard]] MixtureOperands operands() const {
    MixtureOperands there = subject_.operands;
    there.d.data = d_.data();
    if (is_in_place()) there.x.data = d_.data();
    return there;
  }

  const MixtureSubject& subject_;
  OwnTensor d_;
};

std::unique_ptr<Trial> MixtureSubject::trial() const {
  return std::make_unique<MixtureTrial>(*this);
}

}  // namespace

Subject::~Subject() = default;

std::unique_ptr<Trial> Subject::edited(std::size_t /*which*/) const {
  return trial();
}

std::unique_ptr<Subject> product_subject(const Plan& plan, const GemmOperands& operands,
                                         const CheckOptions& options) {
  return std::make_unique<ProductSubject>(plan, operands, options);
}

std::unique_ptr<Subject> mixture_subject(const MixturePlan& plan, const MixtureOperands& operands,
                                         std::function<Judged(const MixtureOperands& done)> right) {
  return std::make_unique<MixtureSubject>(plan, operands, std::move(right));
}

}  // namespace warpwright::device
