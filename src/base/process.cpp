#include "base/process.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read = -1;
  int write = -1;
  Pipe() {
    int fd[2];
    if (::pipe2(fd, O_CLOEXEC) != 0)
      throw std::system_error(errno, std::generic_category(), "pipe");
    read = fd[0];
    write = fd[1];
  }
};

// The groups to end when a signal ends this program: a handler may read it at any time. Children
// beyond its size are ended by their parent-death signal alone.
std::array<std::atomic<int>, 256> running{};

void note_started(int pid) {
  for (std::atomic<int>& slot : running) {
    int none = 0;
    if (slot.compare_exchange_strong(none, pid)) return;
  }
}

// To be called before the pid is reaped, and so free for another process.
void note_ended(int pid) {
  for (std::atomic<int>& slot : running) {
    int expected = pid;
    if (slot.compare_exchange_strong(expected, 0)) return;
  }
}

// Waits for a child without reaping it, so that its pid stays its own.
void wait_unreaped(int pid) {
  siginfo_t info;
  while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
}

int reap(int pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

int milliseconds_left(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<long long>(0, std::min<long long>(left.count(), 1 << 30)));
}

// Starts the child with the given descriptors as its 0, 1 and 2.
int start(const Command& command, int in, int out, int err) {
  std::vector<char*> argv;
  for (const std::string& a : command.argv) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> env_text;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string entry = *e;
    if (!command.env.contains(entry.substr(0, entry.find('=')))) env_text.push_back(entry);
  }
  for (const auto& [k, v] : command.env) env_text.push_back(k + "=" + v);
  std::vector<char*> envp;
  for (std::string& e : env_text) envp.push_back(e.data());
  envp.push_back(nullptr);

  Pipe failure;  // the child reports a failed exec here
  const int parent = ::getpid();
  const int pid = ::fork();
  if (pid < 0) {
    const int why = errno;
    ::close(failure.read);
    ::close(failure.write);
    throw std::system_error(why, std::generic_category(), "fork");
  }
  if (pid == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // it was gone before the kernel was asked
    ::signal(SIGPIPE, SIG_DFL);               // what we ignore would be inherited
    ::dup2(in, 0);
    ::dup2(out, 1);
    ::dup2(err, 2);
    int code = 0;
    if (command.niceness != 0) [[maybe_unused]]
      const int at = ::nice(command.niceness);
    if (!command.folder.empty() && ::chdir(command.folder.c_str()) != 0) code = errno;
    if (code == 0) {
      ::execvpe(argv[0], argv.data(), envp.data());
      code = errno;
    }
    [[maybe_unused]] const ssize_t n = ::write(failure.write, &code, sizeof code);
    ::_exit(127);
  }
  ::setpgid(pid, pid);
  note_started(pid);
  ::close(failure.write);
  int code = 0;
  ssize_t n = 0;
  while ((n = ::read(failure.read, &code, sizeof code)) < 0 && errno == EINTR) {
  }
  ::close(failure.read);
  if (n == sizeof code) {
    note_ended(pid);
    reap(pid);
    throw std::system_error(code, std::generic_category(), "cannot start " + command.argv.at(0));
  }
  return pid;
}

void kill_group(int pid) {
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);
}

}  // namespace

Finished run(const Command& command, std::chrono::milliseconds limit,
             const std::atomic<bool>* cancel) {
  Finished result;
  const auto begin = Clock::now();
  const auto deadline = begin + limit;
  Pipe output;
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  int pid = -1;
  try {
    pid = start(command, null, output.write, output.write);
  } catch (...) {
    ::close(null);
    ::close(output.read);
    ::close(output.write);
    throw;
  }
  ::close(null);
  ::close(output.write);
  char chunk[16384];
  while (true) {
    pollfd p{.fd = output.read, .events = POLLIN, .revents = 0};
    const int left = milliseconds_left(deadline);
    constexpr int look = 100;  // how often `cancel` is read
    const int ready = ::poll(&p, 1, cancel != nullptr ? std::min(left, look) : left);
    if (ready < 0 && errno == EINTR) continue;
    result.cancelled = cancel != nullptr && cancel->load();
    if (ready == 0 && !result.cancelled && Clock::now() < deadline) continue;
    if (ready == 0 || result.cancelled) {
      result.timed_out = !result.cancelled;
      kill_group(pid);
      break;
    }
    const ssize_t n = ::read(output.read, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    result.output.append(chunk, static_cast<std::size_t>(n));
  }
  ::close(output.read);
  wait_unreaped(pid);
  kill_group(pid);  // what it left behind
  note_ended(pid);
  const int status = reap(pid);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return result;
}

LineChild::LineChild(const Command& command, const std::filesystem::path& log) {
  ::signal(SIGPIPE, SIG_IGN);  // a dead child is seen as a failed write
  Pipe to_child;
  Pipe from_child;
  const int err = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (err < 0)
    throw std::system_error(errno, std::generic_category(), "cannot open " + log.string());
  pid_ = start(command, to_child.read, from_child.write, err);
  ::close(err);
  ::close(to_child.read);
  ::close(from_child.write);
  in_ = to_child.write;
  out_ = from_child.read;
}

LineChild::~LineChild() {
  if (in_ >= 0) ::close(in_);
  kill();
  if (out_ >= 0) ::close(out_);
}

bool LineChild::write_line(const std::string& line) {
  const std::string text = line + "\n";
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t n = ::write(in_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

std::optional<std::string> LineChild::read_line(std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  timed_out_ = false;
  char chunk[65536];
  while (true) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd p{.fd = out_, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&p, 1, milliseconds_left(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      timed_out_ = true;
      return std::nullopt;
    }
    const ssize_t n = ::read(out_, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    buffer_.append(chunk, static_cast<std::size_t>(n));
  }
}

void LineChild::kill() {
  if (pid_ > 0) {
    kill_group(pid_);
    note_ended(pid_);
    reap(pid_);
    pid_ = -1;
  }
}

std::string LineChild::how_it_ended() {
  if (pid_ <= 0) return "killed";
  // The stream has ended, so the child ends soon; a child that closed its output and runs on is
  // killed.
  for (int i = 0; i < 50; ++i) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == pid_) {
      kill_group(pid_);
      note_ended(pid_);
      const int status = reap(pid_);
      pid_ = -1;
      if (WIFEXITED(status)) return fmt::format("exit {}", WEXITSTATUS(status));
      if (WIFSIGNALED(status)) {
        return fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
      }
    }
    ::usleep(20000);
  }
  kill();
  return "killed after it closed its output";
}

void kill_all_children() {
  for (const std::atomic<int>& slot : running) {
    if (const int pid = slot.load(); pid > 0) kill_group(pid);
  }
}

void die_with_parent() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

std::optional<std::filesystem::path> find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    std::filesystem::path candidate = std::filesystem::path(rest.substr(0, end)) / name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  return std::nullopt;
}

}  // namespace tessera
