// The activations that PyTorch has ops for, recognized in any spelling.
#include <algorithm>
#include <cmath>

#include "pointwise/pointwise.h"
#include "rewrite/pieces.h"
#include "rewrite/row_function.h"
#include "rewrite/special_rows.h"

namespace tessera::rewrite {
namespace {

struct Activation {
  std::string_view function;
  std::string_view what;
  std::string_view op;
  std::vector<std::pair<std::string, Argument>> more = {};
  /// Where PyTorch's op overflows on the way to its result, that way.
  double (*own)(double, DType) = nullptr;
  /// PyTorch's op is another function on a host: oneDNN's GELU of infinity is NaN.
  bool only_on_gpu = false;
};

double hardswish(double x, DType type) {
  const double gate = std::isnan(x) ? x : std::clamp(x + 3, 0.0, 6.0);
  return computed(x * gate, type) / 6;
}

const std::vector<Activation>& known() {
  static const std::vector<Activation> table = {
      {"gelu_tanh", "tanh-GELU written out", "gelu", {{"approximate", std::string("tanh")}}},
      {"gelu_erf",
       "erf-GELU written out",
       "gelu",
       {{"approximate", std::string("none")}},
       nullptr,
       true},
      {"silu", "SiLU written out", "silu"},
      {"sigmoid", "sigmoid written out", "sigmoid"},
      {"mish", "Mish written out", "mish"},
      {"hardswish", "Hardswish written out", "hardswish", {}, hardswish},
      {"hardsigmoid", "Hardsigmoid written out", "hardsigmoid"},
      {"relu", "ReLU written out", "relu"},
      {"log_sigmoid", "log-sigmoid written out", "log_sigmoid"},
      {"selu", "SELU written out", "selu"},
  };
  return table;
}

/// Constants such as sqrt(2 / pi) are written with eight digits or more; what is left of a result
/// that cancels is measured by x. Nothing is exactly nothing, of either sign.
bool close(double got, double wanted, double x, bool own) {
  if (std::isnan(wanted) || std::isnan(got)) return std::isnan(wanted) && std::isnan(got);
  if (got == wanted) return got != 0 || std::signbit(got) == std::signbit(wanted);
  if (std::isinf(wanted) || std::isinf(got)) return false;
  const double relative = own ? 0x1p-5 : 2e-8;
  const double absolute = own ? 0x1p-6 : 1e-15;
  return std::fabs(got - wanted) <= relative * std::fabs(wanted) + absolute * std::fabs(x);
}

class Judge {
 public:
  Judge(const Graph& g, const RowRegion& r, Row x, Arithmetic arithmetic)
      : x_(std::move(x)), own_(arithmetic == Arithmetic::own), type_(g.value(r.x).type.dtype) {
    got_ = evaluate_rows(g, r, x_, {}, Counts(x_.size(), 1), arithmetic);
  }

  [[nodiscard]] bool is(const Activation& a) const {
    if (!got_) return false;
    const pointwise::Function& f = *pointwise::find(a.function);
    Row wanted;
    for (const double x : x_)
      wanted.push_back(own_ && a.own != nullptr ? a.own(x, type_) : f.eval(std::span(&x, 1)));
    if (own_) wanted = held(std::move(wanted), type_);
    for (std::size_t i = 0; i < x_.size(); ++i)
      if (!close(at(*got_, i), wanted[i], x_[i], own_)) return false;
    return true;
  }

 private:
  Row x_;
  bool own_;
  DType type_;
  std::optional<Row> got_;
};

}  // namespace

std::optional<RowFunction> activation_of(const Graph& g, const RowRegion& r) {
  const Judge at_random(g, r, random_row(16, 2.5, 0, 7), Arithmetic::exact);
  const auto candidate = std::find_if(known().begin(), known().end(), [&](const Activation& a) {
    return (!a.only_on_gpu || g.device.starts_with("cuda")) && at_random.is(a);
  });
  if (candidate == known().end()) return std::nullopt;
  const auto bounds = pieces_of(g, r);
  if (!bounds) return std::nullopt;
  const DType type = g.value(r.x).type.dtype;
  const Row special = special_numbers(type);
  const Row about = numbers_about(*bounds, type);
  const std::pair<Row, Arithmetic> samples[] = {{special, Arithmetic::exact},
                                                {special, Arithmetic::own},
                                                {about, Arithmetic::exact},
                                                {held(about, type), Arithmetic::own}};
  for (const auto& [row, arithmetic] : samples)
    if (!row.empty() && !Judge(g, r, row, arithmetic).is(*candidate)) return std::nullopt;
  RowFunction found{std::string(candidate->what),
                    {std::string(candidate->op),
                     "aten." + std::string(candidate->op) + ".default",
                     {{"self", r.x}},
                     {}}};
  for (const auto& argument : candidate->more) found.node.arguments.push_back(argument);
  return found;
}

}  // namespace tessera::rewrite
