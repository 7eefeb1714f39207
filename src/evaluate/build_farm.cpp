#include "evaluate/build_farm.h"

#include <algorithm>

#include "toolchain/flags.h"

#include "kernel/candidate.h"

namespace tessera::evaluate {

using toolchain::Built;
using toolchain::Source;

int slow_builds_at_once(int compilers, double seconds_left) {
  constexpr double crowded = 2;  // times as long as one by itself
  const bool in_time = seconds_left <= 0 || crowded * kernel::cutlass_build_seconds <= seconds_left;
  return in_time ? std::max(1, compilers) : std::max(1, compilers / 2);
}

struct BuildFarm::Job {
  explicit Job(Source s) : source(std::move(s)) {}
  const Source source;
  bool started = false;
  std::chrono::steady_clock::time_point begin;  // when started
  std::optional<Result<Built>> result;
  std::atomic<bool> cancel = false;
};

BuildFarm::BuildFarm(toolchain::Toolchain tools, std::filesystem::path cache,
                     std::chrono::seconds limit, int compilers)
    : tools_(std::move(tools)),
      cache_(std::move(cache)),
      limit_(limit),
      most_slow_(std::max(1, compilers)) {
  for (int i = 0; i < std::max(1, compilers); ++i) workers_.emplace_back([this] { work(); });
}

BuildFarm::~BuildFarm() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    for (const auto& [key, job] : jobs_) job->cancel = true;
  }
  waiting_.notify_all();
  workers_.clear();  // joins
}

// Under the lock.
BuildFarm::JobPtr BuildFarm::job_for(const Source& source) {
  JobPtr& job = jobs_[toolchain::cache_key(tools_, source)];
  // A cancelled build is no answer for one who asks again.
  if (!job || job->cancel) job = std::make_shared<Job>(source);
  return job;
}

void BuildFarm::refill(Queue queue, const std::vector<const Source*>& sources) {
  {
    const std::scoped_lock lock(mutex_);
    queue_[queue].clear();
    for (const Source* s : sources) queue_[queue].push_back(job_for(*s));
  }
  waiting_.notify_all();
}

void BuildFarm::slow_at_once(int builds) {
  {
    const std::scoped_lock lock(mutex_);
    most_slow_ = std::max(1, builds);
  }
  waiting_.notify_all();
}

void BuildFarm::expect(const std::vector<const Source*>& sources) {
  refill(expected, sources);
}

std::string BuildFarm::key_of(const Source& source) const {
  return toolchain::cache_key(tools_, source);
}

bool BuildFarm::ended(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto at = jobs_.find(key);
  return at != jobs_.end() && at->second->result && !at->second->cancel;
}

double BuildFarm::running(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto at = jobs_.find(key);
  if (at == jobs_.end() || !at->second->started || at->second->result) return 0;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - at->second->begin)
      .count();
}

void BuildFarm::wait(double seconds) {
  std::unique_lock lock(mutex_);
  const auto before = ended_;
  finished_.wait_for(lock, std::chrono::duration<double>(seconds),
                     [&] { return ended_ != before; });
}

// Under the lock: empties the queues; the jobs without a result.
std::vector<BuildFarm::JobPtr> BuildFarm::clear() {
  for (auto& queue : queue_) queue.clear();
  std::vector<JobPtr> open;
  for (const auto& [key, job] : jobs_) {
    if (!job->result) open.push_back(job);
  }
  return open;
}

void BuildFarm::drain() {
  std::unique_lock lock(mutex_);
  wait_for(lock, clear());
}

// A killed compiler ends at once; until then it would disturb the host's clock.
void BuildFarm::cancel() {
  std::unique_lock lock(mutex_);
  const std::vector<JobPtr> open = clear();
  for (const JobPtr& j : open) j->cancel = true;
  wait_for(lock, open);
}

void BuildFarm::wait_for(std::unique_lock<std::mutex>& lock, const std::vector<JobPtr>& jobs) {
  finished_.wait(lock, [&] {
    return std::all_of(jobs.begin(), jobs.end(),
                       [](const JobPtr& j) { return !j->started || j->result; });
  });
}

std::vector<std::optional<Result<Built>>> BuildFarm::get(const std::vector<const Source*>& sources,
                                                         const std::atomic<bool>& stop,
                                                         Deadline deadline) {
  refill(asked, sources);
  std::vector<JobPtr> jobs;
  std::unique_lock lock(mutex_);
  for (const Source* s : sources) jobs.push_back(job_for(*s));
  const auto done = [&] {
    return std::all_of(jobs.begin(), jobs.end(), [](const JobPtr& j) { return j->result; });
  };
  // `stop` is set by a signal handler, which can notify nobody.
  constexpr std::chrono::milliseconds look(100);
  while (!done()) {
    const bool late = std::chrono::steady_clock::now() >= deadline;
    if (late || stop.load()) {
      queue_[asked].clear();
      if (stop.load()) queue_[expected].clear();
      for (const JobPtr& j : jobs) {
        if (!j->result) j->cancel = true;
      }
      wait_for(lock, jobs);
      break;
    }
    finished_.wait_until(lock, std::min(deadline, std::chrono::steady_clock::now() + look));
  }
  std::vector<std::optional<Result<Built>>> out;
  for (const JobPtr& j : jobs) {
    const bool ended = j->result && (*j->result || !j->cancel);
    out.push_back(ended ? j->result : std::nullopt);
  }
  return out;
}

// Under the lock.
bool BuildFarm::may_begin(const Job& job) const {
  return !job.source.cutlass || slow_ < most_slow_;
}

// Under the lock: the first job of the queues that nobody has begun, and may begin now.
BuildFarm::JobPtr BuildFarm::next() {
  for (auto& queue : queue_) {
    std::erase_if(queue, [](const JobPtr& j) { return j->started || j->cancel; });
    const auto at =
        std::find_if(queue.begin(), queue.end(), [&](const JobPtr& j) { return may_begin(*j); });
    if (at == queue.end()) continue;
    JobPtr job = std::move(*at);
    queue.erase(at);
    job->started = true;
    job->begin = std::chrono::steady_clock::now();
    slow_ += job->source.cutlass ? 1 : 0;
    return job;
  }
  return nullptr;
}

void BuildFarm::work() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    const JobPtr job = next();
    if (!job) {
      waiting_.wait(lock);
      continue;
    }
    lock.unlock();
    Result<Built> result = toolchain::build(tools_, job->source, cache_, limit_, &job->cancel);
    lock.lock();
    job->result = std::move(result);
    ++ended_;
    slow_ -= job->source.cutlass ? 1 : 0;
    finished_.notify_all();
    waiting_.notify_all();  // others may begin a slow one now
  }
}

}  // namespace tessera::evaluate
