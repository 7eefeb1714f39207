// Tags and assertions of kernel files: what they become in the core, that nothing else comes out
// otherwise for them, and what is refused.
#include <gmock/gmock.h>

#include "core/print.h"
#include "core/testing/same.h"
#include "core/walk.h"
#include "language/language.h"

namespace tessera::language {
namespace {

using ::testing::HasSubstr;

const std::string head =
    "from tessera.language import *\n\n"
    "@kernel(threads=128)\n"
    "def k(M: index(), X: Tensor[f32, \"M\", 64], Y: Tensor[f32, \"M\", 64, out]):\n"
    "    s = shared(f32, [2, 8, 32])\n";

Result<core::Kernel> made(const std::string& lines) {
  return elaborate({"k.py", head + lines}, "k");
}
std::string text(const std::string& lines) {
  const Result<core::Kernel> k = made(lines);
  return k ? core::to_string(*k) : to_text(k.error());
}

TEST(LanguageTags, AreOpsOfTheirOwn) {
  const std::string k = text(
      "    tag(X, row=lambda i, j: i, group=lambda i, j: j // 8 % 4 ^ i & 3)\n"
      "    for m in tiles(M, 4):\n"
      "        x = load(X[m, :], lanes=32)\n"
      "        assert_tag(x, row=lambda i, j: m.start + i)\n"
      "        reset_tags(x, \"group\")\n"
      "        y = registers(f32, [4, 64], like=x)\n"
      "        y[:] = relu(x)\n"
      "        assert_same(y, x, \"row\")\n"
      "        assert_apart(s[0], s[1], \"row\", axis=1)\n"
      "        store(y, Y[m, :])\n");
  EXPECT_THAT(k, HasSubstr("tag(X[i, j], \"row\", i, over=[(i, M), (j, 64)])"));
  EXPECT_THAT(k, HasSubstr("tag(X[i, j], \"group\", j // 8 % 4 ^ i & 3, over=[(i, M), (j, 64)])"));
  EXPECT_THAT(k, HasSubstr("assert_tag(x[e0], \"row\", "));
  EXPECT_THAT(k, HasSubstr("reset_tag(x[e0], \"group\", over=[(e0, 2)])"));
  EXPECT_THAT(k, HasSubstr("assert_tag(y[e0], \"row\", x[e0], over=[(e0, 2)])"));
  EXPECT_THAT(k, HasSubstr("assert_apart(s[0, "));
}

/// The terms of all other ops are made in the same order: the kernel is the same without them.
TEST(LanguageTags, ChangeNothingElse) {
  const std::string before = "    for m in tiles(M, 4):\n        x = load(X[m, :], lanes=32)\n",
                    after =
                        "        store(where(indices(x, axis=1) <= m.start, x, 0.0), Y[m, :])\n";
  const Result<core::Kernel> plain = made(before + after);
  const Result<core::Kernel> tagged = made(
      "    tag(X, row=lambda i, j: i)\n" + before +
      "        assert_tag(x, row=lambda i, j: 3 * m.start + i + M - (2 * m.start + M))\n" + after);
  ASSERT_TRUE(plain && tagged);
  EXPECT_TRUE(core::has_tags(*tagged));
  EXPECT_TRUE(core::testing::same(*plain, core::without_tags(*tagged)));
}

TEST(LanguageTags, RefuseWhatHasNoElementsOrNoPlace) {
  const std::string x = "    for m in tiles(M, 4):\n        x = load(X[m, :], lanes=32)\n        ";
  EXPECT_THAT(text("    tag(Y, row=lambda i, j: i)\n"), HasSubstr("only inputs are tagged"));
  EXPECT_THAT(text("    tag(X, row=lambda i: i)\n"),
              HasSubstr("has other parameters than there are indices"));
  EXPECT_THAT(text("    tag(X, row=3)\n"), HasSubstr("`row` is a function of the indices"));
  EXPECT_THAT(text("    tag(X)\n"), HasSubstr("no tag is named"));
  EXPECT_THAT(text(x + "tag(X, row=lambda i, j: i)\n"), HasSubstr("outside of roles and loops"));
  EXPECT_THAT(text(x + "assert_tag(relu(x), row=lambda i, j: i)\n"),
              HasSubstr("assign them to registers"));
  EXPECT_THAT(text(x + "assert_same(x, s[0], \"row\")\n"), HasSubstr("do not go together"));
  EXPECT_THAT(text(x + "assert_same(x, x)\n"), HasSubstr("no tag is named"));
  EXPECT_THAT(text(x + "f = lambda i: i\n"), HasSubstr("a `lambda` does not stand here"));
}

}  // namespace
}  // namespace tessera::language
