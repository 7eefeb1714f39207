#include "rewrite/mask_argument.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <ranges>

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

  /// True where the term does not fill.
  ValueId attended(const MaskTerm& term) { return term.where ? negation(term.value) : term.value; }

  ValueId both(ValueId a, ValueId b) {
    return made("attended", "aten.logical_and.default", {{"self", a}, {"other", b}},
                contiguous(DType::boolean, broadcast(shape(a), shape(b))));
  }

  ValueId sum(ValueId a, ValueId b) {
    return made("mask", "aten.add.Tensor", {{"self", a}, {"other", b}, {"alpha", int64_t{1}}},
                contiguous(dtype(a), broadcast(shape(a), shape(b))));
  }

  /// What is added, and `masked` where the term fills.
  ValueId filled(ValueId added, const MaskTerm& term, double masked) {
    const ValueId condition = term.value;
    return made("mask", term.where ? "aten.where.ScalarSelf" : "aten.where.ScalarOther",
                term.where
                    ? Arguments{{"condition", condition}, {"self", masked}, {"other", added}}
                    : Arguments{{"condition", condition}, {"self", added}, {"other", masked}},
                contiguous(dtype(added), broadcast(shape(added), shape(condition))));
  }
  /// Numbers of `type` that are 0 where the term does not fill.
  ValueId zeros_beside(const MaskTerm& term, DType type) {
    return as(type, term.where ? term.value : negation(term.value));
  }

  ValueId as(DType type, ValueId v) { return converted(g_, v, type, before_, like_, "mask"); }
  [[nodiscard]] DType dtype(ValueId v) const { return g_.value(v).type.dtype; }

 private:
  using Arguments = std::vector<std::pair<std::string, Argument>>;

  ValueId made(const char* stem, const char* op, Arguments arguments, const TensorType& type) {
    return insert(g_, {stem, op, std::move(arguments), type}, before_, like_);
  }
  ValueId negation(ValueId v) {
    const ValueId out = made("attended", "aten.logical_not.default", {{"self", v}},
                             contiguous(DType::boolean, shape(v)));
    g_.value(out).facts = negated(g_.value(v).facts);
    return out;
  }
  [[nodiscard]] const Shape& shape(ValueId v) const { return g_.value(v).type.shape; }

  Graph& g_;
  const NodeId before_;
  const Node& like_;
};

bool can_be_joined(const Graph& g, const MaskTerm& term, DType type) {
  if (!term.replaces) return true;
  if (g.value(term.value).type.dtype != DType::boolean) return false;
  return !std::isfinite(term.masked) || (term.masked <= absorbs_scores && type != DType::float16);
}

/// The number that is added for scores that are filled: one that `type` holds.
double added_for(double masked, DType type) {
  constexpr double lowest_bfloat16 = -0x1.fep127, lowest_float = -0x1.fffffep127;
  if (!std::isfinite(masked)) return masked;
  return std::max(masked, type == DType::bfloat16 ? lowest_bfloat16 : lowest_float);
}

/// The floating type in which masks are made: theirs where they have one in common, for conversion
/// rounds.
DType type_of_sum(const Graph& g, const std::vector<MaskTerm>& masks, DType type) {
  std::optional<DType> common;
  for (const MaskTerm& term : masks) {
    if (term.replaces) continue;
    const DType one = g.value(term.value).type.dtype;
    if (!is_floating(one) || (common && *common != one)) return type;
    common = one;
  }
  return common.value_or(type);
}

ValueId attended_by_all(Joining& join, const std::vector<MaskTerm>& masks) {
  ValueId out;
  for (const MaskTerm& term : masks) {
    const ValueId of_one = join.attended(term);
    out = out.valid() ? join.both(out, of_one) : of_one;
  }
  return out;
}

}  // namespace

// What the terms make of scores of zero, the innermost first.
ValueId mask_argument(Graph& g, const std::vector<MaskTerm>& masks, DType type, NodeId before,
                      const Node& like) {
  const auto joins = [&](const MaskTerm& term) { return can_be_joined(g, term, type); };
  if (!std::all_of(masks.begin(), masks.end(), joins)) return {};
  Joining join(g, before, like);
  const auto takes_away = [](const MaskTerm& term) {
    return term.replaces && !std::isfinite(term.masked);
  };
  if (std::all_of(masks.begin(), masks.end(), takes_away)) return attended_by_all(join, masks);
  const DType sum = type_of_sum(g, masks, type);
  ValueId out;
  for (const MaskTerm& term : std::ranges::reverse_view(masks)) {
    if (!term.replaces) {
      const ValueId added = join.as(sum, term.value);
      out = out.valid() ? join.sum(out, added) : added;
      continue;
    }
    if (!out.valid()) out = join.zeros_beside(term, sum);
    out = join.filled(out, term, added_for(term.masked, type));
  }
  return join.as(type, out);
}

}  // namespace tessera::rewrite
