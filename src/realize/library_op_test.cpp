// Calls of ops come from the pattern's rule, and from nothing else.
#include <gtest/gtest.h>

#include "realize/realize.h"

namespace tessera::realize {
namespace {

TEST(LibraryOp, OffersNothingWhereTheRuleNamesNoOp) {
  const Realizer* library_op = nullptr;
  for (const Realizer* r : all())
    if (r->name == "library_op") library_op = r;
  ASSERT_NE(library_op, nullptr);
  std::vector<std::string> rules{"no_such_rule"};
  for (const rules::Rule* r : rules::all())
    if (r->library == nullptr) rules.emplace_back(r->name);
  for (const std::string& name : rules) {
    rules::Pattern p;
    p.rule = name;
    const auto space = library_op->realize(p, graph::Graph{}, **arch::find("host"));
    ASSERT_TRUE(space) << name;
    EXPECT_TRUE(space->candidates.empty() && space->pruned.empty()) << name;
  }
}

}  // namespace
}  // namespace tessera::realize
