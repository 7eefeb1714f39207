#include "rewrite/rewrite.h"

#include <algorithm>
#include <set>

#include "graph/conversion.h"
#include "graph/operand.h"
#include "graph/ops.h"

namespace tessera::rewrite {

std::string_view base_op(const Node& n) {
  return graph::base_name(n.op);
}

bool is_op(const Node& n, std::string_view base) {
  return base_op(n) == base && (base != "aten.div" || n.text("rounding_mode").empty());
}

bool used_only_by(const Graph& g, ValueId v, const std::vector<NodeId>& users) {
  if (g.is_output(v)) return false;
  const std::vector<Use> uses = g.uses(v);
  return std::all_of(uses.begin(), uses.end(), [&](const Use& u) {
    return std::find(users.begin(), users.end(), u.node) != users.end();
  });
}

std::optional<double> scalar_argument(const Graph& g, const Node& n, std::string_view argument) {
  if (const auto number = n.number(argument)) return number;
  const ValueId v = n.tensor(argument);
  if (!v.valid() || g.value(v).type.numel() != 1) return std::nullopt;
  return element(g, v, std::vector<int64_t>(g.value(v).type.shape.size(), 0));
}

bool keeps_values(const Graph& g, const Node& n) {
  const std::string_view op = base_op(n);
  static const std::set<std::string_view> plain = {"aten.clone", "aten.contiguous", "aten.alias",
                                                   "aten.detach", "aten.lift_fresh_copy"};
  if (plain.contains(op)) return true;
  if (op == "aten.dropout") return kind_of(n) == OpKind::view;
  const ValueId in = n.tensor("self");
  if (!in.valid() || n.outputs.size() != 1) return false;
  const TensorType& from = g.value(in).type;
  const TensorType& to = g.value(n.outputs.front()).type;
  if (op == "aten._to_copy" || op == "aten.to")
    return is_floating(from.dtype) && is_floating(to.dtype) && !graph::changes_device(g, n) &&
           graph::rounding_of(g, n).empty();
  const bool reshaping =
      op == "aten.expand" || op == "aten.view" || op == "aten.reshape" || op == "aten._unsafe_view";
  return reshaping && from.shape == to.shape;
}

ValueId through_copies(const Graph& g, ValueId v, std::vector<NodeId>* passed) {
  while (const Node* n = producer(g, v)) {
    if (!keeps_values(g, *n)) break;
    if (passed != nullptr) passed->push_back(g.value(v).producer);
    v = n->tensor("self").valid() ? n->tensor("self") : n->tensor("input");
  }
  return v;
}

bool is_weight(const Graph& g, ValueId v) {
  const Value& base = g.value(resolve(g, v).base);
  if (base.origin == Origin::node) return g.node(base.producer).prepack;
  return base.origin != Origin::user_input;
}

ValueId insert(Graph& g, NewNode made, NodeId before, const Node& like, bool prepack) {
  const std::string name = g.fresh_name(made.stem);
  Node n;
  n.module = like.module;
  n.place = like.place;
  n.name = name;
  n.op = std::move(made.op);
  n.arguments = std::move(made.arguments);
  n.prepack = prepack;
  const ValueId out = g.add_value({.name = name, .type = std::move(made.type)});
  n.outputs = {out};
  g.add_node(std::move(n), before);
  return out;
}

ValueId permuted(Graph& g, ValueId v, const std::vector<int64_t>& dims, NodeId before,
                 const Node& like) {
  const TensorType from = g.value(v).type;
  TensorType to{from.dtype, {}, {}};
  bool same = true;
  ArgumentList list;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto d = static_cast<std::size_t>(dims[i]);
    same = same && d == i;
    to.shape.push_back(from.shape[d]);
    to.strides.push_back(from.strides[d]);
    list.emplace_back(dims[i]);
  }
  if (same) return v;
  return insert(g,
                {"permute", "aten.permute.default", {{"self", v}, {"dims", std::move(list)}}, to},
                before, like);
}

ValueId row_major_copy(Graph& g, ValueId v, NodeId before, const Node& like) {
  TensorType type = g.value(v).type;
  type.strides = contiguous_strides(type.shape);
  return insert(g,
                {"clone",
                 "aten.clone.default",
                 {{"self", v}, {"memory_format", std::string("contiguous_format")}},
                 type},
                before, like);
}

ValueId regrouped(Graph& g, ValueId v, const std::vector<int64_t>& shape, NodeId before,
                  const Node& like) {
  const TensorType from = g.value(v).type;
  if (from.shape == shape) return v;
  ArgumentList list;
  for (const int64_t s : shape) list.emplace_back(s);
  const auto view = reshaped(
      {.base = v, .shape = from.shape, .strides = from.strides, .offset = 0, .views = {}}, shape);
  TensorType to{from.dtype, shape, view ? view->strides : contiguous_strides(shape)};
  return insert(g,
                {"reshape", "aten.reshape.default", {{"self", v}, {"shape", std::move(list)}}, to},
                before, like);
}

namespace {
/// Every element of the storage once, in any order of dims.
bool is_dense(const TensorType& t) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, extent
  for (std::size_t i = 0; i < t.shape.size(); ++i)
    if (t.shape[i] != 1) dims.emplace_back(t.strides[i], t.shape[i]);
  std::sort(dims.begin(), dims.end());
  int64_t next = 1;
  for (const auto& [stride, extent] : dims) {
    if (stride != next) return false;
    next *= extent;
  }
  return true;
}
}  // namespace

ValueId converted(Graph& g, ValueId v, DType type, NodeId before, const Node& like,
                  std::string stem) {
  const TensorType& t = g.value(v).type;
  if (t.dtype == type) return v;
  return insert(g,
                {std::move(stem),
                 "aten._to_copy.default",
                 {{"self", v},
                  {"dtype", type},
                  {"layout", NoValue{}},
                  {"device", NoValue{}},
                  {"pin_memory", NoValue{}},
                  {"non_blocking", false},
                  {"memory_format", NoValue{}}},
                 {type, t.shape, is_dense(t) ? t.strides : contiguous_strides(t.shape)}},
                before, like);
}

void substitute(Graph& g, RewriteLog& log, std::string what, NodeId old, ValueId result,
                const std::vector<NodeId>& inner) {
  std::vector<std::string> covers;
  for (const NodeId id : g.order) {
    if (std::find(inner.begin(), inner.end(), id) == inner.end()) continue;
    for (const std::string& c : g.node(id).covers) {
      if (std::find(covers.begin(), covers.end(), c) == covers.end()) covers.push_back(c);
    }
  }
  Node& made = g.node(g.value(result).producer);
  made.covers = covers;
  made.rewritten_from = what;
  // What computes it says so as well, where views of that stand for what was written.
  NodeId at = g.value(result).producer;
  while (kind_of(g.node(at)) == OpKind::view) {
    const ValueId source = g.node(at).tensor("self");
    if (!source.valid() || g.value(source).origin != Origin::node) break;
    at = g.value(source).producer;
  }
  if (old < at && g.node(at).rewritten_from.empty()) g.node(at).rewritten_from = what;
  log.push_back({.what = std::move(what), .result = made.name, .nodes = covers});
  g.replace_uses(g.node(old).outputs.front(), result);
  g.erase_dead();
}

}  // namespace tessera::rewrite
