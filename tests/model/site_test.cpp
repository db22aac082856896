// How reports name the source.
#include "warpwright/model/report/site.h"

#include <gtest/gtest.h>

#include <string>

#include "warpwright/model/report/compiled_sites.h"

namespace warpwright::model {
namespace {

// No report may depend on the folder where the project was built.
TEST(Site, NamesAreRelativeToTheProject) {
  constexpr Site here = Site::here();
  EXPECT_STREQ(here.file, "tests/model/site_test.cpp");
  EXPECT_EQ(here.line, 15);
}

TEST(Site, OtherFoldersKeepTheirNames) {
  const std::string own = __FILE__;
  const std::string root = own.substr(0, own.find("tests/model/"));
  EXPECT_STREQ(in_project((root + "warpwright/kernel/a.h").c_str()), "warpwright/kernel/a.h");
  EXPECT_STREQ(in_project("relative.h"), "relative.h");
  EXPECT_STREQ(in_project(""), "");
  EXPECT_STREQ(in_project("/elsewhere/than/this/project/a.h"), "/elsewhere/than/this/project/a.h");
}

// A user's program has the library's sources in it, of the folder where that was built, and headers
// of the one where it is installed: each name is cut by the source that it stands in.
TEST(Site, AProgramMayHaveTwoRoots) {
  const std::string header = "/a prefix/include/warpwright/model/report/site.h";
  const Root installed{header.c_str(), static_cast<int>(header.size() + 1) - Root::tail};
  EXPECT_STREQ(in_project("/a prefix/include/warpwright/pipeline/a.h", installed),
               "warpwright/pipeline/a.h");
  EXPECT_STREQ(in_project(__FILE__, installed), __FILE__);
}

// As g++ and clang write them. A template of two parameters was called by the end of its list.
TEST(Site, FunctionsWithoutNamespacesAndArguments) {
  const auto name = [](const char* function) { return function_name({"a.h", 1, function}); };
  EXPECT_EQ(name("void own::run()"), "own::run");
  EXPECT_EQ(name("static void kernel::Gemm<Tag>::load(const P&) [with Tag = T]"), "Gemm::load");
  EXPECT_EQ(name("void study::Gemm<S, Way>::store(int) const [with Shape S = Shape{64, 3}]"),
            "Gemm::store");
  EXPECT_EQ(name("void study::Gemm<study::Shape{64, 3}, study::Mended>::store(int) const"),
            "Gemm::store");
  EXPECT_EQ(name("kernel::Values<(Kind)2, 4> kernel::Epilogue<A, B<C, D> >::load_c<2, 1>() const"),
            "Epilogue::load_c");
}

}  // namespace
}  // namespace warpwright::model
