// Runs the kernel on the machine model, and the shapes on which each of its lines runs.
#pragma once

#include <stdexcept>

#include "../common/gemm_case.h"
#include "ladder_gemm.h"
#include "tile_order.h"

namespace study::ladder {

/// Why the kernel does not take the case, or an empty string. Like the original it knows no ragged
/// edges.
template <Shape S>
std::string fault(const Case& c) {
  if (c.cluster_m != S.cluster_m || c.cluster_n != S.cluster_n) return "another cluster";
  if (c.m <= 0 || c.m % (128 * S.cluster_m) != 0) return "m is no multiple of a cluster's rows";
  if (c.n <= 0 || c.n % (S.bn * S.cluster_n) != 0) return "n is no multiple of a cluster's columns";
  if (c.k <= 0 || c.k % 64 != 0) return "k is no multiple of 64";
  if (c.clusters < 1) return "no cluster";
  const int tiles = c.m / (128 * S.cluster_m) * (c.n / (S.bn * S.cluster_n));
  if (tiles > c.clusters * list_length) return "more tiles than a cluster's list holds";
  return "";
}

/// D by columns through a box of 72 x bn, of which 64 x bn lie inside the tensor.
template <class Kernel>
auto output_map(bf16_t* d, int m, int n) {
  warpwright::model::TensorMapFields f;
  f.base = reinterpret_cast<std::uintptr_t>(d);
  f.rank = 3;
  f.extents = {64, static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(m / 64)};
  f.strides = {static_cast<std::uint64_t>(m) * sizeof(bf16_t), 64 * sizeof(bf16_t)};
  f.box = {Kernel::box_rows, static_cast<std::uint16_t>(Kernel::shape.bn), 1};
  f.element_bits = 8 * sizeof(bf16_t);
  f.element_kind = testing::element_kind<bf16_t>();
  if (const auto why = warpwright::model::invalid(f)) throw std::invalid_argument(*why);
  return warpwright::model::encode(f);
}

/// Runs a case under every schedule of `schedules`, and compares D with sums in float64. Throws
/// std::invalid_argument with the fault of a case that the kernel does not take.
template <Shape S, class Way = Mended>
testing::Outcome run_case(const Case& c, const testing::Schedules& schedules = {}) {
  using Kernel = LadderGemm<S, Way>;
  if (const std::string why = fault<S>(c); !why.empty()) throw std::invalid_argument(why);
  Product product(c.m, c.n, c.k);
  const std::vector<int> order =
      tile_lists(c.m / (Kernel::bm * S.cluster_m), c.n / (S.bn * S.cluster_n), c.clusters);
  testing::Buffer<int> lists("lists", order.size(), testing::Access::input);
  for (std::size_t i = 0; i < order.size(); ++i) lists[i] = order[i];
  const Params p{.a = operand_map(product.a, c.m, c.k, Kernel::bm),
                 .b = operand_map(product.b, c.n, c.k, S.bn),
                 .d = output_map<Kernel>(product.d.data(), c.m, c.n),
                 .lists = lists.data(),
                 .k = c.k};
  const testing::Launch launch{.ctas = c.clusters * Kernel::ctas,
                               .cluster_size = Kernel::ctas,
                               .threads = Kernel::threads,
                               .shared_bytes = Kernel::shared_bytes,
                               .registers_per_thread = Kernel::registers,
                               .sms = c.sms,
                               .schedules = schedules,
                               .verify = [&] { return product.verify(true); }};
  return testing::run([&] { Kernel::run(p); }, launch, product.a, product.b, product.d, lists);
}

/// The tile is narrower on the model than on a GPU, where bn is 256: an element takes its time
/// here.
inline constexpr Shape alone{.bn = 64, .stages = 3, .cluster_m = 1, .cluster_n = 1};
inline constexpr Shape pair{.bn = 64, .stages = 3, .cluster_m = 2, .cluster_n = 1};
inline constexpr Shape wide{.bn = 64, .stages = 3, .cluster_m = 1, .cluster_n = 2};
inline constexpr Shape four{.bn = 64, .stages = 3, .cluster_m = 2, .cluster_n = 2};

/// Every case of the study under `schedules`. The word by which the family finds the kernel's
/// statements is the type of its edges.
inline testing::Family all_cases(const testing::Schedules& schedules = {}) {
  testing::Family family({"Mended"});
  const auto one = [&]<Shape S>(Case c) {
    c.cluster_m = S.cluster_m;
    c.cluster_n = S.cluster_n;
    family.add(c.name, run_case<S>(c, schedules));
  };
  one.template operator()<alone>({.name = "one k_tile", .m = 128, .n = 64, .k = 64});
  one.template operator()<alone>({.name = "a ring that comes round", .m = 128, .n = 64, .k = 256});
  one.template operator()<alone>({.name = "three tiles", .m = 384, .n = 64, .k = 128});
  one.template operator()<pair>({.name = "pairs share B", .m = 256, .n = 192, .k = 128});
  one.template operator()<pair>(
      {.name = "a cluster without a tile", .m = 256, .n = 64, .k = 128, .clusters = 2});
  one.template operator()<wide>({.name = "pairs share A", .m = 256, .n = 128, .k = 128});
  one.template operator()<four>({.name = "four share both", .m = 512, .n = 128, .k = 128});
  return family;
}

}  // namespace study::ladder
