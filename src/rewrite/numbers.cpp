// Tensors of one number that is known are numbers: `x / torch.sqrt(torch.tensor(64.0))`.
//
// Modules make such tensors on the host, where no kernel on a GPU can read them.
#include <algorithm>
#include <cmath>

#include "graph/ops.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

/// Whether a number in place of the other operand leaves the result's type as it is: `self` has
/// dims, and decides it.
bool decides_type(const Graph& g, ValueId self, const Node& n) {
  const TensorType& from = g.value(self).type;
  const TensorType& to = g.value(n.outputs.front()).type;
  return !from.shape.empty() && is_floating(from.dtype) && from.dtype == to.dtype;
}

/// Whether forward makes it of numbers in its own text: what nobody can change. A buffer may be
/// written between the replays of a CUDA graph, where no guard runs, and is read where it lies.
bool of_own_text(const Graph& g, ValueId v) {
  const Value& value = g.value(v);
  const Node* n = producer(g, v);
  if (n == nullptr) return value.literal;
  const std::vector<ValueId> arguments = tensor_arguments(*n);
  return std::all_of(arguments.begin(), arguments.end(),
                     [&](ValueId argument) { return of_own_text(g, argument); });
}

struct Found {
  ValueId tensor;
  double number = 0;
};

/// The operand that stays, and the number that the other one holds.
std::optional<Found> number_of(const Graph& g, const Node& n) {
  const bool commutes = is_op(n, "aten.mul") || (is_op(n, "aten.add") && n.number("alpha") == 1.0);
  const bool takes =
      commutes || is_op(n, "aten.add") || is_op(n, "aten.sub") || is_op(n, "aten.div");
  if (!takes || n.outputs.size() != 1) return std::nullopt;
  const ValueId self = n.tensor("self");
  const ValueId other = n.tensor("other");
  if (!self.valid() || !other.valid()) return std::nullopt;
  const auto of = [&](ValueId kept, ValueId v, const char* name) -> std::optional<Found> {
    if (!g.value(v).type.shape.empty() || !decides_type(g, kept, n) || !of_own_text(g, v))
      return std::nullopt;
    const auto number = scalar_argument(g, n, name);
    if (!number || !std::isfinite(*number)) return std::nullopt;
    return Found{kept, *number};
  };
  if (auto found = of(self, other, "other")) return found;
  return commutes ? of(other, self, "self") : std::nullopt;
}

}  // namespace

bool rewrite_numbers(Graph& g, RewriteLog&) {
  bool changed = false;
  for (const NodeId id : g.order) {
    Node& n = g.node(id);
    const auto found = number_of(g, n);
    if (!found) continue;
    for (auto& [name, argument] : n.arguments) {
      if (name == "self") argument = found->tensor;
      if (name == "other") argument = found->number;
    }
    changed = true;
  }
  return changed;
}

}  // namespace tessera::rewrite
