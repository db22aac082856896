// Facts about single operations: CuTe's documented examples, and what is refused and why.
#include <gtest/gtest.h>

#include <string>

#include "warpwright/layout/error.h"
#include "warpwright/layout/layout.h"
#include "warpwright/layout/text.h"

namespace warpwright::layout {
namespace {

// The algebra runs while compiling, and a layout is a template argument.
constexpr Layout kNested = "((2,4),8):((1,16),2)"_layout;
static_assert(size(kNested) == 64 && cosize(kNested) == 64);
static_assert(rank(kNested) == 2 && depth(kNested) == 2 && rank(mode(kNested, 0)) == 2);
static_assert(kNested(1, 0) == 1 && kNested(2, 0) == 16 && kNested(tuple(tuple(1, 3), 7)) == 63);
static_assert(kNested == make_layout(tuple(tuple(2, 4), 8), tuple(tuple(1, 16), 2)));
static_assert(coalesce("(2,(1,6)):(1,(6,2))"_layout) == "12:1"_layout);
static_assert(composition("(6,2):(8,2)"_layout, "(4,3):(3,1)"_layout) ==
              "((2,2),3):((24,2),8)"_layout);
static_assert(complement("4:2"_layout, 24) == "(2,3):(1,8)"_layout);
static_assert(logical_divide("16:1"_layout, "4:1"_layout) == "(4,4):(1,4)"_layout);
static_assert(Swizzle{3, 4, 3}(128) == 144);

template <Layout L>
struct Named {
  static constexpr Layout kTransposed = make_layout(mode(L, 1), mode(L, 0));
};
static_assert(Named<"(8,16):(16,1)"_layout>::kTransposed == "(16,8):(1,16)"_layout);

TEST(Algebra, OffsetOfALayoutKnownWhileCompiling) {
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(offset_of<kNested>(i), kNested(i));
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) EXPECT_EQ(offset_of<kNested>(i, j), kNested(i, j));
  static_assert(offset_of<"(2,2):(-8,0)"_layout>(1) == -8);
}

Layout read(const std::string& text) {
  return parse_layout(text);
}

/// What the refusal of `operation` says; fails when nothing is refused.
template <class F>
std::string refusal_of(F operation) {
  try {
    operation();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

TEST(Text, RoundTrip) {
  for (const char* text :
       {"8:1", "(8):(1)", "(8,16):(16,1)", "((2,4),8):((1,16),2)", "((((3)))):((((5))))",
        "(((64,128),1),4):(((1@0,1@1),0),64@0)", "12:1@1@0", "4:-3"}) {
    EXPECT_EQ(to_text(read(text)), text);
  }
  EXPECT_EQ(to_text(read(" ( _8 , _16 ) : (_16, _1)")), "(8,16):(16,1)");
  EXPECT_EQ(to_text(read("(_64,_4):(_1@0,_64@0)")), "(64,4):(1@0,64@0)");
  EXPECT_EQ(to_text(read("_4:_-3")), "4:-3");
}

TEST(Text, LeftOutStrideIsCompact) {
  EXPECT_EQ(to_text(read("8")), "8:1");
  EXPECT_EQ(to_text(read("(2,4)")), "(2,4):(1,2)");
  EXPECT_EQ(to_text(read("((2,4),8)")), "((2,4),8):((1,2),8)");
  EXPECT_EQ(to_text(read("(1,4,1)")), "(1,4,1):(0,1,0)");  // as CuTe for static extents of 1
}

TEST(Text, ComposedAndCoordinates) {
  for (const char* text : {"Sw<3,4,3> o 0 o (8,64):(64,1)", "Sw<2,5,2> o 7 o 4:1"})
    EXPECT_EQ(to_text(parse_composed_layout(text)), text);
  for (const char* text : {"ArithTuple(0,128) o (((64,128),1),4):(((1@0,1@1),0),64@0)",
                           "ArithTuple(0,0) o 4:1@1", "ArithTuple(3) o 4:1@0"})
    EXPECT_EQ(to_text(parse_coordinate_tensor(text)), text);
}

TEST(Text, RefusesWhatIsNoLayout) {
  for (const char* text : {"",
                           "(",
                           ")",
                           "()",
                           "(8,16",
                           "(8,16))",
                           "(8,16):(16",
                           "8:",
                           ":1",
                           "(8,16):1",
                           "(8,16):(1,2,3)",
                           "((2,4),8):(1,16,2)",
                           "0:1",
                           "(4,0):(1,4)",
                           "-4:1",
                           "8:1 x",
                           "a:1",
                           "8:1@",
                           "8:1@99",
                           "8@0:1",
                           "(8,,4)",
                           "(8,4,)",
                           "99999999999999999999:1",
                           "_:1"}) {
    EXPECT_THROW(read(text), Error) << text;
  }
  EXPECT_EQ(refusal_of([] { read("((2,3):1"); }), "a ')' is missing at character 7 of the text.");
  EXPECT_EQ(refusal_of([] { read("(4,0):(1,4)"); }),
            "an extent must be positive, and one here is 0.");
  EXPECT_THROW(read(std::string(300, '(') + "2" + std::string(300, ')')), Error);
  std::string wide = "(2";
  for (int i = 0; i < kMaxLeaves; ++i) wide += ",2";
  EXPECT_EQ(refusal_of([&] { read(wide + ")"); }),
            "the result needs 25 leaves or more, and a layout holds at most 24.");
}

TEST(Algebra, CoalesceOfTheCuteGuide) {
  EXPECT_EQ(to_text(coalesce(read("(2,(1,6)):(1,(6,2))"))), "12:1");
  EXPECT_EQ(to_text(coalesce(read("(2,(1,6)):(1,(6,2))"), tuple(1, 1))), "(2,6):(1,2)");
  EXPECT_EQ(to_text(coalesce(read("1:7"))), "1:0");
  EXPECT_EQ(to_text(coalesce(read("(4,1):(1,0)"))), "4:1");
  EXPECT_EQ(to_text(coalesce(read("(64,4):(1@0,64@0)"))), "256:1@0");
  EXPECT_EQ(to_text(coalesce(read("(64,128):(1@0,1@1)"))), "(64,128):(1@0,1@1)");
}

TEST(Algebra, CompositionOfTheCuteGuide) {
  EXPECT_EQ(to_text(composition(read("(6,2):(8,2)"), read("(4,3):(3,1)"))), "((2,2),3):((24,2),8)");
  EXPECT_EQ(to_text(composition(read("20:2"), read("(5,4):(4,1)"))), "(5,4):(8,2)");
  EXPECT_EQ(to_text(composition(read("(10,2):(16,4)"), read("(5,4):(1,5)"))),
            "(5,(2,2)):(16,(80,4))");
  EXPECT_EQ(to_text(composition(read("(12,(4,8)):(59,(13,1))"), Tiler(read("3:4"), read("8:2")))),
            "(3,(2,4)):(236,(26,1))");
  EXPECT_EQ(to_text(composition(read("(12,(4,8)):(59,(13,1))"), tuple(3, 8))),
            "(3,(4,2)):(59,(13,1))");
}

TEST(Algebra, CompositionRefusesWhereCuteIsWrong) {
  EXPECT_EQ(refusal_of([] { composition(read("(6,10):(10,1)"), read("12:5")); }),
            "composition((6,10):(10,1), 12:5) has no layout: by the stride divisibility law one of "
            "the extent 6 of a mode and the step 5 must divide the other.");
  EXPECT_EQ(refusal_of([] { composition(read("(4,6):(6,1)"), read("6:1")); }),
            "composition((4,6):(6,1), 6:1) has no layout: by the shape divisibility law 6 elements "
            "must be a multiple of the 4 that one mode gives.");
  // Each leaf composes, but 3 + 1 carries into the next mode: no layout of shape (4,2) does that.
  EXPECT_THROW(composition(read("(4,2):(2,1)"), read("(4,2):(1,1)")), Error);
  EXPECT_THROW(composition(read("(4,16):(16,1)"), read("4:3")), Error);
}

TEST(Algebra, CompositionFindsWhatTheRulesMiss) {
  // The step 3 does not divide 8, yet 0,3,6 | 9,12,15 is a layout. CuTe answers (3,2):(9,100).
  const Layout a = read("(8,2):(3,100)");
  const Layout r = composition(a, read("6:3"));
  EXPECT_EQ(to_text(r), "(3,2):(9,103)");
  for (int i = 0; i < 6; ++i) EXPECT_EQ(r(i), a(3 * i));
}

TEST(Algebra, CompositionAlongBases) {
  EXPECT_EQ(to_text(composition(read("(8,4):(4,1)"), read("(4,8):(1@1,1@0)"))), "(4,8):(1,4)");
  EXPECT_EQ(to_text(composition(read("(128,64):(1@1,1@0)"), read("(64,128):(128,1)"))),
            "(64,128):(1@0,1@1)");
  EXPECT_EQ(coordinate(read("(128,64):(1@1,1@0)"), tuple(5, 7)), tuple(7, 5));
  EXPECT_THROW(read("(2,3):(1@0,1@1)")(1), Error);
  EXPECT_THROW(cosize(read("(2,3):(1@0,1@1)")), Error);
}

TEST(Algebra, ComplementOfTheCuteGuide) {
  const struct {
    const char* layout;
    const char* result;
  } facts[] = {{"4:1", "6:4"},         {"6:4", "4:1"},         {"(4,6):(1,4)", "1:0"},
               {"4:2", "(2,3):(1,8)"}, {"(2,4):(1,6)", "3:2"}, {"(2,2):(1,6)", "(3,2):(2,12)"}};
  for (const auto& fact : facts) EXPECT_EQ(to_text(complement(read(fact.layout), 24)), fact.result);
  EXPECT_EQ(to_text(complement(read("4:0"), 24)), "24:1");
  EXPECT_EQ(to_text(complement(read("4:1"), 10)), "3:4");
  // A padded row: the padding stays free.
  EXPECT_EQ(to_text(complement(read("(4,2):(1,10)"), 40)), "(2,2):(4,20)");
  EXPECT_THROW(complement(read("(2,2):(2,3)"), 24), Error);
  EXPECT_THROW(complement(read("(2,4):(1,1)"), 24), Error);
  EXPECT_THROW(complement(read("4:-1"), 24), Error);
  EXPECT_THROW(complement(read("4:1"), 0), Error);
}

TEST(Algebra, Inverses) {
  EXPECT_EQ(to_text(right_inverse(read("(8,16):(16,1)"))), "(16,8):(8,1)");
  EXPECT_EQ(to_text(right_inverse(read("(4,8):(1,5)"))), "4:1");
  EXPECT_EQ(to_text(right_inverse(read("4:2"))), "1:0");
  EXPECT_EQ(to_text(left_inverse(read("(8,16):(16,1)"))), "(16,8):(8,1)");
  EXPECT_EQ(to_text(left_inverse(read("(4,8):(1,5)"))), "(5,8):(1,4)");
  EXPECT_EQ(to_text(left_inverse(read("4:2"))), "(2,4):(0,1)");
  EXPECT_THROW(left_inverse(read("(2,2):(2,3)")), Error);
  EXPECT_THROW(left_inverse(read("(2,4):(2,1)")), Error);  // offsets repeat
}

TEST(Algebra, DivideOfTheCuteGuide) {
  EXPECT_EQ(to_text(logical_divide(read("(4,2,3):(2,1,8)"), read("4:2"))),
            "((2,2),(2,3)):((4,1),(2,8))");
  const Layout a = read("(9,(4,8)):(59,(13,1))");
  const Tiler tiler(read("3:3"), read("(2,4):(1,8)"));
  EXPECT_EQ(to_text(logical_divide(a, tiler)), "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))");
  EXPECT_EQ(to_text(zipped_divide(a, tiler)), "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))");
  EXPECT_EQ(to_text(tiled_divide(a, tiler)), "((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))");
  EXPECT_EQ(mode(zipped_divide(a, tiler), 0), composition(a, tiler));
  EXPECT_EQ(to_text(tiled_divide(read("16:1"), read("4:2"))), "(4,2,2):(2,1,8)");
  // A tile may hang over the edge.
  EXPECT_EQ(to_text(logical_divide(read("10:1"), read("4:1"))), "(4,3):(1,4)");
  // The offsets 2 and 5 are in no tile.
  EXPECT_EQ(refusal_of([] { logical_divide(read("16:1"), read("(2,2):(1,3)")); }),
            "logical_divide(16:1, (2,2):(1,3)): a division must reach each of the 16 elements, but "
            "the strides of the tile leave gaps, and it reaches 12.");
}

TEST(Algebra, ClusterLayoutsOfTheSeeds) {
  const Layout cluster = make_layout(tuple(4, 4, 1));
  EXPECT_EQ(to_text(tiled_divide(cluster, make_tiler(tuple(1)))), "((1),4,4,1):((0),1,4,0)");
  EXPECT_EQ(to_text(tiled_divide(cluster, make_tiler(tuple(2)))), "((2),2,4,1):((1),2,4,0)");
}

TEST(Algebra, ProductOfTheCuteGuide) {
  EXPECT_EQ(to_text(logical_product(read("(2,2):(4,1)"), read("6:1"))),
            "((2,2),(2,3)):((4,1),(2,8))");
  EXPECT_EQ(to_text(blocked_product(read("(2,5):(5,1)"), read("(3,4):(1,3)"))),
            "((2,3),(5,4)):((5,10),(1,30))");
  EXPECT_EQ(to_text(raked_product(read("(2,5):(5,1)"), read("(3,4):(1,3)"))),
            "((3,2),(4,5)):((10,5),(30,1))");
  EXPECT_EQ(to_text(blocked_product(read("4:1"), read("4:2"))), "((4,4)):((1,8))");
  EXPECT_EQ(to_text(raked_product(read("4:1"), read("4:2"))), "((4,4)):((8,1))");
}

TEST(Algebra, TileToShape) {
  EXPECT_EQ(to_text(tile_to_shape(read("(8,64):(64,1)"), tuple(128, 64, 4))),
            "((8,16),(64,1),(1,4)):((64,512),(1,0),(0,8192))");
  EXPECT_EQ(to_text(tile_to_shape(read("(8,64):(64,1)"), tuple(16, 128), tuple(1, 0))),
            "((8,2),(64,2)):((64,1024),(1,512))");
  EXPECT_THROW(tile_to_shape(read("(8,64):(64,1)"), tuple(20, 64)), Error);
  EXPECT_THROW(tile_to_shape(read("(8,64):(64,1)"), Tuple(512)), Error);
}

TEST(Algebra, Slices) {
  const Slice row = slice(read("(8,16):(16,1)"), tuple(3, kAll));
  EXPECT_EQ(to_text(row.layout), "(16):(1)");
  EXPECT_EQ(row.offset, 48);
  const Slice part = slice(kNested, tuple(tuple(kAll, 2), kAll));
  EXPECT_EQ(to_text(part.layout), "(2,8):(1,2)");
  EXPECT_EQ(part.offset, 32);
  EXPECT_EQ(to_text(group_modes(read("(2,3,4):(12,4,1)"), 0, 2)), "((2,3),4):((12,4),1)");
}

TEST(Algebra, Swizzles) {
  const Swizzle sw = make_swizzle(3, 4, 3);
  for (std::int64_t row = 0; row < 8; ++row)
    for (std::int64_t chunk = 0; chunk < 8; ++chunk)
      EXPECT_EQ(sw(row * 128 + chunk * 16), row * 128 + (chunk ^ row) * 16);
  EXPECT_EQ(make_swizzle(1, 0, -2)(1), 5);
  EXPECT_EQ(make_swizzle(0, 0, 0)(77), 77);
  EXPECT_THROW(make_swizzle(3, 4, 2), Error);
  EXPECT_THROW(make_swizzle(-1, 4, 3), Error);
  EXPECT_THROW(make_swizzle(3, -4, 3), Error);
}

TEST(Algebra, RefusesOverflow) {
  EXPECT_THROW(read("(4000000000,4000000000):(1,1)"), Error);
  EXPECT_THROW(cosize(read("1000000000:100000000000")), Error);
  EXPECT_THROW(composition(read("8:4000000000"), read("8:4000000000")), Error);
}

}  // namespace
}  // namespace warpwright::layout
