// Our operations beside CuTe's, on the fixed cases of tests/cutlass/layout_cases.txt: one C++
// program on CuTe's headers prints what each is there. Where both differ, enumeration decides: the
// case then names the reason, and the reason is checked.
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "base/files.h"
#include "base/process.h"
#include "base/source_folder.h"
#include "base/text.h"
#include "layout/inverse.h"
#include "layout/max_common.h"
#include "layout/recast.h"
#include "layout/testing/cute_program.h"

namespace tessera {
namespace {

using testing::Case;
using testing::L;
using testing::Values;

Values of(const SwizzledLayout& l) {
  Values v;
  for (int i = 0; i < l.rank(); ++i) v.sizes.push_back(l.layout().mode(i).size());
  for (int64_t i = 0; i < l.size(); ++i) v.offsets.push_back(l(i));
  return v;
}
std::optional<Values> of(const Result<SwizzledLayout>& l) {
  if (!l) return std::nullopt;
  return of(*l);
}
std::optional<Values> of(const Result<Layout>& l) {
  if (!l) return std::nullopt;
  return of(SwizzledLayout(*l));
}

std::optional<Values> ours(const Case& c) {
  const auto tiler = [&] { return parse_tiler(c.second).value(); };
  const auto number = [&] { return std::stoll(c.second); };
  const SwizzledLayout s = parse_swizzled_layout(c.first).value();
  const Layout& a = s.layout();
  if (c.op == "slice") return of(slice(parse_coordinate(c.second).value(), s));
  if (c.op == "compose") return of(compose(s, tiler()));
  if (c.op == "logical_divide") return of(logical_divide(s, tiler()));
  if (c.op == "zipped_divide") return of(zipped_divide(s, tiler()));
  if (c.op == "tiled_divide") return of(tiled_divide(s, tiler()));
  if (c.op == "flat_divide") return of(flat_divide(s, tiler()));
  if (c.op == "recast") return of(recast(s, c.numbers().at(0), c.numbers().at(1)));
  if (c.op == "max_common_layout") return of(SwizzledLayout(max_common_layout(s, L(c.second))));
  if (c.op == "logical_product") return of(logical_product(a, tiler()));
  if (c.op == "zipped_product") return of(zipped_product(a, tiler()));
  if (c.op == "tiled_product") return of(tiled_product(a, tiler()));
  if (c.op == "flat_product") return of(flat_product(a, tiler()));
  if (c.op == "blocked_product") return of(blocked_product(a, L(c.second)));
  if (c.op == "raked_product") return of(raked_product(a, L(c.second)));
  if (c.op == "complement") return of(complement(a, number()));
  if (c.op == "upcast") return of(upcast(a, number()));
  if (c.op == "downcast") return of(downcast(a, number()));
  if (c.op == "coalesce_by") {
    std::string_view profile = c.second;
    return of(coalesce(a, parse_int_tuple(profile).value()));
  }
  if (c.op == "coalesce") return of(SwizzledLayout(coalesce(a)));
  if (c.op == "right_inverse") return of(SwizzledLayout(right_inverse(a)));
  if (c.op == "left_inverse") return of(left_inverse(a));
  throw std::logic_error("no such operation: " + c.op);
}

std::map<int64_t, int> bits(const std::vector<int64_t>& offsets, int64_t width) {
  std::map<int64_t, int> out;
  for (int64_t o : offsets)
    for (int64_t b = 0; b < width; ++b) ++out[o * width + b];
  return out;
}

/// Whether enumeration bears out why CuTe's result is another.
bool holds(const Case& c, const Values& cute) {
  const SwizzledLayout a = parse_swizzled_layout(c.first).value();
  if (c.reason == "outside") {  // it walks past the end of the layout
    const Tiler t = parse_tiler(c.second).value();
    if (c.op != "compose") return static_cast<int64_t>(cute.offsets.size()) > a.size();
    return t.whole().cosize() > a.size();
  }
  if (c.reason == "carry") {  // modes overlap, so it is not the composition
    const Layout b = L(c.second);
    for (int64_t i = 0; i < b.size(); ++i)
      if (cute.offsets[i] != a(b(i))) return true;
  }
  if (c.reason == "bits") {  // it reaches other bits
    const bool up = c.op == "upcast";
    const int64_t from = c.op == "recast" ? c.numbers().at(0) : up ? 1 : c.numbers().at(0);
    const int64_t to = c.op == "recast" ? c.numbers().at(1) : up ? c.numbers().at(0) : 1;
    return bits(of(a).offsets, from) != bits(cute.offsets, to);
  }
  if (c.reason == "apart") {  // of rows of wide elements: the swizzle moves the parts of one apart
    const int64_t parts = c.numbers().at(1) / c.numbers().at(0);
    for (int64_t i = 0; i < a.size(); ++i) {
      const int64_t row = i % cute.sizes.at(0);
      const int64_t column = i / cute.sizes.at(0);
      const int64_t wide = cute.offsets[row + column / parts * cute.sizes[0]];
      if (a.at({row, column}) != wide * parts + column % parts) return true;
    }
  }
  if (c.reason == "repeated") return !is_injective(a.layout());
  if (c.reason == "shorter") {  // ours is longer, and right
    const Values mine = ours(c).value();
    bool right = mine.offsets.size() > cute.offsets.size();
    for (std::size_t i = 0; i < mine.offsets.size(); ++i)
      right = right && a(mine.offsets[i]) == static_cast<int64_t>(i);
    return right;
  }
  return false;
}

TEST(Cute, AgreesOnFixedCasesOrIsWrongWhereListed) {
  const std::vector<Case> cases =
      testing::read_cases(read_file(source_folder() + "/tests/cutlass/layout_cases.txt"));
  EXPECT_GE(cases.size(), 300U);
  const std::vector<std::string> compiler = testing::cute_compiler();
  if (compiler.empty()) GTEST_SKIP() << "no CUTLASS or CUDA headers on this machine";
  const std::vector<Values> theirs = testing::run_cute(compiler, cases);
  ASSERT_EQ(theirs.size(), cases.size());
  std::set<std::string> reasons;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const std::optional<Values> mine = ours(c);
    const bool same = mine == theirs[i];
    if (c.reason.empty()) {
      EXPECT_TRUE(same) << c.line << ": CuTe says " << to_string(theirs[i]) << ", we say "
                        << (mine ? to_string(*mine) : "nothing");
    } else {
      reasons.insert(c.reason);
      EXPECT_FALSE(same) << c.line << ": both agree";
      EXPECT_TRUE(holds(c, theirs[i])) << c.line << ": CuTe says " << to_string(theirs[i]);
    }
  }
  EXPECT_EQ(reasons.size(), 6U);
}

}  // namespace
}  // namespace tessera
