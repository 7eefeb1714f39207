// Rotary embedding of neighbouring parts of one linear (queries and keys): once, for all their
// heads.
//
//   q, k, v = split(linear(x));  q' = q * cos + rotate_half(q) * sin;  the same for k
//
// becomes  y = cat(rotated columns of linear(x), the other columns);  q', k, v = split(y), so that
// one value holds all columns and the product's own epilogue can write it.
#include <algorithm>
#include <set>

#include "graph/ops.h"

#include "rewrite/rewrite.h"
#include "rewrite/rotary_run.h"

namespace tessera::rewrite {
namespace {

const char* const what = "rotary embedding of linears of one input, together";

class Writer {
 public:
  Writer(Graph& g, const RotaryRun& run)
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
  const RotaryRun& run_;
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
  const auto run = find_rotary_run(g);
  if (!run) return false;
  Writer writer(g, *run);
  const ValueId all = writer.rotated();
  writer.split(all);
  put_in_order(g);
  log.push_back({.what = what, .result = g.value(all).name, .nodes = writer.covers()});
  g.erase_dead();
  return true;
}

}  // namespace tessera::rewrite
