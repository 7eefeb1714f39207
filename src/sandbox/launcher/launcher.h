// The parts of the launcher: a small static program that confines another and watches it.
//
// Its processes: the watcher (the one that was started; not confined), the first of the sandbox,
// which reaps what others leave, and the confined program, its child.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "sandbox/policy.h"

namespace tessera::sandbox {

/// Ends the process with a text on stderr and exit code 126: nothing runs half confined.
[[noreturn]] void refuse(const std::string& what);
/// refuse(), with the text of errno.
[[noreturn]] void refuse_errno(const std::string& what);

/// Who the confined program is: another user where the watcher is root.
struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  bool dropped = false;
};

/// One way to hide files, processes and the network.
struct Mechanism {
  const char* name;
  const char* summary;
  /// Flags for clone() of the first process of the sandbox.
  int (*clone_flags)();
  /// In that process: gives it its own view of the machine. May refuse().
  void (*enter)(const Policy& policy, const Identity& who);
  /// What it does not protect, each as a sentence.
  std::vector<std::string> (*missing)();
};
extern const Mechanism namespaces, landlock_alone;

/// The version of the kernel's Landlock; 0: none.
int landlock_version();
/// Restricts this process and its children to the paths of the policy. False: no Landlock.
bool restrict_paths(const Policy& policy);

/// Installs the filter of system calls. The descriptor on which refused and watched calls are
/// told; -1 where another listener is there already: calls are refused all the same.
int install_filter();

/// Reads one notice of a call, answers it, and says what was tried where it is not allowed.
std::optional<Attempt> answer_notice(int listener, const Policy& policy);

struct Totals {
  int64_t memory = 0;
  int64_t processes = 0;  // with threads
};
/// Of all processes below `first`, which is left out; by a /proc that `proc` is a descriptor of.
Totals totals_of(int proc, pid_t first);
/// Of those below `first` by /proc of this process; to be ended one by one.
std::vector<pid_t> below(int proc, pid_t first);
/// Bytes on the disk below the folders.
int64_t bytes_of(const std::vector<std::string>& folders);
double monotonic_seconds();

/// Sends and takes one descriptor over a socket pair; take() is -1 where none came.
void send_descriptor(int socket, int descriptor);
int take_descriptor(int socket);

/// Confines `argv` and watches it until it ends. The exit code; a signal is raised again.
int watch(const Policy& policy, const Mechanism& mechanism, const std::vector<std::string>& argv);

}  // namespace tessera::sandbox
