#include "base/process.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
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
  const int pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0) {
    ::setpgid(0, 0);
    ::dup2(in, 0);
    ::dup2(out, 1);
    ::dup2(err, 2);
    int code = 0;
    if (!command.folder.empty() && ::chdir(command.folder.c_str()) != 0) code = errno;
    if (code == 0) {
      ::execvpe(argv[0], argv.data(), envp.data());
      code = errno;
    }
    [[maybe_unused]] const ssize_t n = ::write(failure.write, &code, sizeof code);
    ::_exit(127);
  }
  ::setpgid(pid, pid);
  ::close(failure.write);
  int code = 0;
  const ssize_t n = ::read(failure.read, &code, sizeof code);
  ::close(failure.read);
  if (n == sizeof code) {
    ::waitpid(pid, nullptr, 0);
    throw std::system_error(code, std::generic_category(), "cannot start " + command.argv.at(0));
  }
  return pid;
}

void kill_group(int pid) {
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);
}

}  // namespace

Finished run(const Command& command, std::chrono::milliseconds limit) {
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
    const int ready = ::poll(&p, 1, milliseconds_left(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      result.timed_out = true;
      kill_group(pid);
      break;
    }
    const ssize_t n = ::read(output.read, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    result.output.append(chunk, static_cast<std::size_t>(n));
  }
  ::close(output.read);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  kill_group(pid);
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
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
}

std::string LineChild::how_it_ended() {
  if (pid_ <= 0) return "killed";
  int status = 0;
  // The stream has ended, so the child ends soon; a child that closed its output and runs on is
  // killed.
  for (int i = 0; i < 50; ++i) {
    const int r = ::waitpid(pid_, &status, WNOHANG);
    if (r == pid_) {
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
