// Two products that share their left side and meet in an activated product: act(x G^T) * (x U^T).
#include "rules/gated_mlp.h"

#include <set>

#include "rules/common/matrix.h"
#include "rules/common/region.h"

namespace tessera::rules {
namespace {

using graph::Operand;

/// Gate and value products: two linears, or two halves of the columns of one (their weights were
/// concatenated).
struct Pair {
  std::vector<NodeId> nodes;
  std::map<ValueId, Evaluator::Anchor> anchors;
  std::vector<Seed> seeds;  // gate, value
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Operand a;     // [m, k]
  Operand b[2];  // [n, k]
};

Operand matrix(const Operand& o, int64_t first_row, int64_t rows) {
  return {o.base,
          {rows, o.shape[2]},
          {o.strides[1], o.strides[2]},
          o.offset + first_row * o.strides[1],
          {}};
}

IndexMap columns(const Product& p, int64_t first) {
  return {p.map.offset + first * p.map.strides[2], {p.map.strides[1], p.map.strides[2]}};
}

Pair two_linears(const Product& x, const Product& y) {
  Pair p;
  p.nodes = {x.node, y.node};
  p.anchors = {{x.result, x.anchor()}, {y.result, y.anchor()}};
  p.seeds = {{x.result, columns(x, 0)}, {y.result, columns(y, 0)}};
  p.m = x.m;
  p.n = x.n;
  p.k = x.k;
  p.a = matrix(x.a, 0, x.m);
  p.b[0] = matrix(x.b, 0, x.n);
  p.b[1] = matrix(y.b, 0, y.n);
  return p;
}

Pair two_halves(const Product& x) {
  Pair p;
  p.nodes = {x.node};
  p.anchors = {{x.result, x.anchor()}};
  p.m = x.m;
  p.n = x.n / 2;
  p.k = x.k;
  p.seeds = {{x.result, columns(x, 0)}, {x.result, columns(x, p.n)}};
  p.a = matrix(x.a, 0, x.m);
  p.b[0] = matrix(x.b, 0, p.n);
  p.b[1] = matrix(x.b, p.n, p.n);
  return p;
}

struct Epilogue {
  pointwise::Dag dag;
  std::vector<Read> operands;
  std::vector<Read> writes;
};

/// `growing`: the region is not complete, so that a product whose halves are not both consumed yet
/// is no result.
Result<Epilogue> epilogue_of(const Flow& flow, const Pair& p, const NodeSet& set,
                             bool growing = false) {
  Merge merge(flow, set, p.seeds);
  Evaluator evaluator(flow, set, p.anchors);
  for (ValueId out : flow.outputs(set)) {
    if (growing && p.anchors.contains(out)) continue;
    TESSERA_TRY(fragments, evaluator.evaluate(out));
    if (fragments.size() != 1) return refuse("a concatenation cuts the rows or columns");
    TESSERA_TRY(fragment, arrange(flow.g, fragments[0], p.seeds, {p.m, p.n}));
    TESSERA_CHECK(merge.add(fragment));
  }
  return Epilogue{std::move(merge.dag), std::move(merge.operands), std::move(merge.writes)};
}

/// Which accumulators a DAG node depends on (bit 0, bit 1), and whether an activation lies between
/// (bit 2).
std::vector<int> dependences(const pointwise::Dag& dag) {
  static const std::set<std::string_view> linear{"add", "sub", "mul", "neg"};
  std::vector<int> bits;
  for (const pointwise::Dag::Node& node : dag.nodes) {
    int mask = 0;
    if (node.kind == pointwise::Dag::Node::Kind::operand && node.operand < 2)
      mask = 1 << node.operand;
    for (int a : node.arguments) mask |= bits[static_cast<std::size_t>(a)];
    if (node.kind == pointwise::Dag::Node::Kind::call && (mask & 3) != 0 &&
        !linear.contains(node.function->name))
      mask |= 4;
    bits.push_back(mask);
  }
  return bits;
}

/// The accumulator under the activation where the two meet in a product; -1 when they do not.
int gate_of(const pointwise::Dag& dag) {
  const auto bits = dependences(dag);
  for (const pointwise::Dag::Node& node : dag.nodes) {
    if (node.kind != pointwise::Dag::Node::Kind::call || node.function->name != "mul") continue;
    const int x = bits[static_cast<std::size_t>(node.arguments[0])];
    const int y = bits[static_cast<std::size_t>(node.arguments[1])];
    if (((x & 3) | (y & 3)) != 3 || (x & 3) == 3 || (y & 3) == 3) continue;
    if ((x & 4) == (y & 4)) return 0;
    return ((x & 4) != 0 ? x & 3 : y & 3) - 1;
  }
  return -1;
}

Result<Pattern> build(const Flow& flow, const Pair& p, const NodeSet& set) {
  TESSERA_TRY(epilogue, epilogue_of(flow, p, set));
  auto body = std::make_shared<GatedMlpBody>();
  body->m = p.m;
  body->n = p.n;
  body->k = p.k;
  Tensors tensors(flow.g);
  body->a = tensors.input(p.a);
  body->b0 = tensors.input(p.b[0]);
  body->b1 = tensors.input(p.b[1]);
  const std::vector<int64_t> shape{p.m, p.n};
  for (const Read& r : epilogue.operands) body->operands.push_back(tensors.input(r, shape));
  for (const Read& r : epilogue.writes) body->outputs.push_back(tensors.output(r, shape));
  body->epilogue = std::move(epilogue.dag);
  TESSERA_TRY(precision, precision_for(flow.g, body->a.dtype, true));
  Pattern pattern = make_pattern(flow, "gated_mlp", set, std::move(tensors), body, precision);
  pattern.roles.fan_in = p.k;
  pattern.summary =
      fmt::format("2 of {}x{}x{} {}, {}", p.m, p.n, p.k, name_of(precision), op_list(flow, set));
  for (const std::string& note : {alignment_note("A", body->a), alignment_note("B0", body->b0),
                                  alignment_note("B1", body->b1)})
    if (!note.empty()) pattern.challenges.push_back(note);
  pattern.challenges.push_back("two accumulators: half the tile of a plain product");
  return pattern;
}

/// The pattern around this pair, or nothing when the two never meet in a gated product.
std::optional<Pattern> match_pair(const Flow& flow, Pair p) {
  const NodeSet start(p.nodes.begin(), p.nodes.end());
  if (!flow.convex(start)) return std::nullopt;
  auto attempt = [&](const NodeSet& set) -> Status {
    TESSERA_TRY(ok, epilogue_of(flow, p, set, true));
    return {};
  };
  const NodeSet set = grow(flow, start, attempt, "gated_mlp", nullptr);
  auto epilogue = epilogue_of(flow, p, set);
  if (!epilogue) return std::nullopt;
  const int gate = gate_of(epilogue->dag);
  if (gate < 0) return std::nullopt;
  if (gate == 1) {
    std::swap(p.seeds[0], p.seeds[1]);
    std::swap(p.b[0], p.b[1]);
  }
  auto pattern = build(flow, p, set);
  return pattern ? std::optional(std::move(*pattern)) : std::nullopt;
}

bool share_left_side(const Product& x, const Product& y) {
  return x.a.base == y.a.base && x.a.offset == y.a.offset && x.a.shape == y.a.shape &&
         x.a.strides == y.a.strides && x.n == y.n && x.k == y.k;
}

Matches match(const graph::Graph& g) {
  const Flow flow(g);
  Matches found;
  std::vector<Product> products;
  for (NodeId n : g.order) {
    if (!flow.computes(n) || graph::kind_of(g.node(n)) != graph::OpKind::matmul) continue;
    auto p = find_product(flow, n);  // the gemm rule reports why a product is not taken
    if (p && p->batch == 1) products.push_back(std::move(*p));
  }
  for (std::size_t i = 0; i < products.size(); ++i) {
    if (products[i].n % 2 == 0)
      if (auto p = match_pair(flow, two_halves(products[i])))
        found.patterns.push_back(std::move(*p));
    for (std::size_t j = i + 1; j < products.size(); ++j) {
      if (!share_left_side(products[i], products[j])) continue;
      if (auto p = match_pair(flow, two_linears(products[i], products[j])))
        found.patterns.push_back(std::move(*p));
    }
  }
  return found;
}

}  // namespace

Json GatedMlpBody::to_json() const {
  Json j = {{"m", m}, {"n", n}, {"k", k}};
  j["a"] = a.to_json();
  j["b0"] = b0.to_json();
  j["b1"] = b1.to_json();
  add_epilogue(j, epilogue, operands, outputs);
  return j;
}

extern const Rule gated_mlp = {
    .name = "gated_mlp",
    .doc = "two products that share their input and meet in act(gate) * value",
    .match = match,
};

}  // namespace tessera::rules
