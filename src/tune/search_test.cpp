#include "tune/search.h"

#include <cmath>
#include <gmock/gmock.h>

namespace tessera::tune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Candidates whose times are told; what was built and measured is noted.
struct Machine {
  std::function<double(Point, Round)> cost;
  std::vector<int> built;
  std::vector<Point> measured;
  std::vector<Item> items;
  std::atomic<bool> stop = false;
  Callbacks calls;

  explicit Machine(std::vector<Item> list, std::function<double(Point, Round)> c)
      : cost(std::move(c)), items(std::move(list)) {
    calls.build = [this](const std::vector<int>& which, double) {
      std::vector<Trial> out;
      for (const int i : which) {
        if (items[static_cast<std::size_t>(i)].needs_build) built.push_back(i);
        out.push_back({.point = {i, 0}, .outcome = Outcome::measured});
      }
      return out;
    };
    calls.verify = [](int i) { return Trial{.point = {i, 0}, .outcome = Outcome::measured}; };
    calls.measure = [this](const std::vector<Point>& points, Round round) {
      std::vector<Trial> out;
      for (const Point& p : points) {
        measured.push_back(p);
        out.push_back({.point = p, .outcome = Outcome::measured, .ms = cost(p, round)});
      }
      return out;
    };
  }
  Search search(double floor_ms = 0, int batch = 1) {
    return {items, {}, calls, {}, stop, batch, floor_ms};
  }
};

const Item library = {.needs_build = false, .family = "library"};
Item kernel(double predicted_ms, double build_seconds = 3, const std::string& family = "tile") {
  return {.predicted_ms = predicted_ms, .family = family, .build_seconds = build_seconds};
}

TEST(SearchSteps, FreeCandidatesComeFirstAndTheBestIsWholeFromThereOn) {
  Machine m({kernel(1), library, library}, [](Point p, Round) { return 3.0 - p.candidate; });
  Search s = m.search(0, 4);
  const auto step = s.next({});
  ASSERT_TRUE(step);
  EXPECT_EQ(step->round, Round::free);
  EXPECT_EQ(step->points.size(), 2u);
  s.advance(*step, 0);
  EXPECT_TRUE(m.built.empty());
  EXPECT_DOUBLE_EQ(s.outcomes().best_ms, 1);
  EXPECT_EQ(s.next({})->round, Round::quick);
}

TEST(SearchSteps, PromiseGainOverTheBestAndCostOfTheBuild) {
  Machine m({kernel(1, 3), kernel(0.9, 40, "cutlass"), library}, [](Point, Round) { return 2.0; });
  Search s = m.search();
  s.advance(*s.next({}), 0);
  const std::vector<Step> wanted = s.to_build({});
  ASSERT_EQ(wanted.size(), 2u);
  EXPECT_EQ(wanted[0].round, Round::slow);  // the better prediction
  EXPECT_NEAR(wanted[0].gain_ms, 1.1, 0.05);
  EXPECT_DOUBLE_EQ(wanted[0].build_seconds, 40);
  EXPECT_EQ(wanted[1].round, Round::quick);
  EXPECT_LT(wanted[1].gain_ms, 0.2);  // beside the first, if that keeps its promise
  EXPECT_GT(wanted[1].gain_ms, 0.01);
  EXPECT_TRUE(wanted[1].first);
}

TEST(SearchSteps, WhatCannotWinIsNotBuilt) {
  Machine m({kernel(0.4), kernel(0.9), kernel(5), library}, [](Point, Round) { return 1.0; });
  Search s = m.search();
  while (const auto step = s.next({})) s.advance(*step, 0);
  EXPECT_THAT(m.built, ElementsAre(0));  // took 2.5 times its prediction: the second would, too
  EXPECT_EQ(s.hopeless(), 2);
}

TEST(SearchSteps, TheBarIsWhatTheOpsTakeNow) {
  Machine m({kernel(1), library}, [](Point, Round) { return 4.0; });
  Search s = m.search();
  s.advance(*s.next({}), 0);
  EXPECT_TRUE(s.next({.bar_ms = 3}));
  EXPECT_FALSE(s.next({.bar_ms = 0.3}));
  EXPECT_TRUE(s.next({.bar_ms = 3}));  // the other kernels were dropped: it is worth while again
}

TEST(SearchSteps, NoBuildsAtTheRoofline) {
  Machine m({kernel(0), kernel(0), kernel(0), library},
            [](Point p, Round) { return p.candidate == 0 ? 1.01 : 5.0; });
  Search s = m.search(1.0);
  while (const auto step = s.next({})) s.advance(*step, 0);
  EXPECT_THAT(m.built, ElementsAre(0));
  EXPECT_THAT(s.why_over(), HasSubstr("roofline"));
}

TEST(SearchSteps, NoBuildThatEndsTooLate) {
  Machine m({kernel(0.5, 40, "cutlass"), kernel(1), library}, [](Point, Round) { return 2.0; });
  Search s = m.search();
  s.advance(*s.next({}), 0);
  const auto step = s.next({.seconds_left = 10});
  ASSERT_TRUE(step);
  EXPECT_EQ(step->points.front().candidate, 1);
}

TEST(SearchSteps, ABuildUnderWayIsWaitedFor) {
  Machine m({kernel(0.5, 40, "cutlass"), library}, [](Point, Round) { return 2.0; });
  Search s = m.search();
  s.advance(*s.next({}), 0);
  double spent = 0;
  const Outlook outlook{.seconds_left = 10,
                        .ready = [](int) { return false; },
                        .running = [&](int) { return spent; }};
  EXPECT_FALSE(s.next(outlook));
  spent = 25;
  ASSERT_TRUE(s.next(outlook));
  EXPECT_TRUE(s.next(outlook)->waiting);
}

TEST(SearchSteps, MeasuresWhatIsReadyAndSaysThatItWaits) {
  Machine m({kernel(1), kernel(1.1), kernel(1.2)}, [](Point, Round) { return 2.0; });
  Search s = m.search(0, 8);
  std::set<int> built;
  const Outlook outlook{.ready = [&](int c) { return built.contains(c); }};
  ASSERT_TRUE(s.next(outlook));
  EXPECT_TRUE(s.next(outlook)->waiting);
  built = {1, 2};
  const auto step = s.next(outlook);
  ASSERT_TRUE(step);
  EXPECT_FALSE(step->waiting);
  EXPECT_THAT(step->points, ElementsAre(Point{1, 0}, Point{2, 0}));
  EXPECT_DOUBLE_EQ(step->build_seconds, 0);
}

TEST(SearchSteps, SweepsTheBestBeforeDearBuilds) {
  std::vector<Item> list = {kernel(1, 3), kernel(0.95, 40, "cutlass")};
  list[0].launches = 3;
  Machine m(list, [](Point p, Round) { return 1.0 + 0.1 * p.candidate - 0.01 * p.launch; });
  Search s = m.search();
  std::vector<Round> rounds;
  while (const auto step = s.next({})) {
    rounds.push_back(step->round);
    s.advance(*step, 0);
  }
  EXPECT_THAT(rounds, ElementsAre(Round::slow, Round::quick, Round::sweep));
  EXPECT_EQ(*s.outcomes().best, (Point{0, 2}));
}

TEST(SearchSteps, ACutBuildIsNotTriedAgain) {
  Machine m({kernel(1), library}, [](Point, Round) { return 2.0; });
  m.calls.build = [](const std::vector<int>& which, double) {
    std::vector<Trial> out;
    for (const int i : which)
      out.push_back({.point = {i, 0}, .outcome = i == 0 ? Outcome::skipped : Outcome::measured});
    return out;
  };
  Search s = m.search();
  int steps = 0;
  while (const auto step = s.next({})) {
    s.advance(*step, 0.1);
    ASSERT_LT(++steps, 10);
  }
  EXPECT_EQ(steps, 2);
  for (const Trial& t : s.outcomes().trials) EXPECT_EQ(t.outcome, Outcome::measured);
}

TEST(SearchSteps, FinalsAreDueOnceAfterWhatWasMeasured) {
  Machine m({kernel(1), library}, [](Point, Round) { return 2.0; });
  Search s = m.search();
  EXPECT_FALSE(s.finals_due());
  s.advance(*s.next({}), 0);
  EXPECT_TRUE(s.finals_due());
  s.finals();
  EXPECT_FALSE(s.finals_due());
  s.advance(*s.next({}), 0);
  EXPECT_TRUE(s.finals_due());
}

TEST(Finals, WhatWonBeforeIsThereWhateverItsEarlierFigure) {
  std::vector<Item> items(9, library);
  items.back().proven = true;
  std::set<int> last;
  Machine m(items, [&](Point p, Round round) {
    if (round == Round::finals) last.insert(p.candidate);
    return round == Round::finals || p.candidate < 8 ? 1.0 : 9.0;
  });
  Search s = m.search(0, 9);
  s.advance(*s.next({}), 0);
  s.finals();
  EXPECT_TRUE(last.contains(8));
  EXPECT_LT(last.size(), items.size());
}

TEST(Finals, TimesThatDisagreeAreTakenAgainAndTwoOfThreeAreAFigure) {
  int finals = 0;
  Machine m({library, library}, [&](Point p, Round round) {
    if (round != Round::finals) return 1.0;
    if (p.candidate == 1) return 1.1;
    return ++finals == 1 ? 3.0 : 1.05;
  });
  Search s = m.search(0, 4);
  s.advance(*s.next({}), 0);
  s.finals();
  EXPECT_EQ(finals, 2);
  EXPECT_DOUBLE_EQ(s.outcomes().best_ms, 1.05);
  for (const Trial& t : s.outcomes().trials) EXPECT_FALSE(t.detail.contains("unreliable"));
}

TEST(Finals, ThreeTimesThatDisagreeAreMarked) {
  int finals = 0;
  Machine m({library, library}, [&](Point p, Round round) {
    if (round != Round::finals || p.candidate == 1) return 1.0;
    return ++finals == 1 ? 9.0 : 3.0;
  });
  Search s = m.search(0, 4);
  s.advance(*s.next({}), 0);
  s.finals();
  int marked = 0;
  for (const Trial& t : s.outcomes().trials) {
    if (!t.detail.value("unreliable", false)) continue;
    ++marked;
    EXPECT_EQ(t.point.candidate, 0);
    EXPECT_DOUBLE_EQ(t.ms, 3);
  }
  EXPECT_EQ(marked, 1);
}

TEST(Forecast, LearnsHowFarAFamilyIsOff) {
  Forecast f(0);
  EXPECT_DOUBLE_EQ(f.expected_ms(kernel(2)), 2);
  EXPECT_LT(f.optimistic_ms(kernel(2)), 1.1);
  f.learn(0, kernel(1), 1.5);
  const double once = f.optimistic_ms(kernel(2));
  EXPECT_NEAR(f.expected_ms(kernel(2)), 3, 1e-9);
  for (int c = 1; c < 8; ++c) f.learn(c, kernel(c), 1.5 * c);
  EXPECT_GT(f.optimistic_ms(kernel(2)), once);  // surer
  EXPECT_LT(f.optimistic_ms(kernel(2)), 3);
  EXPECT_DOUBLE_EQ(f.expected_ms(kernel(2, 3, "another")), 2);
}

TEST(Forecast, WithoutAPredictionTheRooflineCounts) {
  Forecast f(1);
  EXPECT_GT(f.expected_ms(kernel(0)), 1);
  f.learn(0, kernel(0), 3);
  EXPECT_NEAR(f.expected_ms(kernel(0)), 3, 1e-9);
  EXPECT_TRUE(f.at_limit(1.01));
  EXPECT_FALSE(f.at_limit(1.1));
  EXPECT_FALSE(f.at_limit(0.5));  // the roofline is wrong
  EXPECT_DOUBLE_EQ(Forecast(0).gain_ms(kernel(0), 7), 7);
}

TEST(Forecast, ExpectedImprovement) {
  EXPECT_DOUBLE_EQ(expected_improvement(2, 1, 0), 1);
  EXPECT_DOUBLE_EQ(expected_improvement(1, 2, 0), 0);
  EXPECT_NEAR(expected_improvement(1, 1, 0.5), 0.5 / std::sqrt(2 * M_PI), 1e-9);
  EXPECT_NEAR(expected_improvement(10, 1, 0.5), 9, 1e-6);
}

}  // namespace
}  // namespace tessera::tune
