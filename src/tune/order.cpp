// The names of rounds, and the order that a search begins with.
#include <algorithm>
#include <cmath>
#include <set>

#include "tune/search.h"

namespace tessera::tune {
std::string_view name_of(Round round) {
  switch (round) {
    case Round::free:
      return "free";
    case Round::quick:
      return "quick";
    case Round::slow:
      return "slow";
    case Round::sweep:
      return "sweep";
    case Round::finals:
      return "finals";
  }
  return "finals";
}

Round round_of(const Item& item) {
  if (!item.needs_build) return Round::free;
  return item.build_seconds < slow_build ? Round::quick : Round::slow;
}

double Trial::judged_ms() const {
  const double sustained = detail.value("sustained_ms", 0.0);
  return sustained > 0 ? std::sqrt(ms * sustained) : ms;
}

std::vector<int> search_order(const std::vector<Item>& items) {
  std::vector<int> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  const auto item = [&](int i) -> const Item& { return items[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const Item& x = item(a);
    const Item& y = item(b);
    if (x.needs_build != y.needs_build) return !x.needs_build;
    if (x.proven != y.proven) return x.proven;
    // Only two known predictions are comparable across families; unknown ones come first, in their
    // given order.
    return x.predicted_ms < y.predicted_ms;
  });
  std::set<std::string> seen;
  std::vector<int> first;
  std::vector<int> rest;
  for (const int i : order) {
    const bool free = !item(i).needs_build;
    const bool leads = !free && seen.insert(item(i).family).second;
    (free || item(i).proven || leads ? first : rest).push_back(i);
  }
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

Outcomes search(const std::vector<Item>& items, const Budget& budget, const Callbacks& callbacks,
                const std::vector<Trial>& known, const std::atomic<bool>& stop, int batch) {
  Search s(items, budget, callbacks, known, stop, batch);
  while (const auto step = s.next({})) s.advance(*step, 0);
  s.finals();
  Outcomes out = s.outcomes();
  out.stopped_because = s.why_over();
  return out;
}

}  // namespace tessera::tune
