#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0101", "layout.bad_tuple", R"(A text is not a tuple of integers.)",
     R"(Shapes and strides are written as (4,(2,8)); a bracket or a number is missing. Where a kernel's
     text has the layout, the diagnostic has a code of its own and this one's words.)",
     R"(Close every bracket, and separate numbers with commas.)",
     R"(
(4,2          # refused: not closed
(4,2)         # right
)"},
    {"TS0102", "layout.bad_layout", R"(Shape and stride of a layout do not fit together.)",
     R"(A layout is shape:stride, both nested alike, with extents above 0. It says at which offset
     each coordinate lies.)",
     R"(Nest both sides alike.)",
     R"(
(4,2):(1,(4,8))     # refused: the second mode has one extent and two strides
(4,2):(1,4)         # right: a column-major 4 x 2 matrix
)"},
    {"TS0103", "layout.not_composable", R"(One layout cannot be walked through another.)",
     R"(Composition takes every n-th element; n has to divide the extents that it crosses, or be
     divided by them. Sums of the walking modes must not carry from one mode into the next either,
     and may not leave the layout that is walked.)",
     R"(Choose extents and strides that divide each other.)",
     R"(
compose((4,6):(6,1), 3:3)     # refused: 3 crosses a mode of 4
)"},
};

}  // namespace

std::span<const Explanation> explained_layout() {
  return records;
}

}  // namespace tessera
