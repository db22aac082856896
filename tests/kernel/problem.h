// One product by one kernel of any family, whole or in groups: operands, run and comparison with
// warpwright/reference/. The tests of the model and of the GPU share it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/draws.h"
#include "tests/kernel/table.h"
#include "tests/packed.h"
#include "tests/reference.h"
#include "tests/scheduled.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/micro_scale.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/product/plan.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/reference/tolerance.h"
#include "warpwright/simulation/model.h"

namespace warpwright::tests {

/// What is asked beside the types, which the kernel fixes.
struct Ask {
  int m = 0;  ///< in groups: tokens, and those in none
  int n = 0;
  int k = 0;
  int batch = 1;
  atom::ClusterShape cluster{1, 1};
  int clusters = 2;  ///< of the grid, where there are as many tiles
  float alpha = 0.75F;
  float beta = 0;
  Scaling scaling = Scaling::none;
  bool promoted = false;  ///< of kernels that add up k_tiles, as they are: no scales of blocks
  atom::Major a_major = atom::Major::k;  ///< of kernels that take any
  atom::Major b_major = atom::Major::k;
  Activation activation = Activation::none;  ///< of a gated kernel that of its gate; none: silu
  bool interleaved = false;                  ///< gates and ups, of a gated kernel
  Bias bias = Bias::none;
  DType bias_type = DType::f32;
  int padding = 0;        ///< elements behind each row of D and C
  int apart = 0;          ///< pieces of 16 bytes behind each row, or column, of A and B
  int shift = 0;          ///< elements by which D and C begin late
  int loose = 0;          ///< elements behind each row of A and B, by which they also begin late
  bool in_place = false;  ///< C is what D was
  bool packed_c = false;  ///< only of D
  bool shares_a = false;  ///< one A, and one matrix of its scales, for the batch: a stride of 0
  bool shares_b = false;  ///< B, its scales and the bias likewise, for the batch or all groups
  bool shares_c = false;
  unsigned seed = 1;  ///< of the elements, and of how scales and offsets lie
  /// Where the groups of a kernel for products in groups begin, and where the last one ends.
  std::vector<std::int64_t> offsets = {};
};

inline std::string text(const Ask& a) {
  constexpr const char* scalings[] = {"no scales",    "tensor scales", "row scales",
                                      "block scales", "group scales",  "block scales"};
  constexpr const char* biases[] = {"no bias", "a bias of rows", "a bias of columns"};
  std::string groups = a.offsets.empty() ? "" : ", offsets";
  for (const std::int64_t o : a.offsets) groups += " " + std::to_string(o);
  return std::to_string(a.m) + "x" + std::to_string(a.n) + "x" + std::to_string(a.k) + " batch " +
         std::to_string(a.batch) + " cluster " + std::to_string(a.cluster.m) + "x" +
         std::to_string(a.cluster.n) + " of " + std::to_string(a.clusters) + ", alpha " +
         std::to_string(a.alpha) + " beta " + std::to_string(a.beta) + ", " +
         scalings[static_cast<int>(a.scaling)] + (a.promoted ? ", promoted" : "") +
         (a.a_major == atom::Major::mn ? ", A MN-major" : "") +
         (a.b_major == atom::Major::mn ? ", B MN-major" : "") + ", activation " +
         std::to_string(static_cast<int>(a.activation)) + (a.interleaved ? ", interleaved" : "") +
         ", " + biases[static_cast<int>(a.bias)] + ", padding " + std::to_string(a.padding) +
         ", apart " + std::to_string(a.apart) + ", shift " + std::to_string(a.shift) + ", loose " +
         std::to_string(a.loose) + (a.in_place ? ", in place" : "") +
         (a.shares_a ? ", one A" : "") + (a.shares_b ? ", one B" : "") +
         (a.shares_c ? ", one C" : "") + ", seed " + std::to_string(a.seed) + groups;
}

/// A batch of matrices. Without padding and shift their rows, or columns, begin at multiples of 16
/// bytes, `apart` more of these than they need to.
inline Tensor matrices(DType type, int batch, int rows, int columns, bool rows_inside = false,
                       int padding = 0, int shift = 0, int apart = 0) {
  const int inner = (rows_inside ? rows : columns) + padding;
  const auto unit = static_cast<int>(whole_elements(16, type));
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

/// One product by one kernel.
class Problem {
 public:
  Problem(const Instance& instance, const Ask& ask)
      : instance_(instance), ask_(ask), wide_(ask.offsets), narrow_(wide_.begin(), wide_.end()) {
    const kernel::GemmConfig& c = instance_.config;
    std::mt19937 random(ask.seed);
    const bool any = has_feature(instance, "any layout");
    const auto a = any ? ask.a_major : (is_swapped(c) ? operand_b(c) : operand_a(c)).major;
    const auto b = any ? ask.b_major : (is_swapped(c) ? operand_a(c) : operand_b(c)).major;
    const int of_a = in_groups() ? 1 : ask.batch;
    const auto operand = [&](DType type, atom::Major major, int batch, int rows) {
      return matrices(type, batch, rows, ask.k, major == atom::Major::mn, ask.loose, ask.loose,
                      ask.apart);
    };
    make_index(random);
    a_ = operand(instance.a, a, of_a, rows_of_a());
    const bool is_packed = kernel::packed_a(c);
    if (is_packed) {
      const int of_b = ask.shares_b && !in_groups() ? 1 : matrices_of_b();
      packed_ = Packed(packed_for(c, ask.seed).format, {of_b, ask.n, ask.k}, random,
                       folds(group_sums(c)));
      b_ = packed_.tiles;
    } else {
      b_ = operand(instance.b, b, matrices_of_b(), ask.n);
    }
    if (ask.alpha != 0) {  // else NaN, and not read
      const auto largest = [&](DType type) {
        if (type == DType::s8) return 100.0;
        return numeric::bits(type) < 8 && !is_packed ? numeric::format_of(type).max() : 1.0;
      };
      if (!is_packed) b_.fill(random, -largest(instance.b), largest(instance.b));
      a_.fill(random, -largest(instance.a), largest(instance.a));
    }
    const int columns = c.gated ? ask.n / 2 : ask.n;
    d_ = matrices(result(), of_a, ask.m, columns, false, ask.padding, ask.shift);
    if (ask.beta != 0) {
      const int padding = ask.packed_c ? 0 : ask.padding;
      c_ = matrices(result(), of_a, ask.m, columns, false, padding, ask.shift);
      c_.fill(random, -2, 2);
    }
    scaling_ = is_blockwise(c) || adds_blocks() ? Scaling::blockwise
               : has_block_scales(instance)     ? Scaling::block_scaled
                                                : ask.scaling;
    make_scales(random);
    if (ask.bias != Bias::none) {
      bias_ = matrices(ask.bias_type, 1, ask.bias == Bias::rows ? ask.m : ask.n, 1, true);
      bias_.fill(random, -1, 1);
    }
    const QuantiseD way = quantisation(instance);
    if (is_micro(way)) {
      // As a plan wants them: whole tiles, one matrix after the other.
      const DType scale = form_of(way).scale;
      const auto down = in_groups() ? block_scales::grouped_rows(ask.m, matrices_of_b())
                                    : block_scales::padded_rows(ask.m);
      const auto across = block_scales::padded_columns(columns, micro_block(scale));
      d_scales_ = Tensor(scale, down, across, across, 1, of_a, down * across);
      if (way == QuantiseD::nvf4_1x16) {
        scale_d_ = matrices(DType::f32, 1, 1, 1);
        const double most = c.gated ? 16384 : 32;  // the product of two of them
        scale_d_.fill(random, most / 2, most);
      }
    } else if (c.quantises) {
      // Row after row, or block after block; with gaps.
      const int blocks = (columns + 127) / 128;
      d_scales_ = matrices(DType::f32, of_a, ask.m, blocks, ask.seed % 2 == 0, 0, 0, ask.seed % 3);
    } else if (numeric::bits(result()) == 8) {
      scale_d_ = matrices(DType::f32, 1, 1, 1);
      scale_d_.fill(random, 4, 8);
    }
    for (Tensor* t : {&a_, &scale_a_}) {
      if (ask.shares_a) t->share(ask.batch);
    }
    for (Tensor* t : {&b_, &scale_b_, &bias_}) {
      if (!ask.shares_b || (t == &b_ && is_packed) || (t == &bias_ && in_groups())) continue;
      // One scale for all groups, or one for each, is no batch.
      const bool is_batch = scaling_ == Scaling::row_column || scaling_ == Scaling::blockwise;
      if (t != &scale_b_ || !in_groups() || is_batch) t->share(matrices_of_b());
    }
    if (ask.shares_c) c_.share(ask.batch);
    poison_d();
  }
  Problem(const Problem&) = delete;  // launches keep the addresses of the offsets
  Problem& operator=(const Problem&) = delete;

  [[nodiscard]] const Instance& instance() const { return instance_; }
  [[nodiscard]] const Ask& ask() const { return ask_; }
  [[nodiscard]] bool in_groups() const { return !ask_.offsets.empty(); }
  [[nodiscard]] bool is_by_index() const { return kernel::gathers(instance_.config); }
  /// Which rows of A those of D read, times the divisor, and a little: some none.
  [[nodiscard]] const std::vector<std::int32_t>& rows() const { return index_; }
  [[nodiscard]] Tensor& d() { return d_; }
  [[nodiscard]] Tensor& d_scales() { return d_scales_; }
  /// The memory of D, and of its scales, with everything around it.
  [[nodiscard]] std::vector<std::byte> d_bytes() const {
    std::vector<std::byte> all(d_.memory(), d_.memory() + d_.bytes());
    if (d_scales_.bytes() > 0) {
      all.insert(all.end(), d_scales_.memory(), d_scales_.memory() + d_scales_.bytes());
    }
    return all;
  }
  /// D's elements as before the first launch: NaN, or C's.
  void poison_d() {
    std::memset(d_.memory(), 0xff, index(d_.bytes()));
    if (d_scales_.bytes() > 0) std::memset(d_scales_.memory(), 0xff, index(d_scales_.bytes()));
    if (ask_.in_place) d_.copy(c_);
  }

  /// Memory that a launch reads or writes, by its number; some is empty. Number 2 is D's, the last
  /// that of the offsets, and the one before that of the index of rows.
  struct Piece {
    const void* memory;
    std::int64_t bytes;
  };
  static constexpr int tensors = 11;
  static constexpr int pieces = tensors + 2;
  [[nodiscard]] Piece piece(int i) const {
    if (i == pieces - 2) return {index_.data(), std::ssize(index_) * 4};
    if (i == pieces - 1) return {offsets(), std::ssize(wide_) * (wide_offsets() ? 8 : 4)};
    return {tensor(i).bytes() == 0 ? nullptr : tensor(i).memory(), tensor(i).bytes()};
  }

  /// The operands in this object's memory, or with piece i in a copy at copies[i].
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
    if ((sums_of(instance_.config) == kernel::Sums::promoted &&
         !kernel::packed_a(instance_.config)) ||
        (adds_k_tiles(instance_) && ask_.promoted))
      o.accumulation = Accumulation::promoted;
    if (scaling_ != Scaling::none) {
      if (!has_wide_tokens(instance_.config)) o.scale_a = view(4);
      if (!o.packed || scaling_ != Scaling::blockwise) o.scale_b = view(5);
    }
    const QuantiseD way = quantisation(instance_);
    if (way != QuantiseD::none) o.d_scales = view(8);
    if (scale_d_.bytes() > 0) o.scale_d = view(6);
    if (factor_a_.bytes() > 0) o.factor_a = view(9);
    if (factor_b_.bytes() > 0) o.factor_b = view(10);
    o.epilogue = {activation(), instance_.config.gated, ask_.bias, ask_.interleaved, way};
    if (ask_.bias != Bias::none) o.bias = view(7);
    if (in_groups()) {
      o.groups = Groups{copies.empty() ? offsets() : copies[pieces - 1],
                        wide_offsets() ? OffsetType::int64 : OffsetType::int32};
    }
    if (is_by_index()) {
      o.groups->rows =
          copies.empty() ? index_.data() : static_cast<const std::int32_t*>(copies[pieces - 2]);
      o.groups->rows_divisor = divisor();
    }
    return o;
  }
  [[nodiscard]] bool wide_offsets() const { return ask_.seed % 2 == 1; }

  /// The kernel, the cluster, and a grid small enough to take several tiles a cluster; where tiles
  /// are split along K its clusters share them. Where the CTAs of a cluster do, there are as many
  /// of these as K and a grid of 64 allow.
  [[nodiscard]] PlanChoices choices() const {
    PlanChoices choices = only(instance_);
    choices.cluster = ask_.cluster;
    const kernel::GemmConfig& c = instance_.config;
    const int blocks = (ask_.k + step_k(instance_) - 1) / step_k(instance_);
    if (instance_.facts->shares_cluster_k) {
      constexpr int shares[] = {1, 2, 3, 4, 5, 6, 8, 12, 16};
      int i = std::min(ask_.clusters, 9) - 1;
      while (i > 0 && (shares[i] > blocks || shares[i] * tiles() > 64)) --i;
      choices.cluster_k = shares[i];
      return choices;
    }
    if (slices_k(c) && tiles() > 0) {
      constexpr int shares[] = {1, 2, 3, 4, 5, 7, 9, 13, 33};
      int i = std::min(ask_.clusters, 9) - 1;
      while (i > 0 && (shares[i] > blocks || shares[i] * tiles() > 64)) --i;
      choices.ctas = shares[i] * tiles();
      return choices;
    }
    // These have as many as SMs take, and nothing has none.
    const bool splits = splits_k(c) || (has_feature(instance_, "stream-K") && ask_.alpha != 0);
    if (in_groups() || (is_blackwell(instance_) && !splits) || is_fed_by_request(instance_) ||
        tiles() == 0) {
      return choices;
    }
    const int pieces = tiles() * (splits ? blocks : 1);
    choices.ctas = std::max(1, std::min(ask_.clusters, pieces)) * atom::cluster_size(ask_.cluster);
    return choices;
  }
  /// A device with SMs that hold the grid.
  [[nodiscard]] DeviceFacts facts() const {
    if (in_groups()) return model_facts(6, architecture());
    // One tile a cluster.
    if (instance_.facts->shares_cluster_k) return model_facts(64);
    if (slices_k(instance_.config)) return model_facts(std::max(64, tiles()));
    return model_facts(ask_.clusters * atom::cluster_size(ask_.cluster), architecture());
  }
  [[nodiscard]] int architecture() const {
    const KernelFacts& f = *instance_.facts;
    return is_fed(instance_) ? 120 : std::max(f.architecture, f.architectures.front());
  }
  [[nodiscard]] Result<Plan> planned() const { return plan(operands(), facts(), choices()); }
  [[nodiscard]] std::string text() const {
    return std::string(instance_.name) + ", " + tests::text(ask_);
  }

  /// Launches it on the model and says what is wrong, with the run or with D; empty when nothing
  /// is.
  std::string run(const Result<Plan>& by, device::ModelOptions how = {}) {
    if (!by) return by.reason();
    std::uint32_t status = 0;
    if (in_groups()) how.offsets_status = &status;
    poison_d();
    const auto report = device::launch_on_model(*by, operands(), how);
    if (!report) return report.reason();
    if (!report->clean()) return report->text();
    return status != 0 ? "the offsets are said to be in disorder" : fault();
  }
  std::string run(const device::ModelOptions& how = {}) { return run(planned(), how); }

  /// What is wrong with D, as a sentence; empty when every element is right and no other byte of
  /// its memory was written. For groups every element of the first and last rows and columns is
  /// looked at, and some between.
  [[nodiscard]] std::string fault() const {
    GemmOperands before = operands();
    if (ask_.beta != 0) before.c = c_.view();  // in place D is no longer that
    const Product product(before);
    GemmOperands exact = before;  // the scales of folded weights are powers of two
    if (exact.packed && folds(exact.packed->sums)) exact.packed->sums = GroupSums::chained;
    const double share = reference::lost_share(exact, 16);
    const std::int64_t columns = d_.view().columns;
    std::vector<std::pair<std::int64_t, std::int64_t>> rows;
    for (int g = 0; g < matrices_of_b(); ++g) {
      const std::int64_t first = in_groups() ? wide_[index(g)] : 0;
      const std::int64_t end = in_groups() ? wide_[index(g + 1)] : ask_.m;
      const int b = in_groups() ? 0 : g;
      rows.emplace_back(first, end);
      for (std::int64_t i = first; i < end; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          const double got = d_.get(b, i, j) * scale_of_d(b, i, j);
          const bool edge = i < first + 2 || i + 3 > end || j < 2 || j + 3 > columns;
          if (in_groups() && !edge && (i * 7 + j) % 23 != 0 && !std::isnan(got)) continue;
          const Bounded want = wanted(product, share, b, g, i, j);
          if (std::abs(got - want.value) <= want.bound || overflows(got, want)) continue;
          return "D[" + std::to_string(b) + ", " + std::to_string(i) + ", " + std::to_string(j) +
                 "] is " + std::to_string(got) + ", not " + std::to_string(want.value) +
                 " give or take " + std::to_string(want.bound);
        }
      }
    }
    if (is_micro(quantisation(instance_)) && in_groups()) {
      if (const std::string wrong = padding_fault(); !wrong.empty()) return wrong;
    }
    std::int64_t disturbed = d_.disturbed(rows);
    // For tiles of scales, all rows may be written.
    if (is_micro(quantisation(instance_))) rows = {{0, d_scales_.view().rows}};
    if (d_scales_.bytes() > 0) disturbed += d_scales_.disturbed(rows);
    if (disturbed == 0) return {};
    return std::to_string(disturbed) + " bytes beside the elements of D were written";
  }

 private:
  [[nodiscard]] const Tensor& tensor(int i) const {
    const Tensor* const all[tensors] = {&a_,        &b_,        &d_,       &c_,
                                        &scale_a_,  &scale_b_,  &scale_d_, &bias_,
                                        &d_scales_, &factor_a_, &factor_b_};
    return *all[i];
  }
  [[nodiscard]] const void* offsets() const {
    return wide_offsets() ? static_cast<const void*>(wide_.data()) : narrow_.data();
  }
  [[nodiscard]] int matrices_of_b() const {
    return in_groups() ? static_cast<int>(wide_.size()) - 1 : ask_.batch;
  }

  [[nodiscard]] int divisor() const { return 1 + static_cast<int>(ask_.seed % 3); }
  /// Fewer tokens than rows of D, so that some are read again.
  [[nodiscard]] int rows_of_a() const { return is_by_index() ? 3 + ask_.m * 2 / 3 : ask_.m; }
  void make_index(std::mt19937& random) {
    if (!is_by_index()) return;
    const int end = rows_of_a() * divisor();
    std::uniform_int_distribution<std::int32_t> draw(0, end - 1);
    for (int i = 0; i < ask_.m; ++i) {
      constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
      const std::int32_t outside[] = {end, -1, -divisor() - 1, most, -most - 1};
      index_.push_back(i % 11 == 7 ? outside[i / 11 % 5] : draw(random));
    }
  }

  void make_scales(std::mt19937& random) {
    const int block = kernel::scale_block(instance_.config);
    const int blocks = (ask_.k + block - 1) / block;
    const int of_a = in_groups() ? 1 : ask_.batch;
    const auto column = [&](int batch, std::int64_t rows) {  // neighbours may lie apart
      const int stride = in_groups() ? 1 + static_cast<int>(ask_.seed % 3) : 1;
      return Tensor(DType::f32, rows, 1, stride, 1, batch, (rows * stride + 3) / 4 * 4);
    };
    switch (scaling_) {
      case Scaling::none:
        return;
      case Scaling::group:  // only of products in groups: A may have one for all
        scale_a_ = column(1, ask_.seed % 4 < 2 ? 1 : matrices_of_b());
        scale_b_ = column(1, matrices_of_b());
        break;
      case Scaling::tensor:
        scale_a_ = matrices(DType::f32, 1, 1, 1);
        scale_b_ = matrices(DType::f32, 1, 1, 1);
        break;
      case Scaling::row_column:
        scale_a_ = column(of_a, rows_of_a());
        scale_b_ = column(matrices_of_b(), ask_.n);
        break;
      case Scaling::blockwise:  // A's lie either way; one matrix of them may serve all of the batch
        scale_a_ = matrices(DType::f32, ask_.seed % 4 < 2 ? 1 : of_a, rows_of_a(), blocks,
                            ask_.seed % 2 == 0);
        scale_b_ = matrices(DType::f32, matrices_of_b(), (ask_.n + block - 1) / block, blocks);
        break;
      case Scaling::block_scaled:
        if (has_feature(instance_, "plain tokens")) {
          scale_a_ = column(of_a, rows_of_a());
          scale_a_.fill(random, 0.5, 2);
        } else {
          make_micro_scales(random, scale_a_, of_a,
                            in_groups() ? block_scales::grouped_rows(ask_.m, matrices_of_b())
                                        : block_scales::padded_rows(ask_.m),
                            spans_of_a());
        }
        if (instance_.config.gated) {  // those of gates, and of what they are for
          make_micro_scales(random, scale_b_, matrices_of_b(),
                            2 * block_scales::padded_rows(ask_.n / 2),
                            {{0, ask_.n / 2}, {0, ask_.n / 2}});
        } else {
          make_micro_scales(random, scale_b_, matrices_of_b(), block_scales::padded_rows(ask_.n),
                            {{0, ask_.n}});
        }
        if (in_groups() && ask_.seed % 2 == 0) {  // of their tensors
          factor_b_ = column(1, ask_.seed % 4 == 0 ? 1 : matrices_of_b());
          factor_b_.fill(random, 0.5, 2);
          if (ask_.seed % 3 == 0) factor_a_ = column(1, 1);
          if (ask_.seed % 3 == 0) factor_a_.fill(random, 0.5, 2);
        }
        return;
    }
    scale_a_.fill(random, 0.5, 2);
    scale_b_.fill(random, 0.5, 2);
  }

  // The rows of A whose scales begin at a tile: all of them, or those of each group.
  [[nodiscard]] std::vector<std::pair<std::int64_t, std::int64_t>> spans_of_a() const {
    if (!in_groups()) return {{0, ask_.m}};
    std::vector<std::pair<std::int64_t, std::int64_t>> spans;
    for (std::size_t g = 0; g + 1 < wide_.size(); ++g) spans.emplace_back(wide_[g], wide_[g + 1]);
    return spans;
  }

  // In whole tiles, those of each span behind the last one's: behind the last row NaN, behind K the
  // smallest.
  void make_micro_scales(std::mt19937& random, Tensor& scales, int matrices, std::int64_t rows,
                         const std::vector<std::pair<std::int64_t, std::int64_t>>& spans) const {
    const DType type = micro_scale_of(instance_);
    const int blocks = (ask_.k + micro_block(type) - 1) / micro_block(type);
    const std::int64_t columns = (blocks + 3) / 4 * 4;
    scales = Tensor(type, rows, columns, columns, 1, matrices, rows * columns);
    std::uniform_real_distribution<double> draw(0.3, 4);
    for (int b = 0; b < matrices; ++b) {
      std::int64_t tile = 0;
      for (const auto& [begin, end] : spans) {
        for (std::int64_t i = 0; i < end - begin; ++i) {
          for (int j = 0; j < columns; ++j) {
            scales.address(b, 0, 0)[block_scales::place(tile + i, j, columns)] =
                static_cast<std::byte>(j < blocks ? numeric::from_double(type, draw(random))
                                                  : std::uint64_t{0});
          }
        }
        tile += block_scales::padded_rows(end - begin);
      }
    }
  }

  [[nodiscard]] bool adds_blocks() const { return adds_k_tiles(instance_) && !ask_.promoted; }

 public:
  /// The row of tiles in which row `i` of D has its scales.
  [[nodiscard]] std::int64_t row_of_scales(std::int64_t i) const {
    if (!in_groups()) return i;
    std::int64_t tile = 0;
    for (const auto& [begin, end] : spans_of_a()) {
      if (begin <= i && i < end) return tile + i - begin;
      tile += block_scales::padded_rows(end - begin);
    }
    return -1;
  }

 private:
  // Behind the rows of a group its tiles of scales have those of padding.
  [[nodiscard]] std::string padding_fault() const {
    const QuantisedForm form = form_of(quantisation(instance_));
    const MatrixView tiles = d_scales_.view();
    std::int64_t tile = 0;
    for (const auto& [begin, end] : spans_of_a()) {
      const std::int64_t padded = block_scales::padded_rows(end - begin);
      for (std::int64_t row = tile + end - begin; row < tile + padded; ++row) {
        for (std::int64_t block = 0; block < tiles.columns; ++block) {
          const auto at = block_scales::place(row, block, tiles.row_stride);
          const auto code = std::to_integer<std::uint32_t>(d_scales_.address(0, 0, 0)[at]);
          if (code == micro::neutral_scale(form.scale)) continue;
          return "row " + std::to_string(row) + " of the scales is padding, and scale " +
                 std::to_string(block) + " of it is " + std::to_string(code);
        }
      }
      tile += padded;
    }
    return {};
  }
  // For the block of an element; 1 where D has none.
  [[nodiscard]] double scale_of_d(int b, std::int64_t i, std::int64_t j) const {
    const QuantisedForm form = form_of(quantisation(instance_));
    if (!is_micro_scale(form.scale))
      return instance_.config.quantises ? d_scales_.get(b, i, j / 128) : 1;
    const auto at =
        block_scales::place(row_of_scales(i), j / form.columns, d_scales_.view().row_stride);
    const auto code = std::to_integer<unsigned>(d_scales_.address(b, 0, 0)[at]);
    const double tensor = scale_d_.bytes() > 0 ? scale_d_.get(0, 0, 0) : 1;
    return numeric::to_double(form.scale, code) * tensor;
  }
  [[nodiscard]] DType result() const { return instance_.facts->result; }
  [[nodiscard]] Activation activation() const {
    const bool is_open = instance_.config.gated && ask_.activation == Activation::none;
    return is_open ? Activation::silu : ask_.activation;
  }
  [[nodiscard]] int tiles() const {
    const kernel::GemmConfig& c = instance_.config;
    const auto count = [](int extent, int tile, int cluster) {
      return (extent + tile * cluster - 1) / (tile * cluster);
    };
    const int columns = c.gated ? ask_.n / 2 : ask_.n;
    return count(is_swapped(c) ? columns : ask_.m, tile_rows(instance_), ask_.cluster.m) *
           count(is_swapped(c) ? ask_.m : columns, tile_columns(instance_), ask_.cluster.n) *
           ask_.batch;
  }

  [[nodiscard]] Bounded wanted(const Product& product, double share, int b, int g, std::int64_t i,
                               std::int64_t j) const {
    const auto loss = [share](const Sum& sum) { return share * sum.size; };
    Bounded want = product.bounded(b, g, i, j, loss, slope);
    const DType type = result();
    if (quantisation(instance_) != QuantiseD::none) {
      const double scale = scale_of_d(b, i, j);
      const QuantisedForm form = form_of(quantisation(instance_));
      const double tensor = scale_d_.bytes() > 0 ? scale_d_.get(0, 0, 0) : 1;
      // A scale that is no normal ue4m3 is off by up to half of the least, and 6 is the largest
      // code.
      if (form.scale == DType::ue4m3 && scale < 0x1p-6 * tensor) {
        want.bound += 6 * tensor * 0x1p-10 * (1 + 1e-5);
      }
      if (form.scale == DType::ue4m3) {  // what is beyond the largest code of the largest scale
        want.bound += std::max(0.0, std::abs(want.value) + want.bound - 6 * 448 * tensor);
      }
      if (scale == 0) return want;
      want.bound += 0.51 * numeric::ulp(type, (std::abs(want.value) + want.bound) / scale) * scale +
                    std::abs(want.value) * 1e-5 + 1e-9;
      return want;
    }
    want.value = reference::saturated(type, want.value);
    want.bound += 0.51 * numeric::ulp(type, std::abs(want.value) + want.bound) +
                  std::abs(want.value) * 1e-5 + 1e-6;
    return want;
  }

  // Is it infinite where a value that is right rounds to infinity?
  [[nodiscard]] bool overflows(double got, const Bounded& want) const {
    if (!std::isinf(got) || (got > 0) != (want.value > 0)) return false;
    const double most = numeric::format_of(result()).max();
    return std::abs(want.value) + want.bound >= most + numeric::ulp(result(), most) / 2;
  }

  Instance instance_;
  Ask ask_;
  std::vector<std::int64_t> wide_;
  std::vector<std::int32_t> narrow_;  // the same offsets
  std::vector<std::int32_t> index_;
  Scaling scaling_ = Scaling::none;
  Tensor a_, b_, c_, d_, scale_a_, scale_b_, scale_d_, bias_, d_scales_, factor_a_, factor_b_;
  Packed packed_;  // B where the kernel takes it so; `b_` are its tiles
};

inline bool eight_bit(const Instance& i) {
  return numeric::bits(i.a) == 8;
}

/// How a gated kernel is asked: one of two activations, halves or (where rows of weights lie one by
/// one) in turns.
inline void ask_gate(const kernel::GemmConfig& c, unsigned number, Ask& ask) {
  if (!c.gated) return;
  ask.activation = number % 2 == 0 ? Activation::silu : Activation::swiglu_oai;
  ask.interleaved = number / 2 % 2 == 1 && !kernel::packed_a(c);
}

/// Rows and columns of tiles with a tail behind the last, as the problem has them.
inline Ask extents(const Instance& i, int tiles_down, unsigned seed) {
  const kernel::GemmConfig& c = i.config;
  Ask ask;
  const int rows = tiles_down * tile_rows(i) + 8;
  const int columns = tile_columns(i) + (tile_columns(i) > 64 ? 24 : 5);
  ask.m = is_swapped(c) ? columns : rows;
  ask.n = is_swapped(c) ? rows : columns;
  if (c.gated) ask.n = (2 * ask.n + gated_unit(c) - 1) / gated_unit(c) * gated_unit(c);
  ask.clusters = splits_k(c) ? 3 : 2;
  ask.seed = seed;
  return ask;
}

/// The scalings that a kernel of products in groups can do.
inline std::vector<Scaling> scalings_in_groups(const kernel::GemmConfig& c) {
  if (is_blockwise(c)) return {Scaling::blockwise};
  if (kernel::operand_bits(c) == 16 && !has_wide_tokens(c)) return {Scaling::none};
  return {Scaling::none, Scaling::tensor, Scaling::group, Scaling::row_column};
}

/// What a kernel of products in groups may be asked, with the last of its scalings and a D of
/// `columns` at least (those of halves have a unit).
inline Ask grouped_ask(const Instance& i, const std::vector<std::int64_t>& offsets, int columns,
                       int k) {
  Ask ask;
  ask.offsets = offsets;
  ask.m = static_cast<int>(offsets.back());
  ask.n = columns;
  if (i.config.gated)
    ask.n = (2 * columns + gated_unit(i.config) - 1) / gated_unit(i.config) * gated_unit(i.config);
  ask.k = k;
  ask.scaling = scalings_in_groups(i.config).back();
  return ask;
}

}  // namespace warpwright::tests
