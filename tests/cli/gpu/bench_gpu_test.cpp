// What the bench relies on, on a GPU: that its plain product is right, that cuBLASLt is asked for
// the product that is meant, and that a wrong result is seen.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "bench/cublaslt.h"
#include "bench/device_math.h"
#include "bench/gemm_bench.h"
#include "bench/judgement.h"
#include "bench/operand_sets.h"
#include "bench/replay.h"
#include "tests/gpu.h"
#include "tests/must.h"
#include "tests/problem_changes.h"
#include "warpwright/device/cuda.h"
#include "warpwright/numeric/bulk.h"
#include "warpwright/reference/cuda.h"
#include "warpwright/reference/product.h"
#include "warpwright/reference/tolerance.h"

namespace warpwright::bench {
namespace {

constexpr std::uint64_t kSeed = 4;
// So small that no set is there for the cache's sake.
constexpr std::int64_t kNoCache = 1;

struct Case {
  const char* name;
  GemmProblem problem;
  bool library = true;  ///< does cuBLASLt serve it on Hopper?
};

GemmProblem narrow(Scaling scaling, Accumulation accumulation, std::int64_t m = 132) {
  GemmProblem p = packed_problem(m, 272, 528, DType::e4m3, DType::bf16);
  p.scaling = scaling;
  p.accumulation = accumulation;
  return p;
}

GemmProblem wide() {
  return packed_problem(136, 200, 328, DType::bf16, DType::bf16);
}

GemmProblem with(GemmProblem p, void (*change)(GemmProblem&)) {
  change(p);
  return p;
}

std::vector<Case> cases() {
  const auto bias = [](GemmProblem& p) {
    p.epilogue.bias = Bias::columns;
    p.bias = p.d;
  };
  return {
      {"bf16", wide()},
      {"fp16 to f32", packed_problem(64, 72, 80, DType::f16, DType::f32)},
      {"bf16 with C", packed_problem(136, 200, 328, DType::bf16, DType::bf16, true)},
      {"bf16, both MN-major", with(wide(),
                                   [](GemmProblem& p) {
                                     p.a.row_stride = p.b.row_stride = 1;
                                     p.a.column_stride = p.m();
                                     p.b.column_stride = p.n();
                                   })},
      {"bf16, A MN-major", with(wide(),
                                [](GemmProblem& p) {
                                  p.a.row_stride = 1;
                                  p.a.column_stride = p.m() + 8;
                                })},
      {"bf16, B MN-major", with(wide(),
                                [](GemmProblem& p) {
                                  p.b.row_stride = 1;
                                  p.b.column_stride = p.n();
                                })},
      {"bf16, a batch that shares B", with(wide(),
                                           [](GemmProblem& p) {
                                             set_batch(p, 3);
                                             p.a.batch_stride = p.m() * p.k() + 64;
                                             p.d.batch_stride = p.m() * p.n();
                                           })},
      {"bf16, bias", with(wide(), bias)},
      {"bf16, bias and ReLU",
       with(with(wide(), bias), [](GemmProblem& p) { p.epilogue.activation = Activation::relu; })},
      {"bf16, GELU",
       with(wide(), [](GemmProblem& p) { p.epilogue.activation = Activation::gelu; })},
      {"bf16, bias along rows",
       with(wide(),
            [](GemmProblem& p) {
              p.epilogue.bias = Bias::rows;
              p.bias.dtype = DType::f32;
            }),
       false},
      {"bf16, SiLU", with(wide(), [](GemmProblem& p) { p.epilogue.activation = Activation::silu; }),
       false},
      {"e4m3, no scales, fast", narrow(Scaling::none, Accumulation::fast)},
      {"e4m3, tensor scales, fast", narrow(Scaling::tensor, Accumulation::fast)},
      {"e4m3, tensor scales, promoted", narrow(Scaling::tensor, Accumulation::promoted)},
      {"e5m2 by e4m3", with(narrow(Scaling::tensor, Accumulation::fast),
                            [](GemmProblem& p) { p.a.dtype = DType::e5m2; })},
      {"e4m3 to e4m3, scaled", with(narrow(Scaling::tensor, Accumulation::fast, 128),
                                    [](GemmProblem& p) {
                                      p.d.dtype = DType::e4m3;
                                      scale_d(p);
                                    })},
      {"e4m3, row scales", narrow(Scaling::row_column, Accumulation::fast)},
      {"e4m3, block scales", narrow(Scaling::blockwise, Accumulation::promoted)},
      {"e4m3, block scales, odd M", narrow(Scaling::blockwise, Accumulation::promoted, 131), false},
  };
}

// As if no sums were promoted.
reference::Tolerance loose(const GemmOperands& o) {
  GemmOperands fast = o;
  fast.accumulation = Accumulation::fast;
  if (o.scaling == Scaling::blockwise) fast.scaling = Scaling::none;
  return {reference::lost_share(fast, 1)};
}

class Buffers {
 public:
  explicit Buffers(const GemmProblem& problem)
      : sets(operands_for(problem), kNoCache, kSeed, stream.get()) {
    const GemmOperands& o = sets.all().front();
    memory = filled_memory(o.a.rows * o.b.rows * o.d.batch * 4);
    product = static_cast<float*>(memory->data());
    require(reference::multiply_on_cuda(o, product, stream.get()));
  }

  Stream stream;
  OperandSets sets;
  std::shared_ptr<device::CudaBuffer> memory;
  float* product = nullptr;
};

// All over when it returns: the streams here do not wait for the default one.
void poison(void* data, std::int64_t bytes) {
  require(cudaMemset(data, 0xff, static_cast<std::size_t>(bytes)), "poisoning");
  require(cudaDeviceSynchronize(), "poisoning");
}

std::vector<std::byte> fetch_bytes(const MatrixView& v) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(span_bytes(v)));
  require(cudaMemcpy(bytes.data(), v.data, bytes.size(), cudaMemcpyDeviceToHost), "copying");
  return bytes;
}

std::vector<float> fetch(const MatrixView& v) {
  const std::vector<std::byte> bytes = fetch_bytes(v);
  std::vector<float> values(static_cast<std::size_t>(span_elements(v)));
  numeric::widen_from(bytes.data(), values.data(), values.size(), v.dtype);
  return values;
}

TEST(BenchOnGpu, RandomValuesAreNormal) {
  WW_NEEDS_GPU();
  std::cout << "seed " << kSeed << "\n";
  constexpr std::int64_t count = 1 << 20;
  for (const DType t : {DType::bf16, DType::f16, DType::e4m3, DType::e5m2, DType::f32}) {
    const auto made = filled_memory(count * numeric::bits(t) / 8);
    fill_normal(made->data(), t, count, kSeed, 1, nullptr);
    require(cudaDeviceSynchronize(), "filling");
    double sum = 0;
    double squares = 0;
    for (const float x : fetch(matrix(made->data(), t, 1, count))) {
      sum += static_cast<double>(x);
      squares += static_cast<double>(x) * static_cast<double>(x);
    }
    EXPECT_NEAR(sum / count, 0, 0.01) << numeric::name(t);
    EXPECT_NEAR(squares / count, 1, 0.02) << numeric::name(t);
  }
}

// The product on a GPU against that of the host, by the same formulas.
TEST(BenchOnGpu, ThePlainProductIsRight) {
  WW_NEEDS_HOPPER();
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Buffers buffers(c.problem);
    const GemmOperands& there = buffers.sets.all().front();
    GemmOperands here = there;
    std::vector<std::vector<std::byte>> copies;
    for (MatrixView* v :
         {&here.a, &here.b, &here.c, &here.scale_a, &here.scale_b, &here.scale_d, &here.bias}) {
      if (v->data == nullptr) continue;
      copies.push_back(fetch_bytes(*v));
      v->data = copies.back().data();
    }
    const std::int64_t m = here.a.rows;
    const std::int64_t n = here.b.rows;
    require(cudaDeviceSynchronize(), "multiplying");
    const std::vector<float> product =
        fetch(matrix(buffers.product, DType::f32, here.d.batch * m, n));
    const reference::Product want(here);
    // Some elements of every row and column.
    for (std::int64_t at = 0; at < here.d.batch * m * n; at += 131) {
      const std::int64_t batch = at / n / m;
      const reference::Sum sum = want.before(batch, batch, at / n % m, at % n);
      ASSERT_NEAR(product[static_cast<std::size_t>(at)], sum.value,
                  0x1p-22 * static_cast<double>(here.a.columns) * (sum.size + 1))
          << batch << "," << at / n % m << "," << at % n;
    }
  }
}

TEST(BenchOnGpu, CublasLtMeansTheSameProduct) {
  WW_NEEDS_HOPPER();
  if (cublaslt_version().empty()) GTEST_SKIP() << "did not run: cuBLASLt is not here";
  std::cout << "cuBLASLt " << cublaslt_version() << ", seed " << kSeed << "\n";
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Buffers buffers(c.problem);
    const auto library = CublasLt::make(buffers.sets.all(), 16);
    if (!library) {
      std::cout << c.name << ": " << library.reason() << "\n";
      EXPECT_FALSE(c.library) << library.reason();
      continue;
    }
    EXPECT_TRUE(c.library);
    for (const GemmOperands& set : {buffers.sets.all().front(), buffers.sets.all().back()}) {
      poison(set.d.data, span_bytes(set.d));
      require((*library)->launch(0, set, buffers.stream.get()));
      const reference::Comparison found = require(reference::compare_on_cuda(
          set, set.d, buffers.product, loose(set), buffers.stream.get()));
      EXPECT_EQ(found.wrong, 0) << found.row << "," << found.column << ": " << found.ours << " and "
                                << found.theirs;
      EXPECT_LT(found.relative, numeric::bits(c.problem.d.dtype) == 8 ? 0.07 : 0.012);
      std::cout << c.name << ": " << (*library)->algorithms() << " offers, relative error "
                << found.relative << "\n";
    }
  }
}

TEST(BenchOnGpu, AWrongElementIsSeen) {
  WW_NEEDS_HOPPER();
  const GemmProblem problem = wide();
  const Buffers buffers(problem);
  const GemmOperands& first = buffers.sets.all().front();
  const GemmOperands& last = buffers.sets.all().back();
  const auto library = CublasLt::make(buffers.sets.all(), 1);
  if (!library) GTEST_SKIP() << "did not run: " << library.reason();
  for (const GemmOperands* set : {&first, &last}) {
    require((*library)->launch(0, *set, buffers.stream.get()));
  }
  const auto same = require(
      reference::compare_on_cuda(first, last.d, nullptr, loose(first), buffers.stream.get()));
  EXPECT_EQ(same.wrong, 0);
  EXPECT_EQ(same.relative, 0);
  // One element poisoned: NaN against a number.
  auto* d = static_cast<std::byte*>(first.d.data);
  poison(d + (5 * problem.n() + 7) * 2, 2);
  for (const float* product :
       {static_cast<const float*>(nullptr), static_cast<const float*>(buffers.product)}) {
    const auto found = require(
        reference::compare_on_cuda(first, last.d, product, loose(first), buffers.stream.get()));
    EXPECT_EQ(found.wrong, 1);
    EXPECT_EQ(found.row, 5);
    EXPECT_EQ(found.column, 7);
    EXPECT_FALSE(found.relative <= 1);  // NaN or large
  }
}

TEST(BenchOnGpu, AWrongScaleIsSeen) {
  WW_NEEDS_HOPPER();
  const GemmProblem problem = narrow(Scaling::blockwise, Accumulation::promoted);
  const Buffers buffers(problem);
  const auto library = CublasLt::make(buffers.sets.all(), 1);
  if (!library) GTEST_SKIP() << "did not run: " << library.reason();
  const GemmOperands& set = buffers.sets.all().front();
  require((*library)->launch(0, set, buffers.stream.get()));
  require(cudaStreamSynchronize(buffers.stream.get()), "multiplying");
  // The reference with one other scale of A: row 9, second block of K, is 8 times as large.
  const float large = 16;
  auto* scales = static_cast<float*>(set.scale_a.data);
  require(cudaMemcpy(scales + 9 * set.scale_a.row_stride + 1, &large, 4, cudaMemcpyHostToDevice),
          "changing a scale");
  require(cudaDeviceSynchronize(), "changing a scale");
  require(reference::multiply_on_cuda(set, buffers.product, buffers.stream.get()));
  const auto found = require(
      reference::compare_on_cuda(set, set.d, buffers.product, loose(set), buffers.stream.get()));
  EXPECT_GT(found.wrong, problem.n() / 2);
  EXPECT_EQ(found.row, 9);
}

// Where cuBLASLt's result is the wrong one, the sentence says so.
TEST(BenchOnGpu, TheJudgeSaysWhoIsRight) {
  WW_NEEDS_HOPPER();
  const GemmProblem problem = wide();
  const Buffers buffers(problem);
  const std::vector<GemmOperands>& sets = buffers.sets.all();
  std::vector<Parts> parts;
  for (const GemmOperands& set : sets) parts.push_back(parts_of(set, {}));
  const auto library = CublasLt::make(sets, 1);
  if (!library) GTEST_SKIP() << "did not run: " << library.reason();
  const Launch right = [&](std::size_t set, void* stream) {
    return (*library)->launch(0, sets[set], stream);
  };
  // Its first row is not what it was made.
  const Launch wrong = [&](std::size_t set, void* stream) {
    auto refusal = right(set, stream);
    require(cudaMemsetAsync(sets[set].d.data, 0, 64, static_cast<cudaStream_t>(stream)), "zeroing");
    return refusal;
  };
  const auto said = [&](const Launch& theirs, const Launch& ours) -> std::string {
    const Judge judge(sets, parts, theirs, buffers.stream.get());
    try {
      judge.check(ours, "ours");
    } catch (const Failure& failure) {
      return failure.sentence;
    }
    return "";
  };
  EXPECT_EQ(said(right, right), "");
  EXPECT_NE(said(wrong, right).find("ours is right and cuBLASLt's is not"), std::string::npos);
  EXPECT_NE(said(right, wrong).find("cuBLASLt's is right and ours is not"), std::string::npos);
  EXPECT_EQ(said({}, right), "");
  EXPECT_NE(said({}, wrong).find("by a plain product in float64"), std::string::npos);
}

// The whole way, with a short run.
TEST(BenchOnGpu, TimesAProduct) {
  WW_NEEDS_HOPPER();
  const std::vector<DeviceFacts> devices = device::cuda_devices();
  ASSERT_FALSE(device::use_cuda_device(0));
  const auto plans =
      must(candidates(packed_problem(512, 512, 512, DType::bf16, DType::bf16), devices.front()));
  TimeOptions options;
  options.rounds = 3;
  options.round_seconds = 1e-3;
  int last = 0;
  options.progress = [&last](int done, int all) {
    EXPECT_LE(done, all);
    last = done;
  };
  const auto times = must(time_gemm(*plans, nullptr, options));
  EXPECT_GT(last, 0);
  EXPECT_GT(times->ours.median, 0.5);
  EXPECT_LT(times->ours.median, 1000);
  EXPECT_LE(times->config_time.median, times->ours.median);
  EXPECT_TRUE(times->cold);
  EXPECT_LT(times->relative_error, 0.01);
  if (times->first) {
    EXPECT_LE(times->best->median, times->first->median);
  }
  const auto ranked = must(rank_plans(*plans, options));
  EXPECT_EQ(ranked->size(), plans->size());
  std::cout << line(*times) << "\n";
  // No profiler watches, and nothing minds.
  must_do(profile_gemm(plans->front(), 1, options));
}

}  // namespace
}  // namespace warpwright::bench
