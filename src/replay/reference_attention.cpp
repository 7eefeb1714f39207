// Attention of a small launch, in double: what check/attention_means.h says.
#include <cmath>
#include <limits>

#include "replay/launches.h"
#include "replay/output_rows.h"
#include "replay/reference.h"
#include "replay/reference_step.h"

namespace tessera::replay {
namespace {

using check::IndexedBy;
using check::Numbers;

/// Elements of an input by the values of names.
class Input {
 public:
  Input(const core::Kernel& kernel, const IndexedBy& by, const simulate::Launch& launch)
      : by_(by),
        lie_(*lie_of(kernel[by.tensor], launch)),
        values_(launch.inputs.at(kernel[by.tensor].name)) {}

  [[nodiscard]] int64_t extent(std::string_view name) const {
    return lie_.extents[static_cast<std::size_t>(by_.place(name))];
  }
  /// Of the element with `name` at 0; nothing where the tensor has no such place.
  [[nodiscard]] std::optional<int64_t> offset(const Numbers& at) const {
    int64_t out = 0;
    for (std::size_t d = 0; d < by_.at.size(); ++d) {
      const std::optional<int64_t> i = check::value_of(by_.at[d], at);
      if (!i || *i < 0 || *i >= lie_.extents[d]) return std::nullopt;
      out += *i * lie_.strides[d];
    }
    return out;
  }
  [[nodiscard]] int64_t stride(std::string_view name) const {
    return lie_.strides[static_cast<std::size_t>(by_.place(name))];
  }
  [[nodiscard]] double at(int64_t offset) const {
    return values_.at(static_cast<std::size_t>(offset));
  }

 private:
  const IndexedBy& by_;
  Lie lie_;
  const std::vector<double>& values_;
};

/// What the mask makes of a score, which is seen. `at` has the row and the key.
double masked(const check::Attention& means, const Input& mask, const Numbers& at, double score) {
  const std::optional<int64_t> place = mask.offset(at);
  const double given = place ? mask.at(*place) : std::numeric_limits<double>::quiet_NaN();
  if (means.adds) return score + given;
  return given != 0 ? score : -std::numeric_limits<double>::infinity();
}

}  // namespace

void Reference::attention(const core::Kernel& kernel, const check::Attention& means,
                          const simulate::Launch& launch) {
  const Input q(kernel, means.q, launch), k(kernel, means.k, launch), v(kernel, means.v, launch);
  std::optional<Input> mask;
  if (means.mask) mask.emplace(kernel, *means.mask, launch);
  const core::Tensor& tensor = kernel[means.o.tensor];
  const Lie to = *lie_of(tensor, launch);
  const int64_t keys = k.extent(means.key), depth = k.extent(means.depth);
  Numbers at{launch.parameters.begin(), launch.parameters.end()};
  std::vector<double> weights(static_cast<std::size_t>(keys));
  each_output_row(means, to, at, [&](OutputRow& row) {
    at[means.key] = 0;
    at[means.depth] = 0;
    const auto q0 = q.offset(at), k0 = k.offset(at), v0 = v.offset(at);
    if (!q0 || !k0 || !v0) return;
    double most = -std::numeric_limits<double>::infinity(), total = 0;
    for (int64_t j = 0; j < keys; ++j) {
      at[means.key] = j;
      double score = 0;
      for (int64_t d = 0; d < depth; ++d)
        score += q.at(*q0 + d * q.stride(means.depth)) *
                 k.at(*k0 + j * k.stride(means.key) + d * k.stride(means.depth));
      const bool seen = !means.seen || check::value_of(*means.seen, at).value_or(1) != 0;
      const double capped = means.inner > 0 ? std::tanh(means.inner * score) : score;
      double& weight = weights[static_cast<std::size_t>(j)];
      weight = seen ? capped * means.scale : -std::numeric_limits<double>::infinity();
      if (seen && mask) weight = masked(means, *mask, at, weight);
      most = std::max(most, weight);
    }
    const bool none = means.empty_is_zero && most == -std::numeric_limits<double>::infinity();
    for (double& w : weights) total += w = none ? 0 : std::exp(w - most);
    if (none) total = 1;
    for (int64_t e = 0; e < row.elements; ++e) {
      double value = 0, size = 0;
      for (int64_t j = 0; j < keys; ++j) {
        const double weight = weights[static_cast<std::size_t>(j)] / total;
        // A value that no weight is for may be anything.
        if (weight == 0) continue;
        const double one =
            weight * v.at(*v0 + j * v.stride(means.key) + e * v.stride(means.column));
        value += one;
        size += std::abs(one);
      }
      const std::vector<std::size_t> places = {
          static_cast<std::size_t>(row.place + e * row.stride)};
      elements_.push_back({row.name(tensor.name, e), tensor.name, places, value,
                           2 * step_of(tensor.element) * size + 1e-3});
    }
  });
}

}  // namespace tessera::replay
