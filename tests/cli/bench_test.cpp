// What is measured by `bench`: shapes, kinds of products, plans, and their roofs. What it says of
// it is in transcripts/reports.txt.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands/measure/bench_command.h"
#include "cli/commands/measure/recording.h"
#include "cli/commands/predict/configurations.h"
#include "cli/files/tensor_file.h"
#include "cli/reports/bench_report.h"
#include "tests/cli/tensor_folder.h"
#include "tests/must.h"
#include "warpwright/plan/product/known_devices.h"

namespace warpwright::cli {
namespace {

std::vector<Shape> parse(const std::string& text) {
  std::istringstream in(text);
  return parse_shapes(in, "shapes.txt");
}

TEST(Shapes, AreReadInBothSpellings) {
  EXPECT_EQ(parse("4096 7168 2048\n\n# a comment\n64x4096x7168  # decode\r\n\t1\t2\t3\n"),
            (std::vector<Shape>{{4096, 7168, 2048}, {64, 4096, 7168}, {1, 2, 3}}));
  EXPECT_EQ(parse("8X16X24"), (std::vector<Shape>{{8, 16, 24}}));
}

TEST(Shapes, TheFourteenAreThere) {
  ASSERT_EQ(dense_shapes().size(), 14U);
  EXPECT_EQ(shape_name(dense_shapes()[5]), "4096x2112x7168");
  EXPECT_EQ(std::count(dense_shapes().begin(), dense_shapes().end(), Shape{16, 24576, 1536}), 1);
}

TEST(Shapes, SamplesStayInBoundsAndSpread) {
  constexpr std::uint64_t seed = 20261121;
  std::cout << "seed " << seed << "\n";
  for (const int step : {8, 16}) {
    const std::vector<Shape> shapes = sample_shapes(2000, seed, step);
    ASSERT_EQ(shapes.size(), 2000U);
    int few_rows = 0;
    int small_n = 0;
    for (const Shape& s : shapes) {
      ASSERT_GE(s.m, 1);
      ASSERT_LE(s.m, 16384);
      for (const std::int64_t extent : {s.n, s.k}) {
        ASSERT_GE(extent, 64);
        ASSERT_LE(extent, 16384);
        ASSERT_EQ(extent % step, 0);
      }
      few_rows += s.m <= 128 ? 1 : 0;
      small_n += s.n <= 1024 ? 1 : 0;
    }
    // Half of M's and half of N's logarithmic range; evenly drawn numbers would give 16 and 117.
    EXPECT_NEAR(few_rows, 1000, 100);
    EXPECT_NEAR(small_n, 1000, 100);
    EXPECT_EQ(sample_shapes(2000, seed, step), shapes);
    EXPECT_NE(sample_shapes(2000, seed + 1, step), shapes);
  }
}

TEST(ProductTypes, Defaults) {
  EXPECT_EQ(types_name(parse_types({})), "bf16 to bf16");
  EXPECT_EQ(types_name(parse_types({"fp16", "", "", "fast"})), "fp16 to fp16");
  EXPECT_EQ(types_name(parse_types({"e4m3", "", "", "fast"})),
            "e4m3 to bf16, tensor scales, fast accumulation");
  const ProductTypes block = parse_types({"e4m3", "f32", "blockwise", "fast"});
  EXPECT_EQ(types_name(block), "e4m3 to f32, blockwise scales, promoted");
  EXPECT_EQ(block.step(), 16);
  EXPECT_EQ(parse_types({}).step(), 8);
  const GemmProblem p = problem_of(block, {3, 5, 7});
  EXPECT_EQ(p.m(), 3);
  EXPECT_EQ(p.n(), 5);
  EXPECT_EQ(p.k(), 7);
  EXPECT_EQ(p.a.dtype, DType::e4m3);
  EXPECT_EQ(p.d.dtype, DType::f32);
  EXPECT_EQ(p.scaling, Scaling::blockwise);
}

TEST(BenchReport, Roofs) {
  const DeviceFacts h200 = *known_facts("h200");
  GemmProblem p = packed_problem(8192, 8192, 8192, DType::bf16, DType::bf16);
  const bench::Roof wide = bench::roof(p, h200);
  EXPECT_EQ(wide.bound(), Bound::tensor_cores);
  EXPECT_NEAR(wide.us(), 2 * std::pow(8192.0, 3) / 989e6, 1e-3);
  p.a.dtype = p.b.dtype = DType::e4m3;
  EXPECT_NEAR(bench::roof(p, h200).us(), wide.us() / 2, 1e-3);
  const GemmProblem narrow = packed_problem(64, 4096, 7168, DType::bf16, DType::bf16);
  const bench::Roof few = bench::roof(narrow, h200);
  EXPECT_EQ(few.bound(), Bound::memory);
  EXPECT_NEAR(few.us(), 13.7, 0.05);  // the floor that the baselines name
  EXPECT_EQ(bench::roof(narrow, model_facts()).us(), 0);
}

// The plan keeps the contract; the configuration beside it need not, and splits K.
TEST(BenchCommand, BatchInvariantPlansBesideAnyConfiguration) {
  const auto facts = must(known_facts("h200"));
  const GemmProblem problem = problem_of(ProductTypes{}, {1, 1024, 16384}, {});
  const auto plans = must(bench_plans(problem, *facts, {.batch_invariant = true}, 1));
  ASSERT_EQ(plans->size(), 2U);
  expect_contains((*plans)[0].reason, "batch_invariant");
  EXPECT_EQ((*plans)[0].cluster_k, 1);
  EXPECT_EQ((*plans)[0].workspace_bytes, 0);
  EXPECT_EQ((*plans)[1].reason.find("batch_invariant"), std::string::npos) << (*plans)[1].reason;
  EXPECT_TRUE((*plans)[1].cluster_k > 1 || (*plans)[1].workspace_bytes > 0) << (*plans)[1].kernel;
}

// Clusters of more than two CTAs are tried when asked for.
TEST(BenchCommand, LargeClusters) {
  const auto facts = must(known_facts("h200"));
  const GemmProblem problem = problem_of(ProductTypes{}, {2048, 2048, 2048}, {});
  for (const int most : {1, 2, 4, 16}) {
    MeasureOptions o;
    o.clusters = most;
    const auto plans = must(bench_plans(problem, *facts, measured_choices(o), {}));
    int largest = 0;
    for (const Plan& one : *plans) largest = std::max(largest, atom::cluster_size(one.cluster));
    EXPECT_EQ(largest, most);
  }
}

// What a GPU would have measured of a product: a time for each of its configurations.
bench::GemmTimes tried_times(const GemmProblem& problem) {
  bench::GemmTimes times;
  times.problem = problem;
  for (const Plan& plan : *candidates(problem, *known_facts("h200"))) {
    const auto count = static_cast<double>(times.tried.size());
    times.tried.push_back({plan.name(), configuration_text(plan), 20 + count});
  }
  return times;
}

using Recordings = TensorFolder;

TEST_F(Recordings, KeepEveryConfigurationOfAProductOnce) {
  BenchOptions options;
  options.record = path("times.tsv");
  options.configs = "all";
  const GemmProblem few = problem_of(ProductTypes{}, {64, 4096, 7168});
  const bench::GemmTimes times = tried_times(few);
  TimesFile early(options, "c0ffee");
  TimesFile late(options, "c0ffee");
  EXPECT_FALSE(early.has("NVIDIA H200", few, "-"));
  early.add(times, "NVIDIA H200", "-");
  EXPECT_TRUE(early.has("NVIDIA H200", few, "-"));
  EXPECT_FALSE(early.has("NVIDIA H100", few, "-"));
  EXPECT_FALSE(early.has("NVIDIA H200", few, "16"));
  EXPECT_FALSE(TimesFile(options, "another").has("NVIDIA H200", few, "-"));
  // Nobody's rows are lost, and those beside are kept too.
  bench::GemmTimes other = tried_times(problem_of(ProductTypes{}, {128, 7168, 4096}));
  other.beside.push_back(
      tried_times(problem_of(parse_types({"e4m3", "", "", "fast"}), {128, 7168, 4096})));
  late.add(other, "NVIDIA H200", "-");
  late.add(other, "NVIDIA H200", "-");
  std::ostringstream text;
  text << std::ifstream(options.record).rdbuf();
  const auto rows = must(parse_times(text.str()));
  EXPECT_EQ(rows->size(),
            times.tried.size() + other.tried.size() + other.beside.front().tried.size());
  EXPECT_EQ(std::count_if(rows->begin(), rows->end(), [](const auto& t) { return t.chosen; }), 3);
  EXPECT_TRUE(rows->front().chosen);
  EXPECT_EQ(rows->at(1).microseconds, 21);
}

TEST_F(Recordings, NeedACommit) {
  BenchOptions options;
  options.record = path("times.tsv");
  EXPECT_THROW(TimesFile(options, "unknown"), InputError);
  options.record.clear();
  EXPECT_FALSE(TimesFile(options, "unknown").given());
}

TEST_F(Recordings, AreOfWhatPlansChooseByThemselves) {
  BenchOptions options;
  options.record = path("times.tsv");
  options.correction = path("mine.txt");
  expect_refusal([&] { TimesFile(options, "abc"); }, {"--record and --correction do not go"});
}

TEST(TimesFile, NamesTheLengthsThatWereDrawn) {
  EXPECT_EQ(recorded_lengths({64, 4096, 7168}), "-");
  EXPECT_EQ(recorded_lengths({0, 8, 8, 4, "16,0,3,1"}), "16,0,3,1");
  EXPECT_EQ(recorded_lengths({0, 8, 8, 4, "routed:64,2", 7}), "routed:64,2,seed:7");
  EXPECT_EQ(recorded_lengths({0, 8, 8, 4, "routed:64,2,seed:3", 7}), "routed:64,2,seed:3");
}

// --- groups

std::vector<Shape> shapes_in(const std::string& text) {
  std::istringstream in(text);
  return parse_shapes(in, "shapes.txt", BenchKind::grouped);
}

TEST(GroupedShapes, AreReadWithComments) {
  EXPECT_EQ(shapes_in("8 16 4096 4096\n\n# none\n3 1,0,2 64 128  # a list\r\n\t4 skew:7\t8 16\n"),
            (std::vector<Shape>{
                {0, 4096, 4096, 8, "16"}, {0, 64, 128, 3, "1,0,2"}, {0, 8, 16, 4, "skew:7"}}));
}

TEST(GroupedShapes, AllAreThere) {
  const std::vector<Shape>& all = grouped_shapes();
  EXPECT_EQ(all.size(), 19U + 16U);
  for (const Shape& layer :
       {Shape{0, 1536, 2048, 128, "routed:64,8"}, Shape{0, 2048, 768, 128, "routed:4096,8"},
        Shape{0, 28672, 4096, 8, "routed:8,2"}}) {
    EXPECT_EQ(std::count(all.begin(), all.end(), layer), 1) << shape_name(layer);
  }
  EXPECT_NE(std::find(all.begin(), all.end(), Shape{0, 4096, 4096, 8, "16"}), all.end());
  const Shape skewed{0, 4096, 7168, 32, "skew:1"};
  ASSERT_NE(std::find(all.begin(), all.end(), skewed), all.end());
  const auto lengths = must(lengths_of(skewed));
  EXPECT_EQ(std::accumulate(lengths->begin(), lengths->end(), std::int64_t{0}), 8192);
  EXPECT_EQ(std::count(lengths->begin(), lengths->end(), 0), 4);
}

TEST(GroupedShapes, Names) {
  EXPECT_EQ(shape_name({0, 4096, 2048, 8, "16"}), "8x16 N4096 K2048");
  EXPECT_EQ(shape_name({0, 64, 128, 32, "skew:1"}), "32 skew:1 N64 K128");
  EXPECT_EQ(shape_name({0, 64, 128, 32, "routed:9,2"}), "32 routed:9,2 N64 K128");
}

TEST(GroupedShapes, OfLayersOfExperts) {
  using Shapes = std::vector<Shape>;
  EXPECT_EQ(routed_shapes({"128,32,8", "", {}, {}}),
            (Shapes{{0, 1536, 2048, 128, "routed:32,8"}, {0, 2048, 768, 128, "routed:32,8"}}));
  EXPECT_EQ(routed_shapes({"9,5,2,zipf:0.5,seed:7", "mixtral", {}, {}}),
            (Shapes{{0, 28672, 4096, 9, "routed:5,2,zipf:0.5,seed:7"},
                    {0, 4096, 14336, 9, "routed:5,2,zipf:0.5,seed:7"}}));
  EXPECT_EQ(routed_shapes({"9,5,2", "", 64, 96}), (Shapes{{0, 64, 96, 9, "routed:5,2"}}));
  const Shapes deepseek = routed_shapes({"", "deepseek-v3", {}, {}});
  ASSERT_EQ(deepseek.size(), 8U);
  EXPECT_EQ(deepseek.back(), (Shape{0, 7168, 2048, 256, "routed:4096,8,zipf:1"}));
  // Every model's products have plans, those of block scales too.
  for (const ExpertModel& model : expert_models()) {
    if (model.top_k == 0) {
      EXPECT_THROW(routed_shapes({"", model.name, {}, {}}), InputError);
      continue;
    }
    for (const Shape& shape : model_shapes(model)) {
      for (const auto& [word, types] : parse_kinds("all")) {
        const auto made = plan(problem_of(types, shape, *lengths_of(shape)), *known_facts("h200"));
        EXPECT_TRUE(made) << word << " " << shape_name(shape) << ": " << made.reason();
      }
    }
  }
}

// --seed draws other lengths, but where the words have a seed of their own.
TEST(GroupedShapes, DrawnBySeed) {
  Shape shape{0, 64, 64, 16, "routed:20,2"};
  const auto first = *lengths_of(shape);
  shape.seed = 2;
  EXPECT_EQ(shape.drawn_by(), 2U);
  EXPECT_NE(*lengths_of(shape), first);
  shape.tokens += ",seed:1";
  EXPECT_EQ(shape.drawn_by(), 1U);
  EXPECT_EQ(*lengths_of(shape), first);
  EXPECT_EQ((Shape{0, 64, 64, 16, "skew:3"}).drawn_by(), std::nullopt);
}

TEST(GroupedKinds, WordsAndPlans) {
  ASSERT_EQ(parse_kinds("all").size(), 3U);
  EXPECT_EQ(parse_kinds("all").back().first, "bf16");
  EXPECT_EQ(parse_kinds("bf16,e4m3-row-column").at(1).second.scaling, Scaling::row_column);
  for (const char* bad : {"", "fp4", "e4m3,", "e4m3 bf16"}) {
    EXPECT_THROW(parse_kinds(bad), InputError) << bad;
  }
  // There is a plan for all of them, built-in shapes included.
  const DeviceFacts h200 = *known_facts("h200");
  for (const auto& [word, types] : parse_kinds(kind_words(","))) {
    for (const Shape& shape : grouped_shapes()) {
      const auto plans = candidates(problem_of(types, shape, *lengths_of(shape)), h200);
      EXPECT_TRUE(plans) << word << " " << shape_name(shape) << ": " << plans.reason();
    }
  }
}

// The floor of the reference for 8 x 16 tokens, N = K = 4096: 30.9 us at 4.4 TB/s.
TEST(GroupedRoof, CountsWhatMustBeMoved) {
  const GemmProblem p = packed_grouped_problem(128, 4096, 4096, 8, DType::e4m3, DType::bf16);
  const DeviceFacts h200 = *known_facts("h200");
  const std::vector<std::int64_t> lengths(8, 16);
  const bench::Roof roof = bench::roof(p, h200, lengths);
  EXPECT_EQ(bench::busy_groups(lengths), 8);
  EXPECT_EQ(roof.operations, 2.0 * 128 * 4096 * 4096);
  EXPECT_EQ(roof.bytes, 8.0 * 4096 * 4096 + 128 * 4096 + 2 * 128 * 4096);
  EXPECT_NEAR(roof.memory_us, 30.9, 0.05);
  EXPECT_NEAR(roof.compute_us, roof.operations / 1978e6, 1e-6);
  // The matrices of B of empty groups stay where they are.
  const bench::Roof one = bench::roof(p, h200, {128, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(roof.bytes - one.bytes, 7.0 * 4096 * 4096);
  // The model has no rates.
  EXPECT_EQ(bench::roof(p, {}, lengths).us(), 0);
}

// --- int4 weights

TEST(W4a8Shapes, OfGroupsOrNot) {
  std::istringstream in("8 16 4096 4096\n64x128 256  # dense\n2 3,0 64 128\n");
  EXPECT_EQ(parse_shapes(in, "shapes.txt", BenchKind::w4a8),
            (std::vector<Shape>{{0, 4096, 4096, 8, "16"}, {64, 128, 256}, {0, 64, 128, 2, "3,0"}}));
  std::istringstream bad("8 16\n");
  EXPECT_THROW(parse_shapes(bad, "shapes.txt", BenchKind::w4a8), InputError);
}

// All rows of the table are measured: each built-in shape has plans with exact sums and FP8 ones.
TEST(W4a8Shapes, HavePlans) {
  const std::vector<Shape>& all = w4a8_shapes();
  EXPECT_EQ(all.size(), 22U);
  for (const Shape& wanted : {Shape{0, 4096, 4096, 8, "16"}, Shape{0, 4096, 7168, 32, "128"},
                              Shape{0, 4096, 4096, 8, "4096"}, Shape{512, 4096, 4096}}) {
    EXPECT_NE(std::find(all.begin(), all.end(), wanted), all.end()) << shape_name(wanted);
  }
  const DeviceFacts h200 = *known_facts("h200");
  const std::vector<ProductKind> kinds = packed_kinds("int4");
  for (const Shape& shape : all) {
    for (const ProductKind& kind : {kinds.front(), kinds.back()}) {
      const auto plans = candidates(problem_of(kind.second, shape, *lengths_of(shape)), h200);
      EXPECT_TRUE(plans) << kind.first << " " << shape_name(shape) << ": " << plans.reason();
    }
  }
  EXPECT_THROW(packed_kinds("int4", 48), InputError);
}

// What is measured beside exact sums; words of tokens say their types.
TEST(PackedKinds, SumsAndTokens) {
  const auto words = [](const char* weights) {
    std::string text;
    for (const auto& [word, types] : packed_kinds(weights)) text += word + " ";
    return text;
  };
  EXPECT_EQ(words("int4"), "exact chained folded table e4m3-block ");
  EXPECT_EQ(words("int4-bf16"), "exact folded e4m3-block ");
  EXPECT_EQ(words("int4-fp16"), "exact e4m3-block ");
  EXPECT_EQ(words("mxf4"), "exact folded e4m3-block ");
  EXPECT_EQ(words("nvf4"), "exact e4m3-block ");
  EXPECT_EQ(packed_kinds("nvf4").front().second.operand, DType::bf16);
  const ProductTypes half = packed_kinds("mxf4-fp16").front().second;
  EXPECT_EQ(half.operand, DType::f16);
  EXPECT_EQ(half.result, DType::f16);
  EXPECT_EQ(half.scaling, Scaling::none);
}

// 69.2 MB of weights with their scales, 0.5 MB of tokens and 1 MB of D at 4.4 TB/s.
TEST(W4a8Roof, CountsPackedBytes) {
  const ProductTypes types = packed_kinds("int4").front().second;
  const Shape shape{0, 4096, 4096, 8, "16"};
  const GemmProblem p = problem_of(types, shape, *lengths_of(shape));
  const bench::Roof roof = bench::roof(p, *known_facts("h200"), *lengths_of(shape));
  EXPECT_EQ(roof.bytes, 8.0 * (4096 / 64) * (4096 / 128) * 4224 + 3 * 128 * 4096);
  EXPECT_NEAR(roof.memory_us, 16.1, 0.05);
}

}  // namespace
}  // namespace warpwright::cli
