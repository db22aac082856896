// Refusals as a whole: whatever is asked, the sentence is one, its code is the right one, and who
// takes the nearest legal value gets further, in the end to a plan.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/draws.h"
#include "tests/must.h"
#include "tests/problem_changes.h"
#include "warpwright/plan/product/plan.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using tests::Draws;

// What is wrong with the words, whatever they say; empty when nothing is.
std::string flaw(const std::string& sentence) {
  if (sentence.empty()) return "is empty";
  for (const char* wrong :
       {"  ", " ,", ",,", " ;", "; ;", " :", "has for", "are and", "are ,", "has ;", "(unknown)"}) {
    if (sentence.find(wrong) != std::string::npos) return std::string("has \"") + wrong + "\"";
  }
  if (std::string(" .,;:").find(sentence.back()) != std::string::npos) return "ends wrong";
  if (sentence.front() == ' ') return "begins with a blank";
  static const std::regex option("--[a-z]|-D[A-Z]");
  if (std::regex_search(sentence, option)) return "advises on a command line";
  return {};
}

// Wrong words, or fields that the sentence does not say, or one that it says and they do not.
std::string flaw(const Refusal& refusal) {
  const std::string& said = refusal.reason;
  for (const std::string* field : {&refusal.tensor, &refusal.rule, &refusal.nearest}) {
    if (said.find(*field) == std::string::npos) return "a field is " + *field;
  }
  if (refusal.nearest.empty() && said.find("the nearest") != std::string::npos) return "no nearest";
  return flaw(said);
}

// Compiling an expression takes far longer than a search by it.
const std::regex& compiled(const char* pattern) {
  static std::map<std::string, std::regex> all;
  return all.try_emplace(pattern, pattern).first->second;
}

std::int64_t value_of(const std::string& text) {
  return std::stoll(text);
}

std::optional<DType> type_of(const std::string& word) {
  for (const DType t : {DType::bf16, DType::f16, DType::f32, DType::e4m3, DType::e5m2}) {
    if (word == numeric::word(t)) return t;
  }
  return std::nullopt;
}

// Sets what the sentence names to the nearest legal value it names. False where it names none.
bool follow(const std::string& said, GemmProblem& p) {
  std::smatch m;
  const auto is = [&](const char* pattern) {
    return std::regex_search(said, m, compiled(pattern));
  };
  const auto stride = [&](const std::string& tensor, const std::string& line) -> std::int64_t& {
    const bool row = line == "row";
    if (tensor == "A") return row ? p.a.row_stride : p.a.column_stride;
    if (tensor == "B") return row ? p.b.row_stride : p.b.column_stride;
    if (tensor == "C") return row ? p.c.row_stride : p.c.column_stride;
    return row ? p.d.row_stride : p.d.column_stride;
  };
  const auto set_extent = [&](const std::string& name, std::int64_t to) {
    const GemmProblem before = p;
    if (name == "M") set_m(p, to);
    if (name == "N") set_n(p, to);
    if (name == "K") set_k(p, to);
    if (name == "batch") set_batch(p, to);
    if (name.ends_with("groups")) set_groups(p, to);
    return p != before;
  };
  if (is("^([MNK]|the number of groups) is .* the nearest legal (?:value|N) is (-?\\d+)$") ||
      is("^D of .* the nearest legal (M|N|batch|number of groups) is (-?\\d+)$")) {
    return set_extent(m[1], value_of(m[2]));
  }
  if (is("^B is a batch of .* the nearest legal number of groups is (-?\\d+)$")) {
    return set_extent("groups", value_of(m[1]));
  }
  if (is("^the batch .* the nearest legal length is (-?\\d+)$")) {
    return set_extent("batch", value_of(m[1]));
  }
  if (is("^([ABCD]) has a (row|column|batch) stride of .* the nearest legal is (-?\\d+)$") ||
      is("^the matrices of ([ABC]) (have|are) .* is (-?\\d+)$") ||
      is("^the (?:row|column)s of ([AB]) .* nearest legal (row|column) stride is (-?\\d+) ")) {
    std::int64_t& to = m[2] == "row" || m[2] == "column" ? stride(m[1], m[2])
                       : m[1] == "A"                     ? p.a.batch_stride
                       : m[1] == "B"                     ? p.b.batch_stride
                       : m[1] == "D"                     ? p.d.batch_stride
                                                         : p.c.batch_stride;
    return std::exchange(to, value_of(m[3])) != value_of(m[3]);
  }
  if (is("^the matrices of D overlap.* is (-?\\d+)$")) {
    return std::exchange(p.d.batch_stride, value_of(m[1])) != value_of(m[1]);
  }
  if (is("^([AB]) .*column stride 1$")) {
    return std::exchange(stride(m[1], "column"), 1) != 1;
  }
  if (is("0 leaves them open$")) return std::exchange(p.groups->expected_tokens, 0) != 0;
  if (is("^expected_lengths is .* the nearest legal is equal$")) {
    return std::exchange(p.groups->expected_lengths, LengthSpread::equal) != LengthSpread::equal;
  }
  if (is("^expected_zipf is .* the nearest legal is (\\d+)$")) {
    const auto to = static_cast<float>(value_of(m[1]));
    return !(std::exchange(p.groups->expected_zipf, to) == to);
  }
  if (is("nearest scaling is (none|tensor|row-column)$")) {
    const Scaling to = m[1] == "none"     ? Scaling::none
                       : m[1] == "tensor" ? Scaling::tensor
                                          : Scaling::row_column;
    return std::exchange(p.scaling, to) != to;
  }
  if (is("nearest accumulation is fast$")) {
    return std::exchange(p.accumulation, Accumulation::fast) != Accumulation::fast;
  }
  if (is("leave scale_d out$")) {
    scale_d(p, false);
    return true;
  }
  if (is("nearest activation is silu$")) {
    return std::exchange(p.epilogue.activation, Activation::silu) != Activation::silu;
  }
  if (is("nearest legal beta is 0$")) {
    read_c(p, false);
    return true;
  }
  if (is("the epilogue is gated; .* leave it out$")) {
    gate(p, false);
    return true;
  }
  if (is("^(A|B|D|the bias) .* the nearest (?:B )?is (\\w+)$") ||
      is("^(C) .* must have D's type, (\\w+)$")) {
    const std::optional<DType> type = type_of(m[2]);
    if (!type) return false;
    DType* to = m[1] == "A"   ? &p.a.dtype
                : m[1] == "B" ? &p.b.dtype
                : m[1] == "C" ? &p.c.dtype
                              : &p.d.dtype;
    if (m[1] == "the bias") to = &p.bias.dtype;
    if (said.find("the nearest B is") != std::string::npos) to = &p.b.dtype;
    return std::exchange(*to, *type) != *type;
  }
  return false;
}

// Sometimes in groups.
GemmProblem random_problem(Draws& draw) {
  constexpr std::int64_t most = max_extent;
  const std::vector<std::int64_t> usual = {1, 8, 77, 128, 256, 1000, 1024, 4096};
  const std::vector<std::int64_t> odd = {-1,       0,        15,           most - 1,
                                         most,     most + 1, 1 << 28,      std::int64_t{1} << 40,
                                         most - 7, 4095,     INT64_MAX / 2};
  const auto extent = [&] { return draw.rarely(5) ? draw.of(odd) : draw.of(usual); };
  const std::vector<DType> types = {DType::bf16, DType::f16, DType::f32, DType::e4m3, DType::e5m2};
  const DType operand = draw.rarely(3) ? draw.of(types) : DType::bf16;
  GemmProblem p =
      packed_problem(extent(), extent(), extent(), operand, DType::bf16, draw.rarely(4));
  if (draw.rarely(4)) p.b.dtype = draw.of(types);
  if (draw.rarely(3)) p.c.dtype = p.d.dtype = draw.of(types);
  if (draw.rarely(6)) p.c.dtype = draw.of(types);
  if (draw.rarely(3)) set_batch(p, draw.of<std::int64_t>({2, 3, 0, -4, most, most + 1, 70000}));
  const auto stride = [&](std::int64_t packed) {
    return draw.of<std::int64_t>({packed, packed + 3, packed + 8, packed - 1, 0, 1, -8,
                                  (std::int64_t{1} << 40) - 1, (std::int64_t{1} << 39) - 1,
                                  std::int64_t{1} << 41, packed / 2});
  };
  for (PlannedMatrix* v : {&p.a, &p.b, &p.c, &p.d}) {
    std::int64_t& row = v->row_stride;
    if (draw.rarely(3)) row = stride(row > 0 && row < most ? row : 64);
    if (draw.rarely(6)) v->column_stride = stride(64);
    if (p.batch() != 1) v->batch_stride = stride(1 << 20);
  }
  if (draw.rarely(3)) {
    set_groups(p, extent());
    p.b.batch_stride = draw.rarely(3) ? stride(1 << 20) : 1 << 20;
    if (draw.rarely(6)) p.groups->expected_tokens = draw(-1, 100);
    if (draw.rarely(6)) p.groups->expected_lengths = static_cast<LengthSpread>(draw(0, 3));
    if (draw.rarely(6)) p.groups->expected_zipf = draw.of({-1.0F, 0.5F, 9.0F, std::nanf("")});
  }
  if (draw.rarely(4)) p.scaling = static_cast<Scaling>(draw(0, 4));
  if (draw.rarely(5)) p.accumulation = Accumulation::promoted;
  if (draw.rarely(5)) gate(p);
  if (draw.rarely(3)) p.epilogue.activation = static_cast<Activation>(draw(0, 3));
  if (draw.rarely(4)) {
    p.epilogue.bias = static_cast<Bias>(draw(0, 2));
    p.bias.dtype = draw.of(types);
  }
  if (draw.rarely(8)) scale_d(p);
  if (draw.rarely(8)) p.epilogue.quantise = QuantiseD::block_1x128;
  return p;
}

// Refusals that have no nearest value: what there is and is not in a build.
bool has_no_nearest(RefusalCode code) {
  return code == RefusalCode::no_kernel || code == RefusalCode::no_device;
}

TEST(Refusals, FollowingTheAdviceEndsInAPlan) {
  constexpr unsigned seed = 20261123;
  std::printf("problems by seed %u\n", seed);
  Draws draw(seed);
  int plans = 0;
  int grouped = 0;  // of those
  int refusals = 0;
  std::set<RefusalCode> codes;
  for (int i = 0; i < 3000; ++i) {
    GemmProblem p = random_problem(draw);
    const DeviceFacts device = draw.rarely(3) ? *known_facts("b200") : *known_facts("h200");
    std::string last;
    for (int step = 0;; ++step) {
      ASSERT_LT(step, 30) << "goes round in circles: " << last;
      const auto made = plan(p, device);
      if (made) {
        ++plans;
        if (p.groups) ++grouped;
        break;
      }
      ++refusals;
      codes.insert(made.code());
      const std::string& said = made.reason();
      ASSERT_EQ(flaw(made.refusal()), "") << said;
      ASSERT_NE(said, last) << "the nearest legal value is refused in the same words";
      if (has_no_nearest(made.code())) break;
      ASSERT_TRUE(follow(said, p)) << "no nearest legal value, or the rejected one: " << said;
      last = said;
    }
  }
  std::printf("%d refusals, %d plans, %d of them in groups\n", refusals, plans, grouped);
  EXPECT_GT(plans, 1500);
  EXPECT_GT(grouped, 300);
  for (const RefusalCode code :
       {RefusalCode::bad_shape, RefusalCode::bad_type, RefusalCode::bad_stride,
        RefusalCode::overlap, RefusalCode::unsupported, RefusalCode::no_kernel}) {
    EXPECT_TRUE(codes.contains(code)) << name(code);
  }
}

TEST(Refusals, OfChoices) {
  constexpr unsigned seed = 20261124;
  std::printf("choices by seed %u\n", seed);
  Draws draw(seed);
  const std::vector<DeviceFacts> devices = {*known_facts("h200"), *known_facts("b200"),
                                            model_facts(8),       model_facts(1),
                                            model_facts(1, 100),  model_facts(0)};
  int followed = 0;
  for (int i = 0; i < 3000; ++i) {
    const DeviceFacts device = draw.of(devices);
    const std::int64_t m = draw.of<std::int64_t>({0, 1, 500, 4096});
    const std::int64_t n = draw.of<std::int64_t>({8, 515, 1000, 8192});
    const DType result = draw.rarely(4) ? DType::f32 : DType::bf16;
    const GemmProblem p = draw.rarely(3)
                              ? packed_grouped_problem(m, n, 512, 8, DType::bf16, DType::bf16)
                              : packed_problem(m, n, 512, DType::bf16, result);
    PlanChoices c;
    const bool of_groups = draw.rarely(p.groups ? 2 : 8);
    if (of_groups && draw.rarely(3)) c.tile_tokens = draw.of<int>({-1, 0, 8, 128, 100});
    if (of_groups && draw.rarely(3)) c.search = static_cast<kernel::Grouping>(draw(0, 3));
    if (draw.rarely(3)) c.cluster = atom::ClusterShape{draw(0, 5), draw(0, 5)};
    if (draw.rarely(6)) c.tile_m = draw.of<int>({-1, 0, 64, 128, 100, 1024});
    if (draw.rarely(6)) c.tile_n = draw.of<int>({-1, 0, 64, 128, 256, 1024});
    if (draw.rarely(6)) c.schedule = static_cast<kernel::Schedule>(draw(0, 2));
    if (draw.rarely(6)) c.swap_ab = draw.rarely(2);
    if (draw.rarely(8)) c.kernel = "nothing";
    if (draw.rarely(4)) c.ctas = draw.of<int>({-3, 0, 1, 7, 100, 132, 264, 100000});
    if (draw.rarely(8)) c.cluster_k = draw.of<int>({0, 1, 2, 7, 16});
    if (draw.rarely(6)) c.pair = draw.rarely(2);
    if (draw.rarely(8)) c.tiles = static_cast<kernel::TileSource>(draw(0, 3));
    if (draw.rarely(6)) c.accumulators = draw.of<int>({-1, 0, 1, 2, 3, 4, 8, 600});
    const auto made = plan(p, device, c);
    if (made) continue;
    const std::string& said = made.reason();
    ASSERT_EQ(flaw(made.refusal()), "") << said;
    const bool of_maps = said.find("the nearest is a kernel with one map") != std::string::npos;
    std::smatch match;
    if (std::regex_search(said, match, compiled("nearest legal grid has (\\d+) CTAs$"))) {
      ASSERT_NE(*c.ctas, value_of(match[1])) << said;
      c.ctas = static_cast<int>(value_of(match[1]));
      const auto again = plan(p, device, c);
      ASSERT_TRUE(again) << said << "; then " << again.reason();
      ++followed;
    } else if (std::regex_search(said, match, compiled("nearest legal number is (\\d+)$"))) {
      ASSERT_NE(*c.accumulators, value_of(match[1])) << said;
      c.accumulators = static_cast<int>(value_of(match[1]));
      const auto again = plan(p, device, c);
      if (!again) {
        ASSERT_EQ(again.reason().find("accumulators of"), std::string::npos) << said;
      }
      ++followed;
    } else if (std::regex_search(said, match, compiled("nearest legal cluster is (\\d),(\\d)$"))) {
      const atom::ClusterShape to{std::stoi(match[1]), std::stoi(match[2])};
      ASSERT_FALSE(to == *c.cluster) << said;
      c.cluster = to;
      const auto again = plan(p, device, c);
      if (!again) {
        ASSERT_NE(again.reason(), said);
      }
      ++followed;
    } else {
      ASSERT_TRUE(has_no_nearest(made.code()) || made.code() == RefusalCode::bad_choice || of_maps)
          << said;
    }
  }
  EXPECT_GT(followed, 100);
}

// Too many tiles, with nothing chosen: once "no kernel has  for this problem".
TEST(Refusals, ManyTiles) {
  GemmProblem p = packed_problem(max_extent, max_extent, 64, DType::bf16, DType::bf16);
  set_batch(p, 7);
  p.a.batch_stride = p.b.batch_stride = 8;
  p.d.batch_stride = reach({{p.m(), p.d.row_stride}, {p.n(), 1}});
  for (const char* device : {"h200", "b200"}) {
    const auto made = plan(p, *known_facts(device));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.code(), RefusalCode::bad_shape);
    expect_contains(made.reason(), "a batch of 7, has more tiles");
  }
}

MatrixView view(std::uintptr_t address, DType type, std::int64_t rows, std::int64_t columns) {
  return matrix(reinterpret_cast<void*>(address), type, rows, columns);  // NOLINT: not read
}

GemmOperands legal_operands() {
  GemmOperands o;
  o.a = view(0x10000000, DType::bf16, 64, 128);
  o.b = view(0x20000000, DType::bf16, 96, 128);
  o.c = view(0x30000000, DType::bf16, 64, 96);
  o.d = view(0x40000000, DType::bf16, 64, 96);
  o.beta = 0;
  return o;
}

// Codes of operands: the rows of rules_test.cpp.
TEST(Refusals, CodesOfPlansAndLaunches) {
  DeviceFacts other = model_facts();
  other.architecture = 110;
  EXPECT_EQ(plan(legal_operands(), other).code(), RefusalCode::no_device);
  EXPECT_EQ(plan(legal_operands(), model_facts(0)).code(), RefusalCode::no_device);
  EXPECT_EQ(plan(legal_operands(), model_facts(), {.kernel = "nothing"}).code(),
            RefusalCode::no_kernel);
  EXPECT_EQ(plan(legal_operands(), model_facts(), {.pair = true}).code(), RefusalCode::bad_choice);
}

// Operands spoilt by chance: every sentence is one.
TEST(Refusals, OfOperandsBySpoiltFields) {
  constexpr unsigned seed = 20261126;
  std::printf("operands by seed %u\n", seed);
  Draws draw(seed);
  int refusals = 0;
  for (int i = 0; i < 5000; ++i) {
    GemmOperands o = legal_operands();
    if (draw.rarely(2)) o.beta = 1;
    if (draw.rarely(4)) {
      o.scaling = static_cast<Scaling>(draw(0, 3));
      o.a.dtype = o.b.dtype = DType::e4m3;
      o.scale_a = view(0x50000000, DType::f32, draw.rarely(2) ? 64 : 1, 1);
      o.scale_b = view(0x60000000, DType::f32, draw.rarely(2) ? 96 : 1, 1);
    }
    if (draw.rarely(4)) o.scale_d = view(0x70000000, DType::f32, draw(0, 2), 1);
    if (draw.rarely(4)) {
      o.epilogue.bias = static_cast<Bias>(draw(0, 2));
      o.bias = view(0x80000000, DType::f32, draw.rarely(2) ? 64 : 96, 1);
    }
    MatrixView* const views[] = {&o.a,       &o.b,       &o.c,       &o.d,
                                 &o.scale_a, &o.scale_b, &o.scale_d, &o.bias};
    for (int n = draw(1, 3); n > 0; --n) {
      MatrixView& v = *views[draw(0, 7)];
      std::int64_t MatrixView::*const fields[] = {
          &MatrixView::rows,          &MatrixView::columns, &MatrixView::row_stride,
          &MatrixView::column_stride, &MatrixView::batch,   &MatrixView::batch_stride};
      const int which = draw(0, 7);
      if (which < 6) {
        v.*fields[which] = draw.of<std::int64_t>({-5, 0, 1, 2, 3, 64, 96, 1 << 20});
      } else if (which == 6) {
        v.data = draw.rarely(2) ? nullptr : static_cast<char*>(v.data) + draw(0, 9);
      } else {
        v.dtype = draw.of<DType>({DType::bf16, DType::f16, DType::f32, DType::e4m3, DType::e5m2});
      }
    }
    const auto made = plan(o, draw.rarely(4) ? model_facts(8, 100) : model_facts());
    if (made) continue;
    ++refusals;
    ASSERT_EQ(flaw(made.refusal()), "") << made.reason();
  }
  EXPECT_GT(refusals, 2000);
}

TEST(Refusals, CodesHaveNames) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(RefusalCode::file_error); ++i) {
    names.insert(name(static_cast<RefusalCode>(i)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(RefusalCode::file_error) + 1);
  EXPECT_STREQ(name(RefusalCode::bad_value), "bad_value");
  EXPECT_STREQ(name(RefusalCode::plan_mismatch), "plan_mismatch");
  EXPECT_STREQ(name(RefusalCode::file_error), "file_error");
}

}  // namespace
}  // namespace warpwright
