#include "warpwright/plan/cost/correction.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "warpwright/plan/cost/kept_text.h"

namespace warpwright {
namespace {

constexpr std::size_t kMostNodes = 10000;  // that a node can look past
constexpr int kMostAsked = 64;             // one behind the other: the reader goes as deep
constexpr double kMostLeaf = 10;           // a factor of 22,000: no time is as far from its floor
constexpr std::size_t kMostQuoted = 40;    // bytes of a word

bool read_number(std::string_view text, double& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(number);
}

// The word as a message may hold it, whatever bytes it has.
std::string quoted(std::string_view word) {
  std::string text(word.substr(0, kMostQuoted));
  for (char& c : text) c = c < ' ' || c > '~' ? '?' : c;
  return "\"" + text + (word.size() > kMostQuoted ? "...\"" : "\"");
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
    if (fault.empty() && made_.trees_.empty()) fault = "it has no tree";
    if (fault.empty()) return std::move(made_);
    return refuse(RefusalCode::bad_value, "line ", number_, " of the correction: ", fault);
  }

 private:
  std::string read_line(std::string_view line) {
    const std::string_view word = cut(line, ' ');
    if (word == "warpwright-correction") {
      is_known_ = true;
      return line == "1" ? "" : "its version is " + quoted(line) + ", not 1";
    }
    if (!is_known_) return "it does not begin with warpwright-correction 1";
    if (word == "features") return read_features(line);
    if (word == "tree" && !asked_.empty()) {
      return read_root(line);
    }
    if (word == "held-out") {
      while (!line.empty()) made_.held_out_.emplace_back(cut(line, ' '));
      return "";
    }
    return word == "times" ? "" : quoted(word) + " is none of its lines";
  }

  std::string read_features(std::string_view line) {
    while (!line.empty()) {
      const std::string_view name = cut(line, ' ');
      const auto known = std::find(features_.begin(), features_.end(), name);
      if (known == features_.end()) return quoted(name) + " is none of the features";
      asked_.push_back(static_cast<std::uint8_t>(known - features_.begin()));
    }
    return "";
  }

  std::string read_root(std::string_view line) {
    made_.trees_.push_back({made_.nodes_.size(), 0});
    largest_ = 0;
    if (std::string fault = read_tree(line, 0); !fault.empty()) return fault;
    if (!line.empty()) return "words follow a tree";
    all_ += largest_;
    return all_ <= kMostLeaf ? "" : "with this tree all together say a factor of over e^10";
  }

  std::string read_tree(std::string_view& words, int asked) {
    int& deepest = made_.trees_.back().depth;
    deepest = std::max(deepest, asked);
    const std::string_view word = cut(words, ' ');
    Correction::Node node;
    double number = 0;
    if (word.starts_with('=')) {
      if (!read_number(word.substr(1), number) || std::abs(number) > kMostLeaf) {
        return quoted(word) + " is no leaf of a tree";
      }
      largest_ = std::max(largest_, std::abs(number));
      node.number = static_cast<float>(number);
      made_.nodes_.push_back(node);
      return "";
    }
    std::string_view limit = word;
    double feature = 0;
    const bool is_feature = read_number(cut(limit, ':'), feature) && feature >= 0 &&
                            feature == std::floor(feature) &&
                            feature < static_cast<double>(asked_.size());
    if (!is_feature || !read_number(limit, number)) {
      return quoted(word) + " is no question of a tree";
    }
    if (asked == kMostAsked) {
      return "a tree asks more than " + std::to_string(kMostAsked) + " questions in a row";
    }
    node.number = static_cast<float>(number);
    node.yes = 1;
    node.feature = asked_[static_cast<std::size_t>(feature)];
    const std::size_t at = made_.nodes_.size();
    made_.nodes_.push_back(node);
    if (std::string fault = read_tree(words, asked + 1); !fault.empty()) return fault;
    const std::size_t no = made_.nodes_.size() - at;
    if (no > kMostNodes) return "a tree has more than " + std::to_string(kMostNodes) + " nodes";
    made_.nodes_[at].no = static_cast<std::int16_t>(no);
    return read_tree(words, asked + 1);
  }

  std::string_view text_;
  std::span<const char* const> features_;
  Correction made_;
  int number_ = 0;
  double largest_ = 0;  // leaf of the tree
  double all_ = 0;      // of those of all trees
  bool is_known_ = false;
  std::vector<std::uint8_t> asked_;  // numbers of the features, in the text's order
};

Result<Correction> Correction::parse(std::string_view text, std::span<const char* const> features) {
  return CorrectionReader(text, features).read();
}

// As many steps for all, and none of them a branch: where a processor guesses wrong costs more than
// a step.
float Correction::leaf(const Tree& tree, std::span<const double> features) const {
  const Node* node = &nodes_[tree.root];
  for (int i = 0; i < tree.depth; ++i) {
    const bool yes = features[node->feature] <= static_cast<double>(node->number);
    node += yes ? node->yes : node->no;
  }
  return node->number;
}

double Correction::factor(std::span<const double> features) const {
  return factors({{features}}).front();
}

std::vector<double> Correction::factors(std::span<const std::span<const double>> all) const {
  std::vector<double> sums(all.size(), 0);
  for (const Tree& tree : trees_) {
    for (std::size_t i = 0; i < all.size(); ++i) sums[i] += static_cast<double>(leaf(tree, all[i]));
  }
  for (double& sum : sums) sum = std::exp(sum);
  return sums;
}

}  // namespace warpwright
