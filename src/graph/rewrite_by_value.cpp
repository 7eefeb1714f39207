// Activations, softmax and normalizations in any spelling.
//
// A region between one value x and one node is evaluated on sample rows and compared with the
// functions that PyTorch has an op for. Two different compositions of elementary functions do not
// agree on random samples to 9 digits, so this sees through every order of association, placement
// of casts and choice of reductions, and takes nothing that means something else (a standard
// deviation with Bessel's correction, eps outside the root).
//
// Rows may lie along any one dim. Softmax has a dim; norms over an inner one are written as a norm
// of the permuted tensor, permuted back and laid out as before.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "graph/ops.h"
#include "graph/pointwise.h"
#include "graph/rewrite.h"

namespace tessera::graph {
namespace {

constexpr std::size_t largest_region = 24;
constexpr int64_t largest_row = 65536;

using Row = std::vector<double>;  // of C elements, or of 1: a statistic of the row

struct Region {
  ValueId x;
  NodeId last;
  std::vector<NodeId> nodes;     // in execution order
  std::vector<ValueId> weights;  // [C] values from outside
  bool reduces = false;
  std::size_t dim = 0;  // that rows lie along; the last one until a reduction says another
};

bool is_reduction(const Node& n) {
  static const std::set<std::string_view> ops = {
      "aten.mean",      "aten.sum",     "aten.amax",     "aten.amin",
      "aten.max",       "aten.var",     "aten.std",      "aten.linalg_vector_norm",
      "aten.logsumexp", "aten.softmax", "aten._softmax", "aten.log_softmax"};
  return ops.contains(base_op(n)) && n.find("dim") != nullptr;
}

bool widens(const Node& n) {
  return is_op(n, "aten.unsqueeze") || is_op(n, "aten.expand");
}

bool allowed(const Graph& g, const Node& n) {
  if (n.prepack || tensor_arguments(n).empty()) return false;
  return is_reduction(n) || widens(n) || keeps_values(g, n) ||
         (kind_of(n) == OpKind::pointwise && n.outputs.size() == 1);
}

/// The one dim that is reduced; nullopt when there are several.
std::optional<std::size_t> reduced_dim(const Graph& g, const Node& n) {
  const auto& shape = g.value(n.tensor("self")).type.shape;
  const std::vector<int64_t> dims = n.integers("dim");
  if (dims.size() != 1 || shape.empty()) return std::nullopt;
  return wrap_dim(dims[0], shape.size());
}

/// How a value's shape relates to x's: a row of it, a statistic kept as [.., 1, ..] or dropped as
/// [...], a weight [C] broadcast along the rows' dim, or a number.
enum class Form { row, kept, dropped, weight, number, none };

Form form_of(const std::vector<int64_t>& shape, const std::vector<int64_t>& x, std::size_t dim) {
  if (shape == x) return Form::row;
  int64_t numel = 1;
  for (const int64_t s : shape) numel *= s;
  if (numel == 1) return Form::number;
  if (x.empty()) return Form::none;
  std::vector<int64_t> kept = x;
  kept[dim] = 1;
  if (shape == kept) return Form::kept;
  kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(dim));
  if (shape == kept) return Form::dropped;
  const std::size_t after = x.size() - dim;  // dims from the rows' dim on
  const bool along = shape.size() >= after && shape[shape.size() - after] == x[dim];
  return numel == x[dim] && along ? Form::weight : Form::none;
}

Form form_of(const Graph& g, ValueId v, const Region& r) {
  return form_of(g.value(v).type.shape, g.value(r.x).type.shape, r.dim);
}

/// Collects the region above `last` that ends at x; false when it depends on anything else than
/// weights and numbers.
bool collect(const Graph& g, ValueId v, Region& r, std::set<NodeId>& seen) {
  if (v == r.x) return true;
  const NodeId id = g.value(v).producer;
  const Form form = form_of(g, v, r);
  const bool weight = form == Form::weight && is_weight(g, v);
  if (weight || !id.valid() || !allowed(g, g.node(id))) {
    if (form == Form::number) {
      return element(g, v, std::vector<int64_t>(g.value(v).type.shape.size(), 0)).has_value();
    }
    if (!weight) return false;
    if (std::find(r.weights.begin(), r.weights.end(), v) == r.weights.end()) r.weights.push_back(v);
    return r.weights.size() <= 2;
  }
  if (!seen.insert(id).second) return true;
  if (seen.size() > largest_region) return false;
  const Node& n = g.node(id);
  if (is_reduction(n)) {
    if (reduced_dim(g, n) != r.dim) return false;
    r.reduces = true;
  }
  if (form == Form::none) return false;
  const std::vector<ValueId> arguments = tensor_arguments(n);
  if (!std::all_of(arguments.begin(), arguments.end(),
                   [&](ValueId a) { return collect(g, a, r, seen); }))
    return false;
  r.nodes.push_back(id);
  return true;
}

/// A dropped statistic may only be widened again by the rows' dim: anything else broadcasts along
/// another dim.
bool shapes_hold(const Graph& g, const Region& r) {
  const auto& x = g.value(r.x).type.shape;
  for (const NodeId id : r.nodes) {
    const Node& n = g.node(id);
    for (const ValueId a : tensor_arguments(n)) {
      const bool dropped = form_of(g, a, r) == Form::dropped && a != r.x;
      if (dropped &&
          (!is_op(n, "aten.unsqueeze") || wrap_dim(*n.integer("dim"), x.size()) != r.dim))
        return false;
    }
    if (id != r.last && !used_only_by(g, n.outputs.front(), r.nodes)) return false;
    for (std::size_t i = 1; i < n.outputs.size(); ++i) {
      if (g.is_output(n.outputs[i]) || !g.uses(n.outputs[i]).empty()) return false;
    }
  }
  return true;
}

double at(const Row& row, std::size_t i) {
  return row.size() == 1 ? row[0] : row[i];
}

Row reduce(const Node& n, const Row& in) {
  const std::string_view op = base_op(n);
  const auto count = static_cast<double>(in.size());
  const double sum = std::accumulate(in.begin(), in.end(), 0.0);
  const double most = *std::max_element(in.begin(), in.end());
  if (op == "aten.sum") return {sum};
  if (op == "aten.mean") return {sum / count};
  if (op == "aten.amax" || op == "aten.max") return {most};
  if (op == "aten.amin") return {*std::min_element(in.begin(), in.end())};
  double squares = 0;
  double exponentials = 0;
  const bool centered = op == "aten.var" || op == "aten.std";
  for (const double v : in) {
    const double d = centered ? v - sum / count : v;
    squares += d * d;
    exponentials += std::exp(v - most);
  }
  if (centered) {
    double correction = n.number("correction").value_or(1);
    if (const auto unbiased = n.flag("unbiased")) correction = *unbiased ? 1 : 0;
    const double variance = squares / (count - correction);
    return {op == "aten.var" ? variance : std::sqrt(variance)};
  }
  if (op == "aten.linalg_vector_norm")
    return {n.number("ord").value_or(2) == 2 ? std::sqrt(squares) : std::nan("")};
  if (op == "aten.logsumexp") return {most + std::log(exponentials)};
  Row out;
  for (const double v : in) {
    out.push_back(op == "aten.log_softmax" ? v - most - std::log(exponentials)
                                           : std::exp(v - most) / exponentials);
  }
  return out;
}

std::optional<Row> evaluate_pointwise(const Graph& g, const Node& n,
                                      const std::map<ValueId, Row>& rows) {
  PointwiseDag dag;
  std::vector<std::pair<ValueId, int>> operands;
  std::vector<const Row*> inputs;
  std::size_t length = 1;
  for (const ValueId v : tensor_arguments(n)) {
    operands.emplace_back(v, dag.add_operand(static_cast<int>(inputs.size())));
    inputs.push_back(&rows.at(v));
    length = std::max(length, inputs.back()->size());
  }
  const auto result = append_pointwise(dag, g, n, operands);
  if (!result) return std::nullopt;
  dag.results = {*result};
  Row out(length);
  std::vector<double> point(inputs.size());
  for (std::size_t i = 0; i < length; ++i) {
    for (std::size_t k = 0; k < inputs.size(); ++k) point[k] = at(*inputs[k], i);
    out[i] = dag.eval(point)[0];
  }
  return out;
}

/// The region's result for this x and these weights.
std::optional<Row> evaluate(const Graph& g, const Region& r, const Row& x,
                            const std::vector<Row>& weights) {
  std::map<ValueId, Row> rows;
  rows[r.x] = x;
  for (std::size_t i = 0; i < weights.size(); ++i) rows[r.weights[i]] = weights[i];
  for (const NodeId id : r.nodes) {
    const Node& n = g.node(id);
    for (const ValueId v : tensor_arguments(n)) {
      if (rows.contains(v)) continue;
      const auto number = element(g, v, std::vector<int64_t>(g.value(v).type.shape.size(), 0));
      if (!number) return std::nullopt;
      rows[v] = {*number};
    }
    const ValueId out = n.outputs.front();
    if (is_reduction(n)) {
      rows[out] = reduce(n, rows.at(n.tensor("self")));
    } else if (widens(n) || keeps_values(g, n)) {
      rows[out] = rows.at(tensor_arguments(n).front());
    } else {
      auto row = evaluate_pointwise(g, n, rows);
      if (!row) return std::nullopt;
      rows[out] = std::move(*row);
    }
  }
  return rows.at(g.node(r.last).outputs.front());
}

bool agree(const Row& got, const std::function<double(std::size_t)>& wanted, std::size_t length,
           double tolerance) {
  for (std::size_t i = 0; i < length; ++i) {
    const double a = at(got, i);
    const double b = wanted(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (!(std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b)))) return false;
  }
  return true;
}

Row random_row(std::size_t length, double scale, double shift, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  Row row(length);
  for (double& v : row) v = scale * normal(generator) + shift;
  return row;
}

/// Every number written in the region: one of them is eps.
std::set<double> numbers(const Graph& g, const Region& r) {
  std::set<double> out = {0};
  for (const NodeId id : r.nodes) {
    for (const auto& [name, argument] : g.node(id).arguments) {
      const auto v = scalar_argument(g, g.node(id), name);
      if (v && *v >= 0 && *v < 1) out.insert(*v);
    }
  }
  return out;
}

struct Found {
  std::string what;
  NewNode node;
  bool one_plus_weight = false;
};

struct Activation {
  std::string_view function;
  std::string_view what;
  std::string_view op;
  std::vector<std::pair<std::string, Argument>> more;
};

std::optional<Found> find_activation(const Graph& g, const Region& r) {
  static const std::vector<Activation> known = {
      {"gelu_tanh", "tanh-GELU written out", "gelu", {{"approximate", std::string("tanh")}}},
      {"gelu_erf", "erf-GELU written out", "gelu", {{"approximate", std::string("none")}}},
      {"silu", "SiLU written out", "silu", {}},
      {"sigmoid", "sigmoid written out", "sigmoid", {}},
      {"mish", "Mish written out", "mish", {}},
      {"hardswish", "Hardswish written out", "hardswish", {}},
      {"hardsigmoid", "Hardsigmoid written out", "hardsigmoid", {}},
      {"relu", "ReLU written out", "relu", {}},
      {"log_sigmoid", "log-sigmoid written out", "log_sigmoid", {}},
      {"selu", "SELU written out", "selu", {}},
  };
  Row x = random_row(48, 2.5, 0, 7);
  for (const double v : {0.0, 1e3, -1e3, 30.0, -30.0, 6.5, -6.5}) x.push_back(v);
  const auto got = evaluate(g, r, x, {});
  if (!got) return std::nullopt;
  for (const Activation& a : known) {
    const PointwiseFunction& f = *find_pointwise(a.function);
    // Constants such as sqrt(2 / pi) are written with eight digits or more.
    if (!agree(*got, [&](std::size_t i) { return f.eval(std::span(&x[i], 1)); }, x.size(), 2e-8))
      continue;
    Found found{std::string(a.what),
                {std::string(a.op), "aten." + std::string(a.op) + ".default", {{"self", r.x}}, {}}};
    for (const auto& argument : a.more) found.node.arguments.push_back(argument);
    return found;
  }
  return std::nullopt;
}

struct Sample {
  Row x;
  std::vector<Row> weights;
  Row result;
  double mean = 0, mean_square = 0, variance = 0, most = 0, exponentials = 0;
};

std::optional<Sample> sample(const Graph& g, const Region& r, std::size_t length, double scale,
                             double shift, unsigned seed) {
  Sample s;
  s.x = random_row(length, scale, shift, seed);
  for (std::size_t k = 0; k < r.weights.size(); ++k)
    s.weights.push_back(random_row(length, 1, 0.5, seed + 10 + static_cast<unsigned>(k)));
  auto result = evaluate(g, r, s.x, s.weights);
  if (!result) return std::nullopt;
  s.result = std::move(*result);
  const auto count = static_cast<double>(length);
  s.most = *std::max_element(s.x.begin(), s.x.end());
  for (const double v : s.x)
    s.mean += v / count, s.mean_square += v * v / count, s.exponentials += std::exp(v - s.most);
  for (const double v : s.x) s.variance += (v - s.mean) * (v - s.mean) / count;
  return s;
}

using Formula = std::function<double(const Sample&, std::size_t)>;

bool fits(const std::vector<Sample>& samples, const Formula& f) {
  return std::all_of(samples.begin(), samples.end(), [&](const Sample& s) {
    return agree(s.result, [&](std::size_t i) { return f(s, i); }, s.x.size(), 1e-9);
  });
}

std::optional<Found> find_softmax(const Region& r, const std::vector<Sample>& samples,
                                  int64_t dim) {
  if (!r.weights.empty()) return std::nullopt;
  const std::vector<std::pair<std::string, Argument>> arguments = {
      {"self", r.x}, {"dim", dim}, {"dtype", NoValue{}}};
  if (fits(samples, [](const Sample& s, std::size_t i) {
        return std::exp(s.x[i] - s.most) / s.exponentials;
      })) {
    return Found{"softmax written out", {"softmax", "aten.softmax.int", arguments, {}}};
  }
  if (fits(samples, [](const Sample& s, std::size_t i) {
        return s.x[i] - s.most - std::log(s.exponentials);
      })) {
    return Found{"log-softmax written out", {"log_softmax", "aten.log_softmax.int", arguments, {}}};
  }
  return std::nullopt;
}

Argument weight_argument(const Region& r, int index) {
  return index < 0 ? Argument(NoValue{}) : Argument(r.weights[static_cast<std::size_t>(index)]);
}

std::optional<Found> find_rms_norm(const Region& r, const std::vector<Sample>& samples, double eps,
                                   int64_t columns) {
  if (r.weights.size() > 1) return std::nullopt;
  const auto y = [eps](const Sample& s, std::size_t i) {
    return s.x[i] / std::sqrt(s.mean_square + eps);
  };
  const int w = r.weights.empty() ? -1 : 0;
  for (const double shift : {0.0, 1.0}) {
    if (w < 0 && shift != 0) break;
    const bool match = fits(samples, [&](const Sample& s, std::size_t i) {
      return w < 0 ? y(s, i) : y(s, i) * (s.weights[0][i] + shift);
    });
    if (!match) continue;
    return Found{"RMSNorm written out",
                 {"rms_norm",
                  "aten.rms_norm.default",
                  {{"input", r.x},
                   {"normalized_shape", ArgumentList{columns}},
                   {"weight", weight_argument(r, w)},
                   {"eps", eps}},
                  {}},
                 shift != 0};
  }
  return std::nullopt;
}

std::optional<Found> find_layer_norm(const Region& r, const std::vector<Sample>& samples,
                                     double eps, int64_t columns) {
  const auto y = [eps](const Sample& s, std::size_t i) {
    return (s.x[i] - s.mean) / std::sqrt(s.variance + eps);
  };
  std::vector<std::pair<int, int>> roles = {{-1, -1}};
  if (r.weights.size() == 1) roles = {{0, -1}};
  if (r.weights.size() == 2) roles = {{0, 1}, {1, 0}};
  for (const auto& [w, b] : roles) {
    const bool match = fits(samples, [&, w = w, b = b](const Sample& s, std::size_t i) {
      const double scaled = w < 0 ? y(s, i) : y(s, i) * s.weights[static_cast<std::size_t>(w)][i];
      return b < 0 ? scaled : scaled + s.weights[static_cast<std::size_t>(b)][i];
    });
    if (!match) continue;
    return Found{"LayerNorm written out",
                 {"layer_norm",
                  "aten.layer_norm.default",
                  {{"input", r.x},
                   {"normalized_shape", ArgumentList{columns}},
                   {"weight", weight_argument(r, w)},
                   {"bias", weight_argument(r, b)},
                   {"eps", eps},
                   {"cudnn_enable", false}},
                  {}}};
  }
  return std::nullopt;
}

std::optional<Found> find_row_function(const Graph& g, const Region& r) {
  const auto& shape = g.value(r.x).type.shape;
  const int64_t columns = shape[r.dim];
  const bool last = r.dim + 1 == shape.size();
  if (columns < 2 || columns > largest_row) return std::nullopt;
  std::vector<Sample> samples;
  for (const auto& [scale, shift] : {std::pair{1.5, 0.3}, std::pair{0.02, 0.01}}) {
    auto s = sample(g, r, static_cast<std::size_t>(columns), scale, shift, 11);
    if (!s || s->result.size() != s->x.size()) return std::nullopt;
    samples.push_back(std::move(*s));
  }
  if (auto found = find_softmax(r, samples, last ? -1 : static_cast<int64_t>(r.dim))) return found;
  for (const double eps : numbers(g, r)) {
    if (auto found = find_rms_norm(r, samples, eps, columns)) return found;
    if (auto found = find_layer_norm(r, samples, eps, columns)) return found;
  }
  return std::nullopt;
}

/// Every value above the node that could be x, nearest last: larger regions are tried first.
std::vector<ValueId> candidates(const Graph& g, NodeId last) {
  const TensorType& type = g.value(g.node(last).outputs.front()).type;
  std::vector<ValueId> out;
  std::set<NodeId> seen = {last};
  std::vector<NodeId> queue = {last};
  for (std::size_t i = 0; i < queue.size() && queue.size() < largest_region; ++i) {
    for (const ValueId v : tensor_arguments(g.node(queue[i]))) {
      const TensorType& t = g.value(v).type;
      if (t.shape == type.shape && t.dtype == type.dtype &&
          std::find(out.begin(), out.end(), v) == out.end())
        out.push_back(v);
      const NodeId p = g.value(v).producer;
      if (p.valid() && allowed(g, g.node(p)) && seen.insert(p).second) queue.push_back(p);
    }
  }
  std::reverse(out.begin(), out.end());
  return out;
}

/// The weight [C] plus one, computed once.
ValueId one_plus(Graph& g, ValueId w, const Node& like) {
  return insert(g,
                {"one_plus",
                 "aten.add.Tensor",
                 {{"self", w}, {"other", int64_t{1}}, {"alpha", int64_t{1}}},
                 g.value(w).type},
                g.order.front(), like, true);
}

/// A norm over an inner dim: of x with that dim moved to the end, moved back, in the layout of
/// before.
ValueId insert_permuted(Graph& g, const Region& r, Found& found, const Node& like) {
  const TensorType type = found.node.type;
  const std::size_t rank = type.shape.size();
  std::vector<int64_t> there;
  for (std::size_t d = 0; d < rank; ++d)
    if (d != r.dim) there.push_back(static_cast<int64_t>(d));
  there.push_back(static_cast<int64_t>(r.dim));
  std::vector<int64_t> back(rank);
  for (std::size_t i = 0; i < rank; ++i)
    back[static_cast<std::size_t>(there[i])] = static_cast<int64_t>(i);
  const ValueId x = permuted(g, r.x, there, r.last, like);
  for (auto& [name, argument] : found.node.arguments)
    if (name == "input") argument = x;
  found.node.type.shape = g.value(x).type.shape;
  found.node.type.strides = contiguous_strides(found.node.type.shape);
  const ValueId norm = insert(g, found.node, r.last, like);
  const ValueId moved = permuted(g, norm, back, r.last, like);
  // Through one dim, so that the elements really move: whatever follows reads the layout of before,
  // and the kernel writes it.
  return regrouped(g, regrouped(g, moved, {type.numel()}, r.last, like), type.shape, r.last, like);
}

void apply(Graph& g, RewriteLog& log, const Region& r, Found found) {
  const Node like = g.node(r.last);
  const TensorType type = g.value(like.outputs.front()).type;
  found.node.type = type;
  const bool norm =
      found.node.op == "aten.rms_norm.default" || found.node.op == "aten.layer_norm.default";
  for (auto& [name, argument] : found.node.arguments) {
    const auto* v = norm ? std::get_if<ValueId>(&argument) : nullptr;
    if (v == nullptr || (name != "weight" && name != "bias")) continue;
    const ValueId flat = regrouped(g, *v, {type.shape[r.dim]}, r.last, like);
    argument = found.one_plus_weight && name == "weight" ? one_plus(g, flat, like) : flat;
  }
  const bool inner = norm && r.dim + 1 != type.shape.size();
  const ValueId out =
      inner ? insert_permuted(g, r, found, like) : insert(g, std::move(found.node), r.last, like);
  substitute(g, log, std::move(found.what), r.last, out, r.nodes);
}

/// The dims that reductions near above the node reduce, the last dim first.
std::vector<std::size_t> dims_above(const Graph& g, NodeId last) {
  const std::size_t rank = g.value(g.node(last).outputs.front()).type.shape.size();
  std::vector<std::size_t> dims = {rank == 0 ? 0 : rank - 1};
  std::set<NodeId> seen = {last};
  std::vector<NodeId> queue = {last};
  for (std::size_t i = 0; i < queue.size() && queue.size() < largest_region; ++i) {
    const Node& n = g.node(queue[i]);
    if (is_reduction(n) && g.value(n.tensor("self")).type.shape.size() == rank) {
      const auto dim = reduced_dim(g, n);
      if (dim && std::find(dims.begin(), dims.end(), *dim) == dims.end()) dims.push_back(*dim);
    }
    for (const ValueId v : tensor_arguments(n)) {
      const NodeId p = g.value(v).producer;
      if (p.valid() && allowed(g, g.node(p)) && seen.insert(p).second) queue.push_back(p);
    }
  }
  return dims;
}

/// Fills the region between its x and its last node; false when it is none.
bool is_region(const Graph& g, Region& r) {
  std::set<NodeId> seen;
  if (!collect(g, g.node(r.last).outputs.front(), r, seen) || r.nodes.size() < 2 ||
      !shapes_hold(g, r))
    return false;
  if (!r.reduces && !r.weights.empty()) return false;
  return !std::all_of(r.nodes.begin(), r.nodes.end(),
                      [&](NodeId id) { return keeps_values(g, g.node(id)); });
}

bool rewrite_above(Graph& g, RewriteLog& log, NodeId last) {
  const Node& n = g.node(last);
  if (n.outputs.size() != 1 || !allowed(g, n) ||
      !is_floating(g.value(n.outputs.front()).type.dtype))
    return false;
  for (const ValueId x : candidates(g, last)) {
    for (const std::size_t dim : dims_above(g, last)) {
      Region r{.x = x, .last = last, .nodes = {}, .weights = {}, .dim = dim};
      if (!is_region(g, r)) continue;
      auto found = r.reduces ? find_row_function(g, r) : find_activation(g, r);
      if (!found) continue;
      apply(g, log, r, std::move(*found));
      return true;
    }
  }
  return false;
}

}  // namespace

bool rewrite_by_value(Graph& g, RewriteLog& log) {
  bool changed = false;
  for (std::size_t i = g.order.size(); i-- > 0;) {
    if (i >= g.order.size()) continue;
    changed |= rewrite_above(g, log, g.order[i]);
  }
  return changed;
}

}  // namespace tessera::graph
