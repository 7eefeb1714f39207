// Other names of ops, and ops that say what a simpler one says here.
#include <array>
#include <map>

#include "graph/ops.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

/// Names that ATen keeps for other libraries' sake: same arguments, same meaning.
const std::map<std::string_view, std::string_view> names = {
    {"aten.multiply", "aten.mul"},
    {"aten.subtract", "aten.sub"},
    {"aten.divide", "aten.div"},
    {"aten.true_divide", "aten.div"},
    {"aten.negative", "aten.neg"},
    {"aten.absolute", "aten.abs"},
    {"aten.greater", "aten.gt"},
    {"aten.greater_equal", "aten.ge"},
    {"aten.less", "aten.lt"},
    {"aten.less_equal", "aten.le"},
    {"aten.not_equal", "aten.ne"},
    {"aten.clip", "aten.clamp"},
    {"aten.fix", "aten.trunc"},
    {"aten.arctan", "aten.atan"},
    {"aten.arctan2", "aten.atan2"},
    {"aten.special_expit", "aten.sigmoid"},
    {"aten.special_erf", "aten.erf"},
    {"aten.special_exp2", "aten.exp2"},
    {"aten.special_expm1", "aten.expm1"},
    {"aten.special_log1p", "aten.log1p"},
    {"aten.concat", "aten.cat"},
    {"aten.concatenate", "aten.cat"},
    {"aten.swapaxes", "aten.transpose"},
    {"aten.swapdims", "aten.transpose"},
    {"aten.__and__", "aten.bitwise_and"},
    {"aten.__or__", "aten.bitwise_or"},
    {"aten.__xor__", "aten.bitwise_xor"},
};

bool rename(Node& n) {
  const std::string_view base = base_op(n);
  if (n.op == "aten.min.other" || n.op == "aten.max.other") {
    n.op = n.op == "aten.min.other" ? "aten.minimum.default" : "aten.maximum.default";
    return true;
  }
  const auto it = names.find(base);
  if (it == names.end()) return false;
  std::string overload(std::string_view(n.op).substr(base.size()));
  if (it->second == "aten.transpose") {
    constexpr std::array dims = {"dim0", "dim1"};
    if (n.arguments.size() != dims.size() + 1) return false;
    overload = ".int";
    for (std::size_t i = 0; i < dims.size(); ++i) n.arguments[i + 1].first = dims[i];
  }
  n.op = std::string(it->second) + overload;
  return true;
}

/// type_as(x, y) converts to y's type; copy(x, y) is y in x's type, when shapes and strides agree.
ValueId as_conversion(Graph& g, NodeId id) {
  const Node n = g.node(id);
  const bool copies = is_op(n, "aten.copy");
  if (!copies && !is_op(n, "aten.type_as")) return {};
  const ValueId from = n.tensor(copies ? "src" : "self");
  const TensorType& to = g.value(n.outputs.front()).type;
  if (!from.valid() || g.value(from).type.shape != to.shape || g.is_output(n.outputs.front()))
    return {};
  if (copies && g.value(from).type.strides != to.strides) return {};
  return converted(g, from, to.dtype, id, n);
}

/// The values of max(x, dim) and min(x, dim) when nobody asks for their places.
ValueId as_extremum(Graph& g, NodeId id) {
  const Node n = g.node(id);
  if ((n.op != "aten.max.dim" && n.op != "aten.min.dim") || n.outputs.size() != 2) return {};
  const ValueId places = n.outputs[1];
  if (g.is_output(places) || !g.uses(places).empty()) return {};
  const bool is_max = is_op(n, "aten.max");
  return insert(g,
                {is_max ? "amax" : "amin",
                 is_max ? "aten.amax.default" : "aten.amin.default",
                 {{"self", n.tensor("self")},
                  {"dim", ArgumentList{n.integer("dim").value_or(0)}},
                  {"keepdim", n.flag("keepdim").value_or(false)}},
                 g.value(n.outputs.front()).type},
                id, n);
}

}  // namespace

bool rewrite_spelling(Graph& g, RewriteLog& log) {
  bool changed = false;
  const std::vector<NodeId> order = g.order;
  for (const NodeId id : order) {
    const std::string before = g.node(id).op;
    if (rename(g.node(id))) {
      log.push_back({.what = before + " by its usual name",
                     .result = g.node(id).name,
                     .nodes = g.node(id).covers});
      changed = true;
    }
    const std::size_t nodes = g.order.size();
    ValueId result = as_conversion(g, id);
    if (!result.valid()) result = as_extremum(g, id);
    if (!result.valid()) continue;
    changed = true;
    if (g.order.size() > nodes) {
      substitute(g, log, before + " said simpler", id, result, {id});
      continue;
    }
    log.push_back({.what = before + " that changes nothing",
                   .result = g.value(result).name,
                   .nodes = g.node(id).covers});
    g.replace_uses(g.node(id).outputs.front(), result);
    g.erase(id);
  }
  return changed;
}

}  // namespace tessera::rewrite
