// Runs the rules over a graph and orders what they found.
#include <algorithm>
#include <set>
#include <tuple>

#include "base/text.h"
#include "rules/common/advice.h"
#include "rules/common/cost.h"
#include "rules/common/examples.h"
#include "rules/common/flow.h"
#include "rules/common/proposable.h"
#include "rules/proposed.h"
#include "rules/rules.h"

namespace tessera::rules {
namespace {

void drop_duplicates(std::vector<Pattern>& patterns) {
  std::set<std::tuple<std::string, std::vector<NodeId>, std::string>> seen;
  std::erase_if(patterns, [&](const Pattern& p) {
    return !seen.emplace(p.rule, p.nodes, p.signature()).second;
  });
}

/// A kernel reads and writes tensors of one device.
void drop_those_of_two_devices(const graph::Graph& g, Discovery& d) {
  std::erase_if(d.patterns, [&](const Pattern& p) {
    for (const auto* values : {&p.inputs, &p.outputs}) {
      const auto at = std::find_if(values->begin(), values->end(),
                                   [&](ValueId v) { return !g.value(v).device.empty(); });
      if (at == values->end()) continue;
      const graph::Value& v = g.value(*at);
      d.rejections.push_back(
          {p.rule, p.nodes, fmt::format("`{}` is on {}, not on {}", v.name, v.device, g.device)});
      return true;
    }
    return false;
  });
}

/// Those of the rules are p01, p02, ... in the order of `patterns`. Those that were proposed come
/// behind, as they came: names stay when another one is proposed.
void sort_and_name(std::vector<Pattern>& patterns) {
  const auto of_rules = std::stable_partition(
      patterns.begin(), patterns.end(), [](const Pattern& p) { return p.rule != proposed_rule; });
  const auto pays_more = [](const Pattern& a, const Pattern& b) {
    return std::pair(a.priority, a.unfused_ms) > std::pair(b.priority, b.unfused_ms);
  };
  std::stable_sort(patterns.begin(), of_rules, pays_more);
  int number = 0;
  for (Pattern& p : patterns) p.id = fmt::format("p{:02}", ++number);
  std::stable_sort(patterns.begin(), patterns.end(), pays_more);
}

void look_up_examples(const ExampleIndex& index, const arch::Arch& arch, Discovery& d) {
  std::set<std::string> gaps;
  for (Pattern& p : d.patterns) {
    p.examples = index.find(p.rule, p.precision, arch.name);
    if (p.examples.empty() && !index.empty())
      gaps.insert(fmt::format("no vetted example for {} {} on {}", p.rule, name_of(p.precision),
                              arch.name));
  }
  d.notes = index.notes();
  d.notes.insert(d.notes.end(), gaps.begin(), gaps.end());
}

/// Every reason that a rule gave for this node, most specific first, and what to do about it.
std::string reason_for(const Flow& flow, NodeId n, const std::vector<Rejection>& rejections) {
  std::vector<std::string> reasons;
  for (const Rejection& r : rejections) {
    if (std::find(r.nodes.begin(), r.nodes.end(), n) == r.nodes.end()) continue;
    std::string text = fmt::format("{}: {}", r.rule, r.reason);
    if (std::find(reasons.begin(), reasons.end(), text) == reasons.end())
      reasons.push_back(std::move(text));
  }
  const graph::Node& node = flow.g.node(n);
  if (reasons.empty())
    reasons.push_back(fmt::format("no rule takes `{}` ({})", base_name(node.op),
                                  graph::name_of(graph::kind_of(node))));
  if (std::string advice = advice_for(node); !advice.empty()) reasons.push_back(std::move(advice));
  return join(reasons, "; ");
}

}  // namespace

const Rule* find(std::string_view name) {
  for (const Rule* rule : all())
    if (rule->name == name) return rule;
  return nullptr;
}

Discovery discover(const graph::Graph& g, const arch::Arch& arch) {
  return discover(g, arch, {});
}

Discovery discover(const graph::Graph& g, const arch::Arch& arch,
                   const std::vector<Json>& proposed) {
  const Flow flow(g);
  Discovery d;
  for (const Rule* rule : all()) {
    Matches m = rule->match(g);
    std::move(m.patterns.begin(), m.patterns.end(), std::back_inserter(d.patterns));
    std::move(m.rejections.begin(), m.rejections.end(), std::back_inserter(d.rejections));
  }
  for (const Rule* rule : all()) {
    if (rule->near_misses == nullptr) continue;
    std::vector<Rejection> near = rule->near_misses(g);
    std::move(near.begin(), near.end(), std::back_inserter(d.rejections));
  }
  for (const Json& stored : proposed) {
    std::vector<Pattern> found = find_proposed(flow, stored);
    std::move(found.begin(), found.end(), std::back_inserter(d.patterns));
  }
  d.arch = arch.name;
  drop_duplicates(d.patterns);
  drop_those_of_two_devices(g, d);
  for (Pattern& p : d.patterns) estimate(flow, arch, p);
  sort_and_name(d.patterns);
  std::set<NodeId> covered;
  for (const Pattern& p : d.patterns) covered.insert(p.nodes.begin(), p.nodes.end());
  look_up_examples(ExampleIndex(examples_folder()), arch, d);
  std::vector<NodeId> uncovered;
  for (NodeId n : g.order) {
    if (!flow.computes(n) || covered.contains(n)) continue;
    uncovered.push_back(n);
    d.uncovered.emplace_back(n, reason_for(flow, n, d.rejections));
  }
  d.proposable = proposable(flow, uncovered);
  return d;
}

}  // namespace tessera::rules
