#include "base/elsewhere.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sched.h>
#include <sstream>
#include <string>
#include <unistd.h>

namespace tessera {
namespace fs = std::filesystem;
namespace {

/// Those that this process may run on; none where the system does not say.
cpu_set_t allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  return set;
}

/// Lines "cpu3 user nice system idle iowait irq softirq ..." of /proc/stat.
int64_t busy_ticks() {
  const cpu_set_t set = allowed();
  std::ifstream in("/proc/stat");
  int64_t out = 0;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("cpu") || line.starts_with("cpu ")) continue;
    std::istringstream fields(line.substr(3));
    std::size_t cpu = 0;
    fields >> cpu;
    if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &set)) continue;
    int64_t ticks = 0;
    for (int i = 0; i < 7 && fields >> ticks; ++i)
      if (i != 3 && i != 4) out += ticks;  // neither idle nor waiting for a disk
  }
  return out;
}

struct Process {
  int parent = 0;
  int64_t ticks = 0;  // its own, and of children that have ended and were waited for
};

/// /proc/PID/stat: "pid (name) state ppid ...", where the name may hold anything.
std::map<int, Process> processes() {
  std::map<int, Process> out;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    std::ifstream in(entry.path() / "stat");
    std::string text;
    std::getline(in, text);
    const std::size_t end = text.rfind(')');
    if (end == std::string::npos) continue;
    std::istringstream fields(text.substr(end + 1));
    std::string state;
    Process p;
    fields >> state >> p.parent;
    // Behind these stand nine fields, then utime, stime, cutime and cstime.
    constexpr int between = 9, times = 4;
    int64_t value = 0;
    for (int i = 0; i < between + times && fields >> value; ++i)
      if (i >= between) p.ticks += value;
    out[pid] = p;
  }
  return out;
}

int64_t own_ticks() {
  const std::map<int, Process> all = processes();
  const int self = ::getpid();
  int64_t out = 0;
  for (const auto& [pid, process] : all) {
    int at = pid;
    while (at > 1 && at != self && all.contains(at)) at = all.at(at).parent;
    if (at == self) out += process.ticks;
  }
  return out;
}

}  // namespace

Elsewhere::Elsewhere() : begin_(now()) {}

Elsewhere::Ticks Elsewhere::now() {
  using std::chrono::steady_clock;
  const std::chrono::duration<double> at = steady_clock::now().time_since_epoch();
  return {.busy = busy_ticks(), .own = own_ticks(), .seconds = at.count()};
}

double Elsewhere::processors() const {
  const Ticks end = now();
  const double seconds = end.seconds - begin_.seconds;
  const double others = static_cast<double>((end.busy - begin_.busy) - (end.own - begin_.own)) /
                        static_cast<double>(::sysconf(_SC_CLK_TCK));
  // Ticks are of ten milliseconds: of less than half a second they say nothing.
  return seconds < 0.5 ? 0 : std::max(0.0, others / seconds);
}

bool Elsewhere::disturbs(double processors) {
  const cpu_set_t set = allowed();
  return processors > 0.25 * std::max(1, CPU_COUNT(&set));
}

}  // namespace tessera
