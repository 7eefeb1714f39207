#include "rewrite/row_function.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "pointwise/pointwise.h"

namespace tessera::rewrite {
namespace {

constexpr int64_t largest_row = 65536;

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
std::set<double> numbers(const Graph& g, const RowRegion& r) {
  std::set<double> out = {0};
  for (const NodeId id : r.nodes) {
    for (const auto& [name, argument] : g.node(id).arguments) {
      const auto v = scalar_argument(g, g.node(id), name);
      if (v && *v >= 0 && *v < 1) out.insert(*v);
    }
  }
  return out;
}

struct Activation {
  std::string_view function;
  std::string_view what;
  std::string_view op;
  std::vector<std::pair<std::string, Argument>> more;
};

struct Sample {
  Row x;
  std::vector<Row> weights;
  Row result;
  double mean = 0, mean_square = 0, variance = 0, most = 0, exponentials = 0;
};

std::optional<Sample> sample(const Graph& g, const RowRegion& r, std::size_t length, double scale,
                             double shift, unsigned seed) {
  Sample s;
  s.x = random_row(length, scale, shift, seed);
  for (std::size_t k = 0; k < r.weights.size(); ++k)
    s.weights.push_back(random_row(length, 1, 0.5, seed + 10 + static_cast<unsigned>(k)));
  auto result = evaluate_rows(g, r, s.x, s.weights);
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

std::optional<RowFunction> find_softmax(const RowRegion& r, const std::vector<Sample>& samples,
                                        int64_t dim) {
  if (!r.weights.empty()) return std::nullopt;
  const std::vector<std::pair<std::string, Argument>> arguments = {
      {"self", r.x}, {"dim", dim}, {"dtype", NoValue{}}};
  if (fits(samples, [](const Sample& s, std::size_t i) {
        return std::exp(s.x[i] - s.most) / s.exponentials;
      })) {
    return RowFunction{"softmax written out", {"softmax", "aten.softmax.int", arguments, {}}};
  }
  if (fits(samples, [](const Sample& s, std::size_t i) {
        return s.x[i] - s.most - std::log(s.exponentials);
      })) {
    return RowFunction{"log-softmax written out",
                       {"log_softmax", "aten.log_softmax.int", arguments, {}}};
  }
  return std::nullopt;
}

Argument weight_argument(const RowRegion& r, int index) {
  return index < 0 ? Argument(NoValue{}) : Argument(r.weights[static_cast<std::size_t>(index)]);
}

std::optional<RowFunction> find_rms_norm(const RowRegion& r, const std::vector<Sample>& samples,
                                         double eps, int64_t columns) {
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
    return RowFunction{"RMSNorm written out",
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

std::optional<RowFunction> find_layer_norm(const RowRegion& r, const std::vector<Sample>& samples,
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
    return RowFunction{"LayerNorm written out",
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

}  // namespace

std::optional<RowFunction> activation_of(const Graph& g, const RowRegion& r) {
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
  const auto got = evaluate_rows(g, r, x, {});
  if (!got) return std::nullopt;
  for (const Activation& a : known) {
    const pointwise::Function& f = *pointwise::find(a.function);
    // Constants such as sqrt(2 / pi) are written with eight digits or more.
    if (!agree(*got, [&](std::size_t i) { return f.eval(std::span(&x[i], 1)); }, x.size(), 2e-8))
      continue;
    RowFunction found{
        std::string(a.what),
        {std::string(a.op), "aten." + std::string(a.op) + ".default", {{"self", r.x}}, {}}};
    for (const auto& argument : a.more) found.node.arguments.push_back(argument);
    return found;
  }
  return std::nullopt;
}

std::optional<RowFunction> row_function_of(const Graph& g, const RowRegion& r) {
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

}  // namespace tessera::rewrite
