#include "core/testing/same.h"

#include <algorithm>

#include "core/lambda.h"

namespace tessera::core::testing {
namespace {

bool same(Term a, Term b) {
  if (!a || !b) return !a == !b;
  return term::to_string(a) == term::to_string(b);
}

template <class T, class Same>
bool all(const std::vector<T>& a, const std::vector<T>& b, Same&& one) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), one);
}
bool same(const std::vector<Term>& a, const std::vector<Term>& b) {
  return all(a, b, [](Term x, Term y) { return same(x, y); });
}

bool same_parameter(Term a, Term b) {
  const term::Bounds &x = a->symbol->bounds, &y = b->symbol->bounds;
  return a->symbol->name == b->symbol->name && same(x.lower, y.lower) && same(x.upper, y.upper) &&
         x.modulus == y.modulus && x.residue == y.residue;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.name == b.name && a.element == b.element && same(a.extents, b.extents) &&
         same(a.strides, b.strides) && a.access == b.access;
}
bool same(const Shared& a, const Shared& b) {
  return a.name == b.name && a.element == b.element && a.layout == b.layout &&
         a.swizzle == b.swizzle && a.at == b.at;
}
bool same(const Barriers& a, const Barriers& b) {
  return a.name == b.name && a.count == b.count && a.at == b.at;
}
bool same(const Registers& a, const Registers& b) {
  return a.name == b.name && a.element == b.element && a.tile == b.tile && a.layout == b.layout;
}

/// Two kernels while their ops are compared.
struct Pair {
  const Kernel &a, &b;

  [[nodiscard]] bool same_map(const TensorMap& x, const TensorMap& y) const {
    return x.name == y.name && same(a[x.tensor], b[y.tensor]) && x.dims == y.dims &&
           x.box == y.box && x.swizzle == y.swizzle && x.fill == y.fill && x.rounded == y.rounded;
  }

  bool operator()(const SharedAt& x, const SharedAt& y) const {
    return same(a[x.shared], b[y.shared]) && same(x.at, y.at);
  }
  bool operator()(const BarrierAt& x, const BarrierAt& y) const {
    return same(a[x.barriers], b[y.barriers]) && same(x.slot, y.slot);
  }
  bool operator()(const GlobalAt& x, const GlobalAt& y) const {
    return same(a[x.tensor], b[y.tensor]) && same(x.at, y.at);
  }
  bool operator()(const MapRef& x, const MapRef& y) const { return same_map(a[x.map], b[y.map]); }
  bool operator()(const Slice& x, const Slice& y) const {
    return same(a[x.registers], b[y.registers]) && same(x.first, y.first);
  }
  bool operator()(const Integers& x, const Integers& y) const { return same(x.values, y.values); }

  [[nodiscard]] bool same_run(const Run& x, const Run& y) const {
    return same(a[x.registers], b[y.registers]) && same(x.first, y.first) && x.steps == y.steps;
  }

  bool operator()(const Issue& x, const Issue& y) const {
    return x.form == y.form && x.choices == y.choices && variants(x.arguments, y.arguments);
  }
  bool operator()(const Compute& x, const Compute& y) const {
    const auto run = [&](const Run& r, const Run& s) { return same_run(r, s); };
    const auto input = [&](const std::variant<Run, Term>& r, const std::variant<Run, Term>& s) {
      const auto *u = std::get_if<Run>(&r), *v = std::get_if<Run>(&s);
      if (u == nullptr || v == nullptr) return u == v && same(std::get<Term>(r), std::get<Term>(s));
      return same_run(*u, *v);
    };
    return lambda_text(*x.dag, x.inputs.size()) == lambda_text(*y.dag, y.inputs.size()) &&
           all(x.inputs, y.inputs, input) && all(x.results, y.results, run) && x.count == y.count &&
           same(x.element, y.element);
  }
  bool operator()(const Declare& x, const Declare& y) const {
    return same(a[x.registers], b[y.registers]);
  }
  bool operator()(const For& x, const For& y) const {
    const auto carried = [&](const Carried& u, const Carried& v) {
      return same(u.symbol, v.symbol) && same(u.amount, v.amount);
    };
    return same(x.counter, y.counter) && same(x.lower, y.lower) && same(x.upper, y.upper) &&
           same(x.step, y.step) && x.unroll == y.unroll && all(x.carried, y.carried, carried) &&
           bodies(x.body, y.body);
  }
  bool operator()(const If& x, const If& y) const {
    return same(x.condition, y.condition) && bodies(x.body, y.body) &&
           bodies(x.otherwise, y.otherwise);
  }
  bool operator()(const Elected& x, const Elected& y) const { return bodies(x.body, y.body); }
  bool operator()(const Role& x, const Role& y) const {
    return x.name == y.name && x.first_warp == y.first_warp && x.warps == y.warps &&
           same(x.warp, y.warp) && bodies(x.body, y.body);
  }

  bool operator()(const Tag& x, const Tag& y) const {
    return variants(std::vector{x.at}, std::vector{y.at}) && x.name == y.name &&
           same(x.value, y.value) && same_over(x.over, y.over);
  }
  bool operator()(const AssertTag& x, const AssertTag& y) const {
    const auto *u = std::get_if<Tagged>(&x.to), *v = std::get_if<Tagged>(&y.to);
    const bool to = u == nullptr || v == nullptr
                        ? u == v && same(std::get<Term>(x.to), std::get<Term>(y.to))
                        : variants(std::vector{*u}, std::vector{*v});
    return variants(std::vector{x.at}, std::vector{y.at}) && x.name == y.name &&
           x.apart == y.apart && to && same_over(x.over, y.over);
  }
  [[nodiscard]] static bool same_over(const std::vector<Term>& x, const std::vector<Term>& y) {
    return all(x, y, [](Term u, Term v) {
      return same(u, v) && same(u->symbol->bounds.upper, v->symbol->bounds.upper);
    });
  }

  /// Of different alternatives.
  template <class T, class U>
  bool operator()(const T&, const U&) const {
    return false;
  }

  template <class Variant>
  [[nodiscard]] bool variants(const std::vector<Variant>& x, const std::vector<Variant>& y) const {
    return all(x, y, [&](const Variant& u, const Variant& v) { return std::visit(*this, u, v); });
  }
  [[nodiscard]] bool bodies(const Body& x, const Body& y) const {
    return all(x, y, [&](const Op& u, const Op& v) { return std::visit(*this, u.node, v.node); });
  }
};

template <class T>
bool same_list(const std::vector<T>& a, const std::vector<T>& b) {
  return all(a, b, [](const T& x, const T& y) { return same(x, y); });
}

}  // namespace

bool same(const Kernel& a, const Kernel& b) {
  const Pair pair{a, b};
  return a.name == b.name && a.threads == b.threads && a.cluster == b.cluster &&
         a.min_blocks == b.min_blocks && same(a.grid, b.grid) && a.constants == b.constants &&
         a.means == b.means && all(a.parameters, b.parameters, same_parameter) &&
         same_list(a.tensors, b.tensors) && same_list(a.shared, b.shared) &&
         same_list(a.barriers, b.barriers) &&
         all(a.maps, b.maps,
             [&](const TensorMap& x, const TensorMap& y) { return pair.same_map(x, y); }) &&
         pair.bodies(a.body, b.body);
}

}  // namespace tessera::core::testing
