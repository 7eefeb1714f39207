// The filter of system calls: what no compiler and no kernel needs is refused, and told to the
// watcher. Paths that are opened are told as well; whether they open is decided elsewhere.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "sandbox/launcher/launcher.h"

namespace tessera::sandbox {
namespace {

#if defined(__x86_64__)
constexpr uint32_t own_arch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t own_arch = AUDIT_ARCH_AARCH64;
#else
#error "the filter does not know this machine"
#endif

constexpr int told[] = {SYS_openat,
                        SYS_openat2,
                        SYS_kill,
#ifdef SYS_open
                        SYS_open,
                        SYS_creat,
#endif
                        SYS_socket,
                        SYS_connect,
                        SYS_ptrace,
                        SYS_process_vm_readv,
                        SYS_process_vm_writev,
                        SYS_pidfd_getfd,
                        SYS_pidfd_open,
                        SYS_pidfd_send_signal,
                        SYS_bpf,
                        SYS_perf_event_open,
                        SYS_userfaultfd,
                        SYS_keyctl,
                        SYS_add_key,
                        SYS_request_key,
                        SYS_mount,
                        SYS_umount2,
                        SYS_pivot_root,
                        SYS_chroot,
                        SYS_unshare,
                        SYS_setns,
                        SYS_open_by_handle_at,
                        SYS_init_module,
                        SYS_finit_module,
                        SYS_delete_module,
                        SYS_kexec_load,
                        SYS_reboot,
                        SYS_swapon,
                        SYS_swapoff,
                        SYS_acct,
                        SYS_settimeofday,
                        SYS_clock_settime,
                        SYS_open_tree,
                        SYS_move_mount,
                        SYS_fsopen,
                        SYS_fsmount,
                        SYS_fsconfig,
                        SYS_mount_setattr,
                        SYS_setuid,
                        SYS_setgid,
                        SYS_setreuid,
                        SYS_setresuid,
                        SYS_setresgid,
                        SYS_setgroups,
                        SYS_capset,
                        SYS_seccomp,
                        SYS_syslog,
                        SYS_quotactl};
// As if the kernel had none of them: callers fall back to what the filter sees.
constexpr int absent[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
                          SYS_clone3};

constexpr uint32_t new_namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

std::vector<sock_filter> program(uint32_t on_told) {
  std::vector<sock_filter> p;
  const auto load = [&](std::size_t offset) {
    p.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
  };
  const auto answer = [&](uint32_t a) { p.push_back(BPF_STMT(BPF_RET | BPF_K, a)); };
  // The answer where the loaded word is `value`; else on.
  const auto where = [&](uint32_t value, uint32_t a) {
    p.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    answer(a);
  };
  load(offsetof(seccomp_data, arch));
  p.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, own_arch, 1, 0));
  answer(SECCOMP_RET_KILL_PROCESS);
  load(offsetof(seccomp_data, nr));
#ifdef __x86_64__
  // The calls of x32 have numbers of their own.
  p.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
  answer(SECCOMP_RET_KILL_PROCESS);
#endif
  for (const int nr : absent) where(static_cast<uint32_t>(nr), SECCOMP_RET_ERRNO | ENOSYS);
  for (const int nr : told) {
    const bool opens = nr == SYS_openat || nr == SYS_openat2 || nr == SYS_kill
#ifdef SYS_open
                       || nr == SYS_open || nr == SYS_creat
#endif
        ;
    const uint32_t silent = opens ? SECCOMP_RET_ALLOW : (SECCOMP_RET_ERRNO | EPERM);
    where(static_cast<uint32_t>(nr), on_told == SECCOMP_RET_USER_NOTIF ? on_told : silent);
  }
  // clone: new namespaces are refused.
  p.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3));
  load(offsetof(seccomp_data, args));
  p.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, new_namespaces, 0, 1));
  answer(SECCOMP_RET_ERRNO | EPERM);
  answer(SECCOMP_RET_ALLOW);
  return p;
}

int install(uint32_t on_told, unsigned flags) {
  std::vector<sock_filter> text = program(on_told);
  sock_fprog p{.len = static_cast<unsigned short>(text.size()), .filter = text.data()};
  return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &p));
}

}  // namespace

int install_filter() {
  const int listener = install(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
  if (listener >= 0) return listener;
  if (install(SECCOMP_RET_ERRNO, 0) != 0) refuse_errno("seccomp takes no filter");
  return -1;
}

}  // namespace tessera::sandbox
