// `warpwright gemm` and `grouped` on a device that does something else than it was asked to, for
// transcripts of what then is seen and said:
//
//   warpwright_wrong [WHAT...] gemm|grouped ARGUMENTS...
//
//   MATRIX@ROW,COLUMN[,BATCH]EDIT   an element: for d after the run; for a, b, c, bias, scale_a and
//                       scale_b while it runs. EDIT is =VALUE, +VALUE or *VALUE; or its bits in
//                       hexadecimal: #CODE, or ^CODE where these are to be others
//   as:OPTIONS          D is that of the product with these options behind its own
//   show:MATRIX@ROW,COLUMN   prints the element and its matrix's strides before the run
//   tiles               prints how many tiles the model's kernel worked on
//   idle, finding, fails   nothing runs; and the model says that, or the device
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands/gemm/gemm_options.h"
#include "cli/commands/gemm_command.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::cli {
namespace {

using Words = std::vector<std::string>;

bool begins(const std::string& text, const char* with) {
  return text.starts_with(with);
}

GemmOptions options_of(bool is_grouped, Words words) {
  CLI::App app;
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  GemmOptions options;
  options.is_grouped = is_grouped;
  add_gemm_options(app, options, is_grouped);
  add_run_options(app, options, is_grouped);
  std::reverse(words.begin(), words.end());
  app.parse(std::move(words));
  return options;
}

// An element of the operands, and what is done to it.
class Element {
 public:
  Element(const GemmOperands& o, const std::string& text) {
    char name[16] = {};
    char edit[64] = {};
    long long row = 0;
    long long column = 0;
    long long batch = 0;
    int read = 0;
    if (std::sscanf(text.c_str(), "%15[a-z_]@%lld,%lld%n", name, &row, &column, &read) != 3) {
      throw InputError("\"" + text + "\" names no element.");
    }
    const char* rest = text.c_str() + read;
    if (std::sscanf(rest, ",%lld%n", &batch, &read) == 1) rest += read;
    std::snprintf(edit, sizeof edit, "%s", rest);
    const std::string matrix = name;
    const MatrixView& m = matrix == "a"         ? o.a
                          : matrix == "b"       ? o.b
                          : matrix == "c"       ? o.c
                          : matrix == "bias"    ? o.bias
                          : matrix == "scale_a" ? o.scale_a
                          : matrix == "scale_b" ? o.scale_b
                                                : o.d;
    if (row >= m.rows || column >= m.columns || batch >= m.batch) {
      throw InputError("\"" + text + "\" lies outside.");
    }
    type_ = m.dtype;
    size_ = static_cast<std::size_t>(numeric::bits(type_) / 8);
    place_ = static_cast<char*>(m.data) +
             (batch * m.batch_stride + row * m.row_stride + column * m.column_stride) *
                 static_cast<std::int64_t>(size_);
    before_ = code();
    strides_ = ", strides " + std::to_string(m.row_stride) + ", " + std::to_string(m.column_stride);
    if (edit[0] == '\0') return;
    const std::string value = edit + 1;
    if (edit[0] == '#' || edit[0] == '^') {
      put(std::stoull(value, nullptr, 16) ^ (edit[0] == '^' ? before_ : 0));
      return;
    }
    const double x = std::stod(value);
    put(numeric::from_double(type_, edit[0] == '='   ? x
                                    : edit[0] == '+' ? shown() + x
                                                     : shown() * x));
  }

  [[nodiscard]] double shown() const { return numeric::to_double(type_, code()); }
  [[nodiscard]] const std::string& strides() const { return strides_; }
  void restore() const { put(before_); }

 private:
  [[nodiscard]] std::uint64_t code() const {
    std::uint64_t c = 0;
    std::memcpy(&c, place_, size_);
    return c;
  }
  void put(std::uint64_t code) const { std::memcpy(place_, &code, size_); }

  DType type_ = DType::f32;
  std::size_t size_ = 4;
  char* place_ = nullptr;
  std::string strides_;
  std::uint64_t before_ = 0;
};

RunOutput run_wrongly(const Words& wrong, const Words& arguments, const Product& product,
                      const GemmOptions& options, std::ostream& err) {
  const GemmOperands& o = product.operands;
  RunOutput run;
  std::vector<Element> changed;
  bool ran = false;
  for (const std::string& what : wrong) {
    if (begins(what, "show:")) {
      const Element element(o, what.substr(5));
      err << what.substr(5) << " is " << element.shown() << element.strides() << "\n";
    } else if (what == "finding") {
      run.report.findings.push_back({model::Check{}, "too many bytes", {}});
      ran = true;
    } else if (what == "fails") {
      throw RunError("B4 here: too many bytes\n");
    } else if (what == "idle") {
      ran = true;
    } else if (begins(what, "as:")) {
      Words words = arguments;
      std::istringstream more(what.substr(3));
      for (std::string word; more >> word;) words.push_back(word);
      const GemmOptions other = options_of(options.is_grouped, words);
      Product instead(other, facts_of(other), err);
      instead.load(other.seed, err);
      run = run_on_device(instead, other, err);
      std::memcpy(o.d.data, instead.d.bytes.data(), instead.d.bytes.size());
      ran = true;
    } else if (what.find('@') != std::string::npos && !begins(what, "d@")) {
      changed.emplace_back(o, what);
    }
  }
  if (!ran) run = run_on_device(product, options, err);
  for (const Element& element : changed) element.restore();
  for (const std::string& what : wrong) {
    if (begins(what, "d@")) Element(o, what);
    if (what == "tiles") err << "the kernel: " << run.report.statistics.tiles << " tiles\n";
  }
  return run;
}

int wrong_command(const Words& all) {
  const auto command = std::find_if(all.begin(), all.end(), [](const std::string& word) {
    return word == "gemm" || word == "grouped";
  });
  if (command == all.end()) throw InputError("gemm or grouped is missing.");
  const Words wrong(all.begin(), command);
  const Words arguments(command + 1, all.end());
  return gemm_command(options_of(*command == "grouped", arguments), std::cout, std::cerr,
                      [&](const Product& product, const GemmOptions& options, std::ostream& err) {
                        return run_wrongly(wrong, arguments, product, options, err);
                      });
}

}  // namespace
}  // namespace warpwright::cli

int main(int argc, char** argv) {
  try {
    return warpwright::cli::wrong_command({argv + 1, argv + argc});
  } catch (const std::exception& refusal) {
    std::cerr << "warpwright_wrong: " << refusal.what() << "\n";
    return 3;
  }
}
