// Texts that are refused: where the mark stands, and every word of the message.
#include <gtest/gtest.h>

#include "syntax/parse.h"

namespace tessera::syntax {
namespace {

struct Bad {
  const char* text;
  const char* told;  // without the help
};

const Bad bad[] = {
    {"acc = wgmma(a[k], , acc)\n",
     "error[TS0801]: expected an expression, found `,`\n"
     "  --> k.py:1:19\n"
     "   |\n"
     " 1 | acc = wgmma(a[k], , acc)\n"
     "   |                   ^ an expression belongs here\n"
     "   |\n"
     "  = expected: an expression\n"
     "  = found: `,`\n"},
    {"def gemm(A, B:\n    pass\n",
     "error[TS0801]: `(` is never closed\n"
     "  --> k.py:1:9\n"
     "   |\n"
     " 1 | def gemm(A, B:\n"
     "   |         ^\n"
     "   |\n"
     "  = expected: `)`\n"},
    {"x = f(a[1)]\n",
     "error[TS0801]: `)` closes `[`\n"
     "  --> k.py:1:10\n"
     "   |\n"
     " 1 | x = f(a[1)]\n"
     "   |        - opened here\n"
     "   |          ^\n"
     "   |\n"
     "  = expected: `]`\n"},
    {"x = 1)\n",
     "error[TS0801]: `)` closes nothing\n"
     "  --> k.py:1:6\n"
     "   |\n"
     " 1 | x = 1)\n"
     "   |      ^\n"
     "   |\n"},
    {"for k in range(4)\n    pass\n",
     "error[TS0801]: expected `:` after what the loop walks over, found the end of the line\n"
     "  --> k.py:1:18\n"
     "   |\n"
     " 1 | for k in range(4)\n"
     "   |                  ^ `:` after what the loop walks over belongs here\n"
     "   |\n"
     "  = expected: `:` after what the loop walks over\n"
     "  = found: the end of the line\n"},
    {"for k in range(4):\npass\n",
     "error[TS0802]: what the loop walks over is followed by no block\n"
     "  --> k.py:2:1\n"
     "   |\n"
     " 2 | pass\n"
     "   | ^^^^ to be indented\n"
     "   |\n"},
    {"if x:\n    y = 1\n  z = 2\n",
     "error[TS0802]: this line is indented as no block around it is\n"
     "  --> k.py:3:1\n"
     "   |\n"
     " 3 |   z = 2\n"
     "   | ^^^\n"
     "   |\n"
     "  = expected: 0 spaces, or as many as another block around it\n"
     "  = found: 2 spaces\n"},
    {"x = 1\n    y = 2\n",
     "error[TS0802]: this line is indented, and no block is open\n"
     "  --> k.py:2:5\n"
     "   |\n"
     " 2 |     y = 2\n"
     "   |     ^\n"
     "   |\n"},
    {"if x:\n\ty = 1\n",
     "error[TS0802]: a tab indents this line\n"
     "  --> k.py:2:1\n"
     "   |\n"
     " 2 | \ty = 1\n"
     "   | ^\n"
     "   |\n"},
    {"x = 12ab\n",
     "error[TS0803]: `12ab` is not a number\n"
     "  --> k.py:1:5\n"
     "   |\n"
     " 1 | x = 12ab\n"
     "   |     ^^^^\n"
     "   |\n"},
    {"x = 007\n",
     "error[TS0803]: a decimal number begins with 0\n"
     "  --> k.py:1:5\n"
     "   |\n"
     " 1 | x = 007\n"
     "   |     ^^^\n"
     "   |\n"},
    {"x = 99999999999999999999\n",
     "error[TS0803]: 99999999999999999999 does not fit in 64 bits\n"
     "  --> k.py:1:5\n"
     "   |\n"
     " 1 | x = 99999999999999999999\n"
     "   |     ^^^^^^^^^^^^^^^^^^^^\n"
     "   |\n"},
    {"x = 'ab\ny = 1\n",
     "error[TS0803]: this string is never closed\n"
     "  --> k.py:1:5\n"
     "   |\n"
     " 1 | x = 'ab\n"
     "   |     ^\n"
     "   |\n"},
    {"x = a $ b\n",
     "error[TS0801]: `$` begins no word\n"
     "  --> k.py:1:7\n"
     "   |\n"
     " 1 | x = a $ b\n"
     "   |       ^\n"
     "   |\n"},
    {"f(x) = 1\n",
     "error[TS0801]: nothing can be assigned to this\n"
     "  --> k.py:1:1\n"
     "   |\n"
     " 1 | f(x) = 1\n"
     "   | ^^^^\n"
     "   |\n"
     "  = expected: a name, or several joined by commas\n"},
    {"while k < 4:\n    k = k + 1\n",
     "error[TS0804]: `while` is not in the language\n"
     "  --> k.py:1:1\n"
     "   |\n"
     " 1 | while k < 4:\n"
     "   | ^^^^^\n"
     "   |\n"},
    {"x = [i for i in y]\n",
     "error[TS0804]: comprehensions are not in the language\n"
     "  --> k.py:1:8\n"
     "   |\n"
     " 1 | x = [i for i in y]\n"
     "   |        ^^^\n"
     "   |\n"},
    {"x = {1: 2}\n",
     "error[TS0804]: sets and dictionaries are not in the language\n"
     "  --> k.py:1:5\n"
     "   |\n"
     " 1 | x = {1: 2}\n"
     "   |     ^\n"
     "   |\n"},
    {"f(a=1, b)\n",
     "error[TS0801]: an argument by position follows one by keyword\n"
     "  --> k.py:1:8\n"
     "   |\n"
     " 1 | f(a=1, b)\n"
     "   |        ^\n"
     "   |\n"},
    {"else:\n    x = 1\n",
     "error[TS0801]: `else` follows no `if`\n"
     "  --> k.py:1:1\n"
     "   |\n"
     " 1 | else:\n"
     "   | ^^^^\n"
     "   |\n"},
    {"@kernel\nx = 1\n",
     "error[TS0801]: expected `def` after a decorator, found `x`\n"
     "  --> k.py:2:1\n"
     "   |\n"
     " 2 | x = 1\n"
     "   | ^ `def` after a decorator belongs here\n"
     "   |\n"
     "  = expected: `def` after a decorator\n"
     "  = found: `x`\n"},
    {"x = 1; y = 2\n",
     "error[TS0804]: several statements on a line are not in the language\n"
     "  --> k.py:1:6\n"
     "   |\n"
     " 1 | x = 1; y = 2\n"
     "   |      ^\n"
     "   |\n"},
    {"x = f\"{y}\"\n",
     "error[TS0804]: strings with a prefix are not in the language\n"
     "  --> k.py:1:5\n"
     "   |\n"
     " 1 | x = f\"{y}\"\n"
     "   |     ^^\n"
     "   |\n"},
};

TEST(BadText, IsRefusedWithItsPlaceAndReason) {
  for (const Bad& b : bad) {
    const Parsed p = parse(Source("k.py", b.text));
    ASSERT_FALSE(p.errors.empty()) << b.text;
    const std::string text = to_text(p.errors[0]);
    EXPECT_EQ(text.substr(0, text.find("  = help")), b.told) << text;
  }
}

}  // namespace
}  // namespace tessera::syntax
