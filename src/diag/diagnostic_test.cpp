#include "diag/diagnostic.h"

#include <gtest/gtest.h>

#include "diag/result.h"

namespace tessera {
namespace {

inline constexpr Code sample{"TS0003", "input.sample"};

Diagnostic make() {
  return fail(sample, "no class `{}`", "Foo")
      .expect("one of {}", "Bar")
      .but_found("Foo")
      .note("it was asked for")
      .help("name one that exists")
      .at({.file = "m.py", .line = 3, .column = 7});
}

TEST(Diagnostic, TextHasTheRowsInOrder) {
  EXPECT_EQ(to_text(make()),
            "error[TS0003]: no class `Foo`\n"
            "  --> m.py:3:7\n"
            "  = expected: one of Bar\n"
            "  = found: Foo\n"
            "  = note: it was asked for\n"
            "  = help: name one that exists\n");
}

TEST(Diagnostic, JsonRoundTrips) {
  const Diagnostic d = make();
  EXPECT_EQ(to_text(diagnostic_from_json(to_json(d))), to_text(d));
}

TEST(Diagnostic, FamiliesMapToExitCodes) {
  Diagnostic d = make();
  EXPECT_EQ(exit_code(d), Exit::bad_input);
  d.code = "TS0501";
  EXPECT_EQ(exit_code(d), Exit::refuted);
  d.code = "TS0900";
  EXPECT_EQ(exit_code(d), Exit::internal);
}

Result<int> half(int x) {
  if (x % 2 != 0) return error(fail(sample, "odd"));
  return x / 2;
}
Result<int> quarter(int x) {
  TESSERA_TRY(h, half(x));
  TESSERA_TRY(q, half(h));
  return q;
}

TEST(Result, TryPassesTheFirstFailureOn) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).error().message, "odd");
}

}  // namespace
}  // namespace tessera
