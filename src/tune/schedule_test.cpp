#include "tune/schedule.h"

#include <gmock/gmock.h>

namespace tessera::tune {
namespace {

using ::testing::ElementsAre;

// A clock that only steps move, and what happened in which order.
struct World {
  double time = 0;
  std::atomic<bool> stop = false;
  std::vector<std::string> log;
};

// A search that says what it will do: steps that take seconds and save milliseconds.
class Fake : public Journey {
 public:
  struct Does {
    Offer offer;
    double saves = 0;
    std::function<void()> also = {};
  };
  Fake(World& w, std::string name, std::vector<Does> steps)
      : w_(w), name_(std::move(name)), steps_(std::move(steps)) {}

  std::optional<Offer> offer(double seconds_left) override {
    if (next_ >= steps_.size()) return std::nullopt;
    const Offer& o = steps_[next_].offer;
    return seconds_left > 0 && o.seconds > seconds_left ? std::nullopt : std::optional(o);
  }
  void advance(double) override {
    const Does& d = steps_[next_++];
    w_.time += d.offer.seconds;
    w_.log.push_back(name_ + " " + std::string(name_of(d.offer.round)));
    if (d.saves > saved_) {
      saved_ = d.saves;
      settled_ = false;
    }
    if (d.also) d.also();
  }
  [[nodiscard]] double settle_seconds() const override { return settled_ ? 0 : settling; }
  [[nodiscard]] double saved_ms() const override { return saved_; }
  void settle(double seconds) override {
    w_.time += settling;
    w_.log.push_back(name_ + (seconds > 0 ? " settled in time" : " settled"));
    settled_ = true;
  }
  void ready(std::size_t step) { steps_[step].offer.waiting = false; }
  double settling = 0.25;

 private:
  World& w_;
  const std::string name_;
  std::vector<Does> steps_;
  std::size_t next_ = 0;
  double saved_ = 0;
  bool settled_ = true;
};

Fake::Does free_step(double gain) {
  return {{.round = Round::free, .gain_ms = gain, .seconds = 1}};
}
Fake::Does quick(double gain, double seconds = 3, bool first = true) {
  return {{.round = Round::quick, .first = first, .gain_ms = gain, .seconds = seconds}, gain};
}
Fake::Does slow(double gain, double seconds = 40) {
  return {{.round = Round::slow, .first = true, .gain_ms = gain, .seconds = seconds}, gain};
}

void go(World& w, std::vector<Journey*> journeys, double seconds = 0) {
  run(journeys, {.seconds = seconds,
                 .stop = &w.stop,
                 .now = [&] { return w.time; },
                 .wait = [&](double s) { w.time += s; },
                 .ending = [&] { w.log.emplace_back("builds end"); }});
}

TEST(Schedule, FreeAndFirstQuickCandidatesThenAllOthersByGainASecond) {
  World w;
  Fake a(w, "a", {free_step(1), quick(0.9), slow(8)});
  Fake b(w, "b", {free_step(2), slow(4), slow(2)});
  Fake c(w, "c", {free_step(0.1), quick(0.2)});
  go(w, {&a, &b, &c});
  // c is not looked at before a's kernel, which promises more.
  EXPECT_THAT(w.log,
              ElementsAre("b free", "a free", "a quick", "c free", "c quick", "a slow", "b slow",
                          "b slow", "builds end", "a settled", "b settled", "c settled"));
}

TEST(Schedule, FurtherQuickCandidatesGiveWayToWhatGainsMoreASecond) {
  World w;
  Fake a(w, "a", {quick(1), quick(0.01, 3, false)});
  Fake b(w, "b", {slow(4)});
  go(w, {&a, &b});
  EXPECT_THAT(w.log,
              ElementsAre("a quick", "b slow", "a quick", "builds end", "b settled", "a settled"));
}

TEST(Schedule, SecondsGoWhereTheyGainMostAndAreKeptForSettling) {
  World w;
  Fake a(w, "a", {free_step(1), slow(10), slow(9)});
  Fake b(w, "b", {free_step(1), slow(2)});
  go(w, {&a, &b}, 60);
  EXPECT_THAT(w.log, ElementsAre("a free", "b free", "a slow", "builds end", "a settled in time"));
}

TEST(Schedule, WhatCannotBeDoneInTimeIsNotBegun) {
  World w;
  Fake a(w, "a", {slow(10)});
  Fake b(w, "b", {quick(1)});
  go(w, {&a, &b}, 30);
  EXPECT_THAT(w.log, ElementsAre("b quick", "builds end", "b settled in time"));
}

TEST(Schedule, AtTheEndOfTheSecondsTheDearestAreSettledAndTheOverrunIsBounded) {
  World w;
  Fake a(w, "a", {quick(1)});
  Fake b(w, "b", {quick(3)});
  Fake c(w, "c", {quick(2), quick(1, 20)});
  for (Fake* f : {&a, &b, &c}) f->settling = 5;
  go(w, {&a, &b, &c}, 10);
  EXPECT_THAT(w.log, ElementsAre("b quick", "c quick", "builds end", "b settled in time",
                                 "c settled in time"));
  EXPECT_LE(w.time, 10 + 2 + 5);  // and one running step
}

TEST(Schedule, AStopSettlesWhatThereIs) {
  World w;
  Fake::Does stops = quick(1);
  stops.also = [&] { w.stop = true; };
  Fake a(w, "a", {stops, quick(1)});
  Fake b(w, "b", {slow(1)});
  go(w, {&a, &b});
  EXPECT_THAT(w.log, ElementsAre("a quick", "builds end", "a settled in time"));
}

TEST(Schedule, MeasuresAndSettlesWhileOthersAreBuilt) {
  World w;
  Fake::Does coming = slow(5, 1);
  coming.offer.waiting = true;
  Fake a(w, "a", {coming});
  Fake b(w, "b", {quick(1)});
  std::vector<Journey*> both = {&a, &b};
  run(both, {.stop = &w.stop,
             .now = [&] { return w.time; },
             .wait =
                 [&](double) {
                   w.log.emplace_back("wait");
                   a.ready(0);
                 }});
  EXPECT_THAT(w.log, ElementsAre("b quick", "b settled", "wait", "a slow", "a settled"));
}

TEST(Schedule, BetweenAllStepsOthersMayLookAtTheBest) {
  World w;
  Fake a(w, "a", {quick(1), quick(2)});
  std::vector<Journey*> one = {&a};
  std::vector<double> seen;
  run(one, {.stop = &w.stop,
            .now = [&] { return w.time; },
            .between = [&](double) { seen.push_back(a.saved_ms()); },
            .wait = [](double) {}});
  EXPECT_THAT(seen, ElementsAre(0, 1, 2));
}

TEST(Schedule, NothingToDoIsNothingDone) {
  World w;
  w.stop = true;
  Fake a(w, "a", {quick(1)});
  go(w, {&a});
  EXPECT_THAT(w.log, ElementsAre("builds end"));
}

}  // namespace
}  // namespace tessera::tune
