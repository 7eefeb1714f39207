#include "base/elsewhere.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace tessera {
namespace {
using std::chrono::milliseconds;

void spin(milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

double while_idle() {
  const Elsewhere others;
  std::this_thread::sleep_for(milliseconds(600));
  return others.processors();
}

double while_this_and_a_child_spin() {
  const Elsewhere others;
  const pid_t child = ::fork();
  if (child == 0) {
    spin(milliseconds(600));
    ::_exit(0);
  }
  spin(milliseconds(600));
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  return others.processors();
}

/// What this process and its children do is not elsewhere. Other tests run beside this one and
/// change what they take, so that one quiet moment of several is enough.
TEST(Elsewhere, OwnWorkDoesNotCount) {
  double least = 1e6;
  for (int i = 0; i < 8 && least > 0.8; ++i) {
    const double idle = while_idle();
    least = std::min(least, while_this_and_a_child_spin() - idle);
  }
  EXPECT_LT(least, 0.8);
}

/// What a child sees of this process, which spins meanwhile.
double seen_by_a_child(bool serves) {
  int told[2];
  EXPECT_EQ(::pipe(told), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (serves) Elsewhere::serve(::getppid());
    const double seen = while_idle();
    const bool whole = ::write(told[1], &seen, sizeof seen) == sizeof seen;
    ::_exit(whole ? 0 : 1);
  }
  spin(milliseconds(700));
  double seen = 0;
  EXPECT_EQ(::read(told[0], &seen, sizeof seen), static_cast<ssize_t>(sizeof seen));
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(told[0]);
  ::close(told[1]);
  return seen;
}

/// One quiet moment of several is enough, as above.
TEST(Elsewhere, WhomAProcessServesIsNoneOfTheOthers) {
  double most = 0;
  for (int i = 0; i < 8 && most < 0.5; ++i)
    most = std::max(most, seen_by_a_child(false) - seen_by_a_child(true));
  EXPECT_GT(most, 0.5);
}

/// A process whose parent has ended is nobody's below this one.
TEST(Elsewhere, WorkOfOthersCounts) {
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t other = ::fork();
    if (other == 0) {
      ::setsid();
      spin(std::chrono::seconds(20));
      ::_exit(0);
    }
    ::_exit(::write(told[1], &other, sizeof other) == sizeof other ? 0 : 1);
  }
  pid_t other = 0;
  ASSERT_EQ(::read(told[0], &other, sizeof other), static_cast<ssize_t>(sizeof other));
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const Elsewhere busy;
  std::this_thread::sleep_for(milliseconds(1500));
  const double seen = busy.processors();
  const std::vector<Elsewhere::Busy> busiest = busy.busiest(64);
  ::kill(other, SIGKILL);
  EXPECT_GT(seen, 0.2);
  const auto is_it = [&](const Elsewhere::Busy& b) { return b.pid == other; };
  const auto found = std::find_if(busiest.begin(), busiest.end(), is_it);
  ASSERT_NE(found, busiest.end());
  EXPECT_GE(found->processors, 0.1);
  EXPECT_FALSE(found->program.empty());
}

TEST(Elsewhere, NearTiesAreOpenWhereOthersDisturb) {
  const Spread ours{1.0, 0.01}, near{1.06, 0.01}, far{1.08, 0.01};
  EXPECT_TRUE(near_tie_under_load(ours, near, 1e6));
  EXPECT_TRUE(near_tie_under_load(near, ours, 1e6));
  EXPECT_FALSE(near_tie_under_load(ours, near, 0));
  EXPECT_FALSE(near_tie_under_load(ours, far, 1e6));
  EXPECT_TRUE(near_tie_under_load(ours, {1.08, 0.1}, 1e6)) << "its own spread counts";
}

TEST(Elsewhere, AQuarterOfTheProcessorsDisturbs) {
  EXPECT_FALSE(Elsewhere::disturbs(0));
  EXPECT_TRUE(Elsewhere::disturbs(1e6));
}

}  // namespace
}  // namespace tessera
