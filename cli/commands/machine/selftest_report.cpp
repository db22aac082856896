#include "cli/commands/machine/selftest_report.h"

#include <algorithm>
#include <utility>

#include "cli/reports/plan_json.h"
#include "warpwright/facts/format.h"

namespace warpwright::cli {
namespace {

using nlohmann::ordered_json;
using Outcome = Tried::Outcome;

constexpr const char* outcome_words[] = {"right", "wrong", "failed", "refused"};

// "cuda:0 NVIDIA L40S, code for sm_80" without the index.
std::string card_of(const DeviceFacts& device) {
  const std::size_t blank = device.name.find(' ');
  const bool has_index = device.name.starts_with("cuda:") && blank != std::string::npos;
  return has_index ? device.name.substr(blank + 1) : device.name;
}

ordered_json json_of(const Tried& t) {
  ordered_json json{{"what", t.what}};
  if (t.microseconds == 0) json["outcome"] = outcome_words[static_cast<int>(t.outcome)];
  if (!t.kernel.empty()) json["kernel"] = t.kernel;
  json["command"] = t.command;
  if (!t.said.empty()) json["said"] = t.said;
  if (t.microseconds > 0) {
    json["us"] = t.microseconds;
    json["predicted_us"] = t.predicted_us ? ordered_json(*t.predicted_us) : ordered_json();
  }
  return json;
}

ordered_json json_of(const std::vector<Tried>& all) {
  ordered_json json = ordered_json::array();
  for (const Tried& t : all) json.push_back(json_of(t));
  return json;
}

bool any_bad(const std::vector<Tried>& all) {
  return std::any_of(all.begin(), all.end(), [](const Tried& t) { return t.is_bad(); });
}

}  // namespace

std::string failure_text(const Tried& t) {
  return "FAIL " + (t.kernel.empty() ? "" : t.kernel + ", ") + t.what + ": " + t.said +
         "\n     again: " + t.command + "\n";
}

SelftestReport::SelftestReport(const DeviceFacts& device, std::vector<const KernelFacts*> kernels,
                               std::uint64_t seed)
    : device_(device_json(device)), where_(card_of(device)), seed_(seed) {
  device_["name"] = where_;
  for (const KernelFacts* k : kernels) kernels_.push_back({.name = k->name});
}

void SelftestReport::add(SelftestPart part, Tried tried) {
  const std::lock_guard lock(mutex_);
  std::vector<Tried>* const of_part = part == SelftestPart::types      ? &types_
                                      : part == SelftestPart::mixtures ? &mixtures_
                                      : part == SelftestPart::times    ? &times_
                                                                       : nullptr;
  if (of_part != nullptr) {
    of_part->push_back(std::move(tried));
    return;
  }
  for (OfKernel& k : kernels_) {
    if (k.name != tried.kernel) continue;
    k.right += tried.outcome == Outcome::right ? 1 : 0;
    k.refused += tried.outcome == Outcome::refused ? 1 : 0;
    if (tried.is_bad()) k.bad.push_back(std::move(tried));
    return;
  }
}

void SelftestReport::leave_out(const std::string& kernel, const std::string& why) {
  const std::lock_guard lock(mutex_);
  for (OfKernel& k : kernels_) {
    if (k.name == kernel) k.left_out = why;
  }
}

void SelftestReport::skip() {
  const std::lock_guard lock(mutex_);
  ++skipped_;
}

void SelftestReport::stop(const std::string& why) {
  const std::lock_guard lock(mutex_);
  stopped_ = why;
}

void SelftestReport::end(double seconds) {
  const std::lock_guard lock(mutex_);
  seconds_ = seconds;
}

bool SelftestReport::all_good() const {
  return stopped_.empty() && !any_bad(types_) && !any_bad(mixtures_) && !any_bad(times_) &&
         std::all_of(kernels_.begin(), kernels_.end(), [](const auto& k) { return k.bad.empty(); });
}

bool SelftestReport::is_good() const {
  const std::lock_guard lock(mutex_);
  return all_good();
}

ordered_json SelftestReport::json() const {
  const std::lock_guard lock(mutex_);
  ordered_json json{{"selftest", 1},        {"warpwright", WARPWRIGHT_VERSION},
                    {"passed", all_good()}, {"device", device_},
                    {"seed", seed_},        {"seconds", seconds_}};
  json["stopped"] = stopped_.empty() ? ordered_json() : ordered_json(stopped_);
  json["skipped"] = skipped_;
  json["kernels"] = ordered_json::array();
  for (const OfKernel& k : kernels_) {
    ordered_json one{{"kernel", k.name}, {"right", k.right}, {"not_taken", k.refused}};
    if (!k.bad.empty()) one["bad"] = json_of(k.bad);
    if (!k.left_out.empty()) one["left_out"] = k.left_out;
    json["kernels"].push_back(std::move(one));
  }
  json["types"] = json_of(types_);
  json["mixtures"] = json_of(mixtures_);
  json["times"] = json_of(times_);
  return json;
}

// What is right in one line, what is refused in one for each reason.
std::string SelftestReport::part_text(const char* name, const std::vector<Tried>& all) const {
  std::string right;
  std::vector<std::pair<std::string, std::string>> refused;  // why, and what
  for (const Tried& t : all) {
    if (t.outcome == Outcome::right) right += (right.empty() ? "" : "; ") + t.what;
    if (t.outcome != Outcome::refused) continue;
    const auto known = std::find_if(refused.begin(), refused.end(),
                                    [&](const auto& one) { return one.first == t.said; });
    if (known != refused.end()) {
      known->second += "; " + t.what;
    } else {
      refused.emplace_back(t.said, t.what);
    }
  }
  std::string text = all.empty() ? "" : name + (right.empty() ? "none" : right) + "\n";
  for (const auto& [why, what] : refused) {
    text.append("  refused ").append(what).append(": ").append(why).append("\n");
  }
  return text;
}

std::string SelftestReport::text() const {
  const std::lock_guard lock(mutex_);
  int products = 0, reached = 0, bad = 0;
  std::string left_out;
  for (const OfKernel& k : kernels_) {
    const int ran = k.right + static_cast<int>(k.bad.size());
    products += ran;
    bad += static_cast<int>(k.bad.size());
    reached += ran > 0 ? 1 : 0;
    if (!k.left_out.empty()) left_out += "  left out " + k.name + ": " + k.left_out + "\n";
  }
  for (const auto* part : {&types_, &mixtures_, &times_}) {
    bad += static_cast<int>(
        std::count_if(part->begin(), part->end(), [](const Tried& t) { return t.is_bad(); }));
  }
  std::string all =
      "kernels that ran: " + std::to_string(reached) + " of " + std::to_string(kernels_.size()) +
      ", in " + std::to_string(products) + " products" +
      (skipped_ > 0 ? "; no time was left for " + std::to_string(skipped_) : "") + "\n" + left_out;
  all += part_text("types, right: ", types_);
  all += part_text("mixtures, right: ", mixtures_);
  for (const Tried& t : times_) {
    if (t.outcome == Outcome::refused) continue;
    all += format("%-38s %9.2f us, predicted %9.2f  %s\n", t.what.c_str(), t.microseconds,
                  t.predicted_us.value_or(0), t.kernel.c_str());
  }
  if (!stopped_.empty()) all += "stopped: " + stopped_ + "\n";
  all += format("selftest: %s on %s in %.0f s", all_good() ? "PASS" : "FAIL", where_.c_str(),
                seconds_);
  return all + (bad > 0 ? ", " + std::to_string(bad) + " wrong" : "") + ".\n";
}

}  // namespace warpwright::cli
