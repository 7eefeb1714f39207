#include "tile/parse.h"

#include <gtest/gtest.h>

#include "tile/interpret.h"
#include "tile/print.h"

namespace tessera::tile {
namespace {

const std::string good = R"py(@kernel(threads=2, min_blocks=3)
def twice(x: Tensor[f32, 5, 4], y: Tensor[f32, 5, 4, out], ROWS: const = 2):
    a = view(x, layout="(5,4):(4,1)")
    b = view(y, layout="(5,4):(4,1)")
    for r in tiles(span(5, 2)):
        t = load(a[r, :], cover=[2, 4], layout="(2,4):(4,1)")
        total = full(value=0, like=tile(f32, [cut(2, r), 1], layout="(2,1):(1,0)"))
        sum_0 = carry(total)
        for s in steps(span(3, 1)):
            part = reduce(t, by=sum, axis=1)
            next = map(sum_0, part, by=lambda x0, x1: add(x0, x1))
            sum_0 = next
        sums = sum_0
        wide = broadcast(sums, like=tile(f32, [cut(2, r), 4], layout="(2,4):(4,1)"))
        z = map(t, wide, by=lambda x0, x1: mul((t2 := add(x0, x1)), t2))
        store(z, b[r, :])
)py";

Result<Program> of(const std::string& text) {
  return parse(Source("k.py", text));
}

TEST(Parse, AProgramIsWhatItsTextSays) {
  const Result<Program> p = of(good);
  ASSERT_TRUE(p) << to_text(p.error());
  EXPECT_EQ(to_string(*p), good);
  EXPECT_EQ(p->kernels[0].threads, 2);
  EXPECT_EQ(p->kernels[0].min_blocks, 3);
  EXPECT_EQ(p->kernels[0].constants.at("ROWS"), 2);
  std::vector<double> x(20);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i);
  const Result<Memory> m = interpret(*p, {x, {}});
  ASSERT_TRUE(m) << to_text(m.error());
  for (int row = 0; row < 5; ++row)
    for (int column = 0; column < 4; ++column) {
      const double of_row = 3 * (16 * row + 6);
      EXPECT_EQ(m->data[1][4 * row + column],
                (4 * row + column + of_row) * (4 * row + column + of_row));
    }
}

TEST(Parse, WhatSaysTheSameInOtherWordsIsTheSameProgram) {
  std::string other = good;
  other.replace(other.find("    t = "), 0, "    # rows of two\n    ");
  ASSERT_TRUE(of(other)) << to_text(of(other).error());
  EXPECT_TRUE(*of(other) == *of(good));
  other = good;
  other.replace(other.find("value=0, "), 9, "");
  other.replace(other.find("like=tile(f32, [cut(2, r), 1]"), 0, "value=0.0, ");
  ASSERT_TRUE(of(other)) << to_text(of(other).error());
  EXPECT_TRUE(*of(other) == *of(good));
  other.replace(other.find("axis=1"), 6, "axis=1, ");
  EXPECT_TRUE(*of(other) == *of(good));
}

/// `good` with one piece exchanged, and what is told: the place, the piece that is marked, the
/// words.
struct Bad {
  const char *from, *to, *marked, *told;
  const char* code = "TS0810";
};

const Bad bad[] = {
    {"load(a[r, :]", "lod(a[r, :]", "lod", "no operation is called `lod`"},
    {"load(a[r, :]", "load(c[r, :]", "c", "`c` does not fit here"},
    {"load(a[r, :]", "load(a", "a", "`a` does not fit here"},
    {"load(a[r, :]", "load(a[q, :]", "q", "`q` does not fit here"},
    {"load(a[r, :]", "load(a[r]", "load(a[r], cover=[2, 4], layout=\"(2,4):(4,1)\")",
     "a tile of `f32[5,4]` has 1 indices for 2 modes", "TS0411"},
    {"cover=[2, 4], ", "", "load(a[r, :], layout=\"(2,4):(4,1)\")",
     "`load` is not told its `cover`"},
    {"layout=\"(2,4):(4,1)\")\n        total", "layout=\"(2,4:(4,1)\")\n        total",
     "\"(2,4:(4,1)\"", "`\"(2,4:(4,1)\"` does not fit here"},
    {"by=sum", "by=min", "min", "`min` does not fit here"},
    {"reduce(t, by=sum", "reduce(by=sum", "reduce(by=sum, axis=1)", "`reduce` is given 0 values"},
    {"store(z, b[r, :])", "store(z, b[r, :], z)", "store(z, b[r, :], z)",
     "`store` is given 3 values"},
    {"axis=1", "axis=2", "reduce(t, by=sum, axis=2)", "f32[2,4] has no axis 2 to reduce", "TS0411"},
    {"axis=1", "axis=1, keep=True", "keep=True", "`reduce` has no `keep`"},
    {"lambda x0, x1: add(x0, x1)", "lambda x0, x1: ad(x0, x1)", "ad",
     "no pointwise function is called `ad`"},
    {"lambda x0, x1: add(x0, x1)", "lambda x0, x1: add(x0)", "add(x0)",
     "`add` is given 1 arguments"},
    {"for s in steps(span(3, 1))", "for s in stepz(span(3, 1))", "stepz",
     "no operation is called `stepz`"},
    {"for s in steps(span(3, 1))", "for s, u in steps(span(3, 1))", "for s, u in steps(span(3, 1))",
     "2 variables walk over 1 spans"},
    {"for s in steps(span(3, 1))", "if steps(span(3, 1))", "steps(span(3, 1))",
     "`steps` does not open this kind of block"},
    {"            sum_0 = next\n", "            sum_1 = next\n", "sum_1 = next",
     "the block does not end with what it carries"},
    {"        sums = sum_0", "        sums = total", "sums = total",
     "carried values come out otherwise than they went in"},
    {"part = reduce", "t = reduce", "t = reduce(t, by=sum, axis=1)", "`t` is defined already"},
    {"threads=2", "threads=0", "threads=0", "a kernel is not told this"},
    {"ROWS: const = 2", "ROWS: const", "ROWS", "a constant has no value"},
    {"y: Tensor[f32, 5, 4, out]", "y: Tensor[f99, 5, 4, out]", "f99", "this is no element type"},
    {"y: Tensor[f32, 5, 4, out]", "y: Tensor[f32, 5, 4, strides(4), out]", "Tensor",
     "`y` has 2 extents and 1 strides"},
    {"view(y, ", "view(w, ", "w", "`w` does not fit here"},
    {"(5,4):(4,1)\")\n    for", "(5,5):(5,1)\")\n    for", "view(y, layout=\"(5,5):(5,1)\")",
     "the view (5,5):(5,1) from element 0 leaves `y`", "TS0411"},
    {"        store(z, b[r, :])", "        store(z, b[r, :])\n    while True:\n        pass",
     "while", "`while` is not in the language", "TS0804"},
};

TEST(Parse, EveryErrorHasItsPlace) {
  for (const Bad& b : bad) {
    std::string text = good;
    const std::size_t at = text.find(b.from);
    ASSERT_NE(at, std::string::npos) << b.from;
    text.replace(at, std::string(b.from).size(), b.to);
    const Result<Program> p = of(text);
    ASSERT_FALSE(p) << text;
    const Diagnostic& d = p.error();
    EXPECT_EQ(d.message, b.told) << to_text(d);
    EXPECT_EQ(d.code, b.code) << to_text(d);
    ASSERT_FALSE(d.labels.empty()) << to_text(d);
    const Label& l = d.labels[0];
    EXPECT_EQ(l.line.substr(l.from.column - 1, l.length), b.marked) << to_text(d);
  }
}

}  // namespace
}  // namespace tessera::tile
