// The watcher: starts the sandbox, answers notices, adds up what is used, and ends all of it.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <ftw.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/launcher/launcher.h"

namespace tessera::sandbox {
namespace {

constexpr std::size_t most_attempts = 64;

Identity identity() {
  if (::geteuid() != 0) return {.uid = ::getuid(), .gid = ::getgid()};
  // Of the range that systemd gives to services without a user; another for every sandbox, so that
  // limits of one do not count the processes of the next.
  const auto own = static_cast<uid_t>(61184 + ::getpid() % 4336);
  return {.uid = own, .gid = own, .dropped = true};
}

Identity owner;
int give(const char* path, const struct stat*, int, struct FTW*) {
  return ::lchown(path, owner.uid, owner.gid);
}
void give_folders(const Policy& policy, const Identity& to) {
  owner = to;
  for (const std::string& f : policy.writable)
    if (::nftw(f.c_str(), give, 16, FTW_PHYS) != 0) refuse_errno("cannot give away " + f);
}

void limit(__rlimit_resource_t what, int64_t most) {
  const rlimit l{static_cast<rlim_t>(most), static_cast<rlim_t>(most)};
  if (::setrlimit(what, &l) != 0) refuse_errno("cannot set a limit");
}

int64_t tasks_of_user() {
  int64_t n = 0;
  std::error_code ec;
  for (const auto& e : std::filesystem::directory_iterator("/proc", ec)) {
    struct stat st{};
    if (::stat(e.path().c_str(), &st) != 0 || st.st_uid != ::getuid()) continue;
    for ([[maybe_unused]] const auto& t :
         std::filesystem::directory_iterator(e.path() / "task", ec))
      ++n;
  }
  return n;
}

void set_limits(const Policy& p, int64_t others) {
  limit(RLIMIT_CORE, 0);
  if (p.cpu_seconds > 0) limit(RLIMIT_CPU, p.cpu_seconds);
  if (p.file_bytes > 0) limit(RLIMIT_FSIZE, p.file_bytes);
  // Of a user who runs other things too the kernel counts those as well, and they come and go: as
  // many again are let through, and it is the watcher's count that ends them.
  if (p.processes > 0) limit(RLIMIT_NPROC, others > 0 ? 2 * p.processes + others : p.processes);
}

void drop(const Identity& who) {
  if (who.dropped && (::setgroups(0, nullptr) != 0 || ::setresgid(who.gid, who.gid, who.gid) != 0 ||
                      ::setresuid(who.uid, who.uid, who.uid) != 0))
    refuse_errno("cannot become another user");
  __user_cap_header_struct head{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct none[2] = {};
  if (::syscall(SYS_capset, &head, none) != 0) refuse_errno("cannot give up capabilities");
  if (who.dropped && (::setuid(0) == 0 || ::geteuid() == 0)) refuse("it is root still");
}

// What a compiler or an interpreter needs of the environment; secrets lie in the rest.
std::vector<std::string> environment(const std::string& temporary) {
  static const char* kept[] = {"PATH=",         "LANG=",          "LC_",
                               "TZ=",           "PYTHONPATH=",    "PYTHONHASHSEED=",
                               "CUDA_",         "NVIDIA_",        "OMP_",
                               "MKL_",          "OPENBLAS_",      "LD_LIBRARY_PATH=",
                               "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "TESSERA_SANDBOX_",
                               "KMP_",          "GOMP_",          "TORCHINDUCTOR_"};
  std::vector<std::string> out = {"HOME=" + temporary, "USER=sandbox", "LOGNAME=sandbox",
                                  "TMPDIR=" + temporary, "PYTHONDONTWRITEBYTECODE=1"};
  for (char** e = environ; *e != nullptr; ++e)
    for (const char* k : kept)
      if (std::strncmp(*e, k, std::strlen(k)) == 0) out.emplace_back(*e);
  return out;
}

struct Start {
  const Policy& policy;
  const Mechanism& mechanism;
  const std::vector<std::string>& argv;
  std::string folder;
  int64_t others = 0;
};

[[noreturn]] void run_confined(const Start& s, const Identity& who, int to_watcher) {
  drop(who);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  set_limits(s.policy, s.others);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) refuse_errno("no_new_privs");
  const bool own_tmp = s.mechanism.clone_flags() != 0;
  const std::string temporary =
      own_tmp || s.policy.writable.empty() ? "/tmp" : s.policy.writable.front();
  if (::chdir(s.folder.c_str()) != 0 && ::chdir(temporary.c_str()) != 0)
    refuse_errno("there is no folder to work in");
  std::vector<std::string> env = environment(temporary);
  std::vector<char*> argv, envp;
  for (const std::string& a : s.argv) argv.push_back(const_cast<char*>(a.c_str()));
  for (std::string& e : env) envp.push_back(e.data());
  argv.push_back(nullptr), envp.push_back(nullptr);
  Policy paths = s.policy;
  if (own_tmp) paths.writable.insert(paths.writable.end(), {"/tmp", "/dev/shm"});
  restrict_paths(paths);
  ::syscall(SYS_close_range, 3U, ~0U, 1U << 2 /* CLOSE_RANGE_CLOEXEC */);
  if (const int listener = install_filter(); listener >= 0) {
    send_descriptor(to_watcher, listener);
    ::close(listener);
  } else if (::send(to_watcher, "", 1, MSG_NOSIGNAL) != 1) {  // there is none
    refuse_errno("the watcher is gone");
  }
  ::execvpe(argv[0], argv.data(), envp.data());
  refuse_errno("cannot start " + s.argv.front());
}

// The first process of the sandbox: reaps, and tells how the confined program ended.
[[noreturn]] void be_first(const Start& s, const Identity& who, int to_watcher) {
  s.mechanism.enter(s.policy, who);
  const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  send_descriptor(to_watcher, proc);
  const pid_t confined = ::fork();
  if (confined < 0) refuse_errno("fork");
  if (confined == 0) run_confined(s, who, to_watcher);
  drop(who);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::prctl(PR_SET_DUMPABLE, who.dropped ? 0 : 1) != 0) refuse_errno("prctl");
  int status = 0;
  for (pid_t gone = 0; gone != confined;) {
    gone = ::wait(&status);
    if (gone < 0 && errno != EINTR) ::_exit(126);
  }
  [[maybe_unused]] const ssize_t n = ::send(to_watcher, &status, sizeof status, MSG_NOSIGNAL);
  ::_exit(0);
}

class Watcher {
 public:
  Watcher(const Policy& policy, pid_t first, int socket, bool own_processes)
      : policy_(policy), first_(first), socket_(socket), own_processes_(own_processes) {}

  int until_end() {
    proc_ = take_descriptor(socket_);
    if (proc_ < 0) return finish(126 << 8);
    listener_ = take_descriptor(socket_);
    int status = 126 << 8;
    while (!hear(status)) look();
    return finish(status);
  }

 private:
  /// True at the end. Waits until the next look at the totals is due.
  bool hear(int& status) {
    pollfd p[2] = {{.fd = socket_, .events = POLLIN}, {.fd = listener_, .events = POLLIN}};
    const double left = next_look_ - monotonic_seconds();
    if (::poll(p, 2, std::max(0, static_cast<int>(left * 1e3) + 1)) < 0) return errno != EINTR;
    if ((p[1].revents & POLLIN) != 0) {
      if (auto tried = answer_notice(listener_, policy_)) note(*tried);
    } else if (p[1].revents != 0) {
      ::close(listener_);  // all who are filtered are gone
      listener_ = -1;
    }
    if (p[0].revents == 0) return false;
    return ::recv(socket_, &status, sizeof status, 0) >= 0;
  }

  void note(Attempt tried) {
    const bool known = std::any_of(
        report_.attempts.begin(), report_.attempts.end(),
        [&](const Attempt& a) { return a.what == tried.what && a.detail == tried.detail; });
    if (known || report_.attempts.size() >= most_attempts) return;
    report_.attempts.push_back(std::move(tried));
    write();
  }

  void look() {
    const double now = monotonic_seconds();
    if (now < next_look_) return;
    const Totals t = totals_of(proc_, own_processes_ ? 1 : first_);
    report_.peak_memory = std::max(report_.peak_memory, t.memory);
    report_.peak_processes = std::max(report_.peak_processes, t.processes);
    const auto over = [](int64_t is, int64_t most) { return most > 0 && is > most; };
    if (over(t.memory, policy_.memory_bytes)) end_for("memory");
    // The kernel lets none beyond the limit through, and counts the first one: it was reached.
    if (policy_.processes > 0 && t.processes + 1 >= policy_.processes) end_for("processes");
    if (policy_.folder_bytes > 0 && over(bytes_of(policy_.writable), policy_.folder_bytes))
      end_for("disk");
    if (policy_.wall_seconds > 0 && now - begin_ > static_cast<double>(policy_.wall_seconds))
      end_for("time");
    const double took = monotonic_seconds() - now;
    next_look_ = monotonic_seconds() + std::clamp(20 * took, 0.05, 0.5);
  }

  void end_for(const char* why) {
    if (!report_.limit.empty()) return;
    report_.limit = why;
    write();
    ::kill(first_, SIGKILL);
  }

  int finish(int status) {
    ::kill(first_, SIGKILL);
    // Without a namespace of processes what is left was taken in by this one.
    const int own = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (;;) {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      const std::vector<pid_t> left = below(own, ::getpid());
      if (left.empty()) break;
      for (const pid_t p : left) ::kill(p, SIGKILL);
      ::usleep(1000);
    }
    write();
    return status;
  }

  void write() {
    report_.seconds = monotonic_seconds() - begin_;
    if (policy_.report.empty()) return;
    const std::string aside = policy_.report + ".tmp";
    std::ofstream(aside) << to_json(report_).dump();
    if (::rename(aside.c_str(), policy_.report.c_str()) != 0)
      refuse_errno("cannot write the report");
  }

  const Policy& policy_;
  pid_t first_;
  int socket_;
  bool own_processes_;
  int proc_ = -1;
  int listener_ = -1;
  double begin_ = monotonic_seconds();
  double next_look_ = 0;
  Report report_;
};

}  // namespace

int watch(const Policy& policy, const Mechanism& mechanism, const std::vector<std::string>& argv) {
  const Identity who = identity();
  Start start{.policy = policy, .mechanism = mechanism, .argv = argv};
  start.folder = std::filesystem::current_path();
  if (mechanism.clone_flags() == 0 && !who.dropped) start.others = tasks_of_user();
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    refuse_errno("socketpair");
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) refuse_errno("cannot take in what others leave");
  if (who.dropped) give_folders(policy, who);
  // The first that the system ends when memory is short.
  std::ofstream("/proc/self/oom_score_adj") << "1000";
  const auto first = static_cast<pid_t>(
      ::syscall(SYS_clone, mechanism.clone_flags() | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (first < 0) refuse_errno("the kernel makes no sandbox by " + std::string(mechanism.name));
  if (first == 0) {
    ::close(pair[0]);
    be_first(start, who, pair[1]);
  }
  ::close(pair[1]);
  const int status = Watcher(policy, first, pair[0], mechanism.clone_flags() != 0).until_end();
  if (who.dropped) give_folders(policy, {.uid = 0, .gid = 0});
  if (WIFSIGNALED(status)) {
    ::signal(WTERMSIG(status), SIG_DFL);
    ::raise(WTERMSIG(status));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace tessera::sandbox
