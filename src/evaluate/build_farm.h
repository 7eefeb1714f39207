// Compilers at work in the background: as many as there are cores, on what is asked for now first,
// then on what the search says it will ask for. No core waits for the slowest of a batch, nor while
// kernels are verified and measured.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "toolchain/toolchain.h"

namespace tessera::evaluate {

/// How many builds with CUTLASS should run at once, of a search that has so many seconds left (0:
/// no limit): as many as there are compilers, or half of them where a whole round would end too
/// late. Two threads of one core build no faster than one and a bit: 16 on 16 threads took more
/// than 58 s each, and none of a search of 60 s had ended.
int slow_builds_at_once(int compilers, double seconds_left);

class BuildFarm {
 public:
  /// `compilers` at once at most; each killed after `limit`.
  BuildFarm(toolchain::Toolchain tools, std::filesystem::path cache, std::chrono::seconds limit,
            int compilers);
  /// Kills the compilers that run.
  ~BuildFarm();
  BuildFarm(const BuildFarm&) = delete;
  BuildFarm& operator=(const BuildFarm&) = delete;

  /// What get() will be called for, in order; replaces what was said before, and ends no compiler.
  void expect(const std::vector<const toolchain::Source*>& sources);

  /// Of sources with CUTLASS, which build for most of a minute, at most so many at once; from now
  /// on.
  void slow_at_once(int builds);

  /// What a source is known by in ended(); costs a hash of its text and headers.
  [[nodiscard]] std::string key_of(const toolchain::Source& source) const;
  /// Whether the build of this source, expected or asked for before, has ended, well or badly.
  bool ended(const std::string& key);
  /// For how many seconds it has been under way; 0 when it has not begun, or has ended.
  double running(const std::string& key);
  /// Until any build ends, at most so many seconds.
  void wait(double seconds);
  /// Forgets what is expected and waits for the compilers that run.
  void drain();
  /// Forgets what is expected and kills the compilers that run.
  void cancel();

  using Deadline = std::chrono::steady_clock::time_point;
  /// Builds these before anything else and waits for all, until `deadline`: one result a source, in
  /// order; nothing for a source that is not built by then, or because `stop` was set. Its compiler
  /// is killed.
  std::vector<std::optional<Result<toolchain::Built>>> get(
      const std::vector<const toolchain::Source*>& sources, const std::atomic<bool>& stop,
      Deadline deadline = Deadline::max());

 private:
  struct Job;
  using JobPtr = std::shared_ptr<Job>;
  enum Queue { asked, expected, queues };

  JobPtr job_for(const toolchain::Source& source);
  void refill(Queue queue, const std::vector<const toolchain::Source*>& sources);
  void wait_for(std::unique_lock<std::mutex>& lock, const std::vector<JobPtr>& jobs);
  std::vector<JobPtr> clear();
  JobPtr next();
  bool may_begin(const Job& job) const;
  void work();

  const toolchain::Toolchain tools_;
  const std::filesystem::path cache_;
  const std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable waiting_;   // workers, for a job
  std::condition_variable finished_;  // get() and wait(), for a result
  std::map<std::string, JobPtr> jobs_;
  std::deque<JobPtr> queue_[queues];
  int64_t ended_ = 0;  // builds
  int slow_ = 0;       // that run
  int most_slow_;
  std::atomic<bool> closing_ = false;
  std::vector<std::jthread> workers_;  // last: joined before what they use goes away
};

}  // namespace tessera::evaluate
