// Namespaces: a root folder that holds the readable and writable paths alone, no network, no other
// processes. Unprivileged where the kernel allows users namespaces of their own, else root.
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/launcher/launcher.h"

namespace tessera::sandbox {
namespace {
namespace fs = std::filesystem;

constexpr const char* old_root = "/old";
constexpr const char* new_root = "/new";

void write_text(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || ::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    refuse_errno("cannot write " + path);
  ::close(fd);
}

void mount_new(const char* what, const std::string& at, const char* type, unsigned long flags,
               const std::string& options) {
  ::mkdir(at.c_str(), 0755);
  if (::mount(what, at.c_str(), type, flags, options.c_str()) != 0)
    refuse_errno("cannot mount " + at);
}

// struct mount_attr of <linux/mount.h>, which cannot be read beside <sys/mount.h>.
struct Attributes {
  uint64_t set = 0;
  uint64_t clear = 0;
  uint64_t propagation = 0;
  uint64_t user = 0;
};
constexpr uint64_t read_only = 1, no_setuid = 2, no_devices = 4;

void restrict_mount(const std::string& at, uint64_t attributes, bool below) {
  Attributes a{.set = attributes};
  if (::syscall(SYS_mount_setattr, AT_FDCWD, at.c_str(), below ? AT_RECURSIVE : 0, &a, sizeof a) !=
      0)
    refuse_errno("cannot restrict the mount " + at);
}

void bind_path(const std::string& path, uint64_t attributes) {
  const std::string from = old_root + path, to = new_root + path;
  struct stat st{};
  if (::stat(from.c_str(), &st) != 0) return;
  if (S_ISDIR(st.st_mode)) {
    ::mkdir(to.c_str(), 0755);
  } else {
    const int fd = ::open(to.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0) ::close(fd);
  }
  if (::mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    refuse_errno("cannot bind " + path);
  restrict_mount(to, attributes, true);
}

/// The path in the new root as it is in the old one: folders on its way are made, symbolic links
/// copied and followed.
void provide(const fs::path& path, uint64_t attributes, int depth = 0) {
  if (depth > 32) return;  // a loop of links
  fs::path at;
  for (auto part = path.begin(); part != path.end(); ++part) {
    at /= *part;
    if (at == "/" || part->empty()) continue;
    struct stat st{};
    if (::lstat((old_root + at.string()).c_str(), &st) != 0) return;
    if (S_ISLNK(st.st_mode)) {
      const fs::path target = fs::read_symlink(old_root + at.string());
      if (::symlink(target.c_str(), (new_root + at.string()).c_str()) != 0 && errno != EEXIST &&
          errno != EROFS)
        refuse_errno("cannot link " + at.string());
      fs::path to = (at.parent_path() / target).lexically_normal();
      for (++part; part != path.end(); ++part) to /= *part;
      return provide(to, attributes, depth + 1);
    }
    if (std::next(part) == path.end()) {
      bind_path(at.string(), attributes);
      return;
    }
    ::mkdir((new_root + at.string()).c_str(), 0755);
  }
}

void enter_own_user(const Identity& who) {
  write_text("/proc/self/setgroups", "deny");
  const std::string uid = std::to_string(who.uid), gid = std::to_string(who.gid);
  write_text("/proc/self/uid_map", uid + " " + uid + " 1");
  write_text("/proc/self/gid_map", gid + " " + gid + " 1");
}

void make_devices(const Policy& policy, const std::string& size) {
  mount_new("tmpfs", std::string(new_root) + "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755");
  for (const char* d : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"})
    bind_path(d, no_setuid);
  for (const std::string& d : policy.devices) provide(d, no_setuid);
  const std::string dev = std::string(new_root) + "/dev/";
  mount_new("tmpfs", dev + "shm", "tmpfs", MS_NOSUID | MS_NODEV, size);
  for (const auto& [link, to] : {std::pair{"fd", "/proc/self/fd"},
                                 {"stdin", "/proc/self/fd/0"},
                                 {"stdout", "/proc/self/fd/1"},
                                 {"stderr", "/proc/self/fd/2"}})
    if (::symlink(to, (dev + link).c_str()) != 0) refuse_errno("cannot link in /dev");
}

void build_root(const Policy& policy, const Identity& who) {
  std::string size = "mode=1777";
  if (policy.folder_bytes > 0) size += ",size=" + std::to_string(policy.folder_bytes);
  mount_new("tmpfs", new_root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755");
  mount_new("proc", std::string(new_root) + "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
  make_devices(policy, size);
  mount_new("tmpfs", std::string(new_root) + "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, size);
  for (const std::string& p : policy.readable) provide(p, read_only | no_setuid | no_devices);
  for (const std::string& p : policy.writable) provide(p, no_setuid | no_devices);
  const std::string etc = std::string(new_root) + "/etc";
  ::mkdir(etc.c_str(), 0755);
  const std::string ids = std::to_string(who.uid) + ":" + std::to_string(who.gid);
  write_text(etc + "/passwd", "sandbox:x:" + ids + "::/tmp:/bin/sh\n");
  write_text(etc + "/group", "sandbox:x:" + std::to_string(who.gid) + ":\n");
}

void enter(const Policy& policy, const Identity& who) {
  if (!who.dropped) enter_own_user(who);
  ::umask(022);
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    refuse_errno("cannot make the mounts private");
  mount_new("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755");
  if (::mkdir("/tmp/old", 0755) != 0 || ::chdir("/tmp") != 0 ||
      ::syscall(SYS_pivot_root, ".", "old") != 0 || ::chdir("/") != 0)
    refuse_errno("cannot leave the root folder");
  build_root(policy, who);
  if (::umount2(old_root, MNT_DETACH) != 0) refuse_errno("cannot let go of the old root");
  if (::chdir(new_root) != 0 || ::syscall(SYS_pivot_root, ".", ".") != 0 ||
      ::umount2(".", MNT_DETACH) != 0 || ::chdir("/") != 0)
    refuse_errno("cannot enter the new root");
  restrict_mount("/", read_only | no_setuid | no_devices, false);
}

int flags() {
  const int all = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
  return ::geteuid() == 0 ? all : all | CLONE_NEWUSER;
}

std::vector<std::string> missing() {
  if (landlock_version() > 0) return {};
  return {"no second wall of Landlock behind the namespaces"};
}

}  // namespace

const Mechanism namespaces = {
    .name = "namespaces",
    .summary = "namespaces of files, processes and network; seccomp; Landlock where there is one",
    .clone_flags = flags,
    .enter = enter,
    .missing = missing,
};

}  // namespace tessera::sandbox
