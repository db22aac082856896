#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "warpwright/kernel/moe/sort_shape.h"
#include "warpwright/plan/moe/moe_plan.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/tile/slot_ids.h"

namespace warpwright {
namespace {

double size_of(const PlannedMatrix& m) {
  return static_cast<double>(m.rows * m.columns * m.batch) * numeric::bits(m.dtype) / 8;
}

std::string cell(const std::string& text, std::size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

template <class... Values>
std::string formatted(const char* form, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

int sort_launches(const MixtureProblem& p, int parts) {
  kernel::SortSlotsParams sort;
  sort.tokens = static_cast<int>(p.tokens());
  sort.top_k = static_cast<int>(p.top_k());
  kernel::SortSlotsShape::shape(sort, parts);
  return kernel::SortSlotsShape::launches(sort);
}

int grids_of(const Plan& product) {
  return 1 + (product.a_copy || product.b_copy ? 1 : 0);
}

// Is its kernel one that asks for weights early, and reads them where they are?
bool can_ask_early(const Plan& product) {
  return product.ctas > 0 && product.facts().asks_early && grids_of(product) == 1;
}

}  // namespace

int MixturePlan::launches() const {
  int all = 0;
  for (const MixtureStep step : steps()) {
    if (step == MixtureStep::first) {
      all += grids_of(first);
    } else if (step == MixtureStep::sort) {
      all += sorts_with_gather ? 1 : sort_launches(problem, sort_parts);
    } else {
      all += step == MixtureStep::second ? grids_of(second) : 1;
    }
  }
  return all;
}

bool MixturePlan::asks_early(MixtureStep step) const {
  if (!early_weights || !takes(step)) return false;
  if (step == MixtureStep::second) return can_ask_early(second);
  if (step != MixtureStep::first || way.by_index) return false;
  return can_ask_early(first) && (!sorts_with_gather || counts_slots());
}

bool MixturePlan::counts_slots() const {
  return sorts_with_gather && tile::OffsetsAhead::serve(problem.slots(), problem.experts());
}

const char* name(MixtureStep step) {
  constexpr const char* names[] = {"sort", "gather", "first", "quantise", "second", "sum"};
  return names[static_cast<std::size_t>(step)];
}

double MixturePlan::step_bytes(MixtureStep step) const {
  const double share =
      static_cast<double>(problem.experts()) / static_cast<double>(problem.total());
  const double slots = static_cast<double>(problem.slots());
  const double quantising =
      size_of(problem.x) + size_of(parts.tokens) + size_of(parts.token_scales);
  const double gathering =
      size_of(problem.x) + share * (size_of(parts.tokens) + size_of(parts.token_scales));
  const bool quantises_beside = way.by_index && problem.quantises() && !problem.is_micro();
  switch (step) {
    case MixtureStep::sort:
      return slots * (offset_bytes(problem.id_type) + 4) +
             4.0 * static_cast<double>(problem.experts()) + slots * 4 +
             (sorts_with_gather  ? gathering
              : quantises_beside ? quantising
                                 : 0);
    case MixtureStep::gather:
      return gathering;
    case MixtureStep::first:
      return moved_bytes(first.problem);
    case MixtureStep::quantise:
      return size_of(parts.inner) + size_of(parts.codes) + size_of(parts.code_scales);
    case MixtureStep::second:
      return moved_bytes(second.problem);
    case MixtureStep::sum:
      return share * size_of(parts.rows) + size_of(problem.d) + size_of(problem.topk_weights);
  }
  return 0;
}

double MixturePlan::step_operations(MixtureStep step) const {
  const double share =
      static_cast<double>(problem.experts()) / static_cast<double>(problem.total());
  if (step == MixtureStep::first) return share * operations(first.problem);
  if (step == MixtureStep::second) return share * operations(second.problem);
  return 0;
}

std::string MixturePlan::step_kernel(MixtureStep step) const {
  switch (step) {
    case MixtureStep::sort:
      return sorts_with_gather ? "sort_gather" : "sort_slots";
    case MixtureStep::first:
      return first.name();
    case MixtureStep::second:
      return second.name();
    case MixtureStep::sum:
      return "sum_slots";
    case MixtureStep::gather:
    case MixtureStep::quantise:
      break;
  }
  return "gather_rows";
}

double MixturePlan::step_floor(MixtureStep step) const {
  if (device.memory_bytes_per_second <= 0) return 0;
  const double rate = tensor_rate(device, problem.token_type());
  const double work = step_operations(step);
  return std::max(step_bytes(step) / device.memory_bytes_per_second, rate > 0 ? work / rate : 0);
}

std::string formula(const MixtureProblem& p) {
  std::string text =
      formatted("%lld token%s x %lld, top-%lld of %lld experts (%lld here from %lld), inner %lld, ",
                static_cast<long long>(p.tokens()), p.tokens() == 1 ? "" : "s",
                static_cast<long long>(p.hidden()), static_cast<long long>(p.top_k()),
                static_cast<long long>(p.total()), static_cast<long long>(p.experts()),
                static_cast<long long>(p.first_expert), static_cast<long long>(p.inner()));
  text += type_name(p.x.dtype) + " by " + type_name(p.w13.dtype) + ", ";
  if (p.is_micro()) {
    text += micro_words(known_micro_format(p.token_type(), p.micro_scale()),
                        known_micro_format(p.w13.dtype, p.micro_scale())) +
            ", ";
  }
  if (p.is_packed()) {
    text += "w13 " + packed_words(*p.packed13) + ", w2 " + packed_words(*p.packed2) + ", ";
  }
  return text + scaling_words(p.scaling) + ", " + name(p.activation);
}

std::string MixturePlan::explain() const {
  const MixtureProblem& p = problem;
  std::string text = "mixture: " + formula(p) + ", on " + device.name + "\n";
  if (!reason.empty()) text += "choice: " + reason + "\n";
  text += formatted(
      "%d launches, each dependent on the one before; workspace %lld bytes; %.1f "
      "experts are expected to be hit\n",
      launches(), static_cast<long long>(workspace_bytes()),
      p.tokens() > 0 ? busy_groups(first.problem) : 0.0);
  const bool rated = device.memory_bytes_per_second > 0;
  std::size_t wide = 44;  // names of kernels
  for (const MixtureStep step : steps()) wide = std::max(wide, step_kernel(step).size());
  wide += 2;
  text += cell("step", 10) + cell("kernel", wide) + cell("MB", 11) + cell("GFLOP", 11) +
          (rated ? "floor us\n" : "\n");
  double floors = 0;
  for (const MixtureStep step : steps()) {
    const double bytes = step_bytes(step);
    const double work = step_operations(step);
    text += cell(warpwright::name(step), 10) + cell(step_kernel(step), wide) +
            cell(formatted("%.3f", bytes / 1e6), 11) +
            cell(work > 0 ? formatted("%.3f", work / 1e9) : "", 11);
    if (rated) {
      floors += step_floor(step);
      text += formatted("%.2f", step_floor(step) * 1e6);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  if (rated) text += formatted("floors together %.2f us\n", floors * 1e6);
  text += way.by_index ? "the first product reads tokens by number\n"
                       : "tokens are put into the order of the experts first\n";
  if (sorts_with_gather) text += "the launch of the sort moves tokens too\n";
  if (p.quantises()) {
    if (p.is_micro()) {
      text += sorts_with_gather
                  ? "tokens become codes there, where it is known where their scales lie\n"
                  : "tokens become codes behind the sort, which knows where their scales lie\n";
    } else if (way.by_index) {
      text += "the launch of the sort quantises tokens beside it\n";
    }
    text += way.fused ? "the first product writes " + type_name(p.token_type()) +
                            " codes and their scales itself\n"
                      : "rows between the products are quantised by a launch of their own\n";
  }
  std::string early;
  for (const MixtureStep step : steps()) {
    if (!asks_early(step)) continue;
    early += early.empty() ? "" : " and ";
    early += warpwright::name(step);
  }
  if (!early.empty()) {
    text += "asked for before the launch before has ended: the weights of the first tiles of " +
            early + "\n";
  }
  if (asks_early(MixtureStep::first) && counts_slots()) {
    text += "first counts the slots of experts by itself, to know its first tiles then\n";
  }
  text += "a row is rounded to " + type_name(p.x.dtype) +
          ", times its weight, added in float32 in the order of expert, then slot\n";
  return text;
}

}  // namespace warpwright
