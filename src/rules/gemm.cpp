// Matrix products with everything pointwise that follows them.
#include "rules/gemm.h"

#include "base/integers.h"
#include "rules/common/column_parts.h"

namespace tessera::rules {
namespace {

/// Below this many 128x128 output tiles, a long K leaves most multiprocessors without work.
constexpr int64_t few_tiles = 66;
constexpr int64_t long_k = 4096;

/// The body without an epilogue; its operands are the first of `tensors`.
std::shared_ptr<GemmBody> product_body(const Product& p, Tensors& tensors) {
  auto body = std::make_shared<GemmBody>();
  body->batch = p.batch;
  body->m = p.m;
  body->n = p.n;
  body->k = p.k;
  body->a = tensors.input(p.a);
  body->b = tensors.input(p.b);
  return body;
}

Result<Pattern> finish(const Flow& flow, const Product& p, const NodeSet& set, Tensors tensors,
                       const std::shared_ptr<GemmBody>& body) {
  TESSERA_TRY(precision, precision_for(flow.g, body->a.dtype, true));
  Pattern pattern = make_pattern(flow, "gemm", set, std::move(tensors), body, precision);
  pattern.roles.fan_in = p.k;
  pattern.summary = fmt::format("{}{}x{}x{} {}", p.batch > 1 ? fmt::format("{} of ", p.batch) : "",
                                p.m, p.n, p.k, name_of(precision));
  if (p.bias.valid()) pattern.summary += ", + bias";
  if (const std::string ops = op_list(flow, set); !ops.empty()) pattern.summary += ", " + ops;
  if (!body->parts.empty())
    pattern.summary += fmt::format(", columns in {} parts", body->parts.size());
  for (const std::string& note : {alignment_note("A", body->a), alignment_note("B", body->b),
                                  alignment_note("D", body->outputs[0])})
    if (!note.empty()) pattern.challenges.push_back(note);
  if (p.batches.size() > 1) pattern.challenges.push_back("batches without a common stride");
  const int64_t tiles = p.batch * ceil_div(p.m, 128) * ceil_div(p.n, 128);
  if (p.k >= long_k && tiles <= few_tiles)
    pattern.challenges.push_back(
        fmt::format("long K ({}) over {} output tiles: split-K or stream-K", p.k, tiles));
  if (p.m < 64 || p.n < 64)
    pattern.challenges.push_back("skinny: bound by memory, not by arithmetic");
  return pattern;
}

Result<Pattern> build(const Flow& flow, const Product& p, const NodeSet& set) {
  std::vector<int64_t> shape = p.batches;
  shape.insert(shape.end(), {p.m, p.n});
  const std::vector<Seed> seeds{{p.result, p.map}};
  Merge merge(flow, set, seeds);
  Evaluator evaluator(flow, set, {{p.result, p.anchor()}});
  for (ValueId out : flow.outputs(set)) {
    TESSERA_TRY(fragments, evaluator.evaluate(out));
    if (fragments.size() != 1) return refuse("a concatenation cuts the rows or columns");
    TESSERA_TRY(fragment, arrange(flow.g, fragments[0], seeds, shape));
    TESSERA_CHECK(merge.add(fragment));
  }
  Tensors tensors(flow.g);
  auto body = product_body(p, tensors);
  for (const Read& r : merge.operands) body->operands.push_back(tensors.input(r, shape));
  for (const Read& r : merge.writes) body->outputs.push_back(tensors.output(r, shape));
  body->epilogue = std::move(merge.dag);
  return finish(flow, p, set, std::move(tensors), body);
}

/// The region whose one output is a concatenation, each part of its columns with an epilogue.
Result<Pattern> build_parts(const Flow& flow, const Product& p, const NodeSet& set) {
  TESSERA_TRY(found, column_parts(flow, p, set));
  Tensors tensors(flow.g);
  auto body = product_body(p, tensors);
  for (std::size_t i = 0; i < found.parts.size(); ++i) {
    ColumnPart& part = found.parts[i];
    for (const Read& r : found.reads[i]) part.operands.push_back(tensors.input(r, found.shapes[i]));
    body->parts.push_back(std::move(part));
  }
  body->epilogue.results = {body->epilogue.add_operand(0)};
  const std::vector<int64_t> shape{1, p.m, p.n};
  body->outputs = {tensors.output({found.output, {0, {0, p.m == 1 ? 0 : p.n, 1}}}, shape)};
  return finish(flow, p, set, std::move(tensors), body);
}

Matches match(const graph::Graph& g) {
  const Flow flow(g);
  Matches found;
  for (NodeId n : g.order) {
    if (!flow.computes(n) || graph::kind_of(g.node(n)) != graph::OpKind::matmul) continue;
    auto product = find_product(flow, n);
    if (!product) {
      found.rejections.push_back({"gemm", {n}, product.error().message});
      continue;
    }
    auto attempt = [&](const NodeSet& set) -> Status {
      TESSERA_TRY(ok, build(flow, *product, set));
      return {};
    };
    auto bare = build(flow, *product, {n});
    if (!bare) {
      found.rejections.push_back({"gemm", {n}, bare.error().message});
      continue;
    }
    const NodeSet grown = grow(flow, {n}, attempt, "gemm", &found.rejections);
    if (grown.size() > 1) found.patterns.push_back(std::move(*build(flow, *product, grown)));
    for (const NodeSet& set : concatenating_regions(flow, *product)) {
      auto parts = build_parts(flow, *product, set);
      if (!parts) {
        found.rejections.push_back(
            {"gemm", {*set.rbegin()}, "not fused: " + parts.error().message});
        continue;
      }
      found.patterns.push_back(std::move(*parts));
      break;
    }
    found.patterns.push_back(std::move(*bare));
  }
  return found;
}

}  // namespace

Json GemmBody::to_json() const {
  Json j = {{"batch", batch}, {"m", m}, {"n", n}, {"k", k}, {"a", a.to_json()}, {"b", b.to_json()}};
  add_epilogue(j, epilogue, operands, outputs);
  if (!parts.empty()) {
    j["parts"] = Json::array();
    for (const ColumnPart& part : parts) j["parts"].push_back(part.to_json());
  }
  return j;
}

bool ColumnPart::plain() const {
  if (period != 0 || dag.results.size() != 1) return false;
  const auto& node = dag.nodes.at(static_cast<std::size_t>(dag.results[0]));
  return node.kind == pointwise::Dag::Node::Kind::operand && node.operand == 0;
}

Json ColumnPart::to_json() const {
  Json j = {{"first", first}, {"columns", columns}, {"period", period}, {"dag", dag.to_string()}};
  j["operands"] = Json::array();
  for (const TensorView& v : operands) j["operands"].push_back(v.to_json());
  return j;
}

extern const Rule gemm = {
    .name = "gemm",
    .doc =
        "matrix product (all transposes, strided batches) with any pointwise DAG on its result, or "
        "one a part of its columns (rotary embedding)",
    .match = match,
};

}  // namespace tessera::rules
