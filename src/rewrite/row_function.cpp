#include "rewrite/row_function.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "rewrite/pieces.h"
#include "rewrite/special_rows.h"

namespace tessera::rewrite {
namespace {

constexpr int64_t largest_row = 65536;
constexpr std::size_t different_elements = 24;

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

/// A row, what the region makes of it, and the statistics that formulas need, in the arithmetic in
/// which the region was evaluated.
struct Sample {
  Row x;
  std::vector<Row> weights;
  Row result;
  Arithmetic arithmetic = Arithmetic::exact;
  DType type = DType::float64;
  double mean = 0, mean_square = 0, variance = 0, most = 0, exponentials = 0;
};

/// How often each of the different elements of a row of `columns` stands in it: the first ones
/// once, so that one of them may be as far from the others as an element of such a row ever is.
Counts counts_of(int64_t columns) {
  const auto length = std::min(static_cast<std::size_t>(columns), different_elements);
  const std::size_t single = length / 4;
  const auto others = static_cast<int64_t>(length - single);
  const int64_t rest = columns - static_cast<int64_t>(single);
  const int64_t each = rest / others;
  Counts counts(length, static_cast<double>(each));
  std::fill_n(counts.begin(), single, 1);
  counts.back() += static_cast<double>(rest % others);
  return counts;
}

class Sampler {
 public:
  Sampler(const Graph& g, const RowRegion& r, int64_t columns)
      : g_(g), r_(r), counts_(counts_of(columns)), columns_(static_cast<double>(columns)) {
    for (std::size_t k = 0; k < r.weights.size(); ++k)
      weights_.push_back(
          held(random_row(counts_.size(), 1, 0.5, 21 + static_cast<unsigned>(k)), type()));
  }

  [[nodiscard]] std::size_t length() const { return counts_.size(); }
  [[nodiscard]] double columns() const { return columns_; }
  [[nodiscard]] DType type() const { return g_.value(r_.x).type.dtype; }

  [[nodiscard]] std::optional<Sample> of(const Row& x, Arithmetic arithmetic) const {
    auto result = evaluate_rows(g_, r_, x, weights_, counts_, arithmetic);
    if (!result || result->size() != x.size()) return std::nullopt;
    Sample s{.x = x,
             .weights = weights_,
             .result = std::move(*result),
             .arithmetic = arithmetic,
             .type = type()};
    const auto inside = [&](double v) {
      return arithmetic == Arithmetic::exact ? v : computed(v, type());
    };
    const auto mean = [&](const std::function<double(double)>& term) {
      double sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i) sum += counts_[i] * inside(term(x[i]));
      return inside(sum) / columns_;
    };
    const auto nan = [](double v) { return std::isnan(v); };
    s.most = std::any_of(x.begin(), x.end(), nan) ? NAN : *std::max_element(x.begin(), x.end());
    s.mean = mean([](double v) { return v; });
    s.mean_square = mean([](double v) { return v * v; });
    s.variance = mean([&](double v) { return inside(v - s.mean) * inside(v - s.mean); });
    s.exponentials = mean([&](double v) { return std::exp(inside(v - s.most)); }) * columns_;
    return s;
  }

 private:
  const Graph& g_;
  const RowRegion& r_;
  Counts counts_;
  double columns_;
  std::vector<Row> weights_;
};

/// What a function of a row is in each element, and what its error is measured by beside the result
/// itself: what cancels in it.
struct Formula {
  std::function<double(const Sample&, std::size_t)> value;
  std::function<double(const Sample&)> cancelled = [](const Sample&) { return 0.0; };
};

/// The same kind of value: NaN, an infinity of one sign, a zero of one sign, or a number.
bool same_kind(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return a != 0 || b != 0 || std::signbit(a) == std::signbit(b);
}

double largest_number(const Row& row) {
  double most = 0;
  for (const double v : row)
    if (std::isfinite(v)) most = std::max(most, std::fabs(v));
  return most;
}

/// In exact arithmetic the results are the same to nine digits. In the type's own, which rounds
/// every intermediate result, they are the same in kind and about the same in size.
bool fits(const Sample& s, const Formula& f) {
  const bool own = s.arithmetic != Arithmetic::exact;
  const double relative = own ? 0x1p-4 : 1e-9;
  const double absolute =
      own ? 0x1p-4 * (largest_number(s.result) + f.cancelled(s)) : 1e-13 * f.cancelled(s) + 1e-300;
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    const double a = at(s.result, i);
    const double b = own ? computed(f.value(s, i), s.type) : f.value(s, i);
    if (!same_kind(a, b)) return false;
    if (std::isfinite(b) && !(std::fabs(a - b) <= relative * std::fabs(b) + absolute)) return false;
  }
  return true;
}

/// Whether the region is this function: on two random rows first, then on every special one.
class Judge {
 public:
  Judge(const Sampler& sampler, std::vector<double> bounds)
      : sampler_(sampler), bounds_(std::move(bounds)) {}

  /// False where the region has no meaning on numbers.
  bool begin() {
    for (const auto& [scale, shift] : {std::pair{1.5, 0.3}, std::pair{0.02, 0.01}})
      add(random_row(sampler_.length(), scale, shift, 11), Arithmetic::exact);
    return defined_;
  }
  bool is(const Formula& f) {
    if (!fit(f)) return false;
    if (samples_.size() == 2) {
      for (const Row& row : special_rows(sampler_.type(), sampler_.length(), sampler_.columns())) {
        for (const auto a :
             {Arithmetic::exact, Arithmetic::own, Arithmetic::own_high, Arithmetic::own_low})
          add(row, a);
      }
      about_bounds();
    }
    return defined_ && fit(f);
  }

 private:
  /// Rows that have elements of every piece, among others.
  void about_bounds() {
    const Row about = numbers_about(bounds_, sampler_.type());
    const std::size_t length = sampler_.length();
    const std::size_t some = (length + 1) / 2;
    for (std::size_t first = 0; first < about.size(); first += some) {
      Row row = random_row(length, 1.5, 0, 17 + static_cast<unsigned>(first));
      for (std::size_t i = 0; i < some && first + i < about.size(); ++i)
        row[2 * i % length] = about[first + i];
      add(row, Arithmetic::exact);
      add(held(row, sampler_.type()), Arithmetic::own);
    }
  }
  void add(const Row& x, Arithmetic arithmetic) {
    auto s = sampler_.of(x, arithmetic);
    defined_ = defined_ && s.has_value();
    if (s) samples_.push_back(std::move(*s));
  }
  [[nodiscard]] bool fit(const Formula& f) const {
    return std::all_of(samples_.begin(), samples_.end(),
                       [&](const Sample& s) { return fits(s, f); });
  }

  const Sampler& sampler_;
  std::vector<double> bounds_;
  std::vector<Sample> samples_;
  bool defined_ = true;
};

std::optional<RowFunction> find_softmax(const RowRegion& r, Judge& judge, int64_t dim) {
  if (!r.weights.empty()) return std::nullopt;
  const std::vector<std::pair<std::string, Argument>> arguments = {
      {"self", r.x}, {"dim", dim}, {"dtype", NoValue{}}};
  if (judge.is({[](const Sample& s, std::size_t i) {
        return std::exp(s.x[i] - s.most) / s.exponentials;
      }})) {
    return RowFunction{"softmax written out", {"softmax", "aten.softmax.int", arguments, {}}};
  }
  if (judge.is({[](const Sample& s, std::size_t i) {
                  return s.x[i] - s.most - std::log(s.exponentials);
                },
                [](const Sample& s) { return largest_number(s.x); }})) {
    return RowFunction{"log-softmax written out",
                       {"log_softmax", "aten.log_softmax.int", arguments, {}}};
  }
  return std::nullopt;
}

Argument weight_argument(const RowRegion& r, int index) {
  return index < 0 ? Argument(NoValue{}) : Argument(r.weights[static_cast<std::size_t>(index)]);
}

std::optional<RowFunction> find_rms_norm(const RowRegion& r, Judge& judge, double eps,
                                         int64_t columns) {
  if (r.weights.size() > 1) return std::nullopt;
  const auto y = [eps](const Sample& s, std::size_t i) {
    return s.x[i] / std::sqrt(s.mean_square + eps);
  };
  const int w = r.weights.empty() ? -1 : 0;
  for (const double shift : {0.0, 1.0}) {
    if (w < 0 && shift != 0) break;
    const bool match = judge.is({[&](const Sample& s, std::size_t i) {
      return w < 0 ? y(s, i) : y(s, i) * (s.weights[0][i] + shift);
    }});
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

std::optional<RowFunction> find_layer_norm(const RowRegion& r, Judge& judge, double eps,
                                           int64_t columns) {
  const auto y = [eps](const Sample& s, std::size_t i) {
    return (s.x[i] - s.mean) / std::sqrt(s.variance + eps);
  };
  std::vector<std::pair<int, int>> roles = {{-1, -1}};
  if (r.weights.size() == 1) roles = {{0, -1}};
  if (r.weights.size() == 2) roles = {{0, 1}, {1, 0}};
  for (const auto& [w, b] : roles) {
    const Formula formula{
        [&, w = w, b = b](const Sample& s, std::size_t i) {
          const double scaled =
              w < 0 ? y(s, i) : y(s, i) * s.weights[static_cast<std::size_t>(w)][i];
          return b < 0 ? scaled : scaled + s.weights[static_cast<std::size_t>(b)][i];
        },
        [eps](const Sample& s) { return 1 + largest_number(s.x) / std::sqrt(s.variance + eps); }};
    const bool match = judge.is(formula);
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

std::optional<RowFunction> row_function_of(const Graph& g, const RowRegion& r) {
  const auto& shape = g.value(r.x).type.shape;
  const int64_t columns = shape[r.dim];
  const bool last = r.dim + 1 == shape.size();
  if (columns < 2 || columns > largest_row) return std::nullopt;
  auto bounds = pieces_of(g, r);
  if (!bounds) return std::nullopt;
  const Sampler sampler(g, r, columns);
  Judge judge(sampler, std::move(*bounds));
  if (!judge.begin()) return std::nullopt;
  if (auto found = find_softmax(r, judge, last ? -1 : static_cast<int64_t>(r.dim))) return found;
  for (const double eps : numbers(g, r)) {
    if (auto found = find_rms_norm(r, judge, eps, columns)) return found;
    if (auto found = find_layer_norm(r, judge, eps, columns)) return found;
  }
  return std::nullopt;
}

}  // namespace tessera::rewrite
