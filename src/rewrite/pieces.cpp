#include "rewrite/pieces.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "graph/pointwise_import.h"

namespace tessera::rewrite {
namespace {

/// What is known of a value as a function of one element x of the row.
struct Form {
  /// affine: a * x + b. truth: 0 or 1. folded: a magnitude whose bound is not known, which may only
  /// be asked whether it is infinite. smooth: anything else without bounds but those noted.
  enum class Kind { affine, truth, folded, smooth } kind = Kind::smooth;
  double a = 0;
  double b = 0;

  [[nodiscard]] bool is_affine() const { return kind == Kind::affine; }
  [[nodiscard]] bool is_number() const { return is_affine() && a == 0; }
};

Form number(double v) {
  return {Form::Kind::affine, 0, v};
}
constexpr Form truth{Form::Kind::truth};

/// Of one argument, with the arguments at which it changes its formula.
const std::map<std::string_view, std::vector<double>>& of_known_bounds() {
  static const std::map<std::string_view, std::vector<double>> table = {
      {"relu", {0}}, {"relu6", {0, 6}},      {"leaky_relu", {0}},      {"elu", {0}},
      {"selu", {0}}, {"hardswish", {-3, 3}}, {"hardsigmoid", {-3, 3}}, {"sign", {0}},
  };
  return table;
}

bool is_analytic(std::string_view f) {
  static const std::set<std::string_view> names = {
      "tanh", "sigmoid", "log_sigmoid", "silu",       "gelu_erf",  "gelu_tanh", "softplus",
      "mish", "square",  "cube",        "reciprocal", "sqrt",      "rsqrt",     "exp",
      "exp2", "expm1",   "log",         "log2",       "log10",     "log1p",     "erf",
      "sin",  "cos",     "tan",         "atan",       "logaddexp", "hypot",     "mul",
      "div",  "add",     "sub",         "fma",        "pow",       "neg"};
  return names.contains(f);
}

class Pieces {
 public:
  Pieces(const Graph& g, const RowRegion& r) : g_(g), r_(r) {}

  std::optional<std::vector<double>> find() {
    forms_[r_.x] = {Form::Kind::affine, 1, 0};
    for (const ValueId w : r_.weights) forms_[w] = {};
    for (const NodeId id : r_.nodes)
      if (!note(g_.node(id))) return std::nullopt;
    if (forms_.at(g_.node(r_.last).outputs.front()).kind == Form::Kind::folded) return std::nullopt;
    std::sort(bounds_.begin(), bounds_.end());
    bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
    return bounds_;
  }

 private:
  bool note(const Node& n) {
    for (const ValueId v : tensor_arguments(n)) {
      if (forms_.contains(v)) continue;
      const auto e = element(g_, v, std::vector<int64_t>(g_.value(v).type.shape.size(), 0));
      if (!e) return false;
      forms_[v] = number(*e);
    }
    Form& out = forms_[n.outputs.front()];
    if (kind_of(n) != OpKind::pointwise || keeps_values(g_, n)) {
      out = forms_.at(tensor_arguments(n).front());
      // A statistic of the row.
      if (kind_of(n) != OpKind::view && !keeps_values(g_, n) && !widens(n)) {
        if (out.kind == Form::Kind::folded) return false;
        out = {};
      }
      return true;
    }
    pointwise::Dag dag;
    std::vector<std::pair<ValueId, int>> operands;
    std::vector<Form> inputs;
    for (const ValueId v : tensor_arguments(n)) {
      operands.emplace_back(v, dag.add_operand(static_cast<int>(inputs.size())));
      inputs.push_back(forms_.at(v));
    }
    const auto result = append_pointwise(dag, g_, n, operands);
    if (!result) return false;
    std::vector<Form> values;
    for (const pointwise::Dag::Node& d : dag.nodes) {
      if (d.kind == pointwise::Dag::Node::Kind::operand) {
        values.push_back(inputs[static_cast<std::size_t>(d.operand)]);
      } else if (d.kind == pointwise::Dag::Node::Kind::constant) {
        values.push_back(number(d.constant));
      } else {
        std::vector<Form> arguments;
        for (const int a : d.arguments) arguments.push_back(values[static_cast<std::size_t>(a)]);
        const auto form = of_call(d.function->name, arguments);
        if (!form) return false;
        values.push_back(*form);
      }
    }
    out = values[static_cast<std::size_t>(*result)];
    return true;
  }

  static bool widens(const Node& n) {
    return is_op(n, "aten.unsqueeze") || is_op(n, "aten.expand");
  }

  std::optional<Form> of_call(std::string_view f, std::span<const Form> a) {
    const auto is_folded = [](const Form& x) { return x.kind == Form::Kind::folded; };
    const bool folded = std::any_of(a.begin(), a.end(), is_folded);
    static const std::set<std::string_view> comparisons = {"eq", "ne", "lt", "le", "gt", "ge"};
    if (comparisons.contains(f)) return when(turns(a[0], a[1], f == "eq" || f == "ne"), truth);
    if (f == "isnan" || f == "isinf") return truth;
    if (folded) return std::nullopt;
    if (f.starts_with("round_")) return a[0];
    if (f.starts_with("logical_")) return when(std::all_of(a.begin(), a.end(), is_truth), truth);
    if (f == "where") return when(is_truth(a[0]), {});
    if (f == "minimum" || f == "maximum") return when(turns(a[0], a[1], false), {});
    if (f == "clamp") return when(turns(a[0], a[1], false) && turns(a[0], a[2], false), {});
    if (f == "threshold") return when(turns(a[0], a[1], false), {});
    if (f == "abs" && !a[0].is_affine()) return Form{Form::Kind::folded};
    if (f == "abs") return when(turns(a[0], number(0), false), {});
    if (const auto known = of_known_bounds().find(f); known != of_known_bounds().end()) {
      for (const double bound : known->second)
        if (!turns(a[0], number(bound), false)) return std::nullopt;
      return Form{};
    }
    if (!is_analytic(f)) return std::nullopt;
    return affine(f, a);
  }

  static bool is_truth(const Form& x) { return x.kind == Form::Kind::truth || x.is_number(); }
  static std::optional<Form> when(bool holds, Form form) {
    return holds ? std::optional(form) : std::nullopt;
  }

  /// Notes where p is q. `exactly`: that is a piece of its own, so roundings must not move it.
  bool turns(const Form& p, const Form& q, bool exactly) {
    if (p.is_number() && !q.is_number()) return turns(q, p, exactly);
    if (q.is_number() && !std::isfinite(q.b)) return true;
    if (!p.is_affine() || !q.is_affine()) return false;
    const double a = p.a - q.a;
    const double b = p.b - q.b;
    if (a == 0) return true;
    if (exactly && (std::fabs(p.a) != 1 || p.b != 0 || !q.is_number())) return false;
    bounds_.push_back(-b / a);
    return true;
  }

  static Form affine(std::string_view f, std::span<const Form> a) {
    if (!std::all_of(a.begin(), a.end(), [](const Form& x) { return x.is_affine(); })) return {};
    const auto of = [](double slope, double at_zero) {
      return Form{Form::Kind::affine, slope, at_zero};
    };
    if (f == "add") return of(a[0].a + a[1].a, a[0].b + a[1].b);
    if (f == "sub") return of(a[0].a - a[1].a, a[0].b - a[1].b);
    if (f == "neg") return of(-a[0].a, -a[0].b);
    if (f == "mul" && a[0].is_number()) return of(a[0].b * a[1].a, a[0].b * a[1].b);
    if (f == "mul" && a[1].is_number()) return of(a[1].b * a[0].a, a[1].b * a[0].b);
    if (f == "div" && a[1].is_number()) return of(a[0].a / a[1].b, a[0].b / a[1].b);
    if (f == "fma" && a[1].is_number())
      return of(a[0].a * a[1].b + a[2].a, a[0].b * a[1].b + a[2].b);
    return {};
  }

  const Graph& g_;
  const RowRegion& r_;
  std::map<ValueId, Form> forms_;
  std::vector<double> bounds_;
};

}  // namespace

std::optional<std::vector<double>> pieces_of(const Graph& g, const RowRegion& r) {
  return Pieces(g, r).find();
}

Row numbers_about(const std::vector<double>& bounds, DType type) {
  Row out;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const double b = bounds[i];
    const double unit = std::max(std::fabs(b), 0x1p-20) * (size_of(type) == 2 ? 0x1p-6 : 0x1p-20);
    for (const double v : {b, b - unit, b + unit, b - 0.37, b + 0.41, b - 2.9, b + 3.1})
      out.push_back(v);
    if (i + 1 < bounds.size())
      for (const double part : {0.13, 0.48, 0.81}) out.push_back(b + part * (bounds[i + 1] - b));
  }
  return out;
}

}  // namespace tessera::rewrite
