// What a tree of processes uses, and what folders hold.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <map>
#include <time.h>
#include <unistd.h>

#include "sandbox/launcher/launcher.h"

namespace tessera::sandbox {
namespace {

std::string small_file(int folder, const std::string& name) {
  const int fd = ::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  char text[4096];
  const ssize_t n = ::read(fd, text, sizeof text);
  ::close(fd);
  return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : "";
}

int64_t number_after(const std::string& text, const char* key) {
  const std::size_t at = text.find(key);
  return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + std::strlen(key));
}

std::map<pid_t, std::string> all_status(int proc) {
  std::map<pid_t, std::string> out;
  const int folder = ::openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return out;
  DIR* d = ::fdopendir(folder);
  if (d == nullptr) {
    ::close(folder);
    return out;
  }
  while (const dirent* e = ::readdir(d)) {
    const pid_t pid = std::atoi(e->d_name);
    if (pid <= 0) continue;
    std::string text = small_file(proc, std::to_string(pid) + "/status");
    if (!text.empty()) out.emplace(pid, std::move(text));
  }
  ::closedir(d);
  return out;
}

bool is_below(const std::map<pid_t, pid_t>& parents, pid_t process, pid_t first) {
  for (int depth = 0; depth < 10000; ++depth) {
    const auto at = parents.find(process);
    if (at == parents.end()) return false;
    if (at->second == first) return true;
    process = at->second;
  }
  return false;
}

std::map<pid_t, std::string> tree(int proc, pid_t first) {
  std::map<pid_t, std::string> all = all_status(proc);
  std::map<pid_t, pid_t> parents;
  for (const auto& [pid, text] : all)
    parents[pid] = static_cast<pid_t>(number_after(text, "\nPPid:"));
  std::erase_if(all, [&](const auto& e) { return !is_below(parents, e.first, first); });
  return all;
}

int64_t counted = 0;
int count(const char*, const struct stat* st, int, struct FTW*) {
  counted += static_cast<int64_t>(st->st_blocks) * 512;
  return 0;
}

}  // namespace

Totals totals_of(int proc, pid_t first) {
  Totals out;
  for (const auto& [pid, text] : tree(proc, first)) {
    out.memory += 1024 * (number_after(text, "\nRssAnon:") + number_after(text, "\nRssShmem:"));
    out.processes += std::max<int64_t>(1, number_after(text, "\nThreads:"));
  }
  return out;
}

std::vector<pid_t> below(int proc, pid_t first) {
  std::vector<pid_t> out;
  for (const auto& [pid, text] : tree(proc, first)) out.push_back(pid);
  return out;
}

int64_t bytes_of(const std::vector<std::string>& folders) {
  counted = 0;
  for (const std::string& f : folders) ::nftw(f.c_str(), count, 16, FTW_PHYS);
  return counted;
}

double monotonic_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace tessera::sandbox
