#include "base/process.h"

#include <fstream>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "base/files.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;

TEST(Process, CollectsOutputAndExitCode) {
  const Finished f = run({.argv = {"sh", "-c", "echo out; echo err >&2; exit 3"}}, 10s);
  EXPECT_EQ(f.exit_code, 3);
  EXPECT_EQ(f.output, "out\nerr\n");
  EXPECT_FALSE(f.ok());
}

TEST(Process, KillsTheWholeGroupAtTheLimit) {
  const Finished f = run({.argv = {"sh", "-c", "sleep 60 & sleep 60"}}, 200ms);
  EXPECT_TRUE(f.timed_out);
  EXPECT_LT(f.seconds, 10);
}

TEST(Process, ReportsTheSignal) {
  const Finished f = run({.argv = {"sh", "-c", "kill -SEGV $$"}}, 10s);
  EXPECT_EQ(f.signal, 11);
  EXPECT_EQ(f.exit_code, -1);
}

// Whether a process still runs: a zombie, which nobody reaps where no init does, does not.
bool runs(int pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string number;
  std::string name;
  std::string state;
  return static_cast<bool>(in >> number >> name >> state) && state != "Z";
}

bool ends_within(int pid, std::chrono::seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (runs(pid)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

// A parent that starts a child which listens to nobody, tells its pid, and waits: {parent, child}.
std::pair<int, int> start_family(void (*then)()) {
  int fd[2];
  if (::pipe(fd) != 0) return {-1, -1};
  const int parent = ::fork();
  if (parent == 0) {
    LineChild child({.argv = {"sh", "-c", "echo $$; exec sleep 1000"}}, "/dev/null");
    const int pid = std::stoi(child.read_line(10s).value_or("-1"));
    const bool told = ::write(fd[1], &pid, sizeof pid) == sizeof pid;
    if (told) then();
    ::_exit(1);
  }
  int child = -1;
  const bool heard = ::read(fd[0], &child, sizeof child) == sizeof child;
  ::close(fd[0]);
  ::close(fd[1]);
  return {parent, heard ? child : -1};
}

TEST(Process, ChildDiesWithAKilledParent) {
  const auto [parent, child] = start_family([] { ::pause(); });
  ASSERT_GT(child, 0);
  ASSERT_TRUE(runs(child));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_TRUE(ends_within(child, 10s));
}

TEST(Process, AllChildrenAreKilledAtOnce) {
  const auto [parent, child] = start_family([] {
    kill_all_children();
    ::pause();
  });
  ASSERT_GT(child, 0);
  EXPECT_TRUE(ends_within(child, 10s));
  EXPECT_TRUE(runs(parent));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
}

TEST(Process, MissingProgramThrowsWithItsName) {
  try {
    run({.argv = {"no-such-program-of-tessera"}}, 1s);
    FAIL();
  } catch (const std::system_error& e) {
    EXPECT_NE(std::string(e.what()).find("no-such-program-of-tessera"), std::string::npos);
  }
}

TEST(Process, EnvironmentIsAddedAndReplaced) {
  const Finished f =
      run({.argv = {"sh", "-c", "echo $HOME $TSR_X"}, .env = {{"HOME", "/h"}, {"TSR_X", "1"}}}, 5s);
  EXPECT_EQ(f.output, "/h 1\n");
}

TEST(Process, GivesWayAsFarAsItIsTold) {
  const auto niceness = [](int more) {
    const Finished f =
        run({.argv = {"sh", "-c", "nice"}, .niceness = more}, std::chrono::seconds(10));
    return std::stoi(f.output);
  };
  EXPECT_EQ(niceness(5), std::min(19, niceness(0) + 5));
}

TEST(LineChild, TalksInLinesAndTellsHowItEnded) {
  const TemporaryFolder folder;
  LineChild child({.argv = {"sh", "-c", "read a; echo got $a; read b; exit 7"}},
                  folder.path() / "log");
  ASSERT_TRUE(child.write_line("one"));
  EXPECT_EQ(child.read_line(5s), "got one");
  EXPECT_EQ(child.read_line(100ms), std::nullopt);
  EXPECT_TRUE(child.timed_out());
  ASSERT_TRUE(child.write_line("two"));
  EXPECT_EQ(child.read_line(5s), std::nullopt);
  EXPECT_FALSE(child.timed_out());
  EXPECT_EQ(child.how_it_ended(), "exit 7");
}

TEST(Files, AtomicWriteReplacesAndLeavesNoTemporary) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "a" / "f", "one");
  write_file_atomically(folder.path() / "a" / "f", "two");
  EXPECT_EQ(read_file(folder.path() / "a" / "f"), "two");
  int entries = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(folder.path() / "a"))
    ++entries;
  EXPECT_EQ(entries, 1);
}

TEST(Files, WritingToAFullDeviceThrows) {
  EXPECT_THROW(write_file_atomically("/dev/full/x", "text"), std::filesystem::filesystem_error);
}

}  // namespace
}  // namespace tessera
