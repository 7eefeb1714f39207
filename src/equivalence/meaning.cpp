#include "equivalence/meaning.h"

#include <algorithm>
#include <array>

#include "base/text.h"

#include "equivalence/dot.h"
#include "equivalence/meaning_parts.h"
#include "replay/launches.h"
#include "residue/functions.h"

namespace tessera::equivalence {
namespace {

using check::Axis;
using check::ElementAt;
using residue::Value;

/// Values of row, column, batch and k, by Axis.
using Point = std::array<int64_t, 4>;

/// An element of a tensor at this launch.
struct Place {
  const ElementAt* element;
  replay::Lie lie;

  [[nodiscard]] int64_t index(std::size_t d, const Point& p) const {
    const check::Index& i = element->at[d];
    return i.axis == Axis::number ? i.number : p[static_cast<std::size_t>(i.axis)];
  }
  /// Nothing where the tensor does not reach so far: a meaning that is wrong may ask for more.
  [[nodiscard]] std::optional<int64_t> offset(const Point& p) const {
    int64_t out = 0;
    for (std::size_t d = 0; d < element->at.size(); ++d) {
      if (index(d, p) >= lie.extents[d]) return std::nullopt;
      out += index(d, p) * lie.strides[d];
    }
    return out;
  }
  [[nodiscard]] int64_t extent(Axis axis) const {
    const int d = element->place(axis);
    return d < 0 ? 1 : lie.extents[static_cast<std::size_t>(d)];
  }
  [[nodiscard]] int64_t stride(Axis axis) const {
    const int d = element->place(axis);
    return d < 0 ? 0 : lie.strides[static_cast<std::size_t>(d)];
  }
  [[nodiscard]] std::string name(const std::string& tensor, const Point& p) const {
    std::vector<std::string> at;
    for (std::size_t d = 0; d < element->at.size(); ++d) at.push_back(std::to_string(index(d, p)));
    return tensor + "[" + join(at, ", ") + "]";
  }
};

Place place(const core::Kernel& kernel, const ElementAt& e, const simulate::Launch& launch) {
  return {&e, *replay::lie_of(kernel[e.tensor], launch)};
}

int64_t& at(Point& p, Axis axis) {
  return p[static_cast<std::size_t>(axis)];
}

template <class F>
void each_point(const Place& to, const F& see) {
  Point p{};
  for (at(p, Axis::batch) = 0; at(p, Axis::batch) < to.extent(Axis::batch); ++at(p, Axis::batch))
    for (at(p, Axis::row) = 0; at(p, Axis::row) < to.extent(Axis::row); ++at(p, Axis::row))
      for (at(p, Axis::column) = 0; at(p, Axis::column) < to.extent(Axis::column);
           ++at(p, Axis::column))
        see(p);
}

/// Of what a function makes of values of these degrees.
int degree_of(const pointwise::Function& f, const std::vector<int>& arguments) {
  int most = 0, sum = 0;
  for (const int d : arguments) most = std::max(most, d), sum += d;
  if (f.name == "add" || f.name == "sub" || f.name == "maximum" || f.name == "minimum" ||
      f.name == "where")
    return most;
  // A quotient's is that of its numerator and its denominator; others are no more than a polynomial
  // of this degree over another one, of the argument and one power of it.
  constexpr int others = 8;
  return f.name == "mul" || f.name == "div" ? sum : others * sum;
}

}  // namespace

Pairs pairs_of(const std::vector<Value>& values) {
  Pairs out;
  out.reserve(values.size());
  for (const Value& v : values) out.push_back(residue::pair_of(v));
  return out;
}

void each_product(const core::Kernel& kernel, const check::Means& means,
                  const simulate::Launch& launch, const SeeElement& see) {
  const auto values_of = [&](const ElementAt& e) -> const std::vector<Value>& {
    return launch.residues->at(kernel[e.tensor].name);
  };
  const Place a = place(kernel, means.a, launch), b = place(kernel, means.b, launch);
  const Pairs left = pairs_of(values_of(means.a)), right = pairs_of(values_of(means.b));
  const int64_t depth = a.extent(Axis::k);
  for (const check::Output& o : means.outputs) {
    const Place to = place(kernel, o.to, launch);
    const std::string& name = kernel[o.to.tensor].name;
    std::vector<Place> others;
    for (const ElementAt& e : o.elements) others.push_back(place(kernel, e, launch));
    each_point(to, [&](const Point& p) {
      const auto from_a = a.offset(p), from_b = b.offset(p);
      if (!from_a || !from_b || b.extent(Axis::k) < depth) return;
      std::vector<Value> operands = {dot({left, *from_a, a.stride(Axis::k)},
                                         {right, *from_b, b.stride(Axis::k)}, depth)};
      for (std::size_t n = 0; n < others.size(); ++n) {
        const auto from = others[n].offset(p);
        if (!from) return;
        operands.push_back(values_of(o.elements[n]).at(static_cast<std::size_t>(*from)));
      }
      see(name, *to.offset(p), to.name(name, p), residue::evaluate(o.value, operands).at(0));
    });
  }
}

void each_element(const core::Kernel& kernel, const check::Means& means,
                  const simulate::Launch& launch, const SeeElement& see) {
  if (means.attention)
    each_attention(kernel, *means.attention, launch, see);
  else
    each_product(kernel, means, launch, see);
}

int64_t products_of(const core::Kernel& kernel, const check::Means& means,
                    const simulate::Launch& launch) {
  const auto elements = [&](core::TensorId t) {
    int64_t n = 1;
    const replay::Lie lie = *replay::lie_of(kernel[t], launch);
    for (const int64_t extent : lie.extents) n *= extent;
    return n;
  };
  if (means.attention) {
    const check::Attention& a = *means.attention;
    const auto key = static_cast<std::size_t>(a.k.place(a.key));
    return 2 * elements(a.o.tensor) * replay::lie_of(kernel[a.k.tensor], launch)->extents[key];
  }
  int64_t out = 0;
  for (const check::Output& o : means.outputs)
    out += elements(o.to.tensor) * place(kernel, means.a, launch).extent(Axis::k);
  return out;
}

int degree_of(const check::Means& means) {
  // A row of values, and a quotient of two sums of powers, each of its own score.
  if (means.attention) return means.attention->inner > 0 ? 16 : 4;
  int most = 0;
  for (const check::Output& o : means.outputs) {
    std::vector<int> degrees;
    for (const pointwise::Dag::Node& n : o.value.nodes) {
      using Kind = pointwise::Dag::Node::Kind;
      std::vector<int> arguments;
      for (const int i : n.arguments) arguments.push_back(degrees[static_cast<std::size_t>(i)]);
      degrees.push_back(n.kind == Kind::constant  ? 0
                        : n.kind == Kind::operand ? (n.operand == 0 ? 2 : 1)
                                                  : degree_of(*n.function, arguments));
    }
    for (const int r : o.value.results)
      most = std::max(most, degrees[static_cast<std::size_t>(r)]);
  }
  return most;
}

}  // namespace tessera::equivalence
