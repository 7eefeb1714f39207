// Matrices over F2, layouts as such matrices, and bank conflicts by rank, against enumeration.
#include <set>

#include "layout/banks.h"
#include "layout/f2_view.h"
#include "layout/testing/cases.h"

namespace tessera {
namespace {

using testing::for_cases;
using testing::L;
using testing::Random;

F2Matrix some_matrix(Random& r, int inputs, int outputs) {
  F2Matrix m;
  const bool sparse = r.one_in(2);
  for (int c = 0; c < inputs; ++c) {
    const uint64_t column = r.word(outputs);
    m.columns.push_back(sparse ? column & r.word(outputs) : column);
  }
  return m;
}

TEST(F2Matrix, ProductsAreCompositions) {
  for_cases(15, 1, [](Random& r) {
    const F2Matrix b = some_matrix(r, static_cast<int>(r.range(1, 6)), 5);
    const F2Matrix a = some_matrix(r, 5, static_cast<int>(r.range(1, 6)));
    const F2Matrix ab = multiply(a, b);
    for (uint64_t x = 0; x < uint64_t{1} << b.inputs(); ++x) {
      EXPECT_EQ(ab(x), a(b(x))) << to_string(a) << " * " << to_string(b);
      EXPECT_EQ(b(x ^ 1), b(x) ^ b(1));
    }
    return true;
  });
  EXPECT_EQ(to_string(F2Matrix{{2, 1, 3}}), "101/110");
}

TEST(F2Matrix, RankKernelAndSolutionsAreThoseOfEnumeration) {
  for_cases(25, 1, [](Random& r) {
    const F2Matrix m =
        some_matrix(r, static_cast<int>(r.range(1, 6)), static_cast<int>(r.range(1, 6)));
    std::set<uint64_t> image, zeros, spanned = {0};
    for (uint64_t x = 0; x < uint64_t{1} << m.inputs(); ++x) {
      image.insert(m(x));
      if (m(x) == 0) zeros.insert(x);
    }
    EXPECT_EQ(image.size(), uint64_t{1} << rank(m)) << to_string(m);
    for (uint64_t k : kernel(m))
      for (uint64_t x : std::set<uint64_t>(spanned)) spanned.insert(x ^ k);
    EXPECT_EQ(spanned, zeros) << to_string(m);
    EXPECT_EQ(kernel(m).size(), static_cast<std::size_t>(m.inputs() - rank(m)));
    for (uint64_t y = 0; y < 64; ++y) {
      const auto x = solve(m, y);
      EXPECT_EQ(x.has_value(), image.contains(y)) << to_string(m) << " for " << y;
      EXPECT_TRUE(!x || m(*x) == y) << to_string(m);
    }
    return true;
  });
}

TEST(F2Matrix, InverseIsOneOnBothSides) {
  for_cases(15, 20, [](Random& r) {
    const int size = static_cast<int>(r.range(1, 6));
    const F2Matrix m = some_matrix(r, size, size + (r.one_in(5) ? 1 : 0));
    const auto back = inverse(m);
    EXPECT_EQ(back.has_value(), m.outputs() <= size && rank(m) == size) << to_string(m);
    if (!back) return false;
    EXPECT_EQ(multiply(*back, m), F2Matrix::identity(size)) << to_string(m);
    EXPECT_EQ(multiply(m, *back), F2Matrix::identity(size)) << to_string(m);
    return true;
  });
}

/// f(i ^ k) == f(i) ^ f(k) ^ f(0) throughout, on a domain that is a power of two.
bool affine(const SwizzledLayout& l) {
  if ((l.size() & (l.size() - 1)) != 0) return false;
  for (int64_t bit = 1; bit < l.size(); bit *= 2)
    for (int64_t i = 0; i < l.size(); ++i)
      if (l(i ^ bit) != (l(i) ^ l(bit) ^ l(0))) return false;
  return true;
}

TEST(F2View, IsThereExactlyForAffineFunctions) {
  for_cases(25, 3, [](Random& r) {
    const bool regular = r.one_in(2);
    const SwizzledLayout l = r.swizzled(64, regular);
    const Result<F2View> v = to_f2(l);
    bool powers = true;
    for (int64_t e : flatten(l.layout().shape())) powers = powers && (e & (e - 1)) == 0;
    EXPECT_EQ(v.has_value(), powers && affine(l)) << to_string(l);
    if (!v) {
      EXPECT_EQ(v.error().code, "TS0111");
      return false;
    }
    for (int64_t i = 0; i < l.size(); ++i) EXPECT_EQ((*v)(i), l(i)) << to_string(l);
    EXPECT_EQ(is_injective(l.layout()), rank(v->matrix) == v->matrix.inputs());
    return true;
  });
}

TEST(F2View, GoesBackToTheSameFunction) {
  for_cases(15, 2, [](Random& r) {
    const SwizzledLayout l = r.swizzled(64, true);
    const Result<F2View> v = to_f2(l);
    if (!v) return false;
    const Result<SwizzledLayout> back = from_f2_swizzled(*v);
    EXPECT_TRUE(back) << to_string(l);
    EXPECT_TRUE(same_function(*back, l)) << to_string(l) << " and " << to_string(*back);
    EXPECT_LE(back->swizzle().bits, l.swizzle().bits);
    EXPECT_EQ(to_f2(*back).value(), *v);
    const Result<Slice> plain = from_f2(*v);
    EXPECT_EQ(plain.has_value(), without_swizzle(l).has_value()) << to_string(l);
    for (int64_t i = 0; plain && i < l.size(); ++i)
      EXPECT_EQ(plain->offset + plain->layout(i), l(i)) << to_string(l);
    return true;
  });
}

TEST(F2View, OfAnyMatrixIsExact) {
  for_cases(10, 40, [](Random& r) {
    const F2View v{some_matrix(r, static_cast<int>(r.range(1, 4)), 5), r.word(4)};
    const Result<Slice> plain = from_f2(v);
    if (plain) {
      for (int64_t i = 0; i < plain->layout.size(); ++i)
        EXPECT_EQ(plain->offset + plain->layout(i), v(i)) << to_string(v.matrix);
      EXPECT_EQ(to_f2(SwizzledLayout(Swizzle{}, plain->offset, plain->layout)).value(), v);
    }
    bool sums = true;
    for (int64_t i = 0; i < int64_t{1} << v.matrix.inputs(); ++i) {
      int64_t sum = v(0);
      for (int64_t bit = 1; bit <= i; bit *= 2) sum += (i & bit) != 0 ? v(bit) - v(0) : 0;
      sums = sums && sum == v(i) && ((i & (i - 1)) != 0 || v(i) >= v(0));
    }
    EXPECT_EQ(plain.has_value(), sums) << to_string(v.matrix) << " with " << v.constant;
    return plain.has_value();
  });
}

TEST(Banks, ConflictsByRankAreThoseOfEnumeration) {
  int conflicts = 0;
  for_cases(10, 3, [&](Random& r) {
    const int64_t bytes = int64_t{1} << r.range(1, 4);
    const Layout lanes = r.one_in(2) ? L("(8,4):(128,16)") : r.regular(32, true);
    const SwizzledLayout l(Swizzle{static_cast<int>(r.range(0, 3)), 4, 3}, bytes * r.range(0, 3),
                           lanes);
    const Result<F2View> v = to_f2(l);
    if (!v) return false;
    std::vector<int64_t> addresses;
    for (int64_t t = 0; t < l.size(); ++t) {
      addresses.push_back(l(t));
      if (l(t) % bytes != 0) return false;
    }
    EXPECT_EQ(bank_conflicts(*v, bytes), bank_conflicts(addresses, bytes))
        << to_string(l) << " of " << bytes;
    conflicts += bank_conflicts(addresses, bytes) > 1 ? 1 : 0;
    return true;
  });
  EXPECT_GT(conflicts, 5);
}

TEST(Banks, KnownAccesses) {
  const auto of = [](const SwizzledLayout& l, int64_t bytes) {
    std::vector<int64_t> addresses;
    for (int64_t t = 0; t < l.size(); ++t) addresses.push_back(l(t));
    return bank_conflicts(addresses, bytes);
  };
  EXPECT_EQ(of(L("32:4"), 4), 1);
  EXPECT_EQ(of(L("32:128"), 4), 32);
  EXPECT_EQ(of(L("32:0"), 4), 1) << "one word for all";
  EXPECT_EQ(of(L("32:8"), 4), 2);
  EXPECT_EQ(of(L("32:16"), 16), 1);
  // A column of 16-byte elements in 8 rows of 128 bytes: with the swizzle, all in other banks.
  EXPECT_EQ(of(L("8:128"), 16), 8);
  EXPECT_EQ(of(SwizzledLayout({3, 4, 3}, 0, L("8:128")), 16), 1);
}

}  // namespace
}  // namespace tessera
