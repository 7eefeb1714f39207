// Items that are dealt out to blocks in rounds, as terms. Writers make them by these functions, and
// whoever reads a kernel knows them again by the same.
#pragma once

#include <optional>

#include "term/term.h"

namespace tessera::core {

using term::Term;

/// Of items 0, ..., items - 1, block b of `blocks` gets item round * blocks + b in each round. If
/// `alternates`, every second round goes from the last block to the first: it gets
/// round * blocks + blocks - 1 - b. Where items take less time the later they are, blocks then have
/// about as much to do.
struct Deal {
  Term items, block, blocks;
  bool alternates = false;
};

/// The rounds in which the block gets an item.
Term rounds_of(const Deal& d);

/// The item of a round.
Term item_of(const Deal& d, Term round);

/// The deal that `item` is one of, with a counter from 0 to its rounds: nothing where it is none.
/// Where 0 <= block < blocks, 0 <= item < items.
std::optional<Deal> deal_of(Term item);

}  // namespace tessera::core
