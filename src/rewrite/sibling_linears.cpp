// Linears of one input: one linear over concatenated weights, whose results are strided views of
// one tensor.
#include <algorithm>
#include <map>
#include <set>

#include "graph/ops.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

/// Rows of the merged result start at multiples of this, so that its parts stay aligned to 16 bytes
/// in 16-bit types.
constexpr int64_t alignment = 8;

/// Through nodes of one tensor that stay pointwise or keep values.
std::set<ValueId> pointwise_sources(const Graph& g, ValueId v) {
  std::set<ValueId> out = {v};
  while (const Node* n = producer(g, v)) {
    const std::vector<ValueId> arguments = tensor_arguments(*n);
    if (arguments.size() != 1 || (kind_of(*n) != OpKind::pointwise && !keeps_values(g, *n))) break;
    v = arguments.front();
    out.insert(v);
  }
  return out;
}

/// Linears whose results meet in a product, act(x A^T) * (x B^T): the gated_mlp rule takes such
/// pairs as they are.
std::set<NodeId> gated_pairs(const Graph& g) {
  std::set<NodeId> out;
  for (const NodeId id : g.order) {
    const Node& n = g.node(id);
    if (!is_op(n, "aten.mul") || !n.tensor("self").valid() || !n.tensor("other").valid()) continue;
    std::vector<NodeId> linears;
    for (const char* side : {"self", "other"}) {
      for (const ValueId v : pointwise_sources(g, n.tensor(side))) {
        const Node* p = producer(g, v);
        if (p != nullptr && is_op(*p, "aten.linear")) linears.push_back(g.value(v).producer);
      }
    }
    if (linears.size() == 2 && linears[0] != linears[1]) out.insert(linears.begin(), linears.end());
  }
  return out;
}

/// An activation is all that reads the result: the product's own epilogue computes it for nothing,
/// which a part of a wider product could not.
bool feeds_activation(const Graph& g, const Node& n) {
  const std::vector<Use> uses = g.uses(n.outputs.front());
  if (uses.size() != 1 || g.is_output(n.outputs.front())) return false;
  const Node& reader = g.node(uses[0].node);
  static const std::set<std::string_view> arithmetic = {"aten.add", "aten.sub", "aten.rsub",
                                                        "aten.mul", "aten.div", "aten.neg"};
  return kind_of(reader) == OpKind::pointwise && tensor_arguments(reader).size() == 1 &&
         !arithmetic.contains(base_op(reader));
}

bool mergeable(const Graph& g, const Node& n) {
  if (!is_op(n, "aten.linear") || n.prepack || feeds_activation(g, n)) return false;
  const Value& w = g.value(n.tensor("weight"));
  if (w.origin != Origin::parameter || w.type.shape.size() != 2 || w.type.shape[0] % alignment != 0)
    return false;
  const ValueId b = n.tensor("bias");
  return (!b.valid() || g.value(b).origin == Origin::parameter) &&
         g.value(n.tensor("input")).type.shape.size() >= 2;
}

std::vector<std::vector<NodeId>> groups(const Graph& g) {
  const std::set<NodeId> gated = gated_pairs(g);
  std::map<std::pair<ValueId, bool>, std::vector<NodeId>> by_input;
  for (const NodeId id : g.order) {
    const Node& n = g.node(id);
    if (mergeable(g, n) && !gated.contains(id))
      by_input[{n.tensor("input"), n.tensor("bias").valid()}].push_back(id);
  }
  std::vector<std::vector<NodeId>> out;
  for (auto& [key, members] : by_input) {
    std::set<ValueId> weights;
    for (const NodeId id : members) weights.insert(g.node(id).tensor("weight"));
    if (members.size() > 1 && weights.size() == members.size()) out.push_back(std::move(members));
  }
  return out;
}

ValueId concatenated(Graph& g, const std::vector<NodeId>& members, std::string_view argument,
                     const Node& like) {
  ArgumentList parts;
  TensorType type = g.value(g.node(members.front()).tensor(argument)).type;
  type.shape[0] = 0;
  for (const NodeId id : members) {
    const ValueId part = g.node(id).tensor(argument);
    parts.emplace_back(part);
    type.shape[0] += g.value(part).type.shape[0];
  }
  type.strides = contiguous_strides(type.shape);
  return insert(g,
                {"merged_" + std::string(argument),
                 "aten.cat.default",
                 {{"tensors", std::move(parts)}, {"dim", int64_t{0}}},
                 type},
                g.order.front(), like, true);
}

void merge(Graph& g, RewriteLog& log, const std::vector<NodeId>& members) {
  const NodeId first = *std::find_if(g.order.begin(), g.order.end(), [&](NodeId id) {
    return std::find(members.begin(), members.end(), id) != members.end();
  });
  const Node like = g.node(first);
  const ValueId weight = concatenated(g, members, "weight", like);
  Argument bias = NoValue{};
  if (like.tensor("bias").valid()) bias = concatenated(g, members, "bias", like);
  TensorType type = g.value(like.outputs.front()).type;
  type.shape.back() = g.value(weight).type.shape[0];
  type.strides = contiguous_strides(type.shape);
  const ValueId wide =
      insert(g,
             {"merged_linear",
              "aten.linear.default",
              {{"input", like.tensor("input")}, {"weight", weight}, {"bias", bias}},
              type},
             first, like);
  Node split;
  split.name = g.fresh_name("merged_split");
  split.op = "aten.split_with_sizes.default";
  split.module = like.module;
  ArgumentList sizes;
  std::vector<std::string> covers;
  for (const NodeId id : members) {
    TensorType part = g.value(g.node(id).outputs.front()).type;
    sizes.emplace_back(part.shape.back());
    part.strides = type.strides;
    split.outputs.push_back(
        g.add_value({.name = g.fresh_name(g.node(id).name + "_part"), .type = part}));
    covers.insert(covers.end(), g.node(id).covers.begin(), g.node(id).covers.end());
  }
  split.arguments = {{"self", wide}, {"split_sizes", std::move(sizes)}, {"dim", int64_t{-1}}};
  split.covers = covers;
  split.rewritten_from = "linears of one input merged";
  Node& linear = g.node(g.value(wide).producer);
  linear.covers = covers;
  linear.rewritten_from = split.rewritten_from;
  log.push_back({.what = split.rewritten_from, .result = linear.name, .nodes = covers});
  const std::vector<ValueId> parts = split.outputs;
  g.add_node(std::move(split), first);
  for (std::size_t i = 0; i < members.size(); ++i)
    g.replace_uses(g.node(members[i]).outputs.front(), parts[i]);
  g.erase_dead();
}

}  // namespace

bool rewrite_sibling_linears(Graph& g, RewriteLog& log) {
  const std::vector<std::vector<NodeId>> found = groups(g);
  for (const std::vector<NodeId>& members : found) merge(g, log, members);
  return !found.empty();
}

}  // namespace tessera::rewrite
