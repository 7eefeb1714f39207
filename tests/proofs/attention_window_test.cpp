// A window of keys in kernels/attention.py: proved at both ends, and never with an edit of one.
#include <gtest/gtest.h>

#include "base/thorough.h"

#include "proofs/attention_edits.h"

namespace tessera::proofs {
namespace {

TEST(AttentionWindow, VariantsAreProved) {
  std::vector<Constants> variants = {{{"LEFT", 20}, {"CAUSAL", 1}},
                                     {{"LEFT", 20}},
                                     {{"RIGHT", 5}},
                                     {{"LEFT", 7}, {"RIGHT", 9}, {"GROUPS", 2}, {"Q_SLOTS", 1}}};
  if (thorough())
    variants.insert(
        variants.end(),
        {{{"LEFT", 0}, {"CAUSAL", 1}},
         {{"LEFT", 1023}, {"CAUSAL", 1}, {"GROUPS", 2}, {"D", 128}, {"KEYS", 128}},
         {{"LEFT", 4095}, {"CAUSAL", 1}, {"GROUPS", 2}, {"D", 256}, {"KEYS", 80}, {"Q_SLOTS", 1}},
         {{"LEFT", 100}, {"RIGHT", 100}, {"GROUPS", 3}, {"D", 64}, {"KEYS", 112}},
         {{"LEFT", 64}, {"RIGHT", 0}, {"STRIDED", 1}, {"STAGES", 3}}});
  expect_all_proved(variants);
}

struct Edit {
  const char* what;
  const char* from;
  const char* to;
  const char* kind = nullptr;  // that is refuted; nullptr: it is not proved
  int64_t left = 20;           // 100: longer than a tile and a block, so that some are not masked
};

constexpr Edit edits[] = {
    {"the left end one key late", "key < query + TK - TQ - left if",
     "key <= query + TK - TQ - left if", "mask"},
    {"the left end one key early", "key < query + TK - TQ - left if",
     "key < query + TK - TQ - left - 1 if", "mask"},
    {"the right end one key late", "query + TK - TQ + (1 + right)) if right >= 0 else TK\n    hid",
     "query + TK - TQ + (2 + right)) if right >= 0 else TK\n    hid", "mask"},
    {"the right end one key early", "query + TK - TQ + (1 + right)) if right >= 0 else TK\n    hid",
     "query + TK - TQ + right) if right >= 0 else TK\n    hid", "mask"},
    {"the window of the first keys", "key < query + TK - TQ - left if", "key < query - left if",
     "mask"},
    {"and for or", "end <= key or key <", "end <= key and key <"},
    {"the left end alone", "end <= key or key <", "key <", "mask"},
    {"the causal end forgotten", "mask(scores, queries.start, first_key, TQ, TK, LEFT, right)",
     "mask(scores, queries.start, first_key, TQ, TK, LEFT, -1)", "mask"},
    {"the left end forgotten", "mask(scores, queries.start, first_key, TQ, TK, LEFT, right)",
     "mask(scores, queries.start, first_key, TQ, TK, -1, right)", "mask"},
    {"no masked steps at the left end", " or LEFT >= 0 and leaving <= step.index", "", "mask", 100},
    {"no masked steps at the right end", "step.index < masked or LEFT >= 0 and leaving", "leaving",
     "mask", 100},
    {"masked steps of both ends at once", "masked or LEFT >= 0 and leaving", "masked and leaving",
     nullptr, 100},
    {"masked steps at the left end that begin late", "leaving <= step.index",
     "leaving < step.index", "mask", 100},
    {"masked steps at the left end of the first row", "before_all(own_first + 63,",
     "before_all(own_first,", "mask", 100},
    {"masked steps at the left end of all rows but one", "before_all(own_first + 63,",
     "before_all(own_first + 62,", "mask", 100},
    {"masked steps at the left end of the tile's first rows", "before_all(own_first + 63,",
     "before_all(queries.start + warpgroup * 63 + 63,", nullptr, 100},
    {"the first block late", "first = before_all(queries.start, TQ, TK, left) // size",
     "first = cdiv(before_all(queries.start, TQ, TK, left), size)", "reduction"},
    {"the first block of the last row", "first = before_all(queries.start, TQ, TK, left) // size",
     "first = before_all(queries.start + queries.size - 1, TQ, TK, left) // size", "reduction"},
    {"the first block of the second row", "first = before_all(queries.start, TQ, TK, left) // size",
     "first = before_all(queries.start + 1, TQ, TK, left) // size", "reduction"},
    {"a block too few", "max(1, cdiv(end, size) - first) *",
     "max(1, cdiv(end, size) - first - 1) *", "reduction"},
    {"a block before the first key", "return max(0, query + TK - TQ - left) if",
     "return query + TK - TQ - left if", "reduction"},
    {"the last block left out", "else cdiv(end_of_keys(queries, TQ, TK, right), size)",
     "else cdiv(end_of_keys(queries, TQ, TK, right), size) - 1"},
    {"keys of the block before", "first_key = (key_blocks - 1", "first_key = (key_blocks - 2",
     "mask"},
    {"keys of another block", "keys = part(key_blocks - 1 - step.index",
     "keys = part(key_blocks - 1 - step.index * 2", "reduction"},
};

TEST(AttentionWindow, EditsAreNotProved) {
  const bool all = thorough();
  for (std::size_t i = 0; i < std::size(edits); i += all ? 1 : 2)
    for (const int64_t groups : {1, 2}) {
      const Edit& e = edits[i];
      // One consumer has no warpgroup but 0.
      const bool of_groups = std::string(e.to).find("warpgroup") != std::string::npos;
      if (groups == 1 ? of_groups : !of_groups && !all) continue;
      expect_not_proved(e.what, e.from, e.to, groups == 1 ? e.kind : nullptr,
                        {{"LEFT", e.left}, {"CAUSAL", 1}, {"GROUPS", groups}, {"STAGES", 2}});
    }
}

/// The text of a right kernel beside a meaning whose window is another.
TEST(AttentionWindow, AnotherWindowIsNotProved) {
  for (const auto& [from, to] :
       std::map<std::string, std::string>{{"LEFT <= j)", "LEFT < j)"},
                                          {"j <= i + TK - TQ + RIGHT", "j <= i + TK + RIGHT"},
                                          {"- LEFT <= j) and", "- LEFT <= j) or"}}) {
    std::string text = attention_text();
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const check::Report r = attention_report(text, {{"LEFT", 20}, {"RIGHT", 3}});
    EXPECT_NE(r.verdict(), check::Verdict::proved) << from;
  }
}

/// Bounds that are rounded would be taken for linear ones where blocks are as long.
TEST(AttentionWindow, QuotientsOfKeysAreNoWindow) {
  std::string text = attention_text();
  const std::string from = "j <= i + TK - TQ + RIGHT";
  text.replace(text.find(from), from.size(), "j // 16 * 16 <= i + TK - TQ + RIGHT");
  EXPECT_THROW(attention_report(text, {{"RIGHT", 8}}), std::runtime_error);
}

/// Where no length moves the diagonal, bounds on keys are bounds on blocks of them, with numbers
/// that are rounded: a mask of whole blocks has the same ones.
TEST(AttentionWindow, AMaskOfWholeBlocksIsNoDiagonal) {
  std::string text = attention_text();
  const auto replace = [&](const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("j <= i + TK - TQ + RIGHT", "j <= i + RIGHT");
  replace("return max(1, min(TK, queries.start + (queries.size + right) + TK - TQ)) if right >= 0",
          "return TK if right >= 0");
  replace("if step.index < masked or LEFT >= 0 and leaving <= step.index:", "if KEYS > 0:");
  replace("if left >= 0 else end <= key\n",
          "if left >= 0 else TK <= key or first_query < first_key\n");
  const check::Report r = attention_report(text, {{"RIGHT", 8}});
  EXPECT_NE(r.verdict(), check::Verdict::proved);
  EXPECT_EQ(r.find("deadlock")->verdict, check::Verdict::proved) << to_text(r);
  EXPECT_NE(r.find("mask")->verdict, check::Verdict::proved) << to_text(r);
}

}  // namespace
}  // namespace tessera::proofs
