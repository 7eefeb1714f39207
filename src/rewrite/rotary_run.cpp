#include "rewrite/rotary_run.h"

#include <algorithm>
#include <set>

#include "graph/operand.h"
#include "graph/ops.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

bool same_view(const Operand& a, const Operand& b) {
  return a.base == b.base && a.offset == b.offset && a.shape == b.shape && a.strides == b.strides;
}

/// `v` shows half `which` of the last dim of `x`.
bool is_half(const Graph& g, ValueId v, const Operand& x, int which) {
  Operand half = x;
  half.shape.back() /= 2;
  half.offset += which * half.shape.back() * half.strides.back();
  return same_view(resolve(g, v), half);
}

/// cat(-x[d/2:], x[:d/2]) of this x; its nodes are appended.
bool is_rotated(const Graph& g, ValueId v, const Operand& x, std::vector<NodeId>& nodes) {
  const Node* cat = producer(g, v);
  if (cat == nullptr || !is_op(*cat, "aten.cat")) return false;
  const std::vector<ValueId> pieces = tensor_arguments(*cat);
  const std::size_t rank = x.shape.size();
  if (pieces.size() != 2 || wrap_dim(cat->integer("dim").value_or(0), rank) + 1 != rank)
    return false;
  const Node* neg = producer(g, pieces[0]);
  if (neg == nullptr || !is_op(*neg, "aten.neg")) return false;
  nodes.insert(nodes.end(), {g.value(pieces[0]).producer, g.value(v).producer});
  return is_half(g, neg->tensor("self"), x, 1) && is_half(g, pieces[1], x, 0);
}

/// The factor of a position: it has the last two (heads first) or the other dims of x, and none
/// along heads.
bool is_table(const Graph& g, ValueId v, const Rotation& r) {
  if (!v.valid()) return false;
  const auto& x = g.value(r.x).type;
  const auto& t = g.value(v).type;
  if (t.dtype != x.dtype || t.shape.size() > 4 || t.shape.empty() || t.shape.back() != r.width)
    return false;
  const std::size_t lead = 4 - t.shape.size();
  const std::size_t heads = r.heads_first ? 1 : 2;
  for (std::size_t d = lead; d < 4; ++d) {
    const int64_t extent = t.shape[d - lead];
    if (extent != 1 && (d == heads || extent != x.shape[d])) return false;
  }
  return true;
}

/// Where x lies in the result [B, S, N] of a linear; false where it is no run of whole heads.
bool place(const Graph& g, const Operand& x, Rotation& r) {
  const TensorType& wide = g.value(x.base).type;
  if (wide.shape.size() != 3 || !wide.contiguous() || x.shape.size() != 4) return false;
  const int64_t n = wide.shape[2];
  r.width = x.shape[3];
  for (const bool heads_first : {true, false}) {
    const std::size_t heads = heads_first ? 1 : 2;
    const std::size_t rows = heads_first ? 2 : 1;
    const auto stride = [&](std::size_t d, int64_t s) {
      return x.shape[d] == 1 || x.strides[d] == s;
    };
    if (x.shape[0] != wide.shape[0] || x.shape[rows] != wide.shape[1] ||
        !stride(0, wide.shape[1] * n) || !stride(rows, n) || !stride(heads, r.width) ||
        !stride(3, 1) || r.width % 2 != 0)
      continue;
    r.heads_first = heads_first;
    r.first = x.offset;
    r.columns = x.shape[heads] * r.width;
    return r.first + r.columns <= n;
  }
  return false;
}

/// The factors of a product in both orders.
std::vector<std::pair<ValueId, ValueId>> factors(const Graph& g, ValueId v) {
  const Node* mul = producer(g, v);
  if (mul == nullptr || !is_op(*mul, "aten.mul")) return {};
  const ValueId a = mul->tensor("self");
  const ValueId b = mul->tensor("other");
  if (!a.valid() || !b.valid()) return {};
  return {{a, b}, {b, a}};
}

std::optional<Rotation> rotation(const Graph& g, NodeId id) {
  const Node& add = g.node(id);
  if (!is_op(add, "aten.add") || add.number("alpha").value_or(1) != 1) return std::nullopt;
  const ValueId sides[] = {add.tensor("self"), add.tensor("other")};
  if (!sides[0].valid() || !sides[1].valid()) return std::nullopt;
  for (const int kept : {0, 1}) {
    for (const auto& [x, cos] : factors(g, sides[kept])) {
      Rotation r{.add = id, .nodes = {id}, .x = x, .cos = cos};
      const Operand seen = resolve(g, x);
      const Node* linear = producer(g, seen.base);
      if (linear == nullptr || !is_op(*linear, "aten.linear") || !place(g, seen, r)) continue;
      for (const auto& [turned, sin] : factors(g, sides[1 - kept])) {
        r.sin = sin;
        r.nodes = {id, g.value(sides[0]).producer, g.value(sides[1]).producer};
        if (is_rotated(g, turned, seen, r.nodes) && is_table(g, cos, r) && is_table(g, sin, r) &&
            g.value(add.outputs.front()).type.dtype == g.value(x).type.dtype)
          return r;
      }
    }
  }
  return std::nullopt;
}

/// Nodes that read the value, through views; invalid when it is an output.
std::set<NodeId> readers(const Graph& g, ValueId v) {
  std::set<NodeId> out;
  if (g.is_output(v)) out.insert(NodeId{});
  for (const Use& use : g.uses(v)) {
    if (!is_view(g, use.node)) {
      out.insert(use.node);
      continue;
    }
    for (const ValueId seen : g.node(use.node).outputs) out.merge(readers(g, seen));
  }
  return out;
}

/// Nobody but the rotation reads the part, nor the values between.
bool is_alone(const Graph& g, ValueId part, const Rotation& r) {
  const std::set<NodeId> inner(r.nodes.begin(), r.nodes.end());
  const std::set<NodeId> reading = readers(g, part);
  if (!std::includes(inner.begin(), inner.end(), reading.begin(), reading.end())) return false;
  if (g.is_output(g.node(r.add).outputs.front())) return false;
  return std::all_of(r.nodes.begin(), r.nodes.end(), [&](NodeId id) {
    return id == r.add || used_only_by(g, g.node(id).outputs.front(), r.nodes);
  });
}

bool same_factors(const Graph& g, const Rotation& a, const Rotation& b) {
  const auto same = [&](ValueId x, ValueId y) {
    return x == y || same_view(resolve(g, x), resolve(g, y));
  };
  return a.heads_first == b.heads_first && a.width == b.width && same(a.cos, b.cos) &&
         same(a.sin, b.sin);
}

/// Whether the value needs the output of this node.
bool depends(const Graph& g, ValueId v, NodeId on, std::set<NodeId>& seen) {
  const NodeId from = g.value(v).producer;
  if (!from.valid() || !seen.insert(from).second) return false;
  if (from == on) return true;
  const std::vector<ValueId> arguments = tensor_arguments(g.node(from));
  return std::any_of(arguments.begin(), arguments.end(),
                     [&](ValueId a) { return depends(g, a, on, seen); });
}

std::optional<RotaryRun> find_run(const Graph& g, NodeId split, const std::vector<Rotation>& all) {
  const Node& n = g.node(split);
  const Node* linear = producer(g, n.tensor("self"));
  if (linear == nullptr || !is_op(*linear, "aten.linear") ||
      wrap_dim(n.integer("dim").value_or(0), g.value(n.tensor("self")).type.shape.size()) != 2 ||
      !used_only_by(g, n.tensor("self"), {split}))
    return std::nullopt;
  RotaryRun run{split, 0, {}};
  int64_t column = 0;
  for (std::size_t i = 0; i < n.outputs.size(); ++i) {
    const int64_t width = g.value(n.outputs[i]).type.shape.back();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Rotation& r) {
      return resolve(g, r.x).base == n.tensor("self") && r.first == column && r.columns == width &&
             is_alone(g, n.outputs[i], r);
    });
    column += width;
    const bool goes_on = found != all.end() &&
                         (run.rotations.empty() || same_factors(g, run.rotations.front(), *found));
    if (!goes_on && run.rotations.size() > 1) break;
    if (!goes_on) run.rotations.clear();
    if (found == all.end()) continue;
    if (run.rotations.empty()) run.from = i;
    run.rotations.push_back(*found);
  }
  if (run.rotations.size() < 2) return std::nullopt;
  std::set<NodeId> seen;
  const Rotation& r = run.rotations.front();
  if (depends(g, r.cos, split, seen) || depends(g, r.sin, split, seen)) return std::nullopt;
  return run;
}

}  // namespace

bool is_rotated_in_parts(const Graph& g, ValueId linear) {
  const auto parts = std::count_if(g.order.begin(), g.order.end(), [&](NodeId id) {
    const auto r = rotation(g, id);
    return r && resolve(g, r->x).base == linear;
  });
  return parts > 1;
}

std::optional<RotaryRun> find_rotary_run(const Graph& g) {
  std::vector<Rotation> rotations;
  for (const NodeId id : g.order)
    if (auto r = rotation(g, id)) rotations.push_back(std::move(*r));
  if (rotations.size() < 2) return std::nullopt;
  for (const NodeId id : g.order) {
    if (!is_op(g.node(id), "aten.split_with_sizes")) continue;
    if (auto run = find_run(g, id, rotations)) return run;
  }
  return std::nullopt;
}

}  // namespace tessera::rewrite
