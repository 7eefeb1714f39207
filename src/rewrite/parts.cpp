// Values put together of parts, and taken apart. Pieces without elements say nothing: partial
// rotary embedding appends what it does not rotate, and an empty cache what it holds. Slices that
// are all of a linear's columns are its split, as merged linears have one, where parts are rotated.
#include <algorithm>

#include "graph/ops.h"

#include "rewrite/rewrite.h"
#include "rewrite/rotary_run.h"

namespace tessera::rewrite {
namespace {

int64_t elements(const Graph& g, ValueId v) {
  int64_t n = 1;
  for (const int64_t extent : g.value(v).type.shape) n *= extent;
  return n;
}

/// Whether the pieces put together lie as the result was traced: it is row-major, but where all of
/// four dims or more lie by channels.
bool keeps_layout(const Graph& g, const TensorType& result, const std::vector<ValueId>& pieces) {
  if (pieces.size() == 1)
    return result.contiguous() || g.value(pieces.front()).type.strides == result.strides;
  return result.contiguous() &&
         (result.shape.size() < 4 || std::any_of(pieces.begin(), pieces.end(), [&](ValueId v) {
            return g.value(v).type.contiguous();
          }));
}

/// A concatenation without its empty pieces: of one piece, a copy.
bool drop_empty_pieces(Graph& g, RewriteLog& log, NodeId id) {
  const Node n = g.node(id);
  if (!is_op(n, "aten.cat") || n.outputs.size() != 1) return false;
  const TensorType type = g.value(n.outputs.front()).type;
  const std::vector<ValueId> pieces = tensor_arguments(n);
  std::vector<ValueId> kept;
  for (const ValueId v : pieces) {
    if (g.value(v).type.dtype != type.dtype) return false;  // an empty piece may widen the result
    if (elements(g, v) > 0) kept.push_back(v);
  }
  if (kept.empty() || kept.size() == pieces.size() || !keeps_layout(g, type, kept)) return false;
  const auto insert_one = [&](std::string stem, std::string op,
                              std::vector<std::pair<std::string, Argument>> arguments) {
    return insert(g, {std::move(stem), std::move(op), std::move(arguments), type}, id, n);
  };
  ValueId made;
  if (kept.size() == 1) {
    Argument format = NoValue{};  // as the piece lies
    if (type.contiguous()) format = std::string("contiguous_format");
    made = insert_one("whole", "aten.clone.default",
                      {{"self", kept.front()}, {"memory_format", format}});
  } else {
    made = insert_one("pieces", "aten.cat.default",
                      {{"tensors", ArgumentList(kept.begin(), kept.end())},
                       {"dim", n.integer("dim").value_or(0)}});
  }
  substitute(g, log, "a concatenation with nothing", id, made, {id});
  return true;
}

struct Slice {
  NodeId node;
  int64_t begin = 0;
  int64_t end = 0;
};

/// The slices that read the value, which nothing else does, by their columns; empty where they are
/// not all of it once.
std::vector<Slice> partition(const Graph& g, ValueId wide) {
  const auto& shape = g.value(wide).type.shape;
  std::vector<Slice> slices;
  if (g.is_output(wide)) return {};
  for (const Use& use : g.uses(wide)) {
    const Node& n = g.node(use.node);
    if (!is_op(n, "aten.slice") || n.integer("step").value_or(1) != 1 ||
        wrap_dim(n.integer("dim").value_or(0), shape.size()) + 1 != shape.size())
      return {};
    const auto place = [&](std::string_view name, int64_t otherwise) {
      const int64_t at = n.integer(name).value_or(otherwise);
      return std::clamp<int64_t>(at < 0 ? at + shape.back() : at, 0, shape.back());
    };
    slices.push_back({use.node, place("start", 0), place("end", shape.back())});
  }
  std::sort(slices.begin(), slices.end(),
            [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
  int64_t at = 0;
  for (const Slice& s : slices) {
    if (s.begin != at || s.end <= s.begin) return {};
    at = s.end;
  }
  return slices.size() > 1 && at == shape.back() ? slices : std::vector<Slice>{};
}

bool split_columns(Graph& g, RewriteLog& log, NodeId id) {
  if (!is_op(g.node(id), "aten.linear")) return false;
  const ValueId wide = g.node(id).outputs.front();
  const std::vector<Slice> slices = partition(g, wide);
  if (slices.empty() || !is_rotated_in_parts(g, wide)) return false;
  const NodeId first = *std::find_if(g.order.begin(), g.order.end(), [&](NodeId at) {
    return std::any_of(slices.begin(), slices.end(), [&](const Slice& s) { return s.node == at; });
  });
  Node split;
  split.name = g.fresh_name("columns");
  split.op = "aten.split_with_sizes.default";
  split.module = g.node(first).module;
  split.place = g.node(first).place;
  split.rewritten_from = "slices that are all of a linear";
  ArgumentList sizes;
  for (const Slice& s : slices) {
    const Node& n = g.node(s.node);
    sizes.emplace_back(s.end - s.begin);
    split.covers.insert(split.covers.end(), n.covers.begin(), n.covers.end());
    split.outputs.push_back(g.add_value(
        {.name = g.fresh_name(n.name + "_part"), .type = g.value(n.outputs.front()).type}));
  }
  split.arguments = {{"self", wide}, {"split_sizes", std::move(sizes)}, {"dim", int64_t{-1}}};
  log.push_back({.what = split.rewritten_from, .result = split.name, .nodes = split.covers});
  const std::vector<ValueId> parts = split.outputs;
  g.add_node(std::move(split), first);
  for (std::size_t i = 0; i < slices.size(); ++i)
    g.replace_uses(g.node(slices[i].node).outputs.front(), parts[i]);
  g.erase_dead();
  return true;
}

}  // namespace

bool rewrite_parts(Graph& g, RewriteLog& log) {
  const std::vector<NodeId> order = g.order;
  for (const NodeId id : order) {
    if (drop_empty_pieces(g, log, id) || split_columns(g, log, id)) return true;
  }
  return false;
}

}  // namespace tessera::rewrite
