// From patterns to kernels with evidence: all searches take turns, the one that promises most
// milliseconds of the module a second goes on.
#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "pipeline/gains.h"
#include "pipeline/searches.h"
#include "pipeline/stages.h"
#include "pipeline/time_left.h"

namespace tessera::pipeline {

std::vector<Work> group_by_signature(const Session& s) {
  std::vector<Work> out;
  std::map<std::string, std::size_t> by_signature;
  const auto& patterns = s.found.discovery.patterns;
  for (int i = 0; i < static_cast<int>(patterns.size()); ++i) {
    const std::string signature = s.pattern(i).signature();
    const auto [at, fresh] = by_signature.try_emplace(signature, out.size());
    if (!fresh) {
      out[at->second].patterns.push_back(i);
      continue;
    }
    Work w;
    w.patterns = {i};
    w.key = {.signature = signature,
             .precision = std::string(name_of(s.pattern(i).precision)),
             .device = s.tools.device_name,
             .policy = registry::measuring_policy()};
    out.push_back(std::move(w));
  }
  return out;
}

namespace {

/// Seconds of search: the wall clock without what checkpoints take.
class SearchClock {
 public:
  explicit SearchClock(std::chrono::steady_clock::time_point begin) : begin_(begin) {}
  [[nodiscard]] double now() const { return wall() - paused_; }
  void pause_for(const std::function<void()>& what) {
    const double begin = wall();
    what();
    paused_ += wall() - begin;
  }

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] double wall() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  Clock::time_point begin_;
  double paused_ = 0;
};

/// Takes the checkpoints that are due.
class Checkpoints {
 public:
  explicit Checkpoints(Session& s) : s_(s) {}

  void take(Searches& searches, SearchClock& clock) {
    while (next_ < s_.checkpoints.size() && clock.now() >= s_.checkpoints[next_]) {
      const double at = s_.checkpoints[next_++];
      if (!s_.on_checkpoint) continue;
      clock.pause_for([&] {
        searches.crown_so_far();
        if (auto status = s_.on_checkpoint(at); !status) s_.diagnostics.push_back(status.error());
        searches.uncrown();
      });
    }
  }

 private:
  Session& s_;
  std::size_t next_ = 0;
};

}  // namespace

Result<double> search(Session& s, std::vector<Realized> realized,
                      std::chrono::steady_clock::time_point begin) {
  SearchClock clock(begin);
  Searches searches(s, std::move(realized), [&] { return clock.now(); });
  Checkpoints checkpoints(s);
  tune::run(searches.journeys(), {.seconds = search_seconds(s),
                                  .stop = s.context.stop,
                                  .now = [&] { return clock.now(); },
                                  .between =
                                      [&](double left) {
                                        checkpoints.take(searches, clock);
                                        searches.build_ahead(left);
                                      },
                                  .wait = [&](double seconds) { s.tools.evaluator->wait(seconds); },
                                  .ending = [&] { s.tools.evaluator->end_builds(); }});
  const double unspent = s.options.seconds - s.options.spent - clock.now();
  TESSERA_CHECK(searches.end());
  keep_what_was_found(s);
  return std::min(std::max(s.baseline.kept_seconds, unspent),
                  left_for_search(s.options, s.baseline.eager_ms));
}

}  // namespace tessera::pipeline
