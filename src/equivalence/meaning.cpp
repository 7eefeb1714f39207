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

int64_t index_at(const check::Index& i, const Point& p) {
  if (i.axis == Axis::number) return i.number;
  const int64_t at = p[static_cast<std::size_t>(i.axis)] + i.number;
  return i.modulus > 0 ? (at % i.modulus + i.modulus) % i.modulus : at;
}

/// An element of a tensor at this launch.
struct Place {
  const ElementAt* element;
  replay::Lie lie;

  [[nodiscard]] int64_t index(std::size_t d, const Point& p) const {
    return index_at(element->at[d], p);
  }
  /// Nothing where the tensor does not reach so far: a meaning that is wrong may ask for more.
  [[nodiscard]] std::optional<int64_t> offset(const Point& p) const {
    int64_t out = 0;
    for (std::size_t d = 0; d < element->at.size(); ++d) {
      if (index(d, p) < 0 || index(d, p) >= lie.extents[d]) return std::nullopt;
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
void each_point(const Place& to, int64_t batches, const F& see) {
  Point p{};
  for (at(p, Axis::batch) = 0; at(p, Axis::batch) < batches; ++at(p, Axis::batch))
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

/// Of a function's results, where sums are of degree `sum`.
std::vector<int> degrees_of(const check::Case& c, int sum) {
  using Kind = pointwise::Dag::Node::Kind;
  std::vector<int> degrees, out;
  for (const pointwise::Dag::Node& n : c.value.nodes) {
    std::vector<int> arguments;
    for (const int i : n.arguments) arguments.push_back(degrees[static_cast<std::size_t>(i)]);
    if (n.kind == Kind::operand)
      degrees.push_back(c.reads[static_cast<std::size_t>(n.operand)].factor >= 0 ? sum : 1);
    else
      degrees.push_back(n.kind == Kind::constant ? 0 : degree_of(*n.function, arguments));
  }
  for (const int r : c.value.results) out.push_back(degrees[static_cast<std::size_t>(r)]);
  return out;
}

/// Sums, and functions of them or of elements alone.
class Products {
 public:
  Products(const core::Kernel& kernel, const check::Means& means, const simulate::Launch& launch)
      : kernel_(kernel), means_(means), launch_(launch) {
    if (!means.sums()) return;
    a_ = place(kernel, means.a, launch);
    left_ = pairs_of(values_of(means.a));
    for (const ElementAt& b : means.b) right_.push_back(pairs_of(values_of(b)));
    if (!means.multiplies()) right_.push_back({residue::pair_of(residue::number(1))});
  }

  void each(const check::Output& o, const SeeElement& see) const {
    const Place to = place(kernel_, o.to, launch_);
    const std::string& name = kernel_[o.to.tensor].name;
    std::vector<std::vector<Place>> reads(o.cases.size());  // by case
    for (std::size_t c = 0; c < o.cases.size(); ++c)
      for (const check::Read& r : o.cases[c].reads)
        reads[c].push_back(place(kernel_, r.element, launch_));
    const int64_t slices = means_.slices ? to.extent(Axis::batch) : 1;
    each_point(to, means_.slices ? 1 : to.extent(Axis::batch), [&](Point p) {
      const auto c = std::find_if(o.cases.begin(), o.cases.end(),
                                  [&](const check::Case& one) { return is_for(one, p); });
      if (c == o.cases.end()) return;
      const auto value = value_at(*c, reads[static_cast<std::size_t>(c - o.cases.begin())], p);
      if (!value) return;
      const std::string text = to.name(name, p);
      std::vector<int64_t> places = {*to.offset(p)};
      for (at(p, Axis::batch) = 1; at(p, Axis::batch) < slices; ++at(p, Axis::batch))
        places.push_back(*to.offset(p));
      see(name, places, text, *value);
    });
  }

 private:
  [[nodiscard]] const std::vector<Value>& values_of(const ElementAt& e) const {
    return launch_.residues->at(kernel_[e.tensor].name);
  }
  static bool is_for(const check::Case& c, const Point& p) {
    return std::all_of(c.where.begin(), c.where.end(), [&](const check::ColumnBound& b) {
      return (index_at(b.index, p) < b.below) == b.holds;
    });
  }
  /// Nothing where a tensor does not reach so far.
  [[nodiscard]] std::optional<Value> value_at(const check::Case& c, const std::vector<Place>& reads,
                                              const Point& p) const {
    const auto from_a = a_ ? a_->offset(p) : 0;
    const int64_t depth = a_ ? a_->extent(Axis::k) : 0, step = a_ ? a_->stride(Axis::k) : 0;
    std::vector<Value> operands;
    for (std::size_t n = 0; n < reads.size(); ++n) {
      const auto from = reads[n].offset(p);
      if (!from_a || !from || (c.reads[n].factor >= 0 && reads[n].extent(Axis::k) < depth))
        return std::nullopt;
      if (c.reads[n].factor < 0) {
        operands.push_back(values_of(c.reads[n].element).at(static_cast<std::size_t>(*from)));
        continue;
      }
      const Pairs& right = right_[static_cast<std::size_t>(c.reads[n].factor)];
      operands.push_back(means_.multiplies() ? dot({left_, *from_a, step},
                                                   {right, *from, reads[n].stride(Axis::k)}, depth)
                                             : dot({left_, *from_a, step}, {right, 0, 0}, depth));
    }
    return residue::evaluate(c.value, operands).at(0);
  }

  const core::Kernel& kernel_;
  const check::Means& means_;
  const simulate::Launch& launch_;
  std::optional<Place> a_;  // nothing where nothing is summed
  Pairs left_;
  std::vector<Pairs> right_;  // by factor; of sums of elements a one
};

}  // namespace

Pairs pairs_of(const std::vector<Value>& values) {
  Pairs out;
  out.reserve(values.size());
  for (const Value& v : values) out.push_back(residue::pair_of(v));
  return out;
}

void each_element(const core::Kernel& kernel, const check::Means& means,
                  const simulate::Launch& launch, const SeeElement& see) {
  if (means.attention) return each_attention(kernel, *means.attention, launch, see);
  const Products products(kernel, means, launch);
  for (const check::Output& o : means.outputs) products.each(o, see);
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
    out +=
        elements(o.to.tensor) * (means.sums() ? place(kernel, means.a, launch).extent(Axis::k) : 1);
  return out;
}

int degree_of(const check::Means& means) {
  // A row of values, and a quotient of two sums of powers, each of its own score.
  if (means.attention) return means.attention->inner > 0 ? 16 : 4;
  int most = 0;
  for (const check::Output& o : means.outputs)
    for (const check::Case& c : o.cases)
      for (const int d : degrees_of(c, means.multiplies() ? 2 : 1)) most = std::max(most, d);
  return most;
}

}  // namespace tessera::equivalence
