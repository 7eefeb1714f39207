// Rotary embedding of neighbouring parts of one linear (queries and keys): once, for all their
// heads.
//
//   q, k, v = split(linear(x));  q' = q * cos + rotate_half(q) * sin;  the same for k
//
// becomes  y = cat(rotated columns of linear(x), the other columns);  q', k, v = split(y), so that
// one value holds all columns and the product's own epilogue can write it.
#include <algorithm>
#include <optional>
#include <set>

#include "graph/operand.h"
#include "graph/ops.h"
#include "graph/rewrite.h"

namespace tessera::graph {
namespace {

const char* const what = "rotary embedding of linears of one input, together";

/// x * cos + cat(-x[d/2:], x[:d/2]) * sin, where x shows columns of a linear's result.
struct Rotation {
  NodeId add;
  std::vector<NodeId> nodes;  // the ops, add among them
  ValueId x;                  // [B, heads, S, d] (`heads_first`) or [B, S, heads, d]
  bool heads_first = false;
  int64_t first = 0;  // column of the linear's result
  int64_t columns = 0;
  int64_t width = 0;  // d
  ValueId cos;
  ValueId sin;
};

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

/// Parts of a split, from `from` on, that are rotated alike.
struct Run {
  NodeId split;
  std::size_t from = 0;
  std::vector<Rotation> rotations;
};

std::optional<Run> find_run(const Graph& g, NodeId split, const std::vector<Rotation>& all) {
  const Node& n = g.node(split);
  const Node* linear = producer(g, n.tensor("self"));
  if (linear == nullptr || !is_op(*linear, "aten.linear") ||
      wrap_dim(n.integer("dim").value_or(0), g.value(n.tensor("self")).type.shape.size()) != 2 ||
      !used_only_by(g, n.tensor("self"), {split}))
    return std::nullopt;
  Run run{split, 0, {}};
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

class Writer {
 public:
  Writer(Graph& g, const Run& run)
      : g_(g), run_(run), first_(run.rotations.front()), before_(first_.add) {
    for (const NodeId id : g.order) {  // the first of the sums: all factors exist before it
      if (std::none_of(run.rotations.begin(), run.rotations.end(),
                       [&](const Rotation& r) { return r.add == id; }))
        continue;
      before_ = id;
      break;
    }
    like_ = g.node(before_);
    for (const Rotation& r : run.rotations)
      for (const NodeId id : r.nodes)
        for (const std::string& c : g.node(id).covers)
          if (std::find(covers_.begin(), covers_.end(), c) == covers_.end()) covers_.push_back(c);
  }

  /// The linear's result with the run's columns rotated.
  ValueId rotated() {
    const ValueId wide = g_.node(run_.split).tensor("self");
    const TensorType type = g_.value(wide).type;
    const int64_t n = type.shape[2];
    const int64_t begin = first_.first;
    int64_t end = begin;
    for (const Rotation& r : run_.rotations) end += r.columns;
    const ValueId x = slice(wide, 2, begin, end);
    ValueId y = turned(x, end - begin);
    if (end - begin == n) return y;
    ArgumentList pieces;
    if (begin > 0) pieces.emplace_back(slice(wide, 2, 0, begin));
    pieces.emplace_back(y);
    if (end < n) pieces.emplace_back(slice(wide, 2, end, n));
    return compute("rotated", "aten.cat.default",
                   {{"tensors", std::move(pieces)}, {"dim", int64_t{-1}}}, type);
  }

  /// Splits it as the linear's result was split; the results stand for the old values.
  void split(ValueId all) {
    Node node = g_.node(run_.split);
    const std::vector<ValueId> old = node.outputs;
    node.name = g_.fresh_name("rotated_split");
    node.rewritten_from = what;
    for (auto& [name, argument] : node.arguments)
      if (name == "self") argument = all;
    node.outputs.clear();
    for (const ValueId v : old) {
      TensorType part = g_.value(v).type;
      part.strides = g_.value(all).type.strides;
      node.outputs.push_back(
          g_.add_value({.name = g_.fresh_name(g_.value(v).name + "_rotated"), .type = part}));
    }
    const std::vector<ValueId> parts = node.outputs;
    g_.add_node(std::move(node), before_);
    for (std::size_t i = 0; i < old.size(); ++i) {
      const std::size_t at = i - run_.from;
      if (i < run_.from || at >= run_.rotations.size()) {
        g_.replace_uses(old[i], parts[i]);
        continue;
      }
      const ValueId was = g_.node(run_.rotations[at].add).outputs.front();
      const ValueId now = heads_of(parts[i], run_.rotations[at].columns);
      g_.replace_uses(was, now);
      loosen(now);
    }
  }

  [[nodiscard]] const std::vector<std::string>& covers() const { return covers_; }

 private:
  using Arguments = std::vector<std::pair<std::string, Argument>>;

  ValueId view(std::string stem, std::string op, Arguments arguments, TensorType type) {
    return insert(g_, {std::move(stem), std::move(op), std::move(arguments), std::move(type)},
                  before_, like_);
  }
  ValueId compute(std::string stem, std::string op, Arguments arguments, TensorType type) {
    const ValueId v = view(std::move(stem), std::move(op), std::move(arguments), std::move(type));
    Node& made = g_.node(g_.value(v).producer);
    made.covers = covers_;
    made.rewritten_from = what;
    return v;
  }

  ValueId slice(ValueId v, int64_t dim, int64_t begin, int64_t end) {
    TensorType type = g_.value(v).type;
    int64_t& extent = type.shape[static_cast<std::size_t>(dim)];
    if (begin == 0 && end == extent) return v;
    extent = end - begin;
    return view("columns", "aten.slice.Tensor",
                {{"self", v}, {"dim", dim}, {"start", begin}, {"end", end}, {"step", int64_t{1}}},
                type);
  }

  /// [B, S, columns] as the rotation sees it.
  ValueId heads_of(ValueId v, int64_t columns) {
    const auto& shape = g_.value(v).type.shape;
    const ValueId heads = regrouped(
        g_, v, {shape[0], shape[1], columns / first_.width, first_.width}, before_, like_);
    return first_.heads_first ? permuted(g_, heads, {0, 2, 1, 3}, before_, like_) : heads;
  }

  /// The strides that PyTorch gives a pointwise result over heads of so many columns.
  TensorType dense(const std::vector<int64_t>& shape, DType dtype) const {
    TensorType type{dtype, shape, contiguous_strides(shape)};
    if (!first_.heads_first) return type;
    const auto rows = contiguous_strides({shape[0], shape[2], shape[1], shape[3]});
    type.strides = {rows[0], rows[2], rows[1], rows[3]};
    return type;
  }

  /// The rotation of [B, S, columns], again in that shape.
  ValueId turned(ValueId columns, int64_t count) {
    const std::vector<int64_t> shape = g_.value(columns).type.shape;
    const ValueId x = heads_of(columns, count);
    const TensorType type = dense(g_.value(x).type.shape, g_.value(x).type.dtype);
    const int64_t half = first_.width / 2;
    TensorType half_type = type;
    half_type.shape.back() = half;
    half_type = dense(half_type.shape, type.dtype);
    const ValueId straight =
        compute("straight", "aten.mul.Tensor", {{"self", x}, {"other", first_.cos}}, type);
    const ValueId minus = compute("minus", "aten.neg.default",
                                  {{"self", slice(x, 3, half, first_.width)}}, half_type);
    const ValueId halves =
        compute("halves", "aten.cat.default",
                {{"tensors", ArgumentList{minus, slice(x, 3, 0, half)}}, {"dim", int64_t{-1}}},
                {type.dtype, type.shape, contiguous_strides(type.shape)});
    const ValueId across =
        compute("across", "aten.mul.Tensor", {{"self", halves}, {"other", first_.sin}},
                g_.value(halves).type);
    ValueId sum = compute("turned", "aten.add.Tensor",
                          {{"self", straight}, {"other", across}, {"alpha", int64_t{1}}}, type);
    if (first_.heads_first) sum = permuted(g_, sum, {0, 2, 1, 3}, before_, like_);
    return regrouped(g_, sum, shape, before_, like_);
  }

  /// What viewed a dense value now sees one with gaps: `reshape` views where it can.
  void loosen(ValueId v) {
    for (const Use& use : g_.uses(v)) {
      Node& n = g_.node(use.node);
      if (kind_of(n) != OpKind::view) continue;
      if (is_op(n, "aten.view") || is_op(n, "aten._unsafe_view")) {
        n.op = "aten.reshape.default";
        for (auto& [name, argument] : n.arguments)
          if (name == "size") name = "shape";
      }
      for (const ValueId seen : n.outputs) loosen(seen);
    }
  }

  Graph& g_;
  const Run& run_;
  const Rotation& first_;
  NodeId before_;
  Node like_;
  std::vector<std::string> covers_;
};

/// Nodes that stand before what they read now move behind it; the others keep their order.
void put_in_order(Graph& g) {
  std::set<NodeId> placed;
  std::vector<NodeId> order;
  std::vector<NodeId> waiting;
  const auto ready = [&](NodeId id) {
    const std::vector<ValueId> arguments = tensor_arguments(g.node(id));
    return std::all_of(arguments.begin(), arguments.end(), [&](ValueId v) {
      const NodeId from = g.value(v).producer;
      return !from.valid() || placed.contains(from);
    });
  };
  const auto put = [&](NodeId id) {
    placed.insert(id);
    order.push_back(id);
  };
  for (const NodeId id : g.order) {
    if (!ready(id)) {
      waiting.push_back(id);
      continue;
    }
    put(id);
    for (std::size_t i = 0; i < waiting.size();) {
      if (!ready(waiting[i])) {
        ++i;
        continue;
      }
      put(waiting[i]);
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;
    }
  }
  g.order = std::move(order);
}

}  // namespace

bool rewrite_sibling_rotary(Graph& g, RewriteLog& log) {
  std::vector<Rotation> rotations;
  for (const NodeId id : g.order)
    if (auto r = rotation(g, id)) rotations.push_back(std::move(*r));
  if (rotations.size() < 2) return false;
  for (const NodeId id : g.order) {
    if (!is_op(g.node(id), "aten.split_with_sizes") || g.node(id).rewritten_from == what) continue;
    const auto run = find_run(g, id, rotations);
    if (!run) continue;
    Writer writer(g, *run);
    const ValueId all = writer.rotated();
    writer.split(all);
    put_in_order(g);
    log.push_back({.what = what, .result = g.value(all).name, .nodes = writer.covers()});
    g.erase_dead();
    return true;
  }
  return false;
}

}  // namespace tessera::graph
