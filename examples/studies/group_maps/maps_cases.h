// Both grids on the machine model, and the groups on which each of their lines runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../common/gemm_case.h"
#include "group_maps.h"

namespace study::maps {

/// Groups by their tokens; so many CTAs make maps, and multiply.
struct Case {
  std::vector<int> tokens;
  int n = 64;
  int k = 64;
  int makers = 2;
  int ctas = 3;
  int launches = 1;
};

/// Runs a case under every schedule of `schedules`; Y is compared with sums in float64. Launches
/// follow each other as programmatic dependent launch lets them.
template <class Way = Mended>
testing::Outcome run_case(const Case& c, const testing::Schedules& schedules = {},
                          const std::optional<warpwright::model::Mutation>& mutation = {}) {
  using Maker = MakeMaps<Way>;
  using Kernel = GroupedGemm<Way>;
  const int groups = static_cast<int>(c.tokens.size());
  testing::Buffer<std::int32_t> offsets("offsets", c.tokens.size() + 1, testing::Access::input);
  offsets[0] = 0;
  for (std::size_t g = 0; g < c.tokens.size(); ++g) offsets[g + 1] = offsets[g] + c.tokens[g];
  const int all = offsets[c.tokens.size()];
  testing::Buffer<bf16_t> x("X", std::size_t(all) * c.k, testing::Access::input);
  testing::Buffer<bf16_t> w("W", std::size_t(groups) * c.n * c.k, testing::Access::input);
  testing::Buffer<bf16_t> y("Y", std::size_t(all) * c.n);
  testing::Buffer<isa::TensorMap> maps("maps", 2 * c.tokens.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = bf16_t(float(int(i % 7) - 3));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = bf16_t(float(int(i % 5) - 2));
  const auto tokens = [&](testing::Buffer<bf16_t>& of, int columns) {
    return Tokens{operand_map(of, all, columns, side),
                  reinterpret_cast<const unsigned char*>(of.data()), std::int64_t{columns} * 2};
  };
  const Params p{.x = tokens(x, c.k),
                 .y = tokens(y, c.n),
                 .w = operand_map(w, groups * c.n, c.k, side),
                 .offsets = {offsets.data(), false, groups, all},
                 .maps = maps.data(),
                 .n = c.n,
                 .k = c.k};
  const auto wrong = [&]() -> std::string {
    for (int g = 0; g < groups; ++g) {
      for (int i = offsets[std::size_t(g)]; i < offsets[std::size_t(g) + 1]; ++i) {
        for (int j = 0; j < c.n; ++j) {
          double want = 0;
          for (int l = 0; l < c.k; ++l) {
            want += double(float(x[std::size_t(i) * c.k + l])) *
                    float(w[(std::size_t(g) * c.n + j) * c.k + l]);
          }
          const auto got = float(y[std::size_t(i) * c.n + j]);
          if (got == float(bf16_t(float(want)))) continue;
          return "Y(" + std::to_string(i) + ", " + std::to_string(j) + ") is " +
                 std::to_string(got) + ", not " + std::to_string(want);
        }
      }
    }
    return "";
  };
  const testing::Launch launch{
      .ctas = c.ctas,
      .threads = Kernel::threads,
      .shared_bytes = Kernel::shared_bytes,
      .schedules = schedules,
      .launches = c.launches,
      .dependent = true,
      .first = {{[&] { Maker::run(p); }, c.makers, Maker::threads, Maker::shared_bytes}},
      .mutation = mutation,
      .verify = wrong};
  return testing::run([&] { Kernel::run(p); }, launch, offsets, x, w, y, maps);
}

/// Every case of the study.
inline testing::Family all_cases(const testing::Schedules& schedules = {}) {
  testing::Family family({"maps", "Mended"});
  family.add("an empty group, and ones that end within a box",
             run_case({.tokens = {5, 0, 40, 16}}, schedules));
  family.add("several tiles a group, and a ring that comes round",
             run_case({.tokens = {70, 3}, .n = 128, .k = 136, .ctas = 2}, schedules));
  family.add("one maker, one CTA, twice",
             run_case({.tokens = {9, 17}, .makers = 1, .ctas = 1, .launches = 2}, schedules));
  return family;
}

}  // namespace study::maps
