#include "pipeline/gains.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace tessera::pipeline {
namespace {

/// The ms that a work's fastest kernel saves. A candidate that is the ATen ops themselves is what
/// its eager time is of: between the two there is nothing but noise, for which no better kernel may
/// be passed over.
double saved_ms(const Session& s, const Work& w) {
  if (!w.tuned) return 0;
  double saved = 0;
  for (const evaluate::Tuned::Winner& winner : w.tuned->winners) {
    if (!may_be_placed(s, winner) || winner.candidate.is_eager()) continue;
    saved = std::max(saved, w.tuned->eager_ms - winner.evidence.ms);
  }
  return saved;
}

}  // namespace

bool may_be_placed(const Session& s, const evaluate::Tuned::Winner& winner) {
  return s.options.only_kind.empty() ||
         s.options.only_kind == realize::name_of(winner.candidate.kind);
}

const evaluate::Tuned::Winner* placeable(const Session& s, const Work& w) {
  if (!w.tuned) return nullptr;
  for (const evaluate::Tuned::Winner& winner : w.tuned->winners) {
    if (may_be_placed(s, winner)) return &winner;
  }
  return nullptr;
}

double alone_ms(const Session& s, const Work& w) {
  double least = placeable(s, w)->evidence.ms;
  for (const evaluate::Tuned::Winner& winner : w.tuned->winners) {
    if (may_be_placed(s, winner)) least = std::min(least, winner.evidence.ms);
  }
  return least;
}

std::string covered_by(const Session& s, const Work& w) {
  const rules::Pattern& p = s.pattern(w.patterns.front());
  double saved = 0;
  double now = p.unfused_ms;
  std::set<graph::NodeId> done;
  std::vector<std::string> by;
  for (const Work& other : s.work) {
    const double gain = saved_ms(s, other);
    if (gain <= 0 || &other == &w) continue;
    for (const int i : other.patterns) {
      const rules::Pattern& q = s.pattern(i);
      const std::size_t before = done.size();
      for (const graph::NodeId n : q.computing) {
        if (std::find(p.computing.begin(), p.computing.end(), n) != p.computing.end())
          done.insert(n);
      }
      const bool overlaps = done.size() > before;
      if (!overlaps) continue;
      saved += gain;
      now += other.tuned->eager_ms - gain - q.unfused_ms;
      by.push_back(q.id);
    }
  }
  if (by.empty()) return "";
  if (done.size() == p.computing.size() && s.options.effort != "max") {
    return fmt::format("{} already save {:.4g} ms on all of its ops", fmt::join(by, ", "), saved);
  }
  if (now > p.floor_ms) return "";
  return fmt::format("with {} its ops take {:.4g} ms; at the roofline it would {:.4g} ms",
                     fmt::join(by, ", "), now, p.floor_ms);
}

}  // namespace tessera::pipeline
