// Whether a proposed subgraph is legal, and its form without names.
#include "rules/proposed.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/text.h"
#include "graph/argument_json.h"
#include "rules/common/region.h"

namespace tessera::rules {
namespace {

constexpr Code no_such_node{"TS0230", "propose.no_such_node"};
constexpr Code not_convex{"TS0231", "propose.not_convex"};
constexpr Code effects{"TS0232", "propose.effects"};
constexpr Code random_numbers{"TS0233", "propose.random"};
constexpr Code several_devices{"TS0234", "propose.devices"};
constexpr Code computes_nothing{"TS0235", "propose.computes_nothing"};
constexpr Code not_aten{"TS0236", "propose.not_aten"};
constexpr Code aliased{"TS0237", "propose.aliasing"};
constexpr Code bad_file{"TS0238", "propose.bad_file"};

Diagnostic malformed(std::string_view what) {
  return fail(bad_file, "the proposals cannot be read: {}", what)
      .expect(
          R"({{"proposals": [{{"name": "gate", "nodes": ["cumsum", "mul"], "rationale": "..."}}]}})");
}

bool makes(const graph::Graph& g, const graph::Node& node, const std::string& value) {
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId v) { return v.valid() && g.value(v).name == value; });
}

/// The node of this name, or that makes the value of this name, or those that a rewrite put in the
/// place of the traced one.
std::vector<NodeId> nodes_named(const graph::Graph& g, const std::string& name) {
  std::vector<NodeId> out;
  for (const NodeId n : g.order) {
    const graph::Node& node = g.node(n);
    if (node.name == name || makes(g, node, name)) return {n};
    if (std::find(node.covers.begin(), node.covers.end(), name) != node.covers.end())
      out.push_back(n);
  }
  return out;
}

Diagnostic unknown_node(const Flow& flow, const std::string& what, const std::string& name) {
  constexpr std::size_t most = 60;
  std::vector<std::string> names;
  for (const NodeId n : flow.g.order)
    if (flow.computes(n)) names.push_back(flow.g.node(n).name);
  const std::string near = nearest(name, names);
  Diagnostic d = fail(no_such_node, "`{}` names %{}, and the graph has no such node", what, name);
  if (!near.empty()) d.helps.push_back("did you mean %" + near + "?");
  d.helps.push_back(names.size() <= most
                        ? "it has %" + join(names, ", %")
                        : fmt::format("`tessera trace MODEL.py` names its {} nodes", names.size()));
  return d;
}

/// Whether the op writes to one of its arguments: "aten.add_.Tensor", "aten.copy_.default".
bool in_place(const graph::Node& node) {
  return base_name(node.op).ends_with('_');
}

Status check_node(const Flow& flow, NodeId n, const std::string& what) {
  const graph::Node& node = flow.g.node(n);
  if (!node.op.starts_with("aten."))
    return error(
        fail(not_aten, "`{}` holds %{} ({}), which is no op of ATen", what, node.name, node.op)
            .expect("ops whose meaning can be computed in fp64"));
  if (in_place(node) || node.outputs.empty())
    return error(fail(effects, "`{}` holds %{} ({}), which changes what it is given", what,
                      node.name, node.op)
                     .expect("ops without effects")
                     .help("leave it out: PyTorch runs it"));
  if (graph::draws(node))
    return error(fail(random_numbers, "`{}` holds %{} ({}), which draws random numbers", what,
                      node.name, node.op)
                     .expect("ops that give the same for the same inputs")
                     .help("propose what comes before it and what comes behind it as two"));
  return {};
}

/// A node outside of the set on a way that leaves it and comes back.
std::string between(const Flow& flow, const NodeSet& set) {
  std::set<NodeId> from;
  for (const NodeId n : flow.g.order) {
    if (!flow.computes(n)) continue;
    const auto& before = flow.before(n);
    const bool behind = std::any_of(before.begin(), before.end(),
                                    [&](NodeId b) { return set.contains(b) || from.contains(b); });
    if (!behind) continue;
    if (!set.contains(n)) {
      from.insert(n);
      continue;
    }
    for (const NodeId b : before)
      if (from.contains(b) && !set.contains(b)) return flow.g.node(b).name;
  }
  return "";
}

Status check_devices(const Flow& flow, const Pattern& p, const std::string& what) {
  for (const auto* list : {&p.inputs, &p.outputs}) {
    for (const ValueId v : *list) {
      const graph::Value& value = flow.g.value(v);
      if (value.device.empty()) continue;
      return error(fail(several_devices, "`{}` has tensors of several devices", what)
                       .expect("all on {}", flow.g.device)
                       .but_found("%{} on {}", value.name, value.device));
    }
  }
  for (const NodeId n : p.nodes) {
    if (!graph::changes_device(flow.g, flow.g.node(n))) continue;
    return error(fail(several_devices, "`{}` has tensors of several devices", what)
                     .expect("all on {}", flow.g.device)
                     .but_found("%{}, which moves one", flow.g.node(n).name));
  }
  return {};
}

Json type_json(const graph::TensorType& t) {
  return {{"dtype", name_of(t.dtype)}, {"shape", t.shape}, {"strides", t.strides}};
}

/// Numbers inputs and nodes in the order in which they are met from the results on.
class Naming {
 public:
  Naming(const Flow& flow, const std::vector<NodeId>& nodes)
      : flow_(flow), nodes_(nodes.begin(), nodes.end()) {}

  std::string visit(ValueId v) {
    const NodeId from = flow_.g.value(v).producer;
    if (!from.valid() || !nodes_.contains(from)) {
      const auto [at, fresh] = inputs_.try_emplace(v, static_cast<int>(order.size()));
      if (fresh) order.push_back(v);
      return fmt::format("i{}", at->second);
    }
    const int number = visit_node(from);
    const auto& outputs = flow_.g.node(from).outputs;
    const auto which = std::find(outputs.begin(), outputs.end(), v) - outputs.begin();
    return fmt::format("n{}.{}", number, which);
  }

  Json nodes = Json::array();
  std::vector<ValueId> order;  // of the inputs

 private:
  int visit_node(NodeId n) {
    if (const auto known = numbers_.find(n); known != numbers_.end()) return known->second;
    const graph::Node& node = flow_.g.node(n);
    Json arguments = Json::object();
    for (const auto& [name, value] : node.arguments)
      arguments[name] = renamed(graph::to_json(flow_.g, value), node);
    Json outputs = Json::array();
    for (const ValueId v : node.outputs)
      outputs.push_back(v.valid() ? type_json(flow_.g.value(v).type) : Json());
    const auto number = static_cast<int>(nodes.size());
    numbers_[n] = number;
    nodes.push_back(
        {{"op", node.op}, {"arguments", std::move(arguments)}, {"outputs", std::move(outputs)}});
    return number;
  }

  Json renamed(Json j, const graph::Node& node) {
    if (j.is_array()) {
      for (Json& item : j) item = renamed(std::move(item), node);
    } else if (j.is_object() && j.contains("value")) {
      const auto v = flow_.g.find_value(j.at("value").get<std::string>());
      j = {{"value", visit(*v)}};
    }
    return j;
  }

  const Flow& flow_;
  std::set<NodeId> nodes_;
  std::map<NodeId, int> numbers_;
  std::map<ValueId, int> inputs_;
};

/// How a result alone would be written: what results are ordered by, whatever the module.
std::string text_of(const Flow& flow, const std::vector<NodeId>& nodes, ValueId result) {
  Naming naming(flow, nodes);
  const std::string name = naming.visit(result);
  return name + naming.nodes.dump();
}

/// The values that the set reads and does not make: whole storages, in the graph's order.
std::vector<ValueId> read_by(const Flow& flow, const NodeSet& set) {
  std::vector<ValueId> out;
  for (const NodeId n : flow.in_order(set)) {
    for (const ValueId v : graph::tensor_arguments(flow.g.node(n))) {
      const ValueId base = graph::resolve(flow.g, v).base;
      const NodeId from = flow.producer(base);
      if (from.valid() && set.contains(from)) continue;
      if (std::find(out.begin(), out.end(), base) == out.end()) out.push_back(base);
    }
  }
  return out;
}

Result<Precision> precision_of(const Flow& flow, const Pattern& p, bool matrix) {
  for (const auto* list : {&p.inputs, &p.outputs}) {
    for (const ValueId v : *list) {
      const DType t = flow.g.value(v).type.dtype;
      if (is_floating(t)) return precision_for(flow.g, t, matrix);
    }
  }
  return flow.g.precision;
}

}  // namespace

Result<std::vector<Proposal>> proposals_from_json(const Json& j) {
  const Json& list = j.is_object() && j.contains("proposals") ? j.at("proposals") : j;
  if (!list.is_array() || list.empty()) return error(malformed("there is no list of them"));
  std::vector<Proposal> out;
  for (const Json& item : list) {
    if (!item.is_object() || !item.contains("nodes") || !item.at("nodes").is_array())
      return error(malformed("one has no list of `nodes`"));
    Proposal p{.name = fmt::format("proposal {}", out.size() + 1)};
    for (const Json& n : item.at("nodes")) {
      if (!n.is_string()) return error(malformed("a node is no name"));
      p.nodes.push_back(n.get<std::string>());
    }
    for (const auto& [key, target] : {std::pair{"name", &p.name}, {"rationale", &p.rationale}}) {
      if (!item.contains(key)) continue;
      if (!item.at(key).is_string()) return error(malformed(fmt::format("a `{}` is no text", key)));
      *target = item.at(key).get<std::string>();
    }
    out.push_back(std::move(p));
  }
  return out;
}

Result<Pattern> propose(const Flow& flow, const Proposal& proposal) {
  NodeSet set;
  std::string views;
  for (const std::string& name : proposal.nodes) {
    const std::vector<NodeId> found = nodes_named(flow.g, name);
    if (found.empty()) return error(unknown_node(flow, proposal.name, name));
    for (const NodeId n : found) {
      const graph::Node& node = flow.g.node(n);
      if (node.prepack)
        return error(fail(effects,
                          "`{}` holds %{}, which is computed once from parameters and kept",
                          proposal.name, name)
                         .expect("what every call computes")
                         .help("leave it out: its result is an input"));
      TESSERA_CHECK(check_node(flow, n, proposal.name));
      if (flow.computes(n))
        set.insert(n);
      else
        views = node.name;
    }
  }
  if (set.empty() && !views.empty())
    return error(fail(aliased,
                      "`{}` only looks at memory of others: %{} would be memory of its input",
                      proposal.name, views)
                     .expect("an op that computes")
                     .help("views cost nothing; a pattern reads through those between its nodes"));
  return propose(flow, set, proposal.name);
}

Result<Pattern> propose(const Flow& flow, const NodeSet& set, const std::string& what) {
  if (set.empty())
    return error(
        fail(computes_nothing, "`{}` names no node that computes", what).expect("names of nodes"));
  if (!flow.convex(set))
    return error(fail(not_convex,
                      "`{}` cannot run as one step: %{} needs its results, and gives it inputs",
                      what, between(flow, set))
                     .expect("nodes between which no other has to run")
                     .help("take %{} in, or leave out what needs it", between(flow, set)));
  Pattern p;
  p.rule = proposed_rule;
  const std::vector<ValueId> read = read_by(flow, set);
  p.nodes = flow.in_order(flow.closure(set, read, &p.constants));
  p.computing = flow.in_order(set);
  for (const NodeId n : p.nodes) TESSERA_CHECK(check_node(flow, n, what));
  p.outputs = flow.outputs(set);
  if (p.outputs.empty())
    return error(fail(computes_nothing, "`{}`: nobody needs its results", what)
                     .expect("a result that is read"));
  std::stable_sort(p.outputs.begin(), p.outputs.end(), [&](ValueId a, ValueId b) {
    return text_of(flow, p.nodes, a) < text_of(flow, p.nodes, b);
  });
  Naming naming(flow, p.nodes);
  Json results = Json::array();
  for (const ValueId v : p.outputs) results.push_back(naming.visit(v));
  p.inputs = naming.order;
  Json types = Json::array();
  for (const ValueId v : p.inputs) types.push_back(type_json(flow.g.value(v).type));
  TESSERA_CHECK(check_devices(flow, p, what));
  auto body = std::make_shared<ProposedBody>();
  body->subgraph = {{"inputs", std::move(types)},
                    {"nodes", std::move(naming.nodes)},
                    {"outputs", std::move(results)}};
  p.body = std::move(body);
  bool matrix = false;
  for (const NodeId n : set) {
    p.flops += graph::flops_of(flow.g, flow.g.node(n));
    matrix = matrix || graph::kind_of(flow.g.node(n)) == graph::OpKind::matmul;
  }
  for (const auto* list : {&p.inputs, &p.outputs})
    for (const ValueId v : *list) p.min_bytes += static_cast<double>(flow.g.value(v).type.bytes());
  TESSERA_TRY(precision, precision_of(flow, p, matrix));
  p.precision = precision;
  std::vector<std::string> ops;
  for (const NodeId n : p.computing) ops.emplace_back(base_name(flow.g.node(n).op).substr(5));
  p.summary = fmt::format("{}: {}", what, join(ops, ", "));
  return p;
}

}  // namespace tessera::rules
