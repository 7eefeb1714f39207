#include "base/processors.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sched.h>
#include <sstream>
#include <thread>

namespace tessera {
namespace fs = std::filesystem;
namespace {

/// "max" and -1 say that there is none.
std::optional<double> number_in(std::istream& in) {
  double value = 0;
  if (in >> value && value > 0) return value;
  return std::nullopt;
}

/// Of one group, in either version's files.
std::optional<double> quota_of(const fs::path& group) {
  std::ifstream both(group / "cpu.max"), quota(group / "cpu.cfs_quota_us"),
      period(group / "cpu.cfs_period_us");
  std::istream& first = both ? both : quota;
  const std::optional<double> used = number_in(first);
  const std::optional<double> of = number_in(both ? both : period);
  if (!used || !of) return std::nullopt;
  return *used / *of;
}

/// Whether a line of /proc/self/cgroup is of the group that bounds processors: "0::/path", or
/// "4:cpu,cpuacct:/path".
bool bounds_processors(const std::string& controllers) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');)
    if (name == "cpu") return true;
  return controllers.empty();
}

}  // namespace

std::vector<int> allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> out;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return out;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) out.push_back(cpu);
  return out;
}

double quota_of_groups(const std::string& membership, const fs::path& mount) {
  double least = 0;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t one = line.find(':');
    const std::size_t two = line.find(':', one == std::string::npos ? one : one + 1);
    if (two == std::string::npos) continue;
    const std::string controllers = line.substr(one + 1, two - one - 1);
    if (!bounds_processors(controllers)) continue;
    // Within a container the path may be the host's, whose folders are not there; the container's
    // own group is the root.
    const fs::path root = controllers.empty() ? mount : mount / controllers;
    for (fs::path below = fs::path(line.substr(two + 1)).relative_path();;
         below = below.parent_path()) {
      const std::optional<double> quota = quota_of(root / below);
      if (quota && (least == 0 || *quota < least)) least = *quota;
      if (below.empty()) break;
    }
  }
  return least;
}

int processors() {
  int count = static_cast<int>(allowed_processors().size());
  if (count == 0) count = static_cast<int>(std::thread::hardware_concurrency());
  std::ifstream in("/proc/self/cgroup");
  std::ostringstream membership;
  membership << in.rdbuf();
  const double quota = quota_of_groups(membership.str(), "/sys/fs/cgroup");
  if (quota > 0) count = std::min(count, static_cast<int>(std::ceil(quota)));
  return std::max(1, count);
}

}  // namespace tessera
