#include "rewrite/mask_argument.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace tessera::rewrite {
namespace {

using Shape = std::vector<int64_t>;

TensorType contiguous(DType dtype, const Shape& shape) {
  return {dtype, shape, contiguous_strides(shape)};
}

/// The shape that both broadcast to; they mask the same scores, so there is one.
Shape broadcast(Shape a, Shape b) {
  if (a.size() < b.size()) std::swap(a, b);
  for (std::size_t i = 1; i <= b.size(); ++i) {
    int64_t& extent = a[a.size() - i];
    extent = std::max(extent, b[b.size() - i]);
  }
  return a;
}

class Joining {
 public:
  Joining(Graph& g, NodeId before, const Node& like) : g_(g), before_(before), like_(like) {}

  /// True where attended.
  ValueId attended(const MaskTerm& term) {
    if (!term.where) return term.value;
    const ValueId out = made("attended", "aten.logical_not.default", {{"self", term.value}},
                             contiguous(DType::boolean, shape(term.value)));
    g_.value(out).facts = negated(g_.value(term.value).facts);
    return out;
  }

  ValueId both(ValueId a, ValueId b) {
    return made("attended", "aten.logical_and.default", {{"self", a}, {"other", b}},
                contiguous(DType::boolean, broadcast(shape(a), shape(b))));
  }

  ValueId sum(ValueId a, ValueId b) {
    return made("mask", "aten.add.Tensor", {{"self", a}, {"other", b}, {"alpha", int64_t{1}}},
                contiguous(dtype(a), broadcast(shape(a), shape(b))));
  }

  /// What is added, and -inf where it is not attended.
  ValueId filled(ValueId added, ValueId attended) {
    return made("mask", "aten.where.ScalarOther",
                {{"condition", attended},
                 {"self", added},
                 {"other", -std::numeric_limits<double>::infinity()}},
                contiguous(dtype(added), broadcast(shape(added), shape(attended))));
  }

  ValueId as(DType type, ValueId v) { return converted(g_, v, type, before_, like_, "mask"); }
  [[nodiscard]] DType dtype(ValueId v) const { return g_.value(v).type.dtype; }

 private:
  ValueId made(const char* stem, const char* op,
               std::vector<std::pair<std::string, Argument>> arguments, const TensorType& type) {
    return insert(g_, {stem, op, std::move(arguments), type}, before_, like_);
  }
  [[nodiscard]] const Shape& shape(ValueId v) const { return g_.value(v).type.shape; }

  Graph& g_;
  const NodeId before_;
  const Node& like_;
};

bool can_be_joined(const Graph& g, const MaskTerm& term) {
  if (!term.replaces) return true;
  return g.value(term.value).type.dtype == DType::boolean && !std::isfinite(term.masked);
}

}  // namespace

ValueId mask_argument(Graph& g, const std::vector<MaskTerm>& masks, DType type, NodeId before,
                      const Node& like) {
  const auto joins = [&](const MaskTerm& term) { return can_be_joined(g, term); };
  if (!std::all_of(masks.begin(), masks.end(), joins)) return {};
  Joining join(g, before, like);
  std::vector<ValueId> added;
  std::optional<ValueId> attended;
  for (const MaskTerm& term : masks) {
    if (!term.replaces) {
      added.push_back(term.value);
    } else {
      const ValueId of_one = join.attended(term);
      attended = attended ? join.both(*attended, of_one) : of_one;
    }
  }
  if (added.empty()) return *attended;
  // Floats of one type are summed as they are: conversion rounds.
  const DType first = join.dtype(added.front());
  const bool alike = is_floating(first) && std::all_of(added.begin(), added.end(), [&](ValueId v) {
                       return join.dtype(v) == first;
                     });
  ValueId out;
  for (ValueId v : added) {
    if (!alike) v = join.as(type, v);
    out = out.valid() ? join.sum(out, v) : v;
  }
  if (attended) out = join.filled(out, *attended);
  return join.as(type, out);
}

}  // namespace tessera::rewrite
