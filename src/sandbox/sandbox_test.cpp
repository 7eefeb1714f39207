// Escapes, each beside a control: what the same program does without the sandbox.
#include "sandbox/sandbox.h"

#include <fmt/ranges.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include "base/files.h"

namespace tessera::sandbox {
namespace {
namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::string_view program = R"(
#include <arpa/inet.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
static int said(bool done) { puts(done ? "DONE" : "REFUSED"); fflush(stdout); return done ? 0 : 1; }
int main(int, char** w) {
  const std::string what = w[1];
  char text[64];
  if (what == "read") { int f = open(w[2], O_RDONLY); return said(f >= 0 && read(f, text, 1) == 1); }
  if (what == "write") { int f = open(w[2], O_WRONLY | O_CREAT, 0644); return said(f >= 0 && write(f, "x", 1) == 1); }
  if (what == "socket") return said(socket(AF_INET, SOCK_STREAM, 0) >= 0);
  if (what == "local") {
    const int f = socket(AF_UNIX, atoi(w[3]), 0);
    if (f < 0) return said(false);
    puts("MADE");
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    strcpy(to.sun_path, w[2]);
    return said(connect(f, (sockaddr*)&to, sizeof to) == 0);
  }
  if (what == "talk") {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    strcpy(at.sun_path + 1, "talk");  // in no folder: of the network alone
    const int a = socket(AF_UNIX, SOCK_STREAM, 0), b = socket(AF_UNIX, SOCK_STREAM, 0);
    return said(bind(a, (sockaddr*)&at, sizeof at) == 0 && listen(a, 1) == 0 && connect(b, (sockaddr*)&at, sizeof at) == 0);
  }
  if (what == "trace") return said(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
  if (what == "kill") { said(kill(atoi(w[2]), SIGKILL) == 0); return 0; }
  if (what == "secret") { const char* s = getenv("TESSERA_TEST_SECRET"); return said(s != nullptr); }
  if (what == "daemon") {
    if (fork() == 0) { setsid(); if (fork() == 0) { close(0); close(1); close(2); sleep(atoi(w[2])); } _exit(0); }
    usleep(100000);
    return said(true);
  }
  if (what == "forks") for (;;) fork();
  if (what == "fill") for (int f = open(w[2], O_WRONLY | O_CREAT, 0644);;) {
    static char block[1 << 20];
    if (write(f, block, sizeof block) < 0) return said(false);
  }
  if (what == "memory") for (;;) { memset(malloc(8 << 20), 1, 8 << 20); usleep(1000); }
  if (what == "spin") for (;;) ;
  return 9;
}
)";

struct Ran {
  Finished done;
  Report report;
};

class Escapes : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const sandbox::Mechanism& m : machine().mechanisms) {
      if (m.name == GetParam() && !m.works) GTEST_SKIP() << m.name << ": " << m.fault;
    }
    ASSERT_EQ(machine().fault, "");
    // Where any user may look: without a namespace of files another user comes to it this way.
    ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
    fs::create_directories(inside_);
    ASSERT_NO_FATAL_FAILURE(build_once());
    fs::copy_file(built_->path() / "program", folder_.path() / "program");
    write_file_atomically(secret_, "secret\n");
  }

  static void build_once() {
    if (built_) return;
    auto folder = std::make_unique<TemporaryFolder>("tessera-escape");
    write_file_atomically(folder->path() / "program.cpp", program);
    const Finished done = tessera::run(
        {.argv = {"c++", "-O1", "-w", "-o", "program", "program.cpp"}, .folder = folder->path()},
        std::chrono::seconds(60));
    ASSERT_TRUE(done.ok()) << done.output;
    built_ = std::move(folder);
  }
  static void TearDownTestSuite() { built_.reset(); }

  Command command(const std::vector<std::string>& words) {
    Command c{.argv = words, .folder = inside_};
    c.argv.insert(c.argv.begin(), (folder_.path() / "program").string());
    return c;
  }
  Finished free(const std::vector<std::string>& words) {
    return tessera::run(command(words), std::chrono::seconds(20));
  }
  Policy policy() {
    Policy p = usual();
    p.mechanism = GetParam();
    p.readable.push_back((folder_.path() / "program").string());
    p.writable = {inside_.string()};
    p.report = (folder_.path() / "report.json").string();
    p.processes = 64;
    p.memory_bytes = 256 << 20;
    p.folder_bytes = 16 << 20;
    p.wall_seconds = 20;
    return p;
  }
  Ran confined(const Command& c, const Policy& p) {
    auto made = confine(c, p);
    EXPECT_TRUE(made) << made.error().message;
    Ran out{.done = tessera::run(*made, std::chrono::seconds(40))};
    const auto report = read_report(p.report);
    EXPECT_TRUE(report) << out.done.output;
    if (report) out.report = *report;
    return out;
  }
  Ran confined(const std::vector<std::string>& words) { return confined(command(words), policy()); }

  static inline std::unique_ptr<TemporaryFolder> built_;
  TemporaryFolder folder_{"tessera-escapes"};
  fs::path inside_ = folder_.path() / "inside";
  fs::path secret_ = folder_.path() / "secret";
};

TEST_P(Escapes, WhatIsAllowedIsDone) {
  const Ran ran = confined({"write", (inside_ / "own").string()});
  EXPECT_TRUE(ran.done.ok()) << ran.done.output;
  EXPECT_EQ(told(ran.report), "");
  EXPECT_EQ(read_file(inside_ / "own"), "x");
  struct stat st{};
  ASSERT_EQ(::stat((inside_ / "own").c_str(), &st), 0);
  EXPECT_EQ(st.st_uid, ::getuid()) << "what was given away came back";
}

TEST_P(Escapes, ReadingAFileOutside) {
  EXPECT_THAT(free({"read", secret_.string()}).output, HasSubstr("DONE"));
  const Ran ran = confined({"read", secret_.string()});
  EXPECT_THAT(ran.done.output, HasSubstr("REFUSED"));
  EXPECT_EQ(told(ran.report), "it tried to read " + secret_.string());
}

TEST_P(Escapes, ReadingTheHomeFolder) {
  const char* home = std::getenv("HOME");
  if (home == nullptr) GTEST_SKIP() << "there is no home folder";
  const std::string file = std::string(home) + "/.tessera_test_" + std::to_string(::getpid());
  std::ofstream(file) << "secret";
  EXPECT_THAT(free({"read", file}).output, HasSubstr("DONE"));
  const Ran ran = confined({"read", file});
  fs::remove(file);
  EXPECT_THAT(ran.done.output, HasSubstr("REFUSED"));
  EXPECT_EQ(told(ran.report), "it tried to read " + file);
}

TEST_P(Escapes, WritingBesideTheFolder) {
  const std::string beside = (folder_.path() / "beside").string();
  EXPECT_THAT(free({"write", beside}).output, HasSubstr("DONE"));
  fs::remove(beside);
  const Ran ran = confined({"write", beside});
  // In a root folder of its own that belongs to its user it writes there, and that is gone after.
  if (::geteuid() == 0 || GetParam() != "namespaces") {
    EXPECT_THAT(ran.done.output, HasSubstr("REFUSED"));
  }
  EXPECT_FALSE(fs::exists(beside));
  EXPECT_EQ(told(ran.report), "it tried to write " + beside);
}

TEST_P(Escapes, OpeningASocket) {
  EXPECT_THAT(free({"socket"}).output, HasSubstr("DONE"));
  const Ran ran = confined({"socket"});
  EXPECT_THAT(ran.done.output, HasSubstr("REFUSED"));
  EXPECT_EQ(told(ran.report), "it tried to use the network (socket)");
}

/// CUDA cannot start where it is refused a local socket, which it connects to nothing.
TEST_P(Escapes, LocalSocketsAreMadeForGpusAndReachNothing) {
  const std::string at = (inside_ / "socket").string();
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(at.size(), sizeof address.sun_path);
  std::copy(at.begin(), at.end(), address.sun_path);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::chmod(at.c_str(), 0777), 0);
  ASSERT_EQ(::listen(listener, 4), 0);
  const auto attempt = [&](int type, bool gpu) {
    Policy p = policy();
    if (gpu) p.devices = {"/dev/null"};
    return confined(command({"local", at, std::to_string(type)}), p);
  };
  EXPECT_THAT(free({"local", at, std::to_string(SOCK_STREAM)}).output, HasSubstr("DONE"));
  const Ran ran = attempt(SOCK_STREAM, true);
  EXPECT_EQ(ran.done.output, "MADE\nREFUSED\n");
  EXPECT_EQ(told(ran.report), "it tried to use the network (connect " + at + ")");
  EXPECT_EQ(attempt(SOCK_DGRAM, true).done.output, "REFUSED\n");
  EXPECT_EQ(attempt(SOCK_STREAM, false).done.output, "REFUSED\n");
  ::close(listener);
}

/// A program whose processes talk to each other; the machine's sockets stay out of reach.
TEST_P(Escapes, LocalSocketsOfItsOwn) {
  Policy p = policy();
  if (GetParam() != "namespaces") {
    ASSERT_FALSE(allow_local_sockets(p));
    return;
  }
  EXPECT_EQ(confined(command({"talk"}), p).done.output, "REFUSED\n");
  const std::vector<std::string> readable = p.readable;
  p.readable.push_back("/run/nvidia-persistenced");  // a socket of the machine lies there
  ASSERT_TRUE(allow_local_sockets(p));
  EXPECT_EQ(p.readable, readable);
  EXPECT_EQ(confined(command({"talk"}), p).done.output, "DONE\n");
  const std::string at = (folder_.path() / "socket").string();
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(at.size(), sizeof name.sun_path);
  std::copy(at.begin(), at.end(), name.sun_path);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::listen(listener, 8), 0);
  ASSERT_EQ(::chmod(at.c_str(), 0777), 0);
  EXPECT_EQ(confined(command({"local", at, std::to_string(SOCK_STREAM)}), p).done.output,
            "MADE\nREFUSED\n");
  ::close(listener);
}

TEST_P(Escapes, TracingAndSecretsOfTheEnvironment) {
  EXPECT_THAT(free({"trace"}).output, HasSubstr("DONE"));
  EXPECT_THAT(confined({"trace"}).done.output, HasSubstr("REFUSED"));
  ::setenv("TESSERA_TEST_SECRET", "1", 1);
  EXPECT_THAT(free({"secret"}).output, HasSubstr("DONE"));
  EXPECT_THAT(confined({"secret"}).done.output, HasSubstr("REFUSED"));
  ::unsetenv("TESSERA_TEST_SECRET");
}

TEST_P(Escapes, ReadingTheMemoryOfAnotherProcess) {
  for (const char* what : {"environ", "mem"}) {
    const std::string file = fmt::format("/proc/{}/{}", ::getpid(), what);
    const bool environment = std::string(what) == "environ";
    if (environment) {
      EXPECT_THAT(free({"read", file}).output, HasSubstr("DONE"));
    }
    const Ran ran = confined({"read", file});
    EXPECT_THAT(ran.done.output, HasSubstr("REFUSED"));
    EXPECT_EQ(told(ran.report), "it tried to get at another process (" + file + ")");
  }
}

TEST_P(Escapes, KillingTheParent) {
  const Ran ran = confined({"kill", std::to_string(::getpid())});  // we live on, or nobody reads it
  EXPECT_THAT(ran.done.output, HasSubstr("REFUSED"));
  const Ran all = confined({"kill", "-1"});
  EXPECT_EQ(told(all.report), "it tried to end other processes (kill -1)");
}

bool lives(const std::string& words) {
  for (const auto& e : fs::directory_iterator("/proc")) {
    std::ifstream in(e.path() / "cmdline");
    std::string line;
    std::getline(in, line);  // the process may be gone meanwhile: then it is empty
    std::replace(line.begin(), line.end(), '\0', ' ');
    if (line.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST_P(Escapes, LeavingADaemonBehind) {
  const std::string free_one = std::to_string(3000000 + ::getpid());
  EXPECT_TRUE(free({"daemon", "7"}).ok());
  EXPECT_TRUE(lives("daemon 7")) << "the control leaves one, for seven seconds";
  const Ran ran = confined({"daemon", free_one});
  EXPECT_THAT(ran.done.output, HasSubstr("DONE"));
  EXPECT_FALSE(lives("daemon " + free_one));
}

TEST_P(Escapes, AForkBomb) {  // without a control: it would take the machine
  const Ran ran = confined({"forks"});
  EXPECT_EQ(ran.report.limit, "processes");
  // Without root and without a namespace the kernel's limit is of all that the user runs, which
  // changes meanwhile: the watcher ends them, a look later.
  if (::geteuid() == 0 || GetParam() == "namespaces") {
    EXPECT_LE(ran.report.peak_processes, 64);
  }
  EXPECT_GT(ran.report.peak_processes, 8);
  // By its path: the same test of another mechanism may run beside this one.
  EXPECT_FALSE(lives((folder_.path() / "program").string() + " forks"));
}

TEST_P(Escapes, FillingTheDisk) {
  const Ran ran = confined({"fill", (inside_ / "big").string()});
  EXPECT_EQ(ran.report.limit, "disk");
  fs::remove(inside_ / "big");
  Policy p = policy();
  p.file_bytes = 1 << 20;
  EXPECT_EQ(confined(command({"fill", (inside_ / "other").string()}), p).done.signal, SIGXFSZ);
  EXPECT_EQ(fs::file_size(inside_ / "other"), 1U << 20);
}

TEST_P(Escapes, TakingAllMemoryAndTime) {
  const Ran ran = confined({"memory"});
  EXPECT_EQ(ran.report.limit, "memory");
  EXPECT_GT(ran.report.peak_memory, 256 << 20);
  Policy p = policy();
  p.wall_seconds = 1;
  EXPECT_EQ(confined(command({"spin"}), p).report.limit, "time");
  p.wall_seconds = 20;
  p.cpu_seconds = 1;
  EXPECT_NE(confined(command({"spin"}), p).done.signal, 0);
}

TEST_P(Escapes, ACompilersIncludeOfASecret) {
  const auto source = inside_ / "k.cpp";
  write_file_atomically(source,
                        fmt::format("#include \"{}\"\nint main() {{}}\n", secret_.string()));
  const Command c{.argv = {"/usr/bin/c++", "-E", source.string()}, .folder = inside_};
  EXPECT_THAT(tessera::run(c, std::chrono::seconds(20)).output, HasSubstr("\nsecret\n"));
  const Ran ran = confined(c, policy());
  EXPECT_FALSE(ran.done.ok());
  EXPECT_THAT(ran.done.output, testing::Not(HasSubstr("\nsecret\n")));
  EXPECT_EQ(told(ran.report), "it tried to read " + secret_.string());
}

INSTANTIATE_TEST_SUITE_P(Each, Escapes, testing::Values("namespaces", "landlock"),
                         [](const auto& p) { return p.param; });

TEST(Sandbox, WithoutAMechanismNothingRuns) {
  Policy p = usual();
  p.mechanism = "";
  const auto made = confine({.argv = {"/bin/true"}}, p);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, "TS0717");
}

TEST(Sandbox, AnUnknownMechanismRefuses) {
  Policy p = usual();
  p.mechanism = "hope";
  const auto made = confine({.argv = {"/bin/true"}}, p);
  ASSERT_TRUE(made);
  const Finished done = tessera::run(*made, std::chrono::seconds(20));
  EXPECT_EQ(done.exit_code, 126);
  EXPECT_THAT(done.output, HasSubstr("there is no mechanism hope"));
}

TEST(Sandbox, PoliciesAndReportsComeBack) {
  Policy p = usual();
  p.devices = {"/dev/nvidia0"};
  EXPECT_EQ(to_json(policy_from_json(to_json(p))), to_json(p));
  const Report r{.attempts = {{.what = "read", .detail = "/x", .at = 3}}, .limit = "disk"};
  EXPECT_EQ(to_json(report_from_json(to_json(r))), to_json(r));
  EXPECT_EQ(told(r), "it tried to read /x; it was ended at its limit of disk");
  EXPECT_EQ(told(r, 4), "it was ended at its limit of disk");
}

}  // namespace
}  // namespace tessera::sandbox
