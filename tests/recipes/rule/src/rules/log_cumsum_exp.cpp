// log(cumsum(exp(x))) along a dim, which PyTorch has as one op that does not overflow.
#include "rules/common/region.h"

namespace tessera::rules {
namespace {

using graph::Node;

struct LogCumsumExpBody : PatternBody {
  TensorView x;  // as the first op reads it
  TensorView y;  // of x's shape
  int64_t dim = 0;

  [[nodiscard]] Json to_json() const override {
    return {{"x", x.to_json()}, {"y", y.to_json()}, {"dim", dim}};
  }
};

/// The only reader of the value, when it is this op.
NodeId next(const Flow& flow, ValueId v, std::string_view op) {
  const auto readers = flow.readers(v);
  if (readers.size() != 1 || flow.escapes(v)) return {};
  return base_name(flow.g.node(readers[0]).op) == op ? readers[0] : NodeId{};
}

Result<Pattern> build(const Flow& flow, NodeId exp, NodeId sum, NodeId log) {
  const graph::TensorType& type = flow.g.value(flow.g.node(log).outputs.at(0)).type;
  if (type.shape.empty() || type.numel() == 0) return refuse("a tensor without dims or elements");
  TESSERA_TRY(precision, precision_for(flow.g, type.dtype, false));
  auto body = std::make_shared<LogCumsumExpBody>();
  Tensors tensors(flow.g);
  body->x = tensors.input(graph::resolve(flow.g, flow.g.node(exp).tensor("self")));
  body->y = tensors.output({flow.g.node(log).outputs.at(0), {0, type.strides}}, type.shape);
  body->dim = static_cast<int64_t>(
      graph::wrap_dim(flow.g.node(sum).integer("dim").value_or(0), type.shape.size()));
  Pattern p =
      make_pattern(flow, "log_cumsum_exp", {exp, sum, log}, std::move(tensors), body, precision);
  p.summary =
      fmt::format("{} along dim {} {}", dims_text(type.shape), body->dim, name_of(precision));
  return p;
}

Matches match(const graph::Graph& g) {
  const Flow flow(g);
  Matches found;
  for (const NodeId exp : g.order) {
    if (!flow.computes(exp) || base_name(g.node(exp).op) != "aten.exp") continue;
    const NodeId sum = next(flow, g.node(exp).outputs.at(0), "aten.cumsum");
    const NodeId log = sum.valid() ? next(flow, g.node(sum).outputs.at(0), "aten.log") : NodeId{};
    if (!log.valid()) continue;
    auto pattern = build(flow, exp, sum, log);
    if (pattern)
      found.patterns.push_back(std::move(*pattern));
    else
      found.rejections.push_back({"log_cumsum_exp", {sum}, pattern.error().message});
  }
  return found;
}

std::vector<LibraryCall> library(const Pattern& p) {
  const auto& body = dynamic_cast<const LogCumsumExpBody&>(*p.body);
  return {op_call("aten.logcumsumexp.default",
                  {{"self", {{"view", body.x.to_json()}}}, {"dim", body.dim}})};
}

}  // namespace

extern const Rule log_cumsum_exp = {
    .name = "log_cumsum_exp",
    .doc = "the logarithm of a running sum of exponentials",
    .match = match,
    .library = library,
};

}  // namespace tessera::rules
