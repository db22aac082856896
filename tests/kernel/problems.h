// One generator of problems: a seed names a product, whole or in groups, by a kernel of any family,
// with everything else that can be asked. Tests, script/campaign and script/fuzz_gpu
// take theirs from here; what they print of one that fails is enough to make it again.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/draws.h"
#include "tests/kernel/problem.h"

namespace warpwright::tests {

/// Those of Blackwell, with each pair of types that they multiply; without those that multiply
/// scales.
inline std::vector<Instance> blackwell_instances() {
  std::vector<Instance> found;
  for (const KernelFacts* f : built_kernels(blackwell_family())) {
    if (!f->micro_scales.empty()) continue;
    for (const bool by_index : {false, true}) {
      if (by_index && !f->may_gather) continue;
      using Types = std::vector<std::pair<DType, DType>>;
      for (const auto& [a, b] : numeric::bits(f->a.front()) == 8
                                    ? Types{{DType::e4m3, DType::e5m2},
                                            {DType::e4m3, DType::e4m3},
                                            {DType::e5m2, DType::e5m2}}
                                    : Types{{DType::f16, DType::f16}, {DType::bf16, DType::bf16}}) {
        found.push_back({f->name.c_str(), f, a, b, asked_like(*f, a, b, by_index), 0, by_index});
      }
    }
  }
  return found;
}

/// Those of Blackwell that multiply scales and are `wanted`, each with the first of the types that
/// it takes.
template <class Wanted>
std::vector<Instance> scaled_instances(const Wanted& wanted) {
  std::vector<Instance> all;
  for (const KernelFacts* f : built_kernels(blackwell_family())) {
    if (!wanted(*f)) continue;
    const DType a = f->a.front(), b = f->b.front();
    for (std::size_t i = 0; i < f->micro_scales.size(); ++i) {
      for (const bool by_index : {false, true}) {
        if (by_index && !f->may_gather) continue;
        all.push_back({f->name.c_str(), f, a, b, asked_like(*f, a, b, by_index),
                       static_cast<int>(i), by_index});
      }
    }
  }
  return all;
}

/// The same kernel with types that are drawn, of one that takes several by its launch and
/// multiplies scales. Two of 4 bits have kernels of their own.
inline Instance with_drawn_types(Instance instance, std::uint64_t seed) {
  const KernelFacts& f = *instance.facts;
  if (!has_block_scales(instance) || f.a.size() * f.b.size() == 1) return instance;
  Draws draw(seed ^ 0x7e57'7e57ULL);
  do {
    instance.a = draw.of(f.a);
    instance.b = draw.of(f.b);
  } while (numeric::bits(instance.a) == 4 && numeric::bits(instance.b) == 4);
  return instance;
}

/// Kernels of this build that problems are drawn for; those of groups are after the others. With
/// those of Blackwell, which a Hopper GPU does not run, come only the register kernels of sm_120.
inline const std::vector<Instance>& drawn_instances(bool with_blackwell) {
  static const auto all = [](bool blackwell) {
    std::vector<Instance> found = instances();
    if (blackwell) {
      found = joined(found, blackwell_instances());
      found = joined(found, scaled_instances([](const KernelFacts&) { return true; }));
    }
    for (const KernelFacts* f : built_kernels(registers_family())) {
      if (!blackwell && f->architecture > 90) continue;
      found.push_back({f->name.c_str(), f, f->a.front(), f->b.front()});
    }
    return joined(found, grouped_instances());
  };
  static const std::vector<Instance> hopper = all(false);
  static const std::vector<Instance> both = all(true);
  return with_blackwell ? both : hopper;
}

/// Where groups of up to `longest` tokens begin, some of them empty.
inline std::vector<std::int64_t> lengths_to_offsets(Draws& draw, int groups, int longest) {
  std::vector<std::int64_t> o = {draw(0, 4) == 0 ? draw(0, 5) : 0};
  for (int g = 0; g < groups; ++g) {
    o.push_back(o.back() + (draw(0, 3) == 0 ? 0 : draw(0, longest)));
  }
  return o;
}

/// As many groups of as many tokens, and as large ones, as models have; each below its limit, by
/// orders of magnitude. No tensor has more than a twelfth of `most` elements.
inline void draw_large_groups(Ask& ask, Draws& draw, double most) {
  const auto up_to = [&draw](int limit) {
    const double share = draw(0, 1 << 20) / static_cast<double>(1 << 20);
    return std::min(limit, static_cast<int>(std::exp2(share * std::log2(limit + 1.0))));
  };
  const int groups = up_to(600);
  ask.offsets = lengths_to_offsets(draw, groups, up_to(2000));
  ask.m = static_cast<int>(ask.offsets.back()) + (draw(0, 3) == 0 ? draw(1, 90) : 0);
  ask.n = up_to(2048);
  ask.k = up_to(2048);
  const auto too_large = [&] {
    const double m = ask.m, n = ask.n, k = ask.k;
    const double elements = std::max({groups * (n + 1) * (k + 48), m * (k + 48), m * (n + 16)});
    return m * n * k > most || elements > most / 12;
  };
  while (too_large()) {
    int& larger = ask.n > ask.k ? ask.n : ask.k;
    larger = (larger + 1) / 2;
  }
  // Whole 16 bytes as often as odd extents: they are stored in different ways.
  if (draw(0, 1) == 0) ask.n = (ask.n + 7) / 8 * 8;
}

/// What a kernel of products in groups can be asked, of at most about `most` multiplications:
/// groups of up to 200 tokens, or more groups of few; where `most` has room for it, anything that
/// models have.
inline Ask random_groups(const Instance& instance, Draws& draw, double most) {
  const kernel::GemmConfig& config = instance.config;
  Ask ask;
  if (most > 1e8) {
    draw_large_groups(ask, draw, most);
  } else {
    const bool many = draw(0, 2) == 0;
    const int groups = many ? draw(20, 40) : draw(1, 9);
    int longest = many ? 12 : 200;
    while (groups * longest * 1e4 > most && longest > 4) longest /= 2;
    ask.offsets = lengths_to_offsets(draw, groups, longest);
    ask.m = static_cast<int>(ask.offsets.back()) + (draw(0, 3) == 0 ? draw(1, 40) : 0);
    ask.n = 8 * draw(1, 40);
    if (draw(0, 3) == 0) ask.n += draw(1, 7);
    ask.k = draw(1, 400);
    while (static_cast<double>(ask.m) * ask.n * ask.k > most && ask.n > 8) {
      ask.n = (ask.n + 1) / 2;
    }
  }
  ask.n = grouped_ask(instance, ask.offsets, ask.n, ask.k).n;
  if (draw.rarely(2)) ask.padding = draw(0, 9);
  constexpr atom::ClusterShape clusters[] = {{1, 1}, {2, 1}, {1, 2}, {1, 1}};
  ask.cluster = draw.of(clusters);
  if (!takes(instance, ask.cluster)) ask.cluster = smallest_cluster(instance);
  ask.scaling = draw.of(scalings_in_groups(config));
  ask.shares_b = draw.rarely(10);
  ask.alpha = draw.rarely(20) ? 0.0F : 1.0F;
  ask.seed = draw.seed();
  ask_gate(instance.config, ask.seed / 16, ask);
  if (draw.rarely(2)) ask.apart = 1;
  if (draw.rarely(3)) ask.shift = draw(1, 7);
  if (draw.rarely(4) && ask.k > 1) ask.loose = draw(1, 9);  // then a launch copies A and B
  return ask;
}

/// For operands with scales in the tensor core: K and rows as their widths ask, no other scales,
/// and what a quantised D takes.
inline void fit_formats(const Instance& instance, Ask& ask) {
  if (!has_block_scales(instance)) return;
  ask.k = whole_k(instance, ask.k);
  ask.scaling = Scaling::none;
  if (numeric::bits(instance.a) + numeric::bits(instance.b) < 16) {
    ask.loose = (ask.loose + 3) / 4 * 4;  // rows begin at whole bytes
  }
  if (quantisation(instance) == QuantiseD::none) return;
  ask.beta = 0;
  ask.in_place = ask.packed_c = false;
  if (numeric::bits(instance.facts->result) == 4) {
    const int whole = instance.config.gated ? 4 : 2;
    ask.n = (ask.n + whole - 1) / whole * whole;
    ask.padding += ask.padding % 2;
    ask.shift += ask.shift % 2;
  }
}

/// What a kernel can be asked, with odd extents and everything else drawn, of at most about
/// `most` multiplications.
inline Ask random_ask(const Instance& instance, Draws& draw, double most) {
  const kernel::GemmConfig& c = instance.config;
  if (instance.facts->grouped) {
    Ask grouped = random_groups(instance, draw, most);
    if (is_register_kernel(instance)) grouped.cluster = {1, 1};
    fit_formats(instance, grouped);
    return grouped;
  }
  Ask ask;
  const TileShape& tile = instance.facts->tile;
  const int tile_m = is_swapped(c) ? tile.n : tile.m;
  const int tile_n = is_swapped(c) ? tile.m : tile.n;
  ask.m = draw(1, 3 * tile_m);
  ask.n = draw(1, 3 * tile_n);
  // The CTAs that share a tile in a cluster want a k_tile each, of half as much K too.
  ask.k = draw(shares_cluster_k(c) ? 2 * step_k(instance) : 1, 12 * step_k(instance));
  const bool shares = shares_tiles(instance);
  if (most > 1e7 && draw.rarely(4)) {
    // With room for it: one extent of many tiles or k_tiles, the others short.
    ask.m = draw(1, tile_m);
    ask.n = draw(1, tile_n);
    int& longer = draw.rarely(3) ? ask.k : draw.rarely(2) ? ask.m : ask.n;
    longer = &longer == &ask.k ? draw(12, 96) * step_k(instance) - 1 : draw(3, 24) * longer;
  }
  if (!shares && draw.rarely(40)) ask.k = draw(0, 1);
  ask.batch = draw.rarely(4) ? draw(2, 3) : 1;
  while (static_cast<double>(ask.m) * ask.n * ask.k * ask.batch > most && ask.m * ask.n > 1) {
    int& longer = ask.m * tile_n > ask.n * tile_m ? ask.m : ask.n;
    longer = (longer + 1) / 2;
  }
  if (c.gated) {
    const int unit = gated_unit(c);
    ask.n = (ask.n + unit - 1) / unit * unit;
  }
  constexpr atom::ClusterShape shapes[] = {{1, 1}, {1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 4}};
  ask.cluster = draw.of(shapes);
  if (!takes(instance, ask.cluster)) ask.cluster = smallest_cluster(instance);
  ask.clusters = draw(1, atom::cluster_size(ask.cluster) > 4 ? 3 : 9);
  constexpr float alphas[] = {1.0F, -1.5F, 0.75F, 2.5F};
  ask.alpha = !shares && draw.rarely(20) ? 0.0F : draw.of(alphas);
  if (eight_bit(instance) || has_wide_tokens(instance.config)) {
    constexpr Scaling scalings[] = {Scaling::none, Scaling::tensor, Scaling::row_column};
    ask.scaling = draw.of(scalings);
  }
  if (adds_k_tiles(instance)) ask.promoted = draw.rarely(3);
  if (has_feature(instance, "any layout")) {
    // Slices of a cluster are 64 rows, where they lie side by side.
    const auto major = [&draw](int slice) {
      return slice % 64 == 0 && draw.rarely(2) ? atom::Major::mn : atom::Major::k;
    };
    ask.a_major = major(tile_m / ask.cluster.n);
    ask.b_major = major(tile_n / ask.cluster.m);
  }
  constexpr Bias biases[] = {Bias::none, Bias::none, Bias::rows, Bias::columns};
  ask.bias = draw.of(biases);
  const DType result = instance.facts->result;
  const bool half = result == DType::bf16 || result == DType::f16;
  ask.bias_type = half && draw.rarely(2) ? result : DType::f32;
  if (!c.gated) {
    // Among those that stand by themselves, none twice as often.
    constexpr auto alone = std::ranges::count_if(all_activations, stands_alone);
    static_assert(!stands_alone(all_activations[alone]), "those of gates are the last");
    ask.activation = all_activations[std::max(0, draw(-1, static_cast<int>(alone) - 1))];
    if (numeric::bits(result) > 8 && draw.rarely(2)) ask.beta = draw.rarely(2) ? 1.0F : -0.5F;
  }
  // Half of the results lie where TMA and vectors can reach them.
  ask.padding = draw.rarely(2) ? 0 : draw(1, 9);
  if (ask.padding != 0 && draw.rarely(2)) ask.shift = draw(1, 15);
  ask.apart = draw.rarely(3) ? draw(1, 3) : 0;
  ask.in_place = ask.beta != 0 && draw.rarely(4);
  ask.packed_c = !ask.in_place && draw.rarely(4);
  if (ask.batch > 1) {
    ask.shares_a = draw.rarely(4);
    ask.shares_b = draw.rarely(4);
    ask.shares_c = !ask.in_place && draw.rarely(4);
  }
  // Where TMA reads A and B a launch has to copy them then.
  if (takes_any_rows(instance) ? !draw.rarely(4) : draw.rarely(4)) ask.loose = draw(1, 9);
  fit_formats(instance, ask);
  if (ask.k == 1) ask.loose = 0;  // a plan may take a single column for K-major
  ask.seed = draw.seed();
  ask_gate(c, ask.seed / 16, ask);
  return ask;
}

/// The problem that a seed names, and how it is launched. Consecutive seeds go round the kernels of
/// the build.
class Seeded {
 public:
  /// With at most about `most` multiplications; `blackwell`: by kernels of Blackwell too.
  Seeded(std::uint64_t seed, double most, bool blackwell)
      : seed_(seed), instance_(with_drawn_types(instance_of(seed, blackwell), seed)) {
    Draws draw(seed);
    mode_ = draw.of(modes);
    twice_ = draw.rarely(4);
    planned_ = draw.rarely(8);
    ask_ = random_ask(instance_, draw, most);
  }

  [[nodiscard]] std::string text() const {
    constexpr const char* names[] = {"eager", "latest", "random", "starve"};
    const std::string types = has_block_scales(instance_)
                                  ? " of " + std::string(numeric::name(instance_.a)) + " by " +
                                        std::string(numeric::name(instance_.b))
                                  : "";
    return "seed " + std::to_string(seed_) + ": " + instance_.name + types + ", " +
           tests::text(ask_) + ", " +
           names[std::find(std::begin(modes), std::end(modes), mode_) - std::begin(modes)] +
           (twice() ? ", launched twice" : "") +
           (planned_ ? ", by the kernel that a plan chooses" : "");
  }

  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] const Instance& instance() const { return instance_; }
  [[nodiscard]] const Ask& ask() const { return ask_; }
  [[nodiscard]] bool in_groups() const { return !ask_.offsets.empty(); }
  /// Two launches with one workspace; in place the second would start from the first one's D.
  [[nodiscard]] bool twice() const { return twice_ && !ask_.in_place; }

  /// What a plan is left to choose: mostly nothing.
  [[nodiscard]] PlanChoices choices(const Problem& problem) const {
    const bool free = planned_ && !in_groups() && problem.architecture() == 90;
    return free ? PlanChoices{} : problem.choices();
  }

  /// What is wrong with it on the model, in a schedule that is drawn too; empty when nothing is.
  [[nodiscard]] std::string fault_on_model() const {
    Problem problem(instance_, ask_);
    const DeviceFacts facts = problem.facts();
    device::ModelOptions how = scheduled(mode_, seed_);
    how.launches = twice() ? 2 : 1;
    return problem.run(plan(problem.operands(), facts, choices(problem)), how);
  }

 private:
  static constexpr model::Mode modes[] = {model::Mode::eager, model::Mode::latest,
                                          model::Mode::random, model::Mode::starve};

  static const Instance& instance_of(std::uint64_t seed, bool blackwell) {
    const std::vector<Instance>& all = drawn_instances(blackwell);
    return all[static_cast<std::size_t>(seed % all.size())];
  }

  std::uint64_t seed_;
  Instance instance_;
  model::Mode mode_ = model::Mode::latest;
  bool twice_ = false;
  bool planned_ = false;
  Ask ask_;
};

}  // namespace warpwright::tests
