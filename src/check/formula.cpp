#include "check/formula.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

namespace tessera::check {
namespace {

uint64_t mixed(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15U + (h << 6U) + (h >> 2U);
  h = (h ^ (h >> 30U)) * 0xbf58476d1ce4e5b9U;
  return h ^ (h >> 27U);
}

const pointwise::Function& function(std::string_view name) {
  return *pointwise::find(name);
}

/// Those with two operands that may be exchanged, besides sums and products.
bool commutes(const pointwise::Function& f) {
  return f.name == "minimum" || f.name == "maximum" || f.name == "eq" || f.name == "ne";
}

}  // namespace

std::size_t Formulas::Hash::operator()(const Node& n) const {
  uint64_t h = mixed(static_cast<uint64_t>(n.kind), std::bit_cast<uint64_t>(n.number));
  h = mixed(h, reinterpret_cast<uintptr_t>(n.function));
  h = mixed(h, static_cast<uint64_t>(n.elements));
  for (Id a : n.arguments) h = mixed(h, static_cast<uint64_t>(a));
  return h;
}

std::size_t Formulas::Hash::operator()(const Elements& e) const {
  uint64_t h = mixed(static_cast<uint64_t>(e.tensor), static_cast<uint64_t>(e.factor));
  for (int b : e.bases) h = mixed(h, static_cast<uint64_t>(b));
  for (int64_t i : e.at) h = mixed(h, static_cast<uint64_t>(i));
  return h;
}

Formulas::Id Formulas::intern(Node n) {
  const auto found = known_.find(n);
  if (found != known_.end()) return found->second;
  for (Id a : n.arguments) {
    std::vector<Id> both;
    std::set_union(n.sums.begin(), n.sums.end(), at(a).sums.begin(), at(a).sums.end(),
                   std::back_inserter(both));
    n.sums = std::move(both);
  }
  const Id id = static_cast<Id>(nodes_.size());
  if (n.kind == Node::Kind::elements &&
      elements_[static_cast<std::size_t>(n.elements)].tensor == Elements::of_sum)
    n.sums = {id};
  nodes_.push_back(n);
  known_.emplace(std::move(n), id);
  return id;
}

Formulas::Id Formulas::number(double value) {
  return intern({.kind = Node::Kind::number, .number = value == 0 ? 0 : value});
}

Formulas::Id Formulas::elements(Elements e) {
  const auto [place, is_new] = known_elements_.emplace(e, static_cast<int>(elements_.size()));
  if (is_new) elements_.push_back(std::move(e));
  return intern({.kind = Node::Kind::elements, .elements = place->second});
}

/// Of a sum: leaves out pairs x and x * -1.
void Formulas::cancel(std::vector<Id>& of) const {
  for (std::size_t i = 0; i < of.size();) {
    const Node& n = at(of[i]);
    const auto is_minus_one = [&](Id a) {
      return at(a).kind == Node::Kind::number && at(a).number == -1;
    };
    auto x = of.end();
    if (n.kind == Node::Kind::product && n.arguments.size() == 2)
      for (const std::size_t other : {0U, 1U})
        if (is_minus_one(n.arguments[1 - other]))
          x = std::find(of.begin(), of.end(), n.arguments[other]);
    if (x == of.end()) {
      ++i;
      continue;
    }
    const auto at_x = static_cast<std::size_t>(x - of.begin());
    of.erase(of.begin() + static_cast<std::ptrdiff_t>(std::max(i, at_x)));
    of.erase(of.begin() + static_cast<std::ptrdiff_t>(std::min(i, at_x)));
    i = 0;
  }
}

Formulas::Id Formulas::added(Id before, Id whole, Id last) {
  if (before == none) return none;
  return many(Node::Kind::sum, {before, whole, many(Node::Kind::product, {last, number(-1)})});
}

/// A sum or a product: operands of the same kind are taken apart, numbers are put together.
Formulas::Id Formulas::many(Node::Kind kind, const std::vector<Id>& of) {
  const bool is_sum = kind == Node::Kind::sum;
  double constant = is_sum ? 0 : 1;
  std::vector<Id> out;
  const auto take = [&](Id a) {
    if (at(a).kind != Node::Kind::number) return out.push_back(a);
    constant = is_sum ? constant + at(a).number : constant * at(a).number;
  };
  for (Id a : of) {
    if (at(a).kind != kind) {
      take(a);
      continue;
    }
    const std::vector<Id> inner = at(a).arguments;
    for (Id b : inner) take(b);
  }
  if (is_sum) cancel(out);
  if (constant != (is_sum ? 0 : 1) || out.empty()) out.push_back(number(constant));
  if (out.size() == 1) return out[0];
  std::sort(out.begin(), out.end());
  return intern({.kind = kind, .arguments = std::move(out)});
}

Formulas::Id Formulas::call(const pointwise::Function& f, std::vector<Id> arguments) {
  static const pointwise::Function *const plus = &function("add"), *const minus = &function("sub"),
                                          *const times = &function("mul"),
                                          *const negated = &function("neg");
  if (std::find(arguments.begin(), arguments.end(), none) != arguments.end()) return none;
  if (&f == plus) return many(Node::Kind::sum, arguments);
  if (&f == times) return many(Node::Kind::product, arguments);
  if (&f == negated) return many(Node::Kind::product, {arguments[0], number(-1)});
  if (&f == minus)
    return many(Node::Kind::sum,
                {arguments[0], many(Node::Kind::product, {arguments[1], number(-1)})});
  if (std::all_of(arguments.begin(), arguments.end(),
                  [&](Id a) { return at(a).kind == Node::Kind::number; })) {
    std::vector<double> values;
    for (Id a : arguments) values.push_back(at(a).number);
    return number(f.eval(values));
  }
  if (commutes(f)) std::sort(arguments.begin(), arguments.end());
  return intern({.kind = Node::Kind::call, .function = &f, .arguments = std::move(arguments)});
}

std::vector<Formulas::Id> Formulas::results(const pointwise::Dag& dag,
                                            const std::vector<Id>& operands) {
  using Kind = pointwise::Dag::Node::Kind;
  std::vector<Id> values;
  values.reserve(dag.nodes.size());
  for (const pointwise::Dag::Node& n : dag.nodes) {
    if (n.kind == Kind::operand) {
      values.push_back(operands[static_cast<std::size_t>(n.operand)]);
    } else if (n.kind == Kind::constant) {
      values.push_back(number(n.constant));
    } else {
      std::vector<Id> arguments;
      for (int a : n.arguments) arguments.push_back(values[static_cast<std::size_t>(a)]);
      values.push_back(call(*n.function, std::move(arguments)));
    }
  }
  std::vector<Id> out;
  for (int r : dag.results) out.push_back(values[static_cast<std::size_t>(r)]);
  return out;
}

const std::vector<Formulas::Id>& Formulas::sums_of(Id f) const {
  static const std::vector<Id> nothing;
  return f == none ? nothing : at(f).sums;
}

const Elements& Formulas::elements_of(Id f) const {
  return elements_[static_cast<std::size_t>(at(f).elements)];
}

std::vector<Formulas::Id> Formulas::leaves(Id f) const {
  std::vector<Id> out, open = {f};
  while (!open.empty() && f != none) {
    const Id next = open.back();
    open.pop_back();
    if (at(next).kind == Node::Kind::elements) out.push_back(next);
    open.insert(open.end(), at(next).arguments.begin(), at(next).arguments.end());
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// With numbers between -2 and 2 for the elements, each its own.
// NOLINTNEXTLINE(misc-no-recursion): formulas nest
double Formulas::value(Id f, int lane, uint64_t seed) const {
  const Node& n = at(f);
  if (n.kind == Node::Kind::number) return n.number;
  if (n.kind == Node::Kind::elements) {
    const Elements& e = elements_[static_cast<std::size_t>(n.elements)];
    uint64_t h =
        mixed(mixed(seed, static_cast<uint64_t>(e.tensor)), static_cast<uint64_t>(e.factor));
    for (std::size_t d = 0; d < e.bases.size(); ++d) {
      h = mixed(h, static_cast<uint64_t>(e.bases[d]));
      h = mixed(h,
                static_cast<uint64_t>(e.at[d * Elements::lanes + static_cast<std::size_t>(lane)]));
    }
    return static_cast<double>(mixed(h, 1) >> 11U) * 0x1p-51 - 2;
  }
  std::vector<double> values;
  for (Id a : n.arguments) values.push_back(value(a, lane, seed));
  if (n.kind == Node::Kind::call) return n.function->eval(values);
  double out = n.kind == Node::Kind::sum ? 0 : 1;
  for (double v : values) out = n.kind == Node::Kind::sum ? out + v : out * v;
  return out;
}

bool Formulas::differ(Id a, Id b, int lane) const {
  if (a == none || b == none) return a != b;
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    const double x = value(a, lane, seed), y = value(b, lane, seed);
    if (std::isfinite(x) && std::isfinite(y) &&
        std::fabs(x - y) > 1e-6 * std::max({1.0, std::fabs(x), std::fabs(y)}))
      return true;
  }
  return false;
}

}  // namespace tessera::check
