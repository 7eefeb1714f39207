#include "rules/common/proposable.h"

#include <algorithm>
#include <iterator>

#include "rules/proposed.h"

namespace tessera::rules {
namespace {

constexpr std::size_t least = 2, most = 24;

/// Whether a loop over elements or rows is likely to serve the op.
bool worth_a_loop(const graph::Node& node) {
  using graph::OpKind;
  switch (graph::kind_of(node)) {
    case OpKind::pointwise:
    case OpKind::view:
    case OpKind::copy:
    case OpKind::reduction:
    case OpKind::normalize:
    case OpKind::pooling:
    case OpKind::scan:
    case OpKind::gather:
    case OpKind::loss:
      return true;
    default:
      return false;
  }
}

std::vector<NodeId> neighbours(const Flow& flow, NodeId n) {
  std::vector<NodeId> out = flow.before(n);
  out.insert(out.end(), flow.after(n).begin(), flow.after(n).end());
  return out;
}

/// Those of `among` that are reached from `start` along edges within it.
NodeSet connected(const Flow& flow, NodeId start, const NodeSet& among) {
  NodeSet out{start};
  std::vector<NodeId> open{start};
  while (!open.empty()) {
    const NodeId n = open.back();
    open.pop_back();
    for (const NodeId m : neighbours(flow, n))
      if (among.contains(m) && out.insert(m).second) open.push_back(m);
  }
  return out;
}

std::vector<NodeSet> components(const Flow& flow, NodeSet left) {
  std::vector<NodeSet> out;
  while (!left.empty()) {
    out.push_back(connected(flow, *left.begin(), left));
    for (const NodeId n : out.back()) left.erase(n);
  }
  return out;
}

bool legal(const Flow& flow, const NodeSet& set) {
  return set.size() >= least && set.size() <= most && propose(flow, set, "").has_value();
}

}  // namespace

std::vector<std::vector<NodeId>> proposable(const Flow& flow,
                                            const std::vector<NodeId>& uncovered) {
  NodeSet alone;
  for (const NodeId n : uncovered)
    if (worth_a_loop(flow.g.node(n))) alone.insert(n);
  NodeSet all = alone;
  for (const NodeId n : alone)
    for (const NodeId m : neighbours(flow, n))
      if (worth_a_loop(flow.g.node(m))) all.insert(m);
  std::vector<std::vector<NodeId>> out;
  for (const NodeSet& wide : components(flow, all)) {
    if (legal(flow, wide)) {
      out.push_back(flow.in_order(wide));
      continue;
    }
    NodeSet within;
    std::set_intersection(wide.begin(), wide.end(), alone.begin(), alone.end(),
                          std::inserter(within, within.end()));
    for (const NodeSet& bare : components(flow, within))
      if (legal(flow, bare)) out.push_back(flow.in_order(bare));
  }
  std::sort(out.begin(), out.end(), [&](const auto& a, const auto& b) {
    return flow.position(a.front()) < flow.position(b.front());
  });
  return out;
}

}  // namespace tessera::rules
