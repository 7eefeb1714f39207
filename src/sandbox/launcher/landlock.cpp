// Landlock, by the kernel's own interface: the headers of Debian 12 know its first versions only.
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <initializer_list>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/launcher/launcher.h"

namespace tessera::sandbox {
namespace {

// From include/uapi/linux/landlock.h of Linux 6.12.
struct Ruleset {
  uint64_t handled_access_fs = 0;
  uint64_t handled_access_net = 0;  // version 4
  uint64_t scoped = 0;              // version 6
};
constexpr uint64_t execute = 1, write_file = 1 << 1, read_file = 1 << 2, read_dir = 1 << 3;
constexpr uint64_t first_version = (1ULL << 13) - 1;
constexpr uint64_t refer = 1ULL << 13, truncate = 1ULL << 14, ioctl_dev = 1ULL << 15;
constexpr uint64_t tcp = 3, scopes = 3;

uint64_t known_access(int version) {
  return first_version | (version >= 2 ? refer : 0) | (version >= 3 ? truncate : 0) |
         (version >= 5 ? ioctl_dev : 0);
}

void allow(int ruleset, const std::string& path, uint64_t access) {
  const int fd = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return;  // what is missing needs no permission
  struct stat st{};
  if (::fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
    access &= execute | write_file | read_file | truncate | ioctl_dev;
  landlock_path_beneath_attr rule{.allowed_access = access, .parent_fd = fd};
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    refuse_errno("landlock does not take a rule for " + path);
  ::close(fd);
}

}  // namespace

int landlock_version() {
  const long v = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1U /* asks the version */);
  return v > 0 ? static_cast<int>(v) : 0;
}

bool restrict_paths(const Policy& policy) {
  const int version = landlock_version();
  if (version == 0) return false;
  const uint64_t all = known_access(version);
  Ruleset rules{.handled_access_fs = all};
  std::size_t size = sizeof(uint64_t);
  if (version >= 4) rules.handled_access_net = tcp, size = 2 * sizeof(uint64_t);
  if (version >= 6) rules.scoped = scopes, size = sizeof rules;
  const int fd = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, size, 0));
  if (fd < 0) refuse_errno("landlock makes no ruleset");
  const uint64_t reads = execute | read_file | read_dir;
  const uint64_t plain = all & ~ioctl_dev;
  for (const std::string& p : policy.readable) allow(fd, p, reads);
  // CUDA names its threads by files of /proc, and does not start where it cannot.
  const uint64_t names = policy.devices.empty() ? 0 : write_file | (truncate & all);
  allow(fd, "/proc", read_file | read_dir | names);
  for (const char* p : {"/etc/passwd", "/etc/group"}) allow(fd, p, read_file);
  for (const std::string& p : policy.writable) allow(fd, p, plain);
  for (const char* p : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"})
    allow(fd, p, (read_file | write_file | truncate) & all);
  for (const std::string& p : policy.devices)
    allow(fd, p, (reads | write_file | truncate | ioctl_dev) & all);
  if (::syscall(SYS_landlock_restrict_self, fd, 0) != 0) refuse_errno("landlock does not restrict");
  ::close(fd);
  return true;
}

}  // namespace tessera::sandbox
