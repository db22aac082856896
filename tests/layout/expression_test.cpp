// What `warpwright layout` evaluates and prints.
#include "warpwright/layout/expression.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/layout/answers.h"
#include "tests/must.h"
#include "warpwright/layout/error.h"

namespace warpwright::layout {
namespace {

TEST(Expression, Literals) {
  EXPECT_EQ(answer("(8,16):(16,1)"), "(8,16):(16,1)");
  EXPECT_EQ(answer("((_2,_4),_8):((_1,_16),_2)"), "((2,4),8):((1,16),2)");
  EXPECT_EQ(answer("(2,4)"), "(2,4):(1,2)");
  EXPECT_EQ(answer("8"), "8:1");
  EXPECT_EQ(answer("Sw<3,4,3>"), "Sw<3,4,3>");
  EXPECT_EQ(answer("Sw<3,4,3> o _0 o (8,64):(64,1)"), "Sw<3,4,3> o 0 o (8,64):(64,1)");
  EXPECT_EQ(answer("ArithTuple(0,128) o (((_64,_128),_1),4):(((_1@0,_1@1),_0),_64@0)"),
            "ArithTuple(0,128) o (((64,128),1),4):(((1@0,1@1),0),64@0)");
}

TEST(Expression, Calls) {
  EXPECT_EQ(answer("coalesce((2,(1,6)):(1,(6,2)))"), "12:1");
  EXPECT_EQ(answer("coalesce(composition((8,16):(16,1), (8,16):(1,8)))"), "(8,16):(16,1)");
  EXPECT_EQ(answer("complement(4:2, 24)"), "(2,3):(1,8)");
  EXPECT_EQ(answer("complement(4:2, size((4,6)))"), "(2,3):(1,8)");
  EXPECT_EQ(answer("right_inverse((8,16):(16,1))"), "(16,8):(8,1)");
  EXPECT_EQ(answer("left_inverse((4,8):(1,5))"), "(5,8):(1,4)");
  EXPECT_EQ(answer("logical_divide(16, 4)"), "(4,4):(1,4)");
  EXPECT_EQ(answer("tiled_divide((4,4,1), <2:1>)"), "((2),2,4,1):((1),2,4,0)");
  EXPECT_EQ(answer("logical_product((2,2):(4,1), 6:1)"), "((2,2),(2,3)):((4,1),(2,8))");
  EXPECT_EQ(answer("blocked_product(4:1,4:2)"), "((4,4)):((1,8))");
  EXPECT_EQ(answer("blocked_product((4):(1),(4):(2))"), "((4,4)):((1,8))");
  EXPECT_EQ(answer("tile_to_shape(4:1,(8))"), "((4,(2))):((1,(4)))");
  EXPECT_EQ(answer("raked_product((2,5):(5,1),(3,4):(1,3))"), "((3,2),(4,5)):((10,5),(30,1))");
  EXPECT_EQ(answer("tile_to_shape((8,64):(64,1),(128,64))"), "((8,16),(64,1)):((64,512),(1,0))");
  EXPECT_EQ(answer("size((8,16):(16,1))"), "128");
  EXPECT_EQ(answer("cosize((4,8):(1,5))"), "39");
  EXPECT_EQ(answer("swizzle(3,4,3,128)"), "144");
  EXPECT_EQ(answer("flatten(((2,4),8))"), "(2,4,8):(1,2,8)");
  EXPECT_EQ(answer("mode(((2,4),8),0)"), "(2,4):(1,2)");
  EXPECT_EQ(answer("rank(((2,4),8))"), "2");
  EXPECT_EQ(answer("depth(((2,4),8))"), "2");
  EXPECT_EQ(answer("filter((4,3):(0,2))"), "3:2");
}

TEST(Expression, TilersByMode) {
  EXPECT_EQ(answer("composition((12,(4,8)):(59,(13,1)), <3:4, 8:2>)"), "(3,(2,4)):(236,(26,1))");
  EXPECT_EQ(answer("composition((12,(4,8)):(59,(13,1)), (3,8))"), "(3,(4,2)):(59,(13,1))");
  EXPECT_EQ(answer("logical_divide((8,16):(16,1), <_,4>)"), "(8,(4,4)):(16,(1,4))");
  EXPECT_EQ(answer("zipped_divide((8,16):(16,1), (2,4))"), "((2,4),(4,4)):((16,1),(32,4))");
  EXPECT_EQ(refusal("zipped_divide((8,16):(16,1), (2,4,8))"),
            "a tiler of 3 modes does not fit (8,16):(16,1) of rank 2.");
}

TEST(Expression, At) {
  EXPECT_EQ(answer("at((8,16):(16,1), 9)"), "17");
  EXPECT_EQ(answer("at((8,16):(16,1), (1,1))"), "17");
  EXPECT_EQ(answer("at((8,16):(16,1), 1, 1)"), "17");
  EXPECT_EQ(answer("at(((2,4),8):((1,16),2), ((1,2),3))"), "39");
  EXPECT_EQ(answer("at(Sw<3,4,3> o 0 o (8,128):(128,1), (1,0))"), "144");
  EXPECT_EQ(answer("at((64,128):(1@0,1@1), (5,7))"), "(5,7)");
  EXPECT_EQ(answer("at(ArithTuple(0,128) o (64,128):(1@0,1@1), (5,7))"), "(5,135)");
  EXPECT_EQ(refusal("at(8:1, 8)"), "the coordinate 8 lies outside [0, 8).");
  EXPECT_EQ(refusal("at(8:1, -1)"), "the coordinate -1 lies outside [0, 8).");
  EXPECT_EQ(refusal("at((8,4), (1,2,3))"),
            "a coordinate of rank 3 does not fit a shape of rank 2.");
}

TEST(Expression, SwizzledLayoutsKeepTheirSwizzle) {
  EXPECT_EQ(answer("composition(Sw<3,3,3>, (8,64):(64,1))"), "Sw<3,3,3> o 0 o (8,64):(64,1)");
  EXPECT_EQ(answer("logical_divide(Sw<3,3,3> o 0 o (8,64):(64,1), <2,8>)"),
            "Sw<3,3,3> o 0 o ((2,4),(8,8)):((64,128),(1,8))");
  EXPECT_EQ(answer("size(Sw<3,3,3> o 0 o (8,64):(64,1))"), "512");
}

TEST(Expression, Refusals) {
  EXPECT_EQ(refusal(""), "the expression is empty.");
  EXPECT_EQ(refusal("size()"), "size takes 1 argument, and 0 are given.");
  EXPECT_EQ(refusal("composition(4:1)"), "composition takes 2 arguments, and 1 is given.");
  EXPECT_EQ(refusal("coalesce((2,3)"), "a ')' is missing at character 15 of the text.");
  EXPECT_EQ(refusal("(2,3))"), "a ')' too many stands at character 6 of the text.");
  EXPECT_EQ(refusal("(2,3):(1,2) x"), "the text goes on at character 13 after its end.");
  EXPECT_EQ(refusal("right_inverse(Sw<3,4,3>)"),
            "right_inverse: argument 1 must be a layout, and it is a swizzle.");
  EXPECT_EQ(refusal("swizzle(3,4,2,5)"),
            "Sw<3,4,2>: the shift must be at least the number of bits, or the bits overlap.");
  expect_contains(refusal("foo(4:1)"), "there is no function 'foo'; there are coalesce,");
  expect_contains(refusal("composition((6,10):(10,1),12:5)"), "stride divisibility law");
  std::string deep = "4:1";
  for (int i = 0; i < 100; ++i) deep.insert(0, "coalesce(").append(")");
  EXPECT_EQ(refusal(deep), "the expression nests calls deeper than 60 levels.");
}

TEST(Expression, Tables) {
  EXPECT_EQ(to_table(evaluate("(2,4):(4,1)")),
            "   0 1 2 3\n"
            "0: 0 1 2 3\n"
            "1: 4 5 6 7\n");
  EXPECT_EQ(to_table(evaluate("(2,(2,3)):(10,(1,2))")),
            "    0  1  2  3  4  5\n"
            "0:  0  1  2  3  4  5\n"
            "1: 10 11 12 13 14 15\n");
  EXPECT_EQ(to_table(evaluate("3:2")), "0 -> 0\n1 -> 2\n2 -> 4\n");
  EXPECT_EQ(to_table(evaluate("(2,1,2):(1,0,4)")),
            "(0,0,0) -> 0\n(1,0,0) -> 1\n(0,0,1) -> 4\n(1,0,1) -> 5\n");
  EXPECT_EQ(to_table(evaluate("Sw<1,0,1> o 0 o (2,2):(2,1)")),
            "   0 1\n"
            "0: 0 1\n"
            "1: 3 2\n");
  EXPECT_EQ(to_table(evaluate("(2,2):(1@0,1@1)")),
            "       0     1\n"
            "0: (0,0) (0,1)\n"
            "1: (1,0) (1,1)\n");
  EXPECT_EQ(to_table(evaluate("size(4:1)")), "");
  EXPECT_THROW(to_table(evaluate("(1024,1024)")), Error);
}

}  // namespace
}  // namespace warpwright::layout
