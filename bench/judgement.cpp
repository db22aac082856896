#include "bench/judgement.h"

#include <algorithm>
#include <optional>

#include "warpwright/facts/format.h"
#include "warpwright/reference/cuda.h"
#include "warpwright/reference/tolerance.h"

namespace warpwright::bench {
namespace {

constexpr const char* kLibrary = "cuBLASLt";
constexpr const char* kReference = "a plain product in float64";

// What rounding may do to an element.
reference::Tolerance tolerance(const GemmOperands& o) {
  return {reference::lost_share(o, 1)};
}

// The norm of a right result's difference over its norm, at most. The bound of an element holds in
// the worst case and is wide for long sums; over all elements the error is far smaller, and a tile
// or a scale that is wrong stands out.
double relative_limit(const GemmOperands& o) {
  const reference::Sums sums = reference::sums_of(o);
  const auto rounding = [](DType t) {
    switch (t) {
      case DType::f32:
        return 1e-4;
      case DType::f16:
        return 0x1p-10;
      case DType::bf16:
        return 0x1p-8;
      case DType::e4m3:
        return 0x1p-4;
      default:
        return 0x1p-3;
    }
  };
  double limit = rounding(o.d.dtype);
  if (sums.narrow) limit += sums.promoted ? 2e-3 : 1e-2;
  if (sums.rounding.weights > 5e-2) limit += 5e-2;
  return o.epilogue.gated ? 2 * limit : limit;
}

// Why `found`, of a result made by `ours` compared with one by `theirs`, is beyond the limits of
// the product `o`, as a sentence; nothing when it is not.
std::optional<std::string> fault(const reference::Comparison& found, const GemmOperands& o,
                                 const std::string& ours, const std::string& theirs) {
  if (found.wrong == 0 && found.relative <= relative_limit(o)) return std::nullopt;
  if (found.wrong == 0) {
    return format(
        "the results differ, so nothing is timed: D of %s is %.3g from that of %s "
        "(norm of the difference over norm), more than %.3g",
        ours.c_str(), found.relative, theirs.c_str(), relative_limit(o));
  }
  return format(
      "the results differ, so nothing is timed: D[%lld, %lld, %lld] of %s is %.9g, "
      "and %.9g by %s; %lld elements are beyond the bound",
      static_cast<long long>(found.batch), static_cast<long long>(found.row),
      static_cast<long long>(found.column), ours.c_str(), found.ours, found.theirs, theirs.c_str(),
      static_cast<long long>(found.wrong));
}

std::int64_t elements(const GemmOperands& part) {
  return part.a.rows * part.b.rows * part.d.batch;
}

}  // namespace

Judge::Judge(const std::vector<GemmOperands>& sets, const std::vector<Parts>& parts,
             const Launch& library, cudaStream_t stream)
    : sets_(sets), parts_(parts), stream_(stream) {
  if (library) {
    run(library, sets_.size() - 1);
  } else {
    product_ = plain_product();
  }
}

std::string Judge::name() const {
  return product_ ? kReference : kLibrary;
}

double Judge::check(const Launch& launch, const std::string& who) const {
  run(launch, 0);
  const Result<double> error = compare_parts(0, product_.get(), who);
  if (!error) throw Failure{error.reason() + (product_ ? "" : who_is_right())};
  return *error;
}

// D is poisoned first: what nobody stores is NaN.
void Judge::run(const Launch& launch, std::size_t set) const {
  const MatrixView& d = sets_[set].d;
  require(cudaMemsetAsync(d.data, 0xff, static_cast<std::size_t>(span_bytes(d)), stream_),
          "filling D");
  require(launch(set, stream_));
  require(cudaStreamSynchronize(stream_), "multiplying");
}

std::shared_ptr<device::CudaBuffer> Judge::plain_product() const {
  std::int64_t count = 0;
  for (const GemmOperands& part : parts_.front()) count += elements(part);
  auto product = filled_memory(count * 4);
  auto* to = static_cast<float*>(product->data());
  for (const GemmOperands& part : parts_.front()) {
    require(reference::multiply_on_cuda(part, to, stream_));
    to += elements(part);
  }
  return product;
}

// The worst part's error of D in one of the sets, by the plain product, or without it by cuBLASLt's
// result; a refusal where it is beyond the limits.
Result<double> Judge::compare_parts(std::size_t set, const device::CudaBuffer* product,
                                    const std::string& who) const {
  const auto* right = product == nullptr ? nullptr : static_cast<const float*>(product->data());
  const char* by = product == nullptr ? kLibrary : kReference;
  const GemmOperands& whole = sets_[set];
  const std::string whose = who + (whole.groups ? ", in a group" : "");
  double worst = 0;
  for (const GemmOperands& part : parts_[set]) {
    const reference::Comparison found =
        require(reference::compare_on_cuda(part, sets_.back().d, right, tolerance(whole), stream_));
    if (const auto wrong = fault(found, whole, whose, by)) {
      return Refusal{RefusalCode::device_error, *wrong};
    }
    worst = std::max(worst, found.relative);
    if (right != nullptr) right += elements(part);
  }
  return worst;
}

std::string Judge::who_is_right() const {
  try {
    const auto product = plain_product();
    const bool ours = compare_parts(0, product.get(), "").ok();
    const bool theirs = compare_parts(sets_.size() - 1, product.get(), kLibrary).ok();
    const char* verdict = ours && theirs ? "both are right"
                          : ours         ? "ours is right and cuBLASLt's is not"
                          : theirs       ? "cuBLASLt's is right and ours is not"
                                         : "neither is right";
    return std::string("; by ") + kReference + " " + verdict;
  } catch (const Failure&) {
    return {};  // it does not fit beside the operands
  }
}

}  // namespace warpwright::bench
