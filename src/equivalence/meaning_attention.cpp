// Attention of a small launch on residues: what check/attention_means.h says, with 2^s for e^s of
// scores that were multiplied with log2 e. No greatest score is taken off: it would cancel.
#include "equivalence/dot.h"
#include "equivalence/meaning_parts.h"
#include "pointwise/pointwise.h"
#include "replay/launches.h"
#include "replay/output_rows.h"
#include "residue/functions.h"

namespace tessera::equivalence {
namespace {

using check::IndexedBy;
using check::Numbers;
using residue::Value;

constexpr double log2_e = 1.4426950408889634;

/// Elements of an input by the values of names.
class Input {
 public:
  Input(const core::Kernel& kernel, const IndexedBy& by, const simulate::Launch& launch)
      : by_(by),
        lie_(*replay::lie_of(kernel[by.tensor], launch)),
        values_(launch.residues->at(kernel[by.tensor].name)),
        elements_(pairs_of(values_)) {}

  [[nodiscard]] int64_t extent(std::string_view name) const { return lie_.extents[at(name)]; }
  /// Nothing where the tensor has no such place.
  [[nodiscard]] std::optional<int64_t> offset(const Numbers& numbers) const {
    int64_t out = 0;
    for (std::size_t d = 0; d < by_.at.size(); ++d) {
      const std::optional<int64_t> i = check::value_of(by_.at[d], numbers);
      if (!i || *i < 0 || *i >= lie_.extents[d]) return std::nullopt;
      out += *i * lie_.strides[d];
    }
    return out;
  }
  /// Nothing where the tensor has no such place.
  [[nodiscard]] Value element(const Numbers& numbers) const {
    const std::optional<int64_t> place = offset(numbers);
    return place ? values_.at(static_cast<std::size_t>(*place)) : residue::nothing();
  }
  [[nodiscard]] Walk along(std::string_view name, int64_t from) const {
    return {elements_, from, stride(name)};
  }
  [[nodiscard]] int64_t stride(std::string_view name) const { return lie_.strides[at(name)]; }

 private:
  [[nodiscard]] std::size_t at(std::string_view name) const {
    return static_cast<std::size_t>(by_.place(name));
  }
  const IndexedBy& by_;
  replay::Lie lie_;
  const std::vector<Value>& values_;
  Pairs elements_;
};

/// 2^(log2 e times the score that the meaning makes of a sum), plus what is added to the score.
Value power_of(const check::Attention& means, const Value& sum, const Value& added) {
  const Value by = residue::constant(means.scale);
  Value score = sum;
  if (means.inner > 0)
    score = residue::result_of(*pointwise::find("tanh"), std::vector<Value>{residue::multiply(
                                                             sum, residue::constant(means.inner))});
  if (!means.adds)
    return residue::power(residue::multiply(score, residue::constant(means.scale * log2_e)));
  return residue::power(residue::multiply(residue::add(residue::multiply(score, by), added),
                                          residue::constant(log2_e)));
}

class Rows {
 public:
  Rows(const core::Kernel& kernel, const check::Attention& means, const simulate::Launch& launch)
      : means_(means),
        q_(kernel, means.q, launch),
        k_(kernel, means.k, launch),
        v_(kernel, means.v, launch) {
    if (means.mask) mask_.emplace(kernel, *means.mask, launch);
  }

  /// The weights of one row's keys, and one over their sum: nothing where it sees no key. `at` has
  /// the row.
  bool begin(Numbers& at) {
    at[means_.key] = 0;
    at[means_.depth] = 0;
    at[means_.column] = 0;
    const auto q0 = q_.offset(at), k0 = k_.offset(at), v0 = v_.offset(at);
    if (!q0 || !k0 || !v0) return false;
    first_ = *v0;
    weights_.clear();
    Value total = residue::number(0);
    for (int64_t j = 0; j < k_.extent(means_.key); ++j) {
      at[means_.key] = j;
      Value weight = residue::number(0);
      const Value given = mask_ ? mask_->element(at) : residue::number(0);
      const bool shown = !mask_ || means_.adds || !given.is_number() || given.number != 0;
      if (shown && (!means_.seen || check::value_of(*means_.seen, at).value_or(1) != 0))
        weight = power_of(
            means_,
            dot(q_.along(means_.depth, *q0),
                k_.along(means_.depth, *k0 + j * k_.stride(means_.key)), k_.extent(means_.depth)),
            given);
      weights_.push_back(residue::pair_of(weight));
      total = residue::add(total, weight);
    }
    const bool sees = !(total.is_number() && total.number == 0);
    share_ = sees                   ? residue::divide(residue::number(1), total)
             : means_.empty_is_zero ? residue::number(0)
                                    : residue::nothing();
    return true;
  }
  [[nodiscard]] Value element(int64_t column) const {
    const Walk values = v_.along(means_.key, first_ + column * v_.stride(means_.column));
    return residue::multiply(share_,
                             dot({weights_, 0, 1}, values, static_cast<int64_t>(weights_.size())));
  }

 private:
  const check::Attention& means_;
  Input q_, k_, v_;
  std::optional<Input> mask_;
  Pairs weights_;
  int64_t first_ = 0;
  Value share_;
};

}  // namespace

void each_attention(const core::Kernel& kernel, const check::Attention& means,
                    const simulate::Launch& launch, const SeeElement& see) {
  Rows rows(kernel, means, launch);
  const core::Tensor& tensor = kernel[means.o.tensor];
  const replay::Lie to = *replay::lie_of(tensor, launch);
  Numbers at{launch.parameters.begin(), launch.parameters.end()};
  replay::each_output_row(means, to, at, [&](replay::OutputRow& row) {
    if (!rows.begin(at)) return;
    for (int64_t e = 0; e < row.elements; ++e)
      see(tensor.name, {row.place + e * row.stride}, row.name(tensor.name, e), rows.element(e));
  });
}

}  // namespace tessera::equivalence
