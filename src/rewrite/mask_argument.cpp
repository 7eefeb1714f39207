#include "rewrite/mask_argument.h"

#include <algorithm>
#include <cmath>
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

  /// What is added, and `masked` where the condition is `where`.
  ValueId filled(ValueId added, ValueId condition, bool where, double masked) {
    return made("mask", where ? "aten.where.ScalarSelf" : "aten.where.ScalarOther",
                where ? Arguments{{"condition", condition}, {"self", masked}, {"other", added}}
                      : Arguments{{"condition", condition}, {"self", added}, {"other", masked}},
                contiguous(dtype(added), broadcast(shape(added), shape(condition))));
  }
  /// The same of zeros.
  ValueId filled(ValueId condition, bool where, double masked) {
    return made(
        "mask", "aten.where.Scalar",
        {{"condition", condition}, {"self", where ? masked : 0.0}, {"other", where ? 0.0 : masked}},
        contiguous(DType::float32, shape(condition)));
  }

  ValueId as(DType type, ValueId v) { return converted(g_, v, type, before_, like_, "mask"); }
  [[nodiscard]] DType dtype(ValueId v) const { return g_.value(v).type.dtype; }

 private:
  using Arguments = std::vector<std::pair<std::string, Argument>>;

  ValueId made(const char* stem, const char* op, Arguments arguments, const TensorType& type) {
    return insert(g_, {stem, op, std::move(arguments), type}, before_, like_);
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
  for (auto term = masks.rbegin(); term != masks.rend(); ++term) {
    if (!term->replaces) {
      const ValueId added = join.as(sum, term->value);
      out = out.valid() ? join.sum(out, added) : added;
      continue;
    }
    const double masked = added_for(term->masked, type);
    out = out.valid() ? join.filled(out, term->value, term->where, masked)
                      : join.as(sum, join.filled(term->value, term->where, masked));
  }
  return join.as(type, out);
}

}  // namespace tessera::rewrite
