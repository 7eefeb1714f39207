#include "diag/explain.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

std::vector<std::string> codes_of(std::string_view what) {
  std::vector<std::string> out;
  const auto found = explanations_of(what);
  if (!found) return {found.error().code};
  for (const Explanation& e : *found) out.emplace_back(e.code);
  return out;
}

std::string suggestion(std::string_view what) {
  const auto found = explanations_of(what);
  return found ? "" : found.error().helps.front();
}

TEST(Explain, EveryRecordIsWhole) {
  std::string_view before;
  for (const Explanation& e : explanations()) {
    EXPECT_LT(before, e.code) << "twice, or out of order";
    before = e.code;
    for (const std::string_view text : {e.name, e.means, e.arises, e.remedy, e.example})
      EXPECT_FALSE(paragraph(text).empty()) << e.code;
    for (const std::string_view text : {e.means, e.arises, e.remedy})
      EXPECT_TRUE(paragraph(text).ends_with(".")) << e.code << ": " << text;
  }
}

TEST(Explain, EveryCodeHasAFamilyAndEveryFamilyCodes) {
  std::size_t covered = 0;
  for (const CodeFamily& f : code_families()) {
    EXPECT_FALSE(codes_of(f.prefix).empty()) << f.prefix;
    covered += codes_of(f.prefix).size();
  }
  EXPECT_EQ(covered, explanations().size());
}

TEST(Explain, FindsByCodeByNameAndByTheFirstLetters) {
  EXPECT_EQ(codes_of("TS0202"), std::vector<std::string>{"TS0202"});
  EXPECT_EQ(codes_of("ts0202"), std::vector<std::string>{"TS0202"});
  EXPECT_EQ(codes_of("graph.untraceable"), std::vector<std::string>{"TS0202"});
  EXPECT_EQ(codes_of("TS01"), (std::vector<std::string>{"TS0101", "TS0102", "TS0103"}));
  EXPECT_EQ(codes_of("TS0").size(), explanations().size());
}

TEST(Explain, AnUnknownCodeNamesTheNearest) {
  EXPECT_EQ(codes_of("TS0207"), std::vector<std::string>{"TS0048"});
  EXPECT_EQ(suggestion("TS0299"), "did you mean `TS0239`?");  // of its family
  EXPECT_EQ(suggestion("0202"), "did you mean `TS0202`?");
  EXPECT_EQ(suggestion("graph.untracable"), "did you mean `graph.untraceable`?");
}

TEST(Explain, TextHasAHeadingAFieldAndFitsATerminal) {
  const Explanation e{"TS0001",   "a.b",    "It is\n   so.",
                      "Because.", "Do it.", "\nfirst\n\n  second\n"};
  EXPECT_EQ(to_text(e),
            "TS0001 a.b\n\nWhat it means\n  It is so.\n\nWhy it comes up\n  Because.\n\n"
            "What to do\n  Do it.\n\nExample\n  first\n\n    second\n");
  const std::string text = to_text(*explanations_of("TS0202")->begin());
  std::size_t start = 0;
  for (std::size_t end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    EXPECT_LE(end - start, 100U) << text.substr(start, end - start);
}

}  // namespace
}  // namespace tessera
