#include "warpwright/plan/cost/correction.h"

#include <charconv>
#include <cmath>

#include "warpwright/plan/cost/kept_text.h"

namespace warpwright {
namespace {

constexpr double kMostLeaf = 10;  // a factor of 22,000: no time is as far from its floor

bool read_number(std::string_view text, double& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(number);
}

}  // namespace

Result<Correction> Correction::parse(std::string_view text, std::span<const char* const> features) {
  Correction made;
  int line_number = 0;
  const auto refused = [&](const std::string& what) {
    return refuse(RefusalCode::bad_value, "line ", line_number, " of the correction: ", what);
  };
  // Reads a subtree; returns the fault, or nothing.
  const auto read_tree = [&](auto& self, std::string_view& words) -> std::string {
    const std::string_view word = cut(words, ' ');
    Node node;
    if (word.starts_with('=')) {
      if (!read_number(word.substr(1), node.number) || std::abs(node.number) > kMostLeaf) {
        return "\"" + std::string(word) + "\" is no leaf of a tree";
      }
      made.nodes_.push_back(node);
      return {};
    }
    std::string_view limit = word;
    double feature = 0;
    if (!read_number(cut(limit, ':'), feature) || feature < 0 || feature != std::floor(feature) ||
        feature >= static_cast<double>(features.size()) || !read_number(limit, node.number)) {
      return "\"" + std::string(word) + "\" is no question of a tree";
    }
    node.feature = static_cast<std::int32_t>(feature);
    const std::size_t at = made.nodes_.size();
    made.nodes_.push_back(node);
    if (std::string fault = self(self, words); !fault.empty()) return fault;
    made.nodes_[at].no = static_cast<std::int32_t>(made.nodes_.size());
    return self(self, words);
  };
  bool is_known = false;
  bool names_features = false;
  while (!text.empty()) {
    std::string_view line = cut(text, '\n');
    ++line_number;
    if (line.empty()) continue;
    const std::string_view word = cut(line, ' ');
    if (word == "warpwright-correction") {
      if (line != "1") return refused("its version is " + std::string(line) + ", not 1");
      is_known = true;
    } else if (!is_known) {
      return refused("it does not begin with warpwright-correction 1");
    } else if (word == "features") {
      for (const char* name : features) {
        if (const std::string_view has = cut(line, ' '); has != name) {
          return refused("\"" + std::string(has) + "\" stands for the feature " + name);
        }
      }
      if (!line.empty()) return refused("more features than " + std::to_string(features.size()));
      names_features = true;
    } else if (word == "held-out") {
      while (!line.empty()) made.held_out_.emplace_back(cut(line, ' '));
    } else if (word == "tree" && names_features) {
      made.roots_.push_back(static_cast<std::int32_t>(made.nodes_.size()));
      if (std::string fault = read_tree(read_tree, line); !fault.empty()) return refused(fault);
      if (!line.empty()) return refused("words follow a tree");
    } else if (word != "times") {
      return refused("\"" + std::string(word) + "\" is none of its lines");
    }
  }
  if (made.roots_.empty()) return refused("it has no tree");
  return made;
}

double Correction::factor(std::span<const double> features) const {
  double sum = 0;
  for (const std::int32_t root : roots_) {
    const Node* node = &nodes_[static_cast<std::size_t>(root)];
    while (node->feature >= 0) {
      const bool yes = features[static_cast<std::size_t>(node->feature)] <= node->number;
      node = yes ? node + 1 : &nodes_[static_cast<std::size_t>(node->no)];
    }
    sum += node->number;
  }
  return std::exp(sum);
}

}  // namespace warpwright
