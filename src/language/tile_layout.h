// Layouts of tiles in registers: (thread, slot) to the element's index in the tile, first dimension
// fastest.
#pragma once

#include <optional>
#include <vector>

#include "layout/layout.h"

namespace tessera::language {

int64_t elements_of(const std::vector<int64_t>& tile);
/// Agree on every thread and slot.
bool same_layout(const Layout& a, const Layout& b);
/// The element's coordinate along each dimension.
std::vector<int64_t> coordinates(int64_t element, const std::vector<int64_t>& tile);
int64_t element_at(const std::vector<int64_t>& at, const std::vector<int64_t>& tile);
/// Strides in one tile as strides in another, along the same dimensions; 0 along those of which the
/// other has one element.
IntTuple moved(const IntTuple& strides, const std::vector<int64_t>& from,
               const std::vector<int64_t>& to);

/// A mode of a thread's or a slot's index: `extent` values, each `weight` on in the index.
struct Digit {
  int64_t extent = 1, weight = 1;
  int dim = -1;          // of the tile, along which it goes; -1: none
  int64_t distance = 0;  // elements along it
};
std::vector<Digit> digits(const Layout& mode, const std::vector<int64_t>& tile);

/// The slots that make up the first part of a tile; nothing where they differ from thread to thread
/// or make no runs.
struct Slots {
  std::vector<int64_t> all;
  Layout steps;
};
std::optional<Slots> first_part(const Layout& layout, const std::vector<int64_t>& tile,
                                const std::vector<int64_t>& part);
/// How many slots on the next part along dimension `d` begins; nothing where parts are not alike.
std::optional<int64_t> stride_of_parts(const Layout& layout, const std::vector<int64_t>& tile,
                                       const std::vector<int64_t>& part, const Slots& first,
                                       std::size_t d);

/// The slots of `small`, a tile with one element along some dimensions, that go with the slots of
/// `large`; nothing where they lie in other threads.
std::optional<Layout> broadcast(const Layout& small, const std::vector<int64_t>& small_tile,
                                const Layout& large, const std::vector<int64_t>& large_tile);
/// An element of `large` that is in a thread which has not the element of `small` that goes with
/// it; nothing where there is none.
struct Elsewhere {
  int64_t thread = 0;
  std::vector<int64_t> at, of;  // of the large tile, of the small one
};
std::optional<Elsewhere> first_elsewhere(const Layout& small,
                                         const std::vector<int64_t>& small_tile,
                                         const Layout& large,
                                         const std::vector<int64_t>& large_tile);
/// The layout of what is left of a tile when one element stands for all along a dimension.
Layout without(const Layout& layout, const std::vector<int64_t>& tile, int dim);

/// The layout of a tile that has one element along `dim` for each lane that shares it: what a
/// thread has along it, put together. `tile` becomes that tile.
Layout one_a_lane(const Layout& layout, std::vector<int64_t>& tile, int dim);
/// Fragments of 64 rows a warpgroup (arch/wgmma.h), one warpgroup below the other, in a tile of
/// `rows`.
Layout accumulators(const Layout& one, int64_t rows);

/// Rows of a tile [.., R, C] in vectors of `vector` elements, `lanes` threads side by side along a
/// row (0: as many as there is work for). A single row is in every group of threads. Nothing where
/// `threads` do not share it evenly.
std::optional<Layout> row_layout(const std::vector<int64_t>& tile, int64_t vector, int64_t lanes,
                                 int64_t threads);

}  // namespace tessera::language
