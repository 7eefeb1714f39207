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
     divided by them. Sums of the walking modes must not carry from one mode into the next either,
     and may not leave the layout that is walked.)",
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
    {"TS0106", "layout.no_inverse", R"(A layout has no inverse of the kind that is asked for.)",
     R"(An inverse on the left needs offsets that are reached once, by modes that do not interleave;
     one on both sides needs every offset below the size besides.)",
     R"(Take the right inverse, or a layout whose modes nest.)",
     R"(
left_inverse((4,2):(1,0))     # refused: stride 0 repeats every offset
left_inverse(4:2)             # right: (2,4):(0,1)
)"},
    {"TS0107", "layout.bad_tiler", R"(A tiler, or a profile by mode, does not fit its layout.)",
     R"(A tiler by mode is written <4:1,8:1> and has at most as many modes as the layout that it
     tiles.)",
     R"(Leave out modes, or take one layout for all modes together.)",
     R"(
compose(8:1, <4,4>)     # refused: one mode, two tilers
)"},
    {"TS0108", "layout.bad_coordinate", R"(A coordinate does not fit its layout.)",
     R"(A coordinate has one entry per mode, nested no deeper than the layout: `_` keeps a mode, a
     number within its extent fixes it.)",
     R"(Write one entry per mode.)",
     R"(
slice((_,8), (4,8):(8,1))     # refused: mode 1 has the indices 0 to 7
slice((_,3), (4,8):(8,1))     # right: column 3
)"},
    {"TS0109", "layout.bad_recast",
     R"(A layout cannot be seen as one of elements of another size.)",
     R"(Wide elements must be reached whole, so narrow ones have to lie side by side in groups that
     fill them; and one mode of stride 1 has to say where the parts of a wide element go. A swizzle
     must not move parts of a wide element apart.)",
     R"(Recast along the contiguous mode, or divide the layout first.)",
     R"(
recast(4:2, 16, 32)     # refused: half of each 32-bit element would be reached
recast(4:1, 16, 32)     # right: 2:1
)"},
    {"TS0110", "layout.bad_swizzled_layout",
     R"(A text is not a swizzled layout, or a swizzled layout is not a plain one.)",
     R"(A swizzled layout is written swizzle(B,M,S) o offset o shape:stride. It is a plain layout, too,
     when the elements that it reaches are moved alike or not at all.)",
     R"(Write all three parts; keep the swizzle where elements are moved apart.)",
     R"(
swizzle(3,4,3) o (8,128):(128,1)         # refused: no offset
swizzle(3,4,3) o 0 o (8,128):(128,1)     # right
)"},
    {"TS0111", "layout.not_linear",
     R"(A layout is not a matrix over F2, or a matrix not a layout.)",
     R"(Index bits go to offset bits by XOR when all extents are powers of two and sums of strides do
     not carry. A matrix is a layout when its columns share no bits, and a swizzled one when some
     swizzle brings it there.)",
     R"(Pad extents to powers of two, or stay with the layout.)",
     R"(
to_f2((4,4):(1,2))     # refused: 2 + 2 carries
to_f2((4,4):(1,4))     # right: the identity of 4 bits
)"},
    {"TS0112", "layout.no_split", R"(A base cannot be taken out of a swizzle.)",
     R"(swizzle(base + f) is base + swizzle(f) when the base is a multiple of the swizzle's period. With
     less, the swizzle moves the base as well.)",
     R"(Align the buffer to the period; for the 128-byte swizzle that is 1024 bytes.)",
     R"(
splits(swizzle(3,4,3), 512)      # refused: base 512 is moved to 576
splits(swizzle(3,4,3), 1024)     # right
)"},
    {"TS0113", "layout.bad_extent",
     R"(An extent with parameters cannot be divided or has no value.)",
     R"(Division is exact when the coefficients show it, so a parameter has to be declared a multiple of
     what it is divided by; division that rounds up is there for constants and single parameters. For a
     value, every parameter has to be given, and to be the multiple that it was said to be.)",
     R"(Declare the parameter with its divisor, or let tiles cover the tail.)",
     R"(
zipped_divide((M,K):(K,1), <128,64>)     # refused while M is any number
)"},
};

}  // namespace

std::span<const Explanation> explained_layout() {
  return records;
}

}  // namespace tessera
