#include "evaluate/build_farm.h"

#include <algorithm>

#include "toolchain/flags.h"

namespace tessera::evaluate {

using toolchain::Built;
using toolchain::Source;

struct BuildFarm::Job {
  explicit Job(Source s) : source(std::move(s)) {}
  const Source source;
  bool started = false;
  std::optional<Result<Built>> result;
  std::atomic<bool> cancel = false;
};

BuildFarm::BuildFarm(toolchain::Toolchain tools, std::filesystem::path cache,
                     std::chrono::seconds limit, int compilers)
    : tools_(std::move(tools)), cache_(std::move(cache)), limit_(limit) {
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

void BuildFarm::expect(const std::vector<const Source*>& sources) {
  refill(expected, sources);
}

void BuildFarm::expect_later(const std::vector<const Source*>& sources) {
  refill(later, sources);
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
  const auto enough = [&] {
    return std::chrono::steady_clock::now() >= deadline &&
           std::any_of(jobs.begin(), jobs.end(),
                       [](const JobPtr& j) { return j->result && *j->result; });
  };
  // `stop` is set by a signal handler, which can notify nobody.
  constexpr std::chrono::milliseconds look(100);
  while (!done()) {
    if (stop.load()) {
      for (auto& queue : queue_) queue.clear();
      for (const JobPtr& j : jobs) j->cancel = true;
      finished_.wait(lock, [&] {
        return std::all_of(jobs.begin(), jobs.end(),
                           [](const JobPtr& j) { return !j->started || j->result; });
      });
      break;
    }
    if (enough()) {
      queue_[asked].clear();
      break;
    }
    finished_.wait_for(lock, look);
  }
  std::vector<std::optional<Result<Built>>> out;
  for (const JobPtr& j : jobs) {
    const bool ended = j->result && (*j->result || !j->cancel);
    out.push_back(ended ? j->result : std::nullopt);
  }
  return out;
}

// Under the lock: the first job of the queues that nobody has begun.
BuildFarm::JobPtr BuildFarm::next() {
  for (auto& queue : queue_) {
    while (!queue.empty()) {
      JobPtr job = queue.front();
      queue.pop_front();
      if (!job->started && !job->cancel) {
        job->started = true;
        return job;
      }
    }
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
    finished_.notify_all();
  }
}

}  // namespace tessera::evaluate
