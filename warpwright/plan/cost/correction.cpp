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

// Reads the text of a correction. A function that returns a text returns the fault, or "".
class CorrectionReader {
 public:
  CorrectionReader(std::string_view text, std::span<const char* const> features)
      : text_(text), features_(features) {}

  Result<Correction> read() {
    std::string fault;
    while (!text_.empty() && fault.empty()) {
      std::string_view line = cut(text_, '\n');
      ++number_;
      if (!line.empty()) fault = read_line(line);
    }
    if (fault.empty() && made_.roots_.empty()) fault = "it has no tree";
    if (fault.empty()) return std::move(made_);
    return refuse(RefusalCode::bad_value, "line ", number_, " of the correction: ", fault);
  }

 private:
  std::string read_line(std::string_view line) {
    const std::string_view word = cut(line, ' ');
    if (word == "warpwright-correction") {
      is_known_ = true;
      return line == "1" ? "" : "its version is " + std::string(line) + ", not 1";
    }
    if (!is_known_) return "it does not begin with warpwright-correction 1";
    if (word == "features") return read_features(line);
    if (word == "tree" && names_features_) {
      made_.roots_.push_back(static_cast<std::int32_t>(made_.nodes_.size()));
      std::string fault = read_tree(line);
      return !fault.empty() || line.empty() ? fault : "words follow a tree";
    }
    if (word == "held-out") {
      while (!line.empty()) made_.held_out_.emplace_back(cut(line, ' '));
      return "";
    }
    return word == "times" ? "" : "\"" + std::string(word) + "\" is none of its lines";
  }

  std::string read_features(std::string_view line) {
    for (const char* name : features_) {
      if (const std::string_view has = cut(line, ' '); has != name) {
        return "\"" + std::string(has) + "\" stands for the feature " + name;
      }
    }
    names_features_ = true;
    return line.empty() ? "" : "more features than " + std::to_string(features_.size());
  }

  std::string read_tree(std::string_view& words) {
    const std::string_view word = cut(words, ' ');
    Correction::Node node;
    if (word.starts_with('=')) {
      if (!read_number(word.substr(1), node.number) || std::abs(node.number) > kMostLeaf) {
        return "\"" + std::string(word) + "\" is no leaf of a tree";
      }
      made_.nodes_.push_back(node);
      return "";
    }
    std::string_view limit = word;
    double feature = 0;
    const bool is_feature = read_number(cut(limit, ':'), feature) && feature >= 0 &&
                            feature == std::floor(feature) &&
                            feature < static_cast<double>(features_.size());
    if (!is_feature || !read_number(limit, node.number)) {
      return "\"" + std::string(word) + "\" is no question of a tree";
    }
    node.feature = static_cast<std::int32_t>(feature);
    const std::size_t at = made_.nodes_.size();
    made_.nodes_.push_back(node);
    if (std::string fault = read_tree(words); !fault.empty()) return fault;
    made_.nodes_[at].no = static_cast<std::int32_t>(made_.nodes_.size());
    return read_tree(words);
  }

  std::string_view text_;
  std::span<const char* const> features_;
  Correction made_;
  int number_ = 0;
  bool is_known_ = false, names_features_ = false;
};

Result<Correction> Correction::parse(std::string_view text, std::span<const char* const> features) {
  return CorrectionReader(text, features).read();
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
