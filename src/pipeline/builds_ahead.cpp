#include "pipeline/builds_ahead.h"

#include <algorithm>

#include "base/parallel.h"
#include "pipeline/best_plan.h"
#include "pipeline/gains.h"

namespace tessera::pipeline {
namespace {

/// Of what ops take one by one: what they are taken to take in PyTorch's best plan where it fuses
/// them, before that was timed.
constexpr double fused_guess = 0.25;
constexpr double least_gain = 0.1;   // of the ops' time: they seldom reach their roofline
constexpr std::size_t of_one = 48;   // a work's sources at most, as a search looks for in the cache
constexpr std::size_t of_all = 256;  // more than 16 compilers build in half a minute

struct Valued {
  double worth = 0;  // milliseconds of the module
  const toolchain::Source* source = nullptr;
};

/// Milliseconds that kernels may save at all places of a work.
double worth_of(const Session& s, const Standing& standing, std::size_t at) {
  const Work& w = s.work[at];
  const rules::Pattern& p = s.pattern(w.patterns.front());
  const double price = standing.bar(at) * (is_of_products(s.found.graph, p) ? 1.0 : fused_guess);
  return std::max(least_gain * price, price - p.floor_ms) * static_cast<double>(w.patterns.size());
}

/// A work's sources in the order of its search.
std::vector<const toolchain::Source*> sources_of(const std::vector<kernel::Candidate>& candidates) {
  std::vector<const toolchain::Source*> out;
  for (const int i : tune::search_order(evaluate::items_of(candidates))) {
    const kernel::Candidate& c = candidates[static_cast<std::size_t>(i)];
    if (out.size() < of_one && c.source && c.build_seconds() < tune::slow_build)
      out.push_back(&*c.source);
  }
  return out;
}

}  // namespace

std::vector<const toolchain::Source*> first_builds(Session& s, std::size_t most) {
  const Standing standing(s, std::vector<Price>(s.work.size()));
  std::vector<std::vector<Valued>> valued(s.work.size());
  in_parallel(s.work.size(), [&](std::size_t at) {
    Work& w = s.work[at];
    if (s.stopped() || (w.reuse == rules::Reuse::reuse && !s.options.retune)) return;
    const double worth = worth_of(s, standing, at);
    for (const toolchain::Source* source : sources_of(offers_of(s, w).candidates))
      valued[at].push_back({worth / (1 + static_cast<double>(valued[at].size())), source});
  });
  std::vector<Valued> all;
  for (const auto& of_work : valued) all.insert(all.end(), of_work.begin(), of_work.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const Valued& a, const Valued& b) { return a.worth > b.worth; });
  all.resize(std::min(all.size(), most));
  std::vector<const toolchain::Source*> out;
  for (const Valued& v : all) out.push_back(v.source);
  return out;
}

BuildsAhead::BuildsAhead(Session& s) : s_(s) {
  if (!s.tools.evaluator->builds_ahead()) return;
  told_ = std::async(std::launch::async, [&s] {
    std::vector<const toolchain::Source*> sources = first_builds(s, of_all);
    s.tools.evaluator->expect(sources);
    return sources;
  });
}

BuildsAhead::~BuildsAhead() {
  stop();
}

void BuildsAhead::stop() {
  if (!told_.valid()) return;
  told_.wait();
  s_.tools.evaluator->end_builds();
}

int BuildsAhead::end() {
  stop();
  return told_.valid() ? s_.tools.evaluator->ended(told_.get()) : 0;
}

}  // namespace tessera::pipeline
