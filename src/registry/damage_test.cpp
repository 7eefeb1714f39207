// What a registry survives: writers at once, SIGKILL, a full disk, flipped and missing bytes, a
// place without write access.
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "registry/registry.h"

namespace tessera::registry {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

Key key(const std::string& name) {
  return {name, "bf16", "H200", measuring_policy()};
}

Entry entry(const std::string& name, std::size_t bytes = 20000) {
  Entry e{.key = key(name), .rule = "gemm", .arch = "sm_90a"};
  e.toolchain = "t";
  e.created = "2026-01-01T00:00:00Z";
  std::string text;
  std::mt19937 random(std::hash<std::string>{}(name));
  while (text.size() < bytes) text += static_cast<char>('a' + random() % 26);
  kernel::Winner& w = e.winners.emplace_back();
  w.candidate = {.realizer = "tile_gemm",
                 .source = toolchain::Source{.name = "k", .text = text, .arch = "sm_90a"}};
  w.candidate.launches = {{}};
  w.evidence.ms = 1.0;
  return e;
}

// Runs `body` in a child and returns its wait status.
int in_child(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

std::set<std::string> names(Registry& r) {
  std::set<std::string> out;
  auto listed = r.list("");
  EXPECT_TRUE(listed.has_value()) << to_text(listed.error());
  if (!listed) return out;
  for (const Entry& e : *listed) out.insert(e.key.signature);
  return out;
}

class DamageTest : public ::testing::Test {
 protected:
  TemporaryFolder folder;
  fs::path file = folder.path() / "registry.sqlite";

  void fill(int n) {
    auto r = Registry::open(file);
    ASSERT_TRUE(r) << to_text(r.error());
    for (int i = 0; i < n; ++i) ASSERT_TRUE((*r)->store(entry(fmt::format("e{}", i))));
    ASSERT_TRUE((*r)->note_trial(key("search"), "t", "c1", {{"ms", 2}}));
  }
  // Opens, expects all n entries unchanged and the trial, and returns the note.
  std::string expect_all(int n, const fs::path& where = {}) {
    auto r = Registry::open(where.empty() ? file : where);
    EXPECT_TRUE(r.has_value()) << to_text(r.error());
    if (!r) return "";
    auto listed = (*r)->list("");
    EXPECT_TRUE(listed.has_value());
    EXPECT_EQ(listed->size(), static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) {
      auto found = (*r)->show(key(fmt::format("e{}", i)).hash());
      EXPECT_TRUE(found.has_value()) << i;
      if (found) {
        EXPECT_EQ(to_json(*found), to_json(entry(fmt::format("e{}", i))));
      }
    }
    EXPECT_EQ((*r)->trials(key("search"), "t")->size(), 1u);
    EXPECT_TRUE((*r)->store(entry("e0")));  // and it takes new ones
    return (*r)->mended();
  }
  bool kept_aside() const {
    for (const auto& f : fs::directory_iterator(folder.path())) {
      if (f.path().filename().string().find(".damaged-") != std::string::npos) return true;
    }
    return false;
  }
  void flip(const fs::path& path, std::size_t from, std::size_t count) const {
    std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
    for (std::size_t i = from; i < from + count; ++i) {
      f.seekg(static_cast<std::streamoff>(i));
      const char c = static_cast<char>(~f.get());
      f.seekp(static_cast<std::streamoff>(i));
      f.put(c);
    }
  }
};

TEST_F(DamageTest, TwoWritersAtOnceLoseNothing) {
  const auto writer = [&](char who) {
    return [&, who] {
      auto r = Registry::open(file);
      if (!r) return 1;
      for (int i = 0; i < 200; ++i) {
        if (!(*r)->store(entry(fmt::format("{}{}", who, i), 500))) return 2;
      }
      return 0;
    };
  };
  const pid_t a = ::fork();
  if (a == 0) ::_exit(writer('a')());
  EXPECT_EQ(in_child(writer('b')), 0);
  int status = 0;
  ::waitpid(a, &status, 0);
  EXPECT_EQ(status, 0);
  auto r = Registry::open(file);
  ASSERT_TRUE(r);
  EXPECT_EQ(names(**r).size(), 400u);
  EXPECT_EQ((*r)->mended(), "");
}

TEST_F(DamageTest, KilledWritersLoseNoCommittedEntry) {
  std::set<std::string> acknowledged;
  std::mt19937 random(7);
  for (int round = 0; round < 12; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(pipe[0]);
      auto r = Registry::open(file);
      for (int i = 0; r && i < 100000; ++i) {
        if (!(*r)->store(entry(fmt::format("r{}-{}", round, i), 9000))) break;
        if (::write(pipe[1], &i, sizeof i) != sizeof i) break;
      }
      ::_exit(1);
    }
    ::close(pipe[1]);
    int i = 0;
    const int enough = 3 + static_cast<int>(random() % 8);
    while (::read(pipe[0], &i, sizeof i) == sizeof i) {
      acknowledged.insert(fmt::format("r{}-{}", round, i));
      if (i >= enough) {
        ::usleep(random() % 4000);
        ::kill(pid, SIGKILL);
      }
    }
    ::close(pipe[0]);
    int status = 0;
    ::waitpid(pid, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
  }
  auto r = Registry::open(file);
  ASSERT_TRUE(r) << to_text(r.error());
  const std::set<std::string> held = names(**r);
  for (const std::string& name : acknowledged) EXPECT_TRUE(held.contains(name)) << name;
  EXPECT_GE(acknowledged.size(), 12u * 4);
  EXPECT_FALSE(kept_aside());
}

TEST_F(DamageTest, FlippedHeaderIsRebuilt) {
  fill(20);
  flip(file, 0, 64);
  const std::string note = expect_all(20);
  EXPECT_THAT(note, HasSubstr("20 entries"));
  EXPECT_THAT(note, HasSubstr(".damaged-"));
  EXPECT_TRUE(kept_aside());
  EXPECT_EQ(expect_all(20), "");
}

TEST_F(DamageTest, FlippedContentIsSeenAndRebuilt) {
  fill(20);
  const std::string bytes = read_file(file);
  const std::string inside = entry("e7").winners.front().candidate.source->text.substr(8000, 40);
  ASSERT_NE(bytes.find(inside), std::string::npos);
  flip(file, bytes.find(inside), 3);  // SQLite itself does not notice this
  EXPECT_THAT(expect_all(20), HasSubstr("did not match their hash"));
}

TEST_F(DamageTest, RandomDamageAnywhereIsRebuilt) {
  std::mt19937 random(11);
  for (int round = 0; round < 8; ++round) {
    fs::remove_all(folder.path());
    fill(12);
    flip(file, random() % (fs::file_size(file) - 3000), 3000);
    expect_all(12);
  }
}

TEST_F(DamageTest, TruncatedFilesAreRebuilt) {
  for (const double part : {0.0, 0.001, 0.3, 0.5, 0.97}) {
    fs::remove_all(folder.path());
    fill(12);
    fs::resize_file(file,
                    static_cast<std::uintmax_t>(part * static_cast<double>(fs::file_size(file))));
    EXPECT_NE(expect_all(12), "") << part;
    fs::remove(file);
    EXPECT_THAT(expect_all(12), HasSubstr("missing")) << part;
  }
}

TEST_F(DamageTest, DamagedCopyIsOnlyACopy) {
  fill(12);
  const fs::path copy = file.string() + ".copy.jsonl";
  flip(copy, 100, 5000);
  EXPECT_EQ(expect_all(12), "");
  fs::resize_file(copy, 1000);
  EXPECT_THAT(expect_all(12), HasSubstr("written again"));
  // Half of each is gone: what one lost, the other has.
  fs::resize_file(file, fs::file_size(file) * 9 / 10);
  EXPECT_NE(expect_all(12), "");
}

TEST_F(DamageTest, LostWriteAheadLogIsRepeatedFromTheCopy) {
  fill(3);
  EXPECT_NE(in_child([&] {
              auto r = Registry::open(file);
              for (int i = 3; i < 9; ++i) {
                if (!(*r)->store(entry(fmt::format("e{}", i)))) return 1;
              }
              ::raise(SIGKILL);  // leaves its log behind
              return 0;
            }),
            0);
  const fs::path log = file.string() + "-wal";
  ASSERT_GT(fs::file_size(log), 0u);
  flip(log, 40, 400);
  EXPECT_THAT(expect_all(9), HasSubstr("interrupted writes were completed"));
}

TEST_F(DamageTest, InterruptedMendingGoesOn) {
  fill(5);
  fs::copy_file(file, file.string() + ".mended");
  flip(file, 0, 2000);
  expect_all(5);
  EXPECT_FALSE(fs::exists(file.string() + ".mended"));
}

// A child that fills the disk under `place`; the parent then frees space and looks.
void expect_full_disk_is_survived(const fs::path& file, const std::function<void()>& limit) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const int status = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    auto r = Registry::open(file);
    if (!r) return 1;
    limit();
    for (int i = 0; i < 4000; ++i) {
      const Status stored = (*r)->store(entry(fmt::format("f{}", i)));
      if (stored) {
        if (::write(pipe[1], &i, sizeof i) != sizeof i) return 2;
        continue;
      }
      if (stored.error().code != "TS0622" || stored.error().helps.empty()) {
        fmt::print(stderr, "{}", to_text(stored.error()));
        return 3;
      }
      return (*r)->list("")->size() >= static_cast<std::size_t>(i) ? 0 : 4;  // reading still works
    }
    return 5;
  });
  ::close(pipe[1]);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  std::set<std::string> acknowledged;
  for (int i = 0; ::read(pipe[0], &i, sizeof i) == sizeof i;)
    acknowledged.insert(fmt::format("f{}", i));
  ::close(pipe[0]);
  fs::remove(file.parent_path() / "ballast");
  auto r = Registry::open(file);
  ASSERT_TRUE(r) << to_text(r.error());
  const std::set<std::string> held = names(**r);
  EXPECT_GE(acknowledged.size(), 5u);
  for (const std::string& name : acknowledged) EXPECT_TRUE(held.contains(name)) << name;
  EXPECT_TRUE((*r)->store(entry("after")));
}

TEST_F(DamageTest, FileSizeLimitSaysWhatToDo) {
  expect_full_disk_is_survived(file, [] {
    const rlimit limit{2 << 20, 2 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  });
}

TEST_F(DamageTest, FullDiskSaysWhatToDo) {
  const fs::path disk = folder.path() / "disk";
  fs::create_directories(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=6m") != 0)
    GTEST_SKIP() << "needs the right to mount";
  std::ofstream(disk / "ballast") << std::string(2 << 20, 'x');
  expect_full_disk_is_survived(disk / "registry.sqlite", [] {});
  ::umount(disk.c_str());
}

TEST_F(DamageTest, OpeningOnAFullDiskSaysWhatToDo) {
  const fs::path disk = folder.path() / "disk";
  fs::create_directories(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "needs the right to mount";
  std::ofstream(disk / "ballast") << std::string(2 << 20, 'x');
  const auto refused = Registry::open(disk / "registry.sqlite");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "TS0622") << to_text(refused.error());
  ::umount(disk.c_str());
}

TEST_F(DamageTest, ReadOnlyPlaceSaysWhatToDo) {
  fill(1);
  ::chmod(folder.path().c_str(), 0555);
  for (const auto& f : fs::directory_iterator(folder.path())) ::chmod(f.path().c_str(), 0444);
  for (const fs::path& place : {file, folder.path() / "deeper" / "registry.sqlite"}) {
    const int status = in_child([&] {
      if (::getuid() == 0 && ::setuid(65534) != 0) return 1;
      const auto refused = Registry::open(place);
      if (refused || refused.error().code != "TS0623") return 2;
      return refused.error().helps.at(0).find("TESSERA_HOME") == std::string::npos ? 3 : 0;
    });
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0) << place;
  }
  ::chmod(folder.path().c_str(), 0755);
}

}  // namespace
}  // namespace tessera::registry
