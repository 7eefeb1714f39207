// Division cuts a layout into tiles, a product repeats it; both by one layout or mode by mode.
//
// Division, for a layout of modes a0, a1, ... and a tiler <t0,t1,...>, n = the tiler's modes:
//
//   logical_divide   ((tile0,rest0),(tile1,rest1),...,an,...)
//   zipped_divide    ((tile0,tile1,...),(rest0,rest1,...,an,...))
//   tiled_divide     ((tile0,tile1,...),rest0,rest1,...,an,...)
//   flat_divide      (tile0,tile1,...,rest0,rest1,...,an,...)
//
// Each pair (tile,rest) is the composition of a mode with (t, complement(t, size)): a reordering of
// the mode's elements, none lost and none repeated. A tile that does not divide a mode is refused;
// rounding up would read outside of it. With a tiler that is one layout there is one pair, of all
// modes together.
//
// Products have the same four forms with block and copies in the place of tile and rest.
#pragma once

#include "layout/tiler.h"

namespace tessera {

/// (tile, rest) per mode of the tiler: mode 0 walks one tile, mode 1 walks the tiles.
Result<Layout> logical_divide(const Layout& a, const Tiler& tiler);
Result<Layout> zipped_divide(const Layout& a, const Tiler& tiler);
Result<Layout> tiled_divide(const Layout& a, const Tiler& tiler);
Result<Layout> flat_divide(const Layout& a, const Tiler& tiler);

/// (block, copies): mode 0 is `block`, mode 1 repeats it in the order of `copies` without overlap.
/// By mode, each mode is repeated by itself, and what one mode places may overlap another mode of
/// the block: (2,2):(1,2) by <2:1,2:1> is ((2,2),(2,2)):((1,2),(2,4)).
Result<Layout> logical_product(const Layout& block, const Tiler& copies);
Result<Layout> zipped_product(const Layout& block, const Tiler& copies);
Result<Layout> tiled_product(const Layout& block, const Tiler& copies);
Result<Layout> flat_product(const Layout& block, const Tiler& copies);

/// The modes of block and copies paired: mode i is (block_i, copies_i), so that an r x c block
/// repeated R x C times is an rR x cC matrix of blocks. The shorter of the two gets modes 1:0.
Result<Layout> blocked_product(const Layout& block, const Layout& copies);
/// The same with (copies_i, block_i): the copies are interleaved element by element.
Result<Layout> raked_product(const Layout& block, const Layout& copies);

}  // namespace tessera
