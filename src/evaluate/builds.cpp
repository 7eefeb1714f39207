#include "evaluate/builds.h"

#include <thread>

namespace tessera::evaluate {
namespace {

tune::Trial failure(int candidate, const Diagnostic& d) {
  tune::Trial t{
      .point = {candidate, 0}, .outcome = tune::Outcome::build_failed, .reason = d.message};
  if (d.code == "TS0304") t.outcome = tune::Outcome::timed_out;
  if (d.code == "TS0301" || d.code == "TS0302") t.outcome = tune::Outcome::unsupported;
  if (!d.notes.empty()) t.reason += ": " + d.notes.front();
  t.detail = d.data;
  return t;
}

}  // namespace

std::vector<tune::Trial> build_all(const std::vector<realize::Candidate>& candidates,
                                   const std::vector<int>& which, const Options& options,
                                   const std::atomic<bool>& stop,
                                   std::vector<std::optional<toolchain::Built>>& built) {
  std::vector<tune::Trial> out(which.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < which.size(); i = next++) {
      const int c = which[i];
      const realize::Candidate& candidate = candidates[static_cast<std::size_t>(c)];
      out[i] = {.point = {c, 0}, .outcome = tune::Outcome::measured};
      if (!candidate.source) continue;
      if (stop.load()) {
        out[i].outcome = tune::Outcome::skipped;
        continue;
      }
      auto result =
          toolchain::build(options.tools, *candidate.source, options.cache, options.build_limit);
      if (result) {
        built[static_cast<std::size_t>(c)] = std::move(*result);
      } else {
        out[i] = failure(c, result.error());
      }
    }
  };
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t wanted =
      options.parallel_builds > 0 ? static_cast<std::size_t>(options.parallel_builds) : cores;
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < std::min(wanted, which.size()); ++i) threads.emplace_back(work);
  work();
  threads.clear();  // joins
  return out;
}

}  // namespace tessera::evaluate
