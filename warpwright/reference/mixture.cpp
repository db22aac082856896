#include "warpwright/reference/mixture.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "warpwright/facts/e4m3_scale.h"
#include "warpwright/facts/micro_scale.h"
#include "warpwright/facts/share.h"
#include "warpwright/numeric/bulk.h"
#include "warpwright/reference/formulas.h"
#include "warpwright/reference/operand.h"
#include "warpwright/reference/tolerance.h"

namespace warpwright::reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A value, and how far a kernel's may be off.
struct Inexact {
  double value = 0;
  double error = 0;
};

// The largest of the finite ones among elements [first, end) of a row, errors and all.
double largest_of(const std::vector<Inexact>& row, std::size_t first, std::size_t end) {
  double largest = 0;
  for (std::size_t i = first; i < end; ++i) {
    if (std::isfinite(row[i].value)) {
      largest = std::max(largest, std::abs(row[i].value) + row[i].error);
    }
  }
  return largest;
}

// Half a unit in the last place, as a share of the value, and what may be lost of subnormals.
double rounding_of(DType type) {
  return type == DType::f32 ? 0x1p-24 : type == DType::f16 ? 0x1p-11 : 0x1p-8;
}

Inexact rounded(Inexact x, DType type) {
  x.error +=
      (std::abs(x.value) + x.error) * rounding_of(type) + (type == DType::f16 ? 0x1p-25 : 0x1p-126);
  return x;
}

// Elements of a row that share a scale.
std::size_t scale_width(const MixtureOperands& o, std::size_t columns) {
  return o.scaling == Scaling::blockwise ? static_cast<std::size_t>(o.scale_block()) : columns;
}

// The values that e4m3 codes of x stand for, with a scale each so many.
void quantise_row(std::vector<double>& x, std::size_t each) {
  for (std::size_t first = 0; first < x.size(); first += each) {
    const std::size_t end = std::min(x.size(), first + each);
    float largest = 0;
    for (std::size_t i = first; i < end; ++i) {
      largest = std::max(largest, finite_magnitude(static_cast<float>(x[i])));
    }
    const float scale = e4m3_scale(largest);
    for (std::size_t i = first; i < end; ++i) {
      const auto value = static_cast<float>(x[i]);
      const float quotient = unless_infinite(value / scale, value);
      if (std::isnan(quotient)) {
        x[i] = kNan;
        continue;
      }
      std::uint8_t code = 0;
      numeric::narrow(&quotient, &code, 1, DType::e4m3, numeric::Overflow::saturate);
      x[i] = numeric::to_double(DType::e4m3, code) * static_cast<double>(scale);
    }
  }
}

// The same of codes whose scales the tensor core multiplies, by the recipe of kernels, bit for bit.
template <DType element, DType scale>
void quantise_micro(std::vector<double>& x, float tensor) {
  constexpr auto each = static_cast<std::size_t>(micro_block(scale));
  for (std::size_t first = 0; first < x.size(); first += each) {
    const std::size_t end = std::min(x.size(), first + each);
    std::uint32_t largest = 0;
    for (std::size_t i = first; i < end; ++i) {
      largest = micro::larger(largest, micro::magnitude(static_cast<float>(x[i]), element));
    }
    const auto by = micro::Block<element, scale>::of(largest, tensor);
    for (std::size_t i = first; i < end; ++i) {
      const std::uint32_t code =
          by.clears() ? 0 : micro::code(element, by.scaled(static_cast<float>(x[i])));
      x[i] = numeric::to_double(element, code) * numeric::to_double(scale, by.scale) *
             static_cast<double>(tensor);
    }
  }
}

void quantise_micro(std::vector<double>& x, DType element, DType scale, float tensor) {
  if (scale == DType::ue4m3) return quantise_micro<DType::e2m1, DType::ue4m3>(x, tensor);
  if (element == DType::e2m1) return quantise_micro<DType::e2m1, DType::ue8m0>(x, 1);
  quantise_micro<DType::e4m3, DType::ue8m0>(x, 1);
}

// What that may change, also where a value in doubt takes its block's scale to a neighbour: half a
// step of a code; for ue4m3 scales what their own steps and their end cost.
void micro_bound(std::vector<Inexact>& row, DType element, DType scale, double tensor) {
  const auto each = static_cast<std::size_t>(micro_block(scale));
  const numeric::FloatFormat f = numeric::format_of(element);
  const bool powers = scale == DType::ue8m0;
  const double top = element == DType::e2m1 ? 6 : largest_e4m3;
  const double half_step = std::ldexp(0.5, -f.mantissa_bits);
  const double least_half = std::ldexp(0.5, f.min_exponent() - f.mantissa_bits);
  for (std::size_t first = 0; first < row.size(); first += each) {
    const std::size_t end = std::min(row.size(), first + each);
    const double largest = largest_of(row, first, end);
    const bool is_lost = !micro::has_nan(element) &&
                         std::any_of(row.begin() + static_cast<std::ptrdiff_t>(first),
                                     row.begin() + static_cast<std::ptrdiff_t>(end),
                                     [](const Inexact& x) { return !std::isfinite(x.value); });
    const double unit = powers ? 2 * largest / top : 1.0625 * largest / top + tensor * 0x1p-10;
    const double saturated = powers ? 0 : 6 * tensor * 0x1p-10;
    for (std::size_t i = first; i < end; ++i) {
      if (is_lost || !std::isfinite(row[i].value)) {
        row[i].value = kNan;
        continue;
      }
      const double size = std::abs(row[i].value) + row[i].error;
      const double beyond = powers ? 0 : std::max(0.0, size - 6 * 448 * tensor);
      row[i].error += std::max(size * half_step, unit * least_half) + saturated + beyond;
    }
  }
}

// What quantising may change of these: half a step of e4m3, whose steps end at a scale's 2^-9.
void quantise_bound(std::vector<Inexact>& row, std::size_t each) {
  for (std::size_t first = 0; first < row.size(); first += each) {
    const std::size_t end = std::min(row.size(), first + each);
    const double largest = largest_of(row, first, end);
    for (std::size_t i = first; i < end; ++i) {
      if (!std::isfinite(row[i].value)) row[i].value = kNan;
      const double size = std::abs(row[i].value) + row[i].error;
      row[i].error += std::max(size * 0x1p-4, largest / largest_e4m3 * 0x1p-10);
    }
  }
}

// The weights of one of the products.
class Weights {
 public:
  Weights(const MixtureOperands& o, const MatrixView& w, const std::optional<PackedWeights>& form,
          const MatrixView& scales, const MatrixView& factor, bool gated)
      : depth_(static_cast<std::size_t>(w.columns)) {
    like_.a = {nullptr, o.token_type(), 1, w.columns, w.columns};
    like_.b = w;
    like_.packed = form;
    like_.scaling = o.scaling;
    if (o.scaling != Scaling::none) like_.scale_b = scales;
    if (o.is_micro()) like_.scale_a.dtype = scales.dtype;
    like_.epilogue.gated = gated && o.is_gated;
    like_.epilogue.interleaved = gated && o.interleaved;
    like_.factor_b = factor;
    lost_ = lost_share(like_, 8);
  }

  // Row n of an expert, with its scales.
  [[nodiscard]] std::vector<double> row(std::int64_t expert, std::int64_t n) const {
    std::vector<float> codes(depth_);
    Operand(like_, Side::b)
        .read(0, expert, n, 1, 0, like_.b.columns, codes.data(), like_.b.columns);
    std::vector<double> w(codes.begin(), codes.end());
    if (scales_elements(like_.scaling)) {  // the scales are in them
      const double factor = factor_of_sums(like_, expert);
      for (double& x : w) x *= factor;
      return w;
    }
    if (like_.scale_b.data == nullptr) return w;
    for (std::size_t k = 0; k < depth_; ++k) {
      w[k] *= scale_of(like_, Side::b, 0, expert, n, static_cast<std::int64_t>(k));
    }
    return w;
  }
  // What a sum of their products may lose, as a share of what it adds.
  [[nodiscard]] double lost() const { return lost_; }

 private:
  GemmOperands like_;
  std::size_t depth_;
  double lost_ = 0;
};

// The mixture of one token, by so many threads (0: as many as the machine has).
class Token {
 public:
  Token(const MixtureOperands& o, std::int64_t token, bool gates_behind, int threads)
      : o_(o),
        token_(token),
        threads_(threads),
        gates_behind_(gates_behind || warpwright::gates_behind(o.activation)),
        w13_(o, o.w13, o.packed13, o.scale_w13, o.factor_w13, true),
        w2_(o, o.w2, o.packed2, o.scale_w2, o.factor_w2, false) {
    x_.resize(static_cast<std::size_t>(o.hidden()));
    for (std::int64_t k = 0; k < o.hidden(); ++k) x_[at(k)] = element(o.x, 0, token, k);
    if (o.apply_router_weight_on_input) {
      const auto weight = static_cast<float>(element(o.topk_weights, 0, token, 0));
      for (double& x : x_) {
        x = reference::rounded(o.x.dtype, static_cast<double>(weight * static_cast<float>(x)));
      }
    }
    if (o.has_codes()) {
      const std::int64_t own = o.scale_x.rows == 1 ? 0 : token;
      const bool blocks = o.scaling == Scaling::blockwise;
      for (std::int64_t k = 0; k < o.hidden(); ++k) {
        x_[at(k)] *= element(o.scale_x, 0, own, blocks ? k / o.scale_block() : 0);
      }
    } else if (o.is_micro()) {
      quantise_micro(x_, o.token_type(), o.micro_scale(), factor(o.factor_x));
    } else if (o.quantises()) {
      quantise_row(x_, scale_width(o, x_.size()));
    }
  }

  // What its slots [first, end) give.
  [[nodiscard]] MixtureRow row(std::int64_t first, std::int64_t end) const {
    std::vector<Inexact> sum(x_.size());
    for (std::int64_t j = first; j < end; ++j) {
      const std::int64_t expert = local_expert(j);
      if (expert < 0) continue;
      const double weight = static_cast<double>(o_.routed_scaling_factor) *
                            (o_.weighs_results() ? element(o_.topk_weights, 0, token_, j) : 1.0);
      const std::vector<Inexact> inner = gated(expert);
      each(o_.hidden(), [&](std::int64_t n) {
        const Inexact y = rounded(down(expert, inner, n), o_.row_type());
        Inexact& s = sum[at(n)];
        s.value += weight * y.value;
        s.error += std::abs(weight) * (y.error + std::abs(y.value) * 0x1p-20);
      });
    }
    MixtureRow made;
    for (std::int64_t n = 0; n < o_.hidden(); ++n) {
      Inexact& s = sum[at(n)];
      if (is_given(o_.shared_output)) {
        s.value += element(o_.shared_output, 0, token_, n);
        s = rounded(s, DType::f32);
      }
      const Inexact d = rounded(s, o_.d.dtype);
      made.want.push_back(d.value);
      made.allowed.push_back(d.error);
    }
    return made;
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  template <class Work>
  void each(std::int64_t count, const Work& work) const {
    share(count, threads_, [&](int) { return work; });
  }
  // A tensor's scale; 1 where there is none.
  static float factor(const MatrixView& v) {
    return is_given(v) ? static_cast<float>(element(v, 0, 0, 0)) : 1.0F;
  }

  // -1: the slot is left out.
  [[nodiscard]] std::int64_t local_expert(std::int64_t j) const {
    if (!o_.is_routed()) return 0;
    const std::int64_t place = token_ * o_.topk_ids.row_stride + j;
    const std::int64_t id = o_.id_type == OffsetType::int64
                                ? word_at<std::int64_t>(o_.topk_ids.data, place)
                                : word_at<std::int32_t>(o_.topk_ids.data, place);
    const std::int64_t expert = id - o_.first_expert;
    const bool here = id >= 0 && id < o_.total() && expert >= 0 && expert < o_.experts();
    return here ? expert : -1;
  }

  [[nodiscard]] static double bias(const MatrixView& v, std::int64_t expert, std::int64_t n) {
    return is_given(v) ? element(v, expert, n, 0) : 0.0;
  }

  [[nodiscard]] Inexact up(std::int64_t expert, std::int64_t n) const {
    double sum = 0;
    double size = 0;
    const std::vector<double> w = w13_.row(expert, n);
    for (std::int64_t k = 0; k < o_.hidden(); ++k) {
      const double term = x_[at(k)] * w[at(k)];
      sum += term;
      size += std::abs(term);
    }
    return {sum + bias(o_.bias13, expert, n), size * w13_.lost()};
  }

  [[nodiscard]] Inexact before_gate(const Inexact& v) const {
    return gates_behind_ ? rounded(v, o_.row_type()) : v;
  }

  [[nodiscard]] std::vector<Inexact> gated(std::int64_t expert) const {
    const ActivationForm form = form_of(o_.activation, o_.gate);
    std::vector<Inexact> inner(at(o_.inner()));
    each(o_.inner(), [&](std::int64_t n) {
      if (!o_.is_gated) {
        const Inexact u = up(expert, n);
        const Bounded<double> d = activated<Roundings::counted, double>(form, {u.value, u.error});
        inner[at(n)] = rounded({d.value, d.bound}, o_.row_type());
        return;
      }
      const Inexact g = before_gate(up(expert, o_.interleaved ? 2 * n : n));
      const Inexact u = before_gate(up(expert, o_.interleaved ? 2 * n + 1 : n + o_.inner()));
      const Bounded<double> d = reference::gated<Roundings::counted, double>(
          form, {g.value, g.error}, {u.value, u.error}, 1);
      inner[at(n)] = rounded({d.value, d.bound}, o_.row_type());
    });
    if (o_.is_micro()) {
      micro_bound(inner, o_.token_type(), o_.micro_scale(),
                  static_cast<double>(factor(o_.factor_inner)));
    } else if (o_.quantises()) {
      quantise_bound(inner, scale_width(o_, inner.size()));
    }
    return inner;
  }

  [[nodiscard]] Inexact down(std::int64_t expert, const std::vector<Inexact>& inner,
                             std::int64_t n) const {
    double sum = 0;
    double size = 0;
    double errors = 0;
    double squares = 0;
    const std::vector<double> w = w2_.row(expert, n);
    for (std::int64_t k = 0; k < o_.inner(); ++k) {
      const double term = w[at(k)] * inner[at(k)].value;
      const double error = w[at(k)] * inner[at(k)].error;
      sum += term;
      size += std::abs(term);
      errors += std::abs(error);
      squares += error * error;
    }
    // Roundings of many elements point in all directions: eight times their root of squares.
    return {sum + bias(o_.bias2, expert, n),
            std::min(errors, 8 * std::sqrt(squares)) + size * w2_.lost()};
  }

  const MixtureOperands& o_;
  std::int64_t token_;
  int threads_;
  bool gates_behind_;
  Weights w13_;
  Weights w2_;
  std::vector<double> x_;
};

}  // namespace

MixtureRow mixture_row(const MixtureOperands& o, std::int64_t row, bool gates_behind, int threads) {
  const bool whole = o.combine == Combine::sum;
  const Token token(o, whole ? row : row / o.top_k(), gates_behind, threads);
  const std::int64_t slot = row % o.top_k();
  return whole ? token.row(0, o.top_k()) : token.row(slot, slot + 1);
}

MixtureVerdict check_mixture(const MixtureOperands& o, bool gates_behind) {
  std::vector<MixtureRow> rows(static_cast<std::size_t>(o.results()));
  share(o.results(), 0, [&](int) {
    return [&](std::int64_t t) {
      rows[static_cast<std::size_t>(t)] = mixture_row(o, t, gates_behind, 1);
    };
  });
  MixtureVerdict v;
  for (std::int64_t t = 0; t < o.results(); ++t) {
    for (std::int64_t n = 0; n < o.hidden(); ++n) {
      const MixtureRow& row = rows[static_cast<std::size_t>(t)];
      const double want = row.want[static_cast<std::size_t>(n)];
      const double allowed = row.allowed[static_cast<std::size_t>(n)];
      const double got = element(o.d, 0, t, n);
      ++v.elements;
      const bool same = std::isnan(want) ? std::isnan(got) : got == want;
      const bool close = std::isinf(want) ? std::isnan(got) : std::abs(got - want) <= allowed;
      const bool wrong = !same && !close;
      const double ratio = same ? 0
                           : std::isfinite(got) && std::isfinite(want) && allowed > 0
                               ? std::abs(got - want) / allowed
                               : std::numeric_limits<double>::infinity();
      v.failures += wrong ? 1 : 0;
      if (v.worst_token >= 0 && ratio <= v.worst_ratio) continue;
      v.worst_token = t;
      v.worst_column = n;
      v.worst_ratio = ratio;
      v.worst_got = got;
      v.worst_want = want;
      v.worst_allowed = allowed;
    }
  }
  return v;
}

}  // namespace warpwright::reference
