// Laws of coalesce, fit and compose, by brute force on random layouts.
#include "layout/fit.h"
#include "layout/testing/cases.h"

namespace tessera {
namespace {

using testing::for_cases;
using testing::L;
using testing::Random;

/// Some layout of f over [0, size), by trying every factorization of size: strides are what f says
/// at the steps of the modes.
bool some_layout(int64_t size, const std::function<int64_t(int64_t)>& f,
                 std::vector<int64_t> extents = {}) {
  int64_t step = 1;
  for (int64_t e : extents) step *= e;
  if (step == size) {
    std::vector<int64_t> strides;
    step = 1;
    for (int64_t e : extents) {
      strides.push_back(f(step));
      if (strides.back() < 0) return false;
      step *= e;
    }
    const Layout l(IntTuple::flat(extents), IntTuple::flat(strides));
    for (int64_t i = 0; i < size; ++i)
      if (l(i) != f(i)) return false;
    return true;
  }
  extents.push_back(0);
  for (int64_t e = 2; e <= size / step; ++e) {
    extents.back() = e;
    if (size / step % e == 0 && some_layout(size, f, extents)) return true;
  }
  return false;
}

TEST(LayoutLaws, CoalesceKeepsTheFunctionInFewestModes) {
  for_cases(170, 1, [](Random& r) {
    const Layout l = r.layout(200);
    const Layout c = coalesce(l);
    EXPECT_EQ(c.size(), l.size());
    for (int64_t i = 0; i < l.size(); ++i) EXPECT_EQ(c(i), l(i)) << to_string(l);
    // Any layout of the same function has this one as its normal form.
    EXPECT_EQ(layout::fit(l.size(), [&](int64_t i) { return l(i); }), c) << to_string(l);
    return true;
  });
}

TEST(LayoutLaws, FitFindsALayoutExactlyWhenThereIsOne) {
  for_cases(170, 1, [](Random& r) {
    const Layout l = r.layout(24);
    std::vector<int64_t> values;
    for (int64_t i = 0; i < l.size(); ++i) values.push_back(l(i));
    if (r.one_in(2)) values[r.range(0, l.size() - 1)] += r.range(-2, 2);
    const auto f = [&](int64_t i) { return values[i]; };
    const auto fitted = layout::fit(l.size(), f);
    EXPECT_EQ(fitted.has_value(), values[0] == 0 && some_layout(l.size(), f)) << to_string(l);
    return true;
  });
}

/// Some layout with a mode for each leaf of b is a(b(i)).
bool some_composition(const Layout& a, const Layout& b) {
  const std::vector<int64_t> shape = flatten(b.shape());
  const std::vector<int64_t> stride = flatten(b.stride());
  for (std::size_t k = 0; k < shape.size(); ++k)
    if (!some_layout(shape[k], [&](int64_t i) { return a(i * stride[k]); })) return false;
  for (int64_t i = 0; i < b.size(); ++i) {
    int64_t sum = 0;
    int64_t rest = i;
    for (std::size_t k = 0; k < shape.size(); rest /= shape[k], ++k)
      sum += a(rest % shape[k] * stride[k]);
    if (sum != a(b(i))) return false;
  }
  return true;
}

TEST(LayoutLaws, ComposeIsFunctionCompositionWhereALayoutIsOne) {
  for_cases(360, 3, [](Random& r) {
    const Layout a = r.layout(60);
    const Layout b = r.layout(24);
    const Result<Layout> c = compose(a, b);
    if (b.cosize() > a.size()) {
      EXPECT_FALSE(c) << to_string(a) << " o " << to_string(b);
      return false;
    }
    EXPECT_EQ(c.has_value(), some_composition(a, b)) << to_string(a) << " o " << to_string(b);
    if (!c) return true;
    EXPECT_EQ(c->size(), b.size());
    EXPECT_TRUE(b.shape().is_leaf || c->rank() == b.rank());
    for (int64_t i = 0; i < b.size(); ++i)
      EXPECT_EQ((*c)(i), a(b(i))) << to_string(a) << " o " << to_string(b);
    return true;
  });
}

TEST(LayoutLaws, ComposeRefusesSumsThatCarry) {
  // Each mode of b alone walks 0 and 2 of (4,2); together they reach 4, in the next mode.
  EXPECT_FALSE(compose(L("(4,2):(1,100)"), L("(2,2):(2,2)")));
  EXPECT_EQ(to_string(compose(L("(4,6):(6,1)"), L("2:3")).value()), "2:18");
  EXPECT_FALSE(compose(L("8:1"), L("(2,2):(4,4)"))) << "offset 8 of 8";
}

}  // namespace
}  // namespace tessera
