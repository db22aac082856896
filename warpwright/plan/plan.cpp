#include "warpwright/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "warpwright/kernel/instances.h"
#include "warpwright/plan/blackwell.h"

namespace warpwright {
namespace {

std::string number(std::int64_t value) {
  return std::to_string(value);
}

std::string type(DType t) {
  return std::string(numeric::name(t));
}

// Bytes from the first to behind the last element of a K-major view, or 0 when it is empty.
std::int64_t extent_bytes(const MatrixView& v) {
  if (v.rows == 0 || v.columns == 0) return 0;
  return ((v.rows - 1) * v.row_stride + (v.columns - 1) * v.column_stride + 1) *
         numeric::bits(v.dtype) / 8;
}

bool overlap(const MatrixView& x, const MatrixView& y) {
  const auto a = reinterpret_cast<std::uintptr_t>(x.data);
  const auto b = reinterpret_cast<std::uintptr_t>(y.data);
  const std::int64_t na = extent_bytes(x);
  const std::int64_t nb = extent_bytes(y);
  if (na == 0 || nb == 0) return false;
  return a < b + static_cast<std::uintptr_t>(nb) && b < a + static_cast<std::uintptr_t>(na);
}

bool same_view(const MatrixView& x, const MatrixView& y) {
  return x.data == y.data && x.dtype == y.dtype && x.row_stride == y.row_stride &&
         x.column_stride == y.column_stride;
}

std::string shape(const MatrixView& v) {
  return number(v.rows) + " x " + number(v.columns);
}

// The largest of 1, 2, 4, 8, 16 that divides an address.
int alignment(const void* p) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  int bytes = 16;
  while (bytes > 1 && address % static_cast<std::uintptr_t>(bytes) != 0) bytes /= 2;
  return bytes;
}

std::optional<Refusal> check_view(const MatrixView& v, const char* name, bool used) {
  if (v.rows < 0 || v.columns < 0) {
    return Refusal{std::string(name) + " has a negative extent (" + shape(v) +
                   "); extents are 0 or more"};
  }
  if (!used || v.rows == 0 || v.columns == 0) return std::nullopt;
  if (v.data == nullptr) {
    return Refusal{std::string(name) + " is a null pointer; a tensor of " + shape(v) +
                   " elements needs memory"};
  }
  const int element = numeric::bits(v.dtype) / 8;
  if (alignment(v.data) % std::min(element, 16) != 0) {
    return Refusal{std::string(name) + "'s address is not a multiple of its element size, " +
                   number(element) + " bytes"};
  }
  return std::nullopt;
}

// What a tensor map's pitch must stay below.
constexpr std::int64_t max_pitch_bytes = std::int64_t{1} << 40;

// What the Hopper kernels multiply.
std::optional<Refusal> check_types(DType a, DType b) {
  if (a != b) {
    return Refusal{"A is " + type(a) + " and B is " + type(b) + "; both must be bf16 or both f16"};
  }
  if (a != DType::bf16 && a != DType::f16) {
    return Refusal{"A and B are " + type(a) +
                   "; kernels exist for bf16 and f16: the nearest is bf16"};
  }
  return std::nullopt;
}

// Rules on the operands that the copy engine loads.
std::optional<Refusal> check_operand(const char* name, std::int64_t rows, std::int64_t k,
                                     std::int64_t row_stride, std::int64_t column_stride, DType t) {
  const std::string tensor = name;
  if (column_stride != 1) {
    return Refusal{tensor + " has a column stride of " + number(column_stride) +
                   "; it must be K-major: neighbours along K next to each other, column stride 1"};
  }
  const int element = numeric::bits(t) / 8;
  const auto legal = [&](std::int64_t least) {
    const std::int64_t step = 16 / element;
    return (least + step - 1) / step * step;
  };
  if ((rows > 1 && row_stride < k) || row_stride < 0) {
    return Refusal{tensor + " has a row stride of " + number(row_stride) +
                   " elements, less than its " + number(k) + " columns; the nearest legal is " +
                   number(legal(k))};
  }
  if (row_stride >= max_pitch_bytes / element) {
    return Refusal{tensor + " has a row stride of " + number(row_stride) +
                   " elements; a tensor map allows less than 2^40 bytes: the nearest legal is " +
                   number(legal(max_pitch_bytes / element - 16 / element))};
  }
  const std::int64_t bytes = row_stride * element;
  if (bytes % 16 != 0) {
    const std::int64_t up = legal(row_stride);
    return Refusal{
        "the rows of " + tensor + " are " + number(bytes) + " bytes apart (" + number(row_stride) +
        " elements of " + type(t) +
        "); they must be a multiple of 16 bytes apart: the nearest legal row stride is " +
        number(up) + " elements (pad K)"};
  }
  return std::nullopt;
}

std::optional<Refusal> check_result(const char* name, std::int64_t rows, std::int64_t columns,
                                    std::int64_t row_stride, std::int64_t column_stride) {
  if (column_stride != 1) {
    return Refusal{std::string(name) + " has a column stride of " + number(column_stride) +
                   "; it must be row-major, column stride 1"};
  }
  if (rows > 1 && row_stride < columns) {
    return Refusal{std::string(name) + " has a row stride of " + number(row_stride) +
                   " elements, less than its " + number(columns) +
                   " columns; the nearest legal is " + number(columns)};
  }
  return std::nullopt;
}

// The copy engine moves a result when its rows start at multiples of 16 bytes. A store also ends at
// one: past the last column the engine drops whole 16-byte pieces, not elements (seen on an H200),
// so rows that end inside a piece would overwrite what lies behind them.
EpiloguePath result_path(std::int64_t columns, std::int64_t row_stride, DType t, int align,
                         bool store) {
  const int element = numeric::bits(t) / 8;
  const bool maps = row_stride >= 0 && row_stride < max_pitch_bytes / element;
  const bool starts = maps && row_stride * element % 16 == 0 && align % 16 == 0;
  const bool ends = !store || columns * element % 16 == 0;
  return starts && ends ? EpiloguePath::copy_engine : EpiloguePath::elements;
}

// Predicted time of a candidate, up to a factor: full rounds of tiles, and what was measured on an
// H200 of how well each way keeps the tensor cores busy. It orders candidates and is shown to
// nobody.
double cost(const Plan& p) {
  const double tile_work = static_cast<double>(p.config.tile_m) * p.config.tile_n;
  const double rounds = std::ceil(p.waves());
  // The epilogue of a cooperative tile is not hidden.
  const bool pingpong = p.config.schedule == kernel::Schedule::pingpong;
  const double k = static_cast<double>(p.problem.k) + (pingpong ? 64 : 320);
  double time = rounds * tile_work * k;
  // Sharing loads in a cluster pays, most for the larger operand.
  if (atom::cluster_size(p.cluster) == 1) time *= 1.06;
  const bool shares_larger = p.problem.n >= p.problem.m ? p.cluster.m > 1 : p.cluster.n > 1;
  if (!shares_larger) time *= 1.01;
  return time;
}

}  // namespace

const std::vector<kernel::GemmConfig>& gemm_configs() {
#define WW_CONFIG(tag, ...) kernel::tag::config,
  static const std::vector<kernel::GemmConfig> configs = {WW_HOPPER_GEMM_INSTANCES(WW_CONFIG)};
#undef WW_CONFIG
  return configs;
}

GemmProblem packed_problem(std::int64_t m, std::int64_t n, std::int64_t k, DType operand,
                           DType result, bool reads_c) {
  GemmProblem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = p.b = operand;
  p.c = p.d = result;
  p.reads_c = reads_c;
  p.reads_ab = k > 0;
  p.a_row_stride = p.b_row_stride = k;
  p.c_row_stride = p.d_row_stride = n;
  return p;
}

Result<GemmProblem> describe(const GemmOperands& o) {
  if (std::isnan(o.alpha)) return Refusal{"alpha is NaN; it must be a number"};
  if (std::isnan(o.beta)) return Refusal{"beta is NaN; it must be a number"};
  const bool reads_c = o.beta != 0.0F;
  const bool reads_ab = o.alpha != 0.0F && o.a.columns != 0;
  if (auto r = check_view(o.a, "A", reads_ab)) return *r;
  if (auto r = check_view(o.b, "B", reads_ab)) return *r;
  if (auto r = check_view(o.d, "D", true)) return *r;
  if (o.a.columns != o.b.columns) {
    return Refusal{"A is " + shape(o.a) + " and B is " + shape(o.b) +
                   "; their columns are both K and must agree: the nearest legal B is " +
                   number(o.b.rows) + " x " + number(o.a.columns)};
  }
  if (o.d.rows != o.a.rows || o.d.columns != o.b.rows) {
    return Refusal{"D is " + shape(o.d) + "; the product of A (" + shape(o.a) + ") and B (" +
                   shape(o.b) + ") transposed is " + number(o.a.rows) + " x " + number(o.b.rows)};
  }
  for (const auto& [view, name] : {std::pair{&o.a, "A"}, {&o.b, "B"}, {&o.d, "D"}, {&o.c, "C"}}) {
    if (view == &o.c && !reads_c) continue;
    if (view->batch != 1) {
      return Refusal{std::string(name) + " is a batch of " + number(view->batch) +
                     " matrices; this version multiplies one pair at a time: batch 1"};
    }
  }
  if (reads_c) {
    if (auto r = check_view(o.c, "C", true)) return *r;
    if (o.c.rows != o.d.rows || o.c.columns != o.d.columns) {
      return Refusal{"C is " + shape(o.c) + "; beta is not 0, so it must be as large as D, " +
                     shape(o.d)};
    }
    if (overlap(o.c, o.d) && !same_view(o.c, o.d)) {
      return Refusal{"D overlaps C; it must lie apart from C or be the very same view"};
    }
  }
  if (reads_ab && overlap(o.d, o.a)) return Refusal{"D overlaps A; it must lie apart from A"};
  if (reads_ab && overlap(o.d, o.b)) return Refusal{"D overlaps B; it must lie apart from B"};

  GemmProblem p;
  p.m = o.d.rows;
  p.n = o.d.columns;
  p.k = o.a.columns;
  p.a = o.a.dtype;
  p.b = o.b.dtype;
  p.d = o.d.dtype;
  p.c = reads_c ? o.c.dtype : o.d.dtype;
  p.reads_c = reads_c;
  p.reads_ab = reads_ab;
  p.a_row_stride = o.a.row_stride;
  p.b_row_stride = o.b.row_stride;
  p.d_row_stride = o.d.row_stride;
  p.a_column_stride = o.a.column_stride;
  p.b_column_stride = o.b.column_stride;
  p.d_column_stride = o.d.column_stride;
  p.d_alignment = alignment(o.d.data);
  if (reads_c) {
    p.c_row_stride = o.c.row_stride;
    p.c_column_stride = o.c.column_stride;
    p.c_alignment = alignment(o.c.data);
  }
  if (reads_ab && p.m > 0 && p.n > 0) {
    for (const auto& [view, name] : {std::pair{&o.a, "A"}, {&o.b, "B"}}) {
      if (alignment(view->data) < 16) {
        return Refusal{
            std::string(name) +
            "'s address must be a multiple of 16 bytes for the copy engine; it is one of " +
            number(alignment(view->data))};
      }
    }
  }
  return p;
}

Result<Plan> plan(const GemmProblem& problem, const DeviceFacts& device,
                  const PlanChoices& choices) {
  Plan result;
  result.problem = problem;
  result.device = device;
  const GemmProblem& p = problem;
  constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max() - 4096;
  for (const auto& [extent, name] : {std::pair{p.m, "M"}, {p.n, "N"}, {p.k, "K"}}) {
    if (extent < 0) {
      return Refusal{std::string(name) + " is " + number(extent) +
                     "; the nearest legal value is 0"};
    }
    if (extent > limit) {
      return Refusal{std::string(name) + " is " + number(extent) +
                     "; coordinates have 32 bits: the nearest legal value is " + number(limit)};
    }
  }
  if (p.batch != 1) {
    return Refusal{"the problem is a batch of " + number(p.batch) +
                   " products; this version plans one at a time: batch 1"};
  }
  const bool blackwell = is_blackwell(device);
  if (auto r = blackwell ? check_blackwell_types(p.a, p.b) : check_types(p.a, p.b)) return *r;
  if (p.d != DType::bf16 && p.d != DType::f16 && p.d != DType::f32) {
    return Refusal{"D is " + type(p.d) +
                   "; kernels exist for bf16, f16 and f32: the nearest is f32"};
  }
  if (p.reads_c && p.c != p.d) {
    return Refusal{"C is " + type(p.c) + " and D is " + type(p.d) + "; C must have D's type, " +
                   type(p.d)};
  }
  if (p.reads_ab && p.m > 0 && p.n > 0) {
    if (auto r = check_operand("A", p.m, p.k, p.a_row_stride, p.a_column_stride, p.a)) return *r;
    if (auto r = check_operand("B", p.n, p.k, p.b_row_stride, p.b_column_stride, p.b)) return *r;
  }
  if (auto r = check_result("D", p.m, p.n, p.d_row_stride, p.d_column_stride)) return *r;
  if (p.reads_c) {
    if (auto r = check_result("C", p.m, p.n, p.c_row_stride, p.c_column_stride)) return *r;
  }
  if (device.architecture != 90 && !blackwell) {
    return Refusal{"device " + device.name + " has architecture sm_" + number(device.architecture) +
                   "; kernels exist for sm_90 (H100, H200), sm_100 (B200) and sm_103 (B300)"};
  }
  result.d_path = result_path(p.n, p.d_row_stride, p.d, p.d_alignment, true);
  result.c_path =
      p.reads_c ? result_path(p.n, p.c_row_stride, p.c, p.c_alignment, false) : EpiloguePath::none;
  if (blackwell) return choose_blackwell(result, choices);
  if (choices.pair.value_or(false) || choices.tiles || choices.accumulators) {
    return Refusal{"pairs, tile sources and accumulators in tensor memory are of sm_100; device " +
                   device.name + " is sm_" + number(device.architecture)};
  }

  bool found = false;
  double best = 0;
  for (const kernel::GemmConfig& config : gemm_configs()) {
    if (config.operand != p.a || config.result != p.d) continue;
    if (choices.tile_n && *choices.tile_n != config.tile_n) continue;
    for (const atom::ClusterShape& cluster : kernel::supported_clusters) {
      if (choices.cluster && !(*choices.cluster == cluster)) continue;
      if (!kernel::supports(config, cluster)) continue;
      const int size = atom::cluster_size(cluster);
      if (!choices.cluster && size > 2) continue;
      if (size > device.sms) {
        if (!choices.cluster) continue;
        return Refusal{"a cluster of " + number(size) + " CTAs needs as many SMs; device " +
                       device.name + " has " + number(device.sms)};
      }
      Plan candidate = result;
      candidate.config = config;
      candidate.cluster = cluster;
      const auto tiles_m = static_cast<int>((p.m + config.tile_m - 1) / config.tile_m);
      const auto tiles_n = static_cast<int>((p.n + config.tile_n - 1) / config.tile_n);
      if (static_cast<std::int64_t>(tiles_m) * tiles_n > limit) {
        return Refusal{"D of " + number(p.m) + " x " + number(p.n) +
                       " has more than 2^31 tiles; split it"};
      }
      const int resident = resident_ctas(device, size);
      candidate.raster =
          tile::make_raster(tiles_m, tiles_n, cluster, resident, config.tile_m, config.tile_n);
      candidate.ctas = std::min(tile::tile_count(candidate.raster) * size, resident);
      const double c = p.m == 0 || p.n == 0 ? 0 : cost(candidate);
      if (!found || c < best) {
        result = candidate;
        best = c;
        found = true;
      }
    }
  }
  if (!found) {
    std::string text = "no kernel has";
    if (choices.tile_n) text += " tile_n " + number(*choices.tile_n);
    if (choices.cluster) {
      text += (choices.tile_n ? " with" : "") + std::string(" cluster ") +
              number(choices.cluster->m) + "x" + number(choices.cluster->n);
    }
    return Refusal{text + "; tiles are 128x128 and 128x256, clusters 1x1, 2x1, 1x2, 2x2 and 4x4"};
  }
  return result;
}

Result<Plan> plan(const GemmOperands& operands, const DeviceFacts& device,
                  const PlanChoices& choices) {
  auto problem = describe(operands);
  if (!problem) return Refusal{problem.reason()};
  return plan(*problem, device, choices);
}

std::optional<Refusal> mismatch(const Plan& plan, const GemmOperands& operands) {
  const auto described = describe(operands);
  if (!described) return Refusal{described.reason()};
  const GemmProblem& got = *described;
  const GemmProblem& want = plan.problem;
  if (got.m != want.m || got.n != want.n || got.k != want.k) {
    return Refusal{"the operands are a product of " + number(got.m) + " x " + number(got.n) +
                   " x " + number(got.k) + "; the plan is for " + number(want.m) + " x " +
                   number(want.n) + " x " + number(want.k)};
  }
  if (got.a != want.a || got.b != want.b || got.d != want.d ||
      (got.reads_c && want.reads_c && got.c != want.c)) {
    return Refusal{"the operands' types are not those of the plan; make a plan for them"};
  }
  if (got.a_row_stride != want.a_row_stride || got.b_row_stride != want.b_row_stride ||
      got.d_row_stride != want.d_row_stride ||
      (got.reads_c && want.reads_c && got.c_row_stride != want.c_row_stride)) {
    return Refusal{"the operands' row strides are not those of the plan; make a plan for them"};
  }
  const bool unit_columns =
      (!got.reads_ab || (got.a_column_stride == 1 && got.b_column_stride == 1)) &&
      got.d_column_stride == 1 && (!got.reads_c || got.c_column_stride == 1);
  if (!unit_columns) {
    return Refusal{"the operands' column strides are not those of the plan, which are 1"};
  }
  if (got.reads_c && !want.reads_c) {
    return Refusal{"beta is not 0, but the plan was made without C; make a plan that reads C"};
  }
  if (got.reads_ab && !want.reads_ab) {
    return Refusal{"alpha is not 0, but the plan was made without reading A and B"};
  }
  if (plan.d_path == EpiloguePath::copy_engine && got.d_alignment < 16) {
    return Refusal{"D's address is a multiple of " + number(got.d_alignment) +
                   " bytes only; the plan was made for one of 16: say so in the problem"};
  }
  if (got.reads_c && plan.c_path == EpiloguePath::copy_engine && got.c_alignment < 16) {
    return Refusal{"C's address is a multiple of " + number(got.c_alignment) +
                   " bytes only; the plan was made for one of 16: say so in the problem"};
  }
  return std::nullopt;
}

}  // namespace warpwright
