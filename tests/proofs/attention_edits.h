// What tests of the proof of kernels/attention.py expect of its variants and of edits of its text.
#pragma once

#include <gtest/gtest.h>
#include <vector>

#include "check/kind.h"
#include "proofs/attention_variant.h"

namespace tessera::proofs {

inline void expect_all_proved(const std::vector<Constants>& variants) {
  for (const Constants& c : variants) {
    const check::Report r = attention_report(attention_text(), c);
    EXPECT_EQ(r.verdict(), check::Verdict::proved) << to_text(r);
  }
}

/// `to` in the place of `from` is not proved. `kind`: of invariants, that refutes it; null where it
/// may stay undecided. `what`: the mistake, for people.
inline void expect_not_proved(const char* what, const char* from, const char* to, const char* kind,
                              const Constants& constants) {
  const check::Report r = attention_report(edited_attention(from, to), constants);
  EXPECT_NE(r.verdict(), check::Verdict::proved) << what;
  if (kind == nullptr) return;
  EXPECT_EQ(r.find(kind)->verdict, check::Verdict::refuted)
      << what << " shall be of " << kind << "\n"
      << to_text(r);
}

}  // namespace tessera::proofs
