// Compilers at work in the background: as many as there are cores, on what is asked for now first,
// then on what the search says it will ask for, then on what later patterns may need. No core waits
// for the slowest of a batch, nor while kernels are verified and measured.
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

class BuildFarm {
 public:
  /// `compilers` at once at most; each killed after `limit`.
  BuildFarm(toolchain::Toolchain tools, std::filesystem::path cache, std::chrono::seconds limit,
            int compilers);
  /// Kills the compilers that run.
  ~BuildFarm();
  BuildFarm(const BuildFarm&) = delete;
  BuildFarm& operator=(const BuildFarm&) = delete;

  /// What get() will be called for next, in order; replaces what was said before, and ends no
  /// compiler.
  void expect(const std::vector<const toolchain::Source*>& sources);
  /// What may be called for after that, likewise.
  void expect_later(const std::vector<const toolchain::Source*>& sources);

  using Deadline = std::chrono::steady_clock::time_point;
  /// Builds these before anything else and waits for all, after `deadline` for the first that
  /// succeeds only: one result a source, in order; nothing for a source that is not built by then
  /// (its compiler goes on when it had been started), or because `stop` was set.
  std::vector<std::optional<Result<toolchain::Built>>> get(
      const std::vector<const toolchain::Source*>& sources, const std::atomic<bool>& stop,
      Deadline deadline = Deadline::max());

 private:
  struct Job;
  using JobPtr = std::shared_ptr<Job>;
  enum Queue { asked, expected, later, queues };

  JobPtr job_for(const toolchain::Source& source);
  void refill(Queue queue, const std::vector<const toolchain::Source*>& sources);
  JobPtr next();
  void work();

  const toolchain::Toolchain tools_;
  const std::filesystem::path cache_;
  const std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable waiting_;   // workers, for a job
  std::condition_variable finished_;  // get(), for a result
  std::map<std::string, JobPtr> jobs_;
  std::deque<JobPtr> queue_[queues];
  std::atomic<bool> closing_ = false;
  std::vector<std::jthread> workers_;  // last: joined before what they use goes away
};

}  // namespace tessera::evaluate
