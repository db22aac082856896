// How reports name the source.
#include "warpwright/model/report/site.h"

#include <gtest/gtest.h>

#include <string>

namespace warpwright::model {
namespace {

// No report may depend on the folder where the project was built.
TEST(Site, NamesAreRelativeToTheProject) {
  constexpr Site here = Site::here();
  EXPECT_STREQ(here.file, "tests/model/site_test.cpp");
  EXPECT_EQ(here.line, 13);
}

TEST(Site, OtherFoldersKeepTheirNames) {
  const std::string own = __FILE__;
  const std::string root = own.substr(0, own.find("tests/model/"));
  EXPECT_STREQ(in_project((root + "warpwright/kernel/a.h").c_str()), "warpwright/kernel/a.h");
  EXPECT_STREQ(in_project("relative.h"), "relative.h");
  EXPECT_STREQ(in_project(""), "");
  EXPECT_STREQ(in_project("/elsewhere/than/this/project/a.h"), "/elsewhere/than/this/project/a.h");
}

}  // namespace
}  // namespace warpwright::model
