// kernels/rows.py: loads and stores of tiles, sums along rows.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"

#include "core/print.h"
#include "language/language.h"
#include "language/testing/dump.h"
#include "term/evaluate.h"

namespace tessera::language {
namespace {

using core::Term;

core::Kernel kernel(const std::string& name, const Options& options = {}) {
  const std::string file = "kernels/rows.py";
  Result<core::Kernel> k =
      elaborate({file, read_file(source_folder() + "/" + file)}, name, options);
  if (!k) throw std::runtime_error(to_text(k.error()));
  return std::move(*k);
}

const core::Issue* find(const core::Body& body, std::string_view form) {
  for (const core::Op& op : body) {
    if (const auto* i = op.as<core::Issue>(); i != nullptr && i->form->name == form) return i;
    if (const auto* f = op.as<core::For>())
      if (const core::Issue* found = find(f->body, form)) return found;
  }
  return nullptr;
}

/// How often each element of a matrix is touched by the form, over all threads and turns.
std::vector<int> touched(const core::Kernel& k, std::string_view form, std::size_t address,
                         int64_t rows, int64_t columns, int64_t vector, int64_t turns,
                         int64_t vectors) {
  const core::Issue* const issue = find(k.body, form);
  std::vector<int> out(static_cast<std::size_t>(rows * columns));
  if (issue == nullptr) return out;
  const auto& at = std::get<core::GlobalAt>(issue->arguments[address]).at;
  const Term inside = std::get<core::Integers>(issue->arguments[2]).values.front();
  term::Assignment a{.symbols = {{"M", rows}, {"N", columns}, {"blocks", 2}}};
  for (int64_t block = 0; block < 2; ++block)
    for (int64_t turn = 0; turn < turns; ++turn)
      for (int64_t thread = 0; thread < k.threads; ++thread)
        for (int64_t i = 0; i < vectors; ++i) {
          for (const auto& [name, value] : std::map<std::string, int64_t>{{"block", block},
                                                                          {"turn", turn},
                                                                          {"warp", thread / 32},
                                                                          {"lane", thread % 32},
                                                                          {"vector", i}})
            a.symbols[name] = value;
          if (*term::evaluate(inside, a) == 0) continue;
          for (int64_t v = 0; v < vector; ++v)
            ++out.at(static_cast<std::size_t>(*term::evaluate(at[0], a) * columns +
                                              *term::evaluate(at[1], a) + v));
        }
  return out;
}

TEST(LanguageRows, EachElementIsLoadedAndStoredOnceAndNothingOutside) {
  const core::Kernel k = kernel("scaled_sum");
  // Tiles of [4, 256] in a matrix of [6, 260]: tails along both, four tiles for two blocks.
  const std::vector<int> once(6 * 260, 1);
  EXPECT_EQ(touched(k, "load.global.16.bounded", 1, 6, 260, 4, 2, 2), once);
  EXPECT_EQ(touched(k, "store.global.16.bounded", 0, 6, 260, 4, 2, 2), once);
}

TEST(LanguageRows, ANumberWithAPointCanBeSet) {
  const core::Kernel by_default = kernel("scaled_sum"),
                     set = kernel("scaled_sum", {{{"SCALE", "0.25"}}});
  EXPECT_EQ(core::to_string(by_default).find("0.25"), std::string::npos);
  EXPECT_NE(core::to_string(set).find("0.25"), std::string::npos);
  const auto wrong = elaborate({"rows.py", read_file(source_folder() + "/kernels/rows.py")},
                               "scaled_sum", {{{"SCALE", "0.25x"}}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, bad_constant.id);
}

TEST(LanguageRows, ComputationsAreOneDag) {
  const std::string text = testing::dump(kernel("scaled_sum"));
  EXPECT_NE(text.find("8 x registers2[0 + 8:1] = add(%0, mul(0.5, %1)) of registers0[0 + 8:1], "
                      "registers1[0 + 8:1]"),
            std::string::npos)
      << text;
}

TEST(LanguageRows, NormSumsInEachThreadThenOverTheLanesOfARow) {
  const std::string text = testing::dump(kernel("rms_norm"));
  const auto has = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(
      has("32 x registers2[0 + (8,4,1):(0,0,0)] = add(%0, %1) of registers1[0 + 32:1], "
          "registers2[0 + (8,4,1):(0,0,0)]"))
      << text;
  for (int step : {1, 2, 4, 8, 16})
    EXPECT_TRUE(
        has(fmt::format("shuffle(registers3[0], registers2[0], [{}], [31], [4294967295], "
                        "mode=bfly)",
                        step)))
        << text;
  EXPECT_TRUE(
      has("mul(mul(%0, rsqrt(add(div(%1, 1024), 1e-06))), %2) of registers0[0 + 32:1], "
          "registers2[0 + (8,4,1):(0,0,0)], registers4[0 + (8,4,1):(1,8,0)]"))
      << text;
}

TEST(LanguageRows, RowsOfOtherWidthsAreLoadedInNarrowerVectors) {
  const core::Kernel k = kernel("rms_norm", {{{"COLUMNS", int64_t{96}}}});
  EXPECT_EQ(find(k.body, "load.global.16.bounded"), nullptr);
  EXPECT_NE(find(k.body, "load.global.2.bounded"), nullptr) << testing::dump(k);
}

}  // namespace
}  // namespace tessera::language
