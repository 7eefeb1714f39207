#include "base/process.h"

#include <gtest/gtest.h>
#include <system_error>

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
