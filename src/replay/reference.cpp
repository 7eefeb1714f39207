#include "replay/reference.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

#include "replay/launches.h"
#include "replay/reference_step.h"
#include "term/facts.h"

namespace tessera::replay {
namespace {

using check::Axis;
using check::ElementAt;

/// Values of row, column, batch and k, by Axis.
using Point = std::array<int64_t, 4>;

int64_t index_at(const check::Index& i, const Point& p) {
  if (i.axis == Axis::number) return i.number;
  const int64_t at = p[static_cast<std::size_t>(i.axis)] + i.number;
  return i.modulus > 0 ? term::floor_remainder(at, i.modulus) : at;
}

struct Factor {
  const ElementAt* element;
  Lie lie;
  const std::vector<double>* values;  // of an input

  [[nodiscard]] std::size_t offset(const Point& p) const {
    int64_t out = 0;
    for (std::size_t d = 0; d < element->at.size(); ++d)
      out += index_at(element->at[d], p) * lie.strides[d];
    return static_cast<std::size_t>(out);
  }
  /// Whether the tensor reaches so far: a meaning that is wrong may ask for more.
  [[nodiscard]] bool has(const Point& p) const {
    for (std::size_t d = 0; d < element->at.size(); ++d) {
      const int64_t at = index_at(element->at[d], p);
      if (at < 0 || at >= lie.extents[d]) return false;
    }
    return true;
  }
  [[nodiscard]] double at(const Point& p) const { return values->at(offset(p)); }
  [[nodiscard]] int64_t extent(Axis axis) const {
    const int d = element->place(axis);
    return d < 0 ? 1 : lie.extents[static_cast<std::size_t>(d)];
  }
  [[nodiscard]] std::string name(const std::string& tensor, const Point& p) const {
    std::vector<std::string> at;
    for (const check::Index& i : element->at) at.push_back(std::to_string(index_at(i, p)));
    return tensor + "[" + join(at, ", ") + "]";
  }
};

Factor factor(const core::Kernel& kernel, const ElementAt& e, const simulate::Launch& launch) {
  const core::Tensor& t = kernel[e.tensor];
  const auto input = launch.inputs.find(t.name);
  return {&e, *lie_of(t, launch), input == launch.inputs.end() ? nullptr : &input->second};
}

/// One of an output's functions, with what it reads.
struct Function {
  const check::Case* which;
  std::vector<Factor> reads;
  bool multiplies;  // sums are of products; else of elements

  /// Whether it is the one for this column.
  [[nodiscard]] bool is_for(const Point& p) const {
    return std::all_of(which->where.begin(), which->where.end(), [&](const check::ColumnBound& c) {
      return (index_at(c.index, p) < c.below) == c.holds;
    });
  }
  /// Nothing where a tensor does not reach so far. `a`: the left factor of sums, if there are any.
  [[nodiscard]] std::optional<double> at(const std::optional<Factor>& a, Point p) const {
    int64_t& k = p[static_cast<std::size_t>(Axis::k)];
    const int64_t depth = a ? a->extent(Axis::k) : 0;
    k = std::max<int64_t>(depth - 1, 0);
    if ((a && !a->has(p)) ||
        !std::all_of(reads.begin(), reads.end(), [&](const Factor& f) { return f.has(p); }))
      return std::nullopt;
    std::vector<double> operands;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (which->reads[i].factor < 0) {
        operands.push_back(reads[i].at(p));
        continue;
      }
      operands.push_back(0);
      for (k = 0; k < depth; ++k) operands.back() += a->at(p) * (multiplies ? reads[i].at(p) : 1);
    }
    return which->value.eval(operands).at(0);
  }
};

}  // namespace

double step_of(DType t) {
  switch (t) {
    case DType::float8_e4m3fn:
      return 0.25;
    case DType::float8_e5m2:
      return 0.5;
    case DType::bfloat16:
      return 1.0 / 64;
    case DType::float16:
      return 1.0 / 512;
    default:
      return 1e-5;
  }
}

Reference::Reference(const core::Kernel& kernel, const check::Means& means,
                     const simulate::Launch& launch) {
  if (means.attention) {
    attention(kernel, *means.attention, launch);
    return;
  }
  const auto a = means.sums() ? std::optional(factor(kernel, means.a, launch)) : std::nullopt;
  for (const check::Output& o : means.outputs) {
    const Factor to = factor(kernel, o.to, launch);
    const core::Tensor& tensor = kernel[o.to.tensor];
    std::vector<Function> functions;
    for (const check::Case& which : o.cases) {
      functions.push_back({&which, {}, means.multiplies()});
      for (const check::Read& r : which.reads)
        functions.back().reads.push_back(factor(kernel, r.element, launch));
    }
    Point p{};
    int64_t& slice = p[static_cast<std::size_t>(Axis::batch)];
    const int64_t batches = means.slices ? 1 : to.extent(Axis::batch);
    for (int64_t batch = 0; batch < batches; ++batch)
      for (int64_t row = 0; row < to.extent(Axis::row); ++row)
        for (int64_t column = 0; column < to.extent(Axis::column); ++column) {
          p[static_cast<std::size_t>(Axis::row)] = row;
          p[static_cast<std::size_t>(Axis::column)] = column;
          p[static_cast<std::size_t>(Axis::batch)] = batch;
          const auto f = std::find_if(functions.begin(), functions.end(),
                                      [&](const Function& one) { return one.is_for(p); });
          const auto value = f == functions.end() ? std::nullopt : f->at(a, p);
          if (!value) continue;
          std::vector<std::size_t> places = {to.offset(p)};
          for (slice = 1; means.slices && slice < to.extent(Axis::batch); ++slice)
            places.push_back(to.offset(p));
          slice = batch;
          const std::string name = to.name(tensor.name, p);
          elements_.push_back({means.slices ? "the sum of all slices at " + name : name,
                               tensor.name, std::move(places), *value,
                               step_of(tensor.element) * std::abs(*value) + 1e-4});
        }
  }
}

std::optional<std::string> Reference::wrong_element(const simulate::Outcome& outcome) const {
  for (const Element& e : elements_) {
    double found = 0;
    for (const std::size_t at : e.at) found += outcome.outputs.at(e.tensor).at(at);
    if (found == e.value || (std::isnan(found) && std::isnan(e.value))) continue;
    if (!(std::abs(found - e.value) <= e.room))
      return fmt::format("{} is {}, not {}", e.name, found, e.value);
  }
  return std::nullopt;
}

}  // namespace tessera::replay
