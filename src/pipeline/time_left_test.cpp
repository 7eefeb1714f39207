#include "pipeline/time_left.h"

#include <cmath>
#include <gtest/gtest.h>

#include "pipeline/testing/evaluated.h"

namespace tessera::pipeline {
namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::steady_clock;

/// Options of a run of `total` seconds that began `ago` seconds ago.
Options begun(double total, double ago) {
  Options out;
  out.total_seconds = total;
  out.begun = steady_clock::now() - duration_cast<steady_clock::duration>(duration<double>(ago));
  return out;
}

TEST(TimeLeft, IsOfTheTotal) {
  EXPECT_TRUE(std::isinf(seconds_left(Options())));
  EXPECT_NEAR(seconds_left(begun(30, 10)), 20, 1);
  EXPECT_EQ(seconds_left(begun(30, 40)), 0);
}

TEST(TimeLeft, ATotalBoundsWhatIsAskedFor) {
  Options asked = begun(30, 0);
  EXPECT_EQ(within_total(asked).seconds, 30);
  EXPECT_EQ(within_total(asked).resizes, false);
  EXPECT_EQ(within_total(asked).peers, std::vector<std::string>{"eager"});
  asked.seconds = 10;
  asked.resizes = true;
  EXPECT_EQ(within_total(asked).seconds, 10);
  EXPECT_EQ(within_total(asked).resizes, true);
  EXPECT_EQ(within_total(Options()).peers, Options().peers);
}

TEST(TimeLeft, TheSearchLeavesTimeForWhatFollows) {
  const Context nobody;
  const Options none;
  EXPECT_TRUE(std::isinf(left_for_search(none, 40)));
  EXPECT_EQ(search_seconds(Session{.options = none, .context = nobody}), 0);

  const Options total = within_total(begun(30, 5));
  Session s{.options = total, .context = nobody};
  s.baseline.eager_ms = 40;  // a hundred calls are 4 s
  EXPECT_NEAR(reserved_seconds(total, 40), 3 + 2.5 + 4, 0.5);
  EXPECT_NEAR(search_seconds(s), 25 - 9.5, 0.5);
  s.baseline.kept_seconds = 5;
  EXPECT_NEAR(search_seconds(s), 25 - 9.5 - 5, 0.5);
  s.baseline.eager_ms = 10000;  // never more than three fifths of what is left
  s.baseline.kept_seconds = 0;
  EXPECT_NEAR(search_seconds(s), 10, 0.5);

  const Options over = within_total(begun(30, 40));
  EXPECT_EQ(search_seconds(Session{.options = over, .context = nobody}), 1);
}

TEST(TimeLeft, InductorMayTakeAPartOfIt) {
  EXPECT_TRUE(compile_limit(Options()).is_null());
  const Json limit = compile_limit(begun(30, 5));
  EXPECT_NEAR(limit.at("seconds").get<double>(), 10, 0.5);
  EXPECT_EQ(limit.at("ends"), true);
}

}  // namespace
}  // namespace tessera::pipeline
