// The same bits seen as elements of another size.
//
//   recast((8,64):(64,1), 16, 32)   (8,32):(32,1)     pairs of 16-bit elements as 32-bit words
//   recast((8,64):(64,1), 16, 8)    (8,128):(128,1)   bytes
//
// Offsets count elements before and after. Let one element of `wide` bits be n of `narrow`, and N
// and W the layouts of narrow and wide elements. Then with k in [0, n) chosen within the mode of
// stride 1, N(.., n * c + k, ..) == n * W(.., c, ..) + k: both reach the same bits in the same
// order.
#pragma once

#include "layout/layout.h"

namespace tessera {

/// Elements that are n times as wide. Every leaf keeps its place; those within one wide element
/// become 1:0. Fails unless the leaves within [0, n) fill it exactly and all others are multiples
/// of n: a wide element must not be reached in part.
Result<Layout> upcast(const Layout& l, int64_t n);

/// Elements that are 1/n as wide: the leaf of stride 1 becomes n times as long, other strides n
/// times as large. Fails unless there is one such leaf (one of extent 1 serves when there is no
/// other), since else nothing says where the new elements of an old one go.
Result<Layout> downcast(const Layout& l, int64_t n);

/// A layout of elements of `from` bits seen as one of elements of `to` bits. When neither divides
/// the other, by way of elements of their greatest common divisor.
Result<Layout> recast(const Layout& l, int64_t from, int64_t to);

}  // namespace tessera
