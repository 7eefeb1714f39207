#include "replay/reference.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

#include "replay/launches.h"
#include "replay/reference_step.h"

namespace tessera::replay {
namespace {

using check::Axis;
using check::ElementAt;

/// Values of row, column, batch and k, by Axis.
using Point = std::array<int64_t, 4>;

struct Factor {
  const ElementAt* element;
  Lie lie;
  const std::vector<double>* values;  // of an input

  [[nodiscard]] std::size_t offset(const Point& p) const {
    int64_t out = 0;
    for (std::size_t d = 0; d < element->at.size(); ++d) {
      const check::Index& i = element->at[d];
      const int64_t at = i.axis == Axis::number ? i.number : p[static_cast<std::size_t>(i.axis)];
      out += at * lie.strides[d];
    }
    return static_cast<std::size_t>(out);
  }
  /// Whether the tensor reaches so far: a meaning that is wrong may ask for more.
  [[nodiscard]] bool has(const Point& p) const {
    for (std::size_t d = 0; d < element->at.size(); ++d) {
      const check::Index& i = element->at[d];
      if ((i.axis == Axis::number ? i.number : p[static_cast<std::size_t>(i.axis)]) >=
          lie.extents[d])
        return false;
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
    for (const check::Index& i : element->at)
      at.push_back(
          std::to_string(i.axis == Axis::number ? i.number : p[static_cast<std::size_t>(i.axis)]));
    return tensor + "[" + join(at, ", ") + "]";
  }
};

Factor factor(const core::Kernel& kernel, const ElementAt& e, const simulate::Launch& launch) {
  const core::Tensor& t = kernel[e.tensor];
  const auto input = launch.inputs.find(t.name);
  return {&e, *lie_of(t, launch), input == launch.inputs.end() ? nullptr : &input->second};
}

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
  const Factor a = factor(kernel, means.a, launch);
  const std::optional<Factor> b =
      means.multiplies() ? std::optional(factor(kernel, means.b, launch)) : std::nullopt;
  const int64_t depth = a.extent(Axis::k);
  for (const check::Output& o : means.outputs) {
    const Factor to = factor(kernel, o.to, launch);
    const core::Tensor& tensor = kernel[o.to.tensor];
    std::vector<Factor> others;
    for (const ElementAt& e : o.elements) others.push_back(factor(kernel, e, launch));
    Point p{};
    int64_t& k = p[static_cast<std::size_t>(Axis::k)];
    int64_t& slice = p[static_cast<std::size_t>(Axis::batch)];
    const int64_t batches = means.slices ? 1 : to.extent(Axis::batch);
    for (int64_t batch = 0; batch < batches; ++batch)
      for (int64_t row = 0; row < to.extent(Axis::row); ++row)
        for (int64_t column = 0; column < to.extent(Axis::column); ++column) {
          p[static_cast<std::size_t>(Axis::row)] = row;
          p[static_cast<std::size_t>(Axis::column)] = column;
          p[static_cast<std::size_t>(Axis::batch)] = batch;
          k = std::max<int64_t>(depth - 1, 0);
          if (!a.has(p) || (b && !b->has(p)) ||
              !std::all_of(others.begin(), others.end(), [&](const Factor& f) { return f.has(p); }))
            continue;
          std::vector<double> operands = {0};
          for (int64_t step = 0; step < depth; ++step) {
            k = step;
            operands[0] += a.at(p) * (b ? b->at(p) : 1);
          }
          for (const Factor& f : others) operands.push_back(f.at(p));
          const double value = o.value.eval(operands).at(0);
          std::vector<std::size_t> places = {to.offset(p)};
          for (slice = 1; means.slices && slice < to.extent(Axis::batch); ++slice)
            places.push_back(to.offset(p));
          slice = batch;
          const std::string name = to.name(tensor.name, p);
          elements_.push_back({means.slices ? "the sum of all slices at " + name : name,
                               tensor.name, std::move(places), value,
                               step_of(tensor.element) * std::abs(value) + 1e-4});
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
