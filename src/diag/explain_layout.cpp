#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0101", "layout.bad_tuple", R"(A text is not a tuple of integers.)",
     R"(Shapes and strides are written as (4,(2,8)); a bracket or a number is missing. Users do not
     write layouts; the code is met by those who work on the tile language.)",
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
     divided by them.)",
     R"(Choose extents and strides that divide each other.)",
     R"(
compose((4,6):(6,1), 3:3)     # refused: 3 crosses a mode of 4
)"},
    {"TS0104", "layout.no_complement",
     R"(A layout has no complement: no second layout fills exactly what it leaves out.)",
     R"(Its modes overlap, or repeat an offset with stride 0.)",
     R"(Give modes that are disjoint and do not repeat.)",
     R"(
complement((6,4):(0,1), 24)     # refused: stride 0 repeats every offset six times
)"},
    {"TS0105", "layout.bad_swizzle", R"(A swizzle's numbers are impossible.)",
     R"(swizzle(bits,base,shift) exchanges address bits so that shared memory has no bank conflicts.
     bits and base are at least 0, and shift is at least bits.)",
     R"(Take one of the swizzles of the hardware.)",
     R"(
swizzle(3,4,2)     # refused: shift 2 is less than bits 3
swizzle(3,4,3)     # right: 128 bytes
)"},
};

}  // namespace

std::span<const Explanation> explained_layout() {
  return records;
}

}  // namespace tessera
