#include "rules/common/matrix.h"

#include <algorithm>
#include <fmt/ranges.h>

namespace tessera::rules {

using graph::Node;
using graph::Operand;

namespace {

void swap_last(Operand& o) {
  std::swap(o.shape[o.shape.size() - 1], o.shape[o.shape.size() - 2]);
  std::swap(o.strides[o.strides.size() - 1], o.strides[o.strides.size() - 2]);
}

void append_dim(Operand& o) {
  o.shape.push_back(1);
  o.strides.push_back(0);
}

void prepend_dim(Operand& o) {
  o.shape.insert(o.shape.begin(), 1);
  o.strides.insert(o.strides.begin(), 0);
}

Operand whole(const Flow& flow, ValueId v) {
  const auto& type = flow.g.value(v).type;
  return Operand{v, type.shape, type.strides, 0, {}};
}

/// The leading dims of `o` broadcast to `lead`, the last two kept.
Operand broadcast(Operand o, const std::vector<int64_t>& lead) {
  while (o.shape.size() < lead.size() + 2) prepend_dim(o);
  for (std::size_t d = 0; d < lead.size(); ++d) {
    if (o.shape[d] == lead[d]) continue;
    o.shape[d] = lead[d];
    o.strides[d] = 0;
  }
  return o;
}

struct Sides {
  Operand a;  // [..., m, k]
  Operand b;  // [..., n, k]
};

Result<Sides> sides(const Flow& flow, const Node& node, Product& p) {
  const auto name = base_name(node.op);
  auto operand = [&](std::string_view argument) {
    return graph::resolve(flow.g, node.tensor(argument));
  };
  Sides s;
  if (name == "aten.linear") {
    s = {operand("input"), operand("weight")};
    p.bias = node.tensor("bias");
    if (s.b.shape.size() != 2) return refuse("the weight of linear is not a matrix");
    if (s.a.shape.size() == 1) prepend_dim(s.a);
    return s;
  }
  if (name == "aten.mm" || name == "aten.bmm") {
    s = {operand("self"), operand("mat2")};
  } else if (name == "aten._scaled_mm") {
    s = {operand("self"), operand("mat2")};
    p.bias = node.tensor("bias");
    p.scales = {node.tensor("scale_a"), node.tensor("scale_b")};
    if (node.tensor("scale_result").valid()) return refuse("a scale of the result is not fused");
  } else if (name == "aten.addmm") {
    s = {operand("mat1"), operand("mat2")};
  } else if (name == "aten.baddbmm") {
    s = {operand("batch1"), operand("batch2")};
  } else if (name == "aten.matmul") {
    s = {operand("self"), operand("other")};
  } else if (name == "aten.mv") {
    s = {operand("self"), operand("vec")};
  } else {
    return refuse("`{}` is a matrix product of a kind that this rule does not read", node.op);
  }
  if (name == "aten.addmm" || name == "aten.baddbmm") {
    p.bias = node.tensor("self");
    p.alpha = node.number("alpha").value_or(1);
    p.beta = node.number("beta").value_or(1);
    if (p.beta == 0) p.bias = ValueId{};
  }
  if (s.a.shape.size() == 1) prepend_dim(s.a);
  if (s.b.shape.size() == 1) append_dim(s.b);
  swap_last(s.b);
  return s;
}

/// Chooses batch and rows so that A, B and the result each have one stride a dim.
Status place(const Flow& flow, const Sides& s, Product& p) {
  const std::vector<int64_t> a_lead(s.a.shape.begin(), s.a.shape.end() - 2);
  const std::vector<int64_t> b_lead(s.b.shape.begin(), s.b.shape.end() - 2);
  std::vector<int64_t> lead(std::max(a_lead.size(), b_lead.size()), 1);
  for (const auto* from : {&a_lead, &b_lead})
    for (std::size_t d = 0; d < from->size(); ++d) {
      int64_t& to = lead[lead.size() - from->size() + d];
      to = std::max(to, (*from)[d]);
    }
  const int64_t rows = s.a.shape[s.a.shape.size() - 2];
  p.k = s.a.shape.back();
  p.n = s.b.shape[s.b.shape.size() - 2];
  const int64_t batches = layout::numel(lead);
  const Operand result = whole(flow, p.result);
  auto fits = [&](const std::vector<int64_t>& l, int64_t m, const Operand& b) {
    const auto with = [&](int64_t x, int64_t y) {
      std::vector<int64_t> shape = l;
      shape.insert(shape.end(), {x, y});
      return shape;
    };
    auto out = graph::reshaped(result, with(m, p.n));
    auto a = graph::reshaped(broadcast(s.a, lead), with(m, p.k));
    auto right = graph::reshaped(b, with(p.n, p.k));
    if (!out || !a || !right) return false;
    p.batch = layout::numel(l);
    p.batches = l;
    p.m = m;
    p.a = *a;
    p.b = *right;
    p.map = {out->offset, out->strides};
    for (std::size_t d = 0; d < out->shape.size(); ++d)
      if (out->shape[d] == 1) p.map.strides[d] = 0;
    return true;
  };
  if (layout::numel(b_lead) == 1 && fits({1}, batches * rows, broadcast(s.b, {1}))) return {};
  if (fits({batches}, rows, broadcast(s.b, lead))) return {};
  for (std::size_t cut = 1; cut < lead.size(); ++cut) {
    const int64_t outer = layout::numel({lead.begin(), lead.begin() + static_cast<int64_t>(cut)});
    if (outer == 1 || outer == batches) continue;
    if (fits({outer, batches / outer}, rows, broadcast(s.b, lead))) return {};
  }
  return refuse("the batch dims {} do not collapse to two strides", fmt::join(lead, "x"));
}

}  // namespace

Evaluator::Anchor Product::anchor() const {
  return [p = *this](Evaluator& e, ValueId value, const IndexMap& map) -> Result<int> {
    int result = e.read_storage(value, map);
    if (p.alpha != 1) result = e.dag().add_call("mul", {result, e.dag().add_constant(p.alpha)});
    if (!p.bias.valid() && p.scales.empty()) return result;
    TESSERA_TRY(at, e.coordinates_of(value, map));
    for (const ValueId scale : p.scales) {
      TESSERA_TRY(factor, e.read(scale, at));
      result = e.dag().add_call("mul", {result, factor});
    }
    if (!p.bias.valid()) return result;
    TESSERA_TRY(bias, e.read(p.bias, at));
    if (p.beta != 1) bias = e.dag().add_call("mul", {bias, e.dag().add_constant(p.beta)});
    return e.dag().add_call("add", {result, bias});
  };
}

Result<Product> find_product(const Flow& flow, NodeId n) {
  const Node& node = flow.g.node(n);
  Product p;
  p.node = n;
  p.result = node.outputs.at(0);
  TESSERA_TRY(s, sides(flow, node, p));
  const DType type = flow.g.value(s.a.base).type.dtype;
  if (!is_floating(type) || type == DType::float64)
    return refuse("products of {} have no kernels", name_of(type));
  if (flow.g.value(s.b.base).type.dtype != type)
    return refuse("A is {}, B is {}", name_of(type), name_of(flow.g.value(s.b.base).type.dtype));
  if (s.a.shape.back() != s.b.shape.back())
    return refuse("A has {} columns, B {}", s.a.shape.back(), s.b.shape.back());
  if (flow.g.value(p.result).type.numel() == 0 || s.a.shape.back() == 0)
    return refuse("an empty product");
  TESSERA_CHECK(place(flow, s, p));
  return p;
}

void add_epilogue(Json& body, const pointwise::Dag& epilogue,
                  const std::vector<TensorView>& operands, const std::vector<TensorView>& outputs) {
  body["epilogue"] = epilogue.to_string();
  for (const auto& [name, views] : {std::pair{"operands", &operands}, {"outputs", &outputs}}) {
    body[name] = Json::array();
    for (const TensorView& v : *views) body[name].push_back(v.to_json());
  }
}

}  // namespace tessera::rules
