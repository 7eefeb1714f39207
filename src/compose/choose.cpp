#include "compose/choose.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <set>

#include "graph/ops.h"

namespace tessera::composer {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::ValueId;

// Nodes that two patterns may not share: those that compute. A folded view costs nothing and may be
// read by both.
std::set<NodeId> computing_nodes(const rules::Pattern& p) {
  return {p.computing.begin(), p.computing.end()};
}

bool share(const std::set<NodeId>& a, const std::set<NodeId>& b) {
  return std::any_of(a.begin(), a.end(), [&](NodeId n) { return b.contains(n); });
}

// Which unit produces a value: patterns 0..p-1 by their outputs, then single nodes.
struct Contraction {
  std::vector<std::vector<int>> needs;  // unit -> units whose results it reads
};

Contraction contract(const Graph& g, const std::vector<const rules::Pattern*>& patterns) {
  std::map<ValueId, int> producer;
  const int pattern_count = static_cast<int>(patterns.size());
  for (std::size_t i = 0; i < g.order.size(); ++i) {
    for (const ValueId v : g.node(g.order[i]).outputs)
      producer[v] = pattern_count + static_cast<int>(i);
  }
  for (int p = 0; p < pattern_count; ++p) {
    for (const ValueId v : patterns[static_cast<std::size_t>(p)]->outputs) producer[v] = p;
  }
  Contraction c;
  c.needs.resize(static_cast<std::size_t>(pattern_count) + g.order.size());
  const auto link = [&](std::size_t unit, ValueId v) {
    if (const auto it = producer.find(v); it != producer.end()) c.needs[unit].push_back(it->second);
  };
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    for (const ValueId v : patterns[p]->inputs) link(p, v);
  }
  for (std::size_t i = 0; i < g.order.size(); ++i) {
    for (const ValueId v : graph::tensor_arguments(g.node(g.order[i])))
      link(patterns.size() + i, v);
  }
  // What draws random numbers waits for what draws before it.
  ValueId drawn;
  for (std::size_t i = 0; i < g.order.size(); ++i) {
    const graph::Node& n = g.node(g.order[i]);
    if (!graph::draws(n)) continue;
    link(patterns.size() + i, drawn);
    drawn = n.outputs.front();
  }
  return c;
}

class Search {
 public:
  Search(const Graph& g, const std::vector<Option>& options) : g_(g), options_(options) {
    for (const Option& o : options) nodes_.push_back(computing_nodes(*o.pattern));
  }

  [[nodiscard]] bool clash(int a, int b) const {
    return share(nodes_[static_cast<std::size_t>(a)], nodes_[static_cast<std::size_t>(b)]);
  }

  // Clusters of options connected by overlaps.
  [[nodiscard]] std::vector<std::vector<int>> clusters(const std::vector<int>& candidates) const {
    std::vector<std::vector<int>> out;
    std::set<int> seen;
    for (const int start : candidates) {
      if (seen.contains(start)) continue;
      std::vector<int> cluster = {start};
      seen.insert(start);
      for (std::size_t at = 0; at < cluster.size(); ++at) {
        for (const int other : candidates) {
          if (!seen.contains(other) && clash(cluster[at], other)) {
            seen.insert(other);
            cluster.push_back(other);
          }
        }
      }
      std::sort(cluster.begin(), cluster.end(), [&](int a, int b) { return gain(a) > gain(b); });
      out.push_back(std::move(cluster));
    }
    return out;
  }

  // Branch and bound over one cluster, given what other clusters already took.
  std::vector<int> best_of(const std::vector<int>& cluster, const std::vector<int>& taken) {
    best_.clear();
    best_gain_ = 0;
    std::vector<int> current;
    descend(cluster, 0, 0, current, taken);
    return best_;
  }

  std::vector<int> greedy(const std::vector<int>& cluster, const std::vector<int>& taken) {
    std::vector<int> out;
    for (const int o : cluster) {
      if (std::any_of(out.begin(), out.end(), [&](int other) { return clash(o, other); })) continue;
      out.push_back(o);
      if (!fits(out, taken)) out.pop_back();
    }
    return out;
  }

  [[nodiscard]] double gain(int i) const { return options_[static_cast<std::size_t>(i)].gain(); }

 private:
  bool fits(const std::vector<int>& chosen, const std::vector<int>& taken) const {
    std::vector<const rules::Pattern*> patterns;
    for (const int i : chosen) patterns.push_back(options_[static_cast<std::size_t>(i)].pattern);
    for (const int i : taken) patterns.push_back(options_[static_cast<std::size_t>(i)].pattern);
    return acyclic(g_, patterns);
  }

  void descend(const std::vector<int>& cluster, std::size_t at, double gain_so_far,
               std::vector<int>& current, const std::vector<int>& taken) {
    if (gain_so_far > best_gain_ && fits(current, taken)) {
      best_ = current;
      best_gain_ = gain_so_far;
    }
    double bound = gain_so_far;
    for (std::size_t i = at; i < cluster.size(); ++i) bound += std::max(0.0, gain(cluster[i]));
    if (at == cluster.size() || bound <= best_gain_) return;
    const int o = cluster[at];
    if (std::none_of(current.begin(), current.end(), [&](int other) { return clash(o, other); })) {
      current.push_back(o);
      descend(cluster, at + 1, gain_so_far + gain(o), current, taken);
      current.pop_back();
    }
    descend(cluster, at + 1, gain_so_far, current, taken);
  }

  const Graph& g_;
  const std::vector<Option>& options_;
  std::vector<std::set<NodeId>> nodes_;
  std::vector<int> best_;
  double best_gain_ = 0;
};

}  // namespace

void raise_baselines(std::vector<Option>& options) {
  std::vector<std::set<NodeId>> nodes;
  for (const Option& o : options) nodes.push_back(computing_nodes(*o.pattern));
  const std::vector<Option> measured = options;
  for (std::size_t whole = 0; whole < options.size(); ++whole) {
    for (std::size_t part = 0; part < options.size(); ++part) {
      const bool may = measured[whole].gain() > 0 && !measured[part].estimated &&
                       nodes[part].size() <= nodes[whole].size() &&
                       measured[part].eager_ms > options[whole].eager_ms;
      if (may && std::includes(nodes[whole].begin(), nodes[whole].end(), nodes[part].begin(),
                               nodes[part].end()))
        options[whole].eager_ms = measured[part].eager_ms;
    }
  }
}

bool overlap(const Option& a, const Option& b) {
  return share(computing_nodes(*a.pattern), computing_nodes(*b.pattern));
}

bool acyclic(const Graph& g, const std::vector<const rules::Pattern*>& patterns) {
  const Contraction c = contract(g, patterns);
  // Only units that the patterns can reach matter: a covered node is replaced by its pattern, so
  // walk from the patterns.
  enum class Mark : uint8_t { fresh, open, done };
  std::vector<Mark> mark(c.needs.size(), Mark::fresh);
  std::vector<std::pair<int, std::size_t>> stack;
  for (std::size_t start = 0; start < patterns.size(); ++start) {
    if (mark[start] != Mark::fresh) continue;
    stack.emplace_back(static_cast<int>(start), 0);
    mark[start] = Mark::open;
    while (!stack.empty()) {
      auto& [unit, next] = stack.back();
      const auto& needs = c.needs[static_cast<std::size_t>(unit)];
      if (next == needs.size()) {
        mark[static_cast<std::size_t>(unit)] = Mark::done;
        stack.pop_back();
        continue;
      }
      const int to = needs[next++];
      if (mark[static_cast<std::size_t>(to)] == Mark::open) return false;
      if (mark[static_cast<std::size_t>(to)] == Mark::fresh) {
        mark[static_cast<std::size_t>(to)] = Mark::open;
        stack.emplace_back(to, 0);
      }
    }
  }
  return true;
}

Choice choose(const Graph& g, const std::vector<Option>& options, int exact_limit) {
  Choice choice;
  Search search(g, options);
  std::vector<int> candidates;
  for (int i = 0; i < static_cast<int>(options.size()); ++i) {
    const Option& o = options[static_cast<std::size_t>(i)];
    if (o.gain() > 0) {
      candidates.push_back(i);
    } else {
      choice.left_out.emplace_back(
          i, fmt::format("no gain: kernel {:.4g} ms, eager ops {:.4g} ms", o.ms, o.eager_ms));
    }
  }
  auto clusters = search.clusters(candidates);
  std::sort(clusters.begin(), clusters.end(), [&](const auto& a, const auto& b) {
    return search.gain(a.front()) > search.gain(b.front());
  });
  for (const auto& cluster : clusters) {
    const bool exact = static_cast<int>(cluster.size()) <= exact_limit;
    const std::vector<int> picked =
        exact ? search.best_of(cluster, choice.chosen) : search.greedy(cluster, choice.chosen);
    for (const int o : cluster) {
      if (std::find(picked.begin(), picked.end(), o) != picked.end()) continue;
      const auto winner = std::find_if(picked.begin(), picked.end(),
                                       [&](int other) { return search.clash(o, other); });
      if (winner != picked.end()) choice.displaced[o] = *winner;
      choice.left_out.emplace_back(
          o, winner == picked.end()
                 ? std::string("would make a cycle with chosen kernels")
                 : fmt::format("overlaps {}, which saves more by the times of both alone{}",
                               options[static_cast<std::size_t>(*winner)].pattern->id,
                               exact ? "" : " (greedy choice in a large cluster)"));
    }
    for (const int o : picked) {
      choice.chosen.push_back(o);
      choice.gain_ms += search.gain(o);
    }
  }
  return choice;
}

}  // namespace tessera::composer
