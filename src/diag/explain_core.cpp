#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0812", "core.bad_text", R"(A text is no kernel of the core.)",
     R"(The core's text is Python's syntax with few words: storages, `issue`, `map`, `for`, `if`, roles and
     `elected`. A name means one thing, and only in the block where it is defined and the blocks within.
     The mark stands under what does not fit, and the message says what belongs there.)",
     R"(Write what is expected; docs/core.md is the grammar.)",
     R"(
issue("mbarrier.int", full[0], 1)     # refused: did you mean `mbarrier.init`?
issue("mbarrier.init", full[0], 1)    # right
)"},
};

}  // namespace

std::span<const Explanation> explained_core() {
  return records;
}

}  // namespace tessera
