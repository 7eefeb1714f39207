#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0821", "term.bad_syntax", R"(A text is no index term.)",
     R"(Index terms are written in Python's syntax: numbers, names, + - * // % ^ & | << >>, comparisons,
     and, or, not, min(a, b), max(a, b), select(p, a, b) and name[index]. The column says where reading
     stopped. Numbers have 64 bits.)",
     R"(Write division as // and close every bracket.)",
     R"(
lane / 4      # refused: / is not a division of integers
lane // 4     # right
)"},
    {"TS0822", "term.bad_operand", R"(An operand does not fit its operator.)",
     R"(A predicate stands where a number is needed, or the other way round; a divisor may be 0 or
     negative by what is declared of it; a shift may leave 0 to 62; or a memory is read with the wrong
     number of indices.)",
     R"(Declare the parameter's lower bound, or divide by max(1, ...).)",
     R"(
k % S             # refused where S is declared without bounds
k % max(1, S)     # accepted; better: declare 1 <= S
)"},
    {"TS0823", "term.bad_symbol", R"(A name is not declared, or cannot be declared as it is.)",
     R"(Every name of a term is a coordinate, a loop counter, a parameter or a memory that was declared
     before. A name has one meaning: it cannot be declared again with other bounds. A coordinate has at
     least one value.)",
     R"(Declare the name first, or give the second thing another name.)",
     R"(
error[TS0823]: `lnae` is not declared
)"},
    {"TS0824", "term.overflow", R"(The value of a term does not fit 64 bits.)",
     R"(Terms mean integers without limit and are computed in 64 bits. Where a value, also one in between,
     does not fit, there is no value rather than a wrong one.)",
     R"(Declare upper bounds of the parameters that are multiplied.)",
     R"(
M * N * K     # with all three near 2**31
)"},
    {"TS0825", "term.inadmissible",
     R"(A value is missing or contradicts what is declared of its symbol.)",
     R"(A term was evaluated with a symbol that has no value, with one outside of its bounds or its residue
     class, or with a divisor below 1.)",
     R"(Give every symbol a value within its declared bounds.)",
     R"(
error[TS0825]: lane = 32 is not admissible     # lane is declared with extent 32
)"},
};

}  // namespace

std::span<const Explanation> explained_term() {
  return records;
}

}  // namespace tessera
