#include "diag/source.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

inline constexpr Code sample{"TS0003", "input.sample"};

TEST(Source, PlacesCountLinesAndCharactersFromOne) {
  const Source s("k.py", "a = 1\n\u00e9t\u00e9 = 2\r\n");
  EXPECT_EQ(s.place(0).line, 1);
  EXPECT_EQ(s.place(4).column, 5);
  EXPECT_EQ(s.place(8).line, 2);
  EXPECT_EQ(s.place(8).column, 2);  // the first character takes two bytes
  EXPECT_EQ(s.line(2), "\u00e9t\u00e9 = 2");
  EXPECT_EQ(s.place(static_cast<int>(s.text().size())).line, 3);
}

TEST(Source, LabelsEndWithTheirFirstLine) {
  const Source s("k.py", "f(a,\n  b)\n");
  const Label l = s.label({1, 9});
  EXPECT_EQ(l.length, 3);
  EXPECT_EQ(l.line, "f(a,");
  EXPECT_EQ(s.label({4, 4}).length, 1);
}

TEST(Source, TheAuthorsLinesStandInTheText) {
  const Source s("k.py", "x = load(a)\n\n\n\ty = x + z\n");
  const Diagnostic d = fail(sample, "nothing is called `z`")
                           .label(s.label({23, 24}, "not defined"))
                           .label(s.label({0, 1}, "did you mean this?"))
                           .help("name a value");
  EXPECT_EQ(to_text(d),
            "error[TS0003]: nothing is called `z`\n"
            "  --> k.py:4:10\n"
            "   |\n"
            " 1 | x = load(a)\n"
            "   | - did you mean this?\n"
            "...\n"
            " 4 | \ty = x + z\n"
            "   | \t        ^ not defined\n"
            "   |\n"
            "  = help: name a value\n");
  EXPECT_EQ(to_text(diagnostic_from_json(to_json(d))), to_text(d));
}

}  // namespace
}  // namespace tessera
