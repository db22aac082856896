// Runs the kernel on the machine model, and the shapes on which each of its lines runs.
#pragma once

#include <stdexcept>

#include "../common/gemm_case.h"
#include "pair_gemm.h"

namespace study::pairs {

/// Why the kernel does not take the case, or an empty string. Like the original it knows no ragged
/// edges, and its order of tiles wants an even number of them along M.
template <Shape S>
std::string fault(const Case& c) {
  if (c.cluster_m != S.ctas || c.cluster_n != 1) return "another cluster";
  if (c.m <= 0 || c.m % 256 != 0) return "m is no multiple of 256";
  if (c.n <= 0 || c.n % S.bn != 0) return "n is no multiple of a tile's columns";
  if (c.k <= 0 || c.k % 64 != 0) return "k is no multiple of 64";
  return c.clusters < 1 ? "no cluster" : "";
}

/// Runs a case under every schedule of `schedules`, and compares D with sums in float64. Throws
/// std::invalid_argument with the fault of a case that the kernel does not take.
template <Shape S, class Way = Mended>
testing::Outcome run_case(const Case& c, const testing::Schedules& schedules = {}) {
  using Kernel = PairGemm<S, Way>;
  if (const std::string why = fault<S>(c); !why.empty()) throw std::invalid_argument(why);
  Product product(c.m, c.n, c.k);
  const Params p{.a = operand_map(product.a, c.m, c.k, Kernel::bm),
                 .b = operand_map(product.b, c.n, c.k, Kernel::rows_b),
                 .d = reinterpret_cast<std::uint16_t*>(product.d.data()),
                 .m = c.m,
                 .n = c.n,
                 .k = c.k};
  const testing::Launch launch{.ctas = c.clusters * S.ctas,
                               .cluster_size = S.ctas,
                               .threads = Kernel::threads,
                               .shared_bytes = Kernel::shared_bytes,
                               .sms = c.sms,
                               .schedules = schedules,
                               .verify = [&] { return product.verify(false); }};
  return testing::run([&] { Kernel::run(p); }, launch, product.a, product.b, product.d);
}

/// Narrower than on a GPU, where bn is 256, and with fewer stages: an element takes its time here.
inline constexpr Shape alone{.bn = 32, .stages = 3, .ctas = 1};
inline constexpr Shape pair{.bn = 64, .stages = 3, .ctas = 2};

/// Every case of the study under `schedules`. The word by which the family finds the kernel's
/// statements is the type of its edges.
inline testing::Family all_cases(const testing::Schedules& schedules = {}) {
  testing::Family family({"Mended"});
  const auto one = [&]<Shape S>(Case c) {
    c.cluster_m = S.ctas;
    family.add(c.name, run_case<S>(c, schedules));
  };
  one.template operator()<alone>(
      {.name = "one k_tile, one CTA", .m = 256, .n = 32, .k = 64, .clusters = 2});
  one.template operator()<alone>(
      {.name = "accumulators that come round, one CTA", .m = 256, .n = 96, .k = 128});
  one.template operator()<pair>({.name = "one k_tile", .m = 256, .n = 64, .k = 64});
  one.template operator()<pair>({.name = "a ring that comes round", .m = 256, .n = 64, .k = 320});
  one.template operator()<pair>(
      {.name = "accumulators that come round", .m = 256, .n = 320, .k = 64});
  one.template operator()<pair>(
      {.name = "pairs with one tile and with two", .m = 768, .n = 64, .k = 64, .clusters = 2});
  one.template operator()<pair>(
      {.name = "a pair without a tile", .m = 256, .n = 64, .k = 64, .clusters = 2});
  return family;
}

}  // namespace study::pairs
