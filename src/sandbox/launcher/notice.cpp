// Notices of system calls: what is refused, and what a path that is opened says of the intent.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "sandbox/launcher/launcher.h"

namespace tessera::sandbox {
namespace {
namespace fs = std::filesystem;

std::string text_at(pid_t process, uint64_t address) {
  const int fd =
      ::open(("/proc/" + std::to_string(process) + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  char text[4096];
  // A text at the end of a page: what lies behind it may not be there.
  ssize_t n = 0;
  while (n < static_cast<ssize_t>(sizeof text)) {
    const std::size_t step =
        std::min<std::size_t>(sizeof text - static_cast<std::size_t>(n),
                              256 - ((address + static_cast<uint64_t>(n)) % 256));
    const ssize_t got = ::pread(fd, text + n, step, static_cast<off_t>(address) + n);
    if (got <= 0) break;
    const bool ended = std::memchr(text + n, 0, static_cast<std::size_t>(got)) != nullptr;
    n += got;
    if (ended) break;
  }
  ::close(fd);
  return {text, ::strnlen(text, static_cast<std::size_t>(n))};
}

bool is_under(const fs::path& path, const std::string& folder) {
  const fs::path f = fs::path(folder).lexically_normal();
  const auto [a, b] = std::mismatch(f.begin(), f.end(), path.begin(), path.end());
  return a == f.end() || (a->empty() && std::next(a) == f.end());
}

bool is_under_any(const fs::path& path, const std::vector<std::string>& folders) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const std::string& f) { return is_under(path, f); });
}

// "" where the place is not known: relative to a folder that is held open.
fs::path place_of(pid_t process, int folder, const std::string& given) {
  if (given.empty() || given.front() == '/') return fs::path(given).lexically_normal();
  if (folder != AT_FDCWD) return {};
  std::error_code ec;
  const fs::path at = fs::read_symlink("/proc/" + std::to_string(process) + "/cwd", ec);
  return ec ? fs::path{} : (at / given).lexically_normal();
}

// By its number: programs name themselves "self".
bool of_other_process(const fs::path& path) {
  if (!is_under(path, "/proc")) return false;
  const std::string name = path.filename();
  const std::string number =
      std::next(path.begin(), 2) != path.end() ? *std::next(path.begin(), 2) : "";
  return !number.empty() && number.find_first_not_of("0123456789") == std::string::npos &&
         (name == "mem" || name == "environ");
}

std::optional<Attempt> opened(const fs::path& path, uint64_t flags, const Policy& policy) {
  if (path.empty()) return std::nullopt;
  if (of_other_process(path)) return Attempt{.what = "other process", .detail = path.string()};
  static const std::vector<std::string> own = {"/proc", "/dev", "/tmp"};
  // The C library and interpreters look there of themselves.
  static const std::vector<std::string> looked_at = {"/etc", "/sys", "/run/nscd", "/var/run/nscd"};
  if (is_under_any(path, policy.writable)) return std::nullopt;
  // Folders above what is readable are there, and empty else.
  for (const std::vector<std::string>* list : {&policy.readable, &policy.writable}) {
    for (const std::string& p : *list)
      if (is_under(p, path.string())) return std::nullopt;
  }
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
  struct stat st{};
  // Temporary files may be the sandbox's own: those are meant that the machine has, or a folder of
  // it.
  const auto there = [&](const fs::path& p) { return ::lstat(p.c_str(), &st) == 0; };
  if (is_under_any(path, own)) {
    const bool in_folder = path.parent_path() != "/tmp" && there(path.parent_path());
    if (!is_under(path, "/tmp") || !(there(path) || (writes && in_folder))) return std::nullopt;
  }
  if (writes) return Attempt{.what = "write", .detail = path.string()};
  if (is_under_any(path, policy.readable) || is_under_any(path, looked_at)) return std::nullopt;
  // What the machine does not have either is looked for by the way.
  if (::lstat(path.c_str(), &st) != 0 || S_ISDIR(st.st_mode)) return std::nullopt;
  return Attempt{.what = "read", .detail = path.string()};
}

/// CUDA makes such sockets of itself: to ask whether there is a service of MPS, and to be asked for
/// its memory by processes that are told to. Without datagrams none of them sends before it is
/// connected, and connecting is refused.
bool is_socket_of_gpu(uint64_t family, uint64_t type, const Policy& policy) {
  const uint64_t kind = type & 0xf;  // without SOCK_CLOEXEC and SOCK_NONBLOCK
  return family == AF_UNIX && (kind == SOCK_STREAM || kind == SOCK_SEQPACKET) &&
         !policy.devices.empty();
}

/// Only a process that may have such sockets comes here. What CUDA and the C library look for of
/// themselves is no attempt.
std::optional<Attempt> connected(pid_t process, uint64_t address) {
  const std::string path = text_at(process, address + offsetof(sockaddr_un, sun_path));
  if (path.find("nvidia-mps") != std::string::npos || path.ends_with("nscd/socket"))
    return std::nullopt;
  return Attempt{.what = "network", .detail = "connect " + path};
}

struct Named {
  int call;
  const char* what;
  const char* name;
};
constexpr Named refused[] = {
    {SYS_ptrace, "other process", "ptrace"},
    {SYS_process_vm_readv, "other process", "process_vm_readv"},
    {SYS_process_vm_writev, "other process", "process_vm_writev"},
    {SYS_pidfd_getfd, "other process", "pidfd_getfd"},
    {SYS_pidfd_open, "other process", "pidfd_open"},
    {SYS_pidfd_send_signal, "signal", "pidfd_send_signal"},
    {SYS_unshare, "privilege", "unshare"},
    {SYS_mount, "privilege", "mount"},
    {SYS_setuid, "privilege", "setuid"},
};

}  // namespace

std::optional<Attempt> answer_notice(int listener, const Policy& policy) {
  seccomp_notif notice{};
  if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notice) != 0) return std::nullopt;
  seccomp_notif_resp reply{.id = notice.id};
  std::optional<Attempt> tried;
  const auto process = static_cast<pid_t>(notice.pid);
  const auto& a = notice.data.args;
  bool goes_on = true;
  int refusal = EPERM;
  switch (notice.data.nr) {
#ifdef SYS_open
    case SYS_open:
    case SYS_creat:
      tried = opened(place_of(process, AT_FDCWD, text_at(process, a[0])),
                     notice.data.nr == SYS_creat ? O_CREAT | O_WRONLY : a[1], policy);
      break;
#endif
    case SYS_openat:
      tried =
          opened(place_of(process, static_cast<int>(a[0]), text_at(process, a[1])), a[2], policy);
      break;
    case SYS_openat2:
      tried = opened(place_of(process, static_cast<int>(a[0]), text_at(process, a[1])), 0, policy);
      break;
    case SYS_kill:
      // The first process of the sandbox, or all: no program ends what it did not start.
      if (const int to = static_cast<int>(a[0]); (to == 1 || to == -1) && a[1] != 0)
        tried = Attempt{.what = "signal", .detail = "kill " + std::to_string(to)};
      break;
    case SYS_connect:
      // Such a process has local sockets alone, and a network of its own.
      if (policy.local_sockets) break;
      goes_on = false;
      refusal = ENOENT;
      tried = connected(process, a[1]);
      break;
    case SYS_socket:
      goes_on = is_socket_of_gpu(a[0], a[1], policy) || (policy.local_sockets && a[0] == AF_UNIX);
      if (goes_on) break;
      // The C library asks nscd and the kernel for names of itself: refused, and no attempt.
      if (a[0] != AF_UNIX && a[0] != AF_NETLINK)
        tried = Attempt{.what = "network", .detail = "socket"};
      break;
    default:
      goes_on = false;
      tried =
          Attempt{.what = "privilege", .detail = "system call " + std::to_string(notice.data.nr)};
      for (const Named& n : refused)
        if (n.call == notice.data.nr) tried = Attempt{.what = n.what, .detail = n.name};
  }
  if (goes_on) {
    reply.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  } else {
    reply.error = -refusal;
  }
  ::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);  // it may have ended meanwhile
  if (tried) tried->at = monotonic_seconds();
  return tried;
}

}  // namespace tessera::sandbox
