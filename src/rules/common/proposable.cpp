#include "rules/common/proposable.h"

#include <algorithm>

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

bool legal(const Flow& flow, const NodeSet& set) {
  return set.size() >= least && set.size() <= most && propose(flow, set, "").has_value();
}

}  // namespace

std::vector<std::vector<NodeId>> proposable(const Flow& flow,
                                            const std::vector<NodeId>& uncovered) {
  NodeSet left;
  for (const NodeId n : uncovered)
    if (worth_a_loop(flow.g.node(n))) left.insert(n);
  std::vector<std::vector<NodeId>> out;
  while (!left.empty()) {
    const NodeSet bare = connected(flow, *left.begin(), left);
    NodeSet wide = bare;
    for (const NodeId n : bare) {
      left.erase(n);
      for (const NodeId m : neighbours(flow, n))
        if (is_pointwise(flow, m)) wide.insert(m);
    }
    for (const NodeSet& set : {wide, bare}) {
      if (!legal(flow, set)) continue;
      out.push_back(flow.in_order(set));
      break;
    }
  }
  std::sort(out.begin(), out.end(), [&](const auto& a, const auto& b) {
    return flow.position(a.front()) < flow.position(b.front());
  });
  return out;
}

}  // namespace tessera::rules
