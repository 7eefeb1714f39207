// Expressions by their texts, and by their values: a C++ program computes them beside term's own
// evaluation.
#include "lower/expression.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/process.h"
#include "base/source_folder.h"

#include "core/builder.h"
#include "lower/codes.h"
#include "term/evaluate.h"

namespace tessera::lower {
namespace {

using core::Builder;
using term::Term;

class LowerExpression : public ::testing::Test {
 protected:
  LowerExpression() {
    for (const auto& [name, low, high] :
         {std::tuple("n", 0, 1 << 20), {"m", 1, 1 << 20}, {"s", -1000, 1000}, {"d", 1, 100}})
      expressions_.name(builder_.parameter(name, low, high), name);
    const Term wide = builder_.parameter("w", 0, int64_t{1} << 40);
    expressions_.name(wide, "w");
  }
  Term parsed(const std::string& text) {
    const Result<Term> t = term::parse(*builder_.kernel().pool, text);
    EXPECT_TRUE(t) << text;
    return *t;
  }
  std::string text(const std::string& term) { return expressions_.text(parsed(term)); }

  Builder builder_{"k", 128};
  Ranges ranges_{builder_.kernel()};
  std::vector<Diagnostic> refused_;
  Expressions expressions_{ranges_, [this](Diagnostic d) { refused_.push_back(std::move(d)); }};
};

TEST_F(LowerExpression, Texts) {
  EXPECT_EQ(text("(n + 127) // 128"), "(n + 127) >> 7");
  EXPECT_EQ(text("s % 8"), "s & 7");
  EXPECT_EQ(text("n % 5"), "int(uint32_t(n) % uint32_t(5))");
  EXPECT_EQ(text("s // d"), "tessera::floor_divide(s, d)");
  EXPECT_EQ(text("n * m"), "int64_t(n) * int64_t(m)");
  EXPECT_EQ(text("w % 4"), "int(uint32_t(w) & 3u)");
  EXPECT_EQ(text("w // 8 % 4"), "int((uint32_t(w) >> 3) & 3u)");
  EXPECT_EQ(text("select(n < m, n, 7)"), "(n < m) ? n : 7");
  EXPECT_EQ(text("w < n"), "w < int64_t(n)");
  EXPECT_EQ(text("n - n % 1"), "n - 0");
  EXPECT_TRUE(refused_.empty());
}

TEST_F(LowerExpression, HaveTheValuesOfTheirTerms) {
  const std::vector<std::string> terms = {"n + m * 3 - s",
                                          "(n - m) // 7",
                                          "(n - m) % 7",
                                          "(n * m + w) // 5",
                                          "(n * m - w) % 16",
                                          "s // d",
                                          "s % d",
                                          "min(n, w) - max(s, d)",
                                          "select(s < 0, n, m)",
                                          "n ^ m & 255 | d",
                                          "n * m % 6",
                                          "w // 64 % 4",
                                          "(s << 3) + (n >> 2)",
                                          "w // d % 3",
                                          "(n * 4096 - w) // 4096 % 2",
                                          "select(n == m or not s < d, 1, 0)"};
  const std::vector<std::array<int64_t, 5>> points = {
      {0, 1, -1000, 1, 0},
      {1048575, 1048575, 999, 99, (int64_t{1} << 40) - 1},
      {12345, 77, -7, 3, 5000000},
      {4096, 4096, 0, 7, int64_t{1} << 33},
      {7, 1048575, -13, 64, 8589934591}};
  std::string program = "#include <cstdio>\n#include \"tessera/integers.h\"\nint main() {\n";
  std::string expected;
  for (const auto& p : points) {
    const term::Assignment at{
        {{"n", p[0]}, {"m", p[1]}, {"s", p[2]}, {"d", p[3]}, {"w", p[4]}}, {}, {}};
    program +=
        fmt::format("  {{ const int n = {}, m = {}, s = {}, d = {}; const int64_t w = {}L;\n", p[0],
                    p[1], p[2], p[3], p[4]);
    for (const std::string& t : terms) {
      program += fmt::format("    std::printf(\"%lld\\n\", (long long)({}));\n", text(t));
      expected += fmt::format("{}\n", *term::evaluate(parsed(t), at));
    }
    program += "  }\n";
  }
  const TemporaryFolder folder("expressions");
  const std::string source = (folder.path() / "p.cpp").string(), binary = source + ".out";
  write_file_atomically(source, program + "}\n");
  const Finished built = run({.argv = {"g++", "-std=c++17", "-fsanitize=undefined", "-I",
                                       source_folder() + "/include", source, "-o", binary},
                              .folder = {},
                              .env = {}},
                             std::chrono::minutes(1));
  ASSERT_TRUE(built.ok()) << built.output;
  EXPECT_EQ(run({.argv = {binary}, .folder = {}, .env = {}}, std::chrono::minutes(1)).output,
            expected);
  EXPECT_TRUE(refused_.empty());
}

TEST_F(LowerExpression, RefusesWhatHasNoValue) {
  builder_.take(builder_.kernel().pool->parameter("unknown"));
  text("unknown + 1");
  ASSERT_FALSE(refused_.empty());
  EXPECT_EQ(refused_.front().code, "TS0851");
  refused_.clear();
  EXPECT_TRUE(builder_.kernel().pool->memory("table", 1));
  text("table[n]");
  ASSERT_FALSE(refused_.empty());
  EXPECT_EQ(refused_.front().code, "TS0850");
}

TEST(LowerBrackets, AreStrippedWhereTheyBelongTogether) {
  EXPECT_EQ(without_brackets("(a + b)"), "a + b");
  EXPECT_EQ(without_brackets("(a) + (b)"), "(a) + (b)");
  EXPECT_EQ(without_brackets("a"), "a");
}

}  // namespace
}  // namespace tessera::lower
