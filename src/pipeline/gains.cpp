#include "pipeline/gains.h"

#include <algorithm>
#include <set>

namespace tessera::pipeline {
bool may_be_placed(const Session& s, const kernel::Winner& winner) {
  return s.options.only_kind.empty() ||
         s.options.only_kind == kernel::name_of(winner.candidate.kind);
}

const kernel::Winner* placeable(const Session& s, const Work& w) {
  if (!w.tuned) return nullptr;
  for (const kernel::Winner& winner : w.tuned->winners) {
    if (may_be_placed(s, winner)) return &winner;
  }
  return nullptr;
}

double alone_ms(const Session& s, const Work& w) {
  const kernel::Winner* first = placeable(s, w);
  double least = first->evidence.ms;
  if (first->candidate.is_eager()) return least;
  for (const kernel::Winner& winner : w.tuned->winners) {
    if (may_be_placed(s, winner)) least = std::min(least, winner.evidence.ms);
  }
  return least;
}

Price price_of(const Session& s, const Work& w) {
  Price out;
  if (!w.tuned) return out;
  out.eager_ms = w.tuned->eager_ms;
  for (const kernel::Winner& winner : w.tuned->winners) {
    // Between eager and the same ops as a candidate there is nothing but noise.
    if (!may_be_placed(s, winner) || winner.candidate.is_eager()) continue;
    if (out.best_ms == 0 || winner.evidence.ms < out.best_ms) out.best_ms = winner.evidence.ms;
  }
  return out;
}

namespace {

/// Every place of every work, in their order.
std::vector<composer::Option> priced(const Session& s, const std::vector<Price>& prices) {
  std::vector<composer::Option> out;
  for (std::size_t w = 0; w < s.work.size(); ++w) {
    const bool estimated = prices[w].eager_ms <= 0;
    const double eager_ms =
        estimated ? s.pattern(s.work[w].patterns.front()).unfused_ms : prices[w].eager_ms;
    for (const int i : s.work[w].patterns) {
      out.push_back({.pattern = &s.pattern(i),
                     .ms = prices[w].best_ms,
                     .eager_ms = eager_ms,
                     .estimated = estimated});
    }
  }
  composer::raise_baselines(out);
  return out;
}

}  // namespace

Standing::Standing(const Session& s, const std::vector<Price>& prices) : saved_(s.work.size(), 0) {
  const std::vector<composer::Option> all = priced(s, prices);
  std::vector<composer::Option> options;
  std::vector<std::size_t> work_of;
  std::size_t place = 0;
  for (std::size_t w = 0; w < s.work.size(); ++w) {
    for (std::size_t i = 0; i < s.work[w].patterns.size(); ++i, ++place) {
      if (prices[w].best_ms <= 0) continue;
      options.push_back(all[place]);
      work_of.push_back(w);
    }
  }
  struct Placed {
    const rules::Pattern* pattern;
    std::set<graph::NodeId> nodes;
    double gain;
  };
  std::vector<Placed> placed;
  for (const int o : composer::choose(s.found.graph, options).chosen) {
    const composer::Option& option = options[static_cast<std::size_t>(o)];
    const auto& nodes = option.pattern->computing;
    placed.push_back({option.pattern, {nodes.begin(), nodes.end()}, option.gain()});
    saved_[work_of[static_cast<std::size_t>(o)]] += option.gain();
  }
  place = 0;
  for (const Work& w : s.work) {
    std::vector<double>& bars = bars_.emplace_back();
    for (const int i : w.patterns) {
      const rules::Pattern& p = s.pattern(i);
      double bar = all[place++].eager_ms;
      for (const Placed& other : placed) {
        const bool displaced =
            other.pattern != &p && s.options.effort != "max" &&
            std::any_of(p.computing.begin(), p.computing.end(),
                        [&](graph::NodeId n) { return other.nodes.contains(n); });
        if (displaced) bar -= other.gain;
      }
      bars.push_back(bar);
    }
  }
}

double Standing::bar(std::size_t work) const {
  return *std::max_element(bars_[work].begin(), bars_[work].end());
}

int Standing::places_above(std::size_t work, double ms) const {
  return static_cast<int>(
      std::count_if(bars_[work].begin(), bars_[work].end(), [&](double bar) { return bar >= ms; }));
}

}  // namespace tessera::pipeline
