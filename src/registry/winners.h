// The winners of an entry (pure functions).
#pragma once

#include <string>

#include "registry/registry.h"

namespace tessera::registry {

/// candidate["winners"], or nothing where the entry has none.
const Json& winners_of(const Entry& e);
/// Realizer, kind, config, launch, evidence and binary become those of the first winner; without
/// winners the entry is `failed`. What the evidence says of the whole entry stays.
void lead_with_first(Entry& e);
/// Takes out the winners that `negative` names as wrong in a module.
void drop_wrong(Entry& e);
/// The line that `negative` gets for such a winner.
Json wrong_trial(const Wrong& wrong);
bool is_wrong_trial(const Json& trial);
/// A figure of it was taken while the machine was too noisy.
bool unreliable(const Entry& e);

}  // namespace tessera::registry
