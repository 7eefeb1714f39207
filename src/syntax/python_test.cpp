// Python's own parser is the judge: what ours prints is the same tree to it as what ours has read.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <unistd.h>

#include "syntax/parse.h"
#include "syntax/testing/print.h"

namespace tessera::syntax {
namespace {

/// Texts of the language, made at random; the seed says which.
class Texts {
 public:
  explicit Texts(uint64_t seed) : random_(seed) {}

  std::string statement() {
    switch (pick(6)) {
      case 0:
        return "a, b = " + expression(4) + ", " + expression(2) + "\n";
      case 1:
        return "x[" + expression(2) + ", :] += " + expression(4) + "\n";
      case 2:
        return "if " + expression(3) + ":\n    y = " + expression(3) + "\nelif z:\n    pass\n";
      case 3:
        return "for i, j in " + expression(2) + ":\n    f(" + expression(3) +
               ", k=" + expression(2) + ")\n";
      case 4:
        return "def f(a: " + expression(1) + ", b=" + expression(1) + ") -> c:\n    return " +
               expression(3) + "\n";
      default:
        return "assert " + expression(4) + ", 'no'\n";
    }
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  std::string expression(int depth) {
    if (depth == 0) {
      static const char* const leaves[] = {"a",   "b.c",  "1",    "0x1f", "2.5e-3",
                                           "'s'", "None", "True", "-7"};
      return leaves[pick(9)];
    }
    static const char* const binary[] = {"+",    "-",  "*",  "/",  "//", "%",  "@",
                                         "<<",   ">>", "&",  "|",  "^",  "**", " and ",
                                         " or ", "<",  "<=", "==", "!="};
    const auto inner = [&] {
      const std::string e = expression(depth - 1);
      return pick(3) == 0 ? "(" + e + ")" : e;
    };
    switch (pick(10)) {
      case 0:
        return "-" + ("(" + inner() + ")");
      case 1:
        return "(not " + inner() + ")";
      case 2:
        return "f(" + inner() + ", k=" + inner() + ")";
      case 3:
        return "a[" + inner() + ", " + inner() + ":]";
      case 4:
        return "(" + inner() + " if " + inner() + " else " + inner() + ")";
      case 5:
        return "[" + inner() + ", (" + inner() + ",)]";
      case 6:
        return "(lambda x, y: " + inner() + ")";
      case 7:
        return "(t := " + inner() + ")";
      default:
        return "(" + inner() + ")" + binary[pick(19)] + inner();
    }
  }
  std::mt19937_64 random_;
};

TEST(Python, ReadsWhatIsPrintedAsWhatWasRead) {
  namespace fs = std::filesystem;
  const fs::path dir = fs::temp_directory_path() / fmt::format("tessera-syntax-{}", getpid());
  fs::create_directories(dir);
  std::ofstream ours(dir / "ours.txt"), theirs(dir / "theirs.txt");
  Texts texts(1);
  int read = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string text = texts.statement();
    const Parsed p = parse(Source("t.py", text));
    ASSERT_TRUE(p.errors.empty()) << text << to_text(p.errors[0]);
    const std::string printed = to_string(p.module);
    const Parsed again = parse(Source("t.py", printed));
    ASSERT_TRUE(again.errors.empty()) << printed << to_text(again.errors[0]);
    ASSERT_EQ(again.module, p.module) << text << printed;
    theirs << text << '\0';
    ours << printed << '\0';
    ++read;
  }
  ours.close();
  theirs.close();
  std::ofstream(dir / "compare.py") << R"(import ast, sys
mine, given = (open(f).read().split("\0")[:-1] for f in sys.argv[1:3])
class Flat(ast.NodeTransformer):  # `(a or b) or c` is `a or b or c`
    def visit_BoolOp(self, n):
        self.generic_visit(n)
        head = n.values[0]
        if isinstance(head, ast.BoolOp) and type(head.op) is type(n.op):
            n.values[:1] = head.values
        return n
tree = lambda text: ast.dump(Flat().visit(ast.parse(text)))
assert len(mine) == len(given) == int(sys.argv[3]), (len(mine), len(given))
for a, b in zip(mine, given):
    assert tree(a) == tree(b), (a, b)
)";
  const std::string command = fmt::format(
      "python3 -W ignore {0}/compare.py {0}/ours.txt {0}/theirs.txt {1}", dir.string(), read);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  fs::remove_all(dir);
}

}  // namespace
}  // namespace tessera::syntax
