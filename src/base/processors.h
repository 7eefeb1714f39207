// How much of the machine is ours. std::thread::hardware_concurrency() counts all that are online,
// so that 16 processors of a shared machine with 64 would be given 64 compilers.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tessera {

/// The processors that this process may run on, by their numbers, ascending: its affinity mask
/// (taskset, a batch system, a container's cpuset). Empty where the system does not say.
std::vector<int> allowed_processors();

/// How many run for this process at once: those allowed, or fewer where a control group has a quota
/// (a container's --cpus), rounded up. At least 1.
int processors();

/// The least quota of the groups in `membership` (the text of /proc/self/cgroup) and of those above
/// them, in processors; 0: none has one. `mount` is where the groups are found, /sys/fs/cgroup. Of
/// version 2 `cpu.max` holds "quota period" in microseconds, of version 1 cpu.cfs_quota_us and
/// cpu.cfs_period_us (Linux, admin-guide/cgroup-v2 and scheduler/sched-bwc).
double quota_of_groups(const std::string& membership, const std::filesystem::path& mount);

}  // namespace tessera
