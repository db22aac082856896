// Every lesson under every schedule: clean as it stands, and broken the finding that it names, at
// the line that it names.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "lessons/11_pair_umma.h"

namespace warpwright::model {
namespace {

std::string line_of(const Site& site) {
  std::ifstream file(std::string(WARPWRIGHT_SOURCE "/") + site.file);
  std::string line;
  for (int i = 0; i < site.line && std::getline(file, line);) ++i;
  return line;
}

bool names_line(const Finding& f, std::string_view words) {
  if (line_of(f.site).find(words) != std::string::npos) return true;
  return std::any_of(f.accesses.begin(), f.accesses.end(), [&](const auto& access) {
    return line_of(access.site).find(words) != std::string::npos;
  });
}

class LessonTest : public ::testing::TestWithParam<lessons::Lesson> {};

TEST_P(LessonTest, IsCleanAndItsTwinIsFound) {
  const lessons::Lesson& lesson = GetParam();
  const testing::Outcome right = lesson.run({});
  EXPECT_TRUE(right.clean()) << right.text();
  EXPECT_EQ(right.runs.size(), 14U);
  const testing::Outcome broken = lesson.run({.broken = true});
  EXPECT_TRUE(broken.has(lesson.finding)) << broken.text();
  if (!lesson.line.empty()) {
    const std::vector<testing::Seen> found = broken.findings();
    EXPECT_TRUE(std::any_of(found.begin(), found.end(),
                            [&](const testing::Seen& s) {
                              return s.finding.check == lesson.finding &&
                                     names_line(s.finding, lesson.line);
                            }))
        << "no finding names a line with \"" << lesson.line << "\": " << broken.text();
  }
}

INSTANTIATE_TEST_SUITE_P(All, LessonTest, ::testing::ValuesIn(lessons::all()),
                         [](const auto& each) { return std::string(each.param.name); });

// A find in the seeds, as docs/seeds.md has it: seed 000's loop lets all threads wait for a phase
// and go on, and one that is late misses it.
TEST(PairUmma, WithoutABarrierBehindTheWaitAPhaseIsMissed) {
  EXPECT_TRUE(lessons::pair_umma::run<false>({}).has(Check::stale_parity));
}

}  // namespace
}  // namespace warpwright::model
