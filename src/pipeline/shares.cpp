#include "pipeline/shares.h"

#include <algorithm>
#include <set>

namespace tessera::pipeline {
namespace {

/// The one of a work's patterns that is evaluated.
const rules::Pattern& first_of(const Work& w, const std::vector<rules::Pattern>& patterns) {
  return patterns.at(static_cast<std::size_t>(w.patterns.front()));
}

void mark_alternatives(std::vector<Work>& work, const std::vector<rules::Pattern>& patterns) {
  std::set<graph::NodeId> claimed;
  for (Work& w : work) {
    w.alternative = std::all_of(w.patterns.begin(), w.patterns.end(), [&](int i) {
      const auto& nodes = patterns.at(static_cast<std::size_t>(i)).computing;
      return std::any_of(nodes.begin(), nodes.end(),
                         [&](graph::NodeId n) { return claimed.contains(n); });
    });
    for (const int i : w.patterns) {
      const auto& nodes = patterns.at(static_cast<std::size_t>(i)).computing;
      claimed.insert(nodes.begin(), nodes.end());
    }
  }
}

}  // namespace

void order_work(std::vector<Work>& work, const std::vector<rules::Pattern>& patterns) {
  mark_alternatives(work, patterns);
  const auto place = [&](const Work& w) {
    const std::string& rule = first_of(w, patterns).rule;
    const bool slow = rule == "gemm" || rule == "gated_mlp";
    return (w.alternative ? 2 : 0) + (slow ? 1 : 0);
  };
  std::stable_sort(work.begin(), work.end(),
                   [&](const Work& a, const Work& b) { return place(a) < place(b); });
}

double share_of(const std::vector<Work>& work, const std::vector<rules::Pattern>& patterns,
                std::size_t at, double left, double total) {
  constexpr double for_alternatives = 0.1;
  constexpr double least = 15;  // seconds: opening a pattern and one batch of builds
  const bool alternative = work[at].alternative;
  double all = 0;
  bool others = false;
  for (std::size_t i = at; i < work.size(); ++i) {
    const Work& w = work[i];
    if (i != at && !w.to_come()) continue;
    if (w.alternative == alternative) all += first_of(w, patterns).unfused_ms;
    if (w.alternative != alternative) others = true;
  }
  if (all <= 0) return left;
  const double kept = others ? for_alternatives * total : 0;
  const double share = (left - kept) * first_of(work[at], patterns).unfused_ms / all;
  return std::max(std::min(least, left), share);
}

}  // namespace tessera::pipeline
