// Where the elements of shared memory come from that an instruction reads: the boxes of the copies
// that it sees, by the turn that the reader is in.
#pragma once

#include "check/footprint.h"
#include "check/place.h"
#include "check/runs.h"

namespace tessera::check {

/// One box of one copy.
struct CopiedBox {
  const core::TensorMap* map = nullptr;
  const core::Op* copy = nullptr;
  int64_t start = 0;         // its first byte, before the swizzle, where slots of a ring are 0
  std::vector<Term> corner;  // by dimension of the tensor, in the reader's turn
};

struct Origins {
  std::vector<CopiedBox> boxes;
  std::vector<const core::Op*> stores;  // by the generic proxy, in the reader's own turn
  std::vector<bool> ring;               // by mode: it is a slot, which a run chooses
  bool by_turn = false;                 // whether it depends on which turns are known to be over
  std::string why;                      // what could not be traced
};

/// Of what the op at `reader` reads in `shared`. `later`: the reader's loops that are known to be
/// past their first turn.
Origins origins(const core::Kernel& kernel, const Runs& runs, const std::vector<Place>& places,
                const Place& reader, core::SharedId shared,
                const std::vector<const core::For*>& later);

}  // namespace tessera::check
