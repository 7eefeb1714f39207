#include "rewrite/row_region.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <set>

#include "graph/ops.h"
#include "graph/pointwise_import.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

constexpr std::size_t largest_region = 24;

/// Not norms: whether squares overflow in them depends on the dim and the device.
bool is_reduction(const Node& n) {
  static const std::set<std::string_view> ops = {
      "aten.mean", "aten.sum",       "aten.amax",    "aten.amin",     "aten.max",        "aten.var",
      "aten.std",  "aten.logsumexp", "aten.softmax", "aten._softmax", "aten.log_softmax"};
  return ops.contains(base_op(n)) && n.find("dim") != nullptr;
}

bool widens(const Node& n) {
  return is_op(n, "aten.unsqueeze") || is_op(n, "aten.expand");
}

}  // namespace

bool may_be_inside(const Graph& g, const Node& n) {
  if (n.prepack || tensor_arguments(n).empty()) return false;
  return is_reduction(n) || widens(n) || keeps_values(g, n) ||
         (kind_of(n) == OpKind::pointwise && n.outputs.size() == 1);
}

double at(const Row& row, std::size_t i) {
  return row.size() == 1 ? row[0] : row[i];
}

namespace {

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

Form form_of(const Graph& g, ValueId v, const RowRegion& r) {
  return form_of(g.value(v).type.shape, g.value(r.x).type.shape, r.dim);
}

/// Collects the region above `last` that ends at x; false when it depends on anything else than
/// weights and numbers.
bool collect(const Graph& g, ValueId v, RowRegion& r, std::set<NodeId>& seen) {
  if (v == r.x) return true;
  const NodeId id = g.value(v).producer;
  const Form form = form_of(g, v, r);
  const bool weight = form == Form::weight && is_weight(g, v);
  if (weight || !id.valid() || !may_be_inside(g, g.node(id))) {
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
bool shapes_hold(const Graph& g, const RowRegion& r) {
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

/// Sums over a row as PyTorch's reductions take them: each term in the type that they compute with.
class Sums {
 public:
  /// `error`: of every sum, as a part of the sum of its terms' magnitudes.
  Sums(const Row& in, const Counts& counts, std::function<double(double)> inside, double error)
      : in_(in), counts_(counts), inside_(std::move(inside)), error_(error) {
    for (const double c : counts_) count_ += c;
  }

  [[nodiscard]] double count() const { return count_; }
  [[nodiscard]] double of(const std::function<double(double)>& term) const {
    double sum = 0;
    double size = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const double part = counts_[i] * inside_(term(at(in_, i)));
      sum += part;
      size += std::fabs(part);
    }
    const double off = inside_(sum + error_ * size);
    return error_ != 0 && std::isfinite(off) ? off : inside_(sum);
  }
  [[nodiscard]] double squares(double around) const {
    return of([&](double v) { return inside_(v - around) * inside_(v - around); });
  }
  [[nodiscard]] double exponentials(double most) const {
    return of([&](double v) { return std::exp(inside_(v - most)); });
  }
  /// The largest, or the smallest; NaN where there is one.
  [[nodiscard]] double extreme(bool largest) const {
    double out = in_.front();
    for (const double v : in_)
      if (std::isnan(v) || (largest ? v > out : v < out)) out = v;
    return std::any_of(in_.begin(), in_.end(), [](double v) { return std::isnan(v); }) ? NAN : out;
  }

 private:
  const Row& in_;
  const Counts& counts_;
  std::function<double(double)> inside_;
  double error_;
  double count_ = 0;
};

double variance(const Node& n, const Sums& sums) {
  double correction = n.number("correction").value_or(1);
  if (const auto unbiased = n.flag("unbiased")) correction = *unbiased ? 1 : 0;
  const double mean = sums.of([](double v) { return v; }) / sums.count();
  return sums.squares(mean) / (sums.count() - correction);
}

Row reduce(const Node& n, const Row& in, const Counts& counts,
           const std::function<double(double)>& inside, double error) {
  const std::string_view op = base_op(n);
  const Sums sums(in, counts, inside, error);
  if (op == "aten.sum") return {sums.of([](double v) { return v; })};
  if (op == "aten.mean") return {sums.of([](double v) { return v; }) / sums.count()};
  if (op == "aten.var") return {variance(n, sums)};
  if (op == "aten.std") return {std::sqrt(variance(n, sums))};
  if (op == "aten.amin") return {sums.extreme(false)};
  const double most = sums.extreme(true);
  if (op == "aten.amax" || op == "aten.max") return {most};
  if (op == "aten.logsumexp") {
    if (std::isinf(most)) return {most};
    return {most + std::log(sums.exponentials(most))};
  }
  const double exponentials = sums.exponentials(most);
  Row out;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double v = inside(at(in, i) - most);
    out.push_back(op == "aten.log_softmax" ? v - std::log(exponentials)
                                           : std::exp(v) / exponentials);
  }
  return out;
}

/// The DAG's result where every function's value is rounded by `inside`.
double eval(const pointwise::Dag& dag, const std::vector<double>& operands,
            const std::function<double(double)>& inside, std::vector<double>& values) {
  values.clear();
  std::vector<double> arguments;
  for (const pointwise::Dag::Node& n : dag.nodes) {
    if (n.kind == pointwise::Dag::Node::Kind::operand) {
      values.push_back(operands[static_cast<std::size_t>(n.operand)]);
    } else if (n.kind == pointwise::Dag::Node::Kind::constant) {
      values.push_back(inside(n.constant));
    } else {
      arguments.clear();
      for (const int a : n.arguments) arguments.push_back(values[static_cast<std::size_t>(a)]);
      values.push_back(inside(n.function->eval(arguments)));
    }
  }
  return values[static_cast<std::size_t>(dag.results.front())];
}

std::optional<Row> evaluate_pointwise(const Graph& g, const Node& n,
                                      const std::map<ValueId, Row>& rows,
                                      const std::function<double(double)>& inside) {
  pointwise::Dag dag;
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
  std::vector<double> values;
  for (std::size_t i = 0; i < length; ++i) {
    for (std::size_t k = 0; k < inputs.size(); ++k) point[k] = at(*inputs[k], i);
    out[i] = eval(dag, point, inside, values);
  }
  return out;
}

}  // namespace

double computed(double x, DType type) {
  return type == DType::float64 ? x : static_cast<float>(x);
}

/// Of the first sum in a type, as a part of it.
double first_error(Arithmetic arithmetic, DType type) {
  if (arithmetic != Arithmetic::own_high && arithmetic != Arithmetic::own_low) return 0;
  const double rounding = type == DType::float64 ? 0x1p-52 : 0x1p-23;
  return arithmetic == Arithmetic::own_high ? rounding : -rounding;
}

Row held(Row row, DType type) {
  const pointwise::Function* f = pointwise::find(fmt::format("round_{}", name_of(type)));
  for (double& v : row) {
    v = computed(v, type);
    if (f != nullptr) v = f->eval(std::span(&v, 1));
  }
  return row;
}

std::optional<Row> evaluate_rows(const Graph& g, const RowRegion& r, const Row& x,
                                 const std::vector<Row>& weights, const Counts& counts,
                                 Arithmetic arithmetic) {
  std::map<ValueId, Row> rows;
  rows[r.x] = x;
  for (std::size_t i = 0; i < weights.size(); ++i) rows[r.weights[i]] = weights[i];
  double turn = 1;
  for (const NodeId id : r.nodes) {
    const Node& n = g.node(id);
    const ValueId out = n.outputs.front();
    const DType type = g.value(out).type.dtype;
    const bool rounds = arithmetic != Arithmetic::exact && is_floating(type);
    const auto inside = [&](double v) { return rounds ? computed(v, type) : v; };
    for (const ValueId v : tensor_arguments(n)) {
      if (rows.contains(v)) continue;
      const auto number = element(g, v, std::vector<int64_t>(g.value(v).type.shape.size(), 0));
      if (!number) return std::nullopt;
      rows[v] = {*number};
    }
    if (is_reduction(n)) {
      rows[out] = reduce(n, rows.at(n.tensor("self")), counts, inside,
                         turn * first_error(arithmetic, type));
      turn = -turn;
    } else if (widens(n) || keeps_values(g, n)) {
      rows[out] = rows.at(tensor_arguments(n).front());
    } else {
      auto row = evaluate_pointwise(g, n, rows, inside);
      if (!row) return std::nullopt;
      rows[out] = std::move(*row);
    }
    if (rounds) rows[out] = held(std::move(rows[out]), type);
  }
  return rows.at(g.node(r.last).outputs.front());
}

std::vector<ValueId> region_starts(const Graph& g, NodeId last) {
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
      if (p.valid() && may_be_inside(g, g.node(p)) && seen.insert(p).second) queue.push_back(p);
    }
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::size_t> region_dims(const Graph& g, NodeId last) {
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
      if (p.valid() && may_be_inside(g, g.node(p)) && seen.insert(p).second) queue.push_back(p);
    }
  }
  return dims;
}

bool fill_region(const Graph& g, RowRegion& r) {
  std::set<NodeId> seen;
  if (!collect(g, g.node(r.last).outputs.front(), r, seen) || r.nodes.size() < 2 ||
      !shapes_hold(g, r))
    return false;
  if (!r.reduces && !r.weights.empty()) return false;
  return !std::all_of(r.nodes.begin(), r.nodes.end(),
                      [&](NodeId id) { return keeps_values(g, g.node(id)); });
}

}  // namespace tessera::rewrite
