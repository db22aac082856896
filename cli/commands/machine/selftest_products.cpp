#include "cli/commands/machine/selftest_products.h"

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <sstream>
#include <utility>

#include "cli/commands/gemm/product.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/families/kernel_list.h"

namespace warpwright::cli {
namespace {

// M, N and K of a product; for one in groups M is the tokens of its only group.
void set_extents(GemmOptions& o, std::int64_t m, std::int64_t n, std::int64_t k) {
  if (!o.is_grouped) {
    o.random = {m, n, k};
    return;
  }
  o.groups = 1;
  o.tokens = std::to_string(m);
  if (!o.rows_index.empty()) o.rows_index = "random:" + std::to_string(m);
  o.n = n;
  o.k = k;
}

// The smallest product first, then larger and rounder ones for kernels that want multiples.
Companion smallest(const GemmOptions& given, const KernelFacts& kernel) {
  Companion all{"the smallest", {}};
  const std::int64_t rows = kernel.result_rows, columns = kernel.result_columns;
  const std::int64_t gate = given.gated ? 2 : 1;
  const std::array<std::array<std::int64_t, 3>, 7> extents{{{1, 1, 1},
                                                            {1, 8, 8},
                                                            {1, 16, 32},
                                                            {1, 64, 64},
                                                            {1, columns, kernel.tile.k},
                                                            {1, columns, 2 * kernel.tile.k},
                                                            {rows, columns, 4 * kernel.tile.k}}};
  for (const auto& [m, n, k] : extents) {
    all.options.push_back(given);
    set_extents(all.options.back(), m, gate * n, k);
  }
  return all;
}

GemmOptions typed(const std::string& dtype, const std::string& weights, bool is_grouped) {
  GemmOptions o;
  o.is_grouped = is_grouped;
  o.dtype = dtype;
  o.weights = weights;
  return o;
}

}  // namespace

GemmOptions SelftestPlace::at(GemmOptions o) const {
  o.device = device;
  o.seed = seed;
  o.no_tuning = true;
  if (device != "model") {
    o.as.clear();
    o.sms.reset();
  } else if (!as.empty()) {
    o.as = as;
  }
  return o;
}

std::vector<const KernelFacts*> selftest_kernels(int architecture) {
  std::vector<const KernelFacts*> found = all_kernels();
  std::erase_if(found, [&](const KernelFacts* k) {
    return !k->built ||
           (architecture != 0 && std::find(k->architectures.begin(), k->architectures.end(),
                                           architecture) == k->architectures.end());
  });
  return found;
}

std::vector<Companion> selftest_products(const KernelFacts& kernel, const SelftestPlace& place,
                                         int more) {
  const GemmOptions given = place.at(product_for(kernel));
  std::ostringstream silent;
  const Product product(given, facts_of(given), silent);
  std::vector<Companion> others = companions_of(given, product.plan);
  std::mt19937_64 draw(place.seed + std::hash<std::string>{}(kernel.name));
  for (std::size_t i = others.size(); i > 2; --i) {  // the ragged one stays in front
    std::swap(others[i - 1], others[1 + draw() % (i - 1)]);
  }
  std::vector<Companion> all = {smallest(given, kernel)};
  const std::size_t count = std::min(others.size(), static_cast<std::size_t>(1 + more));
  std::move(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(count),
            std::back_inserter(all));
  for (Companion& companion : all) {
    for (GemmOptions& o : companion.options) o = place.at(std::move(o));
  }
  return all;
}

std::vector<Companion> selftest_types(const SelftestPlace& place) {
  std::vector<Companion> all;
  for (const bool is_grouped : {false, true}) {
    const auto add = [&](const std::string& dtype, const std::string& weights) {
      GemmOptions o = typed(dtype, weights, is_grouped);
      o.n = 256;
      o.k = 256;
      if (is_grouped) {
        o.groups = 4;
        o.tokens = "5,0,33,1";
      } else {
        o.random = {100, 256, 256};
        o.n = o.k = std::nullopt;
      }
      std::string what = dtype;
      if (!weights.empty()) what.append(" by packed ").append(weights);
      if (is_grouped) what += ", groups";
      all.push_back({std::move(what), {place.at(o)}});
    };
    for (const char* dtype : {"bf16", "fp16", "tf32", "e4m3", "e5m2", "s8", "mxf8", "mxf6", "mxf4",
                              "nvf4", "mxf8,mxf4"}) {
      add(dtype, "");
    }
    for (const packed::WeightForm& form : packed::weight_forms) {  // fp16 is as bf16
      if (form.bench == nullptr || form.tokens == DType::f16) continue;
      add(std::string(numeric::word(form.tokens)).c_str(), packed::format_of(form).word);
    }
  }
  return all;
}

std::vector<SelftestMixture> selftest_mixtures(const SelftestPlace& place) {
  std::vector<SelftestMixture> all;
  const auto add = [&](const std::string& dtype, const std::string& weights) {
    MoeOptions o;
    o.device = place.device;
    if (place.device == "model") o.as = place.as;
    o.seed = place.seed;
    o.tokens = 9;
    o.experts = 8;
    o.top_k = 2;
    o.hidden = 256;
    o.inner = 128;
    o.dtype = dtype;
    o.weights = weights;
    all.push_back({dtype + (weights.empty() ? "" : " by packed " + weights), o});
  };
  for (const char* dtype : {"bf16", "e4m3", "mxf8", "nvf4"}) add(dtype, "");
  add("e4m3", "int4");
  add("bf16", "mxf4");
  return all;
}

std::vector<Companion> selftest_shapes(const SelftestPlace& place, const std::string& half) {
  std::vector<Companion> all;
  const auto add = [&](const std::string& dtype, std::vector<std::int64_t> extents) {
    GemmOptions o = typed(dtype, "", false);
    const std::string what = dtype + " " + std::to_string(extents[0]) + " x " +
                             std::to_string(extents[1]) + " x " + std::to_string(extents[2]);
    o.random = std::move(extents);
    all.push_back({what, {place.at(o)}});
  };
  add(half, {1, 4096, 4096});
  add(half, {16, 4096, 4096});
  add(half, {64, 4096, 7168});
  add(half, {512, 4096, 4096});
  add(half, {2048, 2048, 2048});
  add(half, {4096, 4096, 4096});
  add("e4m3", {64, 4096, 7168});
  add("e4m3", {4096, 4096, 4096});
  add("s8", {2048, 2048, 2048});
  GemmOptions grouped = typed(half, "", true);
  grouped.groups = 8;
  grouped.tokens = "64";
  grouped.n = grouped.k = 2048;
  all.push_back({half + " 8 groups of 64 x 2048 x 2048", {place.at(grouped)}});
  return all;
}

}  // namespace warpwright::cli
