// Landlock without namespaces: for containers and systems that allow none.
#include <sys/prctl.h>
#include <unistd.h>

#include "sandbox/launcher/launcher.h"

namespace tessera::sandbox {
namespace {

void enter(const Policy&, const Identity&) {
  if (landlock_version() == 0) refuse("the kernel has no Landlock");
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) refuse_errno("cannot take in what others leave");
}

std::vector<std::string> missing() {
  const int version = landlock_version();
  std::vector<std::string> out = {
      "other processes are seen by name, though not read",
      "what leaves its parent lives on where the watcher itself is killed",
      "names, sizes and dates of files anywhere can be asked for",
  };
  if (::geteuid() == 0)
    out.emplace_back("programs in folders of root alone, as an interpreter in /root, do not start");
  if (version < 2) out.emplace_back("files cannot be moved between folders");
  if (version < 3) out.emplace_back("files that may not be written can be emptied");
  if (::geteuid() != 0)
    out.emplace_back("processes are counted twenty times a second: between looks more can begin");
  if (version < 6 && ::geteuid() != 0)
    out.emplace_back("signals to other processes of the same user are not stopped");
  return out;
}

}  // namespace

const Mechanism landlock_alone = {
    .name = "landlock",
    .summary = "Landlock and seccomp, without namespaces",
    .clone_flags = [] { return 0; },
    .enter = enter,
    .missing = missing,
};

}  // namespace tessera::sandbox
