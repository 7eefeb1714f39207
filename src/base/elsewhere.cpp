#include "base/elsewhere.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <unistd.h>

#include "base/processors.h"

namespace tessera {
namespace fs = std::filesystem;
namespace {

/// Lines "cpu3 user nice system idle iowait irq softirq ..." of /proc/stat.
int64_t busy_ticks() {
  const std::vector<int> mine = allowed_processors();
  std::ifstream in("/proc/stat");
  int64_t out = 0;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("cpu") || line.starts_with("cpu ")) continue;
    std::istringstream fields(line.substr(3));
    int cpu = -1;
    fields >> cpu;
    if (!std::binary_search(mine.begin(), mine.end(), cpu)) continue;
    int64_t ticks = 0;
    for (int i = 0; i < 7 && fields >> ticks; ++i)
      if (i != 3 && i != 4) out += ticks;  // neither idle nor waiting for a disk
  }
  return out;
}

struct Process {
  std::string program;
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
    const std::size_t open = text.find('('), end = text.rfind(')');
    if (open == std::string::npos || end == std::string::npos) continue;
    std::istringstream fields(text.substr(end + 1));
    std::string state;
    Process p{.program = text.substr(open + 1, end - open - 1)};
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

bool is_below(int pid, int ancestor, const std::map<int, Process>& all) {
  while (pid > 1 && pid != ancestor && all.contains(pid)) pid = all.at(pid).parent;
  return pid == ancestor;
}

double ticks_a_second() {
  return static_cast<double>(::sysconf(_SC_CLK_TCK));
}

int served = 0;  // 0: nobody

/// Ticks are of ten milliseconds: of less than half a second they say nothing.
constexpr double least_seconds = 0.5;

}  // namespace

Elsewhere::Elsewhere() : begin_(now()) {}

void Elsewhere::serve(int pid) {
  served = pid;
}

Elsewhere::Ticks Elsewhere::now() {
  using std::chrono::steady_clock;
  const std::chrono::duration<double> at = steady_clock::now().time_since_epoch();
  Ticks out{.busy = busy_ticks(), .seconds = at.count()};
  const std::map<int, Process> all = processes();
  const int self = ::getpid();
  for (const auto& [pid, process] : all) {
    if (is_below(pid, self, all) || (served > 0 && is_below(pid, served, all)))
      out.own += process.ticks;
    else
      out.others[pid] = {
          .program = process.program, .pid = pid, .processors = static_cast<double>(process.ticks)};
  }
  return out;
}

std::vector<Elsewhere::Busy> Elsewhere::busiest(std::size_t most) const {
  constexpr double least = 0.1;
  const Ticks end = now();
  const double seconds = end.seconds - begin_.seconds;
  std::vector<Busy> out;
  for (const auto& [pid, after] : end.others) {
    const auto before = begin_.others.find(pid);
    // Of one that began meanwhile all is counted. The number may be another process' by now.
    const bool same = before != begin_.others.end() && before->second.program == after.program;
    const double ticks = after.processors - (same ? before->second.processors : 0);
    Busy one = after;
    one.processors = ticks / ticks_a_second() / seconds;
    if (seconds >= least_seconds && one.processors >= least) out.push_back(one);
  }
  std::sort(out.begin(), out.end(),
            [](const Busy& a, const Busy& b) { return a.processors > b.processors; });
  if (out.size() > most) out.resize(most);
  return out;
}

double Elsewhere::processors() const {
  const Ticks end = now();
  const double seconds = end.seconds - begin_.seconds;
  const double others =
      static_cast<double>((end.busy - begin_.busy) - (end.own - begin_.own)) / ticks_a_second();
  return seconds < least_seconds ? 0 : std::max(0.0, others / seconds);
}

bool Elsewhere::disturbs(double processors) {
  return processors > 0.25 * std::max(1.0, static_cast<double>(allowed_processors().size()));
}

bool near_tie_under_load(const Spread& a, const Spread& b, double elsewhere) {
  const double between = std::abs(a.ms - b.ms);
  return Elsewhere::disturbs(elsewhere) &&
         between <= a.ci95 + b.ci95 + most_noise * std::min(a.ms, b.ms);
}

}  // namespace tessera
