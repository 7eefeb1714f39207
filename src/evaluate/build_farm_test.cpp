#include "evaluate/build_farm.h"

#include <filesystem>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"

namespace tessera::evaluate {
namespace {
namespace fs = std::filesystem;
using toolchain::Source;

class Farm : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() /
        (std::string("farm_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    // A compiler that writes a library at once, or sleeps as long as its source says.
    const fs::path compiler = folder_ / "compiler";
    fs::create_directories(folder_);
    write_file_atomically(compiler,
                          "#!/bin/sh\n"
                          "while [ $# -gt 1 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n"
                          "sed -n 1p \"$1\" >>" +
                              (folder_ / "order").string() +
                              "\nsleep $(sed -n 2p \"$1\")\necho built >$out\n");
    fs::permissions(compiler, fs::perms::owner_all);
    tools_.cxx = compiler;
    tools_.cxx_version = "test";
    tools_.cutlass = folder_;  // whose headers nobody reads
  }
  void TearDown() override { fs::remove_all(folder_); }

  static Source source(const std::string& name, const std::string& seconds) {
    return {.name = name,
            .language = toolchain::Language::cxx,
            .text = name + "\n" + seconds + "\n",
            .arch = "host",
            .flags = {},
            .links = {}};
  }
  std::vector<std::string> order() const {
    std::error_code none;
    if (!fs::exists(folder_ / "order", none)) return {};
    std::vector<std::string> out = split(read_file(folder_ / "order"), '\n');
    out.pop_back();  // after the last newline
    return out;
  }

  fs::path folder_;
  toolchain::Toolchain tools_;
  const std::atomic<bool> go_ = false;
};

TEST_F(Farm, BuildsWhatIsAskedForBeforeWhatIsExpected) {
  const Source hold = source("hold", "0.5");
  const Source a = source("a", "0");
  const Source b = source("b", "0");
  const Source c = source("c", "0");
  BuildFarm f(tools_, folder_ / "cache", std::chrono::seconds(60), 1);
  f.expect({&hold});
  while (order().empty()) std::this_thread::yield();  // the one compiler is busy from here on
  f.expect({&b, &c});
  const auto built = f.get({&a}, go_);
  ASSERT_TRUE(built[0] && *built[0]);
  EXPECT_TRUE(fs::exists((*built[0])->library));
  const auto rest = f.get({&b, &c}, go_);
  ASSERT_TRUE(rest[0] && *rest[0] && rest[1] && *rest[1]);
  EXPECT_EQ(order(), (std::vector<std::string>{"hold", "a", "b", "c"}));
}

TEST_F(Farm, SaysWhatHasEndedAndWaitsForTheNext) {
  const Source quick = source("quick", "0.2");
  const Source slow = source("slow", "30");
  BuildFarm f(tools_, folder_ / "cache", std::chrono::seconds(60), 2);
  EXPECT_FALSE(f.ended(f.key_of(quick)));
  f.expect({&quick, &slow});
  const auto begin = std::chrono::steady_clock::now();
  while (!f.ended(f.key_of(quick))) f.wait(20);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_FALSE(f.ended(f.key_of(slow)));
  EXPECT_GT(f.running(f.key_of(slow)), 0.1);
  EXPECT_EQ(f.running(f.key_of(quick)), 0);
  f.cancel();
  EXPECT_FALSE(f.ended(f.key_of(slow)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(25));
}

TEST_F(Farm, OfSlowBuildsRunAsManyAsAreAllowedAndQuickOnesGoPast) {
  Source first = source("first", "1");
  Source second = source("second", "0");
  first.cutlass = second.cutlass = true;
  const Source quick = source("quick", "0");
  BuildFarm f(tools_, folder_ / "cache", std::chrono::seconds(60), 3);
  f.slow_at_once(1);
  f.expect({&first, &second, &quick});
  while (!f.ended(f.key_of(quick))) f.wait(1);
  EXPECT_FALSE(f.ended(f.key_of(first)));
  EXPECT_EQ(f.running(f.key_of(second)), 0);
  f.get({&second}, go_);
  EXPECT_EQ(order().back(), "second");
  EXPECT_TRUE(f.ended(f.key_of(first)));
}

TEST_F(Farm, MoreSlowBuildsBeginOnceTheyMay) {
  Source first = source("first", "30");
  Source second = source("second", "0");
  first.cutlass = second.cutlass = true;
  BuildFarm f(tools_, folder_ / "cache", std::chrono::seconds(60), 2);
  f.slow_at_once(1);
  f.expect({&first, &second});
  while (order().empty()) std::this_thread::yield();
  f.slow_at_once(2);
  while (!f.ended(f.key_of(second))) f.wait(1);
  EXPECT_FALSE(f.ended(f.key_of(first)));
}

TEST(SlowBuilds, AreHalfAsManyWhereAWholeRoundWouldEndTooLate) {
  EXPECT_EQ(slow_builds_at_once(16, 0), 16);
  EXPECT_EQ(slow_builds_at_once(16, 120), 16);
  EXPECT_EQ(slow_builds_at_once(16, 60), 8);
  EXPECT_EQ(slow_builds_at_once(1, 20), 1);
}

TEST_F(Farm, DrainsWhatRunsAndBeginsNothingMore) {
  const Source runs = source("runs", "0.5");
  const Source waits = source("waits", "0");
  BuildFarm f(tools_, folder_ / "cache", std::chrono::seconds(60), 1);
  f.expect({&runs, &waits});
  while (order().empty()) std::this_thread::yield();
  f.drain();
  EXPECT_TRUE(f.ended(f.key_of(runs)));
  EXPECT_EQ(order(), std::vector<std::string>{"runs"});
}

TEST_F(Farm, BuildsTheSameSourceOnce) {
  const Source a = source("a", "0.2");
  const Source twin = source("a", "0.2");
  BuildFarm f(tools_, folder_ / "cache", std::chrono::seconds(60), 4);
  f.expect({&a, &twin});
  const auto built = f.get({&a, &twin, &a}, go_);
  for (const auto& b : built) ASSERT_TRUE(b && *b);
  EXPECT_EQ((*built[0])->library, (*built[1])->library);
  EXPECT_EQ(order().size(), 1u);
}

TEST_F(Farm, StopKillsTheCompilersAndTheSameSourceBuildsAgainLater) {
  const Source slow = source("slow", "30");
  const Source waiting = source("waiting", "30");
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<bool> stop = false;
  BuildFarm f(tools_, folder_ / "cache", std::chrono::seconds(60), 1);
  std::jthread stopper([&] {
    while (order().empty()) std::this_thread::yield();
    stop = true;
  });
  const auto built = f.get({&slow, &waiting}, stop);
  EXPECT_FALSE(built[0]);
  EXPECT_FALSE(built[1]);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(order(), std::vector<std::string>{"slow"});
  stop = false;
  stopper = std::jthread([&] {
    while (order().size() < 2) std::this_thread::yield();
    stop = true;
  });
  EXPECT_FALSE(f.get({&slow}, stop)[0]);
  EXPECT_EQ(order(), (std::vector<std::string>{"slow", "slow"}));
}

TEST_F(Farm, WhatIsNotBuiltAtTheDeadlineIsCut) {
  const Source quick = source("quick", "0.1");
  const Source slow = source("slow", "30");
  const auto begin = std::chrono::steady_clock::now();
  BuildFarm f(tools_, folder_ / "cache", std::chrono::seconds(60), 2);
  f.expect({&quick});
  while (!f.ended(f.key_of(quick))) f.wait(20);
  const auto built = f.get({&quick, &slow}, go_,
                           std::chrono::steady_clock::now() + std::chrono::milliseconds(300));
  ASSERT_TRUE(built[0] && *built[0]);
  EXPECT_FALSE(built[1]);
  const Source next = source("next", "0");
  const auto more = f.get({&next}, go_);
  EXPECT_TRUE(more[0] && *more[0]);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST_F(Farm, EndsAtOnceWithItsCompilers) {
  const auto begin = std::chrono::steady_clock::now();
  {
    const Source slow = source("slow", "30");
    BuildFarm f(tools_, folder_ / "cache", std::chrono::seconds(60), 2);
    f.expect({&slow});
    while (order().empty()) std::this_thread::yield();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace tessera::evaluate
