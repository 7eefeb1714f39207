// Folding chains of views into strided layouts.
#include "graph/operand.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "graph/digits.h"
#include "graph/ops.h"

namespace tessera::graph {
namespace {

/// What a view's output is, in terms of its input's operand; nullopt when strides cannot say it.
using Step = std::optional<Operand>;

int64_t clamp_index(int64_t i, int64_t size) {
  return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size);
}

/// Splits and merges of dims: the output's shape is what was traced.
Step by_shape(const Operand& in, const Node&, const TensorType& out, int) {
  return reshaped(in, out.shape);
}

Step same(const Operand& in, const Node&, const TensorType&, int) {
  return in;
}

Step transpose(const Operand& in, const Node& n, const TensorType&, int) {
  Operand o = in;
  const std::size_t rank = in.shape.size();
  if (rank < 2) return o;
  const std::size_t a = n.find("dim0") != nullptr ? wrap_dim(*n.integer("dim0"), rank) : rank - 2;
  const std::size_t b = n.find("dim1") != nullptr ? wrap_dim(*n.integer("dim1"), rank) : rank - 1;
  std::swap(o.shape[a], o.shape[b]);
  std::swap(o.strides[a], o.strides[b]);
  return o;
}

Step permute(const Operand& in, const Node& n, const TensorType&, int) {
  Operand o = in;
  const std::vector<int64_t> dims = n.integers("dims");
  for (std::size_t i = 0; i < dims.size(); ++i) {
    o.shape[i] = in.shape[wrap_dim(dims[i], dims.size())];
    o.strides[i] = in.strides[wrap_dim(dims[i], dims.size())];
  }
  return o;
}

Step expand(const Operand& in, const Node&, const TensorType& out, int) {
  Operand o = in;
  const std::size_t extra = out.shape.size() - in.shape.size();
  o.shape = out.shape;
  o.strides.assign(out.shape.size(), 0);
  for (std::size_t i = 0; i < in.shape.size(); ++i) {
    o.strides[i + extra] = in.shape[i] == 1 && out.shape[i + extra] != 1 ? 0 : in.strides[i];
  }
  return o;
}

Step select(const Operand& in, const Node& n, const TensorType&, int) {
  Operand o = in;
  const std::size_t d = wrap_dim(n.integer("dim").value_or(0), in.shape.size());
  const int64_t index = n.integer("index").value_or(0);
  o.offset += (index < 0 ? index + in.shape[d] : index) * in.strides[d];
  o.shape.erase(o.shape.begin() + static_cast<std::ptrdiff_t>(d));
  o.strides.erase(o.strides.begin() + static_cast<std::ptrdiff_t>(d));
  return o;
}

/// slice and narrow: the traced shape says how many elements remain.
Step slice(const Operand& in, const Node& n, const TensorType& out, int) {
  Operand o = in;
  const std::size_t d = wrap_dim(n.integer("dim").value_or(0), in.shape.size());
  const int64_t start = clamp_index(n.integer("start").value_or(0), in.shape[d]);
  o.offset += start * in.strides[d];
  o.shape[d] = out.shape[d];
  o.strides[d] *= n.integer("step").value_or(1);
  return o;
}

/// Output i of a split starts where the outputs before it end.
Step split_part(const Operand& in, const Node& n, const TensorType& out, int64_t start) {
  Operand o = in;
  const std::size_t d = wrap_dim(n.integer("dim").value_or(0), in.shape.size());
  o.offset += start * in.strides[d];
  o.shape[d] = out.shape[d];
  return o;
}

Step unbind(const Operand& in, const Node& n, const TensorType&, int output) {
  Operand o = in;
  const std::size_t d = wrap_dim(n.integer("dim").value_or(0), in.shape.size());
  o.offset += output * in.strides[d];
  o.shape.erase(o.shape.begin() + static_cast<std::ptrdiff_t>(d));
  o.strides.erase(o.strides.begin() + static_cast<std::ptrdiff_t>(d));
  return o;
}

using Fold = Step (*)(const Operand&, const Node&, const TensorType&, int output);

const std::map<std::string_view, Fold> folds = {
    {"aten.view", by_shape},       {"aten._unsafe_view", by_shape}, {"aten.reshape", by_shape},
    {"aten.flatten", by_shape},    {"aten.unflatten", by_shape},    {"aten.squeeze", by_shape},
    {"aten.unsqueeze", by_shape},  {"aten.view_as", by_shape},      {"aten.transpose", transpose},
    {"aten.swapaxes", transpose},  {"aten.t", transpose},           {"aten.mT", transpose},
    {"aten.permute", permute},     {"aten.expand", expand},         {"aten.expand_as", expand},
    {"aten.broadcast_to", expand}, {"aten.select", select},         {"aten.slice", slice},
    {"aten.narrow", slice},        {"aten.unbind", unbind},         {"aten.alias", same},
    {"aten.detach", same},         {"aten.lift_fresh_copy", same},
};

bool is_split(std::string_view op) {
  return op == "aten.split" || op == "aten.split_with_sizes" || op == "aten.chunk" ||
         op == "aten.tensor_split";
}

/// contiguous, clone and conversions to the same type and device change no value; they are folded
/// when the reader may read the source in place of the copy.
bool is_plain_copy(const Graph& g, const Node& n, std::string_view op) {
  if (op != "aten.contiguous" && op != "aten.clone" && op != "aten._to_copy" && op != "aten.to" &&
      op != "aten.dropout") {
    return false;
  }
  if (op == "aten.dropout" && kind_of(n) != OpKind::view) return false;
  const ValueId in = n.tensor(op == "aten.dropout" ? "input" : "self");
  return in.valid() && g.value(in).type.dtype == g.value(n.outputs.front()).type.dtype &&
         !changes_device(g, n);
}

ValueId source_of(const Node& n) {
  const ValueId self = n.tensor("self");
  return self.valid() ? self : n.tensor("input");
}

Operand whole(const Graph& g, ValueId v) {
  const TensorType& t = g.value(v).type;
  return {.base = v, .shape = t.shape, .strides = t.strides, .offset = 0, .views = {}};
}

/// The fold of one node's output over its source.
Step fold(const Graph& g, const Node& n, int output, const Operand& in) {
  const std::string_view op = base_name(n.op);
  const TensorType& out = g.value(n.outputs[static_cast<std::size_t>(output)]).type;
  if (is_split(op)) {
    int64_t start = 0;
    const std::size_t d = wrap_dim(n.integer("dim").value_or(0), in.shape.size());
    for (int i = 0; i < output; ++i)
      start += g.value(n.outputs[static_cast<std::size_t>(i)]).type.shape[d];
    return split_part(in, n, out, start);
  }
  const auto it = folds.find(op);
  if (it != folds.end()) return it->second(in, n, out, output);
  return in;  // a plain copy
}

bool foldable(const Graph& g, const Node& n) {
  const std::string_view op = base_name(n.op);
  return source_of(n).valid() && (folds.contains(op) || is_split(op) || is_plain_copy(g, n, op));
}

}  // namespace

int64_t Operand::numel() const {
  return layout::numel(shape);
}

std::optional<Operand> view_step(const Graph& g, NodeId node, int output) {
  const Node& n = g.node(node);
  return foldable(g, n) ? fold(g, n, output, whole(g, source_of(n))) : std::nullopt;
}

bool is_view(const Graph& g, NodeId node) {
  return view_step(g, node, 0).has_value();
}

namespace {

using Chain = std::vector<std::pair<NodeId, int>>;  // from the base to the reader

/// A view that merges dims which lie apart may be taken apart again further up: then strides can
/// say what the reader sees after all, and no copy is needed. From chain[at], which strides cannot
/// say, to the first value that they can; `at` is then behind it. Splits, merges and permutations
/// only.
std::optional<Operand> through_digits(const Graph& g, const Chain& chain, std::size_t& at,
                                      const Operand& in) {
  if (in.numel() == 0) return std::nullopt;
  DigitLayout layout = DigitLayout::of(in);
  Operand o = in;
  for (std::size_t i = at; i < chain.size(); ++i) {
    const Node& n = g.node(chain[i].first);
    const auto it = folds.find(base_name(n.op));
    const Fold how = it != folds.end() ? it->second : nullptr;
    if (how == by_shape) {
      auto next = layout.reshaped(g.value(n.outputs.front()).type.shape);
      if (!next) return std::nullopt;
      layout = std::move(*next);
    } else if (how == transpose || how == permute) {
      // The places of the dims, permuted as the dims are.
      Operand places{.base = in.base, .shape = layout.shape(), .strides = {}, .views = {}};
      for (std::size_t d = 0; d < layout.dims.size(); ++d)
        places.strides.push_back(static_cast<int64_t>(d));
      const Step moved = how(places, n, g.value(n.outputs.front()).type, 0);
      DigitLayout next;
      for (const int64_t d : moved->strides)
        next.dims.push_back(layout.dims[static_cast<std::size_t>(d)]);
      layout = std::move(next);
    } else if (how != same && !is_plain_copy(g, n, base_name(n.op))) {
      return std::nullopt;
    }
    o.views.insert(o.views.begin(), chain[i].first);
    if (auto strides = layout.strides()) {
      o.shape = layout.shape();
      o.strides = std::move(*strides);
      at = i + 1;
      return o;
    }
  }
  return std::nullopt;
}

}  // namespace

Operand resolve(const Graph& g, ValueId value) {
  // Down to the first value that no view makes, then up again, folding.
  Chain chain;
  ValueId base = value;
  while (g.value(base).producer.valid() && foldable(g, g.node(g.value(base).producer))) {
    chain.emplace_back(g.value(base).producer, g.value(base).output_index);
    base = source_of(g.node(g.value(base).producer));
  }
  std::reverse(chain.begin(), chain.end());
  Operand o = whole(g, base);
  for (std::size_t at = 0; at < chain.size();) {
    const auto [node, output] = chain[at];
    const Node& n = g.node(node);
    if (auto next = fold(g, n, output, o)) {
      o = std::move(*next);
      o.views.insert(o.views.begin(), node);
      ++at;
    } else if (auto further = through_digits(g, chain, at, o)) {
      o = std::move(*further);
    } else {
      o = whole(g, n.outputs[static_cast<std::size_t>(output)]);
      ++at;
    }
  }
  return o;
}

std::optional<Operand> reshaped(const Operand& in, const std::vector<int64_t>& shape) {
  Operand o = in;
  o.shape = shape;
  if (o.numel() != in.numel()) return std::nullopt;
  o.strides.assign(shape.size(), 0);
  // Dims of 1 say nothing; both sides are walked from the innermost dim in groups of equal product.
  std::vector<std::pair<int64_t, int64_t>> dims;  // size, stride
  for (std::size_t i = 0; i < in.shape.size(); ++i) {
    if (in.shape[i] != 1) dims.emplace_back(in.shape[i], in.strides[i]);
  }
  // Merge what is laid out as one.
  std::vector<std::pair<int64_t, int64_t>> merged;
  for (const auto& [size, stride] : dims) {
    if (!merged.empty() && merged.back().second == size * stride) {
      merged.back() = {merged.back().first * size, stride};
    } else {
      merged.emplace_back(size, stride);
    }
  }
  if (in.numel() == 0) {
    o.strides = contiguous_strides(shape);
    return o;
  }
  std::size_t left = merged.size();
  int64_t size = 1;
  int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) {
      o.strides[i] = 0;
      continue;
    }
    if (size == 1) {
      if (left == 0) return std::nullopt;
      std::tie(size, stride) = merged[--left];
    }
    if (size % shape[i] != 0) return std::nullopt;
    o.strides[i] = stride;
    stride *= shape[i];
    size /= shape[i];
  }
  return o;
}

std::string to_string(const Graph& g, const Operand& o) {
  return fmt::format("%{}[{}]:({})+{}", g.value(o.base).name, fmt::join(o.shape, ","),
                     fmt::join(o.strides, ","), o.offset);
}

}  // namespace tessera::graph
