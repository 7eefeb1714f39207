#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0801", "language.syntax", R"(A word stands where the language's grammar has another.)",
     R"(Kernel files are written in Python's syntax. The message names the word that was found, and
     what belongs in its place; the mark stands under it.)",
     R"(Write what is expected there. A bracket that is never closed is shown where it opens.)",
     R"(
acc = wgmma(a[k], , acc)       # refused: an expression belongs between the commas
acc = wgmma(a[k], b[k], acc)   # right
)"},
    {"TS0802", "language.indentation",
     R"(A line is indented as no block around it is, or a block is missing.)",
     R"(Blocks are told by their indentation, by spaces. A line that is indented less has to come
     back to a block that is open; `for`, `if`, `with` and `def` are followed by a block.)",
     R"(Indent by four spaces a level. A block that does nothing is `pass`.)",
     R"(
for k in range(4):
store(x, y)              # refused: the loop has no block
for k in range(4):
    store(x, y)          # right
)"},
    {"TS0803", "language.literal", R"(A number or a string is not written as Python writes it.)",
     R"(A number ends in letters that do not belong to it, does not fit in 64 bits, or begins with 0;
     or a string is not closed on its line.)",
     R"(Write decimal, 0x or 0b numbers; close strings by the quote that opens them.)",
     R"(
x = 0128      # refused
x = 128       # right
)"},
    {"TS0804", "language.not_in_language",
     R"(This is Python, but the language of kernels does not have it.)",
     R"(A kernel's loops have known ends and its values have types, so that what it does can be
     proved. `while`, classes, exceptions, comprehensions, dictionaries and the like are left
     out.)",
     R"(The message says what to write instead.)",
     R"(
while k < K: ...         # refused
for k in range(0, K):    # right
    ...
)"},
    {"TS0811", "core.bad_kernel", R"(A generator named an instruction that does not exist.)",
     R"(The kernel was written by code of tessera, or elaborated from a kernel file, and an instruction
     in it is none of those that docs/instructions.md lists.)",
     R"(Report it with the command and its inputs: it is a fault of tessera, unless you wrote the
     generator.)",
     R"(
b.issue("mbarrier.wait_for", ...)    # refused
b.issue("mbarrier.wait", ...)        # right
)"},
};

}  // namespace

std::span<const Explanation> explained_language() {
  return records;
}

}  // namespace tessera
