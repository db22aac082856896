// What planning answers to random products and choices, as text: plans with their cost, and
// refusals with their sentences. Two builds whose texts are equal plan alike.
//
//   fuzz_plans [products, 5000] [seed, 1] > plans.txt
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/product/known_devices.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright {
namespace {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : engine_(seed) {}
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(end));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  template <class T, std::size_t N>
  T of(const std::array<T, N>& all) {
    return all[static_cast<std::size_t>(below(static_cast<std::int64_t>(N)))];
  }

 private:
  std::mt19937_64 engine_;
};

// Never read: matrices lie 2^57 bytes apart.
void* address(int index, int offset = 0) {
  return reinterpret_cast<void*>((std::uintptr_t{1} << 57) * static_cast<unsigned>(index + 1) +
                                 static_cast<unsigned>(offset));
}

std::int64_t extent(Draws& draw, bool wild) {
  constexpr std::array<std::int64_t, 12> usual = {1,    8,    16,   64,   128,  512,
                                                  1024, 2048, 4096, 7168, 8192, 14336};
  if (wild && draw.one_in(40)) {
    return draw.of(std::array<std::int64_t, 4>{0, -1, std::int64_t{1} << 31, 1 << 22});
  }
  if (draw.one_in(3)) return 1 + draw.below(300);
  return draw.of(usual) + (draw.one_in(4) ? draw.below(17) : 0);
}

int offset(Draws& draw) {
  return draw.one_in(12) ? static_cast<int>(draw.of(std::array{1, 2, 4, 8})) : 0;
}

MatrixView operand(Draws& draw, int index, DType type, std::int64_t rows, std::int64_t columns,
                   std::int64_t batch, bool may_turn) {
  const bool turned = may_turn && draw.one_in(3);
  MatrixView v = matrix(address(index, offset(draw)), type, rows, columns);
  const std::int64_t line = turned ? rows : columns;
  std::int64_t pitch = line;
  if (draw.one_in(3)) pitch = (line + 15) / 16 * 16;
  if (draw.one_in(8)) pitch += draw.below(40);
  if (draw.one_in(100)) pitch = draw.of(std::array<std::int64_t, 3>{0, line - 1, 1LL << 45});
  v.row_stride = turned ? 1 : pitch;
  v.column_stride = turned ? pitch : 1;
  if (draw.one_in(100)) v.column_stride = draw.of(std::array<std::int64_t, 3>{2, 3, -1});
  if (batch > 1 && !draw.one_in(6)) {
    v.batch = batch;
    v.batch_stride = draw.one_in(10) ? 0 : pitch * (turned ? columns : rows);
    if (draw.one_in(30)) v.batch_stride += 1;
  }
  return v;
}

MatrixView f32(int index, std::int64_t rows, std::int64_t columns, std::int64_t batch = 1) {
  MatrixView v = matrix(address(index), DType::f32, rows, columns);
  v.batch = batch;
  v.batch_stride = rows * columns;
  return v;
}

void add_scales(Draws& draw, GemmOperands& o, std::int64_t groups) {
  const std::int64_t m = o.a.rows, n = o.b.rows, k = o.a.columns;
  const auto pieces = [](std::int64_t extent, std::int64_t piece) {
    return (extent + piece - 1) / piece;
  };
  const std::int64_t of_b = groups > 0 ? groups : 1;
  switch (o.scaling) {
    case Scaling::none:
      return;
    case Scaling::tensor:
      o.scale_a = f32(4, 1, 1);
      o.scale_b = f32(5, 1, 1);
      break;
    case Scaling::row_column:
      o.scale_a = f32(4, m, 1);
      o.scale_b = f32(5, n, 1, of_b);
      break;
    case Scaling::blockwise: {
      const std::int64_t block = draw.of(std::array{128, 128, 64, 32});
      o.scale_a = f32(4, m, pieces(k, block));
      o.scale_b = f32(5, pieces(n, block), pieces(k, block), of_b);
      if (draw.one_in(2)) {
        o.scale_a.row_stride = 1;
        o.scale_a.column_stride = pieces(m, 4) * 4;
      }
      break;
    }
    case Scaling::group:
      o.scale_a = f32(4, draw.one_in(2) ? 1 : of_b, 1);
      o.scale_b = f32(5, of_b, 1);
      break;
    case Scaling::block_scaled: {
      const bool is_nvf4 = o.a.dtype == DType::e2m1;
      const DType type = is_nvf4 ? DType::ue4m3 : DType::ue8m0;
      const std::int64_t columns = block_scales::padded_columns(k, is_nvf4 ? 16 : 32);
      o.scale_a = matrix(address(4), type, block_scales::padded_rows(m), columns);
      o.scale_b = matrix(address(5), type, block_scales::padded_rows(n), columns);
      break;
    }
  }
  if (o.packed && draw.one_in(2)) o.scale_b = {};
  if (draw.one_in(40)) o.scale_a.rows += 1;
  if (draw.one_in(40)) o.scale_b = {};
}

GemmOperands product(Draws& draw) {
  const bool wild = draw.one_in(5);
  const bool grouped = draw.one_in(4);
  const std::int64_t m = extent(draw, wild), n = extent(draw, wild), k = extent(draw, wild);
  const std::int64_t groups = grouped ? 1 + draw.below(draw.one_in(2) ? 9 : 260) : 0;
  const std::int64_t batch = !grouped && draw.one_in(5) ? 1 + draw.below(9) : 1;
  GemmOperands o;
  DType type = draw.of(std::array{DType::bf16, DType::bf16, DType::f16, DType::e4m3, DType::e4m3,
                                  DType::e5m2, DType::tf32, DType::s8, DType::e2m1});
  if (draw.one_in(8)) {
    type = DType::e4m3;
    o.packed = PackedWeights{};
    o.packed->format.group = draw.of(std::array{32, 64, 128});
    o.packed->format.scale = draw.of(std::array{DType::bf16, DType::f16, DType::f32});
    o.packed->sums = draw.of(std::array{GroupSums::exact, GroupSums::exact, GroupSums::chained,
                                        GroupSums::folded, GroupSums::table});
    if (o.packed->sums == GroupSums::table) o.packed->format.encoding = Int4Encoding::sm;
    if (draw.one_in(4)) o.packed->format.zero_points = ZeroPoints::groups;
    if (draw.one_in(3)) {
      o.packed->format = packed_format(draw.of(std::to_array(packed::weight_forms)));
      o.packed->sums = draw.of(std::array{GroupSums::open, GroupSums::exact, GroupSums::folded});
      type = draw.one_in(6) ? type : o.packed->format.tokens;
    }
  }
  const bool narrow = type == DType::e4m3 || type == DType::e5m2;
  const bool may_turn = !narrow && !grouped && type != DType::s8 && type != DType::e2m1;
  o.a = operand(draw, 0, type, m, k, batch, may_turn);
  o.b = operand(draw, 1, narrow && draw.one_in(6) ? DType::e5m2 : type, n, k,
                grouped ? groups : batch, may_turn);
  if (grouped && draw.one_in(60) == false) {
    o.b.batch = groups;
    o.b.batch_stride = n * o.b.row_stride;
  }
  if (o.packed) {
    o.b = matrix(address(1), o.packed->format.code, n, k);
    o.b.batch = grouped ? groups : 1;
    o.b.row_stride = o.b.column_stride = 0;
  }
  o.epilogue.gated = draw.one_in(8);
  if (draw.one_in(4)) o.epilogue.activation = draw.of(std::to_array(all_activations));
  if (o.epilogue.gated && !draw.one_in(10)) {
    o.epilogue.activation = draw.one_in(2) ? Activation::silu : Activation::swiglu_oai;
  }
  o.epilogue.interleaved = draw.one_in(o.epilogue.gated ? 2 : 40);
  if (draw.one_in(o.epilogue.gated ? 3 : 60)) {
    const std::array numbers = {0.5F, 1.0F, 10.0F, 0.0F, -1.0F, NAN, INFINITY};
    o.epilogue.gate = {draw.of(numbers), draw.of(numbers), draw.of(numbers)};
  }
  const DType result = draw.one_in(12)
                           ? DType::e4m3
                           : draw.of(std::array{DType::bf16, DType::bf16, DType::f16, DType::f32});
  o.d = operand(draw, 3, result, m, o.epilogue.gated ? n / 2 : n, 1, false);
  if (batch > 1) {
    o.d.batch = batch;
    o.d.batch_stride = draw.one_in(20) ? 8 : o.d.rows * o.d.row_stride;
  }
  o.beta = 0;
  if (draw.one_in(4)) {
    o.c = operand(draw, 2, draw.one_in(20) ? DType::f32 : result, o.d.rows, o.d.columns, batch,
                  false);
    o.beta = draw.one_in(5) ? 0.0F : 1.0F;
  }
  if (draw.one_in(30)) o.alpha = 0;
  if (narrow || type == DType::s8 || draw.one_in(30)) {
    o.scaling = draw.of(std::array{Scaling::none, Scaling::tensor, Scaling::row_column,
                                   Scaling::blockwise, grouped ? Scaling::group : Scaling::none});
  }
  if (type == DType::e2m1 || (type == DType::e4m3 && draw.one_in(6)))
    o.scaling = Scaling::block_scaled;
  if (narrow && draw.one_in(3)) o.accumulation = Accumulation::promoted;
  add_scales(draw, o, groups);
  if (draw.one_in(6)) {
    o.epilogue.bias = draw.one_in(3) ? Bias::rows : Bias::columns;
    o.bias = matrix(address(6), draw.one_in(2) ? DType::f32 : result,
                    o.epilogue.bias == Bias::rows ? m : n, 1);
    if (grouped && draw.one_in(2)) {
      o.bias.batch = groups;
      o.bias.batch_stride = n;
    }
  }
  if (result == DType::e4m3 && draw.one_in(2)) o.scale_d = f32(7, 1, 1);
  if (grouped) {
    o.groups = Groups{address(8), draw.one_in(3) ? OffsetType::int64 : OffsetType::int32,
                      draw.one_in(4) ? static_cast<double>(draw.below(600)) : 0.0};
  }
  return o;
}

PlanChoices choices(Draws& draw) {
  PlanChoices c;
  if (draw.one_in(2)) return c;
  constexpr std::array<atom::ClusterShape, 7> clusters = {
      {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}, {4, 4}}};
  if (draw.one_in(6)) c.batch_invariant = true;
  if (draw.one_in(5)) c.cluster = draw.of(clusters);
  if (draw.one_in(8)) c.most_cluster_ctas = static_cast<int>(1 + draw.below(16));
  if (draw.one_in(6)) c.tile_m = draw.of(std::array{64, 128, 192, 256, 8, 100});
  if (draw.one_in(6)) c.tile_n = draw.of(std::array{16, 32, 64, 96, 128, 176, 256, 8, 100});
  if (draw.one_in(5)) c.ctas = static_cast<int>(draw.of(std::array{1, 2, 8, 16, 132, 131, 1000}));
  if (draw.one_in(8)) {
    c.tiles =
        draw.of(std::array{kernel::TileSource::one_tile, kernel::TileSource::static_persistent,
                           kernel::TileSource::clc, kernel::TileSource::dynamic_persistent});
  }
  if (draw.one_in(8)) {
    c.schedule = draw.of(std::array{kernel::Schedule::cooperative, kernel::Schedule::pingpong,
                                    kernel::Schedule::multistage});
  }
  if (draw.one_in(8)) c.swap_ab = draw.one_in(2);
  if (draw.one_in(10)) c.cluster_k = static_cast<int>(1 + draw.below(9));
  if (draw.one_in(20)) c.tile_tokens = draw.of(std::array{16, 32, 64, 128, 256});
  if (draw.one_in(20)) {
    c.search = draw.of(std::array{kernel::Grouping::linear_scan, kernel::Grouping::binary_search,
                                  kernel::Grouping::warp_scan});
  }
  if (draw.one_in(15)) c.pair = draw.one_in(2);
  if (draw.one_in(20)) c.accumulators = static_cast<int>(draw.below(5));
  return c;
}

void print(const Refusal& r) {
  std::printf("  %s: %s\n", name(r.code), r.reason.c_str());
}

void print(const OperandCopy& copy, const char* name) {
  std::printf(" %s@%lld+%lld:%lld,%lld,%lld", name, static_cast<long long>(copy.at),
              static_cast<long long>(copy.bytes), static_cast<long long>(copy.row_stride),
              static_cast<long long>(copy.column_stride),
              static_cast<long long>(copy.batch_stride));
}

void print(const Plan& p, bool whole) {
  std::printf(
      "  %s %dx%d k%d r%dx%dx%d,%d,%d ctas %d tiles %d d%d c%d ws %lld/%lld "
      "cost %.17g",
      p.kernel.c_str(), p.cluster.m, p.cluster.n, p.cluster_k, p.raster.tiles_m, p.raster.tiles_n,
      p.raster.batch, p.raster.band, static_cast<int>(p.raster.along_m), p.ctas,
      static_cast<int>(p.tile_source), static_cast<int>(p.d_path), static_cast<int>(p.c_path),
      static_cast<long long>(p.workspace_bytes), static_cast<long long>(p.flag_bytes), p.cost);
  if (p.a_copy) print(*p.a_copy, "a");
  if (p.b_copy) print(*p.b_copy, "b");
  std::printf("; %s\n", p.reason.c_str());
  if (whole) std::printf("%s\n", p.explain().c_str());
}

// One thing of the product changed, as a caller may who keeps a plan.
GemmOperands changed(Draws& draw, GemmOperands o) {
  switch (draw.below(16)) {
    case 0:
      o.a.rows += 1;
      o.d.rows += 1;
      break;
    case 1:
      o.a.row_stride += 8;
      break;
    case 2:
      o.b.row_stride += 8;
      break;
    case 3:
      o.d.row_stride += 8;
      break;
    case 4:
      o.c.row_stride += 8;
      break;
    case 5:
      o.a.data = static_cast<char*>(o.a.data) + 8;
      break;
    case 6:
      o.d.data = static_cast<char*>(o.d.data) + 8;
      break;
    case 7:
      o.d.dtype = DType::f32;
      break;
    case 8:
      o.beta = 1;
      break;
    case 9:
      o.alpha = o.alpha == 0 ? 1.0F : 0.0F;
      break;
    case 10:
      o.a.batch_stride += 16;
      o.b.batch_stride += 16;
      break;
    case 11:
      o.epilogue.activation = Activation::relu;
      break;
    case 12:
      o.accumulation = Accumulation::promoted;
      break;
    case 13:
      if (o.groups) o.groups->type = OffsetType::int64;
      break;
    case 14:
      if (o.groups) o.groups->expected_tokens = 77;
      break;
    default:
      o.scale_a.column_stride += 4;
      break;
  }
  return o;
}

int dump(int count, std::uint64_t seed) {
  std::vector<DeviceFacts> devices;
  for (const std::string_view each : known_devices()) devices.push_back(*known_facts(each));
  for (const int architecture : {90, 100, 80, 120}) {
    devices.push_back(model_facts(model_facts().sms, architecture));
  }
  devices.push_back(model_facts(1, 90));
  for (int i = 0; i < count; ++i) {
    Draws draw(seed * 1000003 + static_cast<std::uint64_t>(i));
    const GemmOperands o = product(draw);
    const PlanChoices wanted = choices(draw);
    // Most on Hopper, the others in their turn.
    const auto index = static_cast<std::size_t>(i) % devices.size();
    const DeviceFacts& device = draw.one_in(3) ? *known_facts("h200") : devices[index];
    std::printf("%d %s\n", i, device.name.c_str());
    const auto problem = describe(o);
    if (!problem) {
      print(problem.refusal());
      continue;
    }
    const auto all = candidates(*problem, device, wanted);
    const auto best = plan(*problem, device, wanted);
    if (!all) print(all.refusal());
    if (!best) {
      print(best.refusal());
      continue;
    }
    print(*best, i % 10 == 0);
    for (const Plan& each : *all) print(each, false);
    for (int j = 0; j < 4; ++j) {
      if (const auto r = mismatch(*best, changed(draw, o))) print(*r);
    }
    if (const auto r = mismatch(*best, choices(draw))) print(*r);
    PlanChoices named = wanted;
    named.kernel = best->kernel;
    if (const auto again = plan(*problem, devices[index], named); again) {
      print(*again, false);
    } else {
      print(again.refusal());
    }
  }
  return 0;
}

}  // namespace
}  // namespace warpwright

int main(int count, char** words) {
  const int products = count > 1 ? std::atoi(words[1]) : 5000;
  const std::uint64_t seed = count > 2 ? std::strtoull(words[2], nullptr, 10) : 1;
  return warpwright::dump(products, seed);
}
