// One edit that makes a refuted kernel a proved one.
//
// Edits are tried where the refutation says that it comes about: another turn of a slot, another
// parity or count, a wait or a fence put in, ops exchanged, an op taken away, a coordinate of
// another turn. Each edited kernel is verified and checked as a whole, and one is shown only if
// every kind is proved of it.
#pragma once

#include <optional>
#include <string>

#include "check/check.h"

namespace tessera::replay {

struct Repair {
  std::string edit;  // "replacing `...` by `...`"
  Span span;         // of the op that is edited, in the kernel's text
};

/// Work, not time.
struct RepairEffort {
  int edits = 48;            // that are tried
  int64_t events = 200'000;  // of the runs of each
};

/// The first that is found, in the order in which edits are tried.
std::optional<Repair> repair(const core::Kernel& kernel, const std::optional<check::Means>& means,
                             const check::Report& refuted, const RepairEffort& effort = {});

/// Says it under every refutation's first diagnostic.
void show(const Repair& r, const core::Kernel& kernel, check::Report& report);

}  // namespace tessera::replay
