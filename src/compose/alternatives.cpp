#include "compose/alternatives.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace tessera::composer {
namespace {

const Option& at(const std::vector<Option>& options, int i) {
  return options[static_cast<std::size_t>(i)];
}

bool fits(const graph::Graph& g, const std::vector<Option>& options, const std::vector<int>& set,
          int more) {
  std::vector<const rules::Pattern*> patterns = {at(options, more).pattern};
  for (const int i : set) {
    if (i == more || overlap(at(options, i), at(options, more))) return false;
    patterns.push_back(at(options, i).pattern);
  }
  return acyclic(g, patterns);
}

/// In the order in which they are to be added to an option that was left out.
std::vector<int> companions(const std::vector<Option>& options, const Choice& choice) {
  const auto by_gain = [&](int a, int b) { return at(options, a).gain() > at(options, b).gain(); };
  std::vector<int> out = choice.chosen;
  std::stable_sort(out.begin(), out.end(), by_gain);
  std::vector<int> others;
  for (const auto& [option, by] : choice.displaced) {
    if (at(options, option).gain() > 0) others.push_back(option);
  }
  std::stable_sort(others.begin(), others.end(), by_gain);
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

/// Half of an interval, of the gain of what two sets differ by.
double spread(const std::vector<Option>& options, const std::vector<int>& a,
              const std::vector<int>& b, double noise) {
  double squares = 0;
  for (int i = 0; i < static_cast<int>(options.size()); ++i) {
    const bool in_a = std::find(a.begin(), a.end(), i) != a.end();
    const bool in_b = std::find(b.begin(), b.end(), i) != b.end();
    if (in_a == in_b) continue;
    const double of_baseline = noise * at(options, i).eager_ms;
    squares += of_baseline * of_baseline + at(options, i).ci95 * at(options, i).ci95;
  }
  return std::sqrt(squares);
}

}  // namespace

std::vector<Alternative> alternatives(const graph::Graph& g, const std::vector<Option>& options,
                                      const Choice& choice, double noise) {
  std::vector<Alternative> out;
  std::set<std::set<int>> seen = {{choice.chosen.begin(), choice.chosen.end()}};
  const std::vector<int> more = companions(options, choice);
  for (const auto& [head, by] : choice.displaced) {
    if (at(options, head).gain() <= 0) continue;
    Alternative one{.chosen = {head}, .gain_ms = at(options, head).gain()};
    for (const int o : more) {
      if (!fits(g, options, one.chosen, o)) continue;
      one.chosen.push_back(o);
      one.gain_ms += at(options, o).gain();
    }
    if (!seen.insert({one.chosen.begin(), one.chosen.end()}).second) continue;
    one.near = choice.gain_ms - one.gain_ms <= spread(options, choice.chosen, one.chosen, noise);
    out.push_back(std::move(one));
  }
  std::stable_sort(out.begin(), out.end(), [](const Alternative& a, const Alternative& b) {
    return a.gain_ms > b.gain_ms;
  });
  return out;
}

}  // namespace tessera::composer
