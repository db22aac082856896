// Products that try every kernel, against the reference in double precision: all
// operand types, layouts, scales, epilogues, batches, tails and splits along K. The tests of the
// model and of the GPU share them.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/draws.h"
#include "tests/kernel/table.h"
#include "tests/packed.h"
#include "tests/reference.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/plan.h"

namespace warpwright::tests {

// What is asked beside the types, which the instance fixes.
struct Ask {
  int m = 0;
  int n = 0;
  int k = 0;
  int batch = 1;
  atom::ClusterShape cluster{1, 1};
  int clusters = 2;  ///< of the grid, where there are as many tiles
  float alpha = 0.75F;
  float beta = 0;
  Scaling scaling = Scaling::none;
  Activation activation = Activation::none;
  Bias bias = Bias::none;
  DType bias_type = DType::f32;
  int padding = 0;        ///< elements behind each row of D and C
  int apart = 0;          ///< pieces of 16 bytes behind each row, or column, of A and B
  int shift = 0;          ///< elements by which D and C begin late
  int loose = 0;          ///< elements behind each row of A and B, by which they also begin late
  bool in_place = false;  ///< C is what D was
  bool packed_c = false;  ///< of D alone
  bool shares_a = false;  ///< one A, and one matrix of its scales, for the batch: a stride of 0
  bool shares_b = false;  ///< B, its scales and the bias likewise
  bool shares_c = false;
  unsigned seed = 1;
};

inline std::string text(const Ask& a) {
  constexpr const char* scalings[] = {"no scales",    "tensor scales", "row scales",
                                      "block scales", "group scales",  "micro scales"};
  constexpr const char* biases[] = {"no bias", "a bias of rows", "a bias of columns"};
  return std::to_string(a.m) + "x" + std::to_string(a.n) + "x" + std::to_string(a.k) + " batch " +
         std::to_string(a.batch) + " cluster " + std::to_string(a.cluster.m) + "x" +
         std::to_string(a.cluster.n) + " of " + std::to_string(a.clusters) + ", alpha " +
         std::to_string(a.alpha) + " beta " + std::to_string(a.beta) + ", " +
         scalings[static_cast<int>(a.scaling)] + ", activation " +
         std::to_string(static_cast<int>(a.activation)) + ", " + biases[static_cast<int>(a.bias)] +
         ", padding " + std::to_string(a.padding) + ", apart " + std::to_string(a.apart) +
         ", shift " + std::to_string(a.shift) + ", loose " + std::to_string(a.loose) +
         (a.in_place ? ", in place" : "") + (a.shares_a ? ", one A" : "") +
         (a.shares_b ? ", one B" : "") + (a.shares_c ? ", one C" : "") + ", seed " +
         std::to_string(a.seed);
}

/// A batch of matrices. Without padding and shift their rows, or columns, begin at multiples of 16
/// bytes, `apart` more of these than they need to.
inline Tensor matrices(DType type, int batch, int rows, int columns, bool rows_inside = false,
                       int padding = 0, int shift = 0, int apart = 0) {
  const int inner = (rows_inside ? rows : columns) + padding;
  const int unit = 128 / numeric::bits(type);
  const int pitch = padding == 0 ? ((inner + unit - 1) / unit + apart) * unit : inner;
  // A multiple of 16 bytes, whatever the padding.
  const std::int64_t each = static_cast<std::int64_t>(pitch) * (rows_inside ? columns : rows);
  return {type,
          rows,
          columns,
          rows_inside ? 1 : pitch,
          rows_inside ? pitch : 1,
          batch,
          (each + unit - 1) / unit * unit,
          shift};
}

// One product by one kernel.
class Variant {
 public:
  Variant(const Instance& instance, const Ask& ask) : instance_(instance), ask_(ask) {
    const kernel::GemmConfig& c = instance_.config;
    std::mt19937 random(ask.seed);
    const auto major = [](atom::Major m) { return m == atom::Major::mn; };
    const double largest = stored_a(c) == DType::s8 ? 100 : stored_a(c) == DType::e2m1 ? 6 : 1;
    const int columns = c.gated ? ask.n / 2 : ask.n;
    a_ = matrices(is_swapped(c) ? operand_b(c).type : stored_a(c), ask.batch, ask.m, ask.k,
                  major(is_swapped(c) ? operand_b(c).major : operand_a(c).major), ask.loose,
                  ask.loose, ask.apart);
    if (kernel::packed_a(c)) {
      packed_ = Packed(packed_for(c, ask.seed).format, {ask.shares_b ? 1 : ask.batch, ask.n, ask.k},
                       random, folds(group_sums(c)));
      b_ = packed_.tiles;
    } else {
      b_ = matrices(is_swapped(c) ? stored_a(c) : operand_b(c).type, ask.batch, ask.n, ask.k,
                    major(is_swapped(c) ? operand_a(c).major : operand_b(c).major), ask.loose,
                    ask.loose, ask.apart);
      b_.fill(random, -largest, largest);
    }
    d_ = matrices(c.result, ask.batch, ask.m, columns, false, ask.padding, ask.shift);
    a_.fill(random, -largest, largest);
    if (ask.beta != 0) {
      const int padding = ask.packed_c ? 0 : ask.padding;
      c_ = matrices(c.result, ask.batch, ask.m, columns, false, padding, ask.shift);
      c_.fill(random, -2, 2);
      if (ask.in_place) d_.copy(c_);
    }
    scaling_ = is_block_scaled(c)           ? Scaling::block
               : has_micro_scales(instance) ? Scaling::micro
                                            : ask.scaling;
    make_scales(random);
    if (ask.bias != Bias::none) {
      bias_ = matrices(ask.bias_type, 1, ask.bias == Bias::rows ? ask.m : ask.n, 1, true);
      bias_.fill(random, -1, 1);
    }
    if (numeric::bits(c.result) == 8) {
      scale_d_ = matrices(DType::f32, 1, 1, 1);
      scale_d_.fill(random, 4, 8);
    }
    for (Tensor* t : {&a_, &scale_a_}) {
      if (ask.shares_a) t->share(ask.batch);
    }
    for (Tensor* t : {&b_, &scale_b_, &bias_}) {
      if (ask.shares_b && (t != &b_ || !kernel::packed_a(c))) t->share(ask.batch);
    }
    if (ask.shares_c) c_.share(ask.batch);
  }

  static constexpr int tensors = 8;
  /// All tensors by their numbers; some are empty. Number 2 is D.
  [[nodiscard]] const Tensor& tensor(int i) const {
    const Tensor* const all[tensors] = {&a_,       &b_,       &d_,       &c_,
                                        &scale_a_, &scale_b_, &scale_d_, &bias_};
    return *all[i];
  }
  [[nodiscard]] Tensor& d() { return d_; }

  /// The operands in this object's memory, or with tensor i in a copy at copies[i].
  [[nodiscard]] GemmOperands operands(const std::vector<void*>& copies = {}) const {
    const auto view = [&](std::size_t i) {
      return tensor(static_cast<int>(i)).view(copies.empty() ? nullptr : copies[i]);
    };
    GemmOperands o;
    o.a = view(0);
    o.b = view(1);
    if (kernel::packed_a(instance_.config)) {
      o.b = packed_.view(copies.empty() ? nullptr : copies[1]);
      o.packed = packed_for(instance_.config, ask_.seed);
    }
    o.d = view(2);
    if (ask_.beta != 0) o.c = view(ask_.in_place ? 2 : 3);
    o.alpha = ask_.alpha;
    o.beta = ask_.beta;
    o.scaling = scaling_;
    if (sums_of(instance_.config) == kernel::Sums::promoted)
      o.accumulation = Accumulation::promoted;
    if (scaling_ != Scaling::none) {
      o.scale_a = view(4);
      if (!o.packed || scaling_ != Scaling::block) o.scale_b = view(5);
    }
    if (numeric::bits(instance_.config.result) == 8) o.scale_d = view(6);
    o.epilogue = {activation(), instance_.config.gated, ask_.bias};
    if (ask_.bias != Bias::none) o.bias = view(7);
    return o;
  }

  /// The kernel, the cluster, and a grid small enough to take several tiles a cluster; where tiles
  /// are split along K its clusters share them. Where the CTAs of a cluster do, there are as many
  /// of these as K and a grid of 64 allow.
  [[nodiscard]] PlanChoices choices() const {
    PlanChoices choices = only(instance_);
    choices.cluster = ask_.cluster;
    const kernel::GemmConfig& c = instance_.config;
    const int blocks = (ask_.k + kernel::tile_k(c) - 1) / kernel::tile_k(c);
    if (shares_cluster_k(c)) {
      constexpr int shares[] = {1, 2, 3, 4, 5, 6, 8, 12, 16};
      int i = std::min(ask_.clusters, 9) - 1;
      while (i > 0 && (shares[i] > blocks || shares[i] * tiles() > 64)) --i;
      choices.cluster_k = shares[i];
      return choices;
    }
    if (is_blackwell(instance_)) return choices;  // it has as many as SMs take
    if (is_fed_by_request(instance_)) return choices;
    const bool splits =
        splits_k(c) || (is_register_kernel(instance_) && c.tile_m == 64 &&  // as its table has it
                        ask_.alpha != 0);
    const int pieces = tiles() * (splits ? blocks : 1);
    choices.ctas = std::max(1, std::min(ask_.clusters, pieces)) * atom::cluster_size(ask_.cluster);
    return choices;
  }
  /// SMs that hold the grid.
  [[nodiscard]] int sms() const {
    if (shares_cluster_k(instance_.config)) return 64;  // one tile a cluster
    return ask_.clusters * atom::cluster_size(ask_.cluster);
  }
  [[nodiscard]] int architecture() const {
    if (!is_register_kernel(instance_)) return is_blackwell(instance_) ? 100 : 90;
    const kernel::RegisterConfig& c = config_named<kernel::RegisterConfig>(instance_.name);
    return has_producer(c) ? 120 : kernel::first_target(c);
  }
  [[nodiscard]] std::string text() const {
    return std::string(instance_.name) + ", " + tests::text(ask_);
  }

  /// What is wrong with D, as a sentence; empty when every element is right and no other byte of
  /// its memory was written.
  [[nodiscard]] std::string fault() const {
    const int columns = static_cast<int>(d_.view().columns);
    GemmOperands before = operands();
    if (ask_.beta != 0) before.c = c_.view();  // in place D is no longer that
    const Product product(before);
    for (int b = 0; b < ask_.batch; ++b) {
      for (int i = 0; i < ask_.m; ++i) {
        for (int j = 0; j < columns; ++j) {
          const Bounded want = wanted(product, b, i, j);
          const double got = d_.get(b, i, j);
          if (std::abs(got - want.value) <= want.bound) continue;
          return "D[" + std::to_string(b) + ", " + std::to_string(i) + ", " + std::to_string(j) +
                 "] is " + std::to_string(got) + ", not " + std::to_string(want.value) +
                 " give or take " + std::to_string(want.bound);
        }
      }
    }
    const std::int64_t disturbed = d_.disturbed();
    if (disturbed == 0) return {};
    return std::to_string(disturbed) + " bytes beside the elements of D were written";
  }

 private:
  void make_scales(std::mt19937& random) {
    const int blocks = (ask_.k + 127) / 128;
    switch (scaling_) {
      case Scaling::none:
      case Scaling::group:  // of products in groups alone: grouped_case.h
        return;
      case Scaling::tensor:
        scale_a_ = matrices(DType::f32, 1, 1, 1);
        scale_b_ = matrices(DType::f32, 1, 1, 1);
        break;
      case Scaling::row_column:
        scale_a_ = matrices(DType::f32, ask_.batch, ask_.m, 1, true);
        scale_b_ = matrices(DType::f32, ask_.batch, ask_.n, 1, true);
        break;
      case Scaling::block:  // A's lie either way; one matrix of them may serve all of the batch
        scale_a_ = matrices(DType::f32, ask_.seed % 4 < 2 ? 1 : ask_.batch, ask_.m, blocks,
                            ask_.seed % 2 == 0);
        scale_b_ = matrices(DType::f32, ask_.batch, (ask_.n + 127) / 128, blocks);
        break;
      case Scaling::micro:
        make_micro_scales(random, a_, scale_a_);
        make_micro_scales(random, b_, scale_b_);
        return;
    }
    scale_a_.fill(random, 0.5, 2);
    scale_b_.fill(random, 0.5, 2);
  }

  // In whole tiles: behind the last row NaN, behind K the smallest.
  void make_micro_scales(std::mt19937& random, const Tensor& of, Tensor& scales) const {
    const bool nvf4 = of.view().dtype == DType::e2m1;
    const int blocks = (ask_.k + (nvf4 ? 15 : 31)) / (nvf4 ? 16 : 32);
    const std::int64_t rows = (of.view().rows + 127) / 128 * 128;
    const std::int64_t columns = (blocks + 3) / 4 * 4;
    const DType type = nvf4 ? DType::ue4m3 : DType::ue8m0;
    scales = Tensor(type, rows, columns, columns, 1, ask_.batch, rows * columns);
    std::uniform_real_distribution<double> draw(0.3, 4);
    for (int b = 0; b < ask_.batch; ++b) {
      for (int i = 0; i < of.view().rows; ++i) {
        for (int j = 0; j < columns; ++j) {
          scales.address(b, 0, 0)[block_scales::place(i, j, columns)] = static_cast<std::byte>(
              j < blocks ? numeric::from_double(type, draw(random)) : std::uint64_t{0});
        }
      }
    }
  }

  [[nodiscard]] Activation activation() const {
    return instance_.config.gated ? Activation::silu : ask_.activation;
  }
  [[nodiscard]] int tiles() const {
    const kernel::GemmConfig& c = instance_.config;
    const auto count = [](int extent, int tile, int cluster) {
      return (extent + tile * cluster - 1) / (tile * cluster);
    };
    const int columns = c.gated ? ask_.n / 2 : ask_.n;
    return count(is_swapped(c) ? columns : ask_.m, kernel::result_rows(c), ask_.cluster.m) *
           count(is_swapped(c) ? ask_.m : columns, kernel::result_columns(c), ask_.cluster.n) *
           ask_.batch;
  }

  // What the sums of a product of this size may lose. Each of at most K / 32 instructions cuts sums
  // of 8-bit products off 13 bits below the largest.
  [[nodiscard]] double loss(const Sum& sum) const {
    const bool narrow =
        kernel::operand_bits(instance_.config) == 8 && stored_a(instance_.config) != DType::s8;
    const int cuts = !sums_in_registers(instance_.config) ? ask_.k / 32 + 1 : 5;
    return sum.size * (narrow ? (cuts + 1) * 33 * 0x1p-16 : 0x1p-17);
  }

  [[nodiscard]] Bounded wanted(const Product& product, int b, int i, int j) const {
    Bounded want = product.bounded(
        b, b, i, j, [&](const Sum& sum) { return loss(sum); }, slope);
    const DType type = instance_.config.result;
    want.value = reference::saturated(type, want.value);
    want.bound += 0.51 * numeric::ulp(type, std::abs(want.value) + want.bound) +
                  std::abs(want.value) * 1e-5 + 1e-6;
    return want;
  }

  Instance instance_;
  Ask ask_;
  Scaling scaling_ = Scaling::none;
  Tensor a_, b_, c_, d_, scale_a_, scale_b_, scale_d_, bias_;
  Packed packed_;  // B where the kernel takes it so; `b_` are its tiles
};

inline bool eight_bit(const kernel::GemmConfig& c) {
  return kernel::operand_bits(c) == 8;
}

/// Rows and columns of tiles with a tail behind the last, as the problem has them.
inline Ask extents(const kernel::GemmConfig& c, int tile_rows, unsigned seed) {
  Ask ask;
  const int rows = tile_rows * kernel::result_rows(c) + 8;
  const int columns = kernel::result_columns(c) + (kernel::result_columns(c) > 64 ? 24 : 5);
  ask.m = is_swapped(c) ? columns : rows;
  ask.n = is_swapped(c) ? rows : columns;
  if (c.gated) ask.n = (2 * ask.n + gated_unit(c) - 1) / gated_unit(c) * gated_unit(c);
  ask.clusters = splits_k(c) ? 3 : 2;
  ask.seed = seed;
  return ask;
}

/// What an instance can be asked, with odd extents and everything else drawn, of at most about
/// `most` multiplications.
inline Ask random_ask(const Instance& instance, Draws& draw, double most) {
  const kernel::GemmConfig& c = instance.config;
  Ask ask;
  const int tile_m = is_swapped(c) ? c.tile_n : c.tile_m;
  const int tile_n = is_swapped(c) ? c.tile_m : c.tile_n;
  ask.m = draw(1, 3 * tile_m);
  ask.n = draw(1, 3 * tile_n);
  // The CTAs that share a tile in a cluster want a K block each, of half as much K too.
  ask.k = draw(shares_cluster_k(c) ? 2 * kernel::tile_k(c) : 1, 12 * kernel::tile_k(c));
  const bool shares = !takes_whole_tiles(c);  // which takes something to share
  if (most > 1e7 && draw.rarely(4)) {
    // With room for it: one extent of many tiles or K blocks, the others short.
    ask.m = draw(1, tile_m);
    ask.n = draw(1, tile_n);
    int& longer = draw.rarely(3) ? ask.k : draw.rarely(2) ? ask.m : ask.n;
    longer = &longer == &ask.k ? draw(12, 96) * kernel::tile_k(c) - 1 : draw(3, 24) * longer;
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
  if (eight_bit(c)) {
    constexpr Scaling scalings[] = {Scaling::none, Scaling::tensor, Scaling::row_column};
    ask.scaling = draw.of(scalings);
  }
  constexpr Bias biases[] = {Bias::none, Bias::none, Bias::rows, Bias::columns};
  ask.bias = draw.of(biases);
  const bool half = c.result == DType::bf16 || c.result == DType::f16;
  ask.bias_type = half && draw.rarely(2) ? c.result : DType::f32;
  if (!c.gated) {
    const int last = static_cast<int>(std::size(all_activations)) - 1;
    ask.activation = all_activations[std::max(0, draw(-1, last))];  // none twice as often
    if (numeric::bits(c.result) > 8 && draw.rarely(2)) ask.beta = draw.rarely(2) ? 1.0F : -0.5F;
  }
  // Half of the results lie where the copy engine and vectors can reach them.
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
  if (stored_a(c) == DType::e2m1) {  // two are a byte
    ask.k += ask.k % 2;
    ask.loose += ask.loose % 2;
  }
  if (ask.k == 1) ask.loose = 0;  // a plan may take a single column for K-major
  ask.seed = draw.seed();
  return ask;
}

}  // namespace warpwright::tests
