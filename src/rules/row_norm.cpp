// Row normalizations with the pointwise work before and after them.
#include "rules/row_norm.h"

#include <functional>
#include <limits>

#include "rules/common/region.h"

namespace tessera::rules {
namespace {

using graph::Node;
using graph::Operand;

struct Norm {
  NodeId node;
  ValueId result;
  std::string kind;
  Operand x;                   // [rows..., columns]
  std::vector<int64_t> shape;  // of x
  IndexMap map;                // of the result's storage over x's shape
  ValueId weight;
  ValueId bias;
  double eps = 0;
};

double epsilon_of(DType t) {
  switch (t) {
    case DType::bfloat16:
      return 0x1p-7;
    case DType::float16:
      return 0x1p-10;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

/// Both operands with the rows merged into one dim, and with their own row dims, where strides
/// allow it: operands of the work around it may need the one or the other.
Result<std::vector<Norm>> place(const Norm& norm, const Operand& x, const Operand& y,
                                std::size_t normalized) {
  const std::size_t rows = x.shape.size() - normalized;
  std::vector<int64_t> shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(rows));
  const int64_t columns =
      layout::numel({x.shape.end() - static_cast<std::ptrdiff_t>(normalized), x.shape.end()});
  const int64_t count = layout::numel(shape);
  shape.push_back(columns);
  std::vector<Norm> placed;
  for (const std::vector<int64_t>& to : {std::vector<int64_t>{count, columns}, shape}) {
    auto from = graph::reshaped(x, to);
    auto out = graph::reshaped(y, to);
    if (!from || !out || (!placed.empty() && placed.back().shape == to)) continue;
    Norm& n = placed.emplace_back(norm);
    n.shape = to;
    n.x = *from;
    n.map = {out->offset, out->strides};
    for (std::size_t d = 0; d < to.size(); ++d)
      if (to[d] == 1) n.map.strides[d] = n.x.strides[d] = 0;
  }
  if (placed.empty()) return refuse("the normalized dims do not merge into one stride");
  return placed;
}

Operand with_last(Operand o, int64_t dim) {
  const auto d = static_cast<std::ptrdiff_t>(graph::wrap_dim(dim, o.shape.size()));
  std::rotate(o.shape.begin() + d, o.shape.begin() + d + 1, o.shape.end());
  std::rotate(o.strides.begin() + d, o.strides.begin() + d + 1, o.strides.end());
  return o;
}

/// The norm with its rows merged, and as they are.
Result<std::vector<Norm>> find_norm(const Flow& flow, NodeId id) {
  const Node& node = flow.g.node(id);
  const auto name = base_name(node.op);
  Norm n;
  n.node = id;
  n.result = node.outputs.at(0);
  const auto& type = flow.g.value(n.result).type;
  const Operand y{n.result, type.shape, type.strides, 0, {}};
  if (type.numel() == 0) return refuse("an empty tensor");
  for (std::size_t i = 1; i < node.outputs.size(); ++i)
    if (!flow.readers(node.outputs[i]).empty() || flow.escapes(node.outputs[i]))
      return refuse("the statistics are needed too");
  if (name == "aten.softmax" || name == "aten._softmax" || name == "aten.log_softmax" ||
      name == "aten._log_softmax") {
    n.kind = name.find("log") == std::string_view::npos ? "softmax" : "log_softmax";
    const Operand x = graph::resolve(flow.g, node.tensor("self"));
    if (x.shape.empty()) return refuse("a scalar has no rows");
    const int64_t dim = node.integer("dim").value_or(-1);
    return place(n, with_last(x, dim), with_last(y, dim), 1);
  }
  if (name == "aten.layer_norm" || name == "aten.native_layer_norm") {
    n.kind = "layer_norm";
    n.bias = node.tensor("bias");
    n.eps = node.number("eps").value_or(1e-5);
  } else if (name == "aten.rms_norm") {
    n.kind = "rms_norm";
    n.eps = node.number("eps").value_or(epsilon_of(type.dtype));
  } else {
    return refuse("`{}` does not normalize rows", name);
  }
  n.weight = node.tensor("weight");
  const std::size_t normalized = node.integers("normalized_shape").size();
  return place(n, graph::resolve(flow.g, node.tensor("input")), y, normalized);
}

/// The normalized element with weight and bias.
Evaluator::Anchor anchor(const Norm& n) {
  return [n](Evaluator& e, ValueId value, const IndexMap& map) -> Result<int> {
    int result = e.read_storage(value, map);
    if (!n.weight.valid() && !n.bias.valid()) return result;
    TESSERA_TRY(at, e.coordinates_of(value, map));
    if (n.weight.valid()) {
      TESSERA_TRY(weight, e.read(n.weight, at));
      result = e.dag().add_call("mul", {result, weight});
    }
    if (n.bias.valid()) {
      TESSERA_TRY(bias, e.read(n.bias, at));
      result = e.dag().add_call("add", {result, bias});
    }
    return result;
  };
}

Status add_results(const Flow& flow, const Norm& n, const NodeSet& set, Merge& post,
                   const std::vector<Seed>& seeds) {
  std::map<ValueId, Evaluator::Anchor> anchors{{n.result, anchor(n)}};
  const NodeId from = flow.producer(n.x.base);
  if (from.valid() && set.contains(from))
    anchors[n.x.base] = [](Evaluator& e, ValueId v, const IndexMap& m) -> Result<int> {
      return e.read_storage(v, m);
    };
  Evaluator evaluator(flow, set, std::move(anchors));
  for (ValueId out : flow.outputs(set)) {
    TESSERA_TRY(fragments, evaluator.evaluate(out));
    if (fragments.size() != 1) return refuse("a concatenation cuts the rows");
    TESSERA_TRY(fragment, arrange(flow.g, fragments[0], seeds, n.shape));
    TESSERA_CHECK(post.add(fragment));
  }
  return {};
}

std::string summary_of(const Flow& flow, const Norm& n, const RowNormBody& body, const NodeSet& set,
                       Precision precision) {
  std::string text = fmt::format("{} {} {}", n.kind, fmt::join(n.shape, "x"), name_of(precision));
  if (n.weight.valid()) text += n.bias.valid() ? ", weight and bias" : ", weight";
  if (const std::string ops = op_list(flow, set); !ops.empty()) text += ", with " + ops;
  if (body.outputs.size() > 1) text += fmt::format(", {} outputs", body.outputs.size());
  return text;
}

Result<Pattern> build(const Flow& flow, const Norm& n, const NodeSet& set) {
  Evaluator before(flow, set, {});
  TESSERA_TRY(fragments, before.evaluate(n.x));
  if (fragments.size() != 1) return refuse("a concatenation cuts the rows");
  TESSERA_TRY(fragment, arrange(flow.g, fragments[0], {}, n.shape));
  Merge pre(flow, set, {});
  TESSERA_CHECK(pre.add(fragment));
  if (pre.operands.empty()) return refuse("it normalizes numbers alone");
  const std::vector<Seed> seeds{{n.result, n.map}, {n.x.base, {n.x.offset, n.x.strides}}};
  Merge post(flow, set, seeds);
  post.operands = pre.operands;
  TESSERA_CHECK(add_results(flow, n, set, post, seeds));

  auto body = std::make_shared<RowNormBody>();
  body->kind = n.kind;
  body->rows.assign(n.shape.begin(), n.shape.end() - 1);
  body->columns = n.shape.back();
  body->eps = n.eps;
  Tensors tensors(flow.g);
  for (const Read& r : post.operands) body->operands.push_back(tensors.input(r, n.shape));
  for (const Read& r : post.writes) body->outputs.push_back(tensors.output(r, n.shape));
  body->pre = std::move(pre.dag);
  body->post = std::move(post.dag);
  TESSERA_TRY(precision, precision_for(flow.g, flow.g.value(n.x.base).type.dtype, false));
  const std::string summary = summary_of(flow, n, *body, set, precision);
  Pattern p = make_pattern(flow, "row_norm", set, std::move(tensors), body, precision);
  p.summary = summary;
  if (body->columns > 1 && n.x.strides.back() != 1)
    p.challenges.push_back("the normalized dim is not contiguous");
  if (body->columns > 16384) p.challenges.push_back("rows beyond one block's registers");
  return p;
}

/// The pointwise work that a kernel takes with a norm.
struct Region {
  Norm norm;
  NodeSet with_pre;  // the norm and what makes its rows
  NodeSet full;      // and what follows
  std::vector<Rejection> rejections;
};

/// Whether a kernel takes a set with the norm; for as long as both live.
std::function<Status(const NodeSet&)> attempt_with(const Flow& flow, const Norm& norm) {
  return [&](const NodeSet& set) -> Status {
    TESSERA_TRY(ok, build(flow, norm, set));
    return {};
  };
}

Result<Region> region_of(const Flow& flow, const Norm& norm) {
  const auto attempt = attempt_with(flow, norm);
  TESSERA_CHECK(attempt({norm.node}));
  Region r{.norm = norm};
  r.with_pre = grow_back(flow, {norm.node}, norm.x.base, true, attempt);
  r.full = grow(flow, r.with_pre, attempt, "row_norm", &r.rejections);
  return r;
}

/// Of the norm's placements the one that takes the most work, the first among equals.
Result<Region> largest_region(const Flow& flow, NodeId id) {
  TESSERA_TRY(norms, find_norm(flow, id));
  std::optional<Region> best;
  std::optional<Diagnostic> first;
  for (const Norm& norm : norms) {
    auto region = region_of(flow, norm);
    if (!region && !first) first = region.error();
    if (region && (!best || region->full.size() > best->full.size())) best = std::move(*region);
  }
  if (!best) return error(*first);
  return std::move(*best);
}

Matches match(const graph::Graph& g) {
  const Flow flow(g);
  Matches found;
  for (NodeId id : g.order) {
    if (!flow.computes(id) || graph::kind_of(g.node(id)) != graph::OpKind::normalize) continue;
    auto region = largest_region(flow, id);
    if (!region) {
      found.rejections.push_back({"row_norm", {id}, region.error().message});
      continue;
    }
    found.rejections.insert(found.rejections.end(), region->rejections.begin(),
                            region->rejections.end());
    found.patterns.push_back(std::move(*build(flow, region->norm, region->full)));
    if (region->with_pre.size() == 1) continue;
    const NodeSet without_pre =
        grow(flow, {id}, attempt_with(flow, region->norm), "row_norm", nullptr);
    found.patterns.push_back(std::move(*build(flow, region->norm, without_pre)));
  }
  return found;
}

}  // namespace

Json RowNormBody::to_json() const {
  Json j = {{"kind", kind}, {"rows", rows}, {"columns", columns}, {"eps", eps}};
  j["operands"] = Json::array();
  for (const TensorView& v : operands) j["operands"].push_back(v.to_json());
  j["pre"] = pre.to_string();
  j["post"] = post.to_string();
  j["outputs"] = Json::array();
  for (const TensorView& v : outputs) j["outputs"].push_back(v.to_json());
  return j;
}

extern const Rule row_norm = {
    .name = "row_norm",
    .doc = "layer norm, RMS norm, softmax, log-softmax with the pointwise work around them",
    .match = match,
};

}  // namespace tessera::rules
