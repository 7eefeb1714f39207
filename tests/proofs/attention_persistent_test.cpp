// The attention kernel that is offered, whose blocks go over many tiles: proved in its variants,
// and never with an edit of what ties a turn to its tile.
#include <gtest/gtest.h>

#include "base/thorough.h"

#include "proofs/attention_edits.h"

namespace tessera::proofs {
namespace {

TEST(AttentionPersistent, VariantsAreProved) {
  std::vector<Constants> variants = {
      {}, {{"CAUSAL", 1}}, {{"CAUSAL", 1}, {"GROUPS", 2}, {"Q_SLOTS", 1}}};
  if (thorough())
    for (const int64_t causal : {0, 1})
      variants.insert(variants.end(),
                      {{{"CAUSAL", causal}, {"GROUPS", 2}, {"TURNS", 0}, {"KEYS", 32}},
                       {{"CAUSAL", causal}, {"STAGES", 3}, {"D", 64}, {"STRIDED", 1}},
                       {{"CAUSAL", causal}, {"D", 128}, {"GROUPS", 3}, {"KEYS", 80}},
                       {{"CAUSAL", causal}, {"D", 256}, {"KEYS", 64}, {"Q_SLOTS", 1}},
                       {{"CAUSAL", causal}, {"SECTION", 16}, {"SCALE", std::string("0.25")}},
                       {{"CAUSAL", causal}, {"SECTION", 2}, {"ELEMENT", std::string("f16")}}});
  expect_all_proved(variants);
}

struct Edit {
  const char* what;
  const char* from;
  const char* to;
  const char* kind = nullptr;  // that is refuted; nullptr: it is not proved
  int64_t causal = 1;
};

constexpr Edit edits[] = {
    {"sums of the tile before", "            sums[:] = 0.0\n", ""},
    {"the greatest of the tile before", "            most[:] = -inf\n", ""},
    {"the total of the tile before", "            total[:] = 0.0\n", ""},
    {"queries of another slot", "wgmma(q[work.turn], k[step].T", "wgmma(q[0], k[step].T"},
    {"queries of the tile before", "wgmma(q[work.turn], k[step].T",
     "wgmma(q[work.turn - 1], k[step].T"},
    {"values of the tile before", "                if step.index > 0:\n                    v_full",
     "                if step.index >= 0:\n                    v_full"},
    {"a result from another slot", "tma.store(q[work.turn, own", "tma.store(q[work.turn - 1, own"},
    {"a masked step too few", "seen_by_all(own_first, TQ, TK, right) // KEYS",
     "seen_by_all(own_first, TQ, TK, right) // KEYS - 1"},
    {"a masked step too few of all keys", "seen_by_all(own_first, TQ, TK, right) // KEYS",
     "seen_by_all(own_first, TQ, TK, right) // KEYS - 1", "mask", 0},
    {"masked steps of the last row", "seen_by_all(own_first,", "seen_by_all(own_first + 63,",
     "mask"},
    {"masked steps that begin late", "if step.index < masked or",
     "if step.index > 0 and step.index < masked or"},
    {"steps that count up to what all see", "if step.index < masked or",
     "if step.index > masked or"},
    {"the diagonal one key off", "min(TK, query + TK - TQ + (1 + right)) if",
     "min(TK, query + TK - TQ + right) if", "mask"},
    {"one key past the end", "else end <= key", "else end < key", "mask", 0},
    {"the head of keys", "head * G // H", "head", "k_agreement"},
    {"the batch of the stored tile", "O[batch, head, queries[own]", "O[0, head, queries[own]"},
    {"the head of the queries", "Q[batch, head, queries, :]", "Q[batch, 0, queries, :]",
     "k_agreement"},
    {"tiles dealt to one more", "part(last - m.index if", "part(last + 1 - m.index if",
     "output_once"},
    {"batches by another count", "            batch = pair.index // H\n",
     "            batch = pair.index // G\n"},
    {"no factor", "sums *= factor\n", "sums *= 1.0\n", "rescale"},
    {"the greatest of the turn alone", "max(most, amax(scores, axis=1))", "amax(scores, axis=1)",
     "dominance"},
    {"too few steps", "queries.start + (queries.size + right) + TK - TQ)) if",
     "queries.start + right + TK - TQ)) if", "reduction"},
    {"a block too far", "keys = part(key_blocks - 1 - step.index",
     "keys = part(key_blocks - step.index", "reduction"},
};

TEST(AttentionPersistent, EditsAreNotProved) {
  for (const Edit& e : edits)
    expect_not_proved(e.what, e.from, e.to, e.kind, {{"CAUSAL", e.causal}});
}

/// All memory is written, and synchronization is right: only the sums say that a tile goes on from
/// the one before.
TEST(AttentionPersistent, WhatBeginsAheadOfTheTilesIsNotProved) {
  for (const std::string begin : {"sums[:] = 0.0\n", "most[:] = -inf\n", "total[:] = 0.0\n"}) {
    std::string text = attention_text();
    const std::string ahead = "        begin_turns(turn, GROUPS, TURNS)\n";
    const std::size_t to = text.find(ahead);
    const std::size_t at = text.find("            " + begin, to);
    ASSERT_NE(at, std::string::npos) << begin;
    text.erase(at, 12 + begin.size());
    text.insert(to, "        " + begin);
    const check::Report r = attention_report(text, {});
    EXPECT_NE(r.verdict(), check::Verdict::proved) << begin;
    EXPECT_EQ(r.find("initialized")->verdict, check::Verdict::proved) << begin << to_text(r);
  }
}

}  // namespace
}  // namespace tessera::proofs
