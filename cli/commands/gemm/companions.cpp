#include "cli/commands/gemm/companions.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <utility>

#include "cli/commands/gemm/gemm_options.h"
#include "cli/commands/gemm/operand_files.h"
#include "cli/files/printable.h"
#include "warpwright/atom/mask_text.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/product/device_facts.h"
#include "warpwright/plan/product/known_devices.h"

namespace warpwright::cli {
namespace {

bool has_feature(const KernelFacts& kernel, const char* feature) {
  return std::find(kernel.features.begin(), kernel.features.end(), feature) !=
         kernel.features.end();
}

std::string text_of(const atom::ClusterShape& cluster) {
  return std::to_string(cluster.m) + "," + std::to_string(cluster.n);
}

// What is multiplied and how it is computed, without extents and tensors.
GemmOptions product_of_words(const GemmOptions& given) {
  GemmOptions o;
  o.is_grouped = given.is_grouped;
  for (const auto word :
       {&GemmOptions::layout, &GemmOptions::dtype, &GemmOptions::d_dtype, &GemmOptions::scaling,
        &GemmOptions::block, &GemmOptions::accumulation, &GemmOptions::weights, &GemmOptions::sums,
        &GemmOptions::quantise_d, &GemmOptions::scheduler}) {
    o.*word = given.*word;
  }
  o.as = given.as;
  o.mode = given.mode;
  o.seed = given.seed;
  o.group = given.group;
  o.zero_points = given.zero_points;
  o.gated = given.gated;
  return o;
}

// The list of companions as it is made: extents in tiles of the kernel, and arguments as one types
// them.
class Companions {
 public:
  Companions(const GemmOptions& given, const Plan& plan)
      : given_(given),
        kernel_(plan.facts()),
        rows_(kernel_.result_rows),
        columns_(kernel_.result_columns),
        k_tile_(kernel_.tile.k),
        smallest_(*std::ranges::min_element(kernel_.clusters, {}, atom::cluster_size)),
        round_((std::max(1, kernel_.stages) + 2) * k_tile_),
        c_(given.gated ? "" : " --beta 1") {
    add_gemm_options(app_, options_, given.is_grouped);
  }

  std::vector<Companion> made() {
    add_k();
    add_epilogues();
    add_scales();
    add_clusters();
    add_shares();
    if (given_.is_grouped) {
      add_groups();
    } else {
      add_dense();
    }
    return std::move(all_);
  }

 private:
  // The given arguments without what a companion varies: the kernel in its smallest cluster, on as
  // many SMs as that has, so that every CTA has several tiles.
  [[nodiscard]] GemmOptions plain(std::int64_t m, std::int64_t n, std::int64_t k) const {
    GemmOptions o = product_of_words(given_);
    o.kernel = kernel_.name;
    o.cluster = text_of(smallest_);
    o.sms = atom::cluster_size(smallest_);
    const std::int64_t product_n = o.gated ? 2 * n : n;
    if (!o.is_grouped) {
      o.random = {m, product_n, k};
      return o;
    }
    o.n = product_n;
    o.k = k;
    o.groups = 3;
    o.tokens = joined_numbers(std::array{m, std::int64_t{0}, (m + 1) / 2});
    if (kernel_.gathers) o.rows_index = "random:" + std::to_string(m);
    return o;
  }

  static std::string groups(const std::vector<std::int64_t>& lengths) {
    return " --groups " + std::to_string(lengths.size()) + " --tokens " + joined_numbers(lengths);
  }
  static std::string cluster(const atom::ClusterShape& c, int times = 1) {
    return " --cluster " + text_of(c) + " --sms " + std::to_string(times * atom::cluster_size(c));
  }
  [[nodiscard]] std::string sms(int times) const {
    return " --sms " + std::to_string(times * atom::cluster_size(smallest_));
  }

  // The extents first, then smaller and rounder ones for kernels that want multiples.
  void add(const std::string& what, std::int64_t m, std::int64_t n, std::int64_t k,
           const std::string& arguments = "") {
    Companion companion{what, {}};
    for (const std::int64_t unit : {1, 8, 16, 32, 64, 128}) {
      options_ =
          plain(m, std::max(unit, n / unit * unit), unit == 1 ? k : (k + unit - 1) / unit * unit);
      if (arguments.find("--cluster-k") != std::string::npos) options_.cluster.clear();
      if (!arguments.empty()) app_.parse(arguments);
      companion.options.push_back(options_);
    }
    all_.push_back(std::move(companion));
  }

  void add_k() {
    const int stages = std::max(1, kernel_.stages);
    const std::int64_t m = 2 * rows_;
    add("ragged M, N and K", 3 * rows_ - 5, 2 * columns_ - 3, round_ - k_tile_ / 2 + 8);
    add("ragged lines of 16 bytes", 2 * rows_ + 1, columns_ + 16, round_ - k_tile_ / 2);
    add("a last k_tile of few columns", m, columns_, round_ + 16);
    add("K of one k_tile", m, 2 * columns_, k_tile_);
    if (stages > 2) add("K shorter than the ring", m, 2 * columns_, 2 * k_tile_);
    add("an odd number of k_tiles", m, 2 * columns_, (stages + 1 + stages % 2) * k_tile_);
    add("an even number of k_tiles", m, 2 * columns_, (stages + 2 + stages % 2) * k_tile_);
    add("an odd number of k_tiles, half a stage", m, columns_, round_ - k_tile_ / 2);
    add("many short tiles", 5 * rows_, 2 * columns_, k_tile_);
  }

  void add_epilogues() {
    const std::int64_t m = 2 * rows_ - 6;
    const std::int64_t n = 2 * columns_;
    const std::string gap = "--pitch " + std::to_string(n);
    add("C", 2 * rows_, n, round_, "--beta 1");
    add("C, narrow", m, n - 8, round_, "--beta 1");
    add("C, ragged", m, n - 3, round_, "--beta 1");
    add("C, f32", m, n, k_tile_, "--beta 1 --d-dtype f32");
    add("C in place", m, n - 8, round_, "--beta 1 --in-place");
    // Rows that end within 16 bytes and begin at multiples of 16.
    add("rows with gaps", m, n - 3, round_, gap);
    add("rows with gaps, with C", m, n - 3, k_tile_, "--beta 1 " + gap);
    // Where the extents must be even, only the pitch has rows begin anywhere.
    add("rows an odd number of elements apart", m, n - 8, k_tile_,
        "--pitch " + std::to_string(n + 1));
    add("a bias of columns", m, n, round_,
        std::string("--bias columns") + (given_.gated ? "" : " --activation gelu"));
    if (given_.gated) {
      // Many random operands are beyond the limit. Packed weights lie in halves.
      add("a gate with limits", m, n, round_,
          std::string("--activation swiglu_oai --gate-limit 0.5 --bias columns") +
              (given_.weights.empty() ? " --gate-up interleaved" : ""));
    }
    add("a bias of columns, ragged", m, n - 3, k_tile_, "--bias columns");
    add("a bias of rows", m, n - 3, k_tile_, "--bias rows");
    add("nothing to multiply", m, columns_, k_tile_, "--alpha 0");
  }

  void add_scales() {
    const std::int64_t m = 2 * rows_ - 6;
    const std::int64_t n = 2 * columns_;
    for (const std::string scaling : {"none", "tensor", "row-column", "group"}) {
      if (scaling == (given_.scaling.empty() ? "none" : given_.scaling)) continue;
      add("scales: " + scaling, m, n, round_, "--scaling " + scaling);
    }
    if (given_.scaling == "blockwise") {
      add("block scales by rows", m, n - 8, round_, "--scales-major k");
    }
    if (!kernel_.micro_scales.empty() && kernel_.b.size() > 1) {
      const bool plain = has_feature(kernel_, "plain tokens");
      for (const char* formats : {"mxf8", "mxf6", "mxf4,mxf8", "mxf6-e3m2,mxf8-e5m2"}) {
        const std::string words = plain ? "e4m3," + std::string(formats) : formats;
        if (plain && words.find(',') != words.rfind(',')) continue;
        add("operands of " + words, m, n, round_, "--dtype " + words);
      }
    }
    // For packed elements with scales of another format, and codes of one.
    for (const DType scale : kernel_.micro_scales) {
      const std::string word = known_micro_format(kernel_.a.front(), scale).word;
      if (kernel_.micro_scales.size() < 2 || given_.dtype == word) continue;
      add("operands of " + word, m, n - 8, round_, "--dtype " + word);
      for (const QuantiseD way : all_quantisations) {
        const bool is_made = kernel_.makes_scales(form_of(way).scale);
        if (!is_made || form_of(way).codes != kernel_.result) continue;
        if (given_.quantise_d == name(way)) continue;
        add(std::string("D as ") + name(way), m, n - 8, round_,
            std::string("--quantise-d ") + name(way));
      }
    }
    if (given_.weights.empty()) return;
    for (const int group : {32, 64, 128}) {
      if (given_.group.value_or(128) == group) continue;
      add("groups of " + std::to_string(group) + " weights", m, n, round_,
          "--group " + std::to_string(group));
    }
  }

  // A cluster of two along either side, of four, and the widest: with a second tile for every CTA
  // where that is no great product.
  void add_clusters() {
    std::vector<atom::ClusterShape> chosen;
    for (const int size : {1, 2, 4, kernel_.most_cluster_ctas()}) {
      for (const atom::ClusterShape& c : kernel_.clusters) {
        if (atom::cluster_size(c) == size && std::ranges::find(chosen, c) == chosen.end()) {
          chosen.push_back(c);
        }
      }
    }
    for (const atom::ClusterShape& c : chosen) {
      const int size = atom::cluster_size(c);
      const std::int64_t m = rows_ * (kernel_.swap_ab ? c.n : c.m);
      const std::int64_t n = columns_ * (kernel_.swap_ab ? c.m : c.n);
      const std::string what = "clusters of " + atom::cluster_text(c);
      add(what, m, (size <= 4 ? 2 : 1) * n, size <= 4 ? round_ : 2 * k_tile_, cluster(c));
      if (size == 1 || size > 4) continue;
      add(what + " at ragged edges, two at once", 2 * m - 7, 2 * n - 3, k_tile_,
          cluster(c, 2) + c_);
    }
  }

  void add_shares() {
    const auto on = [](const char* option, int ctas) {
      const std::string count = std::to_string(ctas);
      return option + (" " + count + " --sms " + count);
    };
    for (const int ctas : {2, 3, 5, 8, 16}) {
      if (!kernel_.shares_cluster_k) break;
      const std::string what = std::to_string(ctas) + " CTAs share a tile";
      add(what, rows_ - 1, 2 * columns_, (2 * ctas + 1) * k_tile_, on("--cluster-k", ctas));
      if (ctas > 3) continue;
      add(what + ", with C", rows_, 2 * columns_ - 8, ctas * round_,
          on("--cluster-k", ctas) + " --beta 1");
    }
    for (const int ctas : {2, 5, 13}) {
      if (!has_feature(kernel_, "split-K in slices")) break;
      const std::string what = "a tile in slices of " + std::to_string(ctas) + " CTAs";
      add(what, rows_ - 1, columns_ - 8, (ctas * std::max(2, kernel_.stages) + 1) * k_tile_,
          on("--ctas", ctas));
      add(what + ", with C and a bias", rows_, columns_, ctas * k_tile_,
          on("--ctas", ctas) + " --beta 1 --bias columns");
    }
    if (!has_feature(kernel_, "stream-K")) return;
    for (const int ctas : {2, 3, 5}) {
      add("a tile in " + std::to_string(ctas) + " parts", rows_, columns_,
          (ctas * std::max(2, kernel_.stages) + 1) * k_tile_, on("--ctas", ctas));
      add(std::to_string(ctas + 2) + " tiles on " + std::to_string(ctas) + " CTAs",
          (ctas + 2) * rows_ - 3, columns_, round_ + k_tile_, on("--ctas", ctas));
    }
    add("a tile in parts, with C and a bias", rows_ - 3, columns_, 3 * round_,
        on("--ctas", 3) + c_ + " --bias columns");
    for (const atom::ClusterShape& c : kernel_.clusters) {
      if (atom::cluster_size(c) != 2) continue;
      add("a tile in parts, clusters of " + atom::cluster_text(c), rows_ * 2, columns_ * 2,
          2 * round_, cluster(c, 3) + " --ctas 6");
    }
  }

  void add_dense() {
    add("fewer tiles than SMs", rows_, columns_, round_, sms(4));
    add("tiles that do not come out even", 3 * rows_, columns_, round_, sms(2));
    if (kernel_.swap_ab) {
      add("eight tokens", 8, 2 * columns_ - 3, round_);
      add("three tokens, with C", 3, columns_, round_, c_);
    }
    add("a batch", rows_ + 3, columns_, round_, "--batch 3");
    add("no K", 2 * rows_, columns_, 0);
    for (const std::string scheduler : {"static", "dynamic"}) {
      add("tiles by a " + scheduler + " scheduler", 4 * rows_, 2 * columns_, k_tile_,
          "--scheduler " + scheduler + sms(2));
    }
    if (has_feature(kernel_, "any layout")) {
      for (const std::string layout : {"NN", "TN", "TT"}) {
        add("layout " + layout, 2 * rows_ - 6, 2 * columns_ - 8, round_, "--layout " + layout);
      }
      add("layout TN in clusters of 2x2", 4 * rows_ - 6, 2 * columns_ - 8, round_,
          "--layout TN" + cluster({2, 2}));
    }
    // Rows that begin at multiples of 8, 4 and 2 bytes: the extents themselves say it.
    for (const auto& [what, add_to_k] : {std::pair{"rows at multiples of 8 bytes", 4},
                                         {"rows at multiples of 4 bytes", 2},
                                         {"rows at odd elements", 1}}) {
      all_.push_back({what, {plain(rows_ + 3, columns_ + 5, round_ + add_to_k)}});
    }
  }

  void add_groups() {
    const std::int64_t n = 2 * columns_;
    const std::int64_t t = rows_;
    const std::string rest = groups({5, 0, t}) + " --total " + std::to_string(2 * t + 9);
    const auto marked = [this](bool GemmOptions::*flag) {
      for (GemmOptions& o : all_.back().options) o.*flag = true;
    };
    add("empty groups and ragged ones", 1, n, round_, groups({0, t + 3, 0, 7, 1, t, 0}));
    add("rows in no group", 1, n, k_tile_, rest);
    add("rows in no group that become 0", 1, n, k_tile_, rest);
    marked(&GemmOptions::zero_rest);
    add("one group", 1, n, round_, groups({t / 2 + 1}));
    add("groups without a token", 1, n, round_, groups({0, 0, 0}));
    add("more SMs than tiles", 1, columns_, round_, groups({0, t / 2 + 1, 0}) + sms(4));
    std::vector<std::int64_t> many(70, 0);
    for (std::size_t g = 0; g < many.size(); g += 3) many[g] = static_cast<std::int64_t>(g % 5);
    add("more groups than lanes", 1, columns_, k_tile_, groups(many));
    add("offsets of 64 bits", 1, n, k_tile_, groups({t, 3}) + " --offsets int64");
    if (kernel_.gathers || kernel_.may_gather) {
      const std::string by_index =
          groups({3, 0, t + 1}) + " --rows-index random:" + std::to_string(t);
      add("tokens by index", 1, n, round_, by_index);
      add("tokens by index, ragged, with a bias", 1, n - 3, round_ + 16,
          by_index + " --bias columns");
      add("slots of a router", 1, n, k_tile_, by_index + " --rows-divisor 4");
      for (const atom::ClusterShape& c : kernel_.clusters) {
        if (atom::cluster_size(c) != 2) continue;
        add("tokens by index in clusters of " + atom::cluster_text(c), 1, 2 * n, round_,
            by_index + cluster(c));
      }
    }
    add("offsets that are looked at", 1, columns_, k_tile_, groups({3, 0, t + 1}));
    marked(&GemmOptions::check_offsets);
    add("groups of several tiles", 1, columns_, round_, groups({3 * t - 1, 2 * t, t + 1}));
    all_.push_back({"rows at odd elements", {plain(t + 3, columns_ + 5, round_ + 1)}});
  }

  const GemmOptions& given_;
  const KernelFacts& kernel_;
  std::int64_t rows_, columns_, k_tile_;
  atom::ClusterShape smallest_;
  std::int64_t round_;
  std::string c_;        // there is a C, which a gated product has not
  GemmOptions options_;  // as app_ reads them
  CLI::App app_;
  std::vector<Companion> all_;
};

// The model's own architecture needs no name.
std::string device_for(const KernelFacts& kernel) {
  const auto runs_on = [&kernel](int architecture) {
    return std::find(kernel.architectures.begin(), kernel.architectures.end(), architecture) !=
           kernel.architectures.end();
  };
  if (runs_on(model_facts().architecture)) return "";
  for (const std::string_view name : known_devices()) {
    if (runs_on(known_facts(name)->architecture)) return std::string(name);
  }
  return "";
}

// The formats of operands whose scales the tensor core multiplies; for a kernel that takes several
// A's are bytes and B's padded, plain tokens beside weights.
std::string formats_for(const KernelFacts& kernel) {
  const bool plain = has_feature(kernel, "plain tokens");
  const DType a = kernel.a.front();
  const DType b = kernel.b.size() > 1 ? DType::e2m1 : kernel.b.front();
  const DType scale = kernel.micro_scales.front();
  return micro_words(plain ? plain_tokens : known_micro_format(a, scale),
                     known_micro_format(b, scale));
}

// The first format of packed weights with such codes for such tokens.
std::string weights_for(DType code, DType tokens) {
  for (const packed::WeightForm& form : packed::weight_forms) {
    const packed::WeightFormat& format = packed::format_of(form);
    if (format.code == code && form.tokens == tokens) return format.word;
  }
  return "";
}

// What the kernel's facts say of the arguments.
GemmOptions words_for(const KernelFacts& kernel) {
  GemmOptions o;
  o.kernel = kernel.name;
  o.is_grouped = kernel.grouped;
  o.as = device_for(kernel);
  const DType a = kernel.a.front(), b = kernel.b.front();
  o.dtype = std::string(numeric::word(a));
  const std::string weights = weights_for(b, a);
  if (!kernel.micro_scales.empty()) {
    o.dtype = formats_for(kernel);
  } else if (!weights.empty() && kernel.architecture == 90) {
    o.weights = weights;
    o.zero_points = has_feature(kernel, "zero points");
    for (const std::string& feature : kernel.features) {
      for (const char* sums : {"exact", "chained", "folded", "table"}) {
        if (feature.starts_with(std::string(sums) + " sums")) o.sums = sums;
      }
      if (a == DType::e4m3 && feature.starts_with("fast sums")) o.sums = "folded";
      if (feature.ends_with("block scales of A")) o.scaling = "blockwise";
    }
  } else if (a != b) {
    o.dtype += "," + std::string(numeric::word(b));
  }
  const bool codes = !kernel.d_scales.empty();
  if (!codes && kernel.result != natural_result(a)) {
    o.d_dtype = std::string(numeric::word(kernel.result));
  }
  if (has_feature(kernel, "block scales")) o.scaling = "blockwise";
  for (const char* block : {"64", "32"}) {
    const std::string each = std::string("a scale each ") + block + " x " + block;
    if (has_feature(kernel, each.c_str())) o.block = block;
  }
  if (has_feature(kernel, "promoted")) o.accumulation = "promoted";
  o.gated = has_feature(kernel, "gated");
  if (has_feature(kernel, "quantises D")) o.quantise_d = name(QuantiseD::block_1x128);
  for (const QuantiseD way : all_quantisations) {
    const bool is_made = codes && form_of(way).codes == kernel.result;
    if (is_made && form_of(way).scale == kernel.d_scales.front()) o.quantise_d = name(way);
  }
  for (const char* layout : {"NN", "TN", "TT"}) {
    if (has_feature(kernel, (std::string("layout ") + layout).c_str())) o.layout = layout;
  }
  return o;
}

}  // namespace

std::vector<Companion> companions_of(const GemmOptions& given, const Plan& plan) {
  return Companions(given, plan).made();
}

GemmOptions product_for(const KernelFacts& kernel) {
  GemmOptions o = words_for(kernel);
  const int rounds = std::max(1, kernel.stages) + 2;
  const std::int64_t n = (o.gated ? 4 : 2) * std::int64_t{kernel.result_columns};
  const std::int64_t k = std::int64_t{rounds} * kernel.tile.k;
  if (o.is_grouped) {
    o.groups = 3;
    o.tokens = std::to_string(kernel.result_rows + 3) + ",0," + std::to_string(kernel.result_rows);
    if (kernel.gathers) o.rows_index = "random:" + std::to_string(kernel.result_rows);
    o.n = n;
    o.k = k;
  } else {
    o.random = {2 * std::int64_t{kernel.result_rows}, n, k};
  }
  return o;
}

}  // namespace warpwright::cli
