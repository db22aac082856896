#include "cli/commands/gemm/companions.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <utility>

#include "cli/commands/gemm/operand_files.h"
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

// The list of companions as it is made: extents in tiles of the kernel.
class Companions {
 public:
  Companions(const GemmOptions& given, const Plan& plan)
      : given_(given),
        kernel_(plan.facts()),
        rows_(kernel_.result_rows),
        columns_(kernel_.result_columns),
        k_tile_(kernel_.tile.k) {
    smallest_ = *std::min_element(
        kernel_.clusters.begin(), kernel_.clusters.end(),
        [](const auto& a, const auto& b) { return atom::cluster_size(a) < atom::cluster_size(b); });
    round_ = (std::max(1, kernel_.stages) + 2) * k_tile_;
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
  using Change = std::function<void(GemmOptions&)>;

  // The given arguments without what a companion varies: the kernel in its smallest cluster, on as
  // many SMs as that has, so that every CTA has several tiles.
  [[nodiscard]] GemmOptions plain(std::int64_t m, std::int64_t n, std::int64_t k) const {
    GemmOptions o;
    o.is_grouped = given_.is_grouped;
    o.as = given_.as;
    o.mode = given_.mode;
    o.seed = given_.seed;
    o.layout = given_.layout;
    o.dtype = given_.dtype;
    o.d_dtype = given_.d_dtype;
    o.scaling = given_.scaling;
    o.accumulation = given_.accumulation;
    o.weights = given_.weights;
    o.sums = given_.sums;
    o.group = given_.group;
    o.zero_points = given_.zero_points;
    o.gated = given_.gated;
    o.quantise_d = given_.quantise_d;
    o.scheduler = given_.scheduler;
    o.kernel = kernel_.name;
    set_cluster(o, smallest_);
    set_extents(o, m, n, k);
    return o;
  }

  void set_extents(GemmOptions& o, std::int64_t m, std::int64_t n, std::int64_t k) const {
    const std::int64_t product_n = o.gated ? 2 * n : n;
    if (!o.is_grouped) {
      o.random = {m, product_n, k};
      return;
    }
    o.n = product_n;
    o.k = k;
    set_tokens(o, {m, 0, (m + 1) / 2});
    if (kernel_.gathers) o.rows_index = "random:" + std::to_string(m);
  }

  static void set_tokens(GemmOptions& o, const std::vector<std::int64_t>& lengths) {
    o.groups = static_cast<std::int64_t>(lengths.size());
    o.tokens.clear();
    for (const std::int64_t length : lengths) {
      o.tokens += (o.tokens.empty() ? "" : ",") + std::to_string(length);
    }
  }

  static void set_cluster(GemmOptions& o, const atom::ClusterShape& cluster) {
    o.cluster = text_of(cluster);
    o.sms = atom::cluster_size(cluster);
  }

  // The extents first, then smaller and rounder ones for kernels that want multiples.
  void add(const std::string& what, std::int64_t m, std::int64_t n, std::int64_t k,
           const Change& change = {}) {
    Companion companion{what, {}};
    const auto down = [](std::int64_t x, std::int64_t unit) {
      return std::max(unit, x / unit * unit);
    };
    for (const std::int64_t unit : {1, 8, 16, 32, 64, 128}) {
      GemmOptions o = plain(m, down(n, unit), unit == 1 ? k : (k + unit - 1) / unit * unit);
      if (change) change(o);
      companion.options.push_back(std::move(o));
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
    const auto with_c = [](GemmOptions& o) { o.beta = "1"; };
    add("C", 2 * rows_, 2 * columns_, round_, with_c);
    add("C, narrow", m, 2 * columns_ - 8, round_, with_c);
    add("C, ragged", m, 2 * columns_ - 3, round_, with_c);
    add("C, f32", m, 2 * columns_, k_tile_, [](GemmOptions& o) {
      o.beta = "1";
      o.d_dtype = "f32";
    });
    add("C in place", m, 2 * columns_ - 8, round_, [](GemmOptions& o) {
      o.beta = "1";
      o.in_place = true;
    });
    // Rows that end within 16 bytes and begin at multiples of 16.
    add("rows with gaps", m, 2 * columns_ - 3, round_,
        [gap = 2 * columns_](GemmOptions& o) { o.pitch = gap; });
    add("rows with gaps, with C", m, 2 * columns_ - 3, k_tile_,
        [gap = 2 * columns_](GemmOptions& o) {
          o.beta = "1";
          o.pitch = gap;
        });
    // Where the extents must be even, only the pitch has rows begin anywhere.
    add("rows an odd number of elements apart", m, 2 * columns_ - 8, k_tile_,
        [gap = 2 * columns_ + 1](GemmOptions& o) { o.pitch = gap; });
    add("a bias of columns", m, 2 * columns_, round_, [](GemmOptions& o) {
      o.bias = "columns";
      if (!o.gated) o.activation = "gelu";
    });
    // Packed weights lie in halves.
    if (given_.gated) {
      add("a gate with limits", m, 2 * columns_, round_, [](GemmOptions& o) {
        o.activation = "swiglu_oai";
        o.gate.limit = "0.5";  // of random operands many are beyond
        if (o.weights.empty()) o.gate_up = "interleaved";
        o.bias = "columns";
      });
    }
    add("a bias of columns, ragged", m, 2 * columns_ - 3, k_tile_,
        [](GemmOptions& o) { o.bias = "columns"; });
    add("a bias of rows", m, 2 * columns_ - 3, k_tile_, [](GemmOptions& o) { o.bias = "rows"; });
    add("nothing to multiply", m, columns_, k_tile_, [](GemmOptions& o) { o.alpha = "0"; });
  }

  void add_scales() {
    for (const char* scaling : {"none", "tensor", "row-column", "group"}) {
      if (given_.scaling == scaling || (given_.scaling.empty() && scaling == std::string("none")))
        continue;
      add(std::string("scales: ") + scaling, 2 * rows_ - 6, 2 * columns_, round_,
          [scaling](GemmOptions& o) { o.scaling = scaling; });
    }
    if (given_.scaling == "blockwise") {
      add("block scales by rows", 2 * rows_ - 6, 2 * columns_ - 8, round_,
          [](GemmOptions& o) { o.scales_major = "k"; });
    }
    if (!kernel_.micro_scales.empty() && kernel_.b.size() > 1) {
      const bool plain = has_feature(kernel_, "plain tokens");
      for (const char* formats : {"mxf8", "mxf6", "mxf4,mxf8", "mxf6-e3m2,mxf8-e5m2"}) {
        const std::string words = plain ? "e4m3," + std::string(formats) : formats;
        if (plain && words.find(',') != words.rfind(',')) continue;
        add("operands of " + words, 2 * rows_ - 6, 2 * columns_, round_,
            [words](GemmOptions& o) { o.dtype = words; });
      }
    }
    // For packed elements with scales of another format, and codes of one.
    for (const DType scale : kernel_.micro_scales) {
      const MicroFormat format = known_micro_format(kernel_.a.front(), scale);
      if (kernel_.micro_scales.size() < 2 || given_.dtype == format.word) continue;
      add(std::string("operands of ") + format.word, 2 * rows_ - 6, 2 * columns_ - 8, round_,
          [word = format.word](GemmOptions& o) { o.dtype = word; });
      for (const QuantiseD way : all_quantisations) {
        const bool is_made = kernel_.makes_scales(form_of(way).scale);
        if (!is_made || form_of(way).codes != kernel_.result) continue;
        if (given_.quantise_d == name(way)) continue;
        add(std::string("D as ") + name(way), 2 * rows_ - 6, 2 * columns_ - 8, round_,
            [word = name(way)](GemmOptions& o) { o.quantise_d = word; });
      }
    }
    if (given_.weights.empty()) return;
    for (const int group : {32, 64, 128}) {
      if (given_.group.value_or(128) == group) continue;
      add("groups of " + std::to_string(group) + " weights", 2 * rows_ - 6, 2 * columns_, round_,
          [group](GemmOptions& o) { o.group = group; });
    }
  }

  // A cluster of two along either side, of four, and the widest: with a second tile for every CTA
  // where that is no great product.
  void add_clusters() {
    std::vector<atom::ClusterShape> chosen;
    for (const int size : {1, 2, 4, kernel_.most_cluster_ctas()}) {
      for (const atom::ClusterShape& c : kernel_.clusters) {
        if (atom::cluster_size(c) == size &&
            std::find(chosen.begin(), chosen.end(), c) == chosen.end()) {
          chosen.push_back(c);
        }
      }
    }
    for (const atom::ClusterShape& c : chosen) {
      const int size = atom::cluster_size(c);
      const std::int64_t m = rows_ * (kernel_.swap_ab ? c.n : c.m);
      const std::int64_t n = columns_ * (kernel_.swap_ab ? c.m : c.n);
      const std::int64_t twice = size <= 4 ? 2 : 1;
      add("clusters of " + atom::cluster_text(c), m, twice * n, size <= 4 ? round_ : 2 * k_tile_,
          [c](GemmOptions& o) { set_cluster(o, c); });
      if (size == 1 || size > 4) continue;
      add("clusters of " + atom::cluster_text(c) + " at ragged edges, two at once", 2 * m - 7,
          2 * n - 3, k_tile_, [c, size](GemmOptions& o) {
            set_cluster(o, c);
            o.sms = 2 * size;
            o.beta = o.gated ? "" : "1";
          });
    }
  }

  void add_shares() {
    if (kernel_.shares_cluster_k) {
      for (const int ctas : {2, 3, 5, 8, 16}) {
        const auto shared = [ctas](GemmOptions& o) {
          o.cluster.clear();
          o.cluster_k = ctas;
          o.sms = ctas;
        };
        add(std::to_string(ctas) + " CTAs share a tile", rows_ - 1, 2 * columns_,
            (2 * ctas + 1) * k_tile_, shared);
        if (ctas > 3) continue;
        add(std::to_string(ctas) + " CTAs share a tile, with C", rows_, 2 * columns_ - 8,
            ctas * round_, [shared](GemmOptions& o) {
              shared(o);
              o.beta = "1";
            });
      }
    }
    if (has_feature(kernel_, "split-K in slices")) {
      for (const int ctas : {2, 5, 13}) {
        const auto sliced = [ctas](GemmOptions& o) { o.ctas = o.sms = ctas; };
        add("a tile in slices of " + std::to_string(ctas) + " CTAs", rows_ - 1, columns_ - 8,
            (ctas * std::max(2, kernel_.stages) + 1) * k_tile_, sliced);
        add("a tile in slices of " + std::to_string(ctas) + " CTAs, with C and a bias", rows_,
            columns_, ctas * k_tile_, [sliced](GemmOptions& o) {
              sliced(o);
              o.beta = "1";
              o.bias = "columns";
            });
      }
    }
    if (has_feature(kernel_, "stream-K")) {
      for (const int ctas : {2, 3, 5}) {
        const auto split = [ctas](GemmOptions& o) {
          o.ctas = ctas;
          o.sms = ctas;
        };
        add("a tile in " + std::to_string(ctas) + " parts", rows_, columns_,
            (ctas * std::max(2, kernel_.stages) + 1) * k_tile_, split);
        add(std::to_string(ctas + 2) + " tiles on " + std::to_string(ctas) + " CTAs",
            (ctas + 2) * rows_ - 3, columns_, round_ + k_tile_, split);
      }
      add("a tile in parts, with C and a bias", rows_ - 3, columns_, 3 * round_,
          [](GemmOptions& o) {
            o.ctas = o.sms = 3;
            if (!o.gated) o.beta = "1";
            o.bias = "columns";
          });
      for (const atom::ClusterShape& c : kernel_.clusters) {
        if (atom::cluster_size(c) != 2) continue;
        add("a tile in parts, clusters of " + atom::cluster_text(c), rows_ * 2, columns_ * 2,
            2 * round_, [c](GemmOptions& o) {
              set_cluster(o, c);
              o.ctas = o.sms = 6;
            });
      }
    }
  }

  void add_dense() {
    add("fewer tiles than SMs", rows_, columns_, round_, [](GemmOptions& o) { *o.sms *= 4; });
    add("tiles that do not come out even", 3 * rows_, columns_, round_,
        [](GemmOptions& o) { *o.sms *= 2; });
    if (kernel_.swap_ab) {
      add("eight tokens", 8, 2 * columns_ - 3, round_);
      add("three tokens, with C", 3, columns_, round_, [](GemmOptions& o) {
        if (!o.gated) o.beta = "1";
      });
    }
    add("a batch", rows_ + 3, columns_, round_, [](GemmOptions& o) { o.batch = 3; });
    add("no K", 2 * rows_, columns_, 0);
    for (const char* scheduler : {"static", "dynamic"}) {
      add(std::string("tiles by a ") + scheduler + " scheduler", 4 * rows_, 2 * columns_, k_tile_,
          [scheduler](GemmOptions& o) {
            o.scheduler = scheduler;
            *o.sms *= 2;
          });
    }
    if (has_feature(kernel_, "any layout")) {
      for (const char* layout : {"NN", "TN", "TT"}) {
        add(std::string("layout ") + layout, 2 * rows_ - 6, 2 * columns_ - 8, round_,
            [layout](GemmOptions& o) { o.layout = layout; });
      }
      add("layout TN in clusters of 2x2", 4 * rows_ - 6, 2 * columns_ - 8, round_,
          [](GemmOptions& o) {
            o.layout = "TN";
            set_cluster(o, {2, 2});
          });
    }
    add_loose();
  }

  // Rows that begin at multiples of 8, 4 and 2 bytes: the extents themselves say it.
  void add_loose() {
    for (const auto& [what, add_to_k] : {std::pair{"rows at multiples of 8 bytes", 4},
                                         {"rows at multiples of 4 bytes", 2},
                                         {"rows at odd elements", 1}}) {
      all_.push_back({what, {plain(rows_ + 3, columns_ + 5, round_ + add_to_k)}});
    }
  }

  void add_groups() {
    const std::int64_t n = 2 * columns_;
    const auto lengths = [](std::vector<std::int64_t> all) {
      return [all = std::move(all)](GemmOptions& o) { set_tokens(o, all); };
    };
    const std::int64_t t = rows_;
    add("empty groups and ragged ones", 1, n, round_, lengths({0, t + 3, 0, 7, 1, t, 0}));
    add("rows in no group", 1, n, k_tile_, [t](GemmOptions& o) {
      set_tokens(o, {5, 0, t});
      o.total = 2 * t + 9;
    });
    add("rows in no group that become 0", 1, n, k_tile_, [t](GemmOptions& o) {
      set_tokens(o, {5, 0, t});
      o.total = 2 * t + 9;
      o.zero_rest = true;
    });
    add("one group", 1, n, round_, lengths({t / 2 + 1}));
    add("groups without a token", 1, n, round_, lengths({0, 0, 0}));
    add("more SMs than tiles", 1, columns_, round_, [t](GemmOptions& o) {
      set_tokens(o, {0, t / 2 + 1, 0});
      *o.sms *= 4;
    });
    std::vector<std::int64_t> many(70, 0);
    for (std::size_t g = 0; g < many.size(); g += 3) many[g] = static_cast<std::int64_t>(g % 5);
    add("more groups than lanes", 1, columns_, k_tile_, lengths(many));
    add("offsets of 64 bits", 1, n, k_tile_, [t](GemmOptions& o) {
      set_tokens(o, {t, 3});
      o.offsets = "int64";
    });
    if (kernel_.gathers || kernel_.may_gather) {
      const auto by_index = [t](GemmOptions& o) {
        set_tokens(o, {3, 0, t + 1});
        o.rows_index = "random:" + std::to_string(t);
      };
      add("tokens by index", 1, n, round_, by_index);
      add("tokens by index, ragged, with a bias", 1, n - 3, round_ + 16,
          [by_index](GemmOptions& o) {
            by_index(o);
            o.bias = "columns";
          });
      add("slots of a router", 1, n, k_tile_, [by_index](GemmOptions& o) {
        by_index(o);
        o.rows_divisor = 4;
      });
      for (const atom::ClusterShape& c : kernel_.clusters) {
        if (atom::cluster_size(c) != 2) continue;
        add("tokens by index in clusters of " + atom::cluster_text(c), 1, 2 * n, round_,
            [by_index, c](GemmOptions& o) {
              by_index(o);
              set_cluster(o, c);
            });
      }
    }
    add("offsets that are looked at", 1, columns_, k_tile_, [t](GemmOptions& o) {
      set_tokens(o, {3, 0, t + 1});
      o.check_offsets = true;
    });
    add("groups of several tiles", 1, columns_, round_, lengths({3 * t - 1, 2 * t, t + 1}));
    all_.push_back({"rows at odd elements", {plain(t + 3, columns_ + 5, round_ + 1)}});
  }

  const GemmOptions& given_;
  const KernelFacts& kernel_;
  std::int64_t rows_, columns_, k_tile_, round_ = 0;
  atom::ClusterShape smallest_{1, 1};
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
